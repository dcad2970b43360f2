/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * NSGA-II (Deb, Pratap, Agarwal, Meyarivan, IEEE TEC 6(2), 2002) on the encoded space: constrained
 * dominance, fast non-dominated sorting, crowding distance, (mu + lambda) survival without
 * duplicates.  A share of the children are one-move neighbours of designs on the first front, which
 * works as a Pareto local search. */
#include "agents/agents_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What survival needs to know of one design. */
typedef struct {
    uint32_t front, dominated_by; /* front from 0; count of dominating designs not yet in a front */
    double crowding;
} standing;

typedef struct {
    agent_setup setup;
    size_t n_vars, population, batch;
    cs_rng *rng;
    int32_t *genes;     /* (population + batch) x n_vars: members first */
    agent_score *score; /* likewise */
    standing *stand;    /* likewise */
    size_t *order;
    int32_t *kept;
    agent_score *kept_score;
    standing *kept_stand;
    struct {
        uint64_t n_members, n_first; /* n_first: members of the first front, in front */
    } run;
} nsga2_state;

enum { POPULATION, BATCH, CROSSOVER, MUTATION, POLISH };
static const agent_param params[] = {
    {"population", 100, 4, 4096, "designs kept"},
    {"batch", 50, 1, 4096, "children per ask"},
    {"crossover", 0.9, 0, 1, "chance that a child has two parents"},
    {"mutation", 1, 0, 64, "expected number of mutated variables per child"},
    {"polish", 0.4, 0, 1, "share of children that are neighbours of designs on the front"},
    {NULL, 0, 0, 0, NULL},
};

static cs_status init(void *state, const agent_setup *setup, cs_error *err)
{
    nsga2_state *st = state;

    st->setup = *setup;
    st->n_vars = psa_space_n_vars(setup->space);
    st->population = agent__count(setup, POPULATION);
    st->batch = agent__count(setup, BATCH);
    const size_t all = st->population + st->batch;
    st->rng = cs_rng_create(setup->seed, AGENT__STREAM_NSGA2, 0);
    st->genes = calloc(all * st->n_vars + 1, sizeof *st->genes);
    st->score = calloc(all, sizeof *st->score);
    st->stand = calloc(all, sizeof *st->stand);
    st->order = calloc(all, sizeof *st->order);
    st->kept = calloc(st->population * st->n_vars + 1, sizeof *st->kept);
    st->kept_score = calloc(st->population, sizeof *st->kept_score);
    st->kept_stand = calloc(st->population, sizeof *st->kept_stand);
    if (st->rng == NULL || st->genes == NULL || st->score == NULL || st->stand == NULL ||
        st->order == NULL || st->kept == NULL || st->kept_score == NULL || st->kept_stand == NULL)
        return cs_fail(err, CS_ENOMEM, "nsga2 agent");
    return CS_OK;
}

static void fini(void *state)
{
    nsga2_state *st = state;

    cs_rng_destroy(st->rng);
    free(st->genes);
    free(st->score);
    free(st->stand);
    free(st->order);
    free(st->kept);
    free(st->kept_score);
    free(st->kept_stand);
}

/* ---- dominance, fronts, crowding ---- */

static bool dominates(const nsga2_state *st, const agent_score *a, const agent_score *b)
{
    bool better = false;

    if (a->outcome != AGENT_FEASIBLE || b->outcome != AGENT_FEASIBLE)
        return agent_score_compare(a, b) < 0;
    for (size_t k = 0; k < st->setup.n_objectives; k++) {
        if (a->objective[k] > b->objective[k])
            return false;
        better = better || a->objective[k] < b->objective[k];
    }
    return better;
}

/* Fronts by peeling: each round takes the designs that nothing left dominates. O(objectives n^2).
 */
