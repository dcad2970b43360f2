/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Networks, groups and collectives, model `contention` (DESIGN 5.3).  Pure functions of const
 * structs; what is costly (routing every round of a group over individual links) is kept in a
 * sim_route_cache by (algorithm, collective, topology, N, n, stride). */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include "workloads/workload.h"

#define SIM_MAX_DIMS 8

typedef enum { SIM_RING, SIM_FULLY_CONNECTED, SIM_SWITCH, SIM_MESH, SIM_N_TOPOLOGIES } sim_topology;
extern const char *const sim_topology_names[]; /* "ring", ..., NULL */

typedef enum {
    SIM_ALGO_RING,
    SIM_ALGO_DIRECT,
    SIM_ALGO_HALVING_DOUBLING,
    SIM_ALGO_DOUBLE_BINARY_TREE,
    SIM_N_ALGOS
} sim_algorithm;
extern const char *const sim_algorithm_names[];

typedef enum { SIM_BASELINE, SIM_HIERARCHICAL } sim_multi_dim;
typedef enum { SIM_PROGRAM, SIM_FIFO, SIM_LIFO, SIM_SMALLEST, SIM_THEMIS } sim_scheduling;

/* One dimension of the network. */
typedef struct {
    int32_t topology;             /* sim_topology */
    int32_t algorithm;            /* sim_algorithm of collectives on it */
    int64_t n;                    /* NPUs along it */
    double bandwidth_bytes_per_s; /* egress of one NPU into the dimension, one direction */
    double latency_s;             /* per hop */
    double oversubscription;      /* of a switch: 1 none */
    int32_t in_network_reduction; /* switch: 0/1 */
} sim_dim;

typedef struct {
    size_t n_dims;
    sim_dim dim[SIM_MAX_DIMS];    /* dim[0] is the fastest-varying NPU index */
    int32_t multi_dim;            /* sim_multi_dim */
    int32_t scheduling;           /* sim_scheduling */
    int64_t chunks;               /* of a collective */
    double endpoint_delay_s;      /* per message, default 0 */
    double reduction_bytes_per_s; /* local reduction rate; 0: free */
} sim_network;

/* Sizes of the mesh axes, by wl_axis: tp, sp, ep, dp/ep, pp. */
typedef struct {
    int64_t size[WL_N_AXES];
} sim_mesh;

/* Axis order of a placement, innermost first, one axis a nibble (nibble 0 innermost). */
typedef int32_t sim_order;
CS_MUST_USE cs_status
sim_order_parse(const char *text, int32_t *out,
                cs_error *err); /* "tp sp ep dp pp"; a missing ep stands before dp */
const char *sim_order_format(int32_t order, char text[64]);

/* Part of a group on one dimension: n members, `stride` apart, of the N NPUs of the dimension. */
typedef struct {
    uint8_t dim;
    int64_t n, stride;
} sim_span;

/* Footprint of the sibling groups of a set of axes.  Product of spans, or, when the axes do not
 * cut the dimensions into products, a routed flat ring. */
typedef struct {
    int64_t n; /* members */
    size_t n_spans;
    sim_span span[2 * SIM_MAX_DIMS];
    bool routed; /* not a product: flat ring over the listed order, routed dimension by dimension */
    bool pair; /* two members, apart in every span, each of two: a message takes span after span */
    wl_group axes;
    sim_mesh mesh; /* what a routed ring is routed from; unused by products */
    sim_order order;
} sim_footprint;

/* Footprint of the groups spanned by `axes` when the mesh is laid out by `order` on the network.
 * NPUs beyond the mesh (allow_idle) stay idle. O(dims + axes) for products. */
CS_MUST_USE cs_status sim_footprint_make(const sim_network *net, const sim_mesh *mesh,
                                         sim_order order, wl_group axes, sim_footprint *out,
                                         cs_error *err);

/* The sibling parts of a group: `part` members, `stride` apart in the group's NPU order; 2 members
 * n - 1 apart are its first and last.  CS_EINVAL
 * when they are no product of parts of its dimensions. */
CS_MUST_USE cs_status sim_footprint_part(const sim_footprint *group, int64_t part, int64_t stride,
                                         sim_footprint *out, cs_error *err);

/* Footprint of one group of all NPUs: each dimension of more than one as a span. */
sim_footprint sim_footprint_whole(const sim_network *net);

/* Routed rounds, kept between designs. One per thread; not thread-safe. */
typedef struct sim_route_cache sim_route_cache;
sim_route_cache *sim_route_cache_create(size_t limit_bytes);
void sim_route_cache_destroy(sim_route_cache *cache); /* NULL is a no-op */

