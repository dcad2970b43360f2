/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The ask/tell environment: a conversation, wrong requests, an agent told from outside. */
#include "tests/search_fixture.h"

typedef struct {
    const char *const *request;
    size_t n, next;
    char *answer[16];
} talk;

static bool next_line(void *context, const char **line, size_t *length)
{
    talk *t = context;

    if (t->next == t->n)
        return false;
    *line = t->request[t->next++];
    *length = strlen(*line);
    return true;
}

static bool keep_answer(void *context, const char *line, size_t length)
{
    talk *t = context;

    t->answer[t->next - 1] = strndup(line, length);
    return true;
}

static void end_talk(talk *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->answer[i]);
}

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

static search_outcome converse(talk *t, const search_serve_options *options)
{
    const search_channel channel = {.read = next_line, .write = keep_answer, .context = t};
    search_outcome out;
    cs_error err = {""};

    if (search_serve(&problem, options, &channel, &out, &err) != CS_OK)
        fail_msg("%s", err.text);
    return out;
}

static cs_json *parsed(const char *text)
{
    cs_json *value = NULL;

    assert_non_null(text);
    assert_int_equal(cs_json_parse(text, strlen(text), &value, NULL), CS_OK);
    return value;
}

static bool answered_ok(const cs_json *answer)
{
    bool ok = false;

    assert_true(cs_json_get_bool(cs_json_get(answer, "ok"), &ok));
    return ok;
}

#define DESIGN                                                                                     \
    "{\"workload.dp\":\"64\",\"workload.tp\":8,\"workload.sp\":\"1\",\"workload.pp\":\"1\","       \
    "\"workload.tp_sequence\":true,\"workload.sharding\":\"weights\","                             \
    "\"workload.micro_batch\":\"1\",\"workload.recompute\":\"full\","                              \
    "\"placement\":\"tp sp ep dp pp\"}"

static void test_a_conversation(void **state)
{
    static const char *const requests[] = {
        "{\"cmd\":\"describe\"}",
        "{\"cmd\":\"sample\",\"n\":3}",
        "{\"cmd\":\"evaluate\",\"designs\":[" DESIGN "," DESIGN ",{\"workload.dp\":\"64\"}]}",
        "{\"cmd\":\"best\"}",
        "{\"cmd\":\"quit\"}",
        "{\"cmd\":\"best\"}",
    };
    talk t = {.request = requests, .n = CS_COUNT(requests)};
    const search_serve_options options = {.seed = 1, .jobs = 2};
    search_outcome out = converse(&t, &options);
    const char *text;
    int64_t number;
    bool truth;

    (void)state;
    assert_int_equal(t.next, 5); /* nothing is read after quit */
    cs_json *describe = parsed(t.answer[0]);
    assert_true(answered_ok(describe));
    assert_true(cs_json_get_string(cs_json_get(describe, "valid_points"), &text));
    char count[40];
    assert_string_equal(text, cs_u128_text(psa_space_valid_points(problem.space), count));
    assert_int_equal(cs_json_size(cs_json_get(describe, "knobs")),
                     psa_space_n_knobs(problem.space));
    cs_json *sample = parsed(t.answer[1]);
    assert_int_equal(cs_json_size(cs_json_get(sample, "designs")), 3);

    /* A design, the same again (not evaluated twice), and one that breaks a constraint. */
    cs_json *evaluated = parsed(t.answer[2]);
    const cs_json *trials = cs_json_get(evaluated, "trials");
    assert_int_equal(cs_json_size(trials), 3);
    assert_true(cs_json_get_int(cs_json_get(cs_json_at(trials, 0), "trial"), &number));
    assert_int_equal(number, 1);
    assert_true(cs_json_get_bool(cs_json_get(cs_json_at(trials, 1), "cached"), &truth) && truth);
    assert_true(cs_json_get_string(cs_json_get(cs_json_at(trials, 2), "status"), &text));
    assert_string_equal(text, "invalid");
    assert_int_equal(out.unique, 2);
    assert_int_equal(out.cache_hits, 1);
    cs_json *best = parsed(t.answer[3]);
    assert_true(cs_json_get_int(cs_json_get(cs_json_get(best, "best"), "trial"), &number));
    assert_int_equal(number, 1);
    cs_json_destroy(describe);
    cs_json_destroy(sample);
    cs_json_destroy(evaluated);
    cs_json_destroy(best);
    search_outcome_fini(&out);
    end_talk(&t);
}

