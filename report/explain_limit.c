/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What limits a design, by name: the part of its time that is largest, and the resource behind
 * it. */
#include "report/analysis.h"
#include "report/report_private.h"

#include <math.h>
#include <string.h>

#define MORE 1.1 /* 10 % more of a resource */

/* Where a text grows. */
typedef struct {
    char *text;
    size_t at, size;
} line;

static void say(line *l, const char *fmt, ...) CS_PRINTF(2, 3);

static void say(line *l, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const int n = vsnprintf(l->text + l->at, l->size - l->at, fmt, args);
    va_end(args);
    if (n > 0)
        l->at += (size_t)n < l->size - l->at ? (size_t)n : l->size - l->at - 1;
}

/* The design with what it takes to try others. */
typedef struct {
    const search_problem *problem;
    const report_design *design;
    sim_scratch *scratch;
} inquiry;

/* Share of the latency that 10 % more of the resource at `offset` saves. */
static double saves(const inquiry *q, size_t offset)
{
    const double after =
        report__scaled_latency(q->problem, q->design->config, q->scratch, offset, MORE);

    return 1.0 - after / q->design->trial->result.latency_s;
}

static void say_compute(const inquiry *q, line *l)
{
    const double peak = saves(q, offsetof(sim_config, compute.peak));
    const double memory = saves(q, offsetof(sim_config, compute.memory_bandwidth));
    const bool by_peak = !(memory > peak);

    say(l, "compute, and of it by %s: 10 %% more would save %.1f %%",
        by_peak ? "the peak rate" : "memory bandwidth", 100.0 * fmax(peak, memory));
}

/* The dimensions that the groups of an axis cross; a routed ring may cross all. */
static size_t dimensions_of(const inquiry *q, int axis, bool crossed[SIM_MAX_DIMS])
{
    const sim_config *c = q->design->config;
    const wl_config *w = &c->workload;
    const sim_mesh mesh = {.size = {w->tp, w->sp, w->ep, w->dp / w->ep, w->pp}};
    const size_t n_dims = psa_schema_n_dims(q->problem->schema);
    sim_footprint footprint;
    sim_network net;

    sim_config_network(c, n_dims, &net);
    for (size_t d = 0; d < SIM_MAX_DIMS; d++)
        crossed[d] = false;
    if (sim_footprint_make(&net, &mesh, c->placement, WL_GROUP(axis), &footprint, NULL) != CS_OK)
        return 0;
    for (size_t d = 0; footprint.routed && d < n_dims; d++)
        crossed[d] = net.dim[d].n > 1;
    for (size_t s = 0; !footprint.routed && s < footprint.n_spans; s++)
        crossed[footprint.span[s].dim] = true;
    return n_dims;
}

static void say_axis(const inquiry *q, int axis, const char *title, line *l)
{
    const sim_config *c = q->design->config;
    bool crossed[SIM_MAX_DIMS];
    double most = -INFINITY;
    size_t worst = SIZE_MAX;
    char bandwidth[64];

    say(l, "exposed communication (%s)", title);
    const size_t n_dims = dimensions_of(q, axis, crossed);
    for (size_t d = 0; d < n_dims; d++) {
        if (!crossed[d])
            continue;
        const double saved = saves(q, offsetof(sim_config, network.bandwidth) + d * sizeof(double));
        if (saved > most) {
            most = saved;
            worst = d;
        }
    }
    if (worst == SIZE_MAX)
        return;
    say(l, " on dimension %zu (%s of %lld, %s, %s): 10 %% more bandwidth there would save %.1f %%",
        worst + 1, sim_topology_names[c->network.topology[worst]],
        (long long)c->network.npus[worst],
        report_quantity(c->network.bandwidth[worst], CS_BANDWIDTH, bandwidth),
        sim_algorithm_names[c->collective.algorithm[worst]], 100.0 * most);
}

/* Parts of the time; axes first, so that their index is the wl_axis. */
static const struct {
    const char *key;
} parts[] = {
    {"exposed_by_axis_s.tp"},
    {"exposed_by_axis_s.sp"},
    {"exposed_by_axis_s.ep"},
    {"exposed_by_axis_s.dp"},
    {"exposed_by_axis_s.pp"},
    {"compute_s"},
    {"bubble_s"},
    {"idle_s"},
};

static size_t largest_part(const search_trial *trial)
{
    size_t largest = 0;

    for (size_t i = 1; i < CS_COUNT(parts); i++)
        if (report__result_value(trial, report__find_result(parts[i].key)) >
            report__result_value(trial, report__find_result(parts[largest].key)))
            largest = i;
    return largest;
}

void report_limit_place(const search_problem *problem, const report_design *design,
                        sim_scratch *scratch, char *text, size_t size)
{
    const inquiry q = {problem, design, scratch};
    const sim_result *result = &design->trial->result;
    line l = {text, 0, size};

    if (!report__has_result(design->trial)) {
        say(&l, "The simulator gave no result.");
        return;
    }
    const size_t p = largest_part(design->trial);
    const report_result *r = report__find_result(parts[p].key);
    say(&l, "Limited (%.1f %% of the step) by ",
        100.0 * report__result_value(design->trial, r) / result->latency_s);
    if (p < WL_N_AXES)
        say_axis(&q, (int)p, r->title, &l);
    else if (strcmp(parts[p].key, "compute_s") == 0)
        say_compute(&q, &l);
    else
        say(&l, "%s: %lld stages wait for each other", r->title,
            (long long)design->config->workload.pp);
    say(&l, ". Memory is %.1f %% full.",
        100.0 * result->peak_memory_bytes / design->config->compute.memory_capacity);
}
