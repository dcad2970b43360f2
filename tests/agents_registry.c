/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Every agent of the registry on spaces that are small, flat, infeasible or odd; the registry and
 * its parameters; the order of scores. */
#include "tests/agents_drive.h"

static const char tiny_psa[] = /* 3 * 4 * 2 = 24 points */
    "psa: 1\nname: tiny\nknobs:\n"
    "  workload.sharding: {values: [none, optimizer, weights]}\n"
    "  collective.chunks: {values: [2, 4, 8, 16]}\n"
    "  workload.tp_sequence: {values: [false, true]}\n"
    "objectives:\n  latency: {minimize: latency}\n";
static const char single_psa[] = "psa: 1\nname: single\nknobs:\n"
                                 "  collective.chunks: {values: [4]}\n"
                                 "objectives:\n  latency: {minimize: latency}\n";
static const char one_value_psa[] = /* one knob of one value beside one of 5 */
    "psa: 1\nname: one-value\nknobs:\n"
    "  workload.sharding: {values: [weights]}\n"
    "  workload.micro_batch: {values: [1, 2, 3, 4, 5]}\n"
    "objectives:\n  latency: {minimize: latency}\n";
static const char long_psa[] = "psa: 1\nname: long\nknobs:\n"
                               "  collective.chunks: {range: [1, 10000], step: 1}\n"
                               "objectives:\n  latency: {minimize: latency}\n";

/* A bowl around one third of the ranks. */
static agent_score bowl(const psa_space *space, const int32_t *point)
{
    double rank = (double)psa_space_rank(space, point);
    double n = (double)psa_space_valid_points(space);
    double off = (rank - floor(n / 3.0)) / n;

    return (agent_score){.objective = {1.0 + off * off, 2.0 - off}};
}

static agent_score flat(const psa_space *space, const int32_t *point)
{
    (void)space, (void)point;
    return (agent_score){.objective = {3.0, 3.0}};
}

static agent_score nowhere(const psa_space *space, const int32_t *point)
{
    return (agent_score){.outcome = AGENT_INFEASIBLE,
                         .violation = 0.1 + (double)psa_space_rank(space, point)};
}

static agent_score broken(const psa_space *space, const int32_t *point)
{
    (void)space, (void)point;
    return (agent_score){.outcome = AGENT_FAILED};
}

/* Every third design does not fit. */
static agent_score holes(const psa_space *space, const int32_t *point)
{
    if (psa_space_rank(space, point) % 3 == 1)
        return nowhere(space, point);
    return bowl(space, point);
}

typedef struct {
    psa_schema *schema;
    psa_space *space;
} small;

static small open_space(const char *psa)
{
    small s = {.schema = fx_load(&fx_plain, psa, FX_SYSTEM)};

    s.space = fx_space(s.schema);
    return s;
}

static void close_space(small s)
{
    psa_space_destroy(s.space);
    psa_schema_destroy(s.schema);
}

/* Runs every agent; each must see every point once and end. */
static void expect_all_seen(const char *psa, drive_landscape landscape, bool precheck,
                            uint64_t points)
{
    small s = open_space(psa);

    assert_int_equal((uint64_t)psa_space_valid_points(s.space), points);
    for (size_t i = 0; agent_types[i] != NULL; i++) {
        drive d = {.type = agent_types[i],
                   .space = s.space,
                   .landscape = landscape,
                   .budget = 1000,
                   .seed = 7,
                   .precheck = precheck};
        drive_run(&d);
        if (d.unique != points)
            fail_msg("%s saw %llu of %llu points", d.type->name, (unsigned long long)d.unique,
                     (unsigned long long)points);
        drive_fini(&d);
    }
    close_space(s);
}

static void test_small_spaces_are_exhausted(void **state)
{
    (void)state;
    expect_all_seen(tiny_psa, bowl, false, 24);
    expect_all_seen(tiny_psa, holes, false, 24);
    expect_all_seen(tiny_psa, holes, true, 24);
    expect_all_seen(single_psa, bowl, false, 1);
    expect_all_seen(one_value_psa, bowl, false, 5);
}

static void test_flat_infeasible_and_failing_landscapes_end(void **state)
{
    (void)state;
    expect_all_seen(tiny_psa, flat, false, 24);
    expect_all_seen(tiny_psa, nowhere, false, 24);
    expect_all_seen(tiny_psa, nowhere, true, 24);
    expect_all_seen(tiny_psa, broken, false, 24);
}

/* The optimum of 24 points is found because all are seen: rank floor(24/3) = 8 scores 1. */
static void test_exhausted_space_gives_the_true_optimum(void **state)
{
    small s = open_space(tiny_psa);

    (void)state;
    for (size_t i = 0; agent_types[i] != NULL; i++) {
        drive d = {
            .type = agent_types[i], .space = s.space, .landscape = bowl, .budget = 1000, .seed = 3};
        drive_run(&d);
        assert_true(d.has_best);
        assert_true(d.best.objective[0] == 1.0);
        drive_fini(&d);
    }
    close_space(s);
}

/* One variable of 10,000 values, 300 evaluations: all are spent, none twice. */
static void test_one_long_variable(void **state)
{
    small s = open_space(long_psa);

    (void)state;
    assert_int_equal((uint64_t)psa_space_valid_points(s.space), 10000);
    for (size_t i = 0; agent_types[i] != NULL; i++) {
        drive d = {
            .type = agent_types[i], .space = s.space, .landscape = bowl, .budget = 300, .seed = 11};
        drive_run(&d);
        assert_int_equal(d.unique, 300);
        assert_true(d.has_best);
        drive_fini(&d);
    }
    close_space(s);
}

