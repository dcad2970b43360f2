/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Collectives of one design in picoseconds (private to sim/). */
#ifndef SIM_TIMED_H
#define SIM_TIMED_H

#include "sim/engine.h"

enum { SIM_MOST_TIMED = 64, SIM_N_GROUPS = 1 << WL_N_AXES };

/* What a collective is: kind, group (and part of it), bytes. */
typedef struct {
    uint8_t kind;
    wl_group group;
    int32_t part, part_stride;
    double bytes;
} sim_collective_key;

/* Phases of one distinct collective; durations are of one chunk. */
typedef struct {
    sim_collective_key key;
    unsigned dims; /* bit set of the dimensions it uses */
    size_t n_phases;
    struct {
        uint8_t server, others;
        sim_time duration;
        int64_t bytes; /* egress of one NPU */
    } phase[SIM_MAX_PHASES];
} sim_timed;

/* All of a design, kept by (kind, group, bytes). */
typedef struct {
    const sim_job *job;
    sim_footprint footprint[SIM_N_GROUPS];
    bool has_footprint[SIM_N_GROUPS];
    sim_timed collective[SIM_MOST_TIMED];
    size_t n;
    sim_timed boundary[2]; /* to the next stage, to the previous one */
    bool has_boundary[2];
} sim_timing;

void sim__timing_reset(sim_timing *timing, const sim_job *job);

/* The phases of a collective of the block engine; valid until the next call. */
CS_MUST_USE cs_status sim__timed_collective(sim_timing *timing, const sim_collective_key *key,
                                            const sim_timed **out, cs_error *err);
/* Themis: the phases of one more chunk of `like`, over the dimensions in the order of `load`
 * (seconds by dimension), which it raises.  Rashidi et al., ISCA 2022. */
CS_MUST_USE cs_status sim__timed_themis(sim_timing *timing, const sim_timed *like,
                                        double load[SIM_MAX_DIMS], sim_timed *out, cs_error *err);
/* The phases of the transfer across a stage boundary. */
CS_MUST_USE cs_status sim__timed_boundary(sim_timing *timing, bool backward, const sim_timed **out,
                                          cs_error *err);

#endif
