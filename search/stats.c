/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Order statistics and tests: Wilcoxon (Biometrics Bulletin 1(6), 1945), Holm (Scand. J. Statistics
 * 6, 1979), Vargha and Delaney (JEBS 25(2), 2000), percentile bootstrap (Efron, 1979), binomial
 * interval (Clopper and Pearson, Biometrika 26(4), 1934). */
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

/* Signed ranks of paired values: differences that count, rank sums, ties. */
typedef struct {
    size_t m;
    double positive, total, ties;
} ranks;

static ranks signed_ranks(const double *a, const double *b, size_t n, double *work)
{
    double *d = work, *size = work + n, *sign = work + 2 * n;
    ranks r = {0};

    for (size_t i = 0; i < n; i++) {
        d[r.m] = difference(a[i], b[i]);
        r.m += d[r.m] != 0.0;
    }
    qsort(d, r.m, sizeof *d, by_magnitude);
    for (size_t i = 0; i < r.m; i++) {
        size[i] = fabs(d[i]);
        sign[i] = d[i];
    }
    r.positive = positive_ranks(size, sign, r.m, &r.ties);
    r.total = (double)r.m * ((double)r.m + 1.0) / 2.0;
    return r;
}

double search__wilcoxon(const double *a, const double *b, size_t n, double *work)
{
    const ranks r = signed_ranks(a, b, n, work);
    const double m = (double)r.m, w = fmin(r.positive, r.total - r.positive);

    if (r.m == 0)
        return 1.0;
    if (r.m <= EXACT && r.ties == 0.0)
        return fmin(1.0, 2.0 * exact_tail(r.m, (size_t)w));
    const double variance = m * (m + 1.0) * (2.0 * m + 1.0) / 24.0 - r.ties / 48.0;
    const double z = (w - r.total / 2.0 + 0.5) / sqrt(variance);
    return fmin(1.0, erfc(-z / sqrt(2.0)));
}

int search__wilcoxon_order(const double *a, const double *b, size_t n, double *work)
{
    const ranks r = signed_ranks(a, b, n, work);

    return (2.0 * r.positive > r.total) - (2.0 * r.positive < r.total);
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

/* Chance of at most `hits` successes in n draws of chance p, 0 < p < 1. */
static double binomial_tail(uint64_t hits, uint64_t n, double p)
{
    const double of = (double)n;
    double sum = 0.0;

    for (uint64_t k = 0; k <= hits; k++) {
        const double x = (double)k;
        sum += exp(lgamma(of + 1) - lgamma(x + 1) - lgamma(of - x + 1) + x * log(p) +
                   (of - x) * log1p(-p));
    }
    return sum;
}

double search__binomial_most(uint64_t hits, uint64_t n, double tail)
{
    enum { HALVINGS = 200 };
    double low = n > 0 ? (double)hits / (double)n : 1.0, high = 1.0;

    for (int i = 0; i < HALVINGS && hits < n; i++) {
        const double middle = (low + high) / 2.0;
        if (middle <= low || middle >= high)
            break;
        if (binomial_tail(hits, n, middle) > tail)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double search__a12(const double *a, const double *b, size_t n)
{
    double wins = 0.0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            wins += a[i] < b[j] ? 1.0 : a[i] == b[j] ? 0.5 : 0.0;
    return n > 0 ? wins / ((double)n * (double)n) : NAN;
}