static void test_names_and_defaults_are_sound(void **state)
{
    (void)state;
    for (size_t i = 0; agent_types[i] != NULL; i++) {
        const agent_type *type = NULL, *t = agent_types[i];
        double param[AGENT_MAX_PARAMS];
        assert_int_equal(agent_find(t->name, &type, NULL), CS_OK);
        assert_ptr_equal(type, t);
        assert_true(t->summary != NULL && t->state_size > 0);
        assert_int_equal(agent_params(t, NULL, 0, param, NULL), CS_OK);
        assert_true(agent_batch(t, param) >= 1);
        for (size_t p = 0; t->params[p].name != NULL; p++) {
            assert_true(p < AGENT_MAX_PARAMS);
            assert_true(t->params[p].min <= t->params[p].value);
            assert_true(t->params[p].value <= t->params[p].max);
            assert_non_null(t->params[p].help);
        }
    }
}

static void test_wrong_names_and_values_are_refused(void **state)
{
    static const struct {
        const char *assignment, *message;
    } cases[] = {
        {"popluation=3",
         "agent genetic has no parameter \"popluation\"; did you mean \"population\"?"},
        {"population", "expected name=value for agent genetic, not \"population\""},
        {"population=many", "parameter population of agent genetic needs a number, not \"many\""},
        {"population=1", "parameter population of agent genetic must lie in [2, 4096], not 1"},
        {"population=inf", "parameter population of agent genetic needs a number, not \"inf\""},
    };
    const agent_type *type = NULL;
    double param[AGENT_MAX_PARAMS];
    cs_error err;
    char text[256];

    (void)state;
    assert_int_equal(agent_find("genetik", &type, &err), CS_EINVAL);
    fx_contains(err.text, "unknown agent \"genetik\"; did you mean \"genetic\"?");
    assert_int_equal(agent_find("genetic", &type, &err), CS_OK);
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        assert_int_equal(agent_params(type, &cases[i].assignment, 1, param, &err), CS_EINVAL);
        fx_contains(err.text, cases[i].message);
    }
    const char *good[] = {"population=64", "batch=8"};
    assert_int_equal(agent_params(type, good, 2, param, &err), CS_OK);
    assert_true(param[0] == 64 && agent_batch(type, param) == 8);
    fx_contains(agent_params_text(type, param, text, sizeof text), "population=64 batch=8");
}

static void test_scores_are_ordered_by_debs_rules(void **state)
{
    /* Best first: feasible by objective, infeasible by violation, failed last. */
    static const agent_score sorted[] = {
        {.outcome = AGENT_FEASIBLE, .objective = {-1}},
        {.outcome = AGENT_FEASIBLE, .objective = {2}},
        {.outcome = AGENT_INFEASIBLE, .violation = 0.1, .objective = {-9}},
        {.outcome = AGENT_INFEASIBLE, .violation = 5},
        {.outcome = AGENT_FAILED},
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(sorted); i++)
        for (size_t j = 0; j < CS_COUNT(sorted); j++) {
            int order = agent_score_compare(&sorted[i], &sorted[j]);
            assert_true(i < j ? order < 0 : i > j ? order > 0 : order == 0);
        }
}

static void test_exhaustive_refuses_large_spaces(void **state)
{
    small s = open_space(long_psa);
    const agent_type *type = NULL;
    const char *limit = "limit=9999";
    double param[AGENT_MAX_PARAMS];
    agent *a = NULL;
    cs_error err;

    (void)state;
    assert_int_equal(agent_find("exhaustive", &type, &err), CS_OK);
    assert_int_equal(agent_params(type, &limit, 1, param, &err), CS_OK);
    agent_setup setup = {.space = s.space, .param = param, .n_objectives = 1};
    assert_int_equal(agent_create(type, &setup, &a, &err), CS_EINVAL);
    fx_contains(err.text, "10000 valid designs is over its limit of 9999");
    close_space(s);
}

/* A snapshot that is cut short or too long is refused by every agent, whatever its bytes. */
static void test_damaged_snapshots_are_refused(void **state)
{
    small s = open_space(tiny_psa);

    (void)state;
    for (size_t i = 0; agent_types[i] != NULL; i++) {
        drive d = {.type = agent_types[i], .space = s.space, .landscape = bowl, .budget = 10};
        agent_bytes bytes = {0};
        cs_error err;
        agent *a = drive_agent(&d);
        assert_int_equal(agent_save(a, &bytes, &err), CS_OK);
        assert_int_equal(agent_load(a, bytes.data, bytes.n - 1, &err), CS_EIO);
        agent_destroy(a);
        a = drive_agent(&d);
        assert_int_equal(agent_bytes_put(&bytes, "x", 1), CS_OK);
        assert_int_equal(agent_load(a, bytes.data, bytes.n, &err), CS_EIO);
        fx_contains(err.text, "the snapshot does not fit agent");
        agent_destroy(a);
        agent_bytes_fini(&bytes);
    }
    close_space(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_spaces_are_exhausted),
        cmocka_unit_test(test_flat_infeasible_and_failing_landscapes_end),
        cmocka_unit_test(test_exhausted_space_gives_the_true_optimum),
        cmocka_unit_test(test_one_long_variable),
        cmocka_unit_test(test_names_and_defaults_are_sound),
        cmocka_unit_test(test_wrong_names_and_values_are_refused),
        cmocka_unit_test(test_scores_are_ordered_by_debs_rules),
        cmocka_unit_test(test_exhaustive_refuses_large_spaces),
        cmocka_unit_test(test_damaged_snapshots_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
