/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Order statistics and tests: Wilcoxon (Biometrics Bulletin 1(6), 1945), Holm (Scand. J. Statistics
 * 6, 1979), Vargha and Delaney (JEBS 25(2), 2000), percentile bootstrap (Efron, 1979). */
#include "search/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT = 25 };

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void search__sort(double *values, size_t n)
{
    qsort(values, n, sizeof *values, ascending);
}

double search__quantile(const double *sorted, size_t n, double q)
{
    if (n == 0)
        return NAN;
    const double at = q * (double)(n - 1);
    const size_t i = (size_t)at;
    const double share = at - (double)i;

    if (share == 0.0 || i + 1 >= n || sorted[i] == sorted[i + 1])
        return sorted[i];
    return sorted[i] + share * (sorted[i + 1] - sorted[i]);
}

double search__median(const double *values, size_t n, double *work)
{
    if (n == 0)
        return NAN;
    memcpy(work, values, n * sizeof *work);
    search__sort(work, n);
    return search__quantile(work, n, 0.5);
}

search__interval search__bootstrap_median(const double *values, size_t n, size_t draws, cs_rng *rng,
                                          double *work)
{
    double *median = work + n;

    for (size_t d = 0; d < draws && n > 0; d++) {
        for (size_t i = 0; i < n; i++)
            work[i] = values[cs_rng_below(rng, n)];
        search__sort(work, n);
        median[d] = search__quantile(work, n, 0.5);
    }
    search__sort(median, n > 0 ? draws : 0);
    return (search__interval){search__quantile(median, n > 0 ? draws : 0, 0.025),
                              search__quantile(median, n > 0 ? draws : 0, 0.975)};
}

/* Chance that a signed-rank sum of m untied differences is at most w: counts of subsets of 1..m. */
static double exact_tail(size_t m, size_t w)
{
    double count[EXACT * (EXACT + 1) / 2 + 1] = {1.0}, sum = 0.0;
    const size_t most = m * (m + 1) / 2;

    for (size_t r = 1; r <= m; r++)
        for (size_t s = most; s >= r; s--)
            count[s] += count[s - r];
    for (size_t s = 0; s <= w && s <= most; s++)
        sum += count[s];
    return sum / exp2((double)m);
}

static double difference(double a, double b)
{
    if (a == b)
        return 0.0;
    return isinf(a) || isinf(b) ? (a > b ? 1e300 : -1e300) : a - b;
}

/* Rank sums of the sorted magnitudes; sign[i] goes with size[i].  Adds up t^3 - t over ties. */
static double positive_ranks(const double *size, const double *sign, size_t m, double *ties)
{
    double sum = 0.0;

    *ties = 0.0;
    for (size_t i = 0, j; i < m; i = j) {
        for (j = i; j < m && size[j] == size[i]; j++)
            ;
        const double t = (double)(j - i), rank = ((double)i + (double)j + 1.0) / 2.0;
        *ties += t * t * t - t;
        for (size_t k = i; k < j; k++)
            sum += sign[k] > 0 ? rank : 0.0;
    }
    return sum;
}

static int by_magnitude(const void *a, const void *b)
{
    const double x = fabs(*(const double *)a), y = fabs(*(const double *)b);

    return (x > y) - (x < y);
}

double search__wilcoxon(const double *a, const double *b, size_t n, double *work)
{
    double *d = work, *size = work + n, *sign = work + 2 * n, ties;
    size_t m = 0;

    for (size_t i = 0; i < n; i++) {
        d[m] = difference(a[i], b[i]);
        m += d[m] != 0.0;
    }
    if (m == 0)
        return 1.0;
    qsort(d, m, sizeof *d, by_magnitude);
    for (size_t i = 0; i < m; i++) {
        size[i] = fabs(d[i]);
        sign[i] = d[i];
    }
    const double positive = positive_ranks(size, sign, m, &ties);
    const double total = (double)m * ((double)m + 1.0) / 2.0;
    const double w = fmin(positive, total - positive);
    if (m <= EXACT && ties == 0.0)
        return fmin(1.0, 2.0 * exact_tail(m, (size_t)w));
    const double variance =
        (double)m * ((double)m + 1.0) * (2.0 * (double)m + 1.0) / 24.0 - ties / 48.0;
    const double z = (w - total / 2.0 + 0.5) / sqrt(variance);
    return fmin(1.0, erfc(-z / sqrt(2.0)));
}

void search__holm(double *p, size_t n)
{
    double floor = 0.0;
    size_t left = 0;

    for (size_t i = 0; i < n; i++)
        left += isnan(p[i]) ? 0 : 1;
    bool *done = calloc(n + 1, sizeof *done);
    for (; done != NULL && left > 0; left--) {
        size_t least = SIZE_MAX;
        for (size_t i = 0; i < n; i++)
            if (!done[i] && !isnan(p[i]) && (least == SIZE_MAX || p[i] < p[least]))
                least = i;
        floor = fmin(1.0, fmax(floor, (double)left * p[least]));
        p[least] = floor;
        done[least] = true;
    }
    free(done);
}

double search__a12(const double *a, const double *b, size_t n)
{
    double wins = 0.0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            wins += a[i] < b[j] ? 1.0 : a[i] == b[j] ? 0.5 : 0.0;
    return n > 0 ? wins / ((double)n * (double)n) : NAN;
}
