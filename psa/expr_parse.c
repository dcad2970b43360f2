/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Grammar of the expression language, by recursive descent:
 *   or  := and { "or" and }          and := not { "and" not }        not := "not" not | cmp
 *   cmp := sum [ op sum ]            sum := term { + - term }        term := sign { * / % sign }
 *   sign := - sign | power           power := postfix [ ^ sign ]     postfix := atom [ "[" or "]" ]
 *   atom := number | "text" | name | name ( or, ... ) | ( or ) */
#include "psa/expr_private.h"

#include <string.h>

#define MAX_DEPTH 64
#define MAX_CALL  32 /* arguments of one call */

static cs_status parse_or(psa__parser *parser, psa__value *out);
static cs_status parse_sign(psa__parser *parser, psa__value *out);

static cs_status advance(psa__parser *parser)
{
    parser->previous_end = parser->token.end;
    return psa__next_token(parser->source, parser->token.end, &parser->token, parser->err);
}

static bool at_symbol(const psa__parser *parser, char symbol)
{
    return parser->token.kind == TOKEN_SYMBOL && parser->token.symbol == symbol;
}

/* An expression that ends too early inside an unquoted YAML value was most likely cut there. */
static cs_status unexpected(psa__parser *parser, const char *expected)
{
    const psa__source *source = parser->source;
    const psa__token *token = &parser->token;

    if (token->kind != TOKEN_END)
        return psa__source_fail(
            source, token->start, parser->err, "expected %s, found '%.*s'", expected,
            (int)(token->end - token->start > 40 ? 40 : token->end - token->start),
            source->text + token->start);
    if (source->node != NULL && !source->node->quoted)
        return psa__source_fail(source, token->start, parser->err,
                                "the expression '%.80s' ends where %s is expected; inside { } or [ "
                                "] a comma or bracket cuts it short: put it in quotes",
                                source->text, expected);
    return psa__source_fail(source, token->start, parser->err,
                            "the expression ends where %s is expected", expected);
}

static cs_status expect_symbol(psa__parser *parser, char symbol)
{
    char name[4] = {'\'', symbol, '\'', '\0'};

    if (!at_symbol(parser, symbol))
        return unexpected(parser, name);
    return advance(parser);
}

static cs_status parse_call(psa__parser *parser, const psa__token *name, psa__value *out)
{
    cs_status status;
    psa__value arg[MAX_CALL];
    size_t n = 0;

    CS_TRY(advance(parser)); /* ( */
    do {
        if (n == MAX_CALL)
            return psa__source_fail(parser->source, name->start, parser->err,
                                    "a function takes at most %d arguments", MAX_CALL);
        CS_TRY(parse_or(parser, &arg[n++]));
        if (!at_symbol(parser, ','))
            break;
        CS_TRY(advance(parser));
    } while (true);
    if (!at_symbol(parser, ')'))
        return unexpected(parser, "',' or ')'");
    CS_TRY(advance(parser));
    CS_TRY(psa__call(parser, name, n, arg, out));
done:
    return status;
}

static cs_status parse_word(psa__parser *parser, psa__value *out)
{
    cs_status status;
    psa__token name = parser->token;

    CS_TRY(advance(parser));
    if (at_symbol(parser, '('))
        CS_TRY(parse_call(parser, &name, out));
    else
        CS_TRY(psa__name(parser, &name, out));
done:
    return status;
}

static cs_status parse_literal(psa__parser *parser, psa__value *out)
{
    cs_status status;
    const psa__source *source = parser->source;
    const psa__token token = parser->token;

    if (token.kind == TOKEN_NUMBER) {
        *out = psa__number_value(psa__const(&source->schema->pool, token.number), token.unit);
        if (out->node[0] == NULL)
            return psa__node_fail(parser, token.start);
    } else {
        memset(out, 0, sizeof *out);
        out->type = PSA__TEXT;
        out->n = 1;
        out->text = cs_arena_strndup(source->schema->arena, source->text + token.start + 1,
                                     token.end - token.start - 2);
        if (out->text == NULL)
            return psa__node_fail(parser, token.start);
    }
    CS_TRY(advance(parser));
done:
    return status;
}

