/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/wl_test.h"

#include <ctype.h>

/* Published counts; active: parameters one token uses. */
static void test_parameters_are_exact(void **state)
{
    static const struct {
        const char *file;
        int64_t parameters, active, layers;
    } cases[] = {
        {"gpt3-175b.yaml", 174604259328, 174604259328, 96},
        {"llama3-8b.yaml", 8030261248, 8030261248, 32},
        {"llama3-70b.yaml", 70553706496, 70553706496, 80},
        {"llama3-405b.yaml", 405853388800, 405853388800, 126},
        {"llama2-7b.yaml", 6738415616, 6738415616, 32},
        {"mixtral-8x7b.yaml", 46702792704, 12879925248, 32},
        {"mixtral-8x22b.yaml", 140620634112, 39152031744, 56},
        {"deepseek-v3.yaml", 671026419200, 37552297472, 61},
        {"qwen3-235b-a22b.yaml", 235093634560, 22190763520, 94},
        {"bloom-176b.yaml", 176247271424, 176247271424, 70},
        {"vit-base-16.yaml", 86567656, 86567656, 12},
        {"vit-large-16.yaml", 304326632, 304326632, 24},
        {"megatron-22b.yaml", 22074273792, 22074273792, 48},
        {"megatron-530b.yaml", 529600819200, 529600819200, 105},
        {"megatron-1t.yaml", 1008038758400, 1008038758400, 128},
        /* 40 * (12 * 5120^2 + 13 * 5120) + (50257 + 2048 + 2) * 5120 */
        {"gpt3-13b.yaml", 12853386240, 12853386240, 40},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        char path[128];
        wl_model *model;
        wl_facts facts;

        (void)snprintf(path, sizeof path, MODELS "%s", cases[i].file);
        model = model_load(path);
        facts = wl_model_facts(model);
        print_message("%s\n", cases[i].file);
        assert_int_equal(facts.parameters, cases[i].parameters);
        assert_int_equal(facts.active_parameters, cases[i].active);
        assert_int_equal(facts.layers, cases[i].layers);
        wl_model_destroy(model);
    }
}

/* The same counts from config.json, keys as the published files have them; GPT-2 small 124,439,808,
 * GPT-NeoX-20B 20,554,567,680, Qwen2-7B 7,615,616,512, DeepSeek-V2-Lite 15,706,484,224. */
static void test_config_json_gives_the_same_counts(void **state)
{
    static const struct {
        int64_t parameters;
        const char *text;
    } cases[] = {
        {8030261248, "{\"model_type\": \"llama\", \"num_hidden_layers\": 32, \"hidden_size\": 4096,"
                     "\"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
                     "\"intermediate_size\": 14336, \"vocab_size\": 128256,"
                     "\"rope_scaling\": {\"factor\": 8.0}, \"tie_word_embeddings\": false}"},
        {46702792704, "{\"model_type\": \"mixtral\", \"num_hidden_layers\": 32,"
                      "\"hidden_size\": 4096, \"num_attention_heads\": 32,"
                      "\"num_key_value_heads\": 8, \"intermediate_size\": 14336,"
                      "\"vocab_size\": 32000, \"num_local_experts\": 8,"
                      "\"num_experts_per_tok\": 2, \"sliding_window\": null}"},
        {124439808, "{\"model_type\": \"gpt2\", \"n_layer\": 12, \"n_embd\": 768, \"n_head\": 12,"
                    "\"n_positions\": 1024, \"n_inner\": null, \"vocab_size\": 50257}"},
        {20554567680, "{\"model_type\": \"gpt_neox\", \"num_hidden_layers\": 44,"
                      "\"hidden_size\": 6144, \"num_attention_heads\": 64,"
                      "\"intermediate_size\": 24576, \"vocab_size\": 50432,"
                      "\"tie_word_embeddings\": false}"},
        {7615616512, "{\"model_type\": \"qwen2\", \"num_hidden_layers\": 28, \"hidden_size\": 3584,"
                     "\"num_attention_heads\": 28, \"num_key_value_heads\": 4,"
                     "\"intermediate_size\": 18944, \"vocab_size\": 152064}"},
        {235093634560, "{\"model_type\": \"qwen3_moe\", \"num_hidden_layers\": 94,"
                       "\"hidden_size\": 4096, \"num_attention_heads\": 64,"
                       "\"num_key_value_heads\": 4, \"head_dim\": 128,"
                       "\"intermediate_size\": 12288, \"moe_intermediate_size\": 1536,"
                       "\"num_experts\": 128, \"num_experts_per_tok\": 8,"
                       "\"decoder_sparse_step\": 1, \"mlp_only_layers\": [],"
                       "\"vocab_size\": 151936}"},
        {671026419200, "{\"model_type\": \"deepseek_v3\", \"num_hidden_layers\": 61,"
                       "\"hidden_size\": 7168, \"num_attention_heads\": 128,"
                       "\"num_key_value_heads\": 128, \"intermediate_size\": 18432,"
                       "\"moe_intermediate_size\": 2048, \"n_routed_experts\": 256,"
                       "\"n_shared_experts\": 1, \"num_experts_per_tok\": 8,"
                       "\"first_k_dense_replace\": 3, \"moe_layer_freq\": 1,"
                       "\"vocab_size\": 129280, \"q_lora_rank\": 1536, \"kv_lora_rank\": 512,"
                       "\"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64,"
                       "\"v_head_dim\": 128}"},
        {15706484224, "{\"model_type\": \"deepseek_v2\", \"num_hidden_layers\": 27,"
                      "\"hidden_size\": 2048, \"num_attention_heads\": 16,"
                      "\"num_key_value_heads\": 16, \"intermediate_size\": 10944,"
                      "\"moe_intermediate_size\": 1408, \"n_routed_experts\": 64,"
                      "\"n_shared_experts\": 2, \"num_experts_per_tok\": 6,"
                      "\"first_k_dense_replace\": 1, \"moe_layer_freq\": 1,"
                      "\"vocab_size\": 102400, \"q_lora_rank\": null, \"kv_lora_rank\": 512,"
                      "\"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64,"
                      "\"v_head_dim\": 128}"},
        {176247271424, "{\"model_type\": \"bloom\", \"n_layer\": 70, \"hidden_size\": 14336,"
                       "\"n_head\": 112, \"vocab_size\": 250880}"},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        wl_model *model = model_parse(cases[i].text);

        assert_int_equal(wl_model_facts(model).parameters, cases[i].parameters);
        wl_model_destroy(model);
    }
}

