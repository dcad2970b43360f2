/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Backward pass of a block.  Layout changes are transposed; an operand's gradient is complete when
 * its last consumer has contributed, and its collective is issued then, before the weight gradients
 * that do not depend on it, so that they hide it (Korthikanti et al. 2022, section 4.2). */
#include "workloads/build_private.h"

/* Backward of unfused attention per score element: dP written and read with mask, softmax backward
 * reads P and dP and writes dS, dQ and dK read dS, dV reads the dropped scores. */
#define SCORE_BYTES_BACKWARD 19.0
/* Flash attention computes the scores again: five products instead of four, 2.5 times forward (Dao
 * et al. 2022). */
#define FLASH_SECOND_SCORES 0.5

static bool dropped(const wl__build *b, int16_t tensor)
{
    return b->block->tensor[tensor].producer >= 0 && !b->saved[tensor];
}

int16_t wl__operand(wl__build *b, int16_t tensor)
{
    if (b->of[tensor] >= 0)
        return b->of[tensor];
    if (dropped(b, tensor) && b->block->op[b->block->tensor[tensor].producer].kernel->cheap)
        wl__forward_op(b, (size_t)b->block->tensor[tensor].producer);
    if (b->of[tensor] < 0)
        b->of[tensor] = wl__value_add(b, tensor, b->layouts->keep[tensor]);
    return b->of[tensor];
}

static void flush(wl__build *b)
{
    for (size_t i = 0; i < b->n_pending; i++) {
        const wl__op *op = &b->block->op[b->pending[i].op];
        wl_item item = {.kind = WL_COMPUTE, .weight_gradient = true, .op = b->pending[i].op};
        int16_t index;

        wl__item_dep(b, &item, b->pending[i].gradient);
        wl__item_dep(b, &item, b->pending[i].input);
        index = wl__emit(b, &item);
        wl__term_add(b, index, WL__WRITE, 0, 1.0);
        wl__term_add(b, index, WL__READ, 0, 1.0);
        wl__term_add(b, index, WL__GRADIENT, 1, 1.0);
        if (op->n_in > 2) /* the bias gradient sums the same rows */
            wl__term_add(b, index, WL__WRITE, 0, 1.0);
        wl__flops_set(b, index, 1.0, 0.0, WL__GEMM_DW);
    }
    b->n_pending = 0;
}

/* Backward of a linear kernel that the axis does not split hands partial gradients on. */
static wl__layout keep_partial(const wl__build *b, int16_t op, wl__layout from, wl__layout to)
{
    for (size_t a = 0; a < WL__AXES; a++)
        if (op >= 0 && b->block->op[op].kernel->linear && b->plan[op].at->split[a] < 0 &&
            from.at[a] == WL__PARTIAL)
            to.at[a] = WL__PARTIAL;
    return to;
}

/* All consumers have contributed: bring the parts to the tensor's own layout and add them. */
static void finish(wl__build *b, int16_t t, int16_t op)
{
    int16_t sum = -1;
    wl__layout to = b->layouts->whole[t];

    if (b->n_contributions[t] == 1)
        to = keep_partial(b, b->block->tensor[t].producer, b->value[b->contribution[t][0]].layout,
                          to);
    for (size_t i = 0; i < b->n_contributions[t]; i++) {
        const int16_t part = wl__convert(b, b->contribution[t][i], to, op);

        sum = sum < 0 ? part : wl__merge(b, sum, part);
    }
    b->grad[t] = sum;
    flush(b);
}

/* Adds a contribution of operator `op` to the gradient of tensor t; `item` (or -1) computed it and
 * reads what it adds to. */
static void contribute(wl__build *b, int16_t t, int16_t value, int16_t item, int16_t op)
{
    const wl__tensor *tensor = &b->block->tensor[t];
    size_t i = 0;

    if (!tensor->needs_gradient || b->failed)
        return;
    while (i < b->n_contributions[t] &&
           !wl__layout_equal(b->value[b->contribution[t][i]].layout, b->value[value].layout))
        i++;
    if (i == 4) {
        b->failed = true;
        return;
    }
    if (i < b->n_contributions[t]) {
        if (item >= 0)
            wl__tensor_add(b, item, t, b->value[value].layout, 1.0);
        value = wl__merge(b, b->contribution[t][i], value);
    } else {
        b->n_contributions[t]++;
    }
    b->contribution[t][i] = value;
    if (--b->uses[t] == 0)
        finish(b, t, op);
}

