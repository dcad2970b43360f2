/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Designs for people: side by side, and one by its parts. */
#include "report/report_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DESIGNS 8

/* One row of the comparison: its title, and how a design fills its cell. */
typedef void (*cell_fn)(const search_problem *problem, const report_design *design, size_t index,
                        char *text, size_t size);
typedef struct {
    const char *title;
    cell_fn fill;
} row;

static void put_result(const report_design *design, const char *key, char *text, size_t size)
{
    const report_result *r = report__find_result(key);
    char quantity[64];

    snprintf(text, size, "%s",
             report_quantity(report__result_value(design->trial, r), r->unit, quantity));
}

static void cell_latency(const search_problem *problem, const report_design *design, size_t index,
                         char *text, size_t size)
{
    (void)problem;
    (void)index;
    put_result(design, "latency_s", text, size);
}

static void cell_bandwidth(const search_problem *problem, const report_design *design, size_t index,
                           char *text, size_t size)
{
    (void)problem;
    (void)index;
    put_result(design, "bandwidth_per_npu_bytes_per_s", text, size);
}

static void cell_cost(const search_problem *problem, const report_design *design, size_t index,
                      char *text, size_t size)
{
    (void)problem;
    (void)index;
    put_result(design, "network_cost_usd", text, size);
    if (strcmp(text, "-") == 0)
        snprintf(text, size, "no price");
}

static void cell_memory(const search_problem *problem, const report_design *design, size_t index,
                        char *text, size_t size)
{
    char used[64], capacity[64];

    (void)problem;
    (void)index;
    snprintf(text, size, "%s of %s%s",
             report_quantity(design->trial->result.peak_memory_bytes, CS_BYTES, used),
             report_quantity(design->config->compute.memory_capacity, CS_BYTES, capacity),
             design->trial->result.verdict == SIM_OUT_OF_MEMORY ? ", too much" : "");
}

static void cell_utilization(const search_problem *problem, const report_design *design,
                             size_t index, char *text, size_t size)
{
    (void)problem;
    (void)index;
    snprintf(text, size, "%.1f %%", 100.0 * design->trial->result.mfu);
}

static void cell_split(const search_problem *problem, const report_design *design, size_t index,
                       char *text, size_t size)
{
    const wl_config *w = &design->config->workload;
    int64_t tp, pp;

    (void)problem;
    (void)index;
    snprintf(text, size, "dp %lld, tp %lld, sp %lld, pp %lld", (long long)w->dp, (long long)w->tp,
             (long long)w->sp, (long long)w->pp);
    if (w->ep > 1)
        snprintf(text + strlen(text), size - strlen(text), ", ep %lld", (long long)w->ep);
    if (sim_decode_degrees(design->config, &tp, &pp))
        snprintf(text + strlen(text), size - strlen(text), "; decode tp %lld, pp %lld",
                 (long long)tp, (long long)pp);
}

/* Text of the configuration field `path`, without per-dimension lists. */
static void put_field(const search_problem *problem, const report_design *design, const char *path,
                      char *text, size_t size)
{
    const psa_tables *tables = psa_schema_tables(problem->schema);

    snprintf(text, size, "-");
    for (size_t f = 0; f < tables->n_fields; f++)
        if (strcmp(tables->fields[f].path, path) == 0)
            psa_field_text(&tables->fields[f], design->config, psa_schema_n_dims(problem->schema),
                           text, size);
}

static void cell_state(const search_problem *problem, const report_design *design, size_t index,
                       char *text, size_t size)
{
    char sharding[64], recompute[64];

    (void)index;
    put_field(problem, design, "workload.sharding", sharding, sizeof sharding);
    put_field(problem, design, "workload.recompute", recompute, sizeof recompute);
    snprintf(text, size, "shard %s, recompute %s", sharding, recompute);
}

static void cell_schedule(const search_problem *problem, const report_design *design, size_t index,
                          char *text, size_t size)
{
    char schedule[64];

    (void)index;
    put_field(problem, design, "workload.schedule", schedule, sizeof schedule);
    snprintf(text, size, "micro-batch %lld%s%s", (long long)design->config->workload.micro_batch,
             design->config->workload.pp > 1 ? ", " : "",
             design->config->workload.pp > 1 ? schedule : "");
}

