/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One run of the engine for a workload of a design: its program, its share of the machine, the pace
 * of its NPUs, and what it adds up to. */
#include <math.h>

#include "sim/evaluate.h"

void sim__sums_add(sim__sums *total, const sim__sums *part, double times)
{
    for (size_t i = 0; i < SIM_N_SUMS; i++)
        total->v[i] += times * part->v[i];
}

double sim__npus(const sim__evaluation *e)
{
    double n = 1;

    for (size_t d = 0; d < e->network.n_dims; d++)
        n *= (double)e->network.dim[d].n;
    return n;
}

bool sim_decode_degrees(const sim_config *config, int64_t *tp, int64_t *pp)
{
    const sim_behaviour *own = &config->behaviour;

    *tp = own->decode_tp > 0 ? own->decode_tp : config->workload.tp;
    *pp = own->decode_pp > 0 ? own->decode_pp : config->workload.pp;
    return own->decode_tp > 0 || own->decode_pp > 0;
}

/* A pool that decodes has tp and pp of its own, and as many replicas as fit. */
static cs_status enter_decode_pool(const sim__evaluation *e, sim__phase *phase)
{
    wl_config *split = &phase->split;
    int64_t npus = phase->workload.npus;

    sim_decode_degrees(e->config, &split->tp, &split->pp);
    if (npus / split->tp / split->sp / split->pp < 1 ||
        npus % (split->tp * split->sp * split->pp) != 0 ||
        npus / (split->tp * split->sp * split->pp) % split->ep != 0)
        return cs_fail(e->err, CS_EINVAL,
                       "a pool of %lld NPUs that decodes holds no whole number of replicas of tp "
                       "%lld x sp %lld x pp %lld in groups of ep %lld",
                       (long long)npus, (long long)split->tp, (long long)split->sp,
                       (long long)split->pp, (long long)split->ep);
    split->dp = npus / (split->tp * split->sp * split->pp);
    return CS_OK;
}

/* A pool has the machine's tp, sp and pp and its share of the replicas, unless told otherwise. */
static cs_status enter_pool(const sim__evaluation *e, sim__phase *phase)
{
    const int64_t npus = llround(sim__npus(e)), pool = phase->workload.npus;
    const int64_t dp = phase->split.dp;
    int64_t tp, pp;

    if (pool == 0)
        return CS_OK;
    if (phase->workload.mode == WL_DECODE && sim_decode_degrees(e->config, &tp, &pp))
        return enter_decode_pool(e, phase);
    if (dp > INT64_MAX / pool || dp * pool % npus != 0 || dp * pool / npus % phase->split.ep != 0)
        return cs_fail(e->err, CS_EINVAL,
                       "a pool of %lld of %lld NPUs holds no whole number of the %lld replicas",
                       (long long)pool, (long long)npus, (long long)dp);
    phase->split.dp = dp * pool / npus;
    return CS_OK;
}

cs_status sim__phase_make(const sim__evaluation *e, size_t i, sim__phase_kind kind, int64_t number,
                          sim__phase *out)
{
    *out = (sim__phase){.workload = e->model->workloads[i], .split = e->config->workload};
    if (!e->config->behaviour.overlap)
        out->split.prefetch = 0;
    out->key = (size_t)number << 7 | (size_t)kind << 4 | i;
    return enter_pool(e, out);
}

/* Program of a phase, and the pipeline it runs in. */
static cs_status enter(const sim__evaluation *e, const sim__phase *phase, const wl_program **out,
                       sim_pipeline *pipeline)
{
    cs_status status;

    CS_TRY(sim__program_get(e->scratch->programs, &phase->workload, phase->key, &phase->split, out,
                            e->err));
    *pipeline = (sim_pipeline){(*out)->n_stages, (*out)->stage[0].n_chunks, (*out)->micro_batches,
                               phase->workload.mode != WL_TRAIN, phase->twice};
done:
    return status;
}

static sim_peak fullest_stage(const sim__phase *phase, const wl_program *program,
                              const sim_pipeline *pipeline)
{
    const wl_config *w = &phase->split;
    sim_peak peak = {.stage = 0};

    for (size_t s = 0; s < pipeline->n_stages; s++) {
        double held = sim__in_flight((wl_schedule)w->schedule, pipeline, s);
        wl_memory memory = wl_stage_memory(program, w, s, held);
        if (memory.total > peak.memory.total)
            peak = (sim_peak){memory, s};
    }
    return peak;
}

cs_status sim__phase_memory(const sim__evaluation *e, const sim__phase *phase, sim_peak *out)
{
    cs_status status = CS_OK;
    const sim_peak *known = sim__peak_find(e->scratch->programs, phase->key, &phase->split);
    const wl_program *program;
    sim_pipeline pipeline;

    if (known != NULL) {
        *out = *known;
        return CS_OK;
    }
    CS_TRY(enter(e, phase, &program, &pipeline));
    *out = fullest_stage(phase, program, &pipeline);
    sim__peak_put(e->scratch->programs, phase->key, &phase->split, out);
done:
    return status;
}

/* A running collective takes a share x of compute and memory bandwidth: in the time h that it is
 * hidden, compute does (1 - x) h of its work, and x h of it is left for later.  As x < 1, an
 * iteration still takes at most compute and communication one after the other. */
static double interference_s(const sim__evaluation *e, double hidden)
{
    return hidden * e->config->compute.interference;
}

