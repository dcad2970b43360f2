/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Network dollars: N * sum over dimensions of bandwidth per NPU * dollars per GB/s, from the prices
 * of LIBRA (Won et al., ISPASS 2024, arXiv 2109.11762) by tier.  A ring or a mesh has 2 links a NPU
 * of half the bandwidth, a fully connected dimension n-1 of 1/(n-1): both pay one link per GB/s of
 * the NPU.  A switch port pays its link, a switch and, between pods, a NIC; the COSMIC fork counts
 * the link twice (NPU side and switch side), LIBRA once. */
#include "sim/network.h"

#include <math.h>
#include <string.h>

/* Dollars per GB/s; NAN: there is none. */
typedef struct {
    double link, fabric, nic;
} tier;

enum { CHIPLET, PACKAGE, NODE, POD, N_TIERS };

static const tier prices[N_TIERS] = {[CHIPLET] = {2.0, NAN, 0},
                                     [PACKAGE] = {4.0, 13.0, 0},
                                     [NODE] = {4.0, 13.0, 0},
                                     [POD] = {7.8, 18.0, 31.6}};

/* Tiers of networks of 1 to 4 dimensions: the outermost is the pod, except that one dimension alone
 * is a package.  More than 4: the extra ones are inside the chiplet tier. */
static int tier_of(size_t dim, size_t n_dims)
{
    static const int table[4][4] = {
        {PACKAGE}, {PACKAGE, POD}, {PACKAGE, NODE, POD}, {CHIPLET, PACKAGE, NODE, POD}};

    if (n_dims <= 4)
        return table[n_dims - 1][dim];
    return dim + 4 <= n_dims ? CHIPLET : table[3][dim + 4 - n_dims];
}

double sim_network_cost_usd(const sim_network *net, const char *price_table)
{
    double port_links = 0, dollars = 0, npus = 1;

    if (strcmp(price_table, "cosmic") == 0)
        port_links = 2;
    else if (strcmp(price_table, "libra") == 0)
        port_links = 1;
    else
        return NAN;
    for (size_t d = 0; d < net->n_dims; d++)
        npus *= (double)net->dim[d].n;
    for (size_t d = 0; d < net->n_dims; d++) {
        const sim_dim *dim = &net->dim[d];
        const tier *t = &prices[tier_of(d, net->n_dims)];
        double per_gb = t->link;
        if (dim->n == 1)
            continue;
        if (dim->topology == SIM_SWITCH)
            per_gb = port_links * t->link + t->fabric + t->nic;
        dollars += dim->bandwidth_bytes_per_s * 1e-9 * per_gb * npus;
    }
    return dollars;
}
