/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Network dollars: N * sum of bandwidth per NPU (GB/s) * dollars per GB/s. */
#include "tests/sim_network_test.h"

enum { R = SIM_RING, F = SIM_FULLY_CONNECTED, S = SIM_SWITCH };

static const struct {
    const char *table;
    size_t n_dims;
    struct {
        int topology;
        int64_t n;
        double gb;
    } dim[4];
    double expect;
} cases[] = {
    /* 256 * 100 * (2 + 4 + 4 + 7.8) */
    {"cosmic", 4, {{R, 4, 100}, {F, 4, 100}, {R, 4, 100}, {F, 4, 100}}, 455680},
    /* 1,024 * 100 * 17.8 */
    {"cosmic", 4, {{R, 4, 100}, {F, 16, 100}, {R, 4, 100}, {F, 4, 100}}, 1822720},
    /* a switch of dimension 2: 2*4 + 13 = 21; of the pod: 2*7.8 + 18 + 31.6 = 65.2 */
    {"cosmic", 4, {{R, 4, 100}, {S, 8, 100}, {R, 4, 100}, {S, 8, 100}}, 9441280},
    /* COSMIC systems of 1,024, 2,048 and 512 NPUs */
    {"cosmic", 4, {{R, 4, 375}, {F, 8, 175}, {R, 4, 150}, {S, 8, 100}}, 8775680},
    {"cosmic", 4, {{F, 8, 900}, {S, 16, 100}, {R, 4, 50}, {R, 4, 12.5}}, 8596480},
    {"cosmic", 4, {{R, 4, 200}, {R, 4, 200}, {R, 4, 200}, {S, 8, 50}}, 2693120},
    /* LIBRA's example: 4,096 NPUs, a pod switch at 7.8 + 18 + 31.6 = 57.4 */
    {"libra", 4, {{R, 4, 250}, {F, 8, 250}, {R, 4, 250}, {S, 32, 250}}, 69017600},
    {"libra", 4, {{R, 4, 500}, {F, 8, 250}, {R, 4, 150}, {S, 32, 100}}, 34160640},
    /* fewer dimensions: one is a package, two are package and pod; 8 * 400 * 21 */
    {"cosmic", 1, {{S, 8, 400}}, 67200},
    /* 512 * (450 * 21 + 50 * 65.2) */
    {"cosmic", 2, {{S, 8, 450}, {S, 64, 50}}, 6507520},
    /* a dimension of one NPU costs nothing, whatever it is */
    {"cosmic", 4, {{S, 1, 100}, {F, 4, 100}, {R, 4, 100}, {R, 1, 100}}, 12800},
    /* no switch in the chiplet, no such table */
    {"cosmic", 4, {{S, 4, 100}, {F, 4, 100}, {R, 4, 100}, {F, 4, 100}}, NAN},
    {"gold", 1, {{R, 8, 100}}, NAN},
};

static void test_worked_costs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sim_network net = {.n_dims = cases[i].n_dims};
        double cost;
        for (size_t d = 0; d < net.n_dims; d++)
            net.dim[d] = make_dim((sim_topology)cases[i].dim[d].topology, SIM_ALGO_RING,
                                  cases[i].dim[d].n, cases[i].dim[d].gb, 0);
        cost = sim_network_cost_usd(&net, cases[i].table);
        if (isnan(cases[i].expect))
            assert_true(isnan(cost));
        else
            assert_close(cost, cases[i].expect, 1e-12);
    }
}

/* 100 + 0 + 50: a dimension of one NPU counts nothing. */
static void test_bandwidth_of_idle_dimensions_is_not_counted(void **state)
{
    sim_network net = {.n_dims = 3};

    (void)state;
    net.dim[0] = make_dim(SIM_RING, SIM_ALGO_RING, 4, 100, 0);
    net.dim[1] = make_dim(SIM_RING, SIM_ALGO_RING, 1, 400, 0);
    net.dim[2] = make_dim(SIM_SWITCH, SIM_ALGO_RING, 2, 50, 0);
    assert_close(sim_network_bandwidth(&net), 150e9, 1e-15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked_costs),
        cmocka_unit_test(test_bandwidth_of_idle_dimensions_is_not_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
