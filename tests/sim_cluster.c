/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Cluster engine: small traces with the arithmetic beside them, what cannot finish, and ASTRA-sim's
 * own end-to-end results (../shared, skipped when it is not there).
 *
 * The small machines are rings of 1 B/ns links (1e9 / 2^30 "GB/s") without latency. */
#include "tests/sim_cluster_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SHARED "../shared/reference/"

static sim_astra ring_of(int64_t n)
{
    sim_astra astra = {.network = {1, n, {{SIM_RING, n, 1e9 / 1073741824.0, 0}}},
                       .system = {.n_algorithms = {1, 1, 1, 1},
                                  .splits = 1,
                                  .active_chunks = 1,
                                  .queues_per_dim = 1,
                                  .endpoint_delay_ns = 10}};
    return astra;
}

static cs_status run_specs(const spec *specs, size_t n, uint32_t ranks, sim_astra_backend backend,
                           sim_cluster_result *out, cs_error *err)
{
    built b;
    const sim_astra astra = ring_of(ranks);
    const sim_cluster_options options = {.astra = &astra, .backend = backend};

    return sim_cluster_run(build(&b, specs, n, ranks), &options, out, err);
}

#define RUN(specs, ranks, out, err)                                                                \
    run_specs(specs, CS_COUNT(specs), ranks, SIM_ASTRA_UNAWARE, out, err)

/* An all-reduce of 200 bytes over 2 NPUs, each sending twice: 10 + 2 (100 + 10) = 230 ns.  Rank 1
 * comes 40 ns late.  Its first message reaches rank 0 at 40 + 10 + 100 = 150, rank 0's second
 * leaves at 160 and reaches rank 1 at 260, which ends at 270; rank 1's second left at 120, so rank
 * 0 ends at 230.  Rank 0 computes 50 ns beside the collective and 100 ns after it: 330. */
static void test_compute_and_communication_overlap(void **state)
{
    static const spec specs[] = {{REDUCE(0, 1, 0, 200)},
                                 {COMP(0, 2, 50)},
                                 {COMP(0, 3, 100), .n_deps = 1, .dep = {0}},
                                 {COMP(1, 1, 40)},
                                 {REDUCE(1, 2, 0, 200), .n_deps = 1, .dep = {3}}};
    sim_cluster_result r;

    (void)state;
    assert_int_equal(RUN(specs, 2, &r, NULL), CS_OK);
    assert_int_equal(r.rank[1].total_ns, 270);
    assert_int_equal(r.max_ns, 330);
    assert_int_equal(r.min_ns, 270);
    assert_int_equal(r.rank[0].compute_ns, 150);
    assert_int_equal(r.rank[0].hidden_ns, 50);
    assert_int_equal(r.rank[0].comm_ns, 230);
    assert_int_equal(r.max_exposed_ns, 230);
    assert_true(r.bytes_moved == 400.0); /* each NPU sends 2 messages of 100 */
    sim_cluster_result_fini(&r);
}

/* One place for compute: the nodes 2, 5, 9 run in the order of their ids, whatever their place in
 * the file; each is told with its start and end. */
typedef struct {
    uint32_t node[8];
    int64_t end[8];
    size_t n;
} log_of_nodes;

static void log_node(void *context, uint32_t rank, uint32_t node, int64_t start, int64_t end)
{
    log_of_nodes *log = context;

    (void)rank;
    assert_true(start <= end);
    log->node[log->n] = node;
    log->end[log->n++] = end;
}

static void test_ready_nodes_run_in_ascending_id(void **state)
{
    static const spec specs[] = {{COMP(0, 9, 1)}, {COMP(0, 2, 10)}, {COMP(0, 5, 100)}};
    built b;
    log_of_nodes log = {.n = 0};
    const sim_astra astra = ring_of(1);
    const sim_cluster_options options = {.astra = &astra, .on_node = log_node, .context = &log};
    sim_cluster_result r;

    (void)state;
    assert_int_equal(sim_cluster_run(build(&b, specs, CS_COUNT(specs), 1), &options, &r, NULL),
                     CS_OK);
    assert_int_equal(log.n, 3);
    assert_int_equal(log.node[0], 1);
    assert_int_equal(log.node[1], 2);
    assert_int_equal(log.node[2], 0);
    assert_int_equal(log.end[2], 111);
    sim_cluster_result_fini(&r);
}

