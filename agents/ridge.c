/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Recursive least squares on the encoded space. */
#include "agents/ridge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TERMS = 128, MOST_CATEGORIES = 16 };

/* Variances: of an effect a priori (about one nat), of the constant, and of what the sum of effects
 * leaves unexplained near the best design. */
static const double effect_variance = 1.0, constant_variance = 1e4, noise_variance = 0.05;

/* Where the terms of one variable stand. */
typedef struct {
    size_t first, n;      /* in the vector of terms */
    size_t values, table; /* of its first value: in the tables of effects and of terms */
} block;

struct agent__ridge {
    size_t n_vars, n; /* n: terms; the first is the constant */
    block *block;     /* n_vars */
    double *table;    /* terms of every value of every variable */
    double *effect;   /* of every value, when `stamp` is the number of points seen */
    uint64_t *stamp;
    double *weight;     /* n */
    double *covariance; /* n x n */
    double *term;       /* n: of the point being taken in */
    double *product;    /* n: covariance times term */
    struct {
        uint64_t seen;
        double lowest;
    } run;
};

static size_t n_features_of(const psa_space *space, size_t v)
{
    const size_t end = v + 1 < psa_space_n_vars(space) ? psa_space_feature(space, v + 1)
                                                       : psa_space_n_features(space);
    return end - psa_space_feature(space, v);
}

/* Categories have one indicator for each value but the first, numbers their features. */
static size_t n_terms_of(const psa_space *space, size_t v)
{
    const size_t card = (size_t)psa_space_card(space, v);

    if (card < 2)
        return 0;
    if (psa_space_var_kind(space, v) == PSA_VAR_CATEGORY)
        return card > MOST_CATEGORIES ? 0 : card - 1;
    return n_features_of(space, v);
}

static bool fill_table(agent__ridge *r, const psa_space *space)
{
    int32_t *point = calloc(r->n_vars + 1, sizeof *point);
    double *feature = calloc(psa_space_n_features(space) + 1, sizeof *feature);
    const bool ok = point != NULL && feature != NULL;

    for (size_t v = 0; ok && v < r->n_vars; v++) {
        const block *b = &r->block[v];
        for (int32_t x = 0; b->n > 0 && x < psa_space_card(space, v); x++) {
            double *out = r->table + b->table + (size_t)x * b->n;
            point[v] = x;
            psa_space_features(space, point, feature);
            if (psa_space_var_kind(space, v) != PSA_VAR_CATEGORY)
                memcpy(out, feature + psa_space_feature(space, v), b->n * sizeof *out);
            else if (x > 0)
                out[x - 1] = 1.0;
        }
        point[v] = 0;
    }
    free(point);
    free(feature);
    return ok;
}

/* Lays out terms and tables; returns the number of table entries, and of values. */
static size_t lay_out(agent__ridge *r, const psa_space *space, size_t *values)
{
    size_t entries = 0;

    r->n = 1;
    for (size_t v = 0; v < r->n_vars; v++) {
        block *b = &r->block[v];
        const size_t card = (size_t)psa_space_card(space, v);
        b->first = r->n;
        b->n = n_terms_of(space, v);
        if (r->n + b->n > MOST_TERMS)
            b->n = 0;
        b->values = *values;
        b->table = entries;
        r->n += b->n;
        *values += card;
        entries += card * b->n;
    }
    return entries;
}

agent__ridge *agent__ridge_create(const psa_space *space)
{
    agent__ridge *r = calloc(1, sizeof *r);
    size_t values = 0;

    if (r == NULL)
        return NULL;
    r->n_vars = psa_space_n_vars(space);
    r->block = calloc(r->n_vars + 1, sizeof *r->block);
    if (r->block == NULL)
        goto failed;
    r->table = calloc(lay_out(r, space, &values) + 1, sizeof *r->table);
    r->effect = calloc(values + 1, sizeof *r->effect);
    r->stamp = calloc(values + 1, sizeof *r->stamp);
    r->weight = calloc(r->n, sizeof *r->weight);
    r->covariance = calloc(r->n * r->n, sizeof *r->covariance);
    r->term = calloc(r->n, sizeof *r->term);
    r->product = calloc(r->n, sizeof *r->product);
    if (r->table == NULL || r->effect == NULL || r->stamp == NULL || r->weight == NULL ||
        r->covariance == NULL || r->term == NULL || r->product == NULL || !fill_table(r, space))
        goto failed;
    for (size_t i = 0; i < r->n; i++)
        r->covariance[i * r->n + i] = i == 0 ? constant_variance : effect_variance;
    return r;
failed:
    agent__ridge_destroy(r);
    return NULL;
}

