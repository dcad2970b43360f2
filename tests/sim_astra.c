/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Model astra: files as ASTRA-sim's users have them, and collectives with the arithmetic beside
 * them.  One "GB/s" is 2^30 B/s = 1.073741824 B/ns. */
#include "sim/astra.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Writes `text` to a fresh file whose name is put in path (32 bytes). */
static void write_file(char *path, const char *text)
{
    int fd;

    (void)snprintf(path, 32, "/tmp/cs_astra_XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

static cs_status load_texts(const char *network, const char *system, sim_astra *astra,
                            cs_error *err)
{
    char network_path[32], system_path[32];
    cs_status status;

    write_file(network_path, network);
    write_file(system_path, system);
    status = sim_astra_load(network_path, system_path, astra, err);
    (void)unlink(network_path);
    (void)unlink(system_path);
    return status;
}

static const char network_2d[] = "topology: [ Ring, Switch ]\n"
                                 "npus_count: [ 4, 2 ]\n"
                                 "bandwidth: [ 187.5, 25 ]  # GB/s\n"
                                 "latency: [ 20, 700 ]  # ns\n";

static const char system_2d[] = "{\"scheduling-policy\": \"LIFO\",\n"
                                " \"endpoint-delay\": 10,\n"
                                " \"active-chunks-per-dimension\": 2,\n"
                                " \"preferred-dataset-splits\": 4,\n"
                                " \"all-reduce-implementation\": [\"ring\", \"direct4\"],\n"
                                " \"all-gather-implementation\": [\"oneRing\"],\n"
                                " \"collective-optimization\": \"localBWAware\",\n"
                                " \"local-mem-bw\": 50, \"boost-mode\": 0,\n"
                                " \"activ-chunks-per-dimension\": 3,\n"
                                " \"peak-perf\": 10, \"roofline-enabled\": 1}\n";

static void test_files_are_read_as_they_are(void **state)
{
    sim_astra astra;
    cs_error err;

    (void)state;
    assert_int_equal(load_texts(network_2d, system_2d, &astra, &err), CS_OK);
    assert_int_equal(astra.network.npus, 8);
    assert_int_equal(astra.network.dim[1].topology, SIM_SWITCH);
    assert_true(astra.network.dim[0].bandwidth_gib_per_s == 187.5);
    assert_int_equal(astra.system.algorithm[WL_ALL_REDUCE][1].algorithm, SIM_ALGO_DIRECT);
    assert_int_equal(astra.system.algorithm[WL_ALL_REDUCE][1].window, 4);
    assert_true(astra.system.algorithm[WL_ALL_GATHER][0].one);
    assert_true(astra.system.local_bw_aware && astra.system.roofline);
    assert_int_equal(astra.system.active_chunks, 2);
    assert_true(astra.system.local_mem_bytes_per_s == 50e9 && astra.system.peak_flops == 10e12);
}

/* scheduling-policy, boost-mode and the misspelt key change nothing: three warnings. */
static void test_keys_without_effect_are_told(void **state)
{
    sim_astra astra;
    cs_error err;

    (void)state;
    assert_int_equal(load_texts(network_2d, system_2d, &astra, &err), CS_OK);
    assert_int_equal(astra.n_warnings, 3);
    assert_non_null(strstr(astra.warning[0], ":1:2: 'scheduling-policy' has no effect"));
    assert_non_null(strstr(astra.warning[1], ":8:"));
    assert_non_null(strstr(astra.warning[2], "did you mean 'active-chunks-per-dimension'?"));
}

#define SYSTEM(list) "{\"preferred-dataset-splits\": 1, \"all-reduce-implementation\": " list "}"

static void test_bad_files_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *network, *system, *message;
    } cases[] = {
        {"topology: [Ring]\nnpus_count: [4, 2]\nbandwidth: [1]\nlatency: [1]\n", SYSTEM("[ring]"),
         ":2:13: 'npus_count' has 2 entries, 'topology' has 1"},
        {"topology: [Torus]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n", SYSTEM("[ring]"),
         "unknown topology 'Torus'"},
        {"topology: [Ring]\nnpus_count: [4]\nbandwidth: [0]\nlatency: [1]\n", SYSTEM("[ring]"),
         ":3:13: expected a bandwidth above 0"},
        {network_2d, SYSTEM("[ring]"),
         "'all-reduce-implementation' has 1 entries, the network has 2 dimensions"},
        {network_2d, SYSTEM("[ring, direct0]"), "unknown algorithm 'direct0'"},
        {network_2d, "{\"active-chunks-per-dimension\": 1}",
         "the key 'preferred-dataset-splits' is missing"},
        {network_2d, "{\"preferred-dataset-splits\": 0}", ":1:30: expected a whole number from 1"},
        {network_2d, "{\"preferred-dataset-splits\": 1, \"model-shared-bus\": 1}",
         "a shared memory bus is not modelled"},
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        sim_astra astra;
        cs_error err;
        assert_int_not_equal(load_texts(cases[i].network, cases[i].system, &astra, &err), CS_OK);
        if (strstr(err.text, cases[i].message) == NULL)
            fail_msg("case %zu: %s", i, err.text);
    }
}

