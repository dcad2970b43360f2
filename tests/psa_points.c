/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Variables of a space, inactive knobs, translation between points and configurations. */
#include "tests/psa_fixture.h"

typedef unsigned __int128 count;

static void test_variables_of_a_space(void **state)
{
    psa_schema *schema = fx_load(&fx_tables,
                                 "psa: 1\n" FX_WORKLOAD "knobs:\n"
                                 "  workload.dp: {powers_of_two: [1, 64]}\n"
                                 "  workload.tp: {powers_of_two: [1, 32]}\n"
                                 "  workload.sharding: {values: [none, weights]}\n"
                                 "  network.npus: {values: [2, 4, 8, 16], per: dimension}\n"
                                 "  network.bandwidth: {range: [50 GB/s, 150 GB/s], step: 50 GB/s, "
                                 "per: dimension}\n"
                                 "constraints: [\"product(network.npus) == 32\"]\n",
                                 FX_SYSTEM);
    psa_space *space = fx_space(schema);
    static const char *const names[] = {"workload.dp*tp", "workload.sharding", "network.npus",
                                        "network.bandwidth[1]", "network.bandwidth[2]"};
    /* dp * tp = 32 with 96 % tp = 0 and 96 % dp = 0: dp and tp in 1..32: six; npus 2*16, 4*8,
     * 8*4, 16*2. */
    static const int32_t cards[] = {6, 2, 4, 3, 3};
    static const psa_var_kind kinds[] = {PSA_VAR_TUPLE, PSA_VAR_CATEGORY, PSA_VAR_TUPLE,
                                         PSA_VAR_ORDERED, PSA_VAR_ORDERED};
    static const size_t groups[] = {0, 0, 0, 1, 2};
    const int32_t *list;

    (void)state;
    assert_int_equal(psa_space_n_vars(space), 5);
    for (size_t v = 0; v < 5; v++) {
        assert_string_equal(psa_space_var_name(space, v), names[v]);
        assert_int_equal(psa_space_card(space, v), cards[v]);
        assert_int_equal(psa_space_var_kind(space, v), kinds[v]);
        assert_int_equal(psa_space_group(space, v), groups[v]);
    }
    assert_int_equal(psa_space_neighbours(space, 0, 0, &list), 1); /* 1*32 -> 2*16 */
    assert_int_equal(list[0], 1);
    assert_int_equal(psa_space_neighbours(space, 0, 3, &list), 2);
    assert_int_equal(psa_space_neighbours(space, 1, 0, &list), 1);
    assert_int_equal(list[0], 1);
    assert_int_equal(psa_space_neighbours(space, 3, 1, &list), 2);
    assert_int_equal(psa_space_neighbours(space, 3, 2, &list), 1);
    assert_true(psa_space_distance(space, 0, 0, 5) == 1);
    assert_true(fabs(psa_space_distance(space, 0, 0, 1) - 0.2) < 1e-12); /* 1 of 5 doublings */
    assert_true(psa_space_distance(space, 1, 0, 1) == 1);
    assert_true(psa_space_distance(space, 3, 0, 1) == 0.5);
    assert_int_equal(psa_space_n_features(space), 2 + 1 + 2 + 1 + 1);
    assert_true(psa_space_feature_is_category(space, 2));
    assert_false(psa_space_feature_is_category(space, 0));
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

/* Neighbours of a tuple are valid solutions one prime apart, and the relation is symmetric. */
static void test_tuple_neighbours_move_one_prime(void **state)
{
    psa_schema *schema = fx_load(&fx_plain,
                                 "psa: 1\nknobs:\n  workload.dp: {divisors: 360}\n"
                                 "  workload.tp: {divisors: 360}\n  workload.sp: {divisors: 360}\n"
                                 "constraints: [workload.dp * workload.tp * workload.sp == 360]\n",
                                 FX_SYSTEM);
    psa_space *space = fx_space(schema);
    int32_t card = psa_space_card(space, 0);
    double from[3], to[3];

    (void)state;
    /* 360 = 2^3 * 3^2 * 5: C(5,2) * C(4,2) * C(3,2) = 10 * 6 * 3 */
    assert_int_equal(card, 180);
    for (int32_t v = 0; v < card; v++) {
        const int32_t *list;
        size_t n = psa_space_neighbours(space, 0, v, &list);
        assert_true(n >= 2);
        psa_space_features(space, &v, from);
        for (size_t i = 0; i < n; i++) {
            const int32_t *back;
            size_t m = psa_space_neighbours(space, 0, list[i], &back), found = 0;
            int changed = 0;
            psa_space_features(space, &list[i], to);
            for (int k = 0; k < 3; k++) {
                assert_true(to[k] >= 0 && to[k] <= 1);
                changed += fabs(from[k] - to[k]) > 1e-12;
            }
            for (size_t k = 0; k < m; k++)
                found += back[k] == v;
            assert_int_equal(changed, 2);
            assert_int_equal(found, 1);
        }
    }
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

static void test_sum_equalities_are_tuples_too(void **state)
{
    psa_schema *schema = fx_load(&fx_plain,
                                 "psa: 1\nknobs:\n  network.bandwidth: {range: [50 GB/s, 200 GB/s],"
                                 " step: 50 GB/s, per: dimension}\n"
                                 "constraints: [sum(network.bandwidth) == 250 GB/s]\n",
                                 FX_SYSTEM);
    psa_space *space = fx_space(schema);
    const int32_t *list;

    (void)state;
    assert_int_equal(psa_space_n_vars(space), 1); /* 50+200, 100+150, 150+100, 200+50 */
    assert_int_equal(psa_space_card(space, 0), 4);
    assert_int_equal(psa_space_neighbours(space, 0, 0, &list), 1);
    assert_int_equal(psa_space_neighbours(space, 0, 1, &list), 2);
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

static void test_inactive_knobs(void **state)
{
    psa_schema *schema = fx_load(&fx_plain, FX_SMALL, FX_SYSTEM);
    psa_space *space = fx_space(schema);
    cs_rng *rng = cs_rng_create(5, 5, 5);
    int32_t point[32];
    int off = 0;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        fx_config c;
        assert_int_equal(psa_space_sample(space, rng, point), CS_OK);
        psa_space_decode(space, point, &c);
        for (size_t k = 0; k < psa_space_n_knobs(space); k++) {
            const char *name = psa_space_knob_name(space, k);
            bool active, expect = true;
            int32_t index = psa_space_knob_index(space, point, k, &active);
            if (strcmp(name, "workload.schedule") == 0)
                expect = c.pp > 1;
            if (strcmp(name, "network.bandwidth[2]") == 0)
                expect = c.npus[1] > 1;
            if (strcmp(name, "network.bandwidth[1]") == 0)
                expect = c.npus[0] > 1;
            assert_int_equal(active, expect);
            if (!active) {
                assert_int_equal(index, 0);
                off++;
            }
        }
    }
    assert_true(off > 100);
    cs_rng_destroy(rng);
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

static void test_canonical_form_follows_chains(void **state)
{
    psa_schema *schema =
        fx_load(&fx_plain,
                "psa: 1\nknobs:\n  workload.sharding: {values: [weights, none], when: "
                "\"workload.schedule == 'gpipe'\"}\n"
                "  workload.schedule: {values: [1f1b, gpipe], when: workload.pp > 1}\n"
                "  workload.pp: [1, 2]\n",
                FX_SYSTEM);
    psa_space *space = fx_space(schema);
    int32_t point[3] = {1, 1, 0}; /* sharding none, gpipe, pp 1 */

    (void)state;
    /* pp 1: one; pp 2: 1f1b, gpipe + weights, gpipe + none. */
    assert_int_equal((int)psa_space_valid_points(space), 4);
    assert_false(psa_space_valid(space, point));
    assert_false(psa_space_active(space, point, 1));
    psa_space_canonicalize(space, point);
    assert_int_equal(point[0], 0);
    assert_int_equal(point[1], 0);
    assert_true(psa_space_valid(space, point));
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

static void test_encode_says_what_does_not_fit(void **state)
{
    static const struct {
        const char *set, *message;
    } cases[] = {
        {"workload.dp=7", "degrees fill the network"},
        {"workload.micro_batch=5", "workload.micro_batch = 5 is not among the values"},
        {"network.bandwidth[1]=60 GB/s", "network.bandwidth[1] = 60 GB/s is not among"},
        {"collective.chunks=9", "collective.chunks is 4 in this space, not 9"},
    };
    psa_schema *schema = fx_load(&fx_tables, FX_SPACE_A, FX_SYSTEM);
    psa_space *space = fx_space(schema);
    fx_config config;
    cs_error err = {""};
    int32_t point[32];

    (void)state;
    psa_schema_baseline(schema, &config);
    assert_int_equal(psa_schema_assign(schema, "network.topology=ring", &config, &err), CS_OK);
    assert_int_equal(psa_space_encode(space, &config, point, &err), CS_OK);
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        fx_config other = config;
        if (i == 0)
            other.npus[0] = 8; /* dp * ... = 32, NPUs = 64 */
        else
            assert_int_equal(psa_schema_assign(schema, cases[i].set, &other, &err), CS_OK);
        assert_int_equal(psa_space_encode(space, &other, point, &err), CS_EINVAL);
        fx_contains(err.text, cases[i].message);
    }
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

static void test_from_raw_indices(void **state)
{
    psa_schema *schema = fx_load(&fx_plain, FX_SMALL, FX_SYSTEM);
    psa_space *space = fx_space(schema);
    size_t n = psa_space_n_knobs(space);
    int32_t index[32] = {0}, point[32];
    count raw = psa_space_raw_points(space), valid = 0;

    (void)state;
    for (count r = 0; r < raw; r++) {
        count rest = r;
        for (size_t k = 0; k < n; k++) {
            index[k] = (int32_t)(rest % psa_space_knob_count(space, k));
            rest /= psa_space_knob_count(space, k);
        }
        if (!psa_space_from_raw(space, index, point))
            continue;
        valid++;
        for (size_t k = 0; k < n; k++)
            assert_int_equal(psa_space_knob_index(space, point, k, NULL), index[k]);
    }
    assert_true(valid == psa_space_valid_points(space));
    index[0] = 99;
    assert_false(psa_space_from_raw(space, index, point));
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

static void test_fixed_knobs_and_stacks(void **state)
{
    static const char *const stacks[] = {"network"}, *const wrong[] = {"netwrk"};
    psa_schema *schema = fx_load(&fx_tables, FX_SPACE_A, FX_SYSTEM);
    psa_space *space;
    cs_error err;
    int32_t point[32];
    fx_config config;
    cs_rng *rng = cs_rng_create(1, 2, 3);

    (void)state;
    assert_int_equal(psa_schema_select_stacks(schema, wrong, 1, &err), CS_EINVAL);
    fx_contains(err.text, "did you mean 'network'?");
    assert_int_equal(psa_schema_fix(schema, "network.npus[2]=8", &err), CS_OK);
    assert_int_equal(psa_schema_select_stacks(schema, stacks, 1, &err), CS_OK);
    space = fx_space(schema);
    /* dp stays 32 (baseline), so npus[1] = 4: 3 topologies and 2 bandwidths on dimension 1, 2
     * topologies (no switch: tp_sequence is off) and 2 bandwidths on dimension 2. */
    assert_int_equal((int)psa_space_valid_points(space), 3 * 2 * 2 * 2);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(psa_space_sample(space, rng, point), CS_OK);
        psa_space_decode(space, point, &config);
        assert_int_equal(config.dp, 32);
        assert_int_equal(config.npus[0], 4);
        assert_int_equal(config.npus[1], 8);
    }
    psa_space_destroy(space);
    cs_rng_destroy(rng);
    psa_schema_destroy(schema);
}

/* Combinations of (dp, npus[1]) against a walk over all points. */
typedef struct {
    count by[64][64];
    size_t calls;
} tally;

static void add_combination(void *context, const void *config, count points)
{
    tally *t = context;
    const fx_config *c = config;

    t->by[c->dp][c->npus[0]] += points;
    t->calls++;
}

static void test_combinations_are_counted(void **state)
{
    psa_schema *schema = fx_load(&fx_plain, FX_SMALL, FX_SYSTEM);
    psa_space *space = fx_space(schema);
    static tally counted, walked;
    bool chosen[32] = {false};
    psa_combinations request = {chosen, 100, add_combination, &counted};
    cs_error err;
    int32_t point[32];
    fx_config config;

    (void)state;
    for (size_t k = 0; k < psa_space_n_knobs(space); k++)
        chosen[k] = strcmp(psa_space_knob_name(space, k), "workload.dp") == 0 ||
                    strcmp(psa_space_knob_name(space, k), "network.npus[1]") == 0;
    assert_int_equal(psa_space_combinations(space, &request, &err), CS_OK);
    for (count r = 0; r < psa_space_valid_points(space); r++) {
        psa_space_unrank(space, r, point);
        psa_space_decode(space, point, &config);
        add_combination(&walked, &config, 1);
    }
    assert_memory_equal(counted.by, walked.by, sizeof counted.by);
    assert_true(counted.calls < 20);
    request.limit = 2;
    assert_int_equal(psa_space_combinations(space, &request, &err), CS_ESCHEMA);
    memset(chosen, 0, sizeof chosen); /* none chosen: one combination, all points */
    memset(&counted, 0, sizeof counted);
    assert_int_equal(psa_space_combinations(space, &request, &err), CS_OK);
    assert_int_equal(counted.calls, 1);
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

/* A knob that nothing restricts: every value has the same number of points. */
static void test_combinations_of_a_free_knob(void **state)
{
    psa_schema *schema = fx_load(&fx_plain,
                                 "psa: 1\nknobs:\n  workload.dp: [1, 2, 3]\n"
                                 "  workload.tp: [1, 2, 3, 4]\n  workload.sp: [1, 2]\n"
                                 "constraints: [workload.tp + workload.sp <= 4]\n",
                                 FX_SYSTEM);
    psa_space *space = fx_space(schema);
    static tally counted;
    const bool chosen[3] = {true, false, false};
    psa_combinations request = {chosen, 100, add_combination, &counted};
    cs_error err;

    (void)state;
    assert_int_equal(psa_space_combinations(space, &request, &err), CS_OK);
    assert_int_equal(counted.calls, 3);
    for (int dp = 1; dp <= 3; dp++)
        assert_int_equal((int)counted.by[dp][4], 3 + 2); /* sp 1: tp 1-3; sp 2: tp 1-2 */
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

/* 4 and 16 are two primes apart: no single move, so the nearest solutions stand in. */
static void test_lonely_solutions_have_neighbours(void **state)
{
    psa_schema *schema = fx_load(&fx_plain,
                                 "psa: 1\nknobs:\n  workload.dp: [4, 16, 64]\n"
                                 "  workload.tp: [4, 16, 64]\n"
                                 "constraints: [workload.dp * workload.tp == 256]\n",
                                 FX_SYSTEM);
    psa_space *space = fx_space(schema);
    const int32_t *list;

    (void)state;
    assert_int_equal(psa_space_card(space, 0), 3); /* 4*64, 16*16, 64*4 */
    assert_int_equal(psa_space_neighbours(space, 0, 0, &list), 1);
    assert_int_equal(list[0], 1);
    assert_int_equal(psa_space_neighbours(space, 0, 1, &list), 2);
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables_of_a_space),
        cmocka_unit_test(test_tuple_neighbours_move_one_prime),
        cmocka_unit_test(test_sum_equalities_are_tuples_too),
        cmocka_unit_test(test_inactive_knobs),
        cmocka_unit_test(test_canonical_form_follows_chains),
        cmocka_unit_test(test_encode_says_what_does_not_fit),
        cmocka_unit_test(test_from_raw_indices),
        cmocka_unit_test(test_combinations_are_counted),
        cmocka_unit_test(test_combinations_of_a_free_knob),
        cmocka_unit_test(test_lonely_solutions_have_neighbours),
        cmocka_unit_test(test_fixed_knobs_and_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
