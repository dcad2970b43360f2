/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Folding in the cluster engine: random jobs give the same result with one rank a class as with all
 * of them, to the nanosecond, also when ranks tie, differ, stand in another order or fail. */
#include "tests/sim_cluster_build.h"

#include <stdlib.h>
#include <unistd.h>

#define CHAKRA "../shared/reference/chakra/"

enum { MOST_RANKS = 48, MOST_STAGES = 4, MOST_STEPS = 24, MOST_GROUPS = 2 * MOST_RANKS + 1 };

/* What the ranks of one stage do, in order; dependencies are on earlier steps of the stage. */
typedef struct {
    uint8_t type, comm;
    uint8_t scope;  /* of a collective */
    int8_t towards; /* of a message: stages on */
    int64_t bytes, ns, tag;
    uint32_t n_deps, dep[2];
} step;
enum { WORLD, ACROSS, ALONG };

typedef struct {
    uint32_t stages, across, along, ranks;
    step step[MOST_STAGES][MOST_STEPS];
    uint32_t n_steps[MOST_STAGES];
    uint32_t place[MOST_RANKS]; /* rank of (along, across, stage), along fastest */
    wl_trace trace;
    wl_trace_node node[MOST_RANKS * MOST_STEPS];
    wl_trace_rank rank[MOST_RANKS];
    wl_trace_group group[MOST_GROUPS];
    uint32_t member[2 * MOST_RANKS];
    uint32_t dep_first[MOST_RANKS * MOST_STEPS + 1], dep[2 * MOST_RANKS * MOST_STEPS];
    sim_astra astra;
} job;

static step *add_step(job *j, cs_rng *rng, uint32_t stage, uint8_t type)
{
    step *s = &j->step[stage][j->n_steps[stage]];
    const uint32_t before = j->n_steps[stage]++;

    *s = (step){.type = type};
    for (s->n_deps = 0; s->n_deps < 2 && before > 0 && cs_rng_below(rng, 3) > 0; s->n_deps++) {
        s->dep[s->n_deps] = (uint32_t)cs_rng_below(rng, before);
        if (s->n_deps == 1 && s->dep[0] == s->dep[1])
            break;
    }
    return s;
}

/* Values from a few, so that times tie, or from many. */
static int64_t draw(cs_rng *rng, bool tying, int64_t few, int64_t many)
{
    return (int64_t)cs_rng_below(rng, (uint64_t)(tying ? few : many));
}

static void add_world(job *j, cs_rng *rng)
{
    for (uint32_t s = 0; s < j->stages; s++)
        add_step(j, rng, s, WL_NODE_COLL)->bytes = 4096;
}

static void add_message(job *j, cs_rng *rng, bool tying)
{
    const uint32_t from = (uint32_t)cs_rng_below(rng, j->stages - 1);
    const bool forth = cs_rng_below(rng, 2) == 0;
    const int64_t tag = tying ? 0 : (int64_t)cs_rng_below(rng, 1000);
    const int64_t bytes = tag == 0 ? 500 : draw(rng, tying, 3, 100000);
    step *send = add_step(j, rng, forth ? from : from + 1, WL_NODE_SEND);
    step *receive = add_step(j, rng, forth ? from + 1 : from, WL_NODE_RECV);

    send->bytes = receive->bytes = bytes;
    send->tag = receive->tag = tag * 1000 + bytes;
    send->towards = forth ? 1 : -1;
    receive->towards = forth ? -1 : 1;
}

static void add_own(job *j, cs_rng *rng, bool tying)
{
    static const uint8_t comms[] = {WL_CHAKRA_ALL_REDUCE, WL_CHAKRA_ALL_GATHER,
                                    WL_CHAKRA_REDUCE_SCATTER, WL_CHAKRA_ALL_TO_ALL};
    const uint32_t stage = (uint32_t)cs_rng_below(rng, j->stages);
    const bool computes = cs_rng_below(rng, 2) == 0;
    step *s = add_step(j, rng, stage, computes ? WL_NODE_COMP : WL_NODE_COLL);

    s->ns = draw(rng, tying, 4, 100000);
    s->bytes = draw(rng, tying, 3, 100000);
    s->comm = comms[cs_rng_below(rng, CS_COUNT(comms))];
    s->scope = cs_rng_below(rng, 2) == 0 ? ACROSS : ALONG;
}

static void draw_program(job *j, cs_rng *rng)
{
    const bool tying = cs_rng_below(rng, 3) == 0;

    for (int i = 0; i < MOST_STEPS / 2; i++) {
        const uint64_t kind = cs_rng_below(rng, 8);
        if (kind == 0)
            add_world(j, rng);
        else if (kind <= 2 && j->stages > 1)
            add_message(j, rng, tying);
        else
            add_own(j, rng, tying);
    }
}

