/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a name in an expression stands for: a field of the configuration, a derived value, a
 * result, a fact of a workload; and what to say when it stands for nothing. */
#include "psa/expr_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEL_PREFIX      "model."
#define MAX_DERIVED_DEPTH 32

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && strncmp(word, name, length) == 0;
}

static cs_status field_value(psa__parser *parser, size_t at, size_t index, psa__value *out)
{
    psa_schema *schema = parser->source->schema;
    const psa_field *field = &schema->tables->fields[index];

    memset(out, 0, sizeof *out);
    out->type = field->kind == PSA_BOOL       ? PSA__BOOL
                : psa__field_is_number(field) ? PSA__NUMBER
                                              : PSA__ENUM;
    out->unit = out->type == PSA__NUMBER ? field->unit : CS_DIMENSIONLESS;
    out->field = out->type == PSA__ENUM ? field : NULL;
    out->vector = field->per_dimension;
    out->sized =
        field->per_dimension && field->inactive_on_size_one && schema->count_field != SIZE_MAX;
    out->n = out->vector ? schema->n_dims : 1;
    for (size_t d = 0; d < out->n; d++) {
        out->node[d] = psa__leaf(&schema->pool, PSA__FIELD, (int32_t)index, (int32_t)d);
        if (out->node[d] == NULL)
            return psa__node_fail(parser, at);
    }
    return CS_OK;
}

/* Derived values are put in where they are named; they may stand in any order. */
static cs_status derived_value(psa__parser *parser, size_t at, psa__derived *derived,
                               psa__value *out)
{
    cs_status status = CS_OK;
    psa_schema *schema = parser->source->schema;
    psa__parsed parsed;
    psa__source source = {schema, schema->doc, derived->node, derived->node->text, 0, true};

    if (derived->state == 1)
        return psa__source_fail(parser->source, at, parser->err,
                                "the derived value '%s' depends on itself", derived->name);
    if (schema->derived_depth == MAX_DERIVED_DEPTH)
        return psa__source_fail(parser->source, at, parser->err,
                                "derived values are nested deeper than %d", MAX_DERIVED_DEPTH);
    if (derived->state == 0) {
        derived->state = 1;
        schema->derived_depth++;
        CS_TRY(psa__parse(&source, &parsed, parser->err));
        schema->derived_depth--;
        derived->value = parsed.value;
        derived->state = 2;
    }
    *out = derived->value;
done:
    return status;
}

static bool result_mentioned(const psa__value *value)
{
    for (size_t i = 0; i < value->n; i++)
        if (psa__mentions(value->node[i], PSA__RESULT, -1))
            return true;
    return false;
}

static cs_status result_value(psa__parser *parser, size_t at, size_t index, psa__value *out)
{
    psa_schema *schema = parser->source->schema;

    *out = psa__number_value(psa__leaf(&schema->pool, PSA__RESULT, (int32_t)index, 0),
                             schema->tables->results[index].unit);
    return out->node[0] == NULL ? psa__node_fail(parser, at) : CS_OK;
}

/* Keys of the workload entries are facts, and so is everything of a model. */
static bool is_fact(const psa__parser *parser, const char *word, size_t length)
{
    const psa_schema *schema = parser->source->schema;
    const char *key;

    if (memchr(word, '.', length) == NULL)
        return false;
    if (parser->source->doc == NULL)
        return true;
    if (length > strlen(MODEL_PREFIX) && strncmp(word, MODEL_PREFIX, strlen(MODEL_PREFIX)) == 0)
        return true;
    if (length <= 9 || strncmp(word, "workload.", 9) != 0)
        return false;
    for (size_t w = 0; w < schema->n_workloads; w++)
        for (size_t i = 0; i < schema->workload[w].node->n; i++) {
            key = schema->workload[w].node->key[i]->text;
            if (is_word(word + 9, length - 9, key) && strcmp(key, "model") != 0 &&
                strcmp(key, "mode") != 0)
                return true;
        }
    return false;
}

static cs_status fact_value(psa__parser *parser, const psa__token *name, psa__value *out)
{
    psa_schema *schema = parser->source->schema;
    int32_t index = psa__fact_index(schema, parser->text + name->start, name->end - name->start,
                                    parser->source, name->start);

    if (index < 0)
        return cs_fail(parser->err, CS_ENOMEM, "facts");
    *out = psa__number_value(psa__leaf(&schema->pool, PSA__FACT, index, 0), CS_DIMENSIONLESS);
    return out->node[0] == NULL ? psa__node_fail(parser, name->start) : CS_OK;
}

