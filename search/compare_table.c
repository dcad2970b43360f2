/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Tables of a comparison: regret, runs to target, anytime area, ranks and tests. */
#include "search/compare.h"
#include "search/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const uint64_t search_checkpoints[SEARCH_N_CHECKPOINTS] = {30, 100, 300, 1000, 3000, 10000};

enum { DRAWS = 10000, AREA_POINTS = 20, MOST_LABELS = 256 };

static search__sample *samples_of(const search__tables *t, size_t problem)
{
    return t->samples + problem * t->n_agents;
}

/* Best value after `evaluations`, as regret; at least where runs of the suite stop. */
static double regret_at(const search__tables *t, const search__record *r, uint64_t evaluations)
{
    size_t n = r->n;

    while (n > 0 && r->at[n - 1] > evaluations)
        n--;
    if (n == 0)
        return INFINITY;
    return search__near(r->value[n - 1], t->optimum, t->suite->stop_within, t->maximize)
               ? t->suite->stop_within
               : fabs(r->value[n - 1] / t->optimum - 1.0);
}

/* Evaluations until regret is at most `target`. */
static double evaluations_to(const search__tables *t, const search__record *r, double target)
{
    for (size_t i = 0; i < r->n; i++)
        if (search__near(r->value[i], t->optimum, target, t->maximize))
            return (double)r->at[i];
    return INFINITY;
}

/* Mean over log-spaced budgets from 10 to 3,000 (or the whole budget) of log10 regret between 0.001
 * and 10, scaled to 0..1. */
static double anytime_area(const search__tables *t, const search__record *r)
{
    const double last = log10(fmin(3000.0, (double)t->suite->evaluations));
    const double first = fmin(1.0, last);
    double sum = 0.0;

    for (int i = 0; i < AREA_POINTS; i++) {
        const double at = pow(10.0, first + (last - first) * i / (AREA_POINTS - 1));
        const double regret = fmin(10.0, fmax(1e-3, regret_at(t, r, (uint64_t)(at + 0.5))));
        sum += (log10(regret) + 3.0) / 4.0;
    }
    return sum / AREA_POINTS;
}

static void fill_regret(search__tables *t, const search__sample *s, search_compare_row *row)
{
    const double nan_value = NAN;

    for (size_t k = 0; k < SEARCH_N_CHECKPOINTS; k++) {
        row->regret[k] = row->low[k] = row->high[k] = nan_value;
        if (search_checkpoints[k] > t->suite->evaluations)
            continue;
        for (size_t i = 0; i < s->n; i++)
            t->work[i] = regret_at(t, s->runs[i], search_checkpoints[k]);
        search__sort(t->work, s->n);
        row->low[k] = search__quantile(t->work, s->n, 0.25);
        row->regret[k] = search__quantile(t->work, s->n, 0.5);
        row->high[k] = search__quantile(t->work, s->n, 0.75);
    }
}

static void fill_target(search__tables *t, const search__sample *s, double target, double *success,
                        double *ert, double *median)
{
    double spent = 0.0;
    size_t hits = 0;

    for (size_t i = 0; i < s->n; i++) {
        const double at = evaluations_to(t, s->runs[i], target);
        hits += isfinite(at) ? 1 : 0;
        spent += isfinite(at) ? at : (double)t->suite->evaluations;
        t->work[i] = at;
    }
    search__sort(t->work, s->n);
    *median = search__quantile(t->work, s->n, 0.5);
    *success = s->n > 0 ? (double)hits / (double)s->n : NAN;
    *ert = hits > 0 ? spent / (double)hits : INFINITY;
}

static void fill_row(search__tables *t, const search_compare_problem *p, size_t a,
                     search_compare_row *row)
{
    const search__sample *s = samples_of(t, row->problem) + a;
    double agent_s = 0.0, proposals = 0.0;

    row->agent = t->agents[a];
    row->runs = s->n;
    fill_regret(t, s, row);
    fill_target(t, s, 0.01, &row->success_1, &row->ert_1, &row->median_1);
    fill_target(t, s, 0.05, &row->success_5, &row->ert_5, &row->median_5);
    for (size_t i = 0; i < s->n; i++) {
        row->area += anytime_area(t, s->runs[i]) / (double)s->n;
        agent_s += s->runs[i]->agent_s;
        proposals += (double)s->runs[i]->proposals;
    }
    row->agent_s_per_proposal = proposals > 0 ? agent_s / proposals : NAN;
    row->final = search__median(s->regret, s->n, t->work);
    const search__interval ci = search__bootstrap_median(s->regret, s->n, DRAWS, t->rng, t->work);
    row->ci_low = ci.low;
    row->ci_high = ci.high;
    row->p = row->a12 = NAN;
    row->speedup = NAN;
    if (isfinite(row->median_1))
        row->speedup =
            (isfinite(p->random_median) ? p->random_median : p->random_least) / row->median_1;
}

