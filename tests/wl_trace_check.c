/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Malformed and odd inputs made here: each is judged with its class and place, at once and without
 * large allocations. */
#include "tests/wl_trace_test.h"

/* Two good nodes, then what `tail` says; returns the offset of the tail. */
static size_t write_with_tail(const char *name, const void *tail, size_t n)
{
    wl_et_writer *w = start(name);
    struct stat st;
    FILE *f;

    put_comp(w, 1, 0, 1);
    put_comp(w, 2, 1, 1);
    finish(w);
    assert_int_equal(stat(in_folder(name), &st), 0);
    f = fopen(in_folder(name), "ab");
    assert_non_null(f);
    assert_int_equal(fwrite(tail, 1, n, f), n);
    fclose(f);
    return (size_t)st.st_size;
}

/* ---- framing ---- */

static void test_broken_frames_are_named_by_offset(void **state)
{
    static const struct {
        const char *what;
        const char *bytes;
        size_t n;
        const char *class_;
    } cases[] = {
        {"length cut off", "\xff", 1, "framing"},
        {"longer than the file",
         "\x7f"
         "abc",
         4, "framing"},
        {"2^63",
         "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"
         "abc",
         13, "framing"},
        {"2^32 + 5",
         "\x85\x80\x80\x80\x10"
         "abcde",
         10, "framing"},
        {"2^31", "\x80\x80\x80\x80\x08", 5, "framing"},
        {"11 bytes", "\x81\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, "framing"},
        {"over 64 bits", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, "framing"},
        {"field 0", "\x02\x00\x01", 3, "node"},
        {"inner length", "\x03\x12\x7f\x61", 4, "node"},
        {"group", "\x02\x0b\x0c", 3, "node"},
        {"wire type 7", "\x02\x0f\x01", 3, "node"},
    };

    (void)state;
    make_folder();
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        char words[128];
        size_t at = write_with_tail("a.0.et", cases[i].bytes, cases[i].n);

        snprintf(words, sizeof words, "a.0.et: %s: |offset %zu:", cases[i].class_, at);
        assert_refused(in_folder("a"), words);
    }
    remove_folder();
}

/* An overlong but legal length (2 in five bytes) is read. */
static void test_overlong_lengths_are_legal(void **state)
{
    wl_trace *trace;

    (void)state;
    make_folder();
    write_with_tail("a.0.et", "\x82\x80\x80\x80\x00\x08\x03", 7);
    trace = load(in_folder("a"), NULL);
    assert_int_equal(trace->n_nodes, 3);
    assert_int_equal(trace->node[2].id, 3);
    wl_trace_destroy(trace);
    remove_folder();
}

static void test_files_of_other_kinds_are_named(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *words;
    } cases[] = {
        {"", 0, "empty"},
        {"\x89PNG\r\n\x1a\n0000", 12, "type|PNG"},
        {"\x7f"
         "ELF\2\1\1",
         7, "type|ELF"},
        {"\xff\xd8\xff\xe0\x00\x10JFIF", 10, "type|JPEG"},
        {"%PDF-1.4\n", 9, "type|PDF"},
        {"PK\3\4....", 8, "type|ZIP"},
        {"{\n  \"workload_graph\": []\n}\n", 26, "type|JSON"},
        {"HYBRID_TRANSFORMER model_parallel_NPU_group: 4\n1\n", 49, "type|text workload"},
        {"hello world, this is no trace", 29, "type|text"},
        {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20, "type|zero"},
        {"version https://git-lfs.github.com/spec/v1\n", 43, "type|LFS"},
        {"\x03\xff\xff\xff", 4, "type"},
    };

    (void)state;
    make_folder();
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        write_bytes("a.0.et", cases[i].bytes, cases[i].n);
        assert_refused(in_folder("a"), cases[i].words);
    }
    remove_folder();
}

/* ---- graphs ---- */

static void put_needing(wl_et_writer *w, uint64_t id, const uint64_t *deps, size_t n)
{
    put(w, &(wl_et_plain){
               .id = id, .name = "n", .type = WL_NODE_COMP, .data_deps = deps, .n_deps = n});
}

static void test_broken_graphs_are_named_by_node(void **state)
{
    static const struct {
        uint64_t id[4], needs[4]; /* 0: nothing, ids from 1 */
        const char *words;
    } cases[] = {
        {{1, 2, 3, 4}, {0, 99, 2, 3}, "graph|node 2 needs node 99"},
        {{1, 2, 3, 4}, {0, 4, 2, 3}, "graph|cycle 2 -> 4 -> 3 -> 2"},
        {{1, 2, 3, 4}, {4, 1, 2, 3}, "graph|cycle 1 -> 4 -> 3 -> 2 -> 1"},
        {{1, 2, 2, 4}, {0, 1, 1, 2}, "graph|id 2 twice|offsets"},
        {{1, 2, 3, 4}, {0, 2, 2, 3}, "graph|need themselves"},
    };

    (void)state;
    make_folder();
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        wl_et_writer *w = start("a.0.et");

        for (int k = 0; k < 4; k++)
            put_needing(w, cases[i].id[k], &cases[i].needs[k], cases[i].needs[k] != 0);
        finish(w);
        assert_refused(in_folder("a"), cases[i].words);
    }
    remove_folder();
}

