/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Typed operations of the expression language: every operand has a type, a physical dimension and
 * maybe one entry a network dimension; a wrong combination is refused where it stands. */
#include "psa/expr_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_EXPONENT 20

cs_status psa__node_fail(psa__parser *parser, size_t at)
{
    if (parser->source->schema->pool.too_large)
        return psa__source_fail(parser->source, at, parser->err, "the expression is too large");
    return cs_fail(parser->err, CS_ENOMEM, "expression");
}

psa__value psa__number_value(const psa__node *node, cs_dimension unit)
{
    psa__value value;

    memset(&value, 0, sizeof value);
    value.type = PSA__NUMBER;
    value.unit = unit;
    value.n = 1;
    value.node[0] = node;
    return value;
}

static const char *type_name(const psa__value *value, char text[64])
{
    static const char *const names[] = {"a number", "a condition", "an enumerator", "a text"};

    if (value->type != PSA__NUMBER || cs_dimension_equal(value->unit, CS_DIMENSIONLESS))
        return names[value->type];
    (void)snprintf(text, 64, "a quantity in %s", cs_dimension_symbol(value->unit));
    if (cs_dimension_symbol(value->unit)[0] == '\0') {
        const int8_t *e = value->unit.exponent;
        (void)snprintf(text, 64, "a quantity in s^%d B^%d FLOP^%d $^%d J^%d", e[0], e[1], e[2],
                       e[3], e[4]);
    }
    return text;
}

/* Conditions count as 0 or 1 where a number is needed. */
static cs_status need_number(psa__parser *parser, size_t at, const psa__value *value)
{
    char text[64];

    if (value->type == PSA__NUMBER || value->type == PSA__BOOL)
        return CS_OK;
    return psa__source_fail(parser->source, at, parser->err, "expected a number, found %s",
                            type_name(value, text));
}

static cs_status need_condition(psa__parser *parser, size_t at, const psa__value *value)
{
    char text[64];

    if (value->type == PSA__BOOL)
        return CS_OK;
    return psa__source_fail(parser->source, at, parser->err,
                            "expected a condition, such as a comparison, found %s",
                            type_name(value, text));
}

/* A bare 0 fits every unit. */
static bool is_zero(const psa__value *value)
{
    return !value->vector && value->node[0]->op == PSA__CONST && value->node[0]->value == 0;
}

static cs_status need_same_unit(psa__parser *parser, size_t at, const char *what,
                                const psa__value *a, const psa__value *b)
{
    char left[64], right[64];

    if (cs_dimension_equal(a->unit, b->unit) || is_zero(a) || is_zero(b))
        return CS_OK;
    return psa__source_fail(parser->source, at, parser->err, "cannot %s %s and %s", what,
                            type_name(a, left), type_name(b, right));
}

/* Entry i of a value that may be one for all. */
static const psa__node *entry(const psa__value *value, size_t i)
{
    return value->node[value->vector ? i : 0];
}

/* Element by element; a scalar goes with every entry. */
static cs_status build(psa__parser *parser, psa__op op, size_t at, const psa__value *a,
                       const psa__value *b, psa__value *out)
{
    psa__pool *pool = &parser->source->schema->pool;

    out->vector = a->vector || (b != NULL && b->vector);
    out->sized = a->sized || (b != NULL && b->sized);
    out->n = out->vector ? parser->source->schema->n_dims : 1;
    for (size_t i = 0; i < out->n; i++) {
        out->node[i] = b == NULL ? psa__make1(pool, op, entry(a, i))
                                 : psa__make2(pool, op, entry(a, i), entry(b, i));
        if (out->node[i] == NULL)
            return psa__node_fail(parser, at);
    }
    return CS_OK;
}

