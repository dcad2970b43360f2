/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Groups of a trace as streams of collectives: the k-th of a group on one rank belongs to the k-th
 * on the others. */
#include "sim/cluster_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool stream_members(sim__cluster *c, sim__stream *s)
{
    const wl_trace_group *group = &c->trace->group[s->group];
    const sim_astra_network *net = &c->astra->network;
    const bool listed = s->group != WL_GROUP_WORLD && group->n > 0;

    s->n = listed ? group->n : (uint32_t)net->npus;
    if (s->mask != 0) {
        s->n = 1;
        for (size_t d = 0; d < net->n_dims; d++)
            if ((s->mask >> d & 1) != 0)
                s->n *= (uint32_t)net->dim[d].n;
    }
    s->rank = malloc((s->n + 1) * sizeof *s->rank);
    s->issued = calloc((size_t)s->n + 1, sizeof *s->issued);
    if (s->rank == NULL || s->issued == NULL)
        return false;
    for (uint32_t j = 0; j < s->n; j++) {
        int64_t rest = j, stride = 1;
        s->rank[j] = listed ? group->rank[j] : j;
        if (s->mask == 0)
            continue;
        s->rank[j] = s->base;
        for (size_t d = 0; d < net->n_dims; stride *= net->dim[d++].n)
            if ((s->mask >> d & 1) != 0) {
                s->rank[j] += rest % net->dim[d].n * stride;
                rest /= net->dim[d].n;
            }
    }
    return true;
}

/* Members must be ranks of the machine, each once. */
static bool stream_is_valid(sim__cluster *c, const sim__stream *s, uint32_t node)
{
    const int64_t npus = c->astra->network.npus;
    unsigned char *seen = calloc((size_t)npus, 1);
    bool valid = seen != NULL;
    char text[160];

    for (uint32_t j = 0; j < s->n && valid; j++)
        valid = s->rank[j] < npus && seen[s->rank[j]]++ == 0;
    if (!valid)
        sim__cluster_fail(
            c, seen == NULL ? CS_ENOMEM : CS_ETRACE,
            "%s: group '%.40s' has ranks twice or beyond the %" PRId64 " of the machine",
            sim__cluster_node_text(c, node, text), c->trace->group[s->group].name, npus);
    free(seen);
    return valid;
}

static sim__stream *stream_add(sim__cluster *c, int32_t group, uint32_t mask, uint32_t base,
                               uint32_t node)
{
    sim__stream *s = cs_room(c->stream, &c->stream_capacity, c->n_streams + 1, sizeof *s);

    if (s == NULL) {
        sim__cluster_fail(c, CS_ENOMEM, "groups");
        return NULL;
    }
    c->stream = s;
    s = &c->stream[c->n_streams++];
    *s = (sim__stream){.group = group, .mask = mask, .base = base};
    if (!stream_members(c, s)) {
        sim__cluster_fail(c, CS_ENOMEM, "groups");
        return NULL;
    }
    return stream_is_valid(c, s, node) ? s : NULL;
}

/* Dimensions a world collective involves; 0 when all. */
static uint32_t involved_mask(const sim__cluster *c, const wl_trace_node *node)
{
    const uint32_t all = (1u << c->astra->network.n_dims) - 1;
    const uint32_t mask = node->involved & all;

    if (node->group != WL_GROUP_WORLD || node->involved == 0 || mask == all)
        return 0;
    return mask;
}

/* Rank with the coordinates of the masked dimensions set to 0. */
static uint32_t mask_base(const sim__cluster *c, uint32_t rank, uint32_t mask)
{
    const sim_astra_network *net = &c->astra->network;
    int64_t base = 0, stride = 1;

    for (size_t d = 0; d < net->n_dims; stride *= net->dim[d++].n)
        if ((mask >> d & 1) == 0)
            base += rank / stride % net->dim[d].n * stride;
    return (uint32_t)base;
}

sim__stream *sim__stream_of(sim__cluster *c, uint32_t index)
{
    const wl_trace_node *node = &c->trace->node[index];
    const uint32_t mask = involved_mask(c, node);
    uint32_t base;

    if (mask == 0) {
        uint32_t *slot = &c->group_stream[node->group];
        sim__stream *s;
        if (*slot != 0)
            return &c->stream[*slot - 1];
        s = stream_add(c, node->group, 0, 0, index);
        *slot = s == NULL ? 0 : c->n_streams;
        return s;
    }
    base = mask_base(c, c->trace->rank[c->rank_of[index]].rank, mask);
    for (uint32_t i = 0; i < c->n_streams; i++)
        if (c->stream[i].mask == mask && c->stream[i].base == base)
            return &c->stream[i];
    return stream_add(c, node->group, mask, base, index);
}

uint32_t sim__stream_member(const sim__stream *s, int64_t rank)
{
    if (s->n > 0 && rank < s->n && s->rank[rank] == rank)
        return (uint32_t)rank;
    for (uint32_t j = 0; j < s->n; j++)
        if (s->rank[j] == rank)
            return j;
    return SIM__NONE;
}