static void sort_fronts(nsga2_state *st, size_t n)
{
    size_t placed = 0;

    for (size_t i = 0; i < n; i++) {
        st->stand[i] = (standing){UINT32_MAX, 0, 0.0};
        for (size_t j = 0; j < n; j++)
            st->stand[i].dominated_by += dominates(st, &st->score[j], &st->score[i]);
    }
    for (uint32_t front = 0; placed < n; front++) {
        const size_t first = placed;
        for (size_t i = 0; i < n; i++) {
            if (st->stand[i].front != UINT32_MAX || st->stand[i].dominated_by > 0)
                continue;
            st->stand[i].front = front;
            st->order[placed++] = i;
        }
        for (size_t k = first; k < placed; k++)
            for (size_t j = 0; j < n; j++)
                if (st->stand[j].front == UINT32_MAX &&
                    dominates(st, &st->score[st->order[k]], &st->score[j]))
                    st->stand[j].dominated_by--;
    }
}

static void sort_by(nsga2_state *st, size_t *list, size_t n, size_t objective)
{
    for (size_t i = 1; i < n; i++) {
        const size_t x = list[i];
        size_t at = i;
        while (at > 0 &&
               st->score[list[at - 1]].objective[objective] > st->score[x].objective[objective]) {
            list[at] = list[at - 1];
            at--;
        }
        list[at] = x;
    }
}

/* Crowding of one front: list of n designs. */
static void crowd(nsga2_state *st, size_t *list, size_t n)
{
    for (size_t k = 0; k < st->setup.n_objectives; k++) {
        sort_by(st, list, n, k);
        const double low = st->score[list[0]].objective[k];
        const double range = st->score[list[n - 1]].objective[k] - low;
        st->stand[list[0]].crowding = st->stand[list[n - 1]].crowding = INFINITY;
        for (size_t i = 1; i + 1 < n && range > 0.0; i++)
            st->stand[list[i]].crowding +=
                (st->score[list[i + 1]].objective[k] - st->score[list[i - 1]].objective[k]) / range;
    }
}

static int compare_standing(const standing *a, const standing *b)
{
    if (a->front != b->front)
        return a->front < b->front ? -1 : 1;
    return (a->crowding < b->crowding) - (a->crowding > b->crowding);
}

/* Orders the last front by crowding, widest first; earlier index on ties. */
static void sort_by_crowding(nsga2_state *st, size_t *list, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const size_t x = list[i];
        size_t at = i;
        while (at > 0 && compare_standing(&st->stand[x], &st->stand[list[at - 1]]) < 0) {
            list[at] = list[at - 1];
            at--;
        }
        list[at] = x;
    }
}

/* Removes designs that occur twice among the first n; returns the number left. */
static size_t drop_twins(nsga2_state *st, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        bool twin = false;
        for (size_t j = 0; j < kept && !twin; j++)
            twin = agent__same(&st->setup, st->genes + i * st->n_vars, st->genes + j * st->n_vars);
        if (twin)
            continue;
        memmove(st->genes + kept * st->n_vars, st->genes + i * st->n_vars,
                st->n_vars * sizeof *st->genes);
        st->score[kept++] = st->score[i];
    }
    return kept;
}

static void survive(nsga2_state *st, size_t n)
{
    n = drop_twins(st, n);
    sort_fronts(st, n);
    for (size_t from = 0, to; from < n; from = to) {
        const uint32_t front = st->stand[st->order[from]].front;
        for (to = from; to < n && st->stand[st->order[to]].front == front; to++)
            ;
        if (st->score[st->order[from]].outcome == AGENT_FEASIBLE)
            crowd(st, st->order + from, to - from);
        sort_by_crowding(st, st->order + from, to - from);
    }
    const size_t kept = n < st->population ? n : st->population;
    st->run.n_first = 0;
    for (size_t i = 0; i < kept; i++) {
        memcpy(st->kept + i * st->n_vars, st->genes + st->order[i] * st->n_vars,
               st->n_vars * sizeof *st->genes);
        st->kept_score[i] = st->score[st->order[i]];
        st->kept_stand[i] = st->stand[st->order[i]];
        st->run.n_first += st->kept_stand[i].front == 0;
    }
    memcpy(st->genes, st->kept, kept * st->n_vars * sizeof *st->genes);
    memcpy(st->score, st->kept_score, kept * sizeof *st->score);
    memcpy(st->stand, st->kept_stand, kept * sizeof *st->stand);
    st->run.n_members = kept;
}

