/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Values given from outside a PSA: assignments, fixed knobs, chosen stacks, pinned starts. */
#include "psa/psa_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "path[2]=value" taken apart. */
typedef struct {
    size_t field;
    size_t first, count; /* elements it names, from 0 */
    const char *value;
} assignment;

static cs_status unknown_path(const psa_schema *schema, const char *path, int length, cs_error *err)
{
    const psa_tables *tables = schema->tables;
    const char **names = malloc((tables->n_fields + 1) * sizeof *names);
    char word[128], near[128];
    cs_status status;

    if (names == NULL)
        return cs_fail(err, CS_ENOMEM, "names");
    for (size_t i = 0; i < tables->n_fields; i++)
        names[i] = tables->fields[i].path;
    (void)snprintf(word, sizeof word, "%.*s", length > 100 ? 100 : length, path);
    status = cs_fail(err, CS_EINVAL, "unknown knob '%s'%s", word,
                     psa__suggest(word, names, tables->n_fields, near));
    free(names);
    return status;
}

static cs_status split(const psa_schema *schema, const char *text, assignment *out, cs_error *err)
{
    size_t length = strcspn(text, "=[");
    const char *at = text + length;
    const psa_field *field;
    char *end;
    long index;

    out->field = psa__field_find(schema->tables, text, length);
    if (*at == '\0')
        return cs_fail(err, CS_EINVAL, "'%.100s': expected knob=value", text);
    if (out->field == SIZE_MAX)
        return unknown_path(schema, text, (int)length, err);
    field = &schema->tables->fields[out->field];
    out->first = 0;
    out->count = field->per_dimension ? schema->n_dims : 1;
    if (*at == '[') {
        index = strtol(at + 1, &end, 10);
        if (!field->per_dimension)
            return cs_fail(err, CS_EINVAL, "'%.100s': %s has one value, not one per dimension",
                           text, field->path);
        if (end == at + 1 || *end != ']' || index < 1 || index > (long)schema->n_dims)
            return cs_fail(err, CS_EINVAL, "'%.100s': expected an index from 1 to %zu", text,
                           schema->n_dims);
        out->first = (size_t)index - 1;
        out->count = 1;
        at = end + 1;
    }
    if (*at != '=')
        return cs_fail(err, CS_EINVAL, "'%.100s': expected knob=value", text);
    out->value = at + 1;
    return CS_OK;
}

static size_t count_commas(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        n += *text == ',';
    return n;
}

/* One value for every element, or a comma list with one for each. */
static cs_status parse_values(const psa_schema *schema, const assignment *a,
                              double value[PSA_MAX_DIMS], cs_error *err)
{
    const psa_field *field = &schema->tables->fields[a->field];
    const char *at = a->value;
    bool list = field->per_dimension && strchr(at, ',') != NULL;
    char element[128];
    cs_error inner;

    if (list && count_commas(at) + 1 != a->count)
        return cs_fail(err, CS_EINVAL, "%s: expected %zu values, found %zu in '%.100s'",
                       field->path, a->count, count_commas(at) + 1, at);
    for (size_t i = 0; i < a->count; i++) {
        size_t length = list ? strcspn(at, ",") : strlen(at), skip = strspn(at, " ");
        if (!list && i > 0) {
            value[i] = value[0];
            continue;
        }
        skip = skip > length ? length : skip;
        (void)snprintf(element, sizeof element, "%.*s",
                       (int)(length - skip > 120 ? 120 : length - skip), at + skip);
        for (size_t end = strlen(element); end > 0 && element[end - 1] == ' '; end--)
            element[end - 1] = '\0';
        if (psa__field_parse(field, element, &value[i], &inner) != CS_OK)
            return cs_fail(err, CS_EINVAL, "%s: %s", field->path, inner.text);
        at += length + (at[length] == ',');
    }
    return CS_OK;
}

cs_status psa_schema_assign(const psa_schema *schema, const char *text, void *config, cs_error *err)
{
    cs_status status;
    assignment a = {0};
    double value[PSA_MAX_DIMS];

    CS_TRY(split(schema, text, &a, err));
    CS_TRY(parse_values(schema, &a, value, err));
    for (size_t i = 0; i < a.count; i++)
        psa__field_set(&schema->tables->fields[a.field], config, a.first + i, value[i]);
done:
    return status;
}

/* A value given to all dimensions is warned of once. */
static cs_status question(psa_schema *schema, const assignment *a, const char *text,
                          const double *value, cs_error *err)
{
    for (size_t i = 0; i < a->count; i++)
        if ((i == 0 || value[i] != value[i - 1]) &&
            !psa__check_plausible(schema, &schema->tables->fields[a->field], value[i], text))
            return cs_fail(err, CS_ENOMEM, "warnings");
    return CS_OK;
}

cs_status psa_schema_question(psa_schema *schema, const char *text, cs_error *err)
{
    cs_status status;
    assignment a = {0};
    double value[PSA_MAX_DIMS];

    CS_TRY(split(schema, text, &a, err));
    CS_TRY(parse_values(schema, &a, value, err));
    status = question(schema, &a, text, value, err);
done:
    return status;
}

