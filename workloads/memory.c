/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Memory by liveness over the graph: what a block keeps from forward to backward, and the peak of
 * what lives only inside it (DESIGN 5.5; Korthikanti et al. 2022, equations 1 to 6, for the variant
 * gpt-2022). */
#include "workloads/build_private.h"

#include <math.h>

/* Bytes kept per score by unfused attention: softmax output, dropout mask, dropout output. */
#define SCORE_BYTES_SAVED 5.0

static bool selective(const wl__build *b)
{
    return b->recompute && b->config->recompute == WL_RECOMPUTE_SELECTIVE;
}

static bool full(const wl__build *b)
{
    return b->recompute && b->config->recompute == WL_RECOMPUTE_FULL;
}

static bool unfused(const wl__build *b)
{
    return b->config->attention == WL_ATTENTION_GPT2022;
}

bool wl__has_mask(const wl__build *b, const wl__op *op)
{
    return unfused(b) && op->kernel->linear && op->kernel->pass_through && op->n_data > 1;
}

/* An operator keeps this tensor for its backward. */
static bool op_saves(const wl__build *b, const wl__op *op, int16_t t)
{
    if (op->kernel->saves_result && op->out == t)
        return !unfused(b);
    for (size_t i = 0; i < op->n_data; i++)
        if (op->in[i] == t && (op->kernel->saves >> i & 1) != 0)
            return true;
    return false;
}

static bool is_saved(const wl__build *b, int16_t t)
{
    const wl__tensor *tensor = &b->block->tensor[t];

    if (tensor->parameter || !b->training)
        return false;
    if (full(b))
        return tensor->producer < 0;
    if (selective(b) && !unfused(b) && tensor->producer >= 0 &&
        b->block->op[tensor->producer].kernel->cheap)
        return false;
    return b->wanted[t];
}

/* Bytes of a tensor as kept: operands of fp8 GEMMs alone are kept in 8 bits. */
static double kept_bytes(const wl__build *b, int16_t t)
{
    const wl__tensor *tensor = &b->block->tensor[t];
    double element = tensor->fp32 ? 4.0 : b->bytes.activation;
    bool gemm_only = tensor->first_use >= 0;

    for (size_t o = 0; gemm_only && b->bytes.gemm < element && o < b->block->n_ops; o++)
        if (b->block->op[o].kernel != &wl__einsum && op_saves(b, &b->block->op[o], t))
            gemm_only = false;
    if (gemm_only && !tensor->fp32)
        element = fmin(element, b->bytes.gemm);
    return wl__elements(b, t, b->layouts->keep[t]) * element;
}

/* Masks and scores, or the fp32 log-sum-exp of flash attention's rows. */
static double extra_saved(const wl__build *b, size_t o)
{
    const wl__op *op = &b->block->op[o];

    if (wl__has_mask(b, op))
        return b->plan[o].out_elements;
    if (!op->kernel->keys)
        return 0.0;
    if (unfused(b))
        return selective(b) ? 0.0 : SCORE_BYTES_SAVED * wl__scores(b, op, &b->plan[o]);
    return 4.0 * wl__scores(b, op, &b->plan[o]) / b->keys;
}

static double saved_bytes(const wl__build *b, const double *extra)
{
    double bytes = 0.0;

    for (size_t t = 0; t < b->block->n_tensors; t++)
        if (b->saved[t] && ((int16_t)t == b->block->input || b->block->tensor[t].producer >= 0))
            bytes += b->kept[t];
    for (size_t o = 0; !full(b) && o < b->block->n_ops; o++)
        bytes += extra[o];
    return bytes;
}

/* Copies an operator needs in another layout than the tensor's own. */
static double converted_bytes(const wl__build *b, size_t o)
{
    const wl__op *op = &b->block->op[o];
    double bytes = 0.0;

    for (size_t i = 0; i < op->n_data; i++)
        if (wl__rings(b, op) && i > 0) /* the chunk at work and the one arriving */
            bytes += 2.0 * b->plain[op->in[i]];
        else if (!wl__layout_equal(b->plan[o].at->need[i], b->layouts->home[op->in[i]]))
            bytes += b->plan[o].elements[i] * wl__element_bytes(b, op->in[i]);
    return bytes;
}