void agent__ridge_destroy(agent__ridge *ridge)
{
    if (ridge == NULL)
        return;
    free(ridge->block);
    free(ridge->table);
    free(ridge->effect);
    free(ridge->stamp);
    free(ridge->weight);
    free(ridge->covariance);
    free(ridge->term);
    free(ridge->product);
    free(ridge);
}

static void gather(agent__ridge *r, const int32_t *point)
{
    r->term[0] = 1.0;
    for (size_t v = 0; v < r->n_vars; v++) {
        const block *b = &r->block[v];
        memcpy(r->term + b->first, r->table + b->table + (size_t)point[v] * b->n,
               b->n * sizeof *r->term);
    }
}

/* product = covariance * term; most terms are 0. */
static void multiply(agent__ridge *r)
{
    const size_t n = r->n;

    memset(r->product, 0, n * sizeof *r->product);
    for (size_t k = 0; k < n; k++) {
        const double *row = r->covariance + k * n, x = r->term[k];
        for (size_t i = 0; x != 0.0 && i < n; i++)
            r->product[i] += x * row[i];
    }
}

void agent__ridge_learn(agent__ridge *ridge, const int32_t *point, double energy)
{
    agent__ridge *r = ridge;
    const size_t n = r->n;
    double noise = noise_variance, error = energy;

    if (r->run.seen == 0 || energy < r->run.lowest)
        r->run.lowest = energy;
    r->run.seen++;
    noise *= exp(fmin(energy - r->run.lowest, 10.0));
    gather(r, point);
    multiply(r);
    for (size_t i = 0; i < n; i++) {
        error -= r->weight[i] * r->term[i];
        noise += r->product[i] * r->term[i];
    }
    for (size_t i = 0; i < n; i++) {
        double *row = r->covariance + i * n;
        const double gain = r->product[i] / noise;
        r->weight[i] += gain * error;
        for (size_t k = 0; k < n; k++)
            row[k] -= gain * r->product[k];
    }
}

static double effect(agent__ridge *ridge, size_t var, int32_t value)
{
    const block *b = &ridge->block[var];
    const size_t at = b->values + (size_t)value;

    if (ridge->stamp[at] != ridge->run.seen) {
        const double *term = ridge->table + b->table + (size_t)value * b->n;
        double sum = 0.0;
        for (size_t i = 0; i < b->n; i++)
            sum += ridge->weight[b->first + i] * term[i];
        ridge->effect[at] = sum;
        ridge->stamp[at] = ridge->run.seen;
    }
    return ridge->effect[at];
}

double agent__ridge_predict(agent__ridge *ridge, const int32_t *point)
{
    double sum = 0.0;

    for (size_t v = 0; v < ridge->n_vars; v++)
        sum += effect(ridge, v, point[v]);
    return sum;
}

/* Where x belongs in a sorted list, after its equals. */
static size_t upper_bound(const double *list, size_t n, double x)
{
    size_t low = 0;

    while (low < n) {
        const size_t middle = (low + n) / 2;
        if (list[middle] > x)
            n = middle;
        else
            low = middle + 1;
    }
    return low;
}

void agent__ridge_sort(agent__ridge *ridge, const int32_t *from, size_t n, agent__move *moves,
                       double *change)
{
    for (size_t i = 0; i < n; i++) {
        const agent__move m = moves[i];
        const size_t var = (size_t)m.var;
        const double expected = effect(ridge, var, m.value) - effect(ridge, var, from[var]);
        const size_t at = upper_bound(change, i, expected);
        memmove(moves + at + 1, moves + at, (i - at) * sizeof *moves);
        memmove(change + at + 1, change + at, (i - at) * sizeof *change);
        moves[at] = m;
        change[at] = expected;
    }
}

void agent__ridge_io(agent__io *io, agent__ridge *ridge)
{
    AGENT__IO(io, ridge->run);
    agent__io_block(io, ridge->weight, ridge->n * sizeof *ridge->weight);
    agent__io_block(io, ridge->covariance, ridge->n * ridge->n * sizeof *ridge->covariance);
}