/* An empty metadata frame, then a node. */
static void test_an_empty_metadata_frame_is_legal(void **state)
{
    wl_trace *trace;

    (void)state;
    make_folder();
    write_bytes("a.0.et", "\x00\x04\x08\x05\x18\x04", 6);
    trace = load(in_folder("a"), NULL);
    assert_int_equal(trace->n_nodes, 1);
    assert_int_equal(trace->node[0].id, 5);
    assert_true(trace->rank[0].metadata);
    wl_trace_destroy(trace);
    remove_folder();
}

static void test_a_parent_named_three_times_counts_once(void **state)
{
    static const uint64_t thrice[] = {1, 1, 1};
    wl_trace *trace;
    wl_et_writer *w;

    (void)state;
    make_folder();
    w = start("a.0.et");
    put_needing(w, 1, NULL, 0);
    put_needing(w, 2, thrice, 3);
    finish(w);
    trace = load(in_folder("a"), NULL);
    assert_int_equal(trace->n_errors, 0);
    assert_int_equal(trace->dep_first[2], 1);
    assert_int_equal(trace->rank[0].facts.data_edges, 1);
    wl_trace_destroy(trace);
    remove_folder();
}

/* ---- values ---- */

static const int64_t type_ok = WL_CHAKRA_ALL_REDUCE, type_bad = 99, size_ok = 1024, negative = -1;
static const uint64_t huge = UINT64_MAX;
static const char *const word = "1024";
static const double fraction = 0.5;

static void test_bad_values_are_named(void **state)
{
    static const struct {
        wl_et_attr size, type;
        const char *words;
    } cases[] = {
        {{"comm_size", "", WL_ARM_INT64, 1, &negative},
         {"comm_type", "", WL_ARM_INT64, 1, &type_ok},
         "value|node 7|comm_size is -1"},
        {{"comm_size", "", WL_ARM_UINT64, 1, &huge},
         {"comm_type", "", WL_ARM_INT64, 1, &type_ok},
         "value|comm_size is 18446744073709551615"},
        {{"comm_size", "", WL_ARM_STRING, 1, &word},
         {"comm_type", "", WL_ARM_INT64, 1, &type_ok},
         "value|comm_size is a string"},
        {{"comm_size", "", WL_ARM_DOUBLE, 1, &fraction},
         {"comm_type", "", WL_ARM_INT64, 1, &type_ok},
         "value|comm_size is a fraction"},
        {{"other", "", WL_ARM_INT64, 1, &size_ok},
         {"comm_type", "", WL_ARM_INT64, 1, &type_ok},
         "value|without comm_size"},
        {{"comm_size", "", WL_ARM_INT64, 1, &size_ok},
         {"other", "", WL_ARM_INT64, 1, &type_ok},
         "value|without comm_type"},
        {{"comm_size", "", WL_ARM_INT64, 1, &size_ok},
         {"comm_type", "", WL_ARM_INT64, 1, &type_bad},
         "value|comm_type is 99"},
    };

    (void)state;
    make_folder();
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        wl_et_writer *w = start("a.0.et");
        const wl_et_attr attr[] = {cases[i].size, cases[i].type};

        put_attrs(w, WL_NODE_COLL, 7, attr, 2);
        finish(w);
        assert_refused(in_folder("a"), cases[i].words);
    }
    remove_folder();
}

static void test_messages_and_memory_must_say_what_they_move(void **state)
{
    static const int32_t peer = 0;
    static const struct {
        wl_node_type type;
        wl_et_attr attr[2];
        const char *words;
    } cases[] = {
        {WL_NODE_SEND,
         {{"comm_size", "", WL_ARM_INT64, 1, &size_ok}, {"x", "", WL_ARM_INT32, 1, &peer}},
         "value|COMM_SEND without comm_dst"},
        {WL_NODE_RECV,
         {{"comm_src", "", WL_ARM_INT32, 1, &peer}, {"x", "", WL_ARM_INT32, 1, &peer}},
         "value|COMM_RECV without comm_size"},
        {WL_NODE_MEM_LOAD,
         {{"x", "", WL_ARM_INT32, 1, &peer}, {"y", "", WL_ARM_INT32, 1, &peer}},
         "value|MEM_LOAD without tensor_size"},
        {(wl_node_type)42,
         {{"x", "", WL_ARM_INT32, 1, &peer}, {"y", "", WL_ARM_INT32, 1, &peer}},
         "value|node type 42"},
    };

    (void)state;
    make_folder();
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        wl_et_writer *w = start("a.0.et");

        put_attrs(w, cases[i].type, 1, cases[i].attr, 2);
        finish(w);
        assert_refused(in_folder("a"), cases[i].words);
    }
    remove_folder();
}

