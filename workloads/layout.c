/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Layouts: which dimension each axis cuts in every operator (strategy table), hence how operands
 * and results lie; partial sums pass through linear kernels and are resolved once, by the first
 * consumer that needs them whole (DESIGN 5.1).  The axes do not act on each other and only whether
 * one cuts matters, so all layouts are made when a model is loaded. */
#include "workloads/workload_private.h"

static const wl__layout whole = {{WL__WHOLE, WL__WHOLE, WL__WHOLE, WL__WHOLE}};

/* One block under one choice of axes. */
typedef struct {
    const wl_model *model;
    const wl__block *block;
    bool cut[WL__AXES], tp_sequence;
    wl__layouts *out;
} planner;

/* Dimension of the tensor that stands for loop dimension `dim` in this operator: itself; K, V heads
 * for query heads in attention; capacity for batch and sequence in dispatch and combine. */
static int8_t stands_for(const planner *p, const wl__op *op, const wl__tensor *tensor, int8_t dim)
{
    const int32_t role = p->model->dim[dim].role;
    int32_t other = WL__N_ROLES;

    if ((tensor->mask >> dim & 1) != 0)
        return dim;
    if (op->kernel->keys && role == WL__HEADS)
        other = WL__KV_HEADS;
    if (op->kernel->aligned && (role == WL__BATCH || role == WL__SEQUENCE))
        other = WL__CAPACITY;
    for (size_t i = 0; other != WL__N_ROLES && i < tensor->rank; i++)
        if (p->model->dim[tensor->dim[i]].role == other)
            return (int8_t)tensor->dim[i];
    return WL__WHOLE;
}

static int8_t operand_layout(const planner *p, const wl__op *op, size_t i, int8_t split)
{
    if (split < 0)
        return WL__WHOLE;
    /* Keys and values run over a sequence of their own, which no axis cuts. */
    if (op->kernel->keys && i > 0 && p->model->dim[split].role == WL__SEQUENCE)
        return WL__WHOLE;
    return stands_for(p, op, &p->block->tensor[op->in[i]], split);
}

/* A linear kernel that the axis does not split hands partial sums on. */
static bool passes_partial(const planner *p, const wl__op *op, size_t axis, int8_t split)
{
    if (!op->kernel->linear || split >= 0 || op->n_data != op->n_in)
        return false;
    for (size_t i = 0; i < op->n_data; i++) {
        const bool gates = op->kernel->aligned && i > 0; /* routing weights only scale */

        if (!gates && p->out->home[op->in[i]].at[axis] != WL__PARTIAL)
            return false;
    }
    return true;
}

static void op_axis(planner *p, const wl__op *op, wl__op_layout *at, size_t axis)
{
    wl__layout *home = p->out->home;
    const int8_t split = wl__strategy_split(p->model, op, axis, p->tp_sequence);

    at->split[axis] = split;
    if (passes_partial(p, op, axis, split)) {
        for (size_t i = 0; i < op->n_in; i++)
            at->need[i].at[axis] = home[op->in[i]].at[axis];
        at->out.at[axis] = WL__PARTIAL;
        return;
    }
    for (size_t i = 0; i < op->n_in; i++) {
        at->need[i].at[axis] = operand_layout(p, op, i, split);
        if (home[op->in[i]].at[axis] == WL__PARTIAL)
            home[op->in[i]].at[axis] = at->need[i].at[axis];
    }
    if (split >= 0 && op->out >= 0) {
        at->out.at[axis] = stands_for(p, op, &p->block->tensor[op->out], split);
        if (at->out.at[axis] == WL__WHOLE)
            at->out.at[axis] = WL__PARTIAL;
    }
}

static void op_plan(planner *p, size_t o)
{
    const wl__op *op = &p->block->op[o];
    wl__op_layout *at = &p->out->op[o];

    at->out = whole;
    for (size_t i = 0; i < WL__MAX_IN; i++)
        at->need[i] = whole;
    for (size_t a = 0; a < WL__AXES; a++) {
        at->split[a] = WL__WHOLE;
        if (p->cut[a])
            op_axis(p, op, at, a);
    }
    for (size_t i = 0; i < op->n_in; i++)
        if (p->block->tensor[op->in[i]].parameter)
            p->out->home[op->in[i]] = at->need[i];
    if (op->out >= 0)
        p->out->home[op->out] = at->out;
}

