/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Finished runs of a comparison, and the file that keeps them. */
#ifndef SEARCH_COMPARE_H
#define SEARCH_COMPARE_H

#include "search/suite.h"

/* One run: improvements of the best feasible value, by evaluations spent.  Runs with one of the
 * suite's own labels measure a problem: "exhaustive" visits every design, "uniform" draws some. */
typedef struct {
    char *problem, *agent;
    uint64_t seed, evaluations, proposals;
    double agent_s;
    size_t n, capacity;
    uint64_t *at;
    double *value;
    bool stopped;   /* ended near the optimum, before the budget */
    double share_1; /* exhaustive: share of designs within 1 % of the optimum, else NAN */
    /* Uniform: how many of the draws (`evaluations`) are within 1 % of `optimum`, else NAN. */
    uint64_t hits;
    double optimum;
} search__record;

typedef struct {
    search__record *list;
    size_t n, capacity;
} search__records;

void search__record_fini(search__record *record);
void search__records_fini(search__records *records);
/* Moves *record into the list. */
cs_status search__records_add(search__records *records, search__record *record, cs_error *err);
/* The last one of that name, which replaces those before; NULL when there is none. */
const search__record *search__records_find(const search__records *records, const char *problem,
                                           const char *agent_, uint64_t seed, uint64_t evaluations);
/* Best value of all runs of a problem, or of those with that budget when it is not 0; NAN without
 * one. */
double search__records_best(const search__records *records, const char *problem, bool maximize,
                            uint64_t evaluations);
/* |value / optimum - 1| is at most `within`, or `value` is better. */
bool search__near(double value, double optimum, double within, bool maximize);
cs_status search__record_improve(search__record *record, uint64_t at, double value);
/* Reads a file of runs; a missing file is empty, a line cut short at the end is ignored. */
cs_status search__records_read(const char *path, search__records *out, cs_error *err);
/* Appends one line; flushed to the file at once. */
cs_status search__record_write(const char *path, const search__record *record, cs_error *err);

/* ---- one run ---- */

typedef struct {
    const search_problem *problem;
    const char *label; /* of the problem */
    const search__suite_agent *who;
    uint64_t seed, evaluations;
    double stop_within, optimum; /* a run ends when it is that near; 0: at its budget */
    int jobs;
    const volatile int *stop; /* set by a signal; NULL: never */
} search__task;

/* The run of an agent; *out is owned by the caller.  CS_ESTOPPED when a signal came first. */
cs_status search__task_run(const search__task *task, search__record *out);
/* Every design of the space; task->who, seed and evaluations are not looked at. */
cs_status search__task_exhaustive(const search__task *task, search__record *out);
#define SEARCH__ENOUGH_HITS 100
/* Up to task->evaluations uniform draws of valid designs, with repetition; ends after 100 within
 * 1 % of task->optimum.  The same draws for any number of jobs. */
cs_status search__task_uniform(const search__task *task, search__record *out);

/* ---- tables ---- */

/* Runs of one agent on one problem, by seed. */
typedef struct {
    size_t n;
    const search__record **runs;
    uint64_t *seed;
    double *regret; /* at the end of the budget */
    double *score;  /* what is ranked and tested: regret, or evaluations to stop_within */
} search__sample;

typedef struct {
    const search__suite *suite;
    const search__records *records;
    search_compare_result *out;
    cs_arena *arena;
    const char **agents; /* labels: the suite's, then others found in the file */
    size_t n_agents;
    double *work;   /* at least 3 n and n + draws of the bootstrap */
    double optimum; /* of the problem at hand */
    bool maximize;
    cs_rng *rng;
    search__sample *samples; /* by problem, then agent */
} search__tables;

/* Fills problems, rows, pairs and lottery of `out` from the runs.  maximize[i]: of problem i. */
cs_status search__compare_tables(const search__suite *suite, const search__records *records,
                                 const bool *maximize, search_compare_result *out, cs_error *err);
/* Tests the suite's pairs against each other, and sums up the lottery; after the rows. */
cs_status search__compare_pairs(search__tables *t, cs_error *err);
cs_status search__compare_lottery(search__tables *t, cs_error *err);

#endif
