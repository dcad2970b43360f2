/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Architectures nobody thought of in C: a state-space model and a recommender from text alone. */
#include "tests/wl_test.h"

/* Mamba-2 2.7B (Dao and Gu 2024): 64 layers, d 2,560, 80 heads of 64, state 128, convolution of 4.
 */
static const char mamba[] =
    "model: 1\nname: mamba2-2.7b\ndims:\n"
    "  b: {role: batch}\n  s: {role: sequence}\n  d: {role: hidden, size: 2560}\n"
    "  h: {role: heads, size: 80}\n  e: {role: head_dim, size: 64}\n  n: {role: none, size: 128}\n"
    "  k: {role: none, size: 4}\n  v: {role: vocabulary, size: 50288}\n"
    "blocks:\n"
    "  embedding:\n    parameters: {table: v d}\n    ops:\n"
    "      - {name: x, kernel: embedding, in: [table], shape: \"b s d\"}\n"
    "  mixer:\n    input: {x: b s d}\n    parameters:\n"
    "      norm: d\n      w_z: d h e\n      w_x: d h e\n      w_b: d n\n      w_c: d n\n"
    "      w_dt: d h\n      conv_x: k h e\n      conv_x_bias: h e\n      conv_b: k n\n"
    "      conv_b_bias: n\n      conv_c: k n\n      conv_c_bias: n\n      decay: h\n"
    "      skip: h\n      dt_bias: h\n      gate_norm: h e\n      w_out: h e d\n"
    "    ops:\n"
    "      - {name: xn, kernel: rms_norm, in: [x, norm]}\n"
    "      - {name: z, einsum: \"b s d, d h e -> b s h e\", in: [xn, w_z]}\n"
    "      - {name: xs, einsum: \"b s d, d h e -> b s h e\", in: [xn, w_x]}\n"
    "      - {name: bs, einsum: \"b s d, d n -> b s n\", in: [xn, w_b]}\n"
    "      - {name: cs, einsum: \"b s d, d n -> b s n\", in: [xn, w_c]}\n"
    "      - {name: dt, einsum: \"b s d, d h -> b s h\", in: [xn, w_dt]}\n"
    "      - {name: xc, kernel: convolution, in: [xs, conv_x, conv_x_bias]}\n"
    "      - {name: bc, kernel: convolution, in: [bs, conv_b, conv_b_bias]}\n"
    "      - {name: cc, kernel: convolution, in: [cs, conv_c, conv_c_bias]}\n"
    "      - {name: y, kernel: scan, in: [xc, dt, bc, cc, decay, skip, dt_bias]}\n"
    "      - {name: g, kernel: gated_activation, in: [z, y]}\n"
    "      - {name: gn, kernel: rms_norm, in: [g, gate_norm]}\n"
    "      - {name: o, einsum: \"b s h e, h e d -> b s d\", in: [gn, w_out]}\n"
    "      - {name: r, kernel: add, in: [x, o]}\n"
    "  head:\n    input: {x: b s d}\n    parameters: {norm: d, table: {tie: embedding.table}}\n"
    "    ops:\n"
    "      - {name: xn, kernel: rms_norm, in: [x, norm]}\n"
    "      - {name: logits, einsum: \"b s d, v d -> b s v\", in: [xn, table]}\n"
    "      - {name: loss, kernel: cross_entropy, in: [logits]}\n"
    "stack: [embedding, {block: mixer, count: 64}, head]\n";

/* 64 * (2560 * (2*5120 + 2*128 + 80) + 5 * (5120 + 256) + 3*80 + 5120 + 5120*2560 + 2560)
 *   + 50288 * 2560 + 2560. */
static void test_state_space_model_from_text(void **state)
{
    wl_model *model = model_parse(mamba);
    const wl_workload workload = training(model, 64, 4096);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);
    const double matrices = 2560.0 * (2 * 5120 + 2 * 128 + 80) + 5120.0 * 2560, n = 64.0 * 4096;
    /* scan: decay-multiply-add and output multiply-add per element and state, backward twice */
    const double scan = 3 * 4.0 * 5120 * 128;
    const wl_program *p;
    int found;

    (void)state;
    assert_int_equal(wl_model_facts(model).parameters, 2702599680);
    p = program_build(&workload, &config, arena);
    assert_true(p->flops.model_flops == n * (64 * (6 * matrices + scan) + 6.0 * 50288 * 2560));
    /* heads over tp: the mixer's output is a partial sum, B and C are computed by every rank */
    config.tp = 4;
    p = program_build(&workload, &config, arena);
    assert_true(collective_bytes(&block_named(p, "mixer")->forward, WL_ALL_REDUCE, WL_GROUP(WL_TP),
                                 &found) == 4096.0 * 2560 * 2);
    assert_int_equal(found, 1);
    /* vocabulary: 50,288 padded to 50,688 = 99 * 512 */
    assert_true(p->flops.redundant_flops == n * (3 * 64 * 6.0 * 2 * 2560 * 128 + 6.0 * 400 * 2560));
    /* sequence over sp: the state of 80 * 64 * 128 numbers passes from rank to rank */
    config.tp = 1;
    config.sp = 4;
    p = program_build(&workload, &config, arena);
    assert_true(collective_bytes(&block_named(p, "mixer")->forward, WL_ALL_REDUCE, WL_GROUP(WL_SP),
                                 &found) == 4.0 * 80 * 64 * 128);
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

