/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The items of a pass as operations, in program order.
 *
 * Two overlaps go inside an operator.  Both cut a computation of D seconds so that a part of it
 * runs beside a collective of n NPUs, E seconds, that is a ring of n - 1 steps:
 *
 *   ring attention: the exchange of K and V runs beside attention on the part that is there; the
 *   last of n parts waits for the end of the exchange: max(D, E + D/n).  (Liu et al., Ring
 *   Attention, 2023.)  What backward sends around the ring leaves when the first part is done.
 *
 *   ring-decomposed GEMM (compute.tp_overlap = x): a gather before a matrix product, or a reduction
 *   after it, proceeds part by part with it (Wang et al., ASPLOS 2023).  Step 1 of n is exposed,
 * and with x < 1 more: d = D (1 - x (n-1)/n) of the product waits for the whole gather, or comes
 * before the reduction: max(D, E + d).  Of an all-reduce only the half that scatters is overlapped:
 *   max(D, E/2 + d) + E/2.
 *
 * Without overlap at all (`serial`) each operation waits for the one before, so that an iteration
 * is computation plus communication. */
#include <math.h>

#include "sim/compute.h"
#include "sim/lower_private.h"

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
    /* The optimizer waits for the reduced gradients, a decode step for the token before. */
    if (item->n_deps == 0 &&
        (w->context.self.kind == SIM_PASS_UPDATE || w->l->job->schedule->pipeline.twice))
        sim__set_dep(op, SIM_SLOT_INPUT);
    if (w->l->job->serial)
        sim__set_dep(op, w->serial);
}

/* ---- which collectives an operator overlaps ---- */

static double members(const sim_lower_work *w, const wl_item *item)
{
    double n = 1;

    for (size_t axis = 0; axis < WL_N_AXES; axis++)
        if ((item->group >> axis & 1) != 0)
            n *= (double)w->l->job->mesh->size[axis];
    return item->part > 0 ? item->part : n;
}

static bool runs(const sim_lower_work *w, const wl_item *item)
{
    return sim__pass_takes((sim_pass_kind)w->context.self.kind, item);
}

static bool is_tp(const sim_lower_work *w, const wl_item *item, wl_collective type)
{
    return item->kind == WL_COMM && item->collective == type && item->group == WL_GROUP(WL_TP) &&
           !item->overlapped && runs(w, item);
}

static bool is_gemm(const wl_item *item)
{
    return item->kind == WL_COMPUTE && item->m > 0;
}

/* The gather that item i overlaps: its ring exchange, or the tensor parallel gather it reads; -1
 * none. */
static int gather_of(const sim_lower_work *w, const wl_pass *pass, size_t i)
{
    const wl_item *item = &pass->item[i];

    if (i > 0 && pass->item[i - 1].overlapped && pass->item[i - 1].op == item->op &&
        runs(w, &pass->item[i - 1]))
        return (int)i - 1;
    for (size_t d = 0; w->tp_overlap > 0 && is_gemm(item) && d < item->n_deps; d++)
        if (item->dep[d] >= 0 && is_tp(w, &pass->item[item->dep[d]], WL_ALL_GATHER))
            return item->dep[d];
    return -1;
}

/* Whether item i is the last computation that item j waits for. */
static bool ends_in(const wl_pass *pass, size_t i, size_t j)
{
    const wl_item *item = &pass->item[j];
    bool found = false;

    for (size_t d = 0; d < item->n_deps; d++) {
        if (item->dep[d] > (int16_t)i && pass->item[item->dep[d]].kind == WL_COMPUTE)
            return false;
        found = found || item->dep[d] == (int16_t)i;
    }
    return found;
}

/* The reduction that item i overlaps: what it sends around its ring, or the tensor parallel one
 * that waits for it last; -1 none. */
static int reduction_of(const sim_lower_work *w, const wl_pass *pass, size_t i)
{
    if (i + 1 < pass->n && pass->item[i + 1].overlapped &&
        pass->item[i + 1].op == pass->item[i].op && runs(w, &pass->item[i + 1]))
        return (int)i + 1;
    if (w->tp_overlap <= 0 || !is_gemm(&pass->item[i]))
        return -1;
    for (size_t j = i + 1; j < pass->n; j++)
        if ((is_tp(w, &pass->item[j], WL_REDUCE_SCATTER) ||
             is_tp(w, &pass->item[j], WL_ALL_REDUCE)) &&
            ends_in(pass, i, j))
            return (int)j;
    return -1;
}

