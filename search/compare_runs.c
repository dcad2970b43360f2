/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Runs of a comparison as JSON lines. */
#include "search/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_LINE = 8 << 20 };

void search__record_fini(search__record *record)
{
    free(record->problem);
    free(record->agent);
    free(record->at);
    free(record->value);
    *record = (search__record){0};
}

void search__records_fini(search__records *records)
{
    for (size_t i = 0; i < records->n; i++)
        search__record_fini(&records->list[i]);
    free(records->list);
    *records = (search__records){0};
}

cs_status search__records_add(search__records *records, search__record *record, cs_error *err)
{
    search__record *list = cs_room(records->list, &records->capacity, records->n + 1, sizeof *list);

    if (list == NULL)
        return cs_fail(err, CS_ENOMEM, "comparison");
    records->list = list;
    records->list[records->n++] = *record;
    *record = (search__record){0};
    return CS_OK;
}

const search__record *search__records_find(const search__records *records, const char *problem,
                                           const char *agent_, uint64_t seed, uint64_t evaluations)
{
    for (size_t i = records->n; i-- > 0;) {
        const search__record *r = &records->list[i];
        if (r->seed == seed && r->evaluations == evaluations && strcmp(r->agent, agent_) == 0 &&
            strcmp(r->problem, problem) == 0)
            return r;
    }
    return NULL;
}

double search__records_best(const search__records *records, const char *problem, bool maximize,
                            uint64_t evaluations)
{
    double best = NAN;

    for (size_t i = 0; i < records->n; i++) {
        const search__record *r = &records->list[i];
        if (r->n == 0 || (evaluations != 0 && r->evaluations != evaluations) ||
            strcmp(r->problem, problem) != 0)
            continue;
        const double value = r->value[r->n - 1];
        if (isnan(best) || (maximize ? value > best : value < best))
            best = value;
    }
    return best;
}

bool search__near(double value, double optimum, double within, bool maximize)
{
    return fabs(value / optimum - 1.0) <= within || (maximize ? value > optimum : value < optimum);
}

cs_status search__record_improve(search__record *record, uint64_t at, double value)
{
    if (record->n == record->capacity) {
        size_t capacity = record->capacity == 0 ? 32 : 2 * record->capacity;
        uint64_t *ats = realloc(record->at, capacity * sizeof *ats);
        if (ats == NULL)
            return CS_ENOMEM;
        record->at = ats;
        double *values = realloc(record->value, capacity * sizeof *values);
        if (values == NULL)
            return CS_ENOMEM;
        record->value = values;
        record->capacity = capacity;
    }
    record->at[record->n] = at;
    record->value[record->n++] = value;
    return CS_OK;
}

/* ---- lines ---- */

static bool read_count(const cs_json *object, const char *key, uint64_t *out)
{
    int64_t value;

    if (!cs_json_get_int(cs_json_get(object, key), &value) || value < 0)
        return false;
    *out = (uint64_t)value;
    return true;
}

static bool read_trace(const cs_json *trace, search__record *r)
{
    for (size_t i = 0; i < cs_json_size(trace); i++) {
        const cs_json *step = cs_json_at(trace, i);
        int64_t at;
        double value;
        if (!cs_json_get_int(cs_json_at(step, 0), &at) || at < 1 ||
            !cs_json_get_real(cs_json_at(step, 1), &value) || !isfinite(value) ||
            (r->n > 0 && (uint64_t)at <= r->at[r->n - 1]) ||
            search__record_improve(r, (uint64_t)at, value) != CS_OK)
            return false;
    }
    return true;
}

static bool read_record(const cs_json *object, search__record *r)
{
    const char *problem, *agent_;

    if (!cs_json_get_string(cs_json_get(object, "problem"), &problem) ||
        !cs_json_get_string(cs_json_get(object, "agent"), &agent_) ||
        !read_count(object, "seed", &r->seed) ||
        !read_count(object, "evaluations", &r->evaluations) ||
        !read_trace(cs_json_get(object, "trace"), r))
        return false;
    (void)read_count(object, "proposals", &r->proposals);
    (void)cs_json_get_real(cs_json_get(object, "agent_s"), &r->agent_s);
    r->share_1 = r->optimum = NAN;
    (void)cs_json_get_real(cs_json_get(object, "share_1"), &r->share_1);
    (void)cs_json_get_real(cs_json_get(object, "optimum"), &r->optimum);
    (void)read_count(object, "hits", &r->hits);
    r->stopped = cs_json_get(object, "stopped") != NULL;
    if (r->stopped && r->n == 0) /* near what? */
        return false;
    r->problem = strdup(problem);
    r->agent = strdup(agent_);
    return r->problem != NULL && r->agent != NULL;
}

