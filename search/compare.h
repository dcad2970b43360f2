/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Finished runs of a comparison, and the file that keeps them. */
#ifndef SEARCH_COMPARE_H
#define SEARCH_COMPARE_H

#include "search/suite.h"

/* One run: improvements of the best feasible value, by evaluations spent. */
typedef struct {
    char *problem, *agent;
    uint64_t seed, evaluations, proposals;
    double agent_s;
    size_t n, capacity;
    uint64_t *at;
    double *value;
    double share_1; /* exhaustive runs: share of designs within 1 % of the optimum, else NAN */
} search__record;

typedef struct {
    search__record *list;
    size_t n, capacity;
} search__records;

void search__record_fini(search__record *record);
void search__records_fini(search__records *records);
/* Moves *record into the list. */
cs_status search__records_add(search__records *records, search__record *record, cs_error *err);
/* NULL when there is none. */
const search__record *search__records_find(const search__records *records, const char *problem,
                                           const char *agent_, uint64_t seed, uint64_t evaluations);
cs_status search__record_improve(search__record *record, uint64_t at, double value);
/* Reads a file of runs; a missing file is empty, a line cut short at the end is ignored. */
cs_status search__records_read(const char *path, search__records *out, cs_error *err);
/* Appends one line; flushed to the file at once. */
cs_status search__record_write(const char *path, const search__record *record, cs_error *err);

/* Fills problems and rows of `out` from the runs.  maximize[i]: of problem i. */
cs_status search__compare_tables(const search__suite *suite, const search__records *records,
                                 const bool *maximize, search_compare_result *out, cs_error *err);

#endif
