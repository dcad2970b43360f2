/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What no algorithm can beat on one dimension.  Every NPU must send (and receive) its part through
 * its own bandwidth; on rings and meshes an all-to-all also has to carry every byte over all hops
 * in between, and all links together carry bandwidth * NPUs (a mesh lacks one pair of links). */
#include "sim/network.h"

#include <math.h>

/* Sum over all ordered pairs of members of the hops between them. */
static double pair_hops(const sim_dim *dim, const sim_span *span)
{
    double n = (double)span->n, stride = (double)span->stride, sum = 0;
    int64_t N = dim->n;

    if (dim->topology == SIM_MESH || N != span->n * span->stride)
        return stride * n * (n * n - 1) / 3;
    for (int64_t d = 1; d < span->n; d++)
        sum += n * stride * (double)(d < span->n - d ? d : span->n - d);
    return sum;
}

/* Seconds of hop-bytes over all links of the dimension, all sibling groups at once. */
static double by_distances(const sim_dim *dim, const sim_span *span, double bytes)
{
    double N = (double)dim->n;
    double groups = (double)(dim->n / (span->n * span->stride)) * (double)span->stride;
    double links = dim->topology == SIM_MESH && dim->n > 2 ? N - 1 : N;
    double share = bytes / (double)span->n;

    return groups * pair_hops(dim, span) * share / (links * dim->bandwidth_bytes_per_s);
}

double sim_collective_bound_s(const sim_dim *dim, const sim_span *span, wl_collective type,
                              double bytes)
{
    double share = span->n > 1 ? (double)(span->n - 1) / (double)span->n : 0;
    double all = bytes / dim->bandwidth_bytes_per_s;
    bool is_switch = dim->topology == SIM_SWITCH;
    bool is_line = dim->topology == SIM_RING || dim->topology == SIM_MESH;

    if (span->n <= 1)
        return 0;
    if (is_switch)
        all *= fmax(1, dim->oversubscription);
    if (type == WL_ALL_REDUCE)
        return is_switch && dim->in_network_reduction != 0 ? all : 2 * share * all;
    if (type == WL_BROADCAST || type == WL_REDUCE)
        return bytes / dim->bandwidth_bytes_per_s;
    if (type == WL_SCATTER || type == WL_GATHER)
        return share * bytes / dim->bandwidth_bytes_per_s;
    if (type == WL_ALL_TO_ALL && is_line)
        return fmax(share * all, by_distances(dim, span, bytes));
    return share * all;
}
