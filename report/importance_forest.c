/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Random forest: histograms of levels make a split O(rows + levels). */
#include "report/importance_forest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TREES = 40, MOST_DEPTH = 14, LEAST_LEAF = 3 };
#define FOREST_SEED 8u

/* Rows whose feature has at most `cut` go to `child`, the others to the node after it.  A leaf has
 * child 0. */
typedef struct {
    double mean;
    uint32_t child;
    uint16_t feature;
    uint8_t cut;
} node;

typedef struct {
    node *node;
    size_t n;
    uint32_t *outside; /* rows it was not grown from */
    size_t n_outside;
} tree;

struct report__forest {
    const report__samples *samples;
    tree tree[TREES];
};

/* What growing one tree works with. */
typedef struct {
    const report__samples *samples;
    tree *tree;
    cs_rng *rng;
    uint32_t *row, *spare; /* the drawn rows; a node owns a range of them */
    uint16_t *feature;     /* all of them, the tried ones first */
} grower;

typedef struct {
    uint16_t feature;
    uint8_t cut;
    double gain;
} split;

/* Best cut of a feature: the one with the greatest sum over both sides of (sum of targets)^2 /
 * rows, which is the least squared error. */
static void try_feature(const grower *g, uint16_t feature, size_t from, size_t to, split *best)
{
    const report__samples *s = g->samples;
    double sum[REPORT_FOREST_LEVELS] = {0.0}, whole = 0.0, left = 0.0;
    size_t count[REPORT_FOREST_LEVELS] = {0}, n_left = 0;

    for (size_t i = from; i < to; i++) {
        const uint8_t level = s->level[g->row[i] * s->n_features + feature];
        sum[level] += s->target[g->row[i]];
        count[level]++;
        whole += s->target[g->row[i]];
    }
    for (uint8_t cut = 0; cut + 1 < REPORT_FOREST_LEVELS; cut++) {
        left += sum[cut];
        n_left += count[cut];
        const size_t n_right = to - from - n_left;
        if (count[cut] == 0 || n_left < LEAST_LEAF || n_right < LEAST_LEAF)
            continue;
        const double right = whole - left;
        const double gain = left * left / (double)n_left + right * right / (double)n_right -
                            whole * whole / (double)(to - from);
        if (gain > best->gain)
            *best = (split){feature, cut, gain};
    }
}

/* A third of the features, three or more, drawn without replacement. */
static split find_split(const grower *g, size_t from, size_t to)
{
    const size_t n = g->samples->n_features, tried = n / 3 > 3 ? n / 3 : 3;
    split best = {0, 0, 1e-12};

    for (size_t i = 0; i < n; i++) {
        const size_t j = i + (size_t)cs_rng_below(g->rng, n - i);
        const uint16_t drawn = g->feature[j];
        g->feature[j] = g->feature[i];
        g->feature[i] = drawn;
        /* Beyond the third only until something splits. */
        if (i >= tried && best.gain > 1e-12)
            break;
        try_feature(g, drawn, from, to, &best);
    }
    return best;
}

/* Moves the rows of the left side to the front, keeping their order. */
static size_t divide(const grower *g, const split *s, size_t from, size_t to)
{
    size_t left = from, right = 0;

    for (size_t i = from; i < to; i++) {
        const uint32_t row = g->row[i];
        if (g->samples->level[row * g->samples->n_features + s->feature] <= s->cut)
            g->row[left++] = row;
        else
            g->spare[right++] = row;
    }
    memcpy(g->row + left, g->spare, right * sizeof *g->row);
    return left;
}

