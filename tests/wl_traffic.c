/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Bytes moved per axis against the closed form of each strategy. */
#include "tests/wl_test.h"

enum { FORWARD, BACKWARD, LAST };

/* One expected kind of traffic in one pass of a layer. */
typedef struct {
    int pass;
    wl_collective type;
    wl_group group;
    int n;
    double bytes; /* of all n together */
} traffic;

static void check_traffic(const wl_program *program, const char *block, const traffic *list,
                          size_t n)
{
    const wl_block *b = block_named(program, block);
    const wl_pass *pass[] = {&b->forward, &b->backward, &b->backward_last};

    for (size_t i = 0; i < n; i++) {
        int found;
        const double bytes =
            collective_bytes(pass[list[i].pass], list[i].type, list[i].group, &found);

        if (found != list[i].n || bytes != list[i].bytes)
            fail_msg("case %zu: %d of %.17g bytes, expected %d of %.17g", i, found, bytes,
                     list[i].n, list[i].bytes);
    }
}

#define TP   WL_GROUP(WL_TP)
#define SP   WL_GROUP(WL_SP)
#define EP   WL_GROUP(WL_EP)
#define DATA (wl_group)(WL_GROUP_DATA | WL_GROUP(WL_SP))

/* Llama-3-70B layer, micro-batch 1, sequence 8,192, hidden 8,192, bf16: bsh = 2^27 bytes. */
static const double bsh = 8192.0 * 8192 * 2;

typedef struct {
    wl_model *model;
    wl_workload workload;
    wl_config config;
    cs_arena *arena;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);

    f->model = model_load(MODELS "llama3-70b.yaml");
    f->workload = training(f->model, 64, 8192);
    f->config = plain_config();
    f->arena = cs_arena_create(0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;

    cs_arena_destroy(f->arena);
    wl_model_destroy(f->model);
    free(f);
    return 0;
}

/* Megatron: all-reduces after attention and MLP, forward and backward: 4 of b*s*h (Shoeybi et al.
 * 2019, figure 4). */
static void test_tensor_parallel_moves_four_all_reduces(void **state)
{
    fixture *f = *state;
    static const traffic list[] = {{FORWARD, WL_ALL_REDUCE, TP, 2, 2 * 8192.0 * 8192 * 2},
                                   {BACKWARD, WL_ALL_REDUCE, TP, 2, 2 * 8192.0 * 8192 * 2},
                                   {FORWARD, WL_ALL_GATHER, TP, 0, 0},
                                   {BACKWARD, WL_REDUCE_SCATTER, TP, 0, 0}};

    f->config.tp = 8;
    check_traffic(program_build(&f->workload, &f->config, f->arena), "dense", list, 4);
}

/* With tp_sequence each all-reduce becomes a reduce-scatter and an all-gather, and backward gathers
 * the two saved sharded inputs once more (Korthikanti et al. 2022, 4.2.2); norm weights are
 * replicated and see a part of the sequence: 2 h gradients, 2 bytes each. */
static void test_tp_sequence_moves_the_same_and_two_gathers(void **state)
{
    fixture *f = *state;
    const traffic list[] = {
        {FORWARD, WL_ALL_GATHER, TP, 2, 2 * bsh},  {FORWARD, WL_REDUCE_SCATTER, TP, 2, 2 * bsh},
        {BACKWARD, WL_ALL_GATHER, TP, 4, 4 * bsh}, {BACKWARD, WL_REDUCE_SCATTER, TP, 2, 2 * bsh},
        {BACKWARD, WL_ALL_REDUCE, TP, 0, 0},       {LAST, WL_ALL_REDUCE, TP, 1, 2 * 8192.0 * 2}};

    f->config.tp = 8;
    f->config.tp_sequence = 1;
    check_traffic(program_build(&f->workload, &f->config, f->arena), "dense", list, CS_COUNT(list));
}

/* 16 tp ranks share 8 K and V heads: pairs all-reduce the gradients of their two d * 128 matrices;
 * the rank's own attention parameters are 2 d^2/16 + 2 d 128. */
