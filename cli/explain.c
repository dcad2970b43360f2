/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * explain: what limits a design, who talks to whom, what would change it, why it beats another. */
#include "cli/commands.h"

#include <stdlib.h>

typedef struct {
    search_study *study;
    cli_kept kept;
    sim_scratch *scratch;
} explanation;

/* The three tables of one design. */
typedef struct {
    report_table *groups, *sensitivity, *changes;
} tables;

static void tables_fini(tables *t)
{
    report_table_destroy(t->groups);
    report_table_destroy(t->sensitivity);
    report_table_destroy(t->changes);
}

static cs_status tables_make(const explanation *e, const report_design *design, tables *t,
                             cs_error *err)
{
    t->groups = report_groups(e->kept.problem, design->config);
    t->sensitivity = report_sensitivity(e->kept.problem, design->config, e->scratch);
    t->changes = report_one_change(e->kept.problem, design->trial, e->scratch);
    if (t->groups == NULL || t->sensitivity == NULL || t->changes == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    return CS_OK;
}

static cs_json *design_json(const explanation *e, const report_design *design, const tables *t)
{
    cs_json *object = cs_json_object();
    char sentence[512];

    report_limit_place(e->kept.problem, design, e->scratch, sentence, sizeof sentence);
    cs_json_set(object, "limit", cs_json_string(sentence));
    cs_json_set(object, "groups", report_table_json(t->groups));
    cs_json_set(object, "sensitivity", report_table_json(t->sensitivity));
    cs_json_set(object, "one_change", report_table_json(t->changes));
    cs_json_set(object, "design",
                report_trial_json(e->kept.problem, design->trial, design->config));
    return object;
}

static cs_status print_design(const cli_context *cli, const explanation *e,
                              const report_design *design, const tables *t, cs_error *err)
{
    cs_status status = CS_OK;
    char sentence[512];

    report_limit_place(e->kept.problem, design, e->scratch, sentence, sizeof sentence);
    fprintf(cli->out, "trial %llu: %s\n\n", (unsigned long long)design->trial->id, sentence);
    CS_TRY(report_breakdown(e->kept.problem, design, cli->out, err));
    fputs("\nGroups:\n", cli->out);
    CS_TRY(report_table_write(t->groups, REPORT_TABLE, cli->out, err));
    fputs("\nLatency when one quantity changes by 10 %:\n", cli->out);
    CS_TRY(report_table_write(t->sensitivity, REPORT_TABLE, cli->out, err));
    fputs("\nBest other value of each variable, all else kept:\n", cli->out);
    CS_TRY(report_table_write(t->changes, REPORT_TABLE, cli->out, err));
    fputc('\n', cli->out);
done:
    return status;
}

static cs_status explain_one(const cli_context *cli, const explanation *e, size_t i, cs_json *list,
                             cs_error *err)
{
    cs_status status = CS_OK;
    sim_config config;
    const report_design design = {"design", &config, &e->kept.trial[i]};
    tables t = {NULL, NULL, NULL};

    psa_space_decode(e->kept.problem->space, e->kept.trial[i].point, &config);
    CS_TRY(tables_make(e, &design, &t, err));
    if (list != NULL)
        cs_json_push(list, design_json(e, &design, &t));
    else if (cli->args.format == REPORT_CSV)
        CS_TRY(report_table_write(t.sensitivity, REPORT_CSV, cli->out, err));
    else
        CS_TRY(print_design(cli, e, &design, &t, err));
done:
    tables_fini(&t);
    return status;
}

/* Why trial 0 differs from trial 1 of those kept. */
static cs_status explain_pair(const cli_context *cli, const explanation *e, cs_json *object,
                              cs_error *err)
{
    cs_status status = CS_OK;
    sim_config config[2];
    report_design design[2];
    report_table *table;

    for (size_t i = 0; i < 2; i++) {
        psa_space_decode(e->kept.problem->space, e->kept.trial[i].point, &config[i]);
        design[i] = (report_design){"design", &config[i], &e->kept.trial[i]};
    }
    table = report_difference(e->kept.problem, &design[0], &design[1]);
    if (table == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    if (object != NULL) {
        cs_json_set(object, "difference", report_table_json(table));
    } else if (cli->args.format == REPORT_TABLE) {
        fprintf(cli->out, "Trial %llu against trial %llu:\n",
                (unsigned long long)e->kept.trial[0].id, (unsigned long long)e->kept.trial[1].id);
        CS_TRY(report_table_write(table, REPORT_TABLE, cli->out, err));
    }
done:
    report_table_destroy(table);
    return status;
}

static cs_status load(const cli_context *cli, explanation *e, cs_error *err)
{
    const cli_args *args = &cli->args;
    cs_status status = CS_OK;

    CS_TRY(search_study_open(args->files.item[0], &e->study, err));
    if (args->trial > 0) {
        cli_kept_init(&e->kept, e->study, 0);
        CS_TRY(cli_add_trial(e->study, (uint64_t)args->trial, &e->kept, err));
    } else {
        CS_TRY(cli_best_trials(e->study, (size_t)args->top, &e->kept, err));
    }
    if (args->against > 0)
        CS_TRY(cli_add_trial(e->study, (uint64_t)args->against, &e->kept, err));
    e->scratch = sim_scratch_create(e->kept.problem->model);
    if (e->scratch == NULL)
        status = cs_fail(err, CS_ENOMEM, "out of memory for the simulator");
done:
    return status;
}

static cs_status run_explain(cli_context *cli, cs_error *err)
{
    const bool as_json = cli->args.format == REPORT_JSON;
    cs_json *list = as_json ? cs_json_array() : NULL;
    cs_json *object = NULL;
    explanation e = {.study = NULL};
    cs_status status = CS_OK;
    size_t shown;

    CS_TRY(load(cli, &e, err));
    shown = e.kept.n - (cli->args.against > 0);
    for (size_t i = 0; i < shown; i++)
        CS_TRY(explain_one(cli, &e, i, list, err));
    if (as_json) {
        object = report_header_json("explain", e.kept.problem);
        cs_json_set(object, "designs", list);
        list = NULL;
    }
    /* The second best stands for what the best is better than, unless one is named. */
    if (e.kept.n == 2)
        CS_TRY(explain_pair(cli, &e, object, err));
    if (as_json) {
        status = cli_print_json(cli, object, err);
        object = NULL;
    }
done:
    cs_json_destroy(object);
    cs_json_destroy(list);
    sim_scratch_destroy(e.scratch);
    cli_kept_fini(&e.kept);
    search_study_close(e.study);
    return status;
}

static const report_column dictionary[] = {
    {"designs", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "list of {limit, groups, sensitivity, one_change, design}"},
    {"limit", "", REPORT_TEXT, CS_DIMENSIONLESS, "one sentence on what limits the design"},
    {"groups", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "list of {axis, size, stride, first_group, spans}"},
    {"sensitivity", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "list of {quantity, latency_lower_s, latency_higher_s, elasticity}; the rows of CSV"},
    {"one_change", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "list of {variable, change, objective, ratio}: best other value of each variable"},
    {"difference", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "list of {what, a, b, difference}, with two designs"},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

const cli_command cli_explain = {
    .name = "explain",
    .summary = "what limits a design of a study, and why it beats another",
    .usage = "STUDY.db [--top N | --trial N] [--against M]",
    .example = "cosmic-search explain results/quickstart/study.db --top 2",
    .options = "top trial against",
    .min_files = 1,
    .max_files = 1,
    .dictionary = dictionary,
    .run = run_explain,
};
