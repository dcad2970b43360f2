/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Checks across ranks that need no clock: groups and their members, collectives that every member
 * must call alike, messages that must have both ends.  Sums first, in one pass; a list is only
 * made where they disagree. */
#include "workloads/trace_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPORTS = 8 }; /* of one kind */

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "out of memory while checking a trace");
}

static bool counts_as_collective(const wl_trace_node *node)
{
    return node->type == WL_NODE_COLL && (node->flags & WL_NODE_HOST_COLL) == 0;
}

static const char *group_name(const wl_trace *trace, int32_t group)
{
    return group == WL_GROUP_WORLD ? "of all ranks" : trace->group[group].name;
}

/* ---- groups ---- */

static void check_members_exist(wl_trace *trace, uint32_t g)
{
    const wl_trace_group *group = &trace->group[g];

    for (uint32_t k = 0; k < group->n; k++) {
        if (group->rank[k] < trace->job_ranks)
            continue;
        wl__issue(&trace->owner->issues, WL_ERROR, WL_ISSUE_RANKS, (wl__place){NULL, -1},
                  "group %s names rank %u, but the job has %u ranks", group->name, group->rank[k],
                  trace->job_ranks);
        return;
    }
}

/* Groups that nodes use: declared, and with the user's rank in them. */
static void check_use(wl_trace *trace, const wl_trace_rank *rank, bool *seen, bool *undeclared)
{
    for (uint32_t i = rank->first; i < rank->first + rank->n; i++) {
        const wl_trace_node *node = &trace->node[i];
        const wl_trace_group *group = &trace->group[node->group];

        if (node->type != WL_NODE_COLL || seen[node->group])
            continue;
        seen[node->group] = true;
        if (!group->declared && !undeclared[node->group]) {
            undeclared[node->group] = true;
            wl__issue(&trace->owner->issues, trace->sample ? WL_WARNING : WL_ERROR, WL_ISSUE_RANKS,
                      wl__place_of(rank),
                      "node %" PRIu64 " is in group %s, which no group file or METADATA declares",
                      node->id, group->name);
        } else if (group->declared && wl_trace_group_position(group, rank->rank) < 0) {
            wl__issue(&trace->owner->issues, WL_ERROR, WL_ISSUE_RANKS, wl__place_of(rank),
                      "node %" PRIu64 " is a collective of group %s, but rank %u is not in it",
                      node->id, group->name, rank->rank);
        }
    }
}

static bool check_groups(wl_trace *trace)
{
    bool *seen = calloc(trace->n_groups, sizeof *seen);
    bool *undeclared = calloc(trace->n_groups, sizeof *undeclared);
    bool ok = seen != NULL && undeclared != NULL;

    for (uint32_t g = 1; ok && !trace->sample && g < trace->n_groups; g++)
        check_members_exist(trace, g);
    for (uint32_t r = 0; ok && r < trace->n_ranks; r++) {
        memset(seen, 0, trace->n_groups * sizeof *seen);
        check_use(trace, &trace->rank[r], seen, undeclared);
    }
    free(seen);
    free(undeclared);
    return ok;
}

/* ---- collectives ---- */

/* What one rank calls in one group: count, and a sum of hashes that ignores order. */
typedef struct {
    uint64_t count, sum;
    uint32_t rank; /* index, of the first caller */
    uint32_t callers;
    bool differs;
} calls;

static uint64_t call_hash(const wl_trace_node *node)
{
    return cs_mix64(cs_mix64((uint64_t)node->comm_size) ^ (node->comm + 1u));
}

/* Adds up the calls of a rank and compares them with the first caller's. */
static void compare_rank(const wl_trace *trace, uint32_t r, calls *mine, calls *all)
{
    const wl_trace_rank *rank = &trace->rank[r];

    for (uint32_t i = rank->first; i < rank->first + rank->n; i++) {
        if (!counts_as_collective(&trace->node[i]))
            continue;
        mine[trace->node[i].group].count++;
        mine[trace->node[i].group].sum += call_hash(&trace->node[i]);
    }
    for (uint32_t i = rank->first; i < rank->first + rank->n; i++) {
        int32_t g = trace->node[i].group;

        if (!counts_as_collective(&trace->node[i]) || mine[g].count == 0)
            continue;
        if (all[g].callers++ == 0) {
            all[g].count = mine[g].count;
            all[g].sum = mine[g].sum;
            all[g].rank = r;
        }
        all[g].differs |= mine[g].count != all[g].count || mine[g].sum != all[g].sum;
        mine[g] = (calls){0};
    }
}

static int by_node_id(const void *a, const void *b)
{
    const wl_trace_node *x = *(const wl_trace_node *const *)a,
                        *y = *(const wl_trace_node *const *)b;

    return (x->id > y->id) - (x->id < y->id);
}

