/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Model astra against 1,252 results of ASTRA-sim itself (../shared, skipped when it is not there),
 * and its closed forms against its own event engine. */
#include "sim/astra_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define REFERENCE "../shared/reference/astra/collectives.csv"
/* Message-by-message rows beyond this many NPUs are left to tests/bench.sh. */
#define MAX_NPUS 64

/* Product of a list like "4;8". */
static long npus_of(const char *list)
{
    long product = 1;

    for (const char *at = list; *at != '\0'; at += *at == ';') {
        char *end;
        product *= strtol(at, &end, 10);
        at = end;
    }
    return product;
}

static void check_row(const sim_astra_cases *cases, size_t i)
{
    sim_astra_result r;
    cs_error err;
    const long long time = atoll(sim_astra_cases_field(cases, i, "result_cycles"));
    const long long least = atoll(sim_astra_cases_field(cases, i, "min_cycles"));

    if (sim_astra_cases_predict(cases, i, &r, &err) != CS_OK)
        fail_msg("%s", err.text);
    if (r.time_ns != time || r.min_time_ns != least)
        fail_msg("%lld to %lld ns instead of: %s", (long long)r.min_time_ns, (long long)r.time_ns,
                 sim_astra_cases_row(cases, i));
}

static void test_every_reference_row_is_equal_to_the_nanosecond(void **state)
{
    sim_astra_cases *cases;
    cs_error err;
    size_t checked = 0;

    (void)state;
    if (access(REFERENCE, R_OK) != 0) {
        print_message("skipped: %s is not there\n", REFERENCE);
        skip();
    }
    if (sim_astra_cases_load(REFERENCE, &cases, &err) != CS_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < sim_astra_cases_count(cases); i++) {
        const bool aware = strcmp(sim_astra_cases_field(cases, i, "backend"), "unaware") != 0;
        if (aware && npus_of(sim_astra_cases_field(cases, i, "npus_count")) > MAX_NPUS)
            continue;
        check_row(cases, i);
        checked++;
    }
    assert_true(checked > 1000);
    sim_astra_cases_destroy(cases);
}

/* ---- closed forms against events ---- */

static const double bandwidths[] = {25, 50, 100, 187.5}, latencies[] = {0, 20, 500, 2000};
static const int64_t counts[] = {2, 3, 4, 5, 6, 8}, sizes[] = {4096, 65536, 1000003};

static void draw_machine(cs_rng *rng, wl_collective type, sim_astra *astra)
{
    sim_astra_network *net = &astra->network;

    *astra = (sim_astra){.network = {.n_dims = 1 + (size_t)cs_rng_below(rng, 3), .npus = 1}};
    for (size_t d = 0; d < net->n_dims; d++) {
        sim_astra_algorithm *algorithm = &astra->system.algorithm[type][d];
        const int64_t n = counts[cs_rng_below(rng, CS_COUNT(counts))];
        net->dim[d] = (sim_astra_dim){(int32_t)cs_rng_below(rng, 3), n,
                                      bandwidths[cs_rng_below(rng, CS_COUNT(bandwidths))],
                                      latencies[cs_rng_below(rng, CS_COUNT(latencies))]};
        net->npus *= n;
        algorithm->algorithm = (int32_t)cs_rng_below(rng, 3);
        if (algorithm->algorithm == SIM_ALGO_HALVING_DOUBLING &&
            ((n & (n - 1)) != 0 || type == WL_ALL_TO_ALL))
            algorithm->algorithm = SIM_ALGO_DIRECT;
        if (algorithm->algorithm == SIM_ALGO_DIRECT)
            algorithm->window = (int64_t)cs_rng_below(rng, 4);
    }
    astra->system.n_algorithms[type] = net->n_dims;
    astra->system.splits = 1 + (int64_t)cs_rng_below(rng, 8);
    astra->system.active_chunks = 1 + (int64_t)cs_rng_below(rng, 3);
    astra->system.queues_per_dim = 1 + (int64_t)cs_rng_below(rng, 3);
    astra->system.local_bw_aware = cs_rng_below(rng, 2) == 0;
    astra->system.local_mem_bytes_per_s = cs_rng_below(rng, 2) == 0 ? 0.0 : 50e9;
    astra->system.endpoint_delay_ns = cs_rng_below(rng, 2) == 0 ? 10 : 1000;
}

/* All NPUs are alike: the flow shop of one and the messages of all must agree. */
static void test_closed_forms_equal_the_events(void **state)
{
    cs_rng *rng = cs_rng_create(1, 2, 3);

    (void)state;
    for (int i = 0; i < 300; i++) {
        const wl_collective type = (wl_collective)cs_rng_below(rng, SIM_ASTRA_N_TYPES);
        const sim_astra_op op = {.type = type, .bytes = sizes[cs_rng_below(rng, CS_COUNT(sizes))]};
        sim_astra astra;
        sim__astra_plan plan;
        sim_astra_result flow = {0}, events = {0};
        int64_t end[512];
        draw_machine(rng, type, &astra);
        flow.n_dims = events.n_dims = astra.network.n_dims;
        assert_int_equal(sim__astra_plan_make(&astra, &op, &plan, NULL), CS_OK);
        assert_true(sim__astra_is_symmetric(&astra, &op, &plan));
        assert_int_equal(sim__astra_flow(&astra, &plan, &flow, NULL), CS_OK);
        assert_int_equal(sim__astra_events(&astra, &op, &plan, &events, end, NULL), CS_OK);
        for (int64_t j = 0; j < plan.members; j++)
            assert_int_equal(end[j], flow.time_ns);
        for (size_t d = 0; d < flow.n_dims; d++)
            assert_true(flow.sent_bytes[d] == events.sent_bytes[d]);
    }
    cs_rng_destroy(rng);
}

