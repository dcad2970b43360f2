/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SIM_LOWER_PRIVATE_H
#define SIM_LOWER_PRIVATE_H

#include "sim/lower.h"
#include "sim/pool.h"
#include "sim/timed.h"

enum { SIM_LIST_OUT, SIM_LIST_GATHER, SIM_LIST_REDUCE, SIM_LIST_OWN, SIM_N_LISTS };
enum { SIM_MOST_CONTEXTS = 512, SIM_CONTEXT_TABLE = 2 * SIM_MOST_CONTEXTS };

typedef struct {
    uint64_t key;
    sim_lowered pass;
} sim_lowered_entry;

struct sim_lowering {
    const sim_job *job;
    sim_pool pool;
    sim_timing timing;
    sim_lowered_entry entries[SIM_MOST_CONTEXTS];
    size_t n_entries, most_slots;
    struct {
        uint32_t generation, entry;
    } table[SIM_CONTEXT_TABLE];
    uint32_t generation;
    /* Room for one pass while it is written; the result is copied to the pool. */
    sim_op *room[SIM_N_LISTS];
    uint8_t *cause_room;
    int16_t *item_room;
    size_t room_ops, room_slots;
};

/* The wl_pass behind an id; NULL for SIM_PASS_NONE. */
const wl_pass *sim__pass_of(const sim_job *job, sim_pass_id id);
/* Whether a kind of pass runs an item in the foreground. */
bool sim__pass_takes(sim_pass_kind kind, const wl_item *item);
/* Writes the operations of a context (lower_pass.c). */
CS_MUST_USE cs_status sim__lower_pass(sim_lowering *lowering, sim_context context, sim_lowered *out,
                                      cs_error *err);

#endif
