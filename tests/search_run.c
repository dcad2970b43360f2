/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The loop: same digits for any number of threads, budgets, repeats, limits of time and signals,
 * failures of the simulator as results. */
#include "tests/search_fixture.h"

static search_problem problem;

static int open_all(void **state)
{
    problem = fx_problem(FX_PSA, NULL, 0, NULL);
    return fx_open_folder(state);
}

static int close_all(void **state)
{
    search_problem_fini(&problem);
    return fx_close_folder(state);
}

static fx_digest digest_of_run(const search_problem *p, search_options options, search_outcome *out)
{
    fx_digest d = {.problem = p, .hash = CS_HASH_START};

    options.on_trial = fx_on_trial;
    options.progress_context = &d;
    fx_run(p, &options, out);
    return d;
}

static void test_threads_change_no_digit(void **state)
{
    static const char *const agents[] = {"random", "genetic", "local", "auto"};
    static const int jobs[] = {2, 4, 16};

    (void)state;
    for (size_t a = 0; a < CS_COUNT(agents); a++) {
        search_options options = {
            .agent = fx_agent(agents[a]), .evaluations = 120, .seed = 1, .jobs = 1};
        search_outcome out;
        const fx_digest one = digest_of_run(&problem, options, &out);
        assert_int_equal(one.n, 120);
        assert_int_equal(out.unique, 120);
        assert_int_equal(out.stop, SEARCH_BUDGET);
        search_outcome_fini(&out);
        for (size_t j = 0; j < CS_COUNT(jobs); j++) {
            options.jobs = jobs[j];
            const fx_digest many = digest_of_run(&problem, options, &out);
            assert_true(many.hash == one.hash);
            assert_int_equal(out.jobs, jobs[j]);
            search_outcome_fini(&out);
        }
        options.seed = 2;
        assert_true(digest_of_run(&problem, options, &out).hash != one.hash);
        search_outcome_fini(&out);
    }
}

typedef struct {
    const search_problem *problem;
    search_trial best;
    int32_t point[64];
    uint64_t feasible, infeasible;
} follower;

static void follow(void *context, const search_trial *trial)
{
    follower *f = context;

    f->feasible += trial->status == SEARCH_FEASIBLE;
    f->infeasible += trial->status == SEARCH_INFEASIBLE;
    if (f->best.id > 0 && search_trial_compare(f->problem, trial, &f->best) >= 0)
        return;
    f->best = *trial;
    memcpy(f->point, trial->point, psa_space_n_vars(f->problem->space) * sizeof *f->point);
    f->best.point = f->point;
}

static void test_outcome_keeps_the_best_trial(void **state)
{
    follower f = {.problem = &problem};
    search_options options = {.agent = fx_agent("random"),
                              .evaluations = 200,
                              .seed = 5,
                              .jobs = 2,
                              .on_trial = follow,
                              .progress_context = &f};
    search_outcome out;

    (void)state;
    fx_run(&problem, &options, &out);
    assert_true(out.has_best && f.feasible > 0);
    assert_int_equal(out.best.id, f.best.id);
    assert_int_equal(out.infeasible, f.infeasible);
    assert_memory_equal(out.best.point, f.point, psa_space_n_vars(problem.space) * sizeof *f.point);
    /* Evaluating the best point alone gives the same digits. */
    sim_scratch *scratch = sim_scratch_create(problem.model);
    search_trial again = {.id = out.best.id, .point = out.best.point};
    search_evaluate(&problem, out.best.point, scratch, &again);
    assert_memory_equal(&again.result, &out.best.result, sizeof again.result);
    assert_true(again.objective[0] == out.best.objective[0]);
    sim_scratch_destroy(scratch);
    search_outcome_fini(&out);
}

/* Every design gives the same digits whatever was simulated before it with the same tables. */
static void test_history_changes_no_digit(void **state)
{
    sim_scratch *warm = sim_scratch_create(problem.model);
    cs_rng *rng = cs_rng_create(8, 0, 0);
    int32_t point[64];

    (void)state;
    for (size_t i = 0; i < 60; i++) {
        search_trial a = {.id = 1}, b = {.id = 1};
        assert_int_equal(psa_space_sample(problem.space, rng, point), CS_OK);
        sim_scratch *fresh = sim_scratch_create(problem.model);
        search_evaluate(&problem, point, warm, &a);
        search_evaluate(&problem, point, fresh, &b);
        sim_scratch_destroy(fresh);
        if (memcmp(&a.result, &b.result, sizeof a.result) != 0)
            fail_msg("design %zu: latency %.17g after others, %.17g alone", i, a.result.latency_s,
                     b.result.latency_s);
    }
    cs_rng_destroy(rng);
    sim_scratch_destroy(warm);
}

