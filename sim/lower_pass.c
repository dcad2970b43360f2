/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "sim/compute.h"
#include "sim/lower_private.h"

enum { MOST_SLOTS = 32000 };

static cs_status time_item(sim_lower_work *w, const wl_item *item, const sim_timed **out,
                           cs_error *err)
{
    sim_collective_key key = {item->collective, item->group, item->part, item->part_stride,
                              item->bytes};
    return sim__timed_collective(&w->l->timing, &key, out, err);
}

/* Emits background operations whose place is before the next of the urgent ones. */
static void merge_list(sim_lower_work *w, sim_op_list *list, bool all)
{
    while (list->merged < list->n &&
           (all || (2 * list->merged + 1) * w->urgent < (2 * w->merged_urgent + 1) * list->n))
        w->out.op[w->out.n++] = list->op[list->merged++];
}

static void merge_background(sim_lower_work *w, bool all)
{
    merge_list(w, &w->gather, all);
    merge_list(w, &w->reduce, all);
}

/* Chunks back to back on one server are one operation where nothing may come between. */
static bool collapses(const sim_lower_work *w, const sim_timed *timed)
{
    return timed->n_phases == 1 && w->gather.n + w->reduce.n == 0 &&
           w->l->job->network->scheduling == SIM_PROGRAM;
}

/* Writes a foreground collective chunk by chunk with the background between its chunks. */
static cs_status put_urgent(sim_lower_work *w, const sim_timed *timed, size_t chunks,
                            const sim_op *op, int cause, int16_t *end, cs_error *err)
{
    cs_status status;
    sim_op_list own = {.op = w->l->room[SIM_LIST_OWN]};

    if (collapses(w, timed)) {
        sim_timed merged = {.n_phases = 1, .phase = {timed->phase[0]}};
        merged.phase[0].duration *= (sim_time)chunks;
        merged.phase[0].bytes *= (int64_t)chunks;
        return sim__put_collective(w, &w->out, &merged, 1, op, cause, end, err);
    }
    CS_TRY(sim__put_collective(w, &own, timed, chunks, op, cause, end, err));
    for (size_t i = 0; i < own.n; i++) {
        merge_background(w, false);
        w->out.op[w->out.n++] = own.op[i];
        w->merged_urgent++;
    }
done:
    return status;
}

static void item_inputs(const sim_lower_work *w, const wl_item *item, sim_op *op)
{
    for (size_t i = 0; i < item->n_deps; i++) {
        int dep = item->dep[i];
        op->dep[i] = dep == WL_DEP_INPUT     ? (int16_t)SIM_SLOT_INPUT
                     : dep == WL_DEP_WEIGHTS ? w->weights_slot
                                             : w->item_slot[dep];
    }
    op->n_deps = item->n_deps;
    op->name = item->op;
    if (item->n_deps == 0 && w->context.self.kind == SIM_PASS_UPDATE)
        sim__set_dep(op, SIM_SLOT_INPUT); /* the optimizer waits for the reduced gradients */
}

static cs_status put_compute(sim_lower_work *w, const wl_item *item, sim_op *op, int16_t *slot,
                             cs_error *err)
{
    cs_status status;

    CS_TRY(sim_time_from_s(sim__kernel_seconds(w->l->job->device, item), &op->duration, err));
    op->server = 0;
    op->gated = item->weight_gradient && w->l->job->config->sharding >= WL_SHARD_GRADIENTS;
    *slot = op->out = sim__new_slot(w, SIM_WAIT_CAUSES);
    w->last_compute = op->out;
    sim__push(w, &w->out, op);
done:
    return status;
}

