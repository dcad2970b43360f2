/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/doc.h"
#include "common/json.h"
#include "tests/test.h"

/* 400 Gb/s = 400e9/8 = 50e9 B/s; 25 GiB/s = 25*2^30; 10 pJ/bit = 10e-12*8 J/B. */
static void test_quantities_are_si(void **state)
{
    static const struct {
        const char *text;
        cs_dimension dimension;
        double expect;
    } cases[] = {
        {"50 GB/s", CS_BANDWIDTH, 50e9},
        {"400 Gb/s", CS_BANDWIDTH, 50e9},
        {"25GiB/s", CS_BANDWIDTH, 26843545600},
        {"500 ns", CS_SECONDS, 500e-9},
        {"24 GB", CS_BYTES, 24e9},
        {"989 TFLOP/s", CS_FLOP_RATE, 989e12},
        {"700 W", CS_WATTS, 700},
        {"10 pJ/bit", {{0, -1, 0, 0, 1}}, 80e-12},
        {"2.5", CS_DIMENSIONLESS, 2.5},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        double value = 0;
        cs_error err;
        assert_int_equal(cs_quantity_parse(cases[i].text, cases[i].dimension, &value, &err), CS_OK);
        assert_true(fabs(value - cases[i].expect) <= 1e-12 * cases[i].expect);
    }
}

static void test_bare_wrong_and_ambiguous_units_are_refused(void **state)
{
    static const struct {
        const char *text;
        cs_dimension dimension;
        const char *message;
    } cases[] = {
        {"50", CS_BANDWIDTH, "has no unit"},         {"50 GBps", CS_BANDWIDTH, "unknown unit"},
        {"50 G", CS_BANDWIDTH, "unknown unit"},      {"50 GB", CS_BANDWIDTH, "does not fit"},
        {"5 s", CS_DIMENSIONLESS, "does not fit"},   {"fast", CS_SECONDS, "expected a number"},
        {"nan s", CS_SECONDS, "expected a number"},  {"1e400 s", CS_SECONDS, "expected a number"},
        {"0x10 s", CS_SECONDS, "expected a number"},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        double value = 0;
        cs_error err = {""};
        assert_int_equal(cs_quantity_parse(cases[i].text, cases[i].dimension, &value, &err),
                         CS_EPARSE);
        assert_non_null(strstr(err.text, cases[i].message));
    }
}

static void test_quantity_text_picks_a_unit(void **state)
{
    char text[48];
    (void)state;
    assert_string_equal(cs_quantity_text(50e9, CS_BANDWIDTH, text), "50 GB/s");
    assert_string_equal(cs_quantity_text(5e-7, CS_SECONDS, text), "500 ns");
    assert_string_equal(cs_quantity_text(1.5, CS_SECONDS, text), "1.5 s");
    assert_string_equal(cs_quantity_text(0, CS_BYTES, text), "0 B");
    assert_string_equal(cs_quantity_text(0.25, CS_DIMENSIONLESS, text), "0.25");
}

static void test_streams_differ_and_repeat(void **state)
{
    cs_rng *a = cs_rng_create(1, 2, 3), *b = cs_rng_create(1, 2, 3), *c = cs_rng_create(1, 3, 2);
    void *saved = malloc(cs_rng_state_size());
    uint64_t first;
    (void)state;
    assert_int_equal(cs_rng_u64(a), cs_rng_u64(b));
    assert_int_not_equal(cs_rng_u64(a), cs_rng_u64(c));
    cs_rng_save(a, saved);
    first = cs_rng_u64(a);
    (void)cs_rng_u64(a);
    cs_rng_load(a, saved);
    assert_int_equal(cs_rng_u64(a), first);
    for (int i = 0; i < 1000; i++) {
        assert_true(cs_rng_below(a, 7) < 7);
        assert_true(cs_rng_uniform(a) < 1.0);
        assert_true(cs_rng_below_u128(a, (unsigned __int128)3 << 80) < (unsigned __int128)3 << 80);
    }
    free(saved);
    cs_rng_destroy(a);
    cs_rng_destroy(b);
    cs_rng_destroy(c);
}

