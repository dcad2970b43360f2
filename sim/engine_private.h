/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Parts of the engine: engine.c (a run from begin to end), action.c (one action of a stage),
 * steady.c (rounds that repeat), mark.c (all times at the end of a round). */
#ifndef SIM_ENGINE_PRIVATE_H
#define SIM_ENGINE_PRIVATE_H

#include "sim/segment.h"

/* When a boundary value reaches a stage and when its sender had it ready. */
typedef struct {
    sim_time at, left;
} sim_parcel;

/* Where a stage takes values from: the stage before, the stage behind, and for the first stage the
 * end of the lap before, whose values wait for all of that lap. */
enum { SIM_FROM_BEFORE, SIM_FROM_BEHIND, SIM_FROM_LAP, SIM_N_QUEUES };

/* Values on their way to a stage from one side, in the order it takes them. */
typedef struct {
    sim_parcel *parcel;
    size_t taken, sent;
} sim_queue;

/* All times of the stages at the end of a round, those on the common clock first, and all their
 * sums modulo 2^64 (mark.c). */
typedef struct {
    sim_time *time;
    uint64_t *sum;
    size_t n_time, n_absolute, n_sum;
    size_t room_time, room_sum;
    uint64_t shape; /* of what is not a time: queue lengths, pending reductions */
} sim_mark;

typedef struct {
    sim_course course;
    sim_pass_id pending; /* pass whose gradients wait for their reduction */
    size_t next;         /* action */
    int64_t held;        /* activations of how many actions it keeps (timelines) */
    sim_time bubble, boundary;
    sim_queue queue[SIM_N_QUEUES];
} sim_stage_run;

struct sim_engine {
    sim_lowering *lowering;
    sim_memo *memo;
    sim_time *times;
    size_t n_times;
    uint16_t *stage_class; /* by stage and chunk: the first that is alike */
    size_t n_classes;
    sim_step fresh; /* the action that was just run */
    unsigned char *room;
    size_t n_room;
    sim_stage_run *stage, *saved;
    size_t n_stages, n_saved;
    sim_parcel *parcel;
    size_t n_parcels;
    sim_mark mark[3], before, tried; /* the last three rounds; where a trial began and ended */
};

/* One run. */
typedef struct {
    sim_engine *engine;
    const sim_job *job;
    sim_runner runner;
    bool split, gathers; /* backward in two actions; any block has gathered weights */
    cs_error *err;
} sim_iteration;

/* Grows an array to at least `want` elements of `size` bytes. */
CS_MUST_USE cs_status sim__reserve(void *pointer, size_t *have, size_t want, size_t size,
                                   cs_error *err);

/* The pass `ahead` blocks after the start of an action if it needs gathered weights, else none. */
sim_pass_id sim__gather_at(const sim_iteration *it, size_t stage, size_t action, int64_t ahead);

/* Runs `n` passes in one context beside the reductions left before it. */
CS_MUST_USE cs_status sim__run_passes(sim_iteration *it, sim_stage_run *run, sim_context context,
                                      int64_t n);

/* Finds which stages are alike, so that their actions are. O(stages^2 * chunks). */
CS_MUST_USE cs_status sim__find_classes(sim_iteration *it);

/* Runs the actions of a stage before `until` that do not wait for a value that is not there yet. */
CS_MUST_USE cs_status sim__run_stage(sim_iteration *it, size_t stage, size_t until, bool *progress);

/* Takes a mark, and sets the stages to one of the same shape. */
CS_MUST_USE cs_status sim__mark_take(const sim_iteration *it, sim_mark *mark);
void sim__mark_restore(const sim_iteration *it, const sim_mark *mark);
/* Room for as many times and sums as `like` has, and its shape. */
CS_MUST_USE cs_status sim__mark_reserve(const sim_mark *like, sim_mark *mark, cs_error *err);
void sim__mark_free(sim_mark *mark);

/* Runs all actions of all stages; rounds that repeat are taken at once.  CS_EDEADLOCK when stages
 * wait for each other. */
CS_MUST_USE cs_status sim__run_actions(sim_iteration *it);

extern const sim_pass_id sim__no_pass;

#endif
