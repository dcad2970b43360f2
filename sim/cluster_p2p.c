/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Sends and receives, matched first in, first out by (source, destination, tag).  A send takes its
 * place until the message has arrived; a receive ends when its message is there. */
#include "sim/cluster_private.h"

#include <inttypes.h>
#include <stdlib.h>

int64_t sim__cluster_peer(const sim__cluster *c, uint32_t index)
{
    const wl_trace_node *node = &c->trace->node[index];
    const int32_t position = node->type == WL_NODE_SEND ? node->dst : node->src;
    const wl_trace_group *group = &c->trace->group[node->group];

    if (position < 0)
        return -1;
    if (node->group == WL_GROUP_WORLD)
        return position;
    return (uint32_t)position < group->n ? (int64_t)group->rank[position] : -1;
}

/* ---- channels ---- */

static size_t channel_slot(const sim__cluster *c, uint32_t from, uint32_t to, int64_t tag)
{
    size_t slot =
        (size_t)cs_mix64((((uint64_t)from << 32) | to) ^ (uint64_t)tag * 0x9e3779b97f4a7c15ULL) &
        c->channel_mask;

    for (; c->channel[slot].used; slot = (slot + 1) & c->channel_mask) {
        const sim__channel *ch = &c->channel[slot];
        if (ch->from == from && ch->to == to && ch->tag == tag)
            break;
    }
    return slot;
}

static bool channels_grow(sim__cluster *c)
{
    sim__channel *old = c->channel;
    const size_t n_old = old == NULL ? 0 : c->channel_mask + 1;
    const size_t n = n_old == 0 ? 256 : 2 * n_old;
    sim__channel *table = calloc(n, sizeof *table);

    if (table == NULL) {
        sim__cluster_fail(c, CS_ENOMEM, "message channels");
        return false;
    }
    c->channel = table;
    c->channel_mask = n - 1;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].used)
            table[channel_slot(c, old[i].from, old[i].to, old[i].tag)] = old[i];
    free(old);
    return true;
}

/* Channel of a SEND or RECV; NULL out of memory. */
static sim__channel *channel_of(sim__cluster *c, uint32_t index, uint32_t peer)
{
    const wl_trace_node *node = &c->trace->node[index];
    const bool send = node->type == WL_NODE_SEND;
    const uint32_t own = c->trace->rank[c->rank_of[index]].rank;
    const uint32_t from = send ? own : peer;
    const uint32_t to = send ? peer : own;
    size_t slot;

    if (c->channel == NULL || 2 * c->n_channels >= c->channel_mask)
        if (!channels_grow(c))
            return NULL;
    slot = channel_slot(c, from, to, node->tag);
    if (!c->channel[slot].used) {
        c->channel[slot] = (sim__channel){.tag = node->tag,
                                          .from = from,
                                          .to = to,
                                          .head = SIM__NONE,
                                          .tail = SIM__NONE,
                                          .used = true};
        c->n_channels++;
    }
    return &c->channel[slot];
}

static void wait_in(sim__cluster *c, sim__channel *channel, uint32_t node, bool sends)
{
    c->sibling[node] = SIM__NONE;
    if (channel->head == SIM__NONE)
        channel->head = node;
    else
        c->sibling[channel->tail] = node;
    channel->tail = node;
    channel->sends = sends;
}

/* The first node that waits on the other side, SIM__NONE when none does. */
static uint32_t take_waiting(sim__cluster *c, sim__channel *channel, bool sends)
{
    const uint32_t node = channel->head;

    if (node == SIM__NONE || channel->sends != sends)
        return SIM__NONE;
    channel->head = c->sibling[node];
    return node;
}

/* ---- nodes ---- */

static bool check_sizes(sim__cluster *c, uint32_t send, uint32_t receive)
{
    const wl_trace_node *s = &c->trace->node[send], *r = &c->trace->node[receive];
    char a[160], b[160];

    if (s->comm_size == r->comm_size)
        return true;
    sim__cluster_fail(c, CS_ETRACE,
                      "%s sends %" PRId64 " bytes with tag %" PRId64
                      ", but %s, which receives them, expects %" PRId64,
                      sim__cluster_node_text(c, send, a), s->comm_size, s->tag,
                      sim__cluster_node_text(c, receive, b), r->comm_size);
    return false;
}

/* Rank on the other side, checked; -1 and a failure when the node cannot be run. */
static int64_t checked_peer(sim__cluster *c, uint32_t index)
{
    const int64_t peer = sim__cluster_peer(c, index);
    const wl_trace_node *node = &c->trace->node[index];
    const char *what = node->type == WL_NODE_SEND ? "destination" : "source";
    char text[160];

    if (peer < 0 || peer >= c->trace->job_ranks)
        sim__cluster_fail(c, CS_ETRACE, "%s names no %s among the %u ranks",
                          sim__cluster_node_text(c, index, text), what, c->trace->job_ranks);
    else if (peer == c->trace->rank[c->rank_of[index]].rank)
        sim__cluster_fail(c, CS_ETRACE, "%s has its own rank as %s",
                          sim__cluster_node_text(c, index, text), what);
    else if (node->comm_size < 0)
        sim__cluster_fail(c, CS_ETRACE, "%s has no size", sim__cluster_node_text(c, index, text));
    else
        return peer;
    return -1;
}

void sim__cluster_send(sim__cluster *c, uint32_t index)
{
    const int64_t peer = checked_peer(c, index);
    sim__channel *channel = peer < 0 ? NULL : channel_of(c, index, (uint32_t)peer);
    uint32_t receive, from, to;

    if (channel == NULL)
        return;
    receive = take_waiting(c, channel, false);
    if (receive == SIM__NONE)
        wait_in(c, channel, index, true);
    else if (!check_sizes(c, index, receive))
        return;
    c->partner[index] = receive;
    c->result->messages += sim__fold_size(c, c->rank_of[index]);
    sim__fold_push(c, index, SIM__FROM_PEER);
    from = sim__cluster_npu(c, c->trace->rank[c->rank_of[index]].rank);
    to = sim__cluster_npu(c, (uint32_t)peer);
    if (c->contention.net != NULL)
        sim__contention_send(c, index, from, to);
    else
        sim__astra_engine_send(c->engine, from, to, c->trace->node[index].comm_size, index);
}

void sim__cluster_receive(sim__cluster *c, uint32_t index)
{
    const int64_t peer = checked_peer(c, index);
    sim__channel *channel = peer < 0 ? NULL : channel_of(c, index, (uint32_t)peer);
    uint32_t send;

    if (channel == NULL)
        return;
    send = take_waiting(c, channel, true);
    if (send == SIM__NONE) {
        wait_in(c, channel, index, false);
        return;
    }
    if (!check_sizes(c, send, index))
        return;
    c->partner[send] = index;
    sim__fold_push(c, index, SIM__OWN);
    if (c->state[send] == SIM__DONE && c->contention.net != NULL)
        sim__astra_engine_timer(
            c->engine, sim__cluster_npu(c, c->trace->rank[c->rank_of[index]].rank), 0, index);
    else if (c->state[send] == SIM__DONE)
        sim__astra_engine_soon(c->engine, index);
}

void sim__cluster_arrived(sim__cluster *c, uint32_t index)
{
    const uint32_t receive = c->partner[index];
    const bool is_send = c->trace->node[index].type == WL_NODE_SEND;

    sim__cluster_finish(c, index);
    if (is_send)
        sim__fold_reached(c, index);
    if (is_send && receive != SIM__NONE) {
        sim__fold_push(c, receive, SIM__OWN);
        sim__cluster_finish(c, receive);
    }
}
