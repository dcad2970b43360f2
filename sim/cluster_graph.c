/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Who waits for whom, and the ready nodes of each rank: one pairing heap a place, ordered by node
 * id (Fredman et al., "The pairing heap", Algorithmica 1(1), 1986), through two arrays of links. */
#include "sim/cluster_private.h"

#include <stdlib.h>
#include <string.h>

static cs_status no_memory(const sim__cluster *c, cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "a trace of %u nodes", c->trace->n_nodes);
}

static int by_id(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : (x[1] < y[1] ? -1 : x[1] > y[1]);
}

/* Position of each node by id within its rank. */
static cs_status order_nodes(sim__cluster *c, cs_error *err)
{
    const wl_trace *trace = c->trace;
    uint64_t(*key)[2] = malloc(((size_t)trace->n_nodes + 1) * sizeof *key);

    if (key == NULL)
        return no_memory(c, err);
    for (uint32_t r = 0; r < trace->n_ranks; r++) {
        const wl_trace_rank *rank = &trace->rank[r];
        bool sorted = true;
        for (uint32_t i = 0; i < rank->n; i++) {
            key[i][0] = trace->node[rank->first + i].id;
            key[i][1] = rank->first + i;
            sorted = sorted && (i == 0 || key[i - 1][0] <= key[i][0]);
        }
        if (!sorted)
            qsort(key, rank->n, sizeof *key, by_id);
        for (uint32_t i = 0; i < rank->n; i++) {
            c->order[key[i][1]] = i;
            c->rank_of[key[i][1]] = r;
        }
    }
    free(key);
    return CS_OK;
}

static void link_children(sim__cluster *c)
{
    const wl_trace *trace = c->trace;
    const uint32_t n = trace->n_nodes;

    for (uint32_t i = 0; i < n; i++) {
        c->pending[i] = trace->dep_first[i + 1] - trace->dep_first[i];
        for (uint32_t e = trace->dep_first[i]; e < trace->dep_first[i + 1]; e++)
            c->child_first[trace->dep[e] + 1]++;
    }
    for (uint32_t i = 0; i < n; i++)
        c->child_first[i + 1] += c->child_first[i];
    /* fill from the back: child_first[i] ends as the begin of i */
    for (uint32_t i = n; i-- > 0;)
        for (uint32_t e = trace->dep_first[i]; e < trace->dep_first[i + 1]; e++)
            c->child[--c->child_first[trace->dep[e] + 1]] = i;
    memmove(c->child_first, c->child_first + 1, n * sizeof *c->child_first);
    c->child_first[n] = n == 0 ? 0 : trace->dep_first[n];
}

cs_status sim__cluster_graph(sim__cluster *c, cs_error *err)
{
    const size_t n = c->trace->n_nodes;
    const size_t n_deps = n == 0 ? 0 : c->trace->dep_first[n];

    c->order = malloc((n + 1) * sizeof *c->order);
    c->rank_of = malloc((n + 1) * sizeof *c->rank_of);
    c->pending = malloc((n + 1) * sizeof *c->pending);
    c->child_first = calloc(n + 2, sizeof *c->child_first);
    c->child = malloc((n_deps + 1) * sizeof *c->child);
    c->heap_child = malloc((n + 1) * sizeof *c->heap_child);
    c->sibling = malloc((n + 1) * sizeof *c->sibling);
    c->partner = malloc((n + 1) * sizeof *c->partner);
    c->state = calloc(n + 1, sizeof *c->state);
    c->started = malloc((n + 1) * sizeof *c->started);
    if (c->order == NULL || c->rank_of == NULL || c->pending == NULL || c->child_first == NULL ||
        c->child == NULL || c->heap_child == NULL || c->sibling == NULL || c->partner == NULL ||
        c->state == NULL || c->started == NULL)
        return no_memory(c, err);
    memset(c->partner, 0xff, (n + 1) * sizeof *c->partner);
    link_children(c);
    return order_nodes(c, err);
}

