/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Order of the operations of a pass, as lower.c gives it: compute and the collectives that
 * something waits for in issue order, phase, chunk; chunks of gathers and reductions in the
 * background spread evenly among the latter. */
#include "sim/export_private.h"

#include <stdlib.h>
#include <string.h>

static cs_status no_memory(sim__pass_work *w)
{
    return cs_fail(w->err, CS_ENOMEM, "out of memory for the export of a design");
}

static cs_status push(sim__pass_work *w, sim__entry **list, size_t *n, size_t *cap,
                      sim__entry entry)
{
    if (*n == *cap) {
        size_t next = *cap == 0 ? 256 : 2 * *cap;
        sim__entry *grown = realloc(*list, next * sizeof *grown);

        if (grown == NULL)
            return no_memory(w);
        *list = grown;
        *cap = next;
    }
    (*list)[(*n)++] = entry;
    return CS_OK;
}

static cs_status push_entry(sim__pass_work *w, sim__entry entry)
{
    return push(w, &w->entry, &w->n_entries, &w->cap_entries, entry);
}

/* ---- collectives ---- */

static uint32_t dims_of(const sim_timed *timed)
{
    uint32_t dims = 0;

    for (size_t p = 0; p < timed->n_phases; p++)
        dims |= 1u << (timed->phase[p].server - 1) | timed->phase[p].others;
    return dims;
}

static cs_status add_coll(sim__pass_work *w, const sim_collective_key *key, sim__list list,
                          int32_t item, int32_t name, int32_t *index)
{
    const sim_timed *timed;
    sim__coll_part *c;
    cs_status status;

    if (w->n_colls == SIM__MOST_COLLS)
        return cs_fail(w->err, CS_EINVAL, "export: more than %d collectives in a block",
                       SIM__MOST_COLLS);
    CS_TRY(sim__timed_collective(w->x->timing, key, &timed, w->err));
    c = &w->coll[w->n_colls];
    memset(c, 0, sizeof *c);
    c->key = *key;
    c->timed = *timed;
    c->chunks = (size_t)w->job->network->chunks;
    c->list = (uint8_t)list;
    c->item = item;
    c->name = name;
    c->dims = dims_of(timed);
    *index = (int32_t)w->n_colls++;
done:
    return status;
}

static sim_collective_key key_of(const wl_item *item)
{
    return (sim_collective_key){item->collective, item->group, item->part, item->part_stride,
                                item->bytes};
}

static size_t operations(const sim__coll_part *c)
{
    return c->timed.n_phases == 0 ? 1 : c->timed.n_phases * c->chunks;
}

/* Chunks of a collective in order, phase by phase. */
static cs_status list_chunks(sim__pass_work *w, int32_t index, sim__list list)
{
    const sim__coll_part *c = &w->coll[index];
    size_t phases = c->timed.n_phases == 0 ? 1 : c->timed.n_phases;
    size_t chunks = c->timed.n_phases == 0 ? 1 : c->chunks;
    cs_status status = CS_OK;

    for (size_t p = 0; p < phases; p++)
        for (size_t k = 0; k < chunks && status == CS_OK; k++)
            status = push(w, &w->listed[list], &w->n_listed[list], &w->cap_listed[list],
                          (sim__entry){SIM__ENTRY_CHUNK, (uint8_t)p, (uint16_t)k, index});
    return status;
}

static cs_status list_gathers(sim__pass_work *w)
{
    const wl_block *block;
    cs_status status = CS_OK;
    int32_t index;

    if (w->context.gather.kind == SIM_PASS_NONE)
        return CS_OK;
    block = &w->job->program->block[w->context.gather.block];
    for (size_t i = 0; i < block->n_gathers; i++) {
        const wl_gather *g = &block->gather[i];
        sim_collective_key key = {WL_ALL_GATHER, g->group, g->part, g->part_stride, g->bytes};

        CS_TRY(add_coll(w, &key, SIM__GATHER, -1, SIM__NAME_GATHER, &index));
        CS_TRY(list_chunks(w, index, SIM__GATHER));
    }
done:
    return status;
}

