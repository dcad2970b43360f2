/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * compare: agents on the problems of a suite, with statistics. */
#include "cli/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const report_column columns[] = {
    {"problem", "problem", REPORT_TEXT, CS_DIMENSIONLESS, "problem of the suite"},
    {"agent", "agent", REPORT_TEXT, CS_DIMENSIONLESS, "agent"},
    {"runs", "runs", REPORT_INTEGER, CS_DIMENSIONLESS, "seeds"},
    {"regret_30", "at 30", REPORT_SHARE, CS_DIMENSIONLESS,
     "median regret |best / optimum - 1| after 30 evaluations"},
    {"regret_100", "100", REPORT_SHARE, CS_DIMENSIONLESS, "after 100"},
    {"regret_300", "300", REPORT_SHARE, CS_DIMENSIONLESS, "after 300"},
    {"regret_1000", "1000", REPORT_SHARE, CS_DIMENSIONLESS, "after 1,000"},
    {"regret_3000", "3000", REPORT_SHARE, CS_DIMENSIONLESS, "after 3,000"},
    {"regret_10000", "10000", REPORT_SHARE, CS_DIMENSIONLESS, "after 10,000"},
    {"regret_final", "final", REPORT_SHARE, CS_DIMENSIONLESS, "median regret at the end"},
    {"ci_low", "95 % from", REPORT_SHARE, CS_DIMENSIONLESS, "bootstrap interval of that median"},
    {"ci_high", "to", REPORT_SHARE, CS_DIMENSIONLESS, "its upper end"},
    {"success_1", "reach 1 %", REPORT_SHARE, CS_DIMENSIONLESS, "share of runs within 1 %"},
    {"ert_1", "ERT 1 %", REPORT_REAL, CS_DIMENSIONLESS, "evaluations of all runs over successes"},
    {"median_1", "median 1 %", REPORT_REAL, CS_DIMENSIONLESS, "median evaluations to 1 %"},
    {"success_5", "reach 5 %", REPORT_SHARE, CS_DIMENSIONLESS, "share of runs within 5 %"},
    {"ert_5", "ERT 5 %", REPORT_REAL, CS_DIMENSIONLESS, "likewise for 5 %"},
    {"area", "anytime", REPORT_REAL, CS_DIMENSIONLESS,
     "mean over log-spaced budgets of log regret, 0 (best) to 1"},
    {"rank", "rank", REPORT_REAL, CS_DIMENSIONLESS, "mean rank by final regret, ties averaged"},
    {"p", "p", REPORT_REAL, CS_DIMENSIONLESS, "Wilcoxon against the best agent, Holm"},
    {"a12", "A12", REPORT_REAL, CS_DIMENSIONLESS, "chance that the best agent does better"},
    {"verdict", "verdict", REPORT_TEXT, CS_DIMENSIONLESS, "best, tied (not told apart) or worse"},
    {"agent_s_per_proposal", "s/proposal", REPORT_REAL, CS_SECONDS, "time inside the agent"},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

static const report_column problem_columns[] = {
    {"problem", "problem", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"valid_points", "valid points", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"optimum", "optimum", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"optimum_kind", "known by", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"share_within_1_percent", "within 1 %", REPORT_REAL, CS_DIMENSIONLESS, NULL},
    {"random_median", "uniform draws to 1 %", REPORT_REAL, CS_DIMENSIONLESS, NULL},
};

static report_table *rows_table(const search_compare_result *result)
{
    report_table *table = report_table_create(columns, CS_COUNT(columns) - 1);

    for (size_t i = 0; i < result->n_rows; i++) {
        const search_compare_row *r = &result->rows[i];
        report_table_text(table, result->problems[r->problem].label);
        report_table_text(table, r->agent);
        report_table_integer(table, (int64_t)r->runs);
        for (size_t c = 0; c < SEARCH_N_CHECKPOINTS; c++)
            report_table_real(table, r->regret[c]);
        report_table_real(table, r->final);
        report_table_real(table, r->ci_low);
        report_table_real(table, r->ci_high);
        report_table_real(table, r->success_1);
        report_table_real(table, r->ert_1);
        report_table_real(table, r->median_1);
        report_table_real(table, r->success_5);
        report_table_real(table, r->ert_5);
        report_table_real(table, r->area);
        report_table_real(table, r->rank);
        report_table_real(table, r->p);
        report_table_real(table, r->a12);
        report_table_text(table, r->best ? "best" : r->tied ? "tied" : "worse");
        report_table_real(table, r->agent_s_per_proposal);
    }
    return table;
}

static report_table *problems_table(const search_compare_result *result)
{
    report_table *table = report_table_create(problem_columns, CS_COUNT(problem_columns));

    for (size_t i = 0; i < result->n_problems; i++) {
        const search_compare_problem *p = &result->problems[i];
        report_table_text(table, p->label);
        report_table_text(table, p->valid_points);
        report_table_real(table, p->optimum);
        report_table_text(table, p->kind);
        report_table_real(table, p->share_1);
        report_table_real(table, p->random_median);
    }
    return table;
}

