/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What builds look up about a block, worked out once when its model is loaded. */
#include "workloads/workload_private.h"

/* Operand position of tensor t in operator op. */
static uint8_t position(const wl__op *op, int16_t t)
{
    uint8_t i = 0;

    while (i + 1 < op->n_in && op->in[i] != t)
        i++;
    return i;
}

static void tensors_index(wl__block *block)
{
    for (size_t o = 0; o < block->n_ops; o++) {
        const wl__op *op = &block->op[o];

        for (size_t i = 0; i < op->n_data; i++)
            if ((op->kernel->saves >> i & 1) != 0)
                block->tensor[op->in[i]].wanted = true;
        if (op->kernel->saves_result && op->out >= 0)
            block->tensor[op->out].wanted_result = true;
    }
    for (size_t t = 0; t < block->n_tensors; t++)
        if (block->tensor[t].first_use >= 0)
            block->tensor[t].position =
                position(&block->op[block->tensor[t].first_use], (int16_t)t);
}

static void op_index(const wl__block *block, wl__op *op)
{
    op->sizes = op->loops;
    for (size_t i = 0; i < op->n_cache; i++)
        op->sizes |= block->tensor[op->cache[i]].mask;
    for (size_t l = 0; op->kernel == &wl__einsum && l < op->n_loops; l++) {
        const uint8_t dim = op->loop[l];
        const bool x = (block->tensor[op->in[0]].mask >> dim & 1) != 0;
        const bool w = (block->tensor[op->in[1]].mask >> dim & 1) != 0;
        const bool y = (block->tensor[op->out].mask >> dim & 1) != 0;

        op->gemm[l] = !y ? WL__GEMM_K : !x ? WL__GEMM_N : !w ? WL__GEMM_M : WL__GEMM_BATCH;
    }
}

/* Parameters live elsewhere; the loss writes its gradient over the logits. */
static uint8_t why_live(const wl__block *block, int16_t t, int16_t o)
{
    const wl__tensor *tensor = &block->tensor[t];
    const bool computed = tensor->producer >= 0, later = tensor->last_use >= o;
    uint8_t why = 0;

    if (tensor->parameter || tensor->producer > o)
        return 0;
    if (computed && (later || tensor->producer == o))
        why |= WL__LIVE_FORWARD;
    if (!tensor->fp32 && tensor->needs_gradient && (later || t == block->output))
        why |= WL__LIVE_GRADIENT;
    if (!tensor->fp32 && computed && tensor->last_use == o)
        why |= WL__LIVE_AGAIN;
    return why;
}

static size_t live_count(const wl__block *block)
{
    size_t n = 0;

    for (size_t o = 0; o < block->n_ops; o++)
        for (size_t t = 0; t < block->n_tensors; t++)
            n += why_live(block, (int16_t)t, (int16_t)o) != 0;
    return n;
}

static bool live_index(const wl_model *model, wl__block *block)
{
    const size_t total = live_count(block);
    uint16_t n = 0;

    block->live = cs_arena_alloc(model->arena, (total + 1) * sizeof *block->live);
    if (block->live == NULL)
        return false;
    for (size_t o = 0; o < block->n_ops; o++) {
        block->op[o].live = n;
        for (size_t t = 0; t < block->n_tensors; t++) {
            const uint8_t why = why_live(block, (int16_t)t, (int16_t)o);

            if (why != 0)
                block->live[n++] = (wl__live){(int16_t)t, why};
        }
        block->op[o].n_live = (uint16_t)(n - block->op[o].live);
    }
    return true;
}

bool wl__block_index(const wl_model *model, wl__block *block)
{
    tensors_index(block);
    for (size_t o = 0; o < block->n_ops; o++)
        op_index(block, &block->op[o]);
    return live_index(model, block) && wl__layouts_fill(model, block);
}
