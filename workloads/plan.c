/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Numbers of every operator of a block under a split: FLOPs, elements, bytes, GEMM shape.  Each is
 * worked out once and read by all passes. */
#include "workloads/build_private.h"

/* Width of the last dimension of a tensor. */
static double width(const wl__build *b, int16_t tensor, const double *size)
{
    const wl__tensor *t = &b->block->tensor[tensor];

    return size[t->dim[t->rank - 1]];
}

/* Scores and values: 2 multiply-adds per query, key and feature.  With a cache of latents (MLA)
 * decoding stays in the latent space: scores over all cached features, values over the first. */
static double attention_flops(const wl__build *b, const wl__op *op, const double *size)
{
    const wl__tensor *q = &b->block->tensor[op->in[0]];
    double rows = b->keys, features;

    for (size_t i = 0; i + 1 < q->rank; i++)
        rows *= size[q->dim[i]];
    features = width(b, op->in[0], size) + width(b, op->in[2], size);
    if (b->workload->mode == WL_DECODE && op->cache[0] != op->in[1]) {
        features = width(b, op->cache[0], size);
        for (size_t i = 0; i < op->n_cache; i++)
            features += width(b, op->cache[i], size);
    }
    return 2.0 * rows * features;
}

/* State-space scan: per element and state one decay-multiply-add and one output multiply-add. */
static double scan_flops(const wl__build *b, const wl__op *op, const double *size)
{
    const wl__tensor *x = &b->block->tensor[op->in[0]];
    double n = 4.0 * width(b, op->in[op->n_data - 1], size);

    for (size_t i = 0; i < x->rank; i++)
        n *= size[x->dim[i]];
    return n;
}

/* Dot products: each result is one of the operand's last width. */
static double interaction_flops(const wl__build *b, const wl__op *op, const double *size)
{
    const wl__tensor *out = &b->block->tensor[op->out];
    double n = 2.0 * width(b, op->in[0], size);

    for (size_t i = 0; i < out->rank; i++)
        n *= size[out->dim[i]];
    return n;
}

static double op_flops(const wl__build *b, const wl__op *op, const double *size)
{
    double n = 2.0;

    if (op->kernel->keys)
        return attention_flops(b, op, size);
    if (op->kernel->inner_role == WL__SEQUENCE)
        return scan_flops(b, op, size);
    if (op->kernel->pairwise)
        return interaction_flops(b, op, size);
    if (op->kernel != &wl__einsum)
        return 0.0;
    for (size_t i = 0; i < op->n_loops; i++)
        n *= size[op->loop[i]];
    return n;
}

double wl__scores(const wl__build *b, const wl__op *op, const wl__plan *plan)
{
    const wl__tensor *q = &b->block->tensor[op->in[0]];
    double n = b->keys / plan->divisor;

    for (size_t i = 0; i + 1 < q->rank; i++)
        n *= b->size[q->dim[i]];
    return n;
}

static double cache_bytes(const wl__build *b, const wl__op *op)
{
    double n = 0.0;

    for (size_t i = 0; i < op->n_cache; i++)
        n += wl__elements(b, op->cache[i], b->layouts->home[op->cache[i]]);
    return n * b->keys / b->cache_parts * b->bytes.activation;
}

/* Bytes of operand i as the operator reads it. */
static double operand_bytes(const wl__build *b, const wl__op *op, double elements, size_t i)
{
    const wl__tensor *tensor = &b->block->tensor[op->in[i]];

    if (op->kernel->keys && i > 0 && b->workload->mode == WL_DECODE)
        return i == 1 ? cache_bytes(b, op) : 0.0;
    if (tensor->parameter) /* experts without a token are not read */
        return op->kernel->lookup ? 0.0
                                  : elements * b->bytes.weight *
                                        (op->class == WL__CLASS_EXPERT ? b->touched : 1.0);
    if (tensor->fp32)
        return elements * 4.0;
    return elements * (op->kernel == &wl__einsum ? b->bytes.gemm : b->bytes.activation);
}

static void operands_fill(const wl__build *b, const wl__op *op, wl__plan *plan)
{
    for (size_t i = 0; i < op->n_in; i++) {
        plan->elements[i] = wl__elements(b, op->in[i], plan->at->need[i]);
        plan->bytes[i] = operand_bytes(b, op, plan->elements[i], i);
    }
    plan->out_elements = plan->out_bytes = 0.0;
    if (op->out < 0)
        return;
    plan->out_elements = wl__elements(b, op->out, plan->at->out);
    plan->out_bytes = plan->out_elements * wl__element_bytes(b, op->out);
    if (op->kernel->lookup) /* reads as many rows as it writes */
        plan->out_bytes *= 2.0;
}

/* GEMM shape on one NPU: rows, columns, contraction; dimensions in all three are a batch. */
static void gemm_fill(const wl__build *b, const wl__op *op, wl__plan *plan)
{
    double shape[WL__N_GEMM] = {1.0, 1.0, 1.0, 1.0};

    for (size_t l = 0; l < op->n_loops; l++) {
        const int8_t dim = (int8_t)op->loop[l];
        double n = b->size[dim];

        for (size_t a = 0; a < WL__AXES; a++)
            if (plan->at->split[a] == dim)
                n /= wl__factor(b, a, dim);
        shape[op->gemm[l]] *= n;
    }
    plan->m = shape[WL__GEMM_M];
    plan->n = shape[WL__GEMM_N];
    plan->k = shape[WL__GEMM_K];
}

static void op_plan(const wl__build *b, const wl__op *op, wl__plan *plan)
{
    plan->divisor = 1.0;
    for (size_t a = 0; a < WL__AXES; a++)
        plan->divisor *= wl__factor(b, a, plan->at->split[a]);
    plan->flops = plan->exact = op_flops(b, op, b->size);
    if ((op->sizes & b->padded) != 0)
        plan->exact = op_flops(b, op, b->exact);
    operands_fill(b, op, plan);
    if (op->kernel == &wl__einsum)
        gemm_fill(b, op, plan);
}

void wl__plan_block(wl__build *b)
{
    const wl__block *block = b->block;
    bool cut[WL__AXES];

    for (size_t a = 0; a < WL__AXES; a++) {
        b->ways[a] = (double)b->axis[a];
        cut[a] = b->axis[a] > 1;
    }
    b->layouts = &block->layouts[wl__cut_index(cut, b->tp_sequence)];
    for (size_t t = 0; t < block->n_tensors; t++) {
        const wl__tensor *tensor = &block->tensor[t];
        double n = 1.0;

        for (size_t i = 0; i < tensor->rank; i++)
            n *= b->size[tensor->dim[i]];
        b->count[t] = n;
    }
    for (size_t o = 0; o < block->n_ops; o++) {
        b->plan[o].at = &b->layouts->op[o];
        op_plan(b, &block->op[o], &b->plan[o]);
    }
}
