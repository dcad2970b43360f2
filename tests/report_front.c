/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What is on a front, and its knee. */
#include "report/analysis.h"

#include "tests/test.h"

/* Row i is on the front when all its values are finite, no row dominates it, and no row before it
 * is equal. */
static bool on_front(const double *v, size_t n, size_t k, size_t i)
{
    for (size_t c = 0; c < k; c++)
        if (!isfinite(v[i * k + c]))
            return false;
    for (size_t j = 0; j < n; j++) {
        bool finite = true, no_worse = true, better = false;
        for (size_t c = 0; c < k; c++) {
            finite = finite && isfinite(v[j * k + c]);
            no_worse = no_worse && v[j * k + c] <= v[i * k + c];
            better = better || v[j * k + c] < v[i * k + c];
        }
        if (finite && no_worse && (better || j < i))
            return false;
    }
    return true;
}

/* Values on a coarse grid, so that many are equal; one row in eight has none. */
static void fill(cs_rng *rng, double *v, size_t n, size_t k)
{
    for (size_t i = 0; i < n * k; i++)
        v[i] = 1.0 + (double)cs_rng_below(rng, 12);
    for (size_t i = 0; i < n; i++)
        if (cs_rng_below(rng, 8) == 0)
            v[i * k + cs_rng_below(rng, k)] = cs_rng_below(rng, 2) == 0 ? NAN : INFINITY;
}

static void test_front_is_the_brute_force_set(void **state)
{
    enum { MOST = 200 };
    double v[MOST * REPORT_MAX_CRITERIA];
    bool marked[MOST];
    cs_rng *rng = cs_rng_create(7, 0, 0);
    size_t found = 0;

    (void)state;
    for (size_t round = 0; round < 200; round++) {
        const size_t n = cs_rng_below(rng, MOST + 1), k = 2 + round % 3;
        fill(rng, v, n, k);
        assert_int_equal(report_front_mark(v, n, k, marked, NULL), CS_OK);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(marked[i], on_front(v, n, k, i));
            found += marked[i];
        }
    }
    assert_true(found > 1000);
    cs_rng_destroy(rng);
}

static void test_equal_rows_leave_the_first(void **state)
{
    static const double v[] = {2, 3, 2, 3, 1, 4, 2, 3};
    bool marked[4];

    (void)state;
    assert_int_equal(report_front_mark(v, 4, 2, marked, NULL), CS_OK);
    assert_true(marked[0]);
    assert_false(marked[1]);
    assert_true(marked[2]);
    assert_false(marked[3]);
}

/* (1, 100), (10, 10), (100, 1): logarithms scaled to [0, 1] are (0, 1), (1/2, 1/2), (1, 0);
 * distances to (0, 0): 1, 0.71, 1. */
static void test_knee_is_nearest_to_the_ideal_point(void **state)
{
    static const double v[] = {1, 100, 10, 10, 100, 1};
    static const double linear[] = {-1, 5, 0, 1, 4, 0}; /* (0,1), (1/5,1/5), (1,0) */
    static const double flat[] = {3, 3, 3, 3, 3, 3};

    (void)state;
    assert_int_equal(report_front_knee(v, 3, 2), 1);
    assert_int_equal(report_front_knee(linear, 3, 2), 1);
    assert_int_equal(report_front_knee(flat, 3, 2), 0);
    assert_true(report_front_knee(v, 2, 2) == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_front_is_the_brute_force_set),
        cmocka_unit_test(test_equal_rows_leave_the_first),
        cmocka_unit_test(test_knee_is_nearest_to_the_ideal_point),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
