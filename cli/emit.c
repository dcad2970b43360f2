/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * emit: a design as the launch arguments of a training program. */
#include "cli/commands.h"

#include <stdlib.h>
#include <string.h>

static const report_column dictionary[] = {
    {"trial", "", REPORT_INTEGER, CS_DIMENSIONLESS, "the design"},
    {"target", "", REPORT_TEXT, CS_DIMENSIONLESS, "the program"},
    {"text", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "its arguments; what it cannot express stands in comments \"# field = value\""},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

/* One row with the columns of the dictionary. */
static cs_status print_csv(const cli_context *cli, const report_design *design, const char *text,
                           cs_error *err)
{
    report_table *table = report_table_create(dictionary, CS_COUNT(dictionary) - 1);
    cs_status status = CS_OK;

    if (table == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    report_table_integer(table, (int64_t)design->trial->id);
    report_table_text(table, report_target_names[cli->args.target]);
    report_table_text(table, text);
    status = report_table_write(table, REPORT_CSV, cli->out, err);
    report_table_destroy(table);
    return status;
}

static cs_status print_json(const cli_context *cli, const report_design *design,
                            const search_problem *problem, const char *text, cs_error *err)
{
    cs_json *object = report_header_json("emit", problem);

    cs_json_set(object, "trial", cs_json_int((int64_t)design->trial->id));
    cs_json_set(object, "target", cs_json_string(report_target_names[cli->args.target]));
    cs_json_set(object, "text", cs_json_string(text));
    return cli_print_json(cli, object, err);
}

static cs_status emit(const cli_context *cli, const search_problem *problem,
                      const report_design *design, cs_error *err)
{
    cs_status status = CS_OK;
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    if (memory == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    status = report_emit(problem, design, (report_target)cli->args.target, memory, err);
    if ((fclose(memory) != 0 || text == NULL) && status == CS_OK)
        status = cs_fail(err, CS_ENOMEM, "out of memory");
    if (status == CS_OK && cli->args.format == REPORT_JSON)
        status = print_json(cli, design, problem, text, err);
    else if (status == CS_OK && cli->args.format == REPORT_CSV)
        status = print_csv(cli, design, text, err);
    else if (status == CS_OK)
        fputs(text, cli->out);
    free(text);
    return status;
}

static cs_status run_emit(cli_context *cli, cs_error *err)
{
    search_study *study = NULL;
    cli_kept kept = {.n = 0};
    cs_status status = CS_OK;
    sim_config config;

    CS_TRY(search_study_open(cli->args.files.item[0], &study, err));
    if (cli->args.trial > 0) {
        cli_kept_init(&kept, study, 0);
        CS_TRY(cli_add_trial(study, (uint64_t)cli->args.trial, &kept, err));
    } else {
        CS_TRY(cli_best_trials(study, 1, &kept, err));
    }
    const report_design design = {"design", &config, &kept.trial[0]};
    psa_space_decode(kept.problem->space, kept.trial[0].point, &config);
    CS_TRY(emit(cli, kept.problem, &design, err));
done:
    cli_kept_fini(&kept);
    search_study_close(study);
    return status;
}

const cli_command cli_emit = {
    .name = "emit",
    .summary = "launch arguments of a design for a training program",
    .usage = "STUDY.db [--trial N] --for megatron|torchtitan|nemo",
    .example = "cosmic-search emit results/quickstart/study.db --for megatron",
    .options = "trial for",
    .min_files = 1,
    .max_files = 1,
    .dictionary = dictionary,
    .run = run_emit,
};
