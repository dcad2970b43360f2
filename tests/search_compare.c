/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Statistics against worked numbers; suites; a comparison that is resumed and takes up the runs of
 * another program. */
#include "search/compare.h"
#include "search/stats.h"
#include "tests/search_fixture.h"

static void test_quantiles(void **state)
{
    const double v[] = {1, 2, 4, 8}, end[] = {1, 2, INFINITY, INFINITY};
    double work[4];

    (void)state;
    assert_true(search__quantile(v, 4, 0.5) == 3.0);   /* between 2 and 4 */
    assert_true(search__quantile(v, 4, 0.25) == 1.75); /* at 0.75 between 1 and 2 */
    assert_true(search__quantile(v, 4, 1.0) == 8.0);
    assert_true(isinf(search__quantile(end, 4, 0.5)));
    assert_true(search__quantile(end, 4, 1.0 / 3.0) == 2.0);
    assert_true(isnan(search__quantile(v, 0, 0.5)));
    assert_true(search__median((const double[]){5, 1, 3}, 3, work) == 3.0);
}

/* Differences 1..6 all positive: w = 0, one of 2^6 sign patterns on each side: p = 2/64 = 0.03125.
 * With the smallest negative (w = 1): two patterns reach it, p = 4/64. */
static void test_wilcoxon_exact(void **state)
{
    const double zero[6] = {0}, up[] = {1, 2, 3, 4, 5, 6}, mixed[] = {-1, 2, 3, 4, 5, 6};
    const double some[] = {1, 0, 0, 0, 0, 0};
    double work[18];

    (void)state;
    assert_close(search__wilcoxon(up, zero, 6, work), 2.0 / 64.0, 1e-12);
    assert_close(search__wilcoxon(zero, up, 6, work), 2.0 / 64.0, 1e-12);
    assert_close(search__wilcoxon(mixed, zero, 6, work), 4.0 / 64.0, 1e-12);
    assert_true(search__wilcoxon(zero, zero, 6, work) == 1.0);
    assert_true(search__wilcoxon(some, zero, 6, work) == 1.0); /* one difference tells nothing */
}

/* 30 positive differences of size 1 (all tied): w = 0, mean 232.5, variance 30*31*61/24 less
 * (30^3 - 30)/48 = 2363.75 - 561.875 = 1801.875; z = (-232.5 + 0.5)/42.448 = -5.4655;
 * p = 2 Phi(z) = 4.617e-8. */
static void test_wilcoxon_with_ties(void **state)
{
    double one[30], zero[30] = {0}, work[90];

    (void)state;
    for (size_t i = 0; i < 30; i++)
        one[i] = 1.0;
    assert_close(search__wilcoxon(one, zero, 30, work), erfc(232.0 / sqrt(1801.875) / sqrt(2.0)),
                 1e-9);
    one[0] = INFINITY; /* never reached counts as the largest difference */
    assert_true(search__wilcoxon(one, zero, 30, work) < 1e-6);
}

/* Sorted 0.01, 0.02, 0.04 times 3, 2, 1 = 0.03, 0.04, 0.04; never below the one before. */
static void test_holm(void **state)
{
    double p[] = {0.04, NAN, 0.01, 0.02}, large[] = {0.6, 0.9};

    (void)state;
    search__holm(p, 4);
    assert_close(p[2], 0.03, 1e-12);
    assert_close(p[3], 0.04, 1e-12);
    assert_close(p[0], 0.04, 1e-12);
    assert_true(isnan(p[1]));
    search__holm(large, 2);
    assert_true(large[0] == 1.0 && large[1] == 1.0);
}

/* {1, 2} against {2, 3}: 1 < 2, 1 < 3, 2 = 2, 2 < 3 -> 3.5 of 4. */
static void test_a12(void **state)
{
    const double a[] = {1, 2}, b[] = {2, 3};

    (void)state;
    assert_close(search__a12(a, b, 2), 0.875, 1e-12);
    assert_close(search__a12(b, a, 2), 0.125, 1e-12);
    assert_close(search__a12(a, a, 2), 0.5, 1e-12);
}

