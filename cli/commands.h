/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The sub-commands, one file each (trials, best and front share one), and what two of them use. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

extern const cli_command cli_run, cli_describe, cli_model, cli_simulate, cli_trials, cli_best,
    cli_front, cli_bench, cli_collective;

/* Every trial of a study in a format; `command` names the document. */
CS_MUST_USE cs_status cli_write_trials(const search_study *study, const char *command,
                                       report_format format, FILE *out, cs_error *err);

#endif
