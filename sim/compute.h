/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Compute model (private to sim/): DESIGN 5.2. */
#ifndef SIM_COMPUTE_H
#define SIM_COMPUTE_H

#include "sim/sim.h"

/* Peak FLOP/s for a data type; fp32 and fp8 fall back to half and twice the 16-bit peak. */
double sim__device_peak(const sim_device *device, wl_precision precision);

/* Seconds of one operator on one NPU. */
double sim__kernel_seconds(const sim_device *device, const wl_item *item);

#endif