/* A model file and a config.json of the same model give the same program. */
static void test_config_json_gives_the_same_program(void **state)
{
    wl_model *file = model_load(MODELS "llama3-8b.yaml");
    wl_model *config = model_parse(
        "{\"model_type\": \"llama\", \"num_hidden_layers\": 32, \"hidden_size\": 4096,"
        "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336,"
        "\"vocab_size\": 128256}");
    const wl_workload a = training(file, 16, 4096), b = training(config, 16, 4096);
    wl_config split = plain_config();
    cs_arena *arena = cs_arena_create(0);
    const wl_program *x, *y;

    (void)state;
    split.tp = 4;
    split.dp = 2;
    x = program_build(&a, &split, arena);
    y = program_build(&b, &split, arena);
    assert_true(x->flops.model_flops == y->flops.model_flops);
    assert_int_equal(x->block[1].backward.n, y->block[1].backward.n);
    assert_true(x->block[1].saved_bytes == y->block[1].saved_bytes);
    cs_arena_destroy(arena);
    wl_model_destroy(file);
    wl_model_destroy(config);
}

/* 6 * 2048 * (12 * 96 * 12288^2 + 50257 * 12288) + 12 * 96 * 2048^2 * 12288
 *   = 2,145,039,157,297,152 + 59,373,627,899,904 a sequence; without the embedding's own and with
 * the vocabulary unpadded. */
