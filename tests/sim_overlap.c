/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What runs beside what: ring attention, ring-decomposed matrix products, transfers, nothing at
 * all; and NPUs that are slower than others.  Times are whole seconds: a peak of 1 FLOP/s, and a
 * ring of 4 NPUs of 1 GB/s, on which a gather of 4 GB takes 3/4 * 4 = 3 s. */
#include "sim/engine.h"
#include "tests/sim_design.h"

#define SECOND INT64_C(1000000000000)
#define GB     1e9

static const char *const names[] = {"before", "middle", "after", "other"};

/* One block of up to 8 items on each of `n_stages` stages, forward only. */
typedef struct {
    wl_item item[8];
    size_t n_items;
    wl_block block;
    wl_segment segment;
    wl_stage stage[4];
    wl_program program;
    wl_config config;
    sim_mesh mesh;
    sim_device device;
    sim_network network;
    sim_slow slow;
    bool serial, p2p_waits;
} toy;

static void toy_make(toy *t, int64_t tp, int64_t sp, int64_t pp, int64_t micro_batches)
{
    memset(t, 0, sizeof *t);
    t->config = (wl_config){.dp = 1, .tp = tp, .sp = sp, .ep = 1, .pp = pp, .reshard = 1};
    t->mesh = (sim_mesh){{tp, sp, 1, 1, pp}};
    t->device = (sim_device){.peak = 1, .memory_bandwidth = 1, .efficiency = 1};
    t->network = (sim_network){.n_dims = 2, .multi_dim = SIM_HIERARCHICAL, .chunks = 1};
    t->network.dim[0] = (sim_dim){.topology = SIM_RING,
                                  .algorithm = SIM_ALGO_RING,
                                  .n = 4,
                                  .bandwidth_bytes_per_s = GB,
                                  .oversubscription = 1};
    t->network.dim[1] = t->network.dim[0];
    t->network.dim[1].topology = SIM_SWITCH;
    t->segment = (wl_segment){0, 1};
    for (size_t s = 0; s < (size_t)pp; s++)
        t->stage[s] = (wl_stage){
            .n_chunks = 1, .segment = {&t->segment}, .n_segments = {1}, .update = {.output = -1}};
    t->program = (wl_program){.block = &t->block,
                              .n_blocks = 1,
                              .stage = t->stage,
                              .n_stages = (size_t)pp,
                              .op_names = names,
                              .micro_batches = micro_batches};
}

/* Appends an item that waits for items a and b (WL_DEP_INPUT where there is none). */
static int16_t add(toy *t, wl_item item, int16_t a, int16_t b)
{
    item.dep[0] = a;
    item.dep[1] = b;
    item.n_deps = 2;
    t->item[t->n_items] = item;
    return (int16_t)t->n_items++;
}

static wl_item gemm(int16_t op, double seconds)
{
    return (wl_item){
        .kind = WL_COMPUTE, .op = op, .flops = seconds, .axis = WL_DP, .m = 1, .n = 1, .k = 1};
}

static wl_item collective(wl_collective type, wl_axis axis, double bytes)
{
    return (wl_item){.kind = WL_COMM,
                     .op = 3,
                     .collective = (uint8_t)type,
                     .group = WL_GROUP(axis),
                     .axis = (uint8_t)axis,
                     .bytes = bytes};
}

static sim_engine_result toy_run_once(toy *t, bool unrolled)
{
    cs_error err = {""};
    sim_engine *engine = sim__engine_create();
    sim_route_cache *routes = sim_route_cache_create(1 << 20);
    sim_schedule schedule = {0};
    sim_pipeline pipeline = {t->program.n_stages, 1, t->program.micro_batches, true, false};
    sim_engine_result out = {0};
    int32_t order = 0;

    t->block.forward = (wl_pass){t->item, t->n_items, (int16_t)(t->n_items - 1)};
    assert_int_equal(sim_order_parse("tp sp ep dp pp", &order, &err), CS_OK);
    assert_int_equal(sim__schedule_make(WL_1F1B, &pipeline, &schedule, &err), CS_OK);
    sim_job job = {.program = &t->program,
                   .config = &t->config,
                   .network = &t->network,
                   .mesh = &t->mesh,
                   .order = order,
                   .device = &t->device,
                   .routes = routes,
                   .schedule = &schedule,
                   .inference = true,
                   .serial = t->serial,
                   .p2p_waits = t->p2p_waits,
                   .slow = t->slow.device == NULL ? NULL : &t->slow,
                   .unrolled = unrolled};
    if (sim__engine_run(engine, &job, &out, &err) != CS_OK)
        fail_msg("%s", err.text);
    sim__schedule_fini(&schedule);
    sim_route_cache_destroy(routes);
    sim__engine_destroy(engine);
    return out;
}