/* Two messages of one (source, destination, tag) match in order; the second leaves when the first
 * has arrived, since a rank has one communication in flight: 100 and 100 + 300 ns.  The receives
 * are free: both wait from the start. */
static void test_messages_match_first_in_first_out(void **state)
{
    static const spec specs[] = {{SEND(0, 1, 1, 100, 7)},
                                 {SEND(0, 2, 1, 300, 7)},
                                 {RECV(1, 1, 0, 100, 7)},
                                 {RECV(1, 2, 0, 300, 7)},
                                 {COMP(1, 3, 5), .n_deps = 1, .dep = {2}}};
    sim_cluster_result r;

    (void)state;
    assert_int_equal(RUN(specs, 2, &r, NULL), CS_OK);
    assert_int_equal(r.max_ns, 400);
    assert_int_equal(r.rank[1].compute_ns, 5);
    assert_int_equal(r.rank[1].hidden_ns, 5);
    assert_int_equal(r.messages, 2);
    assert_int_equal(r.unreceived, 0);
    sim_cluster_result_fini(&r);
}

/* A message that is there before its receive is taken at once. */
static void test_a_late_receive_finds_its_message(void **state)
{
    static const spec specs[] = {{SEND(0, 1, 1, 100, 7)},
                                 {COMP(1, 1, 1000)},
                                 {RECV(1, 2, 0, 100, 7), .n_deps = 1, .dep = {1}}};
    sim_cluster_result r;

    (void)state;
    assert_int_equal(RUN(specs, 2, &r, NULL), CS_OK);
    assert_int_equal(r.min_ns, 100);
    assert_int_equal(r.max_ns, 1000);
    sim_cluster_result_fini(&r);
}

/* Ranks 2 and 3 reduce in their own group first, rank 2 in a group of one as well: all finish.
 * Own groups are flat rings of two neighbours: 230 ns.  The world all-reduce of 400 bytes over 4
 * takes 10 + 6 (100 + 10) = 670; started at 0 by two ranks and at 230 by the others, the last
 * message that depends on a late start ends at 230 + 670 = 900, rank 2 two steps earlier less. */
static void test_groups_may_differ_between_ranks(void **state)
{
    static const spec specs[] = {{REDUCE(0, 1, 0, 400)}, {REDUCE(1, 1, 0, 400)},
                                 {REDUCE(2, 1, 2, 200)}, {REDUCE(2, 2, 3, 200)},
                                 {REDUCE(2, 3, 0, 400)}, {REDUCE(3, 1, 2, 200)},
                                 {REDUCE(3, 2, 0, 400)}};
    sim_cluster_result r;

    (void)state;
    for (int backend = SIM_ASTRA_UNAWARE; backend <= SIM_ASTRA_AWARE; backend++) {
        assert_int_equal(run_specs(specs, CS_COUNT(specs), 4, (sim_astra_backend)backend, &r, NULL),
                         CS_OK);
        assert_int_equal(r.max_ns, 900);
        assert_int_equal(r.rank[0].total_ns, 900);
        if (backend == SIM_ASTRA_UNAWARE) {
            assert_int_equal(r.rank[2].total_ns, 700);
            assert_int_equal(r.rank[3].total_ns, 800);
        }
        assert_int_equal(r.collectives, 3);
        sim_cluster_result_fini(&r);
    }
}

/* A world all-reduce is computed from each rank's own start: rank 3 comes 100 ns late, and only
 * rank 1, which its first message reaches after all others, pays in full.  On congested links
 * rank 3's first messages follow each other too closely and wait: nobody is faster. */