static void weights_dep(const wl__build *b, wl_item *item)
{
    if (b->config->sharding == WL_SHARD_WEIGHTS && item->n_deps < WL_MAX_DEPS)
        item->dep[item->n_deps++] = WL_DEP_WEIGHTS;
}

/* Gradient of operand `to` of an einsum: the result's gradient times the other operand. */
static void einsum_operand(wl__build *b, int16_t o, int16_t g, size_t to, int16_t other)
{
    const wl__op *op = &b->block->op[o];
    const wl__plan *plan = &b->plan[o];
    wl_item item = {.kind = WL_COMPUTE, .op = o};
    const wl__layout layout = plan->at->gradient[to];
    int16_t value, index;

    wl__item_dep(b, &item, g);
    wl__item_dep(b, &item, other);
    if (b->block->tensor[op->in[1 - to]].parameter)
        weights_dep(b, &item);
    index = wl__emit(b, &item);
    wl__term_add(b, index, WL__WRITE, 0, 1.0);
    wl__term_add(b, index, WL__READ, (int16_t)(1 - to), 1.0);
    wl__tensor_add(b, index, op->in[to], layout, 1.0);
    wl__flops_set(b, index, 1.0, 0.0, to == 0 ? WL__GEMM_DX : WL__GEMM_FORWARD);
    value = wl__value_add(b, op->in[to], layout);
    wl__value_dep(b, value, index);
    contribute(b, op->in[to], value, index, o);
}

static void einsum_backward(wl__build *b, int16_t o, int16_t g)
{
    const wl__op *op = &b->block->op[o];
    const wl__plan *plan = &b->plan[o];
    const bool weight = b->block->tensor[op->in[1]].parameter;
    const bool data = b->block->tensor[op->in[0]].needs_gradient;
    /* the saved operand is gathered first, beside dX */
    const int16_t x = wl__convert(b, wl__operand(b, op->in[0]), plan->at->need[0], o);

    if (weight) {
        b->pending[b->n_pending].op = o;
        b->pending[b->n_pending].gradient = g;
        b->pending[b->n_pending++].input = x;
        if (data)
            einsum_operand(b, o, g, 0, -1);
        else
            flush(b);
        return;
    }
    if (data)
        einsum_operand(b, o, g, 0, wl__convert(b, wl__operand(b, op->in[1]), plan->at->need[1], o));
    if (b->block->tensor[op->in[1]].needs_gradient)
        einsum_operand(b, o, g, 1, x);
}

/* Residual additions and the like hand the gradient on; an item remains only for dropout masks and
 * the gradients of biases. */
static void pass_through_backward(wl__build *b, int16_t o, int16_t g)
{
    const wl__op *op = &b->block->op[o];
    const bool mask = wl__has_mask(b, op);
    wl_item item = {.kind = WL_COMPUTE, .op = o, .precision = b->bytes.vector};
    int16_t branch = g;

    wl__item_dep(b, &item, g);
    if (mask || op->n_data < op->n_in) {
        const int16_t index = wl__emit(b, &item);

        wl__term_add(b, index, WL__WRITE, 0, 1.0);
        if (mask) {
            wl__term_add(b, index, WL__MASK, 0, 1.0);
            branch = wl__value_add(b, op->out, b->value[g].layout);
            wl__value_dep(b, branch, index);
        }
    }
    for (size_t i = 0; i < op->n_data; i++)
        contribute(b, op->in[i], i == 0 ? g : branch, -1, o);
}

/* Brings what a kernel's backward reads of its saved operands to the layouts it needs. */
static void kernel_inputs(wl__build *b, int16_t o, wl_item *item, int16_t *values)
{
    const wl__op *op = &b->block->op[o];

    for (size_t i = 0; i < op->n_data; i++) {
        wl__layout need = b->plan[o].at->need[i];

        if ((op->kernel->saves >> i & 1) == 0)
            continue;
        values[i] = wl__operand(b, op->in[i]);
        if (wl__rings(b, op) && i > 0)
            need.at[WL_SP] = b->value[values[i]].layout.at[WL_SP];
        values[i] = wl__convert(b, values[i], wl__resolved(need), o);
        wl__item_dep(b, item, values[i]);
    }
}

