/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the page says about a study beside its trials: what was searched, its best designs, its
 * fronts, its baseline. */
#include "report/html_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Designs of the asked front given in full, beside the best ones. */
enum { MOST_FRONT_DESIGNS = 60 };

static cs_json *count_text(unsigned __int128 value)
{
    char text[40];

    return cs_json_string(cs_u128_text(value, text));
}

/* ---- what was searched ---- */

static void put_origin(const html__rows *rows, cs_json *object)
{
    static const char *const keys[] = {"version",     "agent", "params", "seed",
                                       "evaluations", "hash",  "stacks", "fixes"};
    const search_problem *problem = rows->problem;

    cs_json_set(object, "file", cs_json_string(rows->source->path));
    cs_json_set(object, "name", cs_json_string(psa_schema_name(problem->schema)));
    cs_json_set(object, "psa", cs_json_string(problem->psa_path));
    for (size_t i = 0; i < CS_COUNT(keys); i++)
        cs_json_set(object, keys[i],
                    cs_json_string(search_study_info(rows->source->study, keys[i])));
    cs_json_set(object, "bound", cs_json_real(rows->source->bound));
    cs_json_set(object, "gap", cs_json_real(rows->source->gap));
}

/* The result that an objective is, if it is nothing else, with its unit. */
static void put_result(const search_problem *problem, size_t objective, cs_json *object)
{
    const char *name = psa_schema_objective_name(problem->schema, objective);
    report_criterion criterion;
    size_t n;

    if (strchr(name, ',') != NULL ||
        report_criteria(problem, name, &criterion, &n, NULL) != CS_OK ||
        criterion.objective != SIZE_MAX)
        return;
    cs_json_set(object, "unit", cs_json_string(cs_dimension_symbol(criterion.unit)));
    for (const report_result *r = report_results; r->key != NULL; r++)
        if (r->offset == criterion.offset)
            cs_json_set(object, "is", cs_json_string(r->key));
}

static cs_json *objectives_json(const search_problem *problem)
{
    cs_json *list = cs_json_array();

    for (size_t i = 0; i < problem->n_objectives; i++) {
        const size_t o = problem->objective[i];
        cs_json *one = cs_json_object();
        cs_json_set(one, "name", cs_json_string(psa_schema_objective_name(problem->schema, o)));
        cs_json_set(one, "text", cs_json_string(psa_schema_objective_text(problem->schema, o)));
        cs_json_set(one, "maximize",
                    cs_json_bool(psa_schema_objective_maximize(problem->schema, o)));
        put_result(problem, o, one);
        cs_json_push(list, one);
    }
    return list;
}

static cs_json *workloads_json(const search_problem *problem)
{
    static const char *const modes[] = {"train", "prefill", "decode"};
    cs_json *list = cs_json_array();

    for (size_t i = 0; i < sim_model_n_workloads(problem->model); i++) {
        const wl_workload *w = sim_model_workload(problem->model, i);
        cs_json *one = cs_json_object();
        cs_json_set(one, "model", cs_json_string(wl_model_name(w->model)));
        cs_json_set(one, "parameters", cs_json_int(wl_model_facts(w->model).parameters));
        cs_json_set(one, "mode", cs_json_string(modes[w->mode]));
        cs_json_set(one, "global_batch", cs_json_int(w->global_batch));
        cs_json_set(one, "sequence", cs_json_int(w->sequence));
        cs_json_set(one, "weight", cs_json_real(w->weight));
        cs_json_push(list, one);
    }
    return list;
}

static cs_json *knobs_json(const psa_space *space)
{
    cs_json *list = cs_json_array();
    char text[64];

    for (size_t k = 0; k < psa_space_n_knobs(space); k++) {
        cs_json *one = cs_json_object(), *values = cs_json_array();
        cs_json_set(one, "name", cs_json_string(psa_space_knob_name(space, k)));
        for (size_t v = 0; v < psa_space_knob_count(space, k); v++)
            cs_json_push(values, cs_json_string(psa_space_knob_value(space, k, (int32_t)v, text)));
        cs_json_set(one, "values", values);
        cs_json_push(list, one);
    }
    return list;
}

static cs_json *constraints_json(const search_problem *problem)
{
    const unsigned __int128 raw = psa_space_raw_points(problem->space);
    cs_json *list = cs_json_array();

    for (size_t i = 0; i < psa_schema_n_constraints(problem->schema); i++) {
        unsigned __int128 kept = raw;
        bool implied = false;
        const char *text = psa_schema_constraint_text(problem->schema, i, &implied);
        const bool limit = psa_schema_constraint_is_limit(problem->schema, i);
        cs_json *one = cs_json_object();
        cs_json_set(one, "text", cs_json_string(text));
        cs_json_set(one, "implied", cs_json_bool(implied));
        cs_json_set(one, "limit", cs_json_bool(limit));
        if (!limit && psa_space_points_under(problem->space, i, &kept, NULL) == CS_OK)
            cs_json_set(one, "removes", count_text(raw - kept));
        cs_json_push(list, one);
    }
    return list;
}

