/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * ASTRA-sim's input files as a network of model `contention`: the same links, told by the egress of
 * one NPU. */
#include "sim/astra.h"

#define GIB 1073741824.0

/* Links of one NPU into a dimension: both ways of a ring (two NPUs share one), one to each other
 * NPU, one to the switch. */
static double links_of(const sim_astra_dim *dim)
{
    if (dim->topology == SIM_RING)
        return dim->n > 2 ? 2.0 : 1.0;
    return dim->topology == SIM_FULLY_CONNECTED ? (double)dim->n - 1.0 : 1.0;
}

/* Algorithm of a dimension: that of all-reduce, else of the first collective that has one. */
static int32_t algorithm_of(const sim_astra_system *system, size_t d)
{
    for (size_t t = 0; t < SIM_ASTRA_N_TYPES; t++)
        if (d < system->n_algorithms[t])
            return system->algorithm[t][d].algorithm;
    return SIM_ALGO_RING;
}

cs_status sim_astra_as_network(const sim_astra *astra, sim_network *out, cs_error *err)
{
    const sim_astra_network *net = &astra->network;

    if (net->n_dims > SIM_MAX_DIMS)
        return cs_fail(err, CS_EINVAL, "%zu network dimensions; model contention has at most %d",
                       net->n_dims, SIM_MAX_DIMS);
    *out = (sim_network){
        .n_dims = net->n_dims,
        .multi_dim = astra->system.local_bw_aware ? SIM_HIERARCHICAL : SIM_BASELINE,
        .scheduling = SIM_PROGRAM,
        .chunks = astra->system.splits > 0 ? astra->system.splits : 1,
        .endpoint_delay_s = 1e-9 * (double)astra->system.endpoint_delay_ns,
        .reduction_bytes_per_s = astra->system.local_mem_bytes_per_s,
    };
    for (size_t d = 0; d < net->n_dims; d++) {
        const sim_astra_dim *dim = &net->dim[d];
        out->dim[d] =
            (sim_dim){.topology = dim->topology,
                      .algorithm = algorithm_of(&astra->system, d),
                      .n = dim->n,
                      .bandwidth_bytes_per_s = GIB * dim->bandwidth_gib_per_s * links_of(dim),
                      .latency_s = 1e-9 * dim->latency_ns,
                      .oversubscription = 1};
    }
    return CS_OK;
}