/* Whether a bare word is some field's enumerator, so that quotes are missing. */
static bool is_enumerator(const psa_schema *schema, const char *word)
{
    for (size_t i = 0; i < schema->tables->n_fields; i++)
        for (const char *const *name = schema->tables->fields[i].names;
             name != NULL && *name != NULL; name++)
            if (strcmp(*name, word) == 0)
                return true;
    return false;
}

static cs_status unknown_name(psa__parser *parser, const psa__token *name)
{
    static const char *const well_known[] = {"workload.global_batch", "workload.sequence"};
    const psa_schema *schema = parser->source->schema;
    const psa_tables *tables = schema->tables;
    size_t length = name->end - name->start, n = 0;
    const char **names =
        malloc((tables->n_fields + tables->n_results + schema->n_derived + 2) * sizeof *names);
    char word[128], near[128];
    cs_status status;

    if (names == NULL)
        return cs_fail(parser->err, CS_ENOMEM, "names");
    for (size_t i = 0; i < tables->n_fields; i++)
        names[n++] = tables->fields[i].path;
    for (size_t i = 0; i < tables->n_results; i++)
        names[n++] = tables->results[i].name;
    for (size_t i = 0; i < schema->n_derived; i++)
        names[n++] = schema->derived[i].name;
    for (size_t i = 0; i < CS_COUNT(well_known); i++)
        names[n++] = well_known[i];
    (void)snprintf(word, sizeof word, "%.*s", (int)(length > 100 ? 100 : length),
                   parser->text + name->start);
    if (is_enumerator(schema, word))
        status = psa__source_fail(parser->source, name->start, parser->err,
                                  "'%s' is an enumerator: write it in quotes, \"%s\"", word, word);
    else
        status = psa__source_fail(parser->source, name->start, parser->err, "unknown name '%s'%s",
                                  word, psa__suggest(word, names, n, near));
    free(names);
    return status;
}

/* Constants: d, true, false, dimensions. */
static bool constant_value(const psa__parser *parser, const char *word, size_t length,
                           double *value, psa__type *type)
{
    *type = PSA__NUMBER;
    if (parser->source->d > 0 && is_word(word, length, "d")) {
        *value = (double)parser->source->d;
        return true;
    }
    if (is_word(word, length, "dimensions")) {
        *value = (double)parser->source->schema->n_dims;
        return true;
    }
    *type = PSA__BOOL;
    *value = is_word(word, length, "true");
    return is_word(word, length, "true") || is_word(word, length, "false");
}

static size_t find_result(const psa_tables *tables, const char *word, size_t length)
{
    for (size_t i = 0; i < tables->n_results; i++)
        if (is_word(word, length, tables->results[i].name))
            return i;
    return SIZE_MAX;
}

static cs_status lookup(psa__parser *parser, const psa__token *name, psa__value *out)
{
    psa_schema *schema = parser->source->schema;
    const char *word = parser->text + name->start;
    size_t length = name->end - name->start, index;

    index = psa__field_find(schema->tables, word, length);
    if (index != SIZE_MAX)
        return field_value(parser, name->start, index, out);
    for (size_t i = 0; i < schema->n_derived; i++)
        if (is_word(word, length, schema->derived[i].name))
            return derived_value(parser, name->start, &schema->derived[i], out);
    index = find_result(schema->tables, word, length);
    if (index != SIZE_MAX)
        return result_value(parser, name->start, index, out);
    if (is_fact(parser, word, length))
        return fact_value(parser, name, out);
    return unknown_name(parser, name);
}

cs_status psa__name(psa__parser *parser, const psa__token *name, psa__value *out)
{
    cs_status status;
    psa__pool *pool = &parser->source->schema->pool;
    const char *word = parser->text + name->start;
    size_t length = name->end - name->start;
    double value;
    psa__type type;

    if (constant_value(parser, word, length, &value, &type)) {
        *out = psa__number_value(psa__const(pool, value), CS_DIMENSIONLESS);
        out->type = type;
        return out->node[0] == NULL ? psa__node_fail(parser, name->start) : CS_OK;
    }
    if (psa__is_function(word, length))
        return psa__source_fail(parser->source, name->start, parser->err,
                                "'%.*s' is a function: write %.*s(...)", (int)length, word,
                                (int)length, word);
    CS_TRY(lookup(parser, name, out));
    if (!parser->source->allow_result && result_mentioned(out))
        return psa__source_fail(parser->source, name->start, parser->err,
                                "'%.*s' is a result: it is not known before a design is simulated",
                                (int)length, word);
done:
    return status;
}
