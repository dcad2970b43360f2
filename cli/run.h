/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A run and what is shown of it. */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "cli/commands.h"

/* What a run works with, released together. */
typedef struct {
    search_problem problem;
    search_outcome outcome;
    cli_place place;
    sim_config baseline_config, best_config, same_config;
    search_trial baseline;
    sim_scratch *scratch;
    cli_progress line;
} cli_run_state;

/* Everything about a finished run as JSON; the caller owns it. */
cs_json *cli_run_json(const cli_context *cli, const cli_run_state *run,
                      const search_options *options);
/* The last screen: baseline, best, best at the baseline's bandwidth, and what to try next. */
CS_MUST_USE cs_status cli_run_screen(const cli_context *cli, cli_run_state *run, cs_error *err);
/* No feasible design: rejections by constraint and the least-violating designs; CS_EINFEASIBLE. */
CS_MUST_USE cs_status cli_run_infeasible(const cli_context *cli, const cli_run_state *run,
                                         const search_options *options, cs_error *err);
/* No valid point at all: what each constraint removes, and one design with its numbers;
 * CS_EINFEASIBLE. */
CS_MUST_USE cs_status cli_run_no_valid_point(const cli_context *cli, const cli_run_state *run,
                                             cs_error *err);

#endif