/* Gradient reductions of the pass before; each may wait for earlier ones. */
static cs_status list_reductions(sim__pass_work *w)
{
    const wl_pass *pass = sim__pass_of(w->job, w->context.reduce);
    cs_status status = CS_OK;
    int32_t index;

    for (size_t i = 0; pass != NULL && i < pass->n; i++) {
        const wl_item *item = &pass->item[i];
        sim_collective_key key = key_of(item);

        if (!item->background)
            continue;
        CS_TRY(add_coll(w, &key, SIM__REDUCE, (int32_t)i, item->op, &index));
        CS_TRY(list_chunks(w, index, SIM__REDUCE));
    }
done:
    return status;
}

/* ---- order ---- */

static cs_status merge_list(sim__pass_work *w, sim__list list, bool all)
{
    cs_status status = CS_OK;

    while (status == CS_OK && w->merged[list] < w->n_listed[list] &&
           (all ||
            (2 * w->merged[list] + 1) * w->urgent < (2 * w->merged_urgent + 1) * w->n_listed[list]))
        status = push_entry(w, w->listed[list][w->merged[list]++]);
    return status;
}

static cs_status merge_background(sim__pass_work *w, bool all)
{
    cs_status status = merge_list(w, SIM__GATHER, all);

    return status == CS_OK ? merge_list(w, SIM__REDUCE, all) : status;
}

static bool meets_background(const sim__pass_work *w, uint32_t dims)
{
    return (dims & w->background) != 0;
}

static cs_status put_urgent(sim__pass_work *w, int32_t index)
{
    cs_status status = CS_OK;

    w->n_listed[SIM__URGENT] = 0;
    CS_TRY(list_chunks(w, index, SIM__URGENT));
    for (size_t i = 0; i < w->n_listed[SIM__URGENT]; i++) {
        if (meets_background(w, w->coll[index].dims)) {
            CS_TRY(merge_background(w, false));
            w->merged_urgent++;
        }
        CS_TRY(push_entry(w, w->listed[SIM__URGENT][i]));
    }
done:
    return status;
}

static bool takes(const sim__pass_work *w, const wl_item *item)
{
    return sim__pass_takes((sim_pass_kind)w->context.self.kind, item);
}

static void find_background(sim__pass_work *w)
{
    w->background = 0;
    for (size_t i = 0; i < w->n_colls; i++)
        w->background |= w->coll[i].dims;
}

/* Collectives of the foreground; those that meet the background on a dimension are counted ahead,
 * because the background is spread evenly among them. */
static cs_status list_urgent(sim__pass_work *w)
{
    cs_status status = CS_OK;
    const sim_timed *boundary;

    for (size_t i = 0; w->pass != NULL && i < w->pass->n; i++) {
        const wl_item *item = &w->pass->item[i];
        sim_collective_key key = key_of(item);

        w->coll_of[i] = -1;
        if (item->kind == WL_COMPUTE || !takes(w, item))
            continue;
        CS_TRY(add_coll(w, &key, SIM__URGENT, (int32_t)i, item->op, &w->coll_of[i]));
        if (meets_background(w, w->coll[w->coll_of[i]].dims))
            w->urgent += operations(&w->coll[w->coll_of[i]]);
    }
    if (w->context.send != 0) {
        CS_TRY(sim__timed_boundary(w->x->timing, w->context.send == 2, &boundary, w->err));
        w->send_dims = dims_of(boundary);
        if (meets_background(w, w->send_dims))
            w->urgent += boundary->n_phases;
    }
done:
    return status;
}

static cs_status put_items(sim__pass_work *w)
{
    cs_status status = CS_OK;

    for (size_t i = 0; w->pass != NULL && i < w->pass->n; i++) {
        if (!takes(w, &w->pass->item[i]))
            continue;
        if (w->pass->item[i].kind == WL_COMPUTE)
            CS_TRY(push_entry(w, (sim__entry){SIM__ENTRY_COMPUTE, 0, 0, (int32_t)i}));
        else
            CS_TRY(put_urgent(w, w->coll_of[i]));
    }
done:
    return status;
}

