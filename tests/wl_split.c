/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Conservation over all splits of 64 NPUs: FLOPs and bytes of state, against sums written down
 * from the model's shape. */
#include "tests/wl_test.h"

static int64_t micro_batches;

static double block_flops(const wl_block *block)
{
    return pass_flops(&block->forward) +
           pass_flops(&block->backward) * (double)(micro_batches - 1) / (double)micro_batches +
           pass_flops(&block->backward_last) / (double)micro_batches;
}

/* What the NPUs execute by their items, all micro-batches. */
static double executed(const wl_program *program, const wl_config *config)
{
    micro_batches = program->micro_batches;
    return sum_over_blocks(program, block_flops) * (double)micro_batches *
           (double)(config->dp * config->tp * config->sp);
}

typedef void (*split_fn)(const wl_workload *workload, const wl_config *config, bool valid,
                         cs_arena *arena);

/* Every (dp, tp, sp, pp) of product 64. */
static int for_all_splits(const wl_workload *workload, wl_config config, int64_t ep, split_fn fn)
{
    int n = 0;

    for (config.dp = 1; config.dp <= 64; config.dp *= 2)
        for (config.tp = 1; config.tp * config.dp <= 64; config.tp *= 2)
            for (config.sp = 1; config.sp * config.tp * config.dp <= 64; config.sp *= 2) {
                const wl_facts facts = wl_model_facts(workload->model);
                cs_arena *arena = cs_arena_create(0);

                config.pp = 64 / (config.dp * config.tp * config.sp);
                config.ep = ep;
                fn(workload, &config,
                   facts.heads % config.tp == 0 && facts.ffn % config.tp == 0 &&
                       facts.layers >= config.pp && config.dp % ep == 0,
                   arena);
                cs_arena_destroy(arena);
                n++;
            }
    return n;
}

/* GPT3-175B, 64 sequences of 2,048: a matmul per parameter and token, attention 4 s^2 h. */
enum { GPT_LAYERS = 96, GPT_D = 12288, GPT_V = 50257 };
static const double tokens = 64.0 * 2048;

static double padded(double vocabulary, double tp)
{
    return ceil(vocabulary / (128.0 * tp)) * 128.0 * tp;
}

static void gpt_flops(const wl_workload *w, const wl_config *c, bool valid, cs_arena *arena)
{
    const double d = GPT_D, scores = 4.0 * 2048 * d * tokens * GPT_LAYERS; /* forward, in full */
    const double layers = 2.0 * 12 * d * d * tokens * GPT_LAYERS;
    const double padding = 6.0 * (padded(GPT_V, (double)c->tp) - GPT_V) * d * tokens;
    const wl_program *p;
    double again;

    if (!valid) {
        wl_program *none;
        cs_error err;

        assert_int_equal(wl_program_build(w, c, arena, &none, &err), CS_EINVAL);
        return;
    }
    p = program_build(w, c, arena);
    assert_true(p->flops.model_flops == 64.0 * 2204412785197056.0);
    assert_true(p->flops.model_flops_causal == p->flops.model_flops - 1.5 * scores);
    assert_true(p->flops.flash_flops ==
                0.25 * scores); /* one of the two forward products, halved */
    again = c->recompute == WL_RECOMPUTE_FULL ? layers + 0.5 * scores : 0.0;
    assert_true(p->flops.recompute_flops == again + p->flops.flash_flops);
    assert_true(p->flops.redundant_flops == padding);
    assert_true(p->flops.hardware_flops ==
                p->flops.model_flops_causal + p->flops.recompute_flops + padding);
    assert_close(executed(p, c), p->flops.hardware_flops, 1e-15);
}

static void test_dense_flops_are_conserved(void **state)
{
    wl_model *model = model_load(MODELS "gpt3-175b.yaml");
    const wl_workload workload = training(model, 64, 2048);
    wl_config config = plain_config();

    (void)state;
    for (config.sharding = 0; config.sharding < 4; config.sharding++)
        for (config.recompute = 0; config.recompute < 3; config.recompute++)
            for (config.tp_sequence = 0; config.tp_sequence < 2; config.tp_sequence++)
                assert_int_equal(for_all_splits(&workload, config, 1, gpt_flops), 84);
    wl_model_destroy(model);
}

/* Mixtral 8x7B: 32 layers, d 4096, 32 heads, 8 K/V heads of 128, 8 experts of 14336, top 2,
 * vocabulary 32,000.  The router is computed by every tp rank unless the sequence is split there;
 * K and V projections are repeated where tp exceeds the 8 heads. */
