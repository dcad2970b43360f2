/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Genetic algorithm over the encoded space: a product constraint is one gene, so every child is
 * valid.  Binary tournament, uniform crossover that keeps the variables of one network dimension
 * together now and then, mutation by the moves of the space, (mu + lambda) survival under Deb's
 * order, re-initialisation after a stall, mutation rate adapted to the share of known children. */
#include "agents/agents_private.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    agent_setup setup;
    size_t n_vars, population, batch;
    cs_rng *rng;
    int32_t *genes;     /* (population + batch) x n_vars: members first, children behind */
    agent_score *score; /* likewise */
    size_t *order;      /* population + batch, work space of survival */
    int32_t *kept;      /* population x n_vars, work space of survival */
    agent_score *kept_score;
    /* What the future depends on besides the members. */
    struct {
        uint64_t n_members, stall, proposed, repeated;
        double rate;
        agent_score best;
        int32_t has_best, pad_;
    } run;
} genetic_state;

enum { POPULATION, BATCH, CROSSOVER, LINKAGE, MUTATION, STALL };
static const agent_param params[] = {
    {"population", 32, 2, 4096, "designs kept"},
    {"batch", 32, 1, 4096, "children per ask"},
    {"crossover", 0.9, 0, 1, "chance that a child has two parents"},
    {"linkage", 0.5, 0, 1, "chance that a network dimension is inherited as one block"},
    {"mutation", 1, 0, 64, "expected number of mutated variables per child"},
    {"stall", 15, 1, 1e6, "generations without improvement before the population is renewed"},
    {NULL, 0, 0, 0, NULL},
};

static cs_status init(void *state, const agent_setup *setup, cs_error *err)
{
    genetic_state *st = state;

    st->setup = *setup;
    st->n_vars = psa_space_n_vars(setup->space);
    st->population = agent__count(setup, POPULATION);
    st->batch = agent__count(setup, BATCH);
    st->run.rate = setup->param[MUTATION] / (double)(st->n_vars > 0 ? st->n_vars : 1);
    const size_t all = st->population + st->batch;
    st->rng = cs_rng_create(setup->seed, AGENT__STREAM_GENETIC, 0);
    st->genes = calloc(all * st->n_vars + 1, sizeof *st->genes);
    st->score = calloc(all, sizeof *st->score);
    st->order = calloc(all, sizeof *st->order);
    st->kept = calloc(st->population * st->n_vars + 1, sizeof *st->kept);
    st->kept_score = calloc(st->population, sizeof *st->kept_score);
    if (st->rng == NULL || st->genes == NULL || st->score == NULL || st->order == NULL ||
        st->kept == NULL || st->kept_score == NULL)
        return cs_fail(err, CS_ENOMEM, "genetic agent");
    return CS_OK;
}

static void fini(void *state)
{
    genetic_state *st = state;

    cs_rng_destroy(st->rng);
    free(st->genes);
    free(st->score);
    free(st->order);
    free(st->kept);
    free(st->kept_score);
}

static const int32_t *tournament(genetic_state *st)
{
    size_t a = (size_t)cs_rng_below(st->rng, st->run.n_members);
    size_t b = (size_t)cs_rng_below(st->rng, st->run.n_members);

    if (agent_score_compare(&st->score[b], &st->score[a]) < 0)
        a = b;
    return st->genes + a * st->n_vars;
}

/* Uniform crossover; with chance `linkage` all variables of a network dimension come from one
 * parent. */
static void cross(genetic_state *st, const int32_t *other, int32_t *child)
{
    uint64_t linked = 0, from_other = 0;

    for (size_t g = 0; g < 64; g++) {
        if (cs_rng_uniform(st->rng) < st->setup.param[LINKAGE])
            linked |= 1ULL << g;
        if (g >= PSA_MAX_DIMS)
            break;
    }
    from_other = cs_rng_u64(st->rng);
    for (size_t v = 0; v < st->n_vars; v++) {
        size_t group = psa_space_group(st->setup.space, v);
        bool take = (cs_rng_u64(st->rng) & 1) != 0;
        if (group > 0 && group < 64 && (linked >> group & 1) != 0)
            take = (from_other >> group & 1) != 0;
        if (take)
            child[v] = other[v];
    }
}

static void mutate(genetic_state *st, int32_t *child)
{
    for (size_t v = 0; v < st->n_vars; v++)
        if (cs_rng_uniform(st->rng) < st->run.rate)
            agent__mutate_var(st->setup.space, st->rng, v, child);
}

static void breed(genetic_state *st, int32_t *child)
{
    const psa_space *space = st->setup.space;

    memcpy(child, tournament(st), st->n_vars * sizeof *child);
    if (cs_rng_uniform(st->rng) < st->setup.param[CROSSOVER])
        cross(st, tournament(st), child);
    mutate(st, child);
    psa_space_canonicalize(space, child);
    if (!psa_space_valid(space, child))
        (void)psa_space_repair(space, st->rng, SIZE_MAX, child);
}

