/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One rank, finished: ids resolved to indices, what is broken about its graph, launchers, the
 * longest chains. */
#include "workloads/trace_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED = 4, CYCLE_SHOWN = 12 };

/* ---- ids ---- */

/* Index of the node with an id: by hash, with a short cut for dense ascending ids. */
typedef struct {
    const wl_trace_node *node;
    size_t n, mask;
    uint32_t *slot; /* index + 1 */
} id_index;

static uint32_t id_find(const id_index *x, uint64_t id)
{
    uint64_t guess = x->n > 0 ? id - x->node[0].id : 0;

    if (guess < x->n && x->node[guess].id == id)
        return (uint32_t)guess;
    for (size_t i = (size_t)cs_mix64(id) & x->mask; x->slot[i] != 0; i = (i + 1) & x->mask)
        if (x->node[x->slot[i] - 1].id == id)
            return x->slot[i] - 1;
    return UINT32_MAX;
}

static void report_duplicate(wl__part *part, uint32_t first, uint32_t second)
{
    wl__issue(&part->issues, WL_ERROR, WL_ISSUE_GRAPH, wl__place_of(&part->head),
              "node id %" PRIu64 " twice: at offsets %" PRId64 " and %" PRId64,
              part->node[first].id, part->offset[first], part->offset[second]);
}

static bool id_index_make(wl__part *part, id_index *x)
{
    size_t slots = 16, reported = 0;

    while (slots < 2 * part->n)
        slots *= 2;
    *x = (id_index){part->node, part->n, slots - 1, calloc(slots, sizeof *x->slot)};
    if (x->slot == NULL)
        return false;
    for (uint32_t k = 0; k < part->n; k++) {
        size_t i = (size_t)cs_mix64(part->node[k].id) & x->mask;

        while (x->slot[i] != 0 && part->node[x->slot[i] - 1].id != part->node[k].id)
            i = (i + 1) & x->mask;
        if (x->slot[i] == 0)
            x->slot[i] = k + 1;
        else if (reported++ < LISTED)
            report_duplicate(part, x->slot[i] - 1, k);
    }
    if (reported > LISTED)
        wl__issue(&part->issues, WL_ERROR, WL_ISSUE_GRAPH, wl__place_of(&part->head),
                  "%zu more nodes repeat an id", reported - LISTED);
    return true;
}

/* ---- edges ---- */

typedef struct {
    uint64_t missing, self;
} edge_faults;

static void report_missing(wl__part *part, size_t node, uint64_t id, const char *kind,
                           wl_severity severity)
{
    wl__issue(&part->issues, severity, WL_ISSUE_GRAPH, wl__place_of(&part->head),
              "offset %" PRId64 ": node %" PRIu64 " needs node %" PRIu64
              " (%s dependency), which is not in the file",
              part->offset[node], part->node[node].id, id, kind);
}

/* Ids to indices; missing and self references are counted and left out.  Frees the ids. */
static bool resolve(wl__part *part, const id_index *index, wl__edges *edges, bool data,
                    wl__graph *out, edge_faults *faults)
{
    uint32_t n = 0;

    *out = (wl__graph){.n = part->n};
    out->first = malloc((part->n + 1) * sizeof *out->first);
    out->dep = malloc((edges->n_id + 1) * sizeof *out->dep);
    if (out->first == NULL || out->dep == NULL)
        return false;
    for (size_t i = 0; i < part->n; i++) {
        out->first[i] = n;
        for (uint32_t e = edges->first[i]; e < edges->first[i + 1]; e++) {
            uint32_t parent = id_find(index, edges->id[e]);

            if (parent == UINT32_MAX) {
                if (data && faults->missing < LISTED)
                    report_missing(part, i, edges->id[e], "data", WL_ERROR);
                faults->missing++;
            } else if (part->node[parent].id == part->node[i].id) {
                faults->self++;
            } else {
                out->dep[n++] = parent;
            }
        }
    }
    out->first[part->n] = n;
    wl__edges_fini(edges);
    return true;
}

static void report_cycle(wl__part *part, const wl__graph *graph)
{
    uint32_t cycle[CYCLE_SHOWN];
    size_t n = wl__graph_cycle(graph, cycle, CYCLE_SHOWN);
    char text[CYCLE_SHOWN * 26];
    size_t used = 0;

    if (n == 0 || n == SIZE_MAX)
        return;
    for (size_t k = 0; k < n && k < CYCLE_SHOWN; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%" PRIu64 " -> ",
                                 part->node[cycle[k]].id);
    if (n > CYCLE_SHOWN)
        wl__issue(&part->issues, WL_ERROR, WL_ISSUE_GRAPH, wl__place_of(&part->head),
                  "cycle of %zu nodes: %s... (each needs the next)", n, text);
    else
        wl__issue(&part->issues, WL_ERROR, WL_ISSUE_GRAPH, wl__place_of(&part->head),
                  "cycle %s%" PRIu64 " (each needs the next)", text, part->node[cycle[0]].id);
}

/* Longest chains of a graph: in nodes, and in COMP time. */
typedef struct {
    uint32_t *order, *level;
    int64_t *time;
    bool cyclic;
    uint64_t depth;
    int64_t longest_ps;
} chains;

