/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Memory against published formulas: Korthikanti et al. 2022 (activations, variant gpt-2022),
 * Rajbhandari et al. 2020 (state), Shazeer 2019 (cache of keys and values). */
#include "tests/wl_test.h"

#define GIB 1073741824.0

static const struct {
    const char *file;
    double h, a, layers;
    int64_t micro_batch, pp, v;
    double tp_alone, selective; /* GiB of the first stage with 1F1B, t = 8 */
} models[] = {{MODELS "megatron-22b.yaml", 6144, 64, 48, 4, 1, 1, 59.25, 9.56},
              {MODELS "gpt3-175b.yaml", 12288, 96, 96, 1, 8, 3, 51.75, 9.56},
              {MODELS "megatron-530b.yaml", 20480, 128, 105, 1, 35, 3, 86.13, 17.43},
              {MODELS "megatron-1t.yaml", 25600, 160, 128, 1, 64, 1, 131.25, 26.56}};

static wl_config gpt2022(size_t i)
{
    wl_config config = plain_config();

    config.attention = WL_ATTENTION_GPT2022;
    config.tp = 8;
    config.micro_batch = models[i].micro_batch;
    return config;
}

/* Equations 1, 2, 4 and 6 of the paper: the layer's saved bytes are the closed form. */
static void test_layer_activations_equal_the_paper(void **state)
{
    const double s = 2048, t = 8;

    (void)state;
    for (size_t i = 0; i < CS_COUNT(models); i++) {
        wl_model *model = model_load(models[i].file);
        const wl_workload workload = training(model, 1680, 2048);
        const double h = models[i].h, sbh = s * (double)models[i].micro_batch * h;
        const double scores = 5 * models[i].a * s / h;
        const struct {
            int32_t tp_sequence, recompute;
            double expect;
        } cases[] = {{0, WL_RECOMPUTE_NONE, sbh * (10 + 24 / t + scores / t)},
                     {1, WL_RECOMPUTE_NONE, sbh / t * (34 + scores)},
                     {1, WL_RECOMPUTE_SELECTIVE, sbh / t * 34},
                     {0, WL_RECOMPUTE_FULL, 2 * sbh}};

        for (size_t k = 0; k < CS_COUNT(cases); k++) {
            cs_arena *arena = cs_arena_create(0);
            wl_config config = gpt2022(i);

            config.tp_sequence = cases[k].tp_sequence;
            config.recompute = cases[k].recompute;
            assert_close(
                block_named(program_build(&workload, &config, arena), "layer")->saved_bytes,
                cases[k].expect, 1e-12);
            cs_arena_destroy(arena);
        }
        wl_model_destroy(model);
    }
}

static double first_stage(size_t i, const wl_workload *workload, bool selective, int64_t v)
{
    cs_arena *arena = cs_arena_create(0);
    wl_config config = gpt2022(i);
    const double p = (double)models[i].pp;
    double bytes;

    config.pp = models[i].pp;
    config.virtual_stages = v;
    if (selective) {
        config.tp_sequence = 1;
        config.recompute = WL_RECOMPUTE_SELECTIVE;
    }
    /* 1F1B holds p micro-batches there; interleaved p*v + p - 1 chunks */
    bytes = wl_stage_memory(program_build(workload, &config, arena), &config, 0,
                            v > 1 ? p * (double)v + p - 1 : p)
                .activations;
    cs_arena_destroy(arena);
    return bytes / GIB;
}

/* Totals of the paper's table 5 models; interleaving with v = 3 adds (p-1)/(p v). */
static void test_first_stage_totals_equal_the_paper(void **state)
{
    (void)state;
    for (size_t i = 0; i < CS_COUNT(models); i++) {
        wl_model *model = model_load(models[i].file);
        const wl_workload workload = training(model, 1680, 2048);

        assert_close(first_stage(i, &workload, false, 1), models[i].tp_alone, 1e-3);
        assert_close(first_stage(i, &workload, true, 1), models[i].selective, 1e-3);
        if (models[i].v > 1) {
            const double more =
                1 + ((double)models[i].pp - 1) / (double)(models[i].pp * models[i].v);

            assert_close(first_stage(i, &workload, false, models[i].v), models[i].tp_alone * more,
                         1e-3);
            assert_close(first_stage(i, &workload, true, models[i].v), models[i].selective * more,
                         1e-3);
        }
        wl_model_destroy(model);
    }
}

/* Llama-3-70B, dp 8, nothing sharded: 2 + 2 + 12 bytes a parameter and the vocabulary's padding,
 * 128,256 = 1,002 * 128. */
static void test_unsharded_state(void **state)
{
    wl_model *model = model_load(MODELS "llama3-70b.yaml");
    const wl_workload workload = training(model, 1024, 8192);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);
    wl_memory m;

    (void)state;
    config.dp = 8;
    m = wl_stage_memory(program_build(&workload, &config, arena), &config, 0, 1);
    assert_true(m.weights == 2 * 70553706496.0);
    assert_true(m.gradients == 2 * 70553706496.0);
    assert_true(m.optimizer == 12 * 70553706496.0);
    assert_true(m.activations > 0 && m.logits > 128256.0 * 8192 * 4);
    assert_close(m.total,
                 m.weights + m.gradients + m.optimizer + m.activations + m.gathered +
                     m.communication + m.logits + m.kv_cache + m.transient,
                 1e-15);
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

