/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Bayesian optimisation: Gaussian process on mixed features, log expected improvement, batches by
 * constant liar, and a trust region of Hamming radius once the first designs have been seen
 * (Eriksson et al., NeurIPS 2019; Wan et al., ICML 2021).  Where designs turn out infeasible, a
 * second posterior on labels +-1 weighs the improvement by the chance to be feasible.
 *
 * The model is the log of the objective, cut off 3 above the best; infeasible designs count as the
 * worst feasible one.  It keeps at most 300 designs: the best 120 and the newest of the rest. */
#include "agents/agents_private.h"
#include "agents/gp.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POOL = 300, POOL_BEST = 120, W = AGENT__GP_WIDTH, FIT_MOST = 128, FIT_STEPS = 12 };

/* A design under consideration. */
typedef struct {
    double gain; /* log EI + log P(feasible) */
    int32_t *point;
} candidate;

enum { STARTS = 4, RANDOM = 4 * W, STEPS = 8, NEIGHBOURS = 2 * W };

typedef struct {
    agent_setup setup;
    size_t n_vars, n_features, batch;
    cs_rng *rng;
    agent__gp *gp;
    int32_t *pool; /* POOL x n_vars, oldest first */
    agent_score score[POOL + 1];
    int32_t *centre;              /* of the trust region */
    double *x, *wide, *y, *label; /* POOL x n_features, W x n_features, POOL, POOL */
    int32_t *block, *pending;     /* W x n_vars; batch x n_vars */
    int32_t *store;               /* points of the candidates */
    candidate start[STARTS + 1], walker, found;
    agent__move *moves;
    size_t n_pending;
    double best_y;
    bool some_infeasible;
    struct {
        uint64_t told, n, asks, since_restart, successes, failures;
        double radius;
        agent_score centre_score;
        int32_t has_centre, pad_;
    } run;
} bayesian_state;

enum { BATCH, START, TRUST, TRUST_AFTER };
static const agent_param params[] = {
    {"batch", 4, 1, 64, "proposals per ask"},
    {"start", 20, 2, 1e5, "uniform designs before the model"},
    {"trust", 1, 0, 1, "trust region: 1 on, 0 off"},
    {"trust_after", 150, 0, 1e9, "designs seen before the trust region begins to shrink"},
    {NULL, 0, 0, 0, NULL},
};

static double first_radius(const bayesian_state *st)
{
    return st->n_vars < 20 ? (double)st->n_vars : 20.0;
}

static cs_status init_model(bayesian_state *st, cs_error *err)
{
    bool *category = calloc(st->n_features + 1, sizeof *category);

    if (category == NULL)
        return cs_fail(err, CS_ENOMEM, "bayesian agent");
    for (size_t f = 0; f < st->n_features; f++)
        category[f] = psa_space_feature_is_category(st->setup.space, f);
    st->gp = agent__gp_create(st->n_features, category, POOL + st->batch);
    free(category);
    return st->gp == NULL ? cs_fail(err, CS_ENOMEM, "bayesian agent") : CS_OK;
}

static cs_status init(void *state, const agent_setup *setup, cs_error *err)
{
    bayesian_state *st = state;
    const size_t n = psa_space_n_vars(setup->space), nf = psa_space_n_features(setup->space);
    const size_t n_candidates = STARTS + 3;

    st->setup = *setup;
    st->n_vars = n;
    st->n_features = nf;
    st->batch = agent__count(setup, BATCH);
    st->run.radius = first_radius(st);
    st->rng = cs_rng_create(setup->seed, AGENT__STREAM_BAYESIAN, 0);
    st->pool = calloc((POOL + 1) * n + 1, sizeof *st->pool);
    st->centre = calloc(n + 1, sizeof *st->centre);
    st->x = calloc(POOL * nf + 1, sizeof *st->x);
    st->wide = calloc(W * nf + 1, sizeof *st->wide);
    st->y = calloc(POOL, sizeof *st->y);
    st->label = calloc(POOL, sizeof *st->label);
    st->block = calloc(W * n + 1, sizeof *st->block);
    st->pending = calloc(st->batch * n + 1, sizeof *st->pending);
    st->store = calloc(n_candidates * n + 1, sizeof *st->store);
    st->moves = calloc(agent__moves_max(setup->space), sizeof *st->moves);
    if (st->rng == NULL || st->pool == NULL || st->centre == NULL || st->x == NULL ||
        st->wide == NULL || st->y == NULL || st->label == NULL || st->block == NULL ||
        st->pending == NULL || st->store == NULL || st->moves == NULL)
        return cs_fail(err, CS_ENOMEM, "bayesian agent");
    for (size_t i = 0; i < STARTS + 1; i++)
        st->start[i].point = st->store + i * n;
    st->walker.point = st->store + (STARTS + 1) * n;
    st->found.point = st->store + (STARTS + 2) * n;
    return init_model(st, err);
}

