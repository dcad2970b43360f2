/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Two agents against each other, and what the settings of an agent's parameters matter. */
#include "search/compare.h"
#include "search/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* SIZE_MAX when no run has that label. */
static size_t agent_index(const search__tables *t, const char *label)
{
    for (size_t a = 0; a < t->n_agents; a++)
        if (strcmp(t->agents[a], label) == 0)
            return a;
    return SIZE_MAX;
}

/* Scores of the seeds that both agents ran, side by side in a and b (room for all seeds). */
static size_t paired(const search__sample *x, const search__sample *y, double *a, double *b)
{
    size_t n = 0;

    for (size_t i = 0, j = 0; i < x->n && j < y->n;) {
        if (x->seed[i] == y->seed[j]) {
            a[n] = x->score[i++];
            b[n++] = y->score[j++];
        } else if (x->seed[i] < y->seed[j]) {
            i++;
        } else {
            j++;
        }
    }
    return n;
}

static void test_pair(search__tables *t, const search__sample *x, const search__sample *y,
                      double *scores, search_compare_pair *out)
{
    double *a = scores, *b = scores + t->suite->seeds;

    out->n = paired(x, y, a, b);
    for (size_t i = 0; i < out->n; i++) {
        out->wins += a[i] < b[i];
        out->ties += a[i] == b[i];
    }
    out->median[0] = search__median(a, out->n, t->work);
    out->median[1] = search__median(b, out->n, t->work);
    out->p = out->n > 0 ? search__wilcoxon(a, b, out->n, t->work) : NAN;
    out->better = out->p < 0.01 && search__wilcoxon_order(a, b, out->n, t->work) < 0;
    out->worse = out->p < 0.01 && !out->better;
}

cs_status search__compare_pairs(search__tables *t, cs_error *err)
{
    const search__suite *suite = t->suite;
    search_compare_result *out = t->out;
    double *scores = cs_arena_alloc(t->arena, 2 * suite->seeds * sizeof *scores);
    double *p = cs_arena_alloc(t->arena, (suite->n_problems + 1) * sizeof *p);

    out->pairs =
        cs_arena_alloc(t->arena, (suite->n_pairs * suite->n_problems + 1) * sizeof *out->pairs);
    if (scores == NULL || p == NULL || out->pairs == NULL)
        return cs_fail(err, CS_ENOMEM, "comparison");
    for (size_t k = 0; k < suite->n_pairs; k++) {
        const size_t a = agent_index(t, suite->pairs[k].first);
        const size_t b = agent_index(t, suite->pairs[k].second);
        if (a == SIZE_MAX || b == SIZE_MAX) /* the other program did not run */
            continue;
        search_compare_pair *pairs = out->pairs + out->n_pairs;
        for (size_t i = 0; i < suite->n_problems; i++) {
            const search__sample *samples = t->samples + i * t->n_agents;
            pairs[i] =
                (search_compare_pair){.problem = i, .first = t->agents[a], .second = t->agents[b]};
            test_pair(t, &samples[a], &samples[b], scores, &pairs[i]);
            p[i] = pairs[i].p;
        }
        search__holm(p, suite->n_problems);
        for (size_t i = 0; i < suite->n_problems; i++)
            pairs[i].holm = p[i];
        out->n_pairs += suite->n_problems;
    }
    return CS_OK;
}

/* ---- lottery ---- */

/* Sums up rows first..first + configs - 1, settings of one agent. */
static search_compare_lottery sum_up(const search__tables *t, const search_compare_row *rows,
                                     size_t first, size_t configs)
{
    const search__suite_agent *agents = t->suite->agents;
    search_compare_lottery out = {.problem = rows->problem,
                                  .configs = configs,
                                  .agent = NULL,
                                  .own = NAN,
                                  .ert_own = NAN,
                                  .as_good = NAN};
    double *value = t->work + configs, as_good = 0.0;

    for (size_t a = 0; a < t->suite->n_listed; a++)
        if (agents[a].type == agents[first].type && agents[a].n_params == 0) {
            out.own = rows[a].final;
            out.ert_own = rows[a].ert_1;
        }
    for (size_t i = 0; i < configs; i++) {
        value[i] = rows[first + i].final;
        as_good += value[i] <= out.own;
    }
    search__sort(value, configs);
    out.best = value[0];
    out.median = search__quantile(value, configs, 0.5);
    out.worst = value[configs - 1];
    if (!isnan(out.own))
        out.as_good = as_good / (double)configs;
    for (size_t i = 0; i < configs; i++)
        value[i] = rows[first + i].ert_1;
    out.ert_median = search__median(value, configs, t->work);
    return out;
}

cs_status search__compare_lottery(search__tables *t, cs_error *err)
{
    const search__suite *suite = t->suite;
    search_compare_result *out = t->out;
    const size_t settings = suite->n_agents - suite->n_listed;

    out->lottery =
        cs_arena_alloc(t->arena, (suite->n_problems * settings + 1) * sizeof *out->lottery);
    if (out->lottery == NULL)
        return cs_fail(err, CS_ENOMEM, "comparison");
    for (size_t i = 0; i < suite->n_problems; i++)
        for (size_t a = suite->n_listed, end; a < suite->n_agents; a = end) {
            search_compare_lottery *sum = &out->lottery[out->n_lottery++];
            for (end = a; end < suite->n_agents && suite->agents[end].type == suite->agents[a].type;
                 end++)
                ;
            *sum = sum_up(t, out->rows + i * t->n_agents, a, end - a);
            sum->agent = cs_arena_strdup(t->arena, suite->agents[a].type->name);
            if (sum->agent == NULL)
                return cs_fail(err, CS_ENOMEM, "comparison");
        }
    return CS_OK;
}
