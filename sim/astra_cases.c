/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A CSV table of collectives, one a row, each with its own network and system. */
#include "sim/astra_private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES  (64u << 20)
#define MAX_COLUMNS     64
#define LIST_SEPARATORS ";| \t"

struct sim_astra_cases {
    cs_arena *arena;
    char *path;
    char *header;
    size_t n_columns;
    const char *column[MAX_COLUMNS];
    size_t n;
    char **row;          /* lines as they stand */
    const char **field;  /* n * n_columns */
    size_t *line_number; /* from 1 */
};

/* ---- reading ---- */

static cs_status read_file(const char *path, cs_arena *arena, char **text, cs_error *err)
{
    FILE *file = fopen(path, "rb");
    cs_status status = CS_OK;
    long size;

    if (file == NULL)
        return cs_fail(err, errno == ENOENT ? CS_ENOENT : CS_EIO, "%s: %s", path, strerror(errno));
    if (fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0)
        status = cs_fail(err, CS_EIO, "%s: cannot be read", path);
    else if ((unsigned long)size > MAX_FILE_BYTES)
        status = cs_fail(err, CS_EPARSE, "%s: larger than 64 MiB", path);
    else if ((*text = cs_arena_alloc(arena, (size_t)size + 1)) == NULL)
        status = cs_fail(err, CS_ENOMEM, "%s", path);
    else if (fread(*text, 1, (size_t)size, file) != (size_t)size)
        status = cs_fail(err, CS_EIO, "%s: cannot be read", path);
    else if (memchr(*text, '\0', (size_t)size) != NULL)
        status = cs_fail(err, CS_EPARSE, "%s: not a text file", path);
    (void)fclose(file);
    return status;
}

/* Cuts the next line off *rest, without its end; NULL at the end of the text. */
static char *take_line(char **rest)
{
    char *line = *rest;
    char *end;

    if (line == NULL || *line == '\0')
        return NULL;
    end = strchr(line, '\n');
    *rest = end == NULL ? NULL : end + 1;
    if (end == NULL)
        end = line + strlen(line);
    else
        *end = '\0';
    if (end > line && end[-1] == '\r')
        end[-1] = '\0';
    return line;
}

/* Splits a copy of `line` at commas into at most `max` fields; returns how many there are. */
static size_t split_fields(char *copy, const char **field, size_t max)
{
    size_t n = 0;
    char *at = copy;

    for (;;) {
        char *comma = strchr(at, ',');
        if (n < max)
            field[n] = at;
        n++;
        if (comma == NULL)
            return n;
        *comma = '\0';
        at = comma + 1;
    }
}

