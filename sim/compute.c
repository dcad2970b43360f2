/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Roofline: t = max(F / (P * e), B / W) + launch overhead.  Williams et al., CACM 52(4), 2009.
 * A pure memory kernel (F = 0) is valid and costs B / W.  What offload moves over the link to host
 * memory goes beside it: the longer of the two counts. */
#include "sim/compute.h"

#include <math.h>

double sim__device_peak(const sim_device *device, wl_precision precision)
{
    switch (precision) {
    case WL_FP32:
        return device->peak_fp32 > 0 ? device->peak_fp32 : device->peak / 2;
    case WL_FP8:
        return device->peak_fp8 > 0 ? device->peak_fp8 : device->peak * 2;
    case WL_BF16:
    case WL_FP16:
        break;
    }
    return device->peak;
}

double sim__kernel_seconds(const sim_device *device, const wl_item *item)
{
    double peak = sim__device_peak(device, (wl_precision)item->precision) * device->efficiency;
    double arithmetic = item->flops > 0 ? item->flops / peak : 0;
    double memory = item->memory_bytes > 0 ? item->memory_bytes / device->memory_bandwidth : 0;
    double host = 0;

    if (item->host_bytes > 0 && device->host_bandwidth > 0)
        host = item->host_bytes / device->host_bandwidth;
    return fmax(fmax(arithmetic, memory), host) + device->launch_overhead;
}

cs_status sim_time_from_s(double seconds, sim_time *out, cs_error *err)
{
    double picoseconds = seconds * 1e12;

    if (!(picoseconds >= 0) || picoseconds > (double)SIM_TIME_MAX)
        return cs_fail(err, CS_EINVAL, "a duration of %g s is outside 0 to %g s", seconds,
                       (double)SIM_TIME_MAX * 1e-12);
    *out = llround(picoseconds);
    return CS_OK;
}
