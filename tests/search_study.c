/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The study: opened alone it says what was searched; killed at any moment and resumed it holds the
 * same trials; what does not belong to it is refused with the difference named. */
#include "tests/search_fixture.h"

#include <signal.h>
#include <sys/wait.h>

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

static search_options options_for(const char *name, uint64_t evaluations, const char *path)
{
    return (search_options){.agent = fx_agent(name),
                            .evaluations = evaluations,
                            .seed = 1,
                            .jobs = 1,
                            .study_path = path};
}

static fx_digest search_into(const char *name, uint64_t evaluations, const char *path, bool resume)
{
    search_options options = options_for(name, evaluations, path);
    search_outcome out;

    options.resume = resume;
    fx_run(&problem, &options, &out);
    assert_int_equal(out.unique, evaluations);
    search_outcome_fini(&out);
    return fx_study_digest(path);
}

static void test_study_opens_alone(void **state)
{
    char here[4096];
    search_study *study = NULL;
    cs_error err = {""};
    const char *path = fx_path("alone.db");

    (void)state;
    fx_digest d = search_into("random", 40, path, false);
    assert_int_equal(d.n, 40);
    /* From a folder where none of the input files can be found. */
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir("/"), 0);
    cs_status status = search_study_open(path, &study, &err);
    assert_int_equal(chdir(here), 0);
    if (status != CS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(search_study_n_trials(study), 40);
    assert_string_equal(search_study_info(study, "agent"), "random");
    assert_string_equal(search_study_info(study, "params"), "batch=1024");
    assert_string_equal(search_study_info(study, "seed"), "1");
    assert_string_equal(search_study_info(study, "psa_name"), "llama3-70b-h100");
    assert_null(search_study_info(study, "weather"));
    assert_true(search_study_problem(study)->hash == problem.hash);
    search_study_close(study);
}

static void test_budget_reached_and_raised(void **state)
{
    const char *whole = fx_path("whole.db"), *parts = fx_path("parts.db");

    (void)state;
    const fx_digest all = search_into("genetic", 150, whole, false);
    (void)search_into("genetic", 70, parts, false);
    (void)search_into("genetic", 70, parts, true); /* nothing left to do */
    assert_true(search_into("genetic", 150, parts, true).hash == all.hash);
}

/* Runs a search in a child process and kills it after `us` microseconds. */
static void run_and_kill(const char *name, uint64_t evaluations, const char *path, useconds_t us)
{
    const pid_t child = fork();
    int how;

    assert_true(child >= 0);
    if (child == 0) {
        search_options options = options_for(name, evaluations, path);
        search_outcome out;
        options.resume = true;
        _exit(search_run(&problem, &options, &out, NULL) == CS_OK ? 0 : 1);
    }
    (void)usleep(us);
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) || WEXITSTATUS(how) == 0);
}

static void test_kills_and_resumes_give_the_same_trials(void **state)
{
    char name[64];

    (void)state;
    for (size_t a = 0; agent_types[a] != NULL; a++) {
        const char *who = agent_types[a]->name;
        const uint64_t n = strcmp(who, "bayesian") == 0 ? 32 : 90;
        (void)snprintf(name, sizeof name, "%s-whole.db", who);
        const fx_digest whole = search_into(who, n, fx_path(name), false);
        (void)snprintf(name, sizeof name, "%s-killed.db", who);
        const char *path = fx_path(name);
        for (useconds_t us = 3000; us < 60000; us = us * 2 + 1777)
            run_and_kill(who, n, path, us);
        const fx_digest killed = search_into(who, n, path, true);
        assert_int_equal(killed.n, n);
        if (killed.hash != whole.hash)
            fail_msg("%s: other trials after kills", who);
    }
}

static cs_status try_run(search_options options, cs_error *err)
{
    search_outcome out;
    cs_status status = search_run(&problem, &options, &out, err);

    if (status == CS_OK)
        search_outcome_fini(&out);
    return status;
}