static cs_status parse_atom(psa__parser *parser, psa__value *out)
{
    cs_status status;

    switch (parser->token.kind) {
    case TOKEN_NUMBER:
    case TOKEN_TEXT:
        return parse_literal(parser, out);
    case TOKEN_NAME:
        return parse_word(parser, out);
    default:
        break;
    }
    if (!at_symbol(parser, '('))
        return unexpected(parser, "a number, a name or '('");
    CS_TRY(advance(parser));
    CS_TRY(parse_or(parser, out));
    CS_TRY(expect_symbol(parser, ')'));
done:
    return status;
}

static cs_status parse_postfix(psa__parser *parser, psa__value *out)
{
    cs_status status;
    size_t start = parser->token.start;
    psa__value vector, index;

    CS_TRY(parse_atom(parser, out));
    while (at_symbol(parser, '[')) {
        vector = *out;
        CS_TRY(advance(parser));
        CS_TRY(parse_or(parser, &index));
        CS_TRY(expect_symbol(parser, ']'));
        CS_TRY(psa__index(parser, start, &vector, &index, out));
    }
    out->start = start;
    out->end = parser->previous_end;
done:
    return status;
}

static cs_status parse_power(psa__parser *parser, psa__value *out)
{
    cs_status status;
    psa__value base, exponent;
    size_t at;

    CS_TRY(parse_postfix(parser, out));
    at = parser->token.start;
    if (!at_symbol(parser, '^'))
        goto done;
    base = *out;
    if (++parser->depth > MAX_DEPTH)
        return psa__source_fail(parser->source, at, parser->err, "nested too deep");
    CS_TRY(advance(parser));
    CS_TRY(parse_sign(parser, &exponent));
    parser->depth--;
    CS_TRY(psa__binary(parser, PSA__POW, at, &base, &exponent, out));
done:
    return status;
}

static cs_status parse_sign(psa__parser *parser, psa__value *out)
{
    cs_status status;
    psa__value inner;
    size_t at = parser->token.start;

    if (!at_symbol(parser, '-'))
        return parse_power(parser, out);
    if (++parser->depth > MAX_DEPTH)
        return psa__source_fail(parser->source, at, parser->err, "nested too deep");
    CS_TRY(advance(parser));
    CS_TRY(parse_sign(parser, &inner));
    CS_TRY(psa__unary(parser, PSA__NEG, at, &inner, out));
    parser->depth--;
done:
    return status;
}

/* Left-associative operators of one level: symbols[i] means op[i]. */
static cs_status parse_chain(psa__parser *parser, const char *symbols, const psa__op *op,
                             cs_status (*below)(psa__parser *, psa__value *), psa__value *out)
{
    cs_status status;

    CS_TRY(below(parser, out));
    while (parser->token.kind == TOKEN_SYMBOL && strchr(symbols, parser->token.symbol) != NULL) {
        psa__value left = *out, right;
        psa__op which = op[strchr(symbols, parser->token.symbol) - symbols];
        size_t at = parser->token.start;
        CS_TRY(advance(parser));
        CS_TRY(below(parser, &right));
        CS_TRY(psa__binary(parser, which, at, &left, &right, out));
    }
done:
    return status;
}

static cs_status parse_term(psa__parser *parser, psa__value *out)
{
    static const psa__op op[] = {PSA__MUL, PSA__DIV, PSA__MOD};

    return parse_chain(parser, "*/%", op, parse_sign, out);
}

static cs_status parse_sum(psa__parser *parser, psa__value *out)
{
    static const psa__op op[] = {PSA__ADD, PSA__SUB};

    return parse_chain(parser, "+-", op, parse_term, out);
}

