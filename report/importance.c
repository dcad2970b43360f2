/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which knobs decide the first objective: permutation importance of a random forest (Breiman, 2001)
 * fitted to feasible trials, and the mean effect of each value (partial dependence: Friedman,
 * Annals of Statistics 29, 2001). */
#include "report/html_private.h"
#include "report/importance_forest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_TRIALS = 20, MOST_SAMPLES = 3000, MOST_BACKGROUND = 150 };

typedef struct {
    const html__rows *rows;
    report__samples samples;
    size_t *row; /* of each sample */
    uint8_t *level;
    double *target;
    bool logarithm;  /* the target is the logarithm of the objective */
    size_t feasible; /* trials to choose from */
    report__forest *forest;
} model;

/* Level of a knob's value: 0 is inactive; very long lists of values share levels. */
static uint8_t level_of(const html__rows *rows, size_t knob, uint16_t index)
{
    const size_t count = psa_space_knob_count(rows->problem->space, knob);
    const size_t most = REPORT_FOREST_LEVELS - 2;

    if (index == HTML_INACTIVE)
        return 0;
    return (uint8_t)(1 + (count <= most ? index : index * most / count));
}

/* Evenly chosen feasible rows. */
static void choose_samples(model *m)
{
    const html__rows *rows = m->rows;
    const size_t n = m->feasible < MOST_SAMPLES ? m->feasible : MOST_SAMPLES;
    size_t seen = 0;

    for (size_t i = 0; i < rows->n; i++) {
        if (!isfinite(rows->key[i]))
            continue;
        if ((seen + 1) * n / m->feasible > seen * n / m->feasible)
            m->row[m->samples.n++] = i;
        seen++;
    }
}

static void fill_samples(model *m)
{
    const html__rows *rows = m->rows;
    const size_t k = rows->n_knobs;

    m->logarithm = true;
    for (size_t i = 0; i < m->samples.n; i++)
        m->logarithm = m->logarithm && rows->objective[0][m->row[i]] > 0.0;
    for (size_t i = 0; i < m->samples.n; i++) {
        const double value = rows->objective[0][m->row[i]];
        m->target[i] = m->logarithm ? log(value) : value;
        for (size_t f = 0; f < k; f++)
            m->level[i * k + f] = level_of(rows, f, rows->knob[m->row[i] * k + f]);
    }
    m->samples.level = m->level;
    m->samples.target = m->target;
    m->samples.n_features = k;
}

static bool constant(const model *m)
{
    for (size_t i = 1; i < m->samples.n; i++)
        if (m->target[i] != m->target[0])
            return false;
    return true;
}

/* ---- effects ---- */

/* Mean prediction when the knob has the level in a choice of the samples. */
static double expected(const model *m, size_t knob, uint8_t level, uint8_t *scratch)
{
    const size_t k = m->samples.n_features;
    const size_t n = m->samples.n < MOST_BACKGROUND ? m->samples.n : MOST_BACKGROUND;
    double sum = 0.0;

    for (size_t i = 0; i < n; i++) {
        memcpy(scratch, m->level + i * m->samples.n / n * k, k);
        scratch[knob] = level;
        sum += report__forest_predict(m->forest, scratch);
    }
    return m->logarithm ? exp(sum / (double)n) : sum / (double)n;
}

/* Best objective among all feasible trials with the value, and how many there are. */
static double best_with(const model *m, size_t knob, size_t value, int64_t *n)
{
    const html__rows *rows = m->rows;
    double key = INFINITY, best = NAN;

    *n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        if (!isfinite(rows->key[i]) || rows->knob[i * rows->n_knobs + knob] != value)
            continue;
        ++*n;
        if (rows->key[i] < key) {
            key = rows->key[i];
            best = rows->objective[0][i];
        }
    }
    return best;
}

