/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Max-min ant system with rank-based deposits (Stuetzle, Hoos, FGCS 16(8), 2000; Bullnheimer,
 * Hartl, Strauss, 1999).  One pheromone distribution per variable; a deposit is smeared over the
 * neighbours of ordered values and tuples; the trail is renewed after a stall. */
#include "agents/agents_private.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    agent_setup setup;
    size_t n_vars, ants, n_values;
    cs_rng *rng;
    size_t *offset;  /* n_vars + 1: where a variable's values begin */
    double *trail;   /* n_values, sums to 1 per variable */
    double *cumul;   /* running sums of trail, rebuilt once per iteration */
    double *deposit; /* n_values, work space */
    int32_t *best;   /* restart-best design */
    size_t *order;   /* ants */
    struct {
        agent_score best_score;
        uint64_t stall;
        int32_t has_best, pad_;
    } run;
} colony_state;

enum { BATCH, EVAPORATION, RANKS, FLOOR, STALL };
static const agent_param params[] = {
    {"batch", 24, 1, 4096, "ants per iteration"},
    {"evaporation", 0.1, 1e-4, 1, "share of the trail that is renewed per iteration"},
    {"ranks", 6, 1, 64, "depositing designs, the best one of the restart included"},
    {"floor", 0.05, 0, 1, "least chance of a value, times the number of values"},
    {"stall", 25, 1, 1e6, "iterations without improvement before the trail starts anew"},
    {NULL, 0, 0, 0, NULL},
};

static void even_trail(colony_state *st)
{
    for (size_t v = 0; v < st->n_vars; v++)
        for (size_t i = st->offset[v]; i < st->offset[v + 1]; i++)
            st->trail[i] = 1.0 / (double)(st->offset[v + 1] - st->offset[v]);
}

static void accumulate(colony_state *st)
{
    for (size_t v = 0; v < st->n_vars; v++) {
        double sum = 0.0;
        for (size_t i = st->offset[v]; i < st->offset[v + 1]; i++)
            st->cumul[i] = sum += st->trail[i];
    }
}

static cs_status init(void *state, const agent_setup *setup, cs_error *err)
{
    colony_state *st = state;

    st->setup = *setup;
    st->n_vars = psa_space_n_vars(setup->space);
    st->ants = agent__count(setup, BATCH);
    st->rng = cs_rng_create(setup->seed, AGENT__STREAM_ANT_COLONY, 0);
    st->offset = calloc(st->n_vars + 1, sizeof *st->offset);
    if (st->rng == NULL || st->offset == NULL)
        return cs_fail(err, CS_ENOMEM, "ant_colony agent");
    for (size_t v = 0; v < st->n_vars; v++)
        st->offset[v + 1] = st->offset[v] + (size_t)psa_space_card(setup->space, v);
    st->n_values = st->offset[st->n_vars];
    st->trail = calloc(st->n_values + 1, sizeof *st->trail);
    st->cumul = calloc(st->n_values + 1, sizeof *st->cumul);
    st->deposit = calloc(st->n_values + 1, sizeof *st->deposit);
    st->best = calloc(st->n_vars + 1, sizeof *st->best);
    st->order = calloc(st->ants, sizeof *st->order);
    if (st->trail == NULL || st->cumul == NULL || st->deposit == NULL || st->best == NULL ||
        st->order == NULL)
        return cs_fail(err, CS_ENOMEM, "ant_colony agent");
    even_trail(st);
    return CS_OK;
}

static void fini(void *state)
{
    colony_state *st = state;

    cs_rng_destroy(st->rng);
    free(st->offset);
    free(st->trail);
    free(st->cumul);
    free(st->deposit);
    free(st->best);
    free(st->order);
}

/* A value of variable v by its trail: binary search in the running sums. */
static int32_t draw(colony_state *st, size_t v)
{
    size_t low = st->offset[v], high = st->offset[v + 1] - 1;
    const double x = cs_rng_uniform(st->rng) * st->cumul[high];

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (st->cumul[middle] > x)
            high = middle;
        else
            low = middle + 1;
    }
    return (int32_t)(low - st->offset[v]);
}

static void build(colony_state *st, int32_t *point)
{
    const psa_space *space = st->setup.space;

    for (size_t v = 0; v < st->n_vars; v++)
        point[v] = st->offset[v + 1] - st->offset[v] > 1 ? draw(st, v) : 0;
    psa_space_canonicalize(space, point);
    if (!psa_space_valid(space, point))
        (void)psa_space_repair(space, st->rng, SIZE_MAX, point);
}

