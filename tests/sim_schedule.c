/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Pipelines of equal stages with free communication against the closed forms of their papers.
 * Forward F, input gradient B, weight gradient W; 1 s each, so 1e12 ps. */
#include "sim/engine.h"
#include "tests/test.h"

#define SECOND INT64_C(1000000000000)

/* A program of one kind of block: forward F, backward B then W. */
typedef struct {
    wl_item forward[1], backward[2];
    wl_block block[1];
    wl_segment segment;
    wl_stage stage[16];
    wl_program program;
    wl_config config;
} toy;

static const char *const names[] = {"forward", "input_gradient", "weight_gradient"};

static wl_item kernel(int16_t op, double seconds, int16_t dep)
{
    return (wl_item){
        .kind = WL_COMPUTE, .n_deps = 1, .dep = {dep}, .op = op, .flops = seconds, .axis = WL_DP};
}

static void toy_make(toy *t, size_t p, size_t v, int64_t m, wl_schedule schedule)
{
    memset(t, 0, sizeof *t);
    t->forward[0] = kernel(0, 1.0 / (double)v, WL_DEP_INPUT);
    t->backward[0] = kernel(1, 1.0 / (double)v, WL_DEP_INPUT);
    t->backward[1] = kernel(2, 1.0 / (double)v, WL_DEP_INPUT);
    t->backward[1].weight_gradient = true;
    t->block[0].name = "layer";
    t->block[0].forward = (wl_pass){t->forward, 1, 0};
    t->block[0].backward = (wl_pass){t->backward, 2, 0};
    t->block[0].backward_last = t->block[0].backward;
    t->segment = (wl_segment){0, 1};
    for (size_t s = 0; s < p; s++) {
        t->stage[s].n_chunks = v;
        for (size_t c = 0; c < v; c++) {
            t->stage[s].segment[c] = &t->segment;
            t->stage[s].n_segments[c] = 1;
        }
        t->stage[s].update.output = -1;
    }
    t->program = (wl_program){.block = t->block,
                              .n_blocks = 1,
                              .stage = t->stage,
                              .n_stages = p,
                              .op_names = names,
                              .micro_batches = m};
    t->config = (wl_config){.dp = 1,
                            .tp = 1,
                            .sp = 1,
                            .ep = 1,
                            .pp = (int64_t)p,
                            .schedule = (int32_t)schedule,
                            .prefetch = 1,
                            .reshard = 1};
}

/* Counted along the actions: from a forward to the action that completes its gradients. */
static double most_held(const sim_schedule *schedule, size_t stage)
{
    const sim_action *action = schedule->action + stage * schedule->n_actions;
    bool split = false;
    int held = 0, most = 0;

    for (size_t i = 0; i < schedule->n_actions; i++)
        split = split || action[i].kind == SIM_WEIGHT;
    for (size_t i = 0; i < schedule->n_actions; i++) {
        held += action[i].kind == SIM_FORWARD;
        most = held > most ? held : most;
        held -= action[i].kind == (split ? SIM_WEIGHT : SIM_BACKWARD);
    }
    return most;
}

static void toy_run(toy *t, bool unrolled, sim_engine_result *out, double *in_flight)
{
    cs_error err = {""};
    sim_engine *engine = sim__engine_create();
    sim_route_cache *routes = sim_route_cache_create(1 << 20);
    sim_schedule schedule = {0};
    sim_network network = {.n_dims = 1, .multi_dim = SIM_HIERARCHICAL, .chunks = 1};
    sim_mesh mesh = {{1, 1, 1, 1, (int64_t)t->program.n_stages}};
    sim_device device = {.peak = 1, .memory_bandwidth = 1, .efficiency = 1};
    int32_t order = 0;

    network.dim[0] = (sim_dim){.topology = SIM_SWITCH,
                               .n = (int64_t)t->program.n_stages,
                               .bandwidth_bytes_per_s = 1e9,
                               .oversubscription = 1};
    assert_int_equal(sim_order_parse("tp sp ep dp pp", &order, &err), CS_OK);
    sim_pipeline pipeline = {t->program.n_stages, t->program.stage[0].n_chunks,
                             t->program.micro_batches, false, false};
    assert_int_equal(
        sim__schedule_make((wl_schedule)t->config.schedule, &pipeline, &schedule, &err), CS_OK);
    sim_job job = {.program = &t->program,
                   .config = &t->config,
                   .network = &network,
                   .mesh = &mesh,
                   .order = order,
                   .device = &device,
                   .routes = routes,
                   .schedule = &schedule,
                   .unrolled = unrolled};
    if (sim__engine_run(engine, &job, out, &err) != CS_OK)
        fail_msg("%s", err.text);
    *in_flight = most_held(&schedule, 0);
    for (size_t s = 0; s < pipeline.n_stages; s++)
        assert_close(most_held(&schedule, s),
                     sim__in_flight((wl_schedule)t->config.schedule, &pipeline, s), 0);
    sim__schedule_fini(&schedule);
    sim_route_cache_destroy(routes);
    sim__engine_destroy(engine);
}

