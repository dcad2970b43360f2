/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Dependency graphs of one rank: order, cycles, union. */
#include "workloads/trace_private.h"

#include <stdlib.h>
#include <string.h>

void wl__graph_fini(wl__graph *graph)
{
    free(graph->first);
    free(graph->dep);
    *graph = (wl__graph){0};
}

/* True when every parent stands before its child: then file order is a topological order. */
static bool already_ordered(const wl__graph *g)
{
    for (size_t i = 0; i < g->n; i++)
        for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++)
            if (g->dep[e] >= i)
                return false;
    return true;
}

/* The same edges by parent: children of node p are child[first[p] .. first[p + 1] - 1]. */
static bool transpose(const wl__graph *g, uint32_t **first, uint32_t **child)
{
    size_t edges = g->first[g->n];
    uint32_t *f = calloc(g->n + 2, sizeof *f);
    uint32_t *c = malloc((edges + 1) * sizeof *c);

    if (f == NULL || c == NULL) {
        free(f);
        free(c);
        return false;
    }
    for (size_t e = 0; e < edges; e++)
        f[g->dep[e] + 2]++;
    for (size_t p = 0; p < g->n; p++)
        f[p + 2] += f[p + 1];
    for (size_t i = 0; i < g->n; i++)
        for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++)
            c[f[g->dep[e] + 1]++] = (uint32_t)i;
    *first = f;
    *child = c;
    return true;
}

size_t wl__graph_order(const wl__graph *g, uint32_t *order)
{
    uint32_t *first = NULL, *child = NULL, *waits;
    size_t done = 0, ready = 0;

    if (already_ordered(g)) {
        for (size_t i = 0; i < g->n; i++)
            order[i] = (uint32_t)i;
        return g->n;
    }
    waits = malloc(g->n * sizeof *waits);
    if (waits == NULL || !transpose(g, &first, &child)) {
        free(waits);
        return SIZE_MAX;
    }
    for (size_t i = 0; i < g->n; i++) {
        waits[i] = g->first[i + 1] - g->first[i];
        if (waits[i] == 0)
            order[ready++] = (uint32_t)i;
    }
    for (; done < ready; done++) {
        uint32_t p = order[done];

        for (uint32_t e = first[p]; e < first[p + 1]; e++)
            if (--waits[child[e]] == 0)
                order[ready++] = child[e];
    }
    free(waits);
    free(first);
    free(child);
    return done;
}

/* The first parent that is in no order. */
static uint32_t stuck_parent(const wl__graph *g, const bool *ordered, uint32_t node)
{
    for (uint32_t e = g->first[node]; e < g->first[node + 1]; e++)
        if (!ordered[g->dep[e]])
            return g->dep[e];
    return node;
}

/* Every stuck node has a stuck parent, so that walking along them must come round. */
static size_t walk(const wl__graph *g, const bool *ordered, uint32_t *seen_at, uint32_t *cycle,
                   size_t max)
{
    uint32_t at = 0, steps = 0, start;
    size_t length = 0;

    while (at < g->n && ordered[at])
        at++;
    if (at == g->n)
        return 0;
    for (; seen_at[at] == 0; at = stuck_parent(g, ordered, at))
        seen_at[at] = ++steps;
    start = at;
    do {
        if (length < max)
            cycle[length] = at;
        length++;
        at = stuck_parent(g, ordered, at);
    } while (at != start);
    return length;
}

size_t wl__graph_cycle(const wl__graph *g, uint32_t *cycle, size_t max)
{
    uint32_t *order = malloc((g->n + 1) * sizeof *order);
    uint32_t *seen_at = calloc(g->n + 1, sizeof *seen_at);
    bool *ordered = calloc(g->n + 1, sizeof *ordered);
    size_t result = SIZE_MAX, n;

    if (order != NULL && seen_at != NULL && ordered != NULL) {
        n = wl__graph_order(g, order);
        for (size_t i = 0; n != SIZE_MAX && i < n; i++)
            ordered[order[i]] = true;
        if (n != SIZE_MAX)
            result = walk(g, ordered, seen_at, cycle, max);
    }
    free(order);
    free(seen_at);
    free(ordered);
    return result;
}

bool wl__graph_merge(const wl__graph *a, const wl__graph *b, wl__graph *out)
{
    size_t edges = (size_t)a->first[a->n] + b->first[b->n];
    uint32_t *mark = malloc((a->n + 1) * sizeof *mark);
    uint32_t n = 0;

    *out = (wl__graph){.n = a->n};
    out->first = malloc((a->n + 1) * sizeof *out->first);
    out->dep = malloc((edges + 1) * sizeof *out->dep);
    if (mark == NULL || out->first == NULL || out->dep == NULL) {
        free(mark);
        wl__graph_fini(out);
        return false;
    }
    memset(mark, 0xff, (a->n + 1) * sizeof *mark);
    for (uint32_t i = 0; i < a->n; i++) {
        out->first[i] = n;
        for (int side = 0; side < 2; side++) {
            const wl__graph *g = side == 0 ? a : b;

            for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++) {
                if (mark[g->dep[e]] != i)
                    out->dep[n++] = g->dep[e];
                mark[g->dep[e]] = i;
            }
        }
    }
    out->first[a->n] = n;
    free(mark);
    return true;
}
