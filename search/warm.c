/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Designs known before a run: from another study, or from a CSV of trials.  Each is checked against
 * this space; results are taken over, not computed again. */
#include "search/search_private.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WARM = 50000, MOST_COLUMNS = 1024, LONGEST_LINE = 1 << 20 };

void search__warm_fini(search__warm *warm)
{
    free(warm->points);
    free(warm->trials);
    *warm = (search__warm){0};
}

/* Appends a trial with its point; past the limit it is left out. */
static cs_status keep(search__warm *warm, size_t n_vars, const search_trial *trial, cs_error *err)
{
    if (warm->n == MOST_WARM)
        return CS_OK;
    if (warm->n == warm->capacity) {
        size_t capacity = warm->capacity == 0 ? 64 : 2 * warm->capacity;
        int32_t *points = realloc(warm->points, (capacity * n_vars + 1) * sizeof *points);
        if (points == NULL)
            return cs_fail(err, CS_ENOMEM, "warm start");
        warm->points = points;
        search_trial *trials = realloc(warm->trials, capacity * sizeof *trials);
        if (trials == NULL)
            return cs_fail(err, CS_ENOMEM, "warm start");
        warm->trials = trials;
        warm->capacity = capacity;
    }
    memcpy(warm->points + warm->n * n_vars, trial->point, n_vars * sizeof *trial->point);
    warm->trials[warm->n++] = *trial;
    return CS_OK;
}

/* Growing moved the points: set the borrowed pointers at the end. */
static void settle(search__warm *warm, size_t n_vars)
{
    for (size_t i = 0; i < warm->n; i++)
        warm->trials[i].point = warm->points + i * n_vars;
}

/* ---- from a study ---- */

typedef struct {
    const search_problem *from, *to;
    search__warm *warm;
    int32_t *point;
    cs_status status;
    cs_error *err;
} transfer;

/* Objectives of this problem from the results of the other. */
static void read_objectives(const transfer *t, const sim_config *config, search_trial *trial)
{
    for (size_t i = 0; i < AGENT_MAX_OBJECTIVES; i++)
        trial->objective[i] = NAN;
    for (size_t i = 0; i < t->to->n_objectives; i++) {
        trial->objective[i] =
            psa_schema_objective(t->to->schema, t->to->objective[i], config, &trial->result);
        if (!isfinite(trial->objective[i]) && trial->status == SEARCH_FEASIBLE)
            trial->status = SEARCH_FAILED;
    }
}

static bool take_over(void *context, const search_trial *trial)
{
    transfer *t = context;
    search_trial copy = *trial;
    sim_config config;

    if (trial->status == SEARCH_INVALID || trial->status == SEARCH_FAILED)
        return true;
    memset(&config, 0, sizeof config);
    psa_space_decode(t->from->space, trial->point, &config);
    if (psa_space_encode(t->to->space, &config, t->point, NULL) != CS_OK) {
        t->warm->refused++;
        return true;
    }
    copy.point = t->point;
    read_objectives(t, &config, &copy);
    t->status = keep(t->warm, psa_space_n_vars(t->to->space), &copy, t->err);
    return t->status == CS_OK;
}

static cs_status from_study(const search_problem *problem, const char *path, search__warm *warm,
                            cs_error *err)
{
    cs_status status = CS_OK;
    search_study *study = NULL;
    transfer t = {.to = problem, .warm = warm, .err = err};

    CS_TRY(search_study_open(path, &study, err));
    t.from = search_study_problem(study);
    if (cs_files_hash(t.from->files) != cs_files_hash(problem->files) ||
        strcmp(search_study_info(study, "version"), cs_version()) != 0) {
        status = cs_fail(err, CS_EINVAL,
                         "%s: its results belong to other input files or another version; only "
                         "trials of the same PSA, system and models can be taken over",
                         path);
        goto done;
    }
    t.point = calloc(psa_space_n_vars(problem->space) + 1, sizeof *t.point);
    if (t.point == NULL) {
        status = cs_fail(err, CS_ENOMEM, "warm start");
        goto done;
    }
    CS_TRY(search_study_each(study, take_over, &t, err));
    status = t.status;
done:
    free(t.point);
    search_study_close(study);
    return status;
}

cs_status search__warm_stored(search_study *study, uint64_t n, search__warm *warm, cs_error *err)
{
    cs_status status;
    const search_problem *problem = search_study_problem(study);
    transfer t = {.from = problem, .to = problem, .warm = warm, .err = err};

    t.point = calloc(psa_space_n_vars(problem->space) + 1, sizeof *t.point);
    if (t.point == NULL)
        return cs_fail(err, CS_ENOMEM, "warm start");
    CS_TRY(search__study_range(study, 1, n, take_over, &t, err));
    status = t.status;
    settle(warm, psa_space_n_vars(problem->space));
done:
    free(t.point);
    return status;
}

