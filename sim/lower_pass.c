/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "sim/compute.h"
#include "sim/lower_private.h"

enum { MOST_SLOTS = 32000 };

cs_status sim__time_item(sim_lower_work *w, const wl_item *item, const sim_timed **out,
                         cs_error *err)
{
    sim_collective_key key = {item->collective, item->group, item->part, item->part_stride,
                              item->bytes};
    return sim__timed_collective(w->timing, &key, out, err);
}

static cs_status time_gather(sim_lower_work *w, const wl_gather *gather, const sim_timed **out,
                             cs_error *err)
{
    sim_collective_key key = {WL_ALL_GATHER, gather->group, gather->part, gather->part_stride,
                              gather->bytes};
    return sim__timed_collective(w->timing, &key, out, err);
}

/* Gather of the weights of `context.gather`, issued when this pass starts. */
static cs_status put_gather(sim_lower_work *w, cs_error *err)
{
    cs_status status = CS_OK;
    const wl_block *block;

    if (w->context.gather.kind == SIM_PASS_NONE)
        return CS_OK;
    block = &w->l->job->program->block[w->context.gather.block];
    for (size_t i = 0; i < block->n_gathers; i++) {
        const wl_gather *gather = &block->gather[i];
        const sim_timed *timed;
        sim_op op = {.name = -1, .count = 1};

        sim__set_dep(&op, w->serial);
        CS_TRY(time_gather(w, gather, &timed, err));
        CS_TRY(sim__put_collective(
            w, SIM_LIST_GATHER, &(sim_piece){timed, (size_t)w->l->job->network->chunks, WL_DP}, &op,
            &w->list[SIM_LIST_GATHER].end[w->list[SIM_LIST_GATHER].n_ends], err));
        if (w->l->job->serial)
            w->serial = w->list[SIM_LIST_GATHER].end[w->list[SIM_LIST_GATHER].n_ends];
        w->list[SIM_LIST_GATHER].n_ends++;
    }
done:
    return status;
}

/* Reductions wait for each other alone: what they reduce was there before this pass. */
static void reduction_inputs(const sim_lower_work *w, const wl_item *item, sim_op *op)
{
    for (size_t d = 0; d < item->n_deps; d++)
        op->dep[d] = item->dep[d] < 0 ? (int16_t)SIM_SLOT_START : w->item_slot[item->dep[d]];
    op->n_deps = item->n_deps;
    op->name = item->op;
    if (w->l->job->serial)
        sim__set_dep(op, w->serial);
}

/* Gradient reductions that the pass before this one left behind. */
static cs_status put_reductions(sim_lower_work *w, cs_error *err)
{
    cs_status status = CS_OK;
    const wl_pass *pass = sim__pass_of(w->l->job, w->context.reduce);

    for (size_t i = 0; pass != NULL && i < pass->n; i++) {
        const wl_item *item = &pass->item[i];
        const sim_timed *timed;
        sim_op op = {.count = 1};

        w->item_slot[i] = SIM_SLOT_START;
        if (!item->background)
            continue;
        reduction_inputs(w, item, &op);
        CS_TRY(sim__time_item(w, item, &timed, err));
        CS_TRY(sim__put_collective(
            w, SIM_LIST_REDUCE, &(sim_piece){timed, (size_t)w->l->job->network->chunks, item->axis},
            &op, &w->item_slot[i], err));
        if (w->list[SIM_LIST_REDUCE].n_ends == SIM_MOST_ENDS)
            return cs_fail(err, CS_EINVAL, "more than %d gradient reductions in a block",
                           SIM_MOST_ENDS);
        w->list[SIM_LIST_REDUCE].end[w->list[SIM_LIST_REDUCE].n_ends++] = w->item_slot[i];
        if (w->l->job->serial)
            w->serial = w->item_slot[i];
    }
done:
    return status;
}

/* One slot for the latest of several ends; -1 when there is none. */
static int16_t join(sim_lower_work *w, int which)
{
    const sim_op_list *list = &w->list[which];
    sim_op op = {.server = SIM_NO_SERVER, .name = -1, .count = 1};

    if (list->n_ends == 0)
        return -1;
    sim__set_dep(&op, list->end[0]);
    for (size_t i = 1; i < list->n_ends; i++) {
        op.dep[1] = list->end[i];
        op.n_deps = 2;
        op.out = sim__new_slot(w, WL_DP);
        sim__push(w, &w->list[SIM_LIST_OUT], &op);
        sim__set_dep(&op, op.out);
    }
    return op.dep[0];
}