static void test_names_counts_and_numbers(void **state)
{
    static const char *const names[] = {"bandwidth", "latency", "npus"};
    char text[40];
    unsigned __int128 big = ((unsigned __int128)1 << 127) - 1, product;
    (void)state;
    assert_string_equal(cs_nearest("bandwith", names, 3), "bandwidth");
    assert_null(cs_nearest("zebra", names, 3));
    assert_string_equal(cs_u128_text(big, text), "170141183460469231731687303715884105727");
    assert_string_equal(cs_u128_text(0, text), "0");
    assert_false(cs_u128_mul(big, 3, &product));
    assert_string_equal(cs_double_text(0.1, text), "0.1");
    assert_string_equal(cs_double_text(1.0 / 3, text), "0.3333333333333333");
}

static cs_status parse(const char *text, cs_doc **doc, cs_error *err)
{
    return cs_doc_parse(text, strlen(text), "t.yaml", doc, err);
}

static void test_document_knows_its_positions(void **state)
{
    cs_doc *doc = NULL;
    cs_error err;
    const cs_node *list;
    int64_t value = 0;
    (void)state;
    assert_int_equal(parse("\xEF\xBB\xBF"
                           "a: 1\r\nb: [2, x]\r\n",
                           &doc, &err),
                     CS_OK);
    list = cs_node_get(cs_doc_root(doc), "b");
    assert_int_equal(list->n, 2);
    assert_int_equal(cs_node_int(doc, list->item[0], 0, 9, &value, &err), CS_OK);
    assert_int_equal(value, 2);
    assert_int_equal(cs_node_int(doc, list->item[1], 0, 9, &value, &err), CS_ESCHEMA);
    assert_string_equal(err.text, "t.yaml:2:8: expected a whole number, found 'x'");
    cs_doc_destroy(doc);
}

static void test_hostile_documents_are_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "t.yaml:1:1: the file is empty"},
        {"# only a comment\n", "the file is empty"},
        {"a: 1\na: 2\n", "t.yaml:2:1: duplicate key 'a' (first on line 1)"},
        {"a:\n\tb: 1\n", "a tab in the indentation"},
        {"a: &x [1]\n", "anchors and tags"},
        {"a: *x\n", "aliases are not supported"},
        {"a: 1\n---\nb: 2\n", "second document"},
        {"? [1]\n: 2\n", "a key must be a plain name"},
        {"a: \"x\\0y\"\n", "a zero byte"},
        {"a: [1, 2\n", "t.yaml:2:1"},
    };
    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        cs_doc *doc = NULL;
        cs_error err = {""};
        assert_int_not_equal(parse(cases[i].text, &doc, &err), CS_OK);
        assert_null(doc);
        if (strstr(err.text, cases[i].message) == NULL)
            fail_msg("case %zu: %s", i, err.text);
    }
}

static void test_deep_nesting_is_refused(void **state)
{
    char text[400];
    cs_doc *doc = NULL;
    cs_error err;
    (void)state;
    memset(text, '[', 399);
    text[399] = '\0';
    assert_int_equal(parse(text, &doc, &err), CS_EPARSE);
    assert_non_null(strstr(err.text, "nested deeper than 64"));
}

static void test_unknown_key_names_the_nearest(void **state)
{
    static const char *const names[] = {"bandwidth", "latency"};
    cs_doc *doc = NULL;
    cs_error err;
    (void)state;
    assert_int_equal(parse("latency: 1\nbandwith: 2\n", &doc, &err), CS_OK);
    assert_int_equal(cs_node_check_keys(doc, cs_doc_root(doc), names, 2, &err), CS_ESCHEMA);
    assert_string_equal(err.text, "t.yaml:2:1: unknown key 'bandwith'; did you mean 'bandwidth'?");
    cs_doc_destroy(doc);
}

