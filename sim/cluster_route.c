/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Model contention in the cluster engine: messages.  Dimension by dimension from the lowest; inside
 * a dimension the head goes from link to link (cut-through) and each link carries one message after
 * the other, in the order in which their heads come; between dimensions the whole message is
 * stored.  Messages of an NPU and its collectives take turns in a dimension, messages do not wait
 * for each other except on a link.  On a ring the way is the shortest; to the opposite node half
 * the message goes each way. Links of an NPU with egress B (DESIGN 5.3): ring and mesh B/2 each way
 * (2 NPUs: one link of B), fully connected B/(n-1) to each peer, switch B up and B down. */
#include "sim/cluster_private.h"

#include <math.h>
#include <stdlib.h>

double sim__link_bytes_per_s(const sim_dim *dim)
{
    const double b = dim->bandwidth_bytes_per_s;

    switch (dim->topology) {
    case SIM_FULLY_CONNECTED:
        return b / (double)(dim->n - 1);
    case SIM_SWITCH:
        return dim->oversubscription > 1.0 ? b / dim->oversubscription : b;
    default:
        return dim->n == 2 ? b : b / 2.0;
    }
}

static double link_share(const sim__contention *k, size_t link)
{
    for (size_t i = 0; i < k->n_slow; i++)
        if (k->slow[i].link == link)
            return k->slow[i].share;
    return 1.0;
}

/* The next link from `at` towards the coordinate b of dimension d, and the device behind it. */
static size_t step(const sim__contention *k, const sim__note *note, int64_t b, uint32_t *next,
                   uint8_t *next_switch)
{
    const sim_dim *dim = &k->net->dim[note->dim];
    const int64_t stride = k->stride[note->dim], n = dim->n;
    const int64_t a = note->at / stride % n;
    const int64_t target = note->at + (b - a) * stride;
    const size_t base = k->link_base[note->dim];
    const size_t own = base + note->at * k->links_per_npu[note->dim];
    const int64_t up = b > a ? b - a : b - a + n;
    bool upwards = dim->topology == SIM_MESH ? b > a : up <= n - up;

    *next_switch = 0;
    *next = (uint32_t)target;
    if (dim->topology == SIM_FULLY_CONNECTED)
        return own + (size_t)b;
    if (dim->topology == SIM_SWITCH) {
        *next_switch = note->in_switch == 0;
        if (note->in_switch != 0)
            return base + (size_t)target * 2 + 1;
        *next = note->at;
        return own;
    }
    if (note->phase != 0) /* half a message to the opposite node keeps its direction */
        upwards = note->phase == 1;
    if (upwards)
        *next = (uint32_t)(note->at + (a + 1 == n ? (1 - n) * stride : stride));
    else
        *next = (uint32_t)(note->at - (a == 0 ? (1 - n) * stride : stride));
    return own + (upwards ? 0 : 1);
}

/* Lowest dimension in which the parcel is not yet where it must be. */
static bool next_dimension(const sim__contention *k, sim__note *note)
{
    for (size_t d = 0; d < k->net->n_dims; d++)
        if (note->at / k->stride[d] % k->net->dim[d].n !=
            note->to / k->stride[d] % k->net->dim[d].n) {
            note->dim = (uint8_t)d;
            return true;
        }
    return false;
}

/* Until then the NPU at which the parcel entered the dimension sends. */
static void hold(sim__contention *k, const sim__note *note, int64_t until)
{
    int64_t *end = &k->message_end[note->entered * k->net->n_dims + note->dim];

    *end = until > *end ? until : *end;
}

