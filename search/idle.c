/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Knobs that do nothing at a design, found by changing each alone. */
#include "search/search_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_outcome(const search_problem *problem, const search_trial *a,
                         const search_trial *b)
{
    if (a->status != b->status || !same_number(a->result.latency_s, b->result.latency_s) ||
        !same_number(a->result.peak_memory_bytes, b->result.peak_memory_bytes))
        return false;
    for (size_t i = 0; i < problem->n_objectives; i++)
        if (!same_number(a->objective[i], b->objective[i]))
            return false;
    return true;
}

typedef struct {
    const search_problem *problem;
    sim_scratch *scratch;
    search_trial base;
    cs_status status;       /* CS_ENOMEM once memory ran out */
    int32_t *index, *point; /* raw values of the design; work space */
} probe;

static bool is_idle(probe *p, size_t knob)
{
    const psa_space *space = p->problem->space;
    const int32_t own = p->index[knob];
    bool changed = false, effect = false;

    for (size_t i = 0; i < psa_space_knob_count(space, knob) && !effect; i++) {
        search_trial trial = {.point = p->point};
        p->index[knob] = (int32_t)i;
        if ((int32_t)i == own || !psa_space_from_raw(space, p->index, p->point))
            continue;
        if (search_evaluate(p->problem, p->point, p->scratch, &trial) != CS_OK)
            p->status = CS_ENOMEM;
        changed = true;
        effect = !same_outcome(p->problem, &p->base, &trial);
    }
    p->index[knob] = own;
    return changed && !effect;
}

cs_status search_idle_knobs(const search_problem *problem, const int32_t *point, bool *idle,
                            cs_error *err)
{
    const psa_space *space = problem->space;
    const size_t n = psa_space_n_knobs(space);
    cs_status status = CS_OK;
    bool active = false;
    probe p = {.problem = problem,
               .scratch = sim_scratch_create(problem->model),
               .base = {.point = point},
               .index = calloc(n + 1, sizeof *p.index),
               .point = calloc(psa_space_n_vars(space) + 1, sizeof *p.point)};

    if (p.scratch == NULL || p.index == NULL || p.point == NULL) {
        status = cs_fail(err, CS_ENOMEM, "knobs without effect");
        goto done;
    }
    for (size_t k = 0; k < n; k++)
        p.index[k] = psa_space_knob_index(space, point, k, &active);
    p.status = search_evaluate(problem, point, p.scratch, &p.base);
    for (size_t k = 0; k < n; k++) {
        (void)psa_space_knob_index(space, point, k, &active);
        idle[k] = active && is_idle(&p, k);
    }
    if (p.status != CS_OK)
        status = cs_fail(err, p.status, "knobs without effect");
done:
    sim_scratch_destroy(p.scratch);
    free(p.index);
    free(p.point);
    return status;
}
