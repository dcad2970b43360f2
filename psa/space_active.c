/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which knobs have an effect, and points in canonical form.  Most conditions hang on one variable:
 * their answers are tabulated. */
#include "psa/space_private.h"

bool psa__active(const psa__raw *raw, const double *x)
{
    psa__env env = {.var = x};

    return raw->active == NULL || psa__run(&raw->active_program, &env) != 0;
}

/* Reads only what the condition names. */
static bool evaluate(const psa_space *space, const int32_t *point, const psa__raw *raw)
{
    double x[PSA__MAX_NETS];

    for (size_t k = 0; k < raw->n_scope; k++) {
        const size_t i = (size_t)raw->scope[k];
        x[i] = space->raw[i].value[psa__raw_index(space, point, i)];
    }
    return psa__active(raw, x);
}

bool psa__active_at(const psa_space *space, const int32_t *point, const psa__raw *raw)
{
    if (raw->active == NULL)
        return true;
    if (raw->active_by_value != NULL) {
        const int32_t value = point[raw->switch_var];
        if (value >= 0 && value < space->var[raw->switch_var].card)
            return raw->active_by_value[value];
    }
    return evaluate(space, point, raw);
}

/* The variable that alone decides a condition, -1: there is none. */
static int32_t only_variable(const psa_space *space, const psa__raw *raw)
{
    int32_t var = -1;

    for (size_t k = 0; k < raw->n_scope; k++) {
        const int32_t v = space->raw[raw->scope[k]].var;
        if (v >= 0 && var >= 0 && v != var)
            return -1;
        var = v >= 0 ? v : var;
    }
    return var;
}

static bool tabulate(psa_space *space, int32_t *point, psa__raw *raw)
{
    const int32_t var = only_variable(space, raw);

    if (var < 0)
        return true;
    const int32_t card = space->var[var].card;
    raw->switch_var = var;
    bool *answer = cs_arena_alloc(space->arena, (size_t)card * sizeof *answer);
    if (answer == NULL)
        return false;
    for (point[var] = 0; point[var] < card; point[var]++)
        answer[point[var]] = evaluate(space, point, raw);
    point[var] = 0;
    raw->active_by_value = answer;
    return true;
}

bool psa__index_activity(psa_space *space)
{
    int32_t *point = cs_arena_alloc(space->arena, (space->n_vars + 1) * sizeof *point);

    space->switched = cs_arena_alloc(space->arena, (space->n_raws + 1) * sizeof *space->switched);
    if (point == NULL || space->switched == NULL)
        return false;
    for (size_t i = 0; i < space->n_raws; i++) {
        psa__raw *raw = &space->raw[i];
        if (raw->active == NULL)
            continue;
        if (!tabulate(space, point, raw))
            return false;
        if (raw->var >= 0 && raw->first >= 0 && space->var[raw->var].kind != PSA_VAR_TUPLE)
            space->switched[space->n_switched++] = (int32_t)i;
    }
    return true;
}

bool psa_space_active(const psa_space *space, const int32_t *point, size_t var)
{
    const psa__var *v = &space->var[var];

    for (size_t m = 0; m < v->n_members; m++)
        if (psa__active_at(space, point, &space->raw[v->member[m]]))
            return true;
    return v->n_members == 0;
}

/* A condition may hang on another switched-off knob, so this repeats until nothing changes. */
void psa_space_canonicalize(const psa_space *space, int32_t *point)
{
    bool changed = true;

    for (size_t round = 0; changed && round <= space->n_raws; round++) {
        changed = false;
        for (size_t i = 0; i < space->n_switched; i++) {
            const psa__raw *raw = &space->raw[space->switched[i]];
            if (point[raw->var] == raw->first || psa__active_at(space, point, raw))
                continue;
            point[raw->var] = raw->first;
            changed = true;
        }
    }
}
