/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Every agent on a constrained space with a known optimum: valid proposals only, the same digits
 * for the same seed and after a snapshot, and the optimum found by those that search. */
#include "tests/agents_area.h"
#include "tests/agents_drive.h"

/* dp * tp * sp * pp = 64 with tp <= 16 is one tuple of C(9,3) = 84 less 10 points with tp >= 32;
 * with sharding, micro-batch, chunks and two algorithms about 80,000 points. */
static const char space_psa[] =
    "psa: 1\nname: toy\nknobs:\n"
    "  workload.dp: {powers_of_two: [1, 64]}\n"
    "  workload.tp: {powers_of_two: [1, 16]}\n"
    "  workload.sp: {powers_of_two: [1, 64]}\n"
    "  workload.pp: {powers_of_two: [1, 64]}\n"
    "  workload.sharding: {values: [none, optimizer, weights]}\n"
    "  workload.micro_batch: {powers_of_two: [1, 16]}\n"
    "  workload.schedule: {values: [1f1b, gpipe], when: \"workload.pp > 1\"}\n"
    "  collective.chunks: {values: [2, 4, 8, 16]}\n"
    "  collective.algorithm: {values: [ring, direct, halving_doubling], per: dimension}\n"
    "constraints:\n"
    "  - workload.dp * workload.tp * workload.sp * workload.pp == 64\n"
    "  - workload.micro_batch * workload.dp <= 256\n"
    "objectives:\n  latency: {minimize: latency}\n";

static psa_schema *schema;
static psa_space *space;

static int open_all(void **state)
{
    (void)state;
    schema = fx_load(&fx_plain, space_psa, FX_SYSTEM);
    space = fx_space(schema);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    psa_space_destroy(space);
    psa_schema_destroy(schema);
    return 0;
}

/* Time of a made-up machine: compute, a tp term with its own best degree, a pipeline bubble,
 * exposed gradients, and algorithms that suit different degrees; the weights must fit. */
static agent_score machine(const psa_space *s, const int32_t *point)
{
    fx_config c;
    agent_score score = {.outcome = AGENT_FEASIBLE};

    psa_space_decode(s, point, &c);
    const double tp = log2((double)c.tp), sp = log2((double)c.sp);
    const double dp = log2((double)c.dp), mb = log2((double)c.micro_batch);
    double time = 10.0 + 0.3 * (tp - 3) * (tp - 3) + 0.2 * (sp - 1) * (sp - 1);
    time += c.pp > 1 ? (double)c.pp / (8.0 + 16.0 / (double)c.micro_batch) : 0.0;
    time += c.schedule == 1 ? 0.4 : 0.0;
    time += 0.4 * fabs(mb - 1.0) + (c.sharding == 2 ? 0.2 * dp : 0.05 * dp);
    time += 0.3 * fabs((double)c.algorithm[0] - (tp > 2 ? 2 : 0));
    time += 0.2 * fabs((double)c.algorithm[1] - (dp > 3 ? 1 : 2)) + 0.02 * (double)c.chunks;
    double memory = 64.0 / (double)(c.tp * c.pp) / (c.sharding == 2 ? (double)c.dp : 1.0) +
                    (double)c.micro_batch * 2.0;
    score.objective[0] = time;
    score.objective[1] = memory;
    if (memory > 20.0) {
        score.outcome = AGENT_INFEASIBLE;
        score.violation = log(memory / 20.0);
    }
    return score;
}

static double true_optimum(void)
{
    const uint64_t n = (uint64_t)psa_space_valid_points(space);
    int32_t point[16];
    double best = INFINITY;

    for (uint64_t i = 0; i < n; i++) {
        psa_space_unrank(space, i, point);
        agent_score score = machine(space, point);
        if (score.outcome == AGENT_FEASIBLE && score.objective[0] < best)
            best = score.objective[0];
    }
    return best;
}

/* Evaluations that reach the optimum on all of five seeds; agents left out only sample. */
static void test_searching_agents_find_the_optimum(void **state)
{
    static const struct {
        const char *name;
        uint64_t evaluations;
    } cases[] = {
        {"local", 2500},   {"genetic", 4000}, {"annealing", 6000}, {"ant_colony", 4000},
        {"bayesian", 220}, {"auto", 3000},    {"tpe", 1200},
    };
    const double optimum = true_optimum();

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        const agent_type *type = NULL;
        assert_int_equal(agent_find(cases[i].name, &type, NULL), CS_OK);
        for (uint64_t seed = 1; seed <= 3; seed++) {
            drive d = {.type = type,
                       .space = space,
                       .landscape = machine,
                       .budget = cases[i].evaluations,
                       .seed = seed,
                       .precheck = true};
            drive_run(&d);
            if (!d.has_best || d.best.objective[0] > optimum * 1.01)
                fail_msg("%s, seed %llu: %g after %llu evaluations, optimum %g", type->name,
                         (unsigned long long)seed, d.has_best ? d.best.objective[0] : INFINITY,
                         (unsigned long long)d.unique, optimum);
            drive_fini(&d);
        }
    }
}

