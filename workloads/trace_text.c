/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Parser of text workloads (SCHEMA 10): a policy line, a row count, rows of 12 columns. */
#include "workloads/trace_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 512, MAX_ROWS = 1000000, COLUMNS = 12 };
#define FILE_LIMIT ((size_t)64 << 20)
#define LONGEST_NS (INT64_MAX / 8 / 1000)

const char *const wl__policy_names[] = {"DATA",
                                        "MODEL",
                                        "MICRO",
                                        "HYBRID_DATA_MODEL",
                                        "HYBRID_MODEL_DATA",
                                        "HYBRID_TRANSFORMER",
                                        "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
                                        "HYBRID_DLRM",
                                        "HYBRID_DLRM_ENHANCED",
                                        "HYBRID_CUSTOMIZED",
                                        "DISTRIBUTED_INFERENCE",
                                        NULL};

/* One line cut into words. */
typedef struct {
    const char *path;
    int line;
    char *word[MAX_TOKENS];
    int n;
    cs_error *err;
} words;

static cs_status fail(const words *w, const char *fmt, ...) CS_PRINTF(2, 3);
static cs_status fail(const words *w, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return cs_fail(w->err, CS_ETRACE, "%s:%d: text workload: %s", w->path, w->line, text);
}

static cs_status load_file(const char *path, char **out, cs_error *err)
{
    FILE *f = fopen(path, "rb");
    size_t cap = 64 * 1024, n = 0, got;
    char *text = NULL;
    cs_status status = CS_OK;

    if (f == NULL)
        return cs_fail(err, errno == ENOENT ? CS_ENOENT : CS_EIO, "%s: %s", path, strerror(errno));
    do {
        char *grown = realloc(text, cap + 1);

        if (grown == NULL) {
            status = cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
            break;
        }
        text = grown;
        got = fread(text + n, 1, cap - n, f);
        n += got;
        cap *= 2;
    } while (got > 0 && n < FILE_LIMIT);
    fclose(f);
    if (status == CS_OK && n >= FILE_LIMIT)
        status = cs_fail(err, CS_ETRACE, "%s: text workload: larger than 64 MiB", path);
    if (status == CS_OK && memchr(text, 0, n) != NULL)
        status = cs_fail(err, CS_ETRACE, "%s: text workload: has a zero byte", path);
    if (status != CS_OK) {
        free(text);
        return status;
    }
    text[n] = 0;
    *out = text;
    return CS_OK;
}

/* Cuts the line at *at into words in place and moves *at behind it; false at the end. */
static bool next_line(char **at, words *w)
{
    char *p = *at;

    if (*p == 0)
        return false;
    w->line++;
    w->n = 0;
    while (*p != 0 && *p != '\n') {
        while (*p == ' ' || *p == '\t' || *p == '\r')
            *p++ = 0;
        if (*p == 0 || *p == '\n')
            break;
        if (w->n < MAX_TOKENS)
            w->word[w->n++] = p;
        while (*p != 0 && strchr(" \t\r\n", *p) == NULL)
            p++;
    }
    if (*p == '\n')
        *p++ = 0;
    *at = p;
    return true;
}

/* The next line that is not blank. */
static bool next_words(char **at, words *w)
{
    while (next_line(at, w))
        if (w->n > 0)
            return true;
    return false;
}

static cs_status number(const words *w, const char *text, const char *what, int64_t max,
                        int64_t *out)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end != 0 || errno != 0 || value < 0 || value > max)
        return fail(w, "%s is '%.40s'; expected an integer from 0 to %" PRId64, what, text, max);
    *out = value;
    return CS_OK;
}

static cs_status policy(const words *w, const char *text, wl__policy *out)
{
    const char *near;

    for (int p = 0; p < WL__N_POLICIES; p++) {
        if (strcmp(text, wl__policy_names[p]) == 0) {
            *out = (wl__policy)p;
            return CS_OK;
        }
    }
    near = cs_nearest(text, wl__policy_names, WL__N_POLICIES);
    return fail(w, "'%.40s' is no parallelism policy%s%s", text, near != NULL ? "; nearest: " : "",
                near != NULL ? near : "");
}

/* ---- the first line ---- */

/* Lists of layers for recomputation, kept until the rows are there. */
typedef struct {
    int64_t layer[MAX_TOKENS];
    int n;
} layer_list;

typedef struct {
    layer_list checkpoints, initiates;
} header;

