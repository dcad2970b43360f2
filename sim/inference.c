/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Requests: prefill, decode, both, and a stream of them.
 *
 * Prefill of n tokens is one forward pass; it ends with the first token: its latency is the time to
 * first token (TTFT).  Decoding is `output` steps; step j reads a cache of context + j - 1 tokens
 * and its own.  The time per output token (TPOT) is the mean step.  With pipeline stages steps
 * overlap: a micro-batch begins its next step when its own token is there, whatever the others do.
 * So a step is run twice on end, and what the second one adds is its time: of m equal micro-batches
 * in p equal stages, max(m, p) times that of one in one stage, where a step on its own takes
 * m + p - 1 times it.  The first step follows on the prefill and stands alone.
 *
 * Every step is a program of its own, and really simulated; but not each of a thousand.  The
 * duration of an operator is the larger of FLOPs and bytes over their rates, both affine in the
 * context, so convex in it; under `program` order every time is a max-plus function of the
 * durations, so the latency of a step is convex in its number too (block engine: sim/engine.h).  Of
 * a convex function three points on one line mean that all between are on it, and if the middle
 * lies d below the chord, none between lies more than 2 d below.  So a stretch of steps is summed
 * as an arithmetic series when its middle is within STRAIGHT of the chord, in all its times (run
 * once and run twice), and cut in two otherwise: the sum is within 2 * STRAIGHT of all steps one by
 * one, which is what other orders and `unrolled` run.
 *
 * A stream (`requests_per_s`) is served by continuous batching in a steady state:
 * - requests arrive as a Poisson process and are spread evenly over the dp replicas;
 * - a replica that is between two decode steps prefills a waiting prompt alone, before the next
 *   step: its queue is an M/D/1 queue with vacations, service S (prefill of one prompt), vacation D
 *   (a decode step), so the mean wait is rho S / (2 (1 - rho)) + D / 2 with rho = arrivals * S
 *   (Fuhrmann and Cooper, Operations Research 33(5), 1985; Doshi, Queueing Systems 1, 1986);
 * - decoding gets the share 1 - rho of the time: TPOT = D / (1 - rho), D at the mean context, as
 *   sequences of all ages share a batch;
 * - by Little's law load * output * TPOT sequences are being decoded; D is that of the least number
 *   of micro-batches that hold them, of at most global_batch sequences;
 * - over global_batch / (output * D + global_batch * S / dp) requests a second there is no steady
 *   state: the design is over its limit, and its times are those of a request alone. */
#include <math.h>

#include "sim/evaluate.h"

#define STRAIGHT 1e-8
#define ROUNDING 0.5e-12 /* seconds, of every duration */

enum { MOST_SINGLE_STEPS = 1 << 16 };

cs_status sim__prefill_make(const sim__evaluation *e, size_t i, sim__phase *out)
{
    cs_status status;

    CS_TRY(sim__phase_make(e, i, SIM_PHASE_PREFILL, 0, out));
    out->workload.mode = WL_PREFILL;
done:
    return status;
}

/* Tokens in the cache before the first step. */
static int64_t first_context(const wl_workload *w)
{
    return w->mode == WL_SERVE ? w->sequence : w->context;
}

cs_status sim__step_make(const sim__evaluation *e, size_t i, int64_t j, sim__phase *out)
{
    cs_status status;

    CS_TRY(sim__phase_make(e, i, SIM_PHASE_STEP, j, out));
    out->workload.context = first_context(&e->model->workloads[i]) + j - 1;
    out->workload.mode = WL_DECODE;
    out->workload.sequence = out->workload.output = 1;
done:
    return status;
}

/* ---- memory ---- */

/* The caches of all sequences are reserved at their full length; beside them stands what a prefill
 * or a step needs, whichever is more.  A stream prefills one prompt a replica at a time. */
static void keep_larger(const sim_peak *prefill, sim_peak *peak)
{
    double extra = prefill->memory.total - prefill->memory.kv_cache -
                   (peak->memory.total - peak->memory.kv_cache);

    if (extra <= 0)
        return;
    peak->memory.transient += extra;
    peak->memory.total += extra;
}

/* One prompt on each replica. */
static cs_status first_make(const sim__evaluation *e, size_t i, sim__phase *out)
{
    cs_status status;

    CS_TRY(sim__phase_make(e, i, SIM_PHASE_FIRST, 0, out));
    out->workload.mode = WL_PREFILL;
    out->workload.global_batch = out->split.dp;
    out->split.micro_batch = 1;
done:
    return status;
}

