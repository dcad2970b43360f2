/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Parameters of a block on one NPU and the reductions of their gradients: one bucket a block for
 * dense and one for expert parameters (Rajbhandari et al. 2020 for the sharded forms). */
#include "workloads/build_private.h"

#include <math.h>

/* Whether the gradient of a parameter is a partial sum over tp: the axis splits a loop dimension
 * that the parameter lacks.  A bias is added to the reduced result, so it counts only where the
 * result itself is split. */
static bool partial_over_tp(const wl__plan *plan, const wl__op *op, size_t i)
{
    if (plan->at->split[WL_TP] < 0 || plan->at->need[i].at[WL_TP] >= 0)
        return false;
    return !(op->kernel == &wl__einsum && i == 2) || plan->at->out.at[WL_TP] >= 0;
}

static void parameter_add(wl__build *b, int16_t t, wl__parameters *out)
{
    const wl__tensor *tensor = &b->block->tensor[t];
    const wl__op *op = &b->block->op[tensor->first_use];
    const wl__plan *plan = &b->plan[tensor->first_use];
    const size_t i = tensor->position;
    const double n = plan->elements[i];
    const int8_t cut = plan->at->need[i].at[WL_TP];
    double exact = n;
    const bool expert = op->class == WL__CLASS_EXPERT && b->axis[WL_EP] > 1 &&
                        (tensor->mask & b->model->of_role[WL__EXPERTS]) != 0;
    const wl__bucket bucket = expert ? WL__EXPERT : WL__DENSE;

    for (size_t d = 0; (tensor->mask & b->padded) != 0 && d < tensor->rank; d++)
        exact *= b->exact[tensor->dim[d]] / b->size[tensor->dim[d]];
    out->used[bucket] += n;
    if (tensor->tie_block >= 0 && b->config->pp == 1)
        return; /* lives in its own block of the same stage */
    out->local[bucket] += n;
    out->padded[bucket] += n - exact;
    if (tensor->tied)
        out->tied += n;
    if (partial_over_tp(plan, op, i))
        out->over_tp += n;
    if (cut >= 0 && wl__factor(b, WL_TP, cut) < (double)b->axis[WL_TP]) {
        out->over_replicas += n;
        out->replicas = (int32_t)((double)b->axis[WL_TP] / wl__factor(b, WL_TP, cut));
    }
}

void wl__parameters_of(wl__build *b, wl__parameters *out)
{
    *out = (wl__parameters){0};
    for (size_t t = 0; t < b->block->n_tensors; t++)
        if (b->block->tensor[t].parameter)
            parameter_add(b, (int16_t)t, out);
}

wl_group wl__bucket_group(wl__bucket bucket)
{
    return bucket == WL__DENSE ? (wl_group)(WL_GROUP_DATA | WL_GROUP(WL_SP))
                               : (wl_group)(WL_GROUP(WL_DP) | WL_GROUP(WL_SP));
}

double wl__bucket_size(const wl__build *b, wl__bucket bucket)
{
    const double outer = (double)b->config->dp / (double)b->axis[WL_EP] * (double)b->config->sp;

    return bucket == WL__DENSE ? outer * (double)b->axis[WL_EP] : outer;
}

/* Hybrid sharding: state is cut over this many members and replicated across the rest. */
double wl__shard_size(const wl__build *b, wl__bucket bucket)
{
    const double members = wl__bucket_size(b, bucket), wish = (double)b->config->hsdp_shard;

    if (wish <= 0.0 || wish >= members)
        return members;
    return fmod(members, wish) == 0.0 ? wish : members;
}

double wl__flat(double elements, double parts)
{
    return ceil(elements / parts) * parts;
}

static void reduction(wl__build *b, wl_item item, double bytes, int16_t after)
{
    if (bytes <= 0.0)
        return;
    item.kind = WL_COMM;
    item.background = true;
    item.bytes = bytes;
    item.op = WL__OP_GRADIENTS;
    if (after >= 0)
        item.dep[item.n_deps++] = after;
    wl__emit(b, &item);
}

static void bucket_reduce(wl__build *b, wl__bucket bucket, int16_t after)
{
    const double members = wl__bucket_size(b, bucket), shard = wl__shard_size(b, bucket);
    const bool sharded = b->config->sharding != WL_SHARD_NONE;
    const double n = b->parameters.local[bucket];
    wl_item item = {.group = wl__bucket_group(bucket), .axis = WL_DP};

    if (members <= 1.0)
        return;
    if (!sharded) {
        item.collective = WL_ALL_REDUCE;
        reduction(b, item, n * b->bytes.gradient, after);
        return;
    }
    item.collective = WL_REDUCE_SCATTER;
    if (shard < members) {
        item.part = (int32_t)shard;
        item.part_stride = 1;
    }
    if (shard > 1.0)
        reduction(b, item, wl__flat(n, shard) * b->bytes.gradient, after);
    if (shard < members) {
        if (shard > 1.0 && b->n_items > 0)
            after = (int16_t)(b->n_items - 1);
        item.collective = WL_ALL_REDUCE;
        item.part = (int32_t)(members / shard);
        item.part_stride = (int32_t)shard;
        reduction(b, item, wl__flat(n, shard) / shard * b->bytes.gradient, after);
    }
}

void wl__reductions(wl__build *b)
{
    const wl__parameters *p = &b->parameters;
    wl_item over_tp = {.group = WL_GROUP(WL_TP), .axis = WL_TP, .collective = WL_ALL_REDUCE};
    int16_t after = (int16_t)(b->n_items - 1);

    while (after >= 0 && b->item[after].kind != WL_COMPUTE)
        after--;
    if (b->axis[WL_TP] > 1) {
        reduction(b, over_tp, p->over_tp * b->bytes.gradient, after);
        over_tp.part = p->replicas;
        over_tp.part_stride = 1;
        reduction(b, over_tp, p->over_replicas * b->bytes.gradient, after);
    }
    for (int bucket = 0; bucket < WL__N_BUCKETS; bucket++)
        bucket_reduce(b, (wl__bucket)bucket, after);
}