static void test_late_ranks_delay_a_collective(void **state)
{
    static const spec specs[] = {{REDUCE(0, 1, 0, 400)},
                                 {REDUCE(1, 1, 0, 400)},
                                 {REDUCE(2, 1, 0, 400)},
                                 {COMP(3, 1, 100)},
                                 {REDUCE(3, 2, 0, 400), .n_deps = 1, .dep = {3}}};
    sim_cluster_result apart, aware;

    (void)state;
    assert_int_equal(RUN(specs, 4, &apart, NULL), CS_OK);
    assert_int_equal(apart.max_ns, 770);
    assert_int_equal(run_specs(specs, CS_COUNT(specs), 4, SIM_ASTRA_AWARE, &aware, NULL), CS_OK);
    for (uint32_t r = 0; r < 4; r++) {
        assert_int_equal(apart.rank[r].total_ns, r == 1 ? 770 : 670);
        assert_true(aware.rank[r].total_ns >= apart.rank[r].total_ns);
    }
    assert_true(apart.bytes_moved == aware.bytes_moved);
    sim_cluster_result_fini(&apart);
    sim_cluster_result_fini(&aware);
}

/* Roofline: 1e6 ops on 1e3 bytes at 1e12 FLOP/s and 1e9 B/s: min(1e12, 1e9 * 1e3) -> 1e6 ns / 1e3
 * = 1,000 ns; 1,000 ops on 1e6 bytes are bound by memory: 1e6 ns; a node of size 0 takes none. */
static void test_compute_follows_the_roofline(void **state)
{
    static const struct {
        int64_t ops, bytes, ns;
    } cases[] = {{1000000, 1000, 1000}, {1000, 1000000, 1000000}, {5, 0, 0}, {0, 1000, 1000}};

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        static const spec specs[] = {{COMP(0, 1, 77)}};
        built b;
        sim_astra astra = ring_of(1);
        const sim_cluster_options options = {.astra = &astra};
        sim_cluster_result r;
        astra.system.roofline = true;
        astra.system.peak_flops = 1e12;
        astra.system.local_mem_bytes_per_s = 1e9;
        (void)build(&b, specs, 1, 1);
        b.node[0].num_ops = cases[i].ops;
        b.node[0].tensor_size = cases[i].bytes;
        assert_int_equal(sim_cluster_run(&b.trace, &options, &r, NULL), CS_OK);
        assert_int_equal(r.max_ns, cases[i].ns);
        sim_cluster_result_fini(&r);
    }
}

static void test_a_slow_rank_is_slower(void **state)
{
    static const spec specs[] = {{COMP(0, 1, 100)}, {COMP(1, 1, 100)}};
    built b;
    const sim_astra astra = ring_of(2);
    const sim_cluster_options options = {.astra = &astra, .slow_rank = 1, .slow_factor = 1.5};
    sim_cluster_result r;

    (void)state;
    assert_int_equal(sim_cluster_run(build(&b, specs, 2, 2), &options, &r, NULL), CS_OK);
    assert_int_equal(r.min_ns, 100);
    assert_int_equal(r.max_ns, 150);
    sim_cluster_result_fini(&r);
}

/* ---- what cannot finish or does not fit ---- */

static const spec circular[] = {{RECV(0, 1, 1, 100, 5)},
                                {SEND(0, 2, 1, 100, 5), .n_deps = 1, .dep = {0}},
                                {RECV(1, 1, 0, 100, 5)},
                                {SEND(1, 2, 0, 100, 5), .n_deps = 1, .dep = {2}}};
static const spec unequal[] = {{SEND(0, 1, 1, 100, 5)}, {RECV(1, 1, 0, 200, 5)}};
static const spec other_tag[] = {{SEND(0, 1, 1, 100, 1)}, {RECV(1, 9, 0, 100, 2)}};
static const spec missing[] = {{REDUCE(0, 1, 0, 400)}, {COMP(1, 1, 10)}};
static const spec disagree[] = {{REDUCE(0, 1, 0, 400)},
                                {REDUCE(1, 4, 0, 400), .comm = WL_CHAKRA_ALL_GATHER}};
