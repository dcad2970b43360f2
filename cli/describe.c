/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * describe: what a PSA lets one choose, what its constraints remove, how many points are left. */
#include "cli/commands.h"
#include "cli/feasible.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const report_column knob_columns[] = {
    {"knob", "knob", REPORT_TEXT, CS_DIMENSIONLESS, "name; one row a dimension"},
    {"unit", "unit", REPORT_TEXT, CS_DIMENSIONLESS, "SI unit of its numbers"},
    {"count", "count", REPORT_INTEGER, CS_DIMENSIONLESS, "number of values"},
    {"values", "values", REPORT_TEXT, CS_DIMENSIONLESS, "values, as written in the PSA"},
};

static const report_column constraint_columns[] = {
    {"constraint", "constraint", REPORT_TEXT, CS_DIMENSIONLESS, "rule"},
    {"origin", "origin", REPORT_TEXT, CS_DIMENSIONLESS, "written (in the PSA) or implied"},
    {"removes_points", "removes", REPORT_TEXT, CS_DIMENSIONLESS,
     "raw points it removes when it stands alone (decimal); empty for limits on results"},
    {"removes_share", "share", REPORT_SHARE, CS_DIMENSIONLESS, "share of the raw points"},
};

/* The values of a knob, cut short with "..." when they do not fit. */
static void knob_values(const psa_space *space, size_t knob, char *text, size_t size)
{
    char value[64];
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < psa_space_knob_count(space, knob); i++) {
        const char *shown = psa_space_knob_value(space, knob, (int32_t)i, value);
        const int n = snprintf(text + at, size - at, "%s%s", i > 0 ? ", " : "", shown);
        if (n < 0 || at + (size_t)n + 6 >= size) {
            snprintf(text + at, size - at, ", ...");
            return;
        }
        at += (size_t)n;
    }
}

static report_table *knob_table(const search_problem *problem, bool full)
{
    report_table *table = report_table_create(knob_columns, CS_COUNT(knob_columns));
    char *text = malloc(65536);

    for (size_t k = 0; text != NULL && k < psa_space_n_knobs(problem->space); k++) {
        report_table_text(table, psa_space_knob_name(problem->space, k));
        report_table_text(table, cs_dimension_symbol(psa_space_knob_unit(problem->space, k)));
        report_table_integer(table, (int64_t)psa_space_knob_count(problem->space, k));
        knob_values(problem->space, k, text, full ? 65536 : 88);
        report_table_text(table, text);
    }
    free(text);
    return table;
}

/* People see an implied rule by its name, which stands before the colon. */
static void put_rule(report_table *table, const char *text, bool implied, bool by_name)
{
    const char *colon = implied && by_name ? strstr(text, ": ") : NULL;

    if (colon == NULL)
        report_table_text(table, text);
    else
        report_table_printf(table, "%.*s", (int)(colon - text), text);
}

static report_table *constraint_table(const search_problem *problem, bool people, bool by_name)
{
    report_table *table = report_table_create(constraint_columns, CS_COUNT(constraint_columns));
    const unsigned __int128 raw = psa_space_raw_points(problem->space);
    unsigned __int128 kept;
    char text[64];
    bool implied;

    for (size_t i = 0; i < psa_schema_n_constraints(problem->schema); i++) {
        const char *rule = psa_schema_constraint_text(problem->schema, i, &implied);
        put_rule(table, rule, implied, by_name);
        report_table_text(table, implied ? "implied" : "written");
        if (psa_space_points_under(problem->space, i, &kept, NULL) != CS_OK) {
            report_table_text(table, NULL);
            report_table_real(table, NAN);
            continue;
        }
        report_table_text(table,
                          people ? report_count(raw - kept, text) : cs_u128_text(raw - kept, text));
        report_table_real(table, raw > 0 ? (double)(raw - kept) / (double)raw : 0.0);
    }
    return table;
}

