/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a stage holds whatever runs: parameters, gradients, optimizer state, cache, buffers; its
 * update pass; and the sum by part (DESIGN 5.5). */
#include "workloads/build_private.h"

#include <math.h>

/* One NPU's state of a bucket of n elements: whole, or its flat shard. */
static double share(double n, double shard, bool sharded)
{
    return sharded ? wl__flat(n, shard) / shard : n;
}

static void bucket_memory(const wl__build *b, const wl__parameters *p, int k, double count,
                          wl_static_memory *out)
{
    const double n = p->local[k], shard = wl__shard_size(b, (wl__bucket)k);
    const int32_t level = b->config->sharding;
    const struct {
        double bytes;
        bool sharded;
        double *sum;
    } part[] = {{b->bytes.weight, level >= WL_SHARD_WEIGHTS, &out->weights},
                {b->bytes.gradient, level >= WL_SHARD_GRADIENTS, &out->gradients},
                {b->bytes.optimizer, level >= WL_SHARD_OPTIMIZER, &out->optimizer}};

    out->parameters += count * n;
    for (size_t i = 0; i < (b->training ? CS_COUNT(part) : 1); i++) {
        const double held = share(n, shard, part[i].sharded);
        const double real = (n - p->padded[k]) / (part[i].sharded ? shard : 1.0);

        *part[i].sum += count * held * part[i].bytes;
        out->padding += count * (held - real) * part[i].bytes;
    }
}

/* Gradients of one block before they are scattered, and what a stage boundary receives and sends.
 */
static double buffers(const wl__build *b, const wl__blocks *blocks, const wl_program *program,
                      const wl_stage *stage)
{
    double largest = 0.0;

    for (size_t j = 0; j < stage->n_chunks; j++)
        for (size_t i = 0; i < stage->n_segments[j]; i++) {
            const wl__parameters *p = &blocks->parameters[stage->segment[j][i].block];
            double bytes = 0.0;

            for (int k = 0; k < WL__N_BUCKETS; k++)
                if (wl__shard_size(b, (wl__bucket)k) > 1.0)
                    bytes += p->local[k] * b->bytes.gradient;
            largest = fmax(largest, bytes);
        }
    if (b->config->sharding < WL_SHARD_GRADIENTS || !b->training)
        largest = 0.0;
    return largest + (b->config->pp > 1 ? 2.0 * program->boundary_bytes : 0.0);
}

wl_static_memory wl__static_memory(const wl__build *b, const wl__blocks *blocks,
                                   const wl_program *program, const wl_stage *stage)
{
    wl_static_memory out = {0};

    for (size_t j = 0; j < stage->n_chunks; j++)
        for (size_t i = 0; i < stage->n_segments[j]; i++) {
            const wl_segment *segment = &stage->segment[j][i];

            for (int k = 0; k < WL__N_BUCKETS; k++)
                bucket_memory(b, &blocks->parameters[segment->block], k, (double)segment->count,
                              &out);
            out.kv_cache += blocks->kv_bytes[segment->block] * (double)segment->count;
        }
    out.communication = buffers(b, blocks, program, stage);
    if (b->config->offload == WL_OFFLOAD_OPTIMIZER) {
        out.offloaded = out.optimizer;
        out.optimizer = 0.0;
    }
    if (b->config->offload == WL_OFFLOAD_WEIGHTS) {
        out.offloaded = out.weights;
        out.weights = 0.0;
    }
    return out;
}

/* Elements of a bucket over the stage, as one NPU updates them (its shard) or as gathered. */
static double stage_elements(const wl__build *b, const wl__blocks *blocks, const wl_stage *stage,
                             int k, bool sharded)
{
    const double shard = wl__shard_size(b, (wl__bucket)k);
    double n = 0.0;

    for (size_t j = 0; j < stage->n_chunks; j++)
        for (size_t i = 0; i < stage->n_segments[j]; i++)
            n += (double)stage->segment[j][i].count *
                 wl__flat(blocks->parameters[stage->segment[j][i].block].local[k],
                          b->config->sharding == WL_SHARD_NONE ? 1.0 : shard);
    return sharded && b->config->sharding != WL_SHARD_NONE ? n / shard : n;
}

/* Gradient of a table shared by embedding and logits, between first and last stage. */
static int16_t tied_reduce(wl__build *b, const wl__blocks *blocks, const wl_stage *stage)
{
    wl_item item = {.kind = WL_COMM,
                    .collective = WL_ALL_REDUCE,
                    .group = WL_GROUP(WL_PP),
                    .axis = WL_PP,
                    .op = WL__OP_TIED,
                    .part = 2,
                    .part_stride = (int32_t)b->config->pp - 1};
    const bool sharded = b->config->sharding >= WL_SHARD_OPTIMIZER;
    double n = 0.0;

    for (size_t j = 0; j < stage->n_chunks; j++)
        for (size_t i = 0; i < stage->n_segments[j]; i++)
            n += share(blocks->parameters[stage->segment[j][i].block].tied,
                       wl__shard_size(b, WL__DENSE), sharded);
    if (n <= 0.0)
        return -1;
    item.bytes = n * b->bytes.gradient;
    return wl__emit(b, &item);
}

