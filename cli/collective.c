/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * collective: the time of one collective, alone in the machine.  ASTRA-sim input files select the
 * model `astra`, a system file of a PSA the model `contention`. */
#include "cli/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/astra.h"

#define MAX_DIMS (SIM_MAX_DIMS > SIM_ASTRA_MAX_DIMS ? SIM_MAX_DIMS : SIM_ASTRA_MAX_DIMS)

/* What is printed, from either model. */
typedef struct {
    const char *model, *type;
    int64_t bytes, npus, chunks;
    double time_ns, algbw, busbw;
    size_t n_dims;
    double sent[MAX_DIMS];
} outcome;

static const report_column columns[] = {
    {"model", "model", REPORT_TEXT, CS_DIMENSIONLESS, "astra or contention"},
    {"type", "type", REPORT_TEXT, CS_DIMENSIONLESS, "collective"},
    {"bytes", "bytes", REPORT_INTEGER, CS_DIMENSIONLESS,
     "size: astra states an all-gather by one NPU's shard, contention by the whole tensor"},
    {"npus", "NPUs", REPORT_INTEGER, CS_DIMENSIONLESS, "NPUs that take part"},
    {"chunks", "chunks", REPORT_INTEGER, CS_DIMENSIONLESS, "pieces the collective is split into"},
    {"time_ns", "time ns", REPORT_REAL, CS_DIMENSIONLESS, "of the NPU that ends last"},
    {"algbw_bytes_per_s", "algbw", REPORT_REAL, CS_BANDWIDTH, "bytes / time"},
    {"busbw_bytes_per_s", "busbw", REPORT_REAL, CS_BANDWIDTH,
     "algbw times NCCL's factor: what a link carries"},
    {"sent_bytes_by_dimension", "sent by dimension", REPORT_TEXT, CS_DIMENSIONLESS,
     "bytes one NPU sends into each dimension (JSON: a list)"},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

/* "1048576" or "1 GiB". */
static cs_status parse_bytes(const char *text, int64_t *out, cs_error *err)
{
    cs_error inner = {.text = ""};
    char *end = NULL;
    double value;

    if (text == NULL)
        return cs_fail(err, CS_EINVAL, "collective: --bytes is missing");
    value = strtod(text, &end);
    if (end == text || *end != '\0') {
        if (cs_quantity_parse(text, CS_BYTES, &value, &inner) != CS_OK)
            return cs_fail(err, CS_EINVAL, "--bytes %s: %s", text, inner.text);
    }
    if (!(value >= 1.0 && value <= 1e18) || value != floor(value))
        return cs_fail(err, CS_EINVAL, "--bytes %s: expected a whole number from 1 to 1e18", text);
    *out = (int64_t)value;
    return CS_OK;
}

/* All eight collectives by their lower-case names, and ASTRA-sim's upper-case ones. */
static cs_status parse_type(const char *text, wl_collective *out, cs_error *err)
{
    const char *near;

    if (text == NULL)
        return cs_fail(err, CS_EINVAL, "collective: --type is missing (all_reduce, ...)");
    if (sim_astra_type_parse(text, out))
        return CS_OK;
    for (int i = 0; i < WL_N_COLLECTIVES; i++) {
        if (strcmp(text, wl_collective_names[i]) == 0) {
            *out = (wl_collective)i;
            return CS_OK;
        }
    }
    near = cs_nearest(text, wl_collective_names, WL_N_COLLECTIVES);
    return cs_fail(err, CS_EINVAL, "--type %s: no such collective; did you mean %s?", text,
                   near != NULL ? near : wl_collective_names[0]);
}

/* ---- model astra ---- */

static cs_status predict_astra(const cli_context *cli, wl_collective type, outcome *out,
                               cs_error *err)
{
    sim_astra *astra = calloc(1, sizeof *astra);
    sim_astra_op op = {.type = type, .bytes = out->bytes, .backend = SIM_ASTRA_UNAWARE};
    sim_astra_result result;
    cs_status status = CS_OK;

    if (astra == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    CS_TRY(sim_astra_load(cli->args.network, cli->args.system, astra, err));
    for (size_t i = 0; i < astra->n_warnings && !cli->args.quiet; i++)
        fprintf(stderr, "cosmic-search: warning: %s\n", astra->warning[i]);
    CS_TRY(sim_astra_collective(astra, &op, &result, NULL, err));
    out->model = "astra";
    out->npus = astra->network.npus;
    out->chunks = result.chunks;
    out->time_ns = (double)result.time_ns;
    out->algbw = result.algbw_bytes_per_s;
    out->busbw = result.busbw_bytes_per_s;
    out->n_dims = result.n_dims;
    memcpy(out->sent, result.sent_bytes, sizeof result.sent_bytes);
done:
    free(astra);
    return status;
}

/* ---- model contention ---- */

/* A PSA that says nothing but which system it is for; single quotes are YAML's plain ones. */
static cs_status load_system(const char *path, psa_schema **out, cs_error *err)
{
    const char *slash = strrchr(path, '/');
    char text[4096] = "psa: 1\nsystem: '";
    psa_text source = {.name = path, .psa = text};
    size_t at = strlen(text);

    for (const char *p = slash == NULL ? path : slash + 1; *p != '\0'; p++) {
        if (at + 8 > sizeof text || (unsigned char)*p < 0x20)
            return cs_fail(err, CS_EINVAL, "%s: not a name this program can read", path);
        if (*p == '\'')
            text[at++] = '\'';
        text[at++] = *p;
    }
    text[at++] = '\'';
    text[at++] = '\n';
    source.psa_length = at;
    return psa_schema_parse(&source, sim_tables(), out, err);
}

static void add_sent(const sim_phases *phases, int64_t chunks, outcome *out)
{
    const sim_phase *phase = phases->phase;

    for (size_t i = 0; i < phases->n; i++)
        if (phase[i].dim < MAX_DIMS)
            out->sent[phase[i].dim] += phase[i].bytes * (double)chunks;
}

static cs_status time_contention(const sim_network *net, wl_collective type, outcome *out,
                                 cs_error *err)
{
    sim_route_cache *cache = sim_route_cache_create(64u << 20);
    const sim_footprint group = sim_footprint_whole(net);
    const sim_collective what = {&group, type, (double)out->bytes, 0};
    sim_phases phases;
    cs_status status = CS_OK;

    if (cache == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    out->npus = group.n;
    CS_TRY(sim_collective_phases(net, &what, cache, &phases, err));
    out->time_ns = 1e-3 * (double)sim_collective_isolated_ps(&phases, net->chunks);
    out->chunks = net->chunks;
    out->n_dims = net->n_dims;
    add_sent(&phases, net->chunks, out);
    if (out->time_ns > 0.0)
        out->algbw = 1e9 * (double)out->bytes / out->time_ns;
    out->busbw = out->algbw * sim_bus_factor(type, out->npus);
done:
    sim_route_cache_destroy(cache);
    return status;
}

cs_status cli_load_network(const cli_context *cli, const char *system, sim_network *net,
                           sim_config *config, cs_error *err)
{
    psa_schema *schema = NULL;
    cs_status status = CS_OK;

    CS_TRY(load_system(system, &schema, err));
    psa_schema_baseline(schema, config);
    for (size_t i = 0; i < cli->args.sets.n; i++)
        CS_TRY(psa_schema_assign(schema, cli->args.sets.item[i], config, err));
    sim_config_network(config, psa_schema_n_dims(schema), net);
done:
    psa_schema_destroy(schema);
    return status;
}

static cs_status predict_contention(const cli_context *cli, const char *system, wl_collective type,
                                    outcome *out, cs_error *err)
{
    cs_status status = CS_OK;
    sim_config config;
    sim_network net;

    CS_TRY(cli_load_network(cli, system, &net, &config, err));
    out->model = "contention";
    CS_TRY(time_contention(&net, type, out, err));
done:
    return status;
}

/* ---- output ---- */

static report_table *outcome_table(const outcome *o)
{
    report_table *table = report_table_create(columns, CS_COUNT(columns) - 1);
    char sent[32 * MAX_DIMS] = "";
    char number[32];

    report_table_text(table, o->model);
    report_table_text(table, o->type);
    report_table_integer(table, o->bytes);
    report_table_integer(table, o->npus);
    report_table_integer(table, o->chunks);
    report_table_real(table, o->time_ns);
    report_table_real(table, o->algbw);
    report_table_real(table, o->busbw);
    for (size_t d = 0; d < o->n_dims; d++)
        snprintf(sent + strlen(sent), sizeof sent - strlen(sent), "%s%s", d > 0 ? ";" : "",
                 cs_double_text(o->sent[d], number));
    report_table_text(table, sent);
    return table;
}

static void print_people(const cli_context *cli, const outcome *o)
{
    char text[64];

    fprintf(cli->out, "%s of %s bytes over %lld NPUs in %lld chunks, model %s\n", o->type,
            report_count((unsigned __int128)o->bytes, text), (long long)o->npus,
            (long long)o->chunks, o->model);
    if (o->time_ns < 1e6)
        fprintf(cli->out, "time   %.3f us\n", 1e-3 * o->time_ns);
    else
        fprintf(cli->out, "time   %.3f ms\n", 1e-6 * o->time_ns);
    fprintf(cli->out, "algbw  %.3f GB/s\nbusbw  %.3f GB/s\n", 1e-9 * o->algbw, 1e-9 * o->busbw);
    for (size_t d = 0; d < o->n_dims; d++)
        fprintf(cli->out, "one NPU sends %s into dimension %zu\n",
                report_quantity(o->sent[d], CS_BYTES, text), d + 1);
}

static cs_status print_outcome(const cli_context *cli, const outcome *o, cs_error *err)
{
    report_table *table = NULL;
    cs_status status = CS_OK;

    if (cli->args.format == REPORT_TABLE) {
        print_people(cli, o);
        return CS_OK;
    }
    table = outcome_table(o);
    if (cli->args.format == REPORT_JSON && table != NULL) {
        cs_json *object = report_header_json("collective", NULL);
        cs_json *list = cs_json_array();
        for (size_t d = 0; d < o->n_dims; d++)
            cs_json_push(list, cs_json_real(o->sent[d]));
        cs_json_merge(object, report_table_row_json(table, 0));
        cs_json_set(object, "sent_bytes_by_dimension", list);
        CS_TRY(cli_print_json(cli, object, err));
    } else {
        CS_TRY(report_table_write(table, REPORT_CSV, cli->out, err));
    }
done:
    report_table_destroy(table);
    return status;
}

/* ---- a table of cases ---- */

static void print_case(const cli_context *cli, const sim_astra_cases *cases, size_t i, bool ok,
                       const sim_astra_result *result, const char *problem)
{
    fprintf(cli->out, "%s,", sim_astra_cases_row(cases, i));
    if (ok)
        fprintf(cli->out, "%lld", (long long)result->time_ns);
    fputc(',', cli->out);
    report_csv_field(cli->out, problem, true);
}

static cs_json *case_json(const sim_astra_cases *cases, size_t i, bool ok,
                          const sim_astra_result *result, const char *problem)
{
    static const char *const kept[] = {"collective", "bytes",          "topology",
                                       "npus_count", "bandwidth_GBps", "latency_ns",
                                       "algorithm",  "splits",         "backend"};
    cs_json *object = cs_json_object();

    for (size_t k = 0; k < CS_COUNT(kept); k++)
        cs_json_set(object, kept[k], cs_json_string(sim_astra_cases_field(cases, i, kept[k])));
    cs_json_set(object, "predicted_ns", ok ? cs_json_int(result->time_ns) : cs_json_null());
    cs_json_set(object, "error", ok ? cs_json_null() : cs_json_string(problem));
    return object;
}

static cs_status run_cases(const cli_context *cli, cs_error *err)
{
    const bool as_json = cli->args.format == REPORT_JSON;
    cs_json *list = as_json ? cs_json_array() : NULL;
    sim_astra_cases *cases = NULL;
    cs_status status = CS_OK;
    size_t failed = 0, n;

    CS_TRY(sim_astra_cases_load(cli->args.cases, &cases, err));
    n = sim_astra_cases_count(cases);
    if (!as_json)
        fprintf(cli->out, "%s,predicted_ns,error\n", sim_astra_cases_header(cases));
    for (size_t i = 0; i < n && *cli->stop == 0; i++) {
        cs_error problem = {.text = ""};
        sim_astra_result result;
        const bool ok = sim_astra_cases_predict(cases, i, &result, &problem) == CS_OK;
        failed += !ok;
        if (as_json)
            cs_json_push(list, case_json(cases, i, ok, &result, problem.text));
        else
            print_case(cli, cases, i, ok, &result, problem.text);
    }
    if (as_json) {
        cs_json *object = report_header_json("collective", NULL);
        cs_json_set(object, "cases", list);
        list = NULL;
        CS_TRY(cli_print_json(cli, object, err));
    }
    if (*cli->stop != 0)
        status = cs_fail(err, CS_ESTOPPED, "stopped by a signal");
    else if (failed > 0)
        status = cs_fail(err, CS_EINVAL,
                         "%zu of %zu rows cannot be predicted; column error says why", failed, n);
done:
    cs_json_destroy(list);
    sim_astra_cases_destroy(cases);
    return status;
}

static cs_status run_collective(cli_context *cli, cs_error *err)
{
    const cli_args *args = &cli->args;
    const char *system = args->files.n > 0 ? args->files.item[0] : args->system;
    outcome out = {.n_dims = 0};
    cs_status status = CS_OK;
    wl_collective type;

    if (args->cases != NULL)
        return run_cases(cli, err);
    if (system == NULL)
        return cs_fail(err, CS_EINVAL,
                       "collective: give --network N.yml --system S.json (ASTRA-sim), --system "
                       "SYSTEM.yaml, or --cases F.csv");
    CS_TRY(parse_type(args->type, &type, err));
    CS_TRY(parse_bytes(args->bytes, &out.bytes, err));
    out.type = wl_collective_names[type];
    if (args->network != NULL)
        CS_TRY(predict_astra(cli, type, &out, err));
    else
        CS_TRY(predict_contention(cli, system, type, &out, err));
    CS_TRY(print_outcome(cli, &out, err));
done:
    return status;
}

const cli_command cli_collective = {
    .name = "collective",
    .summary = "time of one collective on a network, or of a table of them",
    .usage = "--network N.yml --system S.json --type T --bytes B | --system SYSTEM.yaml ... | "
             "--cases F.csv",
    .example = "cosmic-search collective --system configs/systems/cosmic-system3.yaml --type "
               "all_reduce --bytes 1GiB",
    .options = "network system type bytes cases set",
    .min_files = 0,
    .max_files = 1,
    .dictionary = columns,
    .run = run_collective,
};