/* A recommender: 26 tables of 10^6 rows of 128, dense features through an MLP, pairwise products
 * of 27 vectors, an MLP on top. */
static const char dlrm[] =
    "model: 1\nname: dlrm\ndims:\n"
    "  b: {role: batch}\n  t: {role: none, size: 26}\n  v: {role: vocabulary, size: 1000000}\n"
    "  e: {role: none, size: 128}\n  i: {role: none, size: 13}\n  f: {role: ffn, size: 512}\n"
    "  p: {role: hidden, size: 351}\n  g: {role: ffn, size: 1024}\n  o: {role: none, size: 2}\n"
    "blocks:\n"
    "  features:\n    data: {dense: b i}\n"
    "    parameters: {tables: t v e, w1: i f, b1: f, w2: f e, b2: e}\n"
    "    ops:\n"
    "      - {name: rows, kernel: embedding, in: [tables], shape: \"b t e\"}\n"
    "      - {name: u, einsum: \"b i, i f -> b f\", in: [dense, w1]}\n"
    "      - {name: a, kernel: activation, in: [u, b1]}\n"
    "      - {name: y, einsum: \"b f, f e -> b e\", in: [a, w2]}\n"
    "      - {name: bottom, kernel: add, in: [y, b2]}\n"
    "      - {name: pairs, kernel: interaction, in: [rows, bottom], shape: \"b p\"}\n"
    "  top:\n    input: {x: b p}\n    parameters: {w1: p g, b1: g, w2: g p, b2: p}\n"
    "    ops:\n"
    "      - {name: u, einsum: \"b p, p g -> b g\", in: [x, w1]}\n"
    "      - {name: a, kernel: activation, in: [u, b1]}\n"
    "      - {name: y, einsum: \"b g, g p -> b p\", in: [a, w2]}\n"
    "      - {name: z, kernel: add, in: [y, b2]}\n"
    "  click:\n    input: {x: b p}\n    parameters: {w: p o, bias: o}\n"
    "    ops:\n"
    "      - {name: logits, einsum: \"b p, p o -> b o\", in: [x, w, bias]}\n"
    "      - {name: loss, kernel: cross_entropy, in: [logits]}\n"
    "stack: [features, {block: top, count: 3}, click]\n";

static void test_recommender_from_text(void **state)
{
    wl_model *model = model_parse(dlrm);
    const wl_workload workload = training(model, 4096, 1);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);
    const double b = 4096;
    const wl_program *p;
    int n;

    (void)state;
    assert_int_equal(wl_model_facts(model).parameters,
                     INT64_C(26) * 1000000 * 128 + 13 * 512 + 512 + 512 * 128 + 128 +
                         3 * (2 * 351 * 1024 + 1024 + 351) + 351 * 2 + 2);
    config.micro_batch = 512;
    config.dp = 2;
    p = program_build(&workload, &config, arena);
    /* data has no gradient: its first matrix costs twice, not three times, its product */
    assert_true(p->flops.model_flops ==
                b * (2 * 2.0 * 13 * 512 + 3 * 2.0 * 512 * 128 + 3 * 2.0 * 351 * 128 +
                     3 * 3 * 2 * 2.0 * 351 * 1024 + 3 * 2.0 * 351 * 2));
    /* rows of the tables over tp: the pooled vectors are summed, 512 * 26 * 128 a micro-batch */
    config.tp = 8;
    p = program_build(&workload, &config, arena);
    assert_true(collective_bytes(&block_named(p, "features")->forward, WL_ALL_REDUCE,
                                 WL_GROUP(WL_TP), &n) == 512.0 * (26 + 1) * 128 * 2);
    /* tables cut by 8, 10^6 rows padded to 1,000,448 = 977 * 1,024 */
    assert_close(p->stage[0].memory.weights, 2 * 26 * 128 * 1000448.0 / 8, 1e-2);
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

/* One attention for all precisions of one truth: the variant ViT has no causal mask, so nothing is
 * halved, and its 197 tokens are no multiple of 2. */
static void test_vision_transformer(void **state)
{
    wl_model *model = model_load(MODELS "vit-large-16.yaml");
    wl_workload workload = training(model, 64, 197);
    wl_config config = plain_config();
    cs_arena *arena = cs_arena_create(0);
    wl_program *none = NULL;
    const wl_program *p = program_build(&workload, &config, arena);
    cs_error err;

    (void)state;
    assert_true(p->flops.model_flops == p->flops.model_flops_causal);
    config.sp = 2;
    assert_int_equal(wl_program_build(&workload, &config, arena, &none, &err), CS_EINVAL);
    assert_string_equal(err.text, "sequence 197 % sp 2 = 1");
    workload.sequence = 256; /* padded */
    p = program_build(&workload, &config, arena);
    assert_true(p->flops.redundant_flops == 6.0 * 1024 * 1000 * 64); /* head on every sp rank */
    cs_arena_destroy(arena);
    wl_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state_space_model_from_text),
        cmocka_unit_test(test_recommender_from_text),
        cmocka_unit_test(test_vision_transformer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
