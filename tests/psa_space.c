/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The indexed space against counts by plain loops; uniform samples; ranks. */
#include "tests/psa_fixture.h"

typedef unsigned __int128 count;

static bool is_power_of_two(int64_t n)
{
    return (n & (n - 1)) == 0;
}

static count network_choices(const int64_t npus[2], bool switch_two)
{
    count n = 1;

    for (int d = 0; d < 2; d++)
        if (npus[d] > 1)
            n *= (count)(d == 1 && !switch_two ? 2 : 3) * 2;
    return n; /* a dimension of size 1 has one topology (ring) and one bandwidth */
}

static count space_a_by_loops(void)
{
    static const int64_t sizes[] = {4, 1, 2, 8}, batches[] = {1, 2, 3, 6};
    count total = 0;

    for (int64_t dp = 1; dp <= 64; dp *= 2)
        for (int64_t tp = 1; tp <= 16; tp *= 2)
            for (int64_t sp = 1; sp <= 8; sp *= 2)
                for (int64_t pp = 1; pp <= 8; pp *= 2)
                    for (int a = 0; a < 16; a++) {
                        int64_t npus[2] = {sizes[a / 4], sizes[a % 4]};
                        if (dp * tp * sp * pp != npus[0] * npus[1] || 96 % tp != 0 || 96 % pp != 0)
                            continue;
                        for (int b = 0; b < 4; b++)
                            if (96 % (dp * batches[b]) == 0)
                                total += (pp > 1 ? 2u : 1u) *
                                         (network_choices(npus, false) +
                                          (tp > 1 ? network_choices(npus, true) : 0));
                    }
    return total;
}

static bool space_b_holds(const int n[3], const int t[3], const int b[3], const int a[3])
{
    int sum = 0, switches = 0, product = 1;

    for (int d = 0; d < 3; d++) {
        if (n[d] == 1 && (t[d] != 0 || b[d] != 0 || a[d] != 0))
            return false;
        sum += n[d] == 1 ? 0 : 50 * (b[d] + 1);
        switches += n[d] > 1 && t[d] == 1;
        product *= n[d];
        if (a[d] == 2 && !is_power_of_two(n[d]))
            return false;
    }
    return product == 24 && sum <= 250 && switches < 2;
}

static count space_b_by_loops(void)
{
    static const int sizes[] = {1, 2, 3, 4, 6, 8};
    count total = 0;

    for (int i = 0; i < 216; i++)
        for (int j = 0; j < 27 * 27 * 27; j++) {
            int n[3] = {sizes[i % 6], sizes[i / 6 % 6], sizes[i / 36]};
            int t[3] = {j % 3, j / 3 % 3, j / 9 % 3};
            int b[3] = {j / 27 % 3, j / 81 % 3, j / 243 % 3};
            int a[3] = {j / 729 % 3, j / 2187 % 3, j / 6561};
            total += space_b_holds(n, t, b, a);
        }
    return total;
}

static int max3(int a, int b, int c)
{
    int ab = a > b ? a : b;

    return ab > c ? ab : c;
}

static count space_c_by_loops(void)
{
    count total = 0;

    for (int dp = 1; dp <= 12; dp++)
        for (int tp = 1; tp <= 12; tp++)
            for (int sp = 1; sp <= 10; sp++)
                for (int pp = 2; pp <= 10; pp++)
                    for (int mb = 1; mb <= 8; mb++) {
                        int sum = dp + tp + sp + pp;
                        if (dp * tp * sp * pp > 2000 || sum % 7 != mb % 7 ||
                            max3(dp, tp, sp) - (dp < tp ? dp : tp) > 4)
                            continue;
                        total += (sum * 2 + mb >= 45 ? 2u : 1u) * 5; /* 3 * 2 - 1 */
                    }
    return total;
}

