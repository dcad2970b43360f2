/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Properties of whole designs, drawn uniformly from the shipped PSA files, and single times that
 * can be worked out by hand.  CS_ROUNDS sets the number of designs (20,000 for an acceptance
 * run). */
#include "tests/sim_design.h"

#include "common/common.h"
#include "sim/compute.h"

static const char *const files[] = {
    "configs/psa/gpt3-13b-system1.yaml", "configs/psa/gpt3-175b-system2.yaml",
    "configs/psa/gpt3-175b-system3.yaml", "configs/psa/llama3-70b-h100.yaml"};

/* A problem from a file, with a source of designs. */
typedef struct {
    design d;
    psa_space *space;
    cs_rng *rng;
    int32_t *point;
} source;

static void source_open(source *s, const char *path, uint64_t seed)
{
    cs_error err = {""};

    memset(s, 0, sizeof *s);
    if (psa_schema_load(path, sim_tables(), &s->d.schema, &err) != CS_OK ||
        sim_model_create(s->d.schema, &s->d.model, &err) != CS_OK ||
        psa_space_create(s->d.schema, &s->space, &err) != CS_OK)
        fail_msg("%s", err.text);
    s->d.scratch = sim_scratch_create(s->d.model);
    s->rng = cs_rng_create(seed, 0, 0);
    s->point = calloc(psa_space_n_vars(s->space), sizeof *s->point);
    assert_true(s->d.scratch != NULL && s->rng != NULL && s->point != NULL);
}

static void source_close(source *s)
{
    free(s->point);
    cs_rng_destroy(s->rng);
    psa_space_destroy(s->space);
    design_close(&s->d);
}

/* Values that no shipped PSA searches, where they fit the drawn design. */
static void vary(source *s)
{
    static const char *const settings[] = {
        "workload.tp_sequence=true",    "workload.cp_form=ring",
        "workload.prefetch=0",          "workload.prefetch=3",
        "workload.reshard=false",       "workload.gradients=fp32",
        "workload.attention=gpt-2022",  "workload.precision=fp8",
        "workload.precision=fp32",      "workload.recompute_every=2",
        "workload.schedule=zb_h1",      "workload.schedule=interleaved",
        "network.latency=0 ns",         "collective.endpoint_delay=1 us",
        "compute.launch_overhead=2 us", "network.in_network_reduction=true",
        "network.oversubscription=2",   "compute.tp_overlap=0.5",
        "placement=pp dp sp tp ep",     "placement=sp dp ep tp pp"};
    sim_config before = s->d.config;
    cs_error err;

    for (int i = 0; i < 3; i++) {
        size_t k = (size_t)cs_rng_below(s->rng, CS_COUNT(settings));
        if (psa_schema_assign(s->d.schema, settings[k], &s->d.config, &err) != CS_OK)
            fail_msg("%s: %s", settings[k], err.text);
        if (psa_schema_check(s->d.schema, &s->d.config, &err) == CS_OK)
            before = s->d.config;
        s->d.config = before;
    }
}

/* Every second design is one of the space, the others have settings beside it. */
static void draw(source *s, long i)
{
    assert_int_equal(psa_space_sample(s->space, s->rng, s->point), CS_OK);
    psa_space_decode(s->space, s->point, &s->d.config);
    if (i % 2 == 1)
        vary(s);
}

static long rounds(long by_default)
{
    const char *text = getenv("CS_ROUNDS");

    return text != NULL ? atol(text) : by_default;
}

/* Raises one bandwidth or peak by up to a factor of 5; returns its name. */
static const char *raise(source *s)
{
    sim_config *c = &s->d.config;
    size_t n = psa_schema_n_dims(s->d.schema);
    double factor = 1 + 4 * cs_rng_uniform(s->rng);

    switch (cs_rng_below(s->rng, 6)) {
    case 0:
        c->compute.peak *= factor;
        return "compute.peak";
    case 1:
        c->compute.memory_bandwidth *= factor;
        return "compute.memory_bandwidth";
    default:
        c->network.bandwidth[cs_rng_below(s->rng, n)] *= factor;
        return "network.bandwidth";
    }
}

static void test_more_bandwidth_or_peak_is_never_slower(void **state)
{
    long n = rounds(4000);

    (void)state;
    for (size_t f = 0; f < CS_COUNT(files); f++) {
        source s;
        source_open(&s, files[f], 21);
        for (long i = 0; i < n / (long)CS_COUNT(files); i++) {
            draw(&s, i);
            sim_result before = design_run(&s.d);
            const char *what = raise(&s);
            sim_result after = design_run(&s.d);
            if (!(after.latency_s <= before.latency_s))
                fail_msg("%s, design %ld: %.15g s, with more %s %.15g s", files[f], i,
                         before.latency_s, what, after.latency_s);
        }
        source_close(&s);
    }
}

/* Least bytes that a replica of unsharded weights sends in an iteration: its gradients' all-reduce,
 * 2 (n-1)/n of their bytes (as many as the weights': half precision). */
