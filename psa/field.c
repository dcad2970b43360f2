/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Configuration fields: elements as doubles, and as text. */
#include "psa/psa_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WHOLE 9007199254740992.0 /* 2^53 */

static size_t width(const psa_field *field)
{
    return field->kind == PSA_INT    ? sizeof(int64_t)
           : field->kind == PSA_REAL ? sizeof(double)
                                     : sizeof(int32_t);
}

double psa__field_get(const psa_field *field, const void *config, size_t d)
{
    const char *at = (const char *)config + field->offset + d * width(field);
    int64_t whole;
    int32_t index;
    double real;

    switch (field->kind) {
    case PSA_INT:
        memcpy(&whole, at, sizeof whole);
        return (double)whole;
    case PSA_REAL:
        memcpy(&real, at, sizeof real);
        return real;
    default:
        memcpy(&index, at, sizeof index);
        return index;
    }
}

void psa__field_set(const psa_field *field, void *config, size_t d, double value)
{
    char *at = (char *)config + field->offset + d * width(field);
    int64_t whole;
    int32_t index;

    switch (field->kind) {
    case PSA_INT:
        whole = (int64_t)value;
        memcpy(at, &whole, sizeof whole);
        return;
    case PSA_REAL:
        memcpy(at, &value, sizeof value);
        return;
    default:
        index = (int32_t)value;
        memcpy(at, &index, sizeof index);
    }
}

bool psa__field_is_number(const psa_field *field)
{
    return field->kind == PSA_INT || field->kind == PSA_REAL;
}

size_t psa__field_find(const psa_tables *tables, const char *path, size_t length)
{
    for (size_t i = 0; i < tables->n_fields; i++)
        if (strlen(tables->fields[i].path) == length &&
            strncmp(tables->fields[i].path, path, length) == 0)
            return i;
    return SIZE_MAX;
}

static cs_status parse_enum(const psa_field *field, const char *text, double *out, cs_error *err)
{
    char list[400] = "", near[128];
    size_t n = 0;

    for (; field->names[n] != NULL; n++) {
        size_t used = strlen(list);
        if (strcmp(field->names[n], text) == 0) {
            *out = (double)n;
            return CS_OK;
        }
        (void)snprintf(list + used, sizeof list - used, "%s%s", n == 0 ? "" : ", ",
                       field->names[n]);
    }
    return cs_fail(err, CS_EINVAL, "expected one of %s; found '%.60s'%s", list, text,
                   psa__suggest(text, field->names, n, near));
}

static cs_status parse_bool(const char *text, double *out, cs_error *err)
{
    *out = strcmp(text, "true") == 0;
    if (*out == 0 && strcmp(text, "false") != 0)
        return cs_fail(err, CS_EINVAL, "expected true or false, found '%.60s'", text);
    return CS_OK;
}

static cs_status parse_number(const psa_field *field, const char *text, double *out, cs_error *err)
{
    cs_status status;
    char low[48], high[48];

    CS_TRY(cs_quantity_parse(text, field->unit, out, err));
    if (field->kind == PSA_INT && (*out != floor(*out) || fabs(*out) > MAX_WHOLE))
        return cs_fail(err, CS_EINVAL, "expected a whole number, found '%.60s'", text);
    if ((field->min != 0 || field->max != 0) && !(*out >= field->min && *out <= field->max))
        return cs_fail(err, CS_EINVAL, "'%.60s' is outside %s to %s", text,
                       cs_quantity_text(field->min, field->unit, low),
                       cs_quantity_text(field->max, field->unit, high));
done:
    return status;
}

cs_status psa__field_parse(const psa_field *field, const char *text, double *out, cs_error *err)
{
    int32_t order = 0;
    cs_status status;

    switch (field->kind) {
    case PSA_ENUM:
        return parse_enum(field, text, out, err);
    case PSA_BOOL:
        return parse_bool(text, out, err);
    case PSA_ORDER:
        status = field->parse(text, &order, err);
        *out = order;
        return status;
    default:
        return parse_number(field, text, out, err);
    }
}

static size_t count_names(const psa_field *field)
{
    size_t n = 0;

    while (field->names[n] != NULL)
        n++;
    return n;
}

const char *psa__field_format(const psa_field *field, double value, char text[64])
{
    char number[48];

    switch (field->kind) {
    case PSA_ENUM:
        (void)snprintf(
            text, 64, "%s",
            value >= 0 && (size_t)value < count_names(field) ? field->names[(size_t)value] : "?");
        break;
    case PSA_BOOL:
        (void)snprintf(text, 64, "%s", value != 0 ? "true" : "false");
        break;
    case PSA_ORDER:
        return field->format((int32_t)value, text);
    case PSA_INT:
        if (cs_dimension_equal(field->unit, CS_DIMENSIONLESS)) {
            (void)snprintf(text, 64, "%.0f", value);
            break;
        }
        /* fall through */
    default:
        (void)snprintf(text, 64, "%s", cs_quantity_text(value, field->unit, number));
    }
    return text;
}

void psa_field_text(const psa_field *field, const void *config, size_t n_dims, char *text,
                    size_t size)
{
    size_t n = field->per_dimension ? n_dims : 1, used = 0;
    char element[64];

    if (size == 0)
        return;
    text[0] = '\0';
    for (size_t d = 0; d < n && used < size; d++) {
        int length = snprintf(text + used, size - used, "%s%s", d == 0 ? "" : ",",
                              psa__field_format(field, psa__field_get(field, config, d), element));
        used += length > 0 ? (size_t)length : 0;
    }
}

const char *psa__suggest(const char *word, const char *const *names, size_t n, char text[128])
{
    const char *near = cs_nearest(word, names, n);

    text[0] = '\0';
    if (near != NULL)
        (void)snprintf(text, 128, "; did you mean '%.90s'?", near);
    return text;
}
