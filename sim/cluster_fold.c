/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A run in which one rank stands for those that are provably alike. */
#include "sim/cluster_fold.h"

#include <stdlib.h>
#include <string.h>

/* The rules by which classes are found are those of the back end unaware alone; a node's turn in a
 * timeline is told rank by rank. */
static bool may_fold(const sim__cluster *c)
{
    const sim_cluster_options *o = c->options;

    if (o->every_rank || o->on_node != NULL || c->contention.net != NULL || c->member != NULL ||
        o->backend != SIM_ASTRA_UNAWARE || o->streams_by_dimension || c->trace->n_ranks < 2)
        return false;
    for (size_t t = 0; t < SIM_ASTRA_N_TYPES; t++)
        if (o->custom[t] != NULL)
            return false;
    return true;
}

static void fold_free(sim__fold *fold)
{
    if (fold == NULL)
        return;
    free(fold->class_);
    free(fold->rep);
    free(fold->size);
    free(fold->push);
    free(fold->last);
    free(fold->last_at);
    free(fold->last_turn);
    free(fold);
}

void sim__fold_create(sim__cluster *c)
{
    const size_t n = c->trace->n_ranks;
    sim__fold *fold = may_fold(c) ? calloc(1, sizeof *fold) : NULL;

    if (fold == NULL)
        return;
    fold->class_ = malloc(n * sizeof *fold->class_);
    fold->rep = malloc(n * sizeof *fold->rep);
    fold->size = calloc(n, sizeof *fold->size);
    if (fold->class_ != NULL && fold->rep != NULL && fold->size != NULL &&
        sim__fold_classes(c, fold)) {
        fold->push = malloc(((size_t)c->trace->n_nodes + 1) * sizeof *fold->push);
        fold->last = calloc(n, sizeof *fold->last);
        fold->last_at = malloc(n * sizeof *fold->last_at);
        fold->last_turn = calloc(n, sizeof *fold->last_turn);
    }
    if (fold->push == NULL || fold->last == NULL || fold->last_at == NULL ||
        fold->last_turn == NULL) {
        fold_free(fold);
        return;
    }
    memset(fold->last_at, 0xff, n * sizeof *fold->last_at);
    c->fold = fold;
}

void sim__fold_destroy(sim__cluster *c)
{
    fold_free(c->fold);
    c->fold = NULL;
}

void sim__fold_break(sim__cluster *c)
{
    c->fold->broken = true;
    c->engine->stop = true;
}

/* ---- collectives ---- */

/* A group stands for as many as there are ranks of a class outside of it; all its classes agree. */
static void weigh(sim__cluster *c, sim__coll *coll, uint32_t size, uint32_t members)
{
    if (size % members != 0 || (coll->weight != 0 && coll->weight != size / members))
        sim__fold_break(c);
    coll->weight = size / members;
}

void sim__fold_join(sim__cluster *c, const sim__stream *s, sim__coll *coll, uint32_t member,
                    uint32_t node)
{
    const uint32_t *class_ = c->fold == NULL ? NULL : c->fold->class_;
    uint32_t joined = 0;

    if (class_ == NULL) {
        coll->start[member] = c->engine->now;
        coll->node[member] = node;
        coll->n_joined++;
        coll->weight = 1;
        return;
    }
    for (uint32_t j = 0; j < s->n; j++)
        if (class_[s->rank[j]] == class_[s->rank[member]]) {
            coll->start[j] = c->engine->now;
            coll->node[j] = node;
            joined++;
        }
    coll->n_joined += joined;
    weigh(c, coll, c->fold->size[class_[s->rank[member]]], joined);
}

uint32_t sim__fold_members(const sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                           uint32_t node)
{
    uint32_t n = 0;

    if (c->fold == NULL)
        return 1;
    for (uint32_t j = 0; j < s->n; j++)
        n += coll->node[j] == node;
    return n;
}

bool sim__fold_ends(sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                    const int64_t *end)
{
    for (uint32_t j = 0; j < s->n && c->fold != NULL; j++)
        if (end[j] != end[c->heap_child[coll->node[j]]]) {
            sim__fold_break(c);
            return false;
        }
    return true;
}

/* ---- what comes from elsewhere at one nanosecond ---- */

void sim__fold_push(sim__cluster *c, uint32_t node, sim__cause cause)
{
    if (c->fold != NULL)
        c->fold->push[node] = (sim__push){c->engine->now, c->fold->turn++, cause};
}

/* Something happens to the rank.  Its order with what happened to it last is that of two causes
 * which are both the rank's own, or of two different times, or of cause and effect; else other
 * ranks have a say in it, and those that are not simulated might say something else. */
static void touch(sim__cluster *c, uint32_t rank, const sim__push *push)
{
    sim__fold *fold = c->fold;
    const sim__push *last = &fold->last[rank];

    if (fold->last_at[rank] == c->engine->now && push->turn < fold->last_turn[rank] &&
        (push->cause == SIM__FROM_PEER || last->cause == SIM__FROM_PEER ||
         (push->at == last->at && (push->cause != SIM__OWN || last->cause != SIM__OWN))))
        sim__fold_break(c);
    fold->last[rank] = *push;
    fold->last_at[rank] = c->engine->now;
    fold->last_turn[rank] = fold->turn++;
}

void sim__fold_ended(sim__cluster *c, uint32_t node)
{
    if (c->fold != NULL)
        touch(c, c->rank_of[node], &c->fold->push[node]);
}

void sim__fold_reached(sim__cluster *c, uint32_t send)
{
    if (c->fold != NULL)
        touch(c, (uint32_t)sim__cluster_peer(c, send), &c->fold->push[send]);
}
