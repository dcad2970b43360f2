/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One design: memory and cost of every workload, then the engine, then one result. */
#include <math.h>
#include <string.h>

#include "sim/compute.h"
#include "sim/model_private.h"

const char *const sim_verdict_names[] = {"feasible", "out_of_memory", "over_limit", NULL};

/* One workload of a design on its way. */
typedef struct {
    const sim_model *model;
    const sim_config *config;
    sim_scratch *scratch;
    sim_layout layout;
    const wl_program *program;
    sim_pipeline pipeline;
    bool unrolled;
    sim_timeline_fn timeline;
    void *timeline_context;
    const sim_recorder *recorder;
    cs_error *err;
} evaluation;

static double npus_of(const evaluation *e)
{
    double n = 1;

    for (size_t d = 0; d < e->layout.network.n_dims; d++)
        n *= (double)e->layout.network.dim[d].n;
    return n;
}

static cs_status begin(evaluation *e)
{
    const wl_config *w = &e->config->workload;

    if (w->dp < 1 || w->tp < 1 || w->sp < 1 || w->pp < 1 || w->ep < 1 || w->dp % w->ep != 0)
        return cs_fail(e->err, CS_EINVAL, "dp %lld %% ep %lld = %lld, must be 0", (long long)w->dp,
                       (long long)w->ep, (long long)(w->ep < 1 ? -1 : w->dp % w->ep));
    sim__config_layout(e->model, e->config, &e->layout);
    return CS_OK;
}

/* Program of workload i, and the pipeline it runs in. */
static cs_status enter_workload(evaluation *e, size_t i)
{
    cs_status status;
    const wl_workload *workload = &e->model->workloads[i];

    CS_TRY(sim__program_get(e->scratch->programs, workload, i, &e->config->workload, &e->program,
                            e->err));
    e->pipeline = (sim_pipeline){e->program->n_stages, e->program->stage[0].n_chunks,
                                 e->program->micro_batches, workload->mode != WL_TRAIN};
done:
    return status;
}

static sim_peak fullest_stage(const evaluation *e)
{
    const wl_config *w = &e->config->workload;
    sim_peak peak = {.stage = 0};

    for (size_t s = 0; s < e->pipeline.n_stages; s++) {
        double held = sim__in_flight((wl_schedule)w->schedule, &e->pipeline, s);
        wl_memory memory = wl_stage_memory(e->program, w, s, held * (double)e->pipeline.n_chunks);
        if (memory.total > peak.memory.total)
            peak = (sim_peak){memory, s};
    }
    return peak;
}

/* Memory of workload i, from the table where this split was seen. */
static cs_status add_memory(evaluation *e, size_t i, sim_result *out)
{
    cs_status status = CS_OK;
    const wl_config *w = &e->config->workload;
    const sim_peak *known = sim__peak_find(e->scratch->programs, i, w);
    sim_peak peak;

    if (known == NULL) {
        CS_TRY(enter_workload(e, i));
        peak = fullest_stage(e);
        sim__peak_put(e->scratch->programs, i, w, &peak);
        known = &peak;
    }
    if (known->memory.total > out->peak_memory_bytes) {
        out->peak_memory_bytes = known->memory.total;
        out->memory = known->memory;
        out->memory_stage = known->stage;
    }
done:
    return status;
}

static void judge_memory(const evaluation *e, sim_result *out)
{
    double capacity = e->config->compute.memory_capacity;

    out->verdict = SIM_FEASIBLE;
    if (!e->model->memory_limit || out->peak_memory_bytes <= capacity)
        return;
    out->verdict = SIM_OUT_OF_MEMORY;
    out->memory_excess = log(out->peak_memory_bytes / capacity);
}

