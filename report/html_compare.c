/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The data of the page about a comparison of agents: its tables, and the improvements of every
 * run. */
#include "report/html_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Infinite values ("never reached") are null, like absent ones. */
static cs_json *reals_json(const double *value, size_t n)
{
    cs_json *list = cs_json_array();

    for (size_t i = 0; i < n; i++)
        cs_json_push(list, cs_json_real(value[i]));
    return list;
}

static cs_json *problems_json(const search_compare_result *result)
{
    cs_json *list = cs_json_array();

    for (size_t i = 0; i < result->n_problems; i++) {
        const search_compare_problem *p = &result->problems[i];
        cs_json *one = cs_json_object();
        cs_json_set(one, "label", cs_json_string(p->label));
        cs_json_set(one, "optimum", cs_json_real(p->optimum));
        cs_json_set(one, "kind", cs_json_string(p->kind));
        cs_json_set(one, "valid_points", cs_json_string(p->valid_points));
        cs_json_set(one, "share_1", cs_json_real(p->share_1));
        cs_json_set(one, "random_median", cs_json_real(p->random_median));
        cs_json_push(list, one);
    }
    return list;
}

static cs_json *rows_json(const search_compare_result *result)
{
    cs_json *list = cs_json_array();

    for (size_t i = 0; i < result->n_rows; i++) {
        const search_compare_row *r = &result->rows[i];
        const double ci[] = {r->ci_low, r->ci_high};
        cs_json *one = cs_json_object();
        cs_json_set(one, "problem", cs_json_int((int64_t)r->problem));
        cs_json_set(one, "agent", cs_json_string(r->agent));
        cs_json_set(one, "runs", cs_json_int((int64_t)r->runs));
        cs_json_set(one, "final", cs_json_real(r->final));
        cs_json_set(one, "ci", reals_json(ci, 2));
        cs_json_set(one, "success_1", cs_json_real(r->success_1));
        cs_json_set(one, "success_5", cs_json_real(r->success_5));
        cs_json_set(one, "ert_1", cs_json_real(r->ert_1));
        cs_json_set(one, "ert_5", cs_json_real(r->ert_5));
        cs_json_set(one, "area", cs_json_real(r->area));
        cs_json_set(one, "rank", cs_json_real(r->rank));
        cs_json_set(one, "p", cs_json_real(r->p));
        cs_json_set(one, "a12", cs_json_real(r->a12));
        cs_json_set(one, "verdict", cs_json_string(r->best ? "best" : r->tied ? "tied" : "worse"));
        cs_json_set(one, "agent_s_per_proposal", cs_json_real(r->agent_s_per_proposal));
        cs_json_push(list, one);
    }
    return list;
}

/* Writes the runs one by one; lines that are no run are left out, as the comparison does. */
static cs_status put_runs(FILE *runs, FILE *out, cs_error *err)
{
    cs_status status = CS_OK;
    char *line = NULL;
    size_t size = 0, n = 0;
    ssize_t length;

    fputc('[', out);
    while ((length = getline(&line, &size, runs)) > 0) {
        cs_json *run = NULL;
        if (cs_json_parse(line, (size_t)length, &run, NULL) != CS_OK)
            continue;
        fputs(n++ > 0 ? ",\n" : "\n", out);
        CS_TRY(html__put_json(out, run, err));
    }
    fputc(']', out);
done:
    free(line);
    return status;
}

cs_status html__put_compare(const report_comparison *comparison, FILE *out, cs_error *err)
{
    const search_compare_result *result = comparison->result;
    cs_json *object = cs_json_object();
    cs_status status = CS_OK;

    cs_json_set(object, "name", cs_json_string(result->name));
    cs_json_set(object, "problems", problems_json(result));
    cs_json_set(object, "rows", rows_json(result));
    fputs("{\"about\":", out);
    CS_TRY(html__put_json(out, object, err));
    fputs(",\n\"runs\":", out);
    CS_TRY(put_runs(comparison->runs, out, err));
    fputc('}', out);
done:
    return status;
}
