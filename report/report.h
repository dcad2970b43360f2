/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Writers: tables for people, CSV and JSON for scripts, Chrome traces.  They write to a stream or
 * build a value that the caller prints; none opens a file, prints to the terminal or exits. */
#ifndef REPORT_H
#define REPORT_H

#include <stdio.h>

#include "common/json.h"
#include "search/search.h"

typedef enum { REPORT_TABLE, REPORT_JSON, REPORT_CSV, REPORT_MARKDOWN } report_format;

/* ---- typed tables ---- */

typedef enum {
    REPORT_TEXT,    /* left aligned */
    REPORT_INTEGER, /* int64_t */
    REPORT_REAL,    /* double; people see it in a fitting unit */
    REPORT_SHARE    /* double in [0, 1]; people see per cent */
} report_kind;

/* One column: `key` heads it in CSV and JSON (snake_case, unit in the name), `title` in tables. */
typedef struct {
    const char *key, *title;
    report_kind kind;
    cs_dimension unit;
    const char *help; /* entry of the dictionary in --help */
} report_column;

/* Rows of typed cells, written in any of the three formats.  Running out of memory while cells are
 * added is remembered and reported by report_table_write. */
typedef struct report_table report_table;

/* `columns` (n of them) must outlive the table.  NULL when out of memory; the caller owns it. */
report_table *report_table_create(const report_column *columns, size_t n);
void report_table_destroy(report_table *table); /* NULL is a no-op */
/* Append the next cell, row by row; NULL text and NAN are absent values ("-", null, empty). */
void report_table_text(report_table *table, const char *text); /* copied */
/* At most 511 bytes of text. */
void report_table_printf(report_table *table, const char *fmt, ...) CS_PRINTF(2, 3);
void report_table_integer(report_table *table, int64_t value);
void report_table_real(report_table *table, double value);
size_t report_table_rows(const report_table *table);
/* Writes header and rows; JSON is an array of objects.  CS_ENOMEM, or CS_EIO when `out` fails. */
CS_MUST_USE cs_status report_table_write(const report_table *table, report_format format, FILE *out,
                                         cs_error *err);
/* The rows as a JSON array of objects, and one row as an object; the caller owns it. */
cs_json *report_table_json(const report_table *table);
cs_json *report_table_row_json(const report_table *table, size_t row);

/* Writes one CSV field (RFC 4180: quoted when it holds a comma, quote or line break). */
void report_csv_field(FILE *out, const char *text, bool last);

/* ---- texts ---- */

/* An SI value for people with `digits` significant digits ("1.234 s", "24 GB"); "-" for NAN.
 * Dollars get thousands separators ("$8,596,479"). */
const char *report_quantity(double value, cs_dimension unit, char text[64]);
/* A count with thousands separators. */
const char *report_count(unsigned __int128 value, char text[64]);
/* `share` of 1 as a bar of `width` characters ("####----"). */
const char *report_bar(double share, size_t width, char text[64]);

/* ---- trials ---- */

/* One number of sim_result.  A key with a dot is one column in CSV and a nested object in JSON. */
typedef struct {
    const char *key, *title;
    size_t offset; /* of a double in sim_result */
    cs_dimension unit;
    bool required; /* null when not finite; others are then left out */
    const char *help;
} report_result;
extern const report_result report_results[]; /* ends with a NULL key */

/* Columns of a trial that are no sim_result numbers (id, status, ...): key, help; NULL ends. */
extern const report_column report_trial_columns[];

/* Fields of a configuration as JSON, typed and in SI units; per-dimension ones as arrays.  All
 * fields, or only those that are knobs of `space` when it is not NULL.  The caller owns it. */
cs_json *report_config_json(const psa_schema *schema, const psa_space *space,
                            const sim_config *config);

/* One trial as JSON.  `config` NULL: decoded from the trial's point, knobs only; otherwise all of
 * its fields are listed.  The caller owns it. */
