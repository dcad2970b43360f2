/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Tables in their three forms, and numbers as people read them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/report.h"

static const report_column columns[] = {
    {"name", "name", REPORT_TEXT, CS_DIMENSIONLESS, NULL},
    {"count", "count", REPORT_INTEGER, CS_DIMENSIONLESS, NULL},
    {"time_s", "time", REPORT_REAL, CS_SECONDS, NULL},
    {"share", "share", REPORT_SHARE, CS_DIMENSIONLESS, NULL},
};

/* A row of ordinary values, one that needs quotes, one of absent values. */
static report_table *sample(void)
{
    report_table *table = report_table_create(columns, CS_COUNT(columns));

    report_table_text(table, "plain");
    report_table_integer(table, 3);
    report_table_real(table, 0.25);
    report_table_real(table, 0.5);
    report_table_printf(table, "a \"%s\", b", "quoted");
    report_table_integer(table, -1);
    report_table_real(table, 0.0015);
    report_table_real(table, 1.0);
    report_table_text(table, NULL);
    report_table_integer(table, 0);
    report_table_real(table, NAN);
    report_table_real(table, NAN);
    return table;
}

static void assert_written(report_format format, const char *expected)
{
    report_table *table = sample();
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    cs_error err;

    assert_non_null(out);
    assert_int_equal(report_table_rows(table), 3);
    assert_int_equal(report_table_write(table, format, out, &err), CS_OK);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
    report_table_destroy(table);
}

static void test_csv_quotes_and_leaves_absent_values_empty(void **state)
{
    (void)state;
    assert_written(REPORT_CSV, "name,count,time_s,share\n"
                               "plain,3,0.25,0.5\n"
                               "\"a \"\"quoted\"\", b\",-1,0.0015,1\n"
                               ",0,,\n");
}

static void test_people_see_aligned_columns_and_units(void **state)
{
    (void)state;
    assert_written(REPORT_TABLE, "name           count    time    share\n"
                                 "plain              3  250 ms   50.0 %\n"
                                 "a \"quoted\", b     -1  1.5 ms  100.0 %\n"
                                 "-                  0       -        -\n");
}

static void test_json_has_null_for_absent_values(void **state)
{
    report_table *table = sample();
    cs_json *rows = report_table_json(table);
    char *text = cs_json_dump(rows, false);

    (void)state;
    assert_string_equal(text, "[{\"name\":\"plain\",\"count\":3,\"time_s\":0.25,\"share\":0.5},"
                              "{\"name\":\"a \\\"quoted\\\", b\",\"count\":-1,"
                              "\"time_s\":0.0015,\"share\":1.0},"
                              "{\"name\":null,\"count\":0,\"time_s\":null,\"share\":null}]");
    free(text);
    cs_json_destroy(rows);
    report_table_destroy(table);
}

/* The device takes no byte: the writer must say so. */
static void test_full_device_is_an_error(void **state)
{
    report_table *table = sample();
    FILE *out = fopen("/dev/full", "w");
    cs_error err;

    (void)state;
    if (out == NULL)
        skip();
    setvbuf(out, NULL, _IONBF, 0);
    assert_int_equal(report_table_write(table, REPORT_CSV, out, &err), CS_EIO);
    fclose(out);
    report_table_destroy(table);
}

static void test_quantities_take_a_fitting_unit(void **state)
{
    static const struct {
        double value;
        cs_dimension unit;
        const char *expect;
    } cases[] = {
        {0.0, CS_SECONDS, "0 s"},
        {1.5, CS_SECONDS, "1.5 s"},
        {0.0015, CS_SECONDS, "1.5 ms"},
        {3e-9, CS_SECONDS, "3 ns"},
        {3e-12, CS_SECONDS, "0.003 ns"},
        {24e9, CS_BYTES, "24 GB"},
        {512, CS_BYTES, "512 B"},
        {12.5e9, CS_BANDWIDTH, "12.5 GB/s"},
        {8596479, CS_DOLLARS, "$8,596,479"},
        {0, CS_DOLLARS, "$0"},
        {999, CS_DOLLARS, "$999"},
        {NAN, CS_SECONDS, "-"},
        {0.3, CS_DIMENSIONLESS, "0.3"},
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++)
        assert_string_equal(report_quantity(cases[i].value, cases[i].unit, text), cases[i].expect);
    assert_string_equal(report_count(0, text), "0");
    assert_string_equal(report_count(1234567, text), "1,234,567");
    assert_string_equal(report_count(~(unsigned __int128)0, text),
                        "340,282,366,920,938,463,463,374,607,431,768,211,455");
}

static void test_bar_is_clipped(void **state)
{
    char text[64];

    (void)state;
    assert_string_equal(report_bar(0.5, 4, text), "##..");
    assert_string_equal(report_bar(7.0, 4, text), "####");
    assert_string_equal(report_bar(-1.0, 4, text), "....");
    assert_string_equal(report_bar(NAN, 4, text), "....");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv_quotes_and_leaves_absent_values_empty),
        cmocka_unit_test(test_people_see_aligned_columns_and_units),
        cmocka_unit_test(test_json_has_null_for_absent_values),
        cmocka_unit_test(test_full_device_is_an_error),
        cmocka_unit_test(test_quantities_take_a_fitting_unit),
        cmocka_unit_test(test_bar_is_clipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
