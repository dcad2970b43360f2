/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Chunks through dimensions: the closed form of `program` against a flow shop run chunk by chunk,
 * and the event-driven policies. */
#include "tests/sim_network_test.h"

/* t[chunk] = max(t[chunk], server[dim]) + duration, phase by phase. */
static int64_t flow_shop_ps(const sim_phases *phases, int64_t chunks)
{
    const sim_phase *phase = phases->phase;
    int64_t t[64] = {0}, server[SIM_MAX_DIMS] = {0}, last = 0;

    for (size_t p = 0; p < phases->n; p++) {
        for (int64_t c = 0; c < chunks; c++) {
            for (uint32_t d = 0; d < SIM_MAX_DIMS; d++)
                if (((phase[p].other_dims | 1u << phase[p].dim) >> d & 1) != 0 && server[d] > t[c])
                    t[c] = server[d];
            t[c] += llround(phase[p].seconds * 1e12);
            for (uint32_t d = 0; d < SIM_MAX_DIMS; d++)
                if (((phase[p].other_dims | 1u << phase[p].dim) >> d & 1) != 0)
                    server[d] = t[c];
            last = t[c] > last ? t[c] : last;
        }
    }
    return last;
}

static void test_closed_form_equals_the_flow_shop(void **state)
{
    cs_rng *rng = cs_rng_create(7, 0, 0);

    (void)state;
    for (int trial = 0; trial < 20000; trial++) {
        sim_phases phases = {.n = cs_rng_below(rng, 12)};
        sim_phase *phase = phases.phase;
        int64_t chunks = 1 + (int64_t)cs_rng_below(rng, 20);
        for (size_t p = 0; p < phases.n; p++) {
            phase[p].dim = (uint8_t)cs_rng_below(rng, 4);
            if (cs_rng_below(rng, 8) == 0)
                phase[p].other_dims = (uint32_t)cs_rng_below(rng, 16) & ~(1u << phase[p].dim);
            phase[p].seconds = (double)cs_rng_below(rng, 1000) * 1e-9;
        }
        assert_int_equal(sim_collective_isolated_ps(&phases, chunks),
                         flow_shop_ps(&phases, chunks));
    }
    cs_rng_destroy(rng);
}

/* Two dimensions of 3 and 2 us, two chunks: 3 + 3 + 2 = 8 us, 2 us of it hidden. A billion chunks
 * cost no more to compute: 1e9 * 3 + 2 us. */
static void test_chunks_overlap(void **state)
{
    const sim_phases phases = {2, {{.dim = 0, .seconds = 3e-6}, {.dim = 1, .seconds = 2e-6}}};
    const sim_phases none = {.n = 0};

    (void)state;
    assert_int_equal(sim_collective_isolated_ps(&phases, 2), 8000000);
    assert_int_equal(sim_collective_isolated_ps(&phases, 1), 5000000);
    assert_int_equal(sim_collective_isolated_ps(&phases, 1000000000), 3000000002000000);
    assert_int_equal(sim_collective_isolated_ps(&none, 4), 0);
}

static sim_network cube(int64_t chunks, sim_scheduling scheduling)
{
    sim_network net = {.n_dims = 3,
                       .multi_dim = SIM_HIERARCHICAL,
                       .chunks = chunks,
                       .scheduling = (int32_t)scheduling};

    net.dim[0] = make_dim(SIM_RING, SIM_ALGO_RING, 4, 400, 100);
    net.dim[1] = make_dim(SIM_RING, SIM_ALGO_RING, 4, 100, 500);
    net.dim[2] = make_dim(SIM_RING, SIM_ALGO_RING, 8, 50, 5000);
    return net;
}

/* Busiest dimension of some collectives: nothing ends before it has served them. */
static double busiest_dimension(const sim_network *net, const sim_collective *issue, size_t n)
{
    double busy[SIM_MAX_DIMS] = {0}, most = 0;
    sim_route_cache *cache = sim_route_cache_create(0);

    for (size_t i = 0; i < n; i++) {
        sim_phases phases;
        assert_int_equal(sim_collective_phases(net, &issue[i], cache, &phases, NULL), CS_OK);
        for (size_t p = 0; p < phases.n; p++)
            busy[phases.phase[p].dim] += phases.phase[p].seconds * (double)net->chunks;
    }
    for (size_t d = 0; d < SIM_MAX_DIMS; d++)
        most = fmax(most, busy[d]);
    sim_route_cache_destroy(cache);
    return most;
}

/* [4,4,8], 100/500/5,000 ns, 1 to 8 chunks, several collectives at once: every policy ends, none
 * before the busiest dimension can, none later than one after the other. */
static void test_every_policy_finishes(void **state)
{
    sim_route_cache *cache = sim_route_cache_create(0);

    (void)state;
    for (int policy = SIM_PROGRAM; policy <= SIM_THEMIS; policy++) {
        for (int64_t chunks = 1; chunks <= 8; chunks *= 2) {
            sim_network net = cube(chunks, (sim_scheduling)policy);
            sim_footprint group = sim_footprint_whole(&net);
            const sim_collective issue[] = {{&group, WL_ALL_REDUCE, 16e6, 0},
                                            {&group, WL_ALL_GATHER, 64e6, 0},
                                            {&group, WL_REDUCE_SCATTER, 1e6, 50e-6},
                                            {&group, WL_ALL_TO_ALL, 4e6, 0}};
            double finish[4], end = 0, serial = 50e-6;
            assert_int_equal(sim_collectives_schedule(&net, issue, 4, cache, finish, NULL), CS_OK);
            for (int i = 0; i < 4; i++) {
                end = fmax(end, finish[i]);
                serial += seconds_of(&net, &group, issue[i].type, issue[i].bytes);
            }
            assert_true(end <= serial);
            if (policy != SIM_THEMIS)
                assert_true(end >= busiest_dimension(&net, issue, 4) * (1 - 1e-9));
        }
    }
    sim_route_cache_destroy(cache);
}