static cs_status scale_unit(psa__parser *parser, size_t at, const psa__value *a,
                            const psa__value *b, int sign, cs_dimension *out)
{
    for (int i = 0; i < CS_DIM_COUNT; i++) {
        int e = a->unit.exponent[i] + sign * b->unit.exponent[i];
        if (e > MAX_EXPONENT || e < -MAX_EXPONENT)
            return psa__source_fail(parser->source, at, parser->err, "the unit grows too large");
        out->exponent[i] = (int8_t)e;
    }
    return CS_OK;
}

/* Only a constant power of a quantity has a unit, and only a whole one. */
static cs_status power_unit(psa__parser *parser, size_t at, const psa__value *a,
                            const psa__value *b, cs_dimension *out)
{
    double p;

    if (!cs_dimension_equal(b->unit, CS_DIMENSIONLESS))
        return psa__source_fail(parser->source, at, parser->err, "an exponent has no unit");
    if (cs_dimension_equal(a->unit, CS_DIMENSIONLESS))
        return CS_OK;
    if (b->vector || b->node[0]->op != PSA__CONST)
        return psa__source_fail(parser->source, at, parser->err,
                                "a quantity can only be raised to a constant");
    p = b->node[0]->value;
    for (int i = 0; i < CS_DIM_COUNT; i++) {
        double e = a->unit.exponent[i] * p;
        if (e != floor(e) || fabs(e) > MAX_EXPONENT)
            return psa__source_fail(parser->source, at, parser->err,
                                    "this power of a quantity has no unit");
        out->exponent[i] = (int8_t)e;
    }
    return CS_OK;
}

static cs_status result_unit(psa__parser *parser, psa__op op, size_t at, const psa__value *a,
                             const psa__value *b, cs_dimension *out)
{
    switch (op) {
    case PSA__MUL:
        return scale_unit(parser, at, a, b, 1, out);
    case PSA__DIV:
        return scale_unit(parser, at, a, b, -1, out);
    case PSA__POW:
        return power_unit(parser, at, a, b, out);
    default:
        *out = is_zero(a) ? b->unit : a->unit;
        return need_same_unit(parser, at, op == PSA__MOD ? "take the remainder of" : "combine", a,
                              b);
    }
}

cs_status psa__binary(psa__parser *parser, psa__op op, size_t at, const psa__value *a,
                      const psa__value *b, psa__value *out)
{
    cs_status status;
    psa__value value;

    memset(&value, 0, sizeof value);
    if (op == PSA__AND || op == PSA__OR) {
        CS_TRY(need_condition(parser, at, a));
        CS_TRY(need_condition(parser, at, b));
        value.type = PSA__BOOL;
    } else {
        CS_TRY(need_number(parser, at, a));
        CS_TRY(need_number(parser, at, b));
        CS_TRY(result_unit(parser, op, at, a, b, &value.unit));
    }
    CS_TRY(build(parser, op, at, a, b, &value));
    *out = value;
done:
    return status;
}

cs_status psa__unary(psa__parser *parser, psa__op op, size_t at, const psa__value *a,
                     psa__value *out)
{
    cs_status status;
    psa__value value;
    bool plain = op == PSA__LOG2 || op == PSA__CEIL || op == PSA__FLOOR;
    char text[64];

    memset(&value, 0, sizeof value);
    if (op == PSA__NOT) {
        CS_TRY(need_condition(parser, at, a));
        value.type = PSA__BOOL;
    } else {
        CS_TRY(need_number(parser, at, a));
        value.unit = a->unit;
    }
    if (plain && !cs_dimension_equal(a->unit, CS_DIMENSIONLESS))
        return psa__source_fail(parser->source, at, parser->err,
                                "needs a number without unit, found %s; divide by one first",
                                type_name(a, text));
    for (int i = 0; i < CS_DIM_COUNT && op == PSA__SQRT; i++) {
        if (a->unit.exponent[i] % 2 != 0)
            return psa__source_fail(parser->source, at, parser->err, "this root has no unit");
        value.unit.exponent[i] = (int8_t)(a->unit.exponent[i] / 2);
    }
    CS_TRY(build(parser, op, at, a, NULL, &value));
    *out = value;
done:
    return status;
}

