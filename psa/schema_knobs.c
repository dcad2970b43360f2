/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Knobs: domains and conditions. */
#include "psa/psa_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VALUES 100000 /* of one knob */

static const char *const knob_keys[] = {"values", "powers_of_two", "divisors", "range",
                                        "step",   "per",           "when"};

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "knobs");
}

static cs_status add_value(psa_schema *schema, psa__knob *knob, const cs_node *at, double value,
                           cs_error *err)
{
    const psa_field *field = knob->field;
    char text[64], where[320];

    if (knob->n_values == MAX_VALUES)
        return cs_doc_fail(schema->doc, at, err, "%s has more than %d values", field->path,
                           MAX_VALUES);
    if ((field->min != 0 || field->max != 0) && !(value >= field->min && value <= field->max))
        return cs_doc_fail(schema->doc, at, err, "%s cannot be %s: it goes from %.6g to %.6g",
                           field->path, psa__field_format(field, value, text), field->min,
                           field->max);
    if (knob->n_values < 2 || at->kind == CS_DOC_SCALAR) {
        (void)snprintf(where, sizeof where, "%.280s:%d:%d", cs_doc_path(schema->doc), at->line,
                       at->column);
        if (!psa__check_plausible(schema, field, value, where))
            return no_memory(err);
    }
    knob->value[knob->n_values++] = value;
    return CS_OK;
}

static cs_status make_room(psa_schema *schema, psa__knob *knob, const cs_node *at, double n,
                           cs_error *err)
{
    if (!(n <= MAX_VALUES))
        return cs_doc_fail(schema->doc, at, err, "%s has more than %d values", knob->field->path,
                           MAX_VALUES);
    knob->value = cs_arena_alloc(schema->arena, ((size_t)n + 1) * sizeof *knob->value);
    return knob->value == NULL ? no_memory(err) : CS_OK;
}

static cs_status parse_element(psa_schema *schema, const psa__knob *knob, const cs_node *node,
                               double *out, cs_error *err)
{
    cs_status status;
    cs_error inner;

    CS_TRY(cs_node_expect(schema->doc, node, CS_DOC_SCALAR, err));
    if (psa__field_parse(knob->field, node->text, out, &inner) != CS_OK)
        return cs_doc_fail(schema->doc, node, err, "%s: %s", knob->field->path, inner.text);
done:
    return status;
}

static cs_status need_number(psa_schema *schema, const psa__knob *knob, const cs_node *node,
                             cs_error *err)
{
    if (psa__field_is_number(knob->field))
        return CS_OK;
    return cs_doc_fail(schema->doc, node, err, "%s is no number: list its values",
                       knob->field->path);
}

static cs_status domain_values(psa_schema *schema, psa__knob *knob, const cs_node *node,
                               cs_error *err)
{
    cs_status status;
    double value;

    CS_TRY(cs_node_expect(schema->doc, node, CS_DOC_LIST, err));
    if (node->n == 0)
        return cs_doc_fail(schema->doc, node, err, "%s: expected at least one value",
                           knob->field->path);
    CS_TRY(make_room(schema, knob, node, (double)node->n, err));
    for (size_t i = 0; i < node->n; i++) {
        CS_TRY(parse_element(schema, knob, node->item[i], &value, err));
        CS_TRY(add_value(schema, knob, node->item[i], value, err));
    }
done:
    return status;
}

static cs_status read_pair(psa_schema *schema, const psa__knob *knob, const cs_node *node,
                           double pair[2], cs_error *err)
{
    cs_status status;

    CS_TRY(need_number(schema, knob, node, err));
    if (node->kind != CS_DOC_LIST || node->n != 2)
        return cs_doc_fail(schema->doc, node, err, "%s: expected [first, last]", knob->field->path);
    for (int i = 0; i < 2; i++)
        CS_TRY(parse_element(schema, knob, node->item[i], &pair[i], err));
    if (!(pair[0] <= pair[1]))
        return cs_doc_fail(schema->doc, node, err, "%s: the first bound is larger than the last",
                           knob->field->path);
done:
    return status;
}

static cs_status domain_powers(psa_schema *schema, psa__knob *knob, const cs_node *node,
                               cs_error *err)
{
    cs_status status;
    double pair[2];
    int exponent;

    CS_TRY(read_pair(schema, knob, node, pair, err));
    for (int i = 0; i < 2; i++)
        if (!(pair[i] > 0) || frexp(pair[i], &exponent) != 0.5)
            return cs_doc_fail(schema->doc, node->item[i], err, "%s: '%.40s' is no power of two",
                               knob->field->path, node->item[i]->text);
    CS_TRY(make_room(schema, knob, node, log2(pair[1] / pair[0]) + 1, err));
    for (double value = pair[0]; value <= pair[1]; value *= 2)
        CS_TRY(add_value(schema, knob, node, value, err));
done:
    return status;
}

