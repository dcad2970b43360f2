/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * For comparison only: agents that work on the raw knobs and find out what is invalid by spending
 * an evaluation on it, as ArchGym's agents do.  random_raw draws every knob uniformly.  genetic_raw
 * is binary coded: tournament of 3, two-point crossover, bit flips, no elitism; an index past the
 * last value is taken as the last, as in the library ArchGym calls. */
#include "agents/agents_private.h"

#include <stdlib.h>
#include <string.h>

/* Writes the point of raw values, or the mark of an invalid one. */
static void to_point(const psa_space *space, const int32_t *index, int32_t *point)
{
    if (psa_space_from_raw(space, index, point))
        return;
    for (size_t v = 0; v < psa_space_n_vars(space); v++)
        point[v] = -1;
}

/* ---- random_raw ---- */

typedef struct {
    agent_setup setup;
    size_t n_vars, n_knobs;
    cs_rng *rng;
    int32_t *index;
} random_state;

static const agent_param random_params[] = {
    {"batch", 1024, 1, 65536, "points per ask"},
    {NULL, 0, 0, 0, NULL},
};

static cs_status random_init(void *state, const agent_setup *setup, cs_error *err)
{
    random_state *st = state;

    st->setup = *setup;
    st->n_vars = psa_space_n_vars(setup->space);
    st->n_knobs = psa_space_n_knobs(setup->space);
    st->rng = cs_rng_create(setup->seed, AGENT__STREAM_RANDOM_RAW, 0);
    st->index = calloc(st->n_knobs + 1, sizeof *st->index);
    return st->rng == NULL || st->index == NULL ? cs_fail(err, CS_ENOMEM, "random_raw agent")
                                                : CS_OK;
}

static cs_status random_ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    random_state *st = state;
    const psa_space *space = st->setup.space;

    (void)err;
    for (size_t i = 0; i < *n; i++) {
        for (size_t k = 0; k < st->n_knobs; k++)
            st->index[k] = (int32_t)cs_rng_below(st->rng, psa_space_knob_count(space, k));
        to_point(space, st->index, points + i * st->n_vars);
    }
    return CS_OK;
}

static cs_status no_tell(void *state, size_t n, const int32_t *points, const agent_score *score,
                         cs_error *err)
{
    (void)state, (void)n, (void)points, (void)score, (void)err;
    return CS_OK;
}

static void random_snapshot(void *state, agent__io *io)
{
    agent__io_rng(io, ((random_state *)state)->rng);
}

static void random_fini(void *state)
{
    random_state *st = state;

    cs_rng_destroy(st->rng);
    free(st->index);
}

const agent_type agent__random_raw = {
    .name = "random_raw",
    .summary = "uniform over raw knobs, invalid ones included (comparison only)",
    .state_size = sizeof(random_state),
    .params = random_params,
    .raw = true,
    .init = random_init,
    .ask = random_ask,
    .tell = no_tell,
    .snapshot = random_snapshot,
    .fini = random_fini,
};

/* ---- genetic_raw ---- */

typedef struct {
    agent_setup setup;
    size_t n_vars, n_knobs, n_bits, population;
    cs_rng *rng;
    unsigned char *bits, *next; /* population x n_bits, one bit a byte */
    agent_score *score;
    int32_t *index;
    int32_t scored, idle; /* idle: generations without a new design */
} genetic_state;

enum { BATCH, FLIP };
static const agent_param genetic_params[] = {
    {"batch", 32, 2, 4096, "population, and children per ask"},
    {"flip", 0.01, 0, 1, "chance of a bit to flip"},
    {NULL, 0, 0, 0, NULL},
};

static size_t bits_of(const psa_space *space, size_t knob)
{
    size_t bits = 0;

    while ((size_t)1 << bits < psa_space_knob_count(space, knob))
        bits++;
    return bits;
}

