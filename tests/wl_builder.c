/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A builder's programs are those of wl_program_build to the last digit, whatever it built before
 * and however little it may keep. */
#include "tests/wl_test.h"

static void items_equal(const wl_item *x, const wl_item *y)
{
    assert_int_equal(x->kind, y->kind);
    assert_int_equal(x->precision, y->precision);
    assert_int_equal(x->collective, y->collective);
    assert_int_equal(x->group, y->group);
    assert_int_equal(x->axis, y->axis);
    assert_int_equal(x->background, y->background);
    assert_int_equal(x->weight_gradient, y->weight_gradient);
    assert_int_equal(x->overlapped, y->overlapped);
    assert_int_equal(x->op, y->op);
    assert_int_equal(x->n_deps, y->n_deps);
    for (size_t i = 0; i < x->n_deps; i++)
        assert_int_equal(x->dep[i], y->dep[i]);
    assert_true(x->flops == y->flops && x->memory_bytes == y->memory_bytes);
    assert_true(x->m == y->m && x->n == y->n && x->k == y->k);
    assert_true(x->bytes == y->bytes && x->host_bytes == y->host_bytes);
    assert_true(x->part == y->part && x->part_stride == y->part_stride);
}

static void passes_equal(const wl_pass *x, const wl_pass *y)
{
    assert_int_equal(x->n, y->n);
    assert_int_equal(x->output, y->output);
    for (size_t i = 0; i < x->n; i++)
        items_equal(&x->item[i], &y->item[i]);
}

static void programs_equal(const wl_program *x, const wl_program *y, const wl_config *config)
{
    assert_int_equal(x->n_blocks, y->n_blocks);
    assert_int_equal(x->n_stages, y->n_stages);
    assert_memory_equal(&x->flops, &y->flops, sizeof x->flops);
    for (size_t b = 0; b < x->n_blocks; b++) {
        passes_equal(&x->block[b].forward, &y->block[b].forward);
        passes_equal(&x->block[b].backward, &y->block[b].backward);
        passes_equal(&x->block[b].backward_last, &y->block[b].backward_last);
    }
    for (size_t s = 0; s < x->n_stages; s++) {
        const wl_memory m = wl_stage_memory(x, config, s, 3), n = wl_stage_memory(y, config, s, 3);

        passes_equal(&x->stage[s].update, &y->stage[s].update);
        assert_true(m.total == n.total && m.transient == n.transient);
        assert_true(m.peak_block == n.peak_block && m.peak_pass == n.peak_pass);
    }
}

static int64_t power(cs_rng *rng, uint64_t most)
{
    return INT64_C(1) << cs_rng_below(rng, most + 1);
}

/* Anything goes; about half of what is drawn breaks a rule. */
static wl_config config_draw(cs_rng *rng)
{
    wl_config c = plain_config();

    c.dp = power(rng, 5);
    c.tp = power(rng, 4);
    c.sp = power(rng, 3);
    c.ep = power(rng, 2);
    c.pp = power(rng, 2);
    c.micro_batch = power(rng, 2);
    c.recompute_every = (int64_t)cs_rng_below(rng, 3) + 1;
    c.tp_sequence = (int32_t)cs_rng_below(rng, 2);
    c.sharding = (int32_t)cs_rng_below(rng, 4);
    c.recompute = (int32_t)cs_rng_below(rng, 3);
    c.precision = (int32_t)cs_rng_below(rng, 4);
    c.attention = (int32_t)cs_rng_below(rng, 2);
    c.cp_form = (int32_t)cs_rng_below(rng, 2);
    c.offload = (int32_t)cs_rng_below(rng, 4);
    return c;
}

static wl_workload workload_draw(const wl_model *model, cs_rng *rng)
{
    wl_workload workload = training(model, 512, 2048);

    workload.mode = (wl_mode)cs_rng_below(rng, 3);
    workload.context = 1024;
    workload.output = 64;
    return workload;
}

static size_t compare_draws(wl_builder *builder, const wl_model *model, cs_rng *rng, size_t draws)
{
    size_t built = 0;

    for (size_t i = 0; i < draws; i++) {
        const wl_config config = config_draw(rng);
        const wl_workload workload = workload_draw(model, rng);
        cs_arena *arena = cs_arena_create(0);
        wl_program *plain = NULL, *kept = NULL;
        cs_error one = {{0}}, other = {{0}};
        const cs_status status = wl_program_build(&workload, &config, arena, &plain, &one);

        assert_int_equal(wl_builder_build(builder, &workload, &config, arena, &kept, &other),
                         status);
        if (status == CS_OK)
            programs_equal(plain, kept, &config);
        assert_string_equal(one.text, other.text);
        built += status == CS_OK;
        cs_arena_destroy(arena);
    }
    return built;
}

static void test_builder_equals_plain_build(void **state)
{
    static const char *const models[] = {MODELS "gpt3-1.3b.yaml", MODELS "llama3-8b.yaml",
                                         MODELS "mixtral-8x7b.yaml", MODELS "deepseek-v3.yaml"};
    static const size_t limits[] = {4 << 20, 1 << 16, 0};

    (void)state;
    for (size_t k = 0; k < CS_COUNT(limits); k++) {
        wl_builder *builder = wl_builder_create(limits[k]);
        cs_rng *rng = cs_rng_create(11, k, 0);

        for (size_t m = 0; m < CS_COUNT(models); m++) {
            wl_model *model = model_load(models[m]); /* often where the one before lay */

            assert_in_range(compare_draws(builder, model, rng, 100), 30, 100);
            wl_model_destroy(model);
        }
        cs_rng_destroy(rng);
        wl_builder_destroy(builder);
    }
}

/* An arena without room fails a build and leaves the builder as good as before. */
static void test_builder_survives_a_failed_build(void **state)
{
    wl_model *model = model_load(MODELS "gpt3-1.3b.yaml");
    const wl_workload workload = training(model, 512, 2048);
    const wl_config config = plain_config();
    static const size_t limits[] = {64, 1024, 2048, 4096, 0}; /* bytes; 0: none */
    wl_builder *builder = wl_builder_create(1 << 20);
    wl_program *out = NULL;
    cs_error err;

    (void)state;
    for (size_t i = 0; i < CS_COUNT(limits); i++) {
        cs_arena *arena = cs_arena_create(limits[i]);
        const cs_status status = wl_builder_build(builder, &workload, &config, arena, &out, &err);

        assert_int_equal(status, limits[i] != 0 ? CS_ENOMEM : CS_OK);
        if (status == CS_OK)
            programs_equal(program_build(&workload, &config, arena), out, &config);
        cs_arena_destroy(arena);
    }
    wl_builder_destroy(builder);
    wl_builder_destroy(NULL);
    wl_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builder_equals_plain_build),
        cmocka_unit_test(test_builder_survives_a_failed_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
