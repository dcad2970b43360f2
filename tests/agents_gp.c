/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The Gaussian process of the bayesian agent against worked numbers. */
#include "agents/gp.h"
#include "tests/test.h"

static agent__gp *small(size_t n, const double *x, const double *y, double length, double noise)
{
    static const bool category[] = {false, true};
    double label[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    agent__gp *gp = agent__gp_create(2, category, 12);

    assert_non_null(gp);
    double *p = agent__gp_params(gp);
    assert_int_equal(agent__gp_n_params(gp), 4);
    p[0] = log(length);
    p[1] = log(0.7);
    p[2] = log(2.0);
    p[3] = log(noise);
    assert_int_equal(agent__gp_set(gp, n, x, y, label, NULL), CS_OK);
    return gp;
}

/* Two designs at x = 0 and 0.5, the same category, th = 1, s2 = 2, noise 0.5: k = 2 exp(-1 *
 * (2*0.5)^2) = 2/e = 0.735759.  y = 1, 3 standardised: mean 2, deviation sqrt 2, so y = -1/sqrt 2,
 * 1/sqrt 2. K = [[2.5, k], [k, 2.5]], K^-1 y = y / (2.5 - k).  At x = 0: mean = (2 - k) y_1 / (2.5
 * - k) = 1.264241 * -0.707107 / 1.764241 = -0.506705; at x = 0.25 the two cancel: mean 0. Variance
 * at x = 0: 2.5 - k*' K^-1 k*, k* = (2, k): (2.5*4 + 2.5 k^2 - 4 k^2) / (6.25 - k^2) = (10 - 1.5 *
 * 0.541341) / 5.708659 = 1.609482 -> 0.890518, sd 0.943673. */
static void test_posterior_of_two_designs(void **state)
{
    const double x[] = {0.0, 0.0, 0.5, 0.0}, y[] = {1.0, 3.0};
    const double at[] = {0.0, 0.0, 0.25, 0.0};
    double mean[2], sd[2], label[2];
    agent__gp *gp = small(2, x, y, 1.0, 0.5);

    (void)state;
    agent__gp_predict(gp, 2, at, mean, sd, label);
    assert_close(mean[0], -0.506705, 1e-5);
    assert_close(sd[0], 0.943673, 1e-5);
    assert_true(fabs(mean[1]) < 1e-12);
    assert_true(label[0] > 0 && label[1] > 0);
    assert_close(agent__gp_standard(gp, 3.0), 1.0 / sqrt(2.0), 1e-12);
    agent__gp_destroy(gp);
}

/* Another category is exp(-0.7) as near as the same one. */
static void test_categories_differ_or_not(void **state)
{
    const double x[] = {0.0, 3.0}, y[] = {1.0};
    const double at[] = {0.0, 3.0, 0.0, 5.0, 0.0, -1.0};
    double mean[3], sd[3], label[3];
    agent__gp *gp = small(1, x, y, 1.0, 1e-6);

    (void)state;
    agent__gp_predict(gp, 3, at, mean, sd, label);
    assert_close(label[0], 1.0, 1e-5);
    assert_close(label[1], exp(-0.7), 1e-5);
    assert_close(label[2], exp(-0.7), 1e-5);
    assert_true(sd[0] < 0.01 && sd[1] > 0.5);
    agent__gp_destroy(gp);
}

/* A pretended design has its posterior mean as value: the mean stays, the doubt goes. */
static void test_pretending_removes_doubt_only(void **state)
{
    const double x[] = {0.0, 0.0, 0.4, 0.0, 0.9, 1.0}, y[] = {1.0, 2.0, 5.0};
    const double at[] = {0.6, 0.0};
    double before, after, sd_before, sd_after, label;
    agent__gp *gp = small(3, x, y, 2.0, 1e-4);

    (void)state;
    agent__gp_predict(gp, 1, at, &before, &sd_before, &label);
    agent__gp_pretend(gp, at);
    agent__gp_predict(gp, 1, at, &after, &sd_after, &label);
    assert_close(after, before, 1e-6);
    assert_true(sd_after < 0.2 * sd_before);
    agent__gp_destroy(gp);
}

/* Twin designs with different values: the factor needs the noise, or jitter, and gets it. */
static void test_twins_are_no_failure(void **state)
{
    const double x[] = {0.3, 1.0, 0.3, 1.0, 0.3, 1.0}, y[] = {1.0, 2.0, 2.0};
    double mean, sd, label;
    agent__gp *gp = small(3, x, y, 1.0, 1e-14);

    (void)state;
    agent__gp_predict(gp, 1, x, &mean, &sd, &label);
    assert_true(isfinite(mean) && isfinite(sd));
    agent__gp_destroy(gp);
}

/* y depends on the number alone: its inverse length must come out larger than the category's. */
static void test_fit_finds_what_matters(void **state)
{
    static const bool category[] = {false, true};
    double x[60], y[30], label[30];
    agent__gp *gp = agent__gp_create(2, category, 40);

    (void)state;
    assert_non_null(gp);
    for (size_t i = 0; i < 30; i++) {
        x[2 * i] = (double)i / 29.0;
        x[2 * i + 1] = (double)(i * 7 % 3);
        y[i] = sin(6.0 * x[2 * i]);
        label[i] = 1.0;
    }
    assert_int_equal(agent__gp_set(gp, 30, x, y, label, NULL), CS_OK);
    assert_int_equal(agent__gp_fit(gp, 30, 40, NULL), CS_OK);
    assert_true(agent__gp_params(gp)[0] > agent__gp_params(gp)[1] + log(4.0));
    const double at[] = {0.517, 1.0};
    double mean, sd, unused;
    agent__gp_predict(gp, 1, at, &mean, &sd, &unused);
    assert_true(fabs(mean - agent__gp_standard(gp, sin(6.0 * 0.517))) < 0.1);
    agent__gp_destroy(gp);
}

/* At mean = best, sd 1: EI = phi(0) = 0.398942.  At z = 1: phi(1) + Phi(1) = 0.241971 + 0.841345.
 * The tail agrees with the direct formula where both hold (z = -5: 5.3466e-8), and falls on. */
static void test_log_expected_improvement(void **state)
{
    (void)state;
    assert_close(agent__log_ei(0, 0, 1), log(0.3989422804), 1e-8);
    assert_close(agent__log_ei(1, 0, 1), log(0.2419707245 + 0.8413447461), 1e-8);
    assert_close(agent__log_ei(2, 0, 2), log(2 * 1.0833154706), 1e-8);
    assert_close(agent__log_ei(-5, 0, 1), log(5.346e-8), 1e-4);
    double last = 0.0;
    for (double z = -0.9; z > -5e4; z *= 1.5) {
        const double now = agent__log_ei(z, 0, 1);
        assert_true(isfinite(now) && now < last);
        last = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_posterior_of_two_designs),
        cmocka_unit_test(test_categories_differ_or_not),
        cmocka_unit_test(test_pretending_removes_doubt_only),
        cmocka_unit_test(test_twins_are_no_failure),
        cmocka_unit_test(test_fit_finds_what_matters),
        cmocka_unit_test(test_log_expected_improvement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
