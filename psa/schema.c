/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Reading a PSA file: the top level, workloads and switches; what the schema tells about itself. */
#include "psa/psa_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_LIMIT   ((size_t)512 << 20)
#define MAX_WORKLOADS 16

static const char *const root_keys[] = {
    "psa",           "name",         "workloads",   "system",     "knobs",
    "derived",       "aggregate",    "constraints", "objectives", "allow_idle",
    "uneven_stages", "memory_limit", "starts",      "dimensions",
};

const char *const psa__switch_names[PSA__N_SWITCHES] = {"allow_idle", "uneven_stages",
                                                        "memory_limit"};

bool psa__grow(cs_arena *arena, void **array, size_t *capacity, size_t n, size_t size)
{
    size_t grown = *capacity == 0 ? 8 : *capacity * 2;
    void *copy;

    if (n < *capacity)
        return true;
    copy = cs_arena_alloc(arena, grown * size);
    if (copy == NULL)
        return false;
    if (*array != NULL)
        memcpy(copy, *array, n * size);
    *array = copy;
    *capacity = grown;
    return true;
}

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "PSA schema");
}

static cs_status load_workload(psa_schema *schema, const cs_node *node, psa_workload *out,
                               cs_error *err)
{
    cs_status status;
    const cs_node *model, *weight;
    const char *file;

    CS_TRY(cs_node_require(schema->doc, node, "model", &model, err));
    CS_TRY(cs_node_string(schema->doc, model, &file, err));
    if (file[0] == '\0')
        return cs_doc_fail(schema->doc, model, err, "expected the path of a model file");
    out->node = node;
    out->weight = 1;
    out->model_path = cs_doc_resolve(schema->doc, file);
    if (out->model_path == NULL)
        return no_memory(err);
    weight = cs_node_get(node, "weight");
    if (weight != NULL) {
        CS_TRY(cs_node_real(schema->doc, weight, &out->weight, err));
        if (!(out->weight > 0))
            return cs_doc_fail(schema->doc, weight, err, "a weight is larger than 0");
    }
done:
    return status;
}

static cs_status load_workloads(psa_schema *schema, const cs_node *node, cs_error *err)
{
    cs_status status = CS_OK;

    if (node == NULL)
        return CS_OK;
    CS_TRY(cs_node_expect(schema->doc, node, CS_DOC_LIST, err));
    if (node->n == 0 || node->n > MAX_WORKLOADS)
        return cs_doc_fail(schema->doc, node, err, "expected 1 to %d workloads, found %zu",
                           MAX_WORKLOADS, node->n);
    schema->workload = cs_arena_alloc(schema->arena, node->n * sizeof *schema->workload);
    schema->bound = cs_arena_alloc(schema->arena, node->n * sizeof *schema->bound);
    if (schema->workload == NULL || schema->bound == NULL)
        return no_memory(err);
    for (size_t i = 0; i < node->n; i++) {
        CS_TRY(load_workload(schema, node->item[i], &schema->workload[i], err));
        schema->n_workloads = i + 1;
    }
done:
    return status;
}

static cs_status load_switches(psa_schema *schema, const cs_node *root, cs_error *err)
{
    cs_status status = CS_OK;

    schema->on[PSA__MEMORY_LIMIT] = true;
    for (size_t i = 0; i < PSA__N_SWITCHES; i++) {
        const cs_node *node = cs_node_get(root, psa__switch_names[i]);
        if (node != NULL)
            CS_TRY(cs_node_bool(schema->doc, node, &schema->on[i], err));
    }
done:
    return status;
}

static cs_status load_header(psa_schema *schema, const cs_node *root, cs_error *err)
{
    static const char *const ways[] = {"sum", "mean", "max"};
    cs_status status;
    const cs_node *node;
    int64_t version;
    int32_t way = 0;

    if (root->kind == CS_DOC_SCALAR && root->text[0] == '\0')
        return cs_doc_fail(schema->doc, root, err,
                           "the file is empty; expected a mapping that begins with 'psa: 1'");
    CS_TRY(cs_node_expect(schema->doc, root, CS_DOC_MAP, err));
    CS_TRY(cs_node_check_keys(schema->doc, root, root_keys, CS_COUNT(root_keys), err));
    CS_TRY(cs_node_require(schema->doc, root, "psa", &node, err));
    CS_TRY(cs_node_int(schema->doc, node, 1, 1, &version, err));
    schema->name = "unnamed";
    node = cs_node_get(root, "name");
    if (node != NULL)
        CS_TRY(cs_node_string(schema->doc, node, &schema->name, err));
    if (schema->name[0] == '\0')
        return cs_doc_fail(schema->doc, node, err, "expected a name, found an empty text");
    node = cs_node_get(root, "aggregate");
    if (node != NULL)
        CS_TRY(cs_node_enum(schema->doc, node, ways, CS_COUNT(ways), &way, err));
    schema->aggregate = ways[way];
    CS_TRY(load_switches(schema, root, err));
    CS_TRY(load_workloads(schema, cs_node_get(root, "workloads"), err));
done:
    return status;
}

/* Pinned starting designs are checked now, so that a run does not stumble over them later. */
static cs_status load_starts(psa_schema *schema, const cs_node *node, cs_error *err)
{
    cs_status status = CS_OK;
    void *config = NULL;

    if (node == NULL)
        return CS_OK;
    CS_TRY(cs_node_expect(schema->doc, node, CS_DOC_LIST, err));
    schema->start = cs_arena_alloc(schema->arena, (node->n + 1) * sizeof *schema->start);
    config = malloc(schema->tables->config_size);
    if (schema->start == NULL || config == NULL) {
        status = no_memory(err);
        goto done;
    }
    for (size_t i = 0; i < node->n; i++) {
        CS_TRY(cs_node_expect(schema->doc, node->item[i], CS_DOC_MAP, err));
        schema->start[i] = node->item[i];
        schema->n_starts = i + 1;
        CS_TRY(psa_schema_start(schema, i, config, err));
    }
done:
    free(config);
    return status;
}

