/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * trace simulate: the time of a traced job on a network. */
#include "cli/commands.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cluster.h"

const report_column cli_trace_columns[] = {
    {"rank", "rank", REPORT_INTEGER, CS_DIMENSIONLESS, "rank (simulate -f csv: a row a rank)"},
    {"total_ns", "total ns", REPORT_INTEGER, CS_DIMENSIONLESS, "until its last node ends"},
    {"compute_ns", "compute ns", REPORT_INTEGER, CS_DIMENSIONLESS, "sum of its compute nodes"},
    {"exposed_ns", "exposed ns", REPORT_INTEGER, CS_DIMENSIONLESS, "total - compute"},
    {"hidden_ns", "hidden ns", REPORT_INTEGER, CS_DIMENSIONLESS, "communication beside compute"},
    {"comm_ns", "communication ns", REPORT_INTEGER, CS_DIMENSIONLESS,
     "time with communication in flight"},
    {"idle_ns", "idle ns", REPORT_INTEGER, CS_DIMENSIONLESS, "neither compute nor communication"},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

static report_table *rank_table(const wl_trace *trace, const sim_cluster_result *result)
{
    report_table *table = report_table_create(cli_trace_columns, 7);

    for (uint32_t r = 0; r < result->n_ranks; r++) {
        report_table_integer(table, trace->rank[r].rank);
        report_table_integer(table, result->rank[r].total_ns);
        report_table_integer(table, result->rank[r].compute_ns);
        report_table_integer(table, result->rank[r].exposed_ns);
        report_table_integer(table, result->rank[r].hidden_ns);
        report_table_integer(table, result->rank[r].comm_ns);
        report_table_integer(table, result->rank[r].idle_ns);
    }
    return table;
}

static cs_json *result_json(const cli_context *cli, const sim_cluster_result *result,
                            const report_table *ranks)
{
    cs_json *object = report_header_json("trace simulate", NULL);

    cs_json_set(object, "trace", cs_json_string(cli->args.files.item[1]));
    cs_json_set(object, "max_ns", cs_json_int(result->max_ns));
    cs_json_set(object, "min_ns", cs_json_int(result->min_ns));
    cs_json_set(object, "max_exposed_ns", cs_json_int(result->max_exposed_ns));
    cs_json_set(object, "bytes_moved", cs_json_real(result->bytes_moved));
    cs_json_set(object, "collectives", cs_json_int((int64_t)result->collectives));
    cs_json_set(object, "messages", cs_json_int((int64_t)result->messages));
    cs_json_set(object, "unreceived", cs_json_int((int64_t)result->unreceived));
    cs_json_set(object, "ranks_simulated", cs_json_int(result->n_simulated));
    cs_json_set(object, "ranks", report_table_json(ranks));
    return object;
}

static cs_status print_result(const cli_context *cli, const wl_trace *trace,
                              const sim_cluster_result *result, cs_error *err)
{
    report_table *ranks = rank_table(trace, result);
    cs_status status = CS_OK;

    if (ranks == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    if (cli->args.format == REPORT_JSON) {
        CS_TRY(cli_print_json(cli, result_json(cli, result, ranks), err));
        goto done;
    }
    if (cli->args.format == REPORT_TABLE)
        fprintf(cli->out,
                "max %lld ns, min %lld ns, most exposed %lld ns; %.0f bytes moved, %llu "
                "collectives, %llu messages\n\n",
                (long long)result->max_ns, (long long)result->min_ns,
                (long long)result->max_exposed_ns, result->bytes_moved,
                (unsigned long long)result->collectives, (unsigned long long)result->messages);
    CS_TRY(report_table_write(ranks, (report_format)cli->args.format, cli->out, err));
done:
    report_table_destroy(ranks);
    return status;
}

/* ---- timeline ---- */

typedef struct {
    const wl_trace *trace;
    report_trace *writer;
    uint32_t first, last; /* ranks shown */
} recorder;

enum { THREAD_COMPUTE, THREAD_COMMUNICATION, THREAD_OTHER };

static int32_t thread_of(const wl_trace_node *node)
{
    if (node->type == WL_NODE_COMP && (node->flags & WL_NODE_CPU) == 0)
        return THREAD_COMPUTE;
    if (node->type == WL_NODE_COLL || node->type == WL_NODE_SEND || node->type == WL_NODE_RECV)
        return THREAD_COMMUNICATION;
    return THREAD_OTHER;
}

static void record(void *context, uint32_t rank, uint32_t node, int64_t start_ns, int64_t end_ns)
{
    recorder *r = context;
    const uint32_t number = r->trace->rank[rank].rank;

    if (number < r->first || number > r->last)
        return;
    report_trace_event(r->writer, &(sim_span_event){.stage = (int32_t)number,
                                                    .thread = thread_of(&r->trace->node[node]),
                                                    .name = wl_trace_name(r->trace, node),
                                                    .start = 1000 * start_ns,
                                                    .length = 1000 * (end_ns - start_ns)});
}

static cs_status parse_ranks(const char *text, recorder *r, cs_error *err)
{
    char *end = NULL;
    unsigned long first, last;

    r->first = 0;
    r->last = UINT32_MAX;
    if (text == NULL)
        return CS_OK;
    first = last = strtoul(text, &end, 10);
    if (end != text && *end == '-')
        last = strtoul(end + 1, &end, 10);
    if (*end != '\0' || end == text || first > last || last > UINT32_MAX)
        return cs_fail(err, CS_EINVAL, "--ranks %s: expected A or A-B, numbers from 0", text);
    r->first = (uint32_t)first;
    r->last = (uint32_t)last;
    return CS_OK;
}

static cs_status simulate_with_timeline(const cli_context *cli, recorder *r,
                                        sim_cluster_options *options, sim_cluster_result *result,
                                        cs_error *err)
{
    static const char *const threads[] = {"compute", "communication", "other", NULL};
    cli_file file = {.file = NULL};
    cs_status status = CS_OK;

    CS_TRY(parse_ranks(cli->args.ranks, r, err));
    CS_TRY(cli_file_open(cli->args.timeline, &file, err));
    r->writer = report_trace_begin(file.file, "rank", 0, threads);
    if (r->writer == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory"));
    options->on_node = record;
    options->context = r;
    CS_TRY(sim_cluster_run(r->trace, options, result, err));
    CS_TRY(report_trace_end(r->writer, err));
    CS_TRY(cli_file_commit(&file, err));
done:
    report_trace_destroy(r->writer);
    cli_file_discard(&file);
    return status;
}

/* ---- the machine ---- */

#define MOST_LINKS       64
#define MODEL_CONTENTION 2 /* --model: sim_astra_backend, then this */

/* What a job runs on; released together. */
typedef struct {
    sim_astra *astra;
    wl_trace *custom[SIM_ASTRA_N_TYPES];
    sim_network network;
    sim_cluster_link link[MOST_LINKS];
} machine;

static void machine_fini(machine *m)
{
    for (size_t t = 0; t < SIM_ASTRA_N_TYPES; t++)
        wl_trace_destroy(m->custom[t]);
    free(m->astra);
}

/* "A-B:X" or "A-B:X:BW". */
static cs_status parse_link(const char *text, sim_cluster_link *out, cs_error *err)
{
    const char *wrong = "--link %s: expected FROM-TO:SHARE or FROM-TO:SHARE:BANDWIDTH, such as "
                        "0-1:0.5 or 0-1:1:2GB/s";
    cs_error inner = {.text = ""};
    long long from, to;
    int read = 0;

    *out = (sim_cluster_link){.factor = 1};
    if (sscanf(text, "%lld-%lld:%lf%n", &from, &to, &out->factor, &read) != 3 ||
        (text[read] != '\0' && text[read] != ':'))
        return cs_fail(err, CS_EINVAL, wrong, text);
    out->from = from;
    out->to = to;
    if (text[read] == ':' && cs_quantity_parse(text + read + 1, CS_BANDWIDTH,
                                               &out->background_bytes_per_s, &inner) != CS_OK)
        return cs_fail(err, CS_EINVAL, "--link %s: %s", text, inner.text);
    return CS_OK;
}

static cs_status parse_links(const cli_list *list, machine *m, sim_cluster_options *options,
                             cs_error *err)
{
    cs_status status = CS_OK;

    if (list->n > MOST_LINKS)
        return cs_fail(err, CS_EINVAL, "--link: at most %d", MOST_LINKS);
    for (size_t i = 0; i < list->n; i++)
        CS_TRY(parse_link(list->item[i], &m->link[i], err));
    options->link = m->link;
    options->n_links = list->n;
done:
    return status;
}

/* Loads a custom collective named by a path prefix: as written, from the folder of system.json, or
 * by its last part beside system.json (files that were moved together). */
static cs_status load_one_custom(const char *system, const char *prefix, wl_trace **out,
                                 cs_error *err)
{
    const wl_trace_options form = {.custom = true};
    const char *slash = strrchr(system, '/');
    const int folder = slash == NULL ? 0 : (int)(slash - system) + 1;
    const char *last = strrchr(prefix, '/');
    const char *tries[] = {prefix, last == NULL ? prefix : last + 1};
    cs_status status = wl_trace_load(prefix, &form, out, err);
    char path[1024];

    for (size_t i = 0; i < CS_COUNT(tries) && status == CS_ENOENT; i++) {
        snprintf(path, sizeof path, "%.*s%s", folder, system, tries[i]);
        status = wl_trace_load(path, &form, out, NULL);
    }
    return status;
}

static cs_status load_custom(const cli_context *cli, machine *m, sim_cluster_options *options,
                             cs_error *err)
{
    cs_status status = CS_OK;

    for (size_t t = 0; t < SIM_ASTRA_N_TYPES; t++) {
        const char *prefix = m->astra->system.custom[t];
        if (prefix[0] == '\0')
            continue;
        CS_TRY(load_one_custom(cli->args.system, prefix, &m->custom[t], err));
        options->custom[t] = m->custom[t];
    }
done:
    return status;
}

static cs_status load_astra(const cli_context *cli, machine *m, sim_cluster_options *options,
                            cs_error *err)
{
    cs_status status = CS_OK;

    m->astra = calloc(1, sizeof *m->astra);
    if (m->astra == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    CS_TRY(sim_astra_load(cli->args.network, cli->args.system, m->astra, err));
    for (size_t i = 0; i < m->astra->n_warnings && !cli->args.quiet; i++)
        fprintf(stderr, "cosmic-search: warning: %s\n", m->astra->warning[i]);
    CS_TRY(load_custom(cli, m, options, err));
    if (cli->args.backend != MODEL_CONTENTION) {
        options->astra = m->astra;
        options->backend = (sim_astra_backend)cli->args.backend;
        goto done;
    }
    CS_TRY(sim_astra_as_network(m->astra, &m->network, err));
    options->network = &m->network;
    if (m->astra->system.roofline) {
        options->peak_flops = m->astra->system.peak_flops;
        options->memory_bytes_per_s = m->astra->system.local_mem_bytes_per_s;
    }
done:
    return status;
}

static cs_status load_machine(const cli_context *cli, machine *m, sim_cluster_options *options,
                              cs_error *err)
{
    cs_status status = CS_OK;
    sim_config config;

    if (cli->args.system == NULL)
        return cs_fail(err, CS_EINVAL,
                       "trace simulate: --network N.yml and --system S.json "
                       "(ASTRA-sim's), or --system SYSTEM.yaml, are needed");
    options->slow_rank = (uint32_t)cli->args.slow_rank;
    options->slow_factor = cli->args.slow_factor;
    options->streams_by_dimension = cli->args.streams == 1;
    options->every_rank = cli->args.no_fold;
    CS_TRY(parse_links(&cli->args.links, m, options, err));
    if (cli->args.network != NULL)
        return load_astra(cli, m, options, err);
    CS_TRY(cli_load_network(cli, cli->args.system, &m->network, &config, err));
    options->network = &m->network;
    options->peak_flops = config.compute.peak;
    options->memory_bytes_per_s = config.compute.memory_bandwidth;
done:
    return status;
}

/* ---- the action ---- */

cs_status cli_trace_simulate(cli_context *cli, cs_error *err)
{
    sim_cluster_options options = {.astra = NULL};
    sim_cluster_result result = {.n_ranks = 0};
    machine m = {.astra = NULL};
    wl_trace *trace = NULL;
    cs_status status = CS_OK;
    recorder r = {.trace = NULL};

    CS_TRY(load_machine(cli, &m, &options, err));
    CS_TRY(cli_trace_load(cli, cli->args.files.item[1], &trace, err));
    r.trace = trace;
    if (cli->args.timeline != NULL)
        CS_TRY(simulate_with_timeline(cli, &r, &options, &result, err));
    else
        CS_TRY(sim_cluster_run(trace, &options, &result, err));
    CS_TRY(print_result(cli, trace, &result, err));
done:
    sim_cluster_result_fini(&result);
    wl_trace_destroy(trace);
    machine_fini(&m);
    return status;
}