/* One phase of a chunk: which dimension serves it, for how long, and what one NPU sends there. */
typedef struct {
    uint8_t dim;         /* server */
    uint32_t other_dims; /* bit set of further dimensions it occupies (routed rings), 0 else */
    double seconds;      /* of ONE chunk */
    double bytes;        /* egress of one NPU into the dimension, one chunk */
} sim_phase;
#define SIM_MAX_PHASES (4 * SIM_MAX_DIMS)

/* The phases of one chunk, in order. */
typedef struct {
    size_t n;
    sim_phase phase[SIM_MAX_PHASES];
} sim_phases;

/* A collective of `bytes` (whole tensor of the group, DESIGN 5.3) on every group of a footprint. */
typedef struct {
    const sim_footprint *group;
    wl_collective type;
    double bytes;
    double issue_s; /* when it is issued; sim_collectives_schedule alone looks at it */
} sim_collective;

/* Phases of one chunk of a collective split into net->chunks.  A group of one gives 0 phases.
 * CS_EINVAL for an algorithm that cannot run there (halving_doubling on n not a power of two), by
 * name. */
CS_MUST_USE cs_status sim_collective_phases(const sim_network *net, const sim_collective *what,
                                            sim_route_cache *cache, sim_phases *out, cs_error *err);

/* A pipeline boundary: every NPU sends `bytes` to the same coordinates of the next stage (or
 * previous). */
typedef struct {
    const sim_mesh *mesh;
    sim_order order;
    double bytes;
    bool backward;
} sim_boundary;

/* Phases of a boundary, dimension-ordered, one for each dimension crossed; all NPUs at once. */
CS_MUST_USE cs_status sim_boundary_phases(const sim_network *net, const sim_boundary *what,
                                          sim_route_cache *cache, sim_phases *out, cs_error *err);

/* One message between two NPUs (ids: dimension 1 varies fastest), dimension-ordered: a phase for
 * each dimension crossed, one after the other.  CS_EINVAL for ids outside the network. */
CS_MUST_USE cs_status sim_message_phases(const sim_network *net, int64_t src, int64_t dst,
                                         double bytes, sim_phases *out, cs_error *err);

/* All-to-all of unequal sizes: bytes[i * n + j] from member i to member j of the group (members
 * numbered by its spans, first one fastest).  Every span in turn, everything at once in each; a
 * phase lasts as long as its busiest line of NPUs. Not kept: O(spans * n^2), allocates. */
CS_MUST_USE cs_status sim_all_to_all_v_phases(const sim_network *net, const sim_footprint *group,
                                              const double *bytes, sim_phases *out, cs_error *err);

/* Isolated time of one collective with its chunks flowing through the phases in `program` order
 * (one server per dimension, phase-major, chunk by chunk), int64 picoseconds. O(phases^2), whatever
 * the number of chunks. */
int64_t sim_collective_isolated_ps(const sim_phases *phases, int64_t chunks);

/* Finish times of n collectives that share the dimensions, by net->scheduling: `program` (in the
 * order given), `fifo` and `lifo` (by arrival at a dimension), `smallest` (least bytes first),
 * `themis` (each chunk starts on the dimension least loaded so far; Rashidi et al., ISCA 2022).
 * finish_s: n values, caller's.  Only `program` is monotone in bandwidths.  Event-driven:
 * O(events * chunks), allocates. */
CS_MUST_USE cs_status sim_collectives_schedule(const sim_network *net, const sim_collective *what,
                                               size_t n, sim_route_cache *cache, double *finish_s,
                                               cs_error *err);

/* Lower bound no algorithm may beat, seconds (DESIGN 5.3): all-reduce 2(n-1)/n*S/B, or S/B where
 * the switch reduces; others (n-1)/n*S/B; broadcast and reduce S/B; all-to-all on rings and meshes
 * by distances; times the oversubscription of a switch. For tests and assertions. */
double sim_collective_bound_s(const sim_dim *dim, const sim_span *span, wl_collective type,
                              double bytes);

/* Algorithm bandwidth and bus bandwidth as NCCL defines them (bus factor 2(n-1)/n, (n-1)/n, 1). */
double sim_bus_factor(wl_collective type, int64_t n);

/* ---- cost ---- */

/* Dollars of a network by price table ("cosmic": a switch port pays two links; "libra": one);
 * NAN when a dimension has no price (a switch on dimension 1). sources: LIBRA, arXiv 2109.11762. */
double sim_network_cost_usd(const sim_network *net, const char *price_table);

/* Sum of bandwidth over dimensions, dimensions of size 1 counted 0. */
double sim_network_bandwidth(const sim_network *net);

#endif
