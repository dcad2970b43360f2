/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Why a design is as fast as it is: what happens when one quantity or one knob changes, which NPUs
 * talk to each other, and how two designs differ. */
#include "report/report_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP            0.1 /* relative change of a quantity */
#define MOST_QUANTITIES 96

/* ---- sensitivity ---- */

static const report_column sensitivity_columns[] = {
    {"quantity", "quantity", REPORT_TEXT, CS_DIMENSIONLESS, "physical quantity"},
    {"latency_lower_s", "at -10 %", REPORT_REAL, CS_SECONDS, "latency when it is 10 % lower"},
    {"latency_higher_s", "at +10 %", REPORT_REAL, CS_SECONDS, "latency when it is 10 % higher"},
    {"elasticity", "elasticity", REPORT_REAL, CS_DIMENSIONLESS,
     "d ln(latency) / d ln(quantity): -1 means all of the time is inversely proportional to it"},
};

typedef struct {
    char name[64];
    double lower, higher, elasticity;
} sensitivity;

double report__scaled_latency(const search_problem *problem, const sim_config *config,
                              sim_scratch *scratch, size_t offset, double factor)
{
    sim_config changed = *config;
    search_trial trial = {.id = 0};
    double value;

    memcpy(&value, (const char *)config + offset, sizeof value);
    value *= factor;
    memcpy((char *)&changed + offset, &value, sizeof value);
    search_evaluate_config(problem, &changed, scratch, &trial);
    return report__has_result(&trial) ? trial.result.latency_s : NAN;
}

static int by_strength(const void *a, const void *b)
{
    const sensitivity *x = a, *y = b;
    const double dx = isfinite(x->elasticity) ? fabs(x->elasticity) : -1.0;
    const double dy = isfinite(y->elasticity) ? fabs(y->elasticity) : -1.0;

    return dx > dy ? -1 : dx < dy ? 1 : strcmp(x->name, y->name);
}

static sensitivity measure(const search_problem *problem, const sim_config *config,
                           sim_scratch *scratch, const psa_field *field, size_t d)
{
    const size_t offset = field->offset + d * sizeof(double);
    sensitivity s = {.elasticity = NAN};

    if (field->per_dimension)
        snprintf(s.name, sizeof s.name, "%s[%zu]", field->path, d + 1);
    else
        snprintf(s.name, sizeof s.name, "%s", field->path);
    s.lower = report__scaled_latency(problem, config, scratch, offset, 1.0 - STEP);
    s.higher = report__scaled_latency(problem, config, scratch, offset, 1.0 + STEP);
    s.elasticity = log(s.higher / s.lower) / log((1.0 + STEP) / (1.0 - STEP));
    return s;
}

/* Whether the field is a positive physical quantity of the machine that may change by the step in
 * dimension d. */
static bool is_quantity(const psa_field *field, const sim_config *config, size_t d)
{
    double value;

    if (field->kind != PSA_REAL || strncmp(field->path, "workload.", 9) == 0)
        return false;
    if (field->per_dimension && config->network.npus[d] <= 1)
        return false;
    memcpy(&value, (const char *)config + field->offset + d * sizeof value, sizeof value);
    if (!(value > 0.0) || !isfinite(value))
        return false;
    return field->max <= field->min ||
           (value * (1.0 - STEP) >= field->min && value * (1.0 + STEP) <= field->max);
}

report_table *report_sensitivity(const search_problem *problem, const sim_config *config,
                                 sim_scratch *scratch)
{
    const psa_tables *tables = psa_schema_tables(problem->schema);
    report_table *table = report_table_create(sensitivity_columns, CS_COUNT(sensitivity_columns));
    sensitivity found[MOST_QUANTITIES] = {{.name = ""}};
    size_t n = 0;

    for (size_t f = 0; f < tables->n_fields; f++) {
        const psa_field *field = &tables->fields[f];
        const size_t dims = field->per_dimension ? psa_schema_n_dims(problem->schema) : 1;
        for (size_t d = 0; d < dims && n < CS_COUNT(found); d++)
            if (is_quantity(field, config, d))
                found[n++] = measure(problem, config, scratch, field, d);
    }
    qsort(found, n, sizeof *found, by_strength);
    for (size_t i = 0; i < n; i++) {
        /* Capacity, prices and power do not enter the time. */
        if (found[i].lower == found[i].higher)
            continue;
        report_table_text(table, found[i].name);
        report_table_real(table, found[i].lower);
        report_table_real(table, found[i].higher);
        report_table_real(table, found[i].elasticity);
    }
    return table;
}

/* ---- one change ---- */