/* ---- the trace of it ---- */

static uint32_t at(const job *j, uint32_t a, uint32_t b, uint32_t stage)
{
    return j->place[a + j->along * (b + j->across * stage)];
}

/* Groups of stage s, along position b: 1 + b + across * s; across position a: behind those. */
static uint32_t group_of(const job *j, uint8_t scope, uint32_t a, uint32_t b, uint32_t stage)
{
    if (scope == WORLD)
        return WL_GROUP_WORLD;
    return scope == ALONG ? 1 + b + j->across * stage
                          : 1 + j->across * j->stages + a + j->along * stage;
}

static void make_groups(job *j)
{
    uint32_t *next = j->member;

    j->group[0] = (wl_trace_group){.name = ""};
    j->trace.n_groups = 1 + (j->across + j->along) * j->stages;
    for (uint32_t s = 0; s < j->stages; s++) {
        for (uint32_t b = 0; b < j->across; b++, next += j->along) {
            j->group[group_of(j, ALONG, 0, b, s)] = (wl_trace_group){"along", next, j->along, true};
            for (uint32_t a = 0; a < j->along; a++)
                next[a] = at(j, a, b, s);
        }
        for (uint32_t a = 0; a < j->along; a++, next += j->across) {
            j->group[group_of(j, ACROSS, a, 0, s)] =
                (wl_trace_group){"across", next, j->across, true};
            for (uint32_t b = 0; b < j->across; b++)
                next[b] = at(j, a, b, s);
        }
    }
}

static void make_node(job *j, const step *s, uint32_t i, uint32_t a, uint32_t b, uint32_t stage)
{
    wl_trace_node *node = &j->node[i];

    *node = (wl_trace_node){.duration_ps = s->type == WL_NODE_COMP ? s->ns * 1000 : 0,
                            .num_ops = WL_ABSENT,
                            .tensor_size = WL_ABSENT,
                            .comm_size = s->type == WL_NODE_COMP ? WL_ABSENT : s->bytes,
                            .tag = s->tag,
                            .type = s->type,
                            .comm = s->comm};
    if (s->type == WL_NODE_COLL)
        node->group = (int32_t)group_of(j, s->scope, a, b, stage);
    if (s->towards != 0)
        node->src = node->dst = (int32_t)at(j, a, b, (uint32_t)((int32_t)stage + s->towards));
}

static void make_rank(job *j, uint32_t a, uint32_t b, uint32_t stage)
{
    const uint32_t n = j->n_steps[stage], rank = at(j, a, b, stage);
    const uint32_t first = j->rank[rank].first;
    uint32_t n_deps = j->dep_first[first];

    for (uint32_t k = 0; k < n; k++) {
        const step *s = &j->step[stage][k];
        make_node(j, s, first + k, a, b, stage);
        j->node[first + k].id = 1000 * rank + k;
        j->dep_first[first + k] = n_deps;
        for (uint32_t d = 0; d < s->n_deps; d++)
            j->dep[n_deps++] = first + s->dep[d];
    }
    j->dep_first[first + n] = n_deps;
}

static uint32_t stage_of(const job *j, uint32_t rank)
{
    for (uint32_t k = 0; k < j->ranks; k++)
        if (j->place[k] == rank)
            return k / (j->along * j->across);
    return 0;
}

static void make_trace(job *j)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < j->ranks; r++) {
        const uint32_t length = j->n_steps[stage_of(j, r)];
        j->rank[r] = (wl_trace_rank){.rank = r, .first = n, .n = length};
        n += length;
    }
    make_groups(j);
    for (uint32_t r = 0; r < j->ranks; r++) /* ascending, so that dependencies follow each other */
        for (uint32_t k = 0; k < j->ranks; k++)
            if (j->place[k] == r)
                make_rank(j, k % j->along, k / j->along % j->across, k / (j->along * j->across));
    j->trace.job_ranks = j->trace.n_ranks = j->ranks;
    j->trace.rank = j->rank;
    j->trace.node = j->node;
    j->trace.n_nodes = n;
    j->trace.dep_first = j->dep_first;
    j->trace.dep = j->dep;
    j->trace.group = j->group;
    j->trace.names = node_names;
    j->trace.n_names = 1;
}

static void make_machine(job *j, cs_rng *rng)
{
    static const int32_t topologies[] = {SIM_RING, SIM_FULLY_CONNECTED, SIM_SWITCH};
    const int64_t n[] = {j->along, j->across, j->stages};
    sim_astra_network *net = &j->astra.network;

    j->astra = (sim_astra){.network = {.n_dims = 3, .npus = j->ranks},
                           .system = {.n_algorithms = {3, 3, 3, 3},
                                      .splits = 1 + (int64_t)cs_rng_below(rng, 3),
                                      .active_chunks = 1,
                                      .queues_per_dim = 1,
                                      .endpoint_delay_ns = 10}};
    for (size_t d = 0; d < 3; d++)
        net->dim[d] = (sim_astra_dim){topologies[cs_rng_below(rng, 3)], n[d],
                                      (double)(1 + cs_rng_below(rng, 4)), (double)(50 * d)};
}

