/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The expression parser's parts: tokens, typed operations, names. */
#ifndef PSA_EXPR_PRIVATE_H
#define PSA_EXPR_PRIVATE_H

#include "psa/psa_private.h"

typedef enum {
    TOKEN_END,
    TOKEN_NUMBER,
    TOKEN_NAME,
    TOKEN_TEXT,
    TOKEN_SYMBOL, /* one of + - * / % ^ ( ) [ ] , */
    TOKEN_COMPARE,
    TOKEN_AND,
    TOKEN_OR,
    TOKEN_NOT
} psa__token_kind;

typedef struct {
    psa__token_kind kind;
    size_t start, end; /* bytes of the source */
    char symbol;
    psa__op op;        /* TOKEN_COMPARE */
    double number;     /* SI */
    cs_dimension unit; /* of the number */
} psa__token;

typedef struct {
    const psa__source *source;
    const char *text;
    psa__token token; /* the one to look at */
    size_t previous_end;
    int depth;
    cs_error *err;
} psa__parser;

/* Reads the token at or after byte `from`. */
CS_MUST_USE cs_status psa__next_token(const psa__source *source, size_t from, psa__token *out,
                                      cs_error *err);

/* Typed operations: check types, dimensions and lengths, then build the nodes; `at` is the byte a
 * refusal points to. */
CS_MUST_USE cs_status psa__binary(psa__parser *parser, psa__op op, size_t at, const psa__value *a,
                                  const psa__value *b, psa__value *out);
CS_MUST_USE cs_status psa__unary(psa__parser *parser, psa__op op, size_t at, const psa__value *a,
                                 psa__value *out);
CS_MUST_USE cs_status psa__compare(psa__parser *parser, psa__op op, size_t at, const psa__value *a,
                                   const psa__value *b, psa__value *out);
CS_MUST_USE cs_status psa__choose(psa__parser *parser, size_t at, const psa__value *condition,
                                  const psa__value *yes, const psa__value *no, psa__value *out);
CS_MUST_USE cs_status psa__index(psa__parser *parser, size_t at, const psa__value *vector,
                                 const psa__value *index, psa__value *out);
/* A function by name (start..end of the source) on n arguments. */
CS_MUST_USE cs_status psa__call(psa__parser *parser, const psa__token *name, size_t n,
                                psa__value *arg, psa__value *out);
bool psa__is_function(const char *name, size_t length);
/* Value of a name. */
CS_MUST_USE cs_status psa__name(psa__parser *parser, const psa__token *name, psa__value *out);
/* Reports a node that could not be made. */
cs_status psa__node_fail(psa__parser *parser, size_t at);
/* A number without unit. */
psa__value psa__number_value(const psa__node *node, cs_dimension unit);

#endif
