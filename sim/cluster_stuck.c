/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Why ranks wait for ever: the node of each and what it waits for. */
#include "sim/cluster_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_LINES 8
#define MAX_NAMED 6

/* Ranks that have not issued the collective. */
static void describe_members(const sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                             char *text, size_t size)
{
    size_t used = 0;
    uint32_t named = 0, missing = 0;

    (void)c;
    text[0] = '\0';
    for (uint32_t j = 0; j < s->n; j++) {
        if (coll->node[j] != SIM__NONE)
            continue;
        missing++;
        if (named < MAX_NAMED && used < size) {
            const int n = snprintf(text + used, size - used, "%s%" PRId64, named == 0 ? "" : ", ",
                                   s->rank[j]);
            used += n > 0 ? (size_t)n : 0;
            named++;
        }
    }
    if (missing > named && used < size)
        (void)snprintf(text + used, size - used, " and %u more", missing - named);
}

static void describe(const sim__cluster *c, uint32_t index, char *text, size_t size)
{
    const wl_trace_node *node = &c->trace->node[index];
    const sim__stream *stream = NULL;
    const sim__coll *coll =
        node->type == WL_NODE_COLL ? sim__cluster_find_coll(c, index, &stream) : NULL;
    char name[160], members[160];

    (void)sim__cluster_node_text(c, index, name);
    if (coll != NULL) {
        describe_members(c, stream, coll, members, sizeof members);
        (void)snprintf(text, size,
                       "%s, %s of %" PRId64 " bytes in group '%.40s', waits for ranks %s", name,
                       wl_chakra_comm_names[node->comm], coll->bytes,
                       c->trace->group[stream->group].name, members);
    } else if (node->type == WL_NODE_RECV)
        (void)snprintf(text, size,
                       "%s waits for a message of %" PRId64 " bytes with tag %" PRId64
                       " from rank %" PRId64,
                       name, node->comm_size, node->tag, sim__cluster_peer(c, index));
    else
        (void)snprintf(text, size, "%s is in flight and never ends", name);
}

/* A node of the rank that runs; else one that waits for another node of the same rank. */
static uint32_t stuck_node(const sim__cluster *c, uint32_t r)
{
    const wl_trace_rank *rank = &c->trace->rank[r];
    uint32_t waiting = SIM__NONE, best = SIM__NONE;

    for (uint32_t i = rank->first; i < rank->first + rank->n; i++) {
        const bool runs = c->state[i] == SIM__RUNNING;
        if (runs && (best == SIM__NONE || (c->trace->node[i].type == WL_NODE_COLL &&
                                           c->trace->node[best].type != WL_NODE_COLL)))
            best = i;
        if (c->state[i] == SIM__WAITING && waiting == SIM__NONE)
            waiting = i;
    }
    return best != SIM__NONE ? best : waiting;
}

static void describe_waiting(const sim__cluster *c, uint32_t index, char *text, size_t size)
{
    const wl_trace *trace = c->trace;
    char name[160], other[160];

    (void)sim__cluster_node_text(c, index, name);
    for (uint32_t e = trace->dep_first[index]; e < trace->dep_first[index + 1]; e++)
        if (c->state[trace->dep[e]] != SIM__DONE) {
            (void)snprintf(text, size, "%s waits for %s", name,
                           sim__cluster_node_text(c, trace->dep[e], other));
            return;
        }
    (void)snprintf(text, size, "%s is never issued", name);
}

cs_status sim__cluster_deadlock(const sim__cluster *c, cs_error *err)
{
    uint32_t n_stuck = 0, lines = 0;
    char text[512];

    for (uint32_t r = 0; r < c->trace->n_ranks; r++)
        n_stuck += c->rank[r].n_done != c->trace->rank[r].n;
    (void)cs_fail(err, CS_EDEADLOCK, "deadlock after %" PRId64 " ns: %u of %u ranks wait for ever",
                  c->engine->now / c->ticks_per_ns, n_stuck, c->trace->n_ranks);
    for (uint32_t r = 0; r < c->trace->n_ranks && lines < MAX_LINES; r++) {
        uint32_t node;
        if (c->rank[r].n_done == c->trace->rank[r].n)
            continue;
        node = stuck_node(c, r);
        if (node == SIM__NONE)
            continue;
        if (c->state[node] == SIM__RUNNING)
            describe(c, node, text, sizeof text);
        else
            describe_waiting(c, node, text, sizeof text);
        cs_error_append(err, "\n  %s", text);
        lines++;
    }
    if (n_stuck > lines)
        cs_error_append(err, "\n  and %u ranks more", n_stuck - lines);
    return CS_EDEADLOCK;
}
