/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * System and device files: a value for every field, and the baseline. */
#include "psa/psa_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_STACK "compute"
#define MAX_WARNINGS 20

static const char *const price_tables[] = {"cosmic", "libra"};

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "system");
}

bool psa__check_plausible(psa_schema *schema, const psa_field *field, double value,
                          const char *where)
{
    bool bandwidth = field->per_dimension && cs_dimension_equal(field->unit, CS_BANDWIDTH);
    bool latency = field->per_dimension && cs_dimension_equal(field->unit, CS_SECONDS);
    char text[48];
    const char *range = bandwidth ? "0.1 to 10,000 GB/s" : "1 ns to 1 ms";

    if (bandwidth ? value >= 0.1e9 && value <= 1e13
                  : !latency || value == 0 || (value >= 1e-9 && value <= 1e-3))
        return true;
    if (schema->n_warnings == MAX_WARNINGS)
        return true;
    if (!psa__grow(schema->arena, (void **)&schema->warning, &schema->warnings_capacity,
                   schema->n_warnings, sizeof *schema->warning))
        return false;
    schema->warning[schema->n_warnings] =
        cs_arena_printf(schema->arena, "%s: %s of %s is outside %s; is the unit right?", where,
                        field->path, cs_quantity_text(value, field->unit, text), range);
    return schema->warning[schema->n_warnings++] != NULL;
}

static cs_status read_element(psa_schema *schema, const cs_doc *doc, const cs_node *node,
                              const psa_field *field, double *out, cs_error *err)
{
    cs_status status;
    cs_error inner;
    char where[320];

    CS_TRY(cs_node_expect(doc, node, CS_DOC_SCALAR, err));
    if (psa__field_parse(field, node->text, out, &inner) != CS_OK)
        return cs_doc_fail(doc, node, err, "%s: %s", field->path, inner.text);
    (void)snprintf(where, sizeof where, "%.280s:%d:%d", cs_doc_path(doc), node->line, node->column);
    if (!psa__check_plausible(schema, field, *out, where))
        return no_memory(err);
done:
    return status;
}

cs_status psa__read_value(psa_schema *schema, const cs_doc *doc, const cs_node *node, size_t field,
                          void *config, cs_error *err)
{
    cs_status status = CS_OK;
    const psa_field *f = &schema->tables->fields[field];
    size_t n = f->per_dimension ? schema->n_dims : 1;
    double value;

    if (node->kind == CS_DOC_LIST && !f->per_dimension)
        return cs_doc_fail(doc, node, err, "%s has one value, not one per dimension", f->path);
    if (node->kind == CS_DOC_LIST && node->n != n)
        return cs_doc_fail(doc, node, err, "%s: expected %zu values, one per dimension, found %zu",
                           f->path, n, node->n);
    if (node->kind != CS_DOC_LIST)
        CS_TRY(read_element(schema, doc, node, f, &value, err));
    for (size_t d = 0; d < n; d++) {
        if (node->kind == CS_DOC_LIST)
            CS_TRY(read_element(schema, doc, node->item[d], f, &value, err));
        psa__field_set(f, config, d, value);
    }
    schema->given[field] = true;
done:
    return status;
}

/* "network" + "npus" -> field; SIZE_MAX when there is none.  An empty section takes whole paths. */
static size_t find_in_section(const psa_tables *tables, const char *section, const char *key)
{
    char path[256];

    if (section == NULL)
        return psa__field_find(tables, key, strlen(key));
    if (snprintf(path, sizeof path, "%s.%s", section, key) >= (int)sizeof path)
        return SIZE_MAX;
    return psa__field_find(tables, path, strlen(path));
}

static cs_status unknown_key(psa_schema *schema, const cs_doc *doc, const cs_node *key,
                             const char *section, cs_error *err)
{
    const psa_tables *tables = schema->tables;
    size_t prefix = section == NULL ? 0 : strlen(section) + 1, n = 0;
    const char **names = malloc((tables->n_fields + 1) * sizeof *names);
    char near[128];
    cs_status status;

    if (names == NULL)
        return no_memory(err);
    for (size_t i = 0; i < tables->n_fields; i++)
        if (prefix == 0 || strncmp(tables->fields[i].path, section, prefix - 1) == 0)
            names[n++] = tables->fields[i].path + prefix;
    status = cs_doc_fail(doc, key, err, "unknown field '%.60s'%s", key->text,
                         psa__suggest(key->text, names, n, near));
    free(names);
    return status;
}

