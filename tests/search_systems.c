/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The shipped COSMIC systems: every agent proposes valid designs only, and counts of valid designs
 * equal loops written out by hand.  CS_ROUNDS sets the proposals of an agent on a system (20,000
 * for an acceptance run). */
#include "tests/search_fixture.h"

static const char *const files[] = {"configs/psa/gpt3-13b-system1.yaml",
                                    "configs/psa/gpt3-175b-system2.yaml",
                                    "configs/psa/gpt3-175b-system3.yaml"};

static uint64_t rounds(uint64_t by_default)
{
    const char *text = getenv("CS_ROUNDS");

    return text != NULL ? strtoull(text, NULL, 10) : by_default;
}

/* One agent at work on one problem. */
typedef struct {
    const search_problem *problem;
    const agent_type *type;
    sim_scratch *scratch;
    agent *agent;
    double param[AGENT_MAX_PARAMS];
    int32_t *points;
    agent_score *scores;
    size_t n_vars;
} worker;

static void worker_open(worker *w, const search_problem *problem, const agent_type *type)
{
    cs_error err = {""};

    *w = (worker){.problem = problem, .type = type, .n_vars = psa_space_n_vars(problem->space)};
    assert_int_equal(agent_params(type, NULL, 0, w->param, &err), CS_OK);
    size_t batch = agent_batch(type, w->param);
    w->scratch = sim_scratch_create(problem->model);
    w->points = calloc(batch * w->n_vars, sizeof *w->points);
    w->scores = calloc(batch, sizeof *w->scores);
    assert_true(w->scratch != NULL && w->points != NULL && w->scores != NULL);
    const agent_setup setup = {.space = problem->space,
                               .seed = 5,
                               .param = w->param,
                               .n_objectives = 1,
                               .budget = rounds(100)};
    if (agent_create(type, &setup, &w->agent, &err) != CS_OK)
        fail_msg("%s: %s", type->name, err.text);
}

static void worker_close(worker *w)
{
    agent_destroy(w->agent);
    sim_scratch_destroy(w->scratch);
    free(w->points);
    free(w->scores);
}

/* Validity by the compiled space and, independently, by the constraints as written; the score is
 * that of the real design. */
static void judge(const worker *w, const int32_t *point, agent_score *score)
{
    sim_config config;
    search_trial trial = {.id = 1};
    cs_error err = {""};

    if (!psa_space_valid(w->problem->space, point))
        fail_msg("%s proposed an invalid design", w->type->name);
    psa_space_decode(w->problem->space, point, &config);
    if (psa_schema_check(w->problem->schema, &config, &err) != CS_OK)
        fail_msg("%s: %s", w->type->name, err.text);
    search_evaluate(w->problem, point, w->scratch, &trial);
    *score = (agent_score){.outcome = trial.status == SEARCH_FEASIBLE     ? AGENT_FEASIBLE
                                      : trial.status == SEARCH_INFEASIBLE ? AGENT_INFEASIBLE
                                                                          : AGENT_FAILED,
                           .objective = {trial.objective[0]},
                           .violation = trial.violation};
}

static void propose(const search_problem *problem, const agent_type *type)
{
    worker w;
    size_t n;
    cs_error err = {""};

    worker_open(&w, problem, type);
    for (uint64_t asked = 0; asked < rounds(100); asked += n) {
        if (agent_ask(w.agent, &n, w.points, &err) != CS_OK)
            fail_msg("%s: %s", type->name, err.text);
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++)
            judge(&w, w.points + i * w.n_vars, &w.scores[i]);
        if (agent_tell(w.agent, n, w.points, w.scores, &err) != CS_OK)
            fail_msg("%s: %s", type->name, err.text);
    }
    worker_close(&w);
}

/* All agents but those that propose invalid designs for comparison, and enumeration. */
static void test_proposals_on_the_systems_are_valid(void **state)
{
    (void)state;
    for (size_t f = 0; f < CS_COUNT(files); f++) {
        search_problem problem = fx_problem(files[f], NULL, 0, NULL);
        for (size_t i = 0; agent_types[i] != NULL; i++)
            if (!agent_types[i]->raw && strcmp(agent_types[i]->name, "exhaustive") != 0)
                propose(&problem, agent_types[i]);
        search_problem_fini(&problem);
    }
}

typedef struct {
    int64_t raw, valid;
} counts;

