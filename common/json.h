/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * JSON values for output and for the serve protocol; a thin face over jansson, which no other file
 * includes.  A container owns what is put in it.  Functions that build accept NULL values and
 * report out of memory once, at cs_json_dump. */
#ifndef CS_JSON_H
#define CS_JSON_H

#include "common/common.h"

typedef struct cs_json cs_json; /* opaque value */

cs_json *cs_json_object(void); /* keys keep their order of insertion */
cs_json *cs_json_array(void);
cs_json *cs_json_string(const char *text); /* invalid UTF-8 is escaped, NULL text gives null */
cs_json *cs_json_real(double value);       /* shortest form; not finite gives null */
cs_json *cs_json_int(int64_t value);
cs_json *cs_json_bool(bool value);
cs_json *cs_json_null(void);
void cs_json_destroy(cs_json *value); /* NULL is a no-op; containers free their contents */

/* Takes ownership of `value`; returns `object` / `array` for chaining. */
cs_json *cs_json_set(cs_json *object, const char *key, cs_json *value);
cs_json *cs_json_push(cs_json *array, cs_json *value);
/* Takes ownership of the object `more` and moves its entries to the end of `object`. */
cs_json *cs_json_merge(cs_json *object, cs_json *more);

/* Text of the value, caller frees with free(); pretty: indented by 2.  NULL when out of memory. */
char *cs_json_dump(const cs_json *value, bool pretty);

/* Parses one JSON text (at most 16 MiB, depth 64). The caller owns *out. */
CS_MUST_USE cs_status cs_json_parse(const char *text, size_t length, cs_json **out, cs_error *err);
/* Borrowed readers; NULL / false when absent or of another type. */
const cs_json *cs_json_get(const cs_json *object, const char *key);
size_t cs_json_size(const cs_json *array_or_object);
const cs_json *cs_json_at(const cs_json *array, size_t index);
/* i-th key of an object and its value; NULL past the end. */
const char *cs_json_key_at(const cs_json *object, size_t index, const cs_json **value);
bool cs_json_get_string(const cs_json *value, const char **out);
bool cs_json_get_real(const cs_json *value, double *out);
bool cs_json_get_int(const cs_json *value, int64_t *out);
bool cs_json_get_bool(const cs_json *value, bool *out);

#endif
