/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Worked times of collectives, model `contention`.  S bytes, n NPUs, B per NPU, L a hop; links of a
 * ring carry B/2 each way. */
#include "tests/sim_network_test.h"

#define GIB 1073741824.0

/* 2 (n-1)/n S/B = 2 * 7/8 * 2^30 / 50e9 = 37.581 ms; algbw S/t = 28.571, busbw * 2 * 7/8 = 50. */
static void test_ring_all_reduce_reaches_the_bandwidth(void **state)
{
    double t = seconds_on(make_dim(SIM_RING, SIM_ALGO_RING, 8, 50, 0), WL_ALL_REDUCE, GIB);

    (void)state;
    assert_close(t, 37.581e-3, 1e-5);
    assert_close(GIB / t, 28.571e9, 1e-4);
    assert_close(GIB / t * sim_bus_factor(WL_ALL_REDUCE, 8), 50e9, 1e-9);
}

/* n = 8, 1 GB, 100 GB/s, 500 ns. */
static void test_worked_times(void **state)
{
    static const struct {
        sim_topology topology;
        sim_algorithm algorithm;
        wl_collective type;
        double bytes, gb, ns, expect_s;
    } cases[] = {
        /* 14 steps of 500 ns + 2^20/16 B over 25 GB/s = 14 * (500 + 2621.44) ns = 43.70 us */
        {SIM_RING, SIM_ALGO_RING, WL_ALL_REDUCE, 1048576, 50, 500, 43.70016e-6},
        /* link: distances 1+2+3+4/2 = 8 blocks of S/8 over 50 GB/s = 20 ms, twice, + 2 L */
        {SIM_RING, SIM_ALGO_DIRECT, WL_ALL_REDUCE, 1e9, 100, 500, 40.001e-3},
        /* rounds of 10, 10 (two messages of S/4 on a link), 5 ms + L each, there and back */
        {SIM_RING, SIM_ALGO_HALVING_DOUBLING, WL_ALL_REDUCE, 1e9, 100, 500, 50.003e-3},
        /* 4 steps of 3.5, 2.5, 1.5, 0.5 blocks of S/8 each way: 8 * 2.5 ms + 4 L */
        {SIM_RING, SIM_ALGO_RING, WL_ALL_TO_ALL, 1e9, 100, 500, 20.002e-3},
        /* (2*3 + k - 1) * (2 L + 2 S/k/B) at k = 316: 321 * (1 + 63.29114) us */
        {SIM_SWITCH, SIM_ALGO_DOUBLE_BINARY_TREE, WL_ALL_REDUCE, 1e9, 100, 500,
         321 * (1e-6 + 20e-3 / 316)},
        /* 7 messages of S/8 up and down at once: 7/8 * 10 ms + 2 L */
        {SIM_SWITCH, SIM_ALGO_DIRECT, WL_ALL_TO_ALL, 1e9, 100, 500, 8.751e-3},
        /* a link for each pair, 1/7 of B: S/8 over 100/7 GB/s + L, twice */
        {SIM_FULLY_CONNECTED, SIM_ALGO_DIRECT, WL_ALL_REDUCE, 1e9, 100, 500, 17.501e-3},
        /* two of seven links: 14 steps of S/16 over 100/7 GB/s + L */
        {SIM_FULLY_CONNECTED, SIM_ALGO_RING, WL_ALL_REDUCE, 1e9, 100, 500,
         14 * (500e-9 + 62.5e6 * 7 / 100e9)},
        /* rounds of S/2, S/4, S/8 at B and 2 L, there and back: 17.5 ms + 12 L */
        {SIM_SWITCH, SIM_ALGO_HALVING_DOUBLING, WL_ALL_REDUCE, 1e9, 100, 500, 17.506e-3},
        /* middle link of a line: 4 * 4 blocks of S/8 over 50 GB/s + L */
        {SIM_MESH, SIM_ALGO_DIRECT, WL_ALL_TO_ALL, 1e9, 100, 500, 40.0005e-3},
        /* 6 messages to a neighbour and one all the way back (7 hops), two on every link: (6 + 7) L
         * + 7 * 2 * S/16 over 50 GB/s */
        {SIM_MESH, SIM_ALGO_RING, WL_REDUCE_SCATTER, 1e9, 100, 500, 17.5065e-3},
        /* passed on along the line: steps of 7 + 6 + .. + 1 blocks of S/8 over 50 GB/s + 7 L */
        {SIM_MESH, SIM_ALGO_RING, WL_ALL_TO_ALL, 1e9, 100, 500, 70.0035e-3},
        /* root's link up carries 7 S; or 7 S/8 */
        {SIM_SWITCH, SIM_ALGO_DIRECT, WL_BROADCAST, 1e9, 100, 500, 70.001e-3},
        {SIM_SWITCH, SIM_ALGO_DIRECT, WL_SCATTER, 1e9, 100, 500, 8.751e-3},
        {SIM_SWITCH, SIM_ALGO_DIRECT, WL_GATHER, 1e9, 100, 500, 8.751e-3},
        /* scatter by halves S/2 + S/4 + S/8, all-gather S/8 + S/4 + S/2 */
        {SIM_SWITCH, SIM_ALGO_HALVING_DOUBLING, WL_BROADCAST, 1e9, 100, 500, 17.506e-3},
        {SIM_SWITCH, SIM_ALGO_HALVING_DOUBLING, WL_REDUCE, 1e9, 100, 500, 17.506e-3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sim_dim dim = make_dim(cases[i].topology, cases[i].algorithm, 8, cases[i].gb, cases[i].ns);
        assert_close(seconds_on(dim, cases[i].type, cases[i].bytes), cases[i].expect_s, 1e-7);
    }
}

/* Double binary trees of 3: 1 under 2 under 0, and shifted by one 2 under 0 under 1.  In and out of
 * NPU 0: halves to 2 (down, first), to 1 (up, second), to 2 (down, second) = 1.5 S.  Two levels:
 * min over k of (4 + k - 1) (2 L + 1.5 S/k/B).  Without latency: 1.5 S/B.  A broadcast adds a level
 * and half of S from root to root: 0 sends halves to 2, to 1 and again to 2. */
static void test_double_binary_tree_of_three(void **state)
{
    sim_dim dim = make_dim(SIM_SWITCH, SIM_ALGO_DOUBLE_BINARY_TREE, 3, 100, 500);
    double reduce = INFINITY, broadcast = INFINITY;

    (void)state;
    for (double k = 1; k < 1000; k++) {
        reduce = fmin(reduce, (4 + k - 1) * (1e-6 + 15e-3 / k));
        broadcast = fmin(broadcast, (3 + k - 1) * (1e-6 + 15e-3 / k));
    }
    assert_close(seconds_on(dim, WL_ALL_REDUCE, 1e9), reduce, 1e-9);
    dim.latency_s = 0;
    assert_close(seconds_on(dim, WL_ALL_REDUCE, 1e9), 15e-3, 1e-9);
    dim.latency_s = 500e-9;
    assert_close(seconds_on(dim, WL_BROADCAST, 1e9), broadcast, 1e-9);
    assert_close(seconds_on(dim, WL_REDUCE, 1e9), seconds_on(dim, WL_BROADCAST, 1e9), 1e-12);
}

/* Two NPUs share one link of the whole bandwidth; a part of two of a ring of four has a link of
 * half; opposite NPUs of a ring of eight (stride 4) send half each way, four pairs on each link:
 * 4 * S/2 / 2 over 50 GB/s. All are all-gathers of 1 GB at 100 GB/s. */
static void test_two_npus(void **state)
{
    sim_network net = {.n_dims = 1, .chunks = 1, .dim = {make_dim(SIM_RING, 0, 2, 100, 0)}};
    sim_footprint pair = make_span(0, 2, 1), opposite = make_span(0, 2, 4);

    (void)state;
    assert_close(seconds_of(&net, &pair, WL_ALL_GATHER, 1e9), 5e-3, 1e-9);
    net.dim[0].n = 4;
    assert_close(seconds_of(&net, &pair, WL_ALL_GATHER, 1e9), 10e-3, 1e-9);
    net.dim[0].n = 8;
    assert_close(seconds_of(&net, &opposite, WL_ALL_GATHER, 1e9), 20e-3, 1e-9);
}

/* Stride-2 groups of 4 on a ring of 8: every step puts 2 groups' messages on each link, so that a
 * reduce-scatter takes twice the time of a whole ring: 2 * 3/4 S/B. */
static void test_siblings_share_links(void **state)
{
    sim_network net = {.n_dims = 1, .chunks = 1, .dim = {make_dim(SIM_RING, 0, 8, 100, 0)}};
    sim_footprint group = make_span(0, 4, 2);

    (void)state;
    assert_close(seconds_of(&net, &group, WL_REDUCE_SCATTER, 1e9), 15e-3, 1e-9);
}

/* The switch reduces: everything once up and down, 2 L + S/B.  Oversubscribed by 2 the fabric
 * passes half: an all-to-all takes 2 * 7/8 S/B. */
static void test_switch_properties(void **state)
{
    sim_dim dim = make_dim(SIM_SWITCH, SIM_ALGO_RING, 8, 100, 500);

    (void)state;
    dim.in_network_reduction = 1;
    assert_close(seconds_on(dim, WL_ALL_REDUCE, 1e9), 10.001e-3, 1e-9);
    assert_close(seconds_on(dim, WL_REDUCE_SCATTER, 1e9), 8.751e-3, 1e-9);
    dim = make_dim(SIM_SWITCH, SIM_ALGO_DIRECT, 8, 100, 500);
    dim.oversubscription = 2;
    assert_close(seconds_on(dim, WL_ALL_TO_ALL, 1e9), 17.501e-3, 1e-9);
}

/* Endpoint delay is paid per message in sequence: 14 on a ring; reducing 7/8 S at 1 GB/s adds
 * 875 ms. */
static void test_endpoints_and_reduction_cost(void **state)
{
    sim_network net = {.n_dims = 1, .chunks = 1, .dim = {make_dim(SIM_RING, 0, 8, 50, 0)}};
    sim_footprint group = sim_footprint_whole(&net);
    double plain = seconds_of(&net, &group, WL_ALL_REDUCE, 1e9);

    (void)state;
    net.endpoint_delay_s = 1e-6;
    assert_close(seconds_of(&net, &group, WL_ALL_REDUCE, 1e9), plain + 14e-6, 1e-9);
    net.endpoint_delay_s = 0;
    net.reduction_bytes_per_s = 1e9;
    assert_close(seconds_of(&net, &group, WL_ALL_REDUCE, 1e9), plain + 0.875, 1e-9);
}

/* Links of b = 50 GB/s everywhere: a ring of 2 has one (B = b), of 8 two (B = 2b).  With S/b = 20
 * ms: [2,8]: RS 1/2, AR 2 * 7/8 * 1/2 / 2, AG 1/2  = 1.4375 -> 28.75 ms (20 on dimension 1) [8,2]:
 * RS 7/8 / 2, AR 2 * 1/2 * 1/8, AG 7/16 = 1.0    -> 20 ms (17.5 on dimension 1). */
static void test_order_of_dimensions_matters(void **state)
{
    sim_network net = {.n_dims = 2, .chunks = 1, .multi_dim = SIM_HIERARCHICAL};
    static const double expect[2][3] = {{28.75e-3, 20e-3, 8.75e-3}, {20e-3, 17.5e-3, 2.5e-3}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        sim_phases phases;
        double by_dim[2] = {0, 0};
        sim_route_cache *cache = sim_route_cache_create(0);
        net.dim[i] = make_dim(SIM_RING, SIM_ALGO_RING, 2, 50, 0);
        net.dim[1 - i] = make_dim(SIM_RING, SIM_ALGO_RING, 8, 100, 0);
        sim_footprint group = sim_footprint_whole(&net);
        assert_close(seconds_of(&net, &group, WL_ALL_REDUCE, 1e9), expect[i][0], 1e-9);
        const sim_collective what = {&group, WL_ALL_REDUCE, 1e9, 0};
        assert_int_equal(sim_collective_phases(&net, &what, cache, &phases, NULL), CS_OK);
        for (size_t p = 0; p < phases.n; p++)
            by_dim[phases.phase[p].dim] += phases.phase[p].seconds;
        assert_close(by_dim[0], expect[i][1], 1e-9);
        assert_close(by_dim[1], expect[i][2], 1e-9);
        sim_route_cache_destroy(cache);
    }
}

/* An all-to-all in groups of 8 on [8,4] stays on dimension 1: 7/8 S leaves each NPU there. */
static void test_all_to_all_of_a_row_uses_no_column(void **state)
{
    sim_network net = {.n_dims = 2, .chunks = 1};
    sim_mesh mesh = {{8, 1, 1, 4, 1}};
    sim_footprint group;
    sim_phases phases;
    const sim_collective what = {&group, WL_ALL_TO_ALL, 8e6, 0};
    sim_route_cache *cache = sim_route_cache_create(0);
    double bytes[2] = {0, 0};
    int32_t order;

    (void)state;
    net.dim[0] = make_dim(SIM_SWITCH, SIM_ALGO_DIRECT, 8, 100, 500);
    net.dim[1] = make_dim(SIM_RING, SIM_ALGO_RING, 4, 100, 500);
    assert_int_equal(sim_order_parse("tp sp dp pp", &order, NULL), CS_OK);
    assert_int_equal(sim_footprint_make(&net, &mesh, order, WL_GROUP(WL_TP), &group, NULL), CS_OK);
    assert_int_equal(sim_collective_phases(&net, &what, cache, &phases, NULL), CS_OK);
    for (size_t p = 0; p < phases.n; p++)
        bytes[phases.phase[p].dim] += phases.phase[p].bytes;
    assert_close(bytes[0], 7e6, 1e-12);
    assert_true(bytes[1] == 0);
    sim_route_cache_destroy(cache);
}

/* Baseline repeats the whole all-reduce on each dimension: 2 * 3/4 S/B twice on [4,4];
 * reduce-scatter and all-gather shrink and grow: 3/4 S/B + 3/16 S/B. */
static void test_several_dimensions(void **state)
{
    sim_network net = {.n_dims = 2, .chunks = 1, .multi_dim = SIM_BASELINE};

    (void)state;
    for (int i = 0; i < 2; i++)
        net.dim[i] = make_dim(SIM_RING, SIM_ALGO_RING, 4, 100, 0);
    sim_footprint group = sim_footprint_whole(&net);
    assert_close(seconds_of(&net, &group, WL_ALL_REDUCE, 1e9), 30e-3, 1e-9);
    assert_close(seconds_of(&net, &group, WL_REDUCE_SCATTER, 1e9), 9.375e-3, 1e-9);
    assert_close(seconds_of(&net, &group, WL_ALL_GATHER, 1e9), 9.375e-3, 1e-9);
    net.multi_dim = SIM_HIERARCHICAL;
    assert_close(seconds_of(&net, &group, WL_ALL_REDUCE, 1e9), 18.75e-3, 1e-9);
}

/* Over 4 GiB and over 2^31 ns: 1 TiB at 1 GB/s takes 2 * 7/8 * 1099.5 s. One NPU costs nothing. */
static void test_large_and_trivial_sizes(void **state)
{
    sim_dim dim = make_dim(SIM_RING, SIM_ALGO_RING, 8, 1, 0);

    (void)state;
    assert_close(seconds_on(dim, WL_ALL_REDUCE, 1024 * GIB), 1924.14534893, 1e-9);
    dim.n = 1;
    for (int type = 0; type < WL_N_COLLECTIVES; type++)
        assert_true(seconds_on(dim, (wl_collective)type, 1e9) == 0);
}

/* A switch of 2^20 NPUs: 7/8 becomes 1 - 2^-20; nothing is routed one by one. */
static void test_the_largest_dimension(void **state)
{
    (void)state;
    for (int t = 0; t < SIM_MESH; t++) {
        sim_dim dim = make_dim((sim_topology)t, SIM_ALGO_DIRECT, 1 << 20, 100, 0);
        sim_span span = {0, 1 << 20, 1};
        assert_close(seconds_on(dim, WL_ALL_TO_ALL, 1e9),
                     sim_collective_bound_s(&dim, &span, WL_ALL_TO_ALL, 1e9), 1e-9);
    }
}

static void test_what_cannot_run_is_refused_by_name(void **state)
{
    sim_network net = {.n_dims = 1, .chunks = 1};
    sim_route_cache *cache = sim_route_cache_create(0);
    sim_footprint group;
    sim_collective what = {&group, WL_ALL_REDUCE, 1e6, 0};
    sim_phases phases;
    cs_error err;

    (void)state;
    net.dim[0] = make_dim(SIM_SWITCH, SIM_ALGO_HALVING_DOUBLING, 6, 100, 0);
    group = sim_footprint_whole(&net);
    for (int type = 0; type < WL_N_COLLECTIVES; type++) {
        what.type = (wl_collective)type;
        assert_int_equal(sim_collective_phases(&net, &what, cache, &phases, &err), CS_EINVAL);
        assert_string_equal(err.text,
                            "halving_doubling needs a power of two, the group has 6 NPUs");
    }
    what = (sim_collective){&group, WL_ALL_REDUCE, NAN, 0};
    assert_int_equal(sim_collective_phases(&net, &what, cache, &phases, &err), CS_EINVAL);
    what = (sim_collective){&group, (wl_collective)77, 1e6, 0};
    assert_int_equal(sim_collective_phases(&net, &what, cache, &phases, &err), CS_EINVAL);
    what.type = WL_ALL_REDUCE;
    net.dim[0] = make_dim(SIM_MESH, SIM_ALGO_DIRECT, 1 << 20, 100, 0);
    group = sim_footprint_whole(&net);
    assert_int_equal(sim_collective_phases(&net, &what, cache, &phases, &err), CS_EINVAL);
    assert_string_equal(err.text,
                        "network: 1048576 of 1048576 NPUs on a line are too many to route");
    sim_route_cache_destroy(cache);
}

/* A cache that may keep next to nothing gives the same digits as one that keeps everything. */
static void test_a_small_cache_changes_nothing(void **state)
{
    sim_route_cache *small = sim_route_cache_create(1), *large = sim_route_cache_create(0);
    cs_error err;

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 64; i++) {
            sim_network net = {.n_dims = 1, .chunks = 1};
            sim_phases a, b;
            net.dim[0] =
                make_dim((sim_topology)(i % 4), (sim_algorithm)(i / 4 % 2), 3 + i % 13, 100, 500);
            sim_footprint group = sim_footprint_whole(&net);
            const sim_collective what = {&group, WL_ALL_TO_ALL, 1e6, 0};
            assert_int_equal(sim_collective_phases(&net, &what, small, &a, &err), CS_OK);
            assert_int_equal(sim_collective_phases(&net, &what, large, &b, &err), CS_OK);
            assert_true(a.phase[0].seconds == b.phase[0].seconds);
            assert_true(a.phase[0].bytes == b.phase[0].bytes);
        }
    }
    sim_route_cache_destroy(small);
    sim_route_cache_destroy(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_all_reduce_reaches_the_bandwidth),
        cmocka_unit_test(test_worked_times),
        cmocka_unit_test(test_double_binary_tree_of_three),
        cmocka_unit_test(test_two_npus),
        cmocka_unit_test(test_siblings_share_links),
        cmocka_unit_test(test_switch_properties),
        cmocka_unit_test(test_endpoints_and_reduction_cost),
        cmocka_unit_test(test_order_of_dimensions_matters),
        cmocka_unit_test(test_all_to_all_of_a_row_uses_no_column),
        cmocka_unit_test(test_several_dimensions),
        cmocka_unit_test(test_large_and_trivial_sizes),
        cmocka_unit_test(test_the_largest_dimension),
        cmocka_unit_test(test_what_cannot_run_is_refused_by_name),
        cmocka_unit_test(test_a_small_cache_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