static void test_bootstrap_holds_the_median(void **state)
{
    double v[41], work[41 + 2000];
    cs_rng *rng = cs_rng_create(1, 2, 3);

    (void)state;
    for (size_t i = 0; i < 41; i++)
        v[i] = (double)(i * i);
    search__interval ci = search__bootstrap_median(v, 41, 2000, rng, work);
    assert_true(ci.low < 400.0 && 400.0 < ci.high); /* median 20^2 */
    assert_true(ci.low > 100.0 && ci.high < 900.0);
    ci = search__bootstrap_median((const double[]){7, 7, 7}, 3, 100, rng, work);
    assert_true(ci.low == 7.0 && ci.high == 7.0);
    cs_rng_destroy(rng);
}

/* No success in 100 draws: (1 - p)^100 = 0.025 at p = 0.036217.  5 in 100: 0.112835, as tabled. */
static void test_binomial_limits(void **state)
{
    (void)state;
    assert_close(search__binomial_most(0, 100, 0.025), 1.0 - pow(0.025, 0.01), 1e-9);
    assert_close(search__binomial_most(5, 100, 0.025), 0.112835, 1e-5);
    assert_true(search__binomial_most(7, 7, 0.025) == 1.0);
    assert_true(search__binomial_most(0, 0, 0.025) == 1.0);
}

static void test_order_of_ranks(void **state)
{
    const double zero[3] = {0}, up[] = {1, 2, 3}, odd[] = {-4, 1, 2}; /* ranks -3, 1, 2: neither */
    double work[9];

    (void)state;
    assert_int_equal(search__wilcoxon_order(zero, up, 3, work), -1);
    assert_int_equal(search__wilcoxon_order(up, zero, 3, work), 1);
    assert_int_equal(search__wilcoxon_order(odd, zero, 3, work), 0);
}

/* ---- suites ---- */

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void test_bad_suites_are_named(void **state)
{
#define HEAD "suite: 1\nname: x\nevaluations: 10\nseeds: 2\n"
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"suite: 2\n", "1"},
        {HEAD "agents: [locall]\nproblems: [{psa: a.yaml}]\n", "did you mean \"local\"?"},
        {HEAD "agents: [local, local]\nproblems: [{psa: a.yaml}]\n", "two agents are labelled"},
        {HEAD "agents: []\nproblems: [{psa: a.yaml}]\n", "expected 1 to 64 entries"},
        {HEAD "agents: [{name: local, params: {kik: 3}}]\nproblems: [{psa: a.yaml}]\n", "\"kick\""},
        {HEAD "agents: [local]\nproblems: [{psa: a.yaml, optimum: 0}]\n", "no relative regret"},
        {HEAD "agents: [local]\nproblems: [{psa: a.yaml}, {psa: b/a.yaml}]\n",
         "two problems are labelled"},
        {HEAD "agents: [local]\nproblms: [{psa: a.yaml}]\n", "problems"},
        {HEAD "agents: [{name: local, label: uniform}]\nproblems: [{psa: a.yaml}]\n", "is taken"},
        {HEAD "agents: [local]\nproblems: [{psa: a.yaml}]\nstop_within: 0.01\n",
         "no optimum to stop at"},
        {HEAD "agents: [local]\nproblems: [{psa: a.yaml}]\npairs: [[local, local]]\n",
         "two different agents"},
        {HEAD "agents: [local]\nproblems: [{psa: a.yaml}]\n"
              "reference: {agents: [local], evaluations: 10, seeds: 1}\n",
         "must be longer"},
        {HEAD "agents: [{name: random, label: local~2}]\nproblems: [{psa: a.yaml}]\n"
              "lottery: {agents: [local], configs: 2}\n",
         "two agents are labelled \"local~2\""},
        {HEAD "agents: [local]\nproblems: [{psa: a.yaml}]\n"
              "lottery: {agents: [local, local], configs: 1}\n",
         "two agents are labelled \"local~1\""},
    };
    search__suite suite;
    cs_error err = {""};
    const char *path = fx_path("suite.yaml");

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        write_text(path, cases[i].text);
        assert_true(search__suite_load(path, &suite, &err) != CS_OK);
        if (strstr(err.text, cases[i].message) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", cases[i].message, err.text);
    }