/* d of the above, of an operation of `whole`. */
static sim_time exposed_part(const sim_lower_work *w, const wl_item *collective, sim_time whole)
{
    double n = members(w, collective), x = collective->overlapped ? 1 : w->tp_overlap;

    return llround((double)whole * (1 - x * (n - 1) / n));
}

/* How long a collective takes alone. */
static sim_time alone(const sim_timed *timed, sim_time chunks)
{
    sim_time sum = 0, longest = 0;

    for (size_t p = 0; p < timed->n_phases; p++) {
        sum += timed->phase[p].duration;
        if (timed->phase[p].duration > longest)
            longest = timed->phase[p].duration;
    }
    return sum + (chunks - 1) * longest;
}

/* When, in an operation of `whole`, the reduction j may begin. */
static cs_status release_at(sim_lower_work *w, const wl_item *reduction, sim_time whole,
                            sim_time *at, cs_error *err)
{
    cs_status status = CS_OK;
    const sim_timed *timed;
    sim_time half;

    *at = exposed_part(w, reduction, whole);
    if (reduction->collective != WL_ALL_REDUCE)
        return CS_OK;
    CS_TRY(sim__time_item(w, reduction, &timed, err));
    half = alone(timed, (sim_time)w->l->job->network->chunks) / 2;
    if (whole - half > *at)
        *at = whole - half;
done:
    return status;
}

/* ---- operations ---- */

/* A computation in up to three parts.  What comes from `waits_at` on needs `gather` as well. */
typedef struct {
    sim_op op; /* duration: what is left */
    sim_time done, waits_at, releases_at;
    int16_t gather;   /* slot; -1 none */
    int16_t released; /* slot of the part that ends at releases_at */
    int16_t *slot;    /* of the item */
} parts;

static void put_part(sim_lower_work *w, parts *p, sim_time until)
{
    sim_op op = p->op;

    if (until <= p->done)
        return;
    op.duration = until - p->done;
    if (p->gather >= 0 && p->done >= p->waits_at)
        op.dep[op.n_deps++] = p->gather;
    op.out = sim__new_slot(w, SIM_WAIT_CAUSES);
    sim__push(w, &w->list[SIM_LIST_OUT], &op);
    p->op.duration -= op.duration;
    p->done = until;
    w->last_compute = *p->slot = op.out;
    sim__set_dep(&p->op, op.out);
    if (until == p->releases_at)
        p->released = op.out;
}

/* Products that were begun beside a gather are ended before anything else. */
static void end_begun(sim_lower_work *w)
{
    for (size_t i = 0; i < w->n_begun; i++) {
        sim_begun *b = &w->begun[i];
        sim_op op = b->op;

        op.dep[op.n_deps++] = b->gather;
        op.out = sim__new_slot(w, SIM_WAIT_CAUSES);
        sim__push(w, &w->list[SIM_LIST_OUT], &op);
        w->last_compute = w->item_slot[b->item] = op.out;
    }
    w->n_begun = 0;
}

/* Inputs of item i without the gather `g`, but with what the gather waits for; false when there are
 * too many. */
static bool inputs_without(const sim_lower_work *w, const wl_pass *pass, size_t i, int g,
                           sim_op *op)
{
    const wl_item *item = &pass->item[i], *gather = &pass->item[g];
    wl_item merged = *item;

    if (gather->overlapped)
        return item->n_deps < WL_MAX_DEPS;
    merged.n_deps = 0;
    for (size_t d = 0; d < item->n_deps; d++)
        if (item->dep[d] != g)
            merged.dep[merged.n_deps++] = item->dep[d];
    for (size_t d = 0; d < gather->n_deps; d++) {
        if (merged.n_deps + 1 >= WL_MAX_DEPS)
            return false;
        merged.dep[merged.n_deps++] = gather->dep[d];
    }
    item_inputs(w, &merged, op);
    return true;
}

static void begin(sim_lower_work *w, size_t i, const parts *p)
{
    w->begun[w->n_begun++] = (sim_begun){p->op, (int16_t)i, p->gather};
}

static bool reads_begun(const sim_lower_work *w, const wl_item *item)
{
    for (size_t b = 0; b < w->n_begun; b++)
        for (size_t d = 0; d < item->n_deps; d++)
            if (item->dep[d] == w->begun[b].item)
                return true;
    return false;
}

/* An item of no duration. */
static void put_nothing(sim_lower_work *w, parts *p)
{
    if (p->gather >= 0)
        p->op.dep[p->op.n_deps++] = p->gather;
    p->op.out = *p->slot = w->last_compute = sim__new_slot(w, SIM_WAIT_CAUSES);
    sim__push(w, &w->list[SIM_LIST_OUT], &p->op);
}

