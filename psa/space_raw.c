/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Raws and conditions: the schema's expressions with constants put in and knobs as variables. */
#include "psa/space_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cs_status psa__no_memory(psa__build *build)
{
    if (build->pool.too_large)
        return cs_fail(build->err, CS_ESCHEMA, "%s: an expression is too large",
                       cs_doc_path(build->schema->doc));
    return cs_fail(build->err, CS_ENOMEM, "design space");
}

bool psa__add_condition(psa__build *build, const psa__node *node, int32_t origin)
{
    psa__condition *condition;

    if (node == NULL ||
        !psa__grow(build->arena, (void **)&build->condition, &build->conditions_capacity,
                   build->n_conditions, sizeof *build->condition))
        return false;
    condition = &build->condition[build->n_conditions++];
    condition->node = node;
    condition->origin = origin;
    condition->stamp = 0;
    return true;
}

typedef struct {
    double value;
    int32_t index;
} level;

static int by_value(const void *a, const void *b)
{
    const double x = ((const level *)a)->value, y = ((const level *)b)->value;

    return x < y ? -1 : x > y;
}

/* Domain: file indices, ascending by value where values have an order. */
static bool fill_domain(cs_arena *arena, psa__raw *raw)
{
    level *sorted;

    raw->n = raw->n_values;
    raw->domain = cs_arena_alloc(arena, raw->n * sizeof *raw->domain);
    sorted = malloc(raw->n * sizeof *sorted);
    if (raw->domain == NULL || sorted == NULL) {
        free(sorted);
        return false;
    }
    for (size_t i = 0; i < raw->n; i++) {
        sorted[i].value = raw->value[i];
        sorted[i].index = (int32_t)i;
    }
    if (raw->ordered)
        qsort(sorted, raw->n, sizeof *sorted, by_value);
    for (size_t i = 0; i < raw->n; i++)
        raw->domain[i] = sorted[i].index;
    free(sorted);
    return true;
}

cs_status psa__restore_domains(psa__build *build)
{
    for (size_t i = 0; i < build->space->n_raws; i++)
        if (!fill_domain(build->space->arena, &build->space->raw[i]))
            return psa__no_memory(build);
    return CS_OK;
}

static bool fill_raw(psa__build *build, psa__raw *raw, const psa__knob *knob, size_t elem)
{
    cs_arena *arena = build->space->arena;

    raw->knob = knob;
    raw->elem = elem;
    raw->ordered = psa__field_is_number(knob->field);
    raw->n_values = knob->fixed[elem] ? 1 : knob->n_values;
    raw->value = knob->value;
    if (knob->fixed[elem]) {
        raw->value = cs_arena_alloc(arena, sizeof *raw->value);
        if (raw->value == NULL)
            return false;
        raw->value[0] = knob->fixed_value[elem];
    }
    if (knob->per_dimension)
        (void)snprintf(raw->name, sizeof raw->name, "%.80s[%zu]", knob->field->path, elem + 1);
    else
        (void)snprintf(raw->name, sizeof raw->name, "%.90s", knob->field->path);
    return fill_domain(arena, raw);
}

cs_status psa__build_raws(psa__build *build)
{
    psa_space *space = build->space;
    const psa_schema *schema = build->schema;
    size_t n = 0;

    for (size_t k = 0; k < schema->n_knobs; k++)
        n += schema->knob[k].n_elems;
    if (n > PSA__MAX_NETS)
        return cs_fail(build->err, CS_ESCHEMA, "%s: %zu knobs, counted per dimension; at most %u",
                       cs_doc_path(schema->doc), n, PSA__MAX_NETS);
    space->raw = cs_arena_alloc(space->arena, (n + 1) * sizeof *space->raw);
    build->x = cs_arena_alloc(build->arena, (n + 1) * sizeof *build->x);
    build->mark = cs_arena_alloc(build->arena, (n + 1) * sizeof *build->mark);
    build->tuple_of = cs_arena_alloc(build->arena, (n + 1) * sizeof *build->tuple_of);
    build->raw_net = cs_arena_alloc(build->arena, (n + 1) * sizeof *build->raw_net);
    build->tuple = cs_arena_alloc(build->arena, (n + 1) * sizeof *build->tuple);
    build->tuple_net = cs_arena_alloc(build->arena, (n + 1) * sizeof *build->tuple_net);
    if (space->raw == NULL || build->x == NULL || build->mark == NULL || build->tuple_of == NULL ||
        build->raw_net == NULL || build->tuple == NULL || build->tuple_net == NULL)
        return psa__no_memory(build);
    space->raw_points = 1;
    for (size_t k = 0; k < schema->n_knobs; k++)
        for (size_t e = 0; e < schema->knob[k].n_elems; e++) {
            psa__raw *raw = &space->raw[space->n_raws];
            if (!fill_raw(build, raw, &schema->knob[k], e))
                return psa__no_memory(build);
            build->tuple_of[space->n_raws] = build->raw_net[space->n_raws] = -1;
            space->n_raws++;
            if (!cs_u128_mul(space->raw_points, raw->n_values, &space->raw_points))
                return cs_fail(build->err, CS_ESCHEMA, "%s: the space has over 2^128 raw points",
                               cs_doc_path(schema->doc));
        }
    return CS_OK;
}

