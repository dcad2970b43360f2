/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Tree-structured Parzen estimator, multivariate (Bergstra et al., NIPS 2011; Falkner, Klein,
 * Hutter, ICML 2018).  The evaluated designs are split into good (the best tenth, at most 25) and
 * bad (a sample of 200 of the rest); each side is a mixture of product kernels around its designs
 * plus a uniform component.  Candidates are drawn from the good side; the one with the largest log
 * ratio of densities is proposed.  Within a batch the proposed ones count as bad (constant liar).
 *
 * Kernels: categories keep their value with probability 1 - h; ordered values a discretised
 * Gaussian; tuples exp(-distance / h).  Cost of a proposal: candidates x (25 + 200) x variables. */
#include "agents/agents_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GOOD = 25, MOST_BAD = 200 };

typedef struct {
    agent_setup setup;
    size_t n_vars, batch, candidates;
    cs_rng *rng;
    int32_t *good_points; /* MOST_GOOD x n_vars, best first */
    int32_t *bad_points;  /* (MOST_BAD + batch) x n_vars; the last ones are pending */
    agent_score good[MOST_GOOD];
    struct {
        uint64_t told, n_good, n_bad, passed; /* passed: designs offered to the bad sample */
    } run;
    size_t n_pending, n_split; /* n_split: good designs in use */
    double **kernel;           /* per variable: log kernel table, side x card x card, or NULL */
    double h[2];               /* bandwidths the tables are made for: good, bad */
    int32_t *candidate, *chosen;
    double *mix; /* MOST_GOOD + MOST_BAD + batch */
} tpe_state;

enum { BATCH, START, CANDIDATES, GAMMA };
static const agent_param params[] = {
    {"batch", 4, 1, 256, "proposals per ask"},
    {"start", 20, 1, 1e6, "uniform designs before the model"},
    {"candidates", 64, 1, 4096, "designs drawn from the good side per proposal"},
    {"gamma", 0.1, 0.01, 0.9, "share of designs called good"},
    {NULL, 0, 0, 0, NULL},
};

/* Above this cardinality kernel tables would be large; the kernel is then evaluated directly. */
enum { LARGEST_TABLE = 320 };

static cs_status init(void *state, const agent_setup *setup, cs_error *err)
{
    tpe_state *st = state;

    st->setup = *setup;
    st->n_vars = psa_space_n_vars(setup->space);
    st->batch = agent__count(setup, BATCH);
    st->candidates = agent__count(setup, CANDIDATES);
    st->rng = cs_rng_create(setup->seed, AGENT__STREAM_TPE, 0);
    st->good_points = calloc(MOST_GOOD * st->n_vars + 1, sizeof(int32_t));
    st->bad_points = calloc((MOST_BAD + st->batch) * st->n_vars + 1, sizeof(int32_t));
    st->kernel = calloc(st->n_vars + 1, sizeof *st->kernel);
    st->candidate = calloc(st->n_vars + 1, sizeof(int32_t));
    st->chosen = calloc(st->n_vars + 1, sizeof(int32_t));
    st->mix = calloc(MOST_GOOD + MOST_BAD + st->batch + 2, sizeof *st->mix);
    if (st->rng == NULL || st->good_points == NULL || st->bad_points == NULL ||
        st->kernel == NULL || st->candidate == NULL || st->chosen == NULL || st->mix == NULL)
        return cs_fail(err, CS_ENOMEM, "tpe agent");
    for (size_t v = 0; v < st->n_vars; v++) {
        const size_t card = (size_t)psa_space_card(setup->space, v);
        if (card < 2 || card > LARGEST_TABLE)
            continue;
        st->kernel[v] = calloc(2 * card * card, sizeof **st->kernel);
        if (st->kernel[v] == NULL)
            return cs_fail(err, CS_ENOMEM, "tpe agent");
    }
    return CS_OK;
}

static void fini(void *state)
{
    tpe_state *st = state;

    cs_rng_destroy(st->rng);
    free(st->good_points);
    free(st->bad_points);
    for (size_t v = 0; st->kernel != NULL && v < st->n_vars; v++)
        free(st->kernel[v]);
    free(st->kernel);
    free(st->candidate);
    free(st->chosen);
    free(st->mix);
}

/* ---- kernels ---- */

/* Unnormalised kernel of one variable: chance of `x` around centre `c` at bandwidth h in (0, 1). */
static double kernel_value(const tpe_state *st, size_t v, int32_t c, int32_t x, double h)
{
    const psa_space *space = st->setup.space;
    const double card = psa_space_card(space, v);
    double d;

    switch (psa_space_var_kind(space, v)) {
    case PSA_VAR_ORDERED:
        d = (double)(x - c) / (fmax(1.0, h * card / 2.0));
        return exp(-0.5 * d * d) + 1e-3;
    case PSA_VAR_TUPLE:
        return exp(-psa_space_distance(space, v, c, x) / (0.3 * h)) + 1e-3;
    default:
        return x == c ? 1.0 - h + h / card : h / card;
    }
}