static const spec outsider[] = {{REDUCE(0, 1, 2, 400)}, {COMP(1, 1, 10)}};
static const spec to_itself[] = {{SEND(0, 1, 0, 400, 1)}, {COMP(1, 1, 10)}};
static const spec nowhere[] = {{SEND(0, 1, 7, 400, 1)}, {COMP(1, 1, 10)}};
static const spec rooted[] = {{REDUCE(0, 1, 0, 400), .comm = WL_CHAKRA_REDUCE}, {COMP(1, 1, 10)}};

static const spec broadcast[] = {{REDUCE(0, 1, 0, 400), .comm = WL_CHAKRA_BROADCAST, .ns = 50},
                                 {COMP(1, 1, 10)}};

static void test_failures_name_ranks_nodes_and_sizes(void **state)
{
    static const struct {
        const spec *specs;
        size_t n;
        cs_status status;
        const char *message;
    } cases[] = {
        {circular, 4, CS_EDEADLOCK,
         "2 of 2 ranks wait for ever\n  rank 0 node 1 (n) waits for a message of 100 bytes with "
         "tag "
         "5 from rank 1\n  rank 1 node 1 (n) waits for a message of 100 bytes with tag 5 from rank "
         "0"},
        {unequal, 2, CS_ETRACE,
         "rank 0 node 1 (n) sends 100 bytes with tag 5, but rank 1 node 1 (n), which receives "
         "them, expects 200"},
        {other_tag, 2, CS_EDEADLOCK,
         "1 of 2 ranks wait for ever\n  rank 1 node 9 (n) waits for a message of 100 bytes with "
         "tag "
         "2 from rank 0"},
        {missing, 2, CS_EDEADLOCK,
         "rank 0 node 1 (n), ALL_REDUCE of 400 bytes in group '', waits for ranks 1"},
        {disagree, 2, CS_ETRACE, "rank 1 node 4 (n) is ALL_GATHER of 400 bytes, but rank 0 node 1"},
        {outsider, 2, CS_ETRACE, "beyond the 2 of the machine"},
        {to_itself, 2, CS_ETRACE, "has its own rank as destination"},
        {nowhere, 2, CS_ETRACE, "names no destination among the 2 ranks"},
        {rooted, 2, CS_EINVAL, "this model cannot run REDUCE"},
        {broadcast, 2, CS_ETRACE, "rank 0 node 1 (n): BROADCAST of 400 bytes moves nothing"},
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        sim_cluster_result r;
        cs_error err;
        const cs_status status =
            run_specs(cases[i].specs, cases[i].n, 2, SIM_ASTRA_UNAWARE, &r, &err);
        if (status != cases[i].status || strstr(err.text, cases[i].message) == NULL)
            fail_msg("case %zu: status %d, %s", i, status, err.text);
        sim_cluster_result_fini(&r);
    }
}

/* A collective along a dimension of one NPU, or given as a trace without messages, would be free:
 * refused.  Of no bytes it is free by right, as in a group of one. */
