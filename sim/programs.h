/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Table of model terms (private to sim/): programs by workload and split, kept between designs. */
#ifndef SIM_PROGRAMS_H
#define SIM_PROGRAMS_H

#include "workloads/workload.h"

typedef struct sim_programs sim_programs;

/* Keeps up to about `limit_bytes`; the least recently made go first.  NULL when out of memory. */
sim_programs *sim__programs_create(size_t limit_bytes);
void sim__programs_destroy(sim_programs *programs);

/* The program of a workload under a split, built at its first use.  Borrowed until the next call.
 * O(1) when it is there. */
CS_MUST_USE cs_status sim__program_get(sim_programs *programs, const wl_workload *workload,
                                       size_t workload_index, const wl_config *config,
                                       const wl_program **out, cs_error *err);

/* Peak memory of the fullest stage of a workload under a split; so small that nearly all splits of
 * a space are kept, and most memory checks need no program. */
typedef struct {
    wl_memory memory;
    size_t stage;
} sim_peak;

/* NULL when it is not there. */
const sim_peak *sim__peak_find(const sim_programs *programs, size_t workload_index,
                               const wl_config *config);
void sim__peak_put(sim_programs *programs, size_t workload_index, const wl_config *config,
                   const sim_peak *peak);

#endif
