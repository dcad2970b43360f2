/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which trials a page must show: the best, the improvements, the fronts; and an even choice of the
 * others when they are too many. */
#include "report/html_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whether row a is better than row b: objective, then network cost, sum of bandwidth, memory, id,
 * as search_trial_compare has it. */
static bool better(const html__rows *rows, size_t a, size_t b)
{
    static const size_t ties[] = {2, 1, 3}; /* of html__results */

    if (rows->key[a] != rows->key[b])
        return rows->key[a] < rows->key[b];
    for (size_t i = 0; i < CS_COUNT(ties); i++) {
        const double x = rows->result[ties[i]][a], y = rows->result[ties[i]][b];
        if (x != y && !(isnan(x) && isnan(y)))
            return isnan(y) || x < y;
    }
    return a < b;
}

static void find_top(const html__rows *rows, html__marks *marks)
{
    for (size_t i = 0; i < rows->n; i++) {
        size_t at = marks->n_top;
        if (!isfinite(rows->key[i]))
            continue;
        if (at == HTML_TOP && !better(rows, i, marks->top[at - 1]))
            continue;
        if (at < HTML_TOP)
            marks->n_top++;
        else
            at--;
        for (; at > 0 && better(rows, i, marks->top[at - 1]); at--)
            marks->top[at] = marks->top[at - 1];
        marks->top[at] = i;
    }
}

static void find_nearest(const html__rows *rows, html__marks *marks)
{
    for (size_t i = 0; i < rows->n && marks->n_top == 0; i++) {
        size_t at = marks->n_nearest;
        if (rows->status[i] != SEARCH_INFEASIBLE || !isfinite(rows->violation[i]))
            continue;
        if (at == HTML_NEAREST && rows->violation[i] >= rows->violation[marks->nearest[at - 1]])
            continue;
        if (at < HTML_NEAREST)
            marks->n_nearest++;
        else
            at--;
        for (; at > 0 && rows->violation[i] < rows->violation[marks->nearest[at - 1]]; at--)
            marks->nearest[at] = marks->nearest[at - 1];
        marks->nearest[at] = i;
    }
}

static bool find_improvements(const html__rows *rows, html__marks *marks)
{
    double best = INFINITY;

    marks->improvement = malloc((rows->n + 1) * sizeof *marks->improvement);
    if (marks->improvement == NULL)
        return false;
    for (size_t i = 0; i < rows->n; i++) {
        if (!(rows->key[i] < best))
            continue;
        best = rows->key[i];
        marks->improvement[marks->n_improvements++] = i;
    }
    return true;
}

/* Values of metrics a and b of every row, NAN unless feasible. */
static void fill_pair(const html__rows *rows, size_t a, size_t b, double *values)
{
    for (size_t i = 0; i < rows->n; i++) {
        const bool ok = rows->status[i] == SEARCH_FEASIBLE;
        values[2 * i] = ok ? rows->result[a][i] : NAN;
        values[2 * i + 1] = ok ? rows->result[b][i] : NAN;
    }
}

static int by_first_value(const void *x, const void *y)
{
    const double *a = *(const double *const *)x, *b = *(const double *const *)y;

    if (a[0] != b[0])
        return a[0] < b[0] ? -1 : 1;
    return a < b ? -1 : a > b;
}

