/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * In a libFuzzer program: with CS_FUZZ_SEEDS=DIR it writes the target's own seeds there, and
 * ends. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static uint8_t bytes[1 << 18];
    const char *folder = getenv("CS_FUZZ_SEEDS");
    char path[4096];

    (void)argc, (void)argv;
    if (folder == NULL)
        return 0;
    for (size_t k = 0; k < fuzz_seeds(); k++) {
        const size_t n = fuzz_seed(k, bytes, sizeof bytes);
        FILE *file;

        snprintf(path, sizeof path, "%s/seed-%zu", folder, k);
        file = fopen(path, "wb");
        if (file == NULL || fwrite(bytes, 1, n, file) != n || fclose(file) != 0)
            exit(1);
    }
    exit(0);
}