/* A fixed knob keeps its element with a single value; a fixed field that is no knob changes the
 * baseline. */
cs_status psa_schema_fix(psa_schema *schema, const char *text, cs_error *err)
{
    cs_status status;
    assignment a = {0};
    double value[PSA_MAX_DIMS];

    CS_TRY(split(schema, text, &a, err));
    CS_TRY(parse_values(schema, &a, value, err));
    CS_TRY(question(schema, &a, text, value, err));
    for (size_t i = 0; i < a.count; i++)
        psa__field_set(&schema->tables->fields[a.field], schema->baseline, a.first + i, value[i]);
    for (size_t k = 0; k < schema->n_knobs; k++) {
        psa__knob *knob = &schema->knob[k];
        if (knob->field_index != a.field)
            continue;
        if (!knob->per_dimension && a.count < (knob->field->per_dimension ? schema->n_dims : 1))
            return cs_fail(err, CS_EINVAL, "%s is one knob for all dimensions: fix it whole",
                           knob->field->path);
        for (size_t i = 0; i < (knob->per_dimension ? a.count : 1); i++) {
            knob->fixed[a.first + i] = true;
            knob->fixed_value[a.first + i] = value[i];
        }
    }
done:
    return status;
}

static void stack_of(const psa_field *field, char stack[64])
{
    const char *dot = strchr(field->path, '.');

    if (dot == NULL)
        (void)snprintf(stack, 64, "workload"); /* placement */
    else
        (void)snprintf(stack, 64, "%.*s", (int)(dot - field->path > 60 ? 60 : dot - field->path),
                       field->path);
}

static cs_status check_stack(const psa_schema *schema, const char *name, cs_error *err)
{
    char stacks[16][64], near[128], list[256] = "";
    const char *names[16];
    size_t n = 0, length = 0;

    for (size_t i = 0; i < schema->tables->n_fields && n < CS_COUNT(names); i++) {
        bool seen = false;
        stack_of(&schema->tables->fields[i], stacks[n]);
        for (size_t k = 0; k < n; k++)
            seen = seen || strcmp(stacks[k], stacks[n]) == 0;
        names[n] = stacks[n];
        n += !seen;
    }
    for (size_t k = 0; k < n; k++)
        if (strcmp(names[k], name) == 0)
            return CS_OK;
    for (size_t k = 0; k < n && length < sizeof list; k++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", k > 0 ? ", " : "",
                                   names[k]);
    return cs_fail(err, CS_EINVAL, "unknown stack '%.60s' (there are %s)%s", name, list,
                   psa__suggest(name, names, n, near));
}

cs_status psa_schema_select_stacks(psa_schema *schema, const char *const *stacks, size_t n,
                                   cs_error *err)
{
    cs_status status = CS_OK;
    char stack[64];

    for (size_t i = 0; i < n; i++)
        CS_TRY(check_stack(schema, stacks[i], err));
    for (size_t k = 0; k < schema->n_knobs; k++) {
        psa__knob *knob = &schema->knob[k];
        bool keep = false;
        stack_of(knob->field, stack);
        for (size_t i = 0; i < n; i++)
            keep = keep || strcmp(stacks[i], stack) == 0;
        for (size_t d = 0; d < knob->n_elems && !keep; d++) {
            if (knob->fixed[d])
                continue;
            knob->fixed[d] = true;
            knob->fixed_value[d] = psa__field_get(knob->field, schema->baseline, d);
        }
    }
done:
    return status;
}

void psa_schema_baseline(const psa_schema *schema, void *config)
{
    memcpy(config, schema->baseline, schema->tables->config_size);
}

cs_status psa_schema_start(const psa_schema *schema, size_t i, void *config, cs_error *err)
{
    cs_status status = CS_OK;
    const cs_node *map = schema->start[i];
    cs_error inner;
    char text[512];

    psa_schema_baseline(schema, config);
    for (size_t k = 0; k < map->n; k++) {
        const cs_node *value = map->item[k];
        int used = snprintf(text, sizeof text, "%.100s=", map->key[k]->text);
        size_t n = value->kind == CS_DOC_LIST ? value->n : 1;
        if (value->kind == CS_DOC_LIST && n != schema->n_dims)
            return cs_doc_fail(schema->doc, value, err, "expected %zu values, found %zu",
                               schema->n_dims, n);
        for (size_t d = 0; d < n && used < (int)sizeof text; d++) {
            const cs_node *item = value->kind == CS_DOC_LIST ? value->item[d] : value;
            CS_TRY(cs_node_expect(schema->doc, item, CS_DOC_SCALAR, err));
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%.100s", d == 0 ? "" : ",",
                             item->text);
        }
        if (psa_schema_assign(schema, text, config, &inner) != CS_OK)
            return cs_doc_fail(schema->doc, value, err, "%s", inner.text);
    }
done:
    return status;
}
