/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Checking a configuration, and saying with its numbers why it breaks a constraint. */
#include "psa/expr_private.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Bounded text that keeps what fits. */
typedef struct {
    char text[512];
    size_t n;
} line;

static void put(line *out, const char *text, size_t length)
{
    size_t room = sizeof out->text - 1 - out->n;

    length = length < room ? length : room;
    memcpy(out->text + out->n, text, length);
    out->n += length;
    out->text[out->n] = '\0';
}

static void put_value(line *out, const psa_schema *schema, const psa__value *value,
                      const psa__env *env)
{
    char text[64], number[48];

    for (size_t i = 0; i < value->n; i++) {
        double x = psa__evaluate(schema, value->node[i], env);
        const char *shown;
        if (i > 0)
            put(out, ", ", 2);
        if (value->type == PSA__BOOL)
            shown = x != 0 ? "true" : "false";
        else if (value->type == PSA__ENUM)
            shown = psa__field_format(value->field, x, text);
        else if (cs_dimension_equal(value->unit, CS_DIMENSIONLESS))
            shown = cs_double_text(x, text);
        else
            shown = cs_quantity_text(x, value->unit, number);
        put(out, shown, strlen(shown));
    }
}

/* The entry for dimension d (from 1) of a value that has one a dimension. */
static psa__value entry_of(const psa__value *value, size_t d)
{
    psa__value one = *value;

    if (value->vector && d > 0) {
        one.node[0] = value->node[d - 1];
        one.vector = false;
        one.n = 1;
    }
    return one;
}

/* End of an index behind a name: "[d]", "[2]"; the name's end when there is none. */
static size_t index_end(const char *text, size_t end)
{
    size_t at = end + strspn(text + end, " ");
    const char *close = text[at] == '[' ? strchr(text + at, ']') : NULL;

    return close == NULL ? end : (size_t)(close - text) + 1;
}

/* Copies the source with every name replaced by its value; inside a condition on each dimension,
 * by that of the dimension. */
static void put_numbers(line *out, const psa__source *source, const psa__value *span, size_t d,
                        const psa__env *env)
{
    size_t at = span->start;
    psa__token token;
    psa__parsed parsed;
    char name[256];

    while (at < span->end && psa__next_token(source, at, &token, NULL) == CS_OK &&
           token.kind != TOKEN_END) {
        size_t end = token.end;
        psa__source part = *source;
        put(out, source->text + at, token.start - at);
        if (token.kind == TOKEN_NAME && source->text[token.end] != '(') {
            end = index_end(source->text, token.end);
            (void)snprintf(name, sizeof name, "%.*s", (int)(end - token.start),
                           source->text + token.start);
            part.text = name;
        }
        if (part.text != source->text && psa__parse(&part, &parsed, NULL) == CS_OK) {
            psa__value shown = entry_of(&parsed.value, d);
            put_value(out, source->schema, &shown, env);
        } else
            put(out, source->text + token.start, end - token.start);
        at = end;
    }
}

static bool is_literal(const psa__value *side)
{
    return side->type == PSA__TEXT || (!side->vector && side->n == 1 && side->node[0] != NULL &&
                                       side->node[0]->op == PSA__CONST);
}

/* "a * b = 2 * 3 = 6", shortened where steps repeat. */
static void put_side(line *out, const psa__source *source, const psa__value *side, size_t d,
                     const psa__env *env)
{
    line numbers = {.n = 0}, value = {.n = 0};
    psa__value shown = entry_of(side, d);

    put(out, source->text + side->start, side->end - side->start);
    if (is_literal(side))
        return;
    put_numbers(&numbers, source, side, side->vector ? d : 0, env);
    put_value(&value, source->schema, &shown, env);
    if (strcmp(numbers.text, value.text) != 0) {
        put(out, " = ", 3);
        put(out, numbers.text, numbers.n);
    }
    put(out, " = ", 3);
    put(out, value.text, value.n);
}

static void explain(psa_schema *schema, const psa__constraint *constraint, const psa__part *part,
                    const psa__env *env, cs_error *err)
{
    static const char *const wanted[] = {"equal to", "different from", "below",
                                         "at most",  "above",          "at least"};
    line left = {.n = 0}, right = {.n = 0};
    const psa__parsed *parsed = &part->parsed;
    psa__source source = {schema,           constraint->implied ? NULL : schema->doc,
                          constraint->node, constraint->source,
                          part->d,          true};
    psa__value whole = parsed->value;
    char where[48] = "";

    if (part->d > 0)
        (void)snprintf(where, sizeof where, " (dimension %zu)", part->d);
    if (parsed->compared) {
        put_side(&left, &source, &parsed->left, part->d, env);
        put_side(&right, &source, &parsed->right, part->d, env);
        cs_error_append(err, "%s%s: %s must be %s %s\n",
                        constraint->implied ? constraint->name : constraint->source, where,
                        left.text, wanted[parsed->op - PSA__EQ], right.text);
        return;
    }
    whole.start = 0;
    put_numbers(&left, &source, &whole, whole.vector ? part->d : 0, env);
    cs_error_append(err, "%s%s: %s does not hold: %s\n",
                    constraint->implied ? constraint->name : constraint->source, where,
                    constraint->source, left.text);
}

/* Names are parsed again to show their values: in memory of its own, since the schema is shared by
 * threads. */
void psa__explain(const psa_schema *schema, const psa__constraint *constraint,
                  const psa__part *part, const psa__env *env, cs_error *err)
{
    psa_schema copy = *schema;

    copy.arena = cs_arena_create(0);
    if (copy.arena != NULL && psa__pool_init(&copy.pool, copy.arena, false)) {
        explain(&copy, constraint, part, env, err);
        psa__pool_fini(&copy.pool);
    }
    cs_arena_destroy(copy.arena);
}

/* Reports every violated part of a constraint for one workload; returns how many. */
static size_t check_constraint(const psa_schema *schema, const psa__constraint *c, size_t w,
                               const void *config, cs_error *err)
{
    psa__env env = {.config = config, .fact = psa__facts_of(schema, w)};
    size_t n = 0;

    if (!psa__facts_known(schema, w, c->fact, c->n_facts))
        return 0;
    for (size_t p = 0; p < c->n_parts; p++) {
        if (psa__run(&c->part[p].program, &env) != 0)
            continue;
        n++;
        if (err != NULL)
            psa__explain(schema, c, &c->part[p], &env, err);
    }
    return n;
}

cs_status psa_schema_check(const psa_schema *schema, const void *config, cs_error *err)
{
    size_t n = 0;

    if (err != NULL)
        err->text[0] = '\0';
    for (size_t i = 0; i < schema->n_constraints; i++) {
        const psa__constraint *c = &schema->constraint[i];
        size_t rounds = c->n_facts == 0 ? 1 : schema->n_workloads;
        for (size_t w = 0; w < rounds && !c->limit; w++)
            n += check_constraint(schema, c, w, config, err);
    }
    if (n == 0)
        return CS_OK;
    if (err != NULL && err->text[strlen(err->text) - 1] == '\n')
        err->text[strlen(err->text) - 1] = '\0';
    return CS_EINVAL;
}