static void grow_node(grower *g, uint32_t at, size_t from, size_t to, int depth)
{
    tree *t = g->tree;
    double sum = 0.0;

    for (size_t i = from; i < to; i++)
        sum += g->samples->target[g->row[i]];
    t->node[at] = (node){.mean = sum / (double)(to - from)};
    if (depth == MOST_DEPTH || to - from < 2 * LEAST_LEAF)
        return;
    const split s = find_split(g, from, to);
    if (s.gain <= 1e-12)
        return;
    const size_t middle = divide(g, &s, from, to);
    const uint32_t child = (uint32_t)t->n;
    t->n += 2;
    t->node[at].child = child;
    t->node[at].feature = s.feature;
    t->node[at].cut = s.cut;
    grow_node(g, child, from, middle, depth + 1);
    grow_node(g, child + 1, middle, to, depth + 1);
}

/* Draws n rows with replacement; those never drawn are the tree's outside. */
static void draw_rows(grower *g)
{
    const size_t n = g->samples->n;

    memset(g->spare, 0, n * sizeof *g->spare);
    for (size_t i = 0; i < n; i++) {
        g->row[i] = (uint32_t)cs_rng_below(g->rng, n);
        g->spare[g->row[i]] = 1;
    }
    for (size_t i = 0; i < n; i++)
        if (g->spare[i] == 0)
            g->tree->outside[g->tree->n_outside++] = (uint32_t)i;
}

static cs_status grow_tree(const report__samples *samples, size_t index, tree *t, cs_error *err)
{
    const size_t n = samples->n;
    grower g = {.samples = samples, .tree = t};
    cs_status status = CS_OK;

    g.rng = cs_rng_create(FOREST_SEED, index, 0);
    g.row = malloc(n * sizeof *g.row);
    g.spare = malloc(n * sizeof *g.spare);
    g.feature = malloc((samples->n_features + 1) * sizeof *g.feature);
    t->node = malloc((2 * n + 2) * sizeof *t->node); /* a tree of n leaves has 2 n - 1 nodes */
    t->outside = malloc(n * sizeof *t->outside);
    if (g.rng == NULL || g.row == NULL || g.spare == NULL || g.feature == NULL || t->node == NULL ||
        t->outside == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory for the importance of knobs"));
    for (size_t f = 0; f < samples->n_features; f++)
        g.feature[f] = (uint16_t)f;
    draw_rows(&g);
    t->n = 1;
    grow_node(&g, 0, 0, n, 0);
done:
    cs_rng_destroy(g.rng);
    free(g.row);
    free(g.spare);
    free(g.feature);
    return status;
}

cs_status report__forest_grow(const report__samples *samples, report__forest **out, cs_error *err)
{
    report__forest *forest = calloc(1, sizeof *forest);
    cs_status status = CS_OK;

    if (forest == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory for the importance of knobs");
    forest->samples = samples;
    for (size_t t = 0; t < TREES; t++)
        CS_TRY(grow_tree(samples, t, &forest->tree[t], err));
    *out = forest;
    forest = NULL;
done:
    report__forest_destroy(forest);
    return status;
}

void report__forest_destroy(report__forest *forest)
{
    if (forest == NULL)
        return;
    for (size_t t = 0; t < TREES; t++) {
        free(forest->tree[t].node);
        free(forest->tree[t].outside);
    }
    free(forest);
}

/* Prediction of a tree; feature `swapped` (SIZE_MAX: none) has the level `level_of_it`. */
static double predict(const tree *t, const uint8_t *level, size_t swapped, uint8_t level_of_it)
{
    const node *n = t->node;

    while (n->child != 0) {
        const uint8_t at = n->feature == swapped ? level_of_it : level[n->feature];
        n = &t->node[n->child + (at > n->cut)];
    }
    return n->mean;
}

double report__forest_predict(const report__forest *forest, const uint8_t *level)
{
    double sum = 0.0;

    for (size_t t = 0; t < TREES; t++)
        sum += predict(&forest->tree[t], level, SIZE_MAX, 0);
    return sum / TREES;
}

static double variance(const report__samples *s)
{
    double mean = 0.0, sum = 0.0;

    for (size_t i = 0; i < s->n; i++)
        mean += s->target[i] / (double)s->n;
    for (size_t i = 0; i < s->n; i++)
        sum += (s->target[i] - mean) * (s->target[i] - mean);
    return sum / (double)s->n;
}

double report__forest_r2(const report__forest *forest)
{
    const report__samples *s = forest->samples;
    double *sum = calloc(2 * s->n, sizeof *sum);
    double error = 0.0, whole = variance(s);
    size_t n = 0;

    for (size_t t = 0; sum != NULL && t < TREES; t++) {
        const tree *one = &forest->tree[t];
        for (size_t i = 0; i < one->n_outside; i++) {
            const size_t row = one->outside[i];
            sum[2 * row] += predict(one, s->level + row * s->n_features, SIZE_MAX, 0);
            sum[2 * row + 1] += 1.0;
        }
    }
    for (size_t i = 0; sum != NULL && i < s->n; i++) {
        if (sum[2 * i + 1] == 0.0)
            continue;
        const double miss = sum[2 * i] / sum[2 * i + 1] - s->target[i];
        error += miss * miss;
        n++;
    }
    free(sum);
    return n > 0 && whole > 0.0 ? 1.0 - error / (double)n / whole : NAN;
}

/* Mean squared error of a tree outside, with the feature's levels taken from the rows `from` (NULL:
 * its own). */
static double outside_error(const report__samples *s, const tree *t, size_t feature,
                            const uint32_t *from)
{
    double sum = 0.0;

    for (size_t i = 0; i < t->n_outside; i++) {
        const size_t row = t->outside[i];
        const uint8_t level =
            from != NULL ? s->level[(size_t)from[i] * s->n_features + feature] : (uint8_t)0;
        const double miss =
            predict(t, s->level + row * s->n_features, from != NULL ? feature : SIZE_MAX, level) -
            s->target[row];
        sum += miss * miss;
    }
    return sum / (double)t->n_outside;
}

static bool uses(const tree *t, size_t feature)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->node[i].child != 0 && t->node[i].feature == feature)
            return true;
    return false;
}