/* ---- pairing heaps ---- */

static uint32_t meld(sim__cluster *c, uint32_t a, uint32_t b)
{
    uint32_t top = a, under = b;

    if (a == SIM__NONE)
        return b;
    if (b == SIM__NONE)
        return a;
    if (c->order[b] < c->order[a]) {
        top = b;
        under = a;
    }
    c->sibling[under] = c->heap_child[top];
    c->heap_child[top] = under;
    return top;
}

/* The heap without its top: children are paired from the left, then melded from the right. */
static uint32_t pop(sim__cluster *c, uint32_t top)
{
    uint32_t paired = SIM__NONE, heap = SIM__NONE;
    uint32_t next = c->heap_child[top];

    while (next != SIM__NONE) {
        const uint32_t a = next;
        const uint32_t b = c->sibling[a];
        uint32_t pair;
        next = b == SIM__NONE ? SIM__NONE : c->sibling[b];
        pair = meld(c, a, b);
        c->sibling[pair] = paired;
        paired = pair;
    }
    while (paired != SIM__NONE) {
        const uint32_t rest = c->sibling[paired];
        heap = meld(c, heap, paired);
        paired = rest;
    }
    return heap;
}

/* ---- ready nodes ---- */

/* Communication on a CPU costs what it costs elsewhere; only a launch without type or size is a
 * host operation. */
static bool is_host_only(const wl_trace_node *node)
{
    return node->type == WL_NODE_COLL && (node->flags & WL_NODE_HOST_COLL) != 0 &&
           (node->comm == WL_CHAKRA_NONE || node->comm_size < 0);
}

sim__place sim__cluster_place(const sim__cluster *c, uint32_t index)
{
    const wl_trace_node *node = &c->trace->node[index];
    const bool cpu = (node->flags & WL_NODE_CPU) != 0;
    const bool streams = c->options->streams_by_dimension;

    switch (node->type) {
    case WL_NODE_COMP:
        return cpu ? SIM__PLACE_CPU : SIM__PLACE_GPU;
    case WL_NODE_RECV:
        return SIM__PLACE_NONE;
    case WL_NODE_SEND:
        return streams ? SIM__PLACE_NONE : SIM__PLACE_COMM;
    case WL_NODE_COLL:
        if (cpu && is_host_only(node))
            return SIM__PLACE_CPU;
        return streams ? SIM__PLACE_NONE : SIM__PLACE_COMM;
    default:
        return cpu ? SIM__PLACE_CPU : SIM__PLACE_COMM;
    }
}

void sim__cluster_make_ready(sim__cluster *c, uint32_t node)
{
    sim__rank *rank = &c->rank[c->rank_of[node]];

    c->sibling[node] = rank->fresh;
    rank->fresh = node;
}

bool sim__cluster_refresh(sim__cluster *c, uint32_t index)
{
    sim__rank *rank = &c->rank[index];
    uint32_t node = rank->fresh;

    if (node == SIM__NONE)
        return false;
    while (node != SIM__NONE) {
        const uint32_t next = c->sibling[node];
        uint32_t *heap = &rank->ready[sim__cluster_place(c, node)];
        c->heap_child[node] = c->sibling[node] = SIM__NONE;
        *heap = meld(c, *heap, node);
        node = next;
    }
    rank->fresh = SIM__NONE;
    return true;
}

uint32_t sim__cluster_take(sim__cluster *c, uint32_t index)
{
    sim__rank *rank = &c->rank[index];
    int best = -1;

    for (int p = 0; p < SIM__N_PLACES; p++) {
        const bool is_free = p == SIM__PLACE_NONE || rank->busy[p] == 0;
        if (rank->ready[p] != SIM__NONE && is_free &&
            (best < 0 || c->order[rank->ready[p]] < c->order[rank->ready[best]]))
            best = p;
    }
    if (best < 0)
        return SIM__NONE;
    {
        const uint32_t node = rank->ready[best];
        rank->ready[best] = pop(c, node);
        return node;
    }
}