/* The head of the parcel is at a device: it takes the next link when that is free. */
static void advance(sim__cluster *c, sim__note note)
{
    sim__contention *k = &c->contention;
    const sim_dim *dim = &k->net->dim[note.dim];
    const int64_t b = note.to / k->stride[note.dim] % dim->n;
    uint32_t next;
    uint8_t next_switch;
    const size_t link = step(k, &note, b, &next, &next_switch);
    const int64_t start = k->link_free[link] > c->engine->now ? k->link_free[link] : c->engine->now;
    const double rate = sim__link_bytes_per_s(dim) * link_share(k, link);
    const double busy = note.bytes / rate * 1e12;
    const int64_t latency = llround(dim->latency_s * 1e12);

    if (!(busy < (double)(SIM__ASTRA_MAX_NS / 4)) || start > SIM__ASTRA_MAX_NS / 2) {
        sim__cluster_fail(c, CS_EINVAL, "the run takes longer than the clock can count");
        return;
    }
    k->link_free[link] = start + llround(busy);
    hold(k, &note, start + latency + llround(busy));
    note.at = next;
    note.in_switch = next_switch;
    note.landed = next_switch == 0 && (int64_t)next / k->stride[note.dim] % dim->n == b;
    if (note.landed)
        note.phase = 0;
    (void)sim__contention_note_at(c, start + latency + (note.landed ? llround(busy) : 0), &note);
}

/* Enters the dimension, in halves when both ways are equal. */
static void depart(sim__cluster *c, sim__note note)
{
    const sim__contention *k = &c->contention;
    const sim_dim *dim = &k->net->dim[note.dim];
    const int64_t distance =
        note.to / k->stride[note.dim] % dim->n - note.at / k->stride[note.dim] % dim->n;

    note.landed = note.served = false;
    if (dim->topology == SIM_RING && dim->n > 2 && 2 * llabs(distance) == dim->n) {
        note.bytes /= 2.0;
        note.phase = 1;
        k->parcels[note.node]++;
        advance(c, note);
        note.phase = 2;
    }
    advance(c, note);
}

/* Time of the parcel in its dimension on empty links, ps. */
static int64_t unhindered(const sim__contention *k, const sim__note *note)
{
    const sim_dim *dim = &k->net->dim[note->dim];
    const int64_t stride = k->stride[note->dim];
    const int64_t apart = llabs(note->to / stride % dim->n - note->at / stride % dim->n);
    int64_t hops = apart;

    if (dim->topology == SIM_RING && dim->n - apart < apart)
        hops = dim->n - apart;
    if (dim->topology == SIM_FULLY_CONNECTED || dim->topology == SIM_SWITCH)
        hops = dim->topology == SIM_SWITCH ? 2 : 1;
    return llround(((double)hops * dim->latency_s + note->bytes / sim__link_bytes_per_s(dim)) *
                   1e12);
}

/* The whole parcel is at an NPU: it enters its next dimension after the collectives before it. */
static void enter(sim__cluster *c, sim__note note)
{
    sim__contention *k = &c->contention;
    int64_t turn;

    if (!next_dimension(k, &note)) {
        if (--k->parcels[note.node] == 0)
            sim__cluster_arrived(c, note.node);
        return;
    }
    note.entered = note.at;
    turn = k->server_free[note.at * k->net->n_dims + note.dim];
    if (turn <= c->engine->now) {
        depart(c, note);
        return;
    }
    note.served = true;
    hold(k, &note, turn + unhindered(k, &note)); /* those that come later wait for it */
    (void)sim__contention_note_at(c, turn, &note);
}

void sim__contention_parcel(sim__cluster *c, uint32_t index)
{
    const sim__note note = ((sim__note *)c->contention.notes.data)[index];

    sim__pool_give(&c->contention.notes, index);
    if (note.served)
        depart(c, note);
    else if (note.landed)
        enter(c, note);
    else
        advance(c, note);
}

void sim__contention_send(sim__cluster *c, uint32_t node, uint32_t from, uint32_t to)
{
    const int64_t bytes = c->trace->node[node].comm_size;
    const sim__note note = {
        .parcel = true, .node = node, .at = from, .to = to, .landed = true, .bytes = (double)bytes};
    const double delay = c->contention.net->endpoint_delay_s * 1e12;

    c->contention.parcels[node] = 1;
    c->result->bytes_moved += (double)bytes;
    if (delay > 0) /* else it has its turn before whatever its NPU issues next */
        (void)sim__contention_note_at(c, c->engine->now + llround(delay), &note);
    else
        enter(c, note);
}