static void test_gpt3_flops(void **state)
{
    wl_model *model = model_load(MODELS "gpt3-175b.yaml");
    cs_arena *arena = cs_arena_create(0);
    wl_summary ops;
    cs_error err;
    double flops = 0.0, saved = 0.0;
    int64_t parameters = 0;

    (void)state;
    assert_int_equal(wl_model_summary(model, 1, 2048, arena, &ops, &err), CS_OK);
    for (size_t i = 0; i < ops.n; i++) {
        flops +=
            (double)ops.line[i].count * (ops.line[i].flops_forward + ops.line[i].flops_backward);
        saved += (double)ops.line[i].count * ops.line[i].flops_causal_saving;
        parameters += ops.line[i].count * ops.line[i].parameters;
    }
    assert_true(flops == 2204412785197056.0);
    assert_true(saved == 59373627899904.0 / 2);
    assert_int_equal(parameters, 174604259328);
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

/* By shape: Llama-3-70B and GPT3-175B again, and what cannot be. */
static void test_shape_gives_the_same_model(void **state)
{
    const wl_shape llama = {.layers = 80,
                            .hidden = 8192,
                            .heads = 64,
                            .kv_heads = 8,
                            .ffn = 28672,
                            .vocabulary = 128256,
                            .gated = true};
    const wl_shape gpt = {.layers = 96,
                          .hidden = 12288,
                          .heads = 96,
                          .vocabulary = 50257,
                          .positions = 2048,
                          .layer_norm = true,
                          .bias = true,
                          .tied = true};
    const wl_shape bad = {.layers = 40, .hidden = 5140, .heads = 24, .vocabulary = 50257};
    wl_model *model = NULL;
    cs_error err;

    (void)state;
    assert_int_equal(wl_model_from_shape(&llama, &model, &err), CS_OK);
    assert_int_equal(wl_model_facts(model).parameters, 70553706496);
    wl_model_destroy(model);
    assert_int_equal(wl_model_from_shape(&gpt, &model, &err), CS_OK);
    assert_int_equal(wl_model_facts(model).parameters, 174604259328);
    wl_model_destroy(model);
    assert_int_equal(wl_model_from_shape(&bad, &model, &err), CS_EINVAL);
    assert_string_equal(err.text, "hidden 5140 % heads 24 = 4");
}

static char *file_text(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 65536);

    assert_non_null(file);
    assert_non_null(text);
    (void)fread(text, 1, 65535, file);
    (void)fclose(file);
    return text;
}

/* Words with a meaning of their own; everything else in a model file is a name. */
static bool is_keyword(const char *word, size_t n)
{
    static const char *const words[] = {
        "model",      "name",      "dims",       "blocks",   "stack",           "role",
        "size",       "top_k",     "batch",      "sequence", "hidden",          "heads",
        "kv_heads",   "head_dim",  "ffn",        "none",     "vocabulary",      "experts",
        "capacity",   "input",     "data",       "ops",      "parameters",      "output",
        "einsum",     "kernel",    "in",         "shape",    "causal",          "cache",
        "true",       "tie",       "block",      "count",    "attention",       "rms_norm",
        "layer_norm", "add",       "position",   "router",   "cross_entropy",   "dispatch",
        "combine",    "embedding", "activation", "pool",     "gated_activation"};

    for (size_t i = 0; i < CS_COUNT(words); i++)
        if (strlen(words[i]) == n && memcmp(words[i], word, n) == 0)
            return true;
    return isdigit((unsigned char)*word) != 0;
}

static char *renamed(const char *text)
{
    char *out = calloc(1, 262144);
    size_t n = 0;

    assert_non_null(out);
    while (*text != 0) {
        size_t length = 0;

        if (*text == '#') /* comments stay */
            while (text[length] != '\n' && text[length] != 0)
                out[n++] = text[length++];
        else
            while (isalnum((unsigned char)text[length]) != 0 || text[length] == '_')
                length++;
        if (length == 0) {
            out[n++] = *text++;
            continue;
        }
        if (*text != '#') {
            if (!is_keyword(text, length))
                n += (size_t)sprintf(out + n, "zq");
            memcpy(out + n, text, length);
            n += length;
        }
        text += length;
    }
    return out;
}

static void assert_same_pass(const wl_pass *x, const wl_pass *y)
{
    assert_int_equal(x->n, y->n);
    assert_int_equal(x->output, y->output);
    for (size_t i = 0; i < x->n; i++) {
        const wl_item *a = &x->item[i], *b = &y->item[i];

        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->group, b->group);
        assert_int_equal(a->n_deps, b->n_deps);
        assert_true(a->flops == b->flops && a->memory_bytes == b->memory_bytes);
        assert_true(a->bytes == b->bytes && a->m == b->m && a->n == b->n && a->k == b->k);
    }
}

static void test_renaming_changes_no_digit(void **state)
{
    static const char *const files[] = {MODELS "gpt3-175b.yaml", MODELS "mixtral-8x7b.yaml",
                                        MODELS "deepseek-v3.yaml"};
    (void)state;
    for (size_t f = 0; f < CS_COUNT(files); f++) {
        char *text = file_text(files[f]), *other = renamed(text);
        wl_model *x = model_parse(text), *y = model_parse(other);
        const wl_workload a = training(x, 64, 2048), b = training(y, 64, 2048);
        cs_arena *arena = cs_arena_create(0);
        wl_config config = plain_config();
        const wl_program *p, *q;

        assert_string_not_equal(text, other);
        assert_null(strstr(other, "{name: n1,"));
        config.tp = 4;
        config.dp = 4;
        config.sp = 2;
        config.ep = f == 0 ? 1 : 2;
        config.tp_sequence = 1;
        p = program_build(&a, &config, arena);
        q = program_build(&b, &config, arena);
        assert_int_equal(p->n_blocks, q->n_blocks);
        for (size_t i = 0; i < p->n_blocks; i++) {
            assert_same_pass(&p->block[i].forward, &q->block[i].forward);
            assert_same_pass(&p->block[i].backward_last, &q->block[i].backward_last);
            assert_true(p->block[i].saved_bytes == q->block[i].saved_bytes);
            assert_true(p->block[i].backward_peak_bytes == q->block[i].backward_peak_bytes);
        }
        assert_true(memcmp(&p->flops, &q->flops, sizeof p->flops) == 0);
        assert_true(memcmp(&p->stage[0].memory, &q->stage[0].memory, sizeof p->stage[0].memory) ==
                    0);
        cs_arena_destroy(arena);
        wl_model_destroy(x);
        wl_model_destroy(y);
        free(text);
        free(other);
    }
}

