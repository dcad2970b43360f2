/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The engine's shortcuts against its own operator-by-operator run, on random programs: operators,
 * collectives, gathers, reductions, networks, schedules; and properties that hold for every one. */
#include "sim/engine.h"
#include "tests/test.h"

enum { MOST_ITEMS = 8, N_BLOCKS = 3, MOST_STAGES = 4, DESIGNS = 600 };

typedef struct {
    wl_item item[N_BLOCKS][2][MOST_ITEMS];
    wl_block block[N_BLOCKS];
    wl_segment segment[MOST_STAGES][N_BLOCKS];
    wl_stage stage[MOST_STAGES];
    wl_item update[2];
    wl_program program;
    wl_config config;
    sim_network network;
    sim_mesh mesh;
    sim_device device;
    int32_t order;
} random_job;

static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

static int below(cs_rng *rng, int n)
{
    return (int)cs_rng_below(rng, (uint64_t)n);
}

static wl_item random_item(cs_rng *rng, size_t index, bool backward)
{
    static const uint8_t kinds[] = {WL_ALL_REDUCE, WL_REDUCE_SCATTER, WL_ALL_GATHER, WL_ALL_TO_ALL};
    wl_item item = {.n_deps = 1, .op = (int16_t)index, .axis = WL_TP, .group = WL_GROUP(WL_TP)};

    if (below(rng, 3) == 0) {
        item.group = WL_GROUP(WL_SP);
        item.axis = WL_SP;
    }

    item.dep[0] =
        index == 0 || below(rng, 4) == 0 ? WL_DEP_INPUT : (int16_t)(below(rng, (int)index));
    if (below(rng, 3) == 0) {
        item.kind = WL_COMM;
        item.collective = kinds[below(rng, 4)];
        item.bytes = 1e6 * (1 + below(rng, 100));
        item.background = backward && below(rng, 2) == 0;
        if (item.background) {
            item.group = WL_GROUP_DATA;
            item.axis = WL_DP;
            item.collective = WL_REDUCE_SCATTER;
        }
    } else {
        item.kind = WL_COMPUTE;
        item.flops = 1e9 * (1 + below(rng, 1000));
        item.weight_gradient = backward && below(rng, 3) == 0;
        item.dep[item.n_deps++] = WL_DEP_WEIGHTS;
    }
    return item;
}

static void random_pass(cs_rng *rng, wl_item *item, bool backward, wl_pass *out)
{
    size_t n = 2 + (size_t)below(rng, MOST_ITEMS - 1);

    for (size_t i = 0; i < n; i++) {
        item[i] = random_item(rng, i, backward);
        /* Nothing depends on what runs in the background. */
        for (size_t d = 0; d < item[i].n_deps; d++)
            if (item[i].dep[d] >= 0 && item[item[i].dep[d]].background)
                item[i].dep[d] = WL_DEP_INPUT;
    }
    *out = (wl_pass){item, n, (int16_t)(n - 1)};
    if (item[n - 1].background)
        out->output = -1;
}

static void random_blocks(cs_rng *rng, random_job *job)
{
    for (size_t b = 0; b < N_BLOCKS; b++) {
        wl_block *block = &job->block[b];
        random_pass(rng, job->item[b][0], false, &block->forward);
        random_pass(rng, job->item[b][1], true, &block->backward);
        block->backward_last = block->backward;
        block->n_gathers = job->config.sharding == WL_SHARD_WEIGHTS;
        block->gather[0] =
            (wl_gather){.group = WL_GROUP_DATA, .bytes = 1e6 * (1 + below(rng, 500))};
    }
}

static void random_network(cs_rng *rng, random_job *job)
{
    static const int32_t topologies[] = {SIM_RING, SIM_FULLY_CONNECTED, SIM_SWITCH};
    static const int32_t algorithms[] = {SIM_ALGO_RING, SIM_ALGO_DIRECT, SIM_ALGO_HALVING_DOUBLING};

    job->network =
        (sim_network){.n_dims = 3, .multi_dim = below(rng, 2), .chunks = 1 + below(rng, 8)};
    for (size_t d = 0; d < 3; d++)
        job->network.dim[d] = (sim_dim){.topology = topologies[below(rng, 3)],
                                        .algorithm = algorithms[below(rng, 3)],
                                        .n = 4,
                                        .bandwidth_bytes_per_s = 1e9 * (1 + below(rng, 400)),
                                        .latency_s = 1e-9 * below(rng, 2000),
                                        .oversubscription = 1};
}