cs_json *report_trial_json(const search_problem *problem, const search_trial *trial,
                           const sim_config *config);

/* Starts the object every command prints: version, command, PSA name and hash of the inputs
 * (`problem` may be NULL).  The caller owns it. */
cs_json *report_header_json(const char *command, const search_problem *problem);

/* Streams trials to `out` in one of the formats; rows appear in the order they are added. */
typedef struct report_trials report_trials;
CS_MUST_USE cs_status report_trials_open(const search_problem *problem, const char *command,
                                         report_format format, FILE *out, report_trials **trials,
                                         cs_error *err);
CS_MUST_USE cs_status report_trials_add(report_trials *trials, const search_trial *trial,
                                        cs_error *err);
/* Ends the document.  Fails when any write failed. */
CS_MUST_USE cs_status report_trials_close(report_trials *trials, cs_error *err);
void report_trials_destroy(report_trials *trials); /* NULL is a no-op */

/* ---- designs for people ---- */

/* A design to show: a name over its column, its configuration and what the simulator said. */
typedef struct {
    const char *title;
    const sim_config *config;
    const search_trial *trial;
} report_design;

/* Designs side by side, a row a quantity: objectives, latency, bandwidth, dollars, memory, split,
 * network, collectives. */
CS_MUST_USE cs_status report_designs(const search_problem *problem, const report_design *design,
                                     size_t n, FILE *out, cs_error *err);
/* Time and memory of one design by part, with bars. */
CS_MUST_USE cs_status report_breakdown(const search_problem *problem, const report_design *design,
                                       FILE *out, cs_error *err);
/* One sentence on what limits the design ("Limited by ..."), `size` bytes. */
void report_limit_sentence(const search_problem *problem, const report_design *design, char *text,
                           size_t size);

/* ---- explanations: tables that the caller writes and destroys; NULL when out of memory ---- */

/* Latency with each physical quantity of the design 10 % lower and 10 % higher, and the elasticity
 * d ln(latency) / d ln(quantity) between the two; strongest first.  Quantities: peak, memory
 * bandwidth, bandwidth and latency of each dimension.  Two simulations a quantity. */
report_table *report_sensitivity(const search_problem *problem, const sim_config *config,
                                 sim_scratch *scratch);
/* The best other value of each variable, all else kept, by the first objective; best change first.
 * One simulation a value. */
report_table *report_one_change(const search_problem *problem, const search_trial *trial,
                                sim_scratch *scratch);
/* Groups of each parallel axis: size, distance between members in NPU numbers, the first group, and
 * the parts of network dimensions it spans. */
report_table *report_groups(const search_problem *problem, const sim_config *config);
/* What differs between two designs: parts of the time and memory, and knobs, a row each. */
report_table *report_difference(const search_problem *problem, const report_design *a,
                                const report_design *b);

/* ---- timelines ---- */

/* A Chrome trace being written to `out` (opens in Perfetto). */
typedef struct report_trace report_trace;
/* `process` names what a stage number counts from `first` on ("stage", 1: "stage 1"); `threads` are
 * the names of the threads (NULL-terminated; beyond them "network dimension N").  Both are
 * borrowed. NULL when out of memory; the caller owns it. */
report_trace *report_trace_begin(FILE *out, const char *process, int32_t first,
                                 const char *const *threads);
void report_trace_event(report_trace *trace, const sim_span_event *event);
/* Names processes and threads, ends the document. CS_EIO when any write failed. */
CS_MUST_USE cs_status report_trace_end(report_trace *trace, cs_error *err);
void report_trace_destroy(report_trace *trace); /* NULL is a no-op */

/* Writes the workload `w` of a configuration: a process a stage, a thread for compute and each
 * network dimension, a counter track of its memory in bytes. */
CS_MUST_USE cs_status report_timeline(const sim_model *model, size_t w, const sim_config *config,
                                      sim_scratch *scratch, FILE *out, cs_error *err);

#endif
