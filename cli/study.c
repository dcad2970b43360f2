/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * trials, best, front: what a study holds. */
#include "cli/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static cs_status run_trials(cli_context *cli, cs_error *err)
{
    search_study *study = NULL;
    cs_status status = CS_OK;

    CS_TRY(search_study_open(cli->args.files.item[0], &study, err));
    CS_TRY(cli_write_trials(study, "trials", (report_format)cli->args.format, cli->out, err));
done:
    search_study_close(study);
    return status;
}

static cs_status print_kept(const cli_context *cli, const cli_kept *k, const char *command,
                            cs_error *err)
{
    report_trials *trials = NULL;
    cs_status status = CS_OK;

    CS_TRY(report_trials_open(k->problem, command, (report_format)cli->args.format, cli->out,
                              &trials, err));
    for (size_t i = 0; i < k->n; i++)
        CS_TRY(report_trials_add(trials, &k->trial[i], err));
    CS_TRY(report_trials_close(trials, err));
done:
    report_trials_destroy(trials);
    return status;
}

/* ---- best ---- */

static cs_status print_one(const cli_context *cli, const cli_kept *k, cs_error *err)
{
    cs_status status = CS_OK;
    sim_config config;
    report_design design = {"best", &config, &k->trial[0]};
    char sentence[512];

    psa_space_decode(k->problem->space, k->trial[0].point, &config);
    if (cli->args.format == REPORT_JSON) {
        cs_json *object = report_header_json("best", k->problem);
        cs_json_merge(object, report_trial_json(k->problem, &k->trial[0], &config));
        return cli_print_json(cli, object, err);
    }
    fprintf(cli->out, "trial %llu\n", (unsigned long long)k->trial[0].id);
    CS_TRY(report_designs(k->problem, &design, 1, cli->out, err));
    fputc('\n', cli->out);
    CS_TRY(report_breakdown(k->problem, &design, cli->out, err));
    report_limit_sentence(k->problem, &design, sentence, sizeof sentence);
    fprintf(cli->out, "\n%s\n", sentence);
done:
    return status;
}

static cs_status run_best(cli_context *cli, cs_error *err)
{
    cli_kept best = {.n = 0};
    search_study *study = NULL;
    cs_status status = CS_OK;

    CS_TRY(search_study_open(cli->args.files.item[0], &study, err));
    CS_TRY(cli_best_trials(study, (size_t)cli->args.top, &best, err));
    if (cli->args.top == 1 && cli->args.format != REPORT_CSV)
        CS_TRY(print_one(cli, &best, err));
    else
        CS_TRY(print_kept(cli, &best, "best", err));
done:
    cli_kept_fini(&best);
    search_study_close(study);
    return status;
}

/* ---- front ---- */

static cs_status run_front(cli_context *cli, cs_error *err)
{
    const char *names = cli->args.objectives;
    report_front front = {.n = 0};
    search_study *study = NULL;
    cs_status status = CS_OK;

    CS_TRY(search_study_open(cli->args.files.item[0], &study, err));
    if (names != NULL)
        CS_TRY(report_front_collect(study, names, &front, err));
    else
        CS_TRY(report_front_collect_default(study, &front, err));
    if (front.n == 0)
        CS_TRY(cs_fail(err, CS_EINFEASIBLE,
                       "%s: no feasible design with a value for each of --objectives among %llu "
                       "trials",
                       cli->args.files.item[0], (unsigned long long)search_study_n_trials(study)));
    CS_TRY(report_front_write(&front, "front", (report_format)cli->args.format, cli->out, err));
done:
    report_front_fini(&front);
    search_study_close(study);
    return status;
}

const cli_command cli_trials = {
    .name = "trials",
    .summary = "every design a study evaluated",
    .usage = "STUDY.db",
    .example = "cosmic-search trials results/quickstart/study.db -f csv",
    .options = "",
    .min_files = 1,
    .max_files = 1,
    .trial_keys = true,
    .run = run_trials,
};

const cli_command cli_best = {
    .name = "best",
    .summary = "the best designs of a study",
    .usage = "STUDY.db [--top N]",
    .example = "cosmic-search best results/quickstart/study.db",
    .options = "top",
    .min_files = 1,
    .max_files = 1,
    .trial_keys = true,
    .run = run_best,
};

const cli_command cli_front = {
    .name = "front",
    .summary = "designs of a study that no other beats in every objective",
    .usage = "STUDY.db [--objectives A,B]",
    .example = "cosmic-search front results/quickstart/study.db --objectives latency,network_cost",
    .options = "objectives",
    .min_files = 1,
    .max_files = 1,
    .trial_keys = true,
    .run = run_front,
};
