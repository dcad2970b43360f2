/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Requests: prefill once, decode k times over a growing context, a stream of them, pools. GPT3-1.3B
 * (24 layers, hidden 2,048, 16 heads of 128) on 8 H100 of 3.35 TB/s. */
#include "tests/sim_design.h"

#define MODEL_13 "model: ../models/gpt3-1.3b.yaml"

static sim_result ring(const char *workloads, const char *settings)
{
    char all[512];

    snprintf(all, sizeof all, "workload.dp=1 workload.tp=8 %s", settings);
    return design_once(workloads, "ring-8", all);
}

/* The sum over steps is what their latencies add up to, one workload each: prefill of 100 tokens,
 * then 6 steps over caches of 100 .. 105 tokens. */
static void test_a_request_is_a_prefill_and_each_of_its_steps(void **state)
{
    sim_result whole = ring("[{" MODEL_13 ", mode: serve, global_batch: 4, sequence: 100, "
                            "output: 6}]",
                            ""),
               parts = ring("[{" MODEL_13 ", mode: prefill, global_batch: 4, sequence: 100},"
                            " {" MODEL_13 ", mode: decode, global_batch: 4, context: 100},"
                            " {" MODEL_13 ", mode: decode, global_batch: 4, context: 101},"
                            " {" MODEL_13 ", mode: decode, global_batch: 4, context: 102},"
                            " {" MODEL_13 ", mode: decode, global_batch: 4, context: 103},"
                            " {" MODEL_13 ", mode: decode, global_batch: 4, context: 104},"
                            " {" MODEL_13 ", mode: decode, global_batch: 4, context: 105}]",
                            "");

    (void)state;
    assert_close(whole.latency_s, parts.latency_s, 1e-7);
    assert_close(whole.compute_s, parts.compute_s, 1e-7);
    assert_close(whole.exposed_s, parts.exposed_s, 1e-7);
    assert_close(whole.model_flops, parts.model_flops, 1e-12);
    assert_close(whole.ttft_s, parts.workload_latency_s[0], 0);
    assert_close(whole.tpot_s, (whole.latency_s - whole.ttft_s) / 6, 1e-12);
    /* 4 sequences put out 6 tokens each */
    assert_close(whole.tokens_per_s, 24 / whole.latency_s, 1e-12);
    assert_close(whole.tokens_per_s_per_npu, 3 / whole.latency_s, 1e-12);
}

/* A token more of context costs the bandwidth of its keys and values where attention is bound by
 * memory: 24 layers * 2 * 2048 * 2 B * 4 sequences / 8 NPUs = 98,304 B at 3.35 TB/s = 29.34 ns, and
 * the last of 101 steps reads 100 tokens more than the first. */
static void test_a_longer_context_costs_its_bytes(void **state)
{
    sim_result first = ring("[{" MODEL_13 ", mode: decode, global_batch: 4, context: 1000}]", "");
    sim_result last = ring("[{" MODEL_13 ", mode: decode, global_batch: 4, context: 1100}]", "");
    sim_result all =
        ring("[{" MODEL_13 ", mode: decode, global_batch: 4, context: 1000, output: 101}]", "");

    (void)state;
    assert_close(last.latency_s - first.latency_s, 100 * 98304 / 3.35e12, 1e-5);
    assert_close(all.latency_s, 101 * (first.latency_s + last.latency_s) / 2, 1e-7);
    assert_close(all.tpot_s, all.latency_s / 101, 1e-12);
    assert_true(isnan(all.ttft_s));
}

/* Random splits, networks and lengths: the sum of the series is that of all steps, each run
 * operator by operator. */