static cs_status put_items(sim_lower_work *w, const wl_pass *pass, cs_error *err)
{
    cs_status status = CS_OK;
    size_t chunks = (size_t)w->l->job->network->chunks;

    for (size_t i = 0; i < pass->n; i++) {
        const wl_item *item = &pass->item[i];
        const sim_timed *timed;
        sim_op op = {0};

        w->item_slot[i] = SIM_SLOT_START;
        if (!sim__pass_takes((sim_pass_kind)w->context.self.kind, item))
            continue;
        item_inputs(w, item, &op);
        if (item->kind == WL_COMPUTE) {
            CS_TRY(put_compute(w, item, &op, &w->item_slot[i], err));
            continue;
        }
        CS_TRY(time_item(w, item, &timed, err));
        CS_TRY(put_urgent(w, timed, chunks, &op, item->axis, &w->item_slot[i], err));
    }
done:
    return status;
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
        sim_collective_key key;
        const sim_timed *timed;
        sim_op op = {.name = -1};

        sim__set_dep(&op, SIM_SLOT_START);
        key = (sim_collective_key){WL_ALL_GATHER, gather->group, gather->part, gather->part_stride,
                                   gather->bytes};
        CS_TRY(sim__timed_collective(&w->l->timing, &key, &timed, err));
        CS_TRY(sim__put_collective(w, &w->gather, timed, (size_t)w->l->job->network->chunks, &op,
                                   WL_DP, &w->gather.end[w->gather.n_ends], err));
        w->gather.n_ends++;
    }
done:
    return status;
}

/* Gradient reductions that the pass before this one left behind. */
static cs_status put_reductions(sim_lower_work *w, cs_error *err)
{
    cs_status status = CS_OK;
    const wl_pass *pass = sim__pass_of(w->l->job, w->context.reduce);

    for (size_t i = 0; pass != NULL && i < pass->n; i++) {
        const wl_item *item = &pass->item[i];
        const sim_timed *timed;
        sim_op op = {0};

        w->item_slot[i] = SIM_SLOT_START;
        if (!item->background)
            continue;
        item_inputs(w, item, &op);
        for (size_t d = 0; d < op.n_deps; d++)
            if (op.dep[d] < SIM_SLOT_FIRST)
                op.dep[d] = SIM_SLOT_START;
        CS_TRY(time_item(w, item, &timed, err));
        CS_TRY(sim__put_collective(w, &w->reduce, timed, (size_t)w->l->job->network->chunks, &op,
                                   item->axis, &w->item_slot[i], err));
        if (w->reduce.n_ends == SIM_MOST_ENDS)
            return cs_fail(err, CS_EINVAL, "more than %d gradient reductions in a block",
                           SIM_MOST_ENDS);
        w->reduce.end[w->reduce.n_ends++] = w->item_slot[i];
    }
done:
    return status;
}

/* One slot for the latest of several ends; -1 when there is none. */
static int16_t join(sim_lower_work *w, const sim_op_list *list)
{
    sim_op op = {.server = SIM_NO_SERVER, .name = -1};

    if (list->n_ends == 0)
        return -1;
    sim__set_dep(&op, list->end[0]);
    for (size_t i = 1; i < list->n_ends; i++) {
        op.dep[1] = list->end[i];
        op.n_deps = 2;
        op.out = sim__new_slot(w, WL_DP);
        sim__push(w, &w->out, &op);
        sim__set_dep(&op, op.out);
    }
    return op.dep[0];
}

/* Just in time: the block's own weights are gathered before anything else of it. */
static void put_own_gather(sim_lower_work *w)
{
    merge_list(w, &w->gather, true);
    w->weights_slot = join(w, &w->gather);
    w->gather.n_ends = 0;
}

static cs_status put_send(sim_lower_work *w, int16_t output, int16_t *sent, cs_error *err)
{
    cs_status status;
    const sim_timed *timed;
    sim_op op = {.name = -1};

    CS_TRY(sim__timed_boundary(&w->l->timing, w->context.send == 2, &timed, err));
    sim__set_dep(&op, output);
    if (w->last_compute >= 0) /* an action sends when it is over */
        op.dep[op.n_deps++] = w->last_compute;
    CS_TRY(put_urgent(w, timed, 1, &op, WL_PP, sent, err));
done:
    return status;
}

