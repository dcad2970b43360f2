/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Trials of a study by column, for the page: about 200 bytes a trial. */
#include "report/html_private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_REASONS = 500 };

const char *const html__results[HTML_N_RESULTS + 1] = {
    "latency_s",
    "bandwidth_per_npu_bytes_per_s",
    "network_cost_usd",
    "peak_memory_bytes",
    "energy_j",
    "mfu",
    "tokens_per_s",
    "compute_s",
    "exposed_s",
    "hidden_s",
    "bubble_s",
    "idle_s",
    "tokens_per_s_per_npu",
    NULL,
};

static bool grow_one(void **array, size_t capacity, size_t size)
{
    void *grown = realloc(*array, capacity * size + 1);

    if (grown != NULL)
        *array = grown;
    return grown != NULL;
}

static bool grow_reals(double **array, size_t capacity)
{
    void *grown = *array;
    const bool ok = grow_one(&grown, capacity, sizeof **array);

    *array = grown;
    return ok;
}

static bool grow_ids(html__rows *rows, size_t capacity)
{
    void *id = rows->id, *status = rows->status, *reason = rows->reason, *knob = rows->knob,
         *point = rows->point;
    bool ok = grow_one(&id, capacity, sizeof *rows->id);

    ok = grow_one(&status, capacity, sizeof *rows->status) && ok;
    ok = grow_one(&reason, capacity, sizeof *rows->reason) && ok;
    ok = grow_one(&knob, capacity * rows->n_knobs, sizeof *rows->knob) && ok;
    ok = grow_one(&point, capacity * rows->n_vars, sizeof *rows->point) && ok;

    rows->id = id;
    rows->status = status;
    rows->reason = reason;
    rows->knob = knob;
    rows->point = point;
    return ok;
}

static bool grow(html__rows *rows)
{
    const size_t capacity = rows->capacity == 0 ? 1024 : 2 * rows->capacity;
    bool ok = grow_ids(rows, capacity) && grow_reals(&rows->key, capacity) &&
              grow_reals(&rows->violation, capacity);

    for (size_t i = 0; ok && i < rows->problem->n_objectives; i++)
        ok = grow_reals(&rows->objective[i], capacity);
    for (size_t i = 0; ok && i < HTML_N_RESULTS; i++)
        ok = grow_reals(&rows->result[i], capacity);
    if (ok)
        rows->capacity = capacity;
    return ok;
}

/* The reason with every number replaced by "..." and without its details (after a second colon), so
 * that reasons can be counted. */
static void without_numbers(const char *text, char *out, size_t size)
{
    static const char gap[] = "\xe2\x80\xa6";
    size_t at = 0, colons = 0;

    for (const char *c = text; *c != '\0' && at + 8 < size;) {
        colons += *c == ':';
        if (colons == 2)
            break;
        const bool word = c > text && (isalpha((unsigned char)c[-1]) || c[-1] == '_');
        if (word || !isdigit((unsigned char)*c)) {
            out[at++] = *c++;
            continue;
        }
        char *end = NULL;
        (void)strtod(c, &end);
        c = end > c ? end : c + 1;
        memcpy(out + at, gap, sizeof gap - 1);
        at += sizeof gap - 1;
    }
    out[at] = '\0';
}

static bool find_reason(html__rows *rows, const char *text, uint16_t *index)
{
    char general[512];

    without_numbers(text, general, sizeof general);
    for (size_t i = 0; i < rows->n_reasons; i++) {
        if (strcmp(rows->reasons[i], general) == 0 || i == MOST_REASONS) {
            *index = (uint16_t)i;
            return true;
        }
    }
    void *reasons = rows->reasons;
    if (!grow_one(&reasons, rows->n_reasons + 1, sizeof *rows->reasons))
        return false;
    rows->reasons = reasons;
    *index = (uint16_t)rows->n_reasons;
    rows->reasons[rows->n_reasons] =
        strdup(rows->n_reasons == MOST_REASONS ? "other reasons" : general);
    return rows->reasons[rows->n_reasons++] != NULL;
}

static void read_knobs(html__rows *rows, const search_trial *trial)
{
    uint16_t *knob = rows->knob + rows->n * rows->n_knobs;

    for (size_t k = 0; k < rows->n_knobs; k++) {
        bool active = false;
        const int32_t index = psa_space_knob_index(rows->problem->space, trial->point, k, &active);
        knob[k] = active && index < HTML_INACTIVE ? (uint16_t)index : HTML_INACTIVE;
    }
}

static bool read_row(void *context, const search_trial *trial)
{
    html__rows *rows = context;
    const search_problem *problem = rows->problem;
    const bool ok = report__has_result(trial);
    const size_t at = rows->n;
    char reason[SEARCH_REASON_BYTES];

    rows->failed = (at == rows->capacity && !grow(rows)) ||
                   !find_reason(rows, search_trial_reason(trial, reason), &rows->reason[at]);
    if (rows->failed)
        return false;
    rows->id[at] = trial->id;
    rows->status[at] = (uint8_t)trial->status;
    for (size_t i = 0; i < problem->n_objectives; i++)
        rows->objective[i][at] = ok ? trial->objective[i] : NAN;
    for (size_t i = 0; i < HTML_N_RESULTS; i++)
        rows->result[i][at] = report__result_value(trial, report__find_result(html__results[i]));
    rows->violation[at] = trial->violation;
    rows->key[at] = INFINITY;
    if (trial->status == SEARCH_FEASIBLE && isfinite(trial->objective[0]))
        rows->key[at] = psa_schema_objective_maximize(problem->schema, problem->objective[0])
                            ? -trial->objective[0]
                            : trial->objective[0];
    read_knobs(rows, trial);
    memcpy(rows->point + at * rows->n_vars, trial->point, rows->n_vars * sizeof *rows->point);
    rows->n++;
    return true;
}

cs_status html__rows_read(const report_source *source, html__rows *rows, cs_error *err)
{
    cs_status status = CS_OK;

    *rows = (html__rows){.source = source, .problem = search_study_problem(source->study)};
    rows->n_knobs = psa_space_n_knobs(rows->problem->space);
    rows->n_vars = psa_space_n_vars(rows->problem->space);
    if (!grow(rows))
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory for the trials"));
    CS_TRY(search_study_each(source->study, read_row, rows, err));
    if (rows->failed)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory for %zu trials", rows->n));
done:
    return status;
}

void html__rows_fini(html__rows *rows)
{
    free(rows->id);
    free(rows->status);
    free(rows->reason);
    free(rows->knob);
    free(rows->point);
    free(rows->key);
    free(rows->violation);
    free(rows->shown);
    free(rows->row);
    for (size_t i = 0; i < AGENT_MAX_OBJECTIVES; i++)
        free(rows->objective[i]);
    for (size_t i = 0; i < HTML_N_RESULTS; i++)
        free(rows->result[i]);
    for (size_t i = 0; i < rows->n_reasons; i++)
        free(rows->reasons[i]);
    free(rows->reasons);
    *rows = (html__rows){.n = 0};
}

size_t html__row_bytes(const html__rows *rows)
{
    const size_t reals = HTML_N_RESULTS + rows->problem->n_objectives;

    /* Binary columns in base64; ids, status and reason 7. */
    return (8 * reals + 2 * rows->n_knobs + 7) * 4 / 3 + 1;
}