static void random_stages(cs_rng *rng, random_job *job)
{
    for (size_t s = 0; s < (size_t)job->config.pp; s++) {
        job->stage[s] = (wl_stage){.n_chunks = 1, .n_segments = {N_BLOCKS}};
        job->stage[s].segment[0] = job->segment[s];
        for (size_t b = 0; b < N_BLOCKS; b++)
            job->segment[s][b] = (wl_segment){(uint16_t)b, (uint16_t)(1 + below(rng, 60))};
        job->stage[s].update = (wl_pass){job->update, 2, -1};
    }
}

static void random_job_make(cs_rng *rng, random_job *job)
{
    static const int64_t splits[][4] = {{4, 16, 1, 1}, {16, 2, 1, 2}, {4, 4, 4, 1}, {8, 2, 2, 2},
                                        {2, 8, 1, 4},  {1, 32, 2, 1}, {4, 2, 2, 4}, {4, 4, 1, 4}};
    static const char *const orders[] = {"tp sp ep dp pp", "dp tp sp ep pp", "pp tp dp sp ep"};
    const int64_t *split = splits[below(rng, 8)];
    cs_error err;

    memset(job, 0, sizeof *job);
    job->config = (wl_config){.tp = split[0],
                              .dp = split[1],
                              .pp = split[2],
                              .sp = split[3],
                              .ep = 1,
                              .reshard = 1,
                              .sharding = below(rng, 4),
                              .prefetch = below(rng, 5),
                              .schedule = below(rng, 2) ? WL_1F1B : WL_GPIPE};
    if (below(rng, 4) == 0)
        job->config.schedule = WL_ZB_H1;
    job->mesh = (sim_mesh){.size = {split[0], split[3], 1, split[1], split[2]}};
    job->device = (sim_device){.peak = 1e15, .memory_bandwidth = 1e12, .efficiency = 1};
    assert_int_equal(sim_order_parse(orders[below(rng, 3)], &job->order, &err), CS_OK);
    random_network(rng, job);
    random_blocks(rng, job);
    random_stages(rng, job);
    job->update[0] =
        (wl_item){.kind = WL_COMPUTE, .n_deps = 1, .dep = {WL_DEP_INPUT}, .flops = 1e9};
    job->update[1] = (wl_item){.kind = WL_COMM,
                               .n_deps = 1,
                               .dep = {0},
                               .axis = WL_DP,
                               .group = WL_GROUP_DATA,
                               .collective = WL_ALL_GATHER,
                               .bytes = 1e8};
    job->program = (wl_program){.block = job->block,
                                .n_blocks = N_BLOCKS,
                                .stage = job->stage,
                                .n_stages = (size_t)split[2],
                                .op_names = names,
                                .micro_batches = 1 + below(rng, 24),
                                .boundary_bytes = 1e5 * below(rng, 1000)};
}

typedef struct {
    sim_engine *engine;
    sim_route_cache *routes;
    sim_schedule schedule;
} tools;

static void run(tools *t, const random_job *r, bool unrolled, sim_engine_result *out)
{
    cs_error err = {""};
    const sim_pipeline pipeline = {r->program.n_stages, 1, r->program.micro_batches, false, false};
    assert_int_equal(
        sim__schedule_make((wl_schedule)r->config.schedule, &pipeline, &t->schedule, &err), CS_OK);
    sim_job job = {.program = &r->program,
                   .config = &r->config,
                   .network = &r->network,
                   .mesh = &r->mesh,
                   .order = r->order,
                   .device = &r->device,
                   .routes = t->routes,
                   .schedule = &t->schedule,
                   .unrolled = unrolled};
    memset(out, 0, sizeof *out);
    if (sim__engine_run(t->engine, &job, out, &err) != CS_OK)
        fail_msg("%s", err.text);
}