/* Network operations of the foreground, counted ahead for the even spread. */
static cs_status count_urgent(sim_lower_work *w, const wl_pass *pass, cs_error *err)
{
    cs_status status = CS_OK;
    const sim_timed *timed;

    for (size_t i = 0; pass != NULL && i < pass->n; i++) {
        const wl_item *item = &pass->item[i];
        if (item->kind == WL_COMPUTE || !sim__pass_takes((sim_pass_kind)w->context.self.kind, item))
            continue;
        CS_TRY(time_item(w, item, &timed, err));
        w->urgent +=
            timed->n_phases == 0 ? 1 : timed->n_phases * (size_t)w->l->job->network->chunks;
    }
    if (w->context.send != 0) {
        CS_TRY(sim__timed_boundary(&w->l->timing, w->context.send == 2, &timed, err));
        w->urgent += timed->n_phases == 0 ? 1 : timed->n_phases;
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

/* Room for every operation and slot of a context. */
static cs_status reserve(sim_lower_work *w, const wl_pass *pass, cs_error *err)
{
    sim_lowering *l = w->l;
    const wl_pass *reduce = sim__pass_of(l->job, w->context.reduce);
    size_t items = (pass == NULL ? 0 : pass->n) + (reduce == NULL ? 0 : reduce->n);
    size_t chunks = (size_t)l->job->network->chunks;
    size_t lists = items + WL_MAX_GATHERS + 1;
    size_t ops = lists * ((SIM_MAX_PHASES + 1) * chunks + 1) + 2 * (size_t)SIM_MOST_ENDS;
    size_t copies = sim__distinct_slots(l) ? SIM_MAX_PHASES : 1;
    size_t slots = lists * (chunks * (copies + 1) + 1) + SIM_SLOT_FIRST + 2 * (size_t)SIM_MOST_ENDS;
    bool ok = true;

    if (slots > MOST_SLOTS)
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
    w->out.op = l->room[SIM_LIST_OUT];
    w->gather.op = l->room[SIM_LIST_GATHER];
    w->reduce.op = l->room[SIM_LIST_REDUCE];
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

/* Copies the finished lists to the pool. */
static cs_status keep(sim_lower_work *w, sim_lowered *out, cs_error *err)
{
    sim_op *op = sim__pool_alloc(&w->l->pool, (w->out.n + 1) * sizeof *op);
    uint8_t *cause = sim__pool_alloc(&w->l->pool, w->n_slots);

    if (op == NULL || cause == NULL)
        return cs_fail(err, CS_ENOMEM, "operations of a block");
    memcpy(op, w->out.op, w->out.n * sizeof *op);
    memcpy(cause, w->cause, w->n_slots);
    out->op = op;
    out->n = w->out.n;
    out->slot_cause = cause;
    out->n_slots = w->n_slots;
    out->n_dims = w->l->job->network->n_dims;
    out->n_terms = w->n_terms;
    out->compute = w->compute;
    out->sent_bytes = w->sent_bytes;
    out->total_s = w->total_s;
    if (w->n_slots > w->l->most_slots)
        w->l->most_slots = w->n_slots;
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
    sim_lower_work w = {
        .l = l, .context = context, .last_compute = -1, .weights_slot = SIM_SLOT_WEIGHTS};

    CS_TRY(reserve(&w, pass, err));
    (void)sim__new_slot(&w, WL_DP); /* SIM_SLOT_START */
    (void)sim__new_slot(&w, WL_DP); /* SIM_SLOT_INPUT */
    (void)sim__new_slot(&w, WL_DP); /* SIM_SLOT_WEIGHTS */
    CS_TRY(count_urgent(&w, pass, err));
    CS_TRY(put_gather(&w, err));
    CS_TRY(put_reductions(&w, err));
    out->output = SIM_SLOT_INPUT;
    out->prefetch = (uint8_t)l->job->config->prefetch;
    if (out->prefetch == 0 && w.gather.n > 0)
        put_own_gather(&w);
    if (pass != NULL) {
        CS_TRY(put_items(&w, pass, err));
        if (pass->output >= 0)
            out->output = w.item_slot[pass->output];
    }
    out->sent = -1;
    if (context.send != 0)
        CS_TRY(put_send(&w, out->output, &out->sent, err));
    merge_background(&w, true);
    out->gathered = join(&w, &w.gather);
    out->reduced = join(&w, &w.reduce);
    CS_TRY(keep(&w, out, err));
done:
    return status;
}