#undef HEAD
}

/* Settings of the lottery are inside the accepted ranges, differ, and are the same each time. */
static void test_lottery_draws_settings(void **state)
{
    const char *path = fx_path("lottery.yaml");
    search__suite a, b;
    cs_error err = {""};
    double x[AGENT_MAX_PARAMS], y[AGENT_MAX_PARAMS];

    (void)state;
    write_text(path,
               "suite: 1\nname: x\nevaluations: 10\nseeds: 2\nagents: [local]\n"
               "lottery: {agents: [local, genetic], configs: 3}\nproblems: [{psa: a.yaml}]\n");
    assert_int_equal(search__suite_load(path, &a, &err), CS_OK);
    assert_int_equal(search__suite_load(path, &b, &err), CS_OK);
    assert_int_equal(a.n_agents, 7);
    assert_string_equal(a.agents[1].label, "local~1");
    assert_string_equal(a.agents[6].label, "genetic~3");
    for (size_t i = 1; i < 7; i++) {
        const agent_type *type = a.agents[i].type;
        assert_int_equal(agent_params(type, a.agents[i].params, a.agents[i].n_params, x, &err),
                         CS_OK);
        assert_int_equal(agent_params(type, b.agents[i].params, b.agents[i].n_params, y, &err),
                         CS_OK);
        for (size_t p = 0; type->params[p].name != NULL; p++)
            assert_true(x[p] == y[p]);
        assert_true(agent_batch(type, x) == agent_batch(a.agents[0].type, y) || i > 3);
    }
    assert_string_not_equal(a.agents[1].params[0], a.agents[2].params[0]);
    search__suite_fini(&a);
    search__suite_fini(&b);
}

static search_compare_result compare(const char *suite, const char *runs, int jobs)
{
    search_compare_options options = {.suite_path = suite, .runs_path = runs, .jobs = jobs};
    search_compare_result result;
    cs_error err = {""};

    if (search_compare(&options, &result, &err) != CS_OK)
        fail_msg("%s", err.text);
    return result;
}

/* One small problem; `lines` go to the end of the file. */
static const char *suite_file(const char *name, const char *optimum, const char *lines)
{
    char text[4096], here[2048];
    const char *path = fx_path(name);

    assert_non_null(getcwd(here, sizeof here));
    (void)snprintf(text, sizeof text,
                   "suite: 1\nname: small\nproblems:\n  - psa: %s/" FX_PSA "\n    label: tiny\n"
                   "    objective: latency\n    fix: [workload.pp=1, workload.sp=1, "
                   "workload.micro_batch=1, \"placement=tp sp ep dp pp\"]\n    optimum: %s\n%s",
                   here, optimum, lines);
    write_text(path, text);
    return path;
}

static const char *small_suite(void)
{
    return suite_file("small.yaml", "exhaustive",
                      "evaluations: 40\nseeds: 4\n"
                      "agents: [random, local, {name: local, label: kick-2, params: {kick: 2}}]\n");
}

/* Both files hold the same runs, apart from the time inside the agents. */
static void assert_same_runs(const char *a, const char *b)
{
    char command[2000];

    (void)snprintf(command, sizeof command,
                   "sed 's/\"agent_s\":[^,]*,//' %s > %s.a; sed 's/\"agent_s\":[^,]*,//' %s | "
                   "cmp - %s.a",
                   a, a, b, a);
    assert_int_equal(system(command), 0);
}

