/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Where a chain of iterated local search goes on: new starts and kicks, chosen by the model. */
#include "agents/local_private.h"

#include <math.h>
#include <string.h>

/* Above every energy: designs that are known or do not fit are last choices. */
static const double out_of_question = 1e7;

cs_status agent__local_start(local_state *st, local_chain *c, cs_error *err)
{
    cs_status status = CS_OK;
    double best = INFINITY;

    for (size_t i = 0; i < st->n_choice; i++) {
        CS_TRY(agent__sample_fitting(&st->setup, c->rng, st->kicked, err));
        double promise = agent__ridge_predict(st->model, st->kicked);
        if (promise >= best)
            continue;
        best = promise;
        memcpy(c->at, st->kicked, st->n_vars * sizeof *c->at);
    }
done:
    return status;
}

bool agent__local_fit(local_state *st, local_chain *c, size_t pinned, int32_t *point)
{
    if (agent__fits(&st->setup, point))
        return true;
    const uint64_t hash = psa_space_point_hash(st->setup.space, point);
    if (st->refused[hash % REMEMBERED] == hash)
        return false;
    st->refused[hash % REMEMBERED] = hash;
    return agent__make_fit(&st->setup, c->rng, pinned, st->fixes, st->scratch, point);
}

/* The most promising of some splits that is new and can be made to fit. */
static bool kick_split(local_state *st, local_chain *c)
{
    const psa_space *space = st->setup.space;
    const size_t n = agent__split_moves(space, c->rng, c->at, st->n_choice, c->moves);
    agent_score score;

    agent__ridge_sort(st->model, c->incumbent, n, c->moves, c->promise);
    for (size_t i = 0; i < n; i++) {
        if (agent__apply(space, c->rng, c->incumbent, c->moves[i], c->at) &&
            agent__local_fit(st, c, (size_t)c->moves[i].var, c->at) &&
            !agent__known(&st->setup, c->at, &score))
            return true;
        memcpy(c->at, c->incumbent, st->n_vars * sizeof *c->at);
    }
    return false;
}

/* The most promising of some designs a few random moves away, new ones that fit first. */
static void kick_anywhere(local_state *st, local_chain *c)
{
    double best = INFINITY;
    agent_score score;

    for (size_t i = 0; i < st->n_choice; i++) {
        memcpy(st->kicked, c->incumbent, st->n_vars * sizeof *c->at);
        agent__perturb(st->setup.space, c->rng, (size_t)st->setup.param[KICK], st->kicked);
        if (agent__ridge_predict(st->model, st->kicked) >= best)
            continue;
        (void)agent__make_fit(&st->setup, c->rng, SIZE_MAX, st->fixes, st->scratch, st->kicked);
        double promise = agent__ridge_predict(st->model, st->kicked);
        if (agent__free_score(&st->setup, st->kicked, &score))
            promise += out_of_question;
        if (promise >= best)
            continue;
        best = promise;
        memcpy(c->at, st->kicked, st->n_vars * sizeof *c->at);
    }
}

void agent__local_kick(local_state *st, local_chain *c)
{
    memcpy(c->at, c->incumbent, st->n_vars * sizeof *c->at);
    if (!(cs_rng_uniform(c->rng) < st->setup.param[COMPOUND] && kick_split(st, c)))
        kick_anywhere(st, c);
}
