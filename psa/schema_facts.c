/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Facts: constants of each workload that expressions name before they are known. */
#include "psa/psa_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "facts");
}

int32_t psa__fact_index(psa_schema *schema, const char *name, size_t length,
                        const psa__source *source, size_t offset)
{
    psa__fact *fact;

    for (size_t i = 0; i < schema->n_facts; i++) {
        fact = &schema->fact[i];
        if (strlen(fact->name) != length || strncmp(fact->name, name, length) != 0)
            continue;
        if (fact->node == NULL && source->doc != NULL) {
            fact->node = source->node;
            fact->offset = offset;
        }
        return (int32_t)i;
    }
    if (!psa__grow(schema->arena, (void **)&schema->fact, &schema->facts_capacity, schema->n_facts,
                   sizeof *schema->fact))
        return -1;
    fact = &schema->fact[schema->n_facts];
    fact->name = cs_arena_strndup(schema->arena, name, length);
    fact->node = source->doc == NULL ? NULL : source->node;
    fact->offset = offset;
    return fact->name == NULL ? -1 : (int32_t)schema->n_facts++;
}

static bool list_add(cs_arena *arena, int32_t **list, size_t *n, int32_t value)
{
    int32_t *grown;

    for (size_t i = 0; i < *n; i++)
        if ((*list)[i] == value)
            return true;
    grown = cs_arena_alloc(arena, (*n + 1) * sizeof *grown);
    if (grown == NULL)
        return false;
    if (*n > 0)
        memcpy(grown, *list, *n * sizeof *grown);
    grown[(*n)++] = value;
    *list = grown;
    return true;
}

bool psa__collect_facts(cs_arena *arena, const psa__node *node, int32_t **list, size_t *n)
{
    if (node->op == PSA__FACT)
        return list_add(arena, list, n, node->a);
    for (size_t i = 0; i < node->n; i++)
        if (!psa__collect_facts(arena, node->arg[i], list, n))
            return false;
    return true;
}

bool psa__mentions(const psa__node *node, psa__op op, int32_t a)
{
    if (node->op == op && (a < 0 || node->a == a))
        return true;
    for (size_t i = 0; i < node->n; i++)
        if (psa__mentions(node->arg[i], op, a))
            return true;
    return false;
}

const double *psa__facts_of(const psa_schema *schema, size_t workload)
{
    return schema->fact_value + workload * (schema->n_facts + 1);
}

bool psa__facts_known(const psa_schema *schema, size_t workload, const int32_t *list, size_t n)
{
    const double *value = psa__facts_of(schema, workload);

    for (size_t i = 0; i < n; i++)
        if (isnan(value[list[i]]))
            return false;
    return true;
}

bool psa__applies(const psa_schema *schema, const psa__constraint *c)
{
    if (c->n_facts == 0 || !c->implied)
        return true;
    for (size_t w = 0; w < schema->n_workloads; w++)
        if (psa__facts_known(schema, w, c->fact, c->n_facts))
            return true;
    return false;
}

/* Numbers in a workload's own entry, such as global_batch, are facts without any help. */
static void take_entry(psa_schema *schema, size_t w, double *value)
{
    const cs_node *map = schema->workload[w].node;

    for (size_t f = 0; f < schema->n_facts; f++) {
        const char *name = schema->fact[f].name;
        const cs_node *node;
        double number;
        if (strncmp(name, "workload.", 9) != 0)
            continue;
        node = cs_node_get(map, name + 9);
        if (node != NULL && node->kind == CS_DOC_SCALAR &&
            cs_quantity_parse(node->text, CS_DIMENSIONLESS, &number, NULL) == CS_OK)
            value[f] = number;
    }
}

cs_status psa__finish_facts(psa_schema *schema, cs_error *err)
{
    size_t rows = schema->n_workloads + 1, row = schema->n_facts + 1;

    schema->fact_value = cs_arena_alloc(schema->arena, rows * row * sizeof *schema->fact_value);
    if (schema->fact_value == NULL)
        return no_memory(err);
    for (size_t i = 0; i < rows * row; i++)
        schema->fact_value[i] = NAN;
    for (size_t w = 0; w < schema->n_workloads; w++)
        take_entry(schema, w, schema->fact_value + w * row);
    return CS_OK;
}

static cs_status absent(const psa_schema *schema, const psa__fact *fact, size_t w,
                        const psa_fact *facts, size_t n, cs_error *err)
{
    psa__source source = {(psa_schema *)schema, schema->doc, fact->node, fact->node->text, 0, true};
    const char **names = malloc((n + 1) * sizeof *names);
    char near[128];
    cs_status status;

    if (names == NULL)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        names[i] = facts[i].name;
    status = psa__source_fail(&source, fact->offset, err, "workload %zu (%.200s) has no '%.60s'%s",
                              w + 1, schema->workload[w].model_path, fact->name,
                              psa__suggest(fact->name, names, n, near));
    free(names);
    return status;
}

/* An objective has one value for the whole design, so the facts it names must not differ. */
static cs_status check_objectives(const psa_schema *schema, size_t w, cs_error *err)
{
    const double *value = psa__facts_of(schema, w), *first = psa__facts_of(schema, 0);

    for (size_t i = 0; i < schema->n_objectives; i++) {
        const psa__objective *objective = &schema->objective[i];
        for (size_t k = 0; k < objective->n_facts; k++) {
            int32_t f = objective->fact[k];
            if (w > 0 && schema->bound[0] && !psa__same(value[f], first[f]))
                return cs_doc_fail(schema->doc, objective->node, err,
                                   "objective '%s' names '%s', which differs between workloads 1 "
                                   "(%g) and %zu (%g)",
                                   objective->name, schema->fact[f].name, first[f], w + 1,
                                   value[f]);
        }
    }
    return CS_OK;
}

cs_status psa_schema_bind(psa_schema *schema, size_t i, const psa_fact *facts, size_t n,
                          cs_error *err)
{
    double *value;

    if (i >= schema->n_workloads)
        return cs_fail(err, CS_EINVAL, "there is no workload %zu", i + 1);
    value = schema->fact_value + i * (schema->n_facts + 1);
    for (size_t f = 0; f < schema->n_facts; f++) {
        for (size_t k = 0; k < n; k++)
            if (strcmp(schema->fact[f].name, facts[k].name) == 0)
                value[f] = facts[k].value;
        if (isnan(value[f]) && schema->fact[f].node != NULL)
            return absent(schema, &schema->fact[f], i, facts, n, err);
    }
    schema->bound[i] = true;
    return check_objectives(schema, i, err);
}
