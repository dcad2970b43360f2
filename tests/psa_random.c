/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Random PSA files against enumeration: every raw point is decided by the bytecode of the
 * constraints and by plain rules for switched-off knobs; the space must agree on the count and on
 * each point.  And mutated files must be refused or accepted, never crash. */
#include "tests/psa_fixture.h"

typedef unsigned __int128 count;

typedef struct {
    char text[8192];
    size_t n;
} buffer;

static void put(buffer *out, const char *fmt, ...) CS_PRINTF(2, 3);
static void put(buffer *out, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(out->text + out->n, sizeof out->text - out->n, fmt, args);
    va_end(args);
    assert_true(n >= 0 && out->n + (size_t)n < sizeof out->text);
    out->n += (size_t)n;
}

static int below(cs_rng *rng, int n)
{
    return (int)cs_rng_below(rng, (uint64_t)n);
}

static const char *pick(cs_rng *rng, const char *const *list, size_t n)
{
    return list[cs_rng_below(rng, n)];
}

static const char *const numbers[] = {
    "workload.dp",
    "workload.tp",
    "workload.sp",
    "workload.pp",
    "network.npus[1]",
    "network.npus[2]",
    "workload.micro_batch",
    "product(network.npus)",
    "sum(network.npus)",
    "(sum(network.bandwidth) / 50 GB/s)",
    "max(network.npus)",
    "(network.bandwidth[2] / 50 GB/s)",
    "count(network.topology == \"ring\")",
    "collective.chunks",
};

static const char *const conditions[] = {
    "workload.tp_sequence",
    "network.topology[1] == \"ring\"",
    "any(network.topology == \"switch\")",
    "all(network.npus > 1)",
    "workload.schedule != \"gpipe\"",
    "placement == \"bca\"",
};

static void number(buffer *out, cs_rng *rng, int depth)
{
    static const char *const operators[] = {"+", "*", "-", "%", "/", "*", "+"};

    if (depth == 0 || below(rng, 4) == 0) {
        if (below(rng, 6) == 0)
            put(out, "%d", 1 + below(rng, 9));
        else
            put(out, "%s", pick(rng, numbers, CS_COUNT(numbers)));
        return;
    }
    if (below(rng, 6) == 0) {
        put(out, "%s(", pick(rng, (const char *const[]){"min", "max", "sum", "product"}, 4));
        number(out, rng, depth - 1);
        put(out, ", ");
        number(out, rng, depth - 1);
        put(out, ")");
        return;
    }
    put(out, "(");
    number(out, rng, depth - 1);
    put(out, " %s ", pick(rng, operators, CS_COUNT(operators)));
    number(out, rng, depth - 1);
    put(out, ")");
}

static void condition(buffer *out, cs_rng *rng, int depth)
{
    static const char *const compare[] = {"==", "<=", ">=", "<", ">", "!="};

    switch (below(rng, depth == 0 ? 3 : 7)) {
    case 0:
        put(out, "%s", pick(rng, conditions, CS_COUNT(conditions)));
        return;
    case 3:
        put(out, "not (");
        condition(out, rng, depth - 1);
        put(out, ")");
        return;
    case 4:
        put(out, "(");
        condition(out, rng, depth - 1);
        put(out, " %s ", below(rng, 2) == 0 ? "and" : "or");
        condition(out, rng, depth - 1);
        put(out, ")");
        return;
    default:
        number(out, rng, 2);
        put(out, " %s ", pick(rng, compare, CS_COUNT(compare)));
        if (below(rng, 3) == 0)
            number(out, rng, 2);
        else
            put(out, "%d", below(rng, 40));
    }
}

static void product_equality(buffer *out, cs_rng *rng)
{
    put(out, "  - '");
    if (below(rng, 2) == 0)
        put(out, "workload.dp * workload.tp * workload.sp == ");
    else
        put(out, "workload.dp * workload.tp * workload.sp * workload.pp == ");
    put(out, "%s'\n", below(rng, 2) == 0 ? "product(network.npus)" : "16");
}