static cs_json *effects_json(const model *m, size_t knob, uint8_t *scratch)
{
    const size_t count = psa_space_knob_count(m->rows->problem->space, knob);
    cs_json *list = cs_json_array();
    int64_t n;

    for (size_t v = 0; v < count && count <= REPORT_FOREST_LEVELS - 2; v++) {
        const double best = best_with(m, knob, v, &n);
        if (n == 0)
            continue;
        cs_json *one = cs_json_object();
        cs_json_set(one, "value", cs_json_int((int64_t)v));
        cs_json_set(one, "predicted",
                    cs_json_real(expected(m, knob, level_of(m->rows, knob, (uint16_t)v), scratch)));
        cs_json_set(one, "best", cs_json_real(best));
        cs_json_set(one, "trials", cs_json_int(n));
        cs_json_push(list, one);
    }
    return list;
}

static cs_status put_knobs(const model *m, cs_json *object, cs_error *err)
{
    const size_t k = m->samples.n_features;
    double *importance = calloc(k + 1, sizeof *importance);
    uint8_t *scratch = calloc(k + 1, 1);
    cs_json *list = cs_json_array();
    cs_status status = CS_OK;

    if (importance == NULL || scratch == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory for the importance of knobs"));
    CS_TRY(report__forest_importance(m->forest, importance, err));
    for (size_t f = 0; f < k; f++) {
        cs_json *one = cs_json_object();
        cs_json_set(one, "knob", cs_json_int((int64_t)f));
        cs_json_set(one, "importance", cs_json_real(importance[f]));
        cs_json_set(one, "values", effects_json(m, f, scratch));
        cs_json_push(list, one);
    }
    cs_json_set(object, "method",
                cs_json_string(m->logarithm ? "Permutation importance of a random forest "
                                              "fitted to the logarithm of"
                                            : "Permutation importance of a random forest "
                                              "fitted to"));
    cs_json_set(object, "trials", cs_json_int((int64_t)m->samples.n));
    cs_json_set(object, "r2", cs_json_real(report__forest_r2(m->forest)));
    cs_json_set(object, "knobs", list);
    list = NULL;
done:
    cs_json_destroy(list);
    free(scratch);
    free(importance);
    return status;
}

static cs_status allocate(model *m, cs_error *err)
{
    m->row = malloc((MOST_SAMPLES + 1) * sizeof *m->row);
    m->target = malloc((MOST_SAMPLES + 1) * sizeof *m->target);
    m->level = malloc((MOST_SAMPLES + 1) * (m->rows->n_knobs + 1));
    if (m->row == NULL || m->target == NULL || m->level == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory for the importance of knobs");
    return CS_OK;
}

static cs_status fit(model *m, cs_json *object, cs_error *err)
{
    cs_status status = CS_OK;

    choose_samples(m);
    fill_samples(m);
    if (constant(m)) {
        cs_json_set(object, "why",
                    cs_json_string("The objective is the same in every feasible trial: no knob "
                                   "matters to it."));
        return CS_OK;
    }
    CS_TRY(report__forest_grow(&m->samples, &m->forest, err));
    CS_TRY(put_knobs(m, object, err));
done:
    return status;
}

cs_status html__importance_json(const html__rows *rows, cs_json **out, cs_error *err)
{
    cs_json *object = cs_json_object();
    model m = {.rows = rows};
    cs_status status = CS_OK;
    char why[96];

    CS_TRY(allocate(&m, err));
    for (size_t i = 0; i < rows->n; i++)
        m.feasible += isfinite(rows->key[i]) ? 1 : 0;
    if (m.feasible >= LEAST_TRIALS && rows->n_knobs > 0) {
        CS_TRY(fit(&m, object, err));
    } else {
        snprintf(why, sizeof why, "%zu feasible trials are too few to tell; %d are needed.",
                 m.feasible, LEAST_TRIALS);
        cs_json_set(object, "why", cs_json_string(why));
    }
    *out = object;
    object = NULL;
done:
    cs_json_destroy(object);
    report__forest_destroy(m.forest);
    free(m.row);
    free(m.target);
    free(m.level);
    return status;
}
