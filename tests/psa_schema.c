/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Domains, baselines, assignments, constraints with their arithmetic, limits, objectives. */
#include "tests/psa_fixture.h"

#define WORKLOAD "workloads: [{model: m.yaml, global_batch: 2048, sequence: 1024}]\n"

static fx_config baseline_of(const char *psa, const char *system)
{
    psa_schema *schema = fx_load(&fx_tables, psa, system);
    fx_config config;

    psa_schema_baseline(schema, &config);
    psa_schema_destroy(schema);
    return config;
}

static void test_baseline_takes_sections_then_baseline(void **state)
{
    fx_config c = baseline_of("psa: 1\n", FX_SYSTEM);

    (void)state;
    assert_int_equal(c.dp, 32); /* baseline: */
    assert_int_equal(c.tp, 1);  /* fallback */
    assert_int_equal(c.npus[1], 8);
    assert_int_equal(c.topology[1], 1);
    assert_true(c.bandwidth[0] == 100e9);
    assert_true(c.latency[1] == 1e-6);
    assert_true(isnan(c.power)); /* optional */
}

static void test_scalar_goes_to_all_dimensions(void **state)
{
    fx_config c =
        baseline_of("psa: 1\n", "system: 1\nnetwork: {npus: [2, 2, 4], bandwidth: 5 GB/s, "
                                "topology: ring}\nplacement: bca\n"
                                "compute: {capacity: 80 GiB}\n");

    (void)state;
    for (int d = 0; d < 3; d++)
        assert_true(c.bandwidth[d] == 5e9);
    assert_int_equal(c.placement, 1);
    assert_true(c.capacity == 80.0 * 1073741824);
}

static void values_of(const char *knob, char *text, size_t size)
{
    char psa[512];
    psa_schema *schema;
    psa_space *space;
    char value[64];

    (void)snprintf(psa, sizeof psa, "psa: 1\nknobs:\n  %s\n", knob);
    schema = fx_load(&fx_plain, psa, FX_SYSTEM);
    space = fx_space(schema);
    (void)snprintf(text, size, "%s:", psa_space_knob_name(space, 0));
    for (size_t i = 0; i < psa_space_knob_count(space, 0); i++) {
        size_t used = strlen(text);
        (void)snprintf(text + used, size - used, " %s",
                       psa_space_knob_value(space, 0, (int32_t)i, value));
    }
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

static void test_domains(void **state)
{
    static const struct {
        const char *knob, *values;
    } cases[] = {
        {"workload.dp: {values: [4, 1, 9]}", "workload.dp: 4 1 9"},
        {"workload.dp: [4, 1]", "workload.dp: 4 1"},
        {"workload.dp: {powers_of_two: [2, 16]}", "workload.dp: 2 4 8 16"},
        {"workload.dp: {divisors: 36}", "workload.dp: 1 2 3 4 6 9 12 18 36"},
        {"workload.dp: {range: [1, 10], step: 3}", "workload.dp: 1 4 7 10"},
        {"network.bandwidth: {range: [50 GB/s, 0.1 TB/s], step: 25 GB/s, per: dimension}",
         "network.bandwidth[1]: 50 GB/s 75 GB/s 100 GB/s"},
        {"network.latency: {range: [0.1 us, 0.4 us], step: 0.1 us}",
         "network.latency: 100 ns 200 ns 300 ns 400 ns"},
        {"workload.tp_sequence: {values: [false, true]}", "workload.tp_sequence: false true"},
        {"workload.tp_sequence: [true, false]", "workload.tp_sequence: true false"},
        {"network.topology: {values: [switch, ring], per: dimension}",
         "network.topology[1]: switch ring"},
        {"placement: {values: [cab, abc]}", "placement: cab abc"},
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        values_of(cases[i].knob, text, sizeof text);
        assert_string_equal(text, cases[i].values);
    }
}

static void test_assignments(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"workload.dp", "expected knob=value"},
        {"workload.dq=3", "did you mean 'workload.dp'?"},
        {"workload.dp[1]=3", "one value, not one per dimension"},
        {"network.npus[3]=3", "expected an index from 1 to 2"},
        {"network.npus[x]=3", "expected an index from 1 to 2"},
        {"network.npus=1,2,3", "expected 2 values, found 3"},
        {"network.bandwidth=50", "has no unit"},
        {"network.topology=rong", "did you mean 'ring'?"},
        {"workload.dp=0", "outside 1"},
        {"workload.tp_sequence=on", "true or false"},
    };
    psa_schema *schema = fx_load(&fx_tables, "psa: 1\n", FX_SYSTEM);
    fx_config c;
    cs_error err;

    (void)state;
    psa_schema_baseline(schema, &c);
    assert_int_equal(psa_schema_assign(schema, "network.npus=8, 16", &c, &err), CS_OK);
    assert_int_equal(psa_schema_assign(schema, "network.npus[2]=32", &c, &err), CS_OK);
    assert_int_equal(psa_schema_assign(schema, "network.bandwidth=2 GB/s", &c, &err), CS_OK);
    assert_int_equal(psa_schema_assign(schema, "network.topology=ring,fully_connected", &c, &err),
                     CS_OK);
    assert_int_equal(psa_schema_assign(schema, "workload.tp_sequence=true", &c, &err), CS_OK);
    assert_int_equal(psa_schema_assign(schema, "placement=cab", &c, &err), CS_OK);
    assert_int_equal(c.npus[0], 8);
    assert_int_equal(c.npus[1], 32);
    assert_true(c.bandwidth[0] == 2e9 && c.bandwidth[1] == 2e9);
    assert_int_equal(c.topology[1], 2);
    assert_int_equal(c.tp_sequence, 1);
    assert_int_equal(c.placement, 2);
    for (size_t i = 0; i < CS_COUNT(bad); i++) {
        assert_int_equal(psa_schema_assign(schema, bad[i].text, &c, &err), CS_EINVAL);
        fx_contains(err.text, bad[i].message);
    }
    psa_schema_destroy(schema);
}