static void fill_table(tpe_state *st, size_t v, int side)
{
    const size_t card = (size_t)psa_space_card(st->setup.space, v);
    double *table = st->kernel[v] + (size_t)side * card * card;

    for (size_t c = 0; c < card; c++) {
        double sum = 0.0;
        for (size_t x = 0; x < card; x++)
            sum += table[c * card + x] = kernel_value(st, v, (int32_t)c, (int32_t)x, st->h[side]);
        for (size_t x = 0; x < card; x++)
            table[c * card + x] = log(table[c * card + x] / sum);
    }
}

/* Bandwidth of a side by its number of designs (Scott's rule in spirit). */
static void set_bandwidths(tpe_state *st)
{
    const double good = st->n_split > 0 ? 0.35 * pow((double)st->n_split, -0.2) + 0.05 : 0.4;
    const double h[2] = {good, 0.5};

    for (int side = 0; side < 2; side++) {
        if (st->h[side] == h[side])
            continue;
        st->h[side] = h[side];
        for (size_t v = 0; v < st->n_vars; v++)
            if (st->kernel[v] != NULL)
                fill_table(st, v, side);
    }
}

static double log_kernel(const tpe_state *st, int side, const int32_t *centre, const int32_t *x)
{
    double sum = 0.0;

    for (size_t v = 0; v < st->n_vars; v++) {
        const size_t card = (size_t)psa_space_card(st->setup.space, v);
        if (card < 2)
            continue;
        if (st->kernel[v] != NULL)
            sum += st->kernel[v][((size_t)side * card + (size_t)centre[v]) * card + (size_t)x[v]];
        else
            sum += log(kernel_value(st, v, centre[v], x[v], st->h[side]));
    }
    return sum;
}

static double log_uniform(const tpe_state *st)
{
    double sum = 0.0;

    for (size_t v = 0; v < st->n_vars; v++)
        sum -= log((double)psa_space_card(st->setup.space, v));
    return sum;
}

static double log_sum(const double *term, size_t n)
{
    double largest = -INFINITY, sum = 0.0;

    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, term[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp(term[i] - largest);
    return largest + log(sum / (double)n);
}

static double log_density(tpe_state *st, int side, const int32_t *x)
{
    size_t n = 0;

    st->mix[n++] = log_uniform(st);
    if (side == 0) {
        for (size_t i = 0; i < st->n_split; i++)
            st->mix[n++] = log_kernel(st, 0, st->good_points + i * st->n_vars, x);
        return log_sum(st->mix, n);
    }
    for (size_t i = st->n_split; i < st->run.n_good; i++)
        st->mix[n++] = log_kernel(st, 1, st->good_points + i * st->n_vars, x);
    for (size_t i = 0; i < st->run.n_bad + st->n_pending; i++)
        st->mix[n++] = log_kernel(st, 1, st->bad_points + i * st->n_vars, x);
    return log_sum(st->mix, n);
}

/* ---- proposals ---- */

static int32_t draw_value(tpe_state *st, size_t v, int32_t centre)
{
    const psa_space *space = st->setup.space;
    const int32_t card = psa_space_card(space, v);
    const int32_t *near;
    double h = st->h[0];

    if (psa_space_var_kind(space, v) == PSA_VAR_ORDERED) {
        double x = (double)centre + agent__normal(st->rng) * fmax(1.0, h * card / 2.0) * 0.7;
        x = floor(x + 0.5);
        return x < 0 ? 0 : x > card - 1 ? card - 1 : (int32_t)x;
    }
    if (cs_rng_uniform(st->rng) >= h)
        return centre;
    if (psa_space_var_kind(space, v) == PSA_VAR_TUPLE && cs_rng_uniform(st->rng) < 0.7) {
        size_t n = psa_space_neighbours(space, v, centre, &near);
        if (n > 0)
            return near[cs_rng_below(st->rng, n)];
    }
    return (int32_t)cs_rng_below(st->rng, (uint64_t)card);
}

/* A draw from the good side: a centre, then every variable by its kernel. */
static cs_status draw(tpe_state *st, cs_error *err)
{
    const psa_space *space = st->setup.space;
    size_t centre = (size_t)cs_rng_below(st->rng, st->n_split + 1);

    if (centre == st->n_split)
        return agent__sample_fitting(&st->setup, st->rng, st->candidate, err);
    memcpy(st->candidate, st->good_points + centre * st->n_vars, st->n_vars * sizeof(int32_t));
    for (size_t v = 0; v < st->n_vars; v++)
        if (psa_space_card(space, v) > 1)
            st->candidate[v] = draw_value(st, v, st->candidate[v]);
    psa_space_canonicalize(space, st->candidate);
    if (!psa_space_valid(space, st->candidate))
        (void)psa_space_repair(space, st->rng, SIZE_MAX, st->candidate);
    return CS_OK;
}

static bool is_pending(const tpe_state *st, const int32_t *point)
{
    for (size_t i = 0; i < st->n_pending; i++)
        if (agent__same(&st->setup, st->bad_points + (st->run.n_bad + i) * st->n_vars, point))
            return true;
    return false;
}

static cs_status propose(tpe_state *st, int32_t *point, cs_error *err)
{
    cs_status status = CS_OK;
    double best = -INFINITY;
    bool found = false;
    agent_score score;

    for (size_t i = 0; i < st->candidates; i++) {
        CS_TRY(draw(st, err));
        if (agent__free_score(&st->setup, st->candidate, &score) || is_pending(st, st->candidate))
            continue;
        double ratio = log_density(st, 0, st->candidate) - log_density(st, 1, st->candidate);
        if (found && ratio <= best)
            continue;
        best = ratio;
        found = true;
        memcpy(point, st->candidate, st->n_vars * sizeof *point);
    }
    if (!found)
        CS_TRY(agent__sample_new(&st->setup, st->rng, 16, point, err));
done:
    return status;
}

static void add_pending(tpe_state *st, const int32_t *point)
{
    memcpy(st->bad_points + (st->run.n_bad + st->n_pending++) * st->n_vars, point,
           st->n_vars * sizeof *point);
}

static cs_status ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    tpe_state *st = state;
    cs_status status = CS_OK;
    const double start = st->setup.param[START];
    double split = ceil(st->setup.param[GAMMA] * (double)st->run.told);

    *n = st->batch;
    st->n_pending = 0;
    st->n_split = split < (double)st->run.n_good ? (size_t)split : (size_t)st->run.n_good;
    set_bandwidths(st);
    for (size_t i = 0; i < st->batch; i++) {
        int32_t *point = points + i * st->n_vars;
        if ((double)(st->run.told + i) < start)
            CS_TRY(agent__sample_fitting(&st->setup, st->rng, point, err));
        else
            CS_TRY(propose(st, point, err));
        add_pending(st, point);
    }
done:
    st->n_pending = 0;
    return status;
}