static void test_other_runs_are_refused(void **state)
{
    static const char *const other_batch[] = {"batch=8"};
    const char *path = fx_path("mine.db");
    cs_error err = {""};
    search_options options = options_for("genetic", 40, path);

    (void)state;
    (void)search_into("genetic", 40, path, false);
    const fx_digest before = fx_study_digest(path);
    assert_int_equal(try_run(options, &err), CS_EIO);
    assert_non_null(strstr(err.text, "the study exists"));

    options.resume = true;
    options.seed = 2;
    assert_int_equal(try_run(options, &err), CS_EINVAL);
    assert_non_null(strstr(err.text, "its seed is \"1\", not \"2\""));
    options.seed = 1;
    options.agent = fx_agent("local");
    assert_int_equal(try_run(options, &err), CS_EINVAL);
    assert_non_null(strstr(err.text, "its agent is \"genetic\", not \"local\""));
    options.agent = fx_agent("genetic");
    options.params = other_batch;
    options.n_params = 1;
    assert_int_equal(try_run(options, &err), CS_EINVAL);
    assert_non_null(strstr(err.text, "its params is"));
    options.n_params = 0;

    static const char *const fix[] = {"workload.tp=8"};
    search_problem other = fx_problem(FX_PSA, fix, 1, NULL);
    search_outcome out;
    assert_int_equal(search_run(&other, &options, &out, &err), CS_EINVAL);
    assert_non_null(strstr(err.text, "its fixes is \"\", not \"workload.tp=8\""));
    search_problem_fini(&other);
    assert_true(fx_study_digest(path).hash == before.hash);
}

static void test_second_process_is_refused(void **state)
{
    const char *path = fx_path("owned.db");
    search_study *study = NULL;
    cs_error err = {""};
    search_options options = options_for("random", 40, path);
    search_study_setup setup = {
        .agent = "random", .params = "batch=1024", .seed = 1, .evaluations = 40};

    (void)state;
    assert_int_equal(search_study_create(path, &problem, &setup, &study, &err), CS_OK);
    options.resume = true;
    assert_int_equal(try_run(options, &err), CS_EIO);
    assert_non_null(strstr(err.text, "another process is running this study"));
    search_study_close(study);
    assert_int_equal(try_run(options, &err), CS_OK);
}