static void field_text(const char *path, const fx_config *config, char *text, size_t size)
{
    for (size_t i = 0; i < fx_tables.n_fields; i++)
        if (strcmp(fx_fields[i].path, path) == 0)
            psa_field_text(&fx_fields[i], config, 2, text, size);
}

static void test_field_texts(void **state)
{
    fx_config c = baseline_of("psa: 1\n", FX_SYSTEM);
    char text[64];

    (void)state;
    field_text("network.npus", &c, text, sizeof text);
    assert_string_equal(text, "4,8");
    field_text("network.bandwidth", &c, text, sizeof text);
    assert_string_equal(text, "100 GB/s,50 GB/s");
    field_text("network.topology", &c, text, sizeof text);
    assert_string_equal(text, "ring,switch");
    field_text("workload.tp_sequence", &c, text, sizeof text);
    assert_string_equal(text, "false");
    field_text("placement", &c, text, sizeof text);
    assert_string_equal(text, "abc");
    field_text("network.bandwidth", &c, text, 6); /* cut, and ended */
    assert_string_equal(text, "100 G");
}

/* Every violated constraint at once, each with its numbers. */
static void test_violations_show_their_arithmetic(void **state)
{
    psa_schema *schema = fx_load(&fx_tables,
                                 "psa: 1\n" WORKLOAD "constraints:\n"
                                 "  - sum(network.bandwidth) <= 120 GB/s\n"
                                 "  - network.npus >= 5\n"
                                 "  - not (network.topology[2] == \"switch\" or workload.pp > 1)\n",
                                 FX_SYSTEM);
    fx_config c;
    cs_error err;

    (void)state;
    psa_schema_baseline(schema, &c);
    assert_int_equal(psa_schema_assign(schema, "workload.tp=36", &c, &err), CS_OK);
    assert_int_equal(psa_schema_check(schema, &c, &err), CS_EINVAL);
    fx_contains(err.text,
                "degrees fill the network: workload.dp * workload.tp * workload.sp * workload.pp = "
                "32 * 36 * 1 * 1 = 1152 must be equal to product(network.npus) = product(4, 8) = "
                "32");
    fx_contains(err.text,
                "tp divides heads: model.heads % workload.tp = 96 % 36 = 24 must be equal to 0");
    fx_contains(err.text, "sum(network.bandwidth) = sum(100 GB/s, 50 GB/s) = 150 GB/s must be at "
                          "most 120 GB/s");
    fx_contains(err.text, "(dimension 1): network.npus = 4 must be at least 5");
    fx_contains(err.text, "does not hold: not (switch == \"switch\" or 1 > 1)");
    assert_null(strstr(err.text, "dimension 2"));
    assert_int_equal(err.text[strlen(err.text) - 1] == '\n', 0);
    psa_schema_destroy(schema);
}