/* One line; *cut is set for a last line without its end. */
static cs_status read_line(const char *path, size_t number, char *line, search__records *out,
                           bool *cut, cs_error *err)
{
    cs_status status = CS_OK;
    cs_json *object = NULL;
    search__record record = {0};
    const size_t n = strlen(line);

    if (n == 0 || line[n - 1] != '\n') {
        *cut = true;
        return CS_OK;
    }
    if (cs_json_parse(line, n, &object, NULL) == CS_OK && read_record(object, &record))
        status = search__records_add(out, &record, err);
    else
        status = cs_fail(err, CS_EPARSE, "%s:%zu: not a run of a comparison", path, number);
    search__record_fini(&record);
    cs_json_destroy(object);
    return status;
}

cs_status search__records_read(const char *path, search__records *out, cs_error *err)
{
    cs_status status = CS_OK;
    FILE *file = fopen(path, "r");
    char *line = NULL;
    bool cut = false;

    if (file == NULL)
        return errno == ENOENT ? CS_OK : cs_fail(err, CS_EIO, "%s: %s", path, strerror(errno));
    line = malloc(LONGEST_LINE);
    if (line == NULL) {
        status = cs_fail(err, CS_ENOMEM, "comparison");
        goto done;
    }
    for (size_t number = 1; !cut && fgets(line, LONGEST_LINE, file) != NULL; number++)
        CS_TRY(read_line(path, number, line, out, &cut, err));
done:
    free(line);
    (void)fclose(file);
    return status;
}

static cs_json *record_json(const search__record *r)
{
    cs_json *object = cs_json_object(), *trace = cs_json_array();

    cs_json_set(object, "problem", cs_json_string(r->problem));
    cs_json_set(object, "agent", cs_json_string(r->agent));
    cs_json_set(object, "seed", cs_json_int((int64_t)r->seed));
    cs_json_set(object, "evaluations", cs_json_int((int64_t)r->evaluations));
    cs_json_set(object, "proposals", cs_json_int((int64_t)r->proposals));
    cs_json_set(object, "agent_s", cs_json_real(r->agent_s));
    if (!isnan(r->share_1))
        cs_json_set(object, "share_1", cs_json_real(r->share_1));
    if (!isnan(r->optimum)) {
        cs_json_set(object, "hits", cs_json_int((int64_t)r->hits));
        cs_json_set(object, "optimum", cs_json_real(r->optimum));
    }
    if (r->stopped)
        cs_json_set(object, "stopped", cs_json_bool(true));
    for (size_t i = 0; i < r->n; i++)
        cs_json_push(trace,
                     cs_json_push(cs_json_push(cs_json_array(), cs_json_int((int64_t)r->at[i])),
                                  cs_json_real(r->value[i])));
    return cs_json_set(object, "trace", trace);
}

/* A run that was killed while it wrote left a line without an end: it is dropped before the next.
 */
static cs_status open_for_append(const char *path, FILE **out, cs_error *err)
{
    FILE *file = fopen(path, "r+");
    long end, keep = 0;
    int c;

    if (file == NULL)
        file = fopen(path, "w+");
    if (file == NULL)
        return cs_fail(err, CS_EIO, "%s: %s", path, strerror(errno));
    (void)fseek(file, 0, SEEK_END);
    end = ftell(file);
    for (long at = end; at > 0 && keep == 0; at--) {
        (void)fseek(file, at - 1, SEEK_SET);
        c = fgetc(file);
        keep = c == '\n' ? at : 0;
    }
    if (keep < end && ftruncate(fileno(file), keep) != 0) {
        (void)fclose(file);
        return cs_fail(err, CS_EIO, "%s: %s", path, strerror(errno));
    }
    (void)fseek(file, keep, SEEK_SET);
    *out = file;
    return CS_OK;
}

cs_status search__record_write(const char *path, const search__record *record, cs_error *err)
{
    cs_status status = CS_OK;
    FILE *file = NULL;
    cs_json *object = record_json(record);
    char *text = cs_json_dump(object, false);

    if (text == NULL) {
        status = cs_fail(err, CS_ENOMEM, "comparison");
        goto done;
    }
    CS_TRY(open_for_append(path, &file, err));
    const bool written = fprintf(file, "%s\n", text) > 0;
    if (fclose(file) != 0 || !written)
        status = cs_fail(err, CS_EIO, "%s: %s", path, strerror(errno));
done:
    free(text);
    cs_json_destroy(object);
    return status;
}