static void put_space(const search_problem *problem, cs_json *object)
{
    cs_json_set(object, "raw_points", count_text(psa_space_raw_points(problem->space)));
    cs_json_set(object, "valid_points", count_text(psa_space_valid_points(problem->space)));
    cs_json_set(object, "dimensions", cs_json_int((int64_t)psa_schema_n_dims(problem->schema)));
    cs_json_set(object, "objectives", objectives_json(problem));
    cs_json_set(object, "workloads", workloads_json(problem));
    cs_json_set(object, "knobs", knobs_json(problem->space));
    cs_json_set(object, "constraints", constraints_json(problem));
}

/* ---- counts, improvements, fronts ---- */

static cs_json *counts_json(const html__rows *rows)
{
    int64_t count[SEARCH_INVALID + 1] = {0};
    cs_json *object = cs_json_object();

    for (size_t i = 0; i < rows->n; i++)
        count[rows->status[i]]++;
    cs_json_set(object, "trials", cs_json_int((int64_t)rows->n));
    cs_json_set(object, "shown", cs_json_int((int64_t)rows->n_shown));
    for (size_t s = 0; s < CS_COUNT(count); s++)
        cs_json_set(object, search_status_names[s], cs_json_int(count[s]));
    return object;
}

/* Rows by their index among the shown ones. */
static cs_json *indices_json(const html__rows *rows, const size_t *row, size_t n)
{
    cs_json *list = cs_json_array();

    for (size_t i = 0; i < n; i++)
        cs_json_push(list, cs_json_int(rows->row[row[i]]));
    return list;
}

static cs_json *reasons_json(const html__rows *rows)
{
    int64_t *count = calloc(rows->n_reasons + 1, sizeof *count);
    cs_json *list = cs_json_array();

    for (size_t i = 0; count != NULL && i < rows->n; i++)
        count[rows->reason[i]]++;
    for (size_t i = 0; count != NULL && i < rows->n_reasons; i++) {
        cs_json *one = cs_json_object();
        cs_json_set(one, "text", cs_json_string(rows->reasons[i]));
        cs_json_set(one, "trials", cs_json_int(count[i]));
        cs_json_push(list, one);
    }
    free(count);
    return list;
}

static cs_json *fronts_json(const html__rows *rows, const html__marks *marks)
{
    cs_json *object = cs_json_object();
    char key[16];

    for (size_t f = 0; f < marks->n_fronts; f++) {
        cs_json *one = cs_json_object();
        cs_json_set(one, "rows", indices_json(rows, marks->front[f].row, marks->front[f].n));
        if (marks->front[f].knee != SIZE_MAX)
            cs_json_set(one, "knee", cs_json_int((int64_t)marks->front[f].knee));
        snprintf(key, sizeof key, "%zu,%zu", marks->front[f].a, marks->front[f].b);
        cs_json_set(object, key, one);
    }
    return object;
}

static cs_json *asked_json(const html__rows *rows, const html__marks *marks)
{
    const report_front *front = &marks->asked;
    cs_json *object = cs_json_object(), *names = cs_json_array(), *values = cs_json_array();

    for (size_t c = 0; c < front->n_criteria; c++) {
        cs_json *one = cs_json_object();
        cs_json_set(one, "name", cs_json_string(front->criterion[c].name));
        cs_json_set(one, "unit", cs_json_string(cs_dimension_symbol(front->criterion[c].unit)));
        cs_json_set(one, "maximize", cs_json_bool(front->criterion[c].maximize));
        cs_json_push(names, one);
    }
    for (size_t i = 0; i < front->n; i++) {
        cs_json *row = cs_json_array();
        for (size_t c = 0; c < front->n_criteria; c++)
            cs_json_push(row, cs_json_real(front->value[i * front->n_criteria + c]));
        cs_json_push(values, row);
    }
    cs_json_set(object, "criteria", names);
    cs_json_set(object, "rows", indices_json(rows, marks->asked_row, front->n));
    cs_json_set(object, "values", values);
    if (front->knee != SIZE_MAX)
        cs_json_set(object, "knee", cs_json_int((int64_t)front->knee));
    return object;
}

/* ---- designs in full ---- */

static cs_json *design_json(const html__rows *rows, size_t row, sim_scratch *scratch)
{
    search_trial trial = {.id = rows->id[row]};
    cs_json *object = cs_json_object();
    sim_config config;

    search_evaluate(rows->problem, rows->point + row * rows->n_vars, scratch, &trial);
    trial.id = rows->id[row];
    trial.point = rows->point + row * rows->n_vars;
    psa_space_decode(rows->problem->space, trial.point, &config);
    cs_json_set(object, "row", cs_json_int(rows->row[row]));
    return cs_json_merge(object, report_trial_json(rows->problem, &trial, &config));
}