/* Bytes of a kernel's backward: the result's gradient, what it saved, the gradients it writes. */
static void kernel_bytes(wl__build *b, const wl__op *op, int16_t index)
{
    wl__term_add(b, index, WL__WRITE, 0, 1.0);
    for (size_t i = 0; i < op->n_in; i++) {
        wl__term_add(b, index, WL__READ, (int16_t)i, 1.0);
        if (i < op->n_data && (op->kernel->saves >> i & 1) != 0)
            wl__term_add(b, index, WL__READ, (int16_t)i, 1.0);
        if (i >= op->n_data && !op->kernel->lookup)
            wl__term_add(b, index, WL__GRADIENT, (int16_t)i, 1.0);
    }
}

static void kernel_cost(wl__build *b, const wl__op *op, int16_t index)
{
    double second = 0.0;

    kernel_bytes(b, op, index);
    if (op->kernel->keys && b->config->attention == WL_ATTENTION_GPT2022) {
        wl__term_add(b, index, WL__SCORES, 0, SCORE_BYTES_BACKWARD);
    } else if (op->kernel->keys) {
        wl__term_add(b, index, WL__WRITE, 0, 1.0); /* the saved result */
        second = FLASH_SECOND_SCORES;
    }
    wl__flops_set(b, index, 2.0, second, WL__NO_GEMM);
}

/* All items from `first` on repeat what forward did. */
static void again_mark(wl__build *b, size_t first)
{
    if (b->n_items == first)
        return;
    b->cost[first].again = true;
    b->cost[b->n_items - 1].again_end = true;
}

/* Unfused attention under `selective`: the core runs again before its backward. */
static void core_again(wl__build *b, int16_t o)
{
    const size_t first = b->n_items;

    wl__forward_op(b, (size_t)o);
    again_mark(b, first);
}

static void kernel_backward(wl__build *b, int16_t o, int16_t g)
{
    const wl__op *op = &b->block->op[o];
    const wl__op_layout *at = b->plan[o].at;
    wl_item item = {.kind = WL_COMPUTE, .op = o, .precision = b->bytes.vector};
    int16_t values[WL__MAX_IN] = {-1, -1, -1, -1, -1, -1, -1, -1}, index, ring = -1;

    if (op->kernel->keys && b->config->recompute == WL_RECOMPUTE_SELECTIVE && b->recompute &&
        b->config->attention == WL_ATTENTION_GPT2022)
        core_again(b, o);
    wl__item_dep(b, &item, g);
    kernel_inputs(b, o, &item, values);
    if (op->n_data < op->n_in)
        weights_dep(b, &item);
    if (wl__rings(b, op))
        ring = wl__ring_emit(b, op, WL_ALL_GATHER, values);
    item.weight_gradient = op->n_data == 0;
    index = wl__emit(b, &item);
    kernel_cost(b, op, index);
    if (ring >= 0) /* dK and dV travel the ring as well */
        ring = wl__ring_emit(b, op, WL_REDUCE_SCATTER, values);
    for (size_t i = 0; i < op->n_data; i++) {
        wl__layout layout = at->gradient[i];
        int16_t value;

        layout = keep_partial(b, o, b->value[g].layout, layout);
        if (ring >= 0 && i > 0)
            layout.at[WL_SP] = b->layouts->home[op->in[i]].at[WL_SP];
        value = wl__value_add(b, op->in[i], layout);
        wl__value_dep(b, value, index);
        if (ring >= 0 && i > 0)
            wl__value_dep(b, value, ring);
        contribute(b, op->in[i], value, index, o);
    }
}

static void loss_backward(wl__build *b, int16_t o)
{
    const wl__op *op = &b->block->op[o];
    wl_item item = {.kind = WL_COMPUTE, .op = o, .precision = b->bytes.vector};
    int16_t value, index;

    item.dep[item.n_deps++] = WL_DEP_INPUT;
    wl__item_dep(b, &item, wl__operand(b, op->in[0]));
    index = wl__emit(b, &item);
    wl__term_add(b, index, WL__READ, 0, 2.0);
    value = wl__value_add(b, op->in[0], b->plan[o].at->need[0]);
    wl__value_dep(b, value, index);
    contribute(b, op->in[0], value, index, o);
}

static void op_backward(wl__build *b, int16_t o)
{
    const wl__op *op = &b->block->op[o];
    int16_t g;

    if (op->kernel->loss) {
        loss_backward(b, o);
        return;
    }
    if (op->out < 0 || b->grad[op->out] < 0)
        return;
    g = b->grad[op->out];
    g = wl__convert(b, g, keep_partial(b, o, b->value[g].layout, wl__resolved(b->plan[o].at->out)),
                    o);
    if (op->kernel == &wl__einsum)
        einsum_backward(b, o, g);
    else if (op->kernel->pass_through)
        pass_through_backward(b, o, g);
    else
        kernel_backward(b, o, g);
}