static void test_replicated_heads_reduce_over_replicas(void **state)
{
    fixture *f = *state;
    const wl_block *b;
    double bytes = 0.0;

    f->config.tp = 16;
    b = block_named(program_build(&f->workload, &f->config, f->arena), "dense");
    for (size_t i = 0; i < b->backward_last.n; i++)
        if (b->backward_last.item[i].part == 2 && b->backward_last.item[i].part_stride == 1)
            bytes += b->backward_last.item[i].bytes;
    assert_true(bytes == 2.0 * 8192 * 128 * 2);
}

/* Context parallelism: K and V of 8 heads of 128, gathered forward and backward, their gradients
 * reduce-scattered; in ring form the same bytes pass beside attention. */
static void test_context_parallel_moves_keys_and_values(void **state)
{
    fixture *f = *state;
    const double kv = 2 * 8192.0 * 8 * 128 * 2;
    const traffic gather[] = {{FORWARD, WL_ALL_GATHER, SP, 2, kv},
                              {BACKWARD, WL_ALL_GATHER, SP, 2, kv},
                              {BACKWARD, WL_REDUCE_SCATTER, SP, 2, kv}};
    const traffic ring[] = {{FORWARD, WL_ALL_GATHER, SP, 1, kv},
                            {BACKWARD, WL_ALL_GATHER, SP, 1, kv},
                            {BACKWARD, WL_REDUCE_SCATTER, SP, 1, kv}};
    const wl_block *b;

    f->config.sp = 4;
    check_traffic(program_build(&f->workload, &f->config, f->arena), "dense", gather, 3);
    f->config.cp_form = WL_CP_RING;
    check_traffic(program_build(&f->workload, &f->config, f->arena), "dense", ring, 3);
    b = block_named(program_build(&f->workload, &f->config, f->arena), "dense");
    for (size_t i = 0; i < b->forward.n; i++) /* attention itself waits for no exchange */
        for (size_t d = 0; b->forward.item[i].flops > 0 && b->forward.item[i].m <= 0 &&
                           d < b->forward.item[i].n_deps;
             d++)
            assert_true(b->forward.item[b->forward.item[i].dep[d]].kind == WL_COMPUTE);
}

/* Causal work of a contiguous quarter: the last rank has (2*4-1)/4 times the mean. */
static void test_contiguous_context_slows_the_last_rank(void **state)
{
    fixture *f = *state;
    double even = 0.0, uneven = 0.0;
    const wl_block *b;

    f->config.sp = 4;
    for (f->config.cp_balanced = 0; f->config.cp_balanced < 2; f->config.cp_balanced++) {
        b = block_named(program_build(&f->workload, &f->config, f->arena), "dense");
        for (size_t i = 0; i < b->forward.n; i++)
            if (b->forward.item[i].m <= 0.0)
                *(f->config.cp_balanced != 0 ? &even : &uneven) += b->forward.item[i].flops;
    }
    assert_true(uneven == even * 7 / 4);
}

/* Parameters of a layer: 4 norms and projections 2 d^2 + 2 d 1024, 3 d 28672. */
static const double layer = 2 * 8192.0 + 2 * 8192.0 * 8192 + 2 * 8192.0 * 1024 + 3 * 8192.0 * 28672;

/* ZeRO over 8 = dp 4 * sp 2 (Rajbhandari et al. 2020, table 1): all-reduce once; reduce-scatter
 * once and all-gather once; reduce-scatter every micro-batch; and gathers in every pass. */
static void test_sharding_moves_what_zero_says(void **state)
{
    fixture *f = *state;
    static const struct {
        int32_t sharding;
        wl_collective type;
        int every, last;
        size_t gathers;
        size_t update; /* items of the update pass */
    } cases[] = {{WL_SHARD_NONE, WL_ALL_REDUCE, 0, 1, 0, 1},
                 {WL_SHARD_OPTIMIZER, WL_REDUCE_SCATTER, 0, 1, 0, 2},
                 {WL_SHARD_GRADIENTS, WL_REDUCE_SCATTER, 1, 1, 0, 2},
                 {WL_SHARD_WEIGHTS, WL_REDUCE_SCATTER, 1, 1, 1, 1}};

    f->config.dp = 4;
    f->config.sp = 2;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        const wl_program *p;
        const wl_block *b;

        f->config.sharding = cases[i].sharding;
        p = program_build(&f->workload, &f->config, f->arena);
        b = block_named(p, "dense");
        {
            const traffic list[] = {
                {BACKWARD, cases[i].type, DATA, cases[i].every, cases[i].every * layer * 2},
                {LAST, cases[i].type, DATA, cases[i].last, layer * 2}};

            check_traffic(p, "dense", list, 2);
        }
        assert_int_equal(b->n_gathers, cases[i].gathers);
        assert_true(b->gathered_bytes == (cases[i].gathers > 0 ? layer * 2 : 0));
        assert_int_equal(p->stage[0].update.n, cases[i].update);
        if (cases[i].update > 1) /* all updated parameters, 80 layers, two tables, final norm */
            assert_true(p->stage[0].update.item[1].bytes ==
                        (80 * layer + 2 * 128256.0 * 8192 + 8192) * 2);
    }
}

