/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Streams of trials: rows of CSV, a JSON list, or a table for people. */
#include "report/report_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct report_trials {
    const search_problem *problem;
    report_format format;
    FILE *out;
    uint64_t rows;
    report_column *brief; /* table only */
    report_table *table;
};

static void csv_header(const report_trials *trials)
{
    const search_problem *problem = trials->problem;

    for (const report_column *c = report_trial_columns; c->key != NULL; c++)
        report_csv_field(trials->out, c->key, false);
    for (size_t i = 0; i < problem->n_objectives; i++) {
        fputs("objective.", trials->out);
        report_csv_field(trials->out, report__objective_name(problem, i), false);
    }
    for (const report_result *r = report_results; r->key != NULL; r++)
        report_csv_field(trials->out, r->key, false);
    const size_t n = psa_space_n_knobs(problem->space);
    for (size_t k = 0; k < n; k++)
        report_csv_field(trials->out, psa_space_knob_name(problem->space, k), k + 1 == n);
    if (n == 0)
        fputc('\n', trials->out);
}

static void csv_real(FILE *out, double value)
{
    char text[32];

    report_csv_field(out, isfinite(value) ? cs_double_text(value, text) : "", false);
}

static void csv_row(const report_trials *trials, const search_trial *trial)
{
    const search_problem *problem = trials->problem;
    const size_t n = psa_space_n_knobs(problem->space);
    FILE *out = trials->out;
    char text[64], reason[SEARCH_REASON_BYTES];

    fprintf(out, "%llu,%s,%s,%s,", (unsigned long long)trial->id,
            search_status_names[trial->status], trial->status == SEARCH_FEASIBLE ? "true" : "false",
            report__has_result(trial) ? sim_verdict_names[trial->result.verdict] : "");
    report_csv_field(out, search_trial_reason(trial, reason), false);
    csv_real(out, trial->violation);
    for (size_t i = 0; i < problem->n_objectives; i++)
        csv_real(out, report__has_result(trial) ? trial->objective[i] : NAN);
    for (const report_result *r = report_results; r->key != NULL; r++)
        csv_real(out, report__result_value(trial, r));
    for (size_t k = 0; k < n; k++) {
        bool active = false;
        int32_t index = psa_space_knob_index(problem->space, trial->point, k, &active);
        report_csv_field(out, active ? psa_space_knob_value(problem->space, k, index, text) : "-",
                         k + 1 == n);
    }
    if (n == 0)
        fputc('\n', out);
}

/* Columns people see: trial, verdict, the objectives, and what stands beside every objective. */
static const char *const brief_results[] = {"latency_s", "bandwidth_per_npu_bytes_per_s",
                                            "network_cost_usd", "peak_memory_bytes", "mfu"};

const report_result *report__find_result(const char *key)
{
    const report_result *r = report_results;

    while (r->key != NULL && strcmp(r->key, key) != 0)
        r++;
    return r;
}