/* ---- children ---- */

static const int32_t *tournament(nsga2_state *st)
{
    size_t a = (size_t)cs_rng_below(st->rng, st->run.n_members);
    size_t b = (size_t)cs_rng_below(st->rng, st->run.n_members);

    return st->genes + (compare_standing(&st->stand[b], &st->stand[a]) < 0 ? b : a) * st->n_vars;
}

static void breed(nsga2_state *st, int32_t *child)
{
    const psa_space *space = st->setup.space;
    const double rate = st->setup.param[MUTATION] / (double)(st->n_vars > 0 ? st->n_vars : 1);

    if (st->run.n_first > 0 && cs_rng_uniform(st->rng) < st->setup.param[POLISH]) {
        size_t i = (size_t)cs_rng_below(st->rng, st->run.n_first);
        memcpy(child, st->genes + i * st->n_vars, st->n_vars * sizeof *child);
        agent__perturb(space, st->rng, 1, child);
        return;
    }
    memcpy(child, tournament(st), st->n_vars * sizeof *child);
    if (cs_rng_uniform(st->rng) < st->setup.param[CROSSOVER]) {
        const int32_t *other = tournament(st);
        for (size_t v = 0; v < st->n_vars; v++)
            if ((cs_rng_u64(st->rng) & 1) != 0)
                child[v] = other[v];
    }
    for (size_t v = 0; v < st->n_vars; v++)
        if (cs_rng_uniform(st->rng) < rate)
            agent__mutate_var(space, st->rng, v, child);
    psa_space_canonicalize(space, child);
    if (!psa_space_valid(space, child))
        (void)psa_space_repair(space, st->rng, SIZE_MAX, child);
}

static cs_status new_child(nsga2_state *st, int32_t *child, cs_error *err)
{
    agent_score score;

    for (int tries = 0; tries < 8; tries++) {
        breed(st, child);
        for (int moves = 0; moves < 3; moves++) {
            if (!agent__free_score(&st->setup, child, &score))
                return CS_OK;
            agent__perturb(st->setup.space, st->rng, 1, child);
        }
    }
    return agent__sample_new(&st->setup, st->rng, 4, child, err);
}

static cs_status ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    nsga2_state *st = state;
    cs_status status = CS_OK;
    const size_t missing = st->population - (size_t)st->run.n_members;

    *n = missing > 0 && missing < st->batch ? missing : st->batch;
    for (size_t i = 0; i < *n; i++) {
        int32_t *point = points + i * st->n_vars;
        if (missing > 0)
            CS_TRY(agent__sample_fitting(&st->setup, st->rng, point, err));
        else
            CS_TRY(new_child(st, point, err));
    }
done:
    return status;
}

static cs_status tell(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    nsga2_state *st = state;
    const size_t m = (size_t)st->run.n_members;

    (void)err;
    if (n > st->batch)
        n = st->batch;
    memcpy(st->genes + m * st->n_vars, points, n * st->n_vars * sizeof *points);
    memcpy(st->score + m, score, n * sizeof *score);
    survive(st, m + n);
    return CS_OK;
}

static void snapshot(void *state, agent__io *io)
{
    nsga2_state *st = state;

    AGENT__IO(io, st->run);
    if (st->run.n_members > st->population || st->run.n_first > st->run.n_members) {
        st->run.n_members = st->run.n_first = 0;
        io->status = CS_EIO;
    }
    agent__io_block(io, st->genes, st->run.n_members * st->n_vars * sizeof *st->genes);
    agent__io_block(io, st->score, st->run.n_members * sizeof *st->score);
    agent__io_block(io, st->stand, st->run.n_members * sizeof *st->stand);
    agent__io_rng(io, st->rng);
}

const agent_type agent__nsga2 = {
    .name = "nsga2",
    .summary = "NSGA-II for several objectives",
    .state_size = sizeof(nsga2_state),
    .params = params,
    .init = init,
    .ask = ask,
    .tell = tell,
    .seed = tell,
    .snapshot = snapshot,
    .fini = fini,
};
