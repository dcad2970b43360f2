/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Composite variables: every solution of `a * b * c == constant` (or a sum) is one value of one
 * variable.  Solutions are found by depth-first search that never leaves the reachable products,
 * so its cost is proportional to their number. */
#include "psa/space_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SOLUTIONS 100000u
#define MAX_REACHABLE 200000u
#define MAX_FAILED    16 /* equalities given up, after which none is tried */
#define ROUNDING      1e-9

/* One equality being enumerated. */
typedef struct {
    const psa_space *space;
    psa__tuple *tuple;
    bool sum;
    bool whole; /* product of whole numbers */
    double target, scale;
    double *reach[PSA__MAX_TUPLE + 1]; /* reach[i]: results of members i.., ascending */
    size_t n_reach[PSA__MAX_TUPLE + 1];
    int32_t at[PSA__MAX_TUPLE];
    int32_t *solution;
    size_t n, capacity;
    bool full, no_memory;
} search;

static int by_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static bool near(const search *s, double a, double b)
{
    return a == b || fabs(a - b) <= ROUNDING * (s->sum ? s->scale : fmax(fabs(a), fabs(b)));
}

static bool may_lead(const search *s, double value)
{
    if (s->sum)
        return true;
    if (value > s->target * (1 + ROUNDING))
        return false;
    return !s->whole || fmod(s->target, value) == 0;
}

/* Merges equal values; returns how many are left. */
static size_t distinct(const search *s, double *value, size_t n)
{
    size_t kept = 0;

    qsort(value, n, sizeof *value, by_double);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || !near(s, value[kept - 1], value[i]))
            value[kept++] = value[i];
    return kept;
}

/* reach[i] from reach[i + 1]; false when there are too many or memory is short. */
static bool step_back(search *s, size_t i)
{
    const psa__raw *raw = &s->space->raw[s->tuple->member[i]];
    size_t next = s->n_reach[i + 1], n = 0;
    double *value;

    if (raw->n * next > MAX_REACHABLE * 16)
        return false;
    value = malloc((raw->n * next + 1) * sizeof *value);
    s->no_memory = value == NULL;
    if (value == NULL)
        return false;
    for (size_t a = 0; a < raw->n; a++)
        for (size_t b = 0; b < next; b++) {
            double x = raw->value[raw->domain[a]], y = s->reach[i + 1][b];
            double r = s->sum ? x + y : x * y;
            if (may_lead(s, r))
                value[n++] = r;
        }
    s->reach[i] = value;
    s->n_reach[i] = distinct(s, value, n);
    return s->n_reach[i] <= MAX_REACHABLE;
}

