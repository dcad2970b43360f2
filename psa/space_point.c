/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Points, configurations and knob values: translation in every direction. */
#include "psa/space_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_ROUNDING 1e-5 /* values that went through a text of six digits */

/* Position in its domain that a point gives to a raw; -1 when the point is out of range. */
static int32_t level_in(const psa_space *space, const int32_t *point, size_t raw)
{
    const psa__raw *r = &space->raw[raw];
    const psa__var *var;
    int32_t value;

    if (r->var < 0)
        return 0;
    var = &space->var[r->var];
    value = point[r->var];
    if (value < 0 || value >= var->card)
        return -1;
    return var->kind == PSA_VAR_TUPLE
               ? var->solution[(size_t)value * var->n_members + (size_t)r->member]
               : value;
}

int32_t psa__raw_index(const psa_space *space, const int32_t *point, size_t raw)
{
    int32_t level = level_in(space, point, raw);

    return space->raw[raw].domain[level < 0 ? 0 : level];
}

static void write_raw(const psa_space *space, const psa__raw *raw, double value, void *config)
{
    const psa_field *field = raw->knob->field;
    bool copied = field->per_dimension && !raw->knob->per_dimension;

    for (size_t d = 0; d < (copied ? space->schema->n_dims : 1); d++)
        psa__field_set(field, config, raw->elem + d, value);
}

void psa_space_decode(const psa_space *space, const int32_t *point, void *config)
{
    memcpy(config, space->base, space->schema->tables->config_size);
    for (size_t i = 0; i < space->n_raws; i++) {
        const psa__raw *raw = &space->raw[i];
        if (raw->var >= 0)
            write_raw(space, raw, raw->value[psa__raw_index(space, point, i)], config);
    }
}

void psa__decode_chosen(const psa_space *space, const int32_t *point, const bool *chosen,
                        void *config)
{
    psa_schema_baseline(space->schema, config);
    for (size_t i = 0; i < space->n_raws; i++) {
        const psa__raw *raw = &space->raw[i];
        if (chosen[i] || raw->var < 0)
            write_raw(space, raw, raw->value[psa__raw_index(space, point, i)], config);
    }
}

uint64_t psa_space_point_hash(const psa_space *space, const int32_t *point)
{
    uint64_t hash = CS_HASH_START;

    for (size_t v = 0; v < space->n_vars; v++)
        hash = cs_mix64(hash ^ ((uint64_t)(uint32_t)point[v] + ((uint64_t)v << 32)));
    return hash;
}

/* ---- knobs ---- */

size_t psa_space_n_knobs(const psa_space *space)
{
    return space->n_raws;
}

const char *psa_space_knob_name(const psa_space *space, size_t knob)
{
    return space->raw[knob].name;
}

cs_dimension psa_space_knob_unit(const psa_space *space, size_t knob)
{
    return space->raw[knob].knob->field->unit;
}

size_t psa_space_knob_count(const psa_space *space, size_t knob)
{
    return space->raw[knob].n_values;
}

int32_t psa_space_knob_index(const psa_space *space, const int32_t *point, size_t knob,
                             bool *active)
{
    if (active != NULL)
        *active = psa__active_at(space, point, &space->raw[knob]);
    return psa__raw_index(space, point, knob);
}

const char *psa_space_knob_value(const psa_space *space, size_t knob, int32_t index, char text[64])
{
    const psa__raw *raw = &space->raw[knob];

    if (index < 0 || (size_t)index >= raw->n_values) {
        (void)snprintf(text, 64, "?");
        return text;
    }
    return psa__field_format(raw->knob->field, raw->value[index], text);
}

/* File indices of all raws -> a point; SIZE_MAX, or the raw whose value is not in the space. */
static size_t point_of(const psa_space *space, const int32_t *index, int32_t *point)
{
    int32_t solution[PSA__MAX_TUPLE];

    for (size_t v = 0; v < space->n_vars; v++) {
        const psa__var *var = &space->var[v];
        point[v] = 0;
        for (size_t m = 0; m < var->n_members; m++) {
            const psa__raw *raw = &space->raw[var->member[m]];
            solution[m] = -1;
            for (size_t k = 0; k < raw->n; k++)
                if (raw->domain[k] == index[var->member[m]])
                    solution[m] = (int32_t)k;
            if (solution[m] < 0)
                return (size_t)var->member[m];
        }
        if (var->n_members > 0)
            point[v] = var->kind == PSA_VAR_TUPLE ? psa__find_solution(var, solution) : solution[0];
        if (point[v] < 0)
            return (size_t)var->member[0];
    }
    for (size_t i = 0; i < space->n_raws; i++)
        if (space->raw[i].var < 0 && index[i] != space->raw[i].domain[0])
            return i;
    return SIZE_MAX;
}

