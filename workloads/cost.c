/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Numbers of a pass: its outline says in terms of which quantities, the plans of the operators give
 * their values under a split. */
#include "workloads/build_private.h"

static void term_link(wl__build *b, int16_t item, const wl__term *term)
{
    wl__cost *cost;
    const int16_t index = (int16_t)b->n_terms;

    if (item < 0 || b->n_terms == WL__MAX_TERMS) {
        b->failed = true;
        return;
    }
    cost = &b->cost[item];
    b->term[b->n_terms++] = *term;
    if (cost->first < 0)
        cost->first = index;
    else
        b->term[cost->last].next = index;
    cost->last = index;
}

void wl__term_add(wl__build *b, int16_t item, wl__quantity what, int16_t at, double times)
{
    const wl__term term = {.times = times, .at = at, .next = -1, .what = (uint8_t)what};

    term_link(b, item, &term);
}

void wl__tensor_add(wl__build *b, int16_t item, int16_t tensor, wl__layout layout, double times)
{
    const wl__term term = {
        .times = times, .layout = layout, .at = tensor, .next = -1, .what = WL__TENSOR};

    term_link(b, item, &term);
}

void wl__flops_set(wl__build *b, int16_t item, double times, double second, wl__gemm_kind gemm)
{
    if (item < 0)
        return;
    b->cost[item].times = times;
    b->cost[item].second = second;
    b->cost[item].gemm = (uint8_t)gemm;
    b->item[item].precision = b->block->op[b->cost[item].op].kernel == &wl__einsum
                                  ? b->bytes.arithmetic
                                  : b->bytes.vector;
}

/* Statistics of the reduced dimension: fp32 numbers per element of the operand without it. */
static double inner_bytes(const wl__build *b, const wl__op *op, const wl__plan *plan, size_t axis)
{
    const int8_t dim = plan->at->split[axis];
    double bytes = 4.0 * op->kernel->inner_floats * plan->elements[0] /
                   (b->size[dim] / wl__factor(b, axis, dim));

    if (op->kernel->inner_role == WL__SEQUENCE) { /* the state carried along the sequence */
        const wl__tensor *state = &b->block->tensor[op->in[op->n_data - 1]];

        bytes *= b->size[state->dim[state->rank - 1]];
    }
    return bytes;
}

static double quantity(const wl__build *b, const wl__op *op, const wl__plan *plan,
                       const wl__term *term)
{
    switch ((wl__quantity)term->what) {
    case WL__READ:
        return plan->bytes[term->at];
    case WL__WRITE:
        return plan->out_bytes;
    case WL__MASK:
        return plan->out_bytes + plan->out_elements;
    case WL__RESULT:
        return plan->out_elements;
    case WL__SCORES:
        return wl__scores(b, op, plan);
    case WL__GRADIENT:
        return plan->elements[term->at] * b->bytes.gradient;
    case WL__TENSOR:
        return wl__elements(b, term->at, term->layout) * wl__element_bytes(b, term->at);
    case WL__INNER:
        return inner_bytes(b, op, plan, (size_t)term->at);
    case WL__N_QUANTITIES:
        break;
    }
    return 0.0;
}

/* FLOPs of an item on one NPU; adds those of all NPUs to the totals of the pass. */
static double item_flops(wl__build *b, const wl__op *op, const wl__plan *plan, const wl__cost *cost)
{
    const bool half = op->kernel->keys && op->causal && b->workload->mode != WL_DECODE;
    const double share = (half ? 0.5 : 1.0) * (cost->times + cost->second);
    double flops = share * plan->flops / plan->divisor, all;

    if (op->kernel->keys)
        flops /= b->cache_parts;
    all = flops * b->npus;
    if (op->class == WL__CLASS_EXPERT)
        all /= b->imbalance;
    b->hardware += all;
    b->exact_done += share * plan->exact;
    b->redundant += all - share * plan->exact;
    b->flash += (half ? 0.5 : 1.0) * cost->second * plan->exact;
    /* A contiguous cut leaves the last rank (2n-1)/n of the mean causal work. */
    if (half && b->axis[WL_SP] > 1 && b->config->cp_balanced == 0)
        flops *= 2.0 - 1.0 / (double)b->axis[WL_SP];
    return flops;
}

static void gemm_set(const wl__plan *plan, uint8_t kind, wl_item *item)
{
    item->m = kind == WL__GEMM_DW ? plan->k : plan->m;
    item->n = kind == WL__GEMM_DX ? plan->k : plan->n;
    item->k = kind == WL__GEMM_DX ? plan->n : kind == WL__GEMM_DW ? plan->m : plan->k;
}

static void item_evaluate(wl__build *b, const wl__outline *outline, size_t i)
{
    const wl__cost *cost = &outline->cost[i];
    const wl__op *op = &b->block->op[cost->op];
    const wl__plan *plan = &b->plan[cost->op];
    wl_item *item = &b->item[i];
    double bytes = 0.0;

    for (int16_t t = cost->first; t >= 0; t = outline->term[t].next)
        bytes += outline->term[t].times * quantity(b, op, plan, &outline->term[t]);
    if (item->kind == WL_COMM) {
        item->bytes = bytes;
        return;
    }
    item->memory_bytes = bytes;
    if (cost->times > 0.0)
        item->flops = item_flops(b, op, plan, cost);
    if (cost->gemm != WL__NO_GEMM)
        gemm_set(plan, cost->gemm, item);
}

void wl__evaluate(wl__build *b, const wl__outline *outline)
{
    double before = 0.0;

    if (b->item != outline->item)
        memcpy(b->item, outline->item, outline->n * sizeof *b->item);
    b->n_items = outline->n;
    b->hardware = b->exact_done = b->redundant = b->flash = b->again = 0.0;
    for (size_t i = 0; i < outline->n; i++) {
        if (outline->cost[i].again)
            before = b->exact_done;
        item_evaluate(b, outline, i);
        if (outline->cost[i].again_end)
            b->again += b->exact_done - before;
    }
}
