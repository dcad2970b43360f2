/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The best designs so far: best feasible, best at the baseline's bandwidth, least violating. */
#include "search/search_private.h"

#include <stdlib.h>
#include <string.h>

enum { BEST, AT_BANDWIDTH, LEAST, N_LEAST = 3, N_KEPT = LEAST + N_LEAST };

static double baseline_bandwidth(const search_problem *problem)
{
    sim_config config;
    double sum = 0.0;

    memset(&config, 0, sizeof config);
    psa_schema_baseline(problem->schema, &config);
    for (size_t d = 0; d < psa_schema_n_dims(problem->schema); d++)
        if (config.network.npus[d] > 1)
            sum += config.network.bandwidth[d];
    return sum;
}

cs_status search__best_init(search__best *best, const search_problem *problem,
                            search_outcome *outcome, cs_error *err)
{
    const size_t n = psa_space_n_vars(problem->space);

    best->problem = problem;
    best->outcome = outcome;
    best->baseline_bandwidth = baseline_bandwidth(problem);
    outcome->points = calloc(N_KEPT * n + 1, sizeof *outcome->points);
    if (outcome->points == NULL)
        return cs_fail(err, CS_ENOMEM, "best designs");
    outcome->best.point = outcome->points + BEST * n;
    outcome->best_at_bandwidth.point = outcome->points + AT_BANDWIDTH * n;
    for (size_t i = 0; i < N_LEAST; i++)
        outcome->least[i].point = outcome->points + (LEAST + i) * n;
    return CS_OK;
}

/* Copies a trial into one of the kept ones; the point goes to the kept trial's own storage. */
static void keep(const search__best *best, search_trial *kept, const search_trial *trial)
{
    const size_t n = psa_space_n_vars(best->problem->space);
    int32_t *point = best->outcome->points + (kept->point - best->outcome->points);

    memcpy(point, trial->point, n * sizeof *point);
    *kept = *trial;
    kept->point = point;
}

static void keep_least(search__best *best, const search_trial *trial)
{
    search_outcome *out = best->outcome;
    size_t at = out->n_least;

    if (at == N_LEAST) {
        if (search_trial_compare(best->problem, trial, &out->least[at - 1]) >= 0)
            return;
        at--;
    } else {
        out->n_least++;
    }
    keep(best, &out->least[at], trial);
    for (; at > 0 && search_trial_compare(best->problem, &out->least[at], &out->least[at - 1]) < 0;
         at--) {
        search_trial t = out->least[at];
        out->least[at] = out->least[at - 1];
        out->least[at - 1] = t;
    }
}

void search__best_update(search__best *best, const search_trial *trial)
{
    search_outcome *out = best->outcome;

    if (trial->status == SEARCH_INFEASIBLE && !out->has_best)
        keep_least(best, trial);
    if (trial->status != SEARCH_FEASIBLE)
        return;
    if (!out->has_best || search_trial_compare(best->problem, trial, &out->best) < 0) {
        out->has_best = true;
        out->n_least = 0;
        keep(best, &out->best, trial);
    }
    if (trial->result.bandwidth_per_npu_bytes_per_s > best->baseline_bandwidth * (1 + 1e-12))
        return;
    if (!out->has_best_at_bandwidth ||
        search_trial_compare(best->problem, trial, &out->best_at_bandwidth) < 0) {
        out->has_best_at_bandwidth = true;
        keep(best, &out->best_at_bandwidth, trial);
    }
}

void search_outcome_fini(search_outcome *outcome)
{
    free(outcome->points);
    *outcome = (search_outcome){0};
}
