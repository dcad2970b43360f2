/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Text workloads of ASTRA-sim v1 and SimAI, and conversion of them and of older traces. */
#include "tests/wl_trace_test.h"

#define CHAKRA REFERENCE "chakra/"

static wl_trace *load_text(const char *text, uint32_t ranks, uint32_t passes)
{
    wl_trace_options options = {.job_ranks = ranks, .passes = passes};

    write_string("w.txt", text);
    return load(in_folder("w.txt"), &options);
}

/* Index of a node of rank 0 by name, from `from`. */
static uint32_t find(const wl_trace *trace, const char *name, uint32_t from)
{
    for (uint32_t i = from; i < trace->rank[0].n; i++)
        if (strcmp(wl_trace_name(trace, i), name) == 0)
            return i;
    fail_msg("no node %s", name);
    return 0;
}

static bool needs(const wl_trace *trace, uint32_t node, uint32_t parent)
{
    for (uint32_t e = trace->dep_first[node]; e < trace->dep_first[node + 1]; e++)
        if (trace->dep[e] == parent)
            return true;
    return false;
}

#define DATA_TEXT                                                                                  \
    "DATA\t\t\r\n2\t\r\n"                                                                          \
    "a\t-1\t10\tNONE\t0\t20\tNONE\t0\t30\tALLREDUCE\t100\t5 \r\n"                                  \
    "b  -1  11  NONE  0  21  NONE  0  31  ALLREDUCE  200  6\r\n"

/* Data parallel: a, b forward; b's weight gradient, its all-reduce in the background, b's input
 * gradient; a's weight gradient (no input gradient for the first layer).  Times are ns.
 * Compute: 10 + 11 + 31 + 21 + 30, updates 6 + 5, in all 114 ns a rank. */
static void test_data_parallel_program(void **state)
{
    wl_trace *t;
    uint32_t reduce_b, input_b, weight_a, update_a, again_a;

    (void)state;
    make_folder();
    t = load_text(DATA_TEXT, 4, 1);
    assert_int_equal(t->n_ranks, 4);
    assert_int_equal(t->rank[0].n, 9);
    assert_int_equal(t->rank[0].facts.comp_duration_ps, 114000);
    assert_int_equal(t->rank[3].facts.coll_bytes, 300);
    reduce_b = find(t, "b_ALL_REDUCE", 0);
    input_b = find(t, "b_input_gradient", 0);
    weight_a = find(t, "a_weight_gradient", 0);
    assert_true(needs(t, reduce_b, find(t, "b_weight_gradient", 0)));
    assert_false(needs(t, input_b, reduce_b));
    assert_true(needs(t, input_b, find(t, "b_weight_gradient", 0)));
    assert_true(needs(t, weight_a, input_b));
    assert_int_equal(t->n_errors + t->n_warnings, 0);
    wl_trace_destroy(t);
    /* The second iteration's forward waits for the update of its own layer. */
    t = load_text(DATA_TEXT, 4, 2);
    assert_int_equal(t->rank[0].n, 18);
    update_a = find(t, "a_update", 0);
    again_a = find(t, "a_forward", 1);
    assert_true(needs(t, again_a, update_a));
    assert_true(needs(t, again_a, weight_a));
    wl_trace_destroy(t);
    remove_folder();
}

#define MODEL_ROW(name) name " -1 10 ALLGATHER 64 20 REDUCESCATTER 128 30 ALLREDUCE 256 0\n"

/* Tensor groups of 2 neighbours for forward and input gradients, data groups of stride 2 for weight
 * gradients; forward and input collectives hold up the next operator. */
static void test_transformer_groups(void **state)
{
    wl_trace *t;
    const wl_trace_group *tensor, *data;

    (void)state;
    make_folder();
    t = load_text("HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n1\n" MODEL_ROW("l"), 4, 0);
    tensor = &t->group[t->node[find(t, "l_ALL_GATHER", 0)].group];
    data = &t->group[t->node[find(t, "l_ALL_REDUCE", 0)].group];
    assert_int_equal(tensor->n, 2);
    assert_int_equal(tensor->rank[1], 1);
    assert_int_equal(data->n, 2);
    assert_int_equal(data->rank[1], 2);
    assert_true(needs(t, find(t, "l_input_gradient", 0), find(t, "l_ALL_GATHER", 0)));
    assert_true(needs(t, find(t, "l_weight_gradient", 0), find(t, "l_REDUCE_SCATTER", 0)));
    assert_int_equal(t->n_errors, 0);
    wl_trace_destroy(t);
    /* Of one NPU each: nothing to send. */
    t = load_text("HYBRID_TRANSFORMER model_parallel_NPU_group: 4\n1\n" MODEL_ROW("l"), 4, 0);
    assert_int_equal(t->rank[0].facts.coll_count[WL_CHAKRA_ALL_REDUCE], 0);
    assert_int_equal(t->rank[0].facts.coll_count[WL_CHAKRA_ALL_GATHER], 1);
    wl_trace_destroy(t);
    remove_folder();
}

