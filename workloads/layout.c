/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Layouts under a split: which dimension each axis cuts in every operator (strategy table), hence
 * how operands and results lie; partial sums pass through linear kernels and are resolved once, by
 * the first consumer that needs them whole (DESIGN 5.1). */
#include "workloads/workload_private.h"

double wl__factor(const wl__build *b, size_t axis, int8_t dim)
{
    const double n = (double)b->axis[axis];

    if (dim < 0)
        return 1.0;
    /* K and V heads fewer than tp are replicated, not cut further. */
    if (b->model->dim[dim].role == WL__KV_HEADS && n > (double)b->model->dim[dim].size)
        return (double)b->model->dim[dim].size;
    return n;
}

double wl__elements(const wl__build *b, const wl__tensor *tensor, wl__layout layout)
{
    double n = 1.0, parts = 1.0;

    for (size_t i = 0; i < tensor->rank; i++)
        n *= b->size[tensor->dim[i]];
    for (size_t a = 0; a < WL__AXES; a++)
        if (layout.at[a] >= 0)
            parts *= wl__factor(b, a, layout.at[a]);
    return n / parts;
}

bool wl__layout_equal(wl__layout x, wl__layout y)
{
    for (size_t a = 0; a < WL__AXES; a++)
        if (x.at[a] != y.at[a])
            return false;
    return true;
}

/* Dimension of the tensor that stands for loop dimension `dim` in this operator: itself; K, V heads
 * for query heads in attention; capacity for batch and sequence in dispatch and combine. */
static int8_t stands_for(const wl__build *b, const wl__op *op, const wl__tensor *tensor, int8_t dim)
{
    const int32_t role = b->model->dim[dim].role;
    int32_t other = WL__N_ROLES;

    if ((tensor->mask >> dim & 1) != 0)
        return dim;
    if (op->kernel->keys && role == WL__HEADS)
        other = WL__KV_HEADS;
    if (op->kernel->aligned && (role == WL__BATCH || role == WL__SEQUENCE))
        other = WL__CAPACITY;
    for (size_t i = 0; other != WL__N_ROLES && i < tensor->rank; i++)
        if (b->model->dim[tensor->dim[i]].role == other)
            return (int8_t)tensor->dim[i];
    return WL__WHOLE;
}

static int8_t operand_layout(const wl__build *b, const wl__op *op, size_t i, int8_t split)
{
    if (split < 0)
        return WL__WHOLE;
    /* Keys and values run over a sequence of their own, which no axis cuts. */
    if (op->kernel->keys && i > 0 && b->model->dim[split].role == WL__SEQUENCE)
        return WL__WHOLE;
    return stands_for(b, op, &b->block->tensor[op->in[i]], split);
}

/* A linear kernel that the axis does not split hands partial sums on. */
static bool passes_partial(const wl__build *b, const wl__op *op, size_t axis, int8_t split)
{
    if (!op->kernel->linear || split >= 0 || op->n_data != op->n_in)
        return false;
    for (size_t i = 0; i < op->n_data; i++) {
        const bool gates = op->kernel->aligned && i > 0; /* routing weights only scale */

        if (!gates && b->home[op->in[i]].at[axis] != WL__PARTIAL)
            return false;
    }
    return true;
}

static void plan_axis(wl__build *b, const wl__op *op, wl__plan *plan, size_t axis)
{
    int8_t split = WL__WHOLE;

    if (b->axis[axis] > 1)
        split = wl__strategy_split(b->model, op, axis, b->tp_sequence);
    plan->split[axis] = split;
    if (passes_partial(b, op, axis, split)) {
        for (size_t i = 0; i < op->n_in; i++)
            plan->need[i].at[axis] = b->home[op->in[i]].at[axis];
        plan->out.at[axis] = WL__PARTIAL;
        return;
    }
    for (size_t i = 0; i < op->n_in; i++) {
        plan->need[i].at[axis] = operand_layout(b, op, i, split);
        if (b->home[op->in[i]].at[axis] == WL__PARTIAL)
            b->home[op->in[i]].at[axis] = plan->need[i].at[axis];
    }
    plan->out.at[axis] = WL__WHOLE;
    if (split >= 0 && op->out >= 0) {
        plan->out.at[axis] = stands_for(b, op, &b->block->tensor[op->out], split);
        if (plan->out.at[axis] == WL__WHOLE)
            plan->out.at[axis] = WL__PARTIAL;
    }
}

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

double wl__op_flops(const wl__build *b, const wl__op *op, const double *size)
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

static void input_layouts(wl__build *b)
{
    static const int32_t roles[WL__AXES] = {WL__SEQUENCE, WL__SEQUENCE, WL__BATCH, WL__BATCH};
    const wl__layout whole = {{WL__WHOLE, WL__WHOLE, WL__WHOLE, WL__WHOLE}};

    b->stream = whole;
    for (size_t a = 0; a < WL__AXES; a++)
        for (size_t d = 0; d < b->model->n_dims; d++)
            if (b->axis[a] > 1 && b->model->dim[d].role == roles[a] &&
                (a != WL_TP || b->tp_sequence))
                b->stream.at[a] = (int8_t)d;
    for (size_t t = 0; t < b->block->n_tensors; t++) {
        const wl__tensor *tensor = &b->block->tensor[t];

        b->home[t] = whole;
        for (size_t a = 0; a < WL__AXES && !tensor->parameter && tensor->producer < 0; a++)
            if (b->stream.at[a] >= 0 && (tensor->mask >> b->stream.at[a] & 1) != 0)
                b->home[t].at[a] = b->stream.at[a];
    }
}

/* A tensor is saved in its own layout and gathered again where backward needs more of it; only what
 * an all-to-all moved is saved where it arrived, at the same size. */
static void keep_fill(wl__build *b)
{
    for (size_t t = 0; t < b->block->n_tensors; t++) {
        b->keep[t] = b->home[t];
        for (size_t a = 0; a < WL__AXES; a++)
            if (b->keep[t].at[a] == WL__PARTIAL)
                b->keep[t].at[a] = WL__WHOLE;
    }
    for (size_t o = b->block->n_ops; o-- > 0;) {
        const wl__op *op = &b->block->op[o];

        for (size_t i = 0; i < op->n_data; i++)
            for (size_t a = 0; a < WL__AXES && (op->kernel->saves >> i & 1) != 0; a++)
                if (b->keep[op->in[i]].at[a] >= 0 && b->plan[o].need[i].at[a] >= 0)
                    b->keep[op->in[i]].at[a] = b->plan[o].need[i].at[a];
    }
}

void wl__plan_block(wl__build *b)
{
    input_layouts(b);
    for (size_t o = 0; o < b->block->n_ops; o++) {
        const wl__op *op = &b->block->op[o];
        wl__plan *plan = &b->plan[o];

        plan->divisor = 1.0;
        for (size_t a = 0; a < WL__AXES; a++) {
            plan_axis(b, op, plan, a);
            plan->divisor *= wl__factor(b, a, plan->split[a]);
        }
        for (size_t i = 0; i < op->n_in; i++)
            if (b->block->tensor[op->in[i]].parameter)
                b->home[op->in[i]] = plan->need[i];
        if (op->out >= 0)
            b->home[op->out] = plan->out;
        plan->flops = wl__op_flops(b, op, b->size);
        plan->exact = wl__op_flops(b, op, b->exact);
    }
    if (b->block->output >= 0) {
        wl__layout *home = &b->home[b->block->output];

        for (size_t a = 0; a < WL__AXES; a++)
            if (home->at[a] == WL__PARTIAL)
                home->at[a] = b->stream.at[a];
    }
    keep_fill(b);
}