/* Just in time: the block's own weights are gathered before anything else of it. */
static void put_own_gather(sim_lower_work *w)
{
    sim__merge_rest(w);
    w->weights_slot = join(w, SIM_LIST_GATHER);
    w->list[SIM_LIST_GATHER].n_ends = 0;
}

/* A transfer goes at the pace of its slower end. */
static sim_timing *boundary_timing(const sim_lower_work *w)
{
    return &w->l->timing[w->context.slow >> 1 & 1];
}

static cs_status put_send(sim_lower_work *w, int16_t output, int16_t *sent, cs_error *err)
{
    cs_status status;
    const sim_timed *timed;
    sim_op op = {.name = -1, .count = 1};

    CS_TRY(sim__timed_boundary(boundary_timing(w), w->context.send == 2, &timed, err));
    sim__set_dep(&op, output);
    if (w->last_compute >= 0) /* an action sends when it is over */
        op.dep[op.n_deps++] = w->last_compute;
    CS_TRY(sim__put_collective(w, SIM_LIST_OUT, &(sim_piece){timed, 1, WL_PP}, &op, sent, err));
done:
    return status;
}

/* The transfer of a stage that waits for it: compute goes on when it is over. */
static cs_status put_awaited_send(sim_lower_work *w, sim_lowered *out, cs_error *err)
{
    cs_status status;
    sim_op before = {.server = SIM_NO_SERVER, .name = -1, .count = 1};
    sim_op after = {.name = -1, .count = 1};

    sim__set_dep(&before, out->output);
    if (w->last_compute >= 0)
        before.dep[before.n_deps++] = w->last_compute;
    before.out = out->left = sim__new_slot(w, w->cause[out->output] & SIM_CAUSE_MASK);
    sim__push(w, &w->list[SIM_LIST_OUT], &before);
    CS_TRY(put_send(w, out->output, &out->sent, err));
    sim__set_dep(&after, out->sent);
    after.out = w->last_compute = sim__new_slot(w, SIM_WAIT_CAUSES);
    sim__push(w, &w->list[SIM_LIST_OUT], &after);
done:
    return status;
}

static cs_status put_boundary(sim_lower_work *w, sim_lowered *out, cs_error *err)
{
    const sim_job *job = w->l->job;

    out->sent = out->left = -1;
    if (w->context.send == 0)
        return CS_OK;
    return job->p2p_waits || job->serial ? put_awaited_send(w, out, err)
                                         : put_send(w, out->output, &out->sent, err);
}

/* Dimensions that the reductions left before this pass use. */
static cs_status find_reduce_dims(sim_lower_work *w, const wl_pass *pass, cs_error *err)
{
    cs_status status = CS_OK;
    const sim_timed *timed;

    for (size_t i = 0; pass != NULL && i < pass->n; i++) {
        if (!pass->item[i].background)
            continue;
        CS_TRY(sim__time_item(w, &pass->item[i], &timed, err));
        w->dims[SIM_LIST_REDUCE] |= timed->dims;
    }
done:
    return status;
}

static cs_status find_gather_dims(sim_lower_work *w, cs_error *err)
{
    cs_status status = CS_OK;
    const wl_block *block = &w->l->job->program->block[w->context.gather.block];
    const sim_timed *timed;

    for (size_t i = 0; w->context.gather.kind != SIM_PASS_NONE && i < block->n_gathers; i++) {
        CS_TRY(time_gather(w, &block->gather[i], &timed, err));
        w->dims[SIM_LIST_GATHER] |= timed->dims;
    }
done:
    return status;
}

/* Dimensions of the foreground, and how many of its operations meet the background there: the
 * background is spread evenly among these. */
