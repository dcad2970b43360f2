/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * random: independent uniform draws of valid points.  walk: Markov chains that move one variable a
 * step and accept every step; with a small chance a chain starts anew. */
#include "agents/agents_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- random ---- */

typedef struct {
    agent_setup setup;
    size_t n_vars;
    cs_rng *rng;
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
    st->rng = cs_rng_create(setup->seed, AGENT__STREAM_RANDOM, 0);
    return st->rng == NULL ? cs_fail(err, CS_ENOMEM, "random agent") : CS_OK;
}

static cs_status random_ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    random_state *st = state;

    for (size_t i = 0; i < *n; i++) {
        cs_status status = psa_space_sample(st->setup.space, st->rng, points + i * st->n_vars);
        if (status != CS_OK)
            return cs_fail(err, status, "the space has no valid point");
    }
    return CS_OK;
}

static cs_status random_tell(void *state, size_t n, const int32_t *points, const agent_score *score,
                             cs_error *err)
{
    (void)state, (void)n, (void)points, (void)score, (void)err;
    return CS_OK;
}

static void random_io(void *state, agent__io *io)
{
    agent__io_rng(io, ((random_state *)state)->rng);
}

static void random_fini(void *state)
{
    cs_rng_destroy(((random_state *)state)->rng);
}

const agent_type agent__random = {
    .name = "random",
    .summary = "uniform over valid designs",
    .state_size = sizeof(random_state),
    .params = random_params,
    .init = random_init,
    .ask = random_ask,
    .tell = random_tell,
    .snapshot = random_io,
    .fini = random_fini,
};

/* ---- walk ---- */

typedef struct {
    agent_setup setup;
    size_t n_vars, chains;
    double restart;
    cs_rng *rng;
    int32_t *at;     /* chains x n_vars */
    int32_t started; /* 0 before the first ask */
} walk_state;

enum { WALK_CHAINS, WALK_RESTART };
static const agent_param walk_params[] = {
    {"chains", 16, 1, 65536, "independent walkers, one step each per ask"},
    {"restart", 0.01, 0, 1, "chance of a walker to start anew at a step"},
    {NULL, 0, 0, 0, NULL},
};

static cs_status walk_init(void *state, const agent_setup *setup, cs_error *err)
{
    walk_state *st = state;

    st->setup = *setup;
    st->n_vars = psa_space_n_vars(setup->space);
    st->chains = agent__count(setup, WALK_CHAINS);
    st->restart = setup->param[WALK_RESTART];
    st->rng = cs_rng_create(setup->seed, AGENT__STREAM_WALK, 0);
    st->at = calloc(st->chains * st->n_vars + 1, sizeof *st->at);
    if (st->rng == NULL || st->at == NULL)
        return cs_fail(err, CS_ENOMEM, "walk agent");
    return CS_OK;
}

static cs_status walk_ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    walk_state *st = state;

    for (size_t i = 0; i < st->chains; i++) {
        int32_t *at = st->at + i * st->n_vars;
        if (!st->started || cs_rng_uniform(st->rng) < st->restart) {
            cs_status status = psa_space_sample(st->setup.space, st->rng, at);
            if (status != CS_OK)
                return cs_fail(err, status, "the space has no valid point");
        } else {
            agent__perturb(st->setup.space, st->rng, 1, at);
        }
    }
    st->started = 1;
    memcpy(points, st->at, st->chains * st->n_vars * sizeof *points);
    *n = st->chains;
    return CS_OK;
}

static cs_status walk_seed(void *state, size_t n, const int32_t *points, const agent_score *score,
                           cs_error *err)
{
    walk_state *st = state;

    (void)score, (void)err;
    for (size_t i = 0; i < st->chains; i++)
        memcpy(st->at + i * st->n_vars, points + i % n * st->n_vars, st->n_vars * sizeof *points);
    st->started = 1;
    return CS_OK;
}

static void walk_io(void *state, agent__io *io)
{
    walk_state *st = state;

    AGENT__IO(io, st->started);
    agent__io_block(io, st->at, st->chains * st->n_vars * sizeof *st->at);
    agent__io_rng(io, st->rng);
}

static void walk_fini(void *state)
{
    walk_state *st = state;

    cs_rng_destroy(st->rng);
    free(st->at);
}

const agent_type agent__walk = {
    .name = "walk",
    .summary = "Markov random walk: one move a step, every step accepted",
    .state_size = sizeof(walk_state),
    .params = walk_params,
    .init = walk_init,
    .ask = walk_ask,
    .tell = random_tell,
    .seed = walk_seed,
    .snapshot = walk_io,
    .fini = walk_fini,
};
