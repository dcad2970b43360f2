/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The only file that knows jansson: a cs_json pointer is a json_t pointer. */
#include "common/json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_TEXT = 16 << 20, DEEPEST = 64 };

static json_t *in(cs_json *value)
{
    return (json_t *)(void *)value;
}

static const json_t *cin(const cs_json *value)
{
    return (const json_t *)(const void *)value;
}

static cs_json *out(json_t *value)
{
    return (cs_json *)(void *)value;
}

/* Set when something could not be made or placed for want of memory: what is being built has a
 * hole, and the next dump of this thread refuses to write it. */
static _Thread_local bool incomplete;

static cs_json *made(json_t *value)
{
    if (value == NULL)
        incomplete = true;
    return out(value);
}

cs_json *cs_json_object(void)
{
    return made(json_object());
}

cs_json *cs_json_array(void)
{
    return made(json_array());
}

/* Bytes that are no UTF-8 become '?', so that output is always valid. */
static json_t *escaped(const char *text)
{
    char *copy = strdup(text);
    json_t *value;

    if (copy == NULL)
        return NULL;
    for (char *p = copy; *p != '\0'; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    value = json_string(copy);
    free(copy);
    return value;
}

cs_json *cs_json_string(const char *text)
{
    json_t *value;

    if (text == NULL)
        return out(json_null());
    value = json_string(text);
    return made(value != NULL ? value : escaped(text));
}

cs_json *cs_json_real(double value)
{
    return made(isfinite(value) ? json_real(value) : json_null());
}

cs_json *cs_json_int(int64_t value)
{
    return made(json_integer(value));
}

cs_json *cs_json_bool(bool value)
{
    return out(json_boolean(value));
}

cs_json *cs_json_null(void)
{
    return out(json_null());
}

void cs_json_destroy(cs_json *value)
{
    json_decref(in(value));
}

/* Hands a value over to its container.  One that could not be placed is not freed: its maker may
 * still be filling it. */
static void hand_over(int failed, cs_json *value)
{
    if (failed != 0)
        incomplete = true;
    else
        json_decref(in(value));
}

cs_json *cs_json_set(cs_json *object, const char *key, cs_json *value)
{
    hand_over(json_object_set(in(object), key, in(value)), value);
    return object;
}

cs_json *cs_json_merge(cs_json *object, cs_json *more)
{
    if (json_object_update(in(object), in(more)) != 0)
        incomplete = true;
    json_decref(in(more));
    return object;
}

cs_json *cs_json_push(cs_json *array, cs_json *value)
{
    hand_over(json_array_append(in(array), in(value)), value);
    return array;
}

typedef struct {
    char *text;
    size_t n, capacity;
    bool lost;
} written;

/* Jansson does not look at every result of this: what is lost is remembered. */
static int write_part(const char *part, size_t n, void *context)
{
    written *w = context;
    char *text = cs_room(w->text, &w->capacity, w->n + n + 1, 1);

    if (text == NULL) {
        w->lost = true;
        return -1;
    }
    memcpy(text + w->n, part, n);
    w->text = text;
    w->n += n;
    text[w->n] = '\0';
    return 0;
}

char *cs_json_dump(const cs_json *value, bool pretty)
{
    const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(17);
    written w = {.text = NULL};

    const bool whole = value != NULL && !incomplete;

    incomplete = false;
    if (!whole)
        return NULL;
    if (json_dump_callback(cin(value), write_part, &w,
                           flags | (pretty ? JSON_INDENT(2) : JSON_COMPACT)) == 0 &&
        !w.lost)
        return w.text;
    free(w.text);
    return NULL;
}

/* Depth of nesting outside strings; jansson recurses, so it is checked before. */
static bool too_deep(const char *text, size_t length)
{
    int depth = 0;
    bool quoted = false;

    for (size_t i = 0; i < length; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && (text[i] == '[' || text[i] == '{') && ++depth > DEEPEST)
            return true;
        else if (!quoted && (text[i] == ']' || text[i] == '}'))
            depth--;
    }
    return false;
}

cs_status cs_json_parse(const char *text, size_t length, cs_json **parsed, cs_error *err)
{
    json_error_t problem;
    json_t *value;

    if (length > LARGEST_TEXT)
        return cs_fail(err, CS_EPARSE, "JSON text of %zu bytes is over the limit of 16 MiB",
                       length);
    if (too_deep(text, length))
        return cs_fail(err, CS_EPARSE, "JSON nested deeper than %d", DEEPEST);
    value = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    if (value == NULL && json_error_code(&problem) == json_error_out_of_memory)
        return cs_fail(err, CS_ENOMEM, "out of memory reading JSON");
    if (value == NULL)
        return cs_fail(err, CS_EPARSE, "%d:%d: %s", problem.line, problem.column, problem.text);
    *parsed = out(value);
    return CS_OK;
}

const cs_json *cs_json_get(const cs_json *object, const char *key)
{
    return out(json_object_get(cin(object), key));
}

size_t cs_json_size(const cs_json *container)
{
    return json_is_object(cin(container)) ? json_object_size(cin(container))
                                          : json_array_size(cin(container));
}

const cs_json *cs_json_at(const cs_json *array, size_t index)
{
    return out(json_array_get(cin(array), index));
}

const char *cs_json_key_at(const cs_json *object, size_t index, const cs_json **value)
{
    json_t *object_json = json_incref((json_t *)(void *)(uintptr_t)object);
    void *at = json_object_iter(object_json);

    while (at != NULL && index-- > 0)
        at = json_object_iter_next(object_json, at);
    json_decref(object_json);
    if (at == NULL)
        return NULL;
    *value = out(json_object_iter_value(at));
    return json_object_iter_key(at);
}

bool cs_json_get_string(const cs_json *value, const char **text)
{
    if (!json_is_string(cin(value)))
        return false;
    *text = json_string_value(cin(value));
    return true;
}

bool cs_json_get_real(const cs_json *value, double *number)
{
    if (!json_is_number(cin(value)))
        return false;
    *number = json_number_value(cin(value));
    return true;
}

bool cs_json_get_int(const cs_json *value, int64_t *number)
{
    if (!json_is_integer(cin(value)))
        return false;
    *number = json_integer_value(cin(value));
    return true;
}

bool cs_json_get_bool(const cs_json *value, bool *truth)
{
    if (!json_is_boolean(cin(value)))
        return false;
    *truth = json_is_true(cin(value));
    return true;
}
