/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The table of commands. */
#include "cli/commands.h"

const cli_command *const cli_commands[] = {
    &cli_run,    &cli_describe, &cli_model,      &cli_simulate, &cli_trials, &cli_best,
    &cli_front,  &cli_bench,    &cli_collective, &cli_trace,    &cli_serve,  &cli_explain,
    &cli_report, &cli_pareto,   &cli_emit,       &cli_compare,  NULL,
};
