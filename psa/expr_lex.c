/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Tokens of the expression language. */
#include "psa/expr_private.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_letter(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool is_word(char c)
{
    return is_letter(c) || isdigit((unsigned char)c);
}

cs_status psa__source_fail(const psa__source *source, size_t offset, cs_error *err, const char *fmt,
                           ...)
{
    va_list args;
    char text[1024];
    cs_node at;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (source->doc == NULL)
        return cs_fail(err, CS_EINTERNAL, "rule '%.200s', byte %zu: %s", source->text, offset + 1,
                       text);
    at = *source->node;
    at.column += (int)offset + (at.quoted ? 1 : 0);
    return cs_doc_fail(source->doc, &at, err, "%s", text);
}

/* Longest unit at `text`: letters, then maybe "/" letters.  0 when there is none. */
static size_t unit_length(const char *text, double *factor, cs_dimension *unit)
{
    size_t word = 0, whole;

    while (is_word(text[word]) || text[word] == '$')
        word++;
    whole = word;
    if (text[word] == '/') {
        whole++;
        while (is_word(text[whole]) || text[whole] == '$')
            whole++;
        if (cs_unit_find(text, whole, factor, unit))
            return whole;
    }
    return word > 0 && cs_unit_find(text, word, factor, unit) ? word : 0;
}

static bool is_keyword(const char *text, size_t n)
{
    return (n == 3 && (strncmp(text, "and", 3) == 0 || strncmp(text, "not", 3) == 0)) ||
           (n == 2 && strncmp(text, "or", 2) == 0);
}

static cs_status lex_unit(const psa__source *source, psa__token *out, cs_error *err)
{
    const char *text = source->text;
    size_t at = out->end, word = 0, n;
    double factor = 1;

    while (text[at] == ' ')
        at++;
    while (is_word(text[at + word]) || text[at + word] == '$')
        word++;
    if (word == 0 || is_keyword(text + at, word))
        return CS_OK;
    n = unit_length(text + at, &factor, &out->unit);
    if (n == 0)
        return psa__source_fail(source, at, err,
                                "'%.*s' after a number is no known unit; write, for example, 50 "
                                "GB/s, 2 us, 24 GiB, or an operator before a name",
                                (int)(word > 40 ? 40 : word), text + at);
    out->number *= factor;
    out->end = at + n;
    return CS_OK;
}

static cs_status lex_number(const psa__source *source, psa__token *out, cs_error *err)
{
    const char *text = source->text + out->start;
    size_t n = 0;

    while (isdigit((unsigned char)text[n]))
        n++;
    if (text[n] == '.')
        n++;
    while (isdigit((unsigned char)text[n]))
        n++;
    if (text[n] == 'e' || text[n] == 'E') {
        size_t digits = n + 1 + (text[n + 1] == '+' || text[n + 1] == '-');
        if (isdigit((unsigned char)text[digits])) {
            n = digits;
            while (isdigit((unsigned char)text[n]))
                n++;
        }
    }
    out->kind = TOKEN_NUMBER;
    out->number = strtod(text, NULL);
    out->end = out->start + n;
    if (!isfinite(out->number))
        return psa__source_fail(source, out->start, err, "the number is too large");
    return lex_unit(source, out, err);
}

static void lex_word(const char *text, psa__token *out)
{
    size_t n = 0;

    for (;;) {
        while (is_word(text[n]))
            n++;
        if (text[n] != '.' || !is_word(text[n + 1]))
            break;
        n++;
    }
    out->end = out->start + n;
    out->kind = TOKEN_NAME;
    if (n == 3 && strncmp(text, "and", 3) == 0)
        out->kind = TOKEN_AND;
    else if (n == 2 && strncmp(text, "or", 2) == 0)
        out->kind = TOKEN_OR;
    else if (n == 3 && strncmp(text, "not", 3) == 0)
        out->kind = TOKEN_NOT;
}

static cs_status lex_text(const psa__source *source, psa__token *out, cs_error *err)
{
    const char *text = source->text + out->start;
    const char *end = strchr(text + 1, text[0]);

    if (end == NULL)
        return psa__source_fail(source, out->start, err, "the quote is not closed");
    out->kind = TOKEN_TEXT;
    out->end = out->start + (size_t)(end - text) + 1;
    return CS_OK;
}

static bool lex_compare(const char *text, psa__token *out)
{
    static const struct {
        const char *text;
        psa__op op;
    } words[] = {{"==", PSA__EQ}, {"!=", PSA__NE}, {"<=", PSA__LE},
                 {">=", PSA__GE}, {"<", PSA__LT},  {">", PSA__GT}};

    for (size_t i = 0; i < CS_COUNT(words); i++)
        if (strncmp(text, words[i].text, strlen(words[i].text)) == 0) {
            out->kind = TOKEN_COMPARE;
            out->op = words[i].op;
            out->end = out->start + strlen(words[i].text);
            return true;
        }
    return false;
}

static cs_status lex_symbol(const psa__source *source, psa__token *out, cs_error *err)
{
    const char *text = source->text + out->start;

    if (lex_compare(text, out))
        return CS_OK;
    if (strchr("+-*/%^()[],", text[0]) != NULL) {
        out->kind = TOKEN_SYMBOL;
        out->symbol = text[0];
        out->end = out->start + 1;
        return CS_OK;
    }
    if (text[0] == '=')
        return psa__source_fail(source, out->start, err, "write == to compare");
    if (text[0] == '&' || text[0] == '|' || text[0] == '!')
        return psa__source_fail(source, out->start, err, "write and, or, not in words");
    return psa__source_fail(source, out->start, err, "unexpected character '%c'",
                            isprint((unsigned char)text[0]) ? text[0] : '?');
}

cs_status psa__next_token(const psa__source *source, size_t from, psa__token *out, cs_error *err)
{
    const char *text = source->text;

    while (isspace((unsigned char)text[from]))
        from++;
    memset(out, 0, sizeof *out);
    out->start = out->end = from;
    if (text[from] == '\0')
        return CS_OK;
    if (isdigit((unsigned char)text[from]) ||
        (text[from] == '.' && isdigit((unsigned char)text[from + 1])))
        return lex_number(source, out, err);
    if (is_letter(text[from])) {
        lex_word(text + from, out);
        return CS_OK;
    }
    if (text[from] == '"' || text[from] == '\'')
        return lex_text(source, out, err);
    return lex_symbol(source, out, err);
}
