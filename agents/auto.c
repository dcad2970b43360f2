/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A portfolio: several agents take turns on one cache and see what the others found.  With few
 * evaluations bayesian and local share them.  With many, bayesian and local scout first; then
 * local, ant_colony and genetic begin from the best designs found, and their shares shift, ten
 * times a run, towards the arms that have improved the best design most per evaluation. */
#include "agents/agents_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARMS = 5, FEW = 400, ELITE = 32 };

typedef struct {
    const agent_type *type;
    double first, later; /* share while scouting, and after */
} arm_row;

static const arm_row few_arms[MOST_ARMS] = {
    {&agent__bayesian, 0.8, 0.8}, {&agent__local, 0.2, 0.2}, {NULL, 0, 0}};
static const arm_row many_arms[MOST_ARMS] = {{&agent__bayesian, 0.7, 0},
                                             {&agent__local, 0.3, 0.8},
                                             {&agent__ant_colony, 0, 0.12},
                                             {&agent__genetic, 0, 0.08},
                                             {NULL, 0, 0}};

typedef struct {
    agent *agent;
    double first, later;
    double param[AGENT_MAX_PARAMS]; /* the agent keeps a pointer to it */
} arm;

typedef struct {
    agent_setup setup;
    size_t n_arms, n_vars;
    arm arms[MOST_ARMS];
    int32_t *elite; /* ELITE x n_vars: best designs so far, best first */
    agent_score elite_score[ELITE];
    struct {
        uint64_t asked[MOST_ARMS], evaluated[MOST_ARMS]; /* in this window */
        double share[MOST_ARMS], gain[MOST_ARMS];
        uint64_t window, turn; /* evaluations in this window; arm of the open ask */
        uint64_t total, n_elite;
        int32_t scouting, pad_;
    } run;
} auto_state;

enum { BATCH, COST, SCOUT };
static const agent_param params[] = {
    {"batch", 64, 16, 4096, "most points per ask"},
    {"cost", 0, 0, 2, "0: by the budget; 1: many cheap evaluations; 2: few expensive ones"},
    {"scout", 240, 0, 1e6, "evaluations of the scouting phase, at most a quarter of the budget"},
    {NULL, 0, 0, 0, NULL},
};

static cs_status add_arm(auto_state *st, const arm_row *row, cs_error *err)
{
    cs_status status = CS_OK;
    arm *a = &st->arms[st->n_arms];
    agent_setup setup = st->setup;

    CS_TRY(agent_params(row->type, NULL, 0, a->param, err));
    setup.param = a->param;
    setup.seed = cs_mix64(st->setup.seed ^ (AGENT__STREAM_AUTO + st->n_arms));
    a->first = row->first;
    a->later = row->later;
    st->run.share[st->n_arms] = row->first;
    if (agent_batch(row->type, a->param) > agent__count(&st->setup, BATCH))
        return cs_fail(err, CS_EINVAL, "agent auto needs a batch of at least %zu for %s",
                       agent_batch(row->type, a->param), row->type->name);
    CS_TRY(agent_create(row->type, &setup, &a->agent, err));
    st->n_arms++;
done:
    return status;
}

static cs_status init(void *state, const agent_setup *setup, cs_error *err)
{
    auto_state *st = state;
    cs_status status = CS_OK;
    const double cost = setup->param[COST];
    const bool few = cost >= 2.0 || (cost < 1.0 && setup->budget <= FEW);
    const arm_row *rows = few ? few_arms : many_arms;

    st->setup = *setup;
    st->n_vars = psa_space_n_vars(setup->space);
    st->run.scouting = few ? 0 : 1;
    st->elite = calloc((ELITE + 1) * st->n_vars + 1, sizeof *st->elite);
    if (st->elite == NULL)
        return cs_fail(err, CS_ENOMEM, "auto agent");
    for (size_t i = 0; i < MOST_ARMS && rows[i].type != NULL; i++)
        CS_TRY(add_arm(st, &rows[i], err));
done:
    return status;
}

static void fini(void *state)
{
    auto_state *st = state;

    for (size_t i = 0; i < MOST_ARMS; i++)
        agent_destroy(st->arms[i].agent);
    free(st->elite);
}

/* The arm that is furthest behind its share. */
static size_t next_arm(const auto_state *st)
{
    double total = 0.0, largest = -INFINITY;
    size_t best = 0;

    for (size_t i = 0; i < st->n_arms; i++)
        total += (double)st->run.asked[i];
    for (size_t i = 0; i < st->n_arms; i++) {
        double behind = st->run.share[i] * (total + 1.0) - (double)st->run.asked[i];
        if (behind > largest) {
            largest = behind;
            best = i;
        }
    }
    return best;
}

static cs_status ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    auto_state *st = state;
    cs_status status;

    st->run.turn = next_arm(st);
    CS_TRY(agent_ask(st->arms[st->run.turn].agent, n, points, err));
done:
    return status;
}

/* Keeps a design among the best ones; a better first one is the arm's gain, in nats of the
 * objective. */
