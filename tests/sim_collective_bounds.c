/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Properties over random networks: no algorithm beats the links (DESIGN 5.3), more bandwidth or
 * less latency is never slower, more bytes are never faster. */
#include "tests/sim_network_test.h"

enum { TRIALS = 20000 };

static int64_t pick_size(cs_rng *rng, int32_t algorithm)
{
    static const int64_t any[] = {2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32};

    if (algorithm == SIM_ALGO_HALVING_DOUBLING)
        return INT64_C(1) << (1 + cs_rng_below(rng, 5));
    return any[cs_rng_below(rng, 12)];
}

static double pick(cs_rng *rng, double low, double high)
{
    return low * pow(high / low, cs_rng_uniform(rng));
}

/* A dimension and a group on all or part of it. */
static sim_dim pick_dim(cs_rng *rng, sim_footprint *group, uint8_t number)
{
    sim_dim d = {0};
    int64_t n, stride = 1 + (int64_t)cs_rng_below(rng, 3),
               blocks = 1 + (int64_t)cs_rng_below(rng, 2);

    d.topology = (int32_t)cs_rng_below(rng, SIM_N_TOPOLOGIES);
    d.algorithm = (int32_t)cs_rng_below(rng, SIM_N_ALGOS);
    d.bandwidth_bytes_per_s = pick(rng, 1e9, 1e12);
    d.latency_s = cs_rng_below(rng, 4) == 0 ? 0 : pick(rng, 1e-9, 1e-5);
    d.oversubscription = cs_rng_below(rng, 2) == 0 ? 1 : pick(rng, 1, 8);
    d.in_network_reduction = cs_rng_below(rng, 4) == 0;
    n = pick_size(rng, d.algorithm);
    d.n = n * stride * blocks;
    group->span[group->n_spans++] = (sim_span){number, n, stride};
    group->n *= n;
    return d;
}

static void test_no_algorithm_beats_the_links(void **state)
{
    cs_rng *rng = cs_rng_create(11, 0, 0);
    sim_route_cache *cache = sim_route_cache_create(1 << 20);

    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        sim_network net = {.n_dims = 1, .chunks = 1};
        sim_footprint group = {.n = 1};
        wl_collective type = (wl_collective)cs_rng_below(rng, WL_N_COLLECTIVES);
        double bytes = pick(rng, 1, 1e12), bound;
        sim_phases phases;
        const sim_phase *phase = phases.phase;
        cs_error err;
        net.dim[0] = pick_dim(rng, &group, 0);
        bound = sim_collective_bound_s(&net.dim[0], &group.span[0], type, bytes);
        const sim_collective what = {&group, type, bytes, 0};
        if (sim_collective_phases(&net, &what, cache, &phases, &err) != CS_OK)
            fail_msg("%s", err.text);
        assert_true(bound > 0);
        if (!(phase[0].seconds >= bound * (1 - 1e-9)))
            fail_msg("%s %s %s n=%lld/%lld stride %lld: %g s beats %g s",
                     sim_topology_names[net.dim[0].topology],
                     sim_algorithm_names[net.dim[0].algorithm], wl_collective_names[type],
                     (long long)group.n, (long long)net.dim[0].n, (long long)group.span[0].stride,
                     phase[0].seconds, bound);
    }
    sim_route_cache_destroy(cache);
    cs_rng_destroy(rng);
}

static void pick_network(cs_rng *rng, sim_network *net, sim_footprint *group)
{
    *net = (sim_network){.n_dims = 1 + cs_rng_below(rng, 3)};
    *group = (sim_footprint){.n = 1};
    net->chunks = 1 + (int64_t)cs_rng_below(rng, 16);
    net->multi_dim = (int32_t)cs_rng_below(rng, 2);
    net->endpoint_delay_s = cs_rng_below(rng, 2) == 0 ? 0 : 1e-7;
    for (size_t d = 0; d < net->n_dims; d++)
        net->dim[d] = pick_dim(rng, group, (uint8_t)d);
}

static sim_phases phases_of(const sim_network *net, const sim_footprint *group, wl_collective type,
                            double bytes, sim_route_cache *cache)
{
    const sim_collective what = {group, type, bytes, 0};
    sim_phases phases;
    cs_error err;

    if (sim_collective_phases(net, &what, cache, &phases, &err) != CS_OK)
        fail_msg("%s", err.text);
    return phases;
}

/* Every phase for itself, and so the whole, as sums and maxima of them. */
static void test_more_is_never_slower(void **state)
{
    cs_rng *rng = cs_rng_create(12, 0, 0);
    sim_route_cache *cache = sim_route_cache_create(1 << 20);

    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        sim_network net, better;
        sim_footprint group;
        wl_collective type = (wl_collective)cs_rng_below(rng, WL_N_COLLECTIVES);
        sim_phases a, b;
        double bytes = pick(rng, 1e3, 1e10), fewer = bytes;
        size_t d;
        pick_network(rng, &net, &group);
        better = net;
        d = cs_rng_below(rng, net.n_dims);
        if (trial % 3 == 0)
            better.dim[d].bandwidth_bytes_per_s *= pick(rng, 1, 10);
        else if (trial % 3 == 1)
            better.dim[d].latency_s *= cs_rng_uniform(rng);
        else
            fewer *= cs_rng_uniform(rng);
        a = phases_of(&net, &group, type, bytes, cache);
        b = phases_of(&better, &group, type, fewer, cache);
        assert_int_equal(a.n, b.n);
        for (size_t p = 0; p < a.n; p++) {
            assert_true(b.phase[p].seconds <= a.phase[p].seconds);
            assert_true(a.phase[p].seconds > 0);
        }
        assert_true(sim_collective_isolated_ps(&b, net.chunks) <=
                    sim_collective_isolated_ps(&a, net.chunks));
    }
    sim_route_cache_destroy(cache);
    cs_rng_destroy(rng);
}