/* ---- one collective ---- */

static void coll_destroy(sim__coll *coll)
{
    if (coll == NULL)
        return;
    free(coll->start);
    free(coll->node);
    free(coll);
}

static sim__coll *coll_create(sim__cluster *c, uint32_t n)
{
    sim__coll *coll = calloc(1, sizeof *coll);

    if (coll != NULL) {
        coll->start = malloc(n * sizeof *coll->start);
        coll->node = malloc(n * sizeof *coll->node);
    }
    if (coll == NULL || coll->start == NULL || coll->node == NULL) {
        coll_destroy(coll);
        sim__cluster_fail(c, CS_ENOMEM, "a collective of %u members", n);
        return NULL;
    }
    memset(coll->node, 0xff, n * sizeof *coll->node);
    coll->instance = SIM__NONE;
    return coll;
}

static bool stream_reserve(sim__cluster *c, sim__stream *s, uint32_t n)
{
    sim__coll **grown = cs_room(s->open, &s->capacity, n, sizeof(sim__coll *));

    if (grown == NULL) {
        sim__cluster_fail(c, CS_ENOMEM, "collectives");
        return false;
    }
    s->open = grown;
    return true;
}

sim__coll *sim__stream_coll(sim__cluster *c, sim__stream *s, uint32_t k)
{
    const uint32_t i = k - s->first;

    if (!stream_reserve(c, s, i + 1))
        return NULL;
    while (s->n_open <= i) {
        sim__coll *coll = coll_create(c, s->n);
        if (coll == NULL)
            return NULL;
        coll->number = s->first + s->n_open;
        s->open[s->n_open++] = coll;
    }
    return s->open[i];
}

/* Forgets the collectives at the front that have ended everywhere. */
static void stream_drop(sim__stream *s)
{
    uint32_t n = 0;

    while (n < s->n_open && s->open[n]->n_done == s->n)
        coll_destroy(s->open[n++]);
    s->n_open -= n;
    s->first += n;
    memmove(s->open, s->open + n, s->n_open * sizeof(sim__coll *));
}

void sim__cluster_streams_fini(sim__cluster *c)
{
    for (uint32_t i = 0; i < c->n_streams; i++) {
        for (uint32_t k = 0; k < c->stream[i].n_open; k++)
            coll_destroy(c->stream[i].open[k]);
        free(c->stream[i].open);
        free(c->stream[i].price);
        free(c->stream[i].rank);
        free(c->stream[i].issued);
    }
    free(c->stream);
}

const sim__coll *sim__cluster_find_coll(const sim__cluster *c, uint32_t node,
                                        const sim__stream **stream)
{
    const sim__stream *s;

    if (c->partner[node] >= c->n_streams)
        return NULL;
    s = *stream = &c->stream[c->partner[node]];
    for (uint32_t k = 0; k < s->n_open; k++)
        if (s->open[k]->node[c->heap_child[node]] == node)
            return s->open[k];
    return NULL;
}

void sim__cluster_collective_ended(sim__cluster *c, uint32_t node)
{
    sim__stream *s = &c->stream[c->partner[node]];
    const uint32_t member = c->heap_child[node];

    for (uint32_t i = 0; i < s->n_open; i++)
        if (s->open[i]->node[member] == node) {
            s->open[i]->n_done += sim__fold_members(c, s, s->open[i], node);
            break;
        }
    stream_drop(s);
}

cs_status sim__cluster_number(sim__cluster *c, cs_error *err)
{
    const wl_trace *trace = c->trace;
    uint32_t *by_id = malloc(((size_t)trace->n_nodes + 1) * sizeof *by_id);

    c->number = malloc(((size_t)trace->n_nodes + 1) * sizeof *c->number);
    if (by_id == NULL || c->number == NULL) {
        free(by_id);
        return cs_fail(err, CS_ENOMEM, "a trace of %u nodes", trace->n_nodes);
    }
    for (uint32_t r = 0; r < trace->n_ranks && c->status == CS_OK; r++) {
        const wl_trace_rank *rank = &trace->rank[r];
        for (uint32_t i = rank->first; i < rank->first + rank->n; i++)
            by_id[rank->first + c->order[i]] = i;
        for (uint32_t i = rank->first; i < rank->first + rank->n; i++) {
            sim__stream *s = NULL;
            uint32_t member = SIM__NONE;
            if (sim__cluster_is_collective(c, by_id[i]))
                s = sim__stream_of(c, by_id[i]);
            if (s != NULL)
                member = sim__stream_member(s, rank->rank);
            if (member != SIM__NONE) /* else told when it is issued */
                c->number[by_id[i]] = s->issued[member]++;
        }
    }
    for (uint32_t i = 0; i < c->n_streams; i++)
        memset(c->stream[i].issued, 0, c->stream[i].n * sizeof *c->stream[i].issued);
    free(by_id);
    return c->status == CS_OK ? CS_OK : cs_fail(err, c->status, "%s", c->error.text);
}