static void moe_flops(const wl_workload *w, const wl_config *c, bool valid, cs_arena *arena)
{
    const double d = 4096, n = tokens, layers = 32, tp = (double)c->tp;
    const double router = 6.0 * d * 8 * n * layers * (c->tp_sequence != 0 ? 0.0 : tp - 1.0);
    const double kv = c->tp > 8 ? 6.0 * 2 * d * 1024 * n * layers * (tp / 8 - 1.0) : 0.0;
    const double logits = 6.0 * (padded(32000, tp) - 32000) * d * n;
    const double model =
        6.0 * n * (layers * (2 * d * d + 2 * d * 1024 + d * 8 + 2 * 3.0 * d * 14336) + 32000 * d);
    const double scores = 4.0 * 2048 * d * n * layers;
    const wl_program *p;

    if (!valid)
        return;
    p = program_build(w, c, arena);
    assert_true(p->flops.model_flops == model + 3.0 * scores);
    if (c->recompute == WL_RECOMPUTE_NONE)
        assert_true(p->flops.redundant_flops == router + kv + logits);
    else /* recomputation repeats the redundant third as well */
        assert_true(p->flops.redundant_flops == (router + kv) * 4 / 3 + logits);
    assert_close(executed(p, c), p->flops.hardware_flops, 1e-15);
}

static void test_expert_flops_are_conserved(void **state)
{
    wl_model *model = model_load(MODELS "mixtral-8x7b.yaml");
    const wl_workload workload = training(model, 64, 2048);
    wl_config config = plain_config();

    (void)state;
    for (int64_t ep = 1; ep <= 8; ep *= 2)
        for (config.sharding = 0; config.sharding < 4; config.sharding++)
            for (config.recompute = 0; config.recompute < 3; config.recompute += 2)
                for (config.tp_sequence = 0; config.tp_sequence < 2; config.tp_sequence++)
                    assert_int_equal(for_all_splits(&workload, config, ep, moe_flops), 84);
    wl_model_destroy(model);
}

/* A capacity factor of 1.25 computes a quarter more in the experts; imbalance slows the busiest NPU
 * and changes no sum. */
static void test_capacity_is_redundant_and_imbalance_is_not(void **state)
{
    wl_model *model = model_load(MODELS "mixtral-8x7b.yaml");
    const wl_workload workload = training(model, 64, 2048);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);
    const double experts = 6.0 * tokens * 32 * 2 * 3.0 * 4096 * 14336;
    double before, after;

    (void)state;
    config.dp = config.ep = 8;
    before = program_build(&workload, &config, arena)->flops.redundant_flops;
    config.capacity_factor = 1.25;
    after = program_build(&workload, &config, arena)->flops.redundant_flops;
    assert_true(after - before == 0.25 * experts);
    config.imbalance = 1.5;
    assert_close(program_build(&workload, &config, arena)->flops.redundant_flops, after, 1e-12);
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

/* Weights 2, gradients 2, optimizer 12 bytes.  Cut by tp: 12 d^2 + 7 d a layer and the table (twice
 * with pp > 1, it is tied); on every tp rank: 6 d a layer, positions, final norm 2 d. */
static void gpt_state(const wl_workload *w, const wl_config *c, bool valid, cs_arena *arena)
{
    const double d = GPT_D, tp = (double)c->tp, members = (double)(c->dp * c->sp);
    const double cut = GPT_LAYERS * (12 * d * d + 7 * d) + GPT_V * d * (c->pp > 1 ? 2 : 1);
    const double all = cut + tp * (GPT_LAYERS * 6 * d + 2048 * d + 2 * d);
    const double copies[] = {c->sharding >= WL_SHARD_WEIGHTS ? 1.0 : members,
                             c->sharding >= WL_SHARD_GRADIENTS ? 1.0 : members,
                             c->sharding >= WL_SHARD_OPTIMIZER ? 1.0 : members};
    const wl_program *p;
    double held = 0.0, padding = 0.0;

    if (!valid)
        return;
    p = program_build(w, c, arena);
    for (size_t s = 0; s < p->n_stages; s++) {
        const wl_static_memory *m = &p->stage[s].memory;

        held += (m->weights + m->gradients + m->optimizer) * members * tp;
        padding += m->padding * members * tp;
    }
    assert_close(held - padding, all * (2 * copies[0] + 2 * copies[1] + 12 * copies[2]), 1e-13);
    /* the padding is the vocabulary's and less than one element a member and block */
    assert_true(padding <= 16.0 * members * tp *
                               ((padded(GPT_V, tp) - GPT_V) * d / tp * (c->pp > 1 ? 2 : 1) + 99));
}