static void check_counts(const search_problem_options *options, counts expect)
{
    search_problem problem;
    cs_error err = {""};
    char a[40], b[40];

    assert_true(expect.raw >= 100000);
    if (search_problem_load(options, &problem, &err) != CS_OK)
        fail_msg("%s", err.text);
    if (psa_space_raw_points(problem.space) != (unsigned __int128)expect.raw ||
        psa_space_valid_points(problem.space) != (unsigned __int128)expect.valid)
        fail_msg("%s: %s of %s, expected %lld of %lld", options->psa_path,
                 cs_u128_text(psa_space_valid_points(problem.space), a),
                 cs_u128_text(psa_space_raw_points(problem.space), b), (long long)expect.valid,
                 (long long)expect.raw);
    search_problem_fini(&problem);
}

/* Choices of sharding, recompute, chunks and so on, which no rule touches, are factors. Llama-3-70B
 * on 512 GPUs: 64 heads, 8 of keys and values, ffn 28,672 = 2^12 * 7, 80 layers, sequence 8,192,
 * batch 1,024; tp_sequence and gpipe count where tp > 1 and pp > 1. */
static counts llama_on_h100(void)
{
    const int64_t others = 4 * 3 * 3; /* sharding, recompute, placement */
    counts c = {0, 0};

    for (int64_t i = 0; i < 10 * 7 * 7 * 5 * 5; i++) {
        int64_t dp = 1 << i % 10, tp = 1 << i / 10 % 7, sp = 1 << i / 70 % 7;
        int64_t pp = 1 << i / 490 % 5, mb = 1 << i / 2450;
        for (int64_t split = 0; split < 2; split++) {
            c.raw += others * 2;
            if (dp * tp * sp * pp != 512 || 64 % tp != 0 || (8 % tp != 0 && tp % 8 != 0) ||
                28672 % tp != 0 || 80 % pp != 0 || 1024 % (dp * mb) != 0 ||
                8192 % (sp * (split ? tp : 1)) != 0 || (split && tp == 1))
                continue;
            c.valid += others * (pp > 1 ? 2 : 1);
        }
    }
    return c;
}

/* GPT3-13B on the 4 x 4 x 4 x 8 NPUs of System 1: 40 heads, ffn 20,480 = 2^12 * 5, 40 layers,
 * sequence 2,048, batch 2,048; every algorithm runs on every dimension (sizes are powers of two).
 */
static counts gpt3_13b_on_system1(void)
{
    /* sharding, recompute, chunks, multi_dim, placement, algorithms */
    const int64_t others = 4 * 3 * 4 * 2 * 2 * 256;
    counts c = {0, 0};

    for (int64_t i = 0; i < 10 * 7 * 10 * 3 * 5; i++) {
        int64_t dp = 1 << i % 10, tp = 1 << i / 10 % 7, sp = 1 << i / 70 % 10;
        int64_t pp = 1 << i / 700 % 3, mb = 1 << i / 2100;
        c.raw += others * 2;
        if (dp * tp * sp * pp != 512 || 40 % tp != 0 || 20480 % tp != 0 || 40 % pp != 0 ||
            2048 % (dp * mb) != 0 || 2048 % sp != 0)
            continue;
        c.valid += others * (pp > 1 ? 2 : 1);
    }
    return c;
}

/* Networks of 2,048 NPUs with bandwidths of 50 to 500 GB/s for the baseline's split: a switch on
 * dimension 1 has no price. */
static counts networks_of_system3(void)
{
    const int64_t others = 10 * 10 * 10 * 10;
    counts c = {0, 0};

    for (int64_t i = 0; i < 81 * 81; i++) {
        int64_t npus =
            (int64_t)(4 << i % 3) * (4 << i / 3 % 3) * (4 << i / 9 % 3) * (4 << i / 27 % 3);
        int64_t first = i / 81 % 3; /* ring, switch, fully connected */
        c.raw += others;
        if (npus == 2048 && first != 1)
            c.valid += others;
    }
    return c;
}

static void test_counts_equal_loops(void **state)
{
    static const char *const split[] = {"workload", "collective"}, *const network[] = {"network"};

    (void)state;
    check_counts(&(search_problem_options){.psa_path = "configs/psa/llama3-70b-h100.yaml"},
                 llama_on_h100());
    check_counts(&(search_problem_options){.psa_path = files[0], .stacks = split, .n_stacks = 2},
                 gpt3_13b_on_system1());
    check_counts(&(search_problem_options){.psa_path = files[2], .stacks = network, .n_stacks = 1},
                 networks_of_system3());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proposals_on_the_systems_are_valid),
        cmocka_unit_test(test_counts_equal_loops),
    };
    return cmocka_run_group_tests(tests, fx_open_folder, fx_close_folder);
}
