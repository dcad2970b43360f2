/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Columns of the page's data.  Numbers are little-endian binary in base64: exact, and a third of
 * the size of decimal text. */
#include "report/html_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- base64 ---- */

/* Encodes as bytes arrive; `held` of them wait for their group of three. */
typedef struct {
    FILE *out;
    uint32_t group;
    int held;
} encoder;

static void put_group(encoder *e, int digits)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[4] = {'=', '=', '=', '='};

    for (int i = 0; i < digits; i++)
        text[i] = alphabet[(e->group >> (18 - 6 * i)) & 63];
    fwrite(text, 1, 4, e->out);
    e->group = 0;
    e->held = 0;
}

static void put_byte(encoder *e, unsigned byte)
{
    e->group |= (uint32_t)(byte & 255u) << (16 - 8 * e->held);
    if (++e->held == 3)
        put_group(e, 4);
}

static void put_end(encoder *e)
{
    if (e->held > 0)
        put_group(e, e->held + 1);
}

static void put_integer(encoder *e, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        put_byte(e, (unsigned)(value >> (8 * i)) & 255u);
}

/* ---- columns ---- */

static void put_ids(FILE *out, const html__rows *rows)
{
    encoder e = {.out = out};

    fputs("{\"f64\":\"", out); /* a double holds ids up to 2^53 */
    for (size_t i = 0; i < rows->n; i++) {
        const double id = (double)rows->id[i];
        uint64_t bits;
        memcpy(&bits, &id, sizeof bits);
        if (rows->shown[i])
            put_integer(&e, bits, 8);
    }
    put_end(&e);
    fputs("\"}", out);
}

/* Whether all shown values are the same bits. */
static bool constant(const html__rows *rows, const double *column)
{
    const double *first = NULL;

    for (size_t i = 0; i < rows->n; i++) {
        if (!rows->shown[i])
            continue;
        if (first == NULL)
            first = &column[i];
        else if (memcmp(first, &column[i], sizeof *first) != 0 &&
                 !(isnan(*first) && isnan(column[i])))
            return false;
    }
    return true;
}

static void put_reals(FILE *out, const html__rows *rows, const double *column)
{
    encoder e = {.out = out};
    char text[32];

    if (constant(rows, column)) {
        const double *value = NULL;
        for (size_t i = 0; i < rows->n && value == NULL; i++)
            value = rows->shown[i] ? &column[i] : NULL;
        fprintf(out, "{\"all\":%s}",
                value != NULL && isfinite(*value) ? cs_double_text(*value, text) : "null");
        return;
    }
    fputs("{\"f64\":\"", out);
    for (size_t i = 0; i < rows->n; i++) {
        uint64_t bits;
        memcpy(&bits, &column[i], sizeof bits);
        if (rows->shown[i])
            put_integer(&e, bits, 8);
    }
    put_end(&e);
    fputs("\"}", out);
}

static void put_status(FILE *out, const html__rows *rows)
{
    encoder e = {.out = out};

    fputs("{\"u8\":\"", out);
    for (size_t i = 0; i < rows->n; i++)
        if (rows->shown[i])
            put_byte(&e, rows->status[i]);
    put_end(&e);
    fputs("\"}", out);
}

static void put_small(FILE *out, const html__rows *rows, const uint16_t *values, size_t stride,
                      bool wide)
{
    encoder e = {.out = out};

    fprintf(out, "{\"%s\":\"", wide ? "u16" : "u8");
    for (size_t i = 0; i < rows->n; i++)
        if (rows->shown[i])
            put_integer(&e, values[i * stride], wide ? 2 : 1);
    put_end(&e);
    fputs("\"}", out);
}

void html__put_rows(FILE *out, const html__rows *rows)
{
    const search_problem *problem = rows->problem;

    fprintf(out, "{\"n\":%zu,\"trial\":", rows->n_shown);
    put_ids(out, rows);
    fputs(",\"status\":", out);
    put_status(out, rows);
    fputs(",\"reason\":", out);
    put_small(out, rows, rows->reason, 1, true);
    fputs(",\"objectives\":[", out);
    for (size_t i = 0; i < problem->n_objectives; i++) {
        fputs(i > 0 ? "," : "", out);
        put_reals(out, rows, rows->objective[i]);
    }
    fputs("],\"results\":{", out);
    for (size_t i = 0; i < HTML_N_RESULTS; i++) {
        fprintf(out, "%s\"%s\":", i > 0 ? "," : "", html__results[i]);
        put_reals(out, rows, rows->result[i]);
    }
    fputs("},\"knobs\":[", out);
    for (size_t k = 0; k < rows->n_knobs; k++) {
        fputs(k > 0 ? "," : "", out);
        /* 255 is the inactive value of a narrow column */
        put_small(out, rows, rows->knob + k, rows->n_knobs,
                  psa_space_knob_count(problem->space, k) > 254);
    }
    fputs("]}", out);
}

/* ---- JSON inside HTML ---- */

cs_status html__put_json(FILE *out, cs_json *value, cs_error *err)
{
    char *text = cs_json_dump(value, false);

    cs_json_destroy(value);
    if (text == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory while writing JSON");
    /* These occur in strings only, where an escape means the same. */
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '<' || *c == '>' || *c == '&' || *c == '\'')
            fprintf(out, "\\u%04x", (unsigned)(unsigned char)*c);
        else
            fputc(*c, out);
    }
    free(text);
    return ferror(out) ? cs_fail(err, CS_EIO, "cannot write the page") : CS_OK;
}
