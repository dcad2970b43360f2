/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Model `contention` against the message-level oracle: every algorithm, collective and topology, at
 * 100 GB/s and 500 ns, within 1 %.  CS_ORACLE=full runs all sizes and pairs (about a minute) and
 * lists those that are further away.
 *
 * Those are lines (meshes, parts of rings) where latency and serialization are of one size, 1 MB:
 * NPUs then end a pass at different times and start the next one early, which the sum of rounds
 * does not count.  The model is mostly the slower one there, by at most what OFF_* say. */
#include "tests/oracle_collective.h"
#include "tests/sim_network_test.h"

#define WITHIN       0.01
#define OFF_LINE     0.04 /* one dimension: ring all-reduce, halving-doubling over 16 */
#define OFF_IN_TURN  0.11 /* two dimensions: one phase of NPUs of a mesh runs into the next */
#define OFF_FLAT     0.15 /* flat rings over groups that are no product: reduce-scatter */
#define FIFO_AT_MOST 0.09 /* links that serve the oldest packet first instead */

static const double sizes[] = {1e3, 1e6, 1e9};

static bool full_run(void)
{
    const char *mode = getenv("CS_ORACLE");

    return mode != NULL && strcmp(mode, "full") == 0;
}

/* How many sizes a short run takes of a test that has many pairs: 1 GB is 16 times the packets. */
static size_t n_sizes(void)
{
    return full_run() ? 3 : 2;
}

static bool is_line(const sim_network *net, const sim_footprint *group)
{
    for (size_t i = 0; i < group->n_spans; i++) {
        const sim_dim *d = &net->dim[group->span[i].dim];
        bool part = d->n != group->span[i].n * group->span[i].stride;
        if (d->topology == SIM_MESH || (d->topology == SIM_RING && part))
            return group->span[i].n > 2;
    }
    return false;
}

static double tolerance(const sim_network *net, const sim_footprint *group, wl_collective type,
                        double bytes)
{
    int32_t algorithm = net->dim[0].algorithm;

    if (bytes != 1e6 || !is_line(net, group))
        return WITHIN;
    if (group->n_spans > 1)
        return type == WL_ALL_REDUCE ? OFF_IN_TURN : WITHIN;
    if (algorithm == SIM_ALGO_RING && (type == WL_ALL_REDUCE || group->span[0].stride > 1))
        return OFF_LINE;
    if (algorithm == SIM_ALGO_HALVING_DOUBLING && type != WL_ALL_TO_ALL &&
        (group->n == 16 || group->span[0].stride > 1))
        return OFF_LINE;
    return WITHIN;
}

static void describe(char text[160], const sim_network *net, const sim_footprint *group,
                     wl_collective type, double bytes)
{
    int used = snprintf(text, 160, "%s", wl_collective_names[type]);

    for (size_t i = 0; i < group->n_spans; i++) {
        const sim_dim *d = &net->dim[group->span[i].dim];
        used += snprintf(text + used, (size_t)(160 - used), " %s on %s %d/%d stride %d",
                         sim_algorithm_names[d->algorithm], sim_topology_names[d->topology],
                         (int)group->span[i].n, (int)d->n, (int)group->span[i].stride);
    }
    snprintf(text + used, (size_t)(160 - used), "%s, %g B",
             net->multi_dim == SIM_HIERARCHICAL ? " hierarchical" : "", bytes);
}

/* Compares one collective; counts it. */
static void compare(const sim_network *net, const sim_footprint *group, wl_collective type,
                    double bytes, int *n_compared)
{
    double model = seconds_of(net, group, type, bytes);
    double expect = oracle_collective_s(net, group, type, bytes, ORACLE_URGENT, NULL);
    double off = model / expect - 1;
    char text[160];

    ++*n_compared;
    describe(text, net, group, type, bytes);
    if (!(fabs(off) <= tolerance(net, group, type, bytes)))
        fail_msg("%s: model %.4f us, oracle %.4f us, %+.2f %%", text, model * 1e6, expect * 1e6,
                 100 * off);
    if (full_run() && fabs(off) > WITHIN)
        print_message("%+6.2f %%  %s\n", 100 * off, text);
}

