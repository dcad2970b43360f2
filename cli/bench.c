/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * bench: evaluations per second and core. */
#include "cli/commands.h"

static const report_column columns[] = {
    {"evaluations_per_s", "evaluations/s", REPORT_REAL, CS_DIMENSIONLESS,
     "feasible designs simulated per second, drawn uniformly, no design cache"},
    {"evaluations_per_s_per_core", "per core", REPORT_REAL, CS_DIMENSIONLESS,
     "the same per thread"},
    {"rejected_per_s", "rejected/s", REPORT_REAL, CS_DIMENSIONLESS,
     "designs without room in memory, found before any simulation"},
    {"feasible", "feasible", REPORT_INTEGER, CS_DIMENSIONLESS, "designs simulated"},
    {"rejected", "rejected", REPORT_INTEGER, CS_DIMENSIONLESS, "designs rejected"},
    {"first_sample_s", "first sample", REPORT_REAL, CS_SECONDS,
     "from the start of the process to the first valid design"},
    {"wall_s", "duration", REPORT_REAL, CS_SECONDS, "how long was measured"},
    {"jobs", "threads", REPORT_INTEGER, CS_DIMENSIONLESS, "threads"},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

static void fill(report_table *table, const search_bench_result *r)
{
    report_table_real(table, r->evaluations_per_s);
    report_table_real(table, r->evaluations_per_s_per_core);
    report_table_real(table, r->rejected_per_s);
    report_table_integer(table, (int64_t)r->feasible);
    report_table_integer(table, (int64_t)r->rejected);
    report_table_real(table, r->first_sample_s);
    report_table_real(table, r->wall_s);
    report_table_integer(table, r->jobs);
}

static cs_status print_json(const cli_context *cli, const search_problem *problem,
                            const report_table *table, cs_error *err)
{
    cs_json *object = report_header_json("bench", problem);

    cs_json_merge(object, report_table_row_json(table, 0));
    return cli_print_json(cli, object, err);
}

static cs_status run_bench(cli_context *cli, cs_error *err)
{
    report_table *table = report_table_create(columns, CS_COUNT(columns) - 1);
    search_problem problem = {0};
    search_bench_result result;
    cs_status status = CS_OK;
    double loaded_s;

    CS_TRY(cli_load_problem(cli, &problem, err));
    loaded_s = cli_now_s() - cli->start_s;
    CS_TRY(search_bench(&problem, cli->args.seconds, (int)cli->args.jobs, (uint64_t)cli->args.seed,
                        &result, err));
    result.first_sample_s += loaded_s;
    fill(table, &result);
    if (cli->args.format == REPORT_JSON)
        CS_TRY(print_json(cli, &problem, table, err));
    else
        CS_TRY(report_table_write(table, (report_format)cli->args.format, cli->out, err));
done:
    report_table_destroy(table);
    search_problem_fini(&problem);
    return status;
}

const cli_command cli_bench = {
    .name = "bench",
    .summary = "evaluations per second and core on a PSA file",
    .usage = "PSA [--seconds S] [--jobs N] [--seed S]",
    .example = "cosmic-search bench configs/psa/gpt3-175b-system3.yaml --seconds 5",
    .options = "seconds jobs seed stack fix objective",
    .min_files = 1,
    .max_files = 1,
    .dictionary = columns,
    .run = run_bench,
};