/* ---- which collectives are written chunk by chunk ---- */

/* Whether item b of the pass waits for the earlier item a, directly or through others. */
static bool waits_for(const sim__pass_work *w, int32_t b, int32_t a)
{
    memset(w->mark, 0, w->pass->n * sizeof *w->mark);
    w->mark[b] = true;
    for (int32_t i = b; i > a; i--) {
        const wl_item *item = &w->pass->item[i];

        for (size_t d = 0; w->mark[i] && d < item->n_deps; d++)
            if (item->dep[d] >= 0)
                w->mark[item->dep[d]] = true;
    }
    return w->mark[a];
}

/* Whether two collectives may be under way at once. */
static bool meet(const sim__pass_work *w, const sim__coll_part *a, const sim__coll_part *b)
{
    if (a->list != SIM__URGENT || b->list != SIM__URGENT)
        return true;
    if (a->timed.n_phases <= 1 && b->timed.n_phases <= 1)
        return false; /* one after the other, in order of issue */
    return a->item < b->item ? !waits_for(w, b->item, a->item) : !waits_for(w, a->item, b->item);
}

static bool shares(const sim__pass_work *w, const sim__coll_part *a)
{
    for (size_t i = 0; i < w->n_colls; i++) {
        const sim__coll_part *b = &w->coll[i];

        if (b != a && (a->dims & b->dims) != 0 && meet(w, a, b))
            return true;
    }
    return false;
}

/* Whether a collective of the background may find one of the passes before on its dimensions. */
static bool follows(const sim__pass_work *w, const sim__coll_part *c)
{
    bool found = false;

    for (size_t d = 0; d < SIM_MAX_DIMS; d++)
        found |= (c->dims >> d & 1) != 0 && w->stage->server[d] != SIM__NO_NODE;
    return found && c->list != SIM__URGENT && c->timed.n_phases > 1;
}

/* Whether a transfer to the next stage may find a collective of the background before it. */
static bool precedes(const sim__pass_work *w, const sim__coll_part *c)
{
    return c->list != SIM__URGENT && (c->dims & w->boundary_dims) != 0;
}

/* Where nothing meets on a dimension, whole collectives give the same times. */
static void choose_apart(sim__pass_work *w)
{
    for (size_t i = 0; i < w->n_colls; i++) {
        sim__coll_part *c = &w->coll[i];
        c->apart = c->timed.n_phases > 0 && (shares(w, c) || follows(w, c) || precedes(w, c));
    }
}

/* Dimensions of the transfers between stages. */
static cs_status find_boundary(sim__pass_work *w)
{
    const sim_timed *boundary;
    cs_status status = CS_OK;

    w->boundary_dims = 0;
    if (w->x->n_stages < 2)
        return CS_OK;
    for (int backward = 0; backward < 2; backward++) {
        CS_TRY(sim__timed_boundary(w->x->timing, backward == 1, &boundary, w->err));
        w->boundary_dims |= dims_of(boundary);
    }
done:
    return status;
}

cs_status sim__export_order(sim__pass_work *w)
{
    cs_status status;

    CS_TRY(find_boundary(w));
    CS_TRY(list_gathers(w));
    CS_TRY(list_reductions(w));
    find_background(w);
    CS_TRY(list_urgent(w));
    choose_apart(w);
    if (w->job->config->prefetch == 0)
        CS_TRY(merge_list(w, SIM__GATHER, true));
    CS_TRY(put_items(w));
    if (w->context.send != 0) {
        if (w->urgent > 0)
            CS_TRY(merge_background(w, false));
        CS_TRY(push_entry(w, (sim__entry){.kind = SIM__ENTRY_SEND}));
    }
    CS_TRY(merge_background(w, true));
done:
    return status;
}