static bool defined(sim_algorithm algorithm, wl_collective type, int64_t n)
{
    if (algorithm == SIM_ALGO_DOUBLE_BINARY_TREE && type == WL_ALL_REDUCE)
        return false; /* its formula is tested in sim_collective.c */
    return algorithm != SIM_ALGO_HALVING_DOUBLING || (n & (n - 1)) == 0;
}

static void compare_group(const sim_dim *dim, const sim_footprint *group, size_t n, int *n_compared)
{
    sim_network net = {.n_dims = 1, .chunks = 1, .dim = {*dim}};

    for (int type = WL_ALL_REDUCE; type <= WL_ALL_TO_ALL; type++)
        for (size_t s = 0; s < n; s++)
            if (defined((sim_algorithm)dim->algorithm, (wl_collective)type, group->n))
                compare(&net, group, (wl_collective)type, sizes[s], n_compared);
}

static void test_every_pair_on_one_dimension(void **state)
{
    static const int64_t n[] = {2, 3, 4, 5, 6, 8, 12, 16};
    int n_compared = 0;

    (void)state;
    for (int t = 0; t < SIM_N_TOPOLOGIES; t++)
        for (int a = 0; a < SIM_N_ALGOS; a++)
            for (size_t i = 0; i < 8; i++) {
                sim_footprint group = make_span(0, n[i], 1);
                sim_dim dim = make_dim((sim_topology)t, (sim_algorithm)a, n[i], 100, 500);
                if (n[i] > 8 && !full_run())
                    continue;
                compare_group(&dim, &group, n[i] < 6 ? 3 : n_sizes(), &n_compared);
            }
    print_message("%d collectives compared\n", n_compared);
}

/* Parts of a dimension with all their siblings: {N, n, stride}. */
static void test_parts_of_a_dimension(void **state)
{
    static const int64_t parts[][3] = {{8, 4, 1},  {8, 4, 2},  {8, 2, 4},  {8, 2, 1},  {12, 3, 2},
                                       {12, 6, 1}, {12, 2, 3}, {16, 4, 1}, {16, 4, 4}, {16, 8, 2},
                                       {16, 8, 1}, {12, 6, 2}, {12, 3, 4}, {16, 4, 2}};
    int n_compared = 0;

    (void)state;
    for (int t = 0; t < SIM_N_TOPOLOGIES; t++)
        for (int a = 0; a < SIM_ALGO_DOUBLE_BINARY_TREE; a++)
            for (size_t i = 0; i < (full_run() ? 14 : 5); i++) {
                sim_footprint group = make_span(0, parts[i][1], parts[i][2]);
                sim_dim dim = make_dim((sim_topology)t, (sim_algorithm)a, parts[i][0], 100, 500);
                compare_group(&dim, &group, n_sizes(), &n_compared);
            }
    print_message("%d collectives compared\n", n_compared);
}

static void compare_grid(const sim_dim dim[2], int *n_compared)
{
    for (int variant = 0; variant < 5; variant++) {
        sim_network net = {.n_dims = 2, .chunks = 1, .dim = {dim[0], dim[1]}};
        wl_collective type = variant == 4 ? WL_ALL_REDUCE : (wl_collective)variant;
        sim_footprint group = sim_footprint_whole(&net);
        net.multi_dim = variant == 4 ? SIM_HIERARCHICAL : SIM_BASELINE;
        for (size_t s = 0; s < n_sizes(); s++)
            compare(&net, &group, type, sizes[s], n_compared);
    }
}

/* [8,4]; in short, each algorithm with itself and each topology with the next one. */
static void test_two_dimensions(void **state)
{
    int n_compared = 0;

    (void)state;
    for (int pair = 0; pair < 16 * 9; pair++) {
        int t0 = pair % 4, t1 = pair / 4 % 4, a0 = pair / 16 % 3, a1 = pair / 48;
        const sim_dim dim[2] = {make_dim((sim_topology)t0, (sim_algorithm)a0, 8, 100, 500),
                                make_dim((sim_topology)t1, (sim_algorithm)a1, 4, 100, 500)};
        if (!full_run() && (t1 != (t0 + 1) % 4 || a0 != a1))
            continue;
        compare_grid(dim, &n_compared);
    }
    print_message("%d collectives compared\n", n_compared);
}

/* Nothing moves where the model says that nothing does, and where it does the same bytes: an
 * all-gather over [8,4] with rings sends (n-1)/n of what a dimension gathers, over one hop. */