/* A sampled design, sent back as it came, is the same valid design. */
static void test_samples_can_be_evaluated(void **state)
{
    static const char *const ask[] = {"{\"cmd\":\"sample\",\"n\":5}"};
    const search_serve_options options = {.seed = 9, .jobs = 1};
    talk t = {.request = ask, .n = 1};
    search_outcome out = converse(&t, &options);

    (void)state;
    search_outcome_fini(&out);
    char *at = strstr(t.answer[0], "\"designs\"");
    assert_non_null(at);
    char *request = malloc(strlen(at) + 32);
    assert_non_null(request);
    (void)sprintf(request, "{\"cmd\":\"evaluate\",%s", at);
    talk again = {.request = (const char *const *)&request, .n = 1};
    out = converse(&again, &options);
    assert_int_equal(out.unique + out.cache_hits, 5);
    assert_null(strstr(again.answer[0], "invalid"));
    free(request);
    search_outcome_fini(&out);
    end_talk(&t);
    end_talk(&again);
}

/* Encoded variables at any value: what breaks a constraint is repaired, never invalid. */
static void test_points_are_repaired(void **state)
{
    static const char *const requests[] = {
        "{\"cmd\":\"evaluate\",\"designs\":[{\"point\":[0,0,0,0,0,0,0]},"
        "{\"point\":[164,1,3,4,2,1,2]},{\"point\":[80,1,0,4,1,1,1]}]}"};
    const search_serve_options options = {.seed = 2, .jobs = 1};
    talk t = {.request = requests, .n = 1};
    search_outcome out = converse(&t, &options);

    (void)state;
    assert_int_equal(psa_space_n_vars(problem.space), 7);
    assert_int_equal(out.unique, 3);
    assert_null(strstr(t.answer[0], "invalid"));
    search_outcome_fini(&out);
    end_talk(&t);
}

static void test_wrong_requests_change_nothing(void **state)
{
    static const struct {
        const char *request, *message;
    } cases[] = {
        {"", ""},
        {"{\"cmd\":", ""},
        {"[1,2]", "an object with a \\\"cmd\\\""},
        {"{\"cmd\":\"evalute\"}", "did you mean \\\"evaluate\\\"?"},
        {"{\"cmd\":\"evaluate\",\"designs\":[]}", "1 to 65536 designs"},
        {"{\"cmd\":\"evaluate\",\"designs\":[{\"workload.dpp\":1}]}", "workload.dp"},
        {"{\"cmd\":\"evaluate\",\"designs\":[{\"workload.dp\":3}]}", "no value \\\"3\\\""},
        {"{\"cmd\":\"evaluate\",\"designs\":[{\"workload.dp\":[]}]}", "expected a string"},
        {"{\"cmd\":\"evaluate\",\"designs\":[{\"index\":[1]}]}", "one per knob"},
        {"{\"cmd\":\"evaluate\",\"designs\":[7]}", ""},
        {"{\"cmd\":\"evaluate\",\"designs\":[{\"point\":[0]}]}", "one per variable"},
        {"{\"cmd\":\"evaluate\",\"designs\":[{\"point\":[0,0,0,0,0,0,99]}]}", "must lie in"},
        {"{\"cmd\":\"sample\",\"n\":0}", "whole number from 1"},
        {"{\"cmd\":\"ask\"}", "no agent was chosen"},
        {"{\"cmd\":\"tell\"}", "nothing was asked"},
    };
    const char *request[CS_COUNT(cases)];
    talk t = {.request = request, .n = CS_COUNT(cases)};
    const search_serve_options options = {.seed = 1, .jobs = 1};

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++)
        request[i] = cases[i].request;
    search_outcome out = converse(&t, &options);
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        if (strstr(cases[i].request, "[7]") != NULL)
            continue; /* a design without names: every knob at its first value */
        if (strstr(t.answer[i], "\"ok\":false") == NULL &&
            strstr(t.answer[i], "\"ok\": false") == NULL)
            fail_msg("%s was answered %s", cases[i].request, t.answer[i]);
        if (strstr(t.answer[i], cases[i].message) == NULL)
            fail_msg("%s is not in %s", cases[i].message, t.answer[i]);
    }
    assert_true(out.unique <= 1);
    search_outcome_fini(&out);
    end_talk(&t);
}

