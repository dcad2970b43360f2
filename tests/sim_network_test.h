/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the network tests share: networks in one line, groups that are one span, isolated times. */
#ifndef SIM_NETWORK_TEST_H
#define SIM_NETWORK_TEST_H

#include "sim/network.h"
#include "tests/test.h"

/* A dimension of n NPUs at `gb` GB/s and `ns` a hop. */
static inline sim_dim make_dim(sim_topology topology, sim_algorithm algorithm, int64_t n, double gb,
                               double ns)
{
    return (sim_dim){(int32_t)topology, (int32_t)algorithm, n, gb * 1e9, ns * 1e-9, 1, 0};
}

static inline sim_footprint make_span(uint8_t dim, int64_t n, int64_t stride)
{
    return (sim_footprint){.n = n, .n_spans = 1, .span = {{dim, n, stride}}};
}

/* Seconds of one isolated collective; fails the test when it cannot run. */
static inline double seconds_of(const sim_network *net, const sim_footprint *group,
                                wl_collective type, double bytes)
{
    sim_route_cache *cache = sim_route_cache_create(0);
    const sim_collective what = {group, type, bytes, 0};
    sim_phases phases;
    cs_error err = {""};
    cs_status status = sim_collective_phases(net, &what, cache, &phases, &err);

    sim_route_cache_destroy(cache);
    if (status != CS_OK)
        fail_msg("%s", err.text);
    return (double)sim_collective_isolated_ps(&phases, net->chunks) * 1e-12;
}

/* Seconds of a collective over a whole one-dimensional network. */
static inline double seconds_on(sim_dim dim, wl_collective type, double bytes)
{
    sim_network net = {.n_dims = 1, .dim = {dim}, .chunks = 1};
    sim_footprint group = sim_footprint_whole(&net);

    return seconds_of(&net, &group, type, bytes);
}

#endif
