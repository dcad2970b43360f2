/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Any bytes as a model file: read, summed up, and trained on a ring of eight. */
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_model(data, size);
    return 0;
}

size_t fuzz_seeds(void)
{
    return fuzz_count("configs/models/*.yaml");
}

size_t fuzz_seed(size_t k, uint8_t *bytes, size_t capacity)
{
    return fuzz_read("configs/models/*.yaml", k, bytes, capacity);
}
