/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Gaussian process: kernel, factor, posterior, and the fit of its hyper-parameters. */
#include "agents/gp.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multimin.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_erf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct agent__gp {
    size_t n_features, capacity, n;
    bool *category;
    double *param; /* logs: n_features, signal, noise */
    double *x, *y, *label;
    double *factor;              /* capacity x capacity, lower triangle by rows */
    double *alpha, *label_alpha; /* K^-1 y, K^-1 label */
    double *z;                   /* capacity x AGENT__GP_WIDTH */
    double *inverse_length;      /* exp of param */
    double mean, deviation;
};

agent__gp *agent__gp_create(size_t n_features, const bool *category, size_t capacity)
{
    agent__gp *gp = calloc(1, sizeof *gp);

    if (gp == NULL)
        return NULL;
    gp->n_features = n_features;
    gp->capacity = capacity;
    gp->category = calloc(n_features + 1, sizeof *gp->category);
    gp->param = calloc(n_features + 2, sizeof *gp->param);
    gp->inverse_length = calloc(n_features + 2, sizeof *gp->inverse_length);
    gp->x = calloc(capacity * n_features + 1, sizeof *gp->x);
    gp->y = calloc(capacity, sizeof *gp->y);
    gp->label = calloc(capacity, sizeof *gp->label);
    gp->factor = calloc(capacity * capacity, sizeof *gp->factor);
    gp->alpha = calloc(capacity, sizeof *gp->alpha);
    gp->label_alpha = calloc(capacity, sizeof *gp->label_alpha);
    gp->z = calloc(capacity * AGENT__GP_WIDTH, sizeof *gp->z);
    if (gp->category == NULL || gp->param == NULL || gp->inverse_length == NULL || gp->x == NULL ||
        gp->y == NULL || gp->label == NULL || gp->factor == NULL || gp->alpha == NULL ||
        gp->label_alpha == NULL || gp->z == NULL) {
        agent__gp_destroy(gp);
        return NULL;
    }
    for (size_t f = 0; f < n_features; f++) {
        gp->category[f] = category[f];
        gp->param[f] = log(0.5);
    }
    gp->param[n_features] = 0.0;
    gp->param[n_features + 1] = log(1e-3);
    return gp;
}

void agent__gp_destroy(agent__gp *gp)
{
    if (gp == NULL)
        return;
    free(gp->category);
    free(gp->param);
    free(gp->inverse_length);
    free(gp->x);
    free(gp->y);
    free(gp->label);
    free(gp->factor);
    free(gp->alpha);
    free(gp->label_alpha);
    free(gp->z);
    free(gp);
}

size_t agent__gp_n_params(const agent__gp *gp)
{
    return gp->n_features + 2;
}

double *agent__gp_params(agent__gp *gp)
{
    return gp->param;
}

double agent__gp_standard(const agent__gp *gp, double y)
{
    return (y - gp->mean) / gp->deviation;
}

static double distance(const agent__gp *gp, size_t f, const double *a, const double *b)
{
    if (gp->category[f])
        return a[f] == b[f] ? 0.0 : 1.0;
    return 4.0 * (a[f] - b[f]) * (a[f] - b[f]);
}

static double kernel(const agent__gp *gp, const double *a, const double *b)
{
    double sum = 0.0;

    for (size_t f = 0; f < gp->n_features; f++)
        sum += gp->inverse_length[f] * distance(gp, f, a, b);
    return gp->inverse_length[gp->n_features] * exp(-sum);
}

static double noise(const agent__gp *gp)
{
    return gp->inverse_length[gp->n_features + 1];
}

/* Row i of the factor from the rows above (Cholesky, row by row).  False when not positive. */
static bool factor_row(agent__gp *gp, size_t i, double jitter)
{
    double *row = gp->factor + i * gp->capacity;
    const double *xi = gp->x + i * gp->n_features;
    double pivot = gp->inverse_length[gp->n_features] + noise(gp) + jitter;

    for (size_t j = 0; j < i; j++) {
        const double *other = gp->factor + j * gp->capacity;
        double sum = kernel(gp, xi, gp->x + j * gp->n_features);
        for (size_t k = 0; k < j; k++)
            sum -= row[k] * other[k];
        row[j] = sum / other[j];
        pivot -= row[j] * row[j];
    }
    if (!(pivot > 1e-12))
        return false;
    row[i] = sqrt(pivot);
    return true;
}