/* A child that need not be evaluated, or cannot fit, is moved on up to ten times. */
static void freshen(genetic_state *st, int32_t *child)
{
    agent_score score;

    st->run.proposed++;
    if (agent__known(&st->setup, child, &score))
        st->run.repeated++;
    for (int tries = 0; tries < 10 && agent__free_score(&st->setup, child, &score); tries++)
        agent__perturb(st->setup.space, st->rng, 1, child);
}

static cs_status ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    genetic_state *st = state;

    if (st->run.n_members < st->population) {
        size_t missing = st->population - st->run.n_members;
        *n = missing < st->batch ? missing : st->batch;
        for (size_t i = 0; i < *n; i++) {
            cs_status status =
                agent__sample_fitting(&st->setup, st->rng, points + i * st->n_vars, err);
            if (status != CS_OK)
                return status;
        }
        return CS_OK;
    }
    *n = st->batch;
    for (size_t i = 0; i < *n; i++) {
        breed(st, points + i * st->n_vars);
        freshen(st, points + i * st->n_vars);
    }
    return CS_OK;
}

/* Positions 0..n-1 sorted by score, older first on ties (insertion: n is small and mostly sorted).
 */
static void rank(genetic_state *st, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        while (at > 0 && agent_score_compare(&st->score[i], &st->score[st->order[at - 1]]) < 0) {
            st->order[at] = st->order[at - 1];
            at--;
        }
        st->order[at] = i;
    }
}

static bool among_kept(const genetic_state *st, size_t n, const int32_t *genes)
{
    for (size_t i = 0; i < n; i++)
        if (agent__same(&st->setup, st->kept + i * st->n_vars, genes))
            return true;
    return false;
}

/* Keeps the best `population` of the first `n`, each design once. */
static void survive(genetic_state *st, size_t n)
{
    size_t kept = 0;

    rank(st, n);
    for (size_t i = 0; i < n && kept < st->population; i++) {
        const int32_t *genes = st->genes + st->order[i] * st->n_vars;
        if (among_kept(st, kept, genes))
            continue;
        memcpy(st->kept + kept * st->n_vars, genes, st->n_vars * sizeof *genes);
        st->kept_score[kept++] = st->score[st->order[i]];
    }
    memcpy(st->genes, st->kept, kept * st->n_vars * sizeof *st->genes);
    memcpy(st->score, st->kept_score, kept * sizeof *st->score);
    st->run.n_members = kept;
}

/* After a stall the population is drawn anew, around the best design half of the time. */
static void adapt(genetic_state *st)
{
    const double base = st->setup.param[MUTATION] / (double)(st->n_vars > 0 ? st->n_vars : 1);

    if (st->run.has_best && agent_score_compare(&st->score[0], &st->run.best) >= 0) {
        st->run.stall++;
    } else {
        st->run.best = st->score[0];
        st->run.has_best = 1;
        st->run.stall = 0;
    }
    if (st->run.proposed >= 4 * st->batch) {
        double share = (double)st->run.repeated / (double)st->run.proposed;
        if (share > 0.3 && st->run.rate < 0.5)
            st->run.rate *= 2.0;
        else if (share < 0.05 && st->run.rate > base)
            st->run.rate /= 2.0;
        st->run.proposed = st->run.repeated = 0;
    }
    if ((double)st->run.stall >= st->setup.param[STALL]) {
        st->run.n_members = (cs_rng_u64(st->rng) & 1) != 0 ? 1 : 0;
        st->run.has_best = 0;
        st->run.stall = 0;
        st->run.rate = base;
    }
}

static cs_status tell(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    genetic_state *st = state;
    const bool filling = st->run.n_members < st->population;

    (void)err;
    memcpy(st->genes + st->run.n_members * st->n_vars, points, n * st->n_vars * sizeof *points);
    memcpy(st->score + st->run.n_members, score, n * sizeof *score);
    if (filling && st->run.n_members + n < st->population) {
        st->run.n_members += n;
        return CS_OK;
    }
    survive(st, st->run.n_members + n);
    if (!filling)
        adapt(st);
    return CS_OK;
}

static cs_status seed(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    genetic_state *st = state;
    const size_t room = st->population - 1;

    return tell(st, n < room ? n : room, points, score, err);
}

static void snapshot(void *state, agent__io *io)
{
    genetic_state *st = state;

    AGENT__IO(io, st->run);
    if (st->run.n_members > st->population) {
        st->run.n_members = 0;
        io->status = CS_EIO;
    }
    agent__io_block(io, st->genes, st->run.n_members * st->n_vars * sizeof *st->genes);
    agent__io_block(io, st->score, st->run.n_members * sizeof *st->score);
    agent__io_rng(io, st->rng);
}

const agent_type agent__genetic = {
    .name = "genetic",
    .summary = "elitist genetic algorithm on valid designs",
    .state_size = sizeof(genetic_state),
    .params = params,
    .init = init,
    .ask = ask,
    .tell = tell,
    .seed = seed,
    .snapshot = snapshot,
    .fini = fini,
};