static cs_status check(evaluation *e, sim_result *out)
{
    cs_status status;

    memset(out, 0, sizeof *out);
    out->latency_s = out->mfu = out->tokens_per_s = out->tokens_per_s_per_npu = NAN;
    out->energy_j = out->ttft_s = out->tpot_s = NAN;
    CS_TRY(begin(e));
    out->npus = npus_of(e);
    out->bandwidth_per_npu_bytes_per_s = sim_network_bandwidth(&e->layout.network);
    out->network_cost_usd = sim_network_cost_usd(&e->layout.network, e->model->prices);
    for (size_t i = 0; i < e->model->n_workloads; i++)
        CS_TRY(add_memory(e, i, out));
    judge_memory(e, out);
done:
    return status;
}

cs_status sim_precheck(const sim_model *model, const sim_config *config, sim_scratch *scratch,
                       sim_result *out, cs_error *err)
{
    evaluation e = {.model = model, .config = config, .scratch = scratch, .err = err};
    return check(&e, out);
}

/* ---- engine run of one workload ---- */

static cs_status simulate_workload(evaluation *e, size_t i, sim_engine_result *out)
{
    cs_status status;

    CS_TRY(enter_workload(e, i));
    CS_TRY(sim__schedule_make((wl_schedule)e->config->workload.schedule, &e->pipeline,
                              &e->scratch->schedule, e->err));
    {
        sim_job job = {
            .program = e->program,
            .config = &e->config->workload,
            .network = &e->layout.network,
            .mesh = &e->layout.mesh,
            .order = e->config->placement,
            .device = &e->config->compute,
            .routes = e->scratch->routes,
            .schedule = &e->scratch->schedule,
            .inference = e->model->workloads[i].mode != WL_TRAIN,
            .unrolled = e->unrolled,
            .timeline = e->timeline,
            .timeline_context = e->timeline_context,
            .recorder = e->recorder,
        };
        CS_TRY(sim__engine_run(e->scratch->engine, &job, out, e->err));
    }
done:
    return status;
}

/* A running collective takes a share x of compute and memory bandwidth, so that compute beside it
 * takes 1/(1-x) of its time: hidden time lengthens compute by x/(1-x) of itself. */
static double interference_s(const evaluation *e, double hidden)
{
    double x = e->config->compute.interference;
    return hidden * x / (1 - x);
}

/* Adds `share` of a workload's times; returns its latency. */
static double add_times(const evaluation *e, sim_result *out, const sim_engine_result *run,
                        double share)
{
    double exposed = 0, hidden, slowdown;

    for (size_t axis = 0; axis < WL_N_AXES; axis++) {
        sim_time t = run->account.wait[axis];
        t += axis == WL_PP ? run->boundary : 0;
        t += axis == WL_DP ? run->tail : 0;
        out->exposed_by_axis_s[axis] += share * SIM_S(t);
        exposed += SIM_S(t);
    }
    hidden = fmax(0, SIM_S(run->account.network) - exposed);
    slowdown = interference_s(e, hidden);
    out->compute_s += share * (SIM_S(run->account.compute) + slowdown);
    out->exposed_s += share * exposed;
    out->bubble_s += share * SIM_S(run->bubble);
    out->hidden_s += share * hidden;
    out->sent_bytes += share * (double)run->account.sent_bytes;
    return SIM_S(run->latency) + slowdown;
}

static void add_flops(sim_result *out, const wl_flops *flops, double share)
{
    out->model_flops += share * flops->model_flops;
    out->hardware_flops += share * flops->hardware_flops;
    out->redundant_flops += share * flops->redundant_flops;
    out->recompute_flops += share * flops->recompute_flops;
}

/* Rates and energy from the sums. */
static void derive(const evaluation *e, double tokens, sim_result *out)
{
    const sim_device *device = &e->config->compute;
    double peak = sim__device_peak(device, (wl_precision)e->config->workload.precision);

    if (out->latency_s <= 0)
        return;
    out->mfu = out->model_flops / (out->latency_s * peak * out->npus);
    out->tokens_per_s = tokens / out->latency_s;
    out->tokens_per_s_per_npu = out->tokens_per_s / out->npus;
    if (isnan(device->power_active) || isnan(device->power_idle))
        return;
    out->energy_j = out->npus * (device->power_active * out->compute_s +
                                 device->power_idle * (out->latency_s - out->compute_s) +
                                 device->link_energy * out->sent_bytes);
}

