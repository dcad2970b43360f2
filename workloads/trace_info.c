/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `trace info`: what a loaded trace holds, as numbers and as lines for people. */
#include "workloads/trace_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PS_PER_US 1000000
enum { GROUPS_SHOWN = 9 }; /* more are joined by size */

/* Kinds of traffic of a group: the collective types, one without type, sends, receives. */
enum { KIND_UNTYPED = WL_N_CHAKRA_COMMS, KIND_SEND, KIND_RECV, N_KINDS };

typedef struct {
    uint64_t count[N_KINDS], bytes[N_KINDS];
} group_traffic;

static const char *kind_name(int kind)
{
    if (kind == KIND_SEND)
        return "SEND";
    if (kind == KIND_RECV)
        return "RECV";
    return kind == KIND_UNTYPED ? "COMM_COLL" : wl_chakra_comm_names[kind];
}

static int node_kind(const wl_trace_node *node)
{
    if (node->type == WL_NODE_SEND)
        return KIND_SEND;
    if (node->type == WL_NODE_RECV)
        return KIND_RECV;
    if (node->type != WL_NODE_COLL)
        return -1;
    return node->comm == WL_CHAKRA_NONE ? KIND_UNTYPED : node->comm;
}

static void add_up(wl_rank_facts *to, const wl_rank_facts *from)
{
    to->nodes += from->nodes;
    for (int t = 0; t < WL_N_NODE_TYPES; t++)
        to->by_type[t] += from->by_type[t];
    to->cpu_nodes += from->cpu_nodes;
    to->data_edges += from->data_edges;
    to->ctrl_edges += from->ctrl_edges;
    to->data_refs_missing += from->data_refs_missing;
    to->ctrl_refs_missing += from->ctrl_refs_missing;
    to->self_ctrl += from->self_ctrl;
    to->data_cyclic = to->data_cyclic || from->data_cyclic;
    to->ctrl_cyclic = to->ctrl_cyclic || from->ctrl_cyclic;
    to->comp_duration_ps += from->comp_duration_ps;
    if (from->comp_longest_path_ps > to->comp_longest_path_ps)
        to->comp_longest_path_ps = from->comp_longest_path_ps;
    if (from->depth > to->depth)
        to->depth = from->depth;
    to->num_ops += from->num_ops;
    for (int c = 0; c <= WL_N_CHAKRA_COMMS; c++)
        to->coll_count[c] += from->coll_count[c];
    to->coll_bytes += from->coll_bytes;
    to->send_bytes += from->send_bytes;
    to->recv_bytes += from->recv_bytes;
}

static bool gather_traffic(const wl_trace *trace, cs_arena *arena, wl_trace_info *info)
{
    group_traffic *sum = calloc(trace->n_groups, sizeof *sum);
    wl_trace_traffic *list;
    size_t n = 0;

    if (sum == NULL)
        return false;
    for (uint32_t i = 0; i < trace->n_nodes; i++) {
        const wl_trace_node *node = &trace->node[i];
        int kind = node_kind(node);

        if (kind < 0)
            continue;
        n += sum[node->group].count[kind]++ == 0;
        sum[node->group].bytes[kind] += node->comm_size > 0 ? (uint64_t)node->comm_size : 0;
    }
    info->traffic = list = cs_arena_alloc(arena, (n + 1) * sizeof *list);
    for (uint32_t g = 0; list != NULL && g < trace->n_groups; g++)
        for (int k = 0; k < N_KINDS; k++)
            if (sum[g].count[k] > 0)
                list[info->n_traffic++] =
                    (wl_trace_traffic){kind_name(k), trace->group[g].name, sum[g].count[k],
                                       sum[g].bytes[k], trace->group[g].n};
    free(sum);
    return list != NULL;
}

/* ---- lines ---- */

/* Lines under construction; `failed` once memory ran out. */
typedef struct {
    cs_arena *arena;
    const char **line;
    size_t n, cap;
    bool failed;
} lines;

static void add_line(lines *l, const char *text)
{
    if (text == NULL || !wl__grow((void **)&l->line, l->n, &l->cap, sizeof *l->line))
        l->failed = true;
    else
        l->line[l->n++] = text;
}

