/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Folding in the cluster engine (model astra, back end unaware): of ranks that are provably alike
 * one is simulated.  The classes are found and proved before the run (cluster_classes.c); while it
 * runs, the one thing that could tell its ranks from the others is watched: what happens to a rank
 * at one nanosecond and comes from elsewhere, in an order that other ranks decide.  Then, and
 * whenever members of a class would end apart, the run starts again with all ranks. */
#ifndef SIM_CLUSTER_FOLD_H
#define SIM_CLUSTER_FOLD_H

#include "sim/cluster_private.h"

/* ---- what a rank meets (cluster_meet.c) ---- */

/* A group as one rank uses it.  A node is counted within its rank. */
typedef struct {
    uint32_t group;
    uint32_t label;                     /* its first node that uses the group */
    uint32_t before, after;             /* ranks; SIM__NONE when the group is the world */
    uint32_t before_label, after_label; /* theirs */
    uint64_t before_hops, after_hops;   /* how far */
} sim__use;

/* One side of a message. */
typedef struct {
    uint32_t node;                      /* within its rank */
    uint32_t peer;                      /* rank */
    uint32_t first_send, first_receive; /* of the channel, each within its rank */
    uint64_t hops;
} sim__side;

typedef struct {
    const sim__cluster *c;
    sim__fold *fold;
    uint32_t n;
    sim__use *uses;
    size_t n_uses, uses_capacity;
    sim__side *sides;
    size_t n_sides, sides_capacity;
    uint32_t *use_first, *side_first; /* by rank */
    uint32_t *last_use;               /* by group: of the rank at hand */
    uint32_t *label;                  /* by node: of its group */
    uint64_t (*key)[2];               /* hash and rank */
    uint32_t *next_class;
    bool failed; /* out of memory, or not for folding */
} sim__search;

/* Finds them; false: out of memory, or nothing to fold. */
bool sim__fold_meetings(sim__search *s);

/* Classes of ranks and who stands for each, into fold->class_, rep and size (all of n_ranks);
 * false when folding is not worth it, not provable, or out of memory. */
bool sim__fold_classes(const sim__cluster *c, sim__fold *fold);

#endif