static void test_check_accepts_a_valid_configuration(void **state)
{
    psa_schema *schema = fx_load(&fx_tables, "psa: 1\n" WORKLOAD, FX_SYSTEM);
    fx_config c;
    cs_error err;

    (void)state;
    psa_schema_baseline(schema, &c);
    assert_int_equal(psa_schema_check(schema, &c, &err), CS_OK);
    assert_int_equal(psa_schema_assign(schema, "network.npus=4,6", &c, &err), CS_OK);
    assert_int_equal(psa_schema_assign(schema, "workload.dp=8", &c, &err), CS_OK);
    assert_int_equal(psa_schema_assign(schema, "workload.tp=3", &c, &err), CS_OK);
    assert_int_equal(psa_schema_check(schema, &c, &err), CS_OK);
    assert_int_equal(
        psa_schema_assign(schema, "collective.algorithm[2]=halving_doubling", &c, &err), CS_OK);
    assert_int_equal(psa_schema_check(schema, &c, &err), CS_EINVAL);
    fx_contains(err.text, "halving_doubling needs a power of two (dimension 2)");
    psa_schema_destroy(schema);
}

static size_t count_texts(const psa_schema *schema, const char *part)
{
    size_t n = 0;

    for (size_t i = 0; i < psa_schema_n_constraints(schema); i++)
        n += strstr(psa_schema_constraint_text(schema, i, NULL), part) != NULL;
    return n;
}

/* Switches, absent facts and mentioned results decide which rules are in force. */
static void test_rules_in_force(void **state)
{
    static const struct {
        const char *psa, *rule;
        size_t n;
    } cases[] = {
        {"psa: 1\n" WORKLOAD, "degrees fill", 1},
        {"psa: 1\n" WORKLOAD, "degrees fit", 0},
        {"psa: 1\nallow_idle: true\n" WORKLOAD, "degrees fill", 0},
        {"psa: 1\nallow_idle: true\n" WORKLOAD, "degrees fit", 1},
        {"psa: 1\n" WORKLOAD, "stages divide", 1},
        {"psa: 1\nuneven_stages: true\n" WORKLOAD, "stages divide", 0},
        {"psa: 1\n", "tp divides heads", 0}, /* no workload, no heads */
        {"psa: 1\n" WORKLOAD, "tp divides heads", 1},
        {"psa: 1\n" WORKLOAD, "no price", 0},
        {"psa: 1\nobjectives: {c: {minimize: network_cost}}\n", "no price", 1},
        {"psa: 1\nconstraints: [network_cost < 5 $]\n", "no price", 1},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        psa_schema *schema = fx_load(&fx_tables, cases[i].psa, FX_SYSTEM);
        if (count_texts(schema, cases[i].rule) != cases[i].n)
            fail_msg("%s: '%s' not %zu times", cases[i].psa, cases[i].rule, cases[i].n);
        psa_schema_destroy(schema);
    }
}

