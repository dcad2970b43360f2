/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Forward pass of a block: one item an operator, with the collectives its operands need. */
#include "workloads/build_private.h"

/* Bytes a score element costs unfused attention (gpt-2022): written by Q*K, read and written by
 * softmax and dropout with its 1-byte mask, read by the product with V. */
#define SCORE_BYTES_FORWARD 13.0

bool wl__rings(const wl__build *b, const wl__op *op)
{
    return op->kernel->keys && b->ring && b->axis[WL_SP] > 1;
}

/* The ring exchange of K and V (or of their gradients): n-1 steps beside attention, the bytes of a
 * gather. */
int16_t wl__ring_emit(wl__build *b, const wl__op *op, wl_collective type, const int16_t *values)
{
    wl_item item = {.kind = WL_COMM,
                    .collective = (uint8_t)type,
                    .group = WL_GROUP(WL_SP),
                    .axis = WL_SP,
                    .overlapped = true,
                    .precision = b->bytes.arithmetic,
                    .op = (int16_t)(op - b->block->op)};
    int16_t index;

    for (size_t i = 1; i < op->n_data; i++)
        wl__item_dep(b, &item, values[i]);
    index = wl__emit(b, &item);
    for (size_t i = 1; i < op->n_data; i++)
        wl__term_add(b, index, WL__READ, (int16_t)i, 1.0);
    return index;
}

/* Converts one operand; partial sums that an addition joins are added before they are reduced. */
static int16_t operand_convert(wl__build *b, const wl__op *op, const wl__plan *plan, size_t i,
                               bool *merged)
{
    int16_t value = wl__operand(b, op->in[i]);
    wl__layout need = plan->at->need[i], home = b->layouts->home[op->in[i]];

    if (wl__rings(b, op) && i > 0)
        need.at[WL_SP] = b->value[value].layout.at[WL_SP];
    if (op->kernel->linear && op->kernel->pass_through) {
        for (size_t j = i + 1; j < op->n_data; j++) {
            const int16_t other = wl__operand(b, op->in[j]);

            if (!merged[j] && !wl__layout_equal(b->value[value].layout, need) &&
                wl__layout_equal(b->value[value].layout, b->value[other].layout)) {
                value = wl__merge(b, value, other);
                merged[j] = true;
            }
        }
    }
    /* a partial sum is resolved once, in the layout its first consumer needs */
    for (size_t a = 0; a < WL__AXES; a++)
        if (b->value[value].layout.at[a] != WL__PARTIAL)
            home.at[a] = b->value[value].layout.at[a];
    value = wl__convert(b, value, home, (int16_t)(op - b->block->op));
    return wl__convert(b, value, need, (int16_t)(op - b->block->op));
}

/* All-reduce behind a kernel's result, of `times` the quantity. */
static void result_reduce(wl__build *b, const wl__op *op, size_t axis, wl__quantity what,
                          double times, int16_t result)
{
    wl_item item = {.kind = WL_COMM,
                    .collective = WL_ALL_REDUCE,
                    .group = WL_GROUP(axis),
                    .axis = (uint8_t)axis,
                    .op = (int16_t)(op - b->block->op)};
    int16_t index;

    wl__item_dep(b, &item, result);
    index = wl__emit(b, &item);
    wl__term_add(b, index, what, (int16_t)axis, times);
    wl__value_dep(b, result, index);
}

/* Collectives inside a kernel: statistics where its reduced dimension is split, never the tensor;
 * in decoding, results and statistics over a cache cut along its sequence. */
static void inner_collectives(wl__build *b, const wl__op *op, const wl__plan *plan, int16_t result)
{
    for (size_t a = 0; a < WL__AXES && op->kernel->inner_role != WL__N_ROLES; a++) {
        const int8_t dim = plan->at->split[a];

        if (dim >= 0 && b->model->dim[dim].role == op->kernel->inner_role)
            result_reduce(b, op, a, WL__INNER, 1.0, result);
    }
    if (op->kernel->keys && b->cache_parts > 1.0)
        result_reduce(b, op, WL_SP, WL__RESULT, 4.0, result);
}

