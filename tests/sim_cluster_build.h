/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Small traces built in memory, for the tests of the cluster engine. */
#ifndef TESTS_SIM_CLUSTER_BUILD_H
#define TESTS_SIM_CLUSTER_BUILD_H

#include "sim/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    uint32_t rank;
    uint64_t id;
    uint8_t type, comm;
    int32_t group;
    int64_t bytes;   /* of communication */
    int32_t peer;    /* of SEND and RECV */
    int64_t tag, ns; /* ns: duration */
    int n_deps;
    uint32_t dep[3]; /* indices into the same table */
} spec;

#define MAX_NODES 64
typedef struct {
    wl_trace trace;
    wl_trace_node node[MAX_NODES];
    wl_trace_rank rank[8];
    uint32_t dep_first[MAX_NODES + 1], dep[3 * MAX_NODES];
} built;

static const char *const node_names[] = {"n"};

/* Specs stand rank by rank. */
static inline const wl_trace *build(built *b, const spec *specs, size_t n, uint32_t ranks)
{
    static const uint32_t first_pair[] = {0, 1}, second_pair[] = {2, 3}, third[] = {2};
    static const wl_trace_group groups[] = {{.name = ""},
                                            {"a", first_pair, 2, true},
                                            {"b", second_pair, 2, true},
                                            {"c", third, 1, true}};
    uint32_t n_deps = 0;

    *b = (built){.trace = {.job_ranks = ranks, .n_ranks = ranks}};
    for (uint32_t r = 0; r < ranks; r++)
        b->rank[r] = (wl_trace_rank){.rank = r};
    for (size_t i = 0; i < n; i++) {
        const spec *s = &specs[i];
        wl_trace_rank *rank = &b->rank[s->rank];
        if (rank->n++ == 0)
            rank->first = (uint32_t)i;
        b->node[i] = (wl_trace_node){.id = s->id,
                                     .duration_ps = s->ns * 1000,
                                     .num_ops = WL_ABSENT,
                                     .tensor_size = WL_ABSENT,
                                     .comm_size = s->bytes,
                                     .tag = s->tag,
                                     .src = s->peer,
                                     .dst = s->peer,
                                     .group = s->group,
                                     .type = s->type,
                                     .comm = s->comm};
        b->dep_first[i] = n_deps;
        for (int d = 0; d < s->n_deps; d++)
            b->dep[n_deps++] = s->dep[d];
    }
    b->dep_first[n] = n_deps;
    b->trace.rank = b->rank;
    b->trace.node = b->node;
    b->trace.n_nodes = (uint32_t)n;
    b->trace.dep_first = b->dep_first;
    b->trace.dep = b->dep;
    b->trace.group = groups;
    b->trace.n_groups = (uint32_t)CS_COUNT(groups);
    b->trace.names = node_names;
    b->trace.n_names = 1;
    return &b->trace;
}

#define COMP(r, i, t)      .rank = r, .id = i, .type = WL_NODE_COMP, .ns = t
#define REDUCE(r, i, g, b) .rank = r, .id = i, .type = WL_NODE_COLL, .group = g, .bytes = b
#define SEND(r, i, to, b, t)                                                                       \
    .rank = r, .id = i, .type = WL_NODE_SEND, .peer = to, .bytes = b, .tag = t
#define RECV(r, i, from, b, t)                                                                     \
    .rank = r, .id = i, .type = WL_NODE_RECV, .peer = from, .bytes = b, .tag = t

#endif