/* Partial sums that no consumer resolves stay as they are. */
static wl__layout keep_partial_of(const wl__build *b, int16_t value, wl__layout to)
{
    const int16_t t = b->value[value].tensor;

    for (size_t a = 0; a < WL__AXES; a++)
        if (b->layouts->home[t].at[a] == WL__PARTIAL)
            to.at[a] = WL__PARTIAL;
    return to;
}

/* Forward once more from the saved input; what it computes is at hand for the backward items, but
 * its gathers are dropped (a gather is shared within one pass). */
static void recompute_all(wl__build *b)
{
    for (size_t t = 0; t < b->block->n_tensors; t++)
        if (!b->block->tensor[t].parameter && b->block->tensor[t].producer < 0)
            b->of[t] = wl__value_add(b, (int16_t)t, b->layouts->home[t]);
    for (size_t o = 0; o < b->block->n_ops; o++)
        wl__forward_op(b, o);
    for (size_t t = 0; t < b->block->n_tensors; t++) {
        int16_t old = b->of[t];

        if (old < 0)
            continue;
        if (b->wanted[t]) /* the conversions its consumers made */
            old =
                wl__convert(b, wl__convert(b, old, keep_partial_of(b, old, b->layouts->home[t]), 0),
                            keep_partial_of(b, old, b->layouts->keep[t]), 0);
        b->of[t] = wl__value_add(b, (int16_t)t, b->layouts->keep[t]);
        for (size_t i = 0; i < b->value[old].n_deps; i++)
            wl__value_dep(b, b->of[t], b->value[old].dep[i]);
    }
    again_mark(b, 0);
}

/* Uses through which a gradient will come: operands of operators whose result has one. */
static void uses_count(wl__build *b)
{
    for (size_t t = 0; t < b->block->n_tensors; t++)
        b->uses[t] = 0;
    for (size_t o = b->block->n_ops; o-- > 0;) {
        const wl__op *op = &b->block->op[o];
        const bool live = op->kernel->loss ||
                          (op->out >= 0 && (op->out == b->block->output || b->uses[op->out] > 0));

        for (size_t i = 0; live && i < op->n_data; i++)
            b->uses[op->in[i]]++;
    }
    if (b->block->output >= 0)
        b->uses[b->block->output]++;
}

static wl__layout stream_of(const wl__build *b, int16_t t)
{
    wl__layout layout = b->layouts->stream;

    for (size_t a = 0; a < WL__AXES; a++)
        if (layout.at[a] >= 0 && (b->block->tensor[t].mask >> layout.at[a] & 1) == 0)
            layout.at[a] = WL__WHOLE;
    return layout;
}

static void incoming(wl__build *b)
{
    const int16_t t = b->block->output;
    int16_t value;

    if (t < 0)
        return;
    value = wl__value_add(b, t, stream_of(b, t));
    wl__value_dep(b, value, WL_DEP_INPUT);
    contribute(b, t, value, -1, b->block->tensor[t].producer);
}

wl__outline wl__backward_outline(wl__build *b)
{
    int16_t output = -1;

    wl__pass_begin(b);
    if (b->recompute && b->config->recompute == WL_RECOMPUTE_FULL)
        recompute_all(b);
    uses_count(b);
    incoming(b);
    for (size_t o = b->block->n_ops; o-- > 0 && !b->failed;)
        op_backward(b, (int16_t)o);
    flush(b);
    if (b->block->input >= 0 && b->grad[b->block->input] >= 0)
        output = wl__convert(b, b->grad[b->block->input], stream_of(b, b->block->input), 0);
    return wl__pass_outline(b, output);
}

void wl__backward(wl__build *b, wl_pass *plain, wl_pass *last)
{
    const wl__outline outline = wl__outline_get(b, WL__BACKWARD);
    const bool every = b->config->sharding >= WL_SHARD_GRADIENTS;

    wl__evaluate(b, &outline);
    if (every)
        wl__reductions(b);
    *plain = *last = wl__pass_end(b, outline.output);
    if (!every) {
        wl__reductions(b);
        *last = wl__pass_end(b, outline.output);
    }
}
