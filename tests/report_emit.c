/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Launch arguments: read back they give the same design, and every option has its documented
 * name. */
#include "report/analysis.h"

#include "tests/test.h"

#define PSA "configs/psa/gpt3-175b-system3.yaml"

/* Names as the programs document them: Megatron-LM's arguments.py, torchrun's help, torchtitan's
 * job_config.py, NeMo's megatron_gpt_config.yaml. */
static const char *const documented[] = {
    "--nnodes",
    "--nproc-per-node",
    "--tensor-model-parallel-size",
    "--context-parallel-size",
    "--pipeline-model-parallel-size",
    "--expert-model-parallel-size",
    "--micro-batch-size",
    "--global-batch-size",
    "--seq-length",
    "--num-layers",
    "--hidden-size",
    "--ffn-hidden-size",
    "--num-attention-heads",
    "--group-query-attention",
    "--num-query-groups",
    "--num-experts",
    "--moe-router-topk",
    "--moe-expert-capacity-factor",
    "--num-virtual-stages-per-pipeline-rank",
    "--sequence-parallel",
    "--use-distributed-optimizer",
    "--use-megatron-fsdp",
    "--data-parallel-sharding-strategy",
    "--recompute-granularity",
    "--recompute-method",
    "--recompute-num-layers",
    "--bf16",
    "--fp16",
    "--fp8-format",
    "--accumulate-allreduce-grads-in-fp32",
    "--grad-reduce-in-bf16",
    "--attention-backend",
    "--cp-comm-type",
    "--optimizer-cpu-offload",
    "--use-tp-pp-dp-mapping",
    "[parallelism]",
    "data_parallel_replicate_degree",
    "data_parallel_shard_degree",
    "tensor_parallel_degree",
    "context_parallel_degree",
    "pipeline_parallel_degree",
    "expert_parallel_degree",
    "pipeline_parallel_microbatch_size",
    "pipeline_parallel_schedule",
    "fsdp_reshard_after_forward",
    "context_parallel_rotate_method",
    "[activation_checkpoint]",
    "mode",
    "[training]",
    "global_batch_size",
    "seq_len",
    "mixed_precision_param",
    "mixed_precision_reduce",
    "enable_cpu_offload",
    "trainer.num_nodes",
    "trainer.devices",
    "trainer.precision",
    "model.micro_batch_size",
    "model.global_batch_size",
    "model.tensor_model_parallel_size",
    "model.pipeline_model_parallel_size",
    "model.virtual_pipeline_model_parallel_size",
    "model.context_parallel_size",
    "model.expert_model_parallel_size",
    "model.sequence_parallel",
    "model.activations_checkpoint_granularity",
    "model.activations_checkpoint_method",
    "model.activations_checkpoint_num_layers",
    "model.encoder_seq_length",
    "model.num_layers",
    "model.hidden_size",
    "model.ffn_hidden_size",
    "model.num_attention_heads",
    "model.num_query_groups",
    "model.num_moe_experts",
    "model.moe_router_topk",
    "model.optim.name",
    "model.fsdp",
    "model.fsdp_sharding_strategy",
    "model.fp8",
    "model.use_flash_attention",
};

typedef struct {
    search_problem problem;
    sim_scratch *scratch;
    cs_rng *rng;
    int32_t *point;
} fixture;

static fixture load(const char *psa)
{
    const search_problem_options options = {.psa_path = psa};
    cs_error err = {.text = ""};
    fixture f = {.scratch = NULL};

    if (search_problem_load(&options, &f.problem, &err) != CS_OK)
        fail_msg("%s", err.text);
    f.scratch = sim_scratch_create(f.problem.model);
    f.rng = cs_rng_create(5, 0, 0);
    f.point = calloc(psa_space_n_vars(f.problem.space) + 1, sizeof *f.point);
    return f;
}

static void unload(fixture *f)
{
    free(f->point);
    cs_rng_destroy(f->rng);
    sim_scratch_destroy(f->scratch);
    search_problem_fini(&f->problem);
}