static const report_column change_columns[] = {
    {"variable", "variable", REPORT_TEXT, CS_DIMENSIONLESS,
     "variable of the space; degrees with a fixed product are one"},
    {"change", "best other value", REPORT_TEXT, CS_DIMENSIONLESS,
     "knobs that change, all else kept"},
    {"objective", "objective", REPORT_REAL, CS_DIMENSIONLESS, "first objective after it"},
    {"ratio", "against now", REPORT_REAL, CS_DIMENSIONLESS, "objective after over before"},
};

typedef struct {
    size_t var;
    double objective, ratio;
    char change[192];
} change;

/* Knobs whose values differ, as "dp 8 -> 16, tp 4 -> 2". */
static void changed_knobs(const psa_space *space, const int32_t *from, const int32_t *to,
                          char *text, size_t size)
{
    char old[64], new[64];
    size_t at = 0;

    text[0] = '\0';
    for (size_t k = 0; k < psa_space_n_knobs(space); k++) {
        bool was = false, is = false;
        const int32_t a = psa_space_knob_index(space, from, k, &was);
        const int32_t b = psa_space_knob_index(space, to, k, &is);
        int n;
        if ((a == b && was == is) || (!was && !is))
            continue;
        n = snprintf(text + at, size - at, "%s%s %s -> %s", at > 0 ? ", " : "",
                     psa_space_knob_name(space, k),
                     was ? psa_space_knob_value(space, k, a, old) : "-",
                     is ? psa_space_knob_value(space, k, b, new) : "-");
        if (n < 0 || (size_t)n >= size - at)
            return;
        at += (size_t)n;
    }
}

/* Tries every other value of a variable; ratio NAN when none is valid and feasible. */
static change best_value(const search_problem *problem, const search_trial *trial, size_t var,
                         int32_t *point, sim_scratch *scratch)
{
    const size_t n_vars = psa_space_n_vars(problem->space);
    const bool maximize = psa_schema_objective_maximize(problem->schema, problem->objective[0]);
    change best = {.var = var, .objective = NAN, .ratio = NAN};

    for (int32_t v = 0; v < psa_space_card(problem->space, var); v++) {
        search_trial tried = {.id = 0};
        char text[sizeof best.change];
        memcpy(point, trial->point, n_vars * sizeof *point);
        point[var] = v;
        psa_space_canonicalize(problem->space, point);
        if (v == trial->point[var] || !psa_space_valid(problem->space, point))
            continue;
        changed_knobs(problem->space, trial->point, point, text, sizeof text);
        if (text[0] == '\0') /* only knobs without effect differ: the same design */
            continue;
        search_evaluate(problem, point, scratch, &tried);
        if (tried.status != SEARCH_FEASIBLE)
            continue;
        if (isfinite(best.objective) && (maximize ? tried.objective[0] <= best.objective
                                                  : tried.objective[0] >= best.objective))
            continue;
        best.objective = tried.objective[0];
        best.ratio = tried.objective[0] / trial->objective[0];
        memcpy(best.change, text, sizeof text);
    }
    return best;
}

static int by_ratio(const void *a, const void *b)
{
    const change *x = a, *y = b;

    if (isnan(x->ratio) || isnan(y->ratio))
        return isnan(x->ratio) - isnan(y->ratio);
    return x->ratio < y->ratio ? -1 : x->ratio > y->ratio ? 1 : x->var < y->var ? -1 : 1;
}

report_table *report_one_change(const search_problem *problem, const search_trial *trial,
                                sim_scratch *scratch)
{
    const size_t n = psa_space_n_vars(problem->space);
    const bool maximize = psa_schema_objective_maximize(problem->schema, problem->objective[0]);
    report_table *table = report_table_create(change_columns, CS_COUNT(change_columns));
    int32_t *point = calloc(n + 1, sizeof *point);
    change *found = calloc(n + 1, sizeof *found);

    if (table == NULL || point == NULL || found == NULL) {
        report_table_destroy(table);
        table = NULL;
        goto done;
    }
    for (size_t v = 0; v < n; v++)
        found[v] = best_value(problem, trial, v, point, scratch);
    qsort(found, n, sizeof *found, by_ratio);
    for (size_t i = 0; i < n; i++) {
        const change *c = &found[maximize ? n - 1 - i : i];
        if (isnan(c->ratio))
            continue;
        report_table_text(table, psa_space_var_name(problem->space, c->var));
        report_table_text(table, c->change);
        report_table_real(table, c->objective);
        report_table_real(table, c->ratio);
    }
done:
    free(point);
    free(found);
    return table;
}

/* ---- groups ---- */

