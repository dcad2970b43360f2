/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The shortcuts of the engine on designs of the shipped PSA files: equal to the picosecond to the
 * run of every layer and micro-batch, operator by operator.  2,000 designs, of models cut to 8
 * layers and an eighth of the batch; CS_ROUNDS=n draws n from the files as they are (about a second
 * each). And the published memory of two interleaved runs, through the check that every design
 * passes. */
#include <unistd.h>

#include "tests/sim_design.h"

enum { ROUNDS = 2000 };

static char *read_file(const char *path)
{
    FILE *in = fopen(path, "r");
    char *text = calloc(1, 1 << 16);

    if (in == NULL || text == NULL)
        fail_msg("cannot read %s", path);
    (void)!fread(text, 1, (1 << 16) - 1, in);
    fclose(in);
    return text;
}

/* The text with its first `what` replaced; takes the text over. */
static char *replaced(char *text, const char *what, const char *by)
{
    char *at = strstr(text, what), *out = calloc(1, strlen(text) + strlen(by) + 1);

    if (at == NULL || out == NULL)
        fail_msg("no '%s'", what);
    memcpy(out, text, (size_t)(at - text));
    strcat(out, by);
    strcat(out, at + strlen(what));
    free(text);
    return out;
}

static const struct {
    const char *psa, *model, *layers, *batch, *cut_batch;
} sources[] = {
    {"gpt3-13b-system1", "gpt3-13b", "count: 40}", "global_batch: 2048", "global_batch: 256"},
    {"gpt3-175b-system2", "gpt3-175b", "count: 96}", "global_batch: 2048", "global_batch: 256"},
    {"gpt3-175b-system3", "gpt3-175b", "count: 96}", "global_batch: 2048", "global_batch: 256"},
    {"llama3-70b-h100", "llama3-70b", "count: 80}", "global_batch: 1024", "global_batch: 128"},
};

/* A problem with fewer layers and micro-batches: its model is written beside the temporary files.
 */
static void open_cut(design *d, size_t i)
{
    char path[200], name[] = "/tmp/cosmic-steady-XXXXXX";
    char *model, *psa;
    FILE *out = NULL;
    int file = mkstemp(name);

    snprintf(path, sizeof path, "configs/models/%s.yaml", sources[i].model);
    model = replaced(read_file(path), sources[i].layers, "count: 8}");
    snprintf(path, sizeof path, "configs/psa/%s.yaml", sources[i].psa);
    psa = replaced(read_file(path), sources[i].batch, sources[i].cut_batch);
    snprintf(path, sizeof path, "../models/%s.yaml", sources[i].model);
    psa = replaced(psa, path, name);
    if (file < 0 || (out = fdopen(file, "w")) == NULL)
        fail_msg("cannot write %s", name);
    fputs(model, out);
    fclose(out);
    design_open(d, psa);
    unlink(name);
    free(model);
    free(psa);
}

static void open_whole(design *d, size_t i)
{
    char path[200];
    char *psa;

    snprintf(path, sizeof path, "configs/psa/%s.yaml", sources[i].psa);
    psa = read_file(path);
    design_open(d, psa);
    free(psa);
}

/* Settings that no shipped PSA searches; kept where they break no rule. */
static void vary(design *d, cs_rng *rng)
{
    static const char *const settings[] = {
        "workload.schedule=zb_h1",      "workload.schedule=zb_h2",
        "workload.schedule=gpipe",      "workload.prefetch=0",
        "workload.prefetch=2",          "workload.prefetch=8",
        "workload.reshard=false",       "workload.tp_sequence=true",
        "workload.cp_form=ring",        "compute.tp_overlap=1",
        "workload.p2p_overlap=false",   "workload.overlap=false",
        "workload.slow_stage=1",        "compute.slow_factor=0.7",
        "network.slow_factor=0.5",      "workload.recompute_every=2",
        "collective.scheduling=fifo",   "collective.scheduling=themis",
        "compute.launch_overhead=1us",  "network.latency=3us",
        "workload.schedule=interleaved"};
    cs_error err;

    for (int i = 0; i < 3; i++) {
        sim_config before = d->config;
        const char *setting = settings[cs_rng_below(rng, CS_COUNT(settings))];
        if (psa_schema_assign(d->schema, setting, &d->config, &err) != CS_OK)
            fail_msg("%s: %s", setting, err.text);
        if (psa_schema_check(d->schema, &d->config, &err) != CS_OK)
            d->config = before;
    }
}

