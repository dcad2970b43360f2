/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A portfolio: several agents take turns on one cache.  Shares of the budget follow a table per
 * cost class (few or many evaluations) and shift, ten times a run, towards the arms that have
 * improved the best design most per evaluation. */
#include "agents/agents_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARMS = 4, FEW = 400 };

typedef struct {
    const agent_type *type;
    double share;
} arm_row;

static const arm_row few_arms[MOST_ARMS] = {
    {&agent__bayesian, 0.5}, {&agent__local, 0.3}, {&agent__tpe, 0.2}, {NULL, 0}};
static const arm_row many_arms[MOST_ARMS] = {
    {&agent__local, 0.75}, {&agent__ant_colony, 0.15}, {&agent__genetic, 0.1}, {NULL, 0}};

typedef struct {
    agent *agent;
    size_t batch;
    double base;                    /* share of the table */
    double param[AGENT_MAX_PARAMS]; /* the agent keeps a pointer to it */
} arm;

typedef struct {
    agent_setup setup;
    size_t n_arms, n_vars;
    arm arms[MOST_ARMS];
    struct {
        uint64_t asked[MOST_ARMS], evaluated[MOST_ARMS]; /* evaluated: in this window */
        double share[MOST_ARMS], gain[MOST_ARMS];
        uint64_t window, turn; /* evaluations in this window; arm of the open ask */
        agent_score best;
        int32_t has_best, pad_;
    } run;
} auto_state;

enum { BATCH, COST };
static const agent_param params[] = {
    {"batch", 64, 16, 4096, "most points per ask"},
    {"cost", 0, 0, 2, "0: by the budget; 1: many cheap evaluations; 2: few expensive ones"},
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
    a->base = st->run.share[st->n_arms] = row->share;
    a->batch = agent_batch(row->type, a->param);
    if (a->batch > agent__count(&st->setup, BATCH))
        return cs_fail(err, CS_EINVAL, "agent auto needs a batch of at least %zu for %s", a->batch,
                       row->type->name);
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

/* What an arm's designs improved, in nats of the objective. */
static void credit(auto_state *st, size_t turn, const agent_score *score)
{
    if (st->run.has_best && agent_score_compare(score, &st->run.best) >= 0)
        return;
    if (st->run.has_best)
        st->run.gain[turn] += fmin(agent__energy(&st->run.best) - agent__energy(score), 10.0);
    st->run.best = *score;
    st->run.has_best = 1;
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
        double earned = sum > 0.0 ? rate[i] / sum : st->arms[i].base;
        st->run.share[i] = 0.5 * st->run.share[i] + 0.5 * (0.1 * st->arms[i].base + 0.9 * earned);
        st->run.gain[i] = 0.0;
        st->run.evaluated[i] = 0;
        st->run.asked[i] = 0;
    }
    st->run.window = 0;
}

static cs_status tell(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    auto_state *st = state;
    const size_t turn = (size_t)st->run.turn;
    cs_status status;

    CS_TRY(agent_tell(st->arms[turn].agent, n, points, score, err));
    st->run.asked[turn] += n;
    for (size_t i = 0; i < n; i++) {
        if (score[i].cached)
            continue;
        st->run.evaluated[turn]++;
        st->run.window++;
        credit(st, turn, &score[i]);
    }
    if (st->run.window > st->setup.budget / 10 + 16)
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
        credit(st, 0, &score[i]);
    memset(st->run.gain, 0, sizeof st->run.gain);
done:
    return status;
}

static void snapshot(void *state, agent__io *io)
{
    auto_state *st = state;

    AGENT__IO(io, st->run);
    if (st->run.turn >= st->n_arms) {
        st->run.turn = 0;
        io->status = CS_EIO;
    }
    for (size_t i = 0; i < st->n_arms; i++)
        agent__io_agent(io, st->arms[i].agent);
}

const agent_type agent__auto = {
    .name = "auto",
    .summary = "portfolio: local, ant_colony, genetic, or bayesian, local, tpe for few evaluations",
    .state_size = sizeof(auto_state),
    .params = params,
    .init = init,
    .ask = ask,
    .tell = tell,
    .seed = seed,
    .snapshot = snapshot,
    .fini = fini,
};
