/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Cluster engine under model contention: collectives on the dimensions of their members, messages
 * on single links.  1 B/ns = 1e9 B/s. */
#include "tests/sim_cluster_build.h"

#include <stdlib.h>
#include <unistd.h>

#include "sim/cluster_private.h"

#define TACOS "../shared/reference/chakra/tacos/"

static sim_network network_of(int32_t topology, int64_t n, double bytes_per_ns, double latency_ns)
{
    return (sim_network){.n_dims = 1,
                         .dim = {{.topology = topology,
                                  .n = n,
                                  .bandwidth_bytes_per_s = bytes_per_ns * 1e9,
                                  .latency_s = latency_ns * 1e-9,
                                  .oversubscription = 1}},
                         .multi_dim = SIM_HIERARCHICAL,
                         .chunks = 1};
}

static void run_on(const sim_network *net, bool streams, const spec *specs, size_t n,
                   uint32_t ranks, sim_cluster_result *out)
{
    built b;
    const sim_cluster_options options = {.network = net, .streams_by_dimension = streams};
    cs_error err;

    if (sim_cluster_run(build(&b, specs, n, ranks), &options, out, &err) != CS_OK)
        fail_msg("%s", err.text);
}

/* 1,000 bytes with egress 2 B/ns and 100 ns a hop.  Ring of 4: links of 1 B/ns, to the neighbour
 * 100 + 1000; to the opposite node half each way, 2 * 100 + 500.  Switch: 2 hops, serialized once
 * at 2 B/ns.  Fully connected: links of 2/3 B/ns.  Mesh: from end to end, 3 hops cut-through. */
static void test_one_message_takes_its_links(void **state)
{
    static const struct {
        int32_t topology;
        int32_t to;
        int64_t ns;
    } cases[] = {{SIM_RING, 1, 1100},
                 {SIM_RING, 3, 1100},
                 {SIM_RING, 2, 700},
                 {SIM_SWITCH, 2, 700},
                 {SIM_FULLY_CONNECTED, 2, 1600},
                 {SIM_MESH, 3, 1300}};

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        const sim_network net = network_of(cases[i].topology, 4, 2, 100);
        spec specs[] = {{SEND(0, 1, cases[i].to, 1000, 1)},
                        {RECV((uint32_t)cases[i].to, 1, 0, 1000, 1)}};
        sim_cluster_result r;
        run_on(&net, true, specs, CS_COUNT(specs), 4, &r);
        assert_int_equal(r.max_ns, cases[i].ns);
        sim_cluster_result_fini(&r);
    }
}

/* Two messages over one link: the second waits, 100 + 2 * 1000; over two links they do not. */
static void test_messages_wait_for_their_link(void **state)
{
    static const spec same[] = {{SEND(0, 1, 1, 1000, 1)},
                                {SEND(0, 2, 1, 1000, 2)},
                                {RECV(1, 1, 0, 1000, 1)},
                                {RECV(1, 2, 0, 1000, 2)}};
    static const spec apart[] = {{SEND(0, 1, 1, 1000, 1)},
                                 {SEND(0, 2, 3, 1000, 2)},
                                 {RECV(1, 1, 0, 1000, 1)},
                                 {RECV(3, 2, 0, 1000, 2)}};
    const sim_network net = network_of(SIM_RING, 4, 2, 100);
    sim_cluster_result r;

    (void)state;
    run_on(&net, true, same, CS_COUNT(same), 4, &r);
    assert_int_equal(r.max_ns, 2100);
    sim_cluster_result_fini(&r);
    run_on(&net, true, apart, CS_COUNT(apart), 4, &r);
    assert_int_equal(r.max_ns, 1100);
    sim_cluster_result_fini(&r);
    run_on(&net, false, apart, CS_COUNT(apart), 4, &r); /* one place for communication */
    assert_int_equal(r.max_ns, 2200);
    sim_cluster_result_fini(&r);
}