static tools tools_make(void)
{
    tools t = {.engine = sim__engine_create(), .routes = sim_route_cache_create(1 << 20)};

    return t;
}

static void tools_free(tools *t)
{
    sim__engine_destroy(t->engine);
    sim_route_cache_destroy(t->routes);
    sim__schedule_fini(&t->schedule);
}

static sim_time total(const sim_engine_result *r)
{
    sim_time sum = r->account.compute + r->bubble + r->boundary + r->tail;
    for (size_t axis = 0; axis < WL_N_AXES; axis++)
        sum += r->account.wait[axis];
    return sum;
}

static void test_shortcuts_equal_the_unrolled_run(void **state)
{
    cs_rng *rng = cs_rng_create(1, 2, 3);
    tools t = tools_make();
    static random_job job;
    sim_engine_result fast, slow;

    (void)state;
    for (int i = 0; i < DESIGNS; i++) {
        random_job_make(rng, &job);
        run(&t, &job, false, &fast);
        run(&t, &job, true, &slow);
        if (memcmp(&fast, &slow, sizeof fast) != 0)
            fail_msg("design %d: %lld ps against %lld ps unrolled", i, (long long)fast.latency,
                     (long long)slow.latency);
        /* compute + exposed + bubble = the iteration of the stage that ends last */
        assert_int_equal(total(&fast), fast.latency);
    }
    tools_free(&t);
    cs_rng_destroy(rng);
}

/* fifo, lifo, smallest, themis: repetition equals the unrolled run, the parts add up, and network
 * time is a lower bound. */
static void test_other_schedulings_run(void **state)
{
    static const int32_t kinds[] = {SIM_FIFO, SIM_LIFO, SIM_SMALLEST, SIM_THEMIS};
    cs_rng *rng = cs_rng_create(10, 11, 12);
    tools t = tools_make();
    static random_job job;
    sim_engine_result fast, slow;

    (void)state;
    for (int i = 0; i < DESIGNS / 4; i++) {
        random_job_make(rng, &job);
        job.network.scheduling = kinds[i % 4];
        run(&t, &job, false, &fast);
        run(&t, &job, true, &slow);
        assert_memory_equal(&fast, &slow, sizeof fast);
        assert_int_equal(total(&fast), fast.latency);
        assert_true(fast.latency >= fast.account.network);
    }
    tools_free(&t);
    cs_rng_destroy(rng);
}

/* Under program order every time is a max-plus function of the durations: more is never slower. */
static void test_more_bandwidth_or_peak_is_never_slower(void **state)
{
    cs_rng *rng = cs_rng_create(4, 5, 6);
    tools t = tools_make();
    static random_job job;
    sim_engine_result before, after;

    (void)state;
    for (int i = 0; i < DESIGNS; i++) {
        random_job_make(rng, &job);
        run(&t, &job, false, &before);
        if (below(rng, 4) == 0)
            job.device.peak *= 1 + cs_rng_uniform(rng);
        else
            job.network.dim[below(rng, 3)].bandwidth_bytes_per_s *= 1 + cs_rng_uniform(rng);
        run(&t, &job, false, &after);
        if (after.latency > before.latency)
            fail_msg("design %d: %lld ps, %lld ps with more", i, (long long)before.latency,
                     (long long)after.latency);
    }
    tools_free(&t);
    cs_rng_destroy(rng);
}

/* An iteration is at least the compute of its stage, at least the network time hidden or not, and
 * at most all of it end to end. */
static void test_time_is_between_overlap_and_no_overlap(void **state)
{
    cs_rng *rng = cs_rng_create(7, 8, 9);
    tools t = tools_make();
    static random_job job;
    sim_engine_result r;

    (void)state;
    for (int i = 0; i < DESIGNS; i++) {
        random_job_make(rng, &job);
        run(&t, &job, false, &r);
        assert_true(r.latency >= r.account.compute);
        assert_true(r.latency >= r.account.network);
    }
    tools_free(&t);
    cs_rng_destroy(rng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortcuts_equal_the_unrolled_run),
        cmocka_unit_test(test_other_schedulings_run),
        cmocka_unit_test(test_more_bandwidth_or_peak_is_never_slower),
        cmocka_unit_test(test_time_is_between_overlap_and_no_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