void wl__liveness(wl__build *b)
{
    for (size_t t = 0; t < b->block->n_tensors; t++) {
        const wl__tensor *tensor = &b->block->tensor[t];

        b->wanted[t] = tensor->wanted || (tensor->wanted_result && !unfused(b));
        b->saved[t] = is_saved(b, (int16_t)t);
        b->plain[t] = b->kept[t] = 0.0;
        if (tensor->parameter)
            continue;
        b->plain[t] =
            wl__elements(b, (int16_t)t, b->layouts->whole[t]) * wl__element_bytes(b, (int16_t)t);
        b->kept[t] = kept_bytes(b, (int16_t)t);
    }
}

static double forward_peak(const wl__build *b, const double *converted)
{
    double peak = 0.0;

    for (size_t o = 0; o < b->block->n_ops; o++) {
        const wl__op *op = &b->block->op[o];
        const wl__live *list = &b->block->live[op->live];
        double live = converted[o];

        for (size_t i = 0; i < op->n_live; i++)
            if ((list[i].why & WL__LIVE_FORWARD) != 0 && !b->saved[list[i].tensor])
                live += b->plain[list[i].tensor];
        if (op->kernel->keys && unfused(b) && !b->training)
            live += 2.0 * wl__scores(b, op, &b->plan[o]);
        peak = fmax(peak, live);
    }
    return peak;
}

/* Gradients between their first consumer (in reverse) and their producer, and what the operator's
 * own recomputation brings back. */
static double backward_live(const wl__build *b, const wl__op *op, double live)
{
    const wl__live *list = &b->block->live[op->live];

    for (size_t i = 0; i < op->n_live; i++) {
        const int16_t t = list[i].tensor;

        if ((list[i].why & WL__LIVE_GRADIENT) != 0)
            live += b->plain[t];
        if ((list[i].why & WL__LIVE_AGAIN) != 0 && !b->saved[t] && b->wanted[t])
            live += b->kept[t];
    }
    return live;
}

/* The same when the whole block was recomputed: it holds all that earlier operators wait for. */
static double backward_live_full(const wl__build *b, int16_t o, double live)
{
    for (size_t t = 0; t < b->block->n_tensors; t++) {
        const wl__tensor *tensor = &b->block->tensor[t];

        if (tensor->parameter || tensor->fp32 || tensor->producer > o)
            continue;
        if (tensor->needs_gradient && (tensor->last_use >= o || (int16_t)t == b->block->output))
            live += b->plain[t];
        if (!b->saved[t] && tensor->producer >= 0 && b->wanted[t])
            live += b->kept[t];
    }
    return live;
}

/* At operator o in reverse: gradients, gathered operands, and what recomputation brought back and
 * still holds.  The loss writes its gradient over the logits. */
static double backward_peak(const wl__build *b, const double *converted, const double *extra)
{
    const bool again = full(b);
    double peak = 0.0;

    for (size_t o = b->block->n_ops; o-- > 0;) {
        const wl__op *op = &b->block->op[o];
        double live = converted[o];

        live = again ? backward_live_full(b, (int16_t)o, live) : backward_live(b, op, live);
        for (size_t e = 0; again && e <= o; e++)
            live += extra[e];
        if (op->kernel->keys && unfused(b) && selective(b))
            live += SCORE_BYTES_SAVED * wl__scores(b, op, &b->plan[o]);
        peak = fmax(peak, live);
    }
    return peak;
}

void wl__block_memory(wl__build *b, wl_block *out)
{
    double converted[WL__MAX_OPS], extra[WL__MAX_OPS];

    for (size_t o = 0; o < b->block->n_ops; o++) {
        converted[o] = converted_bytes(b, o);
        extra[o] = extra_saved(b, o);
    }
    out->saved_bytes = b->training ? saved_bytes(b, extra) : 0.0;
    out->forward_peak_bytes = forward_peak(b, converted);
    out->backward_peak_bytes = b->training ? backward_peak(b, converted, extra) : 0.0;
}