/* A random valid design and what the simulator says of it. */
static void draw(const fixture *f, uint64_t id, sim_config *config, search_trial *trial)
{
    assert_int_equal(psa_space_sample(f->problem.space, f->rng, f->point), CS_OK);
    search_evaluate(&f->problem, f->point, f->scratch, trial);
    trial->id = id;
    trial->point = f->point;
    psa_space_decode(f->problem.space, f->point, config);
}

static char *emit(const fixture *f, const sim_config *config, const search_trial *trial,
                  report_target target)
{
    const report_design design = {"design", config, trial};
    cs_error err = {.text = ""};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (report_emit(&f->problem, &design, target, out, &err) != CS_OK)
        fail_msg("%s", err.text);
    fclose(out);
    return text;
}

static void assert_same_design(const fixture *f, const sim_config *a, const sim_config *b)
{
    const psa_tables *tables = psa_schema_tables(f->problem.schema);
    const size_t n_dims = psa_schema_n_dims(f->problem.schema);
    char x[512], y[512];

    for (size_t i = 0; i < tables->n_fields; i++) {
        psa_field_text(&tables->fields[i], a, n_dims, x, sizeof x);
        psa_field_text(&tables->fields[i], b, n_dims, y, sizeof y);
        if (strcmp(x, y) != 0)
            fail_msg("%s: %s was emitted, %s read", tables->fields[i].path, x, y);
    }
}

static void round_trip(fixture *f, report_target target)
{
    search_trial trial = {.id = 0}, again = {.id = 0};
    cs_error err = {.text = ""};
    sim_config config, back;

    for (uint64_t id = 1; id <= 10; id++) {
        draw(f, id, &config, &trial);
        char *text = emit(f, &config, &trial, target);
        if (report_emit_read(&f->problem, text, target, &back, &err) != CS_OK)
            fail_msg("%s in:\n%s", err.text, text);
        assert_same_design(f, &config, &back);
        search_evaluate_config(&f->problem, &config, f->scratch, &trial);
        search_evaluate_config(&f->problem, &back, f->scratch, &again);
        assert_int_equal(again.status, trial.status);
        for (const report_result *r = report_results; r->key != NULL; r++)
            assert_memory_equal((const char *)&again.result + r->offset,
                                (const char *)&trial.result + r->offset, sizeof(double));
        free(text);
    }
}

static void test_ten_designs_come_back(void **state)
{
    static const char *const psas[] = {PSA, "configs/psa/llama3-70b-h100.yaml"};

    (void)state;
    for (size_t p = 0; p < CS_COUNT(psas); p++) {
        fixture f = load(psas[p]);
        for (int target = 0; target < REPORT_N_TARGETS; target++)
            round_trip(&f, (report_target)target);
        unload(&f);
    }
}

static bool is_documented(const char *word)
{
    for (size_t i = 0; i < CS_COUNT(documented); i++)
        if (strcmp(documented[i], word) == 0)
            return true;
    return false;
}

/* Names: words that begin with "--" or stand before '='; "[section]" lines. */
static void assert_names(char *text)
{
    char *lines = NULL, *words = NULL;

    for (char *line = strtok_r(text, "\n", &lines); line != NULL;
         line = strtok_r(NULL, "\n", &lines)) {
        if (line[0] == '#')
            continue;
        for (char *word = strtok_r(line, " \\", &words); word != NULL;
             word = strtok_r(NULL, " \\", &words)) {
            char *equals = strchr(word, '=');
            const bool toml = equals == NULL && words != NULL && strncmp(words, "= ", 2) == 0;
            if (equals == word)
                break; /* what follows is a value */
            if (equals != NULL)
                *equals = '\0';
            if ((equals != NULL || toml || word[0] == '[' || strncmp(word, "--", 2) == 0) &&
                !is_documented(word))
                fail_msg("%s is no documented option", word);
        }
    }
}