/* Checkpoints at 0 and 2, initiated by 3 and 1: layer 2 runs again before 3 goes back, layer 0
 * before 1 does: 4 + 2 forwards. */
static void test_recomputation_runs_forward_again(void **state)
{
    wl_trace *t;
    uint32_t forwards = 0;

    (void)state;
    make_folder();
    t = load_text("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 "
                  "checkpoints: 2 0 2 checkpoint_initiates: 2 3 1\n4\n" MODEL_ROW("a")
                      MODEL_ROW("b") MODEL_ROW("c") MODEL_ROW("d"),
                  2, 1);
    for (uint32_t i = 0; i < t->rank[0].n; i++)
        forwards += strstr(wl_trace_name(t, i), "_forward") != NULL;
    assert_int_equal(forwards, 6);
    assert_true(find(t, "c_forward", find(t, "d_forward", 0)) < find(t, "d_input_gradient", 0));
    wl_trace_destroy(t);
    remove_folder();
}

/* DLRM: the embedding's exchange runs beside the bottom layers and joins before the first top
 * layer; on the way back it starts after that layer and the embedding waits for it. */
static void test_dlrm_overlaps_its_exchange(void **state)
{
    wl_trace *t;
    uint32_t exchange, back;

    (void)state;
    make_folder();
    t = load_text("HYBRID_DLRM 1\n3\n"
                  "emb -1 10 ALLTOALL 64 20 ALLTOALL 64 30 NONE 0 0\n"
                  "bottom -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 256 0\n"
                  "top -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 256 0\n",
                  2, 1);
    exchange = find(t, "emb_ALL_TO_ALL", 0);
    back = find(t, "emb_ALL_TO_ALL", exchange + 1);
    assert_false(needs(t, find(t, "bottom_forward", 0), exchange));
    assert_true(needs(t, find(t, "top_join", 0), exchange));
    assert_true(needs(t, back, find(t, "top_input_gradient", 0)));
    assert_true(needs(t, find(t, "emb_weight_gradient", 0), back));
    wl_trace_destroy(t);
    remove_folder();
}

/* SimAI: 8 NPUs, tp 2, ep 2: the all-gather of 1,000 B is 500 B a shard; _EP groups have stride
 * tp, _DP_EP groups stride tp * ep. */
static void test_simai_groups_and_sizes(void **state)
{
    wl_trace *t;
    const wl_trace_group *ep, *dp_ep;

    (void)state;
    make_folder();
    t = load_text("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 "
                  "ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0 pp_comm 0\n2\n"
                  "x\t-1\t10\tALLGATHER\t1000\t1\tALLTOALL_EP\t64\t1\tNONE\t0\t100\n"
                  "y\t-1\t10\tNONE\t0\t1\tNONE\t0\t1\tREDUCESCATTER_DP_EP\t64\t100\n",
                  0, 1);
    assert_int_equal(t->job_ranks, 8);
    assert_int_equal(t->node[find(t, "x_ALL_GATHER", 0)].comm_size, 500);
    ep = &t->group[t->node[find(t, "x_ALL_TO_ALL", 0)].group];
    dp_ep = &t->group[t->node[find(t, "y_REDUCE_SCATTER", 0)].group];
    assert_int_equal(ep->n, 2);
    assert_int_equal(ep->rank[1], 2);
    assert_int_equal(dp_ep->n, 2);
    assert_int_equal(dp_ep->rank[1], 4);
    wl_trace_destroy(t);
    remove_folder();
}