static void test_bytes_of_each_dimension(void **state)
{
    sim_network net = {.n_dims = 2, .chunks = 1};
    sim_footprint both, row = make_span(0, 8, 1);
    double moved[SIM_MAX_DIMS];

    (void)state;
    net.dim[0] = make_dim(SIM_RING, SIM_ALGO_RING, 8, 100, 500);
    net.dim[1] = make_dim(SIM_RING, SIM_ALGO_RING, 4, 100, 500);
    both = sim_footprint_whole(&net);
    oracle_collective_s(&net, &both, WL_ALL_GATHER, 32e6, ORACLE_URGENT, moved);
    assert_close(moved[0], 32 * 28e6, 1e-9);
    assert_close(moved[1], 32 * 3e6, 1e-9);
    oracle_collective_s(&net, &row, WL_ALL_TO_ALL, 8e6, ORACLE_URGENT, moved);
    assert_true(moved[0] > 0 && moved[1] == 0);
}

/* The oversubscribed fabric as a link of its own. */
static void test_oversubscribed_switches(void **state)
{
    int n_compared = 0;

    (void)state;
    for (int a = 0; a < SIM_ALGO_DOUBLE_BINARY_TREE; a++)
        for (double over = 1; over <= 4; over *= 2) {
            sim_network net = {.n_dims = 1, .chunks = 1};
            sim_footprint group = make_span(0, 8, 1);
            net.dim[0] = make_dim(SIM_SWITCH, (sim_algorithm)a, 8, 100, 500);
            net.dim[0].oversubscription = over;
            for (int type = WL_ALL_REDUCE; type <= WL_ALL_TO_ALL; type++)
                compare(&net, &group, (wl_collective)type, 1e9, &n_compared);
        }
}

/* How links choose among messages does not decide the result. */
static void test_first_come_first_served_is_near(void **state)
{
    (void)state;
    for (int t = 0; t < SIM_N_TOPOLOGIES; t++)
        for (int a = 0; a < SIM_ALGO_DOUBLE_BINARY_TREE; a++)
            for (int type = WL_ALL_REDUCE; type <= WL_ALL_TO_ALL; type++) {
                sim_network net = {.n_dims = 1, .chunks = 1};
                sim_footprint group = make_span(0, 8, 1);
                net.dim[0] = make_dim((sim_topology)t, (sim_algorithm)a, 8, 100, 500);
                for (size_t s = 0; s < n_sizes(); s++)
                    assert_close(seconds_of(&net, &group, (wl_collective)type, sizes[s]),
                                 oracle_collective_s(&net, &group, (wl_collective)type, sizes[s],
                                                     ORACLE_FIFO, NULL),
                                 FIFO_AT_MOST);
            }
}

/* Groups that are no product: tp 4 on [6,4] crosses columns.  Irregular rings are modelled as one
 * walk around; all-to-alls by neighbours are too irregular to compare. */
static void test_flat_rings(void **state)
{
    int32_t order;

    (void)state;
    assert_int_equal(sim_order_parse("tp sp ep dp pp", &order, NULL), CS_OK);
    for (int t = 0; t < SIM_N_TOPOLOGIES; t++) {
        sim_network net = {.n_dims = 2, .chunks = 1};
        sim_mesh mesh = {{4, 2, 1, 3, 1}};
        sim_footprint group;
        net.dim[0] = make_dim((sim_topology)t, SIM_ALGO_RING, 6, 100, 500);
        net.dim[1] = make_dim(SIM_RING, SIM_ALGO_RING, 4, 100, 500);
        assert_int_equal(sim_footprint_make(&net, &mesh, order, WL_GROUP(WL_TP), &group, NULL),
                         CS_OK);
        assert_true(group.routed);
        for (size_t s = 0; s < 3; s++)
            assert_close(
                seconds_of(&net, &group, WL_REDUCE_SCATTER, sizes[s]),
                oracle_collective_s(&net, &group, WL_REDUCE_SCATTER, sizes[s], ORACLE_URGENT, NULL),
                OFF_FLAT);
    }
}

/* Boundaries on one dimension, with pipelines of {tp, pp} on {N}: within 1 %.  Over two dimensions
 * the model takes one after the other, the oracle cuts through: it is the quicker one, by no more
 * than the shorter phase. */