static bool is_reachable(const search *s, size_t i, double value)
{
    size_t low = 0, high = s->n_reach[i];

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (near(s, s->reach[i][middle], value))
            return true;
        if (s->reach[i][middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static void keep_solution(search *s)
{
    size_t m = s->tuple->n;
    int32_t *grown;

    if (s->n == MAX_SOLUTIONS) {
        s->full = true;
        return;
    }
    grown = cs_room(s->solution, &s->capacity, s->n + 1, m * sizeof *grown);
    if (grown == NULL) {
        s->full = s->no_memory = true;
        return;
    }
    s->solution = grown;
    memcpy(s->solution + s->n++ * m, s->at, m * sizeof *s->at);
}

/* Depth is the number of members, at most PSA__MAX_TUPLE. */
static void descend(search *s, size_t i, double rest)
{
    const psa__raw *raw;

    if (i == s->tuple->n) {
        keep_solution(s);
        return;
    }
    raw = &s->space->raw[s->tuple->member[i]];
    for (size_t k = 0; k < raw->n && !s->full; k++) {
        double value = raw->value[raw->domain[k]];
        double left = s->sum ? rest - value : rest / value;
        if (!is_reachable(s, i + 1, left))
            continue;
        s->at[i] = raw->domain[k];
        descend(s, i + 1, left);
    }
}

/* Enumerates; false when the equality is better kept as a condition. */
static bool enumerate(search *s)
{
    size_t m = s->tuple->n;

    s->whole = !s->sum && s->target == floor(s->target);
    s->scale = fabs(s->target);
    for (size_t i = 0; i < m; i++) {
        const psa__raw *raw = &s->space->raw[s->tuple->member[i]];
        for (size_t k = 0; k < raw->n; k++) {
            double value = raw->value[raw->domain[k]];
            if (!s->sum && !(value > 0))
                return false;
            s->whole = s->whole && value == floor(value);
            s->scale = fmax(s->scale, fabs(value));
        }
    }
    s->reach[m] = malloc(sizeof **s->reach);
    s->no_memory = s->reach[m] == NULL;
    if (s->no_memory)
        return false;
    s->reach[m][0] = s->sum ? 0 : 1;
    s->n_reach[m] = 1;
    for (size_t i = m; i-- > 0;)
        if (!step_back(s, i))
            return false;
    descend(s, 0, s->target);
    return !s->full;
}

/* Members and target of `product or sum of knobs == constant`; false for any other condition. */
static bool matches(const psa__build *build, const psa__node *node, psa__tuple *tuple,
                    double *target)
{
    const psa__node *side, *constant;

    if (node->op != PSA__EQ)
        return false;
    constant = node->arg[node->arg[1]->op == PSA__CONST ? 1 : 0];
    side = node->arg[node->arg[1]->op == PSA__CONST ? 0 : 1];
    if (constant->op != PSA__CONST || (side->op != PSA__MUL && side->op != PSA__ADD) ||
        side->n > PSA__MAX_TUPLE)
        return false;
    *target = constant->value;
    tuple->is_sum = side->op == PSA__ADD;
    tuple->n = 0;
    for (size_t i = 0; i < side->n; i++) {
        const psa__node *arg = side->arg[i];
        if (arg->op == PSA__CONST) {
            *target = tuple->is_sum ? *target - arg->value : *target / arg->value;
            continue;
        }
        if (arg->op != PSA__VAR || build->tuple_of[arg->a] >= 0 ||
            (tuple->n > 0 && tuple->member[tuple->n - 1] == arg->a))
            return false;
        tuple->member[tuple->n++] = arg->a;
    }
    return tuple->n >= 2 && isfinite(*target) && (tuple->is_sum || *target > 0);
}

static int by_index(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return x < y ? -1 : x > y;
}

static cs_status try_tuple(psa__build *build, const psa__condition *condition)
{
    psa__tuple *tuple = &build->tuple[build->n_tuples];
    search s = {.space = build->space, .tuple = tuple};
    cs_status status = CS_OK;
    bool usable;

    if (build->failed_tuples >= MAX_FAILED || !matches(build, condition->node, tuple, &s.target))
        return CS_OK;
    qsort(tuple->member, tuple->n, sizeof *tuple->member, by_index);
    s.sum = tuple->is_sum;
    usable = enumerate(&s);
    if (s.no_memory)
        status = psa__no_memory(build); /* another space would not do */
    build->failed_tuples += !usable;
    if (usable) {
        tuple->n_solutions = s.n;
        tuple->origin = condition->origin;
        tuple->solution =
            cs_arena_alloc(build->arena, (s.n + 1) * tuple->n * sizeof *tuple->solution);
        if (tuple->solution == NULL)
            status = psa__no_memory(build);
        else if (s.n > 0)
            memcpy(tuple->solution, s.solution, s.n * tuple->n * sizeof *tuple->solution);
        for (size_t i = 0; i < tuple->n; i++)
            build->tuple_of[tuple->member[i]] = (int32_t)build->n_tuples;
        build->n_tuples++;
    }
    for (size_t i = 0; i <= tuple->n; i++)
        free(s.reach[i]);
    free(s.solution);
    return status;
}

static bool inside(psa__build *build, const psa__node *node, const psa__tuple *tuple)
{
    memset(build->mark, 0, build->space->n_raws * sizeof *build->mark);
    psa__mark_scope(build, node);
    for (size_t i = 0; i < tuple->n; i++)
        build->mark[tuple->member[i]] = false;
    for (size_t i = 0; i < build->space->n_raws; i++)
        if (build->mark[i])
            return false;
    return true;
}

/* Keeps the solutions that satisfy a condition over members only. */
static cs_status apply(psa__build *build, psa__tuple *tuple, const psa__node *node)
{
    psa__program program;
    psa__env env = {.var = build->x};
    size_t kept = 0;

    if (!psa__compile(build->arena, build->schema->tables, node, &program))
        return psa__no_memory(build);
    for (size_t s = 0; s < tuple->n_solutions; s++) {
        const int32_t *solution = tuple->solution + s * tuple->n;
        for (size_t i = 0; i < tuple->n; i++)
            build->x[tuple->member[i]] = build->space->raw[tuple->member[i]].value[solution[i]];
        if (psa__run(&program, &env) != 0)
            memmove(tuple->solution + kept++ * tuple->n, solution, tuple->n * sizeof *solution);
    }
    tuple->n_solutions = kept;
    return CS_OK;
}

static cs_status filter_by_conditions(psa__build *build, psa__tuple *tuple)
{
    cs_status status = CS_OK;
    size_t kept = 0;

    for (size_t i = 0; i < build->n_conditions; i++) {
        if (inside(build, build->condition[i].node, tuple))
            CS_TRY(apply(build, tuple, build->condition[i].node));
        else
            build->condition[kept++] = build->condition[i];
    }
    build->n_conditions = kept;
done:
    return status;
}

/* Solutions outside the domains go, and values in no solution go. */
static cs_status filter_by_domains(psa__build *build, psa__tuple *tuple, bool *changed)
{
    for (size_t i = 0; i < tuple->n; i++) {
        psa__raw *raw = &build->space->raw[tuple->member[i]];
        size_t kept = 0, n = 0;
        bool *in = cs_arena_alloc(build->arena, raw->n_values);
        bool *used = cs_arena_alloc(build->arena, raw->n_values);
        if (in == NULL || used == NULL)
            return psa__no_memory(build);
        for (size_t k = 0; k < raw->n; k++)
            in[raw->domain[k]] = true;
        for (size_t s = 0; s < tuple->n_solutions; s++) {
            const int32_t *solution = tuple->solution + s * tuple->n;
            if (!in[solution[i]])
                continue;
            used[solution[i]] = true;
            memmove(tuple->solution + kept++ * tuple->n, solution, tuple->n * sizeof *solution);
        }
        tuple->n_solutions = kept;
        for (size_t k = 0; k < raw->n; k++)
            if (used[raw->domain[k]])
                raw->domain[n++] = raw->domain[k];
        if (n != raw->n)
            raw->stamp = ++build->clock;
        *changed = *changed || n != raw->n;
        raw->n = n;
    }
    if (tuple->n_solutions == 0)
        build->unsatisfiable = true;
    return CS_OK;
}

cs_status psa__find_tuples(psa__build *build)
{
    cs_status status = CS_OK;
    bool changed = true;

    while (changed && !build->unsatisfiable) {
        changed = false;
        for (size_t i = 0; i < build->n_conditions; i++)
            CS_TRY(try_tuple(build, &build->condition[i]));
        for (size_t t = 0; t < build->n_tuples && !build->unsatisfiable; t++) {
            CS_TRY(filter_by_conditions(build, &build->tuple[t]));
            CS_TRY(filter_by_domains(build, &build->tuple[t], &changed));
        }
        if (changed && !build->unsatisfiable)
            CS_TRY(psa__propagate(build));
    }
done:
    return status;
}