#define SMALL_HEAD                                                                                 \
    "model: 1\nname: small\ndims:\n  b: {role: batch}\n  s: {role: sequence}\n"                    \
    "  d: {role: hidden, size: 64}\n  f: {role: ffn, size: 256}\nblocks:\n  layer:\n"              \
    "    input: {x: b s d}\n    parameters:\n      w1: d f\n      w2: f d\n"

/* Without the side branch (d x f and f x d, two layers, 8 sequences of 32) 2 * 2 GEMMs with
 * 3 * 2 * 8 * 32 * 64 * 256 FLOPs each are gone. */
static void test_deleting_operators_removes_their_share(void **state)
{
    wl_model *both =
        model_parse(SMALL_HEAD "      w3: d f\n      w4: f d\n    ops:\n"
                               "      - {name: u, einsum: \"b s d, d f -> b s f\", in: [x, w1]}\n"
                               "      - {name: y, einsum: \"b s f, f d -> b s d\", in: [u, w2]}\n"
                               "      - {name: p, einsum: \"b s d, d f -> b s f\", in: [x, w3]}\n"
                               "      - {name: q, einsum: \"b s f, f d -> b s d\", in: [p, w4]}\n"
                               "      - {name: r, kernel: add, in: [x, y, q]}\n"
                               "stack:\n  - {block: layer, count: 2}\n");
    wl_model *one =
        model_parse(SMALL_HEAD "    ops:\n"
                               "      - {name: u, einsum: \"b s d, d f -> b s f\", in: [x, w1]}\n"
                               "      - {name: y, einsum: \"b s f, f d -> b s d\", in: [u, w2]}\n"
                               "      - {name: r, kernel: add, in: [x, y]}\n"
                               "stack:\n  - {block: layer, count: 2}\n");
    const wl_workload a = training(both, 8, 32), b = training(one, 8, 32);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);
    int n;

    (void)state;
    assert_true(program_build(&a, &config, arena)->flops.model_flops -
                    program_build(&b, &config, arena)->flops.model_flops ==
                2.0 * 2 * 3 * 2 * 8 * 32 * 64 * 256);
    /* under tp both branches are partial sums: they are added before one all-reduce */
    config.tp = 4;
    assert_true(collective_bytes(&program_build(&a, &config, arena)->block[0].forward,
                                 WL_ALL_REDUCE, WL_GROUP(WL_TP), &n) == 32.0 * 64 * 2);
    assert_int_equal(n, 1);
    cs_arena_destroy(arena);
    wl_model_destroy(both);
    wl_model_destroy(one);
}