static int16_t optimizer_step(wl__build *b, double elements, int16_t after)
{
    wl_item item = {.kind = WL_COMPUTE, .op = WL__OP_OPTIMIZER, .precision = WL_FP32};

    if (after >= 0)
        item.dep[item.n_deps++] = after;
    item.memory_bytes = elements * (2.0 * b->bytes.optimizer + b->bytes.gradient + b->bytes.weight);
    if (b->config->offload == WL_OFFLOAD_OPTIMIZER)
        item.host_bytes = elements * 2.0 * b->bytes.optimizer;
    return wl__emit(b, &item);
}

static void parameters_gather(wl__build *b, int k, double elements, int16_t after)
{
    const double members = wl__bucket_size(b, (wl__bucket)k);
    const double shard = wl__shard_size(b, (wl__bucket)k);
    wl_item item = {.kind = WL_COMM,
                    .collective = WL_ALL_GATHER,
                    .group = wl__bucket_group((wl__bucket)k),
                    .axis = WL_DP,
                    .op = WL__OP_PARAMETERS,
                    .bytes = elements * b->bytes.weight};

    if (shard <= 1.0 || elements <= 0.0)
        return;
    if (shard < members) {
        item.part = (int32_t)shard;
        item.part_stride = 1;
    }
    item.dep[item.n_deps++] = after;
    wl__emit(b, &item);
}

wl_pass wl__update(wl__build *b, const wl__blocks *blocks, const wl_stage *stage, bool tied)
{
    double updated = 0.0;
    int16_t after = -1;

    wl__pass_begin(b);
    if (tied)
        after = tied_reduce(b, blocks, stage);
    for (int k = 0; k < WL__N_BUCKETS; k++)
        updated += stage_elements(b, blocks, stage, k, true);
    after = optimizer_step(b, updated, after);
    for (int k = 0; k < WL__N_BUCKETS; k++)
        if (b->config->sharding == WL_SHARD_OPTIMIZER || b->config->sharding == WL_SHARD_GRADIENTS)
            parameters_gather(b, k, stage_elements(b, blocks, stage, k, false), after);
    return wl__pass_end(b, (int16_t)(b->n_items - 1));
}

/* Adds one block, `count` times, to what its stage holds. */
static void block_add(const wl_block *block, int32_t index, double count, wl_stage_blocks *out)
{
    const bool backward =
        block->backward_peak_bytes >= block->forward_peak_bytes && block->backward.n > 0;
    const double peak = backward ? block->backward_peak_bytes : block->forward_peak_bytes;

    out->n += count;
    *(block->head ? &out->logits : &out->saved) += block->saved_bytes * count;
    out->gathered += block->gathered_bytes * count;
    out->largest_gathered = fmax(out->largest_gathered, block->gathered_bytes);
    if (peak <= out->transient)
        return;
    out->transient = peak;
    out->peak_block = index;
    out->peak_pass = backward ? 1 : 0;
}

wl_stage_blocks wl__stage_blocks(const wl_program *program, const wl_stage *stage)
{
    wl_stage_blocks out = {.transient = -1.0};

    for (size_t j = 0; j < stage->n_chunks; j++)
        for (size_t i = 0; i < stage->n_segments[j]; i++) {
            const wl_segment *segment = &stage->segment[j][i];

            block_add(&program->block[segment->block], segment->block, (double)segment->count,
                      &out);
        }
    out.transient = fmax(out.transient, 0.0);
    return out;
}

static double gathered(const wl_config *config, const wl_stage_blocks *blocks)
{
    const double ahead = (double)(config->prefetch > 0 ? config->prefetch : 0);

    if (config->reshard == 0)
        return blocks->gathered;
    return fmin(blocks->gathered, blocks->largest_gathered * (1.0 + ahead));
}

/* What lives in host memory passes through two blocks' worth of buffers. */
static double host_buffers(const wl_stage_blocks *blocks, double offloaded)
{
    return blocks->n > 0.0 ? offloaded * fmin(1.0, 2.0 / blocks->n) : 0.0;
}

wl_memory wl_stage_memory(const wl_program *program, const wl_config *config, size_t stage_index,
                          double in_flight)
{
    const wl_stage *stage = &program->stage[stage_index];
    const wl_static_memory *s = &stage->memory;
    const wl_stage_blocks *blocks = &stage->blocks;
    const double chunks = in_flight / (double)stage->n_chunks;
    wl_memory m = {.weights = s->weights,
                   .gradients = s->gradients,
                   .optimizer = s->optimizer,
                   .communication = s->communication,
                   .kv_cache = s->kv_cache,
                   .transient = blocks->transient,
                   .peak_block = blocks->peak_block,
                   .peak_pass = blocks->peak_pass};

    m.activations = blocks->saved * chunks;
    m.logits = blocks->logits * fmax(1.0, chunks);
    if (config->offload == WL_OFFLOAD_ACTIVATIONS)
        m.activations = fmin(m.activations, host_buffers(blocks, m.activations));
    m.gathered = gathered(config, blocks);
    if (config->offload == WL_OFFLOAD_WEIGHTS)
        m.gathered += host_buffers(blocks, s->offloaded);
    m.total = m.weights + m.gradients + m.optimizer + m.activations + m.gathered + m.communication +
              m.logits + m.kv_cache + m.transient;
    return m;
}