/* Index of a quoted enumerator. */
static cs_status enumerator(psa__parser *parser, size_t at, const psa_field *field,
                            const psa__value *text, psa__value *out)
{
    cs_error inner;
    double index;

    if (psa__field_parse(field, text->text, &index, &inner) != CS_OK)
        return psa__source_fail(parser->source, at, parser->err, "%s: %s", field->path, inner.text);
    *out = psa__number_value(psa__const(&parser->source->schema->pool, index), CS_DIMENSIONLESS);
    out->type = PSA__ENUM;
    out->field = field;
    return out->node[0] == NULL ? psa__node_fail(parser, at) : CS_OK;
}

static cs_status compare_names(psa__parser *parser, psa__op op, size_t at, psa__value *a,
                               psa__value *b)
{
    cs_status status = CS_OK;

    if (op != PSA__EQ && op != PSA__NE)
        return psa__source_fail(parser->source, at, parser->err,
                                "enumerators have no order: compare with == or !=");
    if (a->type == PSA__TEXT && b->type == PSA__ENUM)
        CS_TRY(enumerator(parser, a->start, b->field, a, a));
    else if (b->type == PSA__TEXT && a->type == PSA__ENUM)
        CS_TRY(enumerator(parser, b->start, a->field, b, b));
    if (a->type != PSA__ENUM || b->type != PSA__ENUM ||
        (a->field != b->field && (a->field->names == NULL || a->field->names != b->field->names)))
        return psa__source_fail(parser->source, at, parser->err,
                                "these cannot be compared: an enumerator compares with a quoted "
                                "name or another value of the same kind");
done:
    return status;
}

cs_status psa__compare(psa__parser *parser, psa__op op, size_t at, const psa__value *a,
                       const psa__value *b, psa__value *out)
{
    cs_status status;
    psa__value left = *a, right = *b, value;

    memset(&value, 0, sizeof value);
    if (left.type >= PSA__ENUM || right.type >= PSA__ENUM) {
        CS_TRY(compare_names(parser, op, at, &left, &right));
    } else {
        CS_TRY(need_same_unit(parser, at, "compare", &left, &right));
        if (left.type != right.type && (left.type == PSA__BOOL || right.type == PSA__BOOL) &&
            op != PSA__EQ && op != PSA__NE)
            return psa__source_fail(parser->source, at, parser->err,
                                    "cannot order a condition and a number");
    }
    value.type = PSA__BOOL;
    CS_TRY(build(parser, op, at, &left, &right, &value));
    *out = value;
done:
    return status;
}

cs_status psa__choose(psa__parser *parser, size_t at, const psa__value *condition,
                      const psa__value *yes, const psa__value *no, psa__value *out)
{
    cs_status status;
    psa__value value;
    psa__pool *pool = &parser->source->schema->pool;

    memset(&value, 0, sizeof value);
    CS_TRY(need_condition(parser, at, condition));
    if (yes->type != no->type || yes->type == PSA__TEXT || yes->field != no->field)
        return psa__source_fail(parser->source, at, parser->err,
                                "the two values of if() must be of the same kind");
    CS_TRY(need_same_unit(parser, at, "choose between", yes, no));
    value.type = yes->type;
    value.field = yes->field;
    value.unit = yes->type == PSA__NUMBER && is_zero(yes) ? no->unit : yes->unit;
    value.vector = condition->vector || yes->vector || no->vector;
    value.sized = condition->sized || yes->sized || no->sized;
    value.n = value.vector ? parser->source->schema->n_dims : 1;
    for (size_t i = 0; i < value.n; i++) {
        value.node[i] = psa__make3(pool, PSA__IF, entry(condition, i), entry(yes, i), entry(no, i));
        if (value.node[i] == NULL)
            return psa__node_fail(parser, at);
    }
    *out = value;
done:
    return status;
}
