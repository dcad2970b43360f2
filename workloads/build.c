/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From a valid split to a program: the blocks with their passes, the stages, exact FLOP totals. */
#include "workloads/build_private.h"

#include <math.h>
#include <stdlib.h>

/* Bytes of an element: weights, activations, operands of GEMMs, gradients, optimizer state.  fp32
 * weights are their own master copy; fp8 keeps fp32 master weights and 16-bit gradients. */
static const wl__bytes precisions[] = {
    [WL_BF16] = {2, 2, 2, 2, 12, WL_BF16, WL_BF16},
    [WL_FP16] = {2, 2, 2, 2, 12, WL_FP16, WL_FP16},
    [WL_FP32] = {4, 4, 4, 4, 8, WL_FP32, WL_FP32},
    [WL_FP8] = {1, 2, 1, 2, 12, WL_FP8, WL_BF16},
};

static double padded_vocabulary(int64_t size, int64_t tp)
{
    const double unit = 128.0 * (double)tp;

    return ceil((double)size / unit) * unit;
}

static void sizes_fill(wl__build *b, double sequence)
{
    double experts = 1.0, top_k = 0.0, slots;

    for (size_t d = 0; d < b->model->n_dims; d++)
        if (b->model->dim[d].role == WL__EXPERTS) {
            experts = (double)b->model->dim[d].size;
            top_k = (double)b->model->dim[d].top_k;
        }
    slots = b->batch * sequence * top_k / experts;
    b->touched = 1.0 - pow(1.0 - top_k / experts,
                           b->batch * sequence / (double)(b->axis[WL_DP] * b->axis[WL_SP]));
    b->narrow = 0;
    for (size_t d = 0; d < b->model->n_dims; d++) {
        const wl__dim *dim = &b->model->dim[d];
        const bool batch = dim->role == WL__BATCH, text = dim->role == WL__SEQUENCE;

        b->exact[d] = batch  ? b->batch
                      : text ? sequence
                             : (dim->role == WL__CAPACITY ? slots : (double)dim->size);
        b->size[d] = b->exact[d];
        if (dim->role == WL__VOCABULARY)
            b->size[d] = padded_vocabulary(dim->size, b->config->tp);
        if (dim->role == WL__CAPACITY)
            b->size[d] *= b->capacity * b->imbalance;
        if (dim->role == WL__KV_HEADS && dim->size < b->config->tp)
            b->narrow |= UINT64_C(1) << d;
    }
    b->padded = b->model->of_role[WL__VOCABULARY] | b->model->of_role[WL__CAPACITY];
}

/* Mesh, sizes and switches for a block.  In inference the head works on the last token only, and
 * decoding has one token: neither can cut its sequence. */
void wl__enter(wl__build *b, const wl__block *block, bool recompute)
{
    const wl_config *c = b->config;
    const bool one = b->workload->mode == WL_DECODE || (!b->training && block->head);

    b->block = block;
    b->recompute = recompute;
    b->axis[WL_TP] = c->tp;
    b->axis[WL_SP] = one ? 1 : c->sp;
    b->axis[WL_EP] = c->ep;
    b->axis[WL_DP] = c->dp / c->ep;
    b->axis[WL_PP] = c->pp;
    b->tp_sequence = c->tp_sequence != 0 && !one;
    if (!b->sized || b->one_token != one)
        sizes_fill(b, one ? 1.0 : (double)b->workload->sequence);
    b->sized = true;
    b->one_token = one;
    wl__plan_block(b);
    wl__liveness(b);
    wl__parameters_of(b, &b->parameters);
}

static void build_init(wl__build *b, const wl_workload *workload, const wl_config *config,
                       cs_arena *arena, wl__outlines *outlines)
{
    b->model = workload->model;
    b->workload = workload;
    b->config = config;
    b->arena = arena;
    b->outlines = outlines;
    b->bytes = precisions[config->precision];
    if (config->gradients_fp32 != 0)
        b->bytes.gradient = 4;
    b->training = workload->mode == WL_TRAIN;
    b->failed = b->sized = false;
    b->ring = config->cp_form == WL_CP_RING;
    b->batch = (double)(config->micro_batch * config->dp);
    b->npus = (double)(config->tp * config->sp * config->dp);
    b->capacity = config->capacity_factor > 0.0 ? config->capacity_factor : 1.0;
    b->imbalance = config->imbalance > 1.0 ? config->imbalance : 1.0;
    b->keys = (double)workload->sequence;
    b->cache_parts = 1.0;
    if (workload->mode == WL_DECODE) {
        /* k steps over a growing context cost as much as k steps at its mean */
        b->keys = (double)workload->context + 0.5 * ((double)workload->output + 1.0);
        b->cache_parts = (double)config->sp;
    }
}

