/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Trials copied out of a study: the best ones, or one by number. */
#include "cli/commands.h"

#include <stdlib.h>
#include <string.h>

bool cli_keep(cli_kept *k, const search_trial *trial)
{
    int32_t *point = malloc((k->n_vars + 1) * sizeof *point);

    if (k->n == k->capacity) {
        const size_t capacity = k->capacity == 0 ? 16 : 2 * k->capacity;
        search_trial *grown = realloc(k->trial, capacity * sizeof *grown);
        if (grown != NULL)
            k->trial = grown;
        double *values = realloc(k->value, (capacity * k->n_values + 1) * sizeof *values);
        if (values != NULL)
            k->value = values;
        k->failed = grown == NULL || values == NULL;
        if (!k->failed)
            k->capacity = capacity;
    }
    if (point == NULL || k->failed) {
        k->failed = true;
        free(point);
        return false;
    }
    memcpy(point, trial->point, k->n_vars * sizeof *point);
    k->trial[k->n] = *trial;
    k->trial[k->n++].point = point;
    return true;
}

void cli_kept_drop(cli_kept *k, size_t i)
{
    union { /* the point was allocated here: only the view of it is const */
        const int32_t *view;
        int32_t *own;
    } point = {k->trial[i].point};

    free(point.own);
    k->trial[i].point = NULL;
}

void cli_kept_fini(cli_kept *k)
{
    for (size_t i = 0; i < k->n; i++)
        cli_kept_drop(k, i);
    free(k->trial);
    free(k->value);
    memset(k, 0, sizeof *k);
}

void cli_kept_init(cli_kept *k, const search_study *study, size_t n_values)
{
    memset(k, 0, sizeof *k);
    k->problem = search_study_problem(study);
    k->n_vars = psa_space_n_vars(k->problem->space);
    k->n_values = n_values;
}

/* ---- the best ---- */

typedef struct {
    cli_kept *kept;
    size_t top;
} ranking;

/* Keeps the `top` best feasible trials in order. */
static bool rank_trial(void *context, const search_trial *trial)
{
    const ranking *r = context;
    cli_kept *k = r->kept;

    if (trial->status != SEARCH_FEASIBLE)
        return true;
    if (k->n == r->top && search_trial_compare(k->problem, trial, &k->trial[k->n - 1]) >= 0)
        return true;
    if (k->n == r->top)
        cli_kept_drop(k, --k->n);
    if (!cli_keep(k, trial))
        return false;
    for (size_t i = k->n - 1; i > 0; i--) {
        if (search_trial_compare(k->problem, &k->trial[i], &k->trial[i - 1]) >= 0)
            break;
        const search_trial swapped = k->trial[i];
        k->trial[i] = k->trial[i - 1];
        k->trial[i - 1] = swapped;
    }
    return true;
}

cs_status cli_best_trials(const search_study *study, size_t top, cli_kept *out, cs_error *err)
{
    ranking r = {out, top};
    cs_status status = CS_OK;

    cli_kept_init(out, study, 0);
    CS_TRY(search_study_each(study, rank_trial, &r, err));
    if (out->failed)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    if (out->n == 0)
        status = cs_fail(err, CS_EINFEASIBLE, "no feasible design among %llu trials",
                         (unsigned long long)search_study_n_trials(study));
done:
    return status;
}

/* ---- one by number ---- */

typedef struct {
    cli_kept *kept;
    uint64_t id;
} wanted;

static bool take_trial(void *context, const search_trial *trial)
{
    const wanted *w = context;

    if (trial->id != w->id)
        return true;
    cli_keep(w->kept, trial);
    return false;
}

cs_status cli_add_trial(const search_study *study, uint64_t id, cli_kept *out, cs_error *err)
{
    wanted w = {out, id};
    const size_t before = out->n;
    cs_status status = CS_OK;

    CS_TRY(search_study_each(study, take_trial, &w, err));
    if (out->failed)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    if (out->n == before)
        status = cs_fail(err, CS_EINVAL, "no trial %llu: the study has %llu",
                         (unsigned long long)id, (unsigned long long)search_study_n_trials(study));
done:
    return status;
}