static cs_status find_front(const html__rows *rows, html__marks *marks, size_t a, size_t b,
                            cs_error *err)
{
    const size_t at = marks->n_fronts++;
    double *values = malloc((2 * rows->n + 2) * sizeof *values);
    double *of_front = malloc((2 * rows->n + 2) * sizeof *of_front);
    const double **order = malloc((rows->n + 1) * sizeof *order);
    bool *marked = malloc(rows->n + 1);
    cs_status status = CS_OK;
    size_t n = 0;

    marks->front[at].a = a;
    marks->front[at].b = b;
    marks->front[at].row = malloc((rows->n + 1) * sizeof *marks->front[at].row);
    if (values == NULL || of_front == NULL || order == NULL || marked == NULL ||
        marks->front[at].row == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory for a front"));
    fill_pair(rows, a, b, values);
    CS_TRY(report_front_mark(values, rows->n, 2, marked, err));
    for (size_t i = 0; i < rows->n; i++)
        if (marked[i])
            order[n++] = values + 2 * i;
    qsort(order, n, sizeof *order, by_first_value);
    for (size_t i = 0; i < n; i++) {
        marks->front[at].row[i] = (size_t)(order[i] - values) / 2;
        memcpy(of_front + 2 * i, order[i], 2 * sizeof *of_front);
    }
    marks->front[at].n = n;
    marks->front[at].knee = report_front_knee(of_front, n, 2);
done:
    free(marked);
    free(order);
    free(of_front);
    free(values);
    return status;
}

/* Name of a metric as objectives and limits call it. */
static const char *metric_name(size_t metric)
{
    static const char *const names[HTML_N_METRICS] = {"latency", "bandwidth", "network_cost",
                                                      "peak_memory", "energy"};

    return names[metric];
}

/* The pair of metrics shown first: latency against the first that trades off with it. */
static const char *default_front(const html__marks *marks, char names[64])
{
    static const size_t against[] = {2, 1, 3, 4};
    size_t b = 3;

    for (size_t i = CS_COUNT(against); i-- > 0;)
        for (size_t f = 0; f < marks->n_fronts; f++)
            if (marks->front[f].a == 0 && marks->front[f].b == against[i] && marks->front[f].n > 1)
                b = against[i];
    snprintf(names, 64, "%s,%s", metric_name(0), metric_name(b));
    return names;
}

static size_t row_of(const html__rows *rows, uint64_t id)
{
    size_t low = 0, high = rows->n;

    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (rows->id[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static cs_status find_asked(const html__rows *rows, const char *front, html__marks *marks,
                            cs_error *err)
{
    cs_status status = CS_OK;
    char names[64];

    CS_TRY(report_front_collect(rows->source->study,
                                front != NULL ? front : default_front(marks, names), &marks->asked,
                                err));
    marks->asked_row = malloc((marks->asked.n + 1) * sizeof *marks->asked_row);
    if (marks->asked_row == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory for a front"));
    for (size_t i = 0; i < marks->asked.n; i++)
        marks->asked_row[i] = row_of(rows, marks->asked.trial[i].id);
done:
    return status;
}

cs_status html__marks_find(const html__rows *rows, const char *front, html__marks *marks,
                           cs_error *err)
{
    cs_status status = CS_OK;

    *marks = (html__marks){.n_top = 0};
    find_top(rows, marks);
    find_nearest(rows, marks);
    if (!find_improvements(rows, marks))
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory"));
    for (size_t a = 0; a < HTML_N_METRICS; a++)
        for (size_t b = a + 1; b < HTML_N_METRICS; b++)
            CS_TRY(find_front(rows, marks, a, b, err));
    CS_TRY(find_asked(rows, front, marks, err));
done:
    return status;
}

void html__marks_fini(html__marks *marks)
{
    free(marks->improvement);
    free(marks->asked_row);
    report_front_fini(&marks->asked);
    for (size_t i = 0; i < marks->n_fronts; i++)
        free(marks->front[i].row);
    *marks = (html__marks){.n_top = 0};
}

static void mark_all(const html__rows *rows, const html__marks *marks)
{
    for (size_t i = 0; i < marks->n_top; i++)
        rows->shown[marks->top[i]] = true;
    for (size_t i = 0; i < marks->n_nearest; i++)
        rows->shown[marks->nearest[i]] = true;
    for (size_t i = 0; i < marks->n_improvements; i++)
        rows->shown[marks->improvement[i]] = true;
    for (size_t f = 0; f < marks->n_fronts; f++)
        for (size_t i = 0; i < marks->front[f].n; i++)
            rows->shown[marks->front[f].row[i]] = true;
    for (size_t i = 0; i < marks->asked.n; i++)
        rows->shown[marks->asked_row[i]] = true;
}

cs_status html__rows_thin(html__rows *rows, const html__marks *marks, size_t most, cs_error *err)
{
    size_t needed = 0, seen = 0;

    rows->shown = calloc(rows->n + 1, sizeof *rows->shown);
    rows->row = calloc(rows->n + 1, sizeof *rows->row);
    if (rows->shown == NULL || rows->row == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    mark_all(rows, marks);
    for (size_t i = 0; i < rows->n; i++)
        needed += rows->shown[i];
    const size_t others = rows->n - needed, room = most > needed ? most - needed : 0;
    /* The j-th of the others is taken when j * room / others steps on a new integer. */
    for (size_t i = 0; i < rows->n; i++) {
        if (!rows->shown[i] && room > 0) {
            rows->shown[i] = room >= others || (seen + 1) * room / others > seen * room / others;
            seen++;
        }
        rows->row[i] = (uint32_t)rows->n_shown;
        rows->n_shown += rows->shown[i];
    }
    return CS_OK;
}