static void cell_placement(const search_problem *problem, const report_design *design, size_t index,
                           char *text, size_t size)
{
    (void)index;
    put_field(problem, design, "placement", text, size);
}

static void cell_collectives(const search_problem *problem, const report_design *design,
                             size_t index, char *text, size_t size)
{
    char multi[64], order[64];

    (void)index;
    put_field(problem, design, "collective.multi_dim", multi, sizeof multi);
    put_field(problem, design, "collective.scheduling", order, sizeof order);
    snprintf(text, size, "%s, %lld chunks, %s", multi, (long long)design->config->collective.chunks,
             order);
}

static void cell_dimension(const search_problem *problem, const report_design *design, size_t d,
                           char *text, size_t size)
{
    const sim_config *c = design->config;
    char bandwidth[64];

    (void)problem;
    if (c->network.npus[d] <= 1) {
        snprintf(text, size, "-");
        return;
    }
    snprintf(text, size, "%s %lld, %s, %s", sim_topology_names[c->network.topology[d]],
             (long long)c->network.npus[d],
             report_quantity(c->network.bandwidth[d], CS_BANDWIDTH, bandwidth),
             sim_algorithm_names[c->collective.algorithm[d]]);
}

static void cell_objective(const search_problem *problem, const report_design *design, size_t i,
                           char *text, size_t size)
{
    (void)problem;
    snprintf(text, size, "%.6g", design->trial->objective[i]);
}

static const row rows[] = {
    {"latency", cell_latency},     {"bandwidth per NPU", cell_bandwidth},
    {"network cost", cell_cost},   {"peak memory", cell_memory},
    {"MFU", cell_utilization},     {"split", cell_split},
    {"state", cell_state},         {"schedule", cell_schedule},
    {"placement", cell_placement}, {"collectives", cell_collectives},
};

/* Designs that stand beside each other, and the table they go to. */
typedef struct {
    const search_problem *problem;
    const report_design *design;
    size_t n;
    report_table *table;
} comparison;

static void put_row(const comparison *c, const char *title, cell_fn fill, size_t index)
{
    char text[160];

    report_table_text(c->table, title);
    for (size_t i = 0; i < c->n; i++) {
        if (c->design[i].trial == NULL || !report__has_result(c->design[i].trial))
            snprintf(text, sizeof text, "-");
        else
            fill(c->problem, &c->design[i], index, text, sizeof text);
        report_table_text(c->table, text);
    }
}

/* How many times better than the first design, by the first objective. */
static void put_gain(const comparison *c)
{
    const search_problem *problem = c->problem;
    const bool maximize = psa_schema_objective_maximize(problem->schema, problem->objective[0]);
    const search_trial *first = c->design[0].trial;

    report_table_text(c->table, "better than baseline");
    for (size_t i = 0; i < c->n; i++) {
        const search_trial *trial = c->design[i].trial;
        double ratio = NAN;
        if (i > 0 && first != NULL && trial != NULL)
            ratio = maximize ? trial->objective[0] / first->objective[0]
                             : first->objective[0] / trial->objective[0];
        if (isfinite(ratio))
            report_table_printf(c->table, "%.2f x", ratio);
        else
            report_table_text(c->table, NULL);
    }
}

cs_status report_designs(const search_problem *problem, const report_design *design, size_t n,
                         FILE *out, cs_error *err)
{
    report_column columns[MAX_DESIGNS + 1] = {{.key = "quantity", .title = ""}};
    comparison c = {problem, design, n, NULL};
    cs_status status = CS_OK;
    char title[96];

    if (n > MAX_DESIGNS)
        return cs_fail(err, CS_EINVAL, "%zu designs side by side, at most %d", n, MAX_DESIGNS);
    for (size_t i = 0; i < n; i++)
        columns[i + 1] = (report_column){.key = design[i].title, .title = design[i].title};
    c.table = report_table_create(columns, n + 1);
    for (size_t i = 0; i < problem->n_objectives; i++)
        if (strcmp(report__objective_name(problem, i), "latency") != 0) /* has a row anyway */
            put_row(&c, report__objective_name(problem, i), cell_objective, i);
    if (n > 1)
        put_gain(&c);
    for (size_t r = 0; r < CS_COUNT(rows); r++)
        put_row(&c, rows[r].title, rows[r].fill, 0);
    for (size_t d = 0; d < psa_schema_n_dims(problem->schema); d++) {
        snprintf(title, sizeof title, "dimension %zu", d + 1);
        put_row(&c, title, cell_dimension, d);
    }
    CS_TRY(report_table_write(c.table, REPORT_TABLE, out, err));
done:
    report_table_destroy(c.table);
    return status;
}