static sim_engine_result toy_run(toy *t)
{
    sim_engine_result fast = toy_run_once(t, false), slow = toy_run_once(t, true);

    assert_int_equal(fast.latency, slow.latency);
    return fast;
}

/* Ring attention: projections 1 s, then the exchange (E = 3 s) beside attention (D), then 1 s.
 * max(D, E + D/4): the last quarter of the work needs what came last. */
static void test_ring_attention_takes_the_longer_and_the_first_hop(void **state)
{
    static const struct {
        double attention, expect;
    } cases[] = {{0, 3}, {2, 3.5}, {3, 3.75}, {4, 4}, {8, 8}};
    static toy t;

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        toy_make(&t, 1, 4, 1, 1);
        wl_item ring = collective(WL_ALL_GATHER, WL_SP, 4 * GB);
        ring.overlapped = true;
        ring.op = 1;
        int16_t before = add(&t, gemm(0, 1), WL_DEP_INPUT, WL_DEP_INPUT);
        int16_t exchange = add(&t, ring, before, before);
        int16_t attention = add(&t, gemm(1, cases[i].attention), before, before);
        (void)add(&t, gemm(2, 1), attention, exchange);
        assert_close(SIM_S(toy_run(&t).latency), 2 + cases[i].expect, 1e-12);
        t.serial = true; /* without overlap: 2 + E + D */
        assert_close(SIM_S(toy_run(&t).latency), 5 + cases[i].attention, 1e-12);
    }
}

/* compute.tp_overlap = x on 4 NPUs: d = D (1 - 3x/4). */
static void test_products_overlap_the_gather_before_them(void **state)
{
    static const struct {
        double x, q, k, expect;
    } cases[] = {
        {0, 2, 2, 7},       /* E + D */
        {1, 2, 2, 4},       /* max(4, 3 + 1) */
        {1, 1, 1, 3.5},     /* max(2, 3 + 0.5) */
        {1, 8, 4, 12},      /* max(12, 3 + 3) */
        {0.5, 2, 2, 5.5},   /* d = 4 * 5/8 = 2.5 */
        {1, 0.4, 0.8, 3.3}, /* d = 0.3 */
    };
    static toy t;

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        toy_make(&t, 4, 1, 1, 1);
        t.device.tp_overlap = cases[i].x;
        int16_t before = add(&t, gemm(0, 1), WL_DEP_INPUT, WL_DEP_INPUT);
        int16_t gather = add(&t, collective(WL_ALL_GATHER, WL_TP, 4 * GB), before, before);
        int16_t q = add(&t, gemm(1, cases[i].q), gather, gather);
        int16_t k = add(&t, gemm(1, cases[i].k), gather, gather);
        (void)add(&t, gemm(2, 1), q, k);
        assert_close(SIM_S(toy_run(&t).latency), 2 + cases[i].expect, 1e-12);
    }
}

