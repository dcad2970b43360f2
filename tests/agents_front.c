/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * nsga2 against the true front of a network of GPT3-13B on System 1: latency against latency times
 * cost, 108,000 designs, all simulated.  The front has 66 of them; as many uniform draws as nsga2
 * makes evaluations reach 0.986 of its hypervolume. */
#include "search/search.h"
#include "tests/agents_area.h"
#include "tests/test.h"

#include <math.h>

typedef struct {
    pair *list;
    size_t n, capacity, trials;
} designs;

static void keep(void *context, const search_trial *trial)
{
    designs *d = context;

    d->trials++;
    if (trial->status != SEARCH_FEASIBLE)
        return;
    assert_true(d->n < d->capacity);
    d->list[d->n++] = (pair){trial->objective[0], trial->objective[1]};
}

static designs run(const search_problem *problem, const char *agent_, uint64_t evaluations,
                   uint64_t seed)
{
    designs d = {.capacity = (size_t)psa_space_valid_points(problem->space)};
    search_options options = {
        .evaluations = evaluations, .seed = seed, .on_trial = keep, .progress_context = &d};
    search_outcome out = {0};
    cs_error err = {""};

    d.list = calloc(d.capacity, sizeof *d.list);
    assert_non_null(d.list);
    assert_int_equal(agent_find(agent_, &options.agent, &err), CS_OK);
    if (search_run(problem, &options, &out, &err) != CS_OK)
        fail_msg("%s", err.text);
    search_outcome_fini(&out);
    return d;
}

/* A tenth beyond the worst of each objective on the front, which is where the other is best. */
static pair beyond(const designs *all, pair *ideal)
{
    pair worst = {INFINITY, INFINITY};

    *ideal = worst;
    for (size_t i = 0; i < all->n; i++) {
        const pair p = all->list[i];
        if (p.a < ideal->a || (p.a == ideal->a && p.b < worst.b))
            worst.b = p.b;
        if (p.b < ideal->b || (p.b == ideal->b && p.a < worst.a))
            worst.a = p.a;
        ideal->a = fmin(ideal->a, p.a);
        ideal->b = fmin(ideal->b, p.b);
    }
    return (pair){worst.a + 0.1 * (worst.a - ideal->a), worst.b + 0.1 * (worst.b - ideal->b)};
}

static void test_nsga2_comes_within_1_percent_of_the_true_front(void **state)
{
    static const char *const stacks[] = {"network"};
    static const char *const fixes[] = {"network.topology[1]=fully_connected",
                                        "network.bandwidth[4]=50 GB/s"};
    const search_problem_options options = {.psa_path = "configs/psa/gpt3-13b-system1.yaml",
                                            .stacks = stacks,
                                            .n_stacks = CS_COUNT(stacks),
                                            .fixes = fixes,
                                            .n_fixes = CS_COUNT(fixes),
                                            .objectives = "latency,perf_per_cost"};
    search_problem problem;
    cs_error err = {""};
    pair ideal;

    (void)state;
    if (search_problem_load(&options, &problem, &err) != CS_OK)
        fail_msg("%s", err.text);
    assert_int_equal((uint64_t)psa_space_valid_points(problem.space), 108000);
    designs all = run(&problem, "exhaustive", UINT64_MAX / 400, 1);
    assert_int_equal(all.trials, 108000);
    const pair reference = beyond(&all, &ideal);
    assert_true(reference.a > ideal.a && reference.b > ideal.b); /* the two are at odds */
    const double whole = hypervolume(all.list, all.n, reference);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        designs seen = run(&problem, "nsga2", 10000, seed);
        assert_int_equal(seen.trials, 10000);
        const double share = hypervolume(seen.list, seen.n, reference) / whole;
        print_message("seed %d: %.5f of the hypervolume\n", (int)seed, share);
        if (!(share >= 0.99) || share > 1.0)
            fail_msg("seed %d: %.5f of the hypervolume", (int)seed, share);
        free(seen.list);
    }
    free(all.list);
    search_problem_fini(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nsga2_comes_within_1_percent_of_the_true_front),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