/* Iteration = work + bubble; work is m(F+B+W) = 3m s on every stage. */
static void check_bubble(wl_schedule schedule, size_t p, size_t v, int64_t m, sim_time bubble)
{
    static toy t;
    sim_engine_result run, oracle;
    double in_flight;

    toy_make(&t, p, v, m, schedule);
    toy_run(&t, false, &run, &in_flight);
    toy_run(&t, true, &oracle, &in_flight);
    assert_int_equal(run.latency, oracle.latency);
    if (run.latency - 3 * m * SECOND != bubble)
        fail_msg("schedule %d p %zu v %zu m %lld: bubble %.6f s, expected %.6f s", schedule, p, v,
                 (long long)m, SIM_S(run.latency - 3 * m * SECOND), SIM_S(bubble));
    assert_int_equal(run.account.compute + run.bubble + run.boundary + run.tail, run.latency);
}

/* GPipe and 1F1B: (p-1)(F+B+W).  Interleaved: the same over v.  ZB-H1: (p-1)(F+B-W). */
static void test_bubbles_match_closed_forms(void **state)
{
    static const size_t stages[] = {2, 4, 8, 16};
    static const int64_t rounds[] = {1, 2, 4, 8};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++) {
            size_t p = stages[i];
            int64_t m = rounds[j] * (int64_t)p;
            sim_time idle = (sim_time)(p - 1) * SECOND;

            check_bubble(WL_GPIPE, p, 1, m, 3 * idle);
            check_bubble(WL_1F1B, p, 1, m, 3 * idle);
            check_bubble(WL_INTERLEAVED, p, 2, m, 3 * idle / 2);
            check_bubble(WL_INTERLEAVED, p, 4, m, 3 * idle / 4);
            check_bubble(WL_ZB_H1, p, 1, m, idle);
            /* ZB-H2 never waits between its actions; the last stage starts (p-1)F late. */
            if (m >= 2 * (int64_t)p - 1)
                check_bubble(WL_ZB_H2, p, 1, m, idle);
        }
}

/* p = 8, m = 32: activations held on stage 0, in stage-chunks: 11.5 micro-batches of 2 chunks, 9.75
 * of 4. */
static void test_activations_in_flight(void **state)
{
    static const struct {
        wl_schedule schedule;
        size_t v;
        double expect;
    } cases[] = {{WL_GPIPE, 1, 32},
                 {WL_1F1B, 1, 8},
                 {WL_INTERLEAVED, 2, 23},
                 {WL_INTERLEAVED, 4, 39},
                 {WL_ZB_H1, 1, 8}};
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        static toy t;
        sim_engine_result run;
        double in_flight = 0;

        toy_make(&t, 8, cases[i].v, 32, cases[i].schedule);
        toy_run(&t, false, &run, &in_flight);
        assert_close(in_flight, cases[i].expect, 0);
    }
}

static void test_interleaving_needs_whole_rounds(void **state)
{
    sim_schedule schedule = {0};
    cs_error err;
    (void)state;
    const sim_pipeline pipeline = {4, 2, 6, false, false};
    assert_int_equal(sim__schedule_make(WL_INTERLEAVED, &pipeline, &schedule, &err), CS_EINVAL);
    assert_string_equal(err.text,
                        "interleaved schedule: 6 micro-batches % 4 stages = 2, must be 0");
    sim__schedule_fini(&schedule);
}

/* 100,000 layers of 1 s: 1e5 (F) + 2e5 (B, W) s = 3e17 ps, far below 2^63; and a time that does not
 * fit is an error, not a wrap. */
static void test_long_iterations_do_not_wrap(void **state)
{
    static toy t;
    sim_engine_result run;
    double in_flight;
    sim_time time;
    cs_error err;
    (void)state;
    toy_make(&t, 1, 1, 1, WL_1F1B);
    t.segment.count = 50000;
    toy_run(&t, false, &run, &in_flight);
    assert_int_equal(run.latency, 150000 * SECOND);
    assert_int_equal(sim_time_from_s(1e9, &time, &err), CS_EINVAL);
    assert_int_equal(sim_time_from_s(NAN, &time, &err), CS_EINVAL);
    assert_int_equal(sim_time_from_s(-1, &time, &err), CS_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bubbles_match_closed_forms),
        cmocka_unit_test(test_activations_in_flight),
        cmocka_unit_test(test_interleaving_needs_whole_rounds),
        cmocka_unit_test(test_long_iterations_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
