/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Nodes of a pass in the order of export_pass.c. */
#include "sim/export_private.h"

#include <stdlib.h>
#include <string.h>

void sim__nodes_add(sim__nodes *set, uint32_t id)
{
    if (id == SIM__NO_NODE)
        return;
    for (uint32_t i = 0; i < set->n; i++)
        if (set->id[i] == id)
            return;
    if (set->n == SIM__EXPORT_SET) {
        memmove(set->id, set->id + 1, (SIM__EXPORT_SET - 1) * sizeof *set->id);
        set->n--;
    }
    set->id[set->n++] = id;
}

void sim__nodes_join(sim__nodes *set, const sim__nodes *more)
{
    for (uint32_t i = 0; i < more->n; i++)
        sim__nodes_add(set, more->id[i]);
}

bool sim__nodes_hold(const sim__nodes *set, const sim__nodes *part)
{
    for (uint32_t i = 0; i < part->n; i++) {
        uint32_t k = 0;

        while (k < set->n && set->id[k] != part->id[i])
            k++;
        if (k == set->n)
            return false;
    }
    return true;
}

static bool grow(void *pointer, size_t n, size_t more, size_t *cap, size_t size)
{
    void **at = pointer;
    size_t next = *cap;
    void *grown;

    while (next < n + more)
        next = next == 0 ? 256 : 2 * next;
    if (next == *cap)
        return true;
    grown = realloc(*at, next * size);
    if (grown == NULL)
        return false;
    *at = grown;
    *cap = next;
    return true;
}

uint32_t sim__export_node(sim__stage *stage, const sim__node *node, const sim__nodes *data,
                          const sim__nodes *ctrl)
{
    sim__nodes order = {.n = 0};
    sim__node *to;

    for (uint32_t i = 0; i < ctrl->n; i++) { /* what is data is not repeated */
        const sim__nodes one = {{ctrl->id[i]}, 1};
        if (!sim__nodes_hold(data, &one))
            sim__nodes_add(&order, ctrl->id[i]);
    }
    if (stage->n >= UINT32_MAX / 2 ||
        !grow(&stage->node, stage->n, 1, &stage->cap, sizeof *stage->node) ||
        !grow(&stage->dep, stage->n_dep, data->n + order.n, &stage->cap_dep, sizeof *stage->dep))
        return SIM__NO_NODE;
    to = &stage->node[stage->n++];
    *to = *node;
    to->dep = (uint32_t)stage->n_dep;
    to->n_data = (uint16_t)data->n;
    to->n_ctrl = (uint16_t)order.n;
    for (uint32_t i = 0; i < data->n; i++)
        stage->dep[stage->n_dep++] = data->id[i];
    for (uint32_t i = 0; i < order.n; i++)
        stage->dep[stage->n_dep++] = order.id[i];
    return (uint32_t)stage->n;
}

cs_status sim__export_no_memory(const sim__pass_work *w)
{
    return cs_fail(w->err, CS_ENOMEM, "out of memory for the export of a design");
}

/* ---- collectives ---- */

static cs_status footprint_of(const sim__pass_work *w, const sim_collective_key *key,
                              sim_footprint *out)
{
    sim_footprint whole;
    cs_status status;

    CS_TRY(sim_footprint_make(w->job->network, w->job->mesh, w->job->order, key->group, &whole,
                              w->err));
    *out = whole;
    if (key->part != 0)
        CS_TRY(sim_footprint_part(&whole, key->part, key->part_stride, out, w->err));
done:
    return status;
}

/* One phase of a chunk as a collective of its own. */
typedef struct {
    uint8_t type;
    size_t span;
    double bytes;
} phase_shape;

static double below(const sim_footprint *f, size_t span)
{
    double product = 1;

    for (size_t i = 0; i < span; i++)
        product *= (double)f->span[i].n;
    return product;
}

static phase_shape shape_of(const sim__pass_work *w, const sim__coll_part *c,
                            const sim_footprint *f, size_t phase)
{
    size_t last = f->n_spans - 1;
    double bytes = c->key.bytes / (double)c->chunks;
    phase_shape s = {c->key.kind, phase, bytes};

    if (c->key.kind == WL_ALL_REDUCE && w->job->network->multi_dim == SIM_HIERARCHICAL) {
        s.span = phase <= last ? phase : 2 * last - phase;
        s.type = phase < last ? WL_REDUCE_SCATTER : phase == last ? WL_ALL_REDUCE : WL_ALL_GATHER;
        s.bytes = bytes / below(f, s.span);
    } else if (c->key.kind == WL_ALL_GATHER) {
        s.span = last - phase;
        s.bytes = bytes / below(f, s.span);
    } else if (c->key.kind == WL_REDUCE_SCATTER) {
        s.bytes = bytes / below(f, s.span);
    }
    return s;
}