/* The recurrence of a group's flat ring against its messages. */
static void test_group_rings_equal_the_events(void **state)
{
    cs_rng *rng = cs_rng_create(4, 5, 6);

    (void)state;
    for (int i = 0; i < 200; i++) {
        const wl_collective type = (wl_collective)cs_rng_below(rng, SIM_ASTRA_N_TYPES);
        int64_t ranks[512], ring[512], start[512] = {0}, end[512];
        sim_astra_op op = {.type = type, .bytes = 65536, .ranks = ranks};
        sim_astra astra;
        sim__astra_plan plan;
        sim_astra_result events;
        draw_machine(rng, type, &astra);
        astra.system.n_algorithms[type] = 2;
        for (int64_t j = 0; j < astra.network.npus; j++)
            if (cs_rng_below(rng, 3) == 0)
                ranks[op.n_ranks++] = j;
        if (op.n_ranks < 2 || (int64_t)op.n_ranks == astra.network.npus)
            continue;
        events.n_dims = astra.network.n_dims;
        assert_int_equal(sim__astra_plan_make(&astra, &op, &plan, NULL), CS_OK);
        assert_int_equal(sim__astra_ring_group(&astra, &op, &plan, start, ring, NULL), CS_OK);
        assert_int_equal(sim__astra_events(&astra, &op, &plan, &events, end, NULL), CS_OK);
        for (size_t j = 0; j < op.n_ranks; j++)
            assert_int_equal(end[j], ring[j]);
    }
    cs_rng_destroy(rng);
}

/* Chunked rings on [4, 4, 8] end under every number of active chunks and both optimizations. */
static void test_chunked_rings_end(void **state)
{
    (void)state;
    for (int64_t active = 1; active <= 4; active *= 2)
        for (int aware = 0; aware < 2; aware++) {
            static const sim_astra_op op = {.type = WL_ALL_REDUCE, .bytes = 1 << 20};
            sim_astra_result r;
            sim_astra astra = {.network = {3,
                                           128,
                                           {{SIM_RING, 4, 100, 100},
                                            {SIM_RING, 4, 100, 500},
                                            {SIM_RING, 8, 100, 5000}}},
                               .system = {.n_algorithms = {3},
                                          .splits = 8,
                                          .active_chunks = active,
                                          .queues_per_dim = 1,
                                          .local_bw_aware = aware == 1}};
            assert_int_equal(sim_astra_collective(&astra, &op, &r, NULL, NULL), CS_OK);
            assert_true(r.time_ns > 0);
        }
}

/* ---- bad tables ---- */

static void test_bad_tables_are_refused(void **state)
{
    static const char header[] = "collective,bytes,topology,npus_count,bandwidth_GBps,latency_ns,"
                                 "algorithm,splits\n";
    static const struct {
        const char *row, *message;
    } cases[] = {
        {"ALL_REDUCE,1,Ring,8,100,50,ring\n", ":2: 7 fields, the header has 8"},
        {"ALL_REDUCED,1,Ring,8,100,50,ring,4\n", ":2: collective 'ALL_REDUCED': expected"},
        {"ALL_REDUCE,1.5,Ring,8,100,50,ring,4\n", "a whole number"},
        {"ALL_REDUCE,1,Ring;Ring,8,100,50,ring,4\n", "npus_count has 1 entries, topology has 2"},
        {"ALL_REDUCE,1,Ring,8,nan,50,ring,4\n", "a number from"},
        {"ALL_REDUCE,1,Ring,6,100,50,halvingDoubling,4\n", ":2: halvingDoubling needs a power"},
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        char path[] = "/tmp/cs_astra_XXXXXX";
        FILE *file = fdopen(mkstemp(path), "w");
        sim_astra_cases *table = NULL;
        sim_astra_result r;
        cs_error err;
        cs_status status;
        assert_non_null(file);
        (void)fprintf(file, "%s%s", header, cases[i].row);
        (void)fclose(file);
        status = sim_astra_cases_load(path, &table, &err);
        if (status == CS_OK)
            status = sim_astra_cases_predict(table, 0, &r, &err);
        assert_int_not_equal(status, CS_OK);
        if (strstr(err.text, cases[i].message) == NULL)
            fail_msg("case %zu: %s", i, err.text);
        sim_astra_cases_destroy(table);
        (void)unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_reference_row_is_equal_to_the_nanosecond),
        cmocka_unit_test(test_closed_forms_equal_the_events),
        cmocka_unit_test(test_group_rings_equal_the_events),
        cmocka_unit_test(test_chunked_rings_end),
        cmocka_unit_test(test_bad_tables_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