static void test_communication_that_moves_nothing_is_refused(void **state)
{
    static const spec specs[] = {{REDUCE(0, 1, 0, 400)}, {REDUCE(1, 1, 0, 400)}};
    static const spec silent[] = {{COMP(0, 1, 9)}, {COMP(1, 1, 9)}};
    built b, custom;
    sim_astra astra = ring_of(2);
    sim_cluster_options options = {.astra = &astra};

    (void)state;
    astra.network.n_dims = 2;
    astra.network.dim[1] = astra.network.dim[0];
    astra.network.dim[1].n = 1;
    for (int i = 0; i < 3; i++) {
        static const char *const messages[] = {"rank 0 node 1 (n): ALL_REDUCE of 400 bytes moved",
                                               "the custom collective moves nothing"};
        sim_cluster_result r;
        cs_error err;
        (void)build(&b, specs, 2, 2);
        b.node[0].involved = b.node[1].involved = i == 0 ? 2 : 0;
        b.node[0].comm_size = b.node[1].comm_size = i == 2 ? 0 : 400;
        options.custom[WL_ALL_REDUCE] = i == 1 ? build(&custom, silent, 2, 2) : NULL;
        if (i < 2) {
            assert_int_equal(sim_cluster_run(&b.trace, &options, &r, &err), CS_ETRACE);
            assert_non_null(strstr(err.text, messages[i]));
        } else {
            assert_int_equal(sim_cluster_run(&b.trace, &options, &r, &err), CS_OK);
            assert_int_equal(r.max_ns, 0);
        }
        sim_cluster_result_fini(&r);
    }
}

static void test_network_ranks_and_files_must_agree(void **state)
{
    static const spec specs[] = {{COMP(0, 1, 1)}, {COMP(1, 1, 1)}};
    built b;
    const sim_astra astra = ring_of(4);
    const sim_cluster_options options = {.astra = &astra};
    sim_cluster_result r;
    cs_error err;

    (void)state;
    assert_int_equal(sim_cluster_run(build(&b, specs, 2, 2), &options, &r, &err), CS_EINVAL);
    assert_non_null(strstr(err.text, "4 NPUs, the trace has 2 ranks in 2 files"));
    sim_cluster_result_fini(&r);
}

/* ---- ASTRA-sim's own results ---- */

static void run_files(const char *prefix, const char *groups, const sim_astra *astra,
                      sim_cluster_result *out)
{
    const wl_trace_options load = {.group_file = groups};
    const sim_cluster_options options = {.astra = astra};
    wl_trace *trace = NULL;
    cs_error err;

    if (wl_trace_load(prefix, &load, &trace, &err) != CS_OK)
        fail_msg("%s", err.text);
    if (sim_cluster_run(trace, &options, out, &err) != CS_OK)
        fail_msg("%s: %s", prefix, err.text);
    wl_trace_destroy(trace);
}

static void check_case(const char *name, const char *system, const long long want[3])
{
    char path[4][256];
    sim_astra astra;
    sim_cluster_result r;
    cs_error err;

    (void)snprintf(path[0], sizeof path[0], SHARED "astra/endtoend/%s/generated", name);
    (void)snprintf(path[1], sizeof path[1], SHARED "astra/endtoend/%s/generated.json", name);
    (void)snprintf(path[2], sizeof path[2], SHARED "astra/endtoend/%s/network.yml", name);
    (void)snprintf(path[3], sizeof path[3], SHARED "astra/endtoend/%s/system.%s.json", name,
                   system);
    if (sim_astra_load(path[2], path[3], &astra, &err) != CS_OK)
        fail_msg("%s", err.text);
    run_files(path[0], path[1], &astra, &r);
    assert_int_equal(r.max_ns, want[0]);
    if (want[1] >= 0)
        assert_int_equal(r.min_ns, want[1]);
    assert_int_equal(r.max_exposed_ns, want[2]);
    sim_cluster_result_fini(&r);
}

static void test_end_to_end_equals_astra_sim_to_the_nanosecond(void **state)
{
    FILE *file = fopen(SHARED "astra/endtoend/expected.csv", "r");
    char line[256];
    int checked = 0;

    (void)state;
    if (file == NULL) {
        print_message("skipped: 12 end-to-end cases of " SHARED "\n");
        skip();
    }
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file) != NULL) {
        char *field[5], *at = line;
        long long want[3];
        for (size_t i = 0; i < 5; i++) {
            field[i] = at;
            at += strcspn(at, ",\n");
            *at++ = '\0';
        }
        for (size_t i = 0; i < 3; i++)
            want[i] = *field[2 + i] == '\0' ? -1 : atoll(field[2 + i]);
        check_case(field[0], field[1], want);
        checked++;
    }
    (void)fclose(file);
    assert_true(checked >= 12);
}