/* Copies the list into the arena and frees it. */
static const char *const *finish_lines(lines *l, size_t *n)
{
    const char **copy = cs_arena_alloc(l->arena, (l->n + 1) * sizeof(char *));

    if (copy != NULL && l->n > 0)
        memcpy(copy, l->line, l->n * sizeof(char *));
    l->failed = l->failed || copy == NULL;
    *n = l->n;
    free(l->line);
    return copy;
}

static void add_counts(lines *l, const char *what, const uint64_t *count, size_t n,
                       const char *(*name)(int))
{
    char text[512];
    size_t used = (size_t)snprintf(text, sizeof text, "%-22s", what);
    size_t start = used;

    for (size_t k = 0; k < n; k++)
        if (count[k] > 0 && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, " %s=%" PRIu64, name((int)k),
                                     count[k]);
    if (used > start)
        add_line(l, cs_arena_strdup(l->arena, text));
}

static const char *type_name(int type)
{
    return wl_node_type_names[type];
}

static void describe_graph(lines *l, const wl_trace *trace, const wl_rank_facts *t)
{
    add_line(l, cs_arena_printf(l->arena, "%-22s %" PRIu64 " data, %" PRIu64 " control (%s)",
                                "dependencies", t->data_edges, t->ctrl_edges,
                                t->ctrl_edges == 0     ? "none"
                                : trace->ctrl_enforced ? "enforced"
                                                       : "ignored"));
    add_line(l, cs_arena_printf(l->arena, "%-22s %" PRIu64 " nodes", "depth", t->depth));
    add_line(l, cs_arena_printf(l->arena, "%-22s %.3f us in all, %.3f us on the longest path",
                                "compute", (double)t->comp_duration_ps / PS_PER_US,
                                (double)t->comp_longest_path_ps / PS_PER_US));
    if (t->num_ops > 0)
        add_line(l, cs_arena_printf(l->arena, "%-22s %" PRIu64, "operations", t->num_ops));
}

/* True when an earlier entry has the same kind and group size. */
static bool repeats(const wl_trace_info *info, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (info->traffic[k].ranks == info->traffic[i].ranks &&
            info->traffic[k].kind == info->traffic[i].kind)
            return true;
    return false;
}

/* Traffic of many groups, joined by kind and group size.  O(entries * distinct pairs). */
static void describe_sizes(lines *l, const wl_trace_info *info)
{
    for (size_t i = 0; i < info->n_traffic; i++) {
        const wl_trace_traffic *x = &info->traffic[i];
        uint64_t groups = 0, count = 0, bytes = 0;

        if (repeats(info, i))
            continue;
        for (size_t k = i; k < info->n_traffic; k++) {
            const wl_trace_traffic *y = &info->traffic[k];

            if (y->ranks != x->ranks || y->kind != x->kind)
                continue;
            groups++;
            count += y->count;
            bytes += y->bytes;
        }
        add_line(l, cs_arena_printf(l->arena,
                                    "%-22s %" PRIu64 " groups of %u ranks: %" PRIu64 " x, %" PRIu64
                                    " bytes",
                                    x->kind, groups, x->ranks, count, bytes));
    }
}

static void describe(lines *l, const wl_trace *trace, const wl_trace_info *info)
{
    const wl_rank_facts *t = &info->total;

    add_line(
        l, cs_arena_printf(l->arena, "%-22s %u of %u", "ranks", trace->n_ranks, trace->job_ranks));
    add_line(l, cs_arena_printf(l->arena, "%-22s %" PRIu64 " (%" PRIu64 " on the CPU)", "nodes",
                                t->nodes, t->cpu_nodes));
    add_counts(l, "by type", t->by_type, WL_N_NODE_TYPES, type_name);
    add_counts(l, "collectives", t->coll_count, WL_N_CHAKRA_COMMS + 1, kind_name);
    describe_graph(l, trace, t);
    if (trace->n_groups > GROUPS_SHOWN) {
        describe_sizes(l, info);
        return;
    }
    for (size_t i = 0; i < info->n_traffic; i++) {
        const wl_trace_traffic *x = &info->traffic[i];

        add_line(l, cs_arena_printf(l->arena,
                                    "%-22s group %s (%u ranks): %" PRIu64 " x, %" PRIu64 " bytes",
                                    x->kind, x->group[0] != 0 ? x->group : "all", x->ranks,
                                    x->count, x->bytes));
    }
}