static cs_status layer_numbers(const words *w, int *i, layer_list *list)
{
    int64_t n = 0;
    cs_status status;

    if (*i + 1 >= w->n)
        return fail(w, "%s without a count", w->word[*i]);
    status = number(w, w->word[++*i], "the count of layers", MAX_TOKENS - 1, &n);
    for (int64_t k = 0; status == CS_OK && k < n; k++) {
        if (*i + 1 >= w->n)
            return fail(w, "the list of layers ends after %" PRId64 " of %" PRId64, k, n);
        status = number(w, w->word[++*i], "a layer", MAX_ROWS, &list->layer[list->n++]);
    }
    return status;
}

static cs_status keyword(const words *w, int *i, wl__text *text, header *h)
{
    const struct {
        const char *name;
        int64_t *value;
        bool simai;
    } keys[] = {{"model_parallel_NPU_group", &text->tp, false},
                {"ep", &text->ep, true},
                {"pp", &text->pp, true},
                {"all_gpus", &text->all_gpus, true},
                {"pp_comm", &text->pp_comm, true},
                {"vpp", NULL, true},
                {"ga", NULL, true},
                {"DLRM_LAST_BOTTOM_LAYER", &text->last_bottom, false}};
    char *word = w->word[*i];
    size_t length = strcspn(word, ":");
    int64_t ignored;

    if (length == strlen("checkpoints") && strncmp(word, "checkpoints", length) == 0)
        return layer_numbers(w, i, &h->checkpoints);
    if (length == strlen("checkpoint_initiates") &&
        strncmp(word, "checkpoint_initiates", length) == 0)
        return layer_numbers(w, i, &h->initiates);
    for (size_t k = 0; k < CS_COUNT(keys); k++) {
        if (strlen(keys[k].name) != length || strncmp(word, keys[k].name, length) != 0)
            continue;
        text->simai = text->simai || keys[k].simai;
        if (word[length] == ':' && word[length + 1] != 0)
            return number(w, word + length + 1, keys[k].name, INT32_MAX,
                          keys[k].value != NULL ? keys[k].value : &ignored);
        if (*i + 1 >= w->n)
            return fail(w, "%s without a value", word);
        return number(w, w->word[++*i], keys[k].name, (int64_t)1 << 50,
                      keys[k].value != NULL ? keys[k].value : &ignored);
    }
    if (text->last_bottom < 0 && isdigit((unsigned char)word[0]))
        return number(w, word, "the last bottom layer", MAX_ROWS, &text->last_bottom);
    return fail(w, "unknown key '%.40s' after the policy", word);
}

static cs_status read_header(const words *w, wl__text *text, header *h)
{
    cs_status status = policy(w, w->word[0], &text->policy);

    for (int i = 1; status == CS_OK && i < w->n; i++)
        status = keyword(w, &i, text, h);
    return status;
}

/* ---- rows ---- */

static cs_status comm_kind(const words *w, const char *text, wl__text_phase *out)
{
    static const struct {
        const char *name;
        uint8_t n, comm[2];
    } kinds[] = {{"NONE", 0, {0, 0}},
                 {"ALLREDUCEALLTOALL", 2, {WL_CHAKRA_ALL_REDUCE, WL_CHAKRA_ALL_TO_ALL}},
                 {"ALLREDUCE", 1, {WL_CHAKRA_ALL_REDUCE, 0}},
                 {"ALLGATHER", 1, {WL_CHAKRA_ALL_GATHER, 0}},
                 {"REDUCESCATTER", 1, {WL_CHAKRA_REDUCE_SCATTER, 0}},
                 {"ALLTOALL", 1, {WL_CHAKRA_ALL_TO_ALL, 0}}};
    static const struct {
        const char *text;
        uint8_t scope;
    } suffixes[] = {{"", WL__ALL}, {"_DP_EP", WL__DP_EP}, {"_EP", WL__EP}};

    for (size_t k = 0; k < CS_COUNT(kinds); k++) {
        size_t n = strlen(kinds[k].name);

        for (size_t s = 0; s < CS_COUNT(suffixes); s++) {
            if (strncmp(text, kinds[k].name, n) != 0 || strcmp(text + n, suffixes[s].text) != 0)
                continue;
            out->n_comms = kinds[k].n;
            memcpy(out->comm, kinds[k].comm, sizeof out->comm);
            out->suffix = suffixes[s].scope;
            return CS_OK;
        }
    }
    return fail(w,
                "'%.40s' is no communication; expected NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, "
                "ALLTOALL or ALLREDUCEALLTOALL, with _EP or _DP_EP",
                text);
}

