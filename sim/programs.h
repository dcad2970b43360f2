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

#endif
