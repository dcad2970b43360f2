/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the trace tests share: a folder of their own, raw bytes, nodes in one line, a verdict. */
#ifndef WL_TRACE_TEST_H
#define WL_TRACE_TEST_H

#include "tests/test.h"
#include "workloads/trace_io.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#define REFERENCE "../shared/reference/"

static char folder_[64];

/* A fresh temporary folder; remove_folder deletes it and its files. */
static inline const char *make_folder(void)
{
    strcpy(folder_, "/tmp/wl_trace_XXXXXX");
    assert_non_null(mkdtemp(folder_));
    return folder_;
}

static inline void remove_folder(void)
{
    DIR *dir = opendir(folder_);
    struct dirent *entry;
    char path[512];

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder_, entry->d_name);
        remove(path);
    }
    if (dir != NULL)
        closedir(dir);
    rmdir(folder_);
}

/* A path inside the folder; four may be in use at a time. */
static inline const char *in_folder(const char *name)
{
    static char path[4][512];
    static int next;

    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder_, name);
    return path[next];
}

static inline void write_bytes(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(in_folder(name), "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static inline void write_string(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

/* ---- wire bytes by hand ---- */

typedef struct {
    uint8_t data[8192];
    size_t n;
} wire;

static inline void put_varint(wire *w, uint64_t value)
{
    do {
        w->data[w->n++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
}

static inline void put_int(wire *w, uint32_t field, uint64_t value)
{
    put_varint(w, (uint64_t)field << 3);
    put_varint(w, value);
}

static inline void put_bytes(wire *w, uint32_t field, const void *bytes, size_t n)
{
    put_varint(w, (uint64_t)field << 3 | 2);
    put_varint(w, n);
    memcpy(w->data + w->n, bytes, n);
    w->n += n;
}

static inline void put_text(wire *w, uint32_t field, const char *text)
{
    put_bytes(w, field, text, strlen(text));
}

static inline void put_float(wire *w, uint32_t field, float value)
{
    put_varint(w, (uint64_t)field << 3 | 5);
    memcpy(w->data + w->n, &value, 4); /* little-endian machine */
    w->n += 4;
}

static inline void put_frame(wire *file, const wire *frame)
{
    put_varint(file, frame->n);
    memcpy(file->data + file->n, frame->data, frame->n);
    file->n += frame->n;
}

/* ---- nodes ---- */

static inline wl_et_writer *start(const char *name)
{
    wl_et_writer *writer = NULL;
    cs_error err = {{0}};

    if (wl_et_writer_open(in_folder(name), NULL, &writer, &err) != CS_OK)
        fail_msg("%s", err.text);
    return writer;
}

static inline void put(wl_et_writer *writer, const wl_et_plain *node)
{
    assert_int_equal(wl_et_writer_plain(writer, node, NULL), CS_OK);
}

static inline void finish(wl_et_writer *writer)
{
    assert_int_equal(wl_et_writer_close(writer, NULL), CS_OK);
}

/* Nodes in one line; `needs` 0: no dependency. */
static inline void put_comp(wl_et_writer *w, uint64_t id, uint64_t needs, int64_t us)
{
    put(w, &(wl_et_plain){.id = id,
                          .name = "comp",
                          .type = WL_NODE_COMP,
                          .data_deps = &needs,
                          .n_deps = needs > 0,
                          .duration_ps = us * 1000000});
}

static inline void put_coll(wl_et_writer *w, uint64_t id, wl_chakra_comm comm, int64_t bytes,
                            const char *group)
{
    put(w, &(wl_et_plain){.id = id,
                          .name = "coll",
                          .type = WL_NODE_COLL,
                          .comm = comm,
                          .comm_size = bytes,
                          .group = group});
}

static inline void put_message(wl_et_writer *w, wl_node_type type, uint64_t id, int32_t src,
                               int32_t dst, int32_t tag, int64_t bytes)
{
    put(w, &(wl_et_plain){.id = id,
                          .name = type == WL_NODE_SEND ? "send" : "recv",
                          .type = type,
                          .src = src,
                          .dst = dst,
                          .tag = tag,
                          .comm_size = bytes});
}

/* A node with the given attributes and nothing else but its type. */
static inline void put_attrs(wl_et_writer *w, wl_node_type type, uint64_t id,
                             const wl_et_attr *attr, size_t n)
{
    wl_et_node node = {.id = id, .name = "n", .type = (int32_t)type, .n_attrs = n, .attr = attr};

    assert_int_equal(wl_et_writer_put(w, &node, NULL), CS_OK);
}

/* ---- loading ---- */

static inline wl_trace *load(const char *path, const wl_trace_options *options)
{
    wl_trace *trace = NULL;
    cs_error err = {{0}};

    if (wl_trace_load(path, options, &trace, &err) != CS_OK)
        fail_msg("%s", err.text);
    return trace;
}

/* The set `name` of the folder. */
static inline wl_trace *load_made(const char *name)
{
    return load(in_folder(name), NULL);
}

/* Status of loading and judging; the message stays in *err. */
static inline cs_status judge(const char *path, bool strict, cs_error *err)
{
    wl_trace *trace = NULL;
    cs_status status = wl_trace_load(path, NULL, &trace, err);

    if (status == CS_OK)
        status = wl_trace_verdict(trace, strict, err);
    wl_trace_destroy(trace);
    return status;
}

/* The trace is refused with CS_ETRACE and a message that has all the words (separated by '|'). */
static inline void assert_refused(const char *path, const char *words)
{
    cs_error err = {{0}};
    cs_status status = judge(path, false, &err);
    char copy[512];

    if (status != CS_ETRACE)
        fail_msg("%s: status %d, expected %d: %s", path, status, CS_ETRACE, err.text);
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok(copy, "|"); word != NULL; word = strtok(NULL, "|"))
        if (strstr(err.text, word) == NULL)
            fail_msg("'%s' is not in: %s", word, err.text);
}

static inline bool have_reference(void)
{
    struct stat st;

    return stat(REFERENCE "chakra/ORACLE.tsv", &st) == 0;
}

#endif