/* log(3 ms / 1 ms) + log(12 GB / 6 GB); the worst is the first. */
static void test_limits_are_graded(void **state)
{
    psa_schema *schema = fx_load(&fx_tables,
                                 "psa: 1\nconstraints:\n  - workload.dp > 0\n"
                                 "  - latency <= 1 ms\n"
                                 "  - peak_memory <= 6 GB and network_cost <= 1 k$\n"
                                 "  - energy <= 1 J or latency < 1 s\n",
                                 FX_SYSTEM);
    fx_result r = {.latency = 3e-3, .memory = 12e9, .cost = 900, .rate = 1, .energy = NAN};
    fx_config c;
    size_t which = 99;
    double violation;
    bool implied;

    (void)state;
    psa_schema_baseline(schema, &c);
    violation = psa_schema_limit_violation(schema, &c, &r, &which);
    assert_true(fabs(violation - (log(3) + log(2))) < 1e-12);
    assert_string_equal(psa_schema_constraint_text(schema, which, &implied), "latency <= 1 ms");
    assert_false(implied);
    assert_true(psa_schema_constraint_is_limit(schema, which));
    assert_false(psa_schema_constraint_is_limit(schema, 0));
    assert_int_equal(psa_schema_check(schema, &c, NULL), CS_OK); /* limits are not its business */
    r.latency = 1e-3;
    r.memory = 6e9;
    assert_true(psa_schema_limit_violation(schema, &c, &r, &which) == 0);
    psa_schema_destroy(schema);
}

static void test_objectives(void **state)
{
    psa_schema *schema = fx_load(&fx_tables,
                                 "psa: 1\nobjectives:\n  a: {minimize: \"latency * "
                                 "sum(network.bandwidth)\"}\n  b: {maximize: tokens_per_s}\n",
                                 FX_SYSTEM);
    fx_result r = {.latency = 2e-3, .rate = 7};
    fx_config c;
    cs_error err;
    size_t i;

    (void)state;
    psa_schema_baseline(schema, &c);
    assert_int_equal(psa_schema_n_objectives(schema), 2);
    assert_string_equal(psa_schema_objective_name(schema, 1), "b");
    assert_true(psa_schema_objective_maximize(schema, 1));
    assert_true(fabs(psa_schema_objective(schema, 0, &c, &r) - 2e-3 * 150e9) < 1e-3);
    assert_true(psa_schema_objective(schema, 1, &c, &r) == 7);
    assert_int_equal(psa_schema_find_objective(schema, "b", &i, &err), CS_OK);
    assert_int_equal(i, 1);
    /* The paper's reward needs no line in the file: 1 / (2e6 ns * 150 GB/s / 2000 - 1). */
    assert_int_equal(psa_schema_find_objective(schema, "paper_reward", &i, &err), CS_OK);
    assert_true(psa_schema_objective_maximize(schema, i));
    assert_true(fabs(psa_schema_objective(schema, i, &c, &r) * 149999.0 - 1) < 1e-12);
    assert_int_equal(psa_schema_find_objective(schema, "paper_rewrd", &i, &err), CS_EINVAL);
    fx_contains(err.text, "did you mean 'paper_reward'?");
    psa_schema_destroy(schema);
}

static void test_several_workloads(void **state)
{
    static const psa_fact first[] = {{"model.heads", 96}, {"model.layers", 96}};
    static const psa_fact second[] = {{"model.heads", 40}, {"model.layers", 40}};
    psa_schema *schema = NULL;
    fx_config c;
    cs_error err = {""};
    const char *psa = "psa: 1\naggregate: max\nworkloads:\n  - {model: a, global_batch: 64}\n"
                      "  - {model: b, global_batch: 32, weight: 2}\n";

    (void)state;
    assert_int_equal(fx_parse(&fx_tables, psa, FX_SYSTEM, &schema, &err), CS_OK);
    assert_string_equal(psa_schema_aggregate(schema), "max");
    assert_int_equal(psa_schema_bind(schema, 0, first, 2, &err), CS_OK);
    assert_int_equal(psa_schema_bind(schema, 1, second, 2, &err), CS_OK);
    assert_int_equal(psa_schema_bind(schema, 2, second, 2, &err), CS_EINVAL);
    psa_schema_baseline(schema, &c);
    assert_int_equal(psa_schema_check(schema, &c, &err), CS_OK);
    assert_int_equal(psa_schema_assign(schema, "workload.dp=4", &c, &err), CS_OK);
    assert_int_equal(psa_schema_assign(schema, "workload.tp=8", &c, &err), CS_OK);
    assert_int_equal(psa_schema_check(schema, &c, &err), CS_OK); /* 96 % 8 = 40 % 8 = 0 */
    assert_int_equal(psa_schema_assign(schema, "workload.dp=2", &c, &err), CS_OK);
    assert_int_equal(psa_schema_assign(schema, "workload.tp=16", &c, &err), CS_OK);
    assert_int_equal(psa_schema_check(schema, &c, &err), CS_EINVAL);
    fx_contains(err.text, "40 % 16 = 8");
    assert_null(strstr(err.text, "96 % 16"));
    psa_schema_destroy(schema);
}

