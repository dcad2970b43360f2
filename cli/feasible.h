/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How many of the valid points fit in memory. */
#ifndef CLI_FEASIBLE_H
#define CLI_FEASIBLE_H

#include "search/search.h"

typedef struct {
    bool exact;             /* counted; else estimated from a sample */
    unsigned __int128 fits; /* exact: points that fit */
    double share;           /* of the valid points; NAN: none could be looked at */
    size_t tried;           /* designs whose memory was computed */
} cli_feasibility;

/* Memory depends on the workload's knobs and the NPU's alone, so that one look at each of their
 * combinations, weighted by the valid points that have it, counts all points.  Beyond 50,000
 * combinations: 2,000 uniform samples with a fixed seed.  Runs no engine.  CS_ENOMEM. */
CS_MUST_USE cs_status cli_count_feasible(const search_problem *problem, cli_feasibility *out,
                                         cs_error *err);

#endif