static void sum_times(const sim__evaluation *e, const sim_engine_result *run, sim__sums *out)
{
    double exposed = 0, hidden, slowdown;

    for (size_t axis = 0; axis < WL_N_AXES; axis++) {
        sim_time t = run->account.wait[axis];
        t += axis == WL_PP ? run->boundary : 0;
        t += axis == (size_t)run->tail_axis ? run->tail : 0;
        out->v[SIM_SUM_AXIS + axis] = SIM_S(t);
        exposed += SIM_S(t);
    }
    hidden = fmax(0, SIM_S(run->account.network) - exposed);
    slowdown = interference_s(e, hidden);
    out->v[SIM_SUM_LATENCY] = SIM_S(run->latency) + slowdown;
    out->v[SIM_SUM_COMPUTE] = SIM_S(run->account.compute) + slowdown;
    out->v[SIM_SUM_EXPOSED] = exposed;
    out->v[SIM_SUM_BUBBLE] = SIM_S(run->bubble);
    out->v[SIM_SUM_HIDDEN] = hidden;
    out->v[SIM_SUM_SENT] = (double)run->account.sent_bytes;
}

static void sum_flops(const wl_program *program, double laps, sim__sums *out)
{
    out->v[SIM_SUM_MODEL_FLOPS] = laps * program->flops.model_flops;
    out->v[SIM_SUM_HARDWARE_FLOPS] = laps * program->flops.hardware_flops;
    out->v[SIM_SUM_REDUNDANT_FLOPS] = laps * program->flops.redundant_flops;
    out->v[SIM_SUM_RECOMPUTE_FLOPS] = laps * program->flops.recompute_flops;
    out->v[SIM_SUM_TOKENS] = laps * program->tokens;
}

/* Devices and networks of a phase: what all NPUs have, and what a slow one has. */
typedef struct {
    sim_device device, slow_device;
    sim_network slow_network;
    sim_slow slow;
    bool has_slow;
} npu_pace;

/* Expected maximum of n standard normal variables: Blom, Statistical Estimates and Transformed
 * Beta-Variables, 1958: the quantile of (n - 3/8) / (n + 1/4). */
static double expected_maximum(double n)
{
    double p = (n - 0.375) / (n + 0.25), low = 0, high = 40;

    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (1 - 0.5 * erfc(middle / sqrt(2)) < p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void slow_down(sim_device *device, double speed)
{
    device->peak *= speed;
    device->peak_fp32 *= speed;
    device->peak_fp8 *= speed;
    device->memory_bandwidth *= speed;
}

/* Compute times of NPUs in an iteration are normal with relative deviation `jitter`; all NPUs of a
 * stage wait for each other, so that a stage takes the expected maximum of theirs. */
static cs_status find_pace(const sim__evaluation *e, const sim__phase *phase, npu_pace *out)
{
    const sim_behaviour *b = &e->config->behaviour;
    const wl_config *w = &phase->split;
    double npus = (double)w->dp * (double)w->tp * (double)w->sp;

    out->device = e->config->compute;
    out->has_slow = b->slow_stage > 0;
    if (out->device.jitter > 0)
        slow_down(&out->device, 1 / (1 + out->device.jitter * expected_maximum(npus)));
    if (!out->has_slow)
        return CS_OK;
    if (b->slow_stage > w->pp)
        return cs_fail(e->err, CS_EINVAL, "workload.slow_stage is %lld of %lld stages",
                       (long long)b->slow_stage, (long long)w->pp);
    out->slow_device = out->device;
    slow_down(&out->slow_device, b->slow_factor);
    out->slow_network = e->network;
    for (size_t d = 0; d < e->network.n_dims; d++)
        out->slow_network.dim[d].bandwidth_bytes_per_s *= b->slow_link[d];
    out->slow = (sim_slow){(size_t)b->slow_stage - 1, &out->slow_device, &out->slow_network};
    return CS_OK;
}

/* Operators of all forward passes. */
static double operators_of(const wl_program *program)
{
    double n = 0;

    for (size_t s = 0; s < program->n_stages; s++)
        for (size_t c = 0; c < program->stage[s].n_chunks; c++)
            for (size_t i = 0; i < program->stage[s].n_segments[c]; i++) {
                const wl_segment *segment = &program->stage[s].segment[c][i];
                n += (double)segment->count * (double)program->block[segment->block].forward.n;
            }
    return n * (double)program->micro_batches;
}

cs_status sim__phase_run(const sim__evaluation *e, const sim__phase *phase, sim__sums *out)
{
    cs_status status;
    const wl_program *program;
    sim_engine_result run;
    sim_pipeline pipeline;
    sim_mesh mesh;
    npu_pace pace;

    CS_TRY(enter(e, phase, &program, &pipeline));
    CS_TRY(find_pace(e, phase, &pace));
    CS_TRY(sim__schedule_make((wl_schedule)phase->split.schedule, &pipeline, &e->scratch->schedule,
                              e->err));
    sim__mesh_make(&phase->split, &mesh);
    {
        sim_job job = {
            .program = program,
            .config = &phase->split,
            .network = &e->network,
            .mesh = &mesh,
            .order = e->config->placement,
            .device = &pace.device,
            .routes = e->scratch->routes,
            .schedule = &e->scratch->schedule,
            .inference = phase->workload.mode != WL_TRAIN,
            .serial = e->config->behaviour.overlap == 0,
            .p2p_waits = e->config->behaviour.p2p_overlap == 0,
            .slow = pace.has_slow ? &pace.slow : NULL,
            .unrolled = e->unrolled,
            .timeline = e->timeline,
            .timeline_context = e->timeline_context,
            .recorder = e->recorder,
        };
        CS_TRY(sim__engine_run(e->scratch->engine, &job, &run, e->err));
    }
    sum_times(e, &run, out);
    sum_flops(program, (double)sim__laps(&pipeline), out);
    out->v[SIM_SUM_OPERATORS] =
        phase->workload.mode == WL_TRAIN ? 0 : operators_of(program) * (double)sim__laps(&pipeline);
done:
    return status;
}