static void follow(const wl__part *part, const wl__graph *g, chains *c, uint32_t i)
{
    uint32_t level = 0;
    int64_t time = 0;

    for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++) {
        uint32_t p = g->dep[e];

        level = c->level[p] > level ? c->level[p] : level;
        time = c->time[p] > time ? c->time[p] : time;
    }
    c->level[i] = level + 1;
    c->time[i] = time + (part->node[i].type == WL_NODE_COMP ? part->node[i].duration_ps : 0);
    c->depth = c->level[i] > c->depth ? c->level[i] : c->depth;
    c->longest_ps = c->time[i] > c->longest_ps ? c->time[i] : c->longest_ps;
}

static bool measure(const wl__part *part, const wl__graph *g, chains *c)
{
    size_t n = SIZE_MAX;

    *c = (chains){.order = malloc((part->n + 1) * sizeof *c->order),
                  .level = malloc((part->n + 1) * sizeof *c->level),
                  .time = malloc((part->n + 1) * sizeof *c->time)};
    if (c->order != NULL && c->level != NULL && c->time != NULL)
        n = wl__graph_order(g, c->order);
    for (size_t k = 0; n != SIZE_MAX && k < n; k++)
        follow(part, g, c, c->order[k]);
    free(c->order);
    free(c->level);
    free(c->time);
    c->order = c->level = NULL;
    c->time = NULL;
    c->cyclic = n < part->n;
    return n != SIZE_MAX;
}

/* ---- launchers ---- */

static bool same_collective(const wl_trace_node *a, const wl_trace_node *b)
{
    return a->comm == b->comm && a->comm_size == b->comm_size && a->group == b->group;
}

/* Marks the CPU operations above a GPU collective in the call stack that state the same collective
 * again: the kernel carries its cost.  A CPU collective without such a kernel costs like any. */
static bool mark_launchers(wl__part *part, const wl__graph *stack)
{
    uint32_t *todo = malloc((part->n + 1) * sizeof *todo);
    size_t n = 0;

    if (todo == NULL)
        return false;
    for (uint32_t i = 0; i < part->n; i++)
        if (part->node[i].type == WL_NODE_COLL && part->node[i].comm != WL_CHAKRA_NONE &&
            (part->node[i].flags & (WL_NODE_CPU | WL_NODE_CPU_ABSENT)) == 0)
            todo[n++] = i;
    while (n > 0) {
        uint32_t i = todo[--n];

        for (uint32_t e = stack->first[i]; e < stack->first[i + 1]; e++) {
            wl_trace_node *p = &part->node[stack->dep[e]];

            if (p->type != WL_NODE_COLL || !same_collective(p, &part->node[i]) ||
                (p->flags & WL_NODE_CPU) == 0 || (p->flags & WL_NODE_HOST_COLL) != 0)
                continue;
            p->flags |= WL_NODE_HOST_COLL;
            part->host_collectives++;
            todo[n++] = stack->dep[e]; /* each node enters at most once more: flags only grow */
        }
    }
    free(todo);
    return true;
}

/* ---- streams ---- */

typedef struct {
    int32_t stream;
    uint32_t node;
    uint64_t id;
} stream_node;

static int by_stream(const void *a, const void *b)
{
    const stream_node *x = a, *y = b;

    if (x->stream != y->stream)
        return (x->stream > y->stream) - (x->stream < y->stream);
    return (x->id > y->id) - (x->id < y->id);
}

static bool stream_edges(wl__graph *g, const stream_node *list, size_t n)
{
    uint32_t *parent = malloc((g->n + 1) * sizeof *parent), edges = 0;

    if (parent == NULL)
        return false;
    memset(parent, 0xff, (g->n + 1) * sizeof *parent);
    for (size_t k = 1; k < n; k++)
        if (list[k].stream == list[k - 1].stream)
            parent[list[k].node] = list[k - 1].node;
    for (size_t i = 0; i < g->n; i++) {
        g->first[i] = edges;
        if (parent[i] != UINT32_MAX)
            g->dep[edges++] = parent[i];
    }
    g->first[g->n] = edges;
    free(parent);
    return true;
}

/* Adds the order of each GPU stream, by ascending id, to the data dependencies. */
static bool chain_streams(wl__part *part)
{
    stream_node *list = malloc((part->n + 1) * sizeof *list);
    wl__graph streams = {.n = part->n,
                         .first = malloc((part->n + 1) * sizeof *streams.first),
                         .dep = malloc((part->n + 1) * sizeof *streams.dep)};
    wl__graph merged;
    size_t n = 0;
    bool ok = list != NULL && streams.first != NULL && streams.dep != NULL;

    for (uint32_t i = 0; ok && i < part->n; i++)
        if (part->node[i].stream >= 0 && (part->node[i].flags & WL_NODE_CPU) == 0)
            list[n++] = (stream_node){part->node[i].stream, i, part->node[i].id};
    if (ok) {
        qsort(list, n, sizeof *list, by_stream);
        ok = stream_edges(&streams, list, n) && wl__graph_merge(&part->needs, &streams, &merged);
    }
    if (ok) {
        wl__graph_fini(&part->needs);
        part->needs = merged;
    }
    wl__graph_fini(&streams);
    free(list);
    return ok;
}

