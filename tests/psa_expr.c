/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The expression language: values, units, and what a wrong expression is told.  Expressions are
 * tried as the objective of a small PSA whose baseline is dp 32 on a network of 4 x 8 NPUs with
 * 100 and 50 GB/s. */
#include "tests/psa_fixture.h"

static const fx_result result = {
    .latency = 2e-3, .memory = 12e9, .cost = 5000, .rate = 1000, .energy = NAN};

static char *psa_with(const char *expression, bool quoted)
{
    static char text[4096];

    (void)snprintf(text, sizeof text,
                   "psa: 1\nname: t\nworkloads:\n  - {model: m.yaml, global_batch: 64}\n"
                   "derived:\n  later: 2 * early\n  early: workload.dp + 1\n"
                   "objectives:\n  x: {minimize: %s%s%s}\n",
                   quoted ? "'" : "", expression, quoted ? "'" : "");
    return text;
}

static double value_of(const char *expression)
{
    psa_schema *schema = fx_load(&fx_tables, psa_with(expression, true), FX_SYSTEM);
    fx_config config;
    double value;

    psa_schema_baseline(schema, &config);
    value = psa_schema_objective(schema, 0, &config, &result);
    psa_schema_destroy(schema);
    return value;
}

static void test_values(void **state)
{
    static const struct {
        const char *text;
        double expect;
    } cases[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"2 ^ 3 ^ 2", 512}, /* 2^(3^2) */
        {"-2 ^ 2", -4},
        {"2 ^ -1", 0.5},
        {"7 % 4 - 10 / 4", 0.5},
        {"8 - 4 - 2", 2},
        {"1e3 + .5", 1000.5},
        {"product(network.npus)", 32},
        {"sum(network.bandwidth) / 1 GB/s", 150},
        {"sum(network.npus * network.bandwidth) / 1 GB/s", 800}, /* 4 * 100 + 8 * 50 */
        {"min(network.npus) + max(network.npus)", 12},
        {"max(network.npus, 10, 3)", 10},
        {"count(network.npus > 4)", 1},
        {"if(all(network.npus >= 4), 10, 20)", 10},
        {"if(any(network.npus > 8), 10, 20)", 20},
        {"network.npus[1] * 10 + network.npus[dimensions]", 48},
        {"network.npus[3 - 1]", 8},
        {"log2(network.npus[2]) + sqrt(16) + abs(-3) + ceil(0.2) + floor(1.9)", 12},
        {"latency / 1 ns", 2e6},
        {"latency / 1 ms", 2},
        {"workload.global_batch", 64},
        {"model.heads / workload.dp", 3},
        {"later", 66},
        {"if(workload.sharding == \"none\" and not (network.topology[2] != \"switch\"), 1, 0)", 1},
        {"if(workload.tp_sequence or false, 1, 2)", 2},
        {"if(placement == \"abc\", 5, 6)", 5},
        {"0.3 % 0.1", 0}, /* within rounding */
        {"if(0.1 + 0.2 == 0.3, 1, 0)", 1},
        {"tokens_per_s * 3 s", 3000},
        {"peak_memory / 1 GB", 12},
        {"1 GiB / 1 B", 1073741824},
        {"400 Gb/s / 1 GB/s", 50},
        {"network_cost / 1 $", 5000},
        /* DESIGN 4: 1/sqrt((latency_ns * GB/s / 2000 - 1)^2) = 1/(2e6 * 150 / 2000 - 1) */
        {"1 / ((latency / 1 ns * sum(network.bandwidth) / 1 GB/s / 2000 - 1)^2)^0.5",
         1.0 / 149999.0},
        {"paper_reward", 1.0 / 149999.0},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        double value = value_of(cases[i].text);
        if (fabs(value - cases[i].expect) > 1e-12 * fabs(cases[i].expect))
            fail_msg("%s = %.17g, expected %.17g", cases[i].text, value, cases[i].expect);
    }
}

static void test_absent_result_is_no_number(void **state)
{
    (void)state;
    assert_true(isnan(value_of("energy / 1 J")));
    assert_true(isnan(value_of("1 / (workload.dp - 32)"))); /* infinite */
}