static cs_status find_urgent(sim_lower_work *w, const wl_pass *pass, cs_error *err)
{
    cs_status status = CS_OK;
    const sim_timed *timed;
    unsigned background = w->dims[SIM_LIST_GATHER] | w->dims[SIM_LIST_REDUCE];
    size_t chunks = (size_t)w->l->job->network->chunks;

    for (size_t i = 0; pass != NULL && i < pass->n; i++) {
        const wl_item *item = &pass->item[i];
        if (item->kind == WL_COMPUTE || !sim__pass_takes((sim_pass_kind)w->context.self.kind, item))
            continue;
        CS_TRY(sim__time_item(w, item, &timed, err));
        w->dims[SIM_LIST_OUT] |= timed->dims;
        w->urgent += (timed->dims & background) != 0 ? timed->n_phases * chunks : 0;
    }
    if (w->context.send != 0) {
        CS_TRY(sim__timed_boundary(boundary_timing(w), w->context.send == 2, &timed, err));
        w->dims[SIM_LIST_OUT] |= timed->dims;
        w->urgent += (timed->dims & background) != 0 ? timed->n_phases : 0;
    }
done:
    return status;
}

static bool grow(void *pointer, size_t bytes)
{
    void **at = pointer;
    void *larger = realloc(*at, bytes);

    if (larger != NULL)
        *at = larger;
    return larger != NULL;
}

static size_t collectives_of(const wl_pass *pass)
{
    size_t n = 0;

    for (size_t i = 0; pass != NULL && i < pass->n; i++)
        n += pass->item[i].kind == WL_COMM;
    return n;
}

/* Room for every operation and slot of a context. */
static cs_status reserve(sim_lower_work *w, const wl_pass *pass, cs_error *err)
{
    sim_lowering *l = w->l;
    const wl_pass *reduce = sim__pass_of(l->job, w->context.reduce);
    size_t items = (pass == NULL ? 0 : pass->n) + (reduce == NULL ? 0 : reduce->n);
    size_t chunks = (size_t)l->job->network->chunks, phases = 4 * l->job->network->n_dims;
    size_t lists = collectives_of(pass) + collectives_of(reduce) + WL_MAX_GATHERS + 1;
    size_t copies = sim__distinct_slots(l) ? phases : 1;
    /* a computation in at most three parts, a collective with the join of its chunks */
    size_t others = 3 * items + SIM_SLOT_FIRST + 2 * (size_t)SIM_MOST_ENDS + 2;
    size_t ops = lists * ((phases + 1) * chunks + 1) + others;
    size_t slots = lists * (chunks * (copies + 1) + 1) + others;
    bool ok = true;

    if (slots > MOST_SLOTS || chunks * phases > INT16_MAX)
        return cs_fail(err, CS_EINVAL,
                       "collective.chunks = %zu is too many for a block of %zu operators", chunks,
                       items);
    if (ops > l->room_ops) {
        for (size_t i = 0; i < SIM_N_LISTS; i++)
            ok = grow(&l->room[i], ops * sizeof **l->room) && ok;
        l->room_ops = ok ? ops : 0;
    }
    if (slots > l->room_slots) {
        ok = grow(&l->cause_room, slots) && ok;
        ok = grow(&l->item_room, slots * sizeof *l->item_room) && ok;
        l->room_slots = ok ? slots : 0;
    }
    if (!ok)
        return cs_fail(err, CS_ENOMEM, "operations of a block");
    w->list[SIM_LIST_OUT].op = l->room[SIM_LIST_OUT];
    w->list[SIM_LIST_GATHER].op = l->room[SIM_LIST_GATHER];
    w->list[SIM_LIST_REDUCE].op = l->room[SIM_LIST_REDUCE];
    w->cause = l->cause_room;
    w->item_slot = l->item_room;
    return CS_OK;
}

/* Who reads which slot, for the event-driven run. */
static cs_status keep_readers(sim_lower_work *w, sim_lowered *out, cs_error *err)
{
    int32_t *start = sim__pool_alloc(&w->l->pool, (w->n_slots + 2) * sizeof *start);
    size_t edges = 0;
    int32_t *reader;

    for (size_t i = 0; i < out->n; i++)
        edges += out->op[i].n_deps;
    reader = sim__pool_alloc(&w->l->pool, (edges + 1) * sizeof *reader);
    if (start == NULL || reader == NULL)
        return cs_fail(err, CS_ENOMEM, "operations of a block");
    memset(start, 0, (w->n_slots + 2) * sizeof *start);
    for (size_t i = 0; i < out->n; i++)
        for (size_t d = 0; d < out->op[i].n_deps; d++)
            start[out->op[i].dep[d] + 2]++;
    for (size_t s = 2; s < w->n_slots + 2; s++)
        start[s] += start[s - 1];
    for (size_t i = 0; i < out->n; i++)
        for (size_t d = 0; d < out->op[i].n_deps; d++)
            reader[start[out->op[i].dep[d] + 1]++] = (int32_t)i;
    out->reader_start = start;
    out->reader = reader;
    return CS_OK;
}

