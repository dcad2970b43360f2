/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The indexed space against counts by plain loops, and its uses: uniform samples, ranks, repair,
 * neighbours, encoding. */
#include "tests/psa_fixture.h"

typedef unsigned __int128 count;

#define WORKLOAD "workloads: [{model: m.yaml, global_batch: 96, sequence: 1024}]\n"

static bool is_power_of_two(int64_t n)
{
    return (n & (n - 1)) == 0;
}

/* ---- three spaces, counted by hand-written loops ---- */

/* Degrees against a network whose size is free, a conditional, a boolean conditional, modulo:
 * 7*5*4*4*4*2*2 * 4*4 * 3*3 * 2*2 = 5,160,960 raw points. */
#define SPACE_A                                                                                    \
    "psa: 1\n" WORKLOAD "knobs:\n"                                                                 \
    "  workload.dp: {powers_of_two: [1, 64]}\n"                                                    \
    "  workload.tp: {powers_of_two: [1, 16]}\n"                                                    \
    "  workload.sp: {powers_of_two: [1, 8]}\n"                                                     \
    "  workload.pp: {values: [1, 2, 4, 8]}\n"                                                      \
    "  workload.micro_batch: {values: [1, 2, 3, 6]}\n"                                             \
    "  workload.schedule: {values: [gpipe, 1f1b], when: workload.pp > 1}\n"                        \
    "  workload.tp_sequence: {values: [false, true], when: workload.tp > 1 and "                   \
    "workload.sharding != \"weights\"}\n"                                                          \
    "  network.npus: {values: [4, 1, 2, 8], per: dimension}\n"                                     \
    "  network.topology: {values: [ring, switch, fully_connected], per: dimension}\n"              \
    "  network.bandwidth: {values: [50 GB/s, 100 GB/s], per: dimension}\n"                         \
    "constraints:\n  - network.topology[2] != \"switch\" or workload.tp_sequence\n"

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

/* A network of a fixed size, a sum over what is switched on, powers of two where needed:
 * 6^3 * 3^3 * 3^3 * 3^3 = 4,251,528 raw points. */
#define SPACE_B                                                                                    \
    "psa: 1\n" WORKLOAD "knobs:\n"                                                                 \
    "  network.npus: {values: [1, 2, 3, 4, 6, 8], per: dimension}\n"                               \
    "  network.topology: {values: [ring, switch, fully_connected], per: dimension}\n"              \
    "  network.bandwidth: {range: [50 GB/s, 150 GB/s], step: 50 GB/s, per: dimension}\n"           \
    "  collective.algorithm: {values: [direct, ring, halving_doubling], per: dimension}\n"         \
    "constraints:\n  - product(network.npus) == 24\n"                                              \
    "  - sum(network.bandwidth) <= 250 GB/s\n"                                                     \
    "  - count(network.topology == \"switch\") < 2\n"
#define SYSTEM_B "system: 1\nnetwork: {npus: [1, 1, 24]}\nbaseline: {workload.dp: 24}\n"

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

/* Sums and remainders over many knobs, nothing that is a product equality:
 * 12 * 12 * 10 * 9 * 8 * 2 * 3 * 2 = 1,244,160 raw points. */
#define SPACE_C                                                                                    \
    "psa: 1\nallow_idle: true\nknobs:\n"                                                           \
    "  workload.dp: {range: [1, 12], step: 1}\n"                                                   \
    "  workload.tp: {range: [1, 12], step: 1}\n"                                                   \
    "  workload.sp: {range: [1, 10], step: 1}\n"                                                   \
    "  workload.pp: {range: [2, 10], step: 1}\n"                                                   \
    "  workload.micro_batch: {range: [1, 8], step: 1}\n"                                           \
    "  workload.tp_sequence: [true, false]\n"                                                      \
    "  workload.sharding: {values: [weights, none, optimizer]}\n"                                  \
    "  placement: {values: [bca, abc]}\n"                                                          \
    "derived:\n  total: workload.dp + workload.tp + workload.sp + workload.pp\n"                   \
    "constraints:\n  - total % 7 == workload.micro_batch % 7\n"                                    \
    "  - total * 2 + workload.micro_batch >= 45 or workload.tp_sequence\n"                         \
    "  - max(workload.dp, workload.tp, workload.sp) - min(workload.dp, workload.tp) <= 4\n"        \
    "  - not (workload.sharding == \"none\" and placement == \"abc\")\n"