/* Recomputation lowers activations and touches no state; every k-th layer lies between. */
static void test_recompute_lowers_activations_only(void **state)
{
    wl_model *model = model_load(MODELS "llama3-70b.yaml");
    const wl_workload workload = training(model, 64, 8192);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);
    wl_memory m[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        config.recompute = i == 3 ? WL_RECOMPUTE_FULL : i;
        config.recompute_every = i == 3 ? 4 : 1;
        m[i] = wl_stage_memory(program_build(&workload, &config, arena), &config, 0, 1);
        assert_true(m[i].weights == m[0].weights && m[i].gradients == m[0].gradients &&
                    m[i].optimizer == m[0].optimizer && m[i].logits == m[0].logits);
    }
    assert_true(m[1].activations < m[0].activations && m[2].activations < m[1].activations);
    /* 20 of 80 layers keep their input alone */
    assert_close(m[3].activations, 0.75 * m[0].activations + 0.25 * m[2].activations, 1e-12);
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

/* Flash attention and bf16 keep, a token and layer of Llama-3-70B: two norm inputs and outputs 4 h;
 * q, attention's result h each; k, v 1,024 each; gate, up, product 3 f; fp32 statistic of 64
 * heads.  `selective` drops norm outputs 2 h and the product f. */
static void test_flash_activations_by_hand(void **state)
{
    wl_model *model = model_load(MODELS "llama3-70b.yaml");
    const wl_workload workload = training(model, 64, 8192);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);
    const double h = 8192, f = 28672, token = 2 * (6 * h + 2 * 1024 + 3 * f) + 4 * 64;

    (void)state;
    assert_true(block_named(program_build(&workload, &config, arena), "dense")->saved_bytes ==
                8192 * token);
    config.recompute = WL_RECOMPUTE_SELECTIVE;
    assert_true(block_named(program_build(&workload, &config, arena), "dense")->saved_bytes ==
                8192 * (token - 2 * (2 * h + f)));
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

/* Two gathered blocks, however many layers; all of them when they are not dropped. */
static void test_gathered_blocks(void **state)
{
    wl_model *model = model_load(MODELS "llama3-8b.yaml");
    const wl_workload workload = training(model, 64, 8192);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);
    const wl_program *p;
    const double layer = 2 * 4096.0 + 2 * 4096.0 * 4096 + 2 * 4096.0 * 1024 + 3 * 4096.0 * 14336;
    const double head = 128256.0 * 4096 + 4096;

    (void)state;
    config.dp = 8;
    config.sharding = WL_SHARD_WEIGHTS;
    p = program_build(&workload, &config, arena);
    /* the largest blocks are embedding and head */
    assert_true(wl_stage_memory(p, &config, 0, 1).gathered == 2 * 2 * head);
    assert_true(block_named(p, "dense")->gathered_bytes == 2 * layer);
    config.reshard = 0;
    assert_true(wl_stage_memory(p, &config, 0, 1).gathered == 2 * 8030261248.0);
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

/* 2 (K and V) * layers * kv_heads * head_dim * length * sequences * 2 bytes; tp 4 cuts the heads,
 * latent attention keeps 512 + 64 numbers a token and layer on every rank. */
static void test_cache_of_keys_and_values(void **state)
{
    static const struct {
        const char *file;
        int64_t tp;
        double per_token;
    } cases[] = {{MODELS "llama3-70b.yaml", 1, 2 * 80 * 8 * 128.0 * 2},
                 {MODELS "llama3-70b.yaml", 4, 2 * 80 * 8 * 128.0 * 2 / 4},
                 {MODELS "llama3-70b.yaml", 16, 2 * 80 * 128.0 * 2},
                 {MODELS "gpt3-175b.yaml", 8, 2 * 96 * 96 * 128.0 * 2 / 8},
                 {MODELS "deepseek-v3.yaml", 4, 61 * 576.0 * 2}};

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        wl_model *model = model_load(cases[i].file);
        cs_arena *arena = cs_arena_create(0);
        wl_config config = plain_config();
        wl_workload decode = {.model = model,
                              .mode = WL_DECODE,
                              .global_batch = 64,
                              .sequence = 1,
                              .context = 3000,
                              .output = 500};
        wl_workload prefill = {
            .model = model, .mode = WL_PREFILL, .global_batch = 64, .sequence = 3000};

        config.tp = cases[i].tp;
        config.dp = 2;
        config.micro_batch = 4;
        assert_true(
            wl_stage_memory(program_build(&decode, &config, arena), &config, 0, 1).kv_cache ==
            cases[i].per_token * 3500 * 32);
        assert_true(
            wl_stage_memory(program_build(&prefill, &config, arena), &config, 0, 1).kv_cache ==
            cases[i].per_token * 3000 * 32);
        cs_arena_destroy(arena);
        wl_model_destroy(model);
    }
}

