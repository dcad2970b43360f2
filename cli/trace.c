/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * trace: Chakra traces and text workloads. */
#include "cli/commands.h"

#include <string.h>
#include <sys/stat.h>

#include "workloads/trace.h"

#define MOST_BYTES 10e9 /* written without --force */

static void print_warnings(const cli_context *cli, const wl_trace *trace)
{
    for (size_t i = 0; i < trace->n_issues && !cli->args.quiet; i++)
        if (trace->issue[i].severity == WL_WARNING)
            fprintf(stderr, "cosmic-search: warning: %s\n", trace->issue[i].text);
}

cs_status cli_trace_load(const cli_context *cli, const char *path, wl_trace **out, cs_error *err)
{
    const wl_trace_options options = cli_trace_options(&cli->args);
    cs_status status = CS_OK;

    CS_TRY(wl_trace_load(path, &options, out, err));
    print_warnings(cli, *out);
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

static cs_json *counts_json(const uint64_t *count, const char *const *names, size_t n)
{
    cs_json *object = cs_json_object();

    for (size_t i = 0; i < n; i++)
        if (count[i] > 0)
            cs_json_set(object, names[i] != NULL ? names[i] : "none",
                        cs_json_int((int64_t)count[i]));
    return object;
}

/* Facts of one rank or of all. */
static void set_facts(cs_json *object, const wl_rank_facts *f)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {{"nodes", f->nodes},
                   {"cpu_nodes", f->cpu_nodes},
                   {"data_edges", f->data_edges},
                   {"ctrl_edges", f->ctrl_edges},
                   {"data_refs_missing", f->data_refs_missing},
                   {"ctrl_refs_missing", f->ctrl_refs_missing},
                   {"self_ctrl", f->self_ctrl},
                   {"depth", f->depth},
                   {"num_ops", f->num_ops},
                   {"coll_bytes", f->coll_bytes},
                   {"send_bytes", f->send_bytes},
                   {"recv_bytes", f->recv_bytes},
                   {"comp_duration_ps", (uint64_t)f->comp_duration_ps},
                   {"comp_longest_path_ps", (uint64_t)f->comp_longest_path_ps}};

    for (size_t i = 0; i < CS_COUNT(numbers); i++)
        cs_json_set(object, numbers[i].key, cs_json_int((int64_t)numbers[i].value));
    cs_json_set(object, "cyclic", cs_json_bool(f->data_cyclic));
    cs_json_set(object, "nodes_by_type",
                counts_json(f->by_type, wl_node_type_names, WL_N_NODE_TYPES));
    cs_json_set(object, "collectives_by_type",
                counts_json(f->coll_count, wl_chakra_comm_names, WL_N_CHAKRA_COMMS + 1));
}

static cs_json *ranks_json(const wl_trace *trace)
{
    cs_json *list = cs_json_array();

    for (uint32_t r = 0; r < trace->n_ranks; r++) {
        cs_json *object = cs_json_object();

        cs_json_set(object, "rank", cs_json_int(trace->rank[r].rank));
        cs_json_set(object, "schema", cs_json_string(wl_schema_names[trace->rank[r].schema]));
        set_facts(object, &trace->rank[r].facts);
        cs_json_push(list, object);
    }
    return list;
}

static cs_status print_info_json(const cli_context *cli, const wl_trace *trace,
                                 const wl_trace_info *info, const report_table *traffic,
                                 cs_error *err)
{
    cs_json *object = report_header_json("trace info", NULL);
    cs_json *issues = cs_json_array();

    cs_json_set(object, "trace", cs_json_string(cli->args.files.item[1]));
    cs_json_set(object, "job_ranks", cs_json_int(trace->job_ranks));
    cs_json_set(object, "ranks", cs_json_int(trace->n_ranks));
    set_facts(object, &info->total);
    cs_json_set(object, "file_bytes", cs_json_int((int64_t)info->file_bytes));
    cs_json_set(object, "traffic", report_table_json(traffic));
    cs_json_set(object, "oddities", lines_json(info->oddity, info->n_oddities));
    for (size_t i = 0; i < trace->n_issues; i++)
        cs_json_push(issues, cs_json_string(trace->issue[i].text));
    cs_json_set(object, "issues", issues);
    cs_json_set(object, "by_rank", ranks_json(trace));
    return cli_print_json(cli, object, err);
}

static void print_lines(const cli_context *cli, const wl_trace_info *info)
{
    for (size_t i = 0; i < info->n_lines; i++)
        fprintf(cli->out, "%s\n", info->line[i]);
    for (size_t i = 0; i < info->n_oddities; i++)
        fprintf(cli->out, "%-22s %s\n", i == 0 ? "noted" : "", info->oddity[i]);
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
        print_lines(cli, info);
done:
    report_table_destroy(traffic);
    cs_arena_destroy(arena);
    return status;
}

/* Errors across ranks leave each file's facts as they are: these are shown all the same. */
static bool facts_are_sound(const wl_trace *trace)
{
    for (size_t i = 0; i < trace->n_issues; i++)
        if (trace->issue[i].severity == WL_ERROR && trace->issue[i].class_ != WL_ISSUE_RANKS)
            return false;
    return true;
}

static cs_status trace_info(cli_context *cli, cs_error *err)
{
    const wl_trace_options options = cli_trace_options(&cli->args);
    wl_trace *trace = NULL;
    cs_status status = CS_OK;

    CS_TRY(wl_trace_load(cli->args.files.item[1], &options, &trace, err));
    print_warnings(cli, trace);
    if (facts_are_sound(trace))
        CS_TRY(print_info(cli, trace, err));
    CS_TRY(wl_trace_verdict(trace, cli->args.strict, err));
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
    .example = "cosmic-search trace export configs/psa/llama3-70b-fsdp8.yaml "
               "--set workload.sharding=weights --out results/traces",
    .options =
        "schema control groups job-ranks passes strict out force network system model "
        "streams slow-rank slow-factor link no-fold timeline ranks set fix workload granularity",
    .min_files = 2,
    .max_files = 2,
    .dictionary = cli_trace_columns,
    .run = run_trace,
};