static cs_status load_all(psa_schema *schema, cs_error *err)
{
    cs_status status;
    const cs_node *root = cs_doc_root(schema->doc);

    CS_TRY(load_header(schema, root, err));
    CS_TRY(psa__load_system(schema, root, err));
    CS_TRY(psa__load_knobs(schema, cs_node_get(root, "knobs"), err));
    CS_TRY(psa__load_derived(schema, cs_node_get(root, "derived"), err));
    CS_TRY(psa__load_conditions(schema, err));
    CS_TRY(psa__load_constraints(schema, cs_node_get(root, "constraints"), err));
    CS_TRY(psa__load_objectives(schema, cs_node_get(root, "objectives"), err));
    CS_TRY(psa__finish_baseline(schema, err));
    CS_TRY(load_starts(schema, cs_node_get(root, "starts"), err));
    CS_TRY(psa__finish_facts(schema, err));
done:
    return status;
}

/* libyaml stops at an unquoted bracket inside { } or [ ]: an expression may be the reason. */
static void hint_at_quotes(cs_status status, cs_error *err)
{
    if (status == CS_EPARSE && err != NULL &&
        (strstr(err->text, "flow") != NULL || strstr(err->text, "cannot start any token") != NULL))
        cs_error_append(err, "; an expression with a comma or bracket inside { } or [ ] must be in "
                             "quotes");
}

cs_status psa_schema_parse(const psa_text *text, const psa_tables *tables, psa_schema **out,
                           cs_error *err)
{
    cs_status status = CS_OK;
    psa_schema *schema = calloc(1, sizeof *schema);

    if (schema == NULL)
        return no_memory(err);
    schema->tables = tables;
    schema->arena = cs_arena_create(ARENA_LIMIT);
    if (schema->arena == NULL || !psa__pool_init(&schema->pool, schema->arena, false)) {
        status = no_memory(err);
        goto done;
    }
    if (text->psa == NULL)
        status = cs_doc_load(text->name, &schema->doc, err);
    else
        status = cs_doc_parse(text->psa, text->psa_length, text->name, &schema->doc, err);
    if (status == CS_OK && text->system != NULL)
        status = cs_doc_parse(text->system, text->system_length, "system", &schema->system, err);
    hint_at_quotes(status, err);
    if (status != CS_OK)
        goto done;
    CS_TRY(load_all(schema, err));
    *out = schema;
    schema = NULL;
done:
    psa_schema_destroy(schema);
    return status;
}

cs_status psa_schema_load(const char *path, const psa_tables *tables, psa_schema **out,
                          cs_error *err)
{
    psa_text text = {.name = path};

    return psa_schema_parse(&text, tables, out, err);
}

void psa_schema_destroy(psa_schema *schema)
{
    if (schema == NULL)
        return;
    cs_doc_destroy(schema->doc);
    cs_doc_destroy(schema->system);
    cs_doc_destroy(schema->device);
    psa__pool_fini(&schema->pool);
    cs_arena_destroy(schema->arena);
    free(schema);
}

const cs_doc *psa_schema_doc(const psa_schema *schema)
{
    return schema->doc;
}

const cs_doc *psa_schema_system_doc(const psa_schema *schema)
{
    return schema->system;
}

const cs_doc *psa_schema_device_doc(const psa_schema *schema)
{
    return schema->device;
}

const char *psa_schema_name(const psa_schema *schema)
{
    return schema->name;
}

uint64_t psa_schema_hash(const psa_schema *schema)
{
    const cs_doc *docs[3] = {schema->doc, schema->system, schema->device};
    uint64_t hash = CS_HASH_START;

    for (size_t i = 0; i < CS_COUNT(docs); i++) {
        uint64_t one = docs[i] == NULL ? 0 : cs_doc_hash(docs[i]);
        hash = cs_hash(hash, &one, sizeof one);
    }
    return hash;
}

size_t psa_schema_n_workloads(const psa_schema *schema)
{
    return schema->n_workloads;
}

const psa_workload *psa_schema_workload(const psa_schema *schema, size_t i)
{
    return &schema->workload[i];
}

const char *psa_schema_aggregate(const psa_schema *schema)
{
    return schema->aggregate;
}

size_t psa_schema_n_dims(const psa_schema *schema)
{
    return schema->n_dims;
}

const psa_tables *psa_schema_tables(const psa_schema *schema)
{
    return schema->tables;
}

bool psa_schema_allow_idle(const psa_schema *schema)
{
    return schema->on[PSA__ALLOW_IDLE];
}

bool psa_schema_memory_limit(const psa_schema *schema)
{
    return schema->on[PSA__MEMORY_LIMIT];
}

const char *psa_schema_prices(const psa_schema *schema)
{
    return schema->prices;
}

size_t psa_schema_n_warnings(const psa_schema *schema)
{
    return schema->n_warnings;
}

const char *psa_schema_warning(const psa_schema *schema, size_t i)
{
    return i < schema->n_warnings ? schema->warning[i] : NULL;
}

size_t psa_schema_n_starts(const psa_schema *schema)
{
    return schema->n_starts;
}
