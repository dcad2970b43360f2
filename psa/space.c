/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Compiling a schema into an indexed space. */
#include "psa/space_private.h"

#include <stdlib.h>
#include <string.h>

#define SPACE_LIMIT ((size_t)1 << 30)

bool psa__build_init(psa__build *build, const psa_schema *schema, cs_error *err)
{
    memset(build, 0, sizeof *build);
    build->schema = schema;
    build->err = err;
    build->arena = cs_arena_create(SPACE_LIMIT);
    build->space = calloc(1, sizeof *build->space);
    if (build->space != NULL) {
        build->space->schema = schema;
        build->space->arena = cs_arena_create(SPACE_LIMIT);
    }
    return build->arena != NULL && build->space != NULL && build->space->arena != NULL &&
           psa__pool_init(&build->pool, build->arena, true);
}

void psa__build_fini(psa__build *build)
{
    psa_space_destroy(build->space);
    psa__pool_fini(&build->pool);
    cs_arena_destroy(build->arena);
}

/* A space without a valid point keeps every variable with all its values, and no tables. */
static cs_status make_empty(psa__build *build)
{
    psa_space *space = build->space;

    space->empty = true;
    space->valid_points = 0;
    space->n_nets = space->n_buckets = 0;
    if (space->n_vars > 0)
        return CS_OK;
    build->n_tuples = 0;
    for (size_t i = 0; i < space->n_raws; i++)
        build->tuple_of[i] = -1;
    return psa__restore_domains(build);
}

static void init_nets(psa__build *build)
{
    for (size_t t = 0; t < build->n_tuples; t++)
        build->tuple_net[t] = -1;
}

/* The configuration in which every constant stands already. */
static cs_status fill_base(psa__build *build)
{
    psa_space *space = build->space;

    space->base = cs_arena_alloc(space->arena, build->schema->tables->config_size);
    if (space->base == NULL)
        return psa__no_memory(build);
    psa_schema_baseline(build->schema, space->base);
    for (size_t i = 0; i < space->n_raws; i++) {
        const psa__raw *raw = &space->raw[i];
        bool copied = raw->knob->field->per_dimension && !raw->knob->per_dimension;
        for (size_t d = 0; d < (copied ? build->schema->n_dims : 1); d++)
            psa__field_set(raw->knob->field, space->base, raw->elem + d,
                           raw->value[raw->domain[0]]);
    }
    return CS_OK;
}

cs_status psa__prepare(psa__build *build, const psa__constraint *only)
{
    cs_status status;

    CS_TRY(psa__build_raws(build));
    CS_TRY(psa__build_conditions(build, only));
    CS_TRY(psa__propagate(build));
    CS_TRY(psa__find_tuples(build));
    if (build->unsatisfiable)
        CS_TRY(make_empty(build));
    CS_TRY(psa__build_vars(build));
    CS_TRY(fill_base(build));
    init_nets(build);
    if (!build->unsatisfiable)
        CS_TRY(psa__build_network(build));
done:
    return status;
}

static cs_status compile(psa__build *build, const psa__constraint *only)
{
    cs_status status;

    CS_TRY(psa__prepare(build, only));
    if (!build->unsatisfiable)
        CS_TRY(psa__eliminate(build, NULL));
    if (build->unsatisfiable)
        CS_TRY(make_empty(build));
done:
    return status;
}

cs_status psa_space_create(const psa_schema *schema, psa_space **out, cs_error *err)
{
    cs_status status = CS_OK;
    psa__build build;

    if (!psa__build_init(&build, schema, err)) {
        status = cs_fail(err, CS_ENOMEM, "design space");
        goto done;
    }
    for (size_t w = 0; w < schema->n_workloads; w++)
        if (!schema->bound[w]) {
            status = cs_fail(err, CS_EINVAL, "workload %zu has no facts yet", w + 1);
            goto done;
        }
    CS_TRY(compile(&build, NULL));
    *out = build.space;
    build.space = NULL;
done:
    psa__build_fini(&build);
    return status;
}

void psa_space_destroy(psa_space *space)
{
    if (space == NULL)
        return;
    cs_arena_destroy(space->arena);
    free(space);
}

psa__count psa_space_raw_points(const psa_space *space)
{
    return space->raw_points;
}

psa__count psa_space_valid_points(const psa_space *space)
{
    return space->valid_points;
}

cs_status psa_space_points_under(const psa_space *space, size_t constraint, psa__count *out,
                                 cs_error *err)
{
    cs_status status = CS_OK;
    const psa__constraint *c = psa__constraint_at(space->schema, constraint);
    psa__build build;

    if (c == NULL)
        return cs_fail(err, CS_EINVAL, "there is no constraint %zu", constraint + 1);
    if (c->limit) {
        *out = space->raw_points;
        return CS_OK;
    }
    if (!psa__build_init(&build, space->schema, err)) {
        status = cs_fail(err, CS_ENOMEM, "design space");
        goto done;
    }
    CS_TRY(compile(&build, c));
    *out = build.space->valid_points;
done:
    psa__build_fini(&build);
    return status;
}
