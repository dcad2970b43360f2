/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Forward pass of a block: one item an operator, with the collectives its operands need. */
#include "workloads/workload_private.h"

/* Bytes a score element costs unfused attention (gpt-2022): written by Q*K, read and written by
 * softmax and dropout with its 1-byte mask, read by the product with V. */
#define SCORE_BYTES_FORWARD 13.0

void wl__item_flops(wl__build *b, const wl__op *op, double times, double second, wl_item *item)
{
    const wl__plan *plan = &b->plan[op - b->block->op];
    const bool half = op->kernel->keys && op->causal && b->workload->mode != WL_DECODE;
    const double share = (half ? 0.5 : 1.0) * (times + second);
    double flops = share * plan->flops / plan->divisor, all;

    if (op->kernel->keys)
        flops /= b->cache_parts;
    all = flops * b->npus;
    if (op->class == WL__CLASS_EXPERT)
        all /= b->imbalance;
    b->hardware += all;
    b->exact_done += share * plan->exact;
    b->redundant += all - share * plan->exact;
    b->flash += (half ? 0.5 : 1.0) * second * plan->exact;
    /* A contiguous cut leaves the last rank (2n-1)/n of the mean causal work. */
    if (half && b->axis[WL_SP] > 1 && b->config->cp_balanced == 0)
        flops *= 2.0 - 1.0 / (double)b->axis[WL_SP];
    item->flops = flops;
    item->precision = op->kernel == &wl__einsum ? b->bytes.arithmetic : b->bytes.vector;
}

bool wl__rings(const wl__build *b, const wl__op *op)
{
    return op->kernel->keys && b->ring && b->axis[WL_SP] > 1;
}

/* The ring exchange of K and V (or of their gradients): n-1 steps beside attention, the bytes of a
 * gather. */
int16_t wl__ring_emit(wl__build *b, const wl__op *op, const wl__plan *plan, wl_collective type,
                      const int16_t *values)
{
    wl_item item = {.kind = WL_COMM,
                    .collective = (uint8_t)type,
                    .group = WL_GROUP(WL_SP),
                    .axis = WL_SP,
                    .overlapped = true,
                    .precision = b->bytes.arithmetic,
                    .op = (int16_t)(op - b->block->op)};

    for (size_t i = 1; i < op->n_data; i++) {
        item.bytes += plan->bytes[i];
        wl__item_dep(b, &item, values[i]);
    }
    return wl__emit(b, &item);
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

/* All-reduce inside a kernel whose reduced dimension is split (statistics, never the tensor). */
static void inner_collective(wl__build *b, const wl__op *op, const wl__plan *plan, int16_t result)
{
    for (size_t a = 0; a < WL__AXES; a++) {
        const int8_t dim = plan->at->split[a];
        wl_item item = {.kind = WL_COMM,
                        .collective = WL_ALL_REDUCE,
                        .group = WL_GROUP(a),
                        .axis = (uint8_t)a,
                        .op = (int16_t)(op - b->block->op)};

        if (dim < 0 || b->model->dim[dim].role != op->kernel->inner_role)
            continue;
        item.bytes = 4.0 * op->kernel->inner_floats * plan->elements[0] /
                     (b->size[dim] / wl__factor(b, a, dim));
        if (op->kernel->inner_role == WL__SEQUENCE) { /* the state carried along the sequence */
            const wl__tensor *state = &b->block->tensor[op->in[op->n_data - 1]];

            item.bytes *= b->size[state->dim[state->rank - 1]];
        }
        wl__item_dep(b, &item, result);
        wl__value_dep(b, result, wl__emit(b, &item));
    }
}

/* Decoding over a cache cut along its sequence: results and statistics are combined. */
static void combine_cache(wl__build *b, const wl__op *op, const wl__plan *plan, int16_t result)
{
    wl_item item = {.kind = WL_COMM,
                    .collective = WL_ALL_REDUCE,
                    .group = WL_GROUP(WL_SP),
                    .axis = WL_SP,
                    .op = (int16_t)(op - b->block->op)};

    if (!op->kernel->keys || b->cache_parts <= 1.0)
        return;
    item.bytes = 4.0 * plan->out_elements;
    wl__item_dep(b, &item, result);
    wl__value_dep(b, result, wl__emit(b, &item));
}

static int16_t result_value(wl__build *b, const wl__op *op, const wl__plan *plan, int16_t item)
{
    const wl__layout whole = {{WL__WHOLE, WL__WHOLE, WL__WHOLE, WL__WHOLE}};
    const int16_t value = op->out >= 0 ? wl__value_add(b, op->out, plan->at->out)
                                       : wl__value_add(b, op->in[0], whole);

    wl__value_dep(b, value, item);
    return value;
}

void wl__forward_op(wl__build *b, size_t o)
{
    const wl__op *op = &b->block->op[o];
    const wl__plan *plan = &b->plan[o];
    bool merged[WL__MAX_IN] = {false};
    int16_t values[WL__MAX_IN] = {-1, -1, -1, -1, -1, -1, -1, -1}, ring = -1, result;
    wl_item item = {.kind = WL_COMPUTE, .op = (int16_t)o, .axis = WL_TP};

    for (size_t i = 0; i < op->n_in; i++) {
        item.memory_bytes += plan->bytes[i];
        if (i < op->n_data && !merged[i]) {
            values[i] = operand_convert(b, op, plan, i, merged);
            wl__item_dep(b, &item, values[i]);
        }
    }
    if (op->n_data < op->n_in && b->config->sharding == WL_SHARD_WEIGHTS)
        item.dep[item.n_deps < WL_MAX_DEPS ? item.n_deps++ : WL_MAX_DEPS - 1] = WL_DEP_WEIGHTS;
    item.memory_bytes += plan->out_bytes;
    if (op->kernel->keys && b->config->attention == WL_ATTENTION_GPT2022)
        item.memory_bytes += SCORE_BYTES_FORWARD * wl__scores(b, op, plan);
    if (op->kernel == &wl__einsum) {
        item.m = plan->m;
        item.n = plan->n;
        item.k = plan->k;
    }
    wl__item_flops(b, op, 1.0, 0.0, &item);
    if (wl__rings(b, op))
        ring = wl__ring_emit(b, op, plan, WL_ALL_GATHER, values);
    result = result_value(b, op, plan, wl__emit(b, &item));
    if (ring >= 0)
        wl__value_dep(b, result, ring);
    if (op->kernel->inner_role != WL__N_ROLES)
        inner_collective(b, op, plan, result);
    combine_cache(b, op, plan, result);
    if (op->out >= 0) {
        b->of[op->out] = result;
        /* a partial sum is kept as its first consumer resolves it */
        if (!wl__layout_equal(plan->at->out, b->layouts->home[op->out]) && o + 1 == b->block->n_ops)
            b->of[op->out] = wl__convert(b, result, b->layouts->home[op->out], (int16_t)o);
    } else {
        b->loss = result;
    }
}

wl_pass wl__forward(wl__build *b)
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
    return wl__pass_end(b, output);
}