static cs_status domain_divisors(psa_schema *schema, psa__knob *knob, const cs_node *node,
                                 cs_error *err)
{
    cs_status status;
    int64_t n = 0;
    size_t count = 0;

    CS_TRY(need_number(schema, knob, node, err));
    CS_TRY(cs_node_int(schema->doc, node, 1, (int64_t)1 << 40, &n, err));
    for (int64_t i = 1; i <= n / i; i++)
        count += n % i == 0 ? 2 : 0;
    CS_TRY(make_room(schema, knob, node, (double)count, err));
    for (int64_t i = 1; i <= n / i; i++)
        if (n % i == 0)
            CS_TRY(add_value(schema, knob, node, (double)i, err));
    for (int64_t i = (int64_t)sqrt((double)n) + 1; i >= 1; i--)
        if (i <= n / i && n % i == 0 && n / i != i)
            CS_TRY(add_value(schema, knob, node, (double)(n / i), err));
done:
    return status;
}

static cs_status domain_range(psa_schema *schema, psa__knob *knob, const cs_node *node,
                              const cs_node *step_node, cs_error *err)
{
    cs_status status;
    double pair[2], step, steps;
    char text[48];

    CS_TRY(read_pair(schema, knob, node, pair, err));
    if (step_node == NULL)
        return cs_doc_fail(schema->doc, node, err, "%s: a range needs a step", knob->field->path);
    CS_TRY(parse_element(schema, knob, step_node, &step, err));
    if (!(step > 0))
        return cs_doc_fail(schema->doc, step_node, err, "%s: the step must be larger than 0",
                           knob->field->path);
    steps = (pair[1] - pair[0]) / step;
    if (!psa__same(steps, floor(steps + 0.5)))
        return cs_doc_fail(
            schema->doc, step_node, err,
            "%s: steps of '%.40s' from '%.40s' do not hit the end '%.40s'; the last "
            "before it is %s",
            knob->field->path, step_node->text, node->item[0]->text, node->item[1]->text,
            cs_quantity_text(pair[0] + floor(steps) * step, knob->field->unit, text));
    steps = floor(steps + 0.5);
    CS_TRY(make_room(schema, knob, node, steps + 1, err));
    for (double i = 0; i <= steps; i++)
        CS_TRY(add_value(schema, knob, node, i == steps ? pair[1] : pair[0] + i * step, err));
done:
    return status;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return a < b ? -1 : a > b;
}

static cs_status check_distinct(psa_schema *schema, const psa__knob *knob, const cs_node *at,
                                cs_error *err)
{
    double *sorted = malloc(knob->n_values * sizeof *sorted);
    cs_status status = CS_OK;
    char text[64];

    if (sorted == NULL)
        return no_memory(err);
    memcpy(sorted, knob->value, knob->n_values * sizeof *sorted);
    qsort(sorted, knob->n_values, sizeof *sorted, by_value);
    for (size_t i = 1; i < knob->n_values && status == CS_OK; i++)
        if (psa__same(sorted[i], sorted[i - 1]))
            status =
                cs_doc_fail(schema->doc, at, err, "%s: the value %s stands twice",
                            knob->field->path, psa__field_format(knob->field, sorted[i], text));
    free(sorted);
    return status;
}

cs_status psa__check_cut(const cs_doc *doc, const cs_node *map, cs_error *err)
{
    for (size_t i = 0; i < map->n; i++) {
        const cs_node *node = map->item[i];
        int open = 0;
        if (node->kind != CS_DOC_SCALAR || node->quoted)
            continue;
        for (const char *c = node->text; *c != '\0'; c++)
            open += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
        if (open > 0)
            return cs_doc_fail(doc, node, err,
                               "the expression '%.80s' is cut short: a comma or bracket inside { } "
                               "or [ ] ends it; put it in quotes",
                               node->text);
    }
    return CS_OK;
}

/* Exactly one kind of domain. */
static cs_status read_domain(psa_schema *schema, psa__knob *knob, const cs_node *map, cs_error *err)
{
    cs_status status = CS_OK;
    static cs_status (*const readers[])(psa_schema *, psa__knob *, const cs_node *, cs_error *) = {
        domain_values, domain_powers, domain_divisors};
    const cs_node *found = NULL;

    for (size_t i = 0; i < 4; i++) {
        const cs_node *node = cs_node_get(map, knob_keys[i]);
        if (node == NULL)
            continue;
        if (found != NULL)
            return cs_doc_fail(schema->doc, node, err, "%s has two kinds of values",
                               knob->field->path);
        found = node;
        if (i < CS_COUNT(readers))
            CS_TRY(readers[i](schema, knob, node, err));
        else
            CS_TRY(domain_range(schema, knob, node, cs_node_get(map, "step"), err));
    }
    if (found == NULL)
        return cs_doc_fail(schema->doc, map, err,
                           "%s has no values: expected one of values, powers_of_two, divisors, "
                           "range with step",
                           knob->field->path);
    CS_TRY(check_distinct(schema, knob, found, err));
done:
    return status;
}