/* Whether the system's own network has a price, and what that means for cost objectives. */
static bool has_price(const search_problem *problem)
{
    sim_scratch *scratch = sim_scratch_create(problem->model);
    sim_config config;
    sim_result result;
    bool priced = false;

    psa_schema_baseline(problem->schema, &config);
    if (scratch != NULL && sim_precheck(problem->model, &config, scratch, &result, NULL) == CS_OK)
        priced = isfinite(result.network_cost_usd);
    sim_scratch_destroy(scratch);
    return priced;
}

static cs_json *objectives_json(const search_problem *problem)
{
    cs_json *list = cs_json_array();

    for (size_t i = 0; i < psa_schema_n_objectives(problem->schema); i++) {
        cs_json *object = cs_json_object();
        cs_json_set(object, "name", cs_json_string(psa_schema_objective_name(problem->schema, i)));
        cs_json_set(object, "expression",
                    cs_json_string(psa_schema_objective_text(problem->schema, i)));
        cs_json_set(object, "maximize",
                    cs_json_bool(psa_schema_objective_maximize(problem->schema, i)));
        cs_json_push(list, object);
    }
    return list;
}

static void set_feasible(cs_json *object, const cli_feasibility *f)
{
    char text[40];

    if (f->exact)
        cs_json_set(object, "feasible_points", cs_json_string(cs_u128_text(f->fits, text)));
    else
        cs_json_set(object, "feasible_share_estimate", cs_json_real(f->share));
    cs_json_set(object, "feasible_points_tried", cs_json_int((int64_t)f->tried));
}

static cs_status print_json(const cli_context *cli, const search_problem *problem,
                            const cli_feasibility *feasible, cs_error *err)
{
    const unsigned __int128 raw = psa_space_raw_points(problem->space);
    const unsigned __int128 valid = psa_space_valid_points(problem->space);
    cs_json *object = report_header_json("describe", problem);
    report_table *knobs = knob_table(problem, true);
    report_table *constraints = constraint_table(problem, false, false);
    sim_config baseline;
    char text[40];

    psa_schema_baseline(problem->schema, &baseline);
    cs_json_set(object, "psa", cs_json_string(cli->args.files.item[0]));
    cs_json_set(object, "dimensions", cs_json_int((int64_t)psa_schema_n_dims(problem->schema)));
    cs_json_set(object, "raw_points", cs_json_string(cs_u128_text(raw, text)));
    cs_json_set(object, "valid_points", cs_json_string(cs_u128_text(valid, text)));
    cs_json_set(object, "valid_share", cs_json_real(raw > 0 ? (double)valid / (double)raw : 0.0));
    set_feasible(object, feasible);
    cs_json_set(object, "prices", cs_json_string(psa_schema_prices(problem->schema)));
    cs_json_set(object, "baseline_priced", cs_json_bool(has_price(problem)));
    if (knobs != NULL && constraints != NULL) {
        cs_json_set(object, "knobs", report_table_json(knobs));
        cs_json_set(object, "constraints", report_table_json(constraints));
    }
    cs_json_set(object, "objectives", objectives_json(problem));
    cs_json_set(object, "baseline", report_config_json(problem->schema, NULL, &baseline));
    report_table_destroy(knobs);
    report_table_destroy(constraints);
    return cli_print_json(cli, object, err);
}

static void print_objectives(const search_problem *problem, FILE *out)
{
    fputs("\nObjectives (the first is the default):\n", out);
    for (size_t i = 0; i < psa_schema_n_objectives(problem->schema); i++)
        fprintf(out, "  %s: %s %s\n", psa_schema_objective_name(problem->schema, i),
                psa_schema_objective_maximize(problem->schema, i) ? "maximize" : "minimize",
                psa_schema_objective_text(problem->schema, i));
}

static void print_prices(const search_problem *problem, FILE *out)
{
    fprintf(out,
            "\nPriced by table %s: links, switches and NICs of each dimension; NPUs are not.\n",
            psa_schema_prices(problem->schema));
    if (!has_price(problem))
        fputs("Not priced: the system's own network (a switch on dimension 1 has no price).\n",
              out);
}