/* ---- output ---- */

typedef struct {
    report_table *problems, *rows;
    const search_compare_result *result;
} comparison;

static cs_status write_form(const comparison *c, report_format format, FILE *out, cs_error *err)
{
    cs_status status = CS_OK;

    if (format == REPORT_JSON) {
        cs_json *object = report_header_json("compare", NULL);
        char *text;
        cs_json_set(object, "suite", cs_json_string(c->result->name));
        cs_json_set(object, "problems", report_table_json(c->problems));
        cs_json_set(object, "rows", report_table_json(c->rows));
        text = cs_json_dump(object, true);
        cs_json_destroy(object);
        if (text == NULL)
            return cs_fail(err, CS_ENOMEM, "out of memory while writing JSON");
        fprintf(out, "%s\n", text);
        free(text);
        return CS_OK;
    }
    if (format != REPORT_CSV) {
        CS_TRY(report_table_write(c->problems, format, out, err));
        fputc('\n', out);
    }
    CS_TRY(report_table_write(c->rows, format, out, err));
done:
    return status;
}

static cs_status write_files(const comparison *c, const cli_place *place, cs_error *err)
{
    static const struct {
        const char *name;
        report_format format;
    } forms[] = {
        {"table.md", REPORT_MARKDOWN}, {"table.csv", REPORT_CSV}, {"table.json", REPORT_JSON}};
    cs_status status = CS_OK;
    cli_file file = {.file = NULL};

    for (size_t i = 0; i < CS_COUNT(forms); i++) {
        char *path = cli_place_file(place, forms[i].name);
        if (path == NULL)
            return cs_fail(err, CS_ENOMEM, "out of memory");
        status = cli_file_open(path, &file, err);
        free(path);
        CS_TRY(status);
        CS_TRY(write_form(c, forms[i].format, file.file, err));
        CS_TRY(cli_file_commit(&file, err));
    }
done:
    cli_file_discard(&file);
    return status;
}

static cs_status write_page(const search_compare_result *result, const char *runs,
                            const cli_place *place, cs_error *err)
{
    char *path = cli_place_file(place, "report.html");
    cs_status status = CS_OK;

    if (path == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    status = cli_write_comparison(result, runs, path, err);
    free(path);
    return status;
}

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    cli_progress *line = context;

    if (!line->active)
        return;
    fprintf(stderr, "\r\033[K%llu/%llu runs", (unsigned long long)done, (unsigned long long)total);
    fflush(stderr);
    line->shown = true;
}

static cs_status refuse_runs(const cli_context *cli, const char *path, cs_error *err)
{
    if (cli->args.resume || access(path, F_OK) != 0)
        return CS_OK;
    return cs_fail(err, CS_EINVAL,
                   "%s: runs are there already; --resume goes on with them, --out names another "
                   "folder",
                   path);
}

static cs_status run_compare(cli_context *cli, cs_error *err)
{
    search_compare_options options = {.suite_path = cli->args.files.item[0],
                                      .jobs = (int)cli->args.jobs,
                                      .stop = cli->stop,
                                      .progress = show_progress};
    search_compare_result result = {.name = NULL};
    comparison c = {NULL, NULL, &result};
    cs_status status = CS_OK;
    cli_progress line;
    cli_place place;
    char *runs = NULL;

    CS_TRY(cli_place_folder(cli, "compare", &place, err));
    runs = cli_place_file(&place, "runs.jsonl");
    if (runs == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory"));
    CS_TRY(refuse_runs(cli, runs, err));
    options.runs_path = runs;
    options.progress_context = &line;
    cli_progress_start(&line, cli);
    status = search_compare(&options, &result, err);
    cli_progress_end(&line);
    CS_TRY(status);
    c.problems = problems_table(&result);
    c.rows = rows_table(&result);
    CS_TRY(write_files(&c, &place, err));
    CS_TRY(write_page(&result, runs, &place, err));
    CS_TRY(write_form(&c, (report_format)cli->args.format, cli->out, err));
    if (cli->args.format == REPORT_TABLE && !cli->args.quiet)
        fprintf(cli->out,
                "\nWritten: %s/ (runs.jsonl, table.md, table.csv, table.json, report.html)\n",
                place.dir);
done:
    report_table_destroy(c.problems);
    report_table_destroy(c.rows);
    search_compare_fini(&result);
    free(runs);
    cli_place_fini(&place);
    return status;
}

const cli_command cli_compare = {
    .name = "compare",
    .summary = "agents on a benchmark suite, with statistics",
    .usage = "SUITE.yaml [--out DIR] [--resume] [--jobs N]",
    .example = "cosmic-search compare configs/suites/quick.yaml --out results/compare-quick",
    .options = "out resume jobs",
    .min_files = 1,
    .max_files = 1,
    .dictionary = columns,
    .run = run_compare,
};