static double share_of(const sim_model *model, size_t i)
{
    double weights = 0;

    for (size_t j = 0; j < model->n_workloads; j++)
        weights += model->workloads[j].weight;
    return model->aggregate == SIM_MEAN  ? model->workloads[i].weight / weights
           : model->aggregate == SIM_SUM ? model->workloads[i].weight
                                         : 1;
}

/* Adds workload i to the result. */
static cs_status add_workload(evaluation *e, size_t i, double *tokens, sim_result *out)
{
    cs_status status;
    sim_engine_result run;
    double share = share_of(e->model, i);

    CS_TRY(simulate_workload(e, i, &run));
    out->workload_latency_s[i] = add_times(e, out, &run, share);
    out->latency_s += share * out->workload_latency_s[i];
    add_flops(out, &e->program->flops, share);
    *tokens += share * e->program->tokens;
done:
    return status;
}

/* `max`: the slowest workload stands for all. */
static cs_status add_slowest(evaluation *e, double *tokens, sim_result *out)
{
    cs_status status = CS_OK;
    sim_result blank = *out;
    double latency[SIM_MAX_WORKLOADS];

    for (size_t i = 0; i < e->model->n_workloads; i++) {
        sim_result alone = blank;
        double own = 0;
        CS_TRY(add_workload(e, i, &own, &alone));
        latency[i] = alone.latency_s;
        if (alone.latency_s > out->latency_s) {
            *out = alone;
            *tokens = own;
        }
    }
    memcpy(out->workload_latency_s, latency, e->model->n_workloads * sizeof *latency);
done:
    return status;
}

static cs_status simulate(evaluation *e, sim_result *out)
{
    cs_status status;
    double tokens = 0;

    CS_TRY(check(e, out));
    out->latency_s = 0;
    if (e->model->aggregate == SIM_MAX)
        CS_TRY(add_slowest(e, &tokens, out));
    for (size_t i = 0; e->model->aggregate != SIM_MAX && i < e->model->n_workloads; i++)
        CS_TRY(add_workload(e, i, &tokens, out));
    derive(e, tokens, out);
done:
    return status;
}

cs_status sim_evaluate(const sim_model *model, const sim_config *config, sim_scratch *scratch,
                       sim_result *out, cs_error *err)
{
    evaluation e = {.model = model, .config = config, .scratch = scratch, .err = err};
    return simulate(&e, out);
}

cs_status sim_evaluate_unrolled(const sim_model *model, const sim_config *config,
                                sim_scratch *scratch, sim_result *out, cs_error *err)
{
    evaluation e = {
        .model = model, .config = config, .scratch = scratch, .unrolled = true, .err = err};
    return simulate(&e, out);
}

cs_status sim_timeline(const sim_model *model, size_t w, const sim_config *config,
                       sim_scratch *scratch, sim_timeline_fn fn, void *context, cs_error *err)
{
    cs_status status;
    sim_engine_result run;
    evaluation e = {.model = model,
                    .config = config,
                    .scratch = scratch,
                    .unrolled = true,
                    .timeline = fn,
                    .timeline_context = context,
                    .err = err};

    CS_TRY(begin(&e));
    CS_TRY(simulate_workload(&e, w, &run));
done:
    return status;
}

cs_status sim__record(const sim_model *model, size_t w, const sim_config *config,
                      sim_scratch *scratch, const sim_recorder *recorder, cs_error *err)
{
    cs_status status;
    sim_engine_result run;
    evaluation e = {.model = model,
                    .config = config,
                    .scratch = scratch,
                    .unrolled = true,
                    .recorder = recorder,
                    .err = err};

    CS_TRY(begin(&e));
    CS_TRY(simulate_workload(&e, w, &run));
done:
    return status;
}