static void print_counts(const search_problem *problem, const cli_feasibility *f, FILE *out)
{
    const unsigned __int128 raw = psa_space_raw_points(problem->space);
    const unsigned __int128 valid = psa_space_valid_points(problem->space);
    char text[64];

    fprintf(out, "\n%32s  raw points\n", report_count(raw, text));
    fprintf(out, "%32s  valid points (%.4g %%): they keep every constraint\n",
            report_count(valid, text), raw > 0 ? 100.0 * (double)valid / (double)raw : 0.0);
    if (f->exact)
        fprintf(out, "%32s  feasible points (%.4g %% of the valid ones): they fit in memory too\n",
                report_count(f->fits, text), 100.0 * f->share);
    else if (f->tried > 0)
        fprintf(out, "%30.1f %%  of the valid points fit in memory (estimate, %zu samples)\n",
                100.0 * f->share, f->tried);
}

static cs_status print_people(const cli_context *cli, const search_problem *problem,
                              const cli_feasibility *feasible, cs_error *err)
{
    report_table *knobs = knob_table(problem, cli->args.verbose);
    report_table *constraints = constraint_table(problem, true, !cli->args.verbose);
    cs_status status = CS_OK;

    fprintf(cli->out, "%s: %zu network dimensions, %zu workloads\n\n",
            psa_schema_name(problem->schema), psa_schema_n_dims(problem->schema),
            psa_schema_n_workloads(problem->schema));
    CS_TRY(report_table_write(knobs, REPORT_TABLE, cli->out, err));
    fputc('\n', cli->out);
    CS_TRY(report_table_write(constraints, REPORT_TABLE, cli->out, err));
    print_counts(problem, feasible, cli->out);
    print_objectives(problem, cli->out);
    print_prices(problem, cli->out);
done:
    report_table_destroy(knobs);
    report_table_destroy(constraints);
    return status;
}

static cs_status run_describe(cli_context *cli, cs_error *err)
{
    search_problem problem = {0};
    report_table *knobs = NULL;
    cli_feasibility feasible = {.share = NAN};
    cs_status status = CS_OK;

    CS_TRY(cli_load_problem(cli, &problem, err));
    if (cli->args.format != REPORT_CSV)
        CS_TRY(cli_count_feasible(&problem, &feasible, err));
    if (cli->args.format == REPORT_JSON) {
        CS_TRY(print_json(cli, &problem, &feasible, err));
    } else if (cli->args.format == REPORT_TABLE) {
        CS_TRY(print_people(cli, &problem, &feasible, err));
    } else {
        knobs = knob_table(&problem, true);
        CS_TRY(report_table_write(knobs, REPORT_CSV, cli->out, err));
    }
done:
    report_table_destroy(knobs);
    search_problem_fini(&problem);
    return status;
}

static const report_column dictionary[] = {
    {"raw_points", "", REPORT_TEXT, CS_DIMENSIONLESS, "product of all value counts (decimal)"},
    {"valid_points", "", REPORT_TEXT, CS_DIMENSIONLESS, "points that keep every constraint"},
    {"valid_share", "", REPORT_TEXT, CS_DIMENSIONLESS, "valid_points / raw_points"},
    {"feasible_share_estimate", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "share of valid points whose memory fits, from uniform samples"},
    {"feasible_points", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "instead of it, where the valid points are few: their exact number"},
    {"feasible_points_tried", "", REPORT_TEXT, CS_DIMENSIONLESS, "points looked at for that"},
    {"baseline_priced", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "whether the system's own network has a price"},
    {"knobs", "", REPORT_TEXT, CS_DIMENSIONLESS, "list of {knob, unit, count, values}"},
    {"constraints", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "list of {constraint, origin, removes_points, removes_share}"},
    {"objectives", "", REPORT_TEXT, CS_DIMENSIONLESS, "list of {name, expression, maximize}"},
    {"baseline", "", REPORT_TEXT, CS_DIMENSIONLESS, "configuration of the system, SI units"},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

const cli_command cli_describe = {
    .name = "describe",
    .summary = "knobs, constraints and exact counts of a PSA file",
    .usage = "PSA [--stack S,..] [--fix K=V]...",
    .example = "cosmic-search describe configs/psa/gpt3-175b-system3.yaml",
    .options = "stack fix objective",
    .min_files = 1,
    .max_files = 1,
    .dictionary = dictionary,
    .run = run_describe,
};