static cs_status read_per(psa_schema *schema, psa__knob *knob, const cs_node *node, cs_error *err)
{
    static const char *const ways[] = {"dimension"};
    cs_status status = CS_OK;
    int32_t way;

    knob->n_elems = 1;
    if (node == NULL)
        return CS_OK;
    CS_TRY(cs_node_enum(schema->doc, node, ways, CS_COUNT(ways), &way, err));
    if (!knob->field->per_dimension)
        return cs_doc_fail(schema->doc, node, err, "%s has one value, not one per dimension",
                           knob->field->path);
    knob->per_dimension = true;
    knob->n_elems = schema->n_dims;
done:
    return status;
}

static cs_status read_knob(psa_schema *schema, psa__knob *knob, const cs_node *node, cs_error *err)
{
    cs_status status;

    knob->node = node;
    if (node->kind == CS_DOC_LIST) {
        knob->n_elems = 1;
        CS_TRY(domain_values(schema, knob, node, err));
        return check_distinct(schema, knob, node, err);
    }
    CS_TRY(cs_node_expect(schema->doc, node, CS_DOC_MAP, err));
    CS_TRY(psa__check_cut(schema->doc, node, err));
    CS_TRY(cs_node_check_keys(schema->doc, node, knob_keys, CS_COUNT(knob_keys), err));
    if (cs_node_get(node, "step") != NULL && cs_node_get(node, "range") == NULL)
        return cs_doc_fail(schema->doc, cs_node_get(node, "step"), err, "a step needs a range");
    CS_TRY(read_per(schema, knob, cs_node_get(node, "per"), err));
    CS_TRY(read_domain(schema, knob, node, err));
done:
    return status;
}

static cs_status unknown_field(psa_schema *schema, const cs_node *key, cs_error *err)
{
    const psa_tables *tables = schema->tables;
    const char **names = malloc((tables->n_fields + 1) * sizeof *names);
    char near[128];
    cs_status status;

    if (names == NULL)
        return no_memory(err);
    for (size_t i = 0; i < tables->n_fields; i++)
        names[i] = tables->fields[i].path;
    status = cs_doc_fail(schema->doc, key, err, "unknown knob '%.60s'%s", key->text,
                         psa__suggest(key->text, names, tables->n_fields, near));
    free(names);
    return status;
}

cs_status psa__load_knobs(psa_schema *schema, const cs_node *node, cs_error *err)
{
    cs_status status = CS_OK;

    if (node == NULL)
        return CS_OK;
    CS_TRY(cs_node_expect(schema->doc, node, CS_DOC_MAP, err));
    schema->knob = cs_arena_alloc(schema->arena, (node->n + 1) * sizeof *schema->knob);
    if (schema->knob == NULL)
        return no_memory(err);
    for (size_t i = 0; i < node->n; i++) {
        psa__knob *knob = &schema->knob[i];
        const char *path = node->key[i]->text;
        knob->field_index = psa__field_find(schema->tables, path, strlen(path));
        if (knob->field_index == SIZE_MAX)
            return unknown_field(schema, node->key[i], err);
        knob->field = &schema->tables->fields[knob->field_index];
        CS_TRY(read_knob(schema, knob, node->item[i], err));
        schema->n_knobs = i + 1;
    }
done:
    return status;
}

static cs_status load_condition(psa_schema *schema, psa__knob *knob, const cs_node *node,
                                cs_error *err)
{
    cs_status status;
    psa__parsed parsed;
    psa__source source = {schema, schema->doc, node, NULL, 0, false};

    CS_TRY(cs_node_expect(schema->doc, node, CS_DOC_SCALAR, err));
    source.text = node->text;
    CS_TRY(psa__parse(&source, &parsed, err));
    if (parsed.value.type != PSA__BOOL)
        return psa__source_fail(&source, 0, err, "'when' needs a condition, such as a comparison");
    if (parsed.value.vector && !knob->per_dimension)
        return psa__source_fail(&source, 0, err,
                                "this has one answer per dimension; use all() or any()");
    for (size_t d = 0; d < knob->n_elems; d++) {
        knob->when[d] = parsed.value.node[parsed.value.vector ? d : 0];
        if (psa__mentions(knob->when[d], PSA__FIELD, (int32_t)knob->field_index))
            return psa__source_fail(&source, 0, err, "%s cannot depend on itself",
                                    knob->field->path);
    }
done:
    return status;
}

cs_status psa__load_conditions(psa_schema *schema, cs_error *err)
{
    cs_status status = CS_OK;

    for (size_t i = 0; i < schema->n_knobs; i++) {
        const cs_node *when = cs_node_get(schema->knob[i].node, "when");
        if (when != NULL)
            CS_TRY(load_condition(schema, &schema->knob[i], when, err));
    }
done:
    return status;
}
