/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Phases of collectives (private to sim/). */
#ifndef SIM_COLLECTIVE_H
#define SIM_COLLECTIVE_H

#include "sim/network_private.h"

/* A collective to be laid out over the spans of its group. */
typedef struct {
    const sim_network *net;
    const sim_footprint *group;
    sim_route_cache *cache;
    wl_collective type;
    const uint8_t *order; /* spans in the order a reduce-scatter takes */
} sim__plan;

/* Phases of `bytes` (one chunk) over the spans of a product group. */
CS_MUST_USE cs_status sim__plan_phases(const sim__plan *plan, double bytes, sim_phases *out,
                                       cs_error *err);

/* Themis: indices of the spans, the least loaded dimension first; equal ones stay in order. Rashidi
 * et al., ISCA 2022. */
void sim__least_loaded_first(const sim_footprint *group, const double load[SIM_MAX_DIMS],
                             uint8_t order[2 * SIM_MAX_DIMS]);

/* The one phase of a routed flat ring. */
CS_MUST_USE cs_status sim__routed_phases(const sim__plan *plan, double bytes, sim_phases *out,
                                         cs_error *err);

/* The one phase of a pair: its spans one after the other. */
CS_MUST_USE cs_status sim__pair_phases(const sim__plan *plan, double bytes, sim_phases *out,
                                       cs_error *err);

/* The boundary between stages that are no product: a phase for each dimension crossed. */
CS_MUST_USE cs_status sim__routed_boundary(const sim__plan *plan, double bytes, bool backward,
                                           sim_phases *out, cs_error *err);

#endif
