/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Derived values, and constraints written in the PSA and implied by the tables. */
#include "psa/psa_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DERIVED     1000
#define MAX_CONSTRAINTS 2000

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "constraints");
}

static cs_status check_name(psa_schema *schema, const cs_node *key, cs_error *err)
{
    const char *name = key->text;
    size_t n = strlen(name);
    bool word = n > 0 && (name[0] < '0' || name[0] > '9');

    for (size_t i = 0; i < n; i++)
        word = word && (name[i] == '_' || (name[i] >= '0' && name[i] <= '9') ||
                        (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z'));
    if (!word)
        return cs_doc_fail(schema->doc, key, err,
                           "'%.60s' is no name: use letters, digits and underscores", name);
    if (psa__field_find(schema->tables, name, n) != SIZE_MAX || strcmp(name, "d") == 0 ||
        strcmp(name, "true") == 0 || strcmp(name, "false") == 0 || strcmp(name, "dimensions") == 0)
        return cs_doc_fail(schema->doc, key, err, "'%.60s' already means something else", name);
    for (size_t i = 0; i < schema->tables->n_results; i++)
        if (strcmp(schema->tables->results[i].name, name) == 0)
            return cs_doc_fail(schema->doc, key, err, "'%.60s' is the name of a result", name);
    return CS_OK;
}

cs_status psa__load_derived(psa_schema *schema, const cs_node *node, cs_error *err)
{
    cs_status status = CS_OK;
    psa__parsed parsed;

    if (node == NULL)
        return CS_OK;
    CS_TRY(cs_node_expect(schema->doc, node, CS_DOC_MAP, err));
    CS_TRY(psa__check_cut(schema->doc, node, err));
    if (node->n > MAX_DERIVED)
        return cs_doc_fail(schema->doc, node, err, "more than %d derived values", MAX_DERIVED);
    schema->derived = cs_arena_alloc(schema->arena, (node->n + 1) * sizeof *schema->derived);
    if (schema->derived == NULL)
        return no_memory(err);
    for (size_t i = 0; i < node->n; i++) {
        CS_TRY(check_name(schema, node->key[i], err));
        CS_TRY(cs_node_expect(schema->doc, node->item[i], CS_DOC_SCALAR, err));
        schema->derived[i].name = node->key[i]->text;
        schema->derived[i].node = node->item[i];
    }
    schema->n_derived = node->n;
    for (size_t i = 0; i < schema->n_derived; i++) {
        psa__derived *derived = &schema->derived[i];
        psa__source source = {schema, schema->doc, derived->node, derived->node->text, 0, true};
        if (derived->state == 2)
            continue;
        derived->state = 1;
        CS_TRY(psa__parse(&source, &parsed, err));
        derived->value = parsed.value;
        derived->state = 2;
    }
done:
    return status;
}

/* Parts of one parsed condition: a vector of answers is one part a dimension, where switched-off
 * dimensions hold by themselves. */
static cs_status add_parts(psa_schema *schema, psa__constraint *c, const psa__parsed *parsed,
                           size_t d, cs_error *err)
{
    psa__pool *pool = &schema->pool;

    for (size_t i = 0; i < parsed->value.n; i++) {
        psa__part *part = &c->part[c->n_parts++];
        part->parsed = *parsed;
        part->node = parsed->value.node[i];
        part->d = parsed->value.vector ? i + 1 : d;
        if (parsed->value.vector && parsed->value.sized)
            part->node = psa__make2(
                pool, PSA__OR,
                psa__make2(pool, PSA__EQ,
                           psa__leaf(pool, PSA__FIELD, (int32_t)schema->count_field, (int32_t)i),
                           psa__const(pool, 1)),
                part->node);
        if (part->node == NULL ||
            !psa__compile(schema->arena, schema->tables, part->node, &part->program) ||
            !psa__collect_facts(schema->arena, part->node, &c->fact, &c->n_facts))
            return no_memory(err);
        if (psa__mentions(part->node, PSA__RESULT, -1))
            c->limit = true;
    }
    return CS_OK;
}

cs_status psa__count_size(const psa__source *source, const psa__parsed *parsed, cs_error *err)
{
    size_t *total = &source->schema->total_size;

    for (size_t i = 0; i < parsed->value.n; i++)
        *total += parsed->value.node[i]->size;
    if (*total > PSA__MAX_TOTAL)
        return psa__source_fail(source, 0, err, "the expressions are too large together");
    return CS_OK;
}

static cs_status parse_constraint(psa_schema *schema, psa__constraint *c, bool each, cs_error *err)
{
    cs_status status;
    psa__parsed parsed;
    size_t rounds = each ? schema->n_dims : 1;
    psa__source source = {schema, c->implied ? NULL : schema->doc, c->node, c->source, 0, true};

    c->part = cs_arena_alloc(schema->arena, PSA_MAX_DIMS * sizeof *c->part);
    if (c->part == NULL)
        return no_memory(err);
    for (size_t d = 1; d <= rounds; d++) {
        source.d = each ? d : 0;
        CS_TRY(psa__parse(&source, &parsed, err));
        CS_TRY(psa__count_size(&source, &parsed, err));
        if (parsed.value.type != PSA__BOOL)
            return psa__source_fail(&source, 0, err,
                                    "a constraint is a condition, such as a comparison");
        if (each && parsed.value.vector)
            return psa__source_fail(&source, 0, err, "index every field by d");
        CS_TRY(add_parts(schema, c, &parsed, source.d, err));
    }
done:
    return status;
}

static cs_status load_written(psa_schema *schema, const cs_node *node, cs_error *err)
{
    cs_status status = CS_OK;

    for (size_t i = 0; node != NULL && i < node->n; i++) {
        psa__constraint *c = &schema->constraint[schema->n_constraints];
        CS_TRY(cs_node_expect(schema->doc, node->item[i], CS_DOC_SCALAR, err));
        c->node = node->item[i];
        c->text = c->source = node->item[i]->text;
        CS_TRY(parse_constraint(schema, c, false, err));
        schema->n_constraints++;
    }
done:
    return status;
}

/* Where the user's constraints or objectives first mention a result; NULL: nowhere. */
static const cs_node *mention(const psa_schema *schema, const char *name)
{
    for (size_t r = 0; r < schema->tables->n_results; r++) {
        if (strcmp(schema->tables->results[r].name, name) != 0)
            continue;
        for (size_t i = 0; i < schema->n_constraints; i++)
            for (size_t p = 0; !schema->constraint[i].implied && p < schema->constraint[i].n_parts;
                 p++)
                if (psa__mentions(schema->constraint[i].part[p].node, PSA__RESULT, (int32_t)r))
                    return schema->constraint[i].node;
        for (size_t i = 0; i < schema->n_objectives; i++)
            if (psa__mentions(schema->objective[i].root, PSA__RESULT, (int32_t)r))
                return schema->objective[i].node;
    }
    return NULL;
}

cs_status psa_schema_refuse_result(const psa_schema *schema, const char *name, const char *why,
                                   cs_error *err)
{
    const cs_node *at = mention(schema, name);

    return at == NULL ? CS_OK : cs_doc_fail(schema->doc, at, err, "%s: %s", name, why);
}

static bool is_relaxed(const psa_schema *schema, const char *by)
{
    if (by == NULL)
        return false;
    if (by[0] == '?')
        return mention(schema, by + 1) == NULL;
    for (size_t i = 0; i < PSA__N_SWITCHES; i++) {
        if (strcmp(by, psa__switch_names[i]) == 0)
            return schema->on[i];
        if (by[0] == '!' && strcmp(by + 1, psa__switch_names[i]) == 0)
            return !schema->on[i];
    }
    return false;
}

cs_status psa__load_rules(psa_schema *schema, cs_error *err)
{
    cs_status status = CS_OK;

    for (size_t i = 0; i < schema->tables->n_rules; i++) {
        const psa_rule *rule = &schema->tables->rules[i];
        psa__constraint *c = &schema->constraint[schema->n_constraints];
        if (is_relaxed(schema, rule->relaxed_by))
            continue;
        c->implied = true;
        c->name = rule->name;
        c->source = rule->expression;
        c->text = cs_arena_printf(schema->arena, "%s: %s", rule->name, rule->expression);
        if (c->text == NULL)
            return no_memory(err);
        CS_TRY(parse_constraint(schema, c, rule->per_dimension, err));
        schema->n_constraints++;
    }
done:
    return status;
}

cs_status psa__load_constraints(psa_schema *schema, const cs_node *node, cs_error *err)
{
    cs_status status = CS_OK;
    size_t n = node == NULL ? 0 : node->n;

    if (node != NULL) {
        CS_TRY(cs_node_expect(schema->doc, node, CS_DOC_LIST, err));
        if (n > MAX_CONSTRAINTS)
            return cs_doc_fail(schema->doc, node, err, "more than %d constraints", MAX_CONSTRAINTS);
    }
    schema->constraint = cs_arena_alloc(schema->arena, (n + schema->tables->n_rules + 1) *
                                                           sizeof *schema->constraint);
    if (schema->constraint == NULL)
        return no_memory(err);
    CS_TRY(load_written(schema, node, err));
done:
    return status;
}

/* Visible constraints are those in force: position i among them. */
static const psa__constraint *nth_constraint(const psa_schema *schema, size_t i)
{
    for (size_t k = 0; k < schema->n_constraints; k++)
        if (psa__applies(schema, &schema->constraint[k]) && i-- == 0)
            return &schema->constraint[k];
    return NULL;
}

size_t psa_schema_n_constraints(const psa_schema *schema)
{
    size_t n = 0;

    for (size_t k = 0; k < schema->n_constraints; k++)
        n += psa__applies(schema, &schema->constraint[k]);
    return n;
}

const psa__constraint *psa__constraint_at(const psa_schema *schema, size_t i)
{
    return nth_constraint(schema, i);
}

const char *psa_schema_constraint_text(const psa_schema *schema, size_t i, bool *implied)
{
    const psa__constraint *c = nth_constraint(schema, i);

    if (c == NULL)
        return NULL;
    if (implied != NULL)
        *implied = c->implied;
    return c->text;
}

bool psa_schema_constraint_is_limit(const psa_schema *schema, size_t i)
{
    const psa__constraint *c = nth_constraint(schema, i);

    return c != NULL && c->limit;
}