wl__build *wl__build_create(const wl_workload *workload, const wl_config *config, cs_arena *arena)
{
    wl__build *b = malloc(sizeof *b);

    if (b != NULL)
        build_init(b, workload, config, arena, NULL);
    return b;
}

/* FLOPs of the model itself: forward, and backward for every operand that has a gradient. */
static void model_flops(const wl__build *b, double *in_full, double *causal)
{
    *in_full = *causal = 0.0;
    for (size_t o = 0; o < b->block->n_ops; o++) {
        const wl__op *op = &b->block->op[o];
        double flops = b->plan[o].exact, times = 1.0;

        if (b->training && op->kernel != &wl__einsum)
            times = 3.0;
        for (size_t i = 0; b->training && op->kernel == &wl__einsum && i < 2; i++)
            if (b->block->tensor[op->in[i]].needs_gradient)
                times += 1.0;
        flops *= times;
        *in_full += flops;
        *causal +=
            op->kernel->keys && op->causal && b->workload->mode != WL_DECODE ? 0.5 * flops : flops;
    }
}

static void gathers_fill(const wl__build *b, wl_block *out)
{
    for (int k = 0; k < WL__N_BUCKETS && b->config->sharding == WL_SHARD_WEIGHTS; k++) {
        const double members = wl__bucket_size(b, (wl__bucket)k);
        const double shard = wl__shard_size(b, (wl__bucket)k);
        wl_gather *gather = &out->gather[out->n_gathers];

        if (b->parameters.used[k] <= 0.0 || shard <= 1.0)
            continue;
        gather->group = wl__bucket_group((wl__bucket)k);
        gather->bytes = wl__flat(b->parameters.used[k], shard) * b->bytes.weight;
        gather->part = shard < members ? (int32_t)shard : 0;
        gather->part_stride = shard < members ? 1 : 0;
        out->gathered_bytes += gather->bytes;
        out->n_gathers++;
    }
}

/* Cache of one block for all sequences of an NPU, at the longest context. */
static double kv_bytes(const wl__build *b)
{
    const wl_workload *w = b->workload;
    const double rounds = (double)w->global_batch / b->batch;
    double n = 0.0;

    if (b->training)
        return 0.0;
    for (size_t o = 0; o < b->block->n_ops; o++)
        for (size_t i = 0; i < b->block->op[o].n_cache; i++)
            n += b->plain[b->block->op[o].cache[i]];
    if (w->mode == WL_DECODE)
        n *= (double)(w->context + w->output) / b->cache_parts;
    return n * rounds;
}

/* Spreads the bytes over the computation beside which they move, by its FLOPs. */
static void host_traffic(wl_pass *pass, double bytes)
{
    double flops = 0.0;

    for (size_t i = 0; i < pass->n; i++)
        flops += pass->item[i].flops;
    for (size_t i = 0; i < pass->n; i++)
        if (pass->item[i].kind == WL_COMPUTE) {
            pass->item[i].host_bytes = flops > 0.0 ? bytes * pass->item[i].flops / flops : bytes;
            if (flops <= 0.0)
                return;
        }
}

/* What the strategy keeps in host memory is fetched, or sent there, during the block. */
static void offload(const wl__build *b, wl_block *out)
{
    wl_pass *passes[] = {&out->forward, &out->backward, &out->backward_last};
    double bytes = 0.0;

    if (b->config->offload == WL_OFFLOAD_ACTIVATIONS)
        bytes = out->saved_bytes;
    if (b->config->offload == WL_OFFLOAD_WEIGHTS)
        for (int k = 0; k < WL__N_BUCKETS; k++)
            bytes +=
                b->parameters.local[k] * b->bytes.weight /
                (b->config->sharding == WL_SHARD_WEIGHTS ? wl__shard_size(b, (wl__bucket)k) : 1.0);
    for (size_t p = 0; p < CS_COUNT(passes) && bytes > 0.0; p++)
        host_traffic(passes[p], bytes);
}

static void block_build(wl__build *b, const wl__block *block, bool recompute, wl_block *out,
                        wl__blocks *blocks, size_t index)
{
    wl__enter(b, block, recompute);
    out->name = block->name;
    out->head = block->head;
    blocks->parameters[index] = b->parameters;
    model_flops(b, &blocks->model[index], &blocks->causal[index]);
    out->forward = wl__forward(b);
    blocks->redundant[index] = b->redundant;
    blocks->again[index] = blocks->flash[index] = 0.0;
    out->backward.output = out->backward_last.output = WL_DEP_INPUT;
    if (b->training) {
        wl__backward(b, &out->backward, &out->backward_last);
        blocks->redundant[index] += b->redundant;
        blocks->again[index] = b->again;
        blocks->flash[index] = b->flash;
    }
    blocks->kv_bytes[index] = kv_bytes(b);
    gathers_fill(b, out);
    wl__block_memory(b, out);
    offload(b, out);
    if (block->input >= 0)
        b->boundary = b->plain[block->input];
}

