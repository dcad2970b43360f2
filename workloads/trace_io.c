/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Reading a trace file node by node, whatever its schema. */
#include "workloads/trace_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Unpacking one frame may take no more; the largest known node needs some 100 KB. */
#define FRAME_MEMORY ((size_t)512 << 20)

const char *const wl_schema_names[] = {"auto", "0.0.1", "0.0.2", "0.0.3", "0.0.4", "text", NULL};

struct wl_et_reader {
    wl__source *source;
    wl__pool *node_memory, *metadata_memory;
    wl_schema schema;
    bool has_metadata, certain;
    wl_et_metadata metadata;
    wl_et_node node;
    int64_t offset;
};

/* ---- attributes ---- */

const wl_et_attr *wl_et_find(const wl_et_node *node, const char *name)
{
    for (size_t i = 0; i < node->n_attrs; i++)
        if (strcmp(node->attr[i].name, name) == 0)
            return &node->attr[i];
    return NULL;
}

static bool real_to_int(double value, int64_t *out)
{
    if (!(value >= -0x1p53 && value <= 0x1p53) || value != floor(value))
        return false;
    *out = (int64_t)value;
    return true;
}

static bool unsigned_to_int(uint64_t value, int64_t *out)
{
    if (value > INT64_MAX)
        return false;
    *out = (int64_t)value;
    return true;
}

bool wl_et_attr_int(const wl_et_attr *attr, int64_t *out)
{
    switch (attr->arm) {
    case WL_ARM_DOUBLE:
        return real_to_int(*(const double *)attr->values, out);
    case WL_ARM_FLOAT:
        return real_to_int((double)*(const float *)attr->values, out);
    case WL_ARM_INT32:
    case WL_ARM_SINT32:
    case WL_ARM_SFIXED32:
    case WL_ARM_BOOL:
        *out = *(const int32_t *)attr->values;
        return true;
    case WL_ARM_INT64:
    case WL_ARM_SINT64:
    case WL_ARM_SFIXED64:
        *out = *(const int64_t *)attr->values;
        return true;
    case WL_ARM_UINT32:
    case WL_ARM_FIXED32:
        *out = *(const uint32_t *)attr->values;
        return true;
    case WL_ARM_UINT64:
    case WL_ARM_FIXED64:
        return unsigned_to_int(*(const uint64_t *)attr->values, out);
    default:
        return false;
    }
}

/* ---- opening ---- */

/* The first frame is broken: says what the file is instead, when that can be told. */
static cs_status first_frame_failed(wl_et_reader *r, cs_status status, cs_error *err)
{
    uint8_t head[512];
    size_t n = wl__source_peek(r->source, head, sizeof head);
    const char *what = status == CS_ETRACE ? wl__sniff(head, n) : NULL;

    if (what == NULL)
        return status;
    return cs_fail(err, CS_ETRACE, "%s: type: not a Chakra trace but %s",
                   wl__source_path(r->source), what);
}

static cs_status no_trace(const wl_et_reader *r, cs_error *err)
{
    return cs_fail(err, CS_ETRACE,
                   "%s: type: not a Chakra trace: the first frame is neither metadata nor a node",
                   wl__source_path(r->source));
}

static bool decode(wl_et_reader *r, wl_bytes frame)
{
    wl__pool_reset(r->node_memory);
    if (r->schema == WL_SCHEMA_004)
        return wl__pb_node(frame, r->node_memory, &r->node);
    return wl__old_node(frame, r->schema, r->node_memory, &r->node);
}

/* Metadata of a file in an old schema is not ours to interpret; that it is there is a fact. */
static cs_status read_metadata(wl_et_reader *r, wl_bytes frame, cs_error *err)
{
    size_t n_unknown;

    r->has_metadata = true;
    r->metadata = (wl_et_metadata){.version = ""};
    if (r->schema != WL_SCHEMA_004)
        return CS_OK;
    if (!wl__pb_metadata(frame, r->metadata_memory, &r->metadata, &n_unknown))
        return cs_fail(err, CS_ETRACE, "%s: node: offset 0: the metadata frame is malformed",
                       wl__source_path(r->source));
    return CS_OK;
}