/* ---- from CSV ---- */

/* Splits a line of RFC 4180 in place; returns the number of fields, at most `most`. */
static size_t split_csv(char *line, char **field, size_t most)
{
    size_t n = 0;
    char *in = line;

    while (n < most) {
        char *out = in;
        field[n++] = out;
        if (*in == '"') {
            for (in++; *in != 0 && (*in != '"' || in[1] == '"'); in++) {
                in += *in == '"';
                *out++ = *in;
            }
            in += *in == '"';
        } else {
            while (*in != 0 && *in != ',')
                *out++ = *in++;
        }
        const bool more = *in == ',';
        *out = 0;
        if (!more)
            break;
        in++;
    }
    return n;
}

/* What a column means. */
typedef enum { IGNORED, KNOB, OBJECTIVE, STATUS, VIOLATION, RESULT } meaning;

typedef struct {
    meaning is;
    size_t index; /* knob, objective of the problem, or offset in sim_result */
} column;

static const struct {
    const char *name;
    size_t offset;
} result_columns[] = {
    {"latency_s", offsetof(sim_result, latency_s)},
    {"compute_s", offsetof(sim_result, compute_s)},
    {"exposed_s", offsetof(sim_result, exposed_s)},
    {"hidden_s", offsetof(sim_result, hidden_s)},
    {"bubble_s", offsetof(sim_result, bubble_s)},
    {"idle_s", offsetof(sim_result, idle_s)},
    {"peak_memory_bytes", offsetof(sim_result, peak_memory_bytes)},
    {"bandwidth_per_npu_bytes_per_s", offsetof(sim_result, bandwidth_per_npu_bytes_per_s)},
    {"network_cost_usd", offsetof(sim_result, network_cost_usd)},
    {"mfu", offsetof(sim_result, mfu)},
    {"tokens_per_s", offsetof(sim_result, tokens_per_s)},
    {"tokens_per_s_per_npu", offsetof(sim_result, tokens_per_s_per_npu)},
};

static column column_named(const search_problem *p, const char *name)
{
    if (strcmp(name, "status") == 0)
        return (column){STATUS, 0};
    if (strcmp(name, "violation") == 0)
        return (column){VIOLATION, 0};
    for (size_t k = 0; k < psa_space_n_knobs(p->space); k++)
        if (strcmp(name, psa_space_knob_name(p->space, k)) == 0)
            return (column){KNOB, k};
    for (size_t i = 0; i < CS_COUNT(result_columns); i++)
        if (strcmp(name, result_columns[i].name) == 0)
            return (column){RESULT, result_columns[i].offset};
    for (size_t i = 0; strncmp(name, "objective.", 10) == 0 && i < p->n_objectives; i++)
        if (strcmp(name + 10, psa_schema_objective_name(p->schema, p->objective[i])) == 0)
            return (column){OBJECTIVE, i};
    return (column){IGNORED, 0};
}

typedef struct {
    const search_problem *problem;
    const char *path;
    size_t line, n_columns;
    column columns[MOST_COLUMNS];
    char *field[MOST_COLUMNS];
    int32_t *index, *point;
    search_trial trial;
} csv;

static cs_status read_header(csv *c, char *line, cs_error *err)
{
    bool knob = false, objective = false;

    c->n_columns = split_csv(line, c->field, MOST_COLUMNS);
    for (size_t i = 0; i < c->n_columns; i++) {
        c->columns[i] = column_named(c->problem, c->field[i]);
        knob = knob || c->columns[i].is == KNOB;
        objective = objective || (c->columns[i].is == OBJECTIVE && c->columns[i].index == 0);
    }
    if (knob && objective)
        return CS_OK;
    return cs_fail(
        err, CS_EPARSE,
        "%s:1: no trials of this space: expected columns of its knobs and \"objective.%s\" "
        "(as printed by trials -f csv)",
        c->path, psa_schema_objective_name(c->problem->schema, c->problem->objective[0]));
}

/* False when the text is no value of the knob. */
static bool set_knob(csv *c, size_t k, const char *text)
{
    char have[64];

    if (strcmp(text, "-") == 0) {
        c->index[k] = 0;
        return true;
    }
    for (size_t i = 0; i < psa_space_knob_count(c->problem->space, k); i++) {
        psa_space_knob_value(c->problem->space, k, (int32_t)i, have);
        if (strcmp(have, text) != 0)
            continue;
        c->index[k] = (int32_t)i;
        return true;
    }
    return false;
}