/* Runs stop at the first value within 5 %; what is tested is evaluations to there.  A run said to
 * have stopped that is not that near is made again. */
static void test_runs_stop_near_the_optimum(void **state)
{
    const char *suite = suite_file("stop.yaml", "exhaustive",
                                   "evaluations: 400\nseeds: 4\nstop_within: 0.05\n"
                                   "agents: [random, local]\npairs: [[local, random]]\n");
    const char *runs = fx_path("stop.jsonl"), *two = fx_path("stop2.jsonl");
    search__records records = {0};
    cs_error err = {""};

    (void)state;
    search_compare_result a = compare(suite, runs, 1);
    const double optimum = a.problems[0].optimum;
    assert_int_equal(a.runs_done, 8);
    assert_true(a.rows[1].success_5 == 1.0 && a.rows[1].final == 0.05);
    assert_int_equal(a.n_pairs, 1);
    assert_true(a.pairs[0].median[0] == a.rows[1].median_5);
    search_compare_fini(&a);
    assert_int_equal(search__records_read(runs, &records, &err), CS_OK);
    for (size_t i = 1; i < records.n; i++) { /* the first is the enumeration */
        const search__record *r = &records.list[i];
        if (!r->stopped)
            continue;
        assert_true(fabs(r->value[r->n - 1] / optimum - 1.0) <= 0.05);
        assert_true(r->n == 1 || fabs(r->value[r->n - 2] / optimum - 1.0) > 0.05);
    }
    search__records_fini(&records);
    a = compare(suite, two, 2);
    search_compare_fini(&a);
    assert_same_runs(runs, two);

    FILE *file = fopen(runs, "a");
    assert_non_null(file);
    (void)fprintf(file,
                  "{\"problem\":\"tiny\",\"agent\":\"local\",\"seed\":1,\"evaluations\":400,"
                  "\"stopped\":true,\"trace\":[[3,%.17g]]}\n",
                  1.06 * optimum);
    assert_int_equal(fclose(file), 0);
    a = compare(suite, runs, 1);
    assert_int_equal(a.runs_done, 1);
    assert_int_equal(a.runs_kept, 7);
    search_compare_fini(&a);
}

/* An optimum that any design beats: all runs stop there, at no regret.  A stopped
 * run without a design is no run. */
static void test_better_than_the_stated_optimum_is_no_regret(void **state)
{
    const char *runs = fx_path("beaten.jsonl");
    const char *suite = suite_file("beaten.yaml", "1e9",
                                   "evaluations: 400\nseeds: 2\nstop_within: 0.05\n"
                                   "agents: [local]\n");
    search_compare_options options = {.suite_path = suite, .runs_path = runs, .jobs = 1};
    search_compare_result a = compare(suite, runs, 1);
    cs_error err = {""};

    (void)state;
    assert_true(a.rows[0].success_1 == 1.0 && a.rows[0].final == 0.05);
    assert_true(a.rows[0].median_1 < 400);
    search_compare_fini(&a);
    write_text(runs, "{\"problem\":\"tiny\",\"agent\":\"local\",\"seed\":1,"
                     "\"evaluations\":400,\"stopped\":true,\"trace\":[]}\n");
    assert_int_equal(search_compare(&options, &a, &err), CS_EPARSE);
    assert_non_null(strstr(err.text, "not a run"));
}

/* Draws estimate the share that enumeration counts: n draws differ from it by few standard
 * deviations sqrt(s (1 - s) / n), and more than 100 hits are not waited for. */