#define SYSTEM_C "system: 1\nnetwork: {npus: [10, 200]}\n"

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
    check_count(SPACE_A, FX_SYSTEM, 5160960, space_a_by_loops());
    check_count(SPACE_B, SYSTEM_B, 4251528, space_b_by_loops());
    check_count(SPACE_C, SYSTEM_C, 1244160, space_c_by_loops());
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

/* ---- sampling and ranks ---- */

#define SMALL                                                                                      \
    "psa: 1\nknobs:\n"                                                                             \
    "  workload.dp: {powers_of_two: [1, 16]}\n"                                                    \
    "  workload.tp: {powers_of_two: [1, 8]}\n"                                                     \
    "  workload.pp: {values: [1, 2, 4]}\n"                                                         \
    "  workload.schedule: {values: [1f1b, gpipe], when: workload.pp > 1}\n"                        \
    "  workload.micro_batch: {values: [1, 2, 3, 4]}\n"                                             \
    "  network.npus: {values: [1, 2, 4], per: dimension}\n"                                        \
    "  network.bandwidth: {values: [50 GB/s, 75 GB/s], per: dimension}\n"                          \
    "constraints:\n"                                                                               \
    "  - workload.dp * workload.tp * workload.pp == product(network.npus)\n"                       \
    "  - 12 % (workload.dp * workload.micro_batch) == 0\n"

static void test_samples_are_uniform(void **state)
{
    psa_schema *schema = fx_load(&fx_plain, SMALL, FX_SYSTEM);
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
        {&fx_plain, SMALL, FX_SYSTEM, 1},
        {&fx_tables, SPACE_A, FX_SYSTEM, 101},
        {&fx_tables, SPACE_B, SYSTEM_B, 17},
        {&fx_tables, SPACE_C, SYSTEM_C, 13},
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

/* ---- repair ---- */

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
    } cases[] = {{&fx_plain, SMALL, FX_SYSTEM},
                 {&fx_tables, SPACE_A, FX_SYSTEM},
                 {&fx_tables, SPACE_B, SYSTEM_B},
                 {&fx_tables, SPACE_C, SYSTEM_C}};
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
    psa_schema *schema = fx_load(&fx_tables, SPACE_A, FX_SYSTEM);
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

/* ---- variables ---- */

static void test_variables_of_a_space(void **state)
{
    psa_schema *schema = fx_load(&fx_tables,
                                 "psa: 1\n" WORKLOAD "knobs:\n"
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
    psa_schema *schema = fx_load(&fx_plain, SMALL, FX_SYSTEM);
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

/* ---- encoding ---- */

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
    psa_schema *schema = fx_load(&fx_tables, SPACE_A, FX_SYSTEM);
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
    psa_schema *schema = fx_load(&fx_plain, SMALL, FX_SYSTEM);
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

/* ---- fixing, stacks ---- */

static void test_fixed_knobs_and_stacks(void **state)
{
    static const char *const stacks[] = {"network"}, *const wrong[] = {"netwrk"};
    psa_schema *schema = fx_load(&fx_tables, SPACE_A, FX_SYSTEM);
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

/* ---- edges ---- */

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
        {"psa: 1\n" WORKLOAD "knobs: {workload.tp: [7]}\n", "96 % 7 = 5"},
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
    psa_schema *schema =
        fx_load(&fx_plain,
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
    assert_int_equal(fx_parse(&fx_tables, "psa: 1\n" WORKLOAD, FX_SYSTEM, &schema, &err), CS_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_equal_loops),
        cmocka_unit_test(test_counts_over_64_bits),
        cmocka_unit_test(test_over_128_bits_is_refused),
        cmocka_unit_test(test_points_under_one_constraint),
        cmocka_unit_test(test_samples_are_uniform),
        cmocka_unit_test(test_ranks_are_a_bijection),
        cmocka_unit_test(test_repair_keeps_what_can_be_kept),
        cmocka_unit_test(test_repair_leaves_valid_points_alone),
        cmocka_unit_test(test_variables_of_a_space),
        cmocka_unit_test(test_tuple_neighbours_move_one_prime),
        cmocka_unit_test(test_sum_equalities_are_tuples_too),
        cmocka_unit_test(test_inactive_knobs),
        cmocka_unit_test(test_canonical_form_follows_chains),
        cmocka_unit_test(test_encode_says_what_does_not_fit),
        cmocka_unit_test(test_from_raw_indices),
        cmocka_unit_test(test_fixed_knobs_and_stacks),
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