/* Settings of the lottery stand beside the agents, not among them. */
static bool ranked(const search__tables *t, size_t a)
{
    return a < t->suite->n_listed || a >= t->suite->n_agents;
}

/* Mean over seeds of the rank by score among the agents that ran as many seeds. */
static double mean_rank(const search__tables *t, const search__sample *samples, size_t a)
{
    const search__sample *s = &samples[a];
    double sum = 0.0;

    for (size_t i = 0; i < s->n; i++) {
        double rank = 1.0;
        for (size_t b = 0; b < t->n_agents; b++) {
            if (b == a || !ranked(t, b) || i >= samples[b].n)
                continue;
            const double other = samples[b].score[i];
            rank += other < s->score[i] ? 1.0 : other == s->score[i] ? 0.5 : 0.0;
        }
        sum += rank;
    }
    return s->n > 0 && ranked(t, a) ? sum / (double)s->n : NAN;
}

/* The best agent is the one of least mean rank, then least area; the others are tested against it.
 */
static void test_against_best(search__tables *t, const search__sample *samples,
                              search_compare_row *rows)
{
    size_t best = 0;
    double p[MOST_LABELS];

    for (size_t a = 0; a < t->n_agents; a++)
        rows[a].rank = mean_rank(t, samples, a);
    for (size_t a = 1; a < t->n_agents; a++)
        if (rows[a].runs > 0 && ranked(t, a) &&
            (rows[best].runs == 0 || rows[a].rank < rows[best].rank ||
             (rows[a].rank == rows[best].rank && rows[a].area < rows[best].area)))
            best = a;
    rows[best].best = true;
    for (size_t a = 0; a < t->n_agents; a++) {
        const size_t n = samples[a].n < samples[best].n ? samples[a].n : samples[best].n;
        p[a] = a == best || n == 0 || !ranked(t, a)
                   ? NAN
                   : search__wilcoxon(samples[a].score, samples[best].score, n, t->work);
        if (a != best && n > 0)
            rows[a].a12 = search__a12(samples[best].score, samples[a].score, n);
    }
    search__holm(p, t->n_agents);
    for (size_t a = 0; a < t->n_agents; a++) {
        rows[a].p = p[a];
        rows[a].tied = a == best || !(p[a] <= 0.05);
    }
}

/* How many of the long runs end at the best value of all. */
static void count_references(const search__tables *t, search_compare_problem *out)
{
    for (size_t i = 0; i < t->records->n; i++) {
        const search__record *r = &t->records->list[i];
        if (t->suite->n_references == 0 || r->n == 0 || strcmp(r->problem, out->label) != 0 ||
            r->evaluations != t->suite->reference_evaluations)
            continue;
        out->references++;
        out->agreeing += fabs(r->value[r->n - 1] / out->optimum - 1.0) <= 1e-9;
    }
}

/* Share of designs near the optimum: counted, or from draws. */
static void find_share(const search__tables *t, search_compare_problem *out)
{
    out->share_1 = out->random_median = out->random_least = NAN;
    for (size_t i = 0; i < t->records->n; i++) {
        const search__record *r = &t->records->list[i];
        if (strcmp(r->problem, out->label) != 0)
            continue;
        if (!isnan(r->share_1)) {
            out->kind = strcmp(out->kind, "stated") == 0 ? out->kind : "exhaustive";
            out->share_1 = r->share_1;
            out->random_median = out->random_least = log(0.5) / log1p(-r->share_1);
            return;
        }
        if (r->optimum == out->optimum && r->evaluations > 0) {
            const double most = search__binomial_most(r->hits, r->evaluations, 0.025);
            out->draws = r->evaluations;
            out->hits = r->hits;
            out->share_1 = (double)r->hits / (double)r->evaluations;
            out->random_median = r->hits > 0 ? log(0.5) / log1p(-out->share_1) : INFINITY;
            out->random_least = log(0.5) / log1p(-most);
        }
    }
}

/* Reference of a problem: stated, or the best of all runs, which is the optimum when one visits
 * every design. */
static void find_reference(search__tables *t, size_t index, bool maximize)
{
    const search__suite_problem *p = &t->suite->problems[index];
    search_compare_problem *out = &t->out->problems[index];

    out->optimum = p->optimum == SEARCH__STATED
                       ? p->stated
                       : search__records_best(t->records, p->label, maximize, 0);
    out->kind = p->optimum == SEARCH__STATED ? "stated" : "best_known";
    t->optimum = out->optimum;
    t->maximize = maximize;
    find_share(t, out);
    count_references(t, out);
}

