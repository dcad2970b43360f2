/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * simulate: one design, with its breakdown. */
#include "cli/commands.h"

#include <string.h>

typedef struct {
    search_problem problem;
    sim_config config;
    search_trial trial;
    sim_scratch *scratch;
} simulation;

/* Every layer and micro-batch operator by operator; objectives from the same result. */
static void evaluate_unrolled(simulation *s)
{
    const search_problem *problem = &s->problem;
    cs_error err = {.text = ""};

    if (s->trial.status == SEARCH_FAILED || s->trial.status == SEARCH_INVALID)
        return;
    if (sim_evaluate_unrolled(problem->model, &s->config, s->scratch, &s->trial.result, &err) !=
        CS_OK) {
        s->trial.status = SEARCH_FAILED;
        snprintf(s->trial.reason, sizeof s->trial.reason, "%.150s", err.text);
        return;
    }
    for (size_t i = 0; i < problem->n_objectives; i++)
        s->trial.objective[i] = psa_schema_objective(problem->schema, problem->objective[i],
                                                     &s->config, &s->trial.result);
}

static cs_status write_timeline(const cli_context *cli, const simulation *s, cs_error *err)
{
    const size_t w = (size_t)cli->args.workload - 1;
    cs_status status = CS_OK;
    cli_file file = {.file = NULL};

    if (w >= sim_model_n_workloads(s->problem.model))
        return cs_fail(err, CS_EINVAL, "--workload %zu: the PSA has %zu", w + 1,
                       sim_model_n_workloads(s->problem.model));
    CS_TRY(cli_file_open(cli->args.timeline, &file, err));
    CS_TRY(report_timeline(s->problem.model, w, &s->config, s->scratch, file.file, err));
    CS_TRY(cli_file_commit(&file, err));
done:
    cli_file_discard(&file);
    return status;
}

static cs_status print_people(const cli_context *cli, const simulation *s, cs_error *err)
{
    const report_design design = {cli->args.sets.n == 0 ? "baseline" : "design", &s->config,
                                  &s->trial};
    cs_status status = CS_OK;
    char sentence[512];

    CS_TRY(report_designs(&s->problem, &design, 1, cli->out, err));
    fputc('\n', cli->out);
    CS_TRY(report_breakdown(&s->problem, &design, cli->out, err));
    report_limit_sentence(&s->problem, &design, sentence, sizeof sentence);
    fprintf(cli->out, "\n%s\n", sentence);
done:
    return status;
}

static const report_column csv_columns[] = {
    {"key", "", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"value", "", REPORT_REAL, CS_DIMENSIONLESS, NULL},
};

/* Two columns: the keys of the JSON and their numbers. */
static cs_status print_csv(const cli_context *cli, const simulation *s, cs_error *err)
{
    report_table *table = report_table_create(csv_columns, CS_COUNT(csv_columns));
    cs_status status = CS_OK;
    double value;

    for (const report_result *r = report_results; table != NULL && r->key != NULL; r++) {
        memcpy(&value, (const char *)&s->trial.result + r->offset, sizeof value);
        report_table_text(table, r->key);
        report_table_real(table, value);
    }
    for (size_t i = 0; table != NULL && i < s->problem.n_objectives; i++) {
        report_table_printf(table, "objective.%s",
                            psa_schema_objective_name(s->problem.schema, s->problem.objective[i]));
        report_table_real(table, s->trial.objective[i]);
    }
    CS_TRY(report_table_write(table, REPORT_CSV, cli->out, err));
done:
    report_table_destroy(table);
    return status;
}

static cs_status print_json(const cli_context *cli, const simulation *s, cs_error *err)
{
    cs_json *object = report_header_json("simulate", &s->problem);

    cs_json_set(object, "psa", cs_json_string(cli->args.files.item[0]));
    cs_json_set(object, "unrolled", cs_json_bool(cli->args.unroll));
    cs_json_merge(object, report_trial_json(&s->problem, &s->trial, &s->config));
    return cli_print_json(cli, object, err);
}

/* A design that does not fit is shown whole, and then said to be infeasible, by how much. */
static cs_status run_simulate(cli_context *cli, cs_error *err)
{
    char reason[SEARCH_REASON_BYTES];
    simulation s = {0};
    cs_status status = CS_OK;

    CS_TRY(cli_load_problem(cli, &s.problem, err));
    CS_TRY(cli_configure(cli, &s.problem, &s.config, err));
    s.scratch = sim_scratch_create(s.problem.model);
    if (s.scratch == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory for the simulator"));
    CS_TRY(search_evaluate_config(&s.problem, &s.config, s.scratch, &s.trial));
    if (cli->args.unroll)
        evaluate_unrolled(&s);
    if (s.trial.status == SEARCH_FAILED || s.trial.status == SEARCH_INVALID)
        CS_TRY(cs_fail(err, s.trial.status == SEARCH_INVALID ? CS_EINVAL : CS_EINTERNAL, "%s",
                       s.trial.reason));
    if (cli->args.timeline != NULL)
        CS_TRY(write_timeline(cli, &s, err));
    if (cli->args.format == REPORT_JSON)
        CS_TRY(print_json(cli, &s, err));
    else if (cli->args.format == REPORT_CSV)
        CS_TRY(print_csv(cli, &s, err));
    else
        CS_TRY(print_people(cli, &s, err));
    if (s.trial.status == SEARCH_INFEASIBLE)
        status = cs_fail(err, CS_EINFEASIBLE, "the design is not feasible: %s",
                         search_trial_reason(&s.trial, reason));
done:
    sim_scratch_destroy(s.scratch);
    search_problem_fini(&s.problem);
    return status;
}

const cli_command cli_simulate = {
    .name = "simulate",
    .summary = "one design, with its breakdown; the system's baseline when nothing is set",
    .usage = "PSA [--set KNOB=VALUE]... [--unroll] [--timeline T.json]",
    .example = "cosmic-search simulate configs/psa/gpt3-175b-system3.yaml --set workload.dp=32 "
               "--set workload.sp=2",
    .options = "set fix objective unroll timeline workload",
    .min_files = 1,
    .max_files = 1,
    .trial_keys = true,
    .run = run_simulate,
};