static void test_summed_steps_equal_all_steps(void **state)
{
    static const char *const designs[] = {
        "workload.dp=8 workload.tp=1",
        "workload.dp=2 workload.tp=4 network.latency=1us",
        "workload.dp=1 workload.tp=2 workload.pp=4",
        "workload.dp=2 workload.tp=2 workload.pp=2 workload.micro_batch=2",
        "workload.dp=2 workload.tp=1 workload.sp=4 network.bandwidth=400GB/s",
        "workload.dp=8 workload.tp=1 workload.sharding=weights",
        "workload.dp=4 workload.tp=2 compute.interference=0.3",
        "workload.dp=8 workload.tp=1 collective.scheduling=fifo",
        /* a step that is bound by arithmetic first and by memory later */
        "workload.dp=8 workload.tp=1 workload.micro_batch=8 compute.peak=12TFLOP/s",
    };
    design d;

    (void)state;
    design_open(&d, "psa: 1\nname: test\nsystem: ../systems/ring-8.yaml\n"
                    "workloads: [{" MODEL_13
                    ", mode: serve, global_batch: 64, sequence: 64, output: 80}]\n"
                    "knobs:\n  workload.pp: {values: [1]}\n"
                    "objectives: {latency: {minimize: latency}}\n");
    for (size_t i = 0; i < CS_COUNT(designs); i++) {
        sim_result fast, slow;

        psa_schema_baseline(d.schema, &d.config);
        design_set(&d, designs[i]);
        fast = design_run(&d);
        slow = design_unroll(&d);
        assert_close(fast.latency_s, slow.latency_s, 1e-7);
        assert_close(fast.compute_s, slow.compute_s, 1e-7);
        assert_close(fast.tpot_s, slow.tpot_s, 1e-7);
        assert_close(fast.ttft_s, slow.ttft_s, 1e-15);
        assert_close(fast.model_flops, slow.model_flops, 1e-9);
        assert_close(fast.tokens_per_s, 64 * 80 / slow.latency_s, 1e-7);
    }
    design_close(&d);
}

/* Steps that take microseconds, on a machine so fast that rounding to picoseconds shows: the series
 * is summed all the same.  One by one there may be 65,536 of them. */
static void test_many_steps(void **state)
{
    static const char workload[] =
        "[{" MODEL_13 ", mode: decode, global_batch: 8, context: 1, output: 100000000}]";
    sim_result r = design_once(workload, "ring-8",
                               "workload.dp=8 compute.peak=1000000TFLOP/s "
                               "compute.memory_bandwidth=1000000TB/s");
    sim_result result;
    cs_error err = {""};
    design d;

    (void)state;
    assert_true(isfinite(r.latency_s) && r.latency_s > 0);
    design_open(&d, "psa: 1\nname: test\nsystem: ../systems/ring-8.yaml\n"
                    "workloads: [{" MODEL_13
                    ", mode: decode, global_batch: 8, context: 1, output: 65537}]\n"
                    "knobs:\n  workload.pp: {values: [1]}\n"
                    "objectives: {latency: {minimize: latency}}\n");
    design_set(&d, "collective.scheduling=lifo");
    assert_int_equal(sim_evaluate(d.model, &d.config, d.scratch, &result, &err), CS_EINVAL);
    assert_string_equal(err.text, "output 65537: at most 65536 steps can be run one by one");
    design_close(&d);
}

/* KV bytes = 2 * layers * kv_heads * d_head * length * batch * bytes, over tp * pp * dp NPUs. */
static void test_cache_bytes_match_the_formula(void **state)
{
    static const struct {
        const char *model, *settings;
        double layers, kv_heads, ways;
    } cases[] = {
        {"gpt3-1.3b", "workload.tp=8 workload.dp=1", 24, 16, 8},
        {"gpt3-1.3b", "workload.tp=2 workload.dp=4", 24, 16, 8},
        {"gpt3-1.3b", "workload.tp=1 workload.dp=2 workload.pp=4", 24, 16, 8},
        {"llama3-8b", "workload.tp=4 workload.dp=2", 32, 8, 8},
        {"llama3-70b", "workload.tp=8 workload.dp=1", 80, 8, 8},
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        char workload[200];
        /* 8 sequences, 300 tokens of prompt and 50 put out, 2 bytes */
        const double all = 2 * cases[i].layers * cases[i].kv_heads * 128 * 350 * 8 * 2;
        sim_result r;

        snprintf(workload, sizeof workload,
                 "[{model: ../models/%s.yaml, mode: serve, global_batch: 8, sequence: 300, "
                 "output: 50}]",
                 cases[i].model);
        r = design_once(workload, "ring-8", cases[i].settings);
        assert_close(r.memory.kv_cache, all / cases[i].ways, 1e-12);
    }
}

