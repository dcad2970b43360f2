/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What each rank of a trace meets: its neighbours in every group, and the other side of every
 * message. */
#include "sim/cluster_fold.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hops_between(const sim__search *s, uint32_t from, uint32_t to)
{
    const sim_astra_network *net = &s->c->astra->network;
    const size_t d = sim__astra_pair_dim(net, from, to);
    int64_t stride = 1;

    for (size_t i = 0; i < d; i++)
        stride *= net->dim[i].n;
    return (uint64_t)d << 32 |
           (uint64_t)sim__astra_hops(&net->dim[d],
                                     to / stride % net->dim[d].n - from / stride % net->dim[d].n);
}

/* ---- groups ---- */

static bool is_world(const sim__search *s, uint32_t group)
{
    const uint32_t n = s->c->trace->group[group].n;

    return group == WL_GROUP_WORLD || n == 0 || n == s->n;
}

static void add_use(sim__search *s, uint32_t rank, uint32_t i)
{
    const wl_trace_node *node = &s->c->trace->node[i];
    const uint32_t group = (uint32_t)node->group, first = s->c->trace->rank[rank].first;
    const uint32_t all = (1u << s->c->astra->network.n_dims) - 1, mask = node->involved & all;
    uint32_t at = s->last_use[group];

    if (group == WL_GROUP_WORLD && node->involved != 0 && mask != all)
        s->failed = true; /* part of the machine */
    if (at == SIM__NONE || at < s->use_first[rank]) {
        sim__use *uses = cs_room(s->uses, &s->uses_capacity, s->n_uses + 1, sizeof *uses);
        if (uses == NULL) {
            s->failed = true;
            return;
        }
        s->uses = uses;
        at = s->last_use[group] = (uint32_t)s->n_uses++;
        uses[at] =
            (sim__use){.group = group, .label = i - first, .before = SIM__NONE, .after = SIM__NONE};
    }
    s->label[i] = s->uses[at].label;
}

static sim__use *find_use(sim__search *s, uint32_t rank, uint32_t group)
{
    for (uint32_t k = s->use_first[rank]; k < s->use_first[rank + 1]; k++)
        if (s->uses[k].group == group)
            return &s->uses[k];
    return NULL;
}

/* Neighbours of every member; fails unless each uses the group and stands in it once. */
static void link_group(sim__search *s, uint32_t g)
{
    const wl_trace_group *group = &s->c->trace->group[g];
    sim__use *last = NULL;

    for (uint32_t j = 0; j <= group->n; j++) {
        const uint32_t rank = group->rank[j % group->n];
        sim__use *u = rank < s->n ? find_use(s, rank, g) : NULL;
        if (u == NULL || (j < group->n && u->after != SIM__NONE)) {
            s->failed = true;
            return;
        }
        if (j < group->n)
            u->after = group->rank[(j + 1) % group->n];
        if (last != NULL) {
            u->before = group->rank[j - 1];
            u->before_label = last->label;
            last->after_label = u->label;
            u->before_hops = last->after_hops = hops_between(s, u->before, rank);
        }
        last = u;
    }
}

static void find_uses(sim__search *s)
{
    const wl_trace *trace = s->c->trace;

    for (uint32_t r = 0; r < s->n && !s->failed; r++) {
        const wl_trace_rank *rank = &trace->rank[r];
        s->use_first[r] = (uint32_t)s->n_uses;
        for (uint32_t i = rank->first; i < rank->first + rank->n && !s->failed; i++)
            if (sim__cluster_is_collective(s->c, i))
                add_use(s, r, i);
    }
    s->use_first[s->n] = (uint32_t)s->n_uses;
    for (uint32_t g = 0; g < trace->n_groups && !s->failed; g++)
        if (s->last_use[g] != SIM__NONE && !is_world(s, g) && trace->group[g].n > 1)
            link_group(s, g);
}

/* ---- messages ---- */

typedef struct {
    uint32_t from, to;
    int64_t tag;
    uint32_t side; /* index into sides */
    bool send;
} channel_end;

static int by_channel(const void *a, const void *b)
{
    const channel_end *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    return x->side < y->side ? -1 : x->side > y->side;
}

static bool same_channel(const channel_end *x, const channel_end *y)
{
    return x->from == y->from && x->to == y->to && x->tag == y->tag;
}

/* Names every channel by the first node on either side. */
static void name_channels(sim__search *s, channel_end *ends)
{
    qsort(ends, s->n_sides, sizeof *ends, by_channel);
    for (size_t i = 0, j; i < s->n_sides; i = j) {
        uint32_t first_send = SIM__NONE, first_receive = SIM__NONE;
        for (j = i; j < s->n_sides && same_channel(&ends[i], &ends[j]); j++) {
            uint32_t *first = ends[j].send ? &first_send : &first_receive;
            if (s->sides[ends[j].side].node < *first)
                *first = s->sides[ends[j].side].node;
        }
        for (size_t k = i; k < j; k++) {
            s->sides[ends[k].side].first_send = first_send;
            s->sides[ends[k].side].first_receive = first_receive;
        }
    }
}

static void add_side(sim__search *s, uint32_t rank, uint32_t i)
{
    const int64_t peer = sim__cluster_peer(s->c, i);
    sim__side *sides = cs_room(s->sides, &s->sides_capacity, s->n_sides + 1, sizeof *sides);

    if (sides == NULL || peer < 0 || peer >= s->n || peer == rank) {
        s->sides = sides == NULL ? s->sides : sides;
        s->failed = true;
        return;
    }
    s->sides = sides;
    sides[s->n_sides++] = (sim__side){.node = i - s->c->trace->rank[rank].first,
                                      .peer = (uint32_t)peer,
                                      .hops = hops_between(s, rank, (uint32_t)peer)};
}

static void find_sides(sim__search *s)
{
    const wl_trace *trace = s->c->trace;
    channel_end *ends;
    size_t k = 0;

    for (uint32_t r = 0; r < s->n && !s->failed; r++) {
        const wl_trace_rank *rank = &trace->rank[r];
        s->side_first[r] = (uint32_t)s->n_sides;
        for (uint32_t i = rank->first; i < rank->first + rank->n && !s->failed; i++)
            if (trace->node[i].type == WL_NODE_SEND || trace->node[i].type == WL_NODE_RECV)
                add_side(s, r, i);
    }
    s->side_first[s->n] = (uint32_t)s->n_sides;
    if (s->failed || s->n_sides == 0)
        return;
    ends = malloc(s->n_sides * sizeof *ends);
    s->failed = ends == NULL;
    for (uint32_t r = 0; r < s->n && !s->failed; r++)
        for (; k < s->side_first[r + 1]; k++) {
            const wl_trace_node *node = &trace->node[trace->rank[r].first + s->sides[k].node];
            const bool send = node->type == WL_NODE_SEND;
            ends[k] = (channel_end){send ? r : s->sides[k].peer, send ? s->sides[k].peer : r,
                                    node->tag, (uint32_t)k, send};
        }
    if (!s->failed)
        name_channels(s, ends);
    free(ends);
}

bool sim__fold_meetings(sim__search *s)
{
    find_uses(s);
    find_sides(s);
    return !s->failed;
}
