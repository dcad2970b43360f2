/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Random streams on GSL's Mersenne twister (Matsumoto and Nishimura, TOMACS 8(1), 1998), seeded by
 * a mix of master seed and stream number so that streams never share state. */
#include "common/common.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_rng.h>
#include <stdlib.h>
#include <string.h>

struct cs_rng {
    gsl_rng *gsl;
};

uint64_t cs_mix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

cs_rng *cs_rng_create(uint64_t master, uint64_t a, uint64_t b)
{
    cs_rng *rng = calloc(1, sizeof *rng);

    if (rng == NULL)
        return NULL;
    gsl_set_error_handler_off(); /* it would abort when memory runs out */
    rng->gsl = gsl_rng_alloc(gsl_rng_mt19937);
    if (rng->gsl == NULL) {
        free(rng);
        return NULL;
    }
    gsl_rng_set(rng->gsl, (unsigned long)cs_mix64(cs_mix64(cs_mix64(master) ^ a) ^ b));
    return rng;
}

void cs_rng_destroy(cs_rng *rng)
{
    if (rng == NULL)
        return;
    gsl_rng_free(rng->gsl);
    free(rng);
}

uint64_t cs_rng_u64(cs_rng *rng)
{
    uint64_t high = gsl_rng_get(rng->gsl);
    return high << 32 | (uint64_t)gsl_rng_get(rng->gsl);
}

uint64_t cs_rng_below(cs_rng *rng, uint64_t n)
{
    /* Reject the incomplete last multiple of n, so that every value is equally likely. */
    uint64_t limit = UINT64_MAX - (UINT64_MAX % n + 1) % n;
    uint64_t x;

    do
        x = cs_rng_u64(rng);
    while (x > limit);
    return x % n;
}

unsigned __int128 cs_rng_below_u128(cs_rng *rng, unsigned __int128 n)
{
    const unsigned __int128 all = ~(unsigned __int128)0;
    unsigned __int128 limit = all - (all % n + 1) % n;
    unsigned __int128 x;

    if (n <= UINT64_MAX)
        return cs_rng_below(rng, (uint64_t)n);
    do {
        x = (unsigned __int128)cs_rng_u64(rng) << 64;
        x |= cs_rng_u64(rng);
    } while (x > limit);
    return x % n;
}

double cs_rng_uniform(cs_rng *rng)
{
    return (double)(cs_rng_u64(rng) >> 11) * 0x1p-53;
}

size_t cs_rng_state_size(void)
{
    return gsl_rng_mt19937->size;
}

void cs_rng_save(const cs_rng *rng, void *bytes)
{
    memcpy(bytes, gsl_rng_state(rng->gsl), cs_rng_state_size());
}

void cs_rng_load(cs_rng *rng, const void *bytes)
{
    memcpy(gsl_rng_state(rng->gsl), bytes, cs_rng_state_size());
}
