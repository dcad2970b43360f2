/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A front in the three formats: the same trials in the same order in each. */
#include "report/analysis.h"
#include "report/report_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *knob_text(const report_front *f, size_t row, size_t knob, char text[64])
{
    const psa_space *space = f->problem->space;
    bool active = false;
    const int32_t index = psa_space_knob_index(space, f->trial[row].point, knob, &active);

    return active ? psa_space_knob_value(space, knob, index, text) : "-";
}

void report_front_changes(const report_front *f, size_t row, char *text, size_t size)
{
    const size_t n = psa_space_n_knobs(f->problem->space);
    char from[64], to[64];
    size_t at = 0;

    text[0] = '\0';
    for (size_t k = 0; row > 0 && k < n; k++) {
        const char *a = knob_text(f, row - 1, k, from), *b = knob_text(f, row, k, to);
        if (strcmp(a, b) == 0)
            continue;
        const char *name = psa_space_knob_name(f->problem->space, k);
        const char *dot = strchr(name, '.');
        const int put = snprintf(text + at, size - at, "%s%s %s -> %s", at > 0 ? "; " : "",
                                 dot != NULL ? dot + 1 : name, a, b);
        if (put < 0 || (size_t)put >= size - at)
            return;
        at += (size_t)put;
    }
}

/* ---- formats ---- */

static cs_status write_csv(const report_front *f, const char *command, FILE *out, cs_error *err)
{
    report_trials *trials = NULL;
    cs_status status = CS_OK;

    CS_TRY(report_trials_open(f->problem, command, REPORT_CSV, out, &trials, err));
    for (size_t i = 0; i < f->n; i++)
        CS_TRY(report_trials_add(trials, &f->trial[i], err));
    CS_TRY(report_trials_close(trials, err));
done:
    report_trials_destroy(trials);
    return status;
}

static cs_json *criteria_json(const report_front *f)
{
    cs_json *list = cs_json_array();

    for (size_t c = 0; c < f->n_criteria; c++) {
        cs_json *one = cs_json_object();
        cs_json_set(one, "name", cs_json_string(f->criterion[c].name));
        cs_json_set(one, "maximize", cs_json_bool(f->criterion[c].maximize));
        cs_json_push(list, one);
    }
    return list;
}

static cs_json *row_json(const report_front *f, size_t row)
{
    cs_json *object = report_trial_json(f->problem, &f->trial[row], NULL);
    cs_json *values = cs_json_object();
    char changes[1024];

    for (size_t c = 0; c < f->n_criteria; c++)
        cs_json_set(values, f->criterion[c].name, cs_json_real(f->value[row * f->n_criteria + c]));
    cs_json_set(object, "criteria", values);
    cs_json_set(object, "knee", cs_json_bool(row == f->knee));
    report_front_changes(f, row, changes, sizeof changes);
    cs_json_set(object, "changes_from_previous", cs_json_string(row > 0 ? changes : NULL));
    return object;
}

cs_json *report_front_json(const report_front *f, const char *command)
{
    cs_json *object = report_header_json(command, f->problem), *list = cs_json_array();

    cs_json_set(object, "criteria", criteria_json(f));
    cs_json_set(object, "knee_trial",
                f->knee != SIZE_MAX ? cs_json_int((int64_t)f->trial[f->knee].id) : cs_json_null());
    for (size_t i = 0; i < f->n; i++)
        cs_json_push(list, row_json(f, i));
    return cs_json_set(object, "trials", list);
}

/* What people see beside the criteria. */
static const char *const beside[] = {"latency_s", "bandwidth_per_npu_bytes_per_s",
                                     "network_cost_usd", "peak_memory_bytes"};

/* Whether the result stands in the table as a criterion already. */
static bool is_criterion(const report_front *f, const report_result *r)
{
    for (size_t c = 0; c < f->n_criteria; c++)
        if (f->criterion[c].objective == SIZE_MAX && f->criterion[c].offset == r->offset)
            return true;
    return false;
}

static size_t make_columns(const report_front *f, report_column *column)
{
    size_t n = 0;

    column[n++] = (report_column){.key = "trial", .title = "trial", .kind = REPORT_INTEGER};
    column[n++] = (report_column){.key = "knee", .title = ""};
    for (size_t c = 0; c < f->n_criteria; c++)
        column[n++] = (report_column){.key = f->criterion[c].name,
                                      .title = f->criterion[c].name,
                                      .kind = REPORT_REAL,
                                      .unit = f->criterion[c].unit};
    for (size_t b = 0; b < CS_COUNT(beside); b++) {
        const report_result *r = report__find_result(beside[b]);
        if (!is_criterion(f, r))
            column[n++] = (report_column){
                .key = r->key, .title = r->title, .kind = REPORT_REAL, .unit = r->unit};
    }
    column[n++] = (report_column){.key = "changes", .title = "changes from the row above"};
    return n;
}

static cs_status write_table(const report_front *f, FILE *out, cs_error *err)
{
    report_column column[REPORT_MAX_CRITERIA + CS_COUNT(beside) + 3];
    report_table *table = report_table_create(column, make_columns(f, column));
    cs_status status = CS_OK;
    char changes[1024];

    if (table == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    for (size_t i = 0; i < f->n; i++) {
        report_table_integer(table, (int64_t)f->trial[i].id);
        report_table_text(table, i == f->knee ? "knee" : "");
        for (size_t c = 0; c < f->n_criteria; c++)
            report_table_real(table, f->value[i * f->n_criteria + c]);
        for (size_t b = 0; b < CS_COUNT(beside); b++)
            if (!is_criterion(f, report__find_result(beside[b])))
                report_table_real(
                    table, report__result_value(&f->trial[i], report__find_result(beside[b])));
        report_front_changes(f, i, changes, sizeof changes);
        report_table_text(table, changes);
    }
    CS_TRY(report_table_write(table, REPORT_TABLE, out, err));
done:
    report_table_destroy(table);
    return status;
}

cs_status report_front_write(const report_front *f, const char *command, report_format format,
                             FILE *out, cs_error *err)
{
    cs_status status = CS_OK;
    cs_json *object;
    char *text;

    if (format == REPORT_CSV)
        return write_csv(f, command, out, err);
    if (format == REPORT_TABLE)
        return write_table(f, out, err);
    object = report_front_json(f, command);
    text = cs_json_dump(object, true);
    cs_json_destroy(object);
    if (text == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory while writing JSON");
    if (fprintf(out, "%s\n", text) < 0)
        status = cs_fail(err, CS_EIO, "cannot write the front");
    free(text);
    return status;
}