/* A file with all sorts of knobs and one to four constraints. */
static void random_psa(buffer *out, cs_rng *rng)
{
    int wide = below(rng, 2), n = 1 + below(rng, 4);

    out->n = 0;
    put(out, "psa: 1\nknobs:\n  workload.dp: {powers_of_two: [1, %d]}\n", wide ? 16 : 8);
    put(out, "  workload.tp: {values: [4, 1, 2, %d]}\n", wide ? 6 : 8);
    put(out, "  workload.sp: {range: [1, %d], step: 1}\n", wide ? 5 : 3);
    put(out, "  workload.pp: {values: [1, 2]}\n");
    put(out, "  network.npus: {values: [%s], per: dimension}\n", wide ? "1, 2, 4, 8" : "2, 1, 4");
    if (below(rng, 2) == 0)
        put(out, "  network.bandwidth: {values: [100 GB/s, 50 GB/s], per: dimension}\n");
    else
        put(out, "  network.topology: {values: [switch, ring], per: dimension}\n");
    if (below(rng, 2) == 0)
        put(out, "  workload.schedule: {values: [gpipe, 1f1b], when: workload.pp > 1}\n");
    else
        put(out, "  workload.tp_sequence: [false, true]\n");
    if (below(rng, 2) == 0)
        put(out, "  workload.micro_batch: {divisors: 6}\n");
    put(out, "constraints:\n");
    for (int i = 0; i < n; i++) {
        if (below(rng, 3) == 0) {
            product_equality(out, rng);
            continue;
        }
        put(out, "  - '");
        condition(out, rng, 2);
        put(out, "'\n");
    }
}

/* Whether a raw point has every switched-off knob at its first value. */
static bool is_canonical(const psa_space *space, const int32_t *index, const fx_config *c)
{
    for (size_t k = 0; k < psa_space_n_knobs(space); k++) {
        const char *name = psa_space_knob_name(space, k);
        bool sized = strncmp(name, "network.bandwidth", 17) == 0 ||
                     strncmp(name, "network.topology", 16) == 0;
        bool off = (strcmp(name, "workload.schedule") == 0 && c->pp == 1) ||
                   (sized && c->npus[name[strlen(name) - 2] - '1'] == 1);
        if (off && index[k] != 0)
            return false;
    }
    return true;
}

static void set_knob(const psa_schema *schema, const psa_space *space, size_t knob, int32_t index,
                     fx_config *config)
{
    char text[160], value[64];
    cs_error err;

    (void)snprintf(text, sizeof text, "%s=%s", psa_space_knob_name(space, knob),
                   psa_space_knob_value(space, knob, index, value));
    if (psa_schema_assign(schema, text, config, &err) != CS_OK)
        fail_msg("%s", err.text);
}

/* Walks all raw points; returns how many are valid. */
static count enumerate(const psa_schema *schema, const psa_space *space, const char *psa)
{
    size_t n = psa_space_n_knobs(space), k;
    int32_t index[32] = {0}, point[32];
    count valid = 0;
    fx_config config;

    psa_schema_baseline(schema, &config);
    for (k = 0; k < n; k++)
        set_knob(schema, space, k, 0, &config);
    do {
        bool expect =
            psa_schema_check(schema, &config, NULL) == CS_OK && is_canonical(space, index, &config);
        if (psa_space_from_raw(space, index, point) != expect) {
            cs_error err = {""};
            if (psa_schema_check(schema, &config, &err) == CS_OK)
                (void)snprintf(err.text, sizeof err.text, "every constraint holds");
            fail_msg("point decided wrongly (should be %s)\n%s%s", expect ? "valid" : "invalid",
                     psa, err.text);
        }
        valid += expect;
        for (k = 0; k < n; k++) {
            index[k] = (size_t)index[k] + 1 == psa_space_knob_count(space, k) ? 0 : index[k] + 1;
            set_knob(schema, space, k, index[k], &config);
            if (index[k] != 0)
                break;
        }
    } while (k < n);
    return valid;
}