/* Alone, a collective of any kind over [2, 2] takes what the collective model says. */
static void test_a_collective_alone_equals_its_model(void **state)
{
    static const struct {
        uint8_t comm;
        wl_collective type;
        double whole; /* of the tensor, by the bytes of the node */
    } kinds[] = {{WL_CHAKRA_ALL_REDUCE, WL_ALL_REDUCE, 1},
                 {WL_CHAKRA_ALL_GATHER, WL_ALL_GATHER, 4},
                 {WL_CHAKRA_REDUCE_SCATTER, WL_REDUCE_SCATTER, 1},
                 {WL_CHAKRA_ALL_TO_ALL, WL_ALL_TO_ALL, 1},
                 {WL_CHAKRA_BROADCAST, WL_BROADCAST, 1}};
    sim_network net = network_of(SIM_RING, 2, 2, 100);
    sim_route_cache *cache = sim_route_cache_create(1 << 20);

    (void)state;
    net.n_dims = 2;
    net.dim[1] = net.dim[0];
    net.dim[1].topology = SIM_SWITCH;
    net.chunks = 3;
    for (size_t i = 0; i < CS_COUNT(kinds); i++) {
        const sim_footprint whole = sim_footprint_whole(&net);
        spec specs[4];
        sim_phases phases;
        sim_cluster_result r;
        for (uint32_t k = 0; k < 4; k++)
            specs[k] = (spec){REDUCE(k, 1, 0, 60000), .comm = kinds[i].comm};
        run_on(&net, true, specs, 4, 4, &r);
        const sim_collective what = {&whole, kinds[i].type, 60000 * kinds[i].whole, 0};
        assert_int_equal(sim_collective_phases(&net, &what, cache, &phases, NULL), CS_OK);
        assert_int_equal(r.max_ns, sim_collective_isolated_ps(&phases, net.chunks) / 1000);
        sim_cluster_result_fini(&r);
    }
    sim_route_cache_destroy(cache);
}

/* Groups {0, 1} and {2, 3} of a ring of 4 do not share a dimension of a rank; two collectives of
 * one group do: they take twice as long as one. */
static void test_collectives_share_the_dimensions_of_their_ranks(void **state)
{
    static const spec one[] = {{REDUCE(0, 1, 1, 1000)}, {REDUCE(1, 1, 1, 1000)}};
    static const spec apart[] = {{REDUCE(0, 1, 1, 1000)},
                                 {REDUCE(1, 1, 1, 1000)},
                                 {REDUCE(2, 1, 2, 1000)},
                                 {REDUCE(3, 1, 2, 1000)}};
    static const spec twice[] = {{REDUCE(0, 1, 1, 1000)},
                                 {REDUCE(0, 2, 1, 1000)},
                                 {REDUCE(1, 1, 1, 1000)},
                                 {REDUCE(1, 2, 1, 1000)}};
    const sim_network net = network_of(SIM_RING, 4, 2, 0);
    sim_cluster_result a, b, c;

    (void)state;
    run_on(&net, true, one, CS_COUNT(one), 4, &a);
    run_on(&net, true, apart, CS_COUNT(apart), 4, &b);
    run_on(&net, true, twice, CS_COUNT(twice), 4, &c);
    assert_true(a.max_ns > 0);
    assert_int_equal(b.max_ns, a.max_ns);
    assert_int_equal(c.max_ns, 2 * a.max_ns);
    sim_cluster_result_fini(&a);
    sim_cluster_result_fini(&b);
    sim_cluster_result_fini(&c);
}

/* As streams, collectives of a group are matched in the order of their ids, not of their issue:
 * rank 1 can issue its second one first. */
static void test_streams_match_collectives_by_id(void **state)
{
    static const spec specs[] = {{REDUCE(0, 1, 1, 1000)},
                                 {REDUCE(0, 2, 1, 2000)},
                                 {COMP(1, 1, 50)},
                                 {REDUCE(1, 2, 1, 1000), .n_deps = 1, .dep = {2}},
                                 {REDUCE(1, 3, 1, 2000)}};
    const sim_network net = network_of(SIM_RING, 2, 2, 0);
    sim_cluster_result r;

    (void)state;
    run_on(&net, true, specs, CS_COUNT(specs), 2, &r);
    /* egress 2 B/ns and both halves of the data: 2000 / 2 = 1,000 from 0 on, then 1000 / 2 */
    assert_int_equal(r.max_ns, 1500);
    sim_cluster_result_fini(&r);
}