/* Every number of stages from 1 to the 24 layers (and one more) is run, or refused by name. */
static void test_every_number_of_stages_runs_or_is_refused(void **state)
{
    static const char *const modes[] = {
        "mode: serve, global_batch: 4, sequence: 32, output: 5",
        "mode: train, global_batch: 24, sequence: 32",
    };
    design d;

    (void)state;
    for (size_t m = 0; m < CS_COUNT(modes); m++) {
        char psa[600];

        snprintf(psa, sizeof psa,
                 "psa: 1\nname: test\nallow_idle: true\nuneven_stages: true\n"
                 "system: ../systems/ring-8.yaml\nworkloads: [{" MODEL_13 ", %s}]\n"
                 "knobs:\n  workload.pp: {values: [1]}\n"
                 "objectives: {latency: {minimize: latency}}\n",
                 modes[m]);
        design_open(&d, psa);
        for (int pp = 1; pp <= 25; pp++) {
            sim_result fast;
            cs_error err = {""};
            char set[120];

            snprintf(set, sizeof set, "workload.dp=1 network.npus=32 workload.pp=%d", pp);
            design_set(&d, set);
            if (pp == 25) {
                assert_int_equal(sim_evaluate(d.model, &d.config, d.scratch, &fast, &err),
                                 CS_EINVAL);
                assert_non_null(strstr(err.text, "layers 24 % pp * virtual_stages 25"));
                continue;
            }
            fast = design_run(&d);
            assert_true(fast.latency_s > 0 && isfinite(fast.latency_s));
            assert_close(fast.latency_s, design_unroll(&d).latency_s, 1e-7);
        }
        design_close(&d);
    }
}

#define SPLIT "workload.tp=4 workload.pp=2 network.bandwidth=450GB/s"

/* Latency of `steps` decode steps of a batch in micro-batches of 4 over 2 stages. */
static double decode_s(int batch, int steps)
{
    char workload[200];

    snprintf(workload, sizeof workload,
             "[{" MODEL_13 ", mode: decode, global_batch: %d, context: 500, output: %d}]", batch,
             steps);
    return ring(workload, SPLIT " workload.micro_batch=4").latency_s;
}

/* What a step of 100 adds on average when all follow on one like it: the first, which stands alone,
 * is counted as what the line through the next two gives. */
static double added_step_s(int batch)
{
    double one = decode_s(batch, 1), two = decode_s(batch, 2), three = decode_s(batch, 3);

    return (decode_s(batch, 100) - one + 2 * (two - one) - (three - two)) / 100;
}

/* m micro-batches over 2 stages: a step alone takes m + 1 times that of one in one stage, and adds
 * max(m, 2) times it to the one before.  Transfers of 4 tokens are as good as nothing, the head
 * makes the last stage a little slower. */
static void test_steps_overlap_across_stages(void **state)
{
    double stage = decode_s(4, 1) / 2;

    (void)state;
    for (int m = 1; m <= 4; m++) {
        double alone = decode_s(4 * m, 1), two = decode_s(4 * m, 2);
        assert_close(alone, (m + 1) * stage, 0.1);
        assert_close(two - alone, (m < 2 ? 2 : m) * stage, 0.1);
    }
}

/* With every stage busy, several model chunks a stage only add transfers: a step that follows adds
 * no less than with one.  It would if a chunk took a value that another one is to have. */
