/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Gaussian process over mixed features (Rasmussen and Williams, 2006): kernel
 * s2 * exp(-sum over categories th [x != y] - sum over numbers th (2 (x - y))^2). */
#ifndef AGENTS_GP_H
#define AGENTS_GP_H

#include "common/common.h"

typedef struct agent__gp agent__gp;

/* For at most `capacity` designs of `n_features`; `category` (copied) says which features only tell
 * same from different.  NULL when out of memory. */
agent__gp *agent__gp_create(size_t n_features, const bool *category, size_t capacity);
void agent__gp_destroy(agent__gp *gp); /* NULL is a no-op */

/* Hyper-parameters as logs: one inverse length per feature, then signal variance and noise. */
size_t agent__gp_n_params(const agent__gp *gp);
double *agent__gp_params(agent__gp *gp);

/* Data: x is n x n_features, y (any scale; standardised inside), label in {-1, 1}.  CS_ENOMEM, or
 * CS_EINTERNAL when the kernel matrix cannot be factored.  O(n^3). */
CS_MUST_USE cs_status agent__gp_set(agent__gp *gp, size_t n, const double *x, const double *y,
                                    const double *label, cs_error *err);
/* Maximum a posteriori hyper-parameters from the newest `most` designs of the data given by `set`,
 * then factors anew. O(iterations (n^3 + n^2 features)). */
CS_MUST_USE cs_status agent__gp_fit(agent__gp *gp, size_t most, int iterations, cs_error *err);
/* Adds a design with its posterior mean as value (constant liar): O(n^2).  Does nothing when full.
 */
void agent__gp_pretend(agent__gp *gp, const double *x);

enum { AGENT__GP_WIDTH = 16 };
/* Posterior of up to AGENT__GP_WIDTH designs (x is width x n_features): mean and deviation in the
 * standardised scale, mean of the label.  O(n^2 width). */
void agent__gp_predict(agent__gp *gp, size_t width, const double *x, double *mean, double *sd,
                       double *label);
/* A value of y in the standardised scale. */
double agent__gp_standard(const agent__gp *gp, double y);

/* log of the expected improvement below `best` for a normal (mean, sd); stable far in the tail. */
double agent__log_ei(double best, double mean, double sd);

#endif