static cs_status table_begin(report_trials *trials, cs_error *err)
{
    const search_problem *problem = trials->problem;
    const size_t n = 2 + problem->n_objectives + CS_COUNT(brief_results) + 1;
    size_t at = 0;

    trials->brief = calloc(n, sizeof *trials->brief);
    if (trials->brief == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory for the table of trials");
    trials->brief[at++] = (report_column){.key = "trial", .title = "trial", .kind = REPORT_INTEGER};
    trials->brief[at++] = (report_column){.key = "verdict", .title = "verdict"};
    for (size_t i = 0; i < problem->n_objectives; i++)
        trials->brief[at++] = (report_column){.key = report__objective_name(problem, i),
                                              .title = report__objective_name(problem, i),
                                              .kind = REPORT_REAL};
    for (size_t i = 0; i < CS_COUNT(brief_results); i++) {
        const report_result *r = report__find_result(brief_results[i]);
        trials->brief[at++] =
            (report_column){.key = r->key, .title = r->title, .kind = REPORT_REAL, .unit = r->unit};
    }
    trials->brief[at++] = (report_column){.key = "split", .title = "design"};
    trials->table = report_table_create(trials->brief, at);
    return trials->table == NULL ? cs_fail(err, CS_ENOMEM, "out of memory") : CS_OK;
}

/* Active knobs as "dp 8, tp 4": names without their stack, per-dimension ones joined by commas. */
static void brief_design(const search_problem *problem, const search_trial *trial, char *text,
                         size_t size)
{
    const char *last = "";
    char value[64];
    size_t at = 0;

    text[0] = '\0';
    for (size_t k = 0; k < psa_space_n_knobs(problem->space); k++) {
        bool active = false;
        int32_t index = psa_space_knob_index(problem->space, trial->point, k, &active);
        const char *name = psa_space_knob_name(problem->space, k);
        const char *dot = strchr(name, '.') == NULL ? name : strchr(name, '.') + 1;
        const size_t stem = strcspn(name, "[");
        const bool same = strncmp(name, last, stem) == 0 && last[stem] == '[';
        const char *shown = active ? psa_space_knob_value(problem->space, k, index, value) : "-";
        int n = same ? snprintf(text + at, size - at, ",%s", shown)
                     : snprintf(text + at, size - at, "%s%.*s %s", at > 0 ? "; " : "",
                                (int)(stem - (size_t)(dot - name)), dot, shown);
        if (n < 0 || at + (size_t)n >= size)
            return;
        at += (size_t)n;
        last = name;
    }
}

static void table_row(report_trials *trials, const search_trial *trial)
{
    const bool ok = report__has_result(trial);
    char design[1024];

    report_table_integer(trials->table, (int64_t)trial->id);
    report_table_text(trials->table, ok ? sim_verdict_names[trial->result.verdict]
                                        : search_status_names[trial->status]);
    for (size_t i = 0; i < trials->problem->n_objectives; i++)
        report_table_real(trials->table, ok ? trial->objective[i] : NAN);
    for (size_t i = 0; i < CS_COUNT(brief_results); i++)
        report_table_real(trials->table,
                          report__result_value(trial, report__find_result(brief_results[i])));
    brief_design(trials->problem, trial, design, sizeof design);
    report_table_text(trials->table, design);
}

static cs_status json_begin(const report_trials *trials, const char *command, cs_error *err)
{
    cs_json *header = report_header_json(command, trials->problem);
    char *text = cs_json_dump(header, false);

    cs_json_destroy(header);
    if (text == NULL || text[0] == '\0') {
        free(text);
        return cs_fail(err, CS_ENOMEM, "out of memory while writing JSON");
    }
    text[strlen(text) - 1] = '\0'; /* the closing brace: the list goes inside */
    fprintf(trials->out, "%s, \"trials\": [", text);
    free(text);
    return CS_OK;
}

cs_status report_trials_open(const search_problem *problem, const char *command,
                             report_format format, FILE *out, report_trials **trials, cs_error *err)
{
    report_trials *t = calloc(1, sizeof *t);
    cs_status status = CS_OK;

    if (t == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    t->problem = problem;
    t->format = format;
    t->out = out;
    if (format == REPORT_CSV)
        csv_header(t);
    else if (format == REPORT_JSON)
        CS_TRY(json_begin(t, command, err));
    else
        CS_TRY(table_begin(t, err));
    *trials = t;
    t = NULL;
done:
    report_trials_destroy(t);
    return status;
}

cs_status report_trials_add(report_trials *trials, const search_trial *trial, cs_error *err)
{
    if (trials->format == REPORT_CSV) {
        csv_row(trials, trial);
    } else if (trials->format == REPORT_TABLE) {
        table_row(trials, trial);
    } else {
        cs_json *object = report_trial_json(trials->problem, trial, NULL);
        char *text = cs_json_dump(object, false);
        cs_json_destroy(object);
        if (text == NULL)
            return cs_fail(err, CS_ENOMEM, "out of memory while writing JSON");
        fprintf(trials->out, "%s\n%s", trials->rows > 0 ? "," : "", text);
        free(text);
    }
    trials->rows++;
    return ferror(trials->out) ? cs_fail(err, CS_EIO, "cannot write the trials") : CS_OK;
}

cs_status report_trials_close(report_trials *trials, cs_error *err)
{
    if (trials->format == REPORT_TABLE)
        return report_table_write(trials->table, REPORT_TABLE, trials->out, err);
    if (trials->format == REPORT_JSON)
        fputs("\n]}\n", trials->out);
    return ferror(trials->out) ? cs_fail(err, CS_EIO, "cannot write the trials") : CS_OK;
}

void report_trials_destroy(report_trials *trials)
{
    if (trials == NULL)
        return;
    report_table_destroy(trials->table);
    free(trials->brief);
    free(trials);
}