static void test_products_overlap_the_reduction_after_them(void **state)
{
    static const struct {
        wl_collective type;
        double x, product, expect;
    } cases[] = {
        {WL_REDUCE_SCATTER, 0, 2, 5},      /* D + E */
        {WL_REDUCE_SCATTER, 1, 2, 3.5},    /* max(2, 3 + 0.5) */
        {WL_REDUCE_SCATTER, 1, 8, 8},      /* max(8, 3 + 2) */
        {WL_REDUCE_SCATTER, 0.5, 2, 4.25}, /* d = 2 * 5/8 */
        {WL_ALL_REDUCE, 0, 2, 8},          /* E = 6 */
        {WL_ALL_REDUCE, 1, 2, 6.5},        /* max(2, 3 + 0.5) + 3 */
        {WL_ALL_REDUCE, 1, 8, 11},         /* max(8, 3 + 2) + 3 */
    };
    static toy t;

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        toy_make(&t, 4, 1, 1, 1);
        t.device.tp_overlap = cases[i].x;
        int16_t product = add(&t, gemm(1, cases[i].product), WL_DEP_INPUT, WL_DEP_INPUT);
        int16_t sum = add(&t, collective(cases[i].type, WL_TP, 4 * GB), product, product);
        (void)add(&t, gemm(2, 1), sum, sum);
        assert_close(SIM_S(toy_run(&t).latency), 1 + cases[i].expect, 1e-12);
    }
}

/* Two stages, products of 1 s, a transfer of 0.5 s, m micro-batches.  Overlapped, stage 2 is fed
 * every second: 1 + 0.5 + m.  Else every 1.5 s: 1.5 m + 1. */
static void test_a_sender_may_wait_for_its_transfer(void **state)
{
    static toy t;

    (void)state;
    for (int64_t m = 1; m <= 32; m *= 2) {
        toy_make(&t, 4, 1, 2, m);
        t.program.boundary_bytes = 0.5 * GB;
        (void)add(&t, gemm(1, 1), WL_DEP_INPUT, WL_DEP_INPUT);
        assert_close(SIM_S(toy_run(&t).latency), 1.5 + (double)m, 1e-12);
        t.p2p_waits = true;
        assert_close(SIM_S(toy_run(&t).latency), 1.5 * (double)m + 1, 1e-12);
        /* what the receiver waits for is half a second of transfer, and the sender's work */
        assert_int_equal(toy_run(&t).account.compute, m * SECOND);
    }
}

/* Three stages of 1 s, 8 micro-batches; one goes at half its speed: 2 s each.  First or middle or
 * last: 2 * 8 + 2 = 18 s, as the slowest stage sets the pace.  Slow links: transfers of 0.5 s take
 * 1 s at either end of them. */
static void test_one_slow_npu_sets_the_pace(void **state)
{
    static toy t;
    sim_device half;
    sim_network links;

    (void)state;
    for (size_t slow = 0; slow < 3; slow++) {
        toy_make(&t, 4, 1, 3, 8);
        (void)add(&t, gemm(1, 1), WL_DEP_INPUT, WL_DEP_INPUT);
        half = t.device;
        half.peak /= 2;
        t.slow = (sim_slow){slow, &half, &t.network};
        assert_int_equal(toy_run(&t).latency, 18 * SECOND);
    }
    for (size_t slow = 0; slow < 3; slow++) {
        /* one way through: 3 products and 2 transfers, of which the slow stage has a part in 1 or
         * 2; then the other 7 follow every second */
        static const double transfers[] = {1.5, 2, 1.5};
        toy_make(&t, 4, 1, 3, 8);
        t.program.boundary_bytes = 0.5 * GB;
        (void)add(&t, gemm(1, 1), WL_DEP_INPUT, WL_DEP_INPUT);
        links = t.network;
        for (size_t d = 0; d < links.n_dims; d++)
            links.dim[d].bandwidth_bytes_per_s /= 2;
        t.slow = (sim_slow){slow, &t.device, &links};
        assert_close(SIM_S(toy_run(&t).latency), 3 + transfers[slow] + 7, 1e-12);
    }
}

/* ---- whole designs ---- */

#define MODEL_13 "model: ../models/gpt3-1.3b.yaml, mode: train, global_batch: 32, sequence: 1024"

static sim_result train(const char *settings)
{
    return design_once("[{" MODEL_13 "}]", "ring-8", settings);
}

/* With one stage the slow NPU is every NPU's pace: half of its peak and memory bandwidth, or of its
 * link, is half of everybody's. */
