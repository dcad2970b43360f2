/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Collectives as programs of messages for the oracle: every NPU of the machine, every sibling
 * group, no barriers but those of the algorithm itself. */
#ifndef ORACLE_COLLECTIVE_H
#define ORACLE_COLLECTIVE_H

#include "oracle.h"
#include "sim/network.h"

/* Seconds of one collective of `bytes` on every group of `group` (or flat rings of it) at once, in
 * one chunk; *moved (may be NULL) receives the bytes that links of each dimension carried. */
double oracle_collective_s(const sim_network *net, const sim_footprint *group, wl_collective type,
                           double bytes, oracle_order order, double moved[SIM_MAX_DIMS]);

/* Seconds of a pipeline boundary: every rank of the mesh but those of the last (or first) stage
 * sends `what->bytes` to the same coordinates of the next (previous) one, all at once. */
double oracle_boundary_s(const sim_network *net, const sim_boundary *what, oracle_order order);

#endif
