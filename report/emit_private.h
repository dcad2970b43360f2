/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Launch arguments (private to report/): tables of what each program calls the fields of a
 * configuration, and the texts they stand in. */
#ifndef REPORT_EMIT_PRIVATE_H
#define REPORT_EMIT_PRIVATE_H

#include "report/analysis.h"

/* How a program expresses a field.  Rules of a field stand together, in the order they are tried
 * when a text is read. */
typedef struct {
    const char *field;
    const char *value; /* text of the field's value; NULL: any other */
    /* NULL: this value is expressed by the absence of all other options of the field. */
    const char *option;
    /* "%": the field's value; "*": any value, written by another field's rule; "": a flag. */
    const char *argument;
} emit__rule;

/* Options that come from the model and the batch, not from the design. */
typedef enum {
    EMIT_GLOBAL_BATCH,
    EMIT_SEQUENCE,
    EMIT_LAYERS,
    EMIT_HIDDEN,
    EMIT_FFN,
    EMIT_HEADS,
    EMIT_KV_HEADS,
    EMIT_EXPERTS,
    EMIT_TOP_K,
    EMIT_N_FACTS
} emit__fact;

typedef struct {
    const char *const *begin; /* lines before the options, without "# " */
    const emit__rule *rules;  /* ends with a NULL field */
    const char *fact[EMIT_N_FACTS];
    /* Options whose product is the number of NPUs; NULL where dp is an option. */
    const char *nodes, *per_node;
    /* Options whose product is dp (torchtitan); NULL elsewhere. */
    const char *replicate, *shard;
    bool sections; /* "a.b = c" under "[a]" */
    const char *separator, *continued, *program;
} emit__target;

extern const emit__target emit__targets[REPORT_N_TARGETS];

/* An option of a text with its argument ("" for a flag). */
typedef struct {
    char *name, *argument;
    bool is_comment; /* a "# field = value" line */
} emit__option;

typedef struct {
    emit__option *option;
    size_t n, capacity;
} emit__options;

void emit__options_fini(emit__options *options);
/* Adds a copy; false when out of memory. */
bool emit__add(emit__options *options, const char *name, const char *argument, bool is_comment);
/* Argument of the last option of that name that is no comment; NULL when absent. */
const char *emit__find(const emit__options *options, const char *name);
/* Writes options in the syntax of the target, and reads them. */
void emit__write(const emit__options *options, const emit__target *target, FILE *out);
CS_MUST_USE cs_status emit__parse(const char *text, const emit__target *target, emit__options *out,
                                  cs_error *err);

#endif
