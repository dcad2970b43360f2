/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Reading files made here: every kind of attribute, dialects, gzip, groups, dependencies. */
#include "tests/wl_trace_test.h"

#include <sys/resource.h>

/* ---- attributes ---- */

/* One attribute of each of the 30 kinds survives writing and reading. */
static void test_all_kinds_of_attribute_survive(void **state)
{
    static const double d[] = {0.5, -1e300};
    static const float f[] = {0.25f, -3.0f};
    static const int32_t i32[] = {-5, 1};
    static const int64_t i64[] = {INT64_MIN, 7};
    static const uint32_t u32[] = {UINT32_MAX, 0};
    static const uint64_t u64[] = {UINT64_MAX, 0};
    static const int32_t flags[] = {0, 1};
    static const char *const texts[] = {"", "a \xc3\xa9"};
    static const wl_bytes bytes[] = {{3, (const uint8_t *)"a\0b"}, {0, (const uint8_t *)""}};
    static const void *const values[] = {d,   f,   i32, i64, u32,   u64,   i32,  i64,
                                         u32, u64, i32, i64, flags, texts, bytes};
    static const size_t size[] = {8, 4, 4, 8, 4, 8, 4, 8, 4, 8, 4, 8, 4, 0, 0};
    wl_et_attr attr[30];
    wl_et_reader *reader = NULL;
    const wl_et_node *node;
    wl_et_writer *w;

    (void)state;
    make_folder();
    for (uint8_t k = 0; k < 30; k++)
        attr[k] = (wl_et_attr){.name = "x",
                               .doc = k % 3 == 0 ? "why" : "",
                               .arm = (uint8_t)(WL_ARM_DOUBLE + k),
                               .n = k % 2 == 0 ? 1 : 2,
                               .values = values[k / 2]};
    w = start("a.0.et");
    put_attrs(w, WL_NODE_METADATA, 1, attr, 30);
    finish(w);
    assert_int_equal(wl_et_reader_open(in_folder("a.0.et"), WL_SCHEMA_AUTO, &reader, NULL), CS_OK);
    assert_int_equal(wl_et_reader_next(reader, &node, NULL), CS_OK);
    assert_int_equal(node->n_attrs, 30);
    for (size_t k = 0; k < 30; k++) {
        const wl_et_attr *a = &node->attr[k];

        assert_int_equal(a->arm, attr[k].arm);
        assert_int_equal(a->n, attr[k].n);
        assert_string_equal(a->doc, attr[k].doc);
        if (size[k / 2] > 0)
            assert_memory_equal(a->values, attr[k].values, a->n * size[k / 2]);
        for (size_t i = 0; k / 2 == 13 && i < a->n; i++)
            assert_string_equal(((const char *const *)a->values)[i], texts[i]);
        for (size_t i = 0; k / 2 == 14 && i < a->n; i++) {
            const wl_bytes *b = &((const wl_bytes *)a->values)[i];

            assert_int_equal(b->n, bytes[i].n);
            assert_memory_equal(b->data, bytes[i].data, b->n);
        }
    }
    wl_et_reader_close(reader);
    remove_folder();
}

/* num_ops = 5 in any numeric kind is 5. */
static void test_numbers_are_read_from_any_integer_kind(void **state)
{
    static const double d = 5;
    static const float f = 5;
    static const int32_t i32 = 5;
    static const int64_t i64 = 5;
    static const struct {
        uint8_t arm;
        const void *value;
    } kinds[] = {{WL_ARM_DOUBLE, &d},    {WL_ARM_FLOAT, &f},      {WL_ARM_INT32, &i32},
                 {WL_ARM_INT64, &i64},   {WL_ARM_UINT32, &i32},   {WL_ARM_UINT64, &i64},
                 {WL_ARM_SINT32, &i32},  {WL_ARM_SINT64, &i64},   {WL_ARM_FIXED32, &i32},
                 {WL_ARM_FIXED64, &i64}, {WL_ARM_SFIXED32, &i32}, {WL_ARM_SFIXED64, &i64}};
    wl_et_writer *w;
    wl_trace *trace;

    (void)state;
    make_folder();
    w = start("a.0.et");
    for (size_t k = 0; k < CS_COUNT(kinds); k++) {
        wl_et_attr attr = {"num_ops", "", kinds[k].arm, 1, kinds[k].value};

        put_attrs(w, WL_NODE_COMP, k + 1, &attr, 1);
    }
    finish(w);
    trace = load_made("a");
    for (size_t k = 0; k < CS_COUNT(kinds); k++)
        assert_int_equal(trace->node[k].num_ops, 5);
    assert_int_equal(trace->n_errors, 0);
    wl_trace_destroy(trace);
    remove_folder();
}

