/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The forest behind the importance of knobs. */
#include "report/importance_forest.h"

#include "tests/test.h"

enum { ROWS = 600, FEATURES = 5 };

/* Targets 4 * a + b with a, b in 0..7: variances 16 * 5.25 and 5.25; features 2 to 4 do nothing. */
static void fill(uint8_t *level, double *target)
{
    cs_rng *rng = cs_rng_create(11, 0, 0);

    for (size_t i = 0; i < ROWS; i++) {
        for (size_t f = 0; f < FEATURES; f++)
            level[i * FEATURES + f] = (uint8_t)cs_rng_below(rng, 8);
        target[i] = 4.0 * level[i * FEATURES] + level[i * FEATURES + 1];
    }
    cs_rng_destroy(rng);
}

static void test_importance_ranks_what_matters(void **state)
{
    static uint8_t level[ROWS * FEATURES];
    static double target[ROWS];
    const report__samples samples = {level, target, ROWS, FEATURES};
    report__forest *forest = NULL, *again = NULL;
    double a[FEATURES], b[FEATURES];

    (void)state;
    fill(level, target);
    assert_int_equal(report__forest_grow(&samples, &forest, NULL), CS_OK);
    assert_int_equal(report__forest_importance(forest, a, NULL), CS_OK);
    assert_true(report__forest_r2(forest) > 0.9);
    assert_true(a[0] > 5.0 * a[1]);
    for (size_t f = 2; f < FEATURES; f++)
        assert_true(a[1] > 2.0 * a[f]);
    /* Shuffling feature 0 doubles its part of the variance: 2 * 84 / 89.25 = 1.88. */
    assert_close(a[0], 2.0 * 84.0 / 89.25, 0.2);

    assert_int_equal(report__forest_grow(&samples, &again, NULL), CS_OK);
    assert_int_equal(report__forest_importance(again, b, NULL), CS_OK);
    assert_memory_equal(a, b, sizeof a);
    report__forest_destroy(forest);
    report__forest_destroy(again);
}

static void test_predictions_follow_the_function(void **state)
{
    static uint8_t level[ROWS * FEATURES];
    static double target[ROWS];
    const report__samples samples = {level, target, ROWS, FEATURES};
    const uint8_t low[FEATURES] = {0, 0, 3, 3, 3}, high[FEATURES] = {7, 7, 3, 3, 3};
    report__forest *forest = NULL;

    (void)state;
    fill(level, target);
    assert_int_equal(report__forest_grow(&samples, &forest, NULL), CS_OK);
    assert_true(report__forest_predict(forest, low) < 6.0);
    assert_true(report__forest_predict(forest, high) > 29.0);
    report__forest_destroy(forest);
}

static void test_two_rows_are_enough(void **state)
{
    static const uint8_t level[] = {0, 1};
    static const double target[] = {1.0, 2.0};
    const report__samples samples = {level, target, 2, 1};
    report__forest *forest = NULL;
    double importance;

    (void)state;
    assert_int_equal(report__forest_grow(&samples, &forest, NULL), CS_OK);
    assert_int_equal(report__forest_importance(forest, &importance, NULL), CS_OK);
    assert_true(importance == 0.0);
    assert_true(report__forest_predict(forest, level) >= 1.0);
    assert_true(report__forest_predict(forest, level) <= 2.0);
    report__forest_destroy(forest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_importance_ranks_what_matters),
        cmocka_unit_test(test_predictions_follow_the_function),
        cmocka_unit_test(test_two_rows_are_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