static void test_dimension_policies_say_which_dimensions(void **state)
{
    wl_trace *t;

    (void)state;
    make_folder();
    t = load_text("HYBRID_CUSTOMIZED\n2\n"
                  "a -1 1 ALLGATHER 8 1 NONE 0 1 ALLREDUCE 8 0 HYBRID_MODEL_DATA\n"
                  "b -1 1 ALLREDUCEALLTOALL 8 1 NONE 0 1 NONE 0 0 MODEL\n",
                  4, 1);
    assert_int_equal(t->node[find(t, "a_ALL_GATHER", 0)].involved, 1);
    assert_int_equal(t->node[find(t, "a_ALL_REDUCE", 0)].involved, 14);
    assert_true(needs(t, find(t, "b_ALL_TO_ALL", 0), find(t, "b_ALL_REDUCE", 0)));
    assert_int_equal(t->node[find(t, "b_ALL_REDUCE", 0)].involved, 0);
    wl_trace_destroy(t);
    remove_folder();
}

static void test_bad_texts_are_named_by_line(void **state)
{
    static const struct {
        const char *text;
        uint32_t ranks;
        cs_status status;
        const char *words;
    } cases[] = {
        {"", 2, CS_ETRACE, "w.txt:0:|empty"},
        {"DATTA\n1\n", 2, CS_ETRACE, "w.txt:1:|DATTA|DATA"},
        {"DATA\n", 2, CS_ETRACE, "w.txt:1:|count of layers"},
        {"DATA\nx\n", 2, CS_ETRACE, "w.txt:2:|'x'"},
        {"DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0\n", 2, CS_ETRACE, "w.txt:3:|11 columns"},
        {"DATA\n2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n", 2, CS_ETRACE, "1 rows|promises 2"},
        {"DATA\n1\na -1 -1 NONE 0 1 NONE 0 1 NONE 0 1\n", 2, CS_ETRACE, "w.txt:3:|'-1'"},
        {"DATA\n1\na -1 1 GATHER 0 1 NONE 0 1 NONE 0 1\n", 2, CS_ETRACE, "w.txt:3:|'GATHER'"},
        {"DATA\n1\na -1 1 NONE 9e9 1 NONE 0 1 NONE 0 1\n", 2, CS_ETRACE, "w.txt:3:|'9e9'"},
        {"DATA\n1\n" MODEL_ROW("a") MODEL_ROW("b"), 2, CS_ETRACE, "w.txt:4:|more rows"},
        {"DATA\n1\n" MODEL_ROW("a"), 0, CS_EINVAL, "how many NPUs"},
        {"HYBRID_TRANSFORMER model_parallel_NPU_group: 3\n1\n" MODEL_ROW("a"), 4, CS_EINVAL,
         "4 NPUs do not divide"},
        {"HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoints: 2 0\n1\n" MODEL_ROW("a"), 4, CS_ETRACE,
         "w.txt:1:|ends after 1 of 2"},
        {"HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoints: 1 7\n1\n" MODEL_ROW("a"), 4, CS_ETRACE,
         "w.txt:1:|layer 7 of 1"},
        {"HYBRID_TRANSFORMER what: 2\n1\n" MODEL_ROW("a"), 4, CS_ETRACE, "w.txt:1:|'what:'"},
    };

    (void)state;
    make_folder();
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        wl_trace_options options = {.job_ranks = cases[i].ranks};
        wl_trace *trace = NULL;
        cs_error err = {{0}};
        char words[128];

        write_string("w.txt", cases[i].text);
        assert_int_equal(wl_trace_load(in_folder("w.txt"), &options, &trace, &err),
                         cases[i].status);
        snprintf(words, sizeof words, "%s", cases[i].words);
        for (char *w = strtok(words, "|"); w != NULL; w = strtok(NULL, "|"))
            if (strstr(err.text, w) == NULL)
                fail_msg("'%s' is not in: %s", w, err.text);
    }
    remove_folder();
}

/* ---- conversion ---- */

static void assert_same_facts(const wl_rank_facts *a, const wl_rank_facts *b)
{
    assert_memory_equal(a->by_type, b->by_type, sizeof a->by_type);
    assert_memory_equal(a->coll_count, b->coll_count, sizeof a->coll_count);
    assert_int_equal(a->coll_bytes, b->coll_bytes);
    assert_int_equal(a->send_bytes, b->send_bytes);
    assert_int_equal(a->recv_bytes, b->recv_bytes);
    assert_int_equal(a->num_ops, b->num_ops);
    assert_int_equal(a->cpu_nodes, b->cpu_nodes);
    assert_int_equal(a->comp_duration_ps, b->comp_duration_ps);
    assert_int_equal(a->depth, b->depth);
}