static void shuffle(cs_rng *rng, const tree *t, uint32_t *row)
{
    memcpy(row, t->outside, t->n_outside * sizeof *row);
    for (size_t i = t->n_outside; i > 1; i--) {
        const size_t j = (size_t)cs_rng_below(rng, i);
        const uint32_t moved = row[i - 1];
        row[i - 1] = row[j];
        row[j] = moved;
    }
}

static cs_status add_tree(const report__forest *forest, size_t index, uint32_t *row, double *out,
                          cs_error *err)
{
    const tree *t = &forest->tree[index];
    const double base = t->n_outside > 0 ? outside_error(forest->samples, t, 0, NULL) : 0.0;

    for (size_t f = 0; t->n_outside > 0 && f < forest->samples->n_features; f++) {
        if (!uses(t, f))
            continue;
        cs_rng *rng = cs_rng_create(FOREST_SEED, index, f + 1);
        if (rng == NULL)
            return cs_fail(err, CS_ENOMEM, "out of memory for the importance of knobs");
        shuffle(rng, t, row);
        out[f] += (outside_error(forest->samples, t, f, row) - base) / TREES;
        cs_rng_destroy(rng);
    }
    return CS_OK;
}

cs_status report__forest_importance(const report__forest *forest, double *out, cs_error *err)
{
    const report__samples *s = forest->samples;
    const double whole = variance(s);
    uint32_t *row = malloc(s->n * sizeof *row);
    cs_status status = CS_OK;

    if (row == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory for the importance of knobs");
    memset(out, 0, s->n_features * sizeof *out);
    for (size_t t = 0; t < TREES; t++)
        CS_TRY(add_tree(forest, t, row, out, err));
    for (size_t f = 0; f < s->n_features; f++)
        out[f] = whole > 0.0 ? fmax(0.0, out[f] / whole) : 0.0;
done:
    free(row);
    return status;
}