/* Dimension by dimension an all-reduce takes what its links need: of everything in turn, or of what
 * the reduce-scatters before have left, however they share their time with the all-gathers. */
static void test_no_dimension_is_beaten(void **state)
{
    cs_rng *rng = cs_rng_create(14, 0, 0);
    sim_route_cache *cache = sim_route_cache_create(1 << 20);

    (void)state;
    for (int trial = 0; trial < TRIALS / 4; trial++) {
        sim_network net;
        sim_footprint group;
        double size = pick(rng, 1e3, 1e10), spent[SIM_MAX_DIMS] = {0};
        sim_phases phases;
        pick_network(rng, &net, &group);
        phases = phases_of(&net, &group, WL_ALL_REDUCE, size, cache);
        for (size_t p = 0; p < phases.n; p++)
            spent[phases.phase[p].dim] += phases.phase[p].seconds * (double)net.chunks;
        for (size_t i = 0; i < group.n_spans; i++) {
            const sim_span *s = &group.span[i];
            sim_dim dim = net.dim[s->dim];
            bool last = i + 1 == group.n_spans, scatters = net.multi_dim == SIM_HIERARCHICAL;
            double least = sim_collective_bound_s(&dim, s, WL_ALL_REDUCE, size);
            if (scatters && !last) /* a switch reduces in an all-reduce of its own alone */
                least = 2 * sim_collective_bound_s(&dim, s, WL_REDUCE_SCATTER, size);
            assert_true(spent[s->dim] >= least * (1 - 1e-9));
            size /= scatters ? (double)s->n : 1;
        }
    }
    sim_route_cache_destroy(cache);
    cs_rng_destroy(rng);
}

/* Flat rings over groups that are no product: more bandwidth is never slower, and every byte of an
 * all-reduce leaves each NPU: not even all dimensions together beat 2 (n-1)/n S / sum B. */
static void test_flat_rings_keep_the_rules(void **state)
{
    cs_rng *rng = cs_rng_create(13, 0, 0);
    sim_route_cache *cache = sim_route_cache_create(1 << 22);
    static const int64_t sizes[] = {2, 3, 4, 6};
    int32_t order;
    int routed = 0;

    (void)state;
    assert_int_equal(sim_order_parse("tp sp ep dp pp", &order, NULL), CS_OK);
    for (int trial = 0; trial < 1500; trial++) {
        sim_network net = {.n_dims = 2 + cs_rng_below(rng, 2), .chunks = 1};
        sim_mesh mesh = {{1, 1, 1, 1, 1}};
        sim_footprint group;
        sim_phases a, b;
        int64_t npus = 1, used = 1;
        wl_collective type = (wl_collective)cs_rng_below(rng, WL_N_COLLECTIVES);
        for (size_t d = 0; d < net.n_dims; d++) {
            net.dim[d] = make_dim((sim_topology)cs_rng_below(rng, 4), SIM_ALGO_RING,
                                  sizes[cs_rng_below(rng, 4)], pick(rng, 10, 1000), 500);
            npus *= net.dim[d].n;
        }
        for (int x = 0; x < WL_N_AXES; x++) {
            int64_t size = sizes[cs_rng_below(rng, 4)];
            mesh.size[x] = used * size <= npus ? size : 1;
            used *= mesh.size[x];
        }
        assert_int_equal(sim_footprint_make(&net, &mesh, order,
                                            (wl_group)(1u << cs_rng_below(rng, WL_N_AXES)), &group,
                                            NULL),
                         CS_OK);
        if (!group.routed)
            continue;
        routed++;
        a = phases_of(&net, &group, type, 1e9, cache);
        assert_int_equal(a.n, 1);
        if (type == WL_ALL_REDUCE)
            assert_true(a.phase[0].seconds >=
                        sim_bus_factor(type, group.n) * 1e9 / sim_network_bandwidth(&net));
        net.dim[cs_rng_below(rng, net.n_dims)].bandwidth_bytes_per_s *= 2;
        b = phases_of(&net, &group, type, 1e9, cache);
        assert_true(b.phase[0].seconds <= a.phase[0].seconds && b.phase[0].seconds > 0);
    }
    assert_true(routed > 100);
    sim_route_cache_destroy(cache);
    cs_rng_destroy(rng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_algorithm_beats_the_links),
        cmocka_unit_test(test_more_is_never_slower),
        cmocka_unit_test(test_no_dimension_is_beaten),
        cmocka_unit_test(test_flat_rings_keep_the_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