static void overwrite(const char *path, long at, const char *bytes, size_t n)
{
    FILE *file = fopen(path, "r+b");

    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void test_damaged_and_foreign_files_are_named(void **state)
{
    const char *path = fx_path("damaged.db"), *text = fx_path("text.db");
    search_study *study = NULL;
    cs_error err = {""};
    FILE *file = fopen(text, "w");

    (void)state;
    assert_non_null(file);
    (void)fputs("this is no database at all, but it is long enough to look like a file\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(search_study_open(text, &study, &err), CS_EPARSE);
    assert_non_null(strstr(err.text, "text.db"));
    assert_int_equal(search_study_open(fx_path("none.db"), &study, &err), CS_ENOENT);

    (void)search_into("random", 40, path, false);
    overwrite(path, 0, "XXXXXXXXXXXXXXXX", 16);
    assert_int_equal(search_study_open(path, &study, &err), CS_EPARSE);
    search_options options = options_for("random", 50, path);
    options.resume = true;
    assert_int_equal(try_run(options, &err), CS_EPARSE);
}

static void test_a_run_that_cannot_start_leaves_nothing(void **state)
{
    static const char *const limit[] = {"limit=10"};
    const char *path = fx_path("refused.db");
    cs_error err = {""};
    search_options options = options_for("exhaustive", 40, path);

    (void)state;
    options.params = limit;
    options.n_params = 1;
    assert_int_equal(try_run(options, &err), CS_EINVAL);
    assert_int_not_equal(access(path, F_OK), 0);
    options.study_path = "/nowhere/at/all.db";
    options.n_params = 0;
    assert_int_equal(try_run(options, &err), CS_ENOENT);
}

/* ---- warm start ---- */

static void test_warm_start_takes_results_over(void **state)
{
    const char *first = fx_path("first.db"), *second = fx_path("second.db");
    search_options options = options_for("local", 60, second);
    search_outcome cold, warm;
    cs_error err = {""};

    (void)state;
    search_options before = options_for("genetic", 120, first);
    fx_run(&problem, &before, &cold);
    options.warm_start = first;
    fx_run(&problem, &options, &warm);
    /* 120 taken over and 60 evaluated; never worse than what it started from. */
    assert_int_equal(warm.unique, 180);
    assert_true(warm.best.objective[0] <= cold.best.objective[0]);
    const fx_digest once = fx_study_digest(second);
    assert_int_equal(once.n, 180);
    search_outcome_fini(&warm);
    options.resume = true; /* budget reached: the same again */
    fx_run(&problem, &options, &warm);
    assert_int_equal(warm.unique, 180);
    assert_true(fx_study_digest(second).hash == once.hash);
    search_outcome_fini(&warm);
    search_outcome_fini(&cold);

    static const char *const fix[] = {"workload.tp=8"};
    search_problem narrow = fx_problem(FX_PSA, fix, 1, NULL);
    options = options_for("local", 20, NULL);
    options.warm_start = first;
    fx_run(&narrow, &options, &warm); /* only trials with tp 8 are designs of this space */
    assert_true(warm.unique > 20 && warm.unique < 140);
    search_outcome_fini(&warm);
    search_problem_fini(&narrow);

    options.warm_start = fx_path("missing.csv");
    assert_int_equal(try_run(options, &err), CS_ENOENT);
}

static void test_warm_start_from_csv(void **state)
{
    static const char rows[] =
        "trial,status,violation,objective.latency,latency_s,workload.dp,workload.tp,workload.sp,"
        "workload.pp,workload.tp_sequence,workload.sharding,workload.micro_batch,"
        "workload.recompute,workload.schedule,placement\n"
        "1,feasible,0,0.001,0.001,64,8,1,1,true,weights,1,full,-,tp sp ep dp pp\n"
        "2,feasible,0,7,7,3,8,1,1,true,weights,1,full,-,tp sp ep dp pp\n" /* dp 3: no value */
        "3,infeasible,0.5,,,512,1,1,1,-,none,1,none,-,\"tp sp ep dp pp\"\n";
    const char *path = fx_path("trials.csv");
    FILE *file = fopen(path, "w");
    search_options options = options_for("random", 10, NULL);
    search_outcome out;
    cs_error err = {""};

    (void)state;
    assert_non_null(file);
    (void)fputs(rows, file);
    assert_int_equal(fclose(file), 0);
    options.warm_start = path;
    fx_run(&problem, &options, &out);
    assert_int_equal(out.unique, 12); /* two rows hold designs of this space */
    assert_true(out.best.objective[0] == 0.001 && out.best.id == 1); /* not evaluated again */
    search_outcome_fini(&out);

    file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("a,b\n1,2\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(try_run(options, &err), CS_EPARSE);
    assert_non_null(strstr(err.text, "objective.latency"));

    options.warm_start = "."; /* a folder opens, but cannot be read */
    assert_int_equal(try_run(options, &err), CS_EIO);
    assert_non_null(strstr(err.text, "directory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_study_opens_alone),
        cmocka_unit_test(test_budget_reached_and_raised),
        cmocka_unit_test(test_kills_and_resumes_give_the_same_trials),
        cmocka_unit_test(test_other_runs_are_refused),
        cmocka_unit_test(test_second_process_is_refused),
        cmocka_unit_test(test_damaged_and_foreign_files_are_named),
        cmocka_unit_test(test_a_run_that_cannot_start_leaves_nothing),
        cmocka_unit_test(test_warm_start_takes_results_over),
        cmocka_unit_test(test_warm_start_from_csv),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