static void test_state_bytes_are_conserved(void **state)
{
    wl_model *model = model_load(MODELS "gpt3-175b.yaml");
    const wl_workload workload = training(model, 64, 2048);
    wl_config config = plain_config();

    (void)state;
    for (config.sharding = 0; config.sharding < 4; config.sharding++)
        assert_int_equal(for_all_splits(&workload, config, 1, gpt_state), 84);
    wl_model_destroy(model);
}

/* Experts' weights are cut by ep: 8 experts of 3 * 4096 * 14336 a layer. */
static void test_expert_memory_divides_by_ep(void **state)
{
    wl_model *model = model_load(MODELS "mixtral-8x7b.yaml");
    const wl_workload workload = training(model, 64, 2048);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);
    const double experts = 32.0 * 8 * 3 * 4096 * 14336;
    double whole;

    (void)state;
    config.dp = 8;
    whole = program_build(&workload, &config, arena)->stage[0].memory.weights;
    for (config.ep = 2; config.ep <= 8; config.ep *= 2)
        assert_true(program_build(&workload, &config, arena)->stage[0].memory.weights ==
                    whole - 2 * experts * (1.0 - 1.0 / (double)config.ep));
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

/* More sharding, tp or pp never holds more weights. */
static void test_weight_memory_never_rises(void **state)
{
    wl_model *model = model_load(MODELS "llama3-70b.yaml");
    const wl_workload workload = training(model, 64, 8192);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);

    (void)state;
    config.dp = 8;
    for (config.pp = 1; config.pp <= 8; config.pp *= 2) {
        double last = 1e300;

        for (config.tp = 1; config.tp <= 16; config.tp *= 2) {
            double before = 1e300;

            for (config.sharding = 0; config.sharding < 4; config.sharding++) {
                const wl_program *p = program_build(&workload, &config, arena);
                const wl_static_memory *m = &p->stage[0].memory;
                const double bytes = m->weights + m->gradients + m->optimizer;

                assert_true(bytes < before);
                before = bytes;
                if (config.sharding == 0) {
                    assert_true(m->weights < last);
                    last = m->weights;
                }
            }
        }
    }
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

/* 61 layers over 8 stages are 7 or 8 each, the extra ones in the middle, away from embedding and
 * logits. */
static void test_every_layer_has_a_stage(void **state)
{
    wl_model *model = model_load(MODELS "deepseek-v3.yaml");
    const wl_workload workload = training(model, 64, 2048);
    wl_config config = plain_config();

    (void)state;
    for (config.pp = 1; config.pp <= 61; config.pp++) {
        cs_arena *arena = cs_arena_create(0);
        const wl_program *p = program_build(&workload, &config, arena);
        int64_t total = 0, least = 1000, most = 0;

        for (size_t s = 0; s < p->n_stages; s++) {
            int64_t layers = 0;

            for (size_t i = 0; i < p->stage[s].n_segments[0]; i++)
                layers += p->stage[s].segment[0][i].count;
            total += layers;
            layers -= (s == 0) + (s + 1 == p->n_stages); /* embedding, head */
            least = layers < least ? layers : least;
            most = layers > most ? layers : most;
        }
        assert_int_equal(total, 61 + 2);
        assert_true(most - least <= 1);
        cs_arena_destroy(arena);
    }
    wl_model_destroy(model);
}

static void test_violations_are_told_at_once(void **state)
{
    wl_model *model = model_load(MODELS "llama3-70b.yaml");
    const wl_workload workload = training(model, 100, 8192);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);
    wl_program *program = NULL;
    cs_error err;

    (void)state;
    config.tp = 48;
    config.dp = 8;
    config.sp = 3;
    assert_int_equal(wl_program_build(&workload, &config, arena, &program, &err), CS_EINVAL);
    assert_string_equal(err.text, "heads 64 % tp 48 = 16\n"
                                  "ffn 28672 % tp 48 = 16\n"
                                  "global batch 100 % dp * micro_batch 8 = 4\n"
                                  "sequence 8192 % sp 3 = 2\n"
                                  "sequence 8192 % 2 * sp 6 = 2");
    config = plain_config();
    config.pp = 0;
    assert_int_equal(wl_program_build(&workload, &config, arena, &program, &err), CS_EINVAL);
    assert_non_null(strstr(err.text, "pp is 0"));
    assert_null(program);
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense_flops_are_conserved),
        cmocka_unit_test(test_expert_flops_are_conserved),
        cmocka_unit_test(test_capacity_is_redundant_and_imbalance_is_not),
        cmocka_unit_test(test_state_bytes_are_conserved),
        cmocka_unit_test(test_expert_memory_divides_by_ep),
        cmocka_unit_test(test_weight_memory_never_rises),
        cmocka_unit_test(test_every_layer_has_a_stage),
        cmocka_unit_test(test_violations_are_told_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
