/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Designs as JSON: {"knob": value, ...}, {"index": [...]} or {"point": [...]}. */
#include "search/search_private.h"

#include <stdlib.h>
#include <string.h>

cs_json *search__design_json(const search_problem *problem, const int32_t *point)
{
    const size_t n_knobs = psa_space_n_knobs(problem->space);
    const psa_space *space = problem->space;
    cs_json *design = cs_json_object();

    for (size_t k = 0; k < n_knobs; k++) {
        bool active;
        char text[64];
        int32_t i = psa_space_knob_index(space, point, k, &active);
        if (active)
            cs_json_set(design, psa_space_knob_name(space, k),
                        cs_json_string(psa_space_knob_value(space, k, i, text)));
    }
    return design;
}

static cs_status knob_index(const search_problem *problem, size_t k, const cs_json *value,
                            int32_t *out, cs_error *err)
{
    const psa_space *space = problem->space;
    const char *text = NULL;
    char number[32], have[64];
    double real;
    bool truth;

    if (cs_json_get_bool(value, &truth))
        text = truth ? "true" : "false";
    else if (cs_json_get_real(value, &real))
        text = cs_double_text(real, number);
    else if (!cs_json_get_string(value, &text))
        return cs_fail(err, CS_EINVAL, "%s: expected a string, number or boolean",
                       psa_space_knob_name(space, k));
    for (size_t i = 0; i < psa_space_knob_count(space, k); i++) {
        *out = (int32_t)i;
        if (strcmp(psa_space_knob_value(space, k, *out, have), text) == 0)
            return CS_OK;
    }
    return cs_fail(err, CS_EINVAL, "%s has no value \"%.60s\" (the first is \"%s\")",
                   psa_space_knob_name(space, k), text, psa_space_knob_value(space, k, 0, have));
}

static cs_status unknown_knob(const search_problem *problem, const char *name, cs_error *err)
{
    const size_t n_knobs = psa_space_n_knobs(problem->space);
    const char **names = calloc(n_knobs + 1, sizeof *names);

    if (names == NULL)
        return cs_fail(err, CS_ENOMEM, "serve");
    for (size_t k = 0; k < n_knobs; k++)
        names[k] = psa_space_knob_name(problem->space, k);
    const char *near = cs_nearest(name, names, n_knobs);
    cs_fail(err, CS_EINVAL, "no knob \"%.60s\"", name);
    if (near != NULL)
        cs_error_append(err, "; did you mean \"%s\"?", near);
    free(names);
    return CS_EINVAL;
}

/* Knobs that are not named get their first value (inactive ones need no name). */
static cs_status read_named(const search_problem *problem, const cs_json *design, int32_t *index,
                            cs_error *err)
{
    const size_t n_knobs = psa_space_n_knobs(problem->space);
    const psa_space *space = problem->space;
    cs_status status = CS_OK;
    const cs_json *value;
    const char *name;

    memset(index, 0, n_knobs * sizeof *index);
    for (size_t i = 0; (name = cs_json_key_at(design, i, &value)) != NULL; i++) {
        size_t k = 0;
        while (k < n_knobs && strcmp(psa_space_knob_name(space, k), name) != 0)
            k++;
        if (k == n_knobs)
            return unknown_knob(problem, name, err);
        CS_TRY(knob_index(problem, k, value, &index[k], err));
    }
done:
    return status;
}

static cs_status read_index(const search_problem *problem, const cs_json *list, int32_t *index,
                            cs_error *err)
{
    const size_t n_knobs = psa_space_n_knobs(problem->space);
    if (cs_json_size(list) != n_knobs)
        return cs_fail(err, CS_EINVAL, "\"index\" needs %zu numbers, one per knob, not %zu",
                       n_knobs, cs_json_size(list));
    for (size_t k = 0; k < n_knobs; k++) {
        int64_t i;
        const size_t count = psa_space_knob_count(problem->space, k);
        if (!cs_json_get_int(cs_json_at(list, k), &i) || i < 0 || (uint64_t)i >= count)
            return cs_fail(err, CS_EINVAL, "index of %s must lie in [0, %zu]",
                           psa_space_knob_name(problem->space, k), count - 1);
        index[k] = (int32_t)i;
    }
    return CS_OK;
}

/* {"point": [...]}: a value per encoded variable; what breaks a constraint is repaired. */
static cs_status read_point(const search_problem *problem, const cs_json *list, cs_rng *rng,
                            int32_t *point, cs_error *err)
{
    const psa_space *space = problem->space;
    const size_t n = psa_space_n_vars(space);

    if (cs_json_size(list) != n)
        return cs_fail(err, CS_EINVAL, "\"point\" needs %zu numbers, one per variable, not %zu", n,
                       cs_json_size(list));
    for (size_t v = 0; v < n; v++) {
        int64_t x;
        if (!cs_json_get_int(cs_json_at(list, v), &x) || x < 0 || x >= psa_space_card(space, v))
            return cs_fail(err, CS_EINVAL, "value of variable %s must lie in [0, %d]",
                           psa_space_var_name(space, v), psa_space_card(space, v) - 1);
        point[v] = (int32_t)x;
    }
    psa_space_canonicalize(space, point);
    if (!psa_space_valid(space, point))
        (void)psa_space_repair(space, rng, SIZE_MAX, point);
    return CS_OK;
}

cs_status search__design_read(const search_problem *problem, const cs_json *design, int32_t *index,
                              cs_rng *rng, int32_t *point, cs_error *err)
{
    cs_status status = CS_OK;
    const cs_json *list = cs_json_get(design, "index"), *encoded = cs_json_get(design, "point");

    if (encoded != NULL)
        return read_point(problem, encoded, rng, point, err);
    if (list != NULL)
        CS_TRY(read_index(problem, list, index, err));
    else
        CS_TRY(read_named(problem, design, index, err));
    if (!psa_space_from_raw(problem->space, index, point))
        for (size_t v = 0; v < psa_space_n_vars(problem->space); v++)
            point[v] = -1;
done:
    return status;
}
