/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Joins ranks into a job: names and groups renumbered, dependencies as indices of the whole,
 * missing ranks found. */
#include "workloads/trace_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MISSING_SHOWN = 8 };

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "out of memory while loading a trace");
}

/* ---- building ---- */

cs_status wl__builder_create(const wl_trace_options *options, wl__builder **out, cs_error *err)
{
    wl__builder *b = calloc(1, sizeof *b);
    wl_trace_owner *owner;

    if (b != NULL)
        b->trace = calloc(1, sizeof *b->trace);
    if (b == NULL || b->trace == NULL) {
        free(b);
        return no_memory(err);
    }
    if (options != NULL)
        b->options = *options;
    b->ctrl = b->options.ctrl != WL_CTRL_OFF;
    owner = b->trace->owner = calloc(1, sizeof *owner);
    if (owner != NULL)
        owner->arena = cs_arena_create(0);
    if (owner != NULL && owner->arena != NULL) {
        owner->issues.arena = owner->arena;
        owner->names = wl__strings_create(owner->arena);
        owner->groups = wl__strings_create(owner->arena);
    }
    if (owner == NULL || owner->names == NULL || owner->groups == NULL ||
        wl__group_add(b->trace, "") != WL_GROUP_WORLD) {
        wl__builder_destroy(b);
        return no_memory(err);
    }
    *out = b;
    return CS_OK;
}

void wl__builder_destroy(wl__builder *b)
{
    if (b == NULL)
        return;
    wl_trace_destroy(b->trace);
    free(b->rank);
    free(b->node);
    free(b->dep_first);
    free(b->dep);
    free(b);
}

static void free_const(const void *memory)
{
    union {
        const void *in;
        void *out;
    } u = {memory};
    free(u.out);
}

cs_status wl__builder_groups(wl__builder *b, const char *path, cs_error *err)
{
    b->groups_given = true;
    return wl__groups_load(b->trace, path, err);
}

void wl_trace_destroy(wl_trace *trace)
{
    wl_trace_owner *owner;

    if (trace == NULL)
        return;
    owner = trace->owner;
    free_const(trace->rank);
    free_const(trace->node);
    free_const(trace->dep_first);
    free_const(trace->dep);
    if (owner != NULL) {
        wl__strings_destroy(owner->names);
        wl__strings_destroy(owner->groups);
        wl__issues_fini(&owner->issues);
        free(owner->group);
        cs_arena_destroy(owner->arena);
    }
    free(owner);
    free(trace);
}

/* Makes room for `more` elements after n. */
static bool reserve(void **array, size_t n, size_t more, size_t *cap, size_t size)
{
    void *grown = n + more >= UINT32_MAX ? NULL : cs_room(*array, cap, n + more, size);

    if (grown == NULL)
        return false;
    *array = grown;
    return true;
}

/* Numbers of the part's strings in the trace; NULL: out of memory. */
static uint32_t *map_names(wl__builder *b, const wl__part *part)
{
    uint32_t n, *map;

    (void)wl__strings_list(part->names, &n);
    map = malloc((n + 1) * sizeof *map);
    for (uint32_t i = 0; map != NULL && i < n; i++) {
        map[i] = wl__strings_join(b->trace->owner->names, part->names, i);
        if (map[i] == UINT32_MAX) {
            free(map);
            map = NULL;
        }
    }
    return map;
}

static uint32_t *map_groups(wl__builder *b, const wl__part *part)
{
    uint32_t n, *map;
    const char *const *list = wl__strings_list(part->groups, &n);

    map = malloc((n + 1) * sizeof *map);
    for (uint32_t i = 0; map != NULL && i < n; i++) {
        map[i] = wl__group_add(b->trace, list[i]);
        if (map[i] == UINT32_MAX) {
            free(map);
            map = NULL;
        }
    }
    return map;
}

static bool join_nodes(wl__builder *b, const wl__part *part)
{
    uint32_t at = b->trace->n_nodes;
    uint32_t *names = map_names(b, part), *groups = map_groups(b, part);
    bool ok = names != NULL && groups != NULL &&
              reserve((void **)&b->node, at, part->n, &b->cap_nodes, sizeof *b->node);

    for (size_t i = 0; ok && i < part->n; i++) {
        wl_trace_node node = part->node[i];

        node.name = names[node.name];
        node.group = (int32_t)groups[node.group];
        b->node[at + i] = node;
    }
    free(names);
    free(groups);
    return ok;
}