static void solve(const agent__gp *gp, const double *right, double *out)
{
    for (size_t i = 0; i < gp->n; i++) {
        const double *row = gp->factor + i * gp->capacity;
        double sum = right[i];
        for (size_t k = 0; k < i; k++)
            sum -= row[k] * out[k];
        out[i] = sum / row[i];
    }
    for (size_t i = gp->n; i-- > 0;) {
        out[i] /= gp->factor[i * gp->capacity + i];
        for (size_t k = 0; k < i; k++)
            out[k] -= gp->factor[i * gp->capacity + k] * out[i];
    }
}

static cs_status factor_all(agent__gp *gp, cs_error *err)
{
    for (size_t p = 0; p < agent__gp_n_params(gp); p++)
        gp->inverse_length[p] = exp(gp->param[p]);
    for (double jitter = 0.0; jitter<1.0; jitter = jitter> 0.0 ? 10.0 * jitter : 1e-8) {
        size_t i = 0;
        while (i < gp->n && factor_row(gp, i, jitter))
            i++;
        if (i < gp->n)
            continue;
        solve(gp, gp->y, gp->alpha);
        solve(gp, gp->label, gp->label_alpha);
        return CS_OK;
    }
    return cs_fail(err, CS_EINTERNAL, "the kernel matrix of the bayesian agent is singular");
}

cs_status agent__gp_set(agent__gp *gp, size_t n, const double *x, const double *y,
                        const double *label, cs_error *err)
{
    double sum = 0.0, squares = 0.0;

    gp->n = n < gp->capacity ? n : gp->capacity;
    memcpy(gp->x, x, gp->n * gp->n_features * sizeof *x);
    memcpy(gp->label, label, gp->n * sizeof *label);
    for (size_t i = 0; i < gp->n; i++)
        sum += y[i];
    gp->mean = gp->n > 0 ? sum / (double)gp->n : 0.0;
    for (size_t i = 0; i < gp->n; i++)
        squares += (y[i] - gp->mean) * (y[i] - gp->mean);
    gp->deviation = gp->n > 1 ? sqrt(squares / (double)(gp->n - 1)) : 1.0;
    if (!(gp->deviation > 1e-12))
        gp->deviation = 1.0;
    for (size_t i = 0; i < gp->n; i++)
        gp->y[i] = (y[i] - gp->mean) / gp->deviation;
    return factor_all(gp, err);
}

void agent__gp_predict(agent__gp *gp, size_t width, const double *x, double *mean, double *sd,
                       double *label)
{
    enum { W = AGENT__GP_WIDTH };
    double variance[W], z_mean[W] = {0}, z_label[W] = {0};

    for (size_t w = 0; w < W; w++)
        variance[w] = gp->inverse_length[gp->n_features] + noise(gp);
    for (size_t i = 0; i < gp->n; i++) {
        double *zi = gp->z + i * W;
        const double *row = gp->factor + i * gp->capacity;
        for (size_t w = 0; w < W; w++) {
            const double *xw = x + (w < width ? w : 0) * gp->n_features;
            zi[w] = kernel(gp, gp->x + i * gp->n_features, xw);
            z_mean[w] += zi[w] * gp->alpha[i];
            z_label[w] += zi[w] * gp->label_alpha[i];
        }
        for (size_t k = 0; k < i; k++)
            for (size_t w = 0; w < W; w++)
                zi[w] -= row[k] * gp->z[k * W + w];
        for (size_t w = 0; w < W; w++) {
            zi[w] /= row[i];
            variance[w] -= zi[w] * zi[w];
        }
    }
    for (size_t w = 0; w < width; w++) {
        mean[w] = z_mean[w];
        label[w] = z_label[w];
        sd[w] = sqrt(fmax(variance[w], 1e-10));
    }
}

void agent__gp_pretend(agent__gp *gp, const double *x)
{
    double mean, sd, label;

    if (gp->n == gp->capacity)
        return;
    agent__gp_predict(gp, 1, x, &mean, &sd, &label);
    memcpy(gp->x + gp->n * gp->n_features, x, gp->n_features * sizeof *x);
    gp->y[gp->n] = mean;
    gp->label[gp->n] = label;
    if (!factor_row(gp, gp->n, 1e-8))
        return;
    gp->n++;
    solve(gp, gp->y, gp->alpha);
    solve(gp, gp->label, gp->label_alpha);
}