static cs_status read_section(psa_schema *schema, const cs_doc *doc, const cs_node *map,
                              const char *section, cs_error *err)
{
    cs_status status;

    CS_TRY(cs_node_expect(doc, map, CS_DOC_MAP, err));
    for (size_t i = 0; i < map->n; i++) {
        size_t field = find_in_section(schema->tables, section, map->key[i]->text);
        if (field == SIZE_MAX)
            return unknown_key(schema, doc, map->key[i], section, err);
        CS_TRY(psa__read_value(schema, doc, map->item[i], field, schema->baseline, err));
    }
done:
    return status;
}

static bool is_section(const psa_tables *tables, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < tables->n_fields && n > 0; i++)
        if (strncmp(tables->fields[i].path, name, n) == 0 && tables->fields[i].path[n] == '.')
            return true;
    return false;
}

static bool is_one_of(const char *word, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, names[i]) == 0)
            return true;
    return false;
}

/* Keys of a system file that are no sections: fields without a dot, and what `others` names. */
static cs_status unknown_root_key(psa_schema *schema, const cs_doc *doc, const cs_node *key,
                                  const char *const *others, size_t n_others, cs_error *err)
{
    const psa_tables *tables = schema->tables;
    const char *names[64];
    char near[128];
    size_t n = 0;

    for (size_t i = 0; i < n_others; i++)
        names[n++] = others[i];
    for (size_t i = 0; i < tables->n_fields && n < CS_COUNT(names); i++) {
        const char *path = tables->fields[i].path, *dot = strchr(path, '.');
        const char *name =
            dot == NULL ? path : cs_arena_strndup(schema->arena, path, (size_t)(dot - path));
        if (name == NULL)
            return no_memory(err);
        if (!is_one_of(name, names, n))
            names[n++] = name;
    }
    return cs_doc_fail(doc, key, err, "unknown key '%.60s'%s", key->text,
                       psa__suggest(key->text, names, n, near));
}

static cs_status read_device(psa_schema *schema, cs_error *err)
{
    static const char *const others[] = {"device", "name", "source", DEVICE_STACK};
    cs_status status;
    const cs_node *root = cs_doc_root(schema->device), *node;
    int64_t version;

    CS_TRY(cs_node_require(schema->device, root, "device", &node, err));
    CS_TRY(cs_node_int(schema->device, node, 1, 1, &version, err));
    for (size_t i = 0; i < root->n; i++) {
        const char *key = root->key[i]->text;
        size_t field = find_in_section(schema->tables, DEVICE_STACK, key);
        if (strcmp(key, DEVICE_STACK) == 0)
            CS_TRY(read_section(schema, schema->device, root->item[i], DEVICE_STACK, err));
        else if (field != SIZE_MAX)
            CS_TRY(psa__read_value(schema, schema->device, root->item[i], field, schema->baseline,
                                   err));
        else if (!is_one_of(key, others, CS_COUNT(others)))
            return unknown_key(schema, schema->device, root->key[i], DEVICE_STACK, err);
    }
done:
    return status;
}

static cs_status read_system(psa_schema *schema, cs_error *err)
{
    static const char *const others[] = {"system", "name",   "source",
                                         "device", "prices", "baseline"};
    cs_status status = CS_OK;
    const cs_node *root = cs_doc_root(schema->system), *node;
    const cs_doc *doc = schema->system;
    const char *file;

    node = cs_node_get(root, "device");
    if (node != NULL) {
        CS_TRY(cs_node_string(doc, node, &file, err));
        file = cs_doc_resolve(schema->system, file);
        if (file == NULL)
            return no_memory(err);
        CS_TRY(cs_doc_load(file, &schema->device, err));
        CS_TRY(read_device(schema, err));
    }
    for (size_t i = 0; i < root->n; i++) {
        const char *key = root->key[i]->text;
        size_t field = psa__field_find(schema->tables, key, strlen(key));
        if (is_one_of(key, others, CS_COUNT(others)))
            continue;
        if (is_section(schema->tables, key))
            CS_TRY(read_section(schema, doc, root->item[i], key, err));
        else if (field != SIZE_MAX)
            CS_TRY(psa__read_value(schema, doc, root->item[i], field, schema->baseline, err));
        else
            return unknown_root_key(schema, doc, root->key[i], others, CS_COUNT(others), err);
    }
    node = cs_node_get(root, "baseline");
    if (node != NULL)
        CS_TRY(read_section(schema, doc, node, NULL, err));
done:
    return status;
}

/* Length of the list that gives the number of dimensions; 0 when the file has none. */
static size_t listed_dimensions(const psa_schema *schema)
{
    const char *path = schema->tables->dimension_count_path;
    const char *dot = path == NULL ? NULL : strchr(path, '.');
    const cs_node *root = schema->system == NULL ? NULL : cs_doc_root(schema->system), *node;
    char section[64];

    if (root == NULL || dot == NULL || (size_t)(dot - path) >= sizeof section)
        return 0;
    (void)snprintf(section, sizeof section, "%.*s", (int)(dot - path), path);
    node = cs_node_get(cs_node_get(root, section), dot + 1);
    if (node == NULL)
        return 0;
    return node->kind == CS_DOC_LIST ? node->n : 1;
}

