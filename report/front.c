/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Pareto fronts.  One routine decides what is on a front; commands, CSV, JSON and the page all use
 * it. */
#include "report/analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- criteria ---- */

/* A result that is an expression of the configuration in a PSA, and so has no name there. */
static const char bandwidth_name[] = "bandwidth";

static bool find_result(const psa_tables *tables, const char *name, report_criterion *out)
{
    for (size_t i = 0; i < tables->n_results; i++) {
        if (strcmp(tables->results[i].name, name) != 0)
            continue;
        out->offset = tables->results[i].offset;
        out->unit = tables->results[i].unit;
        out->maximize = strncmp(name, "tokens", 6) == 0 || strcmp(name, "mfu") == 0;
        return true;
    }
    out->offset = offsetof(sim_result, bandwidth_per_npu_bytes_per_s);
    out->unit = CS_BANDWIDTH;
    return strcmp(name, bandwidth_name) == 0;
}

/* An objective that is a result and nothing else counts as the result: it has its unit. */
static bool find_criterion(const search_problem *problem, const char *name, report_criterion *out)
{
    const psa_schema *schema = problem->schema;
    const psa_tables *tables = psa_schema_tables(schema);

    *out = (report_criterion){.objective = SIZE_MAX, .unit = CS_DIMENSIONLESS};
    snprintf(out->name, sizeof out->name, "%s", name);
    for (size_t i = 0; i < psa_schema_n_objectives(schema); i++) {
        if (strcmp(psa_schema_objective_name(schema, i), name) != 0)
            continue;
        const bool maximize = psa_schema_objective_maximize(schema, i);
        if (find_result(tables, psa_schema_objective_text(schema, i), out) &&
            out->maximize == maximize)
            return true;
        *out = (report_criterion){.objective = i, .unit = CS_DIMENSIONLESS, .maximize = maximize};
        snprintf(out->name, sizeof out->name, "%s", name);
        return true;
    }
    return find_result(tables, name, out);
}