static bool set_cell(csv *c, column at, const char *text)
{
    search_trial *t = &c->trial;
    const double value = text[0] == 0 ? NAN : strtod(text, NULL);

    switch (at.is) {
    case KNOB:
        return set_knob(c, at.index, text);
    case OBJECTIVE:
        t->objective[at.index] = value;
        return true;
    case VIOLATION:
        t->violation = isfinite(value) ? value : 0.0;
        return true;
    case RESULT:
        memcpy((char *)&t->result + at.index, &value, sizeof value);
        return true;
    case STATUS:
        t->status = SEARCH_INVALID;
        for (size_t i = 0; search_status_names[i] != NULL; i++)
            if (strcmp(search_status_names[i], text) == 0)
                t->status = (search_status)i;
        return true;
    case IGNORED:
        return true;
    }
    return true;
}

/* A row as a trial; false when it is no design of this space, or has no result. */
static bool read_row(csv *c, char *line)
{
    const size_t n = split_csv(line, c->field, MOST_COLUMNS);
    search_trial *t = &c->trial;

    if (n != c->n_columns)
        return false;
    *t = (search_trial){.status = SEARCH_FEASIBLE, .point = c->point};
    for (size_t i = 0; i < AGENT_MAX_OBJECTIVES; i++)
        t->objective[i] = NAN;
    memset(c->index, 0, psa_space_n_knobs(c->problem->space) * sizeof *c->index);
    for (size_t i = 0; i < n; i++)
        if (!set_cell(c, c->columns[i], c->field[i]))
            return false;
    for (size_t i = 0; t->status == SEARCH_FEASIBLE && i < c->problem->n_objectives; i++)
        if (!isfinite(t->objective[i]))
            return false;
    if (t->status == SEARCH_INFEASIBLE && !(t->violation > 0.0))
        return false;
    return t->status <= SEARCH_INFEASIBLE &&
           psa_space_from_raw(c->problem->space, c->index, c->point);
}

static cs_status read_lines(csv *c, FILE *file, char *line, search__warm *warm, cs_error *err)
{
    cs_status status = CS_OK;

    while (fgets(line, LONGEST_LINE, file) != NULL) {
        c->line++;
        line[strcspn(line, "\r\n")] = 0;
        if (c->line == 1) {
            CS_TRY(read_header(c, line, err));
        } else if (read_row(c, line)) {
            CS_TRY(keep(warm, psa_space_n_vars(c->problem->space), &c->trial, err));
        } else {
            warm->refused++;
        }
    }
    if (ferror(file))
        status = cs_fail(err, CS_EIO, "%s: %s", c->path, strerror(errno));
    else if (c->line == 0)
        status = cs_fail(err, CS_EPARSE, "%s:1: the file is empty", c->path);
done:
    return status;
}

static cs_status from_csv(const search_problem *problem, const char *path, FILE *file,
                          search__warm *warm, cs_error *err)
{
    cs_status status = CS_OK;
    csv *c = calloc(1, sizeof *c);
    char *line = malloc(LONGEST_LINE);

    if (c == NULL || line == NULL) {
        status = cs_fail(err, CS_ENOMEM, "warm start");
        goto done;
    }
    c->problem = problem;
    c->path = path;
    c->index = calloc(psa_space_n_knobs(problem->space) + 1, sizeof *c->index);
    c->point = calloc(psa_space_n_vars(problem->space) + 1, sizeof *c->point);
    if (c->index == NULL || c->point == NULL) {
        status = cs_fail(err, CS_ENOMEM, "warm start");
        goto done;
    }
    CS_TRY(read_lines(c, file, line, warm, err));
done:
    if (c != NULL) {
        free(c->index);
        free(c->point);
    }
    free(c);
    free(line);
    return status;
}

cs_status search__warm_load(const search_problem *problem, const char *path, search__warm *warm,
                            cs_error *err)
{
    static const char magic[] = "SQLite format 3";
    cs_status status = CS_OK;
    char head[sizeof magic] = {0};
    FILE *file = fopen(path, "rb");

    if (file == NULL)
        return cs_fail(err, CS_ENOENT, "%s: %s", path, strerror(errno));
    const size_t n = fread(head, 1, sizeof head, file);
    rewind(file);
    if (n == sizeof head && memcmp(head, magic, sizeof magic) == 0)
        CS_TRY(from_study(problem, path, warm, err));
    else
        CS_TRY(from_csv(problem, path, file, warm, err));
    settle(warm, psa_space_n_vars(problem->space));
    if (warm->n == 0)
        status = cs_fail(err, CS_EINVAL, "%s: none of its %llu trials is a design of this space",
                         path, (unsigned long long)warm->refused);
done:
    (void)fclose(file);
    return status;
}
