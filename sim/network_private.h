/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Shared by the network files of sim/: times as maxima of lines, routed rounds, the route cache. */
#ifndef SIM_NETWORK_PRIVATE_H
#define SIM_NETWORK_PRIVATE_H

#include "sim/network.h"

#define SIM__MAX_LINES 96
#define SIM__MAX_NPUS  (INT64_C(1) << 20) /* of one dimension */

/* hops * latency + load * bytes / bandwidth, of one dimension. */
typedef struct {
    double hops, load;
} sim__line;

/* A time as the largest of its lines: what a route cache keeps, free of latency, bandwidth and
 * bytes. Convex and monotone in all three. */
typedef struct {
    size_t n;
    sim__line line[SIM__MAX_LINES];
} sim__envelope;

/* Adds a line; dominated ones go when room is short. */
void sim__envelope_add(sim__envelope *e, double hops, double load);
/* Keeps the lines that are largest somewhere, sorted by hops downwards. O(n log n). */
void sim__envelope_reduce(sim__envelope *e);
/* Loads of `e` multiplied by `factor`. */
void sim__envelope_scale(sim__envelope *e, double factor);
/* *sum += times * e: one after the other. Both must be reduced. */
void sim__envelope_append(sim__envelope *sum, const sim__envelope *e, double times);

/* A group of n members, `stride` apart, of the N NPUs of a dimension, with its siblings. */
typedef struct {
    int32_t topology;
    int64_t N, n, stride;
    double oversubscription;
    bool reduces; /* the switch does */
} sim__place;

/* True when the logical ring closes the short way: all but lines. */
bool sim__place_closed(const sim__place *p);
/* True when every member of the group sees the same on the dimension. */
bool sim__place_uniform(const sim__place *p);
/* Hops of one message between coordinates. */
double sim__place_hops(const sim__place *p, int64_t src, int64_t dst);

/* One round: the messages of all sibling groups over individual links. */
typedef struct sim__round sim__round;
sim__round *sim__round_create(const sim__place *place); /* NULL: out of memory */
void sim__round_destroy(sim__round *round);             /* NULL is a no-op */
void sim__round_clear(sim__round *round);
/* Sends `bytes` from member to member, in every sibling group. */
void sim__round_send(sim__round *round, int64_t from, int64_t to, double bytes);
/* Every member sends `bytes` to the one `distance` after it, around; O(1) on a whole ring. */
void sim__round_shift(sim__round *round, int64_t distance, double bytes);
/* Closes the round: its time when all NPUs see the same (DESIGN 5.3). */
void sim__round_time(sim__round *round, sim__envelope *out);
/* Load (in bytes over the bandwidth of the dimension) of the busiest link of a closed round. */
double sim__round_busiest(const sim__round *round);
/* Load of the busiest link on the way of one message of a closed round, over all siblings. */
double sim__round_busiest_of(const sim__round *round, int64_t from, int64_t to);

/* What a collective costs in one dimension. */
typedef struct {
    sim__envelope steady; /* rounds one after the other */
    double steps, slice_hops,
        slice_load;       /* pipelined in k >= 1 slices: (steps + k - 1) *
                             (slice_hops * latency + slice_load / k); steps 0: none */
    double messages;      /* in sequence: each pays the endpoint delay */
    double reduced, sent; /* by one NPU, as a share of the bytes */
} sim__cost;

/* Kinds beyond wl_collective: a shift to the next (or, wrapping, the first) member of a line; a
 * reduce-scatter and the all-gather that follows it in a hierarchical all-reduce. */
enum {
    SIM__SHIFT = WL_N_COLLECTIVES,
    SIM__SHIFT_WRAP,
    SIM__PAIRED_SCATTER,
    SIM__PAIRED_GATHER,
    SIM__N_KINDS
};

/* Builds the cost of `kind` by `algorithm`; the cold path. */
CS_MUST_USE cs_status sim__cost_build(const sim__place *place, int32_t algorithm, int32_t kind,
                                      sim__cost *out, cs_error *err);

/* As kept: the same with as many lines as it has. */
typedef struct {
    double steps, slice_hops, slice_load, messages, reduced, sent;
    size_t n_lines;
    sim__line line[];
} sim__kept;

/* The cost of `kind` on a span, built on first use. The pointer holds until the next call. */
CS_MUST_USE cs_status sim__route_cost(sim_route_cache *cache, const sim_dim *dim,
                                      const sim_span *span, int32_t kind, const sim__kept **out,
                                      cs_error *err);

/* Rings routed over several dimensions, kept beside the costs: the list a key belongs to.  The
 * cache owns what is linked in. */
typedef struct sim__flat sim__flat;
sim__flat **sim__route_flats(sim_route_cache *cache, const void *key, size_t key_size);
/* Books memory of a new entry; may empty the cache first. */
void sim__route_charge(sim_route_cache *cache, size_t bytes);
void sim__flat_destroy(sim__flat *list);

/* min over k >= 1 of (c + k) * (a + b / k); b when a is 0 and c is not. */
double sim__pipelined(double c, double a, double b);

/* Seconds of a kept cost on a dimension. */
double sim__cost_seconds(const sim__kept *cost, const sim_dim *dim, const sim_network *net,
                         double bytes);

#endif