static double gradient_bytes(const sim_config *c, const sim_result *r)
{
    double n = (double)(c->workload.dp * c->workload.sp);

    for (size_t d = 0; d < PSA_MAX_DIMS; d++)
        if (c->network.in_network_reduction[d])
            return 0;
    if (c->workload.sharding != WL_SHARD_NONE || c->workload.precision == WL_FP8)
        return 0;
    return 2 * (n - 1) / n * r->memory.weights;
}

static void check_sums(const char *file, const source *s, const sim_result *r)
{
    double axes = 0, total = r->compute_s + r->exposed_s + r->bubble_s + r->idle_s;
    double egress = r->latency_s * r->bandwidth_per_npu_bytes_per_s;

    for (size_t axis = 0; axis < WL_N_AXES; axis++)
        axes += r->exposed_by_axis_s[axis];
    if (!(fabs(total - r->latency_s) <= 1e-9 * r->latency_s))
        fail_msg("%s: parts %.15g s of %.15g s", file, total, r->latency_s);
    if (!(fabs(axes - r->exposed_s) <= 1e-9 * r->latency_s))
        fail_msg("%s: axes %.15g s of %.15g s exposed", file, axes, r->exposed_s);
    assert_true(r->compute_s > 0 && r->exposed_s >= 0 && r->bubble_s >= 0 && r->idle_s >= 0);
    assert_true(r->hidden_s >= 0 && r->hidden_s <= r->latency_s);
    assert_true(r->mfu > 0 && isfinite(r->latency_s));
    if (!(r->sent_bytes <= egress * (1 + 1e-9)))
        fail_msg("%s: %g bytes sent, %g can leave in the time", file, r->sent_bytes, egress);
    if (!(gradient_bytes(&s->d.config, r) <= egress * (1 + 1e-9)))
        fail_msg("%s: gradients need %g bytes, %g can leave", file, gradient_bytes(&s->d.config, r),
                 egress);
}

/* The parts add up to the iteration, and no NPU sends more than its links carry in that time. */
static void test_parts_add_up_and_links_suffice(void **state)
{
    long n = rounds(4000);

    (void)state;
    for (size_t f = 0; f < CS_COUNT(files); f++) {
        source s;
        source_open(&s, files[f], 22);
        for (long i = 0; i < n / (long)CS_COUNT(files); i++) {
            draw(&s, i);
            sim_result r = design_run(&s.d);
            check_sums(files[f], &s, &r);
        }
        source_close(&s);
    }
}

/* 2 * 4096^3 FLOPs over 900 TFLOP/s = 0.15271 ms; its 3 * 4096^2 * 2 bytes take 0.030 ms at
 * 3.35 TB/s.  At 100 TFLOP/s * 1 GB/s the bytes decide: 100,663,296 / 1e9 = 0.10066 s. */
static void test_a_matrix_product(void **state)
{
    sim_device device = {.peak = 900e12, .memory_bandwidth = 3.35e12, .efficiency = 1};
    const wl_item gemm = {.kind = WL_COMPUTE,
                          .flops = 2.0 * 4096 * 4096 * 4096,
                          .memory_bytes = 3.0 * 4096 * 4096 * 2};

    (void)state;
    assert_close(sim__kernel_seconds(&device, &gemm), 0.152710e-3, 1e-5);
    device.memory_bandwidth = 1e9;
    assert_close(sim__kernel_seconds(&device, &gemm), 0.100663296, 1e-12);
}

/* 1 GB to the other one of two NPUs at 1 GB/s: both halves of an all-reduce pass the link once each
 * way, 2 * (1/2) * 1 s = 1.000 s. */
static void test_a_gigabyte_over_a_gigabyte_per_second(void **state)
{
    static const int32_t topologies[] = {SIM_RING, SIM_SWITCH, SIM_FULLY_CONNECTED};
    sim_route_cache *cache = sim_route_cache_create(1 << 20);
    const sim_footprint pair = {.n = 2, .n_spans = 1, .span = {{0, 2, 1}}};
    const sim_collective what = {&pair, WL_ALL_REDUCE, 1e9, 0};
    sim_phases phases;
    cs_error err = {""};

    (void)state;
    for (size_t i = 0; i < CS_COUNT(topologies); i++) {
        const sim_network net = {.n_dims = 1,
                                 .chunks = 1,
                                 .dim = {{.topology = topologies[i],
                                          .algorithm = SIM_ALGO_DIRECT,
                                          .n = 2,
                                          .bandwidth_bytes_per_s = 1e9,
                                          .oversubscription = 1}}};
        double seconds = 0;
        if (sim_collective_phases(&net, &what, cache, &phases, &err) != CS_OK)
            fail_msg("%s", err.text);
        for (size_t p = 0; p < phases.n; p++)
            seconds += phases.phase[p].seconds;
        assert_close(seconds, 1.0, 1e-12);
    }
    sim_route_cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_bandwidth_or_peak_is_never_slower),
        cmocka_unit_test(test_parts_add_up_and_links_suffice),
        cmocka_unit_test(test_a_matrix_product),
        cmocka_unit_test(test_a_gigabyte_over_a_gigabyte_per_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