static uint64_t digest_of(const agent_type *type, uint64_t budget, uint64_t seed,
                          uint64_t reload_at)
{
    drive d = {.type = type,
               .space = space,
               .landscape = machine,
               .budget = budget,
               .seed = seed,
               .n_objectives = 2,
               .reload_at = reload_at};

    drive_run(&d);
    drive_fini(&d);
    return d.digest;
}

static void test_same_seed_same_digits_also_through_a_snapshot(void **state)
{
    (void)state;
    for (size_t i = 0; agent_types[i] != NULL; i++) {
        const agent_type *type = agent_types[i];
        const uint64_t budget = strcmp(type->name, "bayesian") == 0 ? 60 : 3000;
        const uint64_t once = digest_of(type, budget, 5, 0);
        assert_true(once == digest_of(type, budget, 5, 0));
        for (uint64_t at = budget / 7; at < budget; at += budget / 3)
            if (once != digest_of(type, budget, 5, at))
                fail_msg("%s goes on differently from its snapshot after %llu evaluations",
                         type->name, (unsigned long long)at);
        if (strcmp(type->name, "exhaustive") != 0)
            assert_true(once != digest_of(type, budget, 6, 0));
    }
}

/* 20,000 proposals of each agent, none invalid (drive_take fails on one). */
static void test_proposals_are_valid(void **state)
{
    (void)state;
    for (size_t i = 0; agent_types[i] != NULL; i++) {
        const agent_type *type = agent_types[i];
        const bool slow = strcmp(type->name, "bayesian") == 0 || strcmp(type->name, "tpe") == 0;
        drive d = {.type = type,
                   .space = space,
                   .landscape = machine,
                   .budget = slow ? 80 : 20000,
                   .seed = 2};
        drive_run(&d);
        if (d.unique != d.budget)
            fail_msg("%s: %llu unique of %llu proposals", type->name, (unsigned long long)d.unique,
                     (unsigned long long)d.asked);
        drive_fini(&d);
    }
}

/* Two points (1, 2) and (2, 1) below (3, 3): 2 * 1 + 1 * 1 = 3. */
static void test_hypervolume_of_two_points(void **state)
{
    pair list[] = {{2, 1}, {1, 2}, {2.5, 2.5}};

    (void)state;
    assert_true(hypervolume(list, 3, (pair){3, 3}) == 3.0);
}

static void test_nsga2_covers_the_front(void **state)
{
    const uint64_t n = (uint64_t)psa_space_valid_points(space);
    pair *all = calloc(n, sizeof *all), *seen = calloc(n, sizeof *seen);
    const agent_type *type = NULL;
    size_t n_all = 0, n_seen = 0;
    int32_t point[16];

    (void)state;
    assert_true(all != NULL && seen != NULL);
    assert_int_equal(agent_find("nsga2", &type, NULL), CS_OK);
    drive d = {.type = type,
               .space = space,
               .landscape = machine,
               .budget = 5000,
               .seed = 4,
               .n_objectives = 2};
    drive_run(&d);
    for (uint64_t i = 0; i < n; i++) {
        psa_space_unrank(space, i, point);
        agent_score score = machine(space, point);
        if (score.outcome != AGENT_FEASIBLE)
            continue;
        all[n_all++] = (pair){score.objective[0], score.objective[1]};
        if (d.known[i].outcome == AGENT_FEASIBLE)
            seen[n_seen++] = all[n_all - 1];
    }
    const pair reference = {40.0, 21.0};
    const double whole = hypervolume(all, n_all, reference);
    const double part = hypervolume(seen, n_seen, reference);
    if (part < 0.99 * whole)
        fail_msg("nsga2 covers %g of %g", part, whole);
    drive_fini(&d);
    free(all);
    free(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_searching_agents_find_the_optimum),
        cmocka_unit_test(test_same_seed_same_digits_also_through_a_snapshot),
        cmocka_unit_test(test_proposals_are_valid),
        cmocka_unit_test(test_hypervolume_of_two_points),
        cmocka_unit_test(test_nsga2_covers_the_front),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