static void test_a_slow_npu_in_one_stage_is_a_slow_machine(void **state)
{
    (void)state;
    assert_close(train("workload.dp=8 workload.slow_stage=1 compute.slow_factor=0.5").latency_s,
                 train("workload.dp=8 compute.peak=494.5TFLOP/s compute.memory_bandwidth=1.675TB/s")
                     .latency_s,
                 1e-9);
    assert_close(train("workload.dp=8 workload.slow_stage=1 network.slow_factor=0.5").latency_s,
                 train("workload.dp=8 network.bandwidth=25GB/s").latency_s, 1e-9);
    /* the last stage, with the logits, set the pace already: nearly twice the time */
    assert_true(train("workload.dp=2 workload.pp=4 network.bandwidth=4TB/s workload.slow_stage=4 "
                      "compute.slow_factor=0.5")
                    .latency_s >
                1.7 * train("workload.dp=2 workload.pp=4 network.bandwidth=4TB/s").latency_s);
}

static void test_a_slow_stage_must_exist(void **state)
{
    design d;
    sim_result result;
    cs_error err = {""};

    (void)state;
    design_open(&d, "psa: 1\nname: test\nsystem: ../systems/ring-8.yaml\nworkloads: [{" MODEL_13
                    "}]\nknobs:\n  workload.pp: {values: [1]}\n"
                    "objectives: {latency: {minimize: latency}}\n");
    design_set(&d, "workload.dp=4 workload.pp=2 workload.slow_stage=3");
    assert_int_equal(sim_evaluate(d.model, &d.config, d.scratch, &result, &err), CS_EINVAL);
    assert_string_equal(err.text, "workload.slow_stage is 3 of 2 stages");
    design_close(&d);
}

/* Expected maxima of n standard normal variables (Harter, Biometrika 48, 1961): 0 for 1, 1.4236 for
 * 8; Blom's quantile is within 1 % from 8 on.  Compute takes 1 + jitter * that. */
static void test_jitter_is_the_expected_maximum(void **state)
{
    (void)state;
    assert_close(train("workload.dp=8 compute.jitter=0.1").compute_s /
                     train("workload.dp=8").compute_s,
                 1 + 0.1 * 1.4236, 0.002);
    assert_close(train("workload.dp=1 workload.pp=8 compute.jitter=0.1").compute_s,
                 train("workload.dp=1 workload.pp=8").compute_s, 1e-12);
}

/* Interference x: hidden communication leaves x of its time to be computed later. */
static void test_interference_lies_between_the_larger_and_the_sum(void **state)
{
    sim_result none = train("workload.dp=8"), some;

    (void)state;
    assert_true(none.hidden_s > 0);
    some = train("workload.dp=8 compute.interference=0.3");
    assert_close(some.latency_s, none.latency_s + 0.3 * none.hidden_s, 1e-12);
    some = train("workload.dp=8 compute.interference=0.95");
    assert_true(some.latency_s <= none.compute_s + none.exposed_s + none.hidden_s);
    assert_true(some.latency_s >= none.compute_s);
}

/* Off: total = compute + communication.  On: at least the larger, at most the sum. */
static void test_overlap_lies_between_the_larger_and_the_sum(void **state)
{
    static const char *const designs[] = {
        "workload.dp=8",
        "workload.dp=8 workload.sharding=weights",
        "workload.dp=8 workload.sharding=weights workload.prefetch=2",
        "workload.dp=8 workload.sharding=gradients workload.micro_batch=2",
        "workload.dp=8 workload.sharding=optimizer network.latency=2us",
        "workload.dp=2 workload.tp=4",
        "workload.dp=1 workload.tp=8 workload.tp_sequence=true",
        "workload.dp=1 workload.tp=8 workload.tp_sequence=true compute.tp_overlap=1",
        "workload.dp=1 workload.tp=8 compute.tp_overlap=1",
        "workload.dp=2 workload.sp=4",
        "workload.dp=2 workload.sp=4 workload.cp_form=ring",
        "workload.dp=1 workload.sp=8 workload.cp_form=ring workload.recompute=full",
        "workload.dp=2 workload.tp=2 workload.sp=2 workload.sharding=weights collective.chunks=7",
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(designs); i++) {
        char off[300];
        sim_result with = train(designs[i]), without;
        double larger, network;

        snprintf(off, sizeof off, "%s workload.overlap=false", designs[i]);
        without = train(off);
        /* the ring has one dimension, so communication is the time it is busy */
        assert_close(without.latency_s, without.compute_s + without.exposed_s, 1e-12);
        assert_true(fabs(without.hidden_s) < 1e-12);
        assert_close(without.compute_s, with.compute_s, 1e-12);
        network = with.exposed_s + with.hidden_s;
        assert_close(network, without.exposed_s, 1e-6);
        larger = fmax(with.compute_s, network);
        if (!(with.latency_s >= larger * (1 - 1e-12) &&
              with.latency_s <= without.latency_s * (1 + 1e-12)))
            fail_msg("%s: %.9g s, larger %.9g s, sum %.9g s", designs[i], with.latency_s, larger,
                     without.latency_s);
    }
}