/* Messages and collectives of an NPU take turns in a dimension.  All-reduce of 1000 bytes over 2
 * NPUs, one link of 2 B/ns: 2 * 500 / 2 = 500 ns; a message of 1000 bytes takes 500.  Issued after
 * the collective it ends at 1,000, issued before it at 500 and the collective at 1,000. */
static void test_messages_and_collectives_take_turns(void **state)
{
    static const spec after[] = {{REDUCE(0, 1, 0, 1000)},
                                 {SEND(0, 2, 1, 1000, 1)},
                                 {REDUCE(1, 1, 0, 1000)},
                                 {RECV(1, 2, 0, 1000, 1)}};
    static const spec before[] = {{SEND(0, 1, 1, 1000, 1)},
                                  {REDUCE(0, 2, 0, 1000)},
                                  {RECV(1, 1, 0, 1000, 1)},
                                  {COMP(1, 2, 1)},
                                  {REDUCE(1, 3, 0, 1000), .n_deps = 1, .dep = {3}},
                                  {COMP(1, 4, 100), .n_deps = 1, .dep = {2}}};
    const sim_network net = network_of(SIM_RING, 2, 2, 0);
    sim_cluster_result r;

    (void)state;
    run_on(&net, true, after, CS_COUNT(after), 2, &r);
    assert_int_equal(r.rank[0].total_ns, 1000);
    sim_cluster_result_fini(&r);
    run_on(&net, true, before, CS_COUNT(before), 2, &r);
    assert_int_equal(r.max_ns, 1000);
    assert_int_equal(r.rank[1].compute_ns, 101);
    sim_cluster_result_fini(&r);
}

/* A node may say its own number of chunks: over [2, 2] one chunk of an all-reduce takes its three
 * phases one after the other, 4 chunks overlap them. */
static void test_a_collective_may_say_its_chunks(void **state)
{
    sim_network net = network_of(SIM_RING, 2, 2, 0);
    spec specs[4];
    built b;
    int64_t ns[2];

    (void)state;
    net.n_dims = 2;
    net.dim[1] = net.dim[0];
    for (uint32_t k = 0; k < 4; k++)
        specs[k] = (spec){REDUCE(k, 1, 0, 64000)};
    for (int i = 0; i < 2; i++) {
        const sim_cluster_options options = {.network = &net, .streams_by_dimension = true};
        sim_cluster_result r;
        (void)build(&b, specs, 4, 4);
        for (size_t k = 0; k < 4; k++)
            b.node[k].splits = i == 0 ? 0 : 4;
        assert_int_equal(sim_cluster_run(&b.trace, &options, &r, NULL), CS_OK);
        ns[i] = r.max_ns;
        sim_cluster_result_fini(&r);
    }
    /* RS and AG of 32,000 bytes, AR of the half on dimension 2: 16,000 + 16,000 + 16,000 */
    assert_int_equal(ns[0], 48000);
    /* dimension 1 serves 8 phases of 4,000; the first all-reduce ends at 8,000, in time */
    assert_int_equal(ns[1], 32000);
}

/* The link from 0 to 1 at half its bandwidth: 1000 bytes take 100 + 2000 instead of 100 + 1000, the
 * way back stays as it was.  Background traffic of 0.5 B/ns leaves half of it too. */