static void test_refusals(void **state)
{
    /* Column: `  x: {minimize: '` is 17 characters, so byte k stands in column 18 + k. */
    static const struct {
        const char *text;
        int byte;
        const char *message;
    } cases[] = {
        {"1 +", 3, "ends where"},
        {"1 + * 2", 4, "expected a number, a name or '(', found '*'"},
        {"(1 + 2", 6, "')'"},
        {"1 + 2)", 5, "closes nothing"},
        {"1 2", 2, "'2'"},
        {"workload.dpp + 1", 0, "did you mean 'workload.dp'?"},
        {"latncy", 0, "did you mean 'latency'?"},
        {"network.npuss", 0, "did you mean 'network.npus'?"},
        {"summ(network.npus)", 0, "did you mean 'sum'?"},
        {"workload.sequence", 0, "unknown name 'workload.sequence'"},
        {"latency + peak_memory", 8, "cannot combine a quantity in s and a quantity in B"},
        {"latency + 1", 8, "cannot combine a quantity in s and a number"},
        {"if(latency < 3, 1, 2)", 11, "cannot compare a quantity in s and a number"},
        {"if(1, 2, 3)", 0, "expected a condition"},
        {"log2(latency)", 5, "without unit"},
        {"latency ^ workload.dp", 8, "raised to a constant"},
        {"latency ^ 0.5", 8, "no unit"},
        {"2 ^ latency", 2, "exponent has no unit"},
        {"network.npus[3]", 13, "index 3 is outside 1 to 2"},
        {"network.npus[0]", 13, "outside 1 to 2"},
        {"network.npus[workload.dp]", 13, "an index is a constant"},
        {"workload.dp[1]", 0, "no value per dimension"},
        {"network.npus", 0, "use sum(), min() or max()"},
        {"sum(workload.dp)", 4, "single value"},
        {"sum(network.npus, latency)", 18, "different units"},
        {"all(network.npus)", 4, "conditions"},
        {"if(network.topology[1] == ring, 1, 2)", 26, "write it in quotes"},
        {"if(network.topology[1] == \"rin\", 1, 2)", 26, "did you mean 'ring'?"},
        {"if(network.topology[1] < \"ring\", 1, 2)", 23, "no order"},
        {"if(network.topology[1] == workload.sharding, 1, 2)", 23, "cannot be compared"},
        {"network.topology[1] + 1", 20, "expected a number"},
        {"if(1 < workload.dp < 3, 1, 2)", 19, "cannot be chained"},
        {"if(workload.dp = 3, 1, 2)", 15, "write == to compare"},
        {"if(workload.dp > 1 && true, 1, 2)", 19, "write and, or, not"},
        {"5 GBps", 2, "no known unit"},
        {"5 workload.dp", 2, "no known unit"},
        {"sum", 0, "write sum(...)"},
        {"log2(1, 2)", 0, "takes 1 argument"},
        {"\"ring\"", 0, "no value by itself"},
        {"\"ring", 0, "not closed"},
        {"1e999", 0, "too large"},
        {"1 ? 2", 2, "unexpected character"},
        {"2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^"
         "2^"
         "2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2^2",
         -1, "nested too deep"},
        {"", 0, "empty"},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        psa_schema *schema = NULL;
        cs_error err = {""};
        char where[64];
        cs_status status =
            fx_parse(&fx_tables, psa_with(cases[i].text, true), FX_SYSTEM, &schema, &err);
        if (status != CS_ESCHEMA)
            fail_msg("%s: status %d, %s", cases[i].text, status, err.text);
        fx_contains(err.text, cases[i].message);
        (void)snprintf(where, sizeof where, "test.yaml:9:%d: ", 18 + cases[i].byte);
        if (cases[i].byte >= 0)
            fx_contains(err.text, where);
    }
}

static void test_expression_cut_by_a_flow_comma(void **state)
{
    static const char *const cases[] = {
        "min(latency, 1 s)",
        "network.npus[1] * 1 s",
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        psa_schema *schema = NULL;
        cs_error err = {""};
        assert_int_not_equal(
            fx_parse(&fx_tables, psa_with(cases[i], false), FX_SYSTEM, &schema, &err), CS_OK);
        fx_contains(err.text, "test.yaml:9:");
        fx_contains(err.text, "quotes");
    }
}

static void test_derived_values_may_not_go_round(void **state)
{
    psa_schema *schema = NULL;
    cs_error err = {""};

    (void)state;
    assert_int_equal(
        fx_parse(&fx_tables, "psa: 1\nderived: {a: b + 1, b: a + 1}\n", FX_SYSTEM, &schema, &err),
        CS_ESCHEMA);
    fx_contains(err.text, "depends on itself");
    assert_int_equal(
        fx_parse(&fx_tables, "psa: 1\nderived: {latency: 1}\n", FX_SYSTEM, &schema, &err),
        CS_ESCHEMA);
    fx_contains(err.text, "test.yaml:2:11: 'latency' is the name of a result");
}

/* 40 doublings would be 2^40 nodes: refused by size, not by running out of memory. */
static void test_exploding_derived_values_are_refused(void **state)
{
    char text[4096] = "psa: 1\nderived:\n  a0: workload.dp\n";
    psa_schema *schema = NULL;
    cs_error err = {""};

    (void)state;
    for (int i = 1; i < 40; i++) {
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "  a%d: a%d + a%d\n", i, i - 1, i - 1);
    }
    assert_int_equal(fx_parse(&fx_tables, text, FX_SYSTEM, &schema, &err), CS_ESCHEMA);
    fx_contains(err.text, "too large");
}

/* Bandwidth of a dimension of size 1 is 0 in sums; aggregates skip it; its index reads as 0. */
static void test_switched_off_dimensions_in_expressions(void **state)
{
    static const struct {
        const char *text;
        double expect;
    } cases[] = {
        {"sum(network.bandwidth) / 1 GB/s", 50},
        {"min(network.bandwidth) / 1 GB/s", 50},
        {"network.bandwidth[1] / 1 GB/s", 0},
        {"network.bandwidth[2] / 1 GB/s", 50},
        {"count(network.topology == \"ring\")", 0},
        {"if(all(network.topology == \"switch\"), 1, 0)", 1},
        {"sum(network.latency) / 1 us", 2}, /* latency is never switched off */
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        psa_schema *schema = fx_load(&fx_tables, psa_with(cases[i].text, true), FX_SYSTEM);
        cs_error err;
        fx_config config;
        double value;
        psa_schema_baseline(schema, &config);
        assert_int_equal(psa_schema_assign(schema, "network.npus=1,8", &config, &err), CS_OK);
        value = psa_schema_objective(schema, 0, &config, &result);
        if (fabs(value - cases[i].expect) > 1e-9)
            fail_msg("%s = %g, expected %g", cases[i].text, value, cases[i].expect);
        psa_schema_destroy(schema);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_absent_result_is_no_number),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_expression_cut_by_a_flow_comma),
        cmocka_unit_test(test_derived_values_may_not_go_round),
        cmocka_unit_test(test_exploding_derived_values_are_refused),
        cmocka_unit_test(test_switched_off_dimensions_in_expressions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