/* Whether a stack entry needs its block plain (again: false) or recomputed. */
static bool is_used(const wl__build *b, const wl__stack *entry, bool again)
{
    const bool some = b->config->recompute != WL_RECOMPUTE_NONE && b->training && entry->layer;

    return again ? some : !some || b->config->recompute_every > 1;
}

static void blocks_build(wl__build *b, wl__blocks *blocks, wl_program *program)
{
    wl_block *list = cs_arena_alloc(b->arena, 2 * b->model->n_blocks * sizeof *list);

    memset(blocks->index, -1, sizeof blocks->index);
    program->block = list;
    for (size_t i = 0; list != NULL && i < b->model->n_stack; i++) {
        const wl__stack *entry = &b->model->stack[i];

        for (int again = 0; again < 2; again++) {
            if (!is_used(b, entry, again != 0) || blocks->index[entry->block][again] >= 0)
                continue;
            blocks->index[entry->block][again] = (int16_t)program->n_blocks;
            block_build(b, &b->model->block[entry->block], again != 0, &list[program->n_blocks],
                        blocks, program->n_blocks);
            if (entry->layer)
                program->boundary_bytes = b->boundary;
            program->n_blocks++;
        }
    }
    b->failed = b->failed || list == NULL;
}

static void totals_fill(const wl__blocks *blocks, wl_program *program)
{
    const double rounds = (double)program->micro_batches;

    for (size_t s = 0; s < program->n_stages; s++)
        for (size_t c = 0; c < program->stage[s].n_chunks; c++)
            for (size_t i = 0; i < program->stage[s].n_segments[c]; i++) {
                const wl_segment *segment = &program->stage[s].segment[c][i];
                const size_t k = segment->block;
                const double n = (double)segment->count * rounds;
                const double extra = blocks->again[k] + blocks->flash[k];

                program->flops.model_flops += n * blocks->model[k];
                program->flops.model_flops_causal += n * blocks->causal[k];
                program->flops.recompute_flops += n * extra;
                program->flops.flash_flops += n * blocks->flash[k];
                program->flops.redundant_flops += n * blocks->redundant[k];
            }
    program->flops.hardware_flops = program->flops.model_flops_causal +
                                    program->flops.recompute_flops + program->flops.redundant_flops;
}

static cs_status program_build(wl__build *b, wl_program **out, cs_error *err)
{
    const wl_workload *workload = b->workload;
    wl_program *program = cs_arena_alloc(b->arena, sizeof *program);
    wl__blocks blocks;

    if (program == NULL)
        return cs_fail(err, CS_ENOMEM, "program");
    program->micro_batches = workload->global_batch / (b->config->dp * b->config->micro_batch);
    program->tokens = (double)workload->global_batch *
                      (workload->mode == WL_DECODE ? 1.0 : (double)workload->sequence);
    program->op_names = workload->model->op_names;
    blocks_build(b, &blocks, program);
    if (!b->failed)
        wl__stages(b, &blocks, program);
    if (b->failed)
        return cs_fail(err, CS_ENOMEM,
                       "program of model '%s': out of memory, or a block with "
                       "more than %d items",
                       workload->model->name, WL__MAX_ITEMS);
    totals_fill(&blocks, program);
    *out = program;
    return CS_OK;
}

cs_status wl_program_build(const wl_workload *workload, const wl_config *config, cs_arena *arena,
                           wl_program **out, cs_error *err)
{
    cs_status status = CS_OK;
    wl__build *b = NULL;

    CS_TRY(wl__check(workload, config, err));
    b = wl__build_create(workload, config, arena);
    if (b == NULL)
        return cs_fail(err, CS_ENOMEM, "program");
    CS_TRY(program_build(b, out, err));
done:
    free(b);
    return status;
}

struct wl_builder {
    wl__outlines *outlines;
    wl__build build;
};

wl_builder *wl_builder_create(size_t limit_bytes)
{
    wl_builder *builder = malloc(sizeof *builder);

    if (builder == NULL)
        return NULL;
    builder->outlines = wl__outlines_create(limit_bytes);
    if (builder->outlines != NULL)
        return builder;
    free(builder);
    return NULL;
}

void wl_builder_destroy(wl_builder *builder)
{
    if (builder == NULL)
        return;
    wl__outlines_destroy(builder->outlines);
    free(builder);
}

cs_status wl_builder_build(wl_builder *builder, const wl_workload *workload,
                           const wl_config *config, cs_arena *arena, wl_program **out,
                           cs_error *err)
{
    cs_status status = CS_OK;

    CS_TRY(wl__check(workload, config, err));
    build_init(&builder->build, workload, config, arena, builder->outlines);
    CS_TRY(program_build(&builder->build, out, err));
done:
    return status;
}