/* Inference holds no gradients, optimizer or saved activations, and runs forward only: 2 FLOPs a
 * parameter but the table, logits of the last token alone, attention over the cache. */
static void test_inference_runs_forward_only(void **state)
{
    wl_model *model = model_load(MODELS "llama3-70b.yaml");
    cs_arena *arena = cs_arena_create(0);
    const wl_config config = plain_config();
    const wl_workload decode = {.model = model,
                                .mode = WL_DECODE,
                                .global_batch = 16,
                                .sequence = 1,
                                .context = 3000,
                                .output = 99};
    const wl_program *p = program_build(&decode, &config, arena);
    const wl_memory m = wl_stage_memory(p, &config, 0, 1);
    const double matrices = 70553706496.0 - 128256.0 * 8192 - 161 * 8192.0;

    (void)state;
    assert_true(m.gradients == 0 && m.optimizer == 0 && m.activations == 0 && m.logits == 0);
    assert_true(p->block[0].backward.n == 0 && p->stage[0].update.n == 0);
    /* mean context of 99 steps after 3,000 tokens, the new one included: 3,050 */
    assert_true(p->flops.model_flops == 16 * (2 * matrices + 80 * 4 * 8192.0 * 3050));
    assert_true(p->tokens == 16);
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

static double host_bytes(const wl_pass *pass)
{
    double bytes = 0.0;

    for (size_t i = 0; i < pass->n; i++)
        bytes += pass->item[i].host_bytes;
    return bytes;
}

/* Offload moves its part to the host and spreads its traffic over the block. */
static void test_offload_moves_its_part(void **state)
{
    wl_model *model = model_load(MODELS "llama3-8b.yaml");
    const wl_workload workload = training(model, 64, 8192);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);
    const double n = 8030261248.0;
    const double layer = 2 * 4096.0 + 2 * 4096.0 * 4096 + 2 * 4096.0 * 1024 + 3 * 4096.0 * 14336;
    const wl_program *p = program_build(&workload, &config, arena);
    const wl_memory none = wl_stage_memory(p, &config, 0, 1);

    (void)state;
    config.offload = WL_OFFLOAD_OPTIMIZER;
    p = program_build(&workload, &config, arena);
    assert_true(wl_stage_memory(p, &config, 0, 1).optimizer == 0);
    assert_true(p->stage[0].memory.offloaded == 12 * n);
    assert_true(p->stage[0].update.item[0].host_bytes == 24 * n);
    config.offload = WL_OFFLOAD_WEIGHTS;
    p = program_build(&workload, &config, arena);
    assert_true(wl_stage_memory(p, &config, 0, 1).weights == 0);
    assert_close(host_bytes(&p->block[1].forward), 2 * layer, 1e-12);
    config.offload = WL_OFFLOAD_ACTIVATIONS;
    p = program_build(&workload, &config, arena);
    assert_true(wl_stage_memory(p, &config, 0, 1).activations < none.activations / 10);
    assert_close(host_bytes(&p->block[1].backward), p->block[1].saved_bytes, 1e-12);
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

/* fp8: weights and operands of GEMMs in one byte, state and gradients as before. */
static void test_precisions(void **state)
{
    static const struct {
        int32_t precision, gradients_fp32;
        double weights, gradients, optimizer;
    } cases[] = {{WL_BF16, 0, 2, 2, 12},
                 {WL_BF16, 1, 2, 4, 12},
                 {WL_FP16, 0, 2, 2, 12},
                 {WL_FP32, 0, 4, 4, 8},
                 {WL_FP8, 0, 1, 2, 12}};
    wl_model *model = model_load(MODELS "llama3-8b.yaml");
    const wl_workload workload = training(model, 64, 8192);
    cs_arena *arena = cs_arena_create(0);
    const double n = 8030261248.0;

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        wl_config config = plain_config();
        wl_memory m;

        config.precision = cases[i].precision;
        config.gradients_fp32 = cases[i].gradients_fp32;
        m = wl_stage_memory(program_build(&workload, &config, arena), &config, 0, 1);
        assert_true(m.weights == cases[i].weights * n && m.gradients == cases[i].gradients * n &&
                    m.optimizer == cases[i].optimizer * n);
    }
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer_activations_equal_the_paper),
        cmocka_unit_test(test_first_stage_totals_equal_the_paper),
        cmocka_unit_test(test_unsharded_state),
        cmocka_unit_test(test_recompute_lowers_activations_only),
        cmocka_unit_test(test_flash_activations_by_hand),
        cmocka_unit_test(test_gathered_blocks),
        cmocka_unit_test(test_cache_of_keys_and_values),
        cmocka_unit_test(test_inference_runs_forward_only),
        cmocka_unit_test(test_offload_moves_its_part),
        cmocka_unit_test(test_precisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