static void test_asking_an_agent_and_telling_it(void **state)
{
    static const char *const params[] = {"batch=2"};
    static const char *const requests[] = {
        "{\"cmd\":\"ask\"}",
        "{\"cmd\":\"ask\"}", /* refused: the first is open */
        "{\"cmd\":\"tell\",\"results\":[{\"objectives\":[1.5]},{\"violation\":0.5}]}",
        "{\"cmd\":\"ask\"}",
        "{\"cmd\":\"tell\",\"results\":[{\"objectives\":[]},{\"violation\":0.5}]}",
        "{\"cmd\":\"tell\",\"results\":[{\"objectives\":[1]},{\"violation\":\"0.5\",\"objectives\":"
        "[1]}]}",
        "{\"cmd\":\"tell\",\"results\":[{\"objectives\":[1]},{\"violation\":-1,\"objectives\":[1]}]"
        "}",
        "{\"cmd\":\"tell\"}", /* evaluated here */
    };
    static const bool ok[] = {true, false, true, true, false, false, false, true};
    const search_serve_options options = {
        .agent = fx_agent("random"), .params = params, .n_params = 1, .seed = 4, .jobs = 1};
    talk t = {.request = requests, .n = CS_COUNT(requests)};
    search_outcome out = converse(&t, &options);

    (void)state;
    for (size_t i = 0; i < t.n; i++) {
        cs_json *answer = parsed(t.answer[i]);
        if (answered_ok(answer) != ok[i])
            fail_msg("%s was answered %s", requests[i], t.answer[i]);
        cs_json_destroy(answer);
    }
    assert_int_equal(out.unique, 2);
    search_outcome_fini(&out);
    end_talk(&t);
}

static void test_budget_and_study(void **state)
{
    static const char *const requests[] = {
        "{\"cmd\":\"evaluate\",\"designs\":[" DESIGN ",{\"index\":[0,0,0,0,0,0,0,0,0,0]}]}",
        "{\"cmd\":\"best\"}",
    };
    const char *path = fx_path("served.db");
    const search_serve_options options = {
        .seed = 1, .jobs = 1, .evaluations = 1, .study_path = path};
    talk t = {.request = requests, .n = CS_COUNT(requests)};
    search_outcome out = converse(&t, &options);

    (void)state;
    assert_int_equal(out.unique, 1);
    assert_int_equal(out.stop, SEARCH_BUDGET);
    assert_int_equal(t.next, 1);
    assert_non_null(strstr(t.answer[0], "budget"));
    assert_int_equal(fx_study_digest(path).n, 1);
    search_outcome_fini(&out);
    end_talk(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_conversation),
        cmocka_unit_test(test_samples_can_be_evaluated),
        cmocka_unit_test(test_points_are_repaired),
        cmocka_unit_test(test_wrong_requests_change_nothing),
        cmocka_unit_test(test_asking_an_agent_and_telling_it),
        cmocka_unit_test(test_budget_and_study),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