/* Group names may have been renumbered; members and what is called may not. */
static void assert_same_nodes(const wl_trace *a, const wl_trace *b)
{
    for (uint32_t r = 0; r < a->n_ranks; r++) {
        uint64_t bytes_a = 0, bytes_b = 0;

        for (uint32_t k = 0; k < a->rank[r].n; k++) {
            const wl_trace_node *x = &a->node[a->rank[r].first + k];
            const wl_trace_node *y = &b->node[b->rank[r].first + k];

            if (x->comm_size > 0)
                bytes_a += (uint64_t)x->comm_size * a->group[x->group].n;
            if (y->comm_size > 0)
                bytes_b += (uint64_t)y->comm_size * b->group[y->group].n;
            assert_int_equal(y->flags & WL_NODE_CPU_ABSENT, 0);
            assert_int_equal(y->id, k + 1);
            for (uint32_t e = b->dep_first[b->rank[r].first + k];
                 e < b->dep_first[b->rank[r].first + k + 1]; e++)
                assert_true(b->dep[e] < b->rank[r].first + k);
        }
        assert_int_equal(bytes_a, bytes_b);
    }
}

static void convert_and_compare(const char *path, const wl_trace_options *options)
{
    wl_convert_report report;
    wl_trace *a = load(path, options), *b;
    cs_error err = {{0}};

    if (wl_trace_convert(path, options, in_folder("out"), &report, &err) != CS_OK)
        fail_msg("%s", err.text);
    b = load(in_folder("out"), NULL);
    assert_int_equal(report.ranks, a->n_ranks);
    assert_int_equal(report.nodes, a->n_nodes);
    assert_int_equal(a->n_nodes, b->n_nodes);
    assert_int_equal(b->n_errors, 0);
    for (uint32_t r = 0; r < a->n_ranks; r++) {
        assert_int_equal(a->rank[r].rank, b->rank[r].rank);
        assert_same_facts(&a->rank[r].facts, &b->rank[r].facts);
    }
    assert_same_nodes(a, b);
    wl_trace_destroy(a);
    wl_trace_destroy(b);
}

static void test_text_converts_to_the_trace_it_loads_as(void **state)
{
    wl_trace_options options = {.job_ranks = 4, .passes = 2};
    uint64_t bytes = 0;
    wl_convert_report report;

    (void)state;
    make_folder();
    write_string("w.txt", "HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n1\n" MODEL_ROW("l"));
    convert_and_compare(in_folder("w.txt"), &options);
    assert_int_equal(wl_trace_convert_size(in_folder("w.txt"), &options, &bytes, NULL), CS_OK);
    assert_int_equal(wl_trace_convert(in_folder("w.txt"), &options, in_folder("x"), &report, NULL),
                     CS_OK);
    assert_in_range(report.bytes, bytes, bytes + 4 * 64); /* and the metadata */
    remove_folder();
}

/* Old traces without sizes stay without: whoever simulates them is told. */
static void test_reference_sets_without_sizes_stay_so(void **state)
{
    static const char *const sets[] = {"old/v002_mlp", "old/v003_dlrm"};
    char path[512];

    (void)state;
    if (!have_reference()) {
        printf("skipped: %zu sets (no reference data beside the repository)\n", CS_COUNT(sets));
        skip();
    }
    for (size_t i = 0; i < CS_COUNT(sets); i++) {
        make_folder();
        snprintf(path, sizeof path, CHAKRA "%s", sets[i]);
        assert_int_equal(wl_trace_convert(path, NULL, in_folder("out"), NULL, NULL), CS_OK);
        assert_refused(in_folder("out"), "value|COMM_COLL without comm_size");
        remove_folder();
    }
}

/* The SimAI file of 1,789 rows: every row is understood, for all of its 9,216 NPUs. */
static void test_reference_simai_file_is_understood(void **state)
{
    uint64_t bytes = 0;
    cs_error err = {{0}};

    (void)state;
    if (!have_reference()) {
        printf("skipped: 1 text (no reference data beside the repository)\n");
        skip();
    }
    if (wl_trace_convert_size(CHAKRA "text/workload_analytical.txt", NULL, &bytes, &err) != CS_OK)
        fail_msg("%s", err.text);
    assert_true(bytes > (uint64_t)9216 * 1789 * 3 * 40); /* three computes a row and more */
}

