/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How many valid points share each combination of some knobs: everything else is eliminated, and
 * what remains is joined into one table. */
#include "psa/elim_private.h"

#include <stdlib.h>
#include <string.h>

/* Nets of the variables that hold a chosen knob. */
static bool *nets_to_keep(const psa__build *build, const bool *chosen)
{
    const psa_space *space = build->space;
    bool *keep = cs_arena_alloc(build->arena, space->n_nets + 1);

    for (size_t i = 0; i < space->n_raws && keep != NULL; i++)
        if (chosen[i] && space->raw[i].var >= 0)
            keep[space->var[space->raw[i].var].net] = true;
    return keep;
}

/* A table that allows every value of one net. */
static bool all_values(psa__build *build, int32_t net, psa__factor *out)
{
    size_t card = (size_t)build->space->net[net].card;

    memset(out, 0, sizeof *out);
    out->n_scope = 1;
    out->origin = out->bucket = -1;
    out->n_rows = card;
    out->scope = cs_arena_alloc(build->arena, sizeof *out->scope);
    out->row = cs_arena_alloc(build->arena, card * sizeof *out->row);
    if (out->scope == NULL || out->row == NULL)
        return false;
    out->scope[0] = net;
    for (size_t i = 0; i < card; i++)
        out->row[i] = (int32_t)i;
    return true;
}

static bool holds(const psa__table *table, int32_t net)
{
    for (uint32_t i = 0; i < table->n_scope; i++)
        if (table->scope[i] == net)
            return true;
    return false;
}

static cs_status join_into(psa__build *build, psa__table *table, const psa__factor *factor)
{
    cs_status status;
    psa__table joined;

    CS_TRY(psa__table_join(build, table, factor, factor->origin, &joined));
    psa__table_fini(table);
    *table = joined;
done:
    return status;
}

/* One row that stands for everything eliminated. */
static bool one_row(psa__build *build, psa__table *table)
{
    memset(table, 0, sizeof *table);
    table->n_rows = 1;
    table->row = malloc(sizeof *table->row);
    table->weight = malloc(sizeof *table->weight);
    if (table->row == NULL || table->weight == NULL)
        return false;
    table->weight[0] = build->space->valid_points;
    return true;
}

static cs_status join_rest(psa__build *build, const bool *keep, psa__table *table)
{
    cs_status status = CS_OK;
    psa__factor every;

    if (!one_row(build, table))
        return psa__no_memory(build);
    for (size_t f = 0; f < build->n_factors; f++)
        if (!build->factor[f].used)
            CS_TRY(join_into(build, table, &build->factor[f]));
    for (size_t i = 0; i < build->space->n_nets; i++) {
        if (!keep[i] || holds(table, (int32_t)i))
            continue;
        if (!all_values(build, (int32_t)i, &every))
            return psa__no_memory(build);
        CS_TRY(join_into(build, table, &every));
    }
done:
    return status;
}

static void report(const psa_space *space, const psa__table *table, const psa_combinations *request,
                   void *config)
{
    int32_t point[PSA__MAX_NETS] = {0};

    for (size_t r = 0; r < table->n_rows; r++) {
        for (uint32_t i = 0; i < table->n_scope; i++)
            point[space->net[table->scope[i]].var] = table->row[r * table->n_scope + i];
        psa__decode_chosen(space, point, request->chosen, config);
        request->fn(request->context, config, table->weight[r]);
    }
}

cs_status psa_space_combinations(const psa_space *space, const psa_combinations *request,
                                 cs_error *err)
{
    cs_status status = CS_OK;
    psa__build build;
    psa__table table = {0};
    void *config = malloc(space->schema->tables->config_size);
    bool *keep;

    if (!psa__build_init(&build, space->schema, err) || config == NULL) {
        status = cs_fail(err, CS_ENOMEM, "design space");
        goto done;
    }
    CS_TRY(psa__prepare(&build, NULL));
    keep = nets_to_keep(&build, request->chosen);
    if (keep == NULL) {
        status = psa__no_memory(&build);
        goto done;
    }
    if (!build.unsatisfiable)
        CS_TRY(psa__eliminate(&build, keep));
    if (build.unsatisfiable)
        goto done;
    CS_TRY(join_rest(&build, keep, &table));
    if (table.n_rows > request->limit)
        status = cs_fail(err, CS_ESCHEMA, "%s: %zu combinations, more than %zu",
                         cs_doc_path(space->schema->doc), table.n_rows, request->limit);
    else
        report(build.space, &table, request, config);
done:
    psa__table_fini(&table);
    psa__build_fini(&build);
    free(config);
    return status;
}