static cs_status find_dimensions(psa_schema *schema, const cs_node *root, cs_error *err)
{
    cs_status status = CS_OK;
    const cs_node *node = cs_node_get(root, "dimensions");
    size_t listed = listed_dimensions(schema);
    int64_t n = listed == 0 ? 1 : (int64_t)listed;

    if (node != NULL)
        CS_TRY(cs_node_int(schema->doc, node, 1, PSA_MAX_DIMS, &n, err));
    else if (n > PSA_MAX_DIMS)
        return cs_doc_fail(schema->system, cs_doc_root(schema->system), err,
                           "a network has at most %d dimensions, found %zu", PSA_MAX_DIMS, listed);
    schema->n_dims = (size_t)n;
    schema->count_field = SIZE_MAX;
    if (schema->tables->dimension_count_path != NULL)
        schema->count_field = psa__field_find(schema->tables, schema->tables->dimension_count_path,
                                              strlen(schema->tables->dimension_count_path));
done:
    return status;
}

static void set_fallbacks(psa_schema *schema)
{
    for (size_t i = 0; i < schema->tables->n_fields; i++) {
        const psa_field *field = &schema->tables->fields[i];
        size_t n = field->per_dimension ? schema->n_dims : 1;
        if (isnan(field->fallback) && field->kind != PSA_REAL)
            continue;
        for (size_t d = 0; d < n; d++)
            psa__field_set(field, schema->baseline, d, field->fallback);
    }
}

static cs_status open_system(psa_schema *schema, const cs_node *root, cs_error *err)
{
    cs_status status = CS_OK;
    const cs_node *node = cs_node_get(root, "system"), *version, *prices;
    const char *file;
    int64_t number;
    int32_t table = 0;

    if (schema->system == NULL && node != NULL) {
        CS_TRY(cs_node_string(schema->doc, node, &file, err));
        file = cs_doc_resolve(schema->doc, file);
        if (file == NULL)
            return no_memory(err);
        CS_TRY(cs_doc_load(file, &schema->system, err));
    }
    if (schema->system != NULL) {
        CS_TRY(
            cs_node_require(schema->system, cs_doc_root(schema->system), "system", &version, err));
        CS_TRY(cs_node_int(schema->system, version, 1, 1, &number, err));
        prices = cs_node_get(cs_doc_root(schema->system), "prices");
        if (prices != NULL)
            CS_TRY(cs_node_enum(schema->system, prices, price_tables, CS_COUNT(price_tables),
                                &table, err));
    }
    schema->prices = price_tables[table];
done:
    return status;
}

cs_status psa__load_system(psa_schema *schema, const cs_node *root, cs_error *err)
{
    cs_status status;

    CS_TRY(open_system(schema, root, err));
    CS_TRY(find_dimensions(schema, root, err));
    schema->baseline = cs_arena_alloc(schema->arena, schema->tables->config_size);
    schema->given = cs_arena_alloc(schema->arena, schema->tables->n_fields + 1);
    if (schema->baseline == NULL || schema->given == NULL)
        return no_memory(err);
    set_fallbacks(schema);
    if (schema->system != NULL)
        CS_TRY(read_system(schema, err));
done:
    return status;
}

static const psa__knob *knob_of(const psa_schema *schema, size_t field)
{
    for (size_t i = 0; i < schema->n_knobs; i++)
        if (schema->knob[i].field_index == field)
            return &schema->knob[i];
    return NULL;
}

/* A field that nobody gives is an error, unless it is a knob: then its first value. */
cs_status psa__finish_baseline(psa_schema *schema, cs_error *err)
{
    const cs_doc *doc = schema->system == NULL ? schema->doc : schema->system;

    for (size_t i = 0; i < schema->tables->n_fields; i++) {
        const psa_field *field = &schema->tables->fields[i];
        const psa__knob *knob = knob_of(schema, i);
        if (schema->given[i] || !isnan(field->fallback) || field->optional)
            continue;
        if (knob == NULL)
            return cs_doc_fail(doc, cs_doc_root(doc), err,
                               "no value for %s: give it here or make it a knob (%s)", field->path,
                               field->help == NULL ? "required" : field->help);
        for (size_t d = 0; d < (field->per_dimension ? schema->n_dims : 1); d++)
            psa__field_set(field, schema->baseline, d, knob->value[0]);
    }
    return CS_OK;
}
