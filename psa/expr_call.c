/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Functions and names of the expression language.  An aggregate skips entries that are switched
 * off because their dimension has size 1; an indexed one of those reads as 0. */
#include "psa/expr_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    psa__op op;
    enum { EACH, FOLD, CHOOSE } form;
    double neutral;  /* FOLD: value of a switched-off entry */
    bool conditions; /* FOLD: arguments are conditions */
    psa__type type;  /* FOLD: of the result */
} function;

static const function functions[] = {
    {"sum", PSA__ADD, FOLD, 0, false, PSA__NUMBER},
    {"product", PSA__MUL, FOLD, 1, false, PSA__NUMBER},
    {"min", PSA__MIN, FOLD, HUGE_VAL, false, PSA__NUMBER},
    {"max", PSA__MAX, FOLD, -HUGE_VAL, false, PSA__NUMBER},
    {"count", PSA__ADD, FOLD, 0, true, PSA__NUMBER},
    {"all", PSA__AND, FOLD, 1, true, PSA__BOOL},
    {"any", PSA__OR, FOLD, 0, true, PSA__BOOL},
    {"log2", PSA__LOG2, EACH, 0, false, PSA__NUMBER},
    {"sqrt", PSA__SQRT, EACH, 0, false, PSA__NUMBER},
    {"abs", PSA__ABS, EACH, 0, false, PSA__NUMBER},
    {"ceil", PSA__CEIL, EACH, 0, false, PSA__NUMBER},
    {"floor", PSA__FLOOR, EACH, 0, false, PSA__NUMBER},
    {"if", PSA__IF, CHOOSE, 0, false, PSA__NUMBER},
};

static const function *find_function(const char *name, size_t length)
{
    for (size_t i = 0; i < CS_COUNT(functions); i++)
        if (strlen(functions[i].name) == length && strncmp(functions[i].name, name, length) == 0)
            return &functions[i];
    return NULL;
}

bool psa__is_function(const char *name, size_t length)
{
    return find_function(name, length) != NULL;
}

/* Condition that dimension d (from 0) has more than one NPU. */
static const psa__node *is_active(psa_schema *schema, size_t d)
{
    const psa__node *npus =
        psa__leaf(&schema->pool, PSA__FIELD, (int32_t)schema->count_field, (int32_t)d);

    return psa__make2(&schema->pool, PSA__NE, npus, psa__const(&schema->pool, 1));
}

static const psa__node *guarded(psa_schema *schema, size_t d, const psa__node *node,
                                double otherwise)
{
    return psa__make3(&schema->pool, PSA__IF, is_active(schema, d), node,
                      psa__const(&schema->pool, otherwise));
}

typedef struct {
    size_t n;
    const psa__node *node[PSA_MAX_DIMS * 32];
} entries;

static cs_status gather(psa__parser *parser, const function *f, const psa__value *arg,
                        entries *list)
{
    psa_schema *schema = parser->source->schema;

    for (size_t i = 0; i < arg->n; i++) {
        const psa__node *node = arg->node[i];
        if (arg->sized && arg->vector)
            node = guarded(schema, i, node, f->neutral);
        if (node == NULL)
            return psa__node_fail(parser, arg->start);
        list->node[list->n++] = node;
    }
    return CS_OK;
}

static cs_status check_fold_argument(psa__parser *parser, const function *f,
                                     const psa__value *first, const psa__value *arg)
{
    bool fits =
        f->conditions ? arg->type == PSA__BOOL : arg->type == PSA__NUMBER || arg->type == PSA__BOOL;

    if (!fits)
        return psa__source_fail(parser->source, arg->start, parser->err, "%s() needs %s", f->name,
                                f->conditions ? "conditions" : "numbers");
    if (f->op != PSA__MUL && !cs_dimension_equal(first->unit, arg->unit))
        return psa__source_fail(parser->source, arg->start, parser->err,
                                "the arguments of %s() have different units: %s and %s", f->name,
                                cs_dimension_symbol(first->unit), cs_dimension_symbol(arg->unit));
    return CS_OK;
}

