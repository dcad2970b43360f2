/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * serve: an ask/tell environment, one JSON object a line on standard input and output. */
#include "cli/commands.h"

#include <unistd.h>

cs_json *cli_serve_trial(void *context, const search_problem *problem, const search_trial *trial)
{
    (void)context;
    return report_trial_json(problem, trial, NULL);
}

static cs_status run_serve(cli_context *cli, cs_error *err)
{
    cli_channel *lines = cli_channel_create(STDIN_FILENO, cli->out, cli->stop, cli->args.timeout_s);
    const search_channel channel = cli_channel_view(lines);
    search_serve_options options = {.params = cli->args.params.item,
                                    .n_params = cli->args.params.n,
                                    .evaluations = (uint64_t)cli->args.budget,
                                    .timeout_s = cli->args.timeout_s,
                                    .seed = (uint64_t)cli->args.seed,
                                    .jobs = (int)cli->args.jobs,
                                    .study_path = cli->args.study,
                                    .stop = cli->stop,
                                    .trial_json = cli_serve_trial};
    search_problem problem = {0};
    search_outcome outcome = {0};
    cs_status status = CS_OK;

    if (lines == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    if (cli->args.agent != NULL)
        CS_TRY(agent_find(cli->args.agent, &options.agent, err));
    CS_TRY(cli_load_problem(cli, &problem, err));
    CS_TRY(search_serve(&problem, &options, &channel, &outcome, err));
    status = cli_channel_check(lines, err);
    if (*cli->stop != 0)
        status = cs_fail(err, CS_ESTOPPED, "stopped by a signal");
done:
    search_outcome_fini(&outcome);
    search_problem_fini(&problem);
    cli_channel_destroy(lines);
    return status;
}

const cli_command cli_serve = {
    .name = "serve",
    .summary = "ask/tell environment for agents outside: JSON lines on stdin and stdout",
    .usage = "PSA [--study F.db] [--budget N] [--agent A]",
    .example = "echo '{\"cmd\":\"sample\",\"n\":2}' | cosmic-search serve "
               "configs/psa/llama3-70b-h100.yaml",
    .options = "study budget timeout seed jobs agent param objective stack fix",
    .min_files = 1,
    .max_files = 1,
    .trial_keys = true,
    .run = run_serve,
};