/* Offers a design to the sample of bad ones (reservoir sampling). */
static void offer_bad(tpe_state *st, const int32_t *point)
{
    uint64_t at = st->run.n_bad;

    st->run.passed++;
    if (st->run.n_bad < MOST_BAD) {
        st->run.n_bad++;
    } else {
        at = cs_rng_below(st->rng, st->run.passed);
        if (at >= MOST_BAD)
            return;
    }
    memcpy(st->bad_points + at * st->n_vars, point, st->n_vars * sizeof *point);
}

static void learn(tpe_state *st, const int32_t *point, const agent_score *score)
{
    const size_t bytes = st->n_vars * sizeof *point;
    size_t at = (size_t)st->run.n_good;

    if (at == MOST_GOOD) {
        if (agent_score_compare(score, &st->good[at - 1]) >= 0) {
            offer_bad(st, point);
            return;
        }
        offer_bad(st, st->good_points + (at - 1) * st->n_vars);
        at--;
    } else {
        st->run.n_good++;
    }
    for (; at > 0 && agent_score_compare(score, &st->good[at - 1]) < 0; at--) {
        st->good[at] = st->good[at - 1];
        memcpy(st->good_points + at * st->n_vars, st->good_points + (at - 1) * st->n_vars, bytes);
    }
    st->good[at] = *score;
    memcpy(st->good_points + at * st->n_vars, point, bytes);
}

static cs_status tell(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    tpe_state *st = state;

    (void)err;
    for (size_t i = 0; i < n; i++) {
        if (score[i].cached)
            continue;
        learn(st, points + i * st->n_vars, &score[i]);
        st->run.told++;
    }
    return CS_OK;
}

static cs_status seed(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    tpe_state *st = state;

    (void)err;
    for (size_t i = 0; i < n; i++) {
        learn(st, points + i * st->n_vars, &score[i]);
        st->run.told++;
    }
    return CS_OK;
}

static void snapshot(void *state, agent__io *io)
{
    tpe_state *st = state;
    const size_t bytes = st->n_vars * sizeof(int32_t);

    AGENT__IO(io, st->run);
    if (st->run.n_good > MOST_GOOD || st->run.n_bad > MOST_BAD) {
        memset(&st->run, 0, sizeof st->run);
        io->status = CS_EIO;
    }
    agent__io_block(io, st->good, st->run.n_good * sizeof *st->good);
    agent__io_block(io, st->good_points, st->run.n_good * bytes);
    agent__io_block(io, st->bad_points, st->run.n_bad * bytes);
    agent__io_rng(io, st->rng);
}

const agent_type agent__tpe = {
    .name = "tpe",
    .summary = "tree-structured Parzen estimator, multivariate",
    .state_size = sizeof(tpe_state),
    .params = params,
    .init = init,
    .ask = ask,
    .tell = tell,
    .seed = seed,
    .snapshot = snapshot,
    .fini = fini,
};
