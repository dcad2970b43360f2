/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Any bytes as a system file; behind a zero byte, as its device file. */
#include "tests/fuzz/problem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cs_files *files = cs_files_create();
    const uint8_t *cut = memchr(data, 0, size);
    const size_t n = cut == NULL ? size : (size_t)(cut - data);

    fuzz_put(files, "psa.yaml", FUZZ_PSA, sizeof FUZZ_PSA - 1);
    fuzz_put(files, "system.yaml", data, n);
    fuzz_put_file(files, "model.yaml", "configs/models/gpt3-1.3b.yaml");
    if (cut != NULL)
        fuzz_put(files, "../devices/h100-sxm.yaml", cut + 1, size - n - 1);
    else
        fuzz_put_file(files, "../devices/h100-sxm.yaml", "configs/devices/h100-sxm.yaml");
    for (int i = 1; i <= 3; i++) {
        char name[40], path[40];
        (void)snprintf(name, sizeof name, "../devices/cosmic-npu%d.yaml", i);
        (void)snprintf(path, sizeof path, "configs/devices/cosmic-npu%d.yaml", i);
        fuzz_put_file(files, name, path);
    }
    fuzz_problem(files);
    return 0;
}

/* Each system alone, then with the device of the H100 behind it. */
size_t fuzz_seeds(void)
{
    return 2 * fuzz_count("configs/systems/*.yaml");
}

size_t fuzz_seed(size_t k, uint8_t *bytes, size_t capacity)
{
    size_t n = fuzz_read("configs/systems/*.yaml", k / 2, bytes, capacity);

    if (k % 2 == 0 || n + 1 >= capacity)
        return n;
    bytes[n++] = 0;
    return n + fuzz_read("configs/devices/h100-sxm.yaml", 0, bytes + n, capacity - n);
}
