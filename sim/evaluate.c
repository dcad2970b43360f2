/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One design: memory and cost of every workload, then the engine, then one result. */
#include <math.h>
#include <string.h>

#include "sim/compute.h"
#include "sim/evaluate.h"

const char *const sim_verdict_names[] = {"feasible", "out_of_memory", "over_limit", NULL};

/* Pools of the workloads must fit the machine side by side. */
static cs_status check_pools(const sim__evaluation *e)
{
    double pools = 0, npus = sim__npus(e);

    for (size_t i = 0; i < e->model->n_workloads; i++)
        pools += (double)e->model->workloads[i].npus;
    if (pools > npus)
        return cs_fail(e->err, CS_EINVAL, "pools of %.0f NPUs in all on a machine of %.0f", pools,
                       npus);
    return CS_OK;
}

cs_status sim__begin(sim__evaluation *e)
{
    const wl_config *w = &e->config->workload;

    if (w->dp < 1 || w->tp < 1 || w->sp < 1 || w->pp < 1 || w->ep < 1 || w->dp % w->ep != 0)
        return cs_fail(e->err, CS_EINVAL, "dp %lld %% ep %lld = %lld, must be 0", (long long)w->dp,
                       (long long)w->ep, (long long)(w->ep < 1 ? -1 : w->dp % w->ep));
    sim_config_network(e->config, e->model->n_dims, &e->network);
    return check_pools(e);
}

/* ---- memory and cost ---- */

static cs_status workload_memory(const sim__evaluation *e, size_t i, sim_peak *out)
{
    cs_status status;
    sim__phase phase;

    if (e->model->workloads[i].mode != WL_TRAIN)
        return sim__serve_memory(e, i, out);
    CS_TRY(sim__phase_make(e, i, SIM_PHASE_WHOLE, 0, &phase));
    CS_TRY(sim__phase_memory(e, &phase, out));
done:
    return status;
}

static cs_status add_memory(const sim__evaluation *e, size_t i, sim_result *out)
{
    cs_status status;
    sim_peak peak;

    CS_TRY(workload_memory(e, i, &peak));
    if (peak.memory.total > out->peak_memory_bytes) {
        out->peak_memory_bytes = peak.memory.total;
        out->memory = peak.memory;
        out->memory_stage = peak.stage;
    }
done:
    return status;
}

static void judge_memory(const sim__evaluation *e, sim_result *out)
{
    double capacity = e->config->compute.memory_capacity;

    out->verdict = SIM_FEASIBLE;
    if (!e->model->memory_limit || out->peak_memory_bytes <= capacity)
        return;
    out->verdict = SIM_OUT_OF_MEMORY;
    out->memory_excess = log(out->peak_memory_bytes / capacity);
}

static cs_status check(sim__evaluation *e, sim_result *out)
{
    cs_status status;

    memset(out, 0, sizeof *out);
    out->latency_s = out->mfu = out->tokens_per_s = out->tokens_per_s_per_npu = NAN;
    out->energy_j = out->ttft_s = out->tpot_s = NAN;
    CS_TRY(sim__begin(e));
    out->npus = sim__npus(e);
    out->bandwidth_per_npu_bytes_per_s = sim_network_bandwidth(&e->network);
    out->network_cost_usd = sim_network_cost_usd(&e->network, e->model->prices);
    for (size_t i = 0; i < e->model->n_workloads; i++)
        CS_TRY(add_memory(e, i, out));
    judge_memory(e, out);
done:
    return status;
}

cs_status sim_precheck(const sim_model *model, const sim_config *config, sim_scratch *scratch,
                       sim_result *out, cs_error *err)
{
    sim__evaluation e = {.model = model, .config = config, .scratch = scratch, .err = err};
    return check(&e, out);
}

/* ---- sums over workloads ---- */

/* The sums of all workloads, and what pools that work at the same time reach together. */
typedef struct {
    sim__sums sums;
    double request_flops, requests_per_s, output; /* of pools */
    bool pools, window;
} totals;

static cs_status run_workload(const sim__evaluation *e, size_t i, sim__outcome *out)
{
    cs_status status;
    sim__phase phase;

    *out = (sim__outcome){.ttft_s = NAN, .tpot_s = NAN};
    if (e->model->workloads[i].mode != WL_TRAIN)
        return sim__serve(e, i, out);
    CS_TRY(sim__phase_make(e, i, SIM_PHASE_WHOLE, 0, &phase));
    CS_TRY(sim__phase_run(e, &phase, &out->sums));
done:
    return status;
}

/* The slowest pool sets how many requests a second pass through all of them. */
static void add_pool(const wl_workload *workload, const sim__outcome *o, totals *t)
{
    const sim__sums *sums = &o->sums;
    double busy =
        sums->v[SIM_SUM_LATENCY] - o->transfer_s; /* caches leave beside the next prefill */
    double requests = (double)workload->global_batch / busy;

    t->requests_per_s = t->pools ? fmin(t->requests_per_s, requests) : requests;
    t->request_flops += sums->v[SIM_SUM_MODEL_FLOPS] / (double)workload->global_batch;
    if (workload->mode == WL_DECODE || workload->mode == WL_SERVE)
        t->output = fmax(t->output, (double)workload->output);
    t->pools = true;
}

static double larger(double a, double b)
{
    return isnan(a) || b > a ? b : a;
}