/* micro_batch x recompute with everything else pinned: 15 points at most. */
static void test_small_space_is_exhausted(void **state)
{
    static const char *const fixes[] = {"workload.dp=64",
                                        "workload.tp=8",
                                        "workload.sp=1",
                                        "workload.pp=1",
                                        "placement=tp sp ep dp pp",
                                        "workload.sharding=weights",
                                        "workload.tp_sequence=true"};
    search_problem small = fx_problem(FX_PSA, fixes, CS_COUNT(fixes), NULL);
    const uint64_t points = (uint64_t)psa_space_valid_points(small.space);

    (void)state;
    assert_true(points >= 9 && points <= 30);
    for (size_t a = 0; agent_types[a] != NULL; a++) {
        search_options options = {
            .agent = agent_types[a], .evaluations = 1000, .seed = 3, .jobs = 1};
        search_outcome out;
        fx_run(&small, &options, &out);
        if (out.stop != SEARCH_EXHAUSTED)
            fail_msg("%s stopped by %s", agent_types[a]->name, search_stop_names[out.stop]);
        if (!agent_types[a]->raw)
            assert_int_equal(out.unique, points);
        assert_int_equal(out.proposals, out.unique + out.cache_hits);
        search_outcome_fini(&out);
    }
    search_problem_fini(&small);
}

static void test_signal_and_timeout_leave_a_prefix(void **state)
{
    static volatile int stop = 15;
    search_options options = {
        .agent = fx_agent("local"), .evaluations = 100000, .seed = 1, .jobs = 2, .stop = &stop};
    search_outcome out;

    (void)state;
    fx_run(&problem, &options, &out);
    assert_int_equal(out.stop, SEARCH_SIGNAL);
    assert_int_equal(out.unique, 0);
    search_outcome_fini(&out);

    options.stop = NULL;
    options.timeout_s = 0.3;
    const fx_digest cut = digest_of_run(&problem, options, &out);
    assert_int_equal(out.stop, SEARCH_TIMEOUT);
    assert_true(out.wall_s < 0.3 + 1.0);
    search_outcome_fini(&out);
    if (cut.n == 0)
        return;
    options.timeout_s = 0;
    options.evaluations = cut.n;
    assert_true(digest_of_run(&problem, options, &out).hash == cut.hash);
    search_outcome_fini(&out);
}

/* A configuration that breaks a rule is refused by the simulator: a failed trial with its reason.
 */
static void test_simulator_errors_are_failed_trials(void **state)
{
    sim_scratch *scratch = sim_scratch_create(problem.model);
    sim_config config;
    search_trial trial = {.id = 1};

    (void)state;
    memset(&config, 0, sizeof config);
    psa_schema_baseline(problem.schema, &config);
    config.workload.dp = 3;
    search_evaluate_config(&problem, &config, scratch, &trial);
    assert_int_equal(trial.status, SEARCH_FAILED);
    assert_true(trial.reason[0] != 0);
    sim_scratch_destroy(scratch);
}

static void test_infeasible_space_gives_the_least_violating(void **state)
{
    /* One NPU's share of a 70B model without sharding never fits 80 GB. */
    static const char *const fixes[] = {"workload.dp=512", "workload.tp=1", "workload.sp=1",
                                        "workload.pp=1", "workload.sharding=none"};
    search_problem big = fx_problem(FX_PSA, fixes, CS_COUNT(fixes), NULL);
    search_options options = {.agent = fx_agent("local"), .evaluations = 50, .jobs = 1};
    search_outcome out;
    char reason[SEARCH_REASON_BYTES];

    (void)state;
    fx_run(&big, &options, &out);
    assert_false(out.has_best);
    assert_true(out.n_least > 0 && out.infeasible == out.unique);
    for (size_t i = 0; i < out.n_least; i++) {
        assert_true(out.least[i].violation > 0);
        assert_true(i == 0 || out.least[i - 1].violation <= out.least[i].violation);
        assert_non_null(strstr(search_trial_reason(&out.least[i], reason), "memory: "));
    }
    search_outcome_fini(&out);
    search_problem_fini(&big);
}

static void test_objectives_are_chosen_by_name(void **state)
{
    search_problem p = {0};
    cs_error err = {""};
    search_problem_options options = {.psa_path = FX_PSA, .objectives = "tokens_per_s,latency"};

    (void)state;
    assert_int_equal(search_problem_load(&options, &p, &err), CS_OK);
    assert_int_equal(p.n_objectives, 2);
    search_problem_fini(&p);
    options.objectives = "latency,latency";
    assert_int_equal(search_problem_load(&options, &p, &err), CS_EINVAL);
    assert_non_null(strstr(err.text, "named twice"));
    options.objectives = "latencey";
    assert_true(search_problem_load(&options, &p, &err) != CS_OK);
    assert_non_null(strstr(err.text, "latency"));
    options.psa_path = "nowhere.yaml";
    assert_int_equal(search_problem_load(&options, &p, &err), CS_ENOENT);
}

