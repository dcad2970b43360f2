/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From a block's pass to operations (private to sim/).
 *
 * Order of service ("program", DESIGN 5.3): collectives that the block waits for in issue order,
 * then phase, then chunk.  Chunks of the gather for the next block and of the gradient reduction of
 * the block before are spread evenly among them: the i-th of g stands at (i+1/2)/g of the way. */
#ifndef SIM_LOWER_H
#define SIM_LOWER_H

#include "sim/engine.h"

/* Which items of a block a pass runs. */
typedef enum {
    SIM_PASS_FORWARD,
    SIM_PASS_BACKWARD,
    SIM_PASS_BACKWARD_LAST, /* with the reductions of the iteration */
    SIM_PASS_INPUT,         /* backward without weight gradients (split schedules) */
    SIM_PASS_WEIGHT,
    SIM_PASS_WEIGHT_LAST,
    SIM_PASS_UPDATE, /* optimizer step of a stage */
    SIM_PASS_NONE,   /* only what is pending */
    SIM_N_PASSES
} sim_pass_kind;

/* A block and the kind of pass; `block` is the stage for SIM_PASS_UPDATE. */
typedef struct {
    uint16_t block;
    uint8_t kind; /* sim_pass_kind; SIM_PASS_NONE: nothing */
} sim_pass_id;

/* What runs and what runs beside it. */
typedef struct sim_context {
    sim_pass_id self;
    sim_pass_id gather; /* whose weights are gathered meanwhile */
    sim_pass_id reduce; /* whose gradients are reduced meanwhile */
    uint8_t send;       /* 0 none, 1 to the next stage, 2 to the previous one */
    uint8_t slow;       /* bits: 1 the stage is slow, 2 one end of the transfer is */
} sim_context;

typedef struct sim_lowering sim_lowering;
sim_lowering *sim__lowering_create(void); /* NULL when out of memory */
void sim__lowering_destroy(sim_lowering *lowering);

/* Forgets the passes of the last design; keeps the memory. */
void sim__lowering_reset(sim_lowering *lowering, const sim_job *job);

/* The lowered pass of a context, made at its first use; borrowed until the next reset.  *index
 * numbers contexts from 0. */
CS_MUST_USE cs_status sim__lower(sim_lowering *lowering, sim_context context,
                                 const sim_lowered **out, size_t *index, cs_error *err);

/* Whether a pass leaves gradient reductions behind, and whether it needs gathered weights. */
bool sim__pass_reduces(const sim_job *job, sim_pass_id id);
bool sim__pass_gathers(const sim_job *job, sim_pass_id id);

#endif