bool psa_space_from_raw(const psa_space *space, const int32_t *knob_index, int32_t *point)
{
    for (size_t i = 0; i < space->n_raws; i++)
        if (knob_index[i] < 0 || (size_t)knob_index[i] >= space->raw[i].n_values)
            return false;
    if (point_of(space, knob_index, point) != SIZE_MAX)
        return false;
    return psa_space_valid(space, point);
}

/* ---- configuration -> point ---- */

/* File index of the value nearest to `value` within what a text keeps, -1: none. */
static int32_t index_of(const psa__raw *raw, double value)
{
    int32_t best = -1;
    double nearest = HUGE_VAL;

    for (size_t i = 0; i < raw->n_values; i++) {
        double off = fabs(raw->value[i] - value);
        double allowed = raw->ordered ? TEXT_ROUNDING * fabs(value) : 0;
        if (off <= allowed && off < nearest) {
            nearest = off;
            best = (int32_t)i;
        }
    }
    return best;
}

static cs_status not_a_value(const psa_space *space, const psa__raw *raw, const void *config,
                             cs_error *err)
{
    char text[64];

    (void)space;
    return cs_fail(err, CS_EINVAL, "%s = %s is not among the values of this space", raw->name,
                   psa__field_format(raw->knob->field,
                                     psa__field_get(raw->knob->field, config, raw->elem), text));
}

/* A field that is no knob has one value in the space. */
static cs_status check_fixed(const psa_space *space, const void *config, cs_error *err)
{
    const psa_schema *schema = space->schema;
    char text[64], other[64];

    for (size_t f = 0; f < schema->tables->n_fields; f++) {
        const psa_field *field = &schema->tables->fields[f];
        bool knob = false;
        for (size_t i = 0; i < space->n_raws; i++)
            knob = knob || space->raw[i].knob->field_index == f;
        for (size_t d = 0; d < (field->per_dimension ? schema->n_dims : 1) && !knob; d++) {
            double a = psa__field_get(field, config, d), b = psa__field_get(field, space->base, d);
            if ((isnan(a) && isnan(b)) || fabs(a - b) <= TEXT_ROUNDING * fabs(b))
                continue;
            return cs_fail(err, CS_EINVAL, "%s is %s in this space, not %s", field->path,
                           psa__field_format(field, b, other), psa__field_format(field, a, text));
        }
    }
    return CS_OK;
}

cs_status psa_space_encode(const psa_space *space, const void *config, int32_t *point,
                           cs_error *err)
{
    cs_status status;
    double x[PSA__MAX_NETS];
    int32_t index[PSA__MAX_NETS];
    size_t wrong;

    CS_TRY(check_fixed(space, config, err));
    for (size_t i = 0; i < space->n_raws; i++) {
        const psa__raw *raw = &space->raw[i];
        x[i] = psa__field_get(raw->knob->field, config, raw->elem);
        index[i] = index_of(raw, x[i]);
        if (index[i] >= 0)
            x[i] = raw->value[index[i]];
    }
    for (size_t round = 0; round < 2; round++)
        for (size_t i = 0; i < space->n_raws; i++)
            if (!psa__active(&space->raw[i], x)) {
                index[i] = 0;
                x[i] = space->raw[i].value[0];
            }
    for (size_t i = 0; i < space->n_raws; i++)
        if (index[i] < 0)
            return not_a_value(space, &space->raw[i], config, err);
    wrong = point_of(space, index, point);
    if (wrong == SIZE_MAX && psa_space_valid(space, point))
        return CS_OK;
    CS_TRY(psa_schema_check(space->schema, config, err));
    if (wrong != SIZE_MAX)
        return not_a_value(space, &space->raw[wrong], config, err);
    return cs_fail(err, CS_EINVAL, "the configuration is no point of this space");
done:
    return status;
}