/* Group 3 by pg_name (text), pg_id (int64), comm_group (int32): three dialects. */
static void test_groups_are_read_from_three_dialects(void **state)
{
    static const char *const text = "3";
    static const int64_t id = 3;
    static const int32_t number = 3;
    static const int64_t size = 64, type = WL_CHAKRA_ALL_REDUCE;
    const wl_et_attr group[] = {{"pg_name", "", WL_ARM_STRING, 1, &text},
                                {"pg_id", "", WL_ARM_INT64, 1, &id},
                                {"comm_group", "", WL_ARM_INT32, 1, &number}};
    wl_trace *trace;
    wl_et_writer *w;

    (void)state;
    make_folder();
    w = start("a.0.et");
    for (size_t k = 0; k < 3; k++) {
        const wl_et_attr attr[] = {group[k],
                                   {"comm_size", "", WL_ARM_INT64, 1, &size},
                                   {"comm_type", "", WL_ARM_INT64, 1, &type}};

        put_attrs(w, WL_NODE_COLL, k + 1, attr, 3);
    }
    finish(w);
    write_string("a.json", "{\"3\": [0]}\n");
    trace = load_made("a");
    assert_int_equal(trace->n_errors, 0);
    for (size_t k = 0; k < 3; k++)
        assert_string_equal(trace->group[trace->node[k].group].name, "3");
    assert_int_equal(wl_trace_find_group(trace, "3"), trace->node[0].group);
    wl_trace_destroy(trace);
    remove_folder();
}

/* Group "0" and an empty list mean all ranks, unless the file defines "0". */
static void test_group_zero_is_the_world_unless_declared(void **state)
{
    wl_trace *trace;

    (void)state;
    make_folder();
    for (int r = 0; r < 2; r++) {
        wl_et_writer *w = start(r == 0 ? "a.0.et" : "a.1.et");

        put_coll(w, 1, WL_CHAKRA_ALL_REDUCE, 64, "0");
        put_coll(w, 2, WL_CHAKRA_ALL_REDUCE, 64, "5");
        finish(w);
    }
    write_string("a.json", "{\"5\": []}");
    trace = load_made("a");
    assert_int_equal(trace->n_errors, 0);
    assert_int_equal(trace->node[0].group, WL_GROUP_WORLD);
    assert_int_equal(trace->group[trace->node[1].group].n, 2);
    assert_int_equal(wl_trace_find_group(trace, "0"), WL_GROUP_WORLD);
    wl_trace_destroy(trace);
    write_string("a.json", "{\"5\": [0, 1], \"0\": [1, 0]}");
    trace = load_made("a");
    assert_int_equal(trace->n_errors, 0);
    assert_string_equal(trace->group[trace->node[0].group].name, "0");
    assert_int_equal(trace->group[trace->node[0].group].rank[0], 1);
    wl_trace_destroy(trace);
    remove_folder();
}

/* A METADATA node lists process groups as PyTorch does; an empty list is all ranks. */
static void test_metadata_nodes_declare_groups(void **state)
{
    static const wl_et_io io = {
        "['[{\"pg_name\": \"1\", \"ranks\": [0]}, {\"pg_name\": \"2\", \"ranks\": []}]']", "", ""};
    const wl_et_node node = {
        .id = 1, .name = "## process_group:init ##", .type = WL_NODE_METADATA, .inputs = &io};
    wl_et_writer *w;
    wl_trace *trace;

    (void)state;
    make_folder();
    w = start("a.0.et");
    assert_int_equal(wl_et_writer_put(w, &node, NULL), CS_OK);
    put_coll(w, 2, WL_CHAKRA_ALL_REDUCE, 64, "1");
    put_coll(w, 3, WL_CHAKRA_ALL_REDUCE, 64, "2");
    finish(w);
    trace = load_made("a");
    assert_int_equal(trace->n_errors, 0);
    assert_int_equal(trace->group[wl_trace_find_group(trace, "1")].n, 1);
    assert_true(trace->group[wl_trace_find_group(trace, "2")].declared);
    wl_trace_destroy(trace);
    remove_folder();
}

/* duration_ps is exact where microseconds are not: 1.5 us + 1 ps. */
static void test_durations_are_exact(void **state)
{
    wl_et_writer *w;
    wl_trace *trace;

    (void)state;
    make_folder();
    w = start("a.0.et");
    put(w, &(wl_et_plain){.id = 1, .name = "x", .type = WL_NODE_COMP, .duration_ps = 1500001});
    put_comp(w, 2, 1, 7);
    finish(w);
    trace = load_made("a");
    assert_int_equal(trace->node[0].duration_ps, 1500001);
    assert_int_equal(trace->node[1].duration_ps, 7000000);
    assert_int_equal(trace->rank[0].facts.comp_longest_path_ps, 8500001);
    assert_int_equal(trace->rank[0].facts.depth, 2);
    wl_trace_destroy(trace);
    remove_folder();
}