static void check_count(const char *psa, const char *system, count raw, count valid)
{
    psa_schema *schema = fx_load(&fx_tables, psa, system);
    psa_space *space = fx_space(schema);
    char a[40], b[40];

    if (psa_space_raw_points(space) != raw)
        fail_msg("raw points %s, expected %s", cs_u128_text(psa_space_raw_points(space), a),
                 cs_u128_text(raw, b));
    if (psa_space_valid_points(space) != valid)
        fail_msg("valid points %s, expected %s", cs_u128_text(psa_space_valid_points(space), a),
                 cs_u128_text(valid, b));
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

static void test_counts_equal_loops(void **state)
{
    (void)state;
    check_count(FX_SPACE_A, FX_SYSTEM, 5160960, space_a_by_loops());
    check_count(FX_SPACE_B, FX_SYSTEM_B, 4251528, space_b_by_loops());
    check_count(FX_SPACE_C, FX_SYSTEM_C, 1244160, space_c_by_loops());
}

/* Ten knobs of 10,000 values under x <= 10 dp: counted without listing anything; 10^40 * ... */
static void test_counts_over_64_bits(void **state)
{
    psa_schema *schema =
        fx_load(&fx_plain,
                "psa: 1\nknobs:\n  network.bandwidth: {range: [1 GB/s, 10000 GB/s], step: 1 GB/s, "
                "per: dimension}\n  network.latency: {range: [1 ns, 10000 ns], step: 1 ns, per: "
                "dimension}\n",
                "system: 1\nnetwork: {npus: [2, 2, 2, 2]}\n");
    psa_space *space = fx_space(schema);
    char text[40];

    (void)state;
    assert_string_equal(cs_u128_text(psa_space_valid_points(space), text),
                        "100000000000000000000000000000000"); /* 10^32 */
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

static void test_over_128_bits_is_refused(void **state)
{
    psa_schema *schema =
        fx_load(&fx_plain,
                "psa: 1\nknobs:\n  network.bandwidth: {range: [1 GB/s, 10000 GB/s], step: 1 GB/s, "
                "per: dimension}\n  network.latency: {range: [1 ns, 10000 ns], step: 1 ns, per: "
                "dimension}\n",
                "system: 1\nnetwork: {npus: [2, 2, 2, 2, 2, 2, 2]}\n");
    psa_space *space = NULL;
    cs_error err;

    (void)state;
    assert_int_equal(psa_space_create(schema, &space, &err), CS_ESCHEMA);
    fx_contains(err.text, "2^128");
    psa_schema_destroy(schema);
}

static void test_points_under_one_constraint(void **state)
{
    psa_schema *schema = fx_load(&fx_plain,
                                 "psa: 1\nknobs:\n  workload.dp: {powers_of_two: [1, 64]}\n"
                                 "  workload.tp: {powers_of_two: [1, 64]}\n"
                                 "  workload.sp: {values: [1, 2, 3], when: workload.dp > 1}\n"
                                 "constraints:\n  - workload.dp * workload.tp == 64\n"
                                 "  - workload.sp < 3\n  - latency < 1 s\n",
                                 FX_SYSTEM);
    psa_space *space = fx_space(schema);
    static const unsigned expect[] = {7 * 3, 49 * 2, 49 * 3};
    cs_error err;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        count n = 0;
        assert_int_equal(psa_space_points_under(space, i, &n, &err), CS_OK);
        assert_int_equal((unsigned)n, expect[i]);
    }
    /* dp = 1: sp is off; dp = 2..64: sp in {1, 2}. */
    assert_int_equal((unsigned)psa_space_valid_points(space), 1 + 6 * 2);
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

static void test_samples_are_uniform(void **state)
{
    psa_schema *schema = fx_load(&fx_plain, FX_SMALL, FX_SYSTEM);
    psa_space *space = fx_space(schema);
    size_t n = (size_t)psa_space_valid_points(space), draws = 400 * n;
    cs_rng *rng = cs_rng_create(7, 0, 0);
    unsigned *seen = calloc(n, sizeof *seen);
    int32_t point[32];
    double chi = 0;

    (void)state;
    assert_in_range(n, 50, 5000);
    for (size_t i = 0; i < draws; i++) {
        assert_int_equal(psa_space_sample(space, rng, point), CS_OK);
        seen[(size_t)psa_space_rank(space, point)]++;
    }
    for (size_t i = 0; i < n; i++)
        chi += (seen[i] - 400.0) * (seen[i] - 400.0) / 400.0;
    /* chi-square of n - 1 degrees: mean n - 1, deviation sqrt(2 (n - 1)); five of them. */
    assert_true(fabs(chi - (double)(n - 1)) < 5 * sqrt(2.0 * (double)(n - 1)));
    free(seen);
    cs_rng_destroy(rng);
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

/* rank(unrank(r)) = r for every r, and every unranked point is valid, canonical and accepted. */
static void check_bijection(const psa_schema *schema, const psa_space *space, size_t step)
{
    count n = psa_space_valid_points(space);
    int32_t point[64], copy[64];
    fx_config config;
    cs_error err;

    for (count r = 0; r < n; r += step) {
        psa_space_unrank(space, r, point);
        assert_true(psa_space_rank(space, point) == r);
        assert_true(psa_space_valid(space, point));
        memcpy(copy, point, sizeof copy);
        psa_space_canonicalize(space, copy);
        assert_memory_equal(copy, point, psa_space_n_vars(space) * sizeof *point);
        psa_space_decode(space, point, &config);
        if (psa_schema_check(schema, &config, &err) != CS_OK)
            fail_msg("%s", err.text);
        assert_int_equal(psa_space_encode(space, &config, copy, &err), CS_OK);
        assert_memory_equal(copy, point, psa_space_n_vars(space) * sizeof *point);
    }
}

static void test_ranks_are_a_bijection(void **state)
{
    static const struct {
        const psa_tables *tables;
        const char *psa, *system;
        size_t step;
    } cases[] = {
        {&fx_plain, FX_SMALL, FX_SYSTEM, 1},
        {&fx_tables, FX_SPACE_A, FX_SYSTEM, 101},
        {&fx_tables, FX_SPACE_B, FX_SYSTEM_B, 17},
        {&fx_tables, FX_SPACE_C, FX_SYSTEM_C, 13},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        psa_schema *schema = fx_load(cases[i].tables, cases[i].psa, cases[i].system);
        psa_space *space = fx_space(schema);
        check_bijection(schema, space, cases[i].step);
        psa_space_destroy(space);
        psa_schema_destroy(schema);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_equal_loops),
        cmocka_unit_test(test_counts_over_64_bits),
        cmocka_unit_test(test_over_128_bits_is_refused),
        cmocka_unit_test(test_points_under_one_constraint),
        cmocka_unit_test(test_samples_are_uniform),
        cmocka_unit_test(test_ranks_are_a_bijection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