/* ---- maximum a posteriori fit ---- */

typedef struct {
    const agent__gp *gp;
    size_t n, from;         /* designs from..from+n-1 */
    gsl_matrix *k, *factor; /* kernel without noise; factor, then inverse */
    gsl_vector *alpha;
} fit;

/* Negative log prior of the logs and its slope: -(0.05/th + 0.3 th) per inverse length, signal
 * ~ Gamma(2, 1), noise ~ Gamma(1.1, 1/30); far outside, a quadratic wall. */
static double prior(const agent__gp *gp, size_t p, double log_value, double *slope)
{
    const double v = exp(log_value), wall = fabs(log_value) > 14.0 ? fabs(log_value) - 14.0 : 0.0;
    double cost = wall * wall;

    *slope = 2.0 * wall * (log_value > 0 ? 1.0 : -1.0);
    if (p < gp->n_features) {
        *slope += -0.05 / v + 0.3 * v;
        return cost + 0.05 / v + 0.3 * v;
    }
    if (p == gp->n_features) {
        *slope += -1.0 + v;
        return cost - log_value + v;
    }
    *slope += -0.1 + 30.0 * v;
    return cost - 0.1 * log_value + 30.0 * v;
}

static bool factor_fit(fit *f, const gsl_vector *param)
{
    const agent__gp *gp = f->gp;
    const size_t nf = gp->n_features;
    const double signal = exp(gsl_vector_get(param, nf));

    for (size_t i = 0; i < f->n; i++) {
        const double *a = gp->x + (f->from + i) * nf;
        for (size_t j = 0; j <= i; j++) {
            const double *b = gp->x + (f->from + j) * nf;
            double sum = 0.0;
            for (size_t k = 0; k < nf; k++)
                sum += gp->inverse_length[k] * distance(gp, k, a, b);
            gsl_matrix_set(f->k, i, j, signal * exp(-sum));
            gsl_matrix_set(f->k, j, i, gsl_matrix_get(f->k, i, j));
        }
    }
    gsl_matrix_memcpy(f->factor, f->k);
    for (size_t i = 0; i < f->n; i++) {
        double d = gsl_matrix_get(f->k, i, i);
        gsl_matrix_set(f->factor, i, i, d + exp(gsl_vector_get(param, nf + 1)) + 1e-8);
    }
    return gsl_linalg_cholesky_decomp1(f->factor) == GSL_SUCCESS;
}

static double slope_of(const fit *f, size_t p, double noise_value)
{
    const agent__gp *gp = f->gp;
    const size_t nf = gp->n_features;
    double sum = 0.0;

    for (size_t i = 0; i < f->n; i++) {
        const double *a = gp->x + (f->from + i) * nf;
        const double ai = gsl_vector_get(f->alpha, i);
        for (size_t j = 0; j <= i; j++) {
            const double w = ai * gsl_vector_get(f->alpha, j) - gsl_matrix_get(f->factor, i, j);
            double d;
            if (p < nf)
                d = -gp->inverse_length[p] * distance(gp, p, a, gp->x + (f->from + j) * nf) *
                    gsl_matrix_get(f->k, i, j);
            else if (p == nf)
                d = gsl_matrix_get(f->k, i, j);
            else
                d = i == j ? noise_value : 0.0;
            sum += (i == j ? 0.5 : 1.0) * w * d;
        }
    }
    return -sum;
}

/* Negative log posterior and its gradient. */
static void posterior(const gsl_vector *param, void *context, double *value, gsl_vector *gradient)
{
    fit *f = context;
    const agent__gp *gp = f->gp;
    double cost = 0.0, slope;

    for (size_t p = 0; p < param->size; p++)
        gp->inverse_length[p] = exp(fmin(fmax(gsl_vector_get(param, p), -50.0), 50.0));
    if (!factor_fit(f, param)) {
        *value = 1e12;
        if (gradient != NULL)
            gsl_vector_set_zero(gradient);
        return;
    }
    for (size_t i = 0; i < f->n; i++) {
        gsl_vector_set(f->alpha, i, gp->y[f->from + i]);
        cost += log(gsl_matrix_get(f->factor, i, i));
    }
    gsl_linalg_cholesky_svx(f->factor, f->alpha);
    for (size_t i = 0; i < f->n; i++)
        cost += 0.5 * gp->y[f->from + i] * gsl_vector_get(f->alpha, i);
    if (gradient != NULL)
        gsl_linalg_cholesky_invert(f->factor);
    for (size_t p = 0; p < param->size; p++) {
        cost += prior(gp, p, gsl_vector_get(param, p), &slope);
        if (gradient != NULL)
            gsl_vector_set(gradient, p,
                           slope + slope_of(f, p, gp->inverse_length[gp->n_features + 1]));
    }
    *value = isfinite(cost) ? cost : 1e12;
}

