/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SIM_LOWER_PRIVATE_H
#define SIM_LOWER_PRIVATE_H

#include "sim/lower.h"
#include "sim/pool.h"
#include "sim/timed.h"

enum { SIM_LIST_OUT, SIM_LIST_GATHER, SIM_LIST_REDUCE, SIM_N_LISTS };
enum { SIM_MOST_FLOWS = 256 };
enum { SIM_MOST_CONTEXTS = 512, SIM_CONTEXT_TABLE = 2 * SIM_MOST_CONTEXTS };

typedef struct {
    uint64_t key;
    sim_lowered pass;
} sim_lowered_entry;

struct sim_lowering {
    const sim_job *job;
    sim_pool pool;
    sim_timing timing[2]; /* the network's, and that of a slow NPU */
    sim_job slow_job;
    sim_lowered_entry entries[SIM_MOST_CONTEXTS];
    size_t n_entries;
    struct {
        uint32_t generation, entry;
    } table[SIM_CONTEXT_TABLE];
    uint32_t generation;
    /* Room for one pass while it is written; the result is copied to the pool. */
    sim_op *room[SIM_N_LISTS];
    uint8_t *cause_room;
    int16_t *item_room;
    size_t room_ops, room_slots;
    sim_flow flow[SIM_MOST_FLOWS];
};

enum { SIM_MOST_ENDS = 32 };

/* Operations being written, and the slots that stand for the end of the whole list. */
typedef struct {
    sim_op *op;
    size_t n;             /* operations written, each for `count` chunks */
    size_t total, merged; /* chunks in all, and merged into SIM_LIST_OUT so far */
    size_t at, offset;    /* next to be merged: operation, chunk of it */
    int16_t end[SIM_MOST_ENDS];
    size_t n_ends;
} sim_op_list;

/* A product begun beside a gather: what is left of it. */
typedef struct {
    sim_op op;
    int16_t item, gather; /* gather: slot */
} sim_begun;
enum { SIM_MOST_BEGUN = 8 };

typedef struct {
    sim_lowering *l;
    sim_context context;
    sim_timing *timing;
    const sim_device *device;
    double tp_overlap;
    int16_t serial; /* slot of the operation before */
    sim_begun begun[SIM_MOST_BEGUN];
    size_t n_begun;
    int gather_item;                          /* that they run beside */
    int16_t early_item, early_of, early_slot; /* a reduction that may begin within an item */
    uint8_t *cause;                           /* by slot */
    size_t n_slots;
    sim_op_list list[SIM_N_LISTS];
    size_t urgent, merged_urgent; /* network operations that something waits for */
    int16_t *item_slot;
    int16_t last_compute; /* slot; -1 none */
    int16_t weights_slot;
    double total_s;
    sim_time compute;
    int64_t sent_bytes;
    size_t n_flows;             /* in l->flow */
    unsigned dims[SIM_N_LISTS]; /* bit sets: dimensions each list uses */
    double load[SIM_MAX_DIMS];  /* themis: seconds given to each dimension so far */
} sim_lower_work;

/* A value slot more; `cause` is the axis to blame for waits on it (SIM_WAIT_CAUSES: compute). */
int16_t sim__new_slot(sim_lower_work *w, int cause);
/* Appends an operation and books its time. */
void sim__push(sim_lower_work *w, sim_op_list *list, const sim_op *op);
/* Makes `slot` the only input. */
void sim__set_dep(sim_op *op, int16_t slot);
/* Whether every operation has a slot of its own (timelines, event-driven runs). */
bool sim__distinct_slots(const sim_lowering *l);
/* Emits what is left of the background, gathers first. */
void sim__merge_rest(sim_lower_work *w);
/* A collective to be written: its phases, pieces, and the axis to blame. */
typedef struct {
    const sim_timed *timed;
    size_t chunks;
    int cause;
} sim_piece;

/* A collective in list `which`, after the inputs in `op` (lower_chunks.c); *end is the slot of its
 * end.  As one flow where its dimensions serve nothing of the other lists, else chunk by chunk,
 * phase-major; in SIM_LIST_OUT with the background between its chunks. */
CS_MUST_USE cs_status sim__put_collective(sim_lower_work *w, int which, const sim_piece *piece,
                                          const sim_op *op, int16_t *end, cs_error *err);

/* The wl_pass behind an id; NULL for SIM_PASS_NONE. */
const wl_pass *sim__pass_of(const sim_job *job, sim_pass_id id);
/* Whether a kind of pass runs an item in the foreground. */
bool sim__pass_takes(sim_pass_kind kind, const wl_item *item);
/* The phases of a collective in this context. */
CS_MUST_USE cs_status sim__time_item(sim_lower_work *w, const wl_item *item, const sim_timed **out,
                                     cs_error *err);
/* Writes the foreground of a pass (lower_items.c). */
CS_MUST_USE cs_status sim__put_items(sim_lower_work *w, const wl_pass *pass, cs_error *err);
/* Writes the operations of a context (lower_pass.c). */
CS_MUST_USE cs_status sim__lower_pass(sim_lowering *lowering, sim_context context, sim_lowered *out,
                                      cs_error *err);

#endif
