/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Spaces at the edge: empty, single, huge, refused. */
#include "tests/psa_fixture.h"

typedef unsigned __int128 count;

static void test_no_valid_point(void **state)
{
    psa_schema *schema = fx_load(&fx_plain,
                                 "psa: 1\nknobs:\n  workload.dp: {powers_of_two: [1, 8]}\n"
                                 "  workload.tp: {powers_of_two: [1, 8]}\n"
                                 "constraints: [workload.dp * workload.tp == 24]\n",
                                 FX_SYSTEM);
    psa_space *space = fx_space(schema);
    cs_rng *rng = cs_rng_create(1, 2, 3);
    int32_t point[8] = {0};

    (void)state;
    assert_true(psa_space_valid_points(space) == 0);
    assert_int_equal((int)psa_space_raw_points(space), 16);
    assert_int_equal(psa_space_sample(space, rng, point), CS_EINFEASIBLE);
    assert_false(psa_space_valid(space, point));
    assert_false(psa_space_repair(space, rng, 0, point));
    assert_true(psa_space_n_vars(space) == 2);
    cs_rng_destroy(rng);
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

/* Found only while eliminating: no single condition is impossible. */
static void test_no_valid_point_found_late(void **state)
{
    psa_schema *schema =
        fx_load(&fx_plain,
                "psa: 1\nknobs:\n  workload.dp: {range: [1, 60], step: 1}\n"
                "  workload.tp: {range: [1, 60], step: 1}\n  workload.sp: {range: [1, 60], step: "
                "1}\nconstraints:\n"
                "  - workload.dp + workload.tp + workload.sp <= 20\n"
                "  - workload.dp * workload.tp * workload.sp >= 1000\n",
                FX_SYSTEM);
    psa_space *space = fx_space(schema);
    int32_t point[8] = {0};

    (void)state;
    assert_true(psa_space_valid_points(space) == 0);
    assert_false(psa_space_valid(space, point));
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

static void test_false_on_constants_is_an_error(void **state)
{
    static const struct {
        const char *psa, *message;
    } cases[] = {
        {"psa: 1\nconstraints: [product(network.npus) == 64]\n",
         "test.yaml:2:15: no design can satisfy this, whatever the knobs: product(network.npus) == "
         "64: product(network.npus) = product(4, 8) = 32 must be equal to 64"},
        {"psa: 1\n" FX_WORKLOAD "knobs: {workload.tp: [7]}\n", "96 % 7 = 5"},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        psa_schema *schema = fx_load(&fx_tables, cases[i].psa, FX_SYSTEM);
        psa_space *space = NULL;
        cs_error err = {""};
        assert_int_equal(psa_space_create(schema, &space, &err), CS_ESCHEMA);
        if (i == 0)
            fx_contains(err.text, cases[i].message);
        psa_schema_destroy(schema);
    }
}

static void test_single_point_and_single_knob(void **state)
{
    static const struct {
        const char *psa;
        int32_t card;
    } cases[] = {
        {"psa: 1\n", 1},
        {"psa: 1\nknobs: {workload.tp: [5]}\n", 1},
        {"psa: 1\nknobs: {collective.chunks: {range: [1, 10000], step: 1}}\n", 10000},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        psa_schema *schema = fx_load(&fx_plain, cases[i].psa, FX_SYSTEM);
        psa_space *space = fx_space(schema);
        cs_rng *rng = cs_rng_create(1, 2, 3);
        int32_t point[4];
        const int32_t *list;
        fx_config config;
        assert_int_equal(psa_space_n_vars(space), 1);
        assert_int_equal(psa_space_card(space, 0), cases[i].card);
        assert_true(psa_space_valid_points(space) == (count)cases[i].card);
        assert_int_equal(psa_space_sample(space, rng, point), CS_OK);
        assert_true(psa_space_repair(space, rng, SIZE_MAX, point));
        assert_true(psa_space_valid(space, point));
        assert_true(psa_space_rank(space, point) < (count)cases[i].card);
        assert_true(psa_space_neighbours(space, 0, point[0], &list) <= 2);
        psa_space_decode(space, point, &config);
        assert_int_equal(config.tp, i == 1 ? 5 : 1);
        cs_rng_destroy(rng);
        psa_space_destroy(space);
        psa_schema_destroy(schema);
    }
}

static void test_too_large_tables_name_the_constraint(void **state)
{
    psa_schema *schema = fx_load(&fx_plain,
                                 "psa: 1\nknobs:\n  workload.dp: {range: [1, 9000], step: 1}\n"
                                 "  workload.tp: {range: [1, 9000], step: 1}\nconstraints:\n"
                                 "  - workload.dp % workload.tp == 1\n",
                                 FX_SYSTEM);
    psa_space *space = NULL;
    cs_error err;

    (void)state;
    assert_int_equal(psa_space_create(schema, &space, &err), CS_ESCHEMA);
    fx_contains(err.text, "test.yaml:6:5: the constraint 'workload.dp % workload.tp == 1' needs a "
                          "table of more than 10,000,000 entries");
    psa_schema_destroy(schema);
}

static void test_unbound_workloads_are_refused(void **state)
{
    psa_schema *schema = NULL;
    psa_space *space = NULL;
    cs_error err;

    (void)state;
    assert_int_equal(fx_parse(&fx_tables, "psa: 1\n" FX_WORKLOAD, FX_SYSTEM, &schema, &err), CS_OK);
    assert_int_equal(psa_space_create(schema, &space, &err), CS_EINVAL);
    fx_contains(err.text, "workload 1 has no facts");
    psa_schema_destroy(schema);
}

/* One knob for all dimensions: copied, and counted once. */
static void test_knob_without_per_dimension_is_copied(void **state)
{
    psa_schema *schema = fx_load(&fx_plain,
                                 "psa: 1\nknobs:\n  network.npus: {values: [2, 4, 8]}\n"
                                 "constraints: [product(network.npus) >= 16]\n",
                                 FX_SYSTEM);
    psa_space *space = fx_space(schema);
    fx_config config;
    int32_t point[4];

    (void)state;
    assert_int_equal((int)psa_space_valid_points(space), 2);
    psa_space_unrank(space, 0, point);
    psa_space_decode(space, point, &config);
    assert_int_equal(config.npus[0], 4);
    assert_int_equal(config.npus[1], 4);
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

/* Hundreds of conditions: x + i * y != k keeps what the loop below keeps. */
static void test_many_constraints(void **state)
{
    static char psa[32768];
    size_t used = (size_t)snprintf(psa, sizeof psa,
                                   "psa: 1\nknobs:\n  workload.dp: {range: [1, 40], step: 1}\n"
                                   "  workload.tp: {range: [1, 40], step: 1}\nconstraints:\n");
    psa_schema *schema;
    psa_space *space;
    count valid = 0;

    (void)state;
    for (int i = 0; i < 300; i++)
        used += (size_t)snprintf(psa + used, sizeof psa - used,
                                 "  - workload.dp + %d * workload.tp != %d\n", i % 17, i);
    for (int dp = 1; dp <= 40; dp++)
        for (int tp = 1; tp <= 40; tp++) {
            bool holds = true;
            for (int i = 0; i < 300; i++)
                holds = holds && dp + i % 17 * tp != i;
            valid += holds;
        }
    schema = fx_load(&fx_plain, psa, FX_SYSTEM);
    space = fx_space(schema);
    assert_int_equal((int)psa_space_valid_points(space), (int)valid);
    assert_in_range(valid, 10, 1500);
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

static void test_hostile_sizes_are_refused(void **state)
{
    static char psa[400000];
    psa_schema *schema = NULL;
    cs_error err = {""};
    size_t used = (size_t)snprintf(psa, sizeof psa, "psa: 1\nconstraints:\n");

    (void)state;
    for (int i = 0; i < 2001; i++)
        used += (size_t)snprintf(psa + used, sizeof psa - used, "  - workload.dp > %d\n", i);
    assert_int_equal(fx_parse(&fx_plain, psa, FX_SYSTEM, &schema, &err), CS_ESCHEMA);
    fx_contains(err.text, "more than 2000 constraints");

    used = (size_t)snprintf(psa, sizeof psa, "psa: 1\nderived: {x: 1");
    for (int i = 0; i < 6000; i++)
        used += (size_t)snprintf(psa + used, sizeof psa - used, " + 1");
    (void)snprintf(psa + used, sizeof psa - used, "}\n");
    assert_int_equal(fx_parse(&fx_plain, psa, FX_SYSTEM, &schema, &err), CS_ESCHEMA);
    fx_contains(err.text, "longer than 10,000 characters");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_constraints),
        cmocka_unit_test(test_hostile_sizes_are_refused),
        cmocka_unit_test(test_no_valid_point),
        cmocka_unit_test(test_no_valid_point_found_late),
        cmocka_unit_test(test_false_on_constants_is_an_error),
        cmocka_unit_test(test_single_point_and_single_knob),
        cmocka_unit_test(test_too_large_tables_name_the_constraint),
        cmocka_unit_test(test_unbound_workloads_are_refused),
        cmocka_unit_test(test_knob_without_per_dimension_is_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
