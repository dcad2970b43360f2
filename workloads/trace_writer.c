/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Writing 0.0.4: any node as it is, or from its facts in the forms that every known reader accepts
 * (fixed arms, both ends on messages, data dependencies only). */
#include "common/json.h"
#include "workloads/trace_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PS_PER_US   1000000
#define NODE_MEMORY ((size_t)1 << 30)

struct wl_et_writer {
    wl__sink *sink;
    wl__pool *pool;
    char *path;
};

static cs_status no_memory(const wl_et_writer *w, cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "%s: out of memory", w->path);
}

static cs_status put_metadata(wl_et_writer *w, const wl_et_metadata *metadata, cs_error *err)
{
    static const wl_et_metadata plain = {.version = "0.0.4"};
    wl_bytes frame;

    if (!wl__pb_pack_metadata(metadata != NULL ? metadata : &plain, w->pool, &frame))
        return no_memory(w, err);
    return wl__sink_frame(w->sink, frame, err);
}

cs_status wl_et_writer_open(const char *path, const wl_et_metadata *metadata, wl_et_writer **out,
                            cs_error *err)
{
    cs_status status = CS_OK;
    wl_et_writer *w = calloc(1, sizeof *w);

    if (w == NULL)
        return cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
    w->path = strdup(path);
    w->pool = wl__pool_create(NODE_MEMORY);
    if (w->path == NULL || w->pool == NULL) {
        status = cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
        goto done;
    }
    CS_TRY(wl__sink_open(path, &w->sink, err));
    CS_TRY(put_metadata(w, metadata, err));
    *out = w;
    w = NULL;
done:
    wl_et_writer_abandon(w);
    return status;
}

static void writer_free(wl_et_writer *w)
{
    wl__pool_destroy(w->pool);
    free(w->path);
    free(w);
}

void wl_et_writer_abandon(wl_et_writer *writer)
{
    if (writer == NULL)
        return;
    wl__sink_abandon(writer->sink);
    writer_free(writer);
}

cs_status wl_et_writer_close(wl_et_writer *writer, cs_error *err)
{
    cs_status status = wl__sink_close(writer->sink, err);

    writer_free(writer);
    return status;
}

uint64_t wl_et_writer_bytes(const wl_et_writer *writer)
{
    return wl__sink_bytes(writer->sink);
}

cs_status wl_et_writer_put(wl_et_writer *w, const wl_et_node *node, cs_error *err)
{
    wl_bytes frame;

    wl__pool_reset(w->pool);
    if (!wl__pb_pack_node(node, w->pool, &frame))
        return no_memory(w, err);
    return wl__sink_frame(w->sink, frame, err);
}

cs_status wl__writer_pack(wl_et_writer *w, const wl_et_node *node, cs_arena *arena, wl_bytes *out,
                          cs_error *err)
{
    wl_bytes frame;
    uint8_t *copy;

    wl__pool_reset(w->pool);
    if (!wl__pb_pack_node(node, w->pool, &frame))
        return no_memory(w, err);
    copy = cs_arena_alloc(arena, frame.n + 1);
    if (copy == NULL)
        return no_memory(w, err);
    memcpy(copy, frame.data, frame.n);
    *out = (wl_bytes){frame.n, copy};
    return CS_OK;
}

cs_status wl__writer_frame(wl_et_writer *w, wl_bytes frame, cs_error *err)
{
    return wl__sink_frame(w->sink, frame, err);
}

/* ---- plain nodes ---- */

static void add(wl__plain_attrs *a, const char *name, uint8_t arm, size_t n, const void *values)
{
    a->attr[a->n++] = (wl_et_attr){.name = name, .doc = "", .arm = arm, .n = n, .values = values};
}

static void add_compute(wl__plain_attrs *a, const wl_et_plain *p)
{
    if (!p->has_ops)
        return;
    a->tensor_size = (uint64_t)p->tensor_size;
    if (p->type == WL_NODE_COMP)
        add(a, "num_ops", WL_ARM_INT64, 1, &p->num_ops);
    add(a, "tensor_size", WL_ARM_UINT64, 1, &a->tensor_size);
}

static void add_comm(wl__plain_attrs *a, const wl_et_plain *p)
{
    if (p->type == WL_NODE_COLL) {
        a->comm_type = p->comm;
        add(a, "comm_type", WL_ARM_INT64, 1, &a->comm_type);
        if (p->n_involved > 0)
            add(a, "involved_dim", WL_ARM_LIST(WL_ARM_BOOL), p->n_involved, p->involved);
    } else {
        add(a, "comm_src", WL_ARM_INT32, 1, &p->src);
        add(a, "comm_dst", WL_ARM_INT32, 1, &p->dst);
        add(a, "comm_tag", WL_ARM_INT32, 1, &p->tag);
    }
    if (p->comm_size >= 0) /* what is not known is not made up */
        add(a, "comm_size", WL_ARM_INT64, 1, &p->comm_size);
    if (p->priority != 0)
        add(a, "comm_priority", WL_ARM_INT32, 1, &p->priority);
    if (p->splits > 0)
        add(a, "splits", WL_ARM_INT32, 1, &p->splits);
    if (p->group != NULL && p->group[0] != 0)
        add(a, "pg_name", WL_ARM_STRING, 1, &p->group);
}