static void test_malformed_models_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {SMALL_HEAD "    ops:\n      - {name: u, einsum: \"b s d, f d -> b s f\", in: [x, w1]}\n"
                    "stack:\n  - {block: layer, count: 2}\n",
         "test.yaml:15:27: operator 'u': operand 2, 'w1', has dimensions 'd f', the einsum says "
         "'f d'"},
        {SMALL_HEAD "    ops:\n      - {name: u, einsum: \"b s d, d f -> b s g\", in: [x, w1]}\n"
                    "stack:\n  - {block: layer, count: 2}\n",
         "test.yaml:15:27: unknown dimension 'g'"},
        {SMALL_HEAD "    ops:\n      - {name: u, kernel: actvation, in: [x]}\n",
         "test.yaml:15:27: operator 'u': unknown kernel 'actvation'; did you mean 'activation'?"},
        {SMALL_HEAD "    ops:\n      - {name: u, kernel: activation, in: [y]}\n",
         "test.yaml:15:44: block 'layer' has no tensor 'y' before this operator"},
        {SMALL_HEAD "    ops:\n      - {name: u, einsum: \"b s d, d f -> b s f\", in: [x, w1]}\n"
                    "stack:\n  - {block: layer, count: 2}\n",
         "no operator uses the parameter 'w2'"},
        {SMALL_HEAD "    ops:\n      - {name: u, einsum: \"b s d, d f -> b s f\", in: [x, w1]}\n"
                    "      - {name: y, einsum: \"b s f, f d -> b s d\", in: [u, w2]}\n"
                    "stack:\n  - {block: layr, count: 2}\n",
         "did you mean 'layer'"},
        {"model: 1\nname: x\ndims:\n  b: {role: bach}\n", "test.yaml:4:13: "},
        {"model: 1\nname: x\ndims:\n  b: {role: batch, size: 4}\n",
         "the size of a batch dimension comes from the workload"},
        {"model: 1\nname: x\ndims:\n  x: {role: experts, size: 4}\n", "top_k"},
        {SMALL_HEAD "    ops:\n      - {name: u, einsum: \"b s d, d f -> b s f\", in: [x, w1]}\n"
                    "      - {name: y, einsum: \"b s f, f d -> b s d\", in: [u, w2]}\n"
                    "      - {name: z, kernel: activation, in: [u]}\n    output: y\n"
                    "stack:\n  - {block: layer, count: 2}\n",
         "nothing uses the result of 'z'"},
        {SMALL_HEAD "    ops:\n      - {name: u, einsum: \"b s d, d f\", in: [x, w1]}\n",
         "expected an einsum like"},
        {SMALL_HEAD "    ops:\n      - {name: u, einsum: \"b s d, d f -> b s f\", in: [w1, x]}\n",
         "activations stand before parameters"},
        {SMALL_HEAD "    ops:\n      - {name: u, kernel: gated_activation, in: [x]}\n",
         "kernel gated_activation takes 2 to 2 activations, got 1"},
        {SMALL_HEAD "    ops:\n      - {name: x, kernel: activation, in: [x]}\n",
         "the name 'x' is taken"},
        {SMALL_HEAD "    ops:\n      - {name: u, kernel: pool, in: [x]}\n", "shape"},
        {SMALL_HEAD "    ops:\n      - {name: u, in: [x]}\n", "either einsum or kernel"},
        {"model: 2\n", "test.yaml:1:8: "},
        {"", "test.yaml"},
        {"{\"model_type\": \"lama\"}", "llama"},
        {"{\"model_type\": \"llama\", \"num_hidden_layers\": 2}", "hidden_size"},
        {"{\"model_type\": \"llama\", \"num_hidden_layers\": -2}", "test.yaml:1:"},
        {"{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 100,"
         "\"num_attention_heads\": 8, \"vocab_size\": 10}",
         "hidden size 100 % heads 8 = 4"},
        {"{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 96,"
         "\"num_attention_heads\": 8, \"num_key_value_heads\": 3, \"vocab_size\": 10}",
         "8 heads, 3 key-value heads"},
        {"{\"model_type\": \"mixtral\", \"num_hidden_layers\": 2, \"hidden_size\": 96,"
         "\"num_attention_heads\": 8, \"vocab_size\": 10, \"num_local_experts\": 4,"
         "\"num_experts_per_tok\": 8}",
         "num_experts_per_tok is 8, expected 1 to the 4 experts"},
        {"{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 96,"
         "\"num_attention_heads\": 8, \"vocab_size\": 10, \"mlp_bias\": true}",
         "write a model file"},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        wl_model *model = NULL;
        cs_error err = {{0}};

        assert_int_not_equal(
            wl_model_parse(cases[i].text, strlen(cases[i].text), "test.yaml", &model, &err), CS_OK);
        assert_null(model);
        if (strstr(err.text, cases[i].message) == NULL)
            fail_msg("case %zu: '%s' lacks '%s'", i, err.text, cases[i].message);
    }
}

static void test_missing_file_is_told_apart(void **state)
{
    wl_model *model = NULL;
    cs_error err;

    (void)state;
    assert_int_equal(wl_model_load("configs/models/none.yaml", &model, &err), CS_ENOENT);
    wl_model_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters_are_exact),
        cmocka_unit_test(test_config_json_gives_the_same_counts),
        cmocka_unit_test(test_config_json_gives_the_same_program),
        cmocka_unit_test(test_gpt3_flops),
        cmocka_unit_test(test_shape_gives_the_same_model),
        cmocka_unit_test(test_renaming_changes_no_digit),
        cmocka_unit_test(test_deleting_operators_removes_their_share),
        cmocka_unit_test(test_malformed_models_are_refused_with_their_place),
        cmocka_unit_test(test_missing_file_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