static void test_boundaries(void **state)
{
    static const int64_t cases[][4] = {{8, 1, 1, 8}, {8, 1, 2, 4}, {8, 1, 4, 2}, {8, 1, 2, 2},
                                       {4, 4, 2, 8}, {4, 4, 1, 8}, {6, 4, 4, 6}};
    sim_route_cache *cache = sim_route_cache_create(0);
    int32_t order;

    (void)state;
    assert_int_equal(sim_order_parse("tp sp ep dp pp", &order, NULL), CS_OK);
    for (size_t i = 0; i < 4 * sizeof cases / sizeof *cases; i++) {
        const int64_t *c = cases[i / 4];
        sim_network net = {.n_dims = 2};
        sim_mesh mesh = {{c[2], 1, 1, 1, c[3]}};
        net.dim[0] = make_dim((sim_topology)(i % 4), SIM_ALGO_RING, c[0], 100, 500);
        net.dim[1] = make_dim(SIM_RING, SIM_ALGO_RING, c[1], 100, 500);
        for (int trial = 0; trial < 4; trial++) {
            const sim_boundary what = {&mesh, order, sizes[trial / 2], trial % 2 == 1};
            double model = 0, most = 0, expect = oracle_boundary_s(&net, &what, ORACLE_URGENT);
            sim_phases phases;
            assert_int_equal(sim_boundary_phases(&net, &what, cache, &phases, NULL), CS_OK);
            for (size_t p = 0; p < phases.n; p++) {
                model += phases.phase[p].seconds;
                most = fmax(most, phases.phase[p].seconds);
            }
            if (phases.n == 1)
                assert_close(model, expect, WITHIN);
            assert_true(expect <= model * (1 + WITHIN) && expect >= most * (1 - WITHIN));
        }
    }
    sim_route_cache_destroy(cache);
}

/* The oracle itself: a message of 1 MB over two links of 1 GB/s and 10 us is serialized once, 20 us
 * + 1 ms; two of them share the first link; a slow second link decides; a join waits for both; a
 * circle of waits never ends. */
static void test_the_oracle(void **state)
{
    oracle *o = oracle_create(4096, ORACLE_URGENT);
    int a = oracle_link(o, 1e9, 10e-6), b = oracle_link(o, 1e9, 10e-6);
    int slow = oracle_link(o, 1e8, 10e-6);
    int one = oracle_task(o, 1e6, (int[]){a, b}, 2), two, three, join;

    (void)state;
    assert_true(isnan(oracle_arrival(o, one)));
    two = oracle_task(o, 1e6, (int[]){a}, 1);
    three = oracle_task(o, 1e6, (int[]){b, slow}, 2);
    join = oracle_task(o, 0, NULL, 0);
    oracle_after(o, three, one, false);
    oracle_after(o, join, two, false);
    oracle_after(o, join, three, false);
    assert_close(oracle_run(o), 2.02e-3 + 10.02e-3, 1e-2);
    assert_close(oracle_arrival(o, two), 2.01e-3, 1e-2);
    assert_close(oracle_arrival(o, three) - oracle_arrival(o, one), 10.02e-3, 1e-3);
    assert_true(oracle_arrival(o, join) == oracle_arrival(o, three));
    assert_close(oracle_link_bytes(o, a), 2e6, 1e-12);
    oracle_destroy(o);

    o = oracle_create(4096, ORACLE_FIFO);
    a = oracle_link(o, 1e9, 0);
    one = oracle_task(o, 1, &a, 1);
    two = oracle_task(o, 1, &a, 1);
    oracle_after(o, one, two, false);
    oracle_after(o, two, one, false);
    assert_true(isnan(oracle_run(o)));
    oracle_destroy(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_oracle),
        cmocka_unit_test(test_every_pair_on_one_dimension),
        cmocka_unit_test(test_parts_of_a_dimension),
        cmocka_unit_test(test_two_dimensions),
        cmocka_unit_test(test_bytes_of_each_dimension),
        cmocka_unit_test(test_oversubscribed_switches),
        cmocka_unit_test(test_first_come_first_served_is_near),
        cmocka_unit_test(test_flat_rings),
        cmocka_unit_test(test_boundaries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
