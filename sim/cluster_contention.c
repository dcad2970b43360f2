/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Model contention in the cluster engine: collectives.  A collective is served when its last
 * member has arrived.  Each of its chunks takes its phases in turn; a phase needs its dimensions of
 * all members at once.  Phases are served in the order in which they come to their dimensions: one
 * that comes is given the first moment at which all of them are free of what came before. */
#include "sim/cluster_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINKS   ((size_t)1 << 28)
#define CACHE_BYTES ((size_t)64 << 20)
#define PS_PER_S    1e12

cs_status sim__contention_create(sim__cluster *c, cs_error *err)
{
    sim__contention *k = &c->contention;
    const size_t npus = (size_t)c->astra->network.npus;
    size_t n = 0;
    int64_t stride = 1;

    k->notes = (sim__pool){.size = sizeof(sim__note), .free = SIM__NONE};
    for (size_t d = 0; d < k->net->n_dims; d++) {
        k->stride[d] = stride;
        stride *= k->net->dim[d].n;
        k->links_per_npu[d] =
            k->net->dim[d].topology == SIM_FULLY_CONNECTED ? (size_t)k->net->dim[d].n : 2;
        k->link_base[d] = n;
        if (k->links_per_npu[d] > MAX_LINKS / npus)
            return cs_fail(err, CS_EINVAL, "dimension %zu has too many links to simulate", d + 1);
        n += k->links_per_npu[d] * npus;
    }
    k->routes = sim_route_cache_create(CACHE_BYTES);
    k->server_free = calloc(npus * k->net->n_dims + 1, sizeof *k->server_free);
    k->message_end = calloc(npus * k->net->n_dims + 1, sizeof *k->message_end);
    k->link_free = calloc(n + 1, sizeof *k->link_free);
    k->parcels = calloc((size_t)c->trace->n_nodes + 1, sizeof *k->parcels);
    if (k->routes == NULL || k->server_free == NULL || k->message_end == NULL ||
        k->link_free == NULL || k->parcels == NULL)
        return cs_fail(err, CS_ENOMEM, "%zu NPUs", npus);
    return CS_OK;
}

void sim__contention_destroy(sim__cluster *c)
{
    sim_route_cache_destroy(c->contention.routes);
    free(c->contention.server_free);
    free(c->contention.message_end);
    free(c->contention.link_free);
    free(c->contention.parcels);
    free(c->contention.notes.data);
}

uint32_t sim__contention_note_at(sim__cluster *c, int64_t at, const sim__note *note)
{
    const uint32_t index = sim__pool_take(c->engine, &c->contention.notes);

    if (index == SIM__NONE)
        return index;
    ((sim__note *)c->contention.notes.data)[index] = *note;
    sim__event_push(c->engine, at, SIM__EVENT_USER, index);
    return index;
}

/* ---- prices ---- */

/* A flat ring in the listed order: every step lasts as long as its slowest message, and takes all
 * dimensions that messages cross. */
static cs_status price_routed(sim__cluster *c, const sim__stream *s, sim__price *price,
                              double bytes, cs_error *err)
{
    const sim_network *net = c->contention.net;
    const double n = s->n;
    const double steps = price->type == WL_ALL_REDUCE ? 2 * (n - 1) : n - 1;
    const double message = bytes / n / (double)price->chunks;
    double slowest = 0.0;
    uint32_t crossed = 0;
    cs_status status = CS_OK;

    for (uint32_t j = 0; j < s->n; j++) {
        sim_phases hops;
        double seconds = 0.0;
        CS_TRY(sim_message_phases(net, s->rank[j], s->rank[(j + 1) % s->n], message, &hops, err));
        for (size_t i = 0; i < hops.n; i++) {
            seconds += hops.phase[i].seconds;
            crossed |= 1u << hops.phase[i].dim;
        }
        slowest = fmax(slowest, seconds);
    }
    price->phases.n = 1;
    price->phases.phase[0] = (sim_phase){.dim = (uint8_t)__builtin_ctz(crossed),
                                         .other_dims = crossed & (crossed - 1),
                                         .seconds = steps * slowest,
                                         .bytes = steps * message};
done:
    return status;
}

