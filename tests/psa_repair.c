/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Repair: always valid, near, and keeping what can be kept. */
#include "tests/psa_fixture.h"

typedef unsigned __int128 count;

/* Which values of each variable occur in some valid point: repair must keep exactly those. */
static void mark_supported(const psa_space *space, bool supported[32][512])
{
    count n = psa_space_valid_points(space);
    int32_t point[32];

    for (count r = 0; r < n; r++) {
        psa_space_unrank(space, r, point);
        for (size_t v = 0; v < psa_space_n_vars(space); v++)
            supported[v][point[v]] = true;
    }
}

static void check_repair(const psa_space *space)
{
    static bool supported[32][512];
    cs_rng *rng = cs_rng_create(3, 1, 4);
    size_t n = psa_space_n_vars(space);
    int32_t point[32];

    memset(supported, 0, sizeof supported);
    mark_supported(space, supported);
    for (int i = 0; i < 20000; i++) {
        size_t pinned = (size_t)cs_rng_below(rng, n + 1);
        int32_t wanted = 0;
        bool kept;
        for (size_t v = 0; v < n; v++)
            point[v] = (int32_t)cs_rng_below(rng, (uint64_t)psa_space_card(space, v));
        wanted = pinned < n ? point[pinned] : 0;
        kept = psa_space_repair(space, rng, pinned < n ? pinned : SIZE_MAX, point);
        assert_true(psa_space_valid(space, point));
        if (pinned == n) {
            assert_true(kept);
            continue;
        }
        assert_int_equal(kept, supported[pinned][wanted]);
        if (kept)
            assert_int_equal(point[pinned], wanted);
    }
    cs_rng_destroy(rng);
}

static void test_repair_keeps_what_can_be_kept(void **state)
{
    static const struct {
        const psa_tables *tables;
        const char *psa, *system;
    } cases[] = {{&fx_plain, FX_SMALL, FX_SYSTEM},
                 {&fx_tables, FX_SPACE_A, FX_SYSTEM},
                 {&fx_tables, FX_SPACE_B, FX_SYSTEM_B},
                 {&fx_tables, FX_SPACE_C, FX_SYSTEM_C}};
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        psa_schema *schema = fx_load(cases[i].tables, cases[i].psa, cases[i].system);
        psa_space *space = fx_space(schema);
        check_repair(space);
        psa_space_destroy(space);
        psa_schema_destroy(schema);
    }
}

/* A valid point is left alone, whatever is pinned; points out of range are brought back. */
static void test_repair_leaves_valid_points_alone(void **state)
{
    psa_schema *schema = fx_load(&fx_tables, FX_SPACE_A, FX_SYSTEM);
    psa_space *space = fx_space(schema);
    cs_rng *rng = cs_rng_create(1, 1, 1);
    size_t n = psa_space_n_vars(space);
    int32_t point[32], copy[32];

    (void)state;
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(psa_space_sample(space, rng, point), CS_OK);
        memcpy(copy, point, sizeof copy);
        assert_true(psa_space_repair(space, rng, (size_t)i % n, point));
        assert_memory_equal(copy, point, n * sizeof *point);
        point[(size_t)i % n] = i % 2 == 0 ? -5 : 100000;
        assert_false(psa_space_valid(space, point));
        assert_false(psa_space_repair(space, rng, (size_t)i % n, point));
        assert_true(psa_space_valid(space, point));
    }
    cs_rng_destroy(rng);
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repair_keeps_what_can_be_kept),
        cmocka_unit_test(test_repair_leaves_valid_points_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