/* Hybrid sharding: reduce-scatter inside 4 neighbours, the quarter all-reduced over the other 4
 * groups' members, 4 apart. */
static void test_hybrid_sharding_reduces_in_two_steps(void **state)
{
    fixture *f = *state;
    const wl_block *b;
    const wl_item *inner, *outer;

    f->config.dp = 16;
    f->config.sharding = WL_SHARD_WEIGHTS;
    f->config.hsdp_shard = 4;
    b = block_named(program_build(&f->workload, &f->config, f->arena), "dense");
    inner = &b->backward.item[b->backward.n - 2];
    outer = inner + 1;
    assert_int_equal(inner->collective, WL_REDUCE_SCATTER);
    assert_int_equal(inner->part, 4);
    assert_int_equal(inner->part_stride, 1);
    assert_true(inner->bytes == layer * 2);
    assert_int_equal(outer->collective, WL_ALL_REDUCE);
    assert_int_equal(outer->part, 4);
    assert_int_equal(outer->part_stride, 4);
    assert_true(outer->bytes == layer * 2 / 4);
    assert_int_equal(b->gather[0].part, 4);
}

/* Mixtral: a layer sends topk = 2 copies of its 2,048 tokens of 4,096 features out and back, and
 * their gradients likewise; dense gradients go over dp 8 (ep 4 * 2), experts' over the outer 2. */
static void test_expert_parallel_moves_tokens_twice_each_way(void **state)
{
    fixture *f = *state;
    wl_model *model = model_load(MODELS "mixtral-8x7b.yaml");
    const wl_workload workload = training(model, 64, 2048);
    const double sent = 2 * 2048.0 * 4096 * 2, d = 4096;
    const double dense = 2 * d + 2 * d * d + 2 * d * 1024 + d * 8, experts = 2 * 3 * d * 14336;
    const traffic list[] = {
        {FORWARD, WL_ALL_TO_ALL, EP, 2, 2 * sent},
        {BACKWARD, WL_ALL_TO_ALL, EP, 2, 2 * sent},
        {LAST, WL_ALL_REDUCE, DATA, 1, dense * 2},
        {LAST, WL_ALL_REDUCE, (wl_group)(WL_GROUP(WL_DP) | WL_GROUP(WL_SP)), 1, experts * 2}};

    f->config.dp = 8;
    f->config.ep = 4;
    check_traffic(program_build(&workload, &f->config, f->arena), "moe", list, 4);
    /* recomputation repeats forward's two, backward transposes the same two */
    f->config.recompute = WL_RECOMPUTE_FULL;
    {
        const traffic again[] = {{BACKWARD, WL_ALL_TO_ALL, EP, 4, 4 * sent}};

        check_traffic(program_build(&workload, &f->config, f->arena), "moe", again, 1);
    }
    wl_model_destroy(model);
}

/* Under tp without tp_sequence experts' partial sums travel through combine and meet the residual:
 * one all-reduce of b*s*d, as for a dense layer, plus the router's small one in backward. */
static void test_partial_sums_pass_through_combine(void **state)
{
    fixture *f = *state;
    wl_model *model = model_load(MODELS "deepseek-v3.yaml");
    const wl_workload workload = training(model, 64, 2048);
    const wl_block *b;
    int n;

    f->config.dp = f->config.ep = 8;
    f->config.tp = 4;
    b = block_named(program_build(&workload, &f->config, f->arena), "moe");
    /* attention, and shared with routed experts together */
    assert_true(collective_bytes(&b->forward, WL_ALL_REDUCE, TP, &n) == 2 * 2048.0 * 7168 * 2);
    assert_int_equal(n, 2);
    wl_model_destroy(model);
}