static void input_layouts(planner *p)
{
    static const int32_t roles[WL__AXES] = {WL__SEQUENCE, WL__SEQUENCE, WL__BATCH, WL__BATCH};
    wl__layout *stream = &p->out->stream;

    *stream = whole;
    for (size_t a = 0; a < WL__AXES; a++)
        for (size_t d = 0; d < p->model->n_dims; d++)
            if (p->cut[a] && p->model->dim[d].role == roles[a] && (a != WL_TP || p->tp_sequence))
                stream->at[a] = (int8_t)d;
    for (size_t t = 0; t < p->block->n_tensors; t++) {
        const wl__tensor *tensor = &p->block->tensor[t];

        p->out->home[t] = whole;
        for (size_t a = 0; a < WL__AXES && !tensor->parameter && tensor->producer < 0; a++)
            if (stream->at[a] >= 0 && (tensor->mask >> stream->at[a] & 1) != 0)
                p->out->home[t].at[a] = stream->at[a];
    }
}

/* A tensor is saved in its own layout and gathered again where backward needs more of it; only what
 * an all-to-all moved is saved where it arrived, at the same size. */
static void keep_fill(planner *p)
{
    wl__layout *keep = p->out->keep;

    for (size_t t = 0; t < p->block->n_tensors; t++)
        keep[t] = p->out->whole[t] = wl__resolved(p->out->home[t]);
    for (size_t o = p->block->n_ops; o-- > 0;) {
        const wl__op *op = &p->block->op[o];

        for (size_t i = 0; i < op->n_data; i++)
            for (size_t a = 0; a < WL__AXES && (op->kernel->saves >> i & 1) != 0; a++)
                if (keep[op->in[i]].at[a] >= 0 && p->out->op[o].need[i].at[a] >= 0)
                    keep[op->in[i]].at[a] = p->out->op[o].need[i].at[a];
    }
}

/* What an operator's loops split and the operand lacks is a partial sum in its gradient. */
static void gradients_fill(planner *p)
{
    for (size_t o = 0; o < p->block->n_ops; o++) {
        wl__op_layout *at = &p->out->op[o];

        for (size_t i = 0; i < WL__MAX_IN; i++) {
            at->gradient[i] = wl__resolved(at->need[i]);
            for (size_t a = 0; a < WL__AXES; a++)
                if (at->split[a] >= 0 && at->gradient[i].at[a] == WL__WHOLE)
                    at->gradient[i].at[a] = WL__PARTIAL;
        }
    }
}

static void block_plan(planner *p)
{
    input_layouts(p);
    for (size_t o = 0; o < p->block->n_ops; o++)
        op_plan(p, o);
    if (p->block->output >= 0) {
        wl__layout *home = &p->out->home[p->block->output];

        for (size_t a = 0; a < WL__AXES; a++)
            if (home->at[a] == WL__PARTIAL)
                home->at[a] = p->out->stream.at[a];
    }
    keep_fill(p);
    gradients_fill(p);
}

size_t wl__cut_index(const bool cut[WL__AXES], bool tp_sequence)
{
    const size_t tp = !cut[WL_TP] ? 0 : tp_sequence ? 2 : 1;

    return tp * 8 + (cut[WL_SP] ? 4 : 0) + (cut[WL_EP] ? 2 : 0) + (cut[WL_DP] ? 1 : 0);
}

bool wl__layouts_fill(const wl_model *model, wl__block *block)
{
    for (size_t k = 0; k < WL__CUTS; k++) {
        wl__layouts *out = &block->layouts[k];
        planner p = {.model = model,
                     .block = block,
                     .cut = {k >= 8, (k & 4) != 0, (k & 2) != 0, (k & 1) != 0},
                     .tp_sequence = k >= 16,
                     .out = out};

        out->op = cs_arena_alloc(model->arena, block->n_ops * sizeof *out->op);
        out->home = cs_arena_alloc(model->arena, 3 * block->n_tensors * sizeof *out->home);
        if (out->op == NULL || out->home == NULL)
            return false;
        out->whole = out->home + block->n_tensors;
        out->keep = out->whole + block->n_tensors;
        block_plan(&p);
    }
    return true;
}