/* ---- CPU operations ---- */

static void put_cpu_coll(wl_et_writer *w, uint64_t id, int cpu, uint64_t parent)
{
    static const int64_t size = 64, type = WL_CHAKRA_ALL_REDUCE;
    const int32_t flag = cpu;
    const wl_et_attr attr[] = {{"is_cpu_op", "", WL_ARM_BOOL, 1, &flag},
                               {"comm_size", "", WL_ARM_INT64, 1, &size},
                               {"comm_type", "", WL_ARM_INT64, 1, &type}};
    const wl_et_node node = {.id = id,
                             .name = "c",
                             .type = WL_NODE_COLL,
                             .n_ctrl = parent > 0,
                             .ctrl_deps = &parent,
                             .n_attrs = 3,
                             .attr = attr};

    assert_int_equal(wl_et_writer_put(w, &node, NULL), CS_OK);
}

/* A collective that says it runs on the CPU costs like any, unless the call stack shows the GPU
 * kernel that carries it out: 1 launches 2 launches the kernel 3; 4 stands alone. */
static void test_cpu_collectives_are_launchers_only_above_their_kernel(void **state)
{
    wl_et_writer *w;
    wl_trace *trace;

    (void)state;
    make_folder();
    w = start("a.0.et");
    put_cpu_coll(w, 1, 1, 0);
    put_cpu_coll(w, 2, 1, 1);
    put_cpu_coll(w, 3, 0, 2);
    put_cpu_coll(w, 4, 1, 0);
    finish(w);
    trace = load_made("a");
    assert_true(trace->node[0].flags & WL_NODE_HOST_COLL);
    assert_true(trace->node[1].flags & WL_NODE_HOST_COLL);
    assert_false(trace->node[2].flags & WL_NODE_HOST_COLL);
    assert_false(trace->node[3].flags & WL_NODE_HOST_COLL);
    wl_trace_destroy(trace);
    remove_folder();
}

/* ---- files ---- */

static void test_gzip_is_read_and_written(void **state)
{
    wl_et_writer *w;
    wl_trace *trace;
    cs_error err = {{0}};

    (void)state;
    make_folder();
    w = start("a.0.et.gz");
    for (uint64_t id = 1; id <= 1000; id++)
        put_comp(w, id, id - 1, 1);
    finish(w);
    trace = load_made("a");
    assert_true(trace->rank[0].gzip);
    assert_int_equal(trace->n_nodes, 1000);
    assert_int_equal(trace->rank[0].facts.depth, 1000);
    wl_trace_destroy(trace);
    truncate(in_folder("a.0.et.gz"), 700);
    assert_int_equal(judge(in_folder("a"), false, &err), CS_ETRACE);
    assert_non_null(strstr(err.text, "framing"));
    remove_folder();
}

static void test_sets_are_found_by_prefix_folder_and_file(void **state)
{
    wl_trace *trace;
    cs_error err = {{0}};

    (void)state;
    make_folder();
    for (int r = 0; r < 12; r++) {
        char name[32];
        wl_et_writer *w;

        snprintf(name, sizeof name, "a.%d.et", r);
        w = start(name);
        put_comp(w, 1, 0, r + 1);
        finish(w);
    }
    trace = load_made("a");
    assert_int_equal(trace->job_ranks, 12);
    for (uint32_t r = 0; r < 12; r++) { /* by number, not by name */
        assert_int_equal(trace->rank[r].rank, r);
        assert_int_equal(trace->node[trace->rank[r].first].duration_ps, (r + 1) * 1000000);
        assert_int_equal(wl_trace_rank_of(trace, trace->rank[r].first), r);
    }
    wl_trace_destroy(trace);
    trace = load(folder_, NULL);
    assert_int_equal(trace->n_ranks, 12);
    wl_trace_destroy(trace);
    trace = load_made("a.3.et");
    assert_int_equal(trace->n_ranks, 1);
    assert_true(trace->sample);
    assert_int_equal(trace->n_errors, 0);
    wl_trace_destroy(trace);
    assert_int_equal(judge(in_folder("b"), false, &err), CS_ENOENT);
    assert_int_equal(judge(in_folder("none/b"), false, &err), CS_ENOENT);
    remove_folder();
}

/* ---- dependencies ---- */

static void put_both(wl_et_writer *w, uint64_t id, uint64_t data, uint64_t ctrl)
{
    const wl_et_node node = {.id = id,
                             .name = "n",
                             .type = WL_NODE_COMP,
                             .duration_micros = 1,
                             .n_data = data > 0,
                             .data_deps = &data,
                             .n_ctrl = ctrl > 0,
                             .ctrl_deps = &ctrl};

    assert_int_equal(wl_et_writer_put(w, &node, NULL), CS_OK);
}