/* Chakra states what is gathered by the share of one member; the model by the whole. */
static double whole_bytes(const sim__stream *s, const sim__price *price)
{
    const bool by_share = price->type == WL_ALL_GATHER || price->type == WL_GATHER;

    return (double)price->bytes * (by_share ? (double)s->n : 1.0);
}

static cs_status make_price(sim__cluster *c, sim__stream *s, sim__price *price, cs_error *err)
{
    sim_network net = *c->contention.net;
    const sim_collective what = {
        .group = &s->footprint, .type = price->type, .bytes = whole_bytes(s, price)};

    net.chunks = price->chunks;
    if (!s->has_footprint) {
        s->listed = !sim__footprint_of_ranks(&net, s->rank, s->n, &s->footprint);
        s->has_footprint = true;
    }
    if (s->listed)
        return price_routed(c, s, price, what.bytes, err);
    return sim_collective_phases(&net, &what, c->contention.routes, &price->phases, err);
}

/* Index of the price of a collective; SIM__NONE and a failure when it has none. */
static uint32_t find_price(sim__cluster *c, sim__stream *s, const sim__coll *coll)
{
    const int64_t chunks = coll->splits > 0 ? coll->splits : c->contention.net->chunks;
    sim__price *grown;
    cs_error err;
    cs_status status;
    char text[160];

    for (uint32_t i = 0; i < s->n_prices; i++)
        if (s->price[i].type == coll->type && s->price[i].bytes == coll->bytes &&
            s->price[i].chunks == chunks)
            return i;
    grown = realloc(s->price, (s->n_prices + 1) * sizeof *grown);
    if (grown == NULL) {
        sim__cluster_fail(c, CS_ENOMEM, "collectives");
        return SIM__NONE;
    }
    s->price = grown;
    s->price[s->n_prices] =
        (sim__price){.type = coll->type, .bytes = coll->bytes, .chunks = chunks};
    status = make_price(c, s, &s->price[s->n_prices], &err);
    if (status != CS_OK) {
        sim__cluster_fail(c, status, "%s: %s", sim__cluster_node_text(c, coll->node[0], text),
                          err.text);
        return SIM__NONE;
    }
    return s->n_prices++;
}

/* ---- chunks ---- */

/* First moment from now on at which the dimensions of all members are free. */
static int64_t first_free(const sim__cluster *c, const sim__stream *s, uint32_t dims)
{
    const size_t n_dims = c->contention.net->n_dims;
    int64_t start = c->engine->now;

    for (uint32_t j = 0; j < s->n; j++)
        for (size_t d = 0; d < n_dims; d++) {
            const size_t i = (size_t)s->rank[j] * n_dims + d;
            if ((dims >> d & 1) == 0)
                continue;
            if (c->contention.server_free[i] > start)
                start = c->contention.server_free[i];
            if (c->contention.message_end[i] > start)
                start = c->contention.message_end[i];
        }
    return start;
}

static void occupy(sim__cluster *c, const sim__stream *s, uint32_t dims, int64_t until)
{
    const size_t n_dims = c->contention.net->n_dims;

    for (uint32_t j = 0; j < s->n; j++)
        for (size_t d = 0; d < n_dims; d++)
            if ((dims >> d & 1) != 0)
                c->contention.server_free[(size_t)s->rank[j] * n_dims + d] = until;
}

/* Share of bandwidth left by the worst link of the members in the dimensions. */
static double worst_share(const sim__cluster *c, const sim__stream *s, uint32_t dims)
{
    const sim__contention *k = &c->contention;
    double share = 1.0;

    for (size_t i = 0; i < k->n_slow; i++)
        if ((dims >> k->slow[i].dim & 1) != 0 && k->slow[i].share < share &&
            sim__stream_member(s, k->slow[i].from) != SIM__NONE)
            share = k->slow[i].share;
    return share;
}

