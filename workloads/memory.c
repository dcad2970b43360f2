/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Memory by liveness over the graph: what a block keeps from forward to backward, and the peak of
 * what lives only inside it (DESIGN 5.5; Korthikanti et al. 2022, equations 1 to 6, for the variant
 * gpt-2022). */
#include "workloads/workload_private.h"

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
    return wl__elements(b, tensor, b->keep[t]) * element;
}

/* Masks and scores, or the fp32 log-sum-exp of flash attention's rows. */
static double extra_saved(const wl__build *b, size_t o)
{
    const wl__op *op = &b->block->op[o];

    if (wl__has_mask(b, op))
        return wl__elements(b, &b->block->tensor[op->out], b->plan[o].out);
    if (!op->kernel->keys)
        return 0.0;
    if (unfused(b))
        return selective(b) ? 0.0 : SCORE_BYTES_SAVED * wl__scores(b, op, &b->plan[o]);
    return 4.0 * wl__scores(b, op, &b->plan[o]) / b->keys;
}

static double saved_bytes(const wl__build *b)
{
    double bytes = 0.0;

    for (size_t t = 0; t < b->block->n_tensors; t++)
        if (b->saved[t] && ((int16_t)t == b->block->input || b->block->tensor[t].producer >= 0))
            bytes += b->kept[t];
    for (size_t o = 0; !full(b) && o < b->block->n_ops; o++)
        bytes += extra_saved(b, o);
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
        else if (!wl__layout_equal(b->plan[o].need[i], b->home[op->in[i]]))
            bytes += wl__elements(b, &b->block->tensor[op->in[i]], b->plan[o].need[i]) *
                     wl__element_bytes(b, &b->block->tensor[op->in[i]]);
    return bytes;
}

static double plain_bytes(const wl__build *b, size_t t)
{
    wl__layout layout = b->home[t];

    for (size_t a = 0; a < WL__AXES; a++)
        if (layout.at[a] == WL__PARTIAL)
            layout.at[a] = WL__WHOLE;
    return wl__elements(b, &b->block->tensor[t], layout) *
           wl__element_bytes(b, &b->block->tensor[t]);
}

void wl__liveness(wl__build *b)
{
    for (size_t t = 0; t < b->block->n_tensors; t++)
        b->wanted[t] = false;
    for (size_t o = 0; o < b->block->n_ops; o++) {
        const wl__op *op = &b->block->op[o];

        for (size_t i = 0; i < op->n_data; i++)
            if ((op->kernel->saves >> i & 1) != 0)
                b->wanted[op->in[i]] = true;
        if (op->kernel->saves_result && op->out >= 0 && !unfused(b))
            b->wanted[op->out] = true;
    }
    for (size_t t = 0; t < b->block->n_tensors; t++) {
        const bool activation = !b->block->tensor[t].parameter;

        b->saved[t] = is_saved(b, (int16_t)t);
        b->plain[t] = activation ? plain_bytes(b, t) : 0.0;
        b->kept[t] = activation ? kept_bytes(b, (int16_t)t) : 0.0;
    }
}

static double forward_peak(const wl__build *b)
{
    double peak = 0.0;

    for (size_t o = 0; o < b->block->n_ops; o++) {
        double live = converted_bytes(b, o);

        for (size_t t = 0; t < b->block->n_tensors; t++) {
            const wl__tensor *tensor = &b->block->tensor[t];

            if (!tensor->parameter && tensor->producer >= 0 && tensor->producer <= (int16_t)o &&
                (tensor->last_use >= (int16_t)o || tensor->producer == (int16_t)o) && !b->saved[t])
                live += b->plain[t];
        }
        if (b->block->op[o].kernel->keys && unfused(b) && !b->training)
            live += 2.0 * wl__scores(b, &b->block->op[o], &b->plan[o]);
        peak = fmax(peak, live);
    }
    return peak;
}

/* At operator o in reverse: gradients between their first consumer (in reverse) and their producer,
 * gathered operands, and what recomputation brought back and still holds.  The loss writes its
 * gradient over the logits. */
static double backward_peak(const wl__build *b)
{
    const bool again = full(b);
    double peak = 0.0;

    for (size_t o = b->block->n_ops; o-- > 0;) {
        const wl__op *op = &b->block->op[o];
        double live = converted_bytes(b, o);

        for (size_t t = 0; t < b->block->n_tensors; t++) {
            const wl__tensor *tensor = &b->block->tensor[t];
            const bool before = tensor->producer <= (int16_t)o;

            if (tensor->parameter || tensor->fp32)
                continue;
            if (tensor->needs_gradient && before &&
                (tensor->last_use >= (int16_t)o || (int16_t)t == b->block->output))
                live += b->plain[t];
            if (!b->saved[t] && before && tensor->producer >= 0 && b->wanted[t] &&
                (again || tensor->last_use == (int16_t)o))
                live += b->kept[t];
        }
        for (size_t e = 0; again && e <= o; e++)
            live += unfused(b) || b->block->op[e].kernel->keys ? extra_saved(b, e) : 0.0;
        if (op->kernel->keys && unfused(b) && selective(b))
            live += SCORE_BYTES_SAVED * wl__scores(b, op, &b->plan[o]);
        peak = fmax(peak, live);
    }
    return peak;
}

void wl__block_memory(wl__build *b, wl_block *out)
{
    out->saved_bytes = b->training ? saved_bytes(b) : 0.0;
    out->forward_peak_bytes = forward_peak(b);
    out->backward_peak_bytes = b->training ? backward_peak(b) : 0.0;
}