static void test_model_chunks_keep_the_order_of_steps(void **state)
{
    static const char *const chunks[] = {"", "workload.virtual_stages=2",
                                         "workload.virtual_stages=3"};
    double least = 0;

    (void)state;
    for (size_t i = 0; i < CS_COUNT(chunks); i++) {
        double latency[2];
        for (int steps = 1; steps <= 2; steps++) {
            char workload[120], settings[200];
            snprintf(workload, sizeof workload,
                     "[{" MODEL_13 ", mode: decode, global_batch: 16, context: 500, output: %d}]",
                     steps);
            snprintf(settings, sizeof settings,
                     "workload.tp=4 workload.pp=2 network.bandwidth=10GB/s "
                     "workload.schedule=interleaved %s",
                     chunks[i]);
            latency[steps - 1] = ring(workload, settings).latency_s;
        }
        assert_true(latency[1] - latency[0] >= least);
        least = i == 0 ? latency[1] - latency[0] : least;
    }
}

/* A stream: M/D/1 with vacations, Little's law.  S and D are read off a prefill of one prompt and
 * steps one after another (one workload each), the rest follows by hand. */

static void test_a_stream_is_a_steady_state(void **state)
{
    const double load = 150, output = 100;
    sim_result r = ring("[{" MODEL_13 ", mode: serve, global_batch: 16, sequence: 500, "
                        "output: 100, requests_per_s: 150}]",
                        SPLIT " workload.micro_batch=4");
    double S =
        ring("[{" MODEL_13 ", mode: prefill, global_batch: 1, sequence: 500}]", SPLIT).latency_s;
    double rho = load * S, D = 0;
    int batch = 4;

    (void)state;
    for (; batch <= 16; batch += 4) {
        D = added_step_s(batch);
        if (batch >= load * output * D / (1 - rho))
            break;
    }
    assert_true(batch > 4 && batch <= 16); /* neither the least nor too much */
    assert_close(r.tpot_s, D / (1 - rho), 1e-6);
    assert_close(r.ttft_s, S + rho * S / (2 * (1 - rho)) + D / 2, 1e-6);
    assert_close(r.latency_s, r.ttft_s + output * r.tpot_s, 1e-12);
    assert_close(r.tokens_per_s, load * output, 1e-12);
    assert_close(r.compute_s + r.exposed_s + r.bubble_s + r.idle_s, r.latency_s, 1e-9);
    assert_int_equal(r.verdict, SIM_FEASIBLE);
}

/* What a stream can serve at most: 16 / (100 D + 16 S) requests a second. */
static void test_an_overload_is_over_the_limit(void **state)
{
    sim_result r = ring("[{" MODEL_13 ", mode: serve, global_batch: 16, sequence: 500, "
                        "output: 100, requests_per_s: 1000}]",
                        "");
    double S =
        ring("[{" MODEL_13 ", mode: prefill, global_batch: 1, sequence: 500}]", "").latency_s;
    double D =
        ring("[{" MODEL_13 ", mode: decode, global_batch: 16, context: 500, output: 100}]", "")
            .tpot_s;

    (void)state;
    assert_int_equal(r.verdict, SIM_OVER_LIMIT);
    assert_close(r.memory_excess, log(1000 * (100 * D + 16 * S) / 16), 1e-5);
}

/* Two pools: 2 NPUs prefill, 6 decode.  Of dp 8 they have 2 and 6 replicas; 24 prompts at a time
 * are 12 and 4 a replica.  The slower pool sets the rate of requests. */
static void test_pools_work_side_by_side(void **state)
{
    static const char pools[] =
        "[{" MODEL_13 ", mode: prefill, global_batch: 24, sequence: 200, npus: 2},"
        " {" MODEL_13 ", mode: decode, global_batch: 24, context: 200, output: 50, npus: 6}]";
    sim_result r = design_once(pools, "ring-8", "workload.dp=8");
    /* caches: 2 * 24 layers * 2,048 * 200 tokens * 24 prompts * 2 B over 2 NPUs, at 50 GB/s */
    double transfer = 2.0 * 24 * 2048 * 200 * 24 * 2 / 2 / 50e9;
    double prefill = r.workload_latency_s[0] - transfer, decode = r.workload_latency_s[1];
    double requests = 24 / fmax(prefill, decode);

    (void)state;
    /* alone on as many NPUs: the same */
    assert_close(prefill,
                 design_once("[{" MODEL_13 ", mode: prefill, global_batch: 24, sequence: 200}]",
                             "ring-8", "network.npus=2 workload.dp=2")
                     .latency_s,
                 1e-12);
    assert_close(r.ttft_s, prefill, 1e-12);
    assert_close(r.tpot_s, decode / 50, 1e-12);
    assert_close(r.latency_s, prefill + transfer + decode, 1e-12);
    assert_close(r.tokens_per_s, requests * 50, 1e-12);
}