static void fini(void *state)
{
    bayesian_state *st = state;

    cs_rng_destroy(st->rng);
    agent__gp_destroy(st->gp);
    free(st->pool);
    free(st->centre);
    free(st->x);
    free(st->wide);
    free(st->y);
    free(st->label);
    free(st->block);
    free(st->pending);
    free(st->store);
    free(st->moves);
}

/* ---- model ---- */

static cs_status build_model(bayesian_state *st, cs_error *err)
{
    const size_t n = (size_t)st->run.n;
    cs_status status = CS_OK;
    double best = INFINITY, worst = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        if (st->score[i].outcome != AGENT_FEASIBLE)
            continue;
        best = fmin(best, agent__energy(&st->score[i]));
        worst = fmax(worst, agent__energy(&st->score[i]));
    }
    if (!isfinite(best))
        best = worst = 0.0;
    worst = fmin(worst, best + 3.0);
    st->some_infeasible = false;
    for (size_t i = 0; i < n; i++) {
        const bool feasible = st->score[i].outcome == AGENT_FEASIBLE;
        psa_space_features(st->setup.space, st->pool + i * st->n_vars, st->x + i * st->n_features);
        st->y[i] = feasible ? fmin(agent__energy(&st->score[i]), worst) : worst;
        st->label[i] = feasible ? 1.0 : -1.0;
        st->some_infeasible = st->some_infeasible || !feasible;
    }
    CS_TRY(agent__gp_set(st->gp, n, st->x, st->y, st->label, err));
    if (st->run.asks % 4 == 0)
        CS_TRY(agent__gp_fit(st->gp, FIT_MOST, FIT_STEPS, err));
    st->run.asks++;
    st->best_y = agent__gp_standard(st->gp, best);
done:
    return status;
}

/* Gains of the first `width` points of st->block. */
static void gains(bayesian_state *st, size_t width, double *gain)
{
    double mean[W], sd[W], label[W];

    for (size_t w = 0; w < width; w++)
        psa_space_features(st->setup.space, st->block + w * st->n_vars,
                           st->wide + w * st->n_features);
    agent__gp_predict(st->gp, width, st->wide, mean, sd, label);
    for (size_t w = 0; w < width; w++) {
        gain[w] = agent__log_ei(st->best_y, mean[w], sd[w]);
        if (st->some_infeasible)
            gain[w] += log(fmax(gsl_cdf_ugaussian_P(label[w] / sqrt(0.1 + sd[w] * sd[w])), 1e-12));
    }
}

/* ---- maximising the gain ---- */

static bool trusted(const bayesian_state *st, const int32_t *point)
{
    double changed = 0.0;

    if (!st->run.has_centre || st->run.radius >= first_radius(st))
        return true;
    for (size_t v = 0; v < st->n_vars; v++)
        changed += point[v] != st->centre[v];
    return changed <= st->run.radius;
}

/* Worth a look: inside the trust region, not known, not already in this batch.  Whether it fits is
 * asked only of designs that would be taken: the pre-check may cost more than the model. */
static bool eligible(const bayesian_state *st, const int32_t *point)
{
    agent_score score;

    if (!trusted(st, point) || agent__known(&st->setup, point, &score))
        return false;
    for (size_t i = 0; i < st->n_pending; i++)
        if (agent__same(&st->setup, st->pending + i * st->n_vars, point))
            return false;
    return true;
}

static void copy(const bayesian_state *st, candidate *to, const int32_t *point, double gain)
{
    memcpy(to->point, point, st->n_vars * sizeof *point);
    to->gain = gain;
}

/* A random design to start from: around the centre or a good design, or anywhere. */
static cs_status scatter(bayesian_state *st, size_t i, int32_t *point, cs_error *err)
{
    const bool shrunk = st->run.has_centre && st->run.radius < first_radius(st);

    if (!shrunk && i % 2 == 0)
        return agent__sample_fitting(&st->setup, st->rng, point, err);
    const int32_t *from = shrunk || i % 4 == 1
                              ? st->centre
                              : st->pool + cs_rng_below(st->rng, st->run.n) * st->n_vars;
    memcpy(point, from, st->n_vars * sizeof *point);
    size_t most = shrunk ? (size_t)fmax(1.0, st->run.radius) : st->n_vars;
    agent__perturb(st->setup.space, st->rng, 1 + (size_t)cs_rng_below(st->rng, most), point);
    return CS_OK;
}