/* Whether the shape takes the time of the phase when it is alone. */
static cs_status shape_fits(const sim__pass_work *w, const sim__coll_part *c,
                            const sim_footprint *f, size_t phase, bool *fits)
{
    phase_shape s = shape_of(w, c, f, phase);
    sim_network net = *w->job->network;
    sim_footprint one = *f;
    sim_phases phases;
    sim_time duration = -1;
    cs_status status;

    one.n_spans = 1;
    one.span[0] = f->span[s.span];
    one.n = one.span[0].n;
    net.chunks = 1;
    CS_TRY(sim_collective_phases(
        &net, &(sim_collective){.group = &one, .type = (wl_collective)s.type, .bytes = s.bytes},
        w->job->routes, &phases, w->err));
    if (phases.n == 1)
        CS_TRY(sim_time_from_s(phases.phase[0].seconds, &duration, w->err));
    *fits = llabs(duration - c->timed.phase[phase].duration) <= 1 &&
            c->timed.phase[phase].server == 1 + one.span[0].dim;
done:
    return status;
}

/* Collectives that cannot be taken apart stay whole. */
static cs_status check_apart(sim__pass_work *w, sim__coll_part *c)
{
    sim_footprint f;
    cs_status status = CS_OK;

    if (!c->apart || c->timed.n_phases == 1)
        return CS_OK;
    CS_TRY(footprint_of(w, &c->key, &f));
    for (size_t p = 0; p < c->timed.n_phases && c->apart; p++)
        CS_TRY(shape_fits(w, c, &f, p, &c->apart));
done:
    return status;
}

static int32_t class_of(const sim__pass_work *w, const sim__coll_part *c, const sim_span *span)
{
    sim__class k = {
        .axes = c->key.group, .part = c->key.part, .part_stride = c->key.part_stride, .dim = -1};

    if (span != NULL) {
        k.dim = span->dim;
        k.n = span->n;
        k.stride = span->stride;
    }
    return sim__export_class(w->x, &k);
}

static sim__nodes servers_of(const sim__pass_work *w, uint32_t dims)
{
    sim__nodes out = {.n = 0};

    for (size_t d = 0; d < SIM_MAX_DIMS; d++)
        if ((dims >> d & 1) != 0)
            sim__nodes_add(&out, w->stage->server[d]);
    return out;
}

static void occupy(sim__pass_work *w, uint32_t dims, uint32_t node)
{
    for (size_t d = 0; d < SIM_MAX_DIMS; d++)
        if ((dims >> d & 1) != 0)
            w->stage->server[d] = node;
}

/* What a collective waits for, once its inputs are written; none starts before its block does. */
static sim__nodes waits_of(const sim__pass_work *w, const sim__coll_part *c)
{
    const wl_pass *pass =
        c->list == SIM__REDUCE ? sim__pass_of(w->job, w->context.reduce) : w->pass;
    sim__nodes out = {.n = 0};

    if (c->list == SIM__URGENT)
        out = sim__export_inputs(w, &pass->item[c->item]);
    sim__nodes_add(&out, w->start);
    for (size_t d = 0; c->list == SIM__REDUCE && d < pass->item[c->item].n_deps; d++)
        for (size_t i = 0; i < w->n_colls; i++)
            if (w->coll[i].list == SIM__REDUCE && w->coll[i].item == pass->item[c->item].dep[d])
                sim__nodes_join(&out, &w->coll[i].end);
    return out;
}

/* A collective node; returns its number. */
static cs_status put_coll(sim__pass_work *w, const sim__coll_part *c, sim__node *node,
                          const sim__nodes *data, const sim__nodes *ctrl, uint32_t *id)
{
    node->type = WL_NODE_COLL;
    node->name = c->name;
    if (node->class_ < 0)
        return cs_fail(w->err, CS_EINVAL, "export: more than %d kinds of groups",
                       SIM__EXPORT_MOST_CLASSES);
    *id = sim__export_node(w->stage, node, data, ctrl);
    return *id != SIM__NO_NODE ? CS_OK : sim__export_no_memory(w);
}

static cs_status emit_whole(sim__pass_work *w, sim__coll_part *c)
{
    sim__nodes data = waits_of(w, c), order = {.n = 0};
    sim__node node = {.comm = c->key.kind,
                      .bytes = c->key.bytes,
                      .splits = (int32_t)c->chunks,
                      .class_ = class_of(w, c, NULL)};
    bool single = c->timed.n_phases == 1;
    uint32_t id;
    cs_status status;

    c->written = true;
    if (c->timed.n_phases == 0) {
        c->end = data;
        return CS_OK;
    }
    if (single)
        order = servers_of(w, c->dims);
    CS_TRY(put_coll(w, c, &node, &data, &order, &id));
    /* Later phases free their dimensions one by one: whoever comes is served in turn. */
    occupy(w, c->dims, single ? id : SIM__NO_NODE);
    c->end = (sim__nodes){{id}, 1};
done:
    return status;
}

/* Chunks of a single phase that stand in a row are one node. */
static size_t run_length(const sim__pass_work *w, size_t at, const sim__coll_part *c)
{
    size_t n = 1;

    while (c->timed.n_phases == 1 && at + n < w->n_entries &&
           w->entry[at + n].kind == SIM__ENTRY_CHUNK &&
           w->entry[at + n].index == w->entry[at].index)
        n++;
    return n;
}