static void test_a_degraded_link_slows_what_crosses_it(void **state)
{
    static const sim_cluster_link links[] = {{0, 1, 0.5, 0}, {0, 1, 1, 0.5e9}};
    static const spec there[] = {{SEND(0, 1, 1, 1000, 1)}, {RECV(1, 1, 0, 1000, 1)}};
    static const spec back[] = {{RECV(0, 1, 1, 1000, 1)}, {SEND(1, 1, 0, 1000, 1)}};
    static const spec reduce[] = {{REDUCE(0, 1, 0, 1000)},
                                  {REDUCE(1, 1, 0, 1000)},
                                  {REDUCE(2, 1, 0, 1000)},
                                  {REDUCE(3, 1, 0, 1000)}};
    const sim_network net = network_of(SIM_RING, 4, 2, 100);
    sim_cluster_result whole, r;
    built b;

    (void)state;
    run_on(&net, true, reduce, CS_COUNT(reduce), 4, &whole);
    for (size_t i = 0; i < CS_COUNT(links); i++) {
        const sim_cluster_options options = {
            .network = &net, .streams_by_dimension = true, .link = &links[i], .n_links = 1};
        assert_int_equal(sim_cluster_run(build(&b, there, 2, 4), &options, &r, NULL), CS_OK);
        assert_int_equal(r.max_ns, 2100);
        sim_cluster_result_fini(&r);
        assert_int_equal(sim_cluster_run(build(&b, back, 2, 4), &options, &r, NULL), CS_OK);
        assert_int_equal(r.max_ns, 1100);
        sim_cluster_result_fini(&r);
        assert_int_equal(sim_cluster_run(build(&b, reduce, 4, 4), &options, &r, NULL), CS_OK);
        assert_int_equal(r.max_ns, 2 * whole.max_ns);
        sim_cluster_result_fini(&r);
    }
    sim_cluster_result_fini(&whole);
}

static void test_links_that_are_not_there_are_refused(void **state)
{
    static const struct {
        sim_cluster_link link;
        const char *message;
    } cases[] = {{{0, 2, 0.5, 0}, "NPUs 0 and 2 are not next to each other"},
                 {{0, 4, 0.5, 0}, "no link from NPU 0 to 4 of 4"},
                 {{0, 1, 0, 0}, "above 0 and at most 1"},
                 {{0, 1, 1, 1e9}, "nothing is left of the link from NPU 0 to 1"}};
    static const spec specs[] = {{COMP(0, 1, 1)}};
    const sim_network net = network_of(SIM_RING, 4, 2, 100);

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        const sim_cluster_options options = {.network = &net, .link = &cases[i].link, .n_links = 1};
        sim_cluster_result r;
        built b;
        cs_error err;
        assert_int_equal(sim_cluster_run(build(&b, specs, 1, 4), &options, &r, &err), CS_EINVAL);
        if (strstr(err.text, cases[i].message) == NULL)
            fail_msg("case %zu: %s", i, err.text);
        sim_cluster_result_fini(&r);
    }
}

static void test_lists_of_ranks_are_seen_as_products(void **state)
{
    static const struct {
        uint32_t n;
        int64_t rank[8];
        bool product;
        size_t n_spans;
        sim_span span[3];
    } cases[] = {
        {4, {0, 1, 2, 3}, true, 1, {{0, 4, 1}}},
        {2, {1, 3}, true, 1, {{0, 2, 2}}},
        {4, {0, 4, 8, 12}, true, 1, {{1, 4, 1}}},
        {4, {5, 7, 13, 15}, true, 2, {{0, 2, 2}, {1, 2, 2}}},
        {4, {8, 0, 10, 2}, true, 2, {{0, 2, 2}, {1, 2, 2}}},
        {3, {0, 1, 3}, false, 0, {{0, 0, 0}}},
        {4, {0, 1, 4, 6}, false, 0, {{0, 0, 0}}},
        {2, {0, 5}, true, 2, {{0, 2, 1}, {1, 2, 1}}},
        {2, {0, 3}, true, 1, {{0, 2, 1}}},
    };
    sim_network net = network_of(SIM_RING, 4, 2, 0);

    (void)state;
    net.n_dims = 2;
    net.dim[1] = net.dim[0];
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        sim_footprint f;
        assert_int_equal(sim__footprint_of_ranks(&net, cases[i].rank, cases[i].n, &f),
                         cases[i].product);
        if (!cases[i].product)
            continue;
        assert_int_equal(f.n, cases[i].n);
        assert_int_equal(f.n_spans, cases[i].n_spans);
        for (size_t k = 0; k < f.n_spans; k++) {
            assert_int_equal(f.span[k].dim, cases[i].span[k].dim);
            assert_int_equal(f.span[k].n, cases[i].span[k].n);
            assert_int_equal(f.span[k].stride, cases[i].span[k].stride);
        }
    }
}