static bool join_graph(wl__builder *b, const wl__part *part)
{
    const wl__graph *g = b->ctrl && part->both.first != NULL ? &part->both : &part->needs;
    uint32_t at = b->trace->n_nodes, base = (uint32_t)b->n_dep;
    size_t edges = g->first[g->n];

    if (!reserve((void **)&b->dep_first, at, part->n + 1, &b->cap_first, sizeof *b->dep_first) ||
        !reserve((void **)&b->dep, b->n_dep, edges + 1, &b->cap_dep, sizeof *b->dep))
        return false;
    for (size_t i = 0; i <= part->n; i++)
        b->dep_first[at + i] = base + g->first[i];
    for (size_t e = 0; e < edges; e++)
        b->dep[b->n_dep++] = at + g->dep[e];
    return true;
}

static bool join_declared(wl__builder *b, const wl__part *part)
{
    uint32_t n;
    const char *const *names = wl__strings_list(part->groups, &n);

    if (b->groups_given)
        return true;
    for (size_t i = 0; i < part->n_declared; i++) {
        const wl__declared *d = &part->declared[i];
        uint32_t g = wl__group_add(b->trace, names[d->name]);
        uint32_t *rank = cs_arena_alloc(b->trace->owner->arena, (d->n + 1) * sizeof *rank);

        if (g == UINT32_MAX || rank == NULL)
            return false;
        memcpy(rank, d->rank, d->n * sizeof *rank);
        if (g != WL_GROUP_WORLD && !wl__group_declare(b->trace, g, rank, d->n))
            wl__issue(&b->trace->owner->issues, WL_ERROR, WL_ISSUE_RANKS, wl__place_of(&part->head),
                      "group %s has other members than rank %u says", names[d->name],
                      b->rank[0].rank);
    }
    return true;
}

/* A part that is the whole job gives its arrays away. */
static bool adopt(wl__builder *b, wl__part *part)
{
    wl__graph *g = b->ctrl && part->both.first != NULL ? &part->both : &part->needs;
    uint32_t *groups = map_groups(b, part);

    if (groups == NULL)
        return false;
    for (size_t i = 0; i < part->n; i++)
        part->node[i].group = (int32_t)groups[part->node[i].group];
    free(groups);
    b->node = part->node;
    b->dep_first = g->first;
    b->dep = g->dep;
    b->n_dep = g->first[g->n];
    part->node = NULL;
    *g = (wl__graph){0};
    return true;
}

cs_status wl__builder_add(wl__builder *b, wl__part *part, cs_error *err)
{
    wl_trace *trace = b->trace;
    wl_trace_rank *rank;
    bool ok = wl__grow((void **)&b->rank, trace->n_ranks, &b->cap_ranks, sizeof *b->rank);

    if (!ok || (uint64_t)trace->n_nodes + part->n >= UINT32_MAX)
        return no_memory(err);
    rank = &b->rank[trace->n_ranks];
    *rank = part->head;
    rank->first = trace->n_nodes;
    rank->n = (uint32_t)part->n;
    rank->facts.depth = b->ctrl ? part->depth_both : part->depth_needs;
    rank->path = cs_arena_strdup(trace->owner->arena, part->head.path);
    rank->schema_text = cs_arena_strdup(trace->owner->arena, part->head.schema_text);
    ok = rank->path != NULL && rank->schema_text != NULL && join_declared(b, part) &&
         (part->borrowed ? adopt(b, part) : join_nodes(b, part) && join_graph(b, part));
    if (!ok)
        return no_memory(err);
    b->ctrl_broken = b->ctrl_broken || part->ctrl_broken;
    trace->n_nodes += (uint32_t)part->n;
    trace->n_ranks++;
    wl__issues_append(&trace->owner->issues, &part->issues);
    return CS_OK;
}

/* ---- completing ---- */

/* Gives the world and groups with an empty list all ranks of the job. */
static bool fill_groups(wl_trace *trace)
{
    uint32_t *all = cs_arena_alloc(trace->owner->arena, ((size_t)trace->job_ranks + 1) * 4);
    wl_trace_group *group = trace->owner->group;

    if (all == NULL)
        return false;
    for (uint32_t r = 0; r < trace->job_ranks; r++)
        all[r] = r;
    for (uint32_t g = 0; g < trace->n_groups; g++) {
        bool zero = strcmp(group[g].name, "0") == 0;

        if (g == WL_GROUP_WORLD || (group[g].declared && group[g].n == 0) ||
            (zero && !group[g].declared)) {
            group[g].rank = all;
            group[g].n = trace->job_ranks;
        }
    }
    group[WL_GROUP_WORLD].declared = true;
    return true;
}

