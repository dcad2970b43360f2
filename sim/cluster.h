/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Cluster engine: every rank of an imported trace with its own clock.  Rules of ASTRA-sim: a rank
 * has at most one GPU compute node, one CPU node and one communication node in flight (memory and
 * metadata nodes take the communication place, receives take none); whenever a node ends, those
 * that wait for nothing are issued in ascending id, as far as their place is free.  Sends and
 * receives match first in, first out by (source, destination, tag); the k-th collective of a group
 * on one rank belongs to the k-th on the others.
 *
 * Compute nodes: roofline, floor(ops / min(peak, bandwidth * ops / bytes)) ns, when the system
 * enables it; otherwise their duration (at least 1 ns), as for CPU nodes. */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

#include "sim/astra.h"
#include "workloads/trace.h"

/* What if: one directed link carries less.  `from` and `to` are NPUs next to each other in one
 * dimension; on a switch the link is that of `from` up to the switch. */
typedef struct {
    int64_t from, to;
    double factor;                 /* of its bandwidth, above 0 and at most 1 */
    double background_bytes_per_s; /* constant traffic of others; 0: none */
} sim_cluster_link;

/* All zero, with `astra` or `network`, is the default. */
typedef struct {
    /* Models astra and astra-aware: network and system; borrowed. */
    const sim_astra *astra;
    sim_astra_backend backend;
    /* Model contention (DESIGN 5.3) when not NULL; `astra` is then not read.  A collective starts
     * when its last member arrives; its chunks take the dimensions of all members in turn, in the
     * order in which they come.  Messages go link by link, first come, first served, cut-through
     * in a dimension, and are stored between dimensions. */
    const sim_network *network;
    /* Communication takes no place of the rank: only its dimensions bound it, as in the block
     * engine (model contention). */
    bool streams_by_dimension;
    /* Model contention: compute nodes without a duration follow the roofline of these, when both
     * are above 0. */
    double peak_flops, memory_bytes_per_s;
    /* Collectives given as traces, by wl_collective (the first SIM_ASTRA_N_TYPES), loaded with
     * wl_trace_options.custom; NULL: none.  Positions in the group stand for ranks, sizes are those
     * of the file.  They run by the rules above, each on a network of its own, from the members'
     * own starts.  Borrowed. */
    const wl_trace *custom[SIM_ASTRA_N_TYPES];
    /* What if: compute of one rank takes `slow_factor` times as long (0: no rank). */
    uint32_t slow_rank;
    double slow_factor;
    /* What if: changed links (at most 64), models astra-aware and contention.  A collective under
     * contention slows down by the worst link of its members in the dimension. */
    const sim_cluster_link *link;
    size_t n_links;
    /* Simulates every rank, also those that are provably alike.  Without it one of each class is
     * simulated where the model allows it (model astra without on_node and custom collectives); the
     * results are the same, to the nanosecond. */
    bool every_rank;
    /* Called for every node that ends; NULL: none.  `rank` and `node` are indices into the trace;
     * times in ns.  In the order of the ends. */
    void (*on_node)(void *context, uint32_t rank, uint32_t node, int64_t start_ns, int64_t end_ns);
    void *context;
} sim_cluster_options;

/* Times of one rank, ns. */
typedef struct {
    int64_t total_ns;
    int64_t compute_ns; /* sum over GPU compute nodes */
    int64_t exposed_ns; /* total - compute, as ASTRA-sim prints it */
    int64_t hidden_ns;  /* communication in flight beside compute */
    int64_t comm_ns;    /* any communication node in flight */
    int64_t idle_ns;    /* neither */
} sim_cluster_rank;

typedef struct {
    int64_t max_ns, min_ns, max_exposed_ns;
    uint32_t n_ranks;
    uint32_t n_simulated;   /* ranks that were run themselves; the others are like one of them */
    sim_cluster_rank *rank; /* by index into trace->rank */
    double bytes_moved;     /* sent by all ranks: collectives and messages */
    uint64_t collectives;   /* run, over all groups */
    uint64_t messages;      /* sends */
    uint64_t unreceived;    /* sends that no receive asked for */
} sim_cluster_result;

/* Runs a trace of all ranks of its job.  CS_EINVAL when the network, the ranks and the files
 * disagree (the message has the three numbers) or the model cannot run a node; CS_ETRACE for
 * collectives or messages that do not fit together, naming ranks, nodes and sizes; CS_EDEADLOCK
 * when ranks wait for ever, naming the node of each and what it waits for.  The caller owns what
 * *out holds, even after a failure, and releases it with sim_cluster_result_fini.
 * O(nodes log nodes + messages log messages). */
CS_MUST_USE cs_status sim_cluster_run(const wl_trace *trace, const sim_cluster_options *options,
                                      sim_cluster_result *out, cs_error *err);
void sim_cluster_result_fini(sim_cluster_result *result);

#endif