/* The parts that are not deferred; the reduction `r` may begin within them. */
static void put_parts(sim_lower_work *w, size_t i, int r, parts *p)
{
    sim_time whole = p->op.duration, first = p->waits_at, second = p->releases_at;

    if (whole == 0)
        put_nothing(w, p);
    put_part(w, p, first < second ? first : second);
    put_part(w, p, first < second ? second : first);
    put_part(w, p, whole);
    if (r < 0 || p->released < 0 || p->released == *p->slot)
        return;
    w->early_item = (int16_t)r;
    w->early_of = (int16_t)i;
    w->early_slot = p->released;
}

/* Item i, in parts where it overlaps a collective. */
static cs_status put_compute(sim_lower_work *w, const wl_pass *pass, size_t i, cs_error *err)
{
    cs_status status;
    const wl_item *item = &pass->item[i];
    bool serial = w->l->job->serial;
    int g = serial ? -1 : gather_of(w, pass, i), r = serial ? -1 : reduction_of(w, pass, i);
    parts p = {.op = {.count = 1}, .gather = -1, .released = -1, .slot = &w->item_slot[i]};
    sim_time whole;

    if (g < 0 || g != w->gather_item || r >= 0 || w->n_begun == SIM_MOST_BEGUN ||
        reads_begun(w, item))
        end_begun(w);
    CS_TRY(sim_time_from_s(sim__kernel_seconds(w->device, item), &whole, err));
    item_inputs(w, item, &p.op);
    p.op.duration = p.waits_at = p.releases_at = whole;
    p.op.gated = item->weight_gradient && w->l->job->config->sharding >= WL_SHARD_GRADIENTS;
    if (g >= 0 && inputs_without(w, pass, i, g, &p.op)) {
        p.gather = w->item_slot[g];
        p.waits_at = whole - exposed_part(w, &pass->item[g], whole);
        w->gather_item = g;
    }
    if (r >= 0)
        CS_TRY(release_at(w, &pass->item[r], whole, &p.releases_at, err));
    if (p.gather >= 0 && r < 0 && p.waits_at > 0 && p.waits_at < whole) {
        put_part(w, &p, p.waits_at);
        begin(w, i, &p);
        return CS_OK;
    }
    put_parts(w, i, r, &p);
done:
    return status;
}

/* The slot at which both are there. */
static int16_t join_two(sim_lower_work *w, int16_t a, int16_t b, int cause)
{
    sim_op op = {.server = SIM_NO_SERVER, .name = -1, .count = 1, .n_deps = 2, .dep = {a, b}};

    op.out = sim__new_slot(w, cause);
    sim__push(w, &w->list[SIM_LIST_OUT], &op);
    return op.out;
}

static cs_status put_comm(sim_lower_work *w, const wl_pass *pass, size_t i, cs_error *err)
{
    cs_status status;
    const wl_item *item = &pass->item[i];
    bool early = w->early_item == (int16_t)i;
    const sim_timed *timed;
    sim_op op = {.count = 1};
    sim_piece piece = {.chunks = (size_t)w->l->job->network->chunks, .cause = item->axis};
    int16_t *end = &w->item_slot[i], whole;

    end_begun(w);
    item_inputs(w, item, &op);
    whole = early ? w->item_slot[w->early_of] : -1;
    for (size_t d = 0; early && d < item->n_deps; d++)
        if (item->dep[d] == w->early_of)
            op.dep[d] = w->early_slot;
    if (early && item->overlapped && op.n_deps < WL_MAX_DEPS)
        op.dep[op.n_deps++] = w->early_slot;
    CS_TRY(sim__time_item(w, item, &timed, err));
    piece.timed = timed;
    CS_TRY(sim__put_collective(w, SIM_LIST_OUT, &piece, &op, end, err));
    if (early)
        *end = join_two(w, *end, whole, item->axis);
done:
    return status;
}

cs_status sim__put_items(sim_lower_work *w, const wl_pass *pass, cs_error *err)
{
    cs_status status = CS_OK;

    for (size_t i = 0; i < pass->n; i++) {
        w->item_slot[i] = SIM_SLOT_START;
        if (!runs(w, &pass->item[i]))
            continue;
        if (pass->item[i].kind == WL_COMPUTE)
            CS_TRY(put_compute(w, pass, i, err));
        else
            CS_TRY(put_comm(w, pass, i, err));
        if (w->l->job->serial)
            w->serial = w->item_slot[i];
    }
    end_begun(w);
done:
    return status;
}
