/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Damaged model files: each is refused with a message or becomes a program whose numbers are finite
 * and whose dependencies point backwards, whatever the split. */
#include "tests/wl_test.h"

enum { ROUNDS = 1500, MAX_TEXT = 65536, MAX_LINES = 512 };

static const char *const files[] = {MODELS "gpt3-13b.yaml", MODELS "mixtral-8x7b.yaml",
                                    MODELS "deepseek-v3.yaml", MODELS "vit-base-16.yaml"};

static size_t read_lines(const char *path, char *text, char **line)
{
    FILE *file = fopen(path, "r");
    size_t n = 0;
    char *at = text;

    assert_non_null(file);
    text[fread(text, 1, MAX_TEXT - 1, file)] = 0;
    (void)fclose(file);
    while (*at != 0 && n < MAX_LINES) {
        char *end = strchr(at, '\n');

        line[n++] = at;
        if (end == NULL)
            break;
        *end = 0;
        at = end + 1;
    }
    return n;
}

/* Drops, repeats or alters one line, or one digit of the file. */
static void damage(cs_rng *rng, char *const *line, size_t n, char *out)
{
    static const char letters[] = "bsdhefvxgc0123456789,{}:->\" ";
    const size_t hit = cs_rng_below(rng, n), how = cs_rng_below(rng, 6);
    char *const text = out;

    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(line[i]);
        char *copy = out;

        if (i == hit && how == 0)
            continue;
        if (i == hit && how == 1)
            out += sprintf(out, "%s\n", line[cs_rng_below(rng, n)]);
        out += sprintf(out, "%s\n", line[i]);
        if (i == hit && (how == 2 || how == 3) && length > 0)
            copy[cs_rng_below(rng, length)] = letters[cs_rng_below(rng, sizeof letters - 1)];
    }
    *out = 0;
    for (size_t tries = 0; how > 3 && tries < 1000; tries++) {
        char *at = &text[cs_rng_below(rng, (uint64_t)(out - text))];

        if (*at >= '0' && *at <= '9') {
            *at = letters[10 + cs_rng_below(rng, 10)];
            return;
        }
    }
}

static wl_config random_config(cs_rng *rng)
{
    wl_config c = plain_config();

    c.dp = 1 << cs_rng_below(rng, 4);
    c.tp = 1 << cs_rng_below(rng, 5);
    c.sp = 1 << cs_rng_below(rng, 3);
    c.ep = 1 << cs_rng_below(rng, 3);
    c.pp = 1 + (int64_t)cs_rng_below(rng, 5);
    c.virtual_stages = 1 + (int64_t)cs_rng_below(rng, 3);
    c.hsdp_shard = cs_rng_below(rng, 3) == 0 ? 2 : 0;
    c.recompute_every = (int64_t)cs_rng_below(rng, 4);
    c.capacity_factor = 1.0 + 0.25 * (double)cs_rng_below(rng, 3);
    c.tp_sequence = (int32_t)cs_rng_below(rng, 2);
    c.sharding = (int32_t)cs_rng_below(rng, 4);
    c.recompute = (int32_t)cs_rng_below(rng, 3);
    c.precision = (int32_t)cs_rng_below(rng, 4);
    c.attention = (int32_t)cs_rng_below(rng, 2);
    c.cp_form = (int32_t)cs_rng_below(rng, 2);
    c.cp_balanced = (int32_t)cs_rng_below(rng, 2);
    c.offload = (int32_t)cs_rng_below(rng, 4);
    return c;
}

static void check_pass(const wl_pass *pass)
{
    assert_true(pass->output < (int64_t)pass->n && pass->output >= WL_DEP_INPUT);
    for (size_t i = 0; i < pass->n; i++) {
        const wl_item *item = &pass->item[i];

        assert_true(isfinite(item->flops) && item->flops >= 0 && isfinite(item->memory_bytes) &&
                    item->memory_bytes >= 0 && isfinite(item->bytes) && item->bytes >= 0);
        for (size_t d = 0; d < item->n_deps; d++)
            assert_true(item->dep[d] < (int64_t)i && item->dep[d] >= WL_DEP_WEIGHTS);
    }
}

static void check_program(const wl_program *p, const wl_config *config)
{
    for (size_t b = 0; b < p->n_blocks; b++) {
        check_pass(&p->block[b].forward);
        check_pass(&p->block[b].backward);
        check_pass(&p->block[b].backward_last);
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        const double total = wl_stage_memory(p, config, s, 2).total;

        check_pass(&p->stage[s].update);
        assert_true(isfinite(total) && total >= 0);
    }
    assert_true(p->flops.redundant_flops >= -1e-9 * p->flops.hardware_flops);
}

static int try_model(cs_rng *rng, const wl_model *model)
{
    int built = 0;

    for (int i = 0; i < 4; i++) {
        const wl_config config = random_config(rng);
        const wl_workload workload = {.model = model,
                                      .mode = (wl_mode)cs_rng_below(rng, 3),
                                      .global_batch = 128,
                                      .sequence = 2048,
                                      .context = 100,
                                      .output = 10};
        cs_arena *arena = cs_arena_create(0);
        wl_program *program;
        cs_error err = {{0}};

        if (wl_program_build(&workload, &config, arena, &program, &err) == CS_OK) {
            check_program(program, &config);
            built++;
        } else {
            assert_true(err.text[0] != 0);
        }
        cs_arena_destroy(arena);
    }
    return built;
}

static void test_damaged_models_are_refused_or_sound(void **state)
{
    cs_rng *rng = cs_rng_create(7, 0, 0);
    char *text = malloc(MAX_TEXT), *damaged = malloc(2 * MAX_TEXT);
    char *line[MAX_LINES];
    int refused = 0, built = 0;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const size_t n = read_lines(files[cs_rng_below(rng, CS_COUNT(files))], text, line);
        wl_model *model = NULL;
        cs_error err = {{0}};

        damage(rng, line, n, damaged);
        if (wl_model_parse(damaged, strlen(damaged), "damaged.yaml", &model, &err) != CS_OK) {
            assert_non_null(strstr(err.text, "damaged.yaml:"));
            refused++;
            continue;
        }
        built += try_model(rng, model);
        wl_model_destroy(model);
    }
    print_message("%d refused, %d programs\n", refused, built);
    assert_true(refused > ROUNDS / 4 && built > ROUNDS / 8);
    cs_rng_destroy(rng);
    free(text);
    free(damaged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged_models_are_refused_or_sound)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