static size_t chunks_of(const sim_op_list *list)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        n += (size_t)list->op[i].count;
    return n;
}

/* Copies the finished lists to the pool. */
static cs_status keep(sim_lower_work *w, sim_lowered *out, cs_error *err)
{
    sim_op *op = sim__pool_alloc(&w->l->pool, (w->list[SIM_LIST_OUT].n + 1) * sizeof *op);
    uint8_t *cause = sim__pool_alloc(&w->l->pool, w->n_slots);
    sim_flow *flow = sim__pool_alloc(&w->l->pool, (w->n_flows + 1) * sizeof *flow);

    if (op == NULL || cause == NULL || flow == NULL)
        return cs_fail(err, CS_ENOMEM, "operations of a block");
    memcpy(op, w->list[SIM_LIST_OUT].op, w->list[SIM_LIST_OUT].n * sizeof *op);
    memcpy(cause, w->cause, w->n_slots);
    memcpy(flow, w->l->flow, w->n_flows * sizeof *flow);
    out->op = op;
    out->n = w->list[SIM_LIST_OUT].n;
    out->slot_cause = cause;
    out->n_slots = w->n_slots;
    out->n_chunks = chunks_of(&w->list[SIM_LIST_OUT]);
    out->n_dims = w->l->job->network->n_dims;
    out->flow = flow;
    out->compute = w->compute;
    out->sent_bytes = w->sent_bytes;
    out->total_s = w->total_s;
    out->reader_start = out->reader = NULL;
    out->scheduling = w->l->job->network->scheduling;
    if (out->scheduling != SIM_PROGRAM)
        return keep_readers(w, out, err);
    return CS_OK;
}

cs_status sim__lower_pass(sim_lowering *l, sim_context context, sim_lowered *out, cs_error *err)
{
    cs_status status;
    const wl_pass *pass = sim__pass_of(l->job, context.self);
    bool slow = (context.slow & 1) != 0;
    sim_lower_work w = {.l = l,
                        .context = context,
                        .timing = &l->timing[slow],
                        .device = slow ? l->job->slow->device : l->job->device,
                        .tp_overlap = l->job->device->tp_overlap,
                        .last_compute = -1,
                        .early_item = -1,
                        .serial = l->job->serial ? SIM_SLOT_INPUT : SIM_SLOT_START,
                        .weights_slot = SIM_SLOT_WEIGHTS};

    CS_TRY(reserve(&w, pass, err));
    (void)sim__new_slot(&w, WL_DP); /* SIM_SLOT_START */
    (void)sim__new_slot(&w, WL_DP); /* SIM_SLOT_INPUT */
    (void)sim__new_slot(&w, WL_DP); /* SIM_SLOT_WEIGHTS */
    CS_TRY(find_gather_dims(&w, err));
    CS_TRY(find_reduce_dims(&w, sim__pass_of(l->job, context.reduce), err));
    CS_TRY(find_urgent(&w, pass, err));
    CS_TRY(put_gather(&w, err));
    CS_TRY(put_reductions(&w, err));
    out->output = SIM_SLOT_INPUT;
    out->prefetch = (uint8_t)l->job->config->prefetch;
    if (out->prefetch == 0 && w.list[SIM_LIST_GATHER].n > 0)
        put_own_gather(&w);
    if (l->job->serial)
        sim__merge_rest(&w);
    if (pass != NULL)
        CS_TRY(sim__put_items(&w, pass, err));
    if (l->job->serial)
        out->output = w.serial;
    else if (pass != NULL && pass->output >= 0)
        out->output = w.item_slot[pass->output];
    CS_TRY(put_boundary(&w, out, err));
    sim__merge_rest(&w);
    out->gathered = join(&w, SIM_LIST_GATHER);
    out->reduced = join(&w, SIM_LIST_REDUCE);
    CS_TRY(keep(&w, out, err));
done:
    return status;
}