static size_t count_lines(const char *text)
{
    size_t n = 1;

    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static cs_status read_header(sim_astra_cases *cases, char *line, cs_error *err)
{
    char *copy;

    if (line == NULL)
        return cs_fail(err, CS_EPARSE, "%s:1: the header line is missing", cases->path);
    if (strncmp(line, "\xEF\xBB\xBF", 3) == 0)
        line += 3;
    cases->header = line;
    copy = cs_arena_strdup(cases->arena, line);
    if (copy == NULL)
        return cs_fail(err, CS_ENOMEM, "%s", cases->path);
    cases->n_columns = split_fields(copy, cases->column, MAX_COLUMNS);
    if (cases->n_columns > MAX_COLUMNS)
        return cs_fail(err, CS_EPARSE, "%s:1: more than %d columns", cases->path, MAX_COLUMNS);
    return CS_OK;
}

static cs_status read_row(sim_astra_cases *cases, char *line, size_t number, cs_error *err)
{
    const size_t n_columns = cases->n_columns;
    char *copy = cs_arena_strdup(cases->arena, line);
    size_t found;

    if (copy == NULL)
        return cs_fail(err, CS_ENOMEM, "%s", cases->path);
    found = split_fields(copy, cases->field + cases->n * n_columns, n_columns);
    if (found != n_columns)
        return cs_fail(err, CS_EPARSE, "%s:%zu: %zu fields, the header has %zu", cases->path,
                       number, found, n_columns);
    cases->row[cases->n] = line;
    cases->line_number[cases->n++] = number;
    return CS_OK;
}

static cs_status read_rows(sim_astra_cases *cases, char *text, cs_error *err)
{
    cs_status status;
    const size_t max = count_lines(text);
    char *rest = text;
    char *line;

    CS_TRY(read_header(cases, take_line(&rest), err));
    cases->row = cs_arena_alloc(cases->arena, max * sizeof *cases->row);
    cases->field = cs_arena_alloc(cases->arena, max * cases->n_columns * sizeof *cases->field);
    cases->line_number = cs_arena_alloc(cases->arena, max * sizeof *cases->line_number);
    if (cases->row == NULL || cases->field == NULL || cases->line_number == NULL)
        return cs_fail(err, CS_ENOMEM, "%s", cases->path);
    for (size_t number = 2; (line = take_line(&rest)) != NULL; number++)
        if (*line != '\0')
            CS_TRY(read_row(cases, line, number, err));
done:
    return status;
}

cs_status sim_astra_cases_load(const char *path, sim_astra_cases **out, cs_error *err)
{
    cs_status status = CS_ENOMEM;
    char *text = NULL;
    cs_arena *arena = cs_arena_create(0);
    sim_astra_cases *cases = arena == NULL ? NULL : cs_arena_alloc(arena, sizeof(sim_astra_cases));

    if (cases == NULL) {
        status = cs_fail(err, CS_ENOMEM, "%s", path);
        goto done;
    }
    cases->arena = arena;
    cases->path = cs_arena_strdup(arena, path);
    CS_TRY(read_file(path, arena, &text, err));
    CS_TRY(read_rows(cases, text, err));
    *out = cases;
    arena = NULL;
done:
    cs_arena_destroy(arena);
    return status;
}

void sim_astra_cases_destroy(sim_astra_cases *cases)
{
    if (cases != NULL)
        cs_arena_destroy(cases->arena);
}

size_t sim_astra_cases_count(const sim_astra_cases *cases)
{
    return cases->n;
}

const char *sim_astra_cases_header(const sim_astra_cases *cases)
{
    return cases->header;
}

const char *sim_astra_cases_row(const sim_astra_cases *cases, size_t i)
{
    return cases->row[i];
}

const char *sim_astra_cases_field(const sim_astra_cases *cases, size_t i, const char *column)
{
    for (size_t c = 0; c < cases->n_columns; c++)
        if (strcmp(cases->column[c], column) == 0)
            return cases->field[i * cases->n_columns + c];
    return NULL;
}

/* ---- one row ---- */

typedef struct {
    const sim_astra_cases *cases;
    size_t row;
    sim_astra astra;
    sim_astra_op op;
    cs_error *err;
} row_reader;

static cs_status row_fail(const row_reader *r, const char *column, const char *value,
                          const char *expected)
{
    return cs_fail(r->err, CS_ESCHEMA, "%s:%zu: %s '%.60s': expected %s", r->cases->path,
                   r->cases->line_number[r->row], column, value, expected);
}

/* A number between min and max. */
static cs_status read_number(const row_reader *r, const char *column, const char *text,
                             const double range[2], double *out)
{
    char *end;
    char expected[80];

    *out = strtod(text, &end);
    if (end != text && *end == '\0' && *out >= range[0] && *out <= range[1])
        return CS_OK;
    (void)snprintf(expected, sizeof expected, "a number from %g to %g", range[0], range[1]);
    return row_fail(r, column, text, expected);
}

static cs_status put_integer(row_reader *r, const char *column, const char *text,
                             const double range[2], int64_t *out)
{
    double value = 0.0;
    cs_status status;

    CS_TRY(read_number(r, column, text, range, &value));
    if (value != floor(value))
        return row_fail(r, column, text, "a whole number");
    *out = (int64_t)value;
done:
    return status;
}

static cs_status read_backend(row_reader *r, const char *column, const char *text)
{
    if (strcmp(text, "unaware") == 0)
        r->op.backend = SIM_ASTRA_UNAWARE;
    else if (strcmp(text, "aware") == 0 || strcmp(text, "aware_md") == 0)
        r->op.backend = SIM_ASTRA_AWARE;
    else
        return row_fail(r, column, text, "unaware, aware or aware_md");
    return CS_OK;
}

static cs_status read_type(row_reader *r, const char *column, const char *text)
{
    if (!sim_astra_type_parse(text, &r->op.type))
        return row_fail(r, column, text, "ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER or ALL_TO_ALL");
    return CS_OK;
}

static cs_status read_bytes(row_reader *r, const char *column, const char *text)
{
    return put_integer(r, column, text, (const double[]){1, 1e18}, &r->op.bytes);
}

static cs_status read_splits(row_reader *r, const char *column, const char *text)
{
    return put_integer(r, column, text, (const double[]){1, 1 << 20}, &r->astra.system.splits);
}

static cs_status read_active(row_reader *r, const char *column, const char *text)
{
    return put_integer(r, column, text, (const double[]){1, 1 << 20},
                       &r->astra.system.active_chunks);
}

static cs_status read_queues(row_reader *r, const char *column, const char *text)
{
    return put_integer(r, column, text, (const double[]){1, SIM__ASTRA_MAX_QUEUES},
                       &r->astra.system.queues_per_dim);
}

static cs_status read_delay(row_reader *r, const char *column, const char *text)
{
    return put_integer(r, column, text, (const double[]){0, 1e12},
                       &r->astra.system.endpoint_delay_ns);
}

static cs_status read_memory(row_reader *r, const char *column, const char *text)
{
    double value = 0.0;
    cs_status status = read_number(r, column, text, (const double[]){1e-6, 1e15}, &value);

    r->astra.system.local_mem_bytes_per_s = value * 1e9;
    return status;
}

static cs_status read_optimization(row_reader *r, const char *column, const char *text)
{
    r->astra.system.local_bw_aware = strcmp(text, "localBWAware") == 0;
    if (!r->astra.system.local_bw_aware && strcmp(text, "baseline") != 0)
        return row_fail(r, column, text, "baseline or localBWAware");
    return CS_OK;
}

static cs_status item_topology(row_reader *r, const char *text, size_t d)
{
    if (!sim_astra_topology_parse(text, &r->astra.network.dim[d].topology))
        return row_fail(r, "topology", text, "Ring, FullyConnected or Switch");
    return CS_OK;
}

static cs_status item_count(row_reader *r, const char *text, size_t d)
{
    return put_integer(r, "npus_count", text, (const double[]){1, SIM_ASTRA_MAX_NPUS},
                       &r->astra.network.dim[d].n);
}

static cs_status item_bandwidth(row_reader *r, const char *text, size_t d)
{
    return read_number(r, "bandwidth_GBps", text, (const double[]){1e-6, 1e9},
                       &r->astra.network.dim[d].bandwidth_gib_per_s);
}

static cs_status item_latency(row_reader *r, const char *text, size_t d)
{
    return read_number(r, "latency_ns", text, (const double[]){0, 1e12},
                       &r->astra.network.dim[d].latency_ns);
}

static cs_status item_algorithm(row_reader *r, const char *text, size_t d)
{
    if (!sim_astra_algorithm_parse(text, &r->astra.system.algorithm[r->op.type][d]))
        return row_fail(r, "algorithm", text,
                        "ring, direct, direct<window>, halvingDoubling, doubleBinaryTree, "
                        "oneRing or oneDirect");
    return CS_OK;
}

static const struct {
    const char *column;
    cs_status (*read)(row_reader *, const char *, const char *);
    bool required;
} scalars[] = {
    {"backend", read_backend, false},      {"collective", read_type, true},
    {"bytes", read_bytes, true},           {"splits", read_splits, true},
    {"active_chunks", read_active, false}, {"collective_optimization", read_optimization, false},
    {"endpoint_delay", read_delay, false}, {"local_mem_bw_GBps", read_memory, false},
    {"queues_per_dim", read_queues, false}};

static const struct {
    const char *column;
    cs_status (*read)(row_reader *, const char *, size_t);
} lists[] = {{"topology", item_topology},
             {"npus_count", item_count},
             {"bandwidth_GBps", item_bandwidth},
             {"latency_ns", item_latency},
             {"algorithm", item_algorithm}};

static cs_status read_scalars(row_reader *r)
{
    cs_status status = CS_OK;

    for (size_t k = 0; k < CS_COUNT(scalars); k++) {
        const char *text = sim_astra_cases_field(r->cases, r->row, scalars[k].column);
        if (text != NULL && (*text != '\0' || scalars[k].required))
            CS_TRY(scalars[k].read(r, scalars[k].column, text));
        else if (scalars[k].required)
            return cs_fail(r->err, CS_ESCHEMA, "%s:1: the column '%s' is missing", r->cases->path,
                           scalars[k].column);
    }
done:
    return status;
}

/* Items of a list field, one a dimension. */
static cs_status read_list(row_reader *r, size_t k, size_t *n)
{
    const char *text = sim_astra_cases_field(r->cases, r->row, lists[k].column);
    char item[64];
    cs_status status = CS_OK;

    *n = 0;
    if (text == NULL)
        return cs_fail(r->err, CS_ESCHEMA, "%s:1: the column '%s' is missing", r->cases->path,
                       lists[k].column);
    for (text += strspn(text, LIST_SEPARATORS); *text != '\0';
         text += strspn(text, LIST_SEPARATORS)) {
        const size_t length = strcspn(text, LIST_SEPARATORS);
        if (*n == SIM_ASTRA_MAX_DIMS || length >= sizeof item)
            return row_fail(r, lists[k].column, text, "one short entry for each dimension");
        memcpy(item, text, length);
        item[length] = '\0';
        CS_TRY(lists[k].read(r, item, *n));
        ++*n;
        text += length;
    }
done:
    return status;
}

static cs_status read_lists(row_reader *r)
{
    cs_status status = CS_OK;
    sim_astra_network *net = &r->astra.network;

    for (size_t k = 0; k < CS_COUNT(lists); k++) {
        size_t n;
        const bool is_algorithm = k + 1 == CS_COUNT(lists);
        CS_TRY(read_list(r, k, &n));
        if (k == 0)
            net->n_dims = n;
        if (is_algorithm)
            r->astra.system.n_algorithms[r->op.type] = n;
        if (n == 0 ||
            (n != net->n_dims && !(is_algorithm && r->astra.system.algorithm[r->op.type][0].one)))
            return cs_fail(r->err, CS_ESCHEMA, "%s:%zu: %s has %zu entries, topology has %zu",
                           r->cases->path, r->cases->line_number[r->row], lists[k].column, n,
                           net->n_dims);
    }
    net->npus = 1;
    for (size_t d = 0; d < net->n_dims; d++) {
        net->npus *= net->dim[d].n;
        if (net->npus > SIM_ASTRA_MAX_NPUS)
            return cs_fail(r->err, CS_ESCHEMA, "%s:%zu: more than %d NPUs", r->cases->path,
                           r->cases->line_number[r->row], SIM_ASTRA_MAX_NPUS);
    }
done:
    return status;
}

cs_status sim_astra_cases_predict(const sim_astra_cases *cases, size_t i, sim_astra_result *out,
                                  cs_error *err)
{
    cs_status status;
    cs_error inner;
    row_reader r = {.cases = cases, .row = i, .err = err};

    r.op.allow_incomplete = true;
    r.astra.system =
        (sim_astra_system){.active_chunks = 1, .queues_per_dim = 1, .endpoint_delay_ns = 10};
    CS_TRY(read_scalars(&r));
    CS_TRY(read_lists(&r));
    status = sim_astra_collective(&r.astra, &r.op, out, NULL, &inner);
    if (status != CS_OK)
        return cs_fail(err, status, "%s:%zu: %s", cases->path, cases->line_number[i], inner.text);
done:
    return status;
}