static int16_t result_value(wl__build *b, const wl__op *op, const wl__plan *plan, int16_t item)
{
    const wl__layout whole = {{WL__WHOLE, WL__WHOLE, WL__WHOLE, WL__WHOLE}};
    const int16_t value = op->out >= 0 ? wl__value_add(b, op->out, plan->at->out)
                                       : wl__value_add(b, op->in[0], whole);

    wl__value_dep(b, value, item);
    return value;
}

static int16_t compute_emit(wl__build *b, const wl__op *op, const wl_item *item)
{
    const int16_t index = wl__emit(b, item);

    for (size_t i = 0; i < op->n_in; i++)
        wl__term_add(b, index, WL__READ, (int16_t)i, 1.0);
    wl__term_add(b, index, WL__WRITE, 0, 1.0);
    if (op->kernel->keys && b->config->attention == WL_ATTENTION_GPT2022)
        wl__term_add(b, index, WL__SCORES, 0, SCORE_BYTES_FORWARD);
    wl__flops_set(b, index, 1.0, 0.0, op->kernel == &wl__einsum ? WL__GEMM_FORWARD : WL__NO_GEMM);
    return index;
}

void wl__forward_op(wl__build *b, size_t o)
{
    const wl__op *op = &b->block->op[o];
    const wl__plan *plan = &b->plan[o];
    bool merged[WL__MAX_IN] = {false};
    int16_t values[WL__MAX_IN] = {-1, -1, -1, -1, -1, -1, -1, -1}, ring = -1, result;
    wl_item item = {.kind = WL_COMPUTE, .op = (int16_t)o, .axis = WL_TP};

    for (size_t i = 0; i < op->n_data; i++)
        if (!merged[i]) {
            values[i] = operand_convert(b, op, plan, i, merged);
            wl__item_dep(b, &item, values[i]);
        }
    if (op->n_data < op->n_in && b->config->sharding == WL_SHARD_WEIGHTS)
        item.dep[item.n_deps < WL_MAX_DEPS ? item.n_deps++ : WL_MAX_DEPS - 1] = WL_DEP_WEIGHTS;
    if (wl__rings(b, op))
        ring = wl__ring_emit(b, op, WL_ALL_GATHER, values);
    result = result_value(b, op, plan, compute_emit(b, op, &item));
    if (ring >= 0)
        wl__value_dep(b, result, ring);
    inner_collectives(b, op, plan, result);
    if (op->out < 0) {
        b->loss = result;
        return;
    }
    b->of[op->out] = result;
    /* a partial sum is kept as its first consumer resolves it */
    if (!wl__layout_equal(plan->at->out, b->layouts->home[op->out]) && o + 1 == b->block->n_ops)
        b->of[op->out] = wl__convert(b, result, b->layouts->home[op->out], (int16_t)o);
}

wl__outline wl__forward_outline(wl__build *b)
{
    int16_t output;

    wl__pass_begin(b);
    for (size_t t = 0; t < b->block->n_tensors; t++)
        if (!b->block->tensor[t].parameter && b->block->tensor[t].producer < 0) {
            b->of[t] = wl__value_add(b, (int16_t)t, b->layouts->home[t]);
            wl__value_dep(b, b->of[t], WL_DEP_INPUT);
        }
    for (size_t o = 0; o < b->block->n_ops; o++)
        wl__forward_op(b, o);
    output = b->loss;
    if (b->block->output >= 0) {
        wl__layout stream = b->layouts->stream;
        const wl__tensor *tensor = &b->block->tensor[b->block->output];

        for (size_t a = 0; a < WL__AXES; a++)
            if (stream.at[a] >= 0 && (tensor->mask >> stream.at[a] & 1) == 0)
                stream.at[a] = WL__WHOLE;
        output = wl__convert(b, b->of[b->block->output], stream,
                             b->block->tensor[b->block->output].producer);
    }
    return wl__pass_outline(b, output);
}

wl_pass wl__forward(wl__build *b)
{
    const wl__outline outline = wl__outline_get(b, WL__FORWARD);

    wl__evaluate(b, &outline);
    return wl__pass_end(b, outline.output);
}