static void test_uniform_draws_estimate_the_share(void **state)
{
    const char *lines = "evaluations: 10\nseeds: 1\nagents: [random]\nuniform: 100000\n";
    char number[40];

    (void)state;
    search_compare_result a =
        compare(suite_file("exact.yaml", "exhaustive", lines), fx_path("exact.jsonl"), 1);
    const double share = a.problems[0].share_1;
    assert_int_equal(a.problems[0].draws, 0);
    (void)snprintf(number, sizeof number, "%.17g", a.problems[0].optimum);
    search_compare_fini(&a);
    const char *suite = suite_file("drawn.yaml", number, lines);
    a = compare(suite, fx_path("drawn.jsonl"), 1);
    const search_compare_problem *p = &a.problems[0];
    const double n = (double)p->draws;
    assert_string_equal(p->kind, "stated");
    assert_true(p->draws > 0 && p->hits >= 100 && p->draws % 4096 == 0);
    assert_true(fabs(p->share_1 - share) < 5.0 * sqrt(share * (1.0 - share) / n));
    assert_true(p->random_least < p->random_median);
    search_compare_fini(&a);
    a = compare(suite, fx_path("drawn2.jsonl"), 2);
    search_compare_fini(&a);
    assert_same_runs(fx_path("drawn.jsonl"), fx_path("drawn2.jsonl"));
}

/* Runs of other programs, worked out: alpha reaches the optimum, beta ends 1 % to 8 % above it, so
 * alpha wins all of 8 seeds and p = 2/2^8.  A pair with a program that did not run is left out. */
static void test_pairs_are_tested_seed_by_seed(void **state)
{
    const char *suite = suite_file("pairs.yaml", "2.0",
                                   "evaluations: 10\nseeds: 8\nagents: [random]\n"
                                   "pairs: [[alpha, beta], [beta, alpha], [alpha, gamma]]\n");
    const char *runs = fx_path("pairs.jsonl");
    FILE *file = fopen(runs, "w");

    (void)state;
    assert_non_null(file);
    for (int seed = 1; seed <= 8; seed++)
        (void)fprintf(file,
                      "{\"problem\":\"tiny\",\"agent\":\"alpha\",\"seed\":%d,"
                      "\"evaluations\":10,\"trace\":[[9,2.0]]}\n"
                      "{\"problem\":\"tiny\",\"agent\":\"beta\",\"seed\":%d,"
                      "\"evaluations\":10,\"trace\":[[1,%.17g]]}\n",
                      seed, seed, 2.0 * (1.0 + 0.01 * seed));
    assert_int_equal(fclose(file), 0);
    search_compare_result a = compare(suite, runs, 1);
    assert_int_equal(a.n_pairs, 2);
    assert_int_equal(a.pairs[0].n, 8);
    assert_int_equal(a.pairs[0].wins, 8);
    assert_close(a.pairs[0].p, 2.0 / 256.0, 1e-12);
    assert_true(a.pairs[0].better && !a.pairs[0].worse && a.pairs[1].worse && !a.pairs[1].better);
    assert_close(a.pairs[0].median[1], 0.045, 1e-9);
    search_compare_fini(&a);
}

/* Long runs come first and are the reference; settings of the lottery are summed up, not ranked. */
static void test_references_and_lottery(void **state)
{
    const char *suite = suite_file("lottery2.yaml", "best_known",
                                   "evaluations: 60\nseeds: 3\nagents: [random, local]\n"
                                   "reference: {agents: [local], evaluations: 2000, seeds: 2}\n"
                                   "lottery: {agents: [local], configs: 4}\n");

    (void)state;
    search_compare_result a = compare(suite, fx_path("lottery.jsonl"), 2);
    assert_string_equal(a.problems[0].kind, "best_known");
    assert_int_equal(a.problems[0].references, 2);
    assert_true(a.problems[0].agreeing >= 1);
    assert_int_equal(a.n_rows, 6);
    assert_int_equal(a.n_lottery, 1);
    const search_compare_lottery *l = &a.lottery[0];
    assert_int_equal(l->configs, 4);
    assert_true(l->best <= l->median && l->median <= l->worst);
    assert_true(l->own == a.rows[1].final && isnan(a.rows[2].rank) && a.rows[1].rank <= 2.0);
    search_compare_fini(&a);
}

