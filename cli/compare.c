/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * compare: agents on the problems of a suite, with statistics. */
#include "cli/compare.h"
#include "cli/commands.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- output ---- */

static cs_status write_json(const search_compare_result *result, const cli_comparison *tables,
                            FILE *out, cs_error *err)
{
    const struct {
        const char *key;
        const report_table *table;
    } parts[] = {{"problems", tables->problems},
                 {"rows", tables->rows},
                 {"pairs", tables->pairs},
                 {"pairs_over_problems", tables->summary},
                 {"lottery", tables->lottery}};
    cs_json *object = report_header_json("compare", NULL);
    char *text;

    cs_json_set(object, "suite", cs_json_string(result->name));
    for (size_t i = 0; i < CS_COUNT(parts); i++)
        if (parts[i].table != NULL)
            cs_json_set(object, parts[i].key, report_table_json(parts[i].table));
    text = cs_json_dump(object, true);
    cs_json_destroy(object);
    if (text == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory while writing JSON");
    fprintf(out, "%s\n", text);
    free(text);
    return CS_OK;
}

/* What people read: one table after the other. */
static cs_status write_tables(const cli_comparison *tables, report_format format, FILE *out,
                              cs_error *err)
{
    const report_table *parts[] = {tables->facts,   tables->targets, tables->regret,
                                   tables->summary, tables->pairs,   tables->lottery};
    cs_status status = CS_OK;

    for (size_t i = 0; i < CS_COUNT(parts); i++) {
        if (parts[i] == NULL)
            continue;
        if (i > 0)
            fputc('\n', out);
        CS_TRY(report_table_write(parts[i], format, out, err));
    }
done:
    return status;
}

static cs_status write_form(const search_compare_result *result, const cli_comparison *tables,
                            report_format format, FILE *out, cs_error *err)
{
    if (format == REPORT_JSON)
        return write_json(result, tables, out, err);
    if (format == REPORT_CSV)
        return report_table_write(tables->rows, format, out, err);
    return write_tables(tables, format, out, err);
}

static cs_status write_files(const search_compare_result *result, const cli_comparison *tables,
                             const cli_place *place, cs_error *err)
{
    const struct {
        const char *name;
        report_format format;
        const report_table *table; /* NULL: all of them in that format */
        bool wanted;
    } files[] = {{"table.md", REPORT_MARKDOWN, NULL, true},
                 {"table.csv", REPORT_CSV, tables->rows, true},
                 {"problems.csv", REPORT_CSV, tables->problems, true},
                 {"pairs.csv", REPORT_CSV, tables->pairs, tables->pairs != NULL},
                 {"table.json", REPORT_JSON, NULL, true}};
    cs_status status = CS_OK;
    cli_file file = {.file = NULL};

    for (size_t i = 0; i < CS_COUNT(files); i++) {
        if (!files[i].wanted)
            continue;
        char *path = cli_place_file(place, files[i].name);
        if (path == NULL)
            return cs_fail(err, CS_ENOMEM, "out of memory");
        status = cli_file_open(path, &file, err);
        free(path);
        CS_TRY(status);
        if (files[i].table != NULL)
            CS_TRY(report_table_write(files[i].table, files[i].format, file.file, err));
        else
            CS_TRY(write_form(result, tables, files[i].format, file.file, err));
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
    cli_comparison tables = {0};
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
    cli_comparison_init(&result, &tables);
    CS_TRY(write_files(&result, &tables, &place, err));
    CS_TRY(write_page(&result, runs, &place, err));
    CS_TRY(write_form(&result, &tables, (report_format)cli->args.format, cli->out, err));
    if (cli->args.format == REPORT_TABLE && !cli->args.quiet)
        fprintf(
            cli->out,
            "\nWritten: %s/ (runs.jsonl, table.md, .csv and .json, problems.csv%s, report.html)\n",
            place.dir, tables.pairs != NULL ? ", pairs.csv" : "");
done:
    cli_comparison_fini(&tables);
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
    .dictionary = cli_compare_columns,
    .run = run_compare,
};