/* ---- worked examples ---- */

typedef struct {
    size_t n_dims;
    sim_astra_dim dim[3];
    int32_t algorithm[3];
    int64_t splits, active, endpoint_ns;
    bool local_bw_aware;
} machine;

static sim_astra build(const machine *m)
{
    sim_astra astra = {.network = {.n_dims = m->n_dims, .npus = 1}};

    for (size_t d = 0; d < m->n_dims; d++) {
        astra.network.dim[d] = m->dim[d];
        astra.network.npus *= m->dim[d].n;
        for (size_t t = 0; t < SIM_ASTRA_N_TYPES; t++)
            astra.system.algorithm[t][d].algorithm = m->algorithm[d];
    }
    for (size_t t = 0; t < SIM_ASTRA_N_TYPES; t++)
        astra.system.n_algorithms[t] = m->n_dims;
    astra.system.splits = m->splits;
    astra.system.active_chunks = m->active == 0 ? 1 : m->active;
    astra.system.queues_per_dim = 1;
    astra.system.endpoint_delay_ns = m->endpoint_ns;
    astra.system.local_bw_aware = m->local_bw_aware;
    return astra;
}

/* Ring of 8, 1 MiB, 50 GiB/s links, 500 ns, one chunk, no endpoint delay: messages of 131,072
 * bytes at 53.6870912 B/ns take floor(500 + 2441.4) = 2,941 ns; 14 of them 41,174 ns.
 * On a switch (two hops) floor(1000 + 2441.4) = 3,441, 14 x = 48,174.
 * Direct on fully connected: two halves of one message, 2 x 2,941 = 5,882.
 * Halving-doubling on a ring sends 1/2, 1/4, 1/8 to distances 1, 2, 4:
 * floor(500 + 9765.6) + floor(1000 + 4882.8) + floor(2000 + 2441.4) = 10,265 + 5,882 + 4,441
 * = 20,588 a half, 41,176 in all. */
static void test_all_reduce_of_eight_is_the_sum_of_truncated_messages(void **state)
{
    static const struct {
        int32_t topology, algorithm;
        int64_t ns;
    } cases[] = {{SIM_RING, SIM_ALGO_RING, 41174},
                 {SIM_SWITCH, SIM_ALGO_RING, 48174},
                 {SIM_FULLY_CONNECTED, SIM_ALGO_DIRECT, 5882},
                 {SIM_RING, SIM_ALGO_HALVING_DOUBLING, 41176}};

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        const machine m = {1,   {{cases[i].topology, 8, 50, 500}}, {cases[i].algorithm}, 1, 1, 0,
                           true};
        const sim_astra astra = build(&m);
        const sim_astra_op op = {.type = WL_ALL_REDUCE, .bytes = 1 << 20};
        sim_astra_result r;
        int64_t each[8];
        assert_int_equal(sim_astra_collective(&astra, &op, &r, each, NULL), CS_OK);
        assert_int_equal(r.time_ns, cases[i].ns);
        assert_int_equal(each[5], cases[i].ns);
        assert_true(r.sent_bytes[0] == 14.0 / 8.0 * 1048576.0);
    }
}

/* Two dimensions [2, 4], reduce-scatter of 8,192 bytes in two chunks of 4,096, rings of
 * 1 B/ns (1e9 / 2^30 GiB/s), no latency, no endpoint delay: a chunk takes 2,048 on dimension 1,
 * then 3 x 512 = 1,536 on dimension 2.  Chunk 2 starts on dimension 1 at 2,048, ends there at
 * 4,096 and on dimension 2 at 5,632.  With two active chunks both run at once: 3,584. */