static cs_status describe_chunk(const sim__pass_work *w, const sim__coll_part *c,
                                const sim__entry *entry, size_t run, sim__node *node)
{
    sim_footprint f;
    phase_shape s;
    cs_status status = CS_OK;

    *node = (sim__node){.comm = c->key.kind,
                        .bytes = c->key.bytes / (double)c->chunks * (double)run,
                        .splits = (int32_t)run};
    if (c->timed.n_phases == 1) {
        node->class_ = class_of(w, c, NULL);
        return CS_OK;
    }
    CS_TRY(footprint_of(w, &c->key, &f));
    s = shape_of(w, c, &f, entry->phase);
    node->comm = s.type;
    node->bytes = s.bytes;
    node->class_ = class_of(w, c, &f.span[s.span]);
done:
    return status;
}

static cs_status emit_apart(sim__pass_work *w, size_t *at)
{
    const sim__entry *entry = &w->entry[*at];
    sim__coll_part *c = &w->coll[entry->index];
    size_t run = run_length(w, *at, c);
    uint32_t dims =
        1u << (c->timed.phase[entry->phase].server - 1) | c->timed.phase[entry->phase].others;
    sim__nodes data, order = servers_of(w, dims);
    sim__node node;
    uint32_t id;
    cs_status status;

    if (c->chunk_at == NULL) {
        c->chunk_at = calloc(c->chunks, sizeof *c->chunk_at);
        c->waits = waits_of(w, c);
        if (c->chunk_at == NULL)
            return sim__export_no_memory(w);
    }
    data = entry->phase == 0 ? c->waits : (sim__nodes){{c->chunk_at[entry->chunk]}, 1};
    CS_TRY(describe_chunk(w, c, entry, run, &node));
    CS_TRY(put_coll(w, c, &node, &data, &order, &id));
    occupy(w, dims, id);
    c->chunk_at[entry->chunk] = id;
    c->end = (sim__nodes){{id}, 1}; /* later chunks never end before earlier ones */
    *at += run - 1;
done:
    return status;
}

static cs_status emit_chunk(sim__pass_work *w, size_t *at)
{
    sim__coll_part *c = &w->coll[w->entry[*at].index];
    cs_status status = CS_OK;

    if (c->apart)
        status = emit_apart(w, at);
    else if (!c->written)
        status = emit_whole(w, c);
    if (c->list == SIM__URGENT)
        w->value[c->item] = c->end;
    return status;
}

/* ---- messages ---- */

static cs_status emit_send(sim__pass_work *w)
{
    sim__stage *stage = w->stage;
    bool backward = w->context.send == 2;
    sim__nodes data = stage->input, order = servers_of(w, w->send_dims);
    uint32_t id;
    sim__node node = {.type = WL_NODE_SEND,
                      .name = SIM__NAME_SEND,
                      .bytes = w->x->boundary_bytes,
                      .to_next = !backward,
                      .tag = (int32_t)(2 * stage->sent[backward] + backward)};

    if (w->pass != NULL && w->pass->output >= 0)
        data = w->value[w->pass->output];
    sim__nodes_add(&data, stage->compute);
    stage->sent[backward]++;
    id = sim__export_node(stage, &node, &data, &order);
    occupy(w, w->send_dims, id);
    return id != SIM__NO_NODE ? CS_OK : sim__export_no_memory(w);
}

/* ---- the state after a pass ---- */

static void leave(sim__pass_work *w)
{
    sim__stage *stage = w->stage;
    sim__nodes gathered = {.n = 0}, reduced = {.n = 0};
    bool reduces = false;

    for (size_t i = 0; i < w->n_colls; i++) {
        if (w->coll[i].list == SIM__GATHER)
            sim__nodes_join(&gathered, &w->coll[i].end);
        if (w->coll[i].list == SIM__REDUCE) {
            reduces = true;
            sim__nodes_join(&reduced, &w->coll[i].end);
        }
    }
    if (w->pass != NULL && w->pass->output >= 0)
        stage->input = w->value[w->pass->output];
    sim__nodes_add(&stage->input, stage->compute); /* the next block starts after this one */
    for (size_t i = 0; i + 1 < SIM_MOST_PREFETCH; i++)
        stage->gathered[i] = stage->gathered[i + 1];
    stage->gathered[SIM_MOST_PREFETCH - 1] = (sim__nodes){.n = 0};
    if (w->job->config->prefetch > 0)
        stage->gathered[w->job->config->prefetch - 1] = gathered;
    if (reduces)
        stage->reduced = reduced;
}

cs_status sim__export_emit(sim__pass_work *w)
{
    cs_status status = CS_OK;

    for (size_t i = 0; i < w->n_colls; i++)
        CS_TRY(check_apart(w, &w->coll[i]));
    for (size_t i = 0; i < w->n_entries; i++) {
        if (w->entry[i].kind == SIM__ENTRY_COMPUTE)
            CS_TRY(sim__export_compute(w, i));
        else if (w->entry[i].kind == SIM__ENTRY_CHUNK)
            CS_TRY(emit_chunk(w, &i));
        else
            CS_TRY(emit_send(w));
    }
    leave(w);
done:
    return status;
}