/* One collective alone under `program` is the isolated time. */
static void test_program_alone_is_isolated(void **state)
{
    sim_network net = cube(8, SIM_PROGRAM);
    sim_footprint group = sim_footprint_whole(&net);
    const sim_collective issue = {&group, WL_ALL_REDUCE, 16e6, 1e-6};
    sim_route_cache *cache = sim_route_cache_create(0);
    double finish;

    (void)state;
    assert_int_equal(sim_collectives_schedule(&net, &issue, 1, cache, &finish, NULL), CS_OK);
    assert_close(finish, 1e-6 + seconds_of(&net, &group, WL_ALL_REDUCE, 16e6), 1e-12);
    sim_route_cache_destroy(cache);
}

/* One dimension, two all-gathers of 10 ms (1 GB on a ring of 4: 3/4 S/B = 7.5 ms) and one of 1/10,
 * one chunk each, all there at 0 but the small one, which comes at 1 ms while the first runs:
 * fifo serves 1, 2, small (7.5, 15, 15.75); lifo and smallest serve the small one before the second
 * (7.5, 15.75, 8.25). */
static void test_policies_choose_differently(void **state)
{
    static const struct {
        sim_scheduling policy;
        double expect[3];
    } cases[] = {
        {SIM_PROGRAM, {7.5e-3, 15e-3, 15.75e-3}},
        {SIM_FIFO, {7.5e-3, 15e-3, 15.75e-3}},
        {SIM_LIFO, {15.75e-3, 7.5e-3, 8.25e-3}},
        {SIM_SMALLEST, {7.5e-3, 15.75e-3, 8.25e-3}},
    };
    sim_route_cache *cache = sim_route_cache_create(0);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sim_network net = {.n_dims = 1, .chunks = 1, .scheduling = (int32_t)cases[i].policy};
        double finish[3];
        net.dim[0] = make_dim(SIM_RING, SIM_ALGO_RING, 4, 100, 0);
        sim_footprint group = sim_footprint_whole(&net);
        const sim_collective issue[] = {{&group, WL_ALL_GATHER, 1e9, 0},
                                        {&group, WL_ALL_GATHER, 1e9, 0},
                                        {&group, WL_ALL_GATHER, 1e8, 1e-3}};
        assert_int_equal(sim_collectives_schedule(&net, issue, 3, cache, finish, NULL), CS_OK);
        for (int k = 0; k < 3; k++)
            assert_close(finish[k], cases[i].expect[k], 1e-9);
    }
    sim_route_cache_destroy(cache);
}

/* A reduce-scatter of 16 chunks on two equal rings of 4: in order, the second ring gets a quarter
 * of the first one's bytes; themis splits the starts between them: about 5/8 of the time. */
static void test_themis_balances_dimensions(void **state)
{
    sim_network net = {.n_dims = 2, .chunks = 16, .scheduling = SIM_FIFO};
    sim_route_cache *cache = sim_route_cache_create(0);
    double fifo, themis;

    (void)state;
    net.dim[0] = make_dim(SIM_RING, SIM_ALGO_RING, 4, 100, 0);
    net.dim[1] = make_dim(SIM_RING, SIM_ALGO_RING, 4, 100, 0);
    sim_footprint group = sim_footprint_whole(&net);
    const sim_collective issue = {&group, WL_REDUCE_SCATTER, 1e9, 0};
    assert_int_equal(sim_collectives_schedule(&net, &issue, 1, cache, &fifo, NULL), CS_OK);
    net.scheduling = SIM_THEMIS;
    assert_int_equal(sim_collectives_schedule(&net, &issue, 1, cache, &themis, NULL), CS_OK);
    /* fifo: 16 chunks of 0.46875 ms on dimension 1, the last one's 0.1171875 ms on dimension 2 */
    assert_close(fifo, 16 * 0.46875e-3 + 0.1171875e-3, 1e-9);
    assert_true(themis < 0.7 * fifo);
    assert_true(themis >= 0.625 * 16 * 0.46875e-3);
    sim_route_cache_destroy(cache);
}

static void test_wrong_input_is_refused(void **state)
{
    sim_network net = cube(4, (sim_scheduling)99);
    sim_footprint group = sim_footprint_whole(&net);
    const sim_collective issue = {&group, WL_ALL_REDUCE, 16e6, 0};
    sim_route_cache *cache = sim_route_cache_create(0);
    double finish;
    cs_error err;

    (void)state;
    assert_int_equal(sim_collectives_schedule(&net, &issue, 1, cache, &finish, &err), CS_EINVAL);
    assert_string_equal(err.text, "collective scheduling 99");
    net.scheduling = SIM_FIFO;
    net.chunks = INT64_MAX;
    assert_int_equal(sim_collectives_schedule(&net, &issue, 1, cache, &finish, &err), CS_EINVAL);
    net.chunks = 4;
    net.dim[1].algorithm = SIM_ALGO_HALVING_DOUBLING;
    net.dim[1].n = 6;
    group = sim_footprint_whole(&net);
    assert_int_equal(sim_collectives_schedule(&net, &issue, 1, cache, &finish, &err), CS_EINVAL);
    sim_route_cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_form_equals_the_flow_shop),
        cmocka_unit_test(test_chunks_overlap),
        cmocka_unit_test(test_every_policy_finishes),
        cmocka_unit_test(test_program_alone_is_isolated),
        cmocka_unit_test(test_policies_choose_differently),
        cmocka_unit_test(test_themis_balances_dimensions),
        cmocka_unit_test(test_wrong_input_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