/* What a failure needs to be run again. */
static void print_design(const design *d)
{
    const psa_tables *t = psa_schema_tables(d->schema);

    for (size_t f = 0; f < t->n_fields; f++) {
        const char *at = (const char *)&d->config + t->fields[f].offset;
        size_t n = t->fields[f].per_dimension ? psa_schema_n_dims(d->schema) : 1;
        printf("%s", t->fields[f].path);
        for (size_t i = 0; i < n; i++) {
            if (t->fields[f].kind == PSA_INT)
                printf(" %lld", (long long)((const int64_t *)(const void *)at)[i]);
            else if (t->fields[f].kind == PSA_REAL)
                printf(" %.17g", ((const double *)(const void *)at)[i]);
            else
                printf(" %d", ((const int32_t *)(const void *)at)[i]);
        }
        printf("\n");
    }
}

static void compare(design *d, const char *psa, long at)
{
    sim_result fast = design_run(d), slow = design_unroll(d);

    if (memcmp(&fast, &slow, sizeof fast) == 0)
        return;
    print_design(d);
    fail_msg("%s, design %ld: %.15g s, hidden %.15g s; %.15g s, hidden %.15g s unrolled", psa, at,
             fast.latency_s, fast.hidden_s, slow.latency_s, slow.hidden_s);
}

static void test_shortcuts_equal_the_unrolled_run(void **state)
{
    const char *text = getenv("CS_ROUNDS");
    long rounds = (text != NULL ? atol(text) : ROUNDS) / (long)CS_COUNT(sources);
    cs_rng *rng = cs_rng_create(20, 21, 22);

    (void)state;
    for (size_t i = 0; i < CS_COUNT(sources); i++) {
        cs_error err = {""};
        psa_space *space;
        int32_t *point;
        design d;

        if (text != NULL)
            open_whole(&d, i);
        else
            open_cut(&d, i);
        if (psa_space_create(d.schema, &space, &err) != CS_OK)
            fail_msg("%s", err.text);
        point = calloc(psa_space_n_vars(space), sizeof *point);
        for (long k = 0; k < rounds; k++) {
            assert_int_equal(psa_space_sample(space, rng, point), CS_OK);
            psa_schema_baseline(d.schema, &d.config);
            psa_space_decode(space, point, &d.config);
            if (k % 2 == 1)
                vary(&d, rng);
            compare(&d, sources[i].psa, k);
        }
        free(point);
        psa_space_destroy(space);
        design_close(&d);
    }
    cs_rng_destroy(rng);
}

/* Korthikanti et al. 2022: activations of the first stage with v = 3 chunks a stage,
 * s b h (10 + 24/t + 5 a s/(h t)) L (1 + (p-1)/(p v)), and with sequence parallelism and selective
 * recomputation s b h 34/t instead.  175B: 2,048 * 12,288 * 23 * 96 * (1 + 7/24) = 66.84 GiB. */
static void test_interleaved_activations_match_the_paper(void **state)
{
    static const struct {
        const char *model, *settings;
        int batch, npus, pp;
        double gib;
    } cases[] = {
        {"gpt3-175b", "workload.recompute=none", 64, 64, 8, 66.84},
        {"gpt3-175b", "workload.recompute=selective workload.tp_sequence=true", 64, 64, 8, 12.35},
        {"megatron-530b", "workload.recompute=none", 280, 280, 35, 114.02},
        {"megatron-530b", "workload.recompute=selective workload.tp_sequence=true", 280, 280, 35,
         23.08},
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        char psa[600], set[400];
        cs_error err = {""};
        sim_result r;
        design d;

        snprintf(psa, sizeof psa,
                 "psa: 1\nname: test\nsystem: ../systems/ring-8.yaml\n"
                 "workloads: [{model: ../models/%s.yaml, mode: train, global_batch: %d, "
                 "sequence: 2048}]\nknobs:\n  workload.pp: {values: [1]}\n"
                 "objectives: {latency: {minimize: latency}}\n",
                 cases[i].model, cases[i].batch);
        snprintf(set, sizeof set,
                 "network.npus=%d workload.dp=1 workload.tp=8 workload.pp=%d "
                 "workload.schedule=interleaved workload.virtual_stages=3 workload.micro_batch=1 "
                 "workload.attention=gpt-2022 %s",
                 cases[i].npus, cases[i].pp, cases[i].settings);
        design_open(&d, psa);
        design_set(&d, set);
        assert_int_equal(psa_schema_check(d.schema, &d.config, &err), CS_OK);
        if (sim_precheck(d.model, &d.config, d.scratch, &r, &err) != CS_OK)
            fail_msg("%s", err.text);
        assert_int_equal(r.memory_stage, 0);
        if (fabs(r.memory.activations / (double)(1 << 30) - cases[i].gib) > 0.005)
            fail_msg("case %zu: %.4f GiB, expected %.2f", i,
                     r.memory.activations / (double)(1 << 30), cases[i].gib);
        design_close(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortcuts_equal_the_unrolled_run),
        cmocka_unit_test(test_interleaved_activations_match_the_paper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