static cs_status product_unit(psa__parser *parser, const psa__value *arg, cs_dimension *unit)
{
    for (int i = 0; i < CS_DIM_COUNT; i++) {
        int e = unit->exponent[i] + arg->unit.exponent[i] * (int)arg->n;
        if (e > 20 || e < -20)
            return psa__source_fail(parser->source, arg->start, parser->err,
                                    "the unit grows too large");
        unit->exponent[i] = (int8_t)e;
    }
    return CS_OK;
}

static cs_status call_fold(psa__parser *parser, const function *f, size_t at, size_t n,
                           psa__value *arg, psa__value *out)
{
    cs_status status = CS_OK;
    entries list = {0};
    psa__value value;

    memset(&value, 0, sizeof value);
    if (n == 1 && !arg[0].vector)
        return psa__source_fail(parser->source, arg[0].start, parser->err,
                                "%s() works on a value per dimension or on several arguments; this "
                                "is a single value",
                                f->name);
    value.unit = f->op == PSA__MUL || f->conditions ? CS_DIMENSIONLESS : arg[0].unit;
    for (size_t i = 0; i < n; i++) {
        CS_TRY(check_fold_argument(parser, f, &arg[0], &arg[i]));
        CS_TRY(gather(parser, f, &arg[i], &list));
        if (f->op == PSA__MUL)
            CS_TRY(product_unit(parser, &arg[i], &value.unit));
    }
    value.type = f->type;
    value.n = 1;
    value.node[0] = psa__make(&parser->source->schema->pool, f->op, list.n, list.node);
    if (value.node[0] == NULL)
        return psa__node_fail(parser, at);
    *out = value;
done:
    return status;
}

cs_status psa__call(psa__parser *parser, const psa__token *name, size_t n, psa__value *arg,
                    psa__value *out)
{
    const char *word = parser->text + name->start;
    size_t length = name->end - name->start;
    const function *f = find_function(word, length);
    const char *names[CS_COUNT(functions)];
    char copy[64], near[128];

    if (f == NULL) {
        for (size_t i = 0; i < CS_COUNT(functions); i++)
            names[i] = functions[i].name;
        (void)snprintf(copy, sizeof copy, "%.*s", (int)(length > 60 ? 60 : length), word);
        return psa__source_fail(parser->source, name->start, parser->err, "unknown function '%s'%s",
                                copy, psa__suggest(copy, names, CS_COUNT(names), near));
    }
    if (f->form == FOLD)
        return call_fold(parser, f, name->start, n, arg, out);
    if (n != (f->form == CHOOSE ? 3u : 1u))
        return psa__source_fail(parser->source, name->start, parser->err,
                                "%s() takes %d argument%s, found %zu", f->name,
                                f->form == CHOOSE ? 3 : 1, f->form == CHOOSE ? "s" : "", n);
    if (f->form == CHOOSE)
        return psa__choose(parser, name->start, &arg[0], &arg[1], &arg[2], out);
    return psa__unary(parser, f->op, arg[0].start, &arg[0], out);
}

cs_status psa__index(psa__parser *parser, size_t at, const psa__value *vector,
                     const psa__value *index, psa__value *out)
{
    psa_schema *schema = parser->source->schema;
    psa__value value = *vector;
    double i;

    if (!vector->vector)
        return psa__source_fail(parser->source, at, parser->err,
                                "this has no value per dimension, so it takes no index");
    if (index->type != PSA__NUMBER || index->vector || index->node[0]->op != PSA__CONST)
        return psa__source_fail(parser->source, index->start, parser->err,
                                "an index is a constant");
    i = index->node[0]->value;
    if (!(i >= 1 && i <= (double)schema->n_dims) || i != floor(i))
        return psa__source_fail(parser->source, index->start, parser->err,
                                "index %g is outside 1 to %zu (the dimensions of the network)", i,
                                schema->n_dims);
    value.node[0] = vector->node[(size_t)i - 1];
    if (vector->sized && vector->type == PSA__NUMBER)
        value.node[0] = guarded(schema, (size_t)i - 1, value.node[0], 0);
    if (value.node[0] == NULL)
        return psa__node_fail(parser, at);
    value.vector = value.sized = false;
    value.n = 1;
    *out = value;
    return CS_OK;
}