/* Consumes the metadata frame; a first frame that is a node is left to be read. */
static cs_status read_first(wl_et_reader *r, cs_error *err)
{
    wl_bytes frame;
    cs_status status = wl__source_frame(r->source, &frame, &r->offset, err);

    if (status != CS_OK)
        return first_frame_failed(r, status, err);
    if (frame.data == NULL)
        return cs_fail(err, CS_ETRACE, "%s: empty: offset 0: no metadata and no node",
                       wl__source_path(r->source));
    if (frame.n == 0) { /* legal, unless the file is nothing but zeros */
        uint8_t head[512];
        size_t n = wl__source_peek(r->source, head, sizeof head);

        if (wl__is_blank(head, n))
            return first_frame_failed(r, CS_ETRACE, err);
        status = wl__source_frame(r->source, &frame, &r->offset, err); /* peeking went back */
        if (status != CS_OK)
            return status;
    }
    if (wl__is_metadata(frame))
        return read_metadata(r, frame, err);
    if (!decode(r, frame) || r->node.n_unknown > 0)
        return first_frame_failed(r, no_trace(r, err), err);
    return wl__source_rewind(r->source, err);
}

cs_status wl_et_reader_open(const char *path, wl_schema schema, wl_et_reader **out, cs_error *err)
{
    cs_status status = CS_OK;
    wl_et_reader *r = calloc(1, sizeof *r);

    if (r == NULL)
        return cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
    r->schema = schema;
    r->certain = true;
    CS_TRY(wl__source_open(path, &r->source, err));
    r->node_memory = wl__pool_create(FRAME_MEMORY);
    r->metadata_memory = wl__pool_create(FRAME_MEMORY);
    if (r->node_memory == NULL || r->metadata_memory == NULL) {
        status = cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
        goto done;
    }
    if (schema == WL_SCHEMA_AUTO)
        CS_TRY(wl__detect_schema(r->source, &r->schema, &r->certain, err));
    CS_TRY(read_first(r, err));
    *out = r;
    r = NULL;
done:
    wl_et_reader_close(r);
    return status;
}

void wl_et_reader_close(wl_et_reader *reader)
{
    if (reader == NULL)
        return;
    wl__source_close(reader->source);
    wl__pool_destroy(reader->node_memory);
    wl__pool_destroy(reader->metadata_memory);
    free(reader);
}

wl_schema wl_et_reader_schema(const wl_et_reader *reader)
{
    return reader->schema;
}

bool wl_et_reader_certain(const wl_et_reader *reader)
{
    return reader->certain;
}

bool wl_et_reader_gzip(const wl_et_reader *reader)
{
    return wl__source_gzip(reader->source);
}

uint64_t wl_et_reader_file_bytes(const wl_et_reader *reader)
{
    return wl__source_file_bytes(reader->source);
}

const wl_et_metadata *wl_et_reader_metadata(const wl_et_reader *reader)
{
    return reader->has_metadata ? &reader->metadata : NULL;
}

int64_t wl_et_reader_offset(const wl_et_reader *reader)
{
    return reader->offset;
}

cs_status wl_et_reader_next(wl_et_reader *r, const wl_et_node **out, cs_error *err)
{
    wl_bytes frame;
    cs_status status = wl__source_frame(r->source, &frame, &r->offset, err);

    *out = NULL;
    if (status != CS_OK || frame.data == NULL)
        return status;
    if (!decode(r, frame))
        return cs_fail(
            err, CS_ETRACE, "%s: node: offset %lld: the %zu bytes are no node of schema %s",
            wl__source_path(r->source), (long long)r->offset, frame.n, wl_schema_names[r->schema]);
    *out = &r->node;
    return CS_OK;
}