/* With stages: compute + communication + bubble, and never less than with overlap. */
static void test_overlap_off_with_stages(void **state)
{
    static const char *const designs[] = {
        "workload.dp=2 workload.pp=4",
        "workload.dp=1 workload.tp=2 workload.pp=4 workload.schedule=gpipe",
        "workload.dp=2 workload.tp=2 workload.pp=2 workload.sharding=weights",
        "workload.dp=2 workload.pp=4 workload.schedule=zb_h1",
        "workload.dp=2 workload.pp=4 workload.schedule=interleaved workload.virtual_stages=2",
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(designs); i++) {
        char off[300];
        sim_result with = train(designs[i]), without, waiting;

        snprintf(off, sizeof off, "%s workload.overlap=false", designs[i]);
        without = train(off);
        snprintf(off, sizeof off, "%s workload.p2p_overlap=false", designs[i]);
        waiting = train(off);
        assert_close(without.latency_s, without.compute_s + without.exposed_s + without.bubble_s,
                     1e-12);
        assert_true(without.latency_s >= with.latency_s);
        assert_true(waiting.latency_s > with.latency_s);
        assert_true(waiting.latency_s <= without.latency_s);
    }
}

/* Gathering one block early gains most where gathers take about as long as the work they run
 * beside, less where they dominate (12.5 GB/s) and less where little of them is exposed (500 GB/s);
 * its price is a block of 2.10 GB: the embedding's 128,256 * 8,192 weights of 2 bytes. */
static void test_early_gathers_gain_most_in_between(void **state)
{
    static const char *const bandwidths[] = {"12.5", "50", "500"};
    double gain[3];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        sim_result late, early;
        char set[300];

        for (int k = 0; k < 2; k++) {
            snprintf(set, sizeof set,
                     "workload.dp=8 workload.sharding=weights workload.recompute=full "
                     "network.bandwidth=%sGB/s workload.prefetch=%d",
                     bandwidths[i], k);
            *(k == 0 ? &late : &early) = design_once("[{model: ../models/llama3-70b.yaml, mode: "
                                                     "train, global_batch: 16, sequence: 8192}]",
                                                     "ring-8", set);
        }
        gain[i] = 1 - early.latency_s / late.latency_s;
        assert_close(early.peak_memory_bytes - late.peak_memory_bytes, 128256.0 * 8192 * 2, 0.01);
    }
    assert_true(gain[1] > 2 * gain[0] && gain[0] > 0);
    assert_true(gain[1] > 2 * gain[2] && gain[2] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_attention_takes_the_longer_and_the_first_hop),
        cmocka_unit_test(test_products_overlap_the_gather_before_them),
        cmocka_unit_test(test_products_overlap_the_reduction_after_them),
        cmocka_unit_test(test_a_sender_may_wait_for_its_transfer),
        cmocka_unit_test(test_one_slow_npu_sets_the_pace),
        cmocka_unit_test(test_a_slow_npu_in_one_stage_is_a_slow_machine),
        cmocka_unit_test(test_a_slow_stage_must_exist),
        cmocka_unit_test(test_jitter_is_the_expected_maximum),
        cmocka_unit_test(test_interference_lies_between_the_larger_and_the_sum),
        cmocka_unit_test(test_overlap_lies_between_the_larger_and_the_sum),
        cmocka_unit_test(test_overlap_off_with_stages),
        cmocka_unit_test(test_early_gathers_gain_most_in_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