static cs_status parse_compare(psa__parser *parser, psa__value *out, psa__parsed *sides)
{
    cs_status status;
    psa__value left, right;
    psa__op op;
    size_t at, start = parser->token.start;

    CS_TRY(parse_sum(parser, out));
    if (parser->token.kind != TOKEN_COMPARE)
        goto done;
    left = *out;
    left.start = start;
    left.end = parser->previous_end;
    op = parser->token.op;
    at = parser->token.start;
    CS_TRY(advance(parser));
    start = parser->token.start;
    CS_TRY(parse_sum(parser, &right));
    right.start = start;
    right.end = parser->previous_end;
    if (parser->token.kind == TOKEN_COMPARE)
        return psa__source_fail(parser->source, parser->token.start, parser->err,
                                "comparisons cannot be chained; join two with 'and'");
    CS_TRY(psa__compare(parser, op, at, &left, &right, out));
    if (sides != NULL) {
        sides->compared = true;
        sides->op = op;
        sides->left = left;
        sides->right = right;
    }
done:
    return status;
}

static cs_status parse_not(psa__parser *parser, psa__value *out, psa__parsed *sides)
{
    cs_status status;
    psa__value inner;
    size_t at = parser->token.start;

    if (parser->token.kind != TOKEN_NOT)
        return parse_compare(parser, out, sides);
    if (++parser->depth > MAX_DEPTH)
        return psa__source_fail(parser->source, at, parser->err, "nested too deep");
    CS_TRY(advance(parser));
    CS_TRY(parse_not(parser, &inner, NULL));
    CS_TRY(psa__unary(parser, PSA__NOT, at, &inner, out));
    parser->depth--;
done:
    return status;
}

/* `and` and `or` differ in the token and in what is below. */
static cs_status parse_junction(psa__parser *parser, psa__token_kind kind, psa__value *out,
                                psa__parsed *sides)
{
    cs_status status;
    psa__op op = kind == TOKEN_OR ? PSA__OR : PSA__AND;

    if (kind == TOKEN_OR)
        CS_TRY(parse_junction(parser, TOKEN_AND, out, sides));
    else
        CS_TRY(parse_not(parser, out, sides));
    while (parser->token.kind == kind) {
        psa__value left = *out, right;
        size_t at = parser->token.start;
        if (sides != NULL)
            sides->compared = false;
        CS_TRY(advance(parser));
        if (kind == TOKEN_OR)
            CS_TRY(parse_junction(parser, TOKEN_AND, &right, NULL));
        else
            CS_TRY(parse_not(parser, &right, NULL));
        CS_TRY(psa__binary(parser, op, at, &left, &right, out));
    }
done:
    return status;
}

static cs_status parse_or(psa__parser *parser, psa__value *out)
{
    cs_status status;
    size_t start = parser->token.start;

    if (++parser->depth > MAX_DEPTH)
        return psa__source_fail(parser->source, start, parser->err, "nested too deep");
    CS_TRY(parse_junction(parser, TOKEN_OR, out, NULL));
    out->start = start;
    out->end = parser->previous_end;
    parser->depth--;
done:
    return status;
}

cs_status psa__parse(const psa__source *source, psa__parsed *out, cs_error *err)
{
    cs_status status;
    psa__parser parser = {.source = source, .text = source->text, .err = err};

    memset(out, 0, sizeof *out);
    if (strlen(source->text) > 10000)
        return psa__source_fail(source, 0, err, "the expression is longer than 10,000 characters");
    CS_TRY(psa__next_token(source, 0, &parser.token, err));
    if (parser.token.kind == TOKEN_END)
        return psa__source_fail(source, 0, err, "the expression is empty");
    CS_TRY(parse_junction(&parser, TOKEN_OR, &out->value, out));
    if (parser.token.kind == TOKEN_SYMBOL &&
        (parser.token.symbol == ')' || parser.token.symbol == ']'))
        return psa__source_fail(source, parser.token.start, err,
                                "'%c' closes nothing; if a comma or bracket inside { } or [ ] cut "
                                "the expression short, put it in quotes",
                                parser.token.symbol);
    if (parser.token.kind != TOKEN_END)
        return unexpected(&parser, "an operator");
    out->value.end = parser.previous_end;
    if (out->value.type == PSA__TEXT)
        return psa__source_fail(source, 0, err, "a quoted text is no value by itself");
done:
    return status;
}