static cs_status collect(search__tables *t, size_t index, size_t a, cs_error *err)
{
    const search__suite_problem *p = &t->suite->problems[index];
    const double within = t->suite->stop_within;
    const size_t most = t->suite->seeds;
    search__sample *s = samples_of(t, index) + a;

    s->runs = cs_arena_alloc(t->arena, most * sizeof(search__record *));
    s->seed = cs_arena_alloc(t->arena, most * sizeof *s->seed);
    s->regret = cs_arena_alloc(t->arena, most * sizeof *s->regret);
    s->score = cs_arena_alloc(t->arena, most * sizeof *s->score);
    if (s->runs == NULL || s->seed == NULL || s->regret == NULL || s->score == NULL)
        return cs_fail(err, CS_ENOMEM, "comparison");
    for (uint64_t seed = 1; seed <= most; seed++) {
        const search__record *r =
            search__records_find(t->records, p->label, t->agents[a], seed, t->suite->evaluations);
        if (r == NULL)
            continue;
        s->runs[s->n] = r;
        s->seed[s->n] = seed;
        s->regret[s->n] = regret_at(t, r, t->suite->evaluations);
        s->score[s->n] = within > 0.0 ? evaluations_to(t, r, within) : s->regret[s->n];
        s->n++;
    }
    return CS_OK;
}

static cs_status table_of(search__tables *t, size_t index, bool maximize, cs_error *err)
{
    cs_status status = CS_OK;
    search_compare_row *rows = t->out->rows + index * t->n_agents;
    search_compare_problem *p = &t->out->problems[index];

    p->label = cs_arena_strdup(t->arena, t->suite->problems[index].label);
    if (p->label == NULL)
        return cs_fail(err, CS_ENOMEM, "comparison");
    find_reference(t, index, maximize);
    for (size_t a = 0; a < t->n_agents; a++)
        CS_TRY(collect(t, index, a, err));
    for (size_t a = 0; a < t->n_agents; a++) {
        rows[a].problem = index;
        fill_row(t, p, a, &rows[a]);
    }
    test_against_best(t, samples_of(t, index), rows);
done:
    return status;
}

/* Labels of the suite's agents, then those that other programs wrote with the same budget. */
static cs_status list_agents(search__tables *t, cs_error *err)
{
    t->agents = cs_arena_alloc(t->arena, MOST_LABELS * sizeof *t->agents);
    if (t->agents == NULL)
        return cs_fail(err, CS_ENOMEM, "comparison");
    for (size_t a = 0; a < t->suite->n_agents; a++)
        t->agents[t->n_agents++] = cs_arena_strdup(t->arena, t->suite->agents[a].label);
    for (size_t i = 0; i < t->records->n; i++) {
        const search__record *r = &t->records->list[i];
        bool listed =
            r->evaluations != t->suite->evaluations || !isnan(r->share_1) || !isnan(r->optimum);
        for (size_t a = 0; a < t->n_agents && !listed; a++)
            listed = t->agents[a] == NULL || strcmp(t->agents[a], r->agent) == 0;
        if (!listed && t->n_agents < MOST_LABELS)
            t->agents[t->n_agents++] = cs_arena_strdup(t->arena, r->agent);
    }
    for (size_t a = 0; a < t->n_agents; a++)
        if (t->agents[a] == NULL)
            return cs_fail(err, CS_ENOMEM, "comparison");
    return CS_OK;
}

cs_status search__compare_tables(const search__suite *suite, const search__records *records,
                                 const bool *maximize, search_compare_result *out, cs_error *err)
{
    cs_status status = CS_OK;
    search__tables t = {
        .suite = suite, .records = records, .out = out, .arena = cs_arena_create(0)};

    if (t.arena == NULL)
        return cs_fail(err, CS_ENOMEM, "comparison");
    out->storage = t.arena;
    CS_TRY(list_agents(&t, err));
    t.rng = cs_rng_create(1, 0, 0);
    t.work = cs_arena_alloc(t.arena, (3 * suite->seeds + MOST_LABELS + DRAWS) * sizeof *t.work);
    out->n_rows = suite->n_problems * t.n_agents;
    t.samples = cs_arena_alloc(t.arena, out->n_rows * sizeof *t.samples);
    out->rows = calloc(out->n_rows, sizeof *out->rows);
    if (t.rng == NULL || t.work == NULL || t.samples == NULL || out->rows == NULL) {
        status = cs_fail(err, CS_ENOMEM, "comparison");
        goto done;
    }
    for (size_t i = 0; i < suite->n_problems; i++)
        CS_TRY(table_of(&t, i, maximize[i], err));
    CS_TRY(search__compare_pairs(&t, err));
    CS_TRY(search__compare_lottery(&t, err));
done:
    cs_rng_destroy(t.rng);
    return status;
}