/* An ant whose design is known or cannot fit walks again five times, then moves on by two moves. */
static cs_status walk(colony_state *st, int32_t *point, cs_error *err)
{
    agent_score score;

    for (int tries = 0; tries < 6; tries++) {
        build(st, point);
        if (!agent__free_score(&st->setup, point, &score))
            return CS_OK;
    }
    for (int tries = 0; tries < 10; tries++) {
        agent__perturb(st->setup.space, st->rng, 2, point);
        if (!agent__free_score(&st->setup, point, &score))
            return CS_OK;
    }
    return agent__known(&st->setup, point, &score)
               ? agent__sample_new(&st->setup, st->rng, 4, point, err)
               : CS_OK;
}

static cs_status ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    colony_state *st = state;
    cs_status status = CS_OK;

    accumulate(st);
    for (size_t i = 0; i < st->ants; i++)
        CS_TRY(walk(st, points + i * st->n_vars, err));
    *n = st->ants;
done:
    return status;
}

static void smear(colony_state *st, size_t v, int32_t value, double weight)
{
    const psa_space *space = st->setup.space;
    double *deposit = st->deposit + st->offset[v];
    const int32_t card = psa_space_card(space, v), *near;
    size_t n;

    switch (psa_space_var_kind(space, v)) {
    case PSA_VAR_ORDERED:
        deposit[value] += 0.7 * weight;
        deposit[value > 0 ? value - 1 : value] += 0.15 * weight;
        deposit[value + 1 < card ? value + 1 : value] += 0.15 * weight;
        return;
    case PSA_VAR_TUPLE:
        n = psa_space_neighbours(space, v, value, &near);
        deposit[value] += (n > 0 ? 0.6 : 1.0) * weight;
        for (size_t i = 0; i < n; i++)
            deposit[near[i]] += 0.4 * weight / (double)n;
        return;
    case PSA_VAR_CATEGORY:
        deposit[value] += weight;
        return;
    }
}

static void deposit_design(colony_state *st, const int32_t *point, double weight)
{
    for (size_t v = 0; v < st->n_vars; v++)
        if (psa_space_active(st->setup.space, point, v))
            smear(st, v, point[v], weight);
}

/* trail = (1 - rho) trail + rho deposit, both distributions; then the floor. */
static void renew(colony_state *st)
{
    const double rho = st->setup.param[EVAPORATION];

    for (size_t v = 0; v < st->n_vars; v++) {
        const size_t from = st->offset[v], to = st->offset[v + 1];
        const double least = st->setup.param[FLOOR] / (double)(to - from);
        double laid = 0.0, sum = 0.0;

        for (size_t i = from; i < to; i++)
            laid += st->deposit[i];
        if (!(laid > 0.0))
            continue;
        for (size_t i = from; i < to; i++) {
            st->trail[i] = (1.0 - rho) * st->trail[i] + rho * st->deposit[i] / laid;
            if (st->trail[i] < least)
                st->trail[i] = least;
            sum += st->trail[i];
        }
        for (size_t i = from; i < to; i++)
            st->trail[i] /= sum;
    }
}

static void rank_ants(colony_state *st, size_t n, const agent_score *score)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        while (at > 0 && agent_score_compare(&score[i], &score[st->order[at - 1]]) < 0) {
            st->order[at] = st->order[at - 1];
            at--;
        }
        st->order[at] = i;
    }
}

static void keep_best(colony_state *st, const int32_t *point, const agent_score *score)
{
    if (st->run.has_best && agent_score_compare(score, &st->run.best_score) >= 0) {
        st->run.stall++;
        return;
    }
    memcpy(st->best, point, st->n_vars * sizeof *point);
    st->run.best_score = *score;
    st->run.has_best = 1;
    st->run.stall = 0;
}

static cs_status tell(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    colony_state *st = state;
    const double ranks = st->setup.param[RANKS];

    (void)err;
    if (n > st->ants)
        n = st->ants;
    rank_ants(st, n, score);
    keep_best(st, points + st->order[0] * st->n_vars, &score[st->order[0]]);
    memset(st->deposit, 0, st->n_values * sizeof *st->deposit);
    deposit_design(st, st->best, ranks);
    for (size_t i = 0; i < n && (double)i + 1.0 < ranks; i++)
        deposit_design(st, points + st->order[i] * st->n_vars, ranks - 1.0 - (double)i);
    renew(st);
    if ((double)st->run.stall >= st->setup.param[STALL]) {
        even_trail(st);
        st->run.has_best = 0;
        st->run.stall = 0;
    }
    return CS_OK;
}

static void snapshot(void *state, agent__io *io)
{
    colony_state *st = state;

    AGENT__IO(io, st->run);
    agent__io_block(io, st->best, st->n_vars * sizeof *st->best);
    agent__io_block(io, st->trail, st->n_values * sizeof *st->trail);
    agent__io_rng(io, st->rng);
}

const agent_type agent__ant_colony = {
    .name = "ant_colony",
    .summary = "max-min ant system, rank based",
    .state_size = sizeof(colony_state),
    .params = params,
    .init = init,
    .ask = ask,
    .tell = tell,
    .seed = tell,
    .snapshot = snapshot,
    .fini = fini,
};