/* ---- oddities ---- */

/* Counts of what is worth a line over all nodes. */
typedef struct {
    uint64_t cpu_absent, involved, chunked, untimed_comp, zero_size, cpu_comm;
} oddities;

static void look_at(const wl_trace_node *node, oddities *o)
{
    bool comm = node->type >= WL_NODE_SEND;

    o->cpu_absent += (node->flags & WL_NODE_CPU_ABSENT) != 0;
    o->involved += node->involved != 0;
    o->chunked += (node->flags & WL_NODE_CHUNKED) != 0;
    o->zero_size += comm && node->comm_size == 0;
    o->cpu_comm +=
        comm && (node->flags & WL_NODE_CPU) != 0 && (node->flags & WL_NODE_HOST_COLL) == 0;
    o->untimed_comp +=
        node->type == WL_NODE_COMP && (node->flags & WL_NODE_DURATION) == 0 && node->num_ops < 0;
}

static void add_oddity(lines *l, uint64_t n, const char *what)
{
    if (n > 0)
        add_line(l, cs_arena_printf(l->arena, "%" PRIu64 " %s", n, what));
}

static void dialects(lines *l, const wl_trace *trace)
{
    const wl_trace_rank *first = &trace->rank[0];
    bool mixed = false;

    for (uint32_t r = 1; r < trace->n_ranks; r++)
        mixed = mixed || trace->rank[r].schema != first->schema;
    add_line(l, cs_arena_printf(l->arena, "schema %s%s%s%s%s%s", wl_schema_names[first->schema],
                                mixed ? " (other ranks differ)" : "",
                                first->schema_text[0] != 0 ? ", says " : "", first->schema_text,
                                first->metadata ? "" : ", no metadata frame",
                                first->gzip ? ", gzip" : ""));
}

static void find_oddities(lines *l, const wl_trace *trace, const wl_rank_facts *total)
{
    oddities o = {0};

    for (uint32_t i = 0; i < trace->n_nodes; i++)
        look_at(&trace->node[i], &o);
    dialects(l, trace);
    if (total->data_edges == 0 && total->ctrl_edges > 0)
        add_line(l, "dependencies are in the control list only");
    if (total->data_edges + total->ctrl_edges == 0 && total->nodes > trace->n_ranks)
        add_line(l, "no dependencies at all");
    if (o.cpu_absent < trace->n_nodes)
        add_oddity(l, o.cpu_absent, "nodes do not say whether they run on the CPU");
    else if (trace->n_nodes > 0)
        add_line(l, "no node says whether it runs on the CPU");
    add_oddity(l, o.untimed_comp,
               "compute nodes have neither a duration nor a count of operations");
    add_oddity(l, o.zero_size, "communication nodes of 0 bytes");
    add_oddity(l, o.cpu_comm, "communication nodes say they run on the CPU: they cost as any");
    add_oddity(l, o.involved, "collectives list the dimensions they involve");
    add_oddity(l, o.chunked, "messages state their size as a share of the collective");
}

cs_status wl_trace_summarize(const wl_trace *trace, cs_arena *arena, wl_trace_info **out,
                             cs_error *err)
{
    wl_trace_info *info = cs_arena_alloc(arena, sizeof *info);
    lines report = {.arena = arena}, odd = {.arena = arena};

    if (info == NULL || !gather_traffic(trace, arena, info))
        return cs_fail(err, CS_ENOMEM, "out of memory for the summary of a trace");
    for (uint32_t r = 0; r < trace->n_ranks; r++) {
        add_up(&info->total, &trace->rank[r].facts);
        info->file_bytes += trace->rank[r].file_bytes;
    }
    describe(&report, trace, info);
    find_oddities(&odd, trace, &info->total);
    info->line = finish_lines(&report, &info->n_lines);
    info->oddity = finish_lines(&odd, &info->n_oddities);
    if (report.failed || odd.failed)
        return cs_fail(err, CS_ENOMEM, "out of memory for the summary of a trace");
    *out = info;
    return CS_OK;
}
