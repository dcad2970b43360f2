/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Shared inside report/. */
#ifndef REPORT_PRIVATE_H
#define REPORT_PRIVATE_H

#include "report/report.h"

/* Whether the simulator gave numbers: feasible or infeasible, not failed or invalid. */
bool report__has_result(const search_trial *trial);
/* The value of a result; NAN when there is none. */
double report__result_value(const search_trial *trial, const report_result *r);
/* Row of report_results by key; the ending row when there is none. */
const report_result *report__find_result(const char *key);
/* Name of the problem's i-th selected objective; borrowed. */
const char *report__objective_name(const search_problem *problem, size_t i);

/* Latency when the double at `offset` of the configuration is multiplied by `factor`; NAN when that
 * cannot be simulated. */
double report__scaled_latency(const search_problem *problem, const sim_config *config,
                              sim_scratch *scratch, size_t offset, double factor);

#endif