cs_status sim__serve_memory(const sim__evaluation *e, size_t i, sim_peak *out)
{
    cs_status status = CS_OK;
    const wl_workload *w = &e->model->workloads[i];
    sim__phase phase;
    sim_peak prefill;

    if (w->mode != WL_DECODE) {
        CS_TRY(w->requests_per_s > 0 ? first_make(e, i, &phase) : sim__prefill_make(e, i, &phase));
        CS_TRY(sim__phase_memory(e, &phase, &prefill));
        *out = prefill;
    }
    if (w->mode == WL_PREFILL)
        return CS_OK;
    CS_TRY(sim__step_make(e, i, w->output, &phase));
    CS_TRY(sim__phase_memory(e, &phase, out));
    if (w->mode == WL_SERVE)
        keep_larger(&prefill, out);
done:
    return status;
}

/* ---- a batch on its own ---- */

cs_status sim__step_run(const sim__evaluation *e, sim__phase *phase, sim__step *out)
{
    cs_status status;

    CS_TRY(sim__phase_run(e, phase, &out->alone));
    out->twice = out->added = out->alone;
    if (phase->split.pp == 1)
        return CS_OK;
    phase->twice = true;
    CS_TRY(sim__phase_run(e, phase, &out->twice));
    phase->twice = false;
    out->added = out->twice;
    sim__sums_add(&out->added, &out->alone, -1);
done:
    return status;
}

/* What a step adds is the difference of two runs, in which a stage waits now for another one, now
 * for the way from it: what one of these two waits is short of is taken from the other. */
static void settle_waits(sim__sums *s)
{
    double bubble = s->v[SIM_SUM_BUBBLE], way = s->v[SIM_SUM_AXIS + WL_PP];
    double moved = bubble < 0 ? bubble : fmax(0, -way);

    s->v[SIM_SUM_BUBBLE] -= moved;
    s->v[SIM_SUM_AXIS + WL_PP] += moved;
    s->v[SIM_SUM_EXPOSED] += moved;
    s->v[SIM_SUM_HIDDEN] = fmax(0, s->v[SIM_SUM_HIDDEN] - moved);
}

static cs_status run_step(const sim__evaluation *e, size_t i, int64_t j, sim__step *out)
{
    cs_status status;
    sim__phase phase;

    CS_TRY(sim__step_make(e, i, j, &phase));
    CS_TRY(sim__step_run(e, &phase, out));
done:
    return status;
}

/* A stretch of steps and its ends. */
typedef struct {
    int64_t from, to;
    const sim__step *first, *last;
} stretch;

static bool is_straight(const sim__sums *first, const sim__sums *middle, const sim__sums *last,
                        double share)
{
    double tolerance =
        STRAIGHT * middle->v[SIM_SUM_LATENCY] + ROUNDING * middle->v[SIM_SUM_OPERATORS];

    for (size_t k = 0; k < SIM_N_TIMES; k++) {
        double chord = first->v[k] + share * (last->v[k] - first->v[k]);
        if (!(fabs(chord - middle->v[k]) <= tolerance))
            return false;
    }
    return true;
}

/* Adds the steps strictly between the ends.  O(log) runs a kink. */
static cs_status add_between(const sim__evaluation *e, size_t i, stretch s, sim__sums *total)
{
    cs_status status = CS_OK;
    int64_t at = s.from + (s.to - s.from) / 2;
    double n = (double)(s.to - s.from - 1), share = (double)(at - s.from) / (double)(s.to - s.from);
    sim__step middle;

    if (s.to - s.from <= 1)
        return CS_OK;
    CS_TRY(run_step(e, i, at, &middle));
    if (is_straight(&s.first->alone, &middle.alone, &s.last->alone, share) &&
        is_straight(&s.first->twice, &middle.twice, &s.last->twice, share)) {
        sim__sums_add(total, &s.first->added, n / 2);
        sim__sums_add(total, &s.last->added, n / 2);
        return CS_OK;
    }
    sim__sums_add(total, &middle.added, 1);
    CS_TRY(add_between(e, i, (stretch){s.from, at, s.first, &middle}, total));
    CS_TRY(add_between(e, i, (stretch){at, s.to, &middle, s.last}, total));
done:
    return status;
}