static void test_options_have_documented_names(void **state)
{
    fixture f = load(PSA);
    search_trial trial = {.id = 0};
    sim_config config;

    (void)state;
    for (uint64_t id = 1; id <= 40; id++) {
        draw(&f, id, &config, &trial);
        for (int target = 0; target < REPORT_N_TARGETS; target++) {
            char *text = emit(&f, &config, &trial, (report_target)target);
            assert_names(text);
            free(text);
        }
    }
    unload(&f);
}

/* dp 8, tp 4, sp 2, pp 2 are 128 NPUs: 16 nodes of 8. */
static void test_split_stands_in_the_options(void **state)
{
    static const struct {
        report_target target;
        const char *expect[6];
    } cases[] = {
        {REPORT_MEGATRON,
         {"--nnodes 16", "--nproc-per-node 8", "--tensor-model-parallel-size 4",
          "--context-parallel-size 2", "--pipeline-model-parallel-size 2",
          "--use-distributed-optimizer"}},
        {REPORT_TORCHTITAN,
         {"tensor_parallel_degree = 4", "context_parallel_degree = 2",
          "pipeline_parallel_degree = 2", "data_parallel_shard_degree = 8",
          "data_parallel_replicate_degree = 1", "mode = \"full\""}},
        {REPORT_NEMO,
         {"trainer.num_nodes=16", "trainer.devices=8", "model.tensor_model_parallel_size=4",
          "model.context_parallel_size=2", "model.optim.name=mcore_distributed_optim",
          "model.activations_checkpoint_granularity=full"}},
    };
    fixture f = load(PSA);
    search_trial trial = {.id = 3};
    sim_config config;

    (void)state;
    psa_schema_baseline(f.problem.schema, &config);
    config.workload.dp = 8;
    config.workload.tp = 4;
    config.workload.sp = 2;
    config.workload.pp = 2;
    config.workload.sharding = WL_SHARD_OPTIMIZER;
    config.workload.recompute = WL_RECOMPUTE_FULL;
    for (size_t c = 0; c < CS_COUNT(cases); c++) {
        char *text = emit(&f, &config, &trial, cases[c].target);
        for (size_t i = 0; i < CS_COUNT(cases[c].expect); i++)
            if (strstr(text, cases[c].expect[i]) == NULL)
                fail_msg("no \"%s\" in:\n%s", cases[c].expect[i], text);
        /* No comment for what an option says. */
        assert_null(strstr(text, "# workload.tp ="));
        assert_null(strstr(text, "# workload.recompute ="));
        free(text);
    }
    unload(&f);
}

static void test_wrong_values_are_named(void **state)
{
    static const struct {
        const char *text, *expect;
    } cases[] = {
        {"torchrun --nnodes x\n", "--nnodes x: expected a count"},
        {"torchrun --nnodes 3 --nproc-per-node 1 pretrain_gpt.py --tensor-model-parallel-size 2 "
         "--context-parallel-size 1 --pipeline-model-parallel-size 1\n",
         "3 NPUs do not divide by tp * sp * pp = 2"},
        {"torchrun --tensor-model-parallel-size two\n", "two"},
        {"torchrun --tensor-model-parallel-size 1 --context-parallel-size 1 "
         "--pipeline-model-parallel-size 1\n# workload.dp = many\n",
         "many"},
    };
    fixture f = load(PSA);
    sim_config config;

    (void)state;
    for (size_t c = 0; c < CS_COUNT(cases); c++) {
        cs_error err = {.text = ""};
        assert_int_not_equal(
            report_emit_read(&f.problem, cases[c].text, REPORT_MEGATRON, &config, &err), CS_OK);
        if (strstr(err.text, cases[c].expect) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[c].expect);
    }
    unload(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_designs_come_back),
        cmocka_unit_test(test_options_have_documented_names),
        cmocka_unit_test(test_split_stands_in_the_options),
        cmocka_unit_test(test_wrong_values_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
