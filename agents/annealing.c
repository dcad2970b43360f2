/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 220, 1983) in parallel chains.  Energy
 * is the log of the objective, so a temperature means a ratio; it falls geometrically from 0.3 to
 * 0.003 over cycles of 300, 600, 900, ... proposals; every second cycle restarts from the chain's
 * best. */
#include "agents/agents_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    cs_rng *rng;
    int32_t *at, *best, *next;
    struct {
        agent_score at_score, best_score;
        uint64_t cycle, step; /* cycle from 1; step within it */
        int32_t has_at, has_best;
    } run;
} chain;

typedef struct {
    agent_setup setup;
    size_t n_vars, n_chains;
    chain *chains;
} annealing_state;

enum { CHAINS, HOT, COLD, CYCLE, DOUBLE_MOVE };
static const agent_param params[] = {
    {"chains", 16, 1, 4096, "independent chains, one proposal each per ask"},
    {"hot", 0.3, 1e-6, 100, "first temperature (log of the objective)"},
    {"cold", 0.003, 1e-9, 100, "last temperature"},
    {"cycle", 300, 2, 1e9, "proposals of the first cycle; cycle k has k times as many"},
    {"double_move", 0.2, 0, 1, "chance of two moves at once"},
    {NULL, 0, 0, 0, NULL},
};

static cs_status init(void *state, const agent_setup *setup, cs_error *err)
{
    annealing_state *st = state;

    st->setup = *setup;
    st->n_vars = psa_space_n_vars(setup->space);
    st->chains = calloc(agent__count(setup, CHAINS), sizeof *st->chains);
    if (st->chains == NULL)
        return cs_fail(err, CS_ENOMEM, "annealing agent");
    st->n_chains = agent__count(setup, CHAINS);
    for (size_t i = 0; i < st->n_chains; i++) {
        chain *c = &st->chains[i];
        c->run.cycle = 1;
        c->rng = cs_rng_create(setup->seed, AGENT__STREAM_ANNEALING, i);
        c->at = calloc(st->n_vars + 1, sizeof *c->at);
        c->best = calloc(st->n_vars + 1, sizeof *c->best);
        c->next = calloc(st->n_vars + 1, sizeof *c->next);
        if (c->rng == NULL || c->at == NULL || c->best == NULL || c->next == NULL)
            return cs_fail(err, CS_ENOMEM, "annealing agent");
    }
    return CS_OK;
}

static void fini(void *state)
{
    annealing_state *st = state;

    for (size_t i = 0; i < st->n_chains; i++) {
        cs_rng_destroy(st->chains[i].rng);
        free(st->chains[i].at);
        free(st->chains[i].best);
        free(st->chains[i].next);
    }
    free(st->chains);
}

static double temperature(const annealing_state *st, const chain *c)
{
    const double hot = st->setup.param[HOT], cold = st->setup.param[COLD];
    const double length = st->setup.param[CYCLE] * (double)c->run.cycle;

    return hot * pow(cold / hot, (double)c->run.step / length);
}

static void accept(annealing_state *st, chain *c, const int32_t *point, const agent_score *score)
{
    const size_t bytes = st->n_vars * sizeof *point;

    memcpy(c->at, point, bytes);
    c->run.at_score = *score;
    c->run.has_at = 1;
    if (!c->run.has_best || agent_score_compare(score, &c->run.best_score) < 0) {
        memcpy(c->best, point, bytes);
        c->run.best_score = *score;
        c->run.has_best = 1;
    }
}

/* Metropolis step; then the clock of the cycle. */
static void decide(annealing_state *st, chain *c, const int32_t *point, const agent_score *score)
{
    double rise = agent__energy(score) - agent__energy(&c->run.at_score);

    if (!c->run.has_at || rise <= 0.0 || cs_rng_uniform(c->rng) < exp(-rise / temperature(st, c)))
        accept(st, c, point, score);
    if ((double)++c->run.step < st->setup.param[CYCLE] * (double)c->run.cycle)
        return;
    c->run.cycle++;
    c->run.step = 0;
    if (c->run.cycle % 2 == 0)
        accept(st, c, c->best, &c->run.best_score);
    else
        c->run.has_at = 0;
}

/* Walks on through designs whose score is free, up to a limit; then one must be evaluated. */
static cs_status propose(annealing_state *st, chain *c, cs_error *err)
{
    enum { FREE_STEPS = 16 };
    agent_score score;

    for (int i = 0; i < FREE_STEPS; i++) {
        if (!c->run.has_at)
            return agent__sample_fitting(&st->setup, c->rng, c->next, err);
        memcpy(c->next, c->at, st->n_vars * sizeof *c->at);
        size_t moves = cs_rng_uniform(c->rng) < st->setup.param[DOUBLE_MOVE] ? 2 : 1;
        agent__perturb(st->setup.space, c->rng, moves, c->next);
        bool is_free = c->run.at_score.outcome == AGENT_FEASIBLE
                           ? agent__free_score(&st->setup, c->next, &score)
                           : agent__known(&st->setup, c->next, &score);
        if (!is_free)
            return CS_OK;
        decide(st, c, c->next, &score);
    }
    return agent__sample_new(&st->setup, c->rng, 16, c->next, err);
}

static cs_status ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    annealing_state *st = state;
    cs_status status = CS_OK;

    for (size_t i = 0; i < st->n_chains; i++) {
        CS_TRY(propose(st, &st->chains[i], err));
        memcpy(points + i * st->n_vars, st->chains[i].next, st->n_vars * sizeof *points);
    }
    *n = st->n_chains;
done:
    return status;
}

static cs_status tell(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    annealing_state *st = state;

    (void)err;
    for (size_t i = 0; i < n; i++)
        decide(st, &st->chains[i], points + i * st->n_vars, &score[i]);
    return CS_OK;
}

static cs_status seed(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    annealing_state *st = state;

    (void)err;
    for (size_t i = 0; i < st->n_chains; i++)
        accept(st, &st->chains[i], points + i % n * st->n_vars, &score[i % n]);
    return CS_OK;
}

static void snapshot(void *state, agent__io *io)
{
    annealing_state *st = state;
    const size_t bytes = st->n_vars * sizeof(int32_t);

    for (size_t i = 0; i < st->n_chains; i++) {
        chain *c = &st->chains[i];
        AGENT__IO(io, c->run);
        agent__io_block(io, c->at, bytes);
        agent__io_block(io, c->best, bytes);
        agent__io_rng(io, c->rng);
    }
}

const agent_type agent__annealing = {
    .name = "annealing",
    .summary = "simulated annealing in parallel chains",
    .state_size = sizeof(annealing_state),
    .params = params,
    .init = init,
    .ask = ask,
    .tell = tell,
    .seed = seed,
    .snapshot = snapshot,
    .fini = fini,
};
