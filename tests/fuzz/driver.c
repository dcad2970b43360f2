/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Runs a fuzz target without libFuzzer: on the files it is given, or, with `--mutate N`, on the
 * target's own seeds changed N times each from a fixed random stream.  Every change is replayed by
 * the same N, so that a crash can be repeated. */
#include "common/common.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1 << 16 };

static uint8_t bytes[LONGEST], changed[LONGEST];

/* Lengths, counts and signs that break careless readers. */
static const uint8_t nasty[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x08, 0x0a, 0x12, 0x52, '-', '9'};

static size_t mutate(cs_rng *rng, const uint8_t *seed, size_t n)
{
    uint64_t changes = 1 + cs_rng_below(rng, 4);

    memcpy(changed, seed, n);
    while (changes-- > 0 && n > 0) {
        size_t at = (size_t)cs_rng_below(rng, n);

        switch (cs_rng_below(rng, 5)) {
        case 0: /* one bit */
            changed[at] ^= (uint8_t)(1u << cs_rng_below(rng, 8));
            break;
        case 1:
            changed[at] = nasty[cs_rng_below(rng, sizeof nasty)];
            break;
        case 2: /* cut */
            n = at;
            break;
        case 3: /* remove a byte */
            memmove(changed + at, changed + at + 1, n - at - 1);
            n--;
            break;
        default: /* double a byte */
            if (n < LONGEST) {
                memmove(changed + at + 1, changed + at, n - at);
                n++;
            }
        }
    }
    return n;
}

static int run_mutations(uint64_t count)
{
    for (size_t k = 0; k < fuzz_seeds(); k++) {
        size_t n = fuzz_seed(k, bytes, LONGEST);
        cs_rng *rng = cs_rng_create(1, k, 0);

        if (rng == NULL)
            return 1;
        (void)LLVMFuzzerTestOneInput(bytes, n);
        for (uint64_t i = 0; i < count; i++)
            (void)LLVMFuzzerTestOneInput(changed, mutate(rng, bytes, n));
        cs_rng_destroy(rng);
    }
    printf("%zu seeds, %llu mutations each\n", fuzz_seeds(), (unsigned long long)count);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--mutate") == 0)
        return run_mutations(strtoull(argv[2], NULL, 10));
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        size_t n;

        if (f == NULL) {
            perror(argv[i]);
            return 1;
        }
        n = fread(bytes, 1, LONGEST, f);
        fclose(f);
        (void)LLVMFuzzerTestOneInput(bytes, n);
    }
    return 0;
}
