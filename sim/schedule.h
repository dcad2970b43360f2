/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Pipeline schedules as data (private to sim/): for each stage the order of its actions.
 * GPipe: Huang et al. 2019.  1F1B and interleaved: Narayanan et al., SC21.  ZB-H1, ZB-H2: Qi et
 * al., Zero Bubble Pipeline Parallelism, ICLR 2024. */
#ifndef SIM_SCHEDULE_H
#define SIM_SCHEDULE_H

#include "workloads/workload.h"

typedef enum { SIM_FORWARD, SIM_BACKWARD, SIM_WEIGHT } sim_action_kind;

typedef struct {
    uint8_t kind;  /* sim_action_kind */
    uint8_t chunk; /* model chunk on this stage (virtual stages) */
    uint8_t lap;   /* which time through the whole pipeline (decode steps) */
    bool last;     /* last backward (or weight) action of this chunk */
    int32_t micro_batch;
} sim_action;

/* A stretch in which every stage repeats `period` actions for `rounds` rounds, from action
 * first[stage] on. */
typedef struct {
    size_t *first, period;
    int64_t rounds;
} sim_phase_plan;

/* What a schedule is made for. */
typedef struct {
    size_t n_stages, n_chunks; /* chunks: virtual stages */
    int64_t micro_batches;
    bool forward_only;
    bool twice; /* forward only: what leaves the last stage enters the first again */
} sim_pipeline;

/* Times a micro-batch goes through the whole pipeline. */
static inline int64_t sim__laps(const sim_pipeline *pipeline)
{
    return pipeline->twice ? 2 : 1;
}

typedef struct {
    sim_pipeline pipeline;
    size_t n_actions;   /* per stage */
    sim_action *action; /* n_stages x n_actions */
    /* The repeating phases in order; phase[n_phases].first is the end of the schedule. */
    sim_phase_plan phase[3];
    size_t n_phases;
    size_t *first;                            /* storage of the above */
    size_t capacity_actions, capacity_stages; /* of the arrays, kept between designs */
} sim_schedule;

/* Fills *out (its arrays grow as needed and are kept).  CS_EINVAL: interleaved with
 * micro_batches % n_stages != 0, or more than 2^24 actions.  O(actions). */
CS_MUST_USE cs_status sim__schedule_make(wl_schedule kind, const sim_pipeline *pipeline,
                                         sim_schedule *out, cs_error *err);
void sim__schedule_fini(sim_schedule *schedule);

/* Most stage-chunks (micro-batches times virtual stages) whose activations a stage holds at a time:
 * what wl_stage_memory takes. */
double sim__in_flight(wl_schedule kind, const sim_pipeline *pipeline, size_t stage);

#endif