/* 14 messages of 131,072 bytes at 50 GiB/s, 500 ns: 2,941 ns each, and 7 reductions of 7 us:
 * 14 * 2941 + 7 * 7000 = 90,174 ns. */
static void test_a_custom_ring_runs_as_a_trace(void **state)
{
    sim_astra astra = ring_of(8);
    sim_cluster_result r;

    (void)state;
    if (access(SHARED "chakra/custom/ring_allreduce_8", R_OK) != 0) {
        print_message("skipped: 1 custom collective of " SHARED "\n");
        skip();
    }
    astra.network.dim[0].bandwidth_gib_per_s = 50;
    astra.network.dim[0].latency_ns = 500;
    run_files(SHARED "chakra/custom/ring_allreduce_8", NULL, &astra, &r);
    assert_int_equal(r.max_ns, 90174);
    sim_cluster_result_fini(&r);
}

/* The same ring as the all-reduce of a workload of 8 ranks, all 1,000 ns late: the sizes are those
 * of its file, whatever the workload says. */
static void test_a_custom_collective_runs_inside_a_workload(void **state)
{
    const wl_trace_options load = {.custom = true};
    sim_astra astra = ring_of(8);
    sim_cluster_options options = {.astra = &astra};
    wl_trace *custom = NULL;
    spec specs[16];
    built b;
    sim_cluster_result r;
    cs_error err;

    (void)state;
    if (access(SHARED "chakra/custom/ring_allreduce_8", R_OK) != 0) {
        print_message("skipped: 1 custom collective of " SHARED "\n");
        skip();
    }
    if (wl_trace_load(SHARED "chakra/custom/ring_allreduce_8", &load, &custom, &err) != CS_OK)
        fail_msg("%s", err.text);
    astra.network.dim[0].bandwidth_gib_per_s = 50;
    astra.network.dim[0].latency_ns = 500;
    options.custom[WL_ALL_REDUCE] = custom;
    for (uint32_t k = 0; k < 8; k++) {
        specs[2 * k] = (spec){COMP(k, 1, 1000)};
        specs[2 * k + 1] = (spec){REDUCE(k, 2, 0, 77), .n_deps = 1, .dep = {2 * k}};
    }
    if (sim_cluster_run(build(&b, specs, 16, 8), &options, &r, &err) != CS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(r.max_ns, 1000 + 90174);
    assert_true(r.bytes_moved == 8 * 14 * 131072.0);
    sim_cluster_result_fini(&r);
    (void)build(&b, specs, 8, 4); /* 4 ranks do not fit 8 files */
    astra.network.npus = astra.network.dim[0].n = 4;
    assert_int_equal(sim_cluster_run(&b.trace, &options, &r, &err), CS_EINVAL);
    assert_non_null(strstr(err.text, "is for 8 ranks (8 files), its group has 4"));
    sim_cluster_result_fini(&r);
    wl_trace_destroy(custom);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compute_and_communication_overlap),
        cmocka_unit_test(test_ready_nodes_run_in_ascending_id),
        cmocka_unit_test(test_messages_match_first_in_first_out),
        cmocka_unit_test(test_a_late_receive_finds_its_message),
        cmocka_unit_test(test_groups_may_differ_between_ranks),
        cmocka_unit_test(test_late_ranks_delay_a_collective),
        cmocka_unit_test(test_compute_follows_the_roofline),
        cmocka_unit_test(test_a_slow_rank_is_slower),
        cmocka_unit_test(test_failures_name_ranks_nodes_and_sizes),
        cmocka_unit_test(test_communication_that_moves_nothing_is_refused),
        cmocka_unit_test(test_network_ranks_and_files_must_agree),
        cmocka_unit_test(test_end_to_end_equals_astra_sim_to_the_nanosecond),
        cmocka_unit_test(test_a_custom_ring_runs_as_a_trace),
        cmocka_unit_test(test_a_custom_collective_runs_inside_a_workload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