static cs_status read_phase(const words *w, int column, wl__text_phase *out)
{
    cs_status status = number(w, w->word[column], "a time", LONGEST_NS, &out->ns);

    if (status == CS_OK)
        status = comm_kind(w, w->word[column + 1], out);
    if (status == CS_OK)
        status = number(w, w->word[column + 2], "a size", (int64_t)1 << 60, &out->bytes);
    if (out->bytes == 0)
        out->n_comms = 0;
    return status;
}

static cs_status read_row(const words *w, wl__text *text, wl__text_row *row)
{
    bool custom = text->policy == WL__HYBRID_CUSTOMIZED, escaped;
    cs_status status = CS_OK;
    const char *name;

    if (w->n != COLUMNS + custom)
        return fail(w, "%d columns; expected %d%s", w->n, COLUMNS + custom,
                    custom ? " (the last is the layer's policy)" : "");
    name = cs_arena_strdup(text->arena, w->word[0]);
    row->name = name != NULL ? wl__printable(text->arena, name, &escaped) : NULL;
    if (row->name == NULL)
        return cs_fail(w->err, CS_ENOMEM, "%s: out of memory", w->path);
    for (int p = 0; p < WL__N_PASSES; p++)
        CS_TRY(read_phase(w, 2 + 3 * p, &row->phase[p]));
    CS_TRY(number(w, w->word[11], "the update time", LONGEST_NS, &row->update_ns));
    row->policy = text->policy;
    if (custom)
        CS_TRY(policy(w, w->word[12], &row->policy));
    if (row->policy == WL__HYBRID_CUSTOMIZED)
        status = fail(w, "the layer's own policy cannot be HYBRID_CUSTOMIZED");
done:
    return status;
}

static cs_status mark_layers(words *w, wl__text *text, const header *h)
{
    w->line = 1;
    for (int k = 0; k < h->checkpoints.n; k++) {
        if (h->checkpoints.layer[k] >= (int64_t)text->n)
            return fail(w, "checkpoint at layer %" PRId64 " of %zu", h->checkpoints.layer[k],
                        text->n);
        text->row[h->checkpoints.layer[k]].checkpoint = true;
    }
    for (int k = 0; k < h->initiates.n; k++) {
        if (h->initiates.layer[k] >= (int64_t)text->n)
            return fail(w, "checkpoint initiated at layer %" PRId64 " of %zu",
                        h->initiates.layer[k], text->n);
        text->row[h->initiates.layer[k]].initiates = true;
    }
    if (text->last_bottom >= (int64_t)text->n)
        return fail(w, "last bottom layer %" PRId64 " of %zu", text->last_bottom, text->n);
    return CS_OK;
}

static cs_status read_rows(char **at, words *w, wl__text *text)
{
    int64_t rows = 0;
    cs_status status;

    if (!next_words(at, w))
        return fail(w, "the count of layers is missing");
    if (w->n != 1)
        return fail(w, "%d words where the count of layers should be", w->n);
    status = number(w, w->word[0], "the count of layers", MAX_ROWS, &rows);
    if (status != CS_OK)
        return status;
    text->row = cs_arena_alloc(text->arena, ((size_t)rows + 1) * sizeof *text->row);
    if (text->row == NULL)
        return cs_fail(w->err, CS_ENOMEM, "%s: out of memory", w->path);
    while (next_words(at, w)) {
        if ((int64_t)text->n == rows)
            return fail(w, "more rows than the %" PRId64 " that line 2 promises", rows);
        status = read_row(w, text, &text->row[text->n]);
        if (status != CS_OK)
            return status;
        text->n++;
    }
    if ((int64_t)text->n < rows || rows == 0)
        return fail(w, "%zu rows, but line 2 promises %" PRId64, text->n, rows);
    return CS_OK;
}

cs_status wl__text_read(const char *path, wl__text *text, cs_error *err)
{
    words *w = calloc(1, sizeof *w);
    header *h = calloc(1, sizeof *h);
    char *content = NULL, *at;
    cs_status status = CS_OK;

    *text = (wl__text){.path = path, .arena = cs_arena_create(0), .last_bottom = -1};
    if (w == NULL || h == NULL || text->arena == NULL) {
        status = cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
        goto done;
    }
    w->path = path;
    w->err = err;
    CS_TRY(load_file(path, &content, err));
    at = content;
    if (!next_words(&at, w)) {
        status = fail(w, "the file is empty");
        goto done;
    }
    CS_TRY(read_header(w, text, h));
    CS_TRY(read_rows(&at, w, text));
    CS_TRY(mark_layers(w, text, h));
done:
    free(content);
    free(w);
    free(h);
    if (status != CS_OK)
        wl__text_fini(text);
    return status;
}

void wl__text_fini(wl__text *text)
{
    cs_arena_destroy(text->arena);
    *text = (wl__text){0};
}