/* Reverse order in the file, group "0" declared: renumbered from 1, parents first. */
static void test_conversion_puts_parents_first_and_names_groups_from_one(void **state)
{
    static const uint64_t seven = 7;
    wl_et_writer *w;
    wl_trace *t;

    (void)state;
    make_folder();
    w = start("a.0.et");
    put(w, &(wl_et_plain){
               .id = 9, .name = "late", .type = WL_NODE_COMP, .data_deps = &seven, .n_deps = 1});
    put_coll(w, 7, WL_CHAKRA_ALL_REDUCE, 64, "0");
    finish(w);
    write_string("a.json", "{\"0\": [0]}");
    convert_and_compare(in_folder("a"), NULL);
    t = load(in_folder("out"), NULL);
    assert_int_equal(t->node[0].type, WL_NODE_COLL);
    assert_string_equal(t->group[t->node[0].group].name, "1");
    assert_true(needs(t, 1, 0));
    wl_trace_destroy(t);
    remove_folder();
}

static void test_attributes_outlive_conversion(void **state)
{
    static const char *const op = "einsum";
    static const int32_t ops = 12;
    static const wl_et_attr attr[] = {{"op_type", "", WL_ARM_STRING, 1, &op},
                                      {"num_ops", "", WL_ARM_UINT32, 1, &ops},
                                      {"empty", "", WL_ARM_UNSET, 0, NULL}};
    wl_et_reader *reader = NULL;
    const wl_et_node *node;
    wl_et_writer *w;

    (void)state;
    make_folder();
    w = start("a.0.et");
    put_attrs(w, WL_NODE_COMP, 1, attr, 3);
    finish(w);
    convert_and_compare(in_folder("a"), NULL);
    assert_int_equal(wl_et_reader_open(in_folder("out.0.et"), WL_SCHEMA_004, &reader, NULL), CS_OK);
    assert_int_equal(wl_et_reader_next(reader, &node, NULL), CS_OK);
    assert_string_equal(*(const char *const *)wl_et_find(node, "op_type")->values, "einsum");
    assert_int_equal(wl_et_find(node, "num_ops")->arm, WL_ARM_INT64);
    assert_int_equal(wl_et_find(node, "empty")->arm, WL_ARM_UNSET);
    wl_et_reader_close(reader);
    remove_folder();
}

static void test_reference_sets_convert(void **state)
{
    static const char *const sets[] = {
        "old/v001_transformer2stack",  "p2p/pp4",
        "transformer/dense_dp2tp2pp2", "micro/service_ns3_mix_4",
        "custom/ring_allreduce_8",     "textconv/mlp_modelparallel_32",
        "real/two_groups_2",
    };
    static const struct {
        const char *file;
        uint32_t ranks;
    } texts[] = {{"Resnet50_DataParallel_fused.txt", 8},
                 {"medium_DLRM_fused.txt", 8},
                 {"transformer_1t_fused_only_t.txt", 128},
                 {"sample_per_layer_parallel_HybridCustomized.txt", 16}};
    char path[512];

    (void)state;
    if (!have_reference()) {
        printf("skipped: %zu sets, %zu texts (no reference data beside the repository)\n",
               CS_COUNT(sets), CS_COUNT(texts));
        skip();
    }
    for (size_t i = 0; i < CS_COUNT(sets); i++) {
        make_folder();
        snprintf(path, sizeof path, CHAKRA "%s", sets[i]);
        convert_and_compare(path, NULL);
        remove_folder();
    }
    for (size_t i = 0; i < CS_COUNT(texts); i++) {
        wl_trace_options options = {.job_ranks = texts[i].ranks};

        make_folder();
        snprintf(path, sizeof path, CHAKRA "text/%s", texts[i].file);
        convert_and_compare(path, &options);
        remove_folder();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_parallel_program),
        cmocka_unit_test(test_transformer_groups),
        cmocka_unit_test(test_recomputation_runs_forward_again),
        cmocka_unit_test(test_dlrm_overlaps_its_exchange),
        cmocka_unit_test(test_simai_groups_and_sizes),
        cmocka_unit_test(test_dimension_policies_say_which_dimensions),
        cmocka_unit_test(test_bad_texts_are_named_by_line),
        cmocka_unit_test(test_text_converts_to_the_trace_it_loads_as),
        cmocka_unit_test(test_reference_simai_file_is_understood),
        cmocka_unit_test(test_reference_sets_without_sizes_stay_so),
        cmocka_unit_test(test_conversion_puts_parents_first_and_names_groups_from_one),
        cmocka_unit_test(test_attributes_outlive_conversion),
        cmocka_unit_test(test_reference_sets_convert),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