/* 4 NPUs prefill with tp 1, 4 decode as 2 replicas with tp 2, or as one of 2 stages with tp 2: as
 * alone on a machine of 4 of that split, but for hops on a larger ring. */
static void test_a_decode_pool_has_degrees_of_its_own(void **state)
{
    static const char pools[] =
        "[{" MODEL_13 ", mode: prefill, global_batch: 8, sequence: 200, npus: 4},"
        " {" MODEL_13 ", mode: decode, global_batch: 8, context: 200, output: 50, npus: 4}]";
    static const char alone[] =
        "[{" MODEL_13 ", mode: decode, global_batch: 8, context: 200, output: 50}]";
    static const struct {
        const char *own, *same;
    } cases[] = {
        {"workload.decode_tp=2", "network.npus=4 workload.dp=2 workload.tp=2"},
        {"workload.decode_tp=2 workload.decode_pp=2",
         "network.npus=4 workload.dp=1 workload.tp=2 workload.pp=2"},
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        char settings[100];
        sim_result r, same = design_once(alone, "ring-8", cases[i].same);
        snprintf(settings, sizeof settings, "workload.dp=8 %s", cases[i].own);
        r = design_once(pools, "ring-8", settings);
        assert_close(r.workload_latency_s[1], same.latency_s, 1e-5);
        assert_close(r.tpot_s, same.tpot_s, 1e-5);
    }
}

static void test_pools_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        const char *workloads, *message;
    } cases[] = {
        {"[{" MODEL_13 ", mode: prefill, global_batch: 24, sequence: 200, npus: 4},"
         " {" MODEL_13 ", mode: decode, global_batch: 24, context: 200, npus: 6}]",
         "pools of 10 NPUs in all on a machine of 8"},
        {"[{" MODEL_13 ", mode: prefill, global_batch: 24, sequence: 200, npus: 3}]",
         "a pool of 3 of 8 NPUs holds no whole number of the 4 replicas"},
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        char psa[700];
        cs_error err = {""};
        sim_result result;
        design d;

        snprintf(psa, sizeof psa,
                 "psa: 1\nname: test\nsystem: ../systems/ring-8.yaml\nworkloads: %s\n"
                 "knobs:\n  workload.pp: {values: [1]}\n"
                 "objectives: {latency: {minimize: latency}}\n",
                 cases[i].workloads);
        design_open(&d, psa);
        design_set(&d, "workload.dp=4 workload.tp=2");
        assert_int_equal(sim_evaluate(d.model, &d.config, d.scratch, &result, &err), CS_EINVAL);
        if (strstr(err.text, cases[i].message) == NULL)
            fail_msg("'%s' lacks '%s'", err.text, cases[i].message);
        design_close(&d);
    }
}

