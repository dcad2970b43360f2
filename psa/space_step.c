/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Steps of a condition taken apart: an operator is tabulated over all combinations of its operands
 * and becomes a table, or a new variable that is a function of them. */
#include "psa/network_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t psa__operand_card(const psa__build *build, const psa__operand *arg)
{
    return arg->net < 0 ? 1 : (size_t)build->space->net[arg->net].card;
}

double psa__operand_value(const psa__build *build, const psa__operand *arg, size_t index)
{
    return arg->net < 0 ? arg->constant : build->space->net[arg->net].value[index];
}

/* Tabulates the operator over all combinations of its operands. The caller frees result. */
static cs_status run_step(psa__build *build, psa__step *s)
{
    cs_status status;
    double rows = 1, value[PSA__MAX_TUPLE];
    size_t at[PSA__MAX_TUPLE] = {0};
    psa__env env = {.var = build->x};

    for (size_t i = 0; i < s->n; i++)
        rows *= (double)psa__operand_card(build, &s->arg[i]);
    if (rows > PSA__MAX_ROWS)
        return psa__table_too_large(build, s->origin);
    CS_TRY(psa__count_work(build, (size_t)rows, s->origin));
    s->n_rows = (size_t)rows;
    s->result = malloc((s->n_rows + 1) * sizeof *s->result);
    if (s->result == NULL)
        return psa__no_memory(build);
    for (size_t i = 0; i < s->n; i++) {
        value[i] = psa__operand_value(build, &s->arg[i], 0);
        if (s->program != NULL)
            build->x[s->raw[i]] = value[i];
    }
    for (size_t r = 0; r < s->n_rows; r++) {
        s->result[r] =
            s->program != NULL ? psa__run(s->program, &env) : psa__apply(s->op, s->n, value);
        for (size_t i = 0; i < s->n; i++) {
            at[i] = at[i] + 1 == psa__operand_card(build, &s->arg[i]) ? 0 : at[i] + 1;
            value[i] = psa__operand_value(build, &s->arg[i], at[i]);
            if (s->program != NULL)
                build->x[s->raw[i]] = value[i];
            if (at[i] != 0)
                break;
        }
    }
done:
    return status;
}

/* First operand with the same net: one net may be used twice, as in x * x. */
static int32_t first_use(const psa__step *s, size_t i)
{
    size_t k = 0;

    while (k < i && (s->arg[i].net < 0 || s->arg[k].net != s->arg[i].net))
        k++;
    return (int32_t)k;
}

/* Table of the rows that `keep` marks; `index` (or NULL) gives the value of one more column. */
cs_status psa__emit_rows(psa__build *build, const psa__step *s, const bool *keep, int32_t out,
                         const int32_t *index)
{
    psa__factor factor = {.origin = s->origin, .bucket = -1};
    size_t kept = 0, at[PSA__MAX_TUPLE] = {0}, n = 0;
    int32_t column[PSA__MAX_TUPLE], twin[PSA__MAX_TUPLE];

    for (size_t r = 0; r < s->n_rows; r++)
        kept += keep[r];
    factor.scope = cs_arena_alloc(build->arena, (s->n + 1) * sizeof *factor.scope);
    if (factor.scope == NULL)
        return psa__no_memory(build);
    for (size_t i = 0; i < s->n; i++) {
        twin[i] = first_use(s, i);
        if (s->arg[i].net >= 0 && twin[i] == (int32_t)i) {
            column[n] = (int32_t)i;
            factor.scope[n++] = s->arg[i].net;
        }
    }
    if (index != NULL)
        factor.scope[n] = out;
    factor.n_scope = (uint32_t)(n + (index != NULL));
    factor.row = cs_arena_alloc(build->arena, (kept * factor.n_scope + 1) * sizeof *factor.row);
    if (factor.row == NULL)
        return psa__no_memory(build);
    for (size_t r = 0; r < s->n_rows; r++) {
        int32_t *row = factor.row + factor.n_rows * factor.n_scope;
        bool wanted = keep[r];
        for (size_t i = 0; i < s->n && wanted; i++)
            wanted = at[i] == at[twin[i]];
        for (size_t i = 0; i < n && wanted; i++)
            row[i] = (int32_t)at[column[i]];
        if (wanted && index != NULL)
            row[n] = index[r];
        factor.n_rows += wanted;
        for (size_t i = 0; i < s->n; i++) {
            at[i] = at[i] + 1 == psa__operand_card(build, &s->arg[i]) ? 0 : at[i] + 1;
            if (at[i] != 0)
                break;
        }
    }
    if (factor.n_rows == 0)
        build->unsatisfiable = true;
    return factor.n_scope == 0 ? CS_OK : psa__add_factor(build, &factor);
}