static cs_status genetic_init(void *state, const agent_setup *setup, cs_error *err)
{
    genetic_state *st = state;

    st->setup = *setup;
    st->n_vars = psa_space_n_vars(setup->space);
    st->n_knobs = psa_space_n_knobs(setup->space);
    st->population = agent__count(setup, BATCH);
    for (size_t k = 0; k < st->n_knobs; k++)
        st->n_bits += bits_of(setup->space, k);
    st->rng = cs_rng_create(setup->seed, AGENT__STREAM_GENETIC_RAW, 0);
    st->bits = calloc(st->population * st->n_bits + 1, 1);
    st->next = calloc(st->population * st->n_bits + 1, 1);
    st->score = calloc(st->population, sizeof *st->score);
    st->index = calloc(st->n_knobs + 1, sizeof *st->index);
    if (st->rng == NULL || st->bits == NULL || st->next == NULL || st->score == NULL ||
        st->index == NULL)
        return cs_fail(err, CS_ENOMEM, "genetic_raw agent");
    return CS_OK;
}

static void genetic_fini(void *state)
{
    genetic_state *st = state;

    cs_rng_destroy(st->rng);
    free(st->bits);
    free(st->next);
    free(st->score);
    free(st->index);
}

static const unsigned char *tournament(genetic_state *st)
{
    size_t best = (size_t)cs_rng_below(st->rng, st->population);

    for (int i = 1; i < 3; i++) {
        size_t other = (size_t)cs_rng_below(st->rng, st->population);
        if (agent_score_compare(&st->score[other], &st->score[best]) < 0)
            best = other;
    }
    return st->bits + best * st->n_bits;
}

static void breed(genetic_state *st, unsigned char *child)
{
    const unsigned char *other;

    memcpy(child, tournament(st), st->n_bits);
    other = tournament(st);
    size_t a = (size_t)cs_rng_below(st->rng, st->n_bits + 1);
    size_t b = (size_t)cs_rng_below(st->rng, st->n_bits + 1);
    if (a > b) {
        size_t t = a;
        a = b;
        b = t;
    }
    memcpy(child + a, other + a, b - a);
    for (size_t i = 0; i < st->n_bits; i++)
        if (cs_rng_uniform(st->rng) < st->setup.param[FLIP])
            child[i] ^= 1;
}

static void read_bits(genetic_state *st, const unsigned char *bits)
{
    for (size_t k = 0; k < st->n_knobs; k++) {
        const size_t count = psa_space_knob_count(st->setup.space, k);
        size_t value = 0;
        for (size_t b = bits_of(st->setup.space, k); b > 0; b--)
            value = 2 * value + *bits++;
        st->index[k] = (int32_t)(value < count ? value : count - 1);
    }
}

static cs_status genetic_ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    genetic_state *st = state;

    (void)err;
    *n = st->population;
    for (size_t i = 0; i < st->population; i++) {
        unsigned char *child = st->next + i * st->n_bits;
        if (st->scored) {
            breed(st, child);
        } else {
            for (size_t b = 0; b < st->n_bits; b++)
                child[b] = (unsigned char)(cs_rng_u64(st->rng) & 1);
        }
        read_bits(st, child);
        to_point(st->setup.space, st->index, points + i * st->n_vars);
    }
    memcpy(st->bits, st->next, st->population * st->n_bits);
    return CS_OK;
}

static cs_status genetic_tell(void *state, size_t n, const int32_t *points,
                              const agent_score *score, cs_error *err)
{
    genetic_state *st = state;

    (void)points, (void)err;
    bool news = false;
    for (size_t i = 0; i < n; i++)
        news = news || !score[i].cached;
    st->idle = news ? 0 : st->idle + 1;
    memcpy(st->score, score, n * sizeof *score);
    st->scored = st->idle < 50;
    if (!st->scored)
        st->idle = 0;
    return CS_OK;
}

static void genetic_snapshot(void *state, agent__io *io)
{
    genetic_state *st = state;

    AGENT__IO(io, st->scored);
    AGENT__IO(io, st->idle);
    agent__io_block(io, st->bits, st->population * st->n_bits);
    agent__io_block(io, st->score, st->population * sizeof *st->score);
    agent__io_rng(io, st->rng);
}

const agent_type agent__genetic_raw = {
    .name = "genetic_raw",
    .summary = "binary genetic algorithm on raw knobs, no elitism (comparison only)",
    .state_size = sizeof(genetic_state),
    .params = genetic_params,
    .raw = true,
    .init = genetic_init,
    .ask = genetic_ask,
    .tell = genetic_tell,
    .snapshot = genetic_snapshot,
    .fini = genetic_fini,
};