static void test_chunks_pipeline_through_the_dimensions(void **state)
{
    const double one_byte_per_ns = 1e9 / 1073741824.0;
    const machine m = {2,
                       {{SIM_RING, 2, one_byte_per_ns, 0}, {SIM_RING, 4, one_byte_per_ns, 0}},
                       {SIM_ALGO_RING, SIM_ALGO_RING},
                       2,
                       1,
                       0,
                       true};
    sim_astra astra = build(&m);
    const sim_astra_op op = {.type = WL_REDUCE_SCATTER, .bytes = 8192};
    sim_astra_result r;

    (void)state;
    assert_int_equal(sim_astra_collective(&astra, &op, &r, NULL, NULL), CS_OK);
    assert_int_equal(r.time_ns, 5632);
    assert_int_equal(r.chunks, 2);
    astra.system.active_chunks = 2;
    assert_int_equal(sim_astra_collective(&astra, &op, &r, NULL, NULL), CS_OK);
    assert_int_equal(r.time_ns, 3584);
}

/* 1,000,003 bytes in 4 splits: chunks of 250,000, and a fifth, simulated in full, for the rest. */
static void test_the_remainder_is_a_whole_chunk(void **state)
{
    const machine m = {1, {{SIM_RING, 4, 50, 0}}, {SIM_ALGO_RING}, 4, 1, 10, true};
    const sim_astra astra = build(&m);
    sim_astra_op op = {.type = WL_ALL_REDUCE, .bytes = 1000003};
    sim_astra_result odd, even;

    (void)state;
    assert_int_equal(sim_astra_collective(&astra, &op, &odd, NULL, NULL), CS_OK);
    assert_int_equal(odd.chunks, 5);
    assert_int_equal(odd.chunk_bytes, 250000);
    op.bytes = 1000000;
    assert_int_equal(sim_astra_collective(&astra, &op, &even, NULL, NULL), CS_OK);
    assert_int_equal(odd.time_ns * 4, even.time_ns * 5);
}

/* A group of the machine runs a flat ring with 10 ns at each end, whatever the files name:
 * ranks 0, 2 of a ring of 8 are 2 hops apart, both ways.  256 bytes at 1 B/ns, latency 100:
 * messages of 128 take 200 + 128 = 328; 10 + 2 (328 + 10) = 686. */
static void test_a_group_runs_a_flat_ring(void **state)
{
    const machine m = {2,
                       {{SIM_RING, 8, 1e9 / 1073741824.0, 100}, {SIM_SWITCH, 2, 1, 0}},
                       {SIM_ALGO_DIRECT, SIM_ALGO_DIRECT},
                       1,
                       1,
                       77,
                       true};
    const sim_astra astra = build(&m);
    const int64_t ranks[] = {0, 2};
    const sim_astra_op op = {
        .type = WL_ALL_REDUCE, .bytes = 256, .ranks = ranks, .n_ranks = CS_COUNT(ranks)};
    sim_astra_result r;

    (void)state;
    assert_int_equal(sim_astra_collective(&astra, &op, &r, NULL, NULL), CS_OK);
    assert_int_equal(r.time_ns, 686);
    assert_int_equal(r.min_time_ns, 686);
}

/* Back end aware: a whole message is stored and forwarded at the switch, so it costs
 * 2 (latency + m / B), and the messages of `direct` queue on the link up.  4 NPUs, all-gather of
 * 100 bytes at 1 B/ns, latency 10: three messages leave at 0, 100, 200; the last arrives at the
 * switch at 310 and at the peer at 420. */
static void test_messages_queue_on_links_in_the_aware_back_end(void **state)
{
    const machine m = {1,   {{SIM_SWITCH, 4, 1e9 / 1073741824.0, 10}}, {SIM_ALGO_DIRECT}, 1, 1, 0,
                       true};
    const sim_astra astra = build(&m);
    const sim_astra_op op = {.type = WL_ALL_GATHER, .bytes = 100, .backend = SIM_ASTRA_AWARE};
    sim_astra_result r;

    (void)state;
    assert_int_equal(sim_astra_collective(&astra, &op, &r, NULL, NULL), CS_OK);
    assert_int_equal(r.time_ns, 420);
}

static void test_one_npu_costs_nothing(void **state)
{
    const machine m = {1, {{SIM_RING, 1, 50, 500}}, {SIM_ALGO_HALVING_DOUBLING}, 4, 1, 10, true};
    const sim_astra astra = build(&m);
    const sim_astra_op op = {.type = WL_ALL_REDUCE, .bytes = 1 << 30};
    sim_astra_result r;

    (void)state;
    assert_int_equal(sim_astra_collective(&astra, &op, &r, NULL, NULL), CS_OK);
    assert_int_equal(r.time_ns, 0);
}