static cs_status add_all(const sim__evaluation *e, size_t i, int64_t steps, sim__sums *total)
{
    cs_status status = CS_OK;
    sim__step step;

    if (steps > MOST_SINGLE_STEPS)
        return cs_fail(e->err, CS_EINVAL, "output %lld: at most %d steps can be run one by one",
                       (long long)steps, MOST_SINGLE_STEPS);
    for (int64_t j = 1; j <= steps; j++) {
        CS_TRY(run_step(e, i, j, &step));
        sim__sums_add(total, j == 1 ? &step.alone : &step.added, 1);
    }
done:
    return status;
}

/* All decode steps of a batch. */
static cs_status add_steps(const sim__evaluation *e, size_t i, sim__sums *total)
{
    cs_status status;
    int64_t steps = e->model->workloads[i].output;
    sim__step first, last;

    if (e->unrolled || e->config->collective.scheduling != SIM_PROGRAM || steps < 4)
        return add_all(e, i, steps, total);
    CS_TRY(run_step(e, i, 1, &first));
    CS_TRY(run_step(e, i, steps, &last));
    sim__sums_add(total, &first.alone, 1);
    sim__sums_add(total, &last.added, 1);
    CS_TRY(add_between(e, i, (stretch){1, steps, &first, &last}, total));
done:
    return status;
}

/* A pool that prefills for another one sends the caches over: each NPU its part, into the outermost
 * dimension, across which pools lie.  The first token does not wait for it. */
static cs_status add_transfer(const sim__evaluation *e, const sim__phase *phase, sim__outcome *out)
{
    cs_status status;
    sim_peak peak;
    size_t outer = 0;

    CS_TRY(sim__phase_memory(e, phase, &peak));
    for (size_t d = 0; d < e->network.n_dims; d++)
        outer = e->network.dim[d].n > 1 ? d : outer;
    out->transfer_s = e->network.dim[outer].latency_s +
                      peak.memory.kv_cache / e->network.dim[outer].bandwidth_bytes_per_s;
    out->sums.v[SIM_SUM_LATENCY] += out->transfer_s;
    out->sums.v[SIM_SUM_EXPOSED] += out->transfer_s;
    out->sums.v[SIM_SUM_AXIS + WL_PP] += out->transfer_s;
    out->sums.v[SIM_SUM_SENT] += peak.memory.kv_cache;
done:
    return status;
}

static bool has_decode_pool(const sim_model *model)
{
    for (size_t i = 0; i < model->n_workloads; i++)
        if (model->workloads[i].mode == WL_DECODE && model->workloads[i].npus > 0)
            return true;
    return false;
}

static cs_status serve_batch(const sim__evaluation *e, size_t i, sim__outcome *out)
{
    cs_status status = CS_OK;
    const wl_workload *w = &e->model->workloads[i];
    sim__phase phase;

    if (w->mode != WL_DECODE) {
        CS_TRY(sim__prefill_make(e, i, &phase));
        CS_TRY(sim__phase_run(e, &phase, &out->sums));
        out->ttft_s = out->sums.v[SIM_SUM_LATENCY];
    }
    if (w->mode == WL_PREFILL && w->npus > 0 && has_decode_pool(e->model))
        CS_TRY(add_transfer(e, &phase, out));
    if (w->mode == WL_PREFILL)
        return CS_OK;
    out->sums.v[SIM_SUM_TOKENS] = 0; /* of those that decode, only tokens put out count */
    CS_TRY(add_steps(e, i, &out->sums));
    settle_waits(&out->sums);
    out->tpot_s = out->sums.v[SIM_SUM_LATENCY] - (w->mode == WL_DECODE ? 0 : out->ttft_s);
    out->tpot_s /= (double)w->output;
done:
    return status;
}

/* ---- a stream ---- */

/* One steady state: prefill of a prompt, a decode step, and what they hold. */
typedef struct {
    const wl_workload *w;
    double replicas, group;  /* sequences in a micro-batch of all replicas */
    int64_t most;            /* micro-batches */
    sim__sums prefill, step; /* a step that follows on one like it */
    int64_t micro_batches;   /* of `step` */
} stream;