static cs_status unknown_criterion(const search_problem *problem, const char *name, cs_error *err)
{
    const psa_tables *tables = psa_schema_tables(problem->schema);
    const char *names[256];
    const char *near;
    size_t n = 0;

    for (size_t i = 0; i < psa_schema_n_objectives(problem->schema) && n < 128; i++)
        names[n++] = psa_schema_objective_name(problem->schema, i);
    for (size_t i = 0; i < tables->n_results && n + 1 < CS_COUNT(names); i++)
        names[n++] = tables->results[i].name;
    names[n++] = bandwidth_name;
    near = cs_nearest(name, names, n);
    return cs_fail(err, CS_EINVAL, "--objectives: %s is neither an objective nor a result%s%s%s",
                   name, near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?" : "");
}

cs_status report_criteria(const search_problem *problem, const char *names, report_criterion *out,
                          size_t *n, cs_error *err)
{
    cs_status status = CS_OK;
    char *rest = NULL, *copy = strdup(names);

    if (copy == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    *n = 0;
    for (char *name = strtok_r(copy, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        if (*n == REPORT_MAX_CRITERIA)
            CS_TRY(cs_fail(err, CS_EINVAL, "--objectives: at most %d", REPORT_MAX_CRITERIA));
        if (!find_criterion(problem, name, &out[*n]))
            CS_TRY(unknown_criterion(problem, name, err));
        for (size_t i = 0; i < *n; i++)
            if (strcmp(out[i].name, name) == 0)
                CS_TRY(cs_fail(err, CS_EINVAL, "--objectives: %s twice", name));
        ++*n;
    }
    if (*n == 0)
        CS_TRY(cs_fail(err, CS_EINVAL, "--objectives: no name given"));
done:
    free(copy);
    return status;
}

double report_criterion_value(const search_problem *problem, const report_criterion *criterion,
                              const search_trial *trial)
{
    sim_config config;
    double value;

    if (trial->status != SEARCH_FEASIBLE && trial->status != SEARCH_INFEASIBLE)
        return NAN;
    if (criterion->objective == SIZE_MAX) {
        memcpy(&value, (const char *)&trial->result + criterion->offset, sizeof value);
        return value;
    }
    for (size_t i = 0; i < problem->n_objectives; i++)
        if (problem->objective[i] == criterion->objective)
            return trial->objective[i];
    psa_space_decode(problem->space, trial->point, &config);
    return psa_schema_objective(problem->schema, criterion->objective, &config, &trial->result);
}

/* ---- non-dominated rows ---- */

typedef struct {
    const double *value;
    size_t k, index;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    for (size_t i = 0; i < x->k; i++)
        if (x->value[i] != y->value[i])
            return x->value[i] < y->value[i] ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Whether a is nowhere worse than b. */
static bool covers(const double *a, const double *b, size_t k)
{
    for (size_t i = 0; i < k; i++)
        if (a[i] > b[i])
            return false;
    return true;
}

static bool all_finite(const double *value, size_t k)
{
    for (size_t i = 0; i < k; i++)
        if (!isfinite(value[i]))
            return false;
    return true;
}

cs_status report_front_mark(const double *values, size_t n, size_t k, bool *marked, cs_error *err)
{
    ranked *row = malloc((n + 1) * sizeof *row);
    size_t n_rows = 0, n_front = 0;

    if (row == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory for a front of %zu trials", n);
    for (size_t i = 0; i < n; i++) {
        marked[i] = false;
        if (all_finite(values + i * k, k))
            row[n_rows++] = (ranked){values + i * k, k, i};
    }
    /* In lexicographic order nothing is dominated by what comes later: the front found so far
     * decides.  It is kept at the beginning of the array. */
    qsort(row, n_rows, sizeof *row, compare_ranked);
    for (size_t i = 0; i < n_rows; i++) {
        bool covered = false;
        for (size_t f = n_front; f > 0 && !covered; f--)
            covered = covers(row[f - 1].value, row[i].value, k);
        if (covered)
            continue;
        marked[row[i].index] = true;
        row[n_front++] = row[i];
    }
    free(row);
    return CS_OK;
}

/* Position of a value between the least and the greatest of its column. */
static double scaled(double value, double least, double most)
{
    if (least > 0.0 && most > least)
        return log(value / least) / log(most / least);
    return most > least ? (value - least) / (most - least) : 0.0;
}

size_t report_front_knee(const double *values, size_t n, size_t k)
{
    double least[REPORT_MAX_CRITERIA], most[REPORT_MAX_CRITERIA], nearest = INFINITY;
    size_t knee = SIZE_MAX;

    if (n < 3 || k > REPORT_MAX_CRITERIA)
        return SIZE_MAX;
    for (size_t c = 0; c < k; c++) {
        least[c] = most[c] = values[c];
        for (size_t i = 1; i < n; i++) {
            least[c] = fmin(least[c], values[i * k + c]);
            most[c] = fmax(most[c], values[i * k + c]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        double distance = 0.0;
        for (size_t c = 0; c < k; c++) {
            const double d = scaled(values[i * k + c], least[c], most[c]);
            distance += d * d;
        }
        if (distance < nearest) {
            nearest = distance;
            knee = i;
        }
    }
    return knee;
}

/* ---- the front of a study ---- */

/* All feasible trials with a value for every criterion: what competes for the front. */
typedef struct {
    report_front *front;
    size_t n_vars, capacity;
    bool failed;
} collector;

static bool make_room(collector *c)
{
    report_front *f = c->front;
    const size_t capacity = c->capacity == 0 ? 256 : 2 * c->capacity;
    search_trial *trial = realloc(f->trial, capacity * sizeof *trial);

    if (trial != NULL)
        f->trial = trial;
    int32_t *points = realloc(f->points, (capacity * c->n_vars + 1) * sizeof *points);
    if (points != NULL)
        f->points = points;
    double *value = realloc(f->value, capacity * f->n_criteria * sizeof *value);
    if (value != NULL)
        f->value = value;
    c->failed = trial == NULL || points == NULL || value == NULL;
    if (!c->failed)
        c->capacity = capacity;
    return !c->failed;
}

/* Keeps the marked rows of the front, in their order. */
static void keep_marked(collector *c, const bool *marked)
{
    report_front *f = c->front;
    size_t left = 0;

    for (size_t i = 0; i < f->n; i++) {
        if (!marked[i])
            continue;
        f->trial[left] = f->trial[i];
        memmove(f->points + left * c->n_vars, f->points + i * c->n_vars,
                c->n_vars * sizeof *f->points);
        memmove(f->value + left * f->n_criteria, f->value + i * f->n_criteria,
                f->n_criteria * sizeof *f->value);
        left++;
    }
    f->n = left;
}

/* Drops the dominated; values are negated for the while where more is better. */
static cs_status prune(collector *c, cs_error *err)
{
    report_front *f = c->front;
    bool *marked = malloc(f->n + 1);
    double *minimized = malloc((f->n * f->n_criteria + 1) * sizeof *minimized);
    cs_status status = CS_OK;

    if (marked == NULL || minimized == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory for the front"));
    for (size_t i = 0; i < f->n * f->n_criteria; i++)
        minimized[i] = f->criterion[i % f->n_criteria].maximize ? -f->value[i] : f->value[i];
    CS_TRY(report_front_mark(minimized, f->n, f->n_criteria, marked, err));
    keep_marked(c, marked);
done:
    free(minimized);
    free(marked);
    return status;
}

static bool collect(void *context, const search_trial *trial)
{
    collector *c = context;
    report_front *f = c->front;

    if (trial->status != SEARCH_FEASIBLE)
        return true;
    if (f->n == c->capacity) {
        /* What is dominated now stays so: only the front of the past is needed. */
        if (f->n > 0 && prune(c, NULL) != CS_OK) {
            c->failed = true;
            return false;
        }
        if (f->n * 2 > c->capacity || c->capacity == 0)
            if (!make_room(c))
                return false;
    }
    double *value = f->value + f->n * f->n_criteria;
    for (size_t i = 0; i < f->n_criteria; i++)
        value[i] = report_criterion_value(f->problem, &f->criterion[i], trial);
    if (!all_finite(value, f->n_criteria))
        return true; /* a design without a price is on no front of prices */
    f->trial[f->n] = *trial;
    memcpy(f->points + f->n * c->n_vars, trial->point, c->n_vars * sizeof *f->points);
    f->n++;
    return true;
}

/* Sorts trials, values and points by the first criterion; the front is small. */
static cs_status sort_front(collector *c, cs_error *err)
{
    report_front *f = c->front;
    const size_t k = f->n_criteria, n = f->n;
    ranked *row = malloc((n + 1) * sizeof *row);
    report_front sorted = *f;
    cs_status status = CS_OK;

    sorted.trial = malloc((n + 1) * sizeof *sorted.trial);
    sorted.points = malloc((n * c->n_vars + 1) * sizeof *sorted.points);
    sorted.value = malloc((n * k + 1) * sizeof *sorted.value);
    if (row == NULL || sorted.trial == NULL || sorted.points == NULL || sorted.value == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory for the front"));
    for (size_t i = 0; i < n; i++)
        row[i] = (ranked){f->value + i * k, 1, i};
    qsort(row, n, sizeof *row, compare_ranked);
    for (size_t i = 0; i < n; i++) {
        const size_t from = row[f->criterion[0].maximize ? n - 1 - i : i].index;
        sorted.trial[i] = f->trial[from];
        memcpy(sorted.points + i * c->n_vars, f->points + from * c->n_vars,
               c->n_vars * sizeof *f->points);
        memcpy(sorted.value + i * k, f->value + from * k, k * sizeof *f->value);
        sorted.trial[i].point = sorted.points + i * c->n_vars;
    }
    const report_front unsorted = *f;
    *f = sorted;
    sorted = unsorted;
done:
    free(sorted.trial);
    free(sorted.points);
    free(sorted.value);
    free(row);
    return status;
}

static void find_knee(report_front *f)
{
    double *minimized = malloc((f->n * f->n_criteria + 1) * sizeof *minimized);

    f->knee = SIZE_MAX;
    if (minimized == NULL)
        return;
    for (size_t i = 0; i < f->n * f->n_criteria; i++)
        minimized[i] = f->criterion[i % f->n_criteria].maximize ? -f->value[i] : f->value[i];
    f->knee = report_front_knee(minimized, f->n, f->n_criteria);
    free(minimized);
}

cs_status report_front_collect(const search_study *study, const char *names, report_front *out,
                               cs_error *err)
{
    collector c = {.front = out};
    cs_status status = CS_OK;

    *out = (report_front){.problem = search_study_problem(study), .knee = SIZE_MAX};
    c.n_vars = psa_space_n_vars(out->problem->space);
    CS_TRY(report_criteria(out->problem, names, out->criterion, &out->n_criteria, err));
    CS_TRY(search_study_each(study, collect, &c, err));
    if (c.failed)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory for the front"));
    CS_TRY(prune(&c, err));
    CS_TRY(sort_front(&c, err));
    find_knee(out);
done:
    if (status != CS_OK)
        report_front_fini(out);
    return status;
}

cs_status report_front_collect_default(const search_study *study, report_front *out, cs_error *err)
{
    cs_status status = CS_OK;

    CS_TRY(report_front_collect(study, "latency,network_cost", out, err));
    if (out->n == 0) { /* a network without a price */
        report_front_fini(out);
        CS_TRY(report_front_collect(study, "latency,peak_memory", out, err));
    }
done:
    return status;
}

void report_front_fini(report_front *front)
{
    free(front->trial);
    free(front->points);
    free(front->value);
    *front = (report_front){.n = 0};
}