static double posterior_f(const gsl_vector *param, void *context)
{
    double value;

    posterior(param, context, &value, NULL);
    return value;
}

static void posterior_df(const gsl_vector *param, void *context, gsl_vector *gradient)
{
    double value;

    posterior(param, context, &value, gradient);
}

static void posterior_fdf(const gsl_vector *param, void *context, double *value,
                          gsl_vector *gradient)
{
    posterior(param, context, value, gradient);
}

static void minimize(agent__gp *gp, fit *f, gsl_multimin_fdfminimizer *m, gsl_vector *start,
                     int iterations)
{
    gsl_multimin_function_fdf function = {
        .f = posterior_f, .df = posterior_df, .fdf = posterior_fdf, .n = start->size, .params = f};
    const double before = posterior_f(start, f);

    if (gsl_multimin_fdfminimizer_set(m, &function, start, 0.3, 0.1) != GSL_SUCCESS)
        return;
    for (int i = 0; i < iterations; i++)
        if (gsl_multimin_fdfminimizer_iterate(m) != GSL_SUCCESS ||
            gsl_multimin_test_gradient(m->gradient, 1e-2) == GSL_SUCCESS)
            break;
    if (!(m->f < before))
        return;
    for (size_t p = 0; p < start->size; p++)
        gp->param[p] = fmin(fmax(gsl_vector_get(m->x, p), -14.0), 14.0);
}

cs_status agent__gp_fit(agent__gp *gp, size_t most, int iterations, cs_error *err)
{
    const size_t n_params = agent__gp_n_params(gp);
    fit f = {.gp = gp, .n = gp->n < most ? gp->n : most};
    gsl_multimin_fdfminimizer *m = NULL;
    gsl_vector *start = NULL;
    cs_status status = CS_OK;

    if (gp->n < 2)
        return factor_all(gp, err);
    gsl_set_error_handler_off();
    f.from = gp->n - f.n;
    f.k = gsl_matrix_alloc(f.n, f.n);
    f.factor = gsl_matrix_alloc(f.n, f.n);
    f.alpha = gsl_vector_alloc(f.n);
    start = gsl_vector_alloc(n_params);
    m = gsl_multimin_fdfminimizer_alloc(gsl_multimin_fdfminimizer_vector_bfgs2, n_params);
    if (f.k == NULL || f.factor == NULL || f.alpha == NULL || start == NULL || m == NULL) {
        status = cs_fail(err, CS_ENOMEM, "fit of the bayesian agent");
        goto done;
    }
    for (size_t p = 0; p < n_params; p++)
        gsl_vector_set(start, p, gp->param[p]);
    minimize(gp, &f, m, start, iterations);
    status = factor_all(gp, err);
done:
    if (m != NULL)
        gsl_multimin_fdfminimizer_free(m);
    if (start != NULL)
        gsl_vector_free(start);
    if (f.alpha != NULL)
        gsl_vector_free(f.alpha);
    if (f.factor != NULL)
        gsl_matrix_free(f.factor);
    if (f.k != NULL)
        gsl_matrix_free(f.k);
    return status;
}

double agent__log_ei(double best, double mean, double sd)
{
    const double z = (best - mean) / sd;

    if (z > -1.0)
        return log(gsl_ran_ugaussian_pdf(z) + z * gsl_cdf_ugaussian_P(z)) + log(sd);
    if (z < -1e3)
        return -0.5 * z * z - 2.0 * log(-z) + log(sd);
    /* phi(z) (1 - |z| R(|z|)) with Mills' ratio R(t) = sqrt(pi/2) exp(t^2/2) erfc(t/sqrt 2). */
    const double t = -z;
    const double mills = exp(0.5 * log(M_PI / 2.0) + 0.5 * t * t + gsl_sf_log_erfc(t / M_SQRT2));
    const double rest = 1.0 - t * mills;
    return -0.5 * z * z - 0.5 * log(2.0 * M_PI) + log(fmax(rest, 1e-300)) + log(sd);
}