/* ---- one design by its parts ---- */

static const char *const time_parts[] = {
    "compute_s",
    "exposed_by_axis_s.tp",
    "exposed_by_axis_s.sp",
    "exposed_by_axis_s.ep",
    "exposed_by_axis_s.dp",
    "exposed_by_axis_s.pp",
    "bubble_s",
    "idle_s",
};

static const char *const memory_parts[] = {
    "memory_by_part_bytes.weights",   "memory_by_part_bytes.gradients",
    "memory_by_part_bytes.optimizer", "memory_by_part_bytes.activations",
    "memory_by_part_bytes.gathered",  "memory_by_part_bytes.communication",
    "memory_by_part_bytes.logits",    "memory_by_part_bytes.kv_cache",
    "memory_by_part_bytes.transient",
};

static const report_column part_columns[] = {
    {"part", "", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"value", "", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"share", "", REPORT_SHARE, CS_DIMENSIONLESS, NULL},
    {"bar", "", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

static void put_part(report_table *table, const char *title, double value, double whole,
                     cs_dimension unit)
{
    char text[64];

    report_table_text(table, title);
    report_table_text(table, report_quantity(value, unit, text));
    report_table_real(table, value / whole);
    report_table_text(table, report_bar(value / whole, 40, text));
}

static void put_parts(report_table *table, const search_trial *trial, const char *const *keys,
                      size_t n, double whole)
{
    char title[96];

    for (size_t i = 0; i < n; i++) {
        const report_result *r = report__find_result(keys[i]);
        const double value = report__result_value(trial, r);
        const bool exposed = strncmp(keys[i], "exposed_by_axis_s", 17) == 0;
        if (!(value > 0.0) && i > 0)
            continue;
        snprintf(title, sizeof title, "  %s%s", exposed ? "waits for " : "", r->title);
        put_part(table, title, value, whole, r->unit);
    }
}

cs_status report_breakdown(const search_problem *problem, const report_design *design, FILE *out,
                           cs_error *err)
{
    const sim_result *result = &design->trial->result;
    report_table *table = report_table_create(part_columns, CS_COUNT(part_columns));
    cs_status status = CS_OK;

    (void)problem;
    put_part(table, "time", result->latency_s, result->latency_s, CS_SECONDS);
    put_parts(table, design->trial, time_parts, CS_COUNT(time_parts), result->latency_s);
    put_part(table, "  hidden communication", result->hidden_s, result->latency_s, CS_SECONDS);
    put_part(table, "memory", result->peak_memory_bytes, design->config->compute.memory_capacity,
             CS_BYTES);
    put_parts(table, design->trial, memory_parts, CS_COUNT(memory_parts),
              design->config->compute.memory_capacity);
    CS_TRY(report_table_write(table, REPORT_TABLE, out, err));
done:
    report_table_destroy(table);
    return status;
}

void report_limit_sentence(const search_problem *problem, const report_design *design, char *text,
                           size_t size)
{
    const sim_result *result = &design->trial->result;
    const report_result *worst = NULL;
    double most = -1.0;

    (void)problem;
    for (size_t i = 0; i < CS_COUNT(time_parts); i++) {
        const report_result *r = report__find_result(time_parts[i]);
        const double value = report__result_value(design->trial, r);
        if (value > most) {
            most = value;
            worst = r;
        }
    }
    if (worst == NULL) {
        snprintf(text, size, "The simulator gave no result.");
        return;
    }
    snprintf(text, size,
             "Limited by %s%s: %.1f %% of the step; communication hidden behind compute takes "
             "%.1f %%, memory is %.1f %% full.",
             strncmp(worst->key, "exposed_by_axis_s", 17) == 0 ? "exposed communication of " : "",
             worst->title, 100.0 * most / result->latency_s,
             100.0 * result->hidden_s / result->latency_s,
             100.0 * result->peak_memory_bytes / design->config->compute.memory_capacity);
}
