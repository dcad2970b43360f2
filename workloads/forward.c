/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Forward pass of a block: one item an operator, with the collectives its operands need. */
#include "workloads/workload_private.h"

/* Bytes a score element costs unfused attention (gpt-2022): written by Q*K, read and written by
 * softmax and dropout with its 1-byte mask, read by the product with V. */
#define SCORE_BYTES_FORWARD 13.0

static double local(const wl__build *b, const wl__plan *plan, uint8_t dim)
{
    double n = b->size[dim];

    for (size_t a = 0; a < WL__AXES; a++)
        if (plan->split[a] == (int8_t)dim)
            n /= wl__factor(b, a, (int8_t)dim);
    return n;
}

/* GEMM shape on one NPU: rows, columns, contraction; dimensions in all three are a batch. */
void wl__gemm_shape(const wl__build *b, const wl__op *op, const wl__plan *plan, wl_item *item)
{
    const uint64_t x = b->block->tensor[op->in[0]].mask, w = b->block->tensor[op->in[1]].mask;
    const uint64_t y = b->block->tensor[op->out].mask;

    item->m = item->n = item->k = 1.0;
    for (size_t l = 0; l < op->n_loops; l++) {
        const uint64_t bit = UINT64_C(1) << op->loop[l];
        const double n = local(b, plan, op->loop[l]);

        if ((y & bit) == 0)
            item->k *= n;
        else if ((x & bit) == 0)
            item->n *= n;
        else if ((w & bit) == 0)
            item->m *= n;
    }
}

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
        n += wl__elements(b, &b->block->tensor[op->cache[i]], b->home[op->cache[i]]);
    return n * b->keys / b->cache_parts * b->bytes.activation;
}

double wl__operand_bytes(const wl__build *b, const wl__op *op, const wl__plan *plan, size_t i)
{
    const wl__tensor *tensor = &b->block->tensor[op->in[i]];
    const double n = wl__elements(b, tensor, plan->need[i]);

    if (op->kernel->keys && i > 0 && b->workload->mode == WL_DECODE)
        return i == 1 ? cache_bytes(b, op) : 0.0;
    if (tensor->parameter) /* experts without a token are not read */
        return op->kernel->lookup
                   ? 0.0
                   : n * b->bytes.weight * (op->class == WL__CLASS_EXPERT ? b->touched : 1.0);
    if (tensor->fp32)
        return n * 4.0;
    return n * (op->kernel == &wl__einsum ? b->bytes.gemm : b->bytes.activation);
}

double wl__result_bytes(const wl__build *b, const wl__op *op, const wl__plan *plan)
{
    const wl__tensor *tensor;

    if (op->out < 0)
        return 0.0;
    tensor = &b->block->tensor[op->out];
    /* a lookup reads as many rows as it writes */
    return wl__elements(b, tensor, plan->out) * wl__element_bytes(b, tensor) *
           (op->kernel->lookup ? 2.0 : 1.0);
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
        item.bytes += wl__operand_bytes(b, op, plan, i);
        wl__item_dep(b, &item, values[i]);
    }
    return wl__emit(b, &item);
}

/* Converts one operand; partial sums that an addition joins are added before they are reduced. */
static int16_t operand_convert(wl__build *b, const wl__op *op, const wl__plan *plan, size_t i,
                               bool *merged)
{
    int16_t value = wl__operand(b, op->in[i]);
    wl__layout need = plan->need[i], home = b->home[op->in[i]];

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
    const wl__tensor *x = &b->block->tensor[op->in[0]];

    for (size_t a = 0; a < WL__AXES; a++) {
        const int8_t dim = plan->split[a];
        wl_item item = {.kind = WL_COMM,
                        .collective = WL_ALL_REDUCE,
                        .group = WL_GROUP(a),
                        .axis = (uint8_t)a,
                        .op = (int16_t)(op - b->block->op)};

        if (dim < 0 || b->model->dim[dim].role != op->kernel->inner_role)
            continue;
        item.bytes = 4.0 * op->kernel->inner_floats * wl__elements(b, x, plan->need[0]) /
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
    item.bytes = 4.0 * wl__elements(b, &b->block->tensor[op->out], plan->out);
    wl__item_dep(b, &item, result);
    wl__value_dep(b, result, wl__emit(b, &item));
}

static int16_t result_value(wl__build *b, const wl__op *op, const wl__plan *plan, int16_t item)
{
    const wl__layout whole = {{WL__WHOLE, WL__WHOLE, WL__WHOLE, WL__WHOLE}};
    const int16_t value =
        op->out >= 0 ? wl__value_add(b, op->out, plan->out) : wl__value_add(b, op->in[0], whole);

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
        item.memory_bytes += wl__operand_bytes(b, op, plan, i);
        if (i < op->n_data && !merged[i]) {
            values[i] = operand_convert(b, op, plan, i, merged);
            wl__item_dep(b, &item, values[i]);
        }
    }
    if (op->n_data < op->n_in && b->config->sharding == WL_SHARD_WEIGHTS)
        item.dep[item.n_deps < WL_MAX_DEPS ? item.n_deps++ : WL_MAX_DEPS - 1] = WL_DEP_WEIGHTS;
    item.memory_bytes += wl__result_bytes(b, op, plan);
    if (op->kernel->keys && b->config->attention == WL_ATTENTION_GPT2022)
        item.memory_bytes += SCORE_BYTES_FORWARD * wl__scores(b, op, plan);
    if (op->kernel == &wl__einsum)
        wl__gemm_shape(b, op, plan, &item);
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
        if (!wl__layout_equal(plan->out, b->home[op->out]) && o + 1 == b->block->n_ops)
            b->of[op->out] = wl__convert(b, result, b->home[op->out], (int16_t)o);
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
            b->of[t] = wl__value_add(b, (int16_t)t, b->home[t]);
            wl__value_dep(b, b->of[t], WL_DEP_INPUT);
        }
    for (size_t o = 0; o < b->block->n_ops; o++)
        wl__forward_op(b, o);
    output = b->loss;
    if (b->block->output >= 0) {
        wl__layout stream = b->stream;
        const wl__tensor *tensor = &b->block->tensor[b->block->output];

        for (size_t a = 0; a < WL__AXES; a++)
            if (stream.at[a] >= 0 && (tensor->mask >> stream.at[a] & 1) == 0)
                stream.at[a] = WL__WHOLE;
        output = wl__convert(b, b->of[b->block->output], stream,
                             b->block->tensor[b->block->output].producer);
    }
    return wl__pass_end(b, output);
}
