/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The data of the report page (private to report/). */
#ifndef REPORT_HTML_PRIVATE_H
#define REPORT_HTML_PRIVATE_H

#include "report/html.h"
#include "report/report_private.h"

/* ---- trials by column ---- */

/* Numbers kept of every trial: rows of report_results by key.  The first HTML_N_METRICS can be the
 * axes of a Pareto chart. */
enum { HTML_N_METRICS = 5, HTML_N_RESULTS = 13 };
extern const char *const html__results[HTML_N_RESULTS + 1];

#define HTML_INACTIVE UINT16_MAX /* value index of a knob without effect */

/* All trials of a study, in id order. */
typedef struct {
    const report_source *source;
    const search_problem *problem;
    size_t n, capacity, n_knobs, n_vars;
    uint64_t *id;
    uint8_t *status;  /* search_status */
    uint16_t *reason; /* index into reasons; those beyond the limit share the last */
    double *objective[AGENT_MAX_OBJECTIVES];
    double *result[HTML_N_RESULTS];
    double *key;       /* first objective, minimized; INFINITY unless feasible */
    double *violation; /* how far over the limits */
    uint16_t *knob;    /* n * n_knobs value indices */
    int32_t *point;    /* n * n_vars */
    char **reasons;    /* texts with their numbers left out */
    size_t n_reasons;
    bool failed; /* out of memory */
    /* What the page shows: filled by html__rows_thin. */
    bool *shown;
    uint32_t *row; /* index among the shown ones */
    size_t n_shown;
} html__rows;

CS_MUST_USE cs_status html__rows_read(const report_source *source, html__rows *rows, cs_error *err);
void html__rows_fini(html__rows *rows);
/* Bytes that one trial takes in the page. */
size_t html__row_bytes(const html__rows *rows);

/* ---- what is never thinned ---- */

enum { HTML_TOP = 12, HTML_NEAREST = 3 };

/* Rows of the best feasible trials (at most HTML_TOP, best first), of every improvement of the
 * first objective, and of the fronts of all pairs of metrics. */
typedef struct {
    size_t top[HTML_TOP], n_top;
    size_t nearest[HTML_NEAREST], n_nearest; /* least violating, where nothing is feasible */
    size_t *improvement, n_improvements;
    struct {
        size_t a, b; /* metrics */
        size_t *row, n;
        size_t knee; /* index into row; SIZE_MAX: none */
    } front[HTML_N_METRICS * (HTML_N_METRICS - 1) / 2];
    size_t n_fronts;
    /* The front the caller asked for, over any criteria. */
    report_front asked;
    size_t *asked_row;
} html__marks;

/* `front` names the criteria asked for; NULL: the first pair of metrics that has a real trade-off.
 */
CS_MUST_USE cs_status html__marks_find(const html__rows *rows, const char *front,
                                       html__marks *marks, cs_error *err);
void html__marks_fini(html__marks *marks);
/* Chooses at most `most` rows to show, more when the marked ones alone are more. */
CS_MUST_USE cs_status html__rows_thin(html__rows *rows, const html__marks *marks, size_t most,
                                      cs_error *err);

/* ---- writing ---- */

/* Text of a JSON value that is safe inside a script element; destroys the value. CS_ENOMEM. */
CS_MUST_USE cs_status html__put_json(FILE *out, cs_json *value, cs_error *err);
/* The shown rows as arrays: {"n":.., "trial":.., "columns":{..}, "knobs":[..], ...}. */
void html__put_rows(FILE *out, const html__rows *rows);
/* Adds everything about a study but its rows to the object. */
CS_MUST_USE cs_status html__put_study(const html__rows *rows, const html__marks *marks,
                                      size_t explained, cs_json *object, cs_error *err);

/* Which knobs decide the first objective, and what each value does (importance.c): an object with
 * "method", "trials", "r2", "knobs", or "why" when that cannot be told. */
CS_MUST_USE cs_status html__importance_json(const html__rows *rows, cs_json **out, cs_error *err);

/* The tables and runs of a comparison, as an object. */
CS_MUST_USE cs_status html__put_compare(const report_comparison *comparison, FILE *out,
                                        cs_error *err);

/* ---- embedded files, made by the build ---- */

typedef struct {
    const char *name; /* "template.html", "style.css", "page.js", "charts.js", "missing.txt" */
    const unsigned char *bytes;
    size_t n;
} html__asset;
extern const html__asset html__assets[]; /* ends with a NULL name */

#endif