/* 6 GiB on two NPUs of 1 GiB/s: 2 messages of 3 GiB, 6,000,000,000 ns, over 2^32 both. */
static void test_large_sizes_and_times_are_right(void **state)
{
    const machine m = {1, {{SIM_RING, 2, 1, 0}}, {SIM_ALGO_RING}, 1, 1, 0, true};
    const sim_astra astra = build(&m);
    sim_astra_op op = {.type = WL_ALL_REDUCE, .bytes = (int64_t)6 << 30};
    sim_astra_result r;

    (void)state;
    assert_int_equal(sim_astra_collective(&astra, &op, &r, NULL, NULL), CS_OK);
    assert_int_equal(r.time_ns, 6000000000);
    op.backend = SIM_ASTRA_AWARE;
    assert_int_equal(sim_astra_collective(&astra, &op, &r, NULL, NULL), CS_OK);
    assert_int_equal(r.time_ns, 6000000000);
}

static void test_what_cannot_run_is_refused(void **state)
{
    static const int64_t twice[] = {0, 1, 0}, outside[] = {0, 6};
    static const struct {
        int32_t algorithm;
        sim_astra_op op;
        const char *message;
    } cases[] = {
        {SIM_ALGO_HALVING_DOUBLING,
         {.type = WL_ALL_REDUCE, .bytes = 4096},
         "halvingDoubling needs a power of two of NPUs, dimension 1 has 6"},
        {SIM_ALGO_HALVING_DOUBLING,
         {.type = WL_ALL_GATHER, .bytes = 4096},
         "halvingDoubling needs a power of two"},
        {SIM_ALGO_HALVING_DOUBLING,
         {.type = WL_ALL_TO_ALL, .bytes = 4096},
         "halvingDoubling cannot run an all-to-all"},
        {SIM_ALGO_DOUBLE_BINARY_TREE,
         {.type = WL_ALL_REDUCE, .bytes = 4096},
         "doubleBinaryTree needs a power of two"},
        {SIM_ALGO_RING, {.type = WL_ALL_REDUCE, .bytes = 0}, "a collective of 0 bytes"},
        {SIM_ALGO_RING, {.type = WL_BROADCAST, .bytes = 1}, "no such collective"},
        {SIM_ALGO_RING, {.type = WL_ALL_GATHER, .bytes = INT64_MAX}, "too large"},
        {SIM_ALGO_RING, {.bytes = 1, .ranks = twice, .n_ranks = 3}, "rank 0 is twice"},
        {SIM_ALGO_RING, {.bytes = 1, .ranks = outside, .n_ranks = 2}, "rank 6 is not one of"},
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        const machine m = {1, {{SIM_RING, 6, 50, 500}}, {cases[i].algorithm}, 1, 1, 10, true};
        const sim_astra astra = build(&m);
        sim_astra_result r;
        cs_error err;
        assert_int_equal(sim_astra_collective(&astra, &cases[i].op, &r, NULL, &err), CS_EINVAL);
        if (strstr(err.text, cases[i].message) == NULL)
            fail_msg("case %zu: %s", i, err.text);
    }
}

/* 2^63 bytes over links of 1 MiB/s: 10^16 s. */
static void test_times_beyond_the_clock_are_refused(void **state)
{
    const machine m = {1, {{SIM_RING, 6, 1e-3, 500}}, {SIM_ALGO_RING}, 1, 1, 10, true};
    const sim_astra astra = build(&m);
    const sim_astra_op op = {.type = WL_ALL_REDUCE, .bytes = INT64_MAX};
    sim_astra_result r;
    cs_error err;

    (void)state;
    assert_int_equal(sim_astra_collective(&astra, &op, &r, NULL, &err), CS_EINVAL);
    assert_non_null(strstr(err.text, "146 years"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_read_as_they_are),
        cmocka_unit_test(test_keys_without_effect_are_told),
        cmocka_unit_test(test_bad_files_are_refused_with_their_place),
        cmocka_unit_test(test_all_reduce_of_eight_is_the_sum_of_truncated_messages),
        cmocka_unit_test(test_chunks_pipeline_through_the_dimensions),
        cmocka_unit_test(test_the_remainder_is_a_whole_chunk),
        cmocka_unit_test(test_a_group_runs_a_flat_ring),
        cmocka_unit_test(test_messages_queue_on_links_in_the_aware_back_end),
        cmocka_unit_test(test_one_npu_costs_nothing),
        cmocka_unit_test(test_large_sizes_and_times_are_right),
        cmocka_unit_test(test_what_cannot_run_is_refused),
        cmocka_unit_test(test_times_beyond_the_clock_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