static uint32_t dims_of(const sim_phase *phase)
{
    return 1u << phase->dim | phase->other_dims;
}

static void serve(sim__cluster *c, sim__note note)
{
    const sim__stream *s = &c->stream[note.stream];
    const sim__coll *coll = s->open[note.coll - s->first];
    const sim_phase *phase = &s->price[coll->priced].phases.phase[note.phase];
    const uint32_t dims = dims_of(phase);
    const double ps = phase->seconds * PS_PER_S / worst_share(c, s, dims);
    int64_t end;

    if (!(ps < (double)(SIM__ASTRA_MAX_NS / 4)) || c->engine->now > SIM__ASTRA_MAX_NS / 2) {
        sim__cluster_fail(c, CS_EINVAL, "the run takes longer than the clock can count");
        return;
    }
    end = first_free(c, s, dims) + llround(ps);
    occupy(c, s, dims, end);
    c->result->bytes_moved += phase->bytes * s->n;
    (void)sim__contention_note_at(c, end, &note);
}

/* A phase comes after the earlier ones of all chunks on its dimensions (DESIGN 5.3: phase, then
 * chunk). */
static bool phase_open(const sim__price *price, const sim__coll *coll, size_t phase)
{
    for (size_t q = 0; q < phase; q++)
        if ((dims_of(&price->phases.phase[q]) & dims_of(&price->phases.phase[phase])) != 0 &&
            coll->entered[q] < (uint32_t)price->chunks)
            return false;
    return true;
}

/* Serves the chunks that have come, in order, as far as their phases may start. */
static void advance(sim__cluster *c, sim__note note)
{
    const sim__stream *s = &c->stream[note.stream];
    const sim__price *price;
    sim__coll *coll = s->open[note.coll - s->first];

    price = &s->price[coll->priced];
    for (size_t p = 0; p < price->phases.n; p++)
        while (coll->entered[p] < coll->arrived[p] && phase_open(price, coll, p)) {
            note.phase = (uint32_t)p;
            note.chunk = coll->entered[p]++;
            serve(c, note);
        }
}

static void chunk_phase_ended(sim__cluster *c, sim__note note)
{
    const sim__stream *s = &c->stream[note.stream];
    sim__coll *coll = s->open[note.coll - s->first];

    if (note.phase + 1 < s->price[coll->priced].phases.n) {
        coll->arrived[note.phase + 1]++;
        advance(c, note);
    } else if (--coll->chunks_left == 0) {
        for (uint32_t j = 0; j < s->n; j++)
            sim__astra_engine_timer(c->engine, (uint32_t)s->rank[j], 0, coll->node[j]);
    }
}

void sim__contention_collective(sim__cluster *c, sim__stream *s, sim__coll *coll)
{
    coll->priced = coll->bytes == 0 || s->n == 1 ? 0 : find_price(c, s, coll);
    if (coll->priced == SIM__NONE)
        return;
    if (coll->bytes == 0 || s->n == 1 || s->price[coll->priced].phases.n == 0) {
        sim__cluster_costs_nothing(c, s, coll, coll->node[0]);
        for (uint32_t j = 0; j < s->n; j++)
            sim__astra_engine_timer(c->engine, (uint32_t)s->rank[j], 0, coll->node[j]);
        return;
    }
    coll->chunks_left = coll->arrived[0] = (uint32_t)s->price[coll->priced].chunks;
    advance(c, (sim__note){.stream = (uint32_t)(s - c->stream), .coll = coll->number});
}

void sim__contention_note(sim__cluster *c, uint32_t index)
{
    const sim__note note = ((sim__note *)c->contention.notes.data)[index];

    if (note.parcel) {
        sim__contention_parcel(c, index);
        return;
    }
    sim__pool_give(&c->contention.notes, index);
    chunk_phase_ended(c, note);
}