/* ---- putting it together ---- */

static void warn_count(wl__part *part, wl_issue_class class_, uint64_t n, const char *what)
{
    if (n > 0)
        wl__issue(&part->issues, WL_WARNING, class_, wl__place_of(&part->head), "%" PRIu64 " %s", n,
                  what);
}

static void warn(wl__part *part)
{
    if (part->n == 0)
        wl__issue(&part->issues, WL_WARNING, WL_ISSUE_EMPTY, wl__place_of(&part->head),
                  "metadata and no node: the rank has no work");
    warn_count(part, WL_ISSUE_VALUE, part->host_collectives,
               "collective nodes are launchers on the CPU: they cost their duration and move "
               "nothing");
    warn_count(part, WL_ISSUE_VALUE, part->unsized,
               "collectives without comm_size, as converters of 2023 wrote them");
    warn_count(part, WL_ISSUE_VALUE, part->repeated_attrs,
               "attributes repeat a name: the first counts");
    warn_count(part, WL_ISSUE_NODE, part->bad_names,
               "node names are not UTF-8: shown with \\x escapes");
    warn_count(part, WL_ISSUE_VALUE, part->invalid_nodes,
               "nodes of type INVALID: they end at once");
}

static void data_faults(wl__part *part, const edge_faults *data)
{
    part->head.facts.data_refs_missing = data->missing;
    if (data->missing > LISTED)
        wl__issue(&part->issues, WL_ERROR, WL_ISSUE_GRAPH, wl__place_of(&part->head),
                  "%" PRIu64 " more data dependencies on nodes that are not in the file",
                  data->missing - LISTED);
    if (data->self > 0)
        wl__issue(&part->issues, WL_ERROR, WL_ISSUE_GRAPH, wl__place_of(&part->head),
                  "%" PRIu64 " nodes need themselves (data dependency)", data->self);
    if (part->head.facts.data_cyclic)
        report_cycle(part, &part->needs);
}

static void ctrl_faults(wl__part *part, const edge_faults *ctrl)
{
    wl_rank_facts *f = &part->head.facts;

    f->ctrl_refs_missing = ctrl->missing;
    f->self_ctrl = ctrl->self;
    part->ctrl_broken = ctrl->missing > 0 || ctrl->self > 0 || f->ctrl_cyclic;
    if (part->ctrl_broken)
        wl__issue(&part->issues, WL_WARNING, WL_ISSUE_GRAPH, wl__place_of(&part->head),
                  "control dependencies: %" PRIu64 " on nodes that are not in the file, %" PRIu64
                  " on the node itself%s",
                  ctrl->missing, ctrl->self,
                  f->ctrl_cyclic ? ", and a cycle together with the data dependencies" : "");
}

/* Facts of the graphs once resolved. */
static bool study(wl__part *part, const wl__graph *stack)
{
    wl_rank_facts *f = &part->head.facts;
    chains c;

    if (!measure(part, &part->needs, &c))
        return false;
    f->data_cyclic = c.cyclic;
    f->comp_longest_path_ps = c.longest_ps;
    part->depth_needs = part->depth_both = c.depth;
    if (stack->first[stack->n] == 0)
        return true; /* `both` stays empty: the same as `needs` */
    if (!wl__graph_merge(&part->needs, stack, &part->both) || !measure(part, &part->both, &c))
        return false;
    f->ctrl_cyclic = c.cyclic;
    part->depth_both = c.depth;
    return true;
}

/* The end of a message that a node may leave out is its own rank. */
static void own_ends(wl__part *part)
{
    for (size_t i = 0; i < part->n; i++) {
        wl_trace_node *node = &part->node[i];

        if (node->type == WL_NODE_SEND && node->src < 0)
            node->src = (int32_t)part->head.rank;
        if (node->type == WL_NODE_RECV && node->dst < 0)
            node->dst = (int32_t)part->head.rank;
    }
}

cs_status wl__part_finish(wl__part *part, cs_error *err)
{
    id_index index = {0};
    wl__graph stack = {0};
    edge_faults data = {0}, ctrl = {0};
    bool ok;

    own_ends(part);
    part->head.n = (uint32_t)part->n;
    part->head.facts.data_edges = part->data.n_id;
    part->head.facts.ctrl_edges = part->ctrl.n_id;
    ok = id_index_make(part, &index) &&
         resolve(part, &index, &part->data, true, &part->needs, &data) &&
         resolve(part, &index, &part->ctrl, false, &stack, &ctrl) && mark_launchers(part, &stack);
    if (ok && part->options->chain_streams)
        ok = chain_streams(part);
    ok = ok && study(part, &stack);
    if (ok) {
        data_faults(part, &data);
        ctrl_faults(part, &ctrl);
        warn(part);
    }
    free(index.slot);
    wl__graph_fini(&stack);
    free(part->offset);
    part->offset = NULL;
    return ok ? CS_OK : cs_fail(err, CS_ENOMEM, "%s: out of memory", part->head.path);
}