/* More tokens a second is better: the best of a maximized objective is its largest value. */
static void test_maximized_objective_is_maximized(void **state)
{
    search_problem p = fx_problem(FX_PSA, NULL, 0, "tokens_per_s");
    search_options options = {.agent = fx_agent("local"), .evaluations = 100, .jobs = 1};
    search_outcome fast, slow;

    (void)state;
    fx_run(&p, &options, &fast);
    options.agent = fx_agent("random");
    options.evaluations = 10;
    fx_run(&p, &options, &slow);
    assert_true(fast.has_best && slow.has_best);
    assert_true(fast.best.objective[0] >= slow.best.objective[0]);
    assert_true(fast.best.objective[0] > 0);
    search_outcome_fini(&fast);
    search_outcome_fini(&slow);
    search_problem_fini(&p);
}

static void test_threads_available_are_counted(void **state)
{
    const int all = (setenv("OMP_NUM_THREADS", "1000", 1), search_default_jobs());

    (void)state;
    assert_true(all >= 1);
    assert_int_equal(setenv("OMP_NUM_THREADS", "1", 1), 0);
    assert_int_equal(search_default_jobs(), 1);
    assert_int_equal(unsetenv("OMP_NUM_THREADS"), 0);
    assert_int_equal(search_default_jobs(), all);
}

/* With one stage a schedule is inactive; the placement of axes of size 1 cannot matter. */
static void test_knobs_without_effect_are_named(void **state)
{
    static const char *const assignments[] = {"workload.dp=512",
                                              "workload.tp=1",
                                              "workload.sp=1",
                                              "workload.pp=1",
                                              "workload.micro_batch=1",
                                              "workload.recompute=full",
                                              "workload.sharding=weights",
                                              "placement=tp sp ep dp pp"};
    sim_config config;
    int32_t point[64];
    bool idle[64];
    cs_error err = {""};

    (void)state;
    memset(&config, 0, sizeof config);
    psa_schema_baseline(problem.schema, &config);
    for (size_t i = 0; i < CS_COUNT(assignments); i++)
        assert_int_equal(psa_schema_assign(problem.schema, assignments[i], &config, &err), CS_OK);
    config.workload.tp_sequence = 0;
    assert_int_equal(psa_space_encode(problem.space, &config, point, &err), CS_OK);
    assert_int_equal(search_idle_knobs(&problem, point, idle, &err), CS_OK);
    for (size_t k = 0; k < psa_space_n_knobs(problem.space); k++) {
        const char *name = psa_space_knob_name(problem.space, k);
        const bool expected = strcmp(name, "placement") == 0;
        if (idle[k] != expected)
            fail_msg("%s is %s", name, idle[k] ? "idle" : "not idle");
    }
}

static void test_bench_counts_feasible_and_rejected_apart(void **state)
{
    search_bench_result r;
    cs_error err = {""};

    (void)state;
    assert_int_equal(search_bench(&problem, 0.05, 2, 1, &r, &err), CS_OK);
    assert_int_equal((r.feasible + r.rejected) % 128, 0); /* whole rounds of 64 a thread */
    assert_true(r.feasible > 0 && r.rejected > 0 && r.wall_s >= 0.05);
    assert_close(r.evaluations_per_s, (double)r.feasible / r.wall_s, 1e-12);
    assert_close(r.evaluations_per_s_per_core * 2, r.evaluations_per_s, 1e-12);
    assert_true(r.first_sample_s > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_change_no_digit),
        cmocka_unit_test(test_outcome_keeps_the_best_trial),
        cmocka_unit_test(test_history_changes_no_digit),
        cmocka_unit_test(test_small_space_is_exhausted),
        cmocka_unit_test(test_signal_and_timeout_leave_a_prefix),
        cmocka_unit_test(test_simulator_errors_are_failed_trials),
        cmocka_unit_test(test_infeasible_space_gives_the_least_violating),
        cmocka_unit_test(test_objectives_are_chosen_by_name),
        cmocka_unit_test(test_maximized_objective_is_maximized),
        cmocka_unit_test(test_threads_available_are_counted),
        cmocka_unit_test(test_knobs_without_effect_are_named),
        cmocka_unit_test(test_bench_counts_feasible_and_rejected_apart),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
