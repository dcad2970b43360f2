/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Model files and shapes that make no model: each is refused, and the message says why. */
#include "tests/wl_test.h"

#define HEAD                                                                                       \
    "model: 1\nname: small\ndims:\n  b: {role: batch}\n  s: {role: sequence}\n"                    \
    "  d: {role: hidden, size: 64}\n  f: {role: ffn, size: 256}\nblocks:\n"
#define LAYER(input, parameters)                                                                   \
    HEAD "  layer:\n    " input "\n    parameters: {" parameters "}\n    ops:\n"
#define U     "      - {name: u, einsum: \"b s d, d f -> b s f\", in: [x, w1]}\n"
#define Y     "      - {name: y, einsum: \"b s f, f d -> b s d\", in: [u, w2]}\n"
#define PLAIN LAYER("input: {x: b s d}", "w1: d f, w2: f d")
#define STACK "stack: [{block: layer, count: 2}]\n"

static void assert_refused(const char *text, const char *message)
{
    wl_model *model = NULL;
    cs_error err = {{0}};

    assert_int_not_equal(wl_model_parse(text, strlen(text), "test.yaml", &model, &err), CS_OK);
    assert_null(model);
    if (strstr(err.text, message) == NULL)
        fail_msg("'%s' lacks '%s'", err.text, message);
}

static void test_blocks_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"model: 1\nname: x\ndims:\n  \"b s\": {role: batch}\n", "cannot name a dimension"},
        {LAYER("input: {x: b s d}", "x: d f") U STACK, "the name 'x' is taken in block 'layer'"},
        {LAYER("input: {x: b s d}", "w1: s f") U STACK,
         "a parameter cannot have the sequence dimension 's'"},
        {LAYER("input: {x: b s d, y: b s d}", "w1: d f") U STACK, "expected one input"},
        {LAYER("input: {x: b s d}", "w1: {tie: other.w}") U STACK,
         "no parameter 'other.w' in an earlier block"},
        {PLAIN "      []\n" STACK, "expected 1 to 96 operators"},
        {PLAIN U Y "    output: v\n" STACK, "block 'layer' has no operator 'v'"},
        {PLAIN U Y "stack: []\n", "expected 1 to 64 entries"},
        {PLAIN U Y "stack: [layer]\n", "expected a counted entry"},
        {PLAIN U Y "stack: [{block: layer, count: 2}, layer, {block: layer, count: 2}]\n",
         "counted blocks (layers) must stand together"},
        {PLAIN U Y "  wide:\n    input: {x: b s f}\n    ops:\n"
                   "      - {name: z, kernel: activation, in: [x]}\n"
                   "stack: [{block: layer, count: 2}, wide]\n",
         "the input of block 'wide' has other dimensions than the output of 'layer'"},
        {PLAIN U Y "  data:\n    data: {x: b s f}\n    ops:\n"
                   "      - {name: z, kernel: activation, in: [x]}\n"
                   "stack: [{block: layer, count: 2}, data]\n",
         "block 'data' has no input"},
        {LAYER("data: {x: b s d}", "w1: d f, w2: f d") U Y STACK,
         "a layer needs an input and an output: 'layer'"},
        {PLAIN U Y "  loss:\n    input: {x: b s d}\n    ops:\n"
                   "      - {name: z, kernel: cross_entropy, in: [x]}\n"
                   "stack: [{block: layer, count: 2}, loss, loss]\n",
         "block 'loss' follows the one with the loss"},
        {PLAIN U Y "stack: [{block: layer, count: 100000000}]\n", "test.yaml:"},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++)
        assert_refused(cases[i].text, cases[i].message);
}

static void test_operators_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        const char *op, *message;
    } cases[] = {
        {"{name: u, kernel: activation, in: []}", "expected 1 to 8 operands, got 0"},
        {"{name: u, einsum: \"b s d, d f, f d -> b s d\", in: [x, w1]}",
         "more einsum operands than in `in:`"},
        {"{name: u, einsum: \"b s d -> b s d\", in: [x]}",
         "an einsum has two operands, and a bias in `in:` at most"},
        {"{name: u, einsum: \"b s d, d f -> b s f\", in: [x, w1, w2]}",
         "the bias has a dimension that the result lacks"},
        {"{name: u, einsum: \"b s d, d e -> b s e\", in: [x, w1]}", "unknown dimension 'e'"},
        {"{name: u, einsum: \"b s d d, d f -> b s f\", in: [x, w1]}",
         "dimension 'd' twice in 'b s d d'"},
        {"{name: u, kernel: attention, in: [x, x, w1]}",
         "kernel attention takes 3 to 5 activations, got 2"},
        {"{name: u, kernel: embedding, in: [x], shape: \"b s d\"}", "embedding takes 0 to 0"},
        {"{name: u, kernel: attention, in: [x, x, x], cache: [x, x, x, x, x]}",
         "at most 4 cached tensors"},
        {"{name: u, kernel: activation, in: [xx]}", "did you mean 'x'?"},
    };
    char text[2048];

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        snprintf(text, sizeof text, "%s      - %s\n" STACK, PLAIN, cases[i].op);
        assert_refused(text, cases[i].message);
    }
}

static void test_shapes_that_make_no_transformer_are_refused(void **state)
{
    const wl_shape good = {.layers = 4,
                           .hidden = 64,
                           .heads = 8,
                           .vocabulary = 1000,
                           .experts = 4,
                           .top_k = 2,
                           .dense_layers = 1};
    struct {
        wl_shape shape;
        const char *message;
    } cases[] = {
        {good, "layers is 0, expected 1 to 1000000000"},
        {good, "ffn is -1, expected 0 to 1000000000"},
        {good, "top_k 5 of 4 experts"},
        {good, "4 dense layers of 4 leave no expert layer"},
        {good, "hidden 65 % heads 8 = 1"},
    };
    wl_model *model = NULL;
    cs_error err;

    (void)state;
    cases[0].shape.layers = 0;
    cases[1].shape.ffn = -1;
    cases[2].shape.top_k = 5;
    cases[3].shape.dense_layers = 4;
    cases[4].shape.hidden = 65;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        assert_int_equal(wl_model_from_shape(&cases[i].shape, &model, &err), CS_EINVAL);
        assert_string_equal(err.text, cases[i].message);
        assert_null(model);
    }
    assert_int_equal(wl_model_from_shape(&good, &model, &err), CS_OK);
    assert_int_equal(wl_model_facts(model).layers, 4);
    wl_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_that_do_not_fit_are_refused),
        cmocka_unit_test(test_operators_that_do_not_fit_are_refused),
        cmocka_unit_test(test_shapes_that_make_no_transformer_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