/* Raw that sets element d of a field, -1: a constant. */
static int32_t raw_of(const psa__build *build, int32_t field, int32_t d)
{
    for (size_t i = 0; i < build->space->n_raws; i++) {
        const psa__raw *raw = &build->space->raw[i];
        if ((int32_t)raw->knob->field_index == field &&
            (!raw->knob->per_dimension || (int32_t)raw->elem == d))
            return (int32_t)i;
    }
    return -1;
}

const psa__node *psa__rewrite(psa__build *build, const psa__node *node, psa__replace_fn replace,
                              const void *context)
{
    const psa__node *found = replace(build, node, context);
    const psa__node **arg;

    if (found != NULL || node->n == 0)
        return found;
    arg = cs_arena_alloc(build->arena, node->n * sizeof *arg);
    if (arg == NULL)
        return NULL;
    for (size_t i = 0; i < node->n; i++) {
        arg[i] = psa__rewrite(build, node->arg[i], replace, context);
        if (arg[i] == NULL)
            return NULL;
    }
    return psa__make(&build->pool, node->op, node->n, arg);
}

/* Facts and fixed fields become constants, knobs variables. */
static const psa__node *import_leaf(psa__build *build, const psa__node *node, const void *facts)
{
    const psa_field *field;
    int32_t raw;

    switch (node->op) {
    case PSA__CONST:
        return psa__const(&build->pool, node->value);
    case PSA__FACT:
        return psa__const(&build->pool, ((const double *)facts)[node->a]);
    case PSA__FIELD:
        raw = raw_of(build, node->a, node->b);
        if (raw >= 0)
            return psa__leaf(&build->pool, PSA__VAR, raw, 0);
        field = &build->schema->tables->fields[node->a];
        return psa__const(&build->pool,
                          psa__field_get(field, build->schema->baseline, (size_t)node->b));
    default:
        return NULL;
    }
}

static const psa__node *import(psa__build *build, const psa__node *node, const double *facts)
{
    return psa__rewrite(build, node, import_leaf, facts);
}

/* A knob has an effect while its `when` holds and, for some, its dimension is larger than 1. */
static const psa__node *activity(psa__build *build, const psa__raw *raw)
{
    const psa_schema *schema = build->schema;
    const psa__knob *knob = raw->knob;
    const double *facts = psa__facts_of(schema, 0);
    const psa__node *active = psa__const(&build->pool, 1), *sized;
    psa__node npus = {.op = PSA__FIELD, .a = (int32_t)schema->count_field, .b = (int32_t)raw->elem};

    if (knob->when[raw->elem] != NULL)
        active = import(build, knob->when[raw->elem], facts);
    if (active == NULL || !knob->field->inactive_on_size_one || !knob->per_dimension ||
        schema->count_field == SIZE_MAX)
        return active;
    sized =
        psa__make2(&build->pool, PSA__NE, import(build, &npus, facts), psa__const(&build->pool, 1));
    return psa__make2(&build->pool, PSA__AND, active, sized);
}