/* Another order of the ranks, or one node that differs. */
static void disturb(job *j, cs_rng *rng)
{
    const uint64_t kind = cs_rng_below(rng, 4);

    for (uint32_t k = 0; k < j->ranks; k++)
        j->place[k] = k;
    for (uint32_t k = j->ranks; kind == 0 && k > 1; k--) {
        const uint32_t other = (uint32_t)cs_rng_below(rng, k), kept = j->place[k - 1];
        j->place[k - 1] = j->place[other];
        j->place[other] = kept;
    }
    make_trace(j);
    if (kind == 1)
        j->node[cs_rng_below(rng, j->trace.n_nodes)].duration_ps += 7000;
    if (kind == 2)
        j->node[cs_rng_below(rng, j->trace.n_nodes)].comm_size += 1;
}

static void draw_job(job *j, cs_rng *rng)
{
    *j = (job){.stages = 1 + (uint32_t)cs_rng_below(rng, MOST_STAGES),
               .across = 2 + (uint32_t)cs_rng_below(rng, 3),
               .along = 2 + (uint32_t)cs_rng_below(rng, 2)};
    j->ranks = j->stages * j->across * j->along;
    make_machine(j, rng);
    draw_program(j, rng);
    disturb(j, rng);
}

/* ---- the comparison ---- */

static void check_same(const sim_cluster_result *a, const sim_cluster_result *b)
{
    assert_int_equal(a->n_ranks, b->n_ranks);
    assert_memory_equal(a->rank, b->rank, a->n_ranks * sizeof *a->rank);
    assert_int_equal(a->max_ns, b->max_ns);
    assert_int_equal(a->min_ns, b->min_ns);
    assert_int_equal(a->max_exposed_ns, b->max_exposed_ns);
    assert_true(a->bytes_moved == b->bytes_moved);
    assert_int_equal(a->collectives, b->collectives);
    assert_int_equal(a->messages, b->messages);
    assert_int_equal(a->unreceived, b->unreceived);
}

/* Runs the job both ways; ranks that the first had to simulate, 0 when it fails. */
static uint32_t run_both(const job *j)
{
    const sim_cluster_options folded = {.astra = &j->astra};
    const sim_cluster_options all = {.astra = &j->astra, .every_rank = true};
    sim_cluster_result a, b;
    cs_error a_err = {.text = ""}, b_err = {.text = ""};
    const cs_status status = sim_cluster_run(&j->trace, &folded, &a, &a_err);
    uint32_t simulated;

    assert_int_equal(status, sim_cluster_run(&j->trace, &all, &b, &b_err));
    assert_string_equal(a_err.text, b_err.text);
    simulated = status == CS_OK ? a.n_simulated : 0;
    if (status == CS_OK) {
        assert_int_equal(b.n_simulated, b.n_ranks);
        check_same(&a, &b);
    }
    sim_cluster_result_fini(&a);
    sim_cluster_result_fini(&b);
    return simulated;
}

static void test_a_fold_changes_nothing(void **state)
{
    enum { JOBS = 3000 };
    job *j = malloc(sizeof *j);
    cs_rng *rng = cs_rng_create(7, 0, 0);
    int folded = 0;

    (void)state;
    assert_non_null(j);
    assert_non_null(rng);
    for (int i = 0; i < JOBS; i++) {
        uint32_t simulated;
        draw_job(j, rng);
        simulated = run_both(j);
        folded += simulated > 0 && simulated < j->ranks;
    }
    assert_true(folded > JOBS / 5);
    cs_rng_destroy(rng);
    free(j);
}