/* A decode step of `m` micro-batches at the mean context. */
static cs_status run_mean(const sim__evaluation *e, size_t i, int64_t m, stream *s)
{
    cs_status status;
    sim__phase phase;
    sim__step step;

    CS_TRY(sim__phase_make(e, i, SIM_PHASE_MEAN, m, &phase));
    phase.workload.context = first_context(s->w);
    phase.workload.mode = WL_DECODE;
    phase.workload.sequence = 1;
    phase.workload.global_batch = m * phase.split.dp * phase.split.micro_batch;
    CS_TRY(sim__step_run(e, &phase, &step));
    s->step = step.added;
    settle_waits(&s->step);
    s->micro_batches = m;
done:
    return status;
}

static double prefill_share(const stream *s)
{
    return s->w->requests_per_s / s->replicas * s->prefill.v[SIM_SUM_LATENCY];
}

/* Whether the micro-batches of `step` hold all sequences that are being decoded. */
static bool holds(const stream *s)
{
    double step = s->step.v[SIM_SUM_LATENCY];
    return (double)s->micro_batches * s->group * (1 - prefill_share(s)) >=
           s->w->requests_per_s * (double)s->w->output * step;
}

/* Least number of micro-batches that hold the load, knowing that the most do.  A step takes a + b m
 * with a >= 0, or p b while m < p, so that the rate m / (a + b m) grows with m and halving finds
 * it. */
static cs_status find_batch(const sim__evaluation *e, size_t i, stream *s)
{
    cs_status status = CS_OK;
    int64_t low = 0, high = s->most;

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        CS_TRY(run_mean(e, i, middle, s));
        if (holds(s))
            high = middle;
        else
            low = middle;
    }
    if (s->micro_batches != high)
        CS_TRY(run_mean(e, i, high, s));
done:
    return status;
}

/* Times of a request, and FLOPs and tokens of all requests while it is there. */
static void fill_stream(const stream *s, double share, double wait, sim__outcome *out)
{
    double step = s->step.v[SIM_SUM_LATENCY], alone = s->prefill.v[SIM_SUM_LATENCY];
    double steps = (double)s->w->output, sequences = (double)s->micro_batches * s->group, scale;

    out->ttft_s = alone + wait;
    out->tpot_s = step / (1 - share);
    sim__sums_add(&out->sums, &s->prefill, 1);
    sim__sums_add(&out->sums, &s->step, steps);
    out->idle_s = out->ttft_s + steps * out->tpot_s - out->sums.v[SIM_SUM_LATENCY];
    out->sums.v[SIM_SUM_LATENCY] = out->ttft_s + steps * out->tpot_s;
    scale = s->w->requests_per_s * out->sums.v[SIM_SUM_LATENCY];
    for (size_t k = SIM_SUM_MODEL_FLOPS; k <= SIM_SUM_RECOMPUTE_FLOPS; k++)
        out->sums.v[k] = scale * (s->prefill.v[k] / s->replicas + steps * s->step.v[k] / sequences);
    out->sums.v[SIM_SUM_TOKENS] = scale * steps;
    out->window = true;
}

static cs_status serve_stream(const sim__evaluation *e, size_t i, sim__outcome *out)
{
    cs_status status;
    stream s = {.w = &e->model->workloads[i]};
    sim__phase phase;
    double capacity, share, sequences, step;

    CS_TRY(first_make(e, i, &phase));
    CS_TRY(sim__phase_run(e, &phase, &s.prefill));
    s.replicas = (double)phase.split.dp;
    s.group = s.replicas * (double)e->config->workload.micro_batch;
    s.most = s.w->global_batch / (phase.split.dp * e->config->workload.micro_batch);
    sequences = (double)s.most * s.group;
    CS_TRY(run_mean(e, i, s.most, &s));
    step = s.step.v[SIM_SUM_LATENCY];
    capacity = sequences /
               ((double)s.w->output * step + sequences * s.prefill.v[SIM_SUM_LATENCY] / s.replicas);
    if (s.w->requests_per_s > capacity) {
        fill_stream(&s, 0, 0, out);
        out->overload = log(s.w->requests_per_s / capacity);
        return CS_OK;
    }
    CS_TRY(find_batch(e, i, &s));
    share = prefill_share(&s);
    fill_stream(&s, share,
                share * s.prefill.v[SIM_SUM_LATENCY] / (2 * (1 - share)) +
                    s.step.v[SIM_SUM_LATENCY] / 2,
                out);
done:
    return status;
}

cs_status sim__serve(const sim__evaluation *e, size_t i, sim__outcome *out)
{
    return e->model->workloads[i].requests_per_s > 0 ? serve_stream(e, i, out)
                                                     : serve_batch(e, i, out);
}