/* Vocabulary-parallel loss: the maximum, the sum and the target's logit, fp32, a token; never the
 * logits.  The embedding's partial rows are summed: b*s*h. */
static void test_vocabulary_parallel_moves_three_numbers_a_token(void **state)
{
    fixture *f = *state;
    const traffic head[] = {{FORWARD, WL_ALL_REDUCE, TP, 1, 8192 * 3 * 4.0},
                            {BACKWARD, WL_ALL_REDUCE, TP, 1, 8192.0 * 8192 * 2}};
    const traffic embedding[] = {{FORWARD, WL_ALL_REDUCE, TP, 1, 8192.0 * 8192 * 2},
                                 {BACKWARD, WL_ALL_REDUCE, TP, 0, 0}};

    f->config.tp = 8;
    check_traffic(program_build(&f->workload, &f->config, f->arena), "head", head, 2);
    check_traffic(program_build(&f->workload, &f->config, f->arena), "embedding", embedding, 2);
}

/* A boundary carries b*s/sp*h elements, /tp with tp_sequence. */
static void test_boundary_bytes(void **state)
{
    fixture *f = *state;

    f->config.pp = 4;
    f->config.tp = 8;
    f->config.sp = 2;
    f->config.micro_batch = 2;
    assert_true(program_build(&f->workload, &f->config, f->arena)->boundary_bytes == bsh);
    f->config.tp_sequence = 1;
    assert_true(program_build(&f->workload, &f->config, f->arena)->boundary_bytes == bsh / 8);
}

/* GPT-3's table (50,257 rows padded to 51,200 at tp 8) lives on the first and last of 4 stages. */
static void test_tied_table_is_reduced_between_first_and_last_stage(void **state)
{
    fixture *f = *state;
    wl_model *model = model_load(MODELS "gpt3-175b.yaml");
    const wl_workload workload = training(model, 64, 2048);
    const wl_program *p;

    f->config.pp = 4;
    f->config.tp = 8;
    p = program_build(&workload, &f->config, f->arena);
    for (size_t s = 0; s < 4; s++) {
        int n;
        const double bytes =
            collective_bytes(&p->stage[s].update, WL_ALL_REDUCE, WL_GROUP(WL_PP), &n);

        assert_int_equal(n, s == 0 || s == 3 ? 1 : 0);
        assert_true(bytes == (double)n * 51200 / 8 * 12288 * 2);
    }
    wl_model_destroy(model);
}

/* A gradient collective is issued before the weight gradients that hide it. */
static void test_dx_collective_is_issued_before_dw(void **state)
{
    fixture *f = *state;
    const wl_pass *pass;
    size_t seen = 0;

    f->config.tp = 8;
    pass = &block_named(program_build(&f->workload, &f->config, f->arena), "dense")->backward;
    for (size_t i = 0; i + 1 < pass->n; i++)
        if (pass->item[i].kind == WL_COMM) {
            assert_true(pass->item[i + 1].weight_gradient);
            for (size_t d = 0; d < pass->item[i + 1].n_deps; d++)
                assert_int_not_equal(pass->item[i + 1].dep[d], i);
            seen++;
        }
    assert_int_equal(seen, 2);
}

#define TRAFFIC_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRAFFIC_TEST(test_tensor_parallel_moves_four_all_reduces),
        TRAFFIC_TEST(test_tp_sequence_moves_the_same_and_two_gathers),
        TRAFFIC_TEST(test_replicated_heads_reduce_over_replicas),
        TRAFFIC_TEST(test_context_parallel_moves_keys_and_values),
        TRAFFIC_TEST(test_contiguous_context_slows_the_last_rank),
        TRAFFIC_TEST(test_sharding_moves_what_zero_says),
        TRAFFIC_TEST(test_hybrid_sharding_reduces_in_two_steps),
        TRAFFIC_TEST(test_expert_parallel_moves_tokens_twice_each_way),
        TRAFFIC_TEST(test_partial_sums_pass_through_combine),
        TRAFFIC_TEST(test_vocabulary_parallel_moves_three_numbers_a_token),
        TRAFFIC_TEST(test_boundary_bytes),
        TRAFFIC_TEST(test_tied_table_is_reduced_between_first_and_last_stage),
        TRAFFIC_TEST(test_dx_collective_is_issued_before_dw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
