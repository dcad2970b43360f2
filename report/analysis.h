/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a study means: its Pareto front, which knobs matter, what limits a design and how it could
 * be better, and a design as launch arguments of a training program. */
#ifndef REPORT_ANALYSIS_H
#define REPORT_ANALYSIS_H

#include "report/report.h"

/* ---- fronts ---- */

#define REPORT_MAX_CRITERIA 4

/* What a front is drawn over: an objective of the PSA, or a result by name. */
typedef struct {
    char name[64];
    cs_dimension unit; /* of results; objectives are shown as plain numbers */
    size_t objective;  /* index into the schema's objectives; SIZE_MAX: a result */
    size_t offset;     /* of the result in sim_result */
    bool maximize;
} report_criterion;

/* Reads "A,B": objectives of the PSA or results.  CS_EINVAL with the nearest name. */
CS_MUST_USE cs_status report_criteria(const search_problem *problem, const char *names,
                                      report_criterion *out, size_t *n, cs_error *err);
/* Value as the PSA states it (not negated); NAN when the trial has none. */
double report_criterion_value(const search_problem *problem, const report_criterion *criterion,
                              const search_trial *trial);

/* Marks the non-dominated of n rows of k values each (row-major, all minimized).  Rows with a value
 * that is not finite are on no front; of equal rows only the first is marked, so that the front has
 * no duplicates.  CS_ENOMEM. O(n log n + n * front * k). */
CS_MUST_USE cs_status report_front_mark(const double *values, size_t n, size_t k, bool *marked,
                                        cs_error *err);

/* The knee of n rows: the one nearest to the ideal point once every value is scaled to [0, 1]
 * between its least and greatest (the first on ties); logarithms where all values are positive.
 * SIZE_MAX when n < 3.  Marler and Arora, Struct. Multidisc. Optim. 26, 2004 (utopia point). */
size_t report_front_knee(const double *values, size_t n, size_t k);

/* The feasible non-dominated trials of a study, by the first criterion from its better end, then by
 * number.  Of trials with equal values the first one stands for all. */
typedef struct {
    const search_problem *problem; /* of the study, which must outlive the front */
    report_criterion criterion[REPORT_MAX_CRITERIA];
    size_t n_criteria;
    search_trial *trial; /* n; their points are in `points` */
    int32_t *points;
    double *value; /* n * n_criteria, as the PSA states them */
    size_t n;
    size_t knee; /* SIZE_MAX: none */
} report_front;

/* CS_EINVAL for a name that is none; no feasible trial gives n = 0. */
CS_MUST_USE cs_status report_front_collect(const search_study *study, const char *names,
                                           report_front *out, cs_error *err);
void report_front_fini(report_front *front);
/* Knobs whose values differ from the row before, as "dp 8 -> 16; ..."; "" for the first.
 */
void report_front_changes(const report_front *front, size_t row, char *text, size_t size);
/* The front with its criteria, its knee and what changes from row to row; the caller owns it. */
cs_json *report_front_json(const report_front *front, const char *command);
/* Writes it in one of the formats; CSV has the columns of `trials`. */
CS_MUST_USE cs_status report_front_write(const report_front *front, const char *command,
                                         report_format format, FILE *out, cs_error *err);
/* The criteria of a front when none were named: what it is drawn over by default, "latency,
 * network_cost", or "latency,peak_memory" where nothing has a price.  Like report_front_collect. */
CS_MUST_USE cs_status report_front_collect_default(const search_study *study, report_front *out,
                                                   cs_error *err);

/* ---- launch arguments ---- */

typedef enum { REPORT_MEGATRON, REPORT_TORCHTITAN, REPORT_NEMO, REPORT_N_TARGETS } report_target;
extern const char *const report_target_names[]; /* "megatron", "torchtitan", "nemo", NULL */

/* Writes the design as launch arguments (megatron, nemo) or configuration (torchtitan) of a
 * training program.  What the program cannot express stands in comments of the form
 * "# field = value", so that the text says all of the design.  The options' names are those of the
 * programs' own documentation. CS_EINVAL for a workload that is no training. */
CS_MUST_USE cs_status report_emit(const search_problem *problem, const report_design *design,
                                  report_target target, FILE *out, cs_error *err);
/* Reads such a text back: the system's baseline with what options and comments say.  CS_EINVAL for
 * values that are none. O(text * options). */
CS_MUST_USE cs_status report_emit_read(const search_problem *problem, const char *text,
                                       report_target target, sim_config *out, cs_error *err);

/* ---- limits ---- */

/* One sentence on where the largest part of the time is spent: for communication the dimension that
 * limits the axis, for compute the rate that does, and what 10 % more of it would save; how near
 * the memory limit is.  `text` of `size` bytes.  A few simulations. */
void report_limit_place(const search_problem *problem, const report_design *design,
                        sim_scratch *scratch, char *text, size_t size);

#endif
