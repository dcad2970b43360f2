/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Old schemas of traces (0.0.1 to 0.0.3), byte by byte. */
#include "tests/wl_trace_test.h"

/* 0.0.1: id 1, name 2, type 3 (COMP 3, COLL 6), parent 4, run time 7, comm_type 13 (ALL_GATHER 3),
 * involved_dim 14, comm_size 18. */
static void make_001(wire *file)
{
    wire a = {.n = 0}, b = {.n = 0};

    put_int(&a, 1, 0);
    put_text(&a, 2, "first");
    put_int(&a, 3, 3);
    put_int(&a, 7, 5);
    put_frame(file, &a);
    put_int(&b, 1, 1);
    put_text(&b, 2, "second");
    put_int(&b, 3, 6);
    put_int(&b, 4, 0);
    put_int(&b, 13, 3);
    put_int(&b, 14, 1);
    put_int(&b, 14, 0);
    put_int(&b, 18, 26843545600);
    put_frame(file, &b);
}

static void put_old_attr(wire *node, const char *name, uint32_t field, uint64_t value)
{
    wire attr = {.n = 0};

    put_text(&attr, 1, name);
    put_int(&attr, 2, field - 4);
    put_int(&attr, field, value);
    put_bytes(node, 11, attr.data, attr.n);
}

/* 0.0.2 has integers in field 5 and COMP = 3; 0.0.3 has them in 6 or 7 and COMP = 4.  comm_type 2
 * is ALL_GATHER in both. */
static void make_00x(wire *file, uint32_t int_field, uint64_t shift)
{
    wire a = {.n = 0}, b = {.n = 0};

    put_int(&a, 1, 0);
    put_text(&a, 2, "first");
    put_int(&a, 3, 3 + shift);
    put_old_attr(&a, "runtime", int_field, 5);
    put_frame(file, &a);
    put_int(&b, 1, 1);
    put_text(&b, 2, "second");
    put_int(&b, 3, 6 + shift);
    put_int(&b, 4, 0);
    put_old_attr(&b, "comm_type", int_field, 2);
    put_old_attr(&b, "comm_size", int_field, 26843545600);
    put_frame(file, &b);
}

static void test_old_schemas_are_detected_and_restated(void **state)
{
    static const struct {
        uint32_t int_field;
        uint64_t shift;
        wl_schema schema;
    } cases[] = {
        {0, 0, WL_SCHEMA_001}, {5, 0, WL_SCHEMA_002}, {6, 1, WL_SCHEMA_003}, {7, 1, WL_SCHEMA_003}};

    (void)state;
    make_folder();
    for (size_t k = 0; k < CS_COUNT(cases); k++) {
        wire file = {.n = 0};
        wl_trace *trace;

        if (cases[k].int_field == 0)
            make_001(&file);
        else
            make_00x(&file, cases[k].int_field, cases[k].shift);
        write_bytes("a.0.eg", file.data, file.n);
        trace = load_made("a");
        assert_int_equal(trace->rank[0].schema, cases[k].schema);
        assert_int_equal(trace->n_nodes, 2);
        assert_int_equal(trace->node[0].type, WL_NODE_COMP);
        assert_int_equal(trace->node[0].duration_ps, 5000000);
        assert_int_equal(trace->node[1].type, WL_NODE_COLL);
        assert_int_equal(trace->node[1].comm, WL_CHAKRA_ALL_GATHER);
        assert_true(trace->node[1].comm_size == 26843545600);
        assert_int_equal(trace->dep_first[2] - trace->dep_first[1], 1);
        assert_int_equal(trace->node[1].involved, k == 0 ? 1 : 0);
        wl_trace_destroy(trace);
    }
    remove_folder();
}

/* An attribute of 0.0.3 in each form: bool, float, string, lists. */
static void test_old_attributes_have_the_types_of_their_wire(void **state)
{
    wire file = {.n = 0}, node = {.n = 0}, b = {.n = 0}, f = {.n = 0}, s = {.n = 0}, l = {.n = 0};
    wl_et_reader *reader = NULL;
    const wl_et_node *out;

    (void)state;
    make_folder();
    put_int(&node, 1, 0);
    put_text(&node, 2, "n");
    put_int(&node, 3, 4);
    put_text(&b, 1, "flag");
    put_int(&b, 4, 1);
    put_bytes(&node, 11, b.data, b.n);
    put_text(&f, 1, "real");
    put_float(&f, 5, 0.5f);
    put_bytes(&node, 11, f.data, f.n);
    put_text(&s, 1, "text");
    put_text(&s, 8, "hello");
    put_bytes(&node, 11, s.data, s.n);
    put_text(&l, 1, "list");
    put_int(&l, 12, 3);
    put_int(&l, 12, 4);
    put_bytes(&node, 11, l.data, l.n);
    put_frame(&file, &node);
    write_bytes("a.0.et", file.data, file.n);
    assert_int_equal(wl_et_reader_open(in_folder("a.0.et"), WL_SCHEMA_AUTO, &reader, NULL), CS_OK);
    assert_int_equal(wl_et_reader_schema(reader), WL_SCHEMA_003);
    assert_int_equal(wl_et_reader_next(reader, &out, NULL), CS_OK);
    assert_int_equal(wl_et_find(out, "flag")->arm, WL_ARM_BOOL);
    assert_true(*(const float *)wl_et_find(out, "real")->values == 0.5f);
    assert_string_equal(*(const char *const *)wl_et_find(out, "text")->values, "hello");
    assert_int_equal(wl_et_find(out, "list")->n, 2);
    assert_int_equal(((const int64_t *)wl_et_find(out, "list")->values)[1], 4);
    wl_et_reader_close(reader);
    remove_folder();
}

/* Two nodes that both schemas can read: id 0 on the wire and `parent` as a varint tell. */
static void test_an_ambiguous_file_can_be_read_by_order(void **state)
{
    wire file = {.n = 0};
    wl_trace_options options = {.schema = WL_SCHEMA_004};
    wl_trace *trace;

    (void)state;
    make_folder();
    make_001(&file);
    write_bytes("a.0.et", file.data, file.n);
    options.schema = WL_SCHEMA_001;
    trace = load(in_folder("a"), &options);
    assert_int_equal(trace->node[0].type, WL_NODE_COMP);
    wl_trace_destroy(trace);
    remove_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_schemas_are_detected_and_restated),
        cmocka_unit_test(test_old_attributes_have_the_types_of_their_wire),
        cmocka_unit_test(test_an_ambiguous_file_can_be_read_by_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