static const report_column group_columns[] = {
    {"axis", "axis", REPORT_TEXT, CS_DIMENSIONLESS, "parallel axis"},
    {"size", "size", REPORT_INTEGER, CS_DIMENSIONLESS, "NPUs of a group"},
    {"stride", "apart", REPORT_INTEGER, CS_DIMENSIONLESS, "between members, in NPU numbers"},
    {"first_group", "first group", REPORT_TEXT, CS_DIMENSIONLESS, "NPU numbers, from 0"},
    {"spans", "network", REPORT_TEXT, CS_DIMENSIONLESS,
     "dimensions it spans: members of the dimension's NPUs"},
};

static void first_group(int64_t size, int64_t stride, char *text, size_t n)
{
    size_t at = 0;

    for (int64_t i = 0; i < size && i < 4; i++)
        at += (size_t)snprintf(text + at, n - at, "%s%lld", i > 0 ? ", " : "",
                               (long long)(i * stride));
    if (size > 5)
        at += (size_t)snprintf(text + at, n - at, ", ...");
    if (size > 4)
        snprintf(text + at, n - at, ", %lld", (long long)((size - 1) * stride));
}

static void span_text(const sim_network *net, const sim_footprint *f, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    if (f->routed) {
        snprintf(text, size, "a ring routed over several dimensions");
        return;
    }
    for (size_t s = 0; s < f->n_spans && at < size; s++)
        at += (size_t)snprintf(text + at, size - at, "%sdimension %d: %lld of %lld",
                               s > 0 ? "; " : "", f->span[s].dim + 1, (long long)f->span[s].n,
                               (long long)net->dim[f->span[s].dim].n);
}

report_table *report_groups(const search_problem *problem, const sim_config *config)
{
    const wl_config *w = &config->workload;
    const sim_mesh mesh = {.size = {w->tp, w->sp, w->ep, w->dp / w->ep, w->pp}};
    report_table *table = report_table_create(group_columns, CS_COUNT(group_columns));
    char group[96], spans[256];
    sim_footprint footprint;
    int64_t stride = 1;
    sim_network net;

    sim_config_network(config, psa_schema_n_dims(problem->schema), &net);
    for (int i = 0; i < WL_N_AXES; i++) {
        const int axis = (config->placement >> (4 * i)) & 15;
        const int64_t size = mesh.size[axis];
        if (size > 1 && sim_footprint_make(&net, &mesh, config->placement, WL_GROUP(axis),
                                           &footprint, NULL) == CS_OK) {
            first_group(size, stride, group, sizeof group);
            span_text(&net, &footprint, spans, sizeof spans);
            report_table_text(table, wl_axis_names[axis]);
            report_table_integer(table, size);
            report_table_integer(table, stride);
            report_table_text(table, group);
            report_table_text(table, spans);
        }
        stride *= size;
    }
    return table;
}

/* ---- two designs ---- */

static const report_column difference_columns[] = {
    {"what", "what", REPORT_TEXT, CS_DIMENSIONLESS, "part of time or memory, or a knob"},
    {"a", "first", REPORT_TEXT, CS_DIMENSIONLESS, "of the first design"},
    {"b", "second", REPORT_TEXT, CS_DIMENSIONLESS, "of the second design"},
    {"difference", "second - first", REPORT_TEXT, CS_DIMENSIONLESS, "numbers only"},
};

static void put_result_difference(report_table *table, const report_result *r, double a, double b)
{
    char text[64];

    report_table_text(table, r->title);
    report_table_text(table, report_quantity(a, r->unit, text));
    report_table_text(table, report_quantity(b, r->unit, text));
    report_table_printf(table, "%s%s",
                        b > a   ? "+"
                        : b < a ? "-"
                                : "",
                        report_quantity(fabs(b - a), r->unit, text));
}

report_table *report_difference(const search_problem *problem, const report_design *a,
                                const report_design *b)
{
    const psa_tables *tables = psa_schema_tables(problem->schema);
    const size_t n_dims = psa_schema_n_dims(problem->schema);
    report_table *table = report_table_create(difference_columns, CS_COUNT(difference_columns));
    char x[256], y[256];

    for (const report_result *r = report_results; r->key != NULL; r++) {
        const double va = report__result_value(a->trial, r);
        const double vb = report__result_value(b->trial, r);
        if (isfinite(va) && isfinite(vb) && va != vb)
            put_result_difference(table, r, va, vb);
    }
    for (size_t f = 0; f < tables->n_fields; f++) {
        psa_field_text(&tables->fields[f], a->config, n_dims, x, sizeof x);
        psa_field_text(&tables->fields[f], b->config, n_dims, y, sizeof y);
        if (strcmp(x, y) == 0)
            continue;
        report_table_text(table, tables->fields[f].path);
        report_table_text(table, x);
        report_table_text(table, y);
        report_table_text(table, NULL);
    }
    return table;
}