static void check_ranks(const psa_space *space, const char *psa)
{
    count n = psa_space_valid_points(space);
    count step = n / 500 + 1;
    int32_t point[32];

    for (count r = 0; r < n; r += step) {
        psa_space_unrank(space, r, point);
        if (psa_space_rank(space, point) != r || !psa_space_valid(space, point))
            fail_msg("rank %d does not come back\n%s", (int)r, psa);
    }
}

/* Pinned values that some valid point has are kept. */
static void check_repair(const psa_space *space, cs_rng *rng, const char *psa)
{
    int32_t point[32], wanted;
    size_t n = psa_space_n_vars(space);

    for (int i = 0; i < 200 && psa_space_valid_points(space) > 0; i++) {
        size_t pinned = (size_t)cs_rng_below(rng, n);
        assert_int_equal(psa_space_sample(space, rng, point), CS_OK);
        wanted = point[pinned];
        for (size_t v = 0; v < n; v++)
            point[v] = (int32_t)cs_rng_below(rng, (uint64_t)psa_space_card(space, v));
        point[pinned] = wanted;
        if (!psa_space_repair(space, rng, pinned, point) || point[pinned] != wanted ||
            !psa_space_valid(space, point))
            fail_msg("repair lost %s\n%s", psa_space_var_name(space, pinned), psa);
    }
}

static void test_random_spaces_equal_enumeration(void **state)
{
    cs_rng *rng = cs_rng_create(2026, 1, 1);
    buffer psa;
    size_t built = 0, nonempty = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        psa_schema *schema = NULL;
        psa_space *space = NULL;
        cs_error err = {""};
        random_psa(&psa, rng);
        if (fx_parse(&fx_plain, psa.text, FX_SYSTEM, &schema, &err) != CS_OK)
            fail_msg("%s\n%s", err.text, psa.text);
        if (psa_space_create(schema, &space, &err) == CS_OK) {
            count valid = enumerate(schema, space, psa.text);
            if (valid != psa_space_valid_points(space))
                fail_msg("%d valid, counted %d\n%s", (int)valid, (int)psa_space_valid_points(space),
                         psa.text);
            check_ranks(space, psa.text);
            check_repair(space, rng, psa.text);
            built++;
            nonempty += valid > 0;
        } else {
            fx_contains(err.text, "no design can satisfy"); /* a constraint over constants */
        }
        psa_space_destroy(space);
        psa_schema_destroy(schema);
    }
    assert_true(built > 75);
    assert_true(nonempty > 35);
    cs_rng_destroy(rng);
}

/* Bytes changed, lost and doubled: the file is accepted or refused with a message. */
static void test_mutated_files_do_not_crash(void **state)
{
    cs_rng *rng = cs_rng_create(99, 1, 1);
    buffer psa;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        psa_schema *schema = NULL;
        psa_space *space = NULL;
        cs_error err = {""};
        if (i % 8 == 0)
            random_psa(&psa, rng);
        for (int k = below(rng, 4); k >= 0 && psa.n > 2; k--) {
            size_t at = (size_t)cs_rng_below(rng, psa.n - 1);
            if (below(rng, 2) == 0)
                psa.text[at] = "(){}[]*%^,:'\"-=<>.0159dw \n"[below(rng, 26)];
            else
                psa.text[at] = psa.text[cs_rng_below(rng, psa.n)];
        }
        if (fx_parse(&fx_plain, psa.text, FX_SYSTEM, &schema, &err) != CS_OK)
            assert_true(err.text[0] != '\0');
        else if (psa_space_create(schema, &space, &err) != CS_OK)
            assert_true(err.text[0] != '\0');
        psa_space_destroy(space);
        psa_schema_destroy(schema);
    }
    cs_rng_destroy(rng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_spaces_equal_enumeration),
        cmocka_unit_test(test_mutated_files_do_not_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
