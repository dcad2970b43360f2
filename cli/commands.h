/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The sub-commands, one file each (trials, best and front share one), and what two of them use. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"
#include "report/html.h"
#include "workloads/trace.h"

extern const cli_command cli_run, cli_describe, cli_model, cli_simulate, cli_trials, cli_best,
    cli_front, cli_bench, cli_collective, cli_trace, cli_serve, cli_explain, cli_compare,
    cli_report, cli_pareto, cli_emit;

/* Lines over a pair of descriptors; read without stdio, so that a signal ends the wait for one. */
typedef struct cli_channel cli_channel;
/* timeout_s 0: waits for ever; NULL when out of memory. */
cli_channel *cli_channel_create(int in, FILE *out, const volatile int *stop, double timeout_s);
void cli_channel_destroy(cli_channel *channel); /* NULL: no-op */
/* What ended the conversation: CS_EINVAL for a line longer than 16 MiB, CS_EIO for an answer that
 * could not be written to a reader that is there; CS_OK otherwise. */
CS_MUST_USE cs_status cli_channel_check(const cli_channel *channel, cs_error *err);
search_channel cli_channel_view(cli_channel *channel);
/* search_serve_options.trial_json */
cs_json *cli_serve_trial(void *context, const search_problem *problem, const search_trial *trial);
/* A run whose designs another program proposes (--agent-command), by the serve protocol. */
CS_MUST_USE cs_status cli_run_external(const cli_context *cli, const search_problem *problem,
                                       const search_options *options, search_outcome *out,
                                       cs_error *err);

/* Every trial of a study in a format; `command` names the document. */
CS_MUST_USE cs_status cli_write_trials(const search_study *study, const char *command,
                                       report_format format, FILE *out, cs_error *err);

/* Trials copied out of a study, with the storage of their points and `n_values` numbers each. */
typedef struct {
    const search_problem *problem;
    search_trial *trial;
    double *value;
    size_t n, capacity, n_values, n_vars;
    bool failed; /* out of memory */
} cli_kept;
void cli_kept_init(cli_kept *kept, const search_study *study, size_t n_values);
void cli_kept_fini(cli_kept *kept);
/* Adds a copy; false when out of memory. */
bool cli_keep(cli_kept *kept, const search_trial *trial);
/* Frees the point of a trial that is about to be overwritten. */
void cli_kept_drop(cli_kept *kept, size_t i);
/* The `top` best feasible trials in order; CS_EINFEASIBLE when there is none.  Initializes *out,
 * which the caller releases also after a failure. */
CS_MUST_USE cs_status cli_best_trials(const search_study *study, size_t top, cli_kept *out,
                                      cs_error *err);
/* Adds trial number `id` to an initialized *out. */
CS_MUST_USE cs_status cli_add_trial(const search_study *study, uint64_t id, cli_kept *out,
                                    cs_error *err);

/* Writes a report page; *bytes is its size. */
CS_MUST_USE cs_status cli_write_report(const report_page *page, const char *path, uint64_t *bytes,
                                       cs_error *err);

/* Network and configuration of a system file of a PSA, with the command's --set applied. */
CS_MUST_USE cs_status cli_load_network(const cli_context *cli, const char *system, sim_network *net,
                                       sim_config *config, cs_error *err);

/* Writes the page of a comparison whose runs are in the file `runs`. */
CS_MUST_USE cs_status cli_write_comparison(const search_compare_result *result, const char *runs,
                                           const char *path, cs_error *err);

/* Options of a trace from the command line. */
wl_trace_options cli_trace_options(const cli_args *args);
/* Loads and checks a trace; its warnings go to standard error.  *out is to be destroyed also after
 * a failure. */
CS_MUST_USE cs_status cli_trace_load(const cli_context *cli, const char *path, wl_trace **out,
                                     cs_error *err);
/* `trace export`. */
CS_MUST_USE cs_status cli_trace_export(cli_context *cli, cs_error *err);
/* `trace simulate`, and its output columns (NULL key ends). */
CS_MUST_USE cs_status cli_trace_simulate(cli_context *cli, cs_error *err);
extern const report_column cli_trace_columns[];
/* Tells how much will be written; refuses over 10 GB without --force. */
CS_MUST_USE cs_status cli_check_size(const cli_context *cli, uint64_t bytes, cs_error *err);

#endif