static void test_comparison_is_resumed_and_counts_other_programs(void **state)
{
    const char *suite = small_suite(), *runs = fx_path("runs.jsonl"), *one = fx_path("one.jsonl");
    char command[600];

    (void)state;
    search_compare_result a = compare(suite, runs, 2);
    assert_int_equal(a.n_problems, 1);
    assert_int_equal(a.n_rows, 3);
    assert_int_equal(a.runs_done, 12);
    assert_string_equal(a.problems[0].kind, "exhaustive");
    const double share = a.problems[0].share_1, optimum = a.problems[0].optimum;
    assert_true(share > 0 && share < 1);
    assert_close(a.problems[0].random_median, log(0.5) / log1p(-share), 1e-12);
    size_t best = 0;
    for (size_t i = 0; i < a.n_rows; i++) {
        assert_int_equal(a.rows[i].runs, 4);
        assert_true(a.rows[i].regret[0] >= a.rows[i].final); /* 30 against 40 evaluations */
        assert_true(isnan(a.rows[i].regret[1]));
        best += a.rows[i].best;
    }
    assert_int_equal(best, 1);
    search_compare_fini(&a);

    /* The same lines from one thread, apart from the time inside the agent. */
    a = compare(suite, one, 1);
    search_compare_fini(&a);
    assert_same_runs(one, runs);

    /* Cut the last line, add another program's run: one run is made again. */
    (void)snprintf(command, sizeof command, "truncate -s -9 %s", runs);
    assert_int_equal(system(command), 0);
    a = compare(suite, runs, 1);
    assert_int_equal(a.runs_done, 1);
    assert_int_equal(a.runs_kept, 11);
    search_compare_fini(&a);
    FILE *file = fopen(runs, "a");
    assert_non_null(file);
    (void)fprintf(file,
                  "{\"problem\":\"tiny\",\"agent\":\"oracle\",\"seed\":1,\"evaluations\":40,"
                  "\"trace\":[[3,%.17g]]}\n",
                  optimum);
    assert_int_equal(fclose(file), 0);
    a = compare(suite, runs, 1);
    assert_int_equal(a.runs_done, 0);
    assert_int_equal(a.n_rows, 4);
    assert_string_equal(a.rows[3].agent, "oracle");
    assert_true(a.rows[3].final == 0.0 && a.rows[3].median_1 == 3.0 && a.rows[3].ert_1 == 3.0);
    search_compare_fini(&a);
    write_text(runs, "nonsense\n");
    search_compare_options options = {.suite_path = suite, .runs_path = runs, .jobs = 1};
    cs_error err = {""};
    assert_int_equal(search_compare(&options, &a, &err), CS_EPARSE);
    assert_non_null(strstr(err.text, "runs.jsonl:1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_wilcoxon_exact),
        cmocka_unit_test(test_wilcoxon_with_ties),
        cmocka_unit_test(test_holm),
        cmocka_unit_test(test_a12),
        cmocka_unit_test(test_bootstrap_holds_the_median),
        cmocka_unit_test(test_binomial_limits),
        cmocka_unit_test(test_order_of_ranks),
        cmocka_unit_test(test_bad_suites_are_named),
        cmocka_unit_test(test_lottery_draws_settings),
        cmocka_unit_test(test_comparison_is_resumed_and_counts_other_programs),
        cmocka_unit_test(test_runs_stop_near_the_optimum),
        cmocka_unit_test(test_better_than_the_stated_optimum_is_no_regret),
        cmocka_unit_test(test_uniform_draws_estimate_the_share),
        cmocka_unit_test(test_pairs_are_tested_seed_by_seed),
        cmocka_unit_test(test_references_and_lottery),
    };
    return cmocka_run_group_tests(tests, fx_open_folder, fx_close_folder);
}