/* "0" that nobody declares is the world itself. */
static void fold_zero(wl__builder *b)
{
    wl_trace *trace = b->trace;

    for (uint32_t g = 1; g < trace->n_groups; g++) {
        if (trace->group[g].declared || strcmp(trace->group[g].name, "0") != 0)
            continue;
        for (uint32_t i = 0; i < trace->n_nodes; i++)
            if (b->node[i].group == (int32_t)g)
                b->node[i].group = WL_GROUP_WORLD;
    }
}

/* Ranks that are not there: a hole is an error, a few files of a large job are a sample. */
static void find_missing(wl__builder *b)
{
    wl_trace *trace = b->trace;
    uint32_t missing = trace->job_ranks - trace->n_ranks, next = 0, shown = 0;
    char text[MISSING_SHOWN * 12 + 16] = "";
    size_t used = 0;

    if (missing == 0 && !b->excerpt)
        return;
    trace->sample = missing > trace->n_ranks || b->excerpt;
    for (uint32_t i = 0; i <= trace->n_ranks && shown < MISSING_SHOWN; i++) {
        uint32_t stop = i < trace->n_ranks ? b->rank[i].rank : trace->job_ranks;

        for (; next < stop && shown < MISSING_SHOWN; next++, shown++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", shown > 0 ? ", " : "",
                                     next);
        next = stop + 1;
    }
    if (missing > MISSING_SHOWN)
        snprintf(text + used, sizeof text - used, ", ...");
    wl__issue(&trace->owner->issues, trace->sample ? WL_WARNING : WL_ERROR, WL_ISSUE_RANKS,
              (wl__place){b->rank[0].path, -1}, "%u of %u ranks are here%s%s%s", trace->n_ranks,
              trace->job_ranks, missing > 0 ? "; missing: " : "", text,
              trace->sample ? " (taken for a sample: ranks are not compared)" : "");
}

static void hand_over(wl__builder *b)
{
    wl_trace *trace = b->trace;
    wl_trace_owner *owner = trace->owner;

    trace->rank = b->rank;
    trace->node = b->node;
    trace->dep_first = b->dep_first;
    trace->dep = b->dep;
    b->rank = NULL;
    b->node = NULL;
    b->dep_first = b->dep = NULL;
    trace->group = owner->group;
    trace->names = wl__strings_list(owner->names, &trace->n_names);
    trace->issue = owner->issues.list;
    trace->n_issues = owner->issues.n;
    trace->n_errors = owner->issues.n_errors;
    trace->n_warnings = owner->issues.n_warnings;
}

static void judge_ctrl(wl__builder *b)
{
    wl_trace *trace = b->trace;
    uint64_t edges = 0;

    trace->ctrl_enforced = b->ctrl;
    for (uint32_t i = 0; i < trace->n_ranks; i++) {
        edges += b->rank[i].facts.ctrl_edges;
        if (b->ctrl && b->rank[i].facts.ctrl_cyclic)
            wl__issue(&trace->owner->issues, WL_ERROR, WL_ISSUE_GRAPH, wl__place_of(&b->rank[i]),
                      "control dependencies close a cycle and are enforced");
    }
    if (!b->ctrl && b->ctrl_broken && edges > 0 && b->options.ctrl == WL_CTRL_AUTO)
        wl__issue(&trace->owner->issues, WL_WARNING, WL_ISSUE_GRAPH,
                  (wl__place){b->rank[0].path, -1},
                  "control dependencies are ignored in all ranks, because some are broken");
}

cs_status wl__builder_finish(wl__builder *b, wl_trace **out, cs_error *err)
{
    wl_trace *trace = b->trace;
    cs_status status = CS_OK;
    uint32_t highest = b->rank[trace->n_ranks - 1].rank + 1;

    trace->job_ranks = b->options.job_ranks > highest ? b->options.job_ranks : highest;
    fold_zero(b);
    if (!fill_groups(trace))
        return no_memory(err);
    judge_ctrl(b);
    find_missing(b);
    hand_over(b);
    if (!b->options.custom)
        status = wl__check_ranks(trace, err);
    trace->issue = trace->owner->issues.list;
    trace->n_issues = trace->owner->issues.n;
    trace->n_errors = trace->owner->issues.n_errors;
    trace->n_warnings = trace->owner->issues.n_warnings;
    if (status == CS_OK) {
        *out = trace;
        b->trace = NULL;
    }
    return status;
}
