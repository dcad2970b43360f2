/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * trace: Chakra traces and text workloads. */
#include "cli/commands.h"

#include <string.h>
#include <sys/stat.h>

#include "workloads/trace.h"

#define MOST_BYTES 10e9 /* written without --force */

cs_status cli_trace_load(const cli_context *cli, const char *path, wl_trace **out, cs_error *err)
{
    const wl_trace_options options = cli_trace_options(&cli->args);
    cs_status status = CS_OK;

    CS_TRY(wl_trace_load(path, &options, out, err));
    for (size_t i = 0; i < (*out)->n_issues && !cli->args.quiet; i++)
        if ((*out)->issue[i].severity == WL_WARNING)
            fprintf(stderr, "cosmic-search: warning: %s\n", (*out)->issue[i].text);
    CS_TRY(wl_trace_verdict(*out, cli->args.strict, err));
done:
    return status;
}

wl_trace_options cli_trace_options(const cli_args *args)
{
    return (wl_trace_options){.schema = (wl_schema)args->schema,
                              .ctrl = (wl_ctrl_mode)args->control,
                              .group_file = args->groups,
                              .job_ranks = (uint32_t)args->job_ranks,
                              .passes = (uint32_t)args->passes};
}

/* ---- info ---- */

static const report_column traffic_columns[] = {
    {"kind", "kind", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"group", "group", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"ranks", "ranks", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"count", "count", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"bytes", "bytes", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
};

static report_table *traffic_table(const wl_trace_info *info)
{
    report_table *table = report_table_create(traffic_columns, CS_COUNT(traffic_columns));

    for (size_t i = 0; i < info->n_traffic; i++) {
        report_table_text(table, info->traffic[i].kind);
        report_table_text(table, info->traffic[i].group);
        report_table_integer(table, info->traffic[i].ranks);
        report_table_integer(table, (int64_t)info->traffic[i].count);
        report_table_integer(table, (int64_t)info->traffic[i].bytes);
    }
    return table;
}

static cs_json *lines_json(const char *const *line, size_t n)
{
    cs_json *list = cs_json_array();

    for (size_t i = 0; i < n; i++)
        cs_json_push(list, cs_json_string(line[i]));
    return list;
}

static cs_json *types_json(const wl_rank_facts *facts)
{
    cs_json *object = cs_json_object();

    for (int t = 0; t < WL_N_NODE_TYPES; t++)
        if (facts->by_type[t] > 0)
            cs_json_set(object, wl_node_type_names[t], cs_json_int((int64_t)facts->by_type[t]));
    return object;
}

static cs_status print_info_json(const cli_context *cli, const wl_trace *trace,
                                 const wl_trace_info *info, const report_table *traffic,
                                 cs_error *err)
{
    const wl_rank_facts *total = &info->total;
    cs_json *object = report_header_json("trace info", NULL);
    cs_json *issues = cs_json_array();

    cs_json_set(object, "trace", cs_json_string(cli->args.files.item[1]));
    cs_json_set(object, "job_ranks", cs_json_int(trace->job_ranks));
    cs_json_set(object, "ranks", cs_json_int(trace->n_ranks));
    cs_json_set(object, "nodes", cs_json_int((int64_t)total->nodes));
    cs_json_set(object, "nodes_by_type", types_json(total));
    cs_json_set(object, "cpu_nodes", cs_json_int((int64_t)total->cpu_nodes));
    cs_json_set(object, "data_edges", cs_json_int((int64_t)total->data_edges));
    cs_json_set(object, "ctrl_edges", cs_json_int((int64_t)total->ctrl_edges));
    cs_json_set(object, "depth", cs_json_int((int64_t)total->depth));
    cs_json_set(object, "num_ops", cs_json_int((int64_t)total->num_ops));
    cs_json_set(object, "coll_bytes", cs_json_int((int64_t)total->coll_bytes));
    cs_json_set(object, "send_bytes", cs_json_int((int64_t)total->send_bytes));
    cs_json_set(object, "recv_bytes", cs_json_int((int64_t)total->recv_bytes));
    cs_json_set(object, "comp_duration_ps", cs_json_int(total->comp_duration_ps));
    cs_json_set(object, "file_bytes", cs_json_int((int64_t)info->file_bytes));
    cs_json_set(object, "traffic", report_table_json(traffic));
    cs_json_set(object, "oddities", lines_json(info->oddity, info->n_oddities));
    for (size_t i = 0; i < trace->n_issues; i++)
        cs_json_push(issues, cs_json_string(trace->issue[i].text));
    cs_json_set(object, "issues", issues);
    return cli_print_json(cli, object, err);
}

static cs_status print_info(const cli_context *cli, const wl_trace *trace, cs_error *err)
{
    cs_arena *arena = cs_arena_create(0);
    report_table *traffic = NULL;
    wl_trace_info *info = NULL;
    cs_status status = CS_OK;

    if (arena == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    CS_TRY(wl_trace_summarize(trace, arena, &info, err));
    traffic = traffic_table(info);
    if (traffic == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory"));
    if (cli->args.format == REPORT_JSON)
        CS_TRY(print_info_json(cli, trace, info, traffic, err));
    else if (cli->args.format == REPORT_CSV)
        CS_TRY(report_table_write(traffic, REPORT_CSV, cli->out, err));
    else
        for (size_t i = 0; i < info->n_lines; i++)
            fprintf(cli->out, "%s\n", info->line[i]);
done:
    report_table_destroy(traffic);
    cs_arena_destroy(arena);
    return status;
}

static cs_status trace_info(cli_context *cli, cs_error *err)
{
    wl_trace *trace = NULL;
    cs_status status = CS_OK;

    CS_TRY(cli_trace_load(cli, cli->args.files.item[1], &trace, err));
    CS_TRY(print_info(cli, trace, err));
done:
    wl_trace_destroy(trace);
    return status;
}

/* ---- convert ---- */

cs_status cli_check_size(const cli_context *cli, uint64_t bytes, cs_error *err)
{
    char text[64];

    if (!cli->args.quiet)
        fprintf(stderr, "writes about %s\n", report_quantity((double)bytes, CS_BYTES, text));
    if ((double)bytes <= MOST_BYTES || cli->args.force)
        return CS_OK;
    return cs_fail(err, CS_EINVAL, "would write %s; --force writes more than 10 GB",
                   report_quantity((double)bytes, CS_BYTES, text));
}

static cs_status trace_convert(cli_context *cli, cs_error *err)
{
    const wl_trace_options options = cli_trace_options(&cli->args);
    const char *path = cli->args.files.item[1];
    wl_convert_report report;
    cs_status status = CS_OK;
    uint64_t bytes = 0;

    if (cli->args.out == NULL)
        return cs_fail(err, CS_EINVAL, "trace convert: --out PREFIX is missing");
    CS_TRY(wl_trace_convert_size(path, &options, &bytes, err));
    CS_TRY(cli_check_size(cli, bytes, err));
    CS_TRY(wl_trace_convert(path, &options, cli->args.out, &report, err));
    if (cli->args.format == REPORT_JSON) {
        cs_json *object = report_header_json("trace convert", NULL);
        cs_json_set(object, "ranks", cs_json_int((int64_t)report.ranks));
        cs_json_set(object, "nodes", cs_json_int((int64_t)report.nodes));
        cs_json_set(object, "bytes", cs_json_int((int64_t)report.bytes));
        return cli_print_json(cli, object, err);
    }
    fprintf(cli->out, "%llu ranks, %llu nodes, %llu bytes: %s.*.et\n",
            (unsigned long long)report.ranks, (unsigned long long)report.nodes,
            (unsigned long long)report.bytes, cli->args.out);
done:
    return status;
}

/* ---- the command ---- */

static const struct {
    const char *name;
    cs_status (*run)(cli_context *cli, cs_error *err);
} verbs[] = {
    {"info", trace_info},
    {"convert", trace_convert},
    {"simulate", cli_trace_simulate},
    {"export", cli_trace_export},
};

static cs_status run_trace(cli_context *cli, cs_error *err)
{
    const char *word = cli->args.files.item[0];
    const char *names[CS_COUNT(verbs)];
    const char *near;

    for (size_t i = 0; i < CS_COUNT(verbs); i++) {
        names[i] = verbs[i].name;
        if (strcmp(word, names[i]) == 0)
            return verbs[i].run(cli, err);
    }
    near = cs_nearest(word, names, CS_COUNT(verbs));
    return cs_fail(err, CS_EINVAL, "trace %s: no such action; did you mean %s?", word,
                   near != NULL ? near : names[0]);
}

const cli_command cli_trace = {
    .name = "trace",
    .summary = "Chakra traces: info, simulate, convert, export",
    .usage = "info TRACE | simulate TRACE --network N.yml --system S.json | convert TRACE --out "
             "PREFIX | export PSA [--set K=V]... --out DIR",
    .example = "cosmic-search trace info traces/generated",
    .options = "schema control groups job-ranks passes strict out force network system model "
               "streams slow-rank slow-factor link timeline ranks set fix workload granularity",
    .min_files = 2,
    .max_files = 2,
    .dictionary = cli_trace_columns,
    .run = run_trace,
};