static cs_status add_activity(psa__build *build, size_t i)
{
    psa_space *space = build->space;
    psa__raw *raw = &space->raw[i];
    const psa__node *active = activity(build, raw), *first;
    psa__pool *pool = &build->pool;

    if (active == NULL)
        return psa__no_memory(build);
    if (active->op == PSA__CONST && active->value != 0)
        return CS_OK;
    raw->active = active;
    raw->scope = cs_arena_alloc(space->arena, space->n_raws * sizeof *raw->scope);
    if (raw->scope == NULL ||
        !psa__compile(space->arena, build->schema->tables, active, &raw->active_program))
        return psa__no_memory(build);
    raw->n_scope = psa__scope(build, active, raw->scope);
    first = psa__make2(pool, PSA__EQ, psa__leaf(pool, PSA__VAR, (int32_t)i, 0),
                       psa__const(pool, raw->value[0]));
    if (!psa__add_condition(build, psa__make2(pool, PSA__OR, active, first), -1))
        return psa__no_memory(build);
    return CS_OK;
}

/* A configuration with every constant in it, to explain what is false on constants alone. */
static void constants(const psa__build *build, void *config)
{
    psa_schema_baseline(build->schema, config);
    for (size_t i = 0; i < build->space->n_raws; i++) {
        const psa__raw *raw = &build->space->raw[i];
        bool copied = raw->knob->field->per_dimension && !raw->knob->per_dimension;
        if (raw->n_values != 1)
            continue;
        for (size_t d = 0; d < (copied ? build->schema->n_dims : 1); d++)
            psa__field_set(raw->knob->field, config, raw->elem + d, raw->value[0]);
    }
}

static cs_status false_on_constants(psa__build *build, const psa__constraint *c,
                                    const psa__part *part, const double *facts)
{
    const psa_schema *schema = build->schema;
    psa__env env = {.fact = facts};
    cs_error text = {""};
    void *config = malloc(schema->tables->config_size);
    cs_status status;

    if (config == NULL)
        return psa__no_memory(build);
    constants(build, config);
    env.config = config;
    psa__explain(schema, c, part, &env, &text);
    free(config);
    if (strlen(text.text) > 0 && text.text[strlen(text.text) - 1] == '\n')
        text.text[strlen(text.text) - 1] = '\0';
    if (c->node != NULL)
        return cs_doc_fail(schema->doc, c->node, build->err,
                           "no design can satisfy this, whatever the knobs: %s", text.text);
    status =
        cs_fail(build->err, CS_ESCHEMA, "%s: no design can satisfy this, whatever the knobs: %s",
                cs_doc_path(schema->doc), text.text);
    return status;
}

/* Knobs with one value count as constants here. */
static const psa__node *single_leaf(psa__build *build, const psa__node *node, const void *unused)
{
    (void)unused;
    if (node->op == PSA__VAR && build->space->raw[node->a].n_values == 1)
        return psa__const(&build->pool, build->space->raw[node->a].value[0]);
    return node->n == 0 ? node : NULL;
}

static cs_status add_constraint(psa__build *build, size_t index, size_t w, bool strict)
{
    cs_status status = CS_OK;
    const psa__constraint *c = &build->schema->constraint[index];
    const double *facts = psa__facts_of(build->schema, w);

    if (!psa__facts_known(build->schema, w, c->fact, c->n_facts))
        return CS_OK;
    for (size_t p = 0; p < c->n_parts; p++) {
        const psa__node *node = import(build, c->part[p].node, facts);
        if (node != NULL)
            node = psa__rewrite(build, node, single_leaf, NULL);
        if (node == NULL)
            return psa__no_memory(build);
        if (node->op == PSA__CONST && node->value == 0 && strict)
            return false_on_constants(build, c, &c->part[p], facts);
        if (!psa__add_condition(build, node, (int32_t)index))
            return psa__no_memory(build);
    }
    return status;
}

cs_status psa__build_conditions(psa__build *build, const psa__constraint *only)
{
    cs_status status = CS_OK;
    const psa_schema *schema = build->schema;

    for (size_t i = 0; i < schema->n_constraints; i++) {
        const psa__constraint *c = &schema->constraint[i];
        size_t rounds = c->n_facts == 0 ? 1 : schema->n_workloads;
        if (c->limit || (only != NULL && c != only))
            continue;
        for (size_t w = 0; w < rounds; w++)
            CS_TRY(add_constraint(build, i, w, only == NULL));
    }
    for (size_t i = 0; i < build->space->n_raws && only == NULL; i++)
        CS_TRY(add_activity(build, i));
done:
    return status;
}
