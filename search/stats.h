/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Statistics of comparisons.  Infinite values (target never reached) are allowed everywhere. */
#ifndef SEARCH_STATS_H
#define SEARCH_STATS_H

#include "common/common.h"

/* Quantile q of n sorted values, by linear interpolation (type 7); an infinite neighbour gives
 * infinity. */
double search__quantile(const double *sorted, size_t n, double q);
void search__sort(double *values, size_t n);
/* Median of values in any order; sorts a copy in `work` (n). */
double search__median(const double *values, size_t n, double *work);
typedef struct {
    double low, high;
} search__interval;
/* Percentile bootstrap interval (2.5 %, 97.5 %) of the median from `draws` resamples; work: n +
 * draws.
 */
search__interval search__bootstrap_median(const double *values, size_t n, size_t draws, cs_rng *rng,
                                          double *work);
/* Wilcoxon signed-rank test of paired values, two-sided: p.  Zero differences are dropped (infinite
 * pairs are equal); exact for up to 25 untied differences, else normal with tie and continuity
 * corrections.  work: 3 n. */
double search__wilcoxon(const double *a, const double *b, size_t n, double *work);
/* Which way the ranks of that test point: -1 when values of `a` are smaller, 1 larger, 0 neither.
 */
int search__wilcoxon_order(const double *a, const double *b, size_t n, double *work);
/* Holm's step-down adjustment in place; NAN entries are left alone. */
void search__holm(double *p, size_t n);
/* Largest chance at which at most `hits` successes in n draws still have probability `tail`: the
 * upper end of the exact interval of Clopper and Pearson.  O(hits). */
double search__binomial_most(uint64_t hits, uint64_t n, double tail);
/* Vargha and Delaney's A12: chance that a value of `a` is smaller than one of `b`, ties half. */
double search__a12(const double *a, const double *b, size_t n);

#endif