/* The rows where a condition holds. */
cs_status psa__require_step(psa__build *build, psa__step *s)
{
    cs_status status;
    bool *keep = NULL, all = true;

    CS_TRY(run_step(build, s));
    keep = malloc(s->n_rows + 1);
    if (keep == NULL) {
        status = psa__no_memory(build);
        goto done;
    }
    for (size_t r = 0; r < s->n_rows; r++) {
        keep[r] = s->result[r] != 0;
        all = all && keep[r];
    }
    if (!all)
        CS_TRY(psa__emit_rows(build, s, keep, -1, NULL));
done:
    free(keep);
    free(s->result);
    return status;
}

static int by_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Ascending distinct results, then maybe one that is not a number. The caller frees. */
static double *distinct(const psa__step *s, size_t *n)
{
    double *value = malloc((s->n_rows + 2) * sizeof *value);
    size_t kept = 0, numbers = 0;

    if (value == NULL)
        return NULL;
    for (size_t r = 0; r < s->n_rows; r++)
        if (!isnan(s->result[r]))
            value[numbers++] = s->result[r];
    qsort(value, numbers, sizeof *value, by_double);
    for (size_t i = 0; i < numbers; i++)
        if (kept == 0 || !psa__same(value[kept - 1], value[i]))
            value[kept++] = value[i];
    if (numbers < s->n_rows)
        value[kept++] = NAN;
    *n = kept;
    return value;
}

static int32_t find(const double *value, size_t n, double x)
{
    size_t low = 0, high = n;

    if (n > 0 && isnan(value[n - 1])) {
        high = n - 1;
        if (isnan(x))
            return (int32_t)high;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (psa__same(value[middle], x))
            return (int32_t)middle;
        if (value[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

void psa__indexed_fini(psa__indexed *indexed)
{
    free(indexed->value);
    free(indexed->index);
}

cs_status psa__index_results(psa__build *build, const psa__step *s, psa__indexed *out)
{
    out->value = distinct(s, &out->n);
    out->index = malloc((s->n_rows + 1) * sizeof *out->index);
    if (out->value == NULL || out->index == NULL)
        return psa__no_memory(build);
    for (size_t r = 0; r < s->n_rows; r++)
        out->index[r] = find(out->value, out->n, s->result[r]);
    return CS_OK;
}

/* New net that is the function of the step's operands; `alive` (or NULL) says which values may
 * occur. */
cs_status psa__emit_function(psa__build *build, const psa__step *s, psa__indexed *results,
                             const bool *alive, int32_t *out)
{
    cs_status status;
    psa_space *space = build->space;
    int32_t net, *renumber = NULL, kept = 0;
    size_t n = results->n;
    int32_t *index = results->index;
    bool *keep = malloc(s->n_rows + 1);
    double *copy = cs_arena_alloc(space->arena, (n + 1) * sizeof *copy);
    int32_t *table = cs_arena_alloc(space->arena, (s->n_rows + 1) * sizeof *table);

    renumber = malloc((n + 1) * sizeof *renumber);
    if (keep == NULL || copy == NULL || table == NULL || renumber == NULL) {
        status = psa__no_memory(build);
        goto done;
    }
    for (size_t i = 0; i < n; i++) {
        renumber[i] = alive == NULL || alive[i] ? kept : -1;
        if (renumber[i] >= 0)
            copy[kept++] = results->value[i];
    }
    for (size_t r = 0; r < s->n_rows; r++) {
        index[r] = index[r] < 0 ? -1 : renumber[index[r]];
        keep[r] = index[r] >= 0;
        table[r] = index[r];
    }
    net = psa__add_net(build, kept);
    if (net < 0) {
        status = psa__too_many_nets(build, s->origin);
        goto done;
    }
    space->net[net].value = copy;
    space->net[net].table = table;
    for (size_t i = 0; i < s->n; i++)
        if (s->arg[i].net >= 0)
            space->net[net].arg[space->net[net].n_args++] = s->arg[i].net;
    *out = net;
    CS_TRY(psa__emit_rows(build, s, keep, net, index));
done:
    free(keep);
    free(renumber);
    return status;
}

cs_status psa__function_of(psa__build *build, psa__step *s, int32_t *out)
{
    cs_status status;
    psa__indexed results = {NULL, 0, NULL};

    CS_TRY(run_step(build, s));
    CS_TRY(psa__index_results(build, s, &results));
    CS_TRY(psa__emit_function(build, s, &results, NULL, out));
done:
    psa__indexed_fini(&results);
    free(s->result);
    return status;
}