static void test_missing_file_and_folder(void **state)
{
    cs_doc *doc = NULL;
    cs_error err;
    (void)state;
    assert_int_equal(cs_doc_load("no/such.yaml", &doc, &err), CS_ENOENT);
    assert_int_equal(cs_doc_load("tests", &doc, &err), CS_ENOENT);
}

static void test_json_round_trip(void **state)
{
    cs_json *object = cs_json_object(), *back = NULL;
    const cs_json *value = NULL;
    cs_error err;
    char *text;
    double real = 0;
    (void)state;
    cs_json_set(object, "x", cs_json_real(0.1));
    cs_json_set(object, "bad", cs_json_real(NAN));
    cs_json_set(object, "list", cs_json_push(cs_json_array(), cs_json_string("a\xff")));
    text = cs_json_dump(object, false);
    assert_non_null(strstr(text, "\"bad\":null"));
    assert_non_null(strstr(text, "[\"a?\"]"));
    assert_int_equal(cs_json_parse(text, strlen(text), &back, &err), CS_OK);
    assert_true(cs_json_get_real(cs_json_get(back, "x"), &real) && real == 0.1);
    assert_string_equal(cs_json_key_at(back, 2, &value), "list");
    assert_int_equal(cs_json_size(value), 1);
    assert_null(cs_json_key_at(back, 3, &value));
    free(text);
    cs_json_destroy(object);
    cs_json_destroy(back);
    assert_int_equal(cs_json_parse("{\"a\":1", 6, &back, &err), CS_EPARSE);
}

/* 16 elements at first, half as many more each time: 16, 24, 36; a request beyond that as it is. */
static void test_arrays_grow_by_half(void **state)
{
    static const struct {
        size_t want, capacity;
    } cases[] = {{0, 16}, {16, 16}, {17, 24}, {25, 36}, {36, 36}, {1000, 1000}, {1001, 1500}};
    size_t capacity = 0;
    int *array = NULL;

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        array = cs_room(array, &capacity, cases[i].want, sizeof *array);
        assert_non_null(array);
        assert_int_equal(capacity, cases[i].capacity);
        for (size_t k = i == 0 ? 0 : cases[i - 1].capacity; k < capacity; k++)
            array[k] = (int)k;
        for (size_t k = 0; k < capacity; k++)
            assert_int_equal(array[k], k);
    }
    assert_null(cs_room(array, &capacity, SIZE_MAX / sizeof *array, sizeof *array));
    assert_int_equal(capacity, 1500);
    assert_int_equal(array[1499], 1499);
    free(array);
}

static void test_arena_limit_and_zeroing(void **state)
{
    cs_arena *arena = cs_arena_create(1000);
    unsigned char *bytes = cs_arena_alloc(arena, 500);
    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < 500; i++)
        assert_int_equal(bytes[i], 0);
    assert_null(cs_arena_alloc(arena, 501));
    assert_string_equal(cs_arena_printf(arena, "%d-%s", 7, "x"), "7-x");
    cs_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantities_are_si),
        cmocka_unit_test(test_bare_wrong_and_ambiguous_units_are_refused),
        cmocka_unit_test(test_quantity_text_picks_a_unit),
        cmocka_unit_test(test_streams_differ_and_repeat),
        cmocka_unit_test(test_names_counts_and_numbers),
        cmocka_unit_test(test_document_knows_its_positions),
        cmocka_unit_test(test_hostile_documents_are_refused),
        cmocka_unit_test(test_deep_nesting_is_refused),
        cmocka_unit_test(test_unknown_key_names_the_nearest),
        cmocka_unit_test(test_missing_file_and_folder),
        cmocka_unit_test(test_json_round_trip),
        cmocka_unit_test(test_arrays_grow_by_half),
        cmocka_unit_test(test_arena_limit_and_zeroing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