static cs_json *baseline_json(const search_problem *problem, sim_scratch *scratch)
{
    search_trial trial = {.id = 0};
    sim_config config;

    psa_schema_baseline(problem->schema, &config);
    search_evaluate_config(problem, &config, scratch, &trial);
    trial.id = 0;
    return report_trial_json(problem, &trial, &config);
}

/* The best designs (or the nearest to feasible), then those of the asked front that are not among
 * them. */
static cs_json *designs_json(const html__rows *rows, const html__marks *marks, sim_scratch *scratch)
{
    cs_json *list = cs_json_array();
    const size_t n = marks->asked.n < MOST_FRONT_DESIGNS ? marks->asked.n : MOST_FRONT_DESIGNS;

    for (size_t i = 0; i < marks->n_top; i++)
        cs_json_push(list, design_json(rows, marks->top[i], scratch));
    for (size_t i = 0; i < marks->n_nearest; i++)
        cs_json_push(list, design_json(rows, marks->nearest[i], scratch));
    for (size_t i = 0; i < n; i++) {
        /* an even choice, both ends included */
        const size_t at = n > 1 ? i * (marks->asked.n - 1) / (n - 1) : 0;
        bool known = false;
        for (size_t t = 0; t < marks->n_top; t++)
            known = known || marks->top[t] == marks->asked_row[at];
        if (!known)
            cs_json_push(list, design_json(rows, marks->asked_row[at], scratch));
    }
    return list;
}

/* ---- why ---- */

static cs_json *take_table(report_table *table)
{
    cs_json *list = table != NULL ? report_table_json(table) : cs_json_null();

    report_table_destroy(table);
    return list;
}

/* One of the best designs: what limits it, what it is sensitive to, its groups, its neighbours, and
 * how it differs from the design before it (the baseline for the best). */
static cs_json *explain_json(const html__rows *rows, const html__marks *marks, size_t rank,
                             sim_scratch *scratch)
{
    const search_problem *problem = rows->problem;
    search_trial trial[2] = {{.id = 0}, {.id = 0}};
    sim_config config[2];
    report_design design[2] = {{"other", &config[1], &trial[1]}, {"design", &config[0], &trial[0]}};
    cs_json *object = cs_json_object();
    char limit[400];

    for (size_t i = 0; i < (rank > 0 ? 2u : 1u); i++) {
        const size_t row = marks->top[i == 0 ? rank : 0];
        const int32_t *point = rows->point + row * rows->n_vars;
        search_evaluate(problem, point, scratch, &trial[i]);
        trial[i].id = rows->id[row];
        trial[i].point = point;
        psa_space_decode(problem->space, point, &config[i]);
    }
    if (rank == 0) {
        psa_schema_baseline(problem->schema, &config[1]);
        search_evaluate_config(problem, &config[1], scratch, &trial[1]);
    }
    cs_json_set(object, "row", cs_json_int(rows->row[marks->top[rank]]));
    cs_json_set(object, "against", cs_json_string(rank > 0 ? "the best" : "the baseline"));
    report_limit_place(problem, &design[1], scratch, limit, sizeof limit);
    cs_json_set(object, "limit", cs_json_string(limit));
    cs_json_set(object, "sensitivity",
                take_table(report_sensitivity(problem, &config[0], scratch)));
    cs_json_set(object, "changes", take_table(report_one_change(problem, &trial[0], scratch)));
    cs_json_set(object, "groups", take_table(report_groups(problem, &config[0])));
    cs_json_set(object, "difference",
                report__has_result(&trial[1])
                    ? take_table(report_difference(problem, &design[0], &design[1]))
                    : cs_json_null());
    return object;
}

cs_status html__put_study(const html__rows *rows, const html__marks *marks, size_t explained,
                          cs_json *object, cs_error *err)
{
    sim_scratch *scratch = sim_scratch_create(rows->problem->model);
    cs_json *importance = NULL, *why = cs_json_array();
    cs_status status = CS_OK;

    if (scratch == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory for the simulator"));
    put_origin(rows, object);
    put_space(rows->problem, object);
    cs_json_set(object, "counts", counts_json(rows));
    cs_json_set(object, "reasons", reasons_json(rows));
    cs_json_set(object, "top", indices_json(rows, marks->top, marks->n_top));
    cs_json_set(object, "nearest", indices_json(rows, marks->nearest, marks->n_nearest));
    cs_json_set(object, "improvements",
                indices_json(rows, marks->improvement, marks->n_improvements));
    cs_json_set(object, "fronts", fronts_json(rows, marks));
    cs_json_set(object, "front", asked_json(rows, marks));
    cs_json_set(object, "baseline", baseline_json(rows->problem, scratch));
    cs_json_set(object, "designs", designs_json(rows, marks, scratch));
    CS_TRY(html__importance_json(rows, &importance, err));
    cs_json_set(object, "importance", importance);
    for (size_t i = 0; i < explained && i < marks->n_top; i++)
        cs_json_push(why, explain_json(rows, marks, i, scratch));
    cs_json_set(object, "explain", why);
    why = NULL;
done:
    cs_json_destroy(why);
    sim_scratch_destroy(scratch);
    return status;
}