static void credit(auto_state *st, size_t turn, const int32_t *point, const agent_score *score)
{
    size_t at = (size_t)st->run.n_elite;

    while (at > 0 && agent_score_compare(score, &st->elite_score[at - 1]) < 0)
        at--;
    if (at == ELITE)
        return;
    if (at == 0 && st->run.n_elite > 0)
        st->run.gain[turn] += fmin(agent__energy(st->elite_score) - agent__energy(score), 10.0);
    st->run.n_elite += st->run.n_elite < ELITE;
    const size_t behind = (size_t)st->run.n_elite - at - 1;
    memmove(st->elite + (at + 1) * st->n_vars, st->elite + at * st->n_vars,
            behind * st->n_vars * sizeof *point);
    memmove(st->elite_score + at + 1, st->elite_score + at, behind * sizeof *score);
    memcpy(st->elite + at * st->n_vars, point, st->n_vars * sizeof *point);
    st->elite_score[at] = *score;
}

static void open_window(auto_state *st)
{
    memset(st->run.gain, 0, sizeof st->run.gain);
    memset(st->run.asked, 0, sizeof st->run.asked);
    memset(st->run.evaluated, 0, sizeof st->run.evaluated);
    st->run.window = 0;
}

/* End of a window: half of each share follows the gain per evaluation, a tenth of that the table.
 */
static void rebalance(auto_state *st)
{
    double rate[MOST_ARMS] = {0}, sum = 0.0;

    for (size_t i = 0; i < st->n_arms; i++) {
        rate[i] = st->run.gain[i] / (double)(st->run.evaluated[i] + 1);
        sum += rate[i];
    }
    for (size_t i = 0; i < st->n_arms; i++) {
        double base = st->arms[i].later, earned = sum > 0.0 ? rate[i] / sum : base;
        st->run.share[i] = 0.5 * st->run.share[i] + 0.5 * (0.1 * base + 0.9 * earned);
    }
    open_window(st);
}

/* The arms of the main phase begin from the best designs of the scouts. */
static cs_status end_scouting(auto_state *st, cs_error *err)
{
    cs_status status = CS_OK;

    st->run.scouting = 0;
    for (size_t i = 0; i < st->n_arms; i++) {
        st->run.share[i] = st->arms[i].later;
        if (st->arms[i].later > 0.0)
            CS_TRY(agent_seed(st->arms[i].agent, (size_t)st->run.n_elite, st->elite,
                              st->elite_score, err));
    }
    open_window(st);
done:
    return status;
}

static cs_status tell(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    auto_state *st = state;
    const size_t turn = (size_t)st->run.turn;
    const double scout = fmin(st->setup.param[SCOUT], (double)st->setup.budget / 4.0);
    cs_status status;

    CS_TRY(agent_tell(st->arms[turn].agent, n, points, score, err));
    for (size_t i = 0; i < st->n_arms; i++)
        if (i != turn && (st->run.scouting || st->arms[i].later > 0.0))
            agent_observe(st->arms[i].agent, n, points, score);
    st->run.asked[turn] += n;
    for (size_t i = 0; i < n; i++) {
        if (score[i].cached)
            continue;
        st->run.evaluated[turn]++;
        st->run.window++;
        st->run.total++;
        credit(st, turn, points + i * st->n_vars, &score[i]);
    }
    if (st->run.scouting && (double)st->run.total >= scout)
        CS_TRY(end_scouting(st, err));
    else if (!st->run.scouting && st->run.window > st->setup.budget / 10 + 16)
        rebalance(st);
done:
    return status;
}

static cs_status seed(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    auto_state *st = state;
    cs_status status = CS_OK;

    for (size_t i = 0; i < st->n_arms; i++)
        CS_TRY(agent_seed(st->arms[i].agent, n, points, score, err));
    for (size_t i = 0; i < n; i++)
        credit(st, 0, points + i * st->n_vars, &score[i]);
    open_window(st);
done:
    return status;
}

static void snapshot(void *state, agent__io *io)
{
    auto_state *st = state;

    AGENT__IO(io, st->run);
    if (st->run.turn >= st->n_arms || st->run.n_elite > ELITE) {
        st->run.turn = st->run.n_elite = 0;
        io->status = CS_EIO;
    }
    agent__io_block(io, st->elite, st->run.n_elite * st->n_vars * sizeof *st->elite);
    agent__io_block(io, st->elite_score, st->run.n_elite * sizeof *st->elite_score);
    for (size_t i = 0; i < st->n_arms; i++)
        agent__io_agent(io, st->arms[i].agent);
}

const agent_type agent__auto = {
    .name = "auto",
    .summary = "portfolio: bayesian and local scout, then local, ant_colony, genetic; bayesian and "
               "local for few evaluations",
    .state_size = sizeof(auto_state),
    .params = params,
    .init = init,
    .ask = ask,
    .tell = tell,
    .seed = seed,
    .snapshot = snapshot,
    .fini = fini,
};