/* Collectives of a rank in a group by ascending id; caller frees. */
static const wl_trace_node **list_calls(const wl_trace *trace, uint32_t r, uint32_t g, size_t *n)
{
    const wl_trace_rank *rank = &trace->rank[r];
    const wl_trace_node **list = malloc((rank->n + 1) * sizeof(wl_trace_node *));

    *n = 0;
    for (uint32_t i = rank->first; list != NULL && i < rank->first + rank->n; i++)
        if (trace->node[i].group == (int32_t)g && counts_as_collective(&trace->node[i]))
            list[(*n)++] = &trace->node[i];
    if (list != NULL)
        qsort(list, *n, sizeof *list, by_node_id);
    return list;
}

static const char *comm_name(const wl_trace_node *node)
{
    return node->comm < WL_N_CHAKRA_COMMS ? wl_chakra_comm_names[node->comm] : "collective";
}

/* Says how rank b's calls differ from rank a's; false when they do not. */
static bool report_calls(wl_trace *trace, uint32_t g, uint32_t a, uint32_t b, bool *failed)
{
    size_t n_a = 0, n_b = 0, k = 0;
    const wl_trace_node **x = list_calls(trace, a, g, &n_a), **y = list_calls(trace, b, g, &n_b);
    const wl_trace_rank *ra = &trace->rank[a], *rb = &trace->rank[b];
    bool differs = false;

    *failed = x == NULL || y == NULL;
    if (!*failed && n_a != n_b) {
        differs = true;
        wl__issue(&trace->owner->issues, WL_ERROR, WL_ISSUE_RANKS, wl__place_of(rb),
                  "group %s: rank %u calls %zu collectives, rank %u calls %zu",
                  group_name(trace, (int32_t)g), ra->rank, n_a, rb->rank, n_b);
    } else if (!*failed) {
        while (k < n_a && x[k]->comm == y[k]->comm && x[k]->comm_size == y[k]->comm_size)
            k++;
        differs = k < n_a;
        if (differs)
            wl__issue(&trace->owner->issues, WL_ERROR, WL_ISSUE_RANKS, wl__place_of(rb),
                      "group %s, collective %zu: rank %u node %" PRIu64 " is %s of %" PRId64
                      " bytes, rank %u node %" PRIu64 " is %s of %" PRId64 " bytes",
                      group_name(trace, (int32_t)g), k + 1, ra->rank, x[k]->id, comm_name(x[k]),
                      x[k]->comm_size, rb->rank, y[k]->id, comm_name(y[k]), y[k]->comm_size);
    }
    free(x);
    free(y);
    return differs;
}