/* Traces of others: those whose ranks are alike are folded, the schedules are not. */
static void test_a_fold_changes_nothing_in_real_traces(void **state)
{
    static const struct {
        const char *prefix;
        int64_t ranks;
        uint32_t simulated;
    } cases[] = {
        {CHAKRA "micro/all_reduce_8", 8, 1},          {CHAKRA "micro/reduce_scatter_16", 16, 1},
        {CHAKRA "transformer/gpt_tp4", 4, 1},         {CHAKRA "transformer/fsdp4", 4, 1},
        {CHAKRA "transformer/dense_dp2tp2pp2", 8, 2}, {CHAKRA "p2p/pp4", 4, 4},
        {CHAKRA "custom/ring_allreduce_8", 8, 8},     {CHAKRA "tacos/mesh_4x4_c1", 16, 16}};
    job *j = calloc(1, sizeof *j);

    (void)state;
    assert_non_null(j);
    if (access(CHAKRA, R_OK) != 0) {
        free(j);
        print_message("skipped: %zu traces of " CHAKRA "\n", CS_COUNT(cases));
        skip();
    }
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        const wl_trace_options load = {.ctrl = WL_CTRL_AUTO};
        wl_trace *trace = NULL;
        cs_error err;
        if (wl_trace_load(cases[i].prefix, &load, &trace, &err) != CS_OK)
            fail_msg("%s", err.text);
        j->trace = *trace;
        j->astra =
            (sim_astra){.network = {1, cases[i].ranks, {{SIM_RING, cases[i].ranks, 50, 500}}},
                        .system = {.n_algorithms = {1, 1, 1, 1},
                                   .splits = 4,
                                   .active_chunks = 1,
                                   .queues_per_dim = 1,
                                   .endpoint_delay_ns = 10,
                                   .roofline = true,
                                   .peak_flops = 1e13,
                                   .local_mem_bytes_per_s = 1e12}};
        assert_int_equal(run_both(j), cases[i].simulated);
        wl_trace_destroy(trace);
    }
    free(j);
}

/* Two ranks that do the same stand for one; a slow one among them does not. */
static void test_a_slow_rank_is_not_folded(void **state)
{
    static const spec specs[] = {
        {COMP(0, 1, 100)}, {COMP(1, 1, 100)}, {COMP(2, 1, 100)}, {COMP(3, 1, 100)}};
    built b;
    const sim_astra astra = {.network = {1, 4, {{SIM_RING, 4, 1, 0}}},
                             .system = {.splits = 1, .active_chunks = 1, .queues_per_dim = 1}};
    sim_cluster_options options = {.astra = &astra};
    sim_cluster_result r;

    (void)state;
    assert_int_equal(sim_cluster_run(build(&b, specs, 4, 4), &options, &r, NULL), CS_OK);
    assert_int_equal(r.n_simulated, 1);
    assert_int_equal(r.min_ns, 100);
    sim_cluster_result_fini(&r);
    options.slow_rank = 2;
    options.slow_factor = 3;
    assert_int_equal(sim_cluster_run(&b.trace, &options, &r, NULL), CS_OK);
    assert_int_equal(r.n_simulated, 2);
    assert_int_equal(r.rank[2].total_ns, 300);
    assert_int_equal(r.rank[3].total_ns, 100);
    sim_cluster_result_fini(&r);
}

/* Of two ranks that do the same, the one that comes last is told of the collective's end before its
 * compute node's, which ends at the same 230 ns; the other after.  So one issues the collective
 * that follows the collective (20), the other the one that follows the compute node (10), which
 * has the lower id: two ranks that look alike end apart, and must not be folded. */
static void test_ranks_that_a_tie_tells_apart_are_not_folded(void **state)
{
    static const spec specs[] = {
        {REDUCE(0, 1, 0, 200)},
        {COMP(0, 2, 230)},
        {REDUCE(0, 10, 0, 400), .n_deps = 1, .dep = {1}},
        {REDUCE(0, 20, 0, 400), .n_deps = 1, .dep = {0}},
        {COMP(0, 30, 1000), .n_deps = 1, .dep = {2}},
        {REDUCE(1, 1, 0, 200)},
        {COMP(1, 2, 230)},
        {REDUCE(1, 10, 0, 400), .n_deps = 1, .dep = {6}},
        {REDUCE(1, 20, 0, 400), .n_deps = 1, .dep = {5}},
        {COMP(1, 30, 1000), .n_deps = 1, .dep = {7}},
    };
    built b;
    const sim_astra astra = {.network = {1, 2, {{SIM_RING, 2, 1e9 / 1073741824.0, 0}}},
                             .system = {.n_algorithms = {1, 1, 1, 1},
                                        .splits = 1,
                                        .active_chunks = 1,
                                        .queues_per_dim = 1,
                                        .endpoint_delay_ns = 10}};
    const sim_cluster_options options = {.astra = &astra};
    sim_cluster_result r;

    (void)state;
    assert_int_equal(sim_cluster_run(build(&b, specs, CS_COUNT(specs), 2), &options, &r, NULL),
                     CS_OK);
    assert_int_equal(r.n_simulated, 2);
    assert_true(r.rank[0].total_ns != r.rank[1].total_ns);
    sim_cluster_result_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fold_changes_nothing),
        cmocka_unit_test(test_a_fold_changes_nothing_in_real_traces),
        cmocka_unit_test(test_a_slow_rank_is_not_folded),
        cmocka_unit_test(test_ranks_that_a_tie_tells_apart_are_not_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