/* ---- warnings ---- */

static void test_warnings_become_errors_when_strict(void **state)
{
    wl_et_writer *w;
    cs_error err = {{0}};
    const wl_et_node node = {.id = 1, .name = "bad \xff name", .type = WL_NODE_INVALID};
    wl_trace *trace;

    (void)state;
    make_folder();
    finish(start("a.0.et")); /* metadata only */
    assert_int_equal(judge(in_folder("a"), false, &err), CS_OK);
    assert_int_equal(judge(in_folder("a"), true, &err), CS_ETRACE);
    assert_non_null(strstr(err.text, "empty: "));
    w = start("a.0.et");
    assert_int_equal(wl_et_writer_put(w, &node, NULL), CS_OK);
    finish(w);
    assert_int_equal(judge(in_folder("a"), false, &err), CS_OK);
    assert_int_equal(judge(in_folder("a"), true, &err), CS_ETRACE);
    assert_non_null(strstr(err.text, "value: "));
    assert_non_null(strstr(err.text, "node: "));
    trace = load(in_folder("a"), NULL);
    assert_string_equal(wl_trace_name(trace, 0), "bad \\xff name");
    wl_trace_destroy(trace);
    remove_folder();
}

/* ---- ranks ---- */

/* A job of two ranks, each one message. */
static void two_messages(int32_t tag_a, int64_t size_a, int32_t tag_b, int64_t size_b)
{
    wl_et_writer *w = start("a.0.et");

    put_message(w, WL_NODE_SEND, 1, 0, 1, tag_a, size_a);
    finish(w);
    w = start("a.1.et");
    put_message(w, WL_NODE_RECV, 1, 0, 1, tag_b, size_b);
    finish(w);
}

static void test_messages_need_both_ends(void **state)
{
    cs_error err = {{0}};
    wl_et_writer *w;

    (void)state;
    make_folder();
    two_messages(3, 64, 3, 64);
    assert_int_equal(judge(in_folder("a"), true, &err), CS_OK);
    two_messages(1, 64, 2, 64);
    assert_refused(in_folder("a"),
                   "ranks|rank 0 node 1 sends 64 bytes|tag 1|rank 1 node 1 waits|tag 2");
    two_messages(1, 1024, 1, 2048);
    assert_refused(in_folder("a"), "ranks|1024|2048|rank 0|rank 1|tag 1");
    w = start("a.1.et");
    put_message(w, WL_NODE_RECV, 1, 7, 1, 1, 64);
    put_message(w, WL_NODE_SEND, 2, 1, 1, 1, 64);
    finish(w);
    assert_refused(in_folder("a"), "ranks|rank 7, but the job has 2 ranks|rank 1 node 2 sends");
    w = start("a.1.et");
    put_message(w, WL_NODE_RECV, 1, 0, 0, 1, 1024);
    finish(w);
    assert_refused(in_folder("a"), "ranks|a receive of rank 0 stands in the file of rank 1");
    remove_folder();
}

static void write_ranks(uint32_t n, uint32_t skip, const char *group)
{
    for (uint32_t r = 0; r < n; r++) {
        char name[32];
        wl_et_writer *w;

        snprintf(name, sizeof name, "a.%u.et", r);
        remove(in_folder(name));
        if (r == skip)
            continue;
        w = start(name);
        put_coll(w, 1, WL_CHAKRA_ALL_REDUCE, 64, group);
        finish(w);
    }
}

static void test_missing_ranks_are_named(void **state)
{
    wl_trace *trace;
    wl_et_writer *w;

    (void)state;
    make_folder();
    write_ranks(4, 2, NULL);
    assert_refused(in_folder("a"), "ranks|3 of 4 ranks|missing: 2");
    remove(in_folder("a.0.et"));
    remove(in_folder("a.1.et"));
    w = start("a.63.et"); /* ranks 3 and 63 of 64: a sample */
    put_coll(w, 1, WL_CHAKRA_ALL_REDUCE, 64, NULL);
    finish(w);
    trace = load(in_folder("a"), NULL);
    assert_true(trace->sample);
    assert_int_equal(trace->job_ranks, 64);
    assert_int_equal(trace->n_errors, 0);
    wl_trace_destroy(trace);
    remove_folder();
}