/* Sound control dependencies are enforced; one rank's broken ones free all ranks; order is no
 * matter: 3 needs 2 (later in the file) by data and 1 by control. */
static void test_control_dependencies_count_when_sound(void **state)
{
    wl_trace *trace;
    wl_et_writer *w;
    wl_trace_options off = {.ctrl = WL_CTRL_OFF};

    (void)state;
    make_folder();
    w = start("a.0.et");
    put_both(w, 1, 0, 0);
    put_both(w, 3, 2, 1);
    put_both(w, 2, 0, 0);
    finish(w);
    trace = load_made("a");
    assert_true(trace->ctrl_enforced);
    assert_int_equal(trace->dep_first[2] - trace->dep_first[1], 2);
    assert_int_equal(trace->n_warnings, 0);
    wl_trace_destroy(trace);
    trace = load(in_folder("a"), &off);
    assert_int_equal(trace->dep_first[2] - trace->dep_first[1], 1);
    wl_trace_destroy(trace);
    w = start("a.1.et");
    put_both(w, 1, 0, 99); /* a caller that is not in the file */
    finish(w);
    trace = load_made("a");
    assert_false(trace->ctrl_enforced);
    assert_int_equal(trace->dep_first[2] - trace->dep_first[1], 1);
    assert_int_equal(trace->n_errors, 0);
    assert_true(trace->n_warnings > 0);
    wl_trace_destroy(trace);
    remove_folder();
}

/* Kernels of stream 7 in id order, though the trace has no edges between them. */
static void test_streams_can_be_chained(void **state)
{
    static const int32_t seven = 7, eight = 8, no = 0;
    wl_trace_options options = {.chain_streams = true};
    wl_trace *trace;
    wl_et_writer *w;

    (void)state;
    make_folder();
    w = start("a.0.et");
    for (uint64_t id = 1; id <= 4; id++) {
        const wl_et_attr attr[] = {{"stream", "", WL_ARM_INT32, 1, id == 2 ? &eight : &seven},
                                   {"is_cpu_op", "", WL_ARM_BOOL, 1, &no}};

        put_attrs(w, WL_NODE_COMP, id, attr, 2);
    }
    finish(w);
    trace = load(in_folder("a"), &options);
    assert_int_equal(trace->dep_first[4], 2); /* 1 -> 3 -> 4 */
    assert_int_equal(trace->dep[0], 0);
    assert_int_equal(trace->dep[1], 2);
    wl_trace_destroy(trace);
    remove_folder();
}

/* ---- size ---- */

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* A million nodes with names of their own and two dependencies each load in under 400 MB. */
static void test_a_million_nodes_fit_in_400_megabytes(void **state)
{
    enum { NODES = 1000000 };
    struct rusage usage;
    wl_et_writer *w;
    wl_trace *trace;
    char name[40];

    (void)state;
    if (SANITIZED) {
        printf("skipped: memory is not measured under the address sanitizer\n");
        skip();
    }
    make_folder();
    w = start("a.0.et");
    for (uint64_t id = 1; id <= NODES; id++) {
        uint64_t deps[] = {id / 2, id - 1};
        wl_et_plain node = {.id = id,
                            .name = name,
                            .type = WL_NODE_COMP,
                            .data_deps = deps,
                            .n_deps = id > 2 ? 2 : 0,
                            .has_ops = true,
                            .num_ops = 1000,
                            .tensor_size = 100};

        snprintf(name, sizeof name, "layer_%llu_of_the_model", (unsigned long long)id);
        put(w, &node);
    }
    finish(w);
    trace = load_made("a");
    getrusage(RUSAGE_SELF, &usage);
    assert_int_equal(trace->n_nodes, NODES);
    assert_int_equal(trace->rank[0].facts.data_edges, 2 * (NODES - 2));
    assert_in_range(usage.ru_maxrss, 1, 400 * 1000);
    printf("%d nodes: %ld MB at most\n", NODES, usage.ru_maxrss / 1000);
    wl_trace_destroy(trace);
    remove_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_million_nodes_fit_in_400_megabytes),
        cmocka_unit_test(test_all_kinds_of_attribute_survive),
        cmocka_unit_test(test_numbers_are_read_from_any_integer_kind),
        cmocka_unit_test(test_groups_are_read_from_three_dialects),
        cmocka_unit_test(test_group_zero_is_the_world_unless_declared),
        cmocka_unit_test(test_metadata_nodes_declare_groups),
        cmocka_unit_test(test_durations_are_exact),
        cmocka_unit_test(test_cpu_collectives_are_launchers_only_above_their_kernel),
        cmocka_unit_test(test_gzip_is_read_and_written),
        cmocka_unit_test(test_sets_are_found_by_prefix_folder_and_file),
        cmocka_unit_test(test_control_dependencies_count_when_sound),
        cmocka_unit_test(test_streams_can_be_chained),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