static void test_facts_that_nobody_gives(void **state)
{
    static const psa_fact facts[] = {{"model.heads", 96}};
    psa_schema *schema = NULL;
    cs_error err = {""};
    const char *psa = "psa: 1\nworkloads: [{model: a}]\nconstraints:\n  - model.haeds > 1\n";

    (void)state;
    assert_int_equal(fx_parse(&fx_tables, psa, FX_SYSTEM, &schema, &err), CS_OK);
    assert_int_equal(psa_schema_bind(schema, 0, facts, 1, &err), CS_ESCHEMA);
    fx_contains(err.text, "test.yaml:4:5: ");
    fx_contains(err.text, "has no 'model.haeds'; did you mean 'model.heads'?");
    psa_schema_destroy(schema);

    psa = "psa: 1\nworkloads: [{model: a, n: 2}, {model: b, n: 3}]\n"
          "objectives: {x: {minimize: latency / workload.n}}\n";
    assert_int_equal(fx_parse(&fx_tables, psa, FX_SYSTEM, &schema, &err), CS_OK);
    assert_int_equal(psa_schema_bind(schema, 0, facts, 1, &err), CS_OK);
    assert_int_equal(psa_schema_bind(schema, 1, facts, 1, &err), CS_ESCHEMA);
    fx_contains(err.text, "differs between workloads 1 (2) and 2 (3)");
    psa_schema_destroy(schema);
}

static void test_warnings(void **state)
{
    psa_schema *schema =
        fx_load(&fx_plain,
                "psa: 1\nknobs:\n  network.latency: {values: [0 ns, 1 ns, 2 ms], per: dimension}\n",
                "system: 1\nnetwork: {npus: [2], bandwidth: 50 B/s}\n");

    (void)state;
    assert_int_equal(psa_schema_n_warnings(schema), 2);
    fx_contains(psa_schema_warning(schema, 0), "system:2:");
    fx_contains(psa_schema_warning(schema, 0), "50 B/s is outside 0.1 to 10,000 GB/s");
    fx_contains(psa_schema_warning(schema, 1), "test.yaml:3:");
    fx_contains(psa_schema_warning(schema, 1), "2 ms is outside 1 ns to 1 ms");
    assert_null(psa_schema_warning(schema, 2));
    psa_schema_destroy(schema);
}

static void test_starts(void **state)
{
    psa_schema *schema = fx_load(&fx_plain,
                                 "psa: 1\nstarts:\n  - {workload.dp: 8, network.npus: [2, 16]}\n"
                                 "  - {\"network.npus[2]\": 4}\n",
                                 FX_SYSTEM);
    fx_config c;
    cs_error err;

    (void)state;
    assert_int_equal(psa_schema_n_starts(schema), 2);
    assert_int_equal(psa_schema_start(schema, 0, &c, &err), CS_OK);
    assert_int_equal(c.dp, 8);
    assert_int_equal(c.npus[1], 16);
    assert_int_equal(psa_schema_start(schema, 1, &c, &err), CS_OK);
    assert_int_equal(c.dp, 32);
    assert_int_equal(c.npus[1], 4);
    psa_schema_destroy(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_baseline_takes_sections_then_baseline),
        cmocka_unit_test(test_scalar_goes_to_all_dimensions),
        cmocka_unit_test(test_domains),
        cmocka_unit_test(test_assignments),
        cmocka_unit_test(test_field_texts),
        cmocka_unit_test(test_violations_show_their_arithmetic),
        cmocka_unit_test(test_check_accepts_a_valid_configuration),
        cmocka_unit_test(test_rules_in_force),
        cmocka_unit_test(test_limits_are_graded),
        cmocka_unit_test(test_objectives),
        cmocka_unit_test(test_several_workloads),
        cmocka_unit_test(test_facts_that_nobody_gives),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
