/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Operators of a model, unsplit, for `cosmic-search model`. */
#include "workloads/build_private.h"

#include <stdlib.h>

static double op_parameters(const wl_model *model, const wl__block *block, size_t o)
{
    const wl__op *op = &block->op[o];
    double n = 0.0;

    for (size_t i = op->n_data; i < op->n_in; i++) {
        const wl__tensor *tensor = &block->tensor[op->in[i]];

        if (tensor->first_use == (int16_t)o && tensor->tie_block < 0)
            n += wl__parameter_size(model, tensor);
    }
    return n;
}

/* Sums the items of a pass by operator. */
static void bytes_add(const wl_pass *pass, const wl__block *block, wl_op_summary *line,
                      bool backward)
{
    for (size_t i = 0; i < pass->n; i++) {
        const int16_t o = (int16_t)(pass->item[i].op - block->op_base);

        if (o >= 0 && o < (int16_t)block->n_ops)
            *(backward ? &line[o].bytes_backward : &line[o].bytes_forward) +=
                pass->item[i].memory_bytes;
    }
}

static void block_lines(const wl__build *b, const wl_pass *forward, const wl_pass *backward,
                        int64_t count, wl_op_summary *line)
{
    for (size_t o = 0; o < b->block->n_ops; o++) {
        const wl__op *op = &b->block->op[o];
        double times = op->kernel == &wl__einsum ? 0.0 : 2.0;

        for (size_t i = 0; op->kernel == &wl__einsum && i < 2; i++)
            times += b->block->tensor[op->in[i]].needs_gradient ? 1.0 : 0.0;
        line[o] = (wl_op_summary){.block = b->block->name,
                                  .op = op->name,
                                  .kind = op->kernel->name,
                                  .count = count,
                                  .parameters = (int64_t)op_parameters(b->model, b->block, o),
                                  .flops_forward = b->plan[o].exact,
                                  .flops_backward = times * b->plan[o].exact};
        if (op->kernel->keys && op->causal)
            line[o].flops_causal_saving = 0.5 * (line[o].flops_forward + line[o].flops_backward);
    }
    bytes_add(forward, b->block, line, false);
    bytes_add(backward, b->block, line, true);
}

cs_status wl_model_summary(const wl_model *model, int64_t batch, int64_t sequence, cs_arena *arena,
                           wl_summary *out, cs_error *err)
{
    const wl_workload workload = {.model = model, .global_batch = batch, .sequence = sequence};
    const wl_config config = {.dp = 1, .tp = 1, .sp = 1, .ep = 1, .pp = 1, .micro_batch = batch};
    cs_status status = CS_OK;
    size_t lines = 0;
    wl_op_summary *list;
    wl__build *b = NULL;

    CS_TRY(wl__check(&workload, &config, err));
    for (size_t i = 0; i < model->n_stack; i++)
        lines += model->block[model->stack[i].block].n_ops;
    list = cs_arena_alloc(arena, lines * sizeof *list);
    b = wl__build_create(&workload, &config, arena);
    if (list == NULL || b == NULL) {
        status = cs_fail(err, CS_ENOMEM, "model summary");
        goto done;
    }
    out->n = 0;
    for (size_t i = 0; i < model->n_stack; i++) {
        const wl__block *block = &model->block[model->stack[i].block];
        wl_pass forward, backward, last;

        wl__enter(b, block, false);
        forward = wl__forward(b);
        wl__backward(b, &backward, &last);
        if (b->failed) {
            status = cs_fail(err, CS_ENOMEM, "model summary");
            goto done;
        }
        block_lines(b, &forward, &backward, model->stack[i].count, list + out->n);
        out->n += block->n_ops;
    }
    out->line = list;
done:
    free(b);
    return status;
}