static void judge_load(const sim__outcome *o, sim_result *out)
{
    out->ttft_s = isnan(o->ttft_s) ? out->ttft_s : larger(out->ttft_s, o->ttft_s);
    out->tpot_s = isnan(o->tpot_s) ? out->tpot_s : larger(out->tpot_s, o->tpot_s);
    if (o->overload <= 0 || out->verdict == SIM_OUT_OF_MEMORY)
        return;
    out->verdict = SIM_OVER_LIMIT;
    out->memory_excess = fmax(out->memory_excess, o->overload);
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
static cs_status add_workload(const sim__evaluation *e, size_t i, totals *t, sim_result *out)
{
    cs_status status;
    sim__outcome o;
    double share = share_of(e->model, i);

    CS_TRY(run_workload(e, i, &o));
    out->workload_latency_s[i] = o.sums.v[SIM_SUM_LATENCY];
    out->idle_s += share * o.idle_s;
    sim__sums_add(&t->sums, &o.sums, share);
    t->window = t->window || o.window;
    if (e->model->workloads[i].npus > 0)
        add_pool(&e->model->workloads[i], &o, t);
    judge_load(&o, out);
done:
    return status;
}

/* `max`: the slowest workload stands for all, but the first token and the rate of tokens are those
 * of the workload that takes longest for them. */
static cs_status add_slowest(const sim__evaluation *e, totals *t, sim_result *out)
{
    cs_status status = CS_OK;
    sim_result judged = *out;

    for (size_t i = 0; i < e->model->n_workloads; i++) {
        sim_result alone = *out;
        totals own = {.output = 0};
        alone.idle_s = 0;
        CS_TRY(add_workload(e, i, &own, &alone));
        judged.workload_latency_s[i] = alone.workload_latency_s[i];
        judged.ttft_s = isnan(alone.ttft_s) ? judged.ttft_s : larger(judged.ttft_s, alone.ttft_s);
        judged.tpot_s = isnan(alone.tpot_s) ? judged.tpot_s : larger(judged.tpot_s, alone.tpot_s);
        if (alone.verdict != SIM_FEASIBLE && judged.verdict == SIM_FEASIBLE)
            judged.verdict = alone.verdict;
        judged.memory_excess = fmax(judged.memory_excess, alone.memory_excess);
        if (own.sums.v[SIM_SUM_LATENCY] <= t->sums.v[SIM_SUM_LATENCY])
            continue;
        judged.idle_s = alone.idle_s;
        *t = own;
    }
    *out = judged;
done:
    return status;
}

static void fill_sums(const sim__sums *sums, sim_result *out)
{
    const double *v = sums->v;

    out->latency_s = v[SIM_SUM_LATENCY];
    out->compute_s = v[SIM_SUM_COMPUTE];
    out->exposed_s = v[SIM_SUM_EXPOSED];
    out->hidden_s = v[SIM_SUM_HIDDEN];
    out->bubble_s = v[SIM_SUM_BUBBLE];
    for (size_t axis = 0; axis < WL_N_AXES; axis++)
        out->exposed_by_axis_s[axis] = v[SIM_SUM_AXIS + axis];
    out->sent_bytes = v[SIM_SUM_SENT];
    out->model_flops = v[SIM_SUM_MODEL_FLOPS];
    out->hardware_flops = v[SIM_SUM_HARDWARE_FLOPS];
    out->redundant_flops = v[SIM_SUM_REDUNDANT_FLOPS];
    out->recompute_flops = v[SIM_SUM_RECOMPUTE_FLOPS];
}

/* Rates and energy from the sums. */
static void derive(const sim__evaluation *e, const totals *t, sim_result *out)
{
    const sim_device *device = &e->config->compute;
    double peak = sim__device_peak(device, (wl_precision)e->config->workload.precision);

    if (out->latency_s <= 0)
        return;
    out->mfu = out->model_flops / (out->latency_s * peak * out->npus);
    out->tokens_per_s = t->sums.v[SIM_SUM_TOKENS] / out->latency_s;
    if (t->pools && t->output > 0) {
        out->mfu = t->requests_per_s * t->request_flops / (peak * out->npus);
        out->tokens_per_s = t->requests_per_s * t->output;
    }
    out->tokens_per_s_per_npu = out->tokens_per_s / out->npus;
    if (t->window || t->pools || isnan(device->power_active) || isnan(device->power_idle))
        return;
    out->energy_j = out->npus * (device->power_active * out->compute_s +
                                 device->power_idle * (out->latency_s - out->compute_s) +
                                 device->link_energy * out->sent_bytes);
}

static cs_status simulate(sim__evaluation *e, sim_result *out)
{
    cs_status status;
    totals t = {.output = 0};

    CS_TRY(check(e, out));
    if (e->model->aggregate == SIM_MAX)
        CS_TRY(add_slowest(e, &t, out));
    for (size_t i = 0; e->model->aggregate != SIM_MAX && i < e->model->n_workloads; i++)
        CS_TRY(add_workload(e, i, &t, out));
    fill_sums(&t.sums, out);
    derive(e, &t, out);
done:
    return status;
}

cs_status sim_evaluate(const sim_model *model, const sim_config *config, sim_scratch *scratch,
                       sim_result *out, cs_error *err)
{
    sim__evaluation e = {.model = model, .config = config, .scratch = scratch, .err = err};
    return simulate(&e, out);
}

cs_status sim_evaluate_unrolled(const sim_model *model, const sim_config *config,
                                sim_scratch *scratch, sim_result *out, cs_error *err)
{
    sim__evaluation e = {
        .model = model, .config = config, .scratch = scratch, .unrolled = true, .err = err};
    return simulate(&e, out);
}
