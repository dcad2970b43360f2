/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Propagation: conditions over constants vanish, those over one knob filter its values, equalities
 * with a constant replace the expression elsewhere (product(network.npus) == 2048 makes every
 * other product of the network's NPUs the number 2048). */
#include "psa/space_private.h"

#include <math.h>
#include <string.h>

#define MAX_ROUNDS 12
#define MAX_UNARY  1e6
#define MAX_SWEEP  1024 /* combinations of a condition over more than three knobs */

size_t psa__scope(psa__build *build, const psa__node *node, int32_t *list)
{
    size_t n = 0;

    memset(build->mark, 0, build->space->n_raws * sizeof *build->mark);
    psa__mark_scope(build, node);
    for (size_t i = 0; i < build->space->n_raws; i++)
        if (build->mark[i])
            list[n++] = (int32_t)i;
    return n;
}

void psa__mark_scope(psa__build *build, const psa__node *node)
{
    if (node->op == PSA__VAR)
        build->mark[node->a] = true;
    for (size_t i = 0; i < node->n; i++)
        psa__mark_scope(build, node->arg[i]);
}

double psa__combinations(const psa__build *build, const int32_t *list, size_t n)
{
    double product = 1;

    for (size_t i = 0; i < n; i++)
        product *= (double)build->space->raw[list[i]].n;
    return product > 1e18 ? HUGE_VAL : product;
}

/* The constant that a sum or product is known to be, when its known part covers some arguments:
 * MUL(a, b, c) with MUL(a, b) == 6 known is MUL(6, c). */
static const psa__node *replace_part(psa__build *build, const psa__node *node,
                                     const psa__node *known, double value)
{
    const psa__node **arg;
    size_t n = 0, used = 0;

    if (!psa__is_associative(node->op) || node->op != known->op || node->n < known->n)
        return NULL;
    arg = cs_arena_alloc(build->arena, (node->n + 1) * sizeof *arg);
    if (arg == NULL)
        return NULL;
    for (size_t i = 0; i < node->n; i++) {
        if (used < known->n && node->arg[i] == known->arg[used])
            used++;
        else
            arg[n++] = node->arg[i];
    }
    if (used < known->n)
        return NULL;
    arg[n++] = psa__const(&build->pool, value);
    return arg[n - 1] == NULL ? NULL : psa__make(&build->pool, node->op, n, arg);
}

static const psa__node *simplify(psa__build *build, const psa__node *node, const void *own)
{
    const psa__raw *raw;
    const psa__node *part;

    if (node->op == PSA__VAR) {
        raw = &build->space->raw[node->a];
        return raw->n == 1 ? psa__const(&build->pool, raw->value[raw->domain[0]]) : node;
    }
    if (node->n == 0)
        return node;
    for (size_t i = 0; i < build->n_equal; i++) {
        if (build->equal[i] == own)
            continue;
        if (build->equal[i] == node)
            return psa__const(&build->pool, build->equal_value[i]);
        part = replace_part(build, node, build->equal[i], build->equal_value[i]);
        if (part != NULL)
            return psa__rewrite(build, part, simplify, own);
    }
    return NULL;
}

/* x of EQ(x, constant), NULL for anything else. */
static const psa__node *equal_side(const psa__node *node, double *value)
{
    int constant;

    if (node->op != PSA__EQ)
        return NULL;
    constant = node->arg[1]->op == PSA__CONST ? 1 : node->arg[0]->op == PSA__CONST ? 0 : -1;
    if (constant < 0 || node->arg[1 - constant]->n == 0)
        return NULL;
    *value = node->arg[constant]->value;
    return node->arg[1 - constant];
}

static cs_status note_equality(psa__build *build, const psa__node *node)
{
    double value = 0;
    const psa__node *side = equal_side(node, &value);

    if (side == NULL)
        return CS_OK;
    for (size_t i = 0; i < build->n_equal; i++)
        if (build->equal[i] == side)
            return CS_OK;
    if (!psa__grow(build->arena, (void **)&build->equal, &build->equal_capacity, build->n_equal,
                   sizeof *build->equal) ||
        !psa__grow(build->arena, (void **)&build->equal_value, &build->equal_value_capacity,
                   build->n_equal, sizeof *build->equal_value))
        return psa__no_memory(build);
    build->equal[build->n_equal] = side;
    build->equal_value[build->n_equal++] = value;
    return CS_OK;
}

/* Enumerates the values of `n` raws, telling which are in some true combination. */
typedef struct {
    size_t n;
    const int32_t *list;
    size_t at[PSA__MAX_TUPLE];
    bool all_true, any_true;
    bool *support[PSA__MAX_TUPLE];
} sweep;

static void sweep_run(psa__build *build, const psa__program *program, sweep *s)
{
    psa__env env = {.var = build->x};
    size_t i = 0;

    memset(s->at, 0, sizeof s->at);
    for (size_t k = 0; k < s->n; k++) {
        const psa__raw *raw = &build->space->raw[s->list[k]];
        build->x[s->list[k]] = raw->value[raw->domain[0]];
    }
    do {
        bool holds = psa__run(program, &env) != 0;
        s->all_true = s->all_true && holds;
        s->any_true = s->any_true || holds;
        for (size_t k = 0; k < s->n && holds; k++)
            s->support[k][s->at[k]] = true;
        for (i = 0; i < s->n; i++) {
            const psa__raw *raw = &build->space->raw[s->list[i]];
            s->at[i] = s->at[i] + 1 == raw->n ? 0 : s->at[i] + 1;
            build->x[s->list[i]] = raw->value[raw->domain[s->at[i]]];
            if (s->at[i] != 0)
                break;
        }
    } while (i < s->n);
}

static bool keep_supported(psa__build *build, psa__raw *raw, const bool *support)
{
    size_t n = 0;

    for (size_t i = 0; i < raw->n; i++)
        if (support[i])
            raw->domain[n++] = raw->domain[i];
    if (n == raw->n)
        return false;
    raw->n = n;
    raw->stamp = ++build->clock;
    return true;
}

/* Whether a domain has changed since a condition last filtered. */
static bool is_stale(const psa__build *build, size_t stamp, const int32_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (build->space->raw[list[i]].stamp > stamp)
            return true;
    return stamp == 0;
}

/* Filters the values of the raws of a small condition; *drop when nothing is left to check. */
static cs_status filter(psa__build *build, const psa__node *node, const int32_t *list, size_t n,
                        bool *drop, bool *changed)
{
    psa__program program;
    sweep s = {.n = n, .list = list, .all_true = true};

    if (!psa__compile(build->arena, build->schema->tables, node, &program))
        return psa__no_memory(build);
    for (size_t k = 0; k < n; k++) {
        s.support[k] = cs_arena_alloc(build->arena, build->space->raw[list[k]].n);
        if (s.support[k] == NULL)
            return psa__no_memory(build);
    }
    sweep_run(build, &program, &s);
    if (!s.any_true)
        build->unsatisfiable = true;
    *drop = s.all_true || n == 1 || !s.any_true;
    for (size_t k = 0; k < n && s.any_true; k++)
        *changed = keep_supported(build, &build->space->raw[list[k]], s.support[k]) || *changed;
    return CS_OK;
}

/* One condition: simplified, taken apart at `and`, used to filter.  It is written back, or gone. */
static cs_status treat(psa__build *build, psa__condition condition, bool *changed)
{
    cs_status status = CS_OK;
    double value = 0;
    const psa__node *own = equal_side(condition.node, &value);
    const psa__node *node = psa__rewrite(build, condition.node, simplify, own);
    int32_t *list;
    size_t n;
    double combinations;
    bool drop = false, small;

    if (node == NULL)
        return psa__no_memory(build);
    *changed = *changed || node != condition.node;
    if (node->op == PSA__CONST) {
        build->unsatisfiable = build->unsatisfiable || node->value == 0;
        return CS_OK;
    }
    if (node->op == PSA__AND) {
        for (size_t i = 0; i < node->n; i++)
            CS_TRY(treat(build, (psa__condition){node->arg[i], condition.origin, 0}, changed));
        return CS_OK;
    }
    list = cs_arena_alloc(build->arena, (build->space->n_raws + 1) * sizeof *list);
    if (list == NULL)
        return psa__no_memory(build);
    n = psa__scope(build, node, list);
    combinations = psa__combinations(build, list, n);
    small = (n == 1 && combinations <= MAX_UNARY) || (n <= 3 && combinations <= PSA__DIRECT) ||
            (n <= PSA__MAX_TUPLE && combinations <= MAX_SWEEP);
    if (small && is_stale(build, node == condition.node ? condition.stamp : 0, list, n))
        CS_TRY(filter(build, node, list, n, &drop, changed));
    if (drop)
        return CS_OK;
    CS_TRY(note_equality(build, node));
    if (!psa__add_condition(build, node, condition.origin))
        return psa__no_memory(build);
    build->condition[build->n_conditions - 1].stamp = ++build->clock;
done:
    return status;
}

cs_status psa__propagate(psa__build *build)
{
    cs_status status = CS_OK;
    bool changed = true;

    for (int round = 0; round < MAX_ROUNDS && changed && !build->unsatisfiable; round++) {
        psa__condition *old = build->condition;
        size_t n = build->n_conditions;
        changed = false;
        build->condition = NULL;
        build->n_conditions = build->conditions_capacity = 0;
        build->n_equal = 0;
        for (size_t i = 0; i < n; i++)
            CS_TRY(note_equality(build, old[i].node));
        for (size_t i = 0; i < n && !build->unsatisfiable; i++)
            CS_TRY(treat(build, old[i], &changed));
    }
done:
    return status;
}
