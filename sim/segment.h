/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Many equal blocks in a row without running each (private to sim/). */
#ifndef SIM_SEGMENT_H
#define SIM_SEGMENT_H

#include "sim/lower.h"

/* A state and the time of its last compute operation. */
typedef struct {
    sim_time clock;
    sim_state state;
} sim_moment;

/* What a pass, or an action, does from a state: how long until its last compute operation ended,
 * the state then, and when its output left, relative to its start. */
typedef struct {
    sim_time took;
    sim_state state;
    sim_account account;
    sim_exit leave;
    sim_pass_id pending; /* reductions left behind (actions) */
} sim_step;

/* Steps already taken in this design, by (number of the pass or action, state). */
typedef struct sim_memo sim_memo;
sim_memo *sim__memo_create(void); /* NULL when out of memory */
void sim__memo_destroy(sim_memo *memo);
/* Forgets all; states have n_dims servers and n_ahead blocks gathered ahead. */
void sim__memo_reset(sim_memo *memo, size_t n_dims, size_t n_ahead);
/* NULL when not there. */
const sim_step *sim__memo_find(const sim_memo *memo, uint64_t id, const sim_state *state);
/* Room for a step not there yet, to be filled by the caller.  When the memo is full, room that is
 * used again after a few more. */
sim_step *sim__memo_add(sim_memo *memo, uint64_t id, const sim_state *state);

bool sim__state_equal(const sim_state *a, const sim_state *b);
void sim__account_add(sim_account *total, const sim_account *part, sim_time times);

/* Where a run of blocks keeps what it needs. */
typedef struct {
    sim_memo *memo;  /* NULL: unrolled */
    sim_time *times; /* room for the slots of any pass */
    void *room;      /* room for an event-driven run */
    sim_timeline_fn timeline;
    void *timeline_context;
    const char *const *op_names;
    int32_t stage;
} sim_runner;

/* Where a stage stands, what it did so far, and how its last pass left (absolute). */
typedef struct {
    sim_moment now;
    sim_account account;
    sim_exit leave;
} sim_course;

/* Runs `n` >= 1 equal passes one after another; `id` numbers the pass in the memo. */
CS_MUST_USE cs_status sim__segment_run(const sim_runner *runner, const sim_lowered *pass,
                                       uint64_t id, int64_t n, sim_course *course, cs_error *err);

#endif