/* ttft and tpot in constraints: a limit between what two splits reach parts them. */
static void test_limits_on_requests_decide_feasibility(void **state)
{
    design d;
    sim_result slow, fast;
    size_t which = SIZE_MAX;

    (void)state;
    design_open(&d, "psa: 1\nname: test\nsystem: ../systems/ring-8.yaml\n"
                    "workloads: [{" MODEL_13
                    ", mode: serve, global_batch: 8, sequence: 1024, output: 10}]\n"
                    "knobs:\n  workload.pp: {values: [1]}\n"
                    "constraints: [\"tpot <= 1 ms\", \"ttft <= 100 ms\"]\n"
                    "objectives: {latency: {minimize: latency}}\n");
    slow = design_run(&d); /* dp 8: each NPU reads all 2.6 GB of weights: 0.79 ms at least */
    assert_true(slow.tpot_s > 2.6e9 / 3.35e12);
    assert_true(psa_schema_limit_violation(d.schema, &d.config, &slow, &which) == 0);
    design_set(&d, "compute.memory_bandwidth=1TB/s"); /* 2.6 ms */
    slow = design_run(&d);
    assert_true(psa_schema_limit_violation(d.schema, &d.config, &slow, &which) > 0);
    design_set(&d, "workload.dp=1 workload.tp=8 workload.micro_batch=8 network.bandwidth=450GB/s");
    fast = design_run(&d);
    assert_true(fast.tpot_s < slow.tpot_s);
    assert_true(psa_schema_limit_violation(d.schema, &d.config, &fast, &which) == 0);
    design_close(&d);
}

/* The paper's Chat and QA: its mean contexts, 3,500 and 1,100 tokens, are those of steps that start
 * from prompts of 3,000 and 1,000, so k steps cost k times a step at the mean (3,500.5, 1,100.5).
 */
static void test_chat_and_qa_run_in_full(void **state)
{
    static const struct {
        const char *psa;
        double steps;
    } cases[] = {{"configs/psa/gpt3-175b-chat.yaml", 1000}, {"configs/psa/gpt3-175b-qa.yaml", 200}};

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        design d = {0};
        cs_error err = {""};
        sim_result r;
        /* dp 64, tp 4, pp 4: 256 / 64 = 4 micro-batches of one sequence over 4 stages */
        const char *split = "workload.dp=64 workload.tp=4 workload.pp=4 workload.sp=1 "
                            "workload.micro_batch=1 workload.sharding=none";

        if (psa_schema_load(cases[i].psa, sim_tables(), &d.schema, &err) != CS_OK ||
            sim_model_create(d.schema, &d.model, &err) != CS_OK)
            fail_msg("%s", err.text);
        d.scratch = sim_scratch_create(d.model);
        psa_schema_baseline(d.schema, &d.config);
        design_set(&d, split);
        r = design_run(&d);
        assert_close(r.latency_s, r.ttft_s + cases[i].steps * r.tpot_s, 1e-12);
        assert_close(r.tokens_per_s, 256 * cases[i].steps / r.latency_s, 1e-12);
        /* a stage reads a quarter of a fourth of 174.6e9 parameters of 2 bytes from 50 GB/s memory
         * for each of 4 micro-batches: 4 * 0.4365 s at least; a fifth of it for all the rest */
        assert_true(r.tpot_s > 4 * 2 * 174.6e9 / 16 / 50e9 * 0.99);
        assert_true(r.tpot_s < 4 * 2 * 174.6e9 / 16 / 50e9 * 1.2);
        design_close(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_is_a_prefill_and_each_of_its_steps),
        cmocka_unit_test(test_a_longer_context_costs_its_bytes),
        cmocka_unit_test(test_summed_steps_equal_all_steps),
        cmocka_unit_test(test_steps_overlap_across_stages),
        cmocka_unit_test(test_model_chunks_keep_the_order_of_steps),
        cmocka_unit_test(test_many_steps),
        cmocka_unit_test(test_cache_bytes_match_the_formula),
        cmocka_unit_test(test_every_number_of_stages_runs_or_is_refused),
        cmocka_unit_test(test_a_stream_is_a_steady_state),
        cmocka_unit_test(test_an_overload_is_over_the_limit),
        cmocka_unit_test(test_pools_work_side_by_side),
        cmocka_unit_test(test_a_decode_pool_has_degrees_of_its_own),
        cmocka_unit_test(test_pools_that_do_not_fit_are_refused),
        cmocka_unit_test(test_limits_on_requests_decide_feasibility),
        cmocka_unit_test(test_chat_and_qa_run_in_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