/* The time of a synthesized schedule, its messages `scale` times as large, on a square mesh. */
static int64_t schedule_ns(const char *prefix, int64_t side, double link_gib_per_s, int64_t scale)
{
    sim_network net = network_of(SIM_MESH, side, 2 * link_gib_per_s * 1.073741824, 500);
    const wl_trace_options load = {.ctrl = WL_CTRL_AUTO};
    const sim_cluster_options options = {.network = &net, .streams_by_dimension = true};
    wl_trace *trace = NULL, scaled;
    wl_trace_node *node;
    sim_cluster_result r;
    cs_error err;
    int64_t ns;

    net.n_dims = 2;
    net.dim[1] = net.dim[0];
    if (wl_trace_load(prefix, &load, &trace, &err) != CS_OK)
        fail_msg("%s", err.text);
    scaled = *trace;
    node = malloc(trace->n_nodes * sizeof *node);
    assert_non_null(node);
    memcpy(node, trace->node, trace->n_nodes * sizeof *node);
    for (uint32_t i = 0; i < trace->n_nodes; i++)
        node[i].comm_size *= scale;
    scaled.node = node;
    assert_int_equal(sim_cluster_run(&scaled, &options, &r, NULL), CS_OK);
    ns = r.max_ns;
    sim_cluster_result_fini(&r);
    free(node);
    wl_trace_destroy(trace);
    return ns;
}

/* Synthesized all-gathers on meshes, 0.5 us a link.  4x4: 8 steps of 0.5 + 1 MiB / 50 GiB/s =
 * 20.03125 us, 160.25 us in all, as its log says.  The 629.0 us of the published table are 64 MiB,
 * so 8 steps of 4 MiB; or the file's 1 MiB on links of a quarter, 50 GiB/s an NPU over its four
 * links.  3x3 with two chunks: 4 steps of 1 MiB and a half, 82.125 us. */
static void test_synthesized_schedules_run_as_planned(void **state)
{
    static const struct {
        const char *prefix;
        int64_t side;
        double link_gib_per_s;
        int64_t scale, ns;
    } cases[] = {{TACOS "mesh_4x4_c1", 4, 50, 1, 160250},
                 {TACOS "mesh_4x4_c1", 4, 50, 4, 629000},
                 {TACOS "mesh_4x4_c1", 4, 12.5, 1, 629000},
                 {TACOS "mesh_3x3_c2", 3, 50, 1, 82125}};

    (void)state;
    if (access(TACOS, R_OK) != 0) {
        print_message("skipped: %zu schedules of " TACOS "\n", CS_COUNT(cases));
        skip();
    }
    for (size_t i = 0; i < CS_COUNT(cases); i++)
        assert_int_equal(
            schedule_ns(cases[i].prefix, cases[i].side, cases[i].link_gib_per_s, cases[i].scale),
            cases[i].ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_message_takes_its_links),
        cmocka_unit_test(test_messages_wait_for_their_link),
        cmocka_unit_test(test_a_collective_alone_equals_its_model),
        cmocka_unit_test(test_collectives_share_the_dimensions_of_their_ranks),
        cmocka_unit_test(test_streams_match_collectives_by_id),
        cmocka_unit_test(test_messages_and_collectives_take_turns),
        cmocka_unit_test(test_a_collective_may_say_its_chunks),
        cmocka_unit_test(test_a_degraded_link_slows_what_crosses_it),
        cmocka_unit_test(test_links_that_are_not_there_are_refused),
        cmocka_unit_test(test_lists_of_ranks_are_seen_as_products),
        cmocka_unit_test(test_synthesized_schedules_run_as_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