void wl__plain_node(const wl_et_plain *p, wl__plain_attrs *a, wl_et_node *out)
{
    bool comm = p->type == WL_NODE_COLL || p->type == WL_NODE_SEND || p->type == WL_NODE_RECV;

    a->n = 0;
    a->cpu = p->cpu;
    add(a, "is_cpu_op", WL_ARM_BOOL, 1, &a->cpu);
    if (comm)
        add_comm(a, p);
    else
        add_compute(a, p);
    if (p->duration_ps % PS_PER_US != 0)
        add(a, "duration_ps", WL_ARM_INT64, 1, &p->duration_ps);
    *out = (wl_et_node){.id = p->id,
                        .name = p->name,
                        .type = (int32_t)p->type,
                        .n_data = p->n_deps,
                        .data_deps = p->data_deps,
                        .n_ctrl = p->n_ctrl,
                        .ctrl_deps = p->ctrl_deps,
                        .duration_micros = (uint64_t)((p->duration_ps + PS_PER_US / 2) / PS_PER_US),
                        .n_attrs = a->n,
                        .attr = a->attr};
}

cs_status wl_et_writer_plain(wl_et_writer *writer, const wl_et_plain *plain, cs_error *err)
{
    wl__plain_attrs attrs;
    wl_et_node node;

    wl__plain_node(plain, &attrs, &node);
    return wl_et_writer_put(writer, &node, err);
}

/* ---- packed nodes ---- */

static cs_status pack(const wl_et_node *node, cs_arena *arena, wl_bytes *out, cs_error *err)
{
    wl__pool *pool = wl__pool_create(NODE_MEMORY);
    wl_bytes frame;
    uint8_t *copy = NULL;

    if (pool != NULL && wl__pb_pack_node(node, pool, &frame))
        copy = cs_arena_alloc(arena, frame.n + 1);
    if (copy != NULL) {
        memcpy(copy, frame.data, frame.n);
        *out = (wl_bytes){frame.n, copy};
    }
    wl__pool_destroy(pool);
    return copy != NULL ? CS_OK : cs_fail(err, CS_ENOMEM, "out of memory for a node of a trace");
}

cs_status wl_et_pack_plain(const wl_et_plain *plain, cs_arena *arena, wl_bytes *out, cs_error *err)
{
    wl__plain_attrs attrs;
    wl_et_node node;

    wl__plain_node(plain, &attrs, &node);
    return pack(&node, arena, out, err);
}

cs_status wl_et_pack_text(const char *name, const char *value, cs_arena *arena, wl_bytes *out,
                          cs_error *err)
{
    const wl_et_attr attr = {
        .name = name, .doc = "", .arm = WL_ARM_STRING, .n = 1, .values = &value};
    const wl_et_node node = {.name = "", .n_attrs = 1, .attr = &attr}; /* nothing else is written */

    return pack(&node, arena, out, err);
}

cs_status wl_et_writer_packed(wl_et_writer *w, wl_bytes node, wl_bytes tail, cs_error *err)
{
    return wl__sink_frame2(w->sink, node, tail, err);
}

/* ---- groups ---- */

static cs_status write_text(const char *path, const char *text, cs_error *err)
{
    size_t n = strlen(path);
    char *temporary = malloc(n + sizeof ".part");
    FILE *f = NULL;
    cs_status status = CS_OK;

    if (temporary == NULL)
        return cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
    sprintf(temporary, "%s.part", path);
    f = fopen(temporary, "wb");
    if (f == NULL || fputs(text, f) == EOF || fputc('\n', f) == EOF)
        status = cs_fail(err, CS_EIO, "%s: cannot write: %s", path, strerror(errno));
    if (f != NULL && fclose(f) != 0 && status == CS_OK)
        status = cs_fail(err, CS_EIO, "%s: cannot write: %s", path, strerror(errno));
    if (status == CS_OK && rename(temporary, path) != 0)
        status = cs_fail(err, CS_EIO, "%s: cannot write: %s", path, strerror(errno));
    if (status != CS_OK)
        remove(temporary);
    free(temporary);
    return status;
}

cs_status wl_et_write_groups(const char *path, const wl_trace_group *group, size_t n, cs_error *err)
{
    cs_json *all = cs_json_object();
    char *text;
    cs_status status;

    for (size_t i = 0; i < n; i++) {
        cs_json *ranks = cs_json_array();

        for (uint32_t k = 0; k < group[i].n; k++)
            cs_json_push(ranks, cs_json_int(group[i].rank[k]));
        cs_json_set(all, group[i].name, ranks);
    }
    text = cs_json_dump(all, false);
    cs_json_destroy(all);
    if (text == NULL)
        return cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
    status = write_text(path, text, err);
    free(text);
    return status;
}