/* The best of the block's designs above `least` that fits; SIZE_MAX when there is none. */
static size_t best_fitting(const bayesian_state *st, size_t width, const double *gain, double least)
{
    bool refused[W] = {false};

    for (;;) {
        size_t best = SIZE_MAX;
        for (size_t w = 0; w < width; w++)
            if (!refused[w] && gain[w] > least && (best == SIZE_MAX || gain[w] > gain[best]))
                best = w;
        if (best == SIZE_MAX || agent__fits(&st->setup, st->block + best * st->n_vars))
            return best;
        refused[best] = true;
    }
}

/* Keeps the best of the block as starts, each better than the worst kept one. */
static void consider_starts(bayesian_state *st, size_t width, double *gain)
{
    for (;;) {
        size_t worst = 0;
        for (size_t i = 1; i < STARTS; i++)
            if (st->start[i].gain < st->start[worst].gain)
                worst = i;
        const size_t best = best_fitting(st, width, gain, st->start[worst].gain);
        if (best == SIZE_MAX)
            return;
        copy(st, &st->start[worst], st->block + best * st->n_vars, gain[best]);
        if (gain[best] > st->found.gain)
            copy(st, &st->found, st->block + best * st->n_vars, gain[best]);
        gain[best] = -INFINITY;
    }
}

static cs_status random_starts(bayesian_state *st, cs_error *err)
{
    cs_status status = CS_OK;
    double gain[W];

    for (size_t i = 0; i < STARTS; i++)
        st->start[i].gain = -INFINITY;
    for (size_t drawn = 0; drawn < RANDOM;) {
        size_t width = 0;
        for (; width < W && drawn < RANDOM; drawn++) {
            int32_t *point = st->block + width * st->n_vars;
            CS_TRY(scatter(st, drawn, point, err));
            width += eligible(st, point);
        }
        if (width > 0)
            gains(st, width, gain);
        consider_starts(st, width, gain);
    }
done:
    return status;
}

/* One step from the walker to the best of some neighbours; false at a local optimum. */
static bool step(bayesian_state *st)
{
    const size_t n = agent__moves(st->setup.space, st->rng, st->walker.point, st->moves);
    double gain[W];
    bool better = false;
    const double before = st->walker.gain;
    size_t looked = 0, at = 0;

    agent__shuffle(st->rng, st->moves, n);
    memcpy(st->start[STARTS].point, st->walker.point, st->n_vars * sizeof(int32_t));
    while (at < n && looked < NEIGHBOURS) {
        size_t width = 0;
        for (; at < n && width < W; at++) {
            int32_t *point = st->block + width * st->n_vars;
            if (agent__apply(st->setup.space, st->rng, st->start[STARTS].point, st->moves[at],
                             point) &&
                eligible(st, point))
                width++;
        }
        looked += width;
        if (width > 0)
            gains(st, width, gain);
        const size_t best = best_fitting(st, width, gain, st->walker.gain);
        if (best != SIZE_MAX) {
            copy(st, &st->walker, st->block + best * st->n_vars, gain[best]);
            better = true;
        }
    }
    return better && st->walker.gain > before;
}

static void climb(bayesian_state *st, const int32_t *from, double gain)
{
    copy(st, &st->walker, from, gain);
    for (int i = 0; i < STEPS && step(st); i++)
        ;
    if (st->walker.gain > st->found.gain)
        copy(st, &st->found, st->walker.point, st->walker.gain);
}

static cs_status propose(bayesian_state *st, int32_t *point, cs_error *err)
{
    cs_status status = CS_OK;

    st->found.gain = -INFINITY;
    CS_TRY(random_starts(st, err));
    if (st->run.has_centre)
        climb(st, st->centre, -INFINITY);
    for (size_t i = 0; i < STARTS; i++)
        if (isfinite(st->start[i].gain))
            climb(st, st->start[i].point, st->start[i].gain);
    if (isfinite(st->found.gain))
        memcpy(point, st->found.point, st->n_vars * sizeof *point);
    else
        CS_TRY(agent__sample_new(&st->setup, st->rng, 16, point, err));
done:
    return status;
}

