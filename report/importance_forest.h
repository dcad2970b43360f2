/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A random forest of regression trees over small integer features (private to report/).  Breiman,
 * Random Forests, Machine Learning 45, 2001.  Deterministic: every tree has its own random
 * stream. */
#ifndef REPORT_IMPORTANCE_FOREST_H
#define REPORT_IMPORTANCE_FOREST_H

#include "common/common.h"

enum { REPORT_FOREST_LEVELS = 64 }; /* values of a feature */

/* n rows of n_features levels (row-major, each below REPORT_FOREST_LEVELS) and what they gave. */
typedef struct {
    const uint8_t *level;
    const double *target;
    size_t n, n_features;
} report__samples;

typedef struct report__forest report__forest;

/* Grows the trees; the samples must outlive the forest.  n >= 2.  CS_ENOMEM.
 * O(trees * depth * n * features / 3). */
CS_MUST_USE cs_status report__forest_grow(const report__samples *samples, report__forest **out,
                                          cs_error *err);
void report__forest_destroy(report__forest *forest); /* NULL is a no-op */
/* Mean of the trees for one row of levels. O(trees * depth). */
double report__forest_predict(const report__forest *forest, const uint8_t *level);
/* Share of the variance explained in rows by the trees that were not grown from them. */
double report__forest_r2(const report__forest *forest);
/* For each feature: growth of the mean squared error, over the variance, when its values are
 * shuffled among the rows a tree was not grown from; mean of the trees.  `out`: n_features.
 * CS_ENOMEM. */
CS_MUST_USE cs_status report__forest_importance(const report__forest *forest, double *out,
                                                cs_error *err);

#endif