static void test_groups_fit_the_job_and_their_callers(void **state)
{
    wl_trace *trace;

    (void)state;
    make_folder();
    write_ranks(2, 9, "1");
    assert_refused(in_folder("a"), "ranks|group 1, which no group file");
    write_string("a.json", "{\"1\": [0, 1, 2, 3]}");
    assert_refused(in_folder("a"), "ranks|group 1 names rank 2|2 ranks");
    write_string("a.json", "{\"1\": [1]}");
    assert_refused(in_folder("a"), "ranks|rank 0 is not in it");
    write_string("a.json", "{\"1\": [0, 1], \"2\": [0]}");
    trace = load(in_folder("a"), NULL);
    assert_int_equal(trace->n_errors + trace->n_warnings, 0);
    wl_trace_destroy(trace);
    write_string("a.json", "{\"1\": [0, 0]}");
    assert_refused(in_folder("a"), "ranks: |a.json:1:|rank 0 twice");
    write_string("a.json", "{\"1\": [0, \"x\"]}");
    assert_refused(in_folder("a"), "ranks: |a.json:1:");
    write_string("a.json", "[1, 2");
    assert_refused(in_folder("a"), "a.json:");
    remove_folder();
}

static void test_collectives_agree_across_the_group(void **state)
{
    wl_et_writer *w;
    cs_error err = {{0}};

    (void)state;
    make_folder();
    write_ranks(3, 9, NULL);
    w = start("a.1.et");
    put_coll(w, 1, WL_CHAKRA_ALL_REDUCE, 64, NULL);
    put_coll(w, 2, WL_CHAKRA_ALL_REDUCE, 64, NULL);
    finish(w);
    assert_refused(in_folder("a"), "ranks|rank 0 calls 1|rank 1 calls 2");
    w = start("a.1.et");
    put_coll(w, 5, WL_CHAKRA_ALL_GATHER, 4096, NULL);
    finish(w);
    assert_refused(in_folder("a"),
                   "ranks|rank 0 node 1 is ALL_REDUCE of 64|rank 1 node 5 is ALL_GATHER of 4096");
    w = start("a.1.et");
    put_comp(w, 1, 0, 1);
    finish(w);
    assert_refused(in_folder("a"), "ranks|rank 0 calls 1|rank 1 calls 0");
    /* An extra collective in a group of its own, and a group of one, are sound. */
    w = start("a.1.et");
    put_coll(w, 1, WL_CHAKRA_ALL_REDUCE, 8, "4");
    put_coll(w, 2, WL_CHAKRA_ALL_REDUCE, 64, NULL);
    finish(w);
    write_string("a.json", "{\"4\": [1]}");
    assert_int_equal(judge(in_folder("a"), true, &err), CS_OK);
    remove_folder();
}

/* Custom collectives number ranks by position and state sizes as shares. */
static void test_custom_collectives_keep_shares(void **state)
{
    static const int32_t three = 3, eight = 8, one = 1, tag = 0;
    static const wl_et_attr attr[] = {{"comm_dst", "", WL_ARM_INT32, 1, &one},
                                      {"comm_tag", "", WL_ARM_INT32, 1, &tag},
                                      {"msg_chunk_cnt", "", WL_ARM_INT32, 1, &three},
                                      {"total_chunk_cnt", "", WL_ARM_INT32, 1, &eight}};
    wl_trace_options options = {.custom = true};
    wl_trace *trace;
    wl_et_writer *w;

    (void)state;
    make_folder();
    w = start("a.0.et");
    put_attrs(w, WL_NODE_SEND, 1, attr, 4);
    finish(w);
    trace = load(in_folder("a"), &options);
    assert_int_equal(trace->n_errors, 0);
    assert_true(trace->node[0].flags & WL_NODE_CHUNKED);
    assert_int_equal(trace->node[0].chunk_count, 3);
    assert_int_equal(trace->node[0].chunk_total, 8);
    assert_int_equal(trace->node[0].src, 0);
    wl_trace_destroy(trace);
    remove_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_frames_are_named_by_offset),
        cmocka_unit_test(test_overlong_lengths_are_legal),
        cmocka_unit_test(test_files_of_other_kinds_are_named),
        cmocka_unit_test(test_an_empty_metadata_frame_is_legal),
        cmocka_unit_test(test_broken_graphs_are_named_by_node),
        cmocka_unit_test(test_a_parent_named_three_times_counts_once),
        cmocka_unit_test(test_bad_values_are_named),
        cmocka_unit_test(test_messages_and_memory_must_say_what_they_move),
        cmocka_unit_test(test_warnings_become_errors_when_strict),
        cmocka_unit_test(test_messages_need_both_ends),
        cmocka_unit_test(test_missing_ranks_are_named),
        cmocka_unit_test(test_groups_fit_the_job_and_their_callers),
        cmocka_unit_test(test_collectives_agree_across_the_group),
        cmocka_unit_test(test_custom_collectives_keep_shares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