static cs_status ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    bayesian_state *st = state;
    cs_status status = CS_OK;
    const bool blind = (double)st->run.told < st->setup.param[START] || !st->run.has_centre;

    *n = st->batch;
    st->n_pending = 0;
    if (!blind)
        CS_TRY(build_model(st, err));
    for (size_t i = 0; i < st->batch; i++) {
        int32_t *point = points + i * st->n_vars;
        if (blind)
            CS_TRY(agent__sample_fitting(&st->setup, st->rng, point, err));
        else
            CS_TRY(propose(st, point, err));
        memcpy(st->pending + st->n_pending++ * st->n_vars, point, st->n_vars * sizeof *point);
        if (blind)
            continue;
        psa_space_features(st->setup.space, point, st->wide);
        agent__gp_pretend(st->gp, st->wide);
    }
done:
    return status;
}

/* ---- learning ---- */

/* Drops the oldest design that is not among the best ones. */
static void evict(bayesian_state *st)
{
    const size_t n = (size_t)st->run.n;

    for (size_t i = 0; i < n; i++) {
        size_t better = 0;
        for (size_t j = 0; j < n; j++)
            better += agent_score_compare(&st->score[j], &st->score[i]) < 0;
        if (better < POOL_BEST && i + 1 < n)
            continue;
        memmove(st->pool + i * st->n_vars, st->pool + (i + 1) * st->n_vars,
                (n - i - 1) * st->n_vars * sizeof *st->pool);
        memmove(st->score + i, st->score + i + 1, (n - i - 1) * sizeof *st->score);
        st->run.n--;
        return;
    }
}

static bool learn(bayesian_state *st, const int32_t *point, const agent_score *score)
{
    memcpy(st->pool + st->run.n * st->n_vars, point, st->n_vars * sizeof *point);
    st->score[st->run.n++] = *score;
    if (st->run.n > POOL - 1)
        evict(st);
    st->run.told++;
    if (st->run.has_centre && agent_score_compare(score, &st->run.centre_score) >= 0)
        return false;
    memcpy(st->centre, point, st->n_vars * sizeof *point);
    st->run.centre_score = *score;
    st->run.has_centre = 1;
    return true;
}

/* Radius x 1.5 after two better batches in a row, / 1.5 after four without; below one move a new
 * region begins. */
static void adapt_region(bayesian_state *st, bool better)
{
    if (st->setup.param[TRUST] < 0.5 || (double)st->run.told < st->setup.param[TRUST_AFTER])
        return;
    st->run.successes = better ? st->run.successes + 1 : 0;
    st->run.failures = better ? 0 : st->run.failures + 1;
    if (st->run.successes >= 2) {
        st->run.radius = fmin(1.5 * st->run.radius, first_radius(st));
        st->run.successes = 0;
    }
    if (st->run.failures < 4)
        return;
    st->run.failures = 0;
    st->run.radius /= 1.5;
    if (st->run.radius >= 1.0)
        return;
    st->run.radius = first_radius(st);
    st->run.has_centre = 0;
}

static cs_status tell(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    bayesian_state *st = state;
    bool better = false;
    const bool had_centre = st->run.has_centre != 0;

    (void)err;
    for (size_t i = 0; i < n; i++)
        if (!score[i].cached && learn(st, points + i * st->n_vars, &score[i]))
            better = true;
    if (had_centre)
        adapt_region(st, better);
    return CS_OK;
}

static void observe(void *state, size_t n, const int32_t *points, const agent_score *score)
{
    bayesian_state *st = state;

    for (size_t i = 0; i < n; i++)
        if (!score[i].cached)
            (void)learn(st, points + i * st->n_vars, &score[i]);
}

static cs_status seed(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    bayesian_state *st = state;

    (void)err;
    for (size_t i = 0; i < n; i++)
        (void)learn(st, points + i * st->n_vars, &score[i]);
    return CS_OK;
}

static void snapshot(void *state, agent__io *io)
{
    bayesian_state *st = state;

    AGENT__IO(io, st->run);
    if (st->run.n > POOL) {
        memset(&st->run, 0, sizeof st->run);
        io->status = CS_EIO;
    }
    agent__io_block(io, st->pool, st->run.n * st->n_vars * sizeof *st->pool);
    agent__io_block(io, st->score, st->run.n * sizeof *st->score);
    agent__io_block(io, st->centre, st->n_vars * sizeof *st->centre);
    agent__io_block(io, agent__gp_params(st->gp), agent__gp_n_params(st->gp) * sizeof(double));
    agent__io_rng(io, st->rng);
}

const agent_type agent__bayesian = {
    .name = "bayesian",
    .summary = "Gaussian process, log expected improvement, trust region",
    .state_size = sizeof(bayesian_state),
    .params = params,
    .init = init,
    .ask = ask,
    .tell = tell,
    .seed = seed,
    .observe = observe,
    .snapshot = snapshot,
    .fini = fini,
};