/* Index of a present rank, UINT32_MAX when its file is missing. */
static uint32_t rank_index(const wl_trace *trace, uint32_t rank)
{
    uint32_t low = 0, high = trace->n_ranks;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (trace->rank[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < trace->n_ranks && trace->rank[low].rank == rank ? low : UINT32_MAX;
}

static bool report_group(wl_trace *trace, uint32_t g, const calls *all)
{
    const wl_trace_group *group = &trace->group[g];
    bool failed = false;
    int reported = 0;

    for (uint32_t k = 0; k < group->n && reported < 2 && !failed; k++) {
        uint32_t r = rank_index(trace, group->rank[k]);

        if (r != UINT32_MAX && r != all[g].rank)
            reported += report_calls(trace, g, all[g].rank, r, &failed);
    }
    return !failed;
}

static bool check_collectives(wl_trace *trace)
{
    calls *all = calloc(trace->n_groups, sizeof *all);
    calls *mine = calloc(trace->n_groups, sizeof *mine);
    bool ok = all != NULL && mine != NULL;
    int groups = 0;

    for (uint32_t r = 0; ok && r < trace->n_ranks; r++)
        compare_rank(trace, r, mine, all);
    for (uint32_t g = 0; ok && g < trace->n_groups && groups < REPORTS; g++) {
        bool absent = all[g].callers > 0 && all[g].callers < trace->group[g].n;

        if (!trace->group[g].declared || (!all[g].differs && !absent))
            continue;
        ok = report_group(trace, g, all);
        groups++;
    }
    free(all);
    free(mine);
    return ok;
}

/* ---- messages ---- */

typedef struct {
    int32_t src, dst;
    int64_t tag, size;
    uint64_t id;
    uint8_t type;
} message;

static int by_key(const void *a, const void *b)
{
    const message *x = a, *y = b;

    if (x->src != y->src)
        return (x->src > y->src) - (x->src < y->src);
    if (x->dst != y->dst)
        return (x->dst > y->dst) - (x->dst < y->dst);
    if (x->tag != y->tag)
        return (x->tag > y->tag) - (x->tag < y->tag);
    if (x->type != y->type)
        return (x->type > y->type) - (x->type < y->type);
    if (x->size != y->size)
        return (x->size > y->size) - (x->size < y->size);
    return (x->id > y->id) - (x->id < y->id);
}

static bool same_key(const message *x, const message *y)
{
    return x->src == y->src && x->dst == y->dst && x->tag == y->tag;
}

/* Wrong ends of one node; false when it cannot be matched. */
static bool check_ends(wl_trace *trace, const wl_trace_rank *rank, const wl_trace_node *node)
{
    bool send = node->type == WL_NODE_SEND;
    int64_t own = send ? node->src : node->dst, peer = send ? node->dst : node->src;

    if (own != rank->rank) {
        wl__issue(&trace->owner->issues, WL_ERROR, WL_ISSUE_RANKS, wl__place_of(rank),
                  "node %" PRIu64 ": %s of rank %" PRId64 " stands in the file of rank %u",
                  node->id, send ? "a send" : "a receive", own, rank->rank);
        return false;
    }
    if (peer < 0)
        return false; /* reported as a missing value */
    if (peer >= trace->job_ranks) {
        wl__issue(&trace->owner->issues, WL_ERROR, WL_ISSUE_RANKS, wl__place_of(rank),
                  "node %" PRIu64 ": %s rank %" PRId64 ", but the job has %u ranks", node->id,
                  send ? "sends to" : "receives from", peer, trace->job_ranks);
        return false;
    }
    return true;
}

static message *list_messages(wl_trace *trace, size_t *n)
{
    size_t count = 0;
    message *list;

    for (uint32_t i = 0; i < trace->n_nodes; i++)
        count += trace->node[i].type == WL_NODE_SEND || trace->node[i].type == WL_NODE_RECV;
    list = malloc((count + 1) * sizeof *list);
    *n = 0;
    for (uint32_t r = 0; list != NULL && r < trace->n_ranks; r++) {
        const wl_trace_rank *rank = &trace->rank[r];

        for (uint32_t i = rank->first; i < rank->first + rank->n; i++) {
            const wl_trace_node *node = &trace->node[i];

            if ((node->type == WL_NODE_SEND || node->type == WL_NODE_RECV) &&
                check_ends(trace, rank, node))
                list[(*n)++] = (message){node->src,       node->dst, node->tag,
                                         node->comm_size, node->id,  node->type};
        }
    }
    return list;
}

static void report_unmatched(wl_trace *trace, const message *m, size_t more)
{
    bool send = m->type == WL_NODE_SEND;
    int32_t at = send ? m->src : m->dst;
    char others[48] = "";

    if (more > 1)
        snprintf(others, sizeof others, " (and %zu more like it)", more - 1);
    if (send)
        wl__issue(&trace->owner->issues, WL_ERROR, WL_ISSUE_RANKS, (wl__place){NULL, at},
                  "rank %d node %" PRIu64 " sends %" PRId64 " bytes to rank %d with tag %" PRId64
                  ", which rank %d never receives%s",
                  m->src, m->id, m->size, m->dst, m->tag, m->dst, others);
    else
        wl__issue(&trace->owner->issues, WL_ERROR, WL_ISSUE_RANKS, (wl__place){NULL, at},
                  "rank %d node %" PRIu64 " waits for %" PRId64
                  " bytes from rank %d with tag %" PRId64 ", which rank %d never sends%s",
                  m->dst, m->id, m->size, m->src, m->tag, m->src, others);
}

/* The messages of one (source, destination, tag): sends first.  Returns reports made. */
static int check_key(wl_trace *trace, const message *m, size_t n)
{
    size_t sends = 0, receives, pairs;

    while (sends < n && m[sends].type == WL_NODE_SEND)
        sends++;
    receives = n - sends;
    if (sends != receives) {
        report_unmatched(trace, sends > receives ? &m[receives] : &m[n - 1],
                         sends > receives ? sends - receives : receives - sends);
        return 1;
    }
    pairs = sends;
    for (size_t k = 0; k < pairs; k++) {
        const message *s = &m[k], *r = &m[sends + k];

        if (s->size == r->size || s->size < 0 || r->size < 0)
            continue;
        wl__issue(&trace->owner->issues, WL_ERROR, WL_ISSUE_RANKS, (wl__place){NULL, s->src},
                  "rank %d node %" PRIu64 " sends %" PRId64 " bytes with tag %" PRId64
                  ", rank %d node %" PRIu64 " expects %" PRId64 " bytes",
                  s->src, s->id, s->size, s->tag, r->dst, r->id, r->size);
        return 1;
    }
    return 0;
}

static bool check_messages(wl_trace *trace)
{
    size_t n = 0;
    message *list = list_messages(trace, &n);
    int reported = 0;

    if (list == NULL)
        return false;
    qsort(list, n, sizeof *list, by_key);
    for (size_t i = 0, j; i < n && reported < REPORTS; i = j) {
        for (j = i + 1; j < n && same_key(&list[i], &list[j]); j++)
            ;
        reported += check_key(trace, &list[i], j - i);
    }
    free(list);
    return true;
}

cs_status wl__check_ranks(wl_trace *trace, cs_error *err)
{
    if (!check_groups(trace))
        return no_memory(err);
    if (trace->sample)
        return CS_OK;
    /* With ranks missing everything else follows from that. */
    if (trace->n_ranks < trace->job_ranks)
        return CS_OK;
    if (!check_collectives(trace) || !check_messages(trace))
        return no_memory(err);
    return CS_OK;
}
