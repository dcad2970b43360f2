/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Chakra traces node by node, with every field and attribute: what converters and exporters use.
 * Memory does not grow with the length of the file. */
#ifndef WORKLOADS_TRACE_IO_H
#define WORKLOADS_TRACE_IO_H

#include "workloads/trace.h"

/* Field numbers of an attribute's value.  Scalars; the list of the same type is one more. */
typedef enum {
    WL_ARM_UNSET = 0,
    WL_ARM_DOUBLE = 3,    /* values: double */
    WL_ARM_FLOAT = 5,     /* float */
    WL_ARM_INT32 = 7,     /* int32_t */
    WL_ARM_INT64 = 9,     /* int64_t */
    WL_ARM_UINT32 = 11,   /* uint32_t */
    WL_ARM_UINT64 = 13,   /* uint64_t */
    WL_ARM_SINT32 = 15,   /* int32_t */
    WL_ARM_SINT64 = 17,   /* int64_t */
    WL_ARM_FIXED32 = 19,  /* uint32_t */
    WL_ARM_FIXED64 = 21,  /* uint64_t */
    WL_ARM_SFIXED32 = 23, /* int32_t */
    WL_ARM_SFIXED64 = 25, /* int64_t */
    WL_ARM_BOOL = 27,     /* int32_t, 0 or 1 */
    WL_ARM_STRING = 29,   /* const char * */
    WL_ARM_BYTES = 31,    /* wl_bytes */
    WL_ARM_LAST = 32
} wl_et_arm;
#define WL_ARM_IS_LIST(arm) ((arm) != WL_ARM_UNSET && (arm) % 2 == 0)
#define WL_ARM_LIST(arm)    ((uint8_t)((arm) + 1))

typedef struct {
    size_t n;
    const uint8_t *data;
} wl_bytes;

/* A named value; n values of the arm's type (1 for a scalar, 0 when unset). */
typedef struct {
    const char *name, *doc; /* never NULL */
    uint8_t arm;            /* wl_et_arm, or a list's number */
    size_t n;
    const void *values;
} wl_et_attr;

typedef struct {
    const char *values, *shapes, *types; /* never NULL */
} wl_et_io;

/* One node with everything the file says.  Borrowed memory: valid until the next call. */
typedef struct {
    uint64_t id;
    const char *name; /* never NULL; bytes as in the file */
    int32_t type;     /* wl_node_type; other numbers survive */
    size_t n_ctrl, n_data, n_attrs;
    const uint64_t *ctrl_deps, *data_deps;
    uint64_t start_micros, duration_micros;
    const wl_et_io *inputs, *outputs; /* NULL: absent */
    const wl_et_attr *attr;
    /* Fields that the schema does not know, kept for rewriting: opaque. */
    size_t n_unknown;
    const void *unknown;
} wl_et_node;

typedef struct {
    const char *version; /* never NULL */
    size_t n_attrs;
    const wl_et_attr *attr;
} wl_et_metadata;

/* First attribute of a name, NULL when absent. O(attributes). */
const wl_et_attr *wl_et_find(const wl_et_node *node, const char *name);

/* Any integer arm, bool, or a float with an integral value, as a signed 64-bit integer; false when
 * it is none of these or does not fit. */
bool wl_et_attr_int(const wl_et_attr *attr, int64_t *out);

/* ---- reading ---- */

typedef struct wl_et_reader wl_et_reader;

/* Opens one file; schema AUTO detects.  The caller owns *out. */
CS_MUST_USE cs_status wl_et_reader_open(const char *path, wl_schema schema, wl_et_reader **out,
                                        cs_error *err);
void wl_et_reader_close(wl_et_reader *reader); /* NULL is a no-op */
wl_schema wl_et_reader_schema(const wl_et_reader *reader);
/* False when the schema was guessed: no field of the file told generations apart. */
bool wl_et_reader_certain(const wl_et_reader *reader);
bool wl_et_reader_gzip(const wl_et_reader *reader);
uint64_t wl_et_reader_file_bytes(const wl_et_reader *reader);
/* Metadata of the file, NULL when it has none; borrowed until the reader closes. */
const wl_et_metadata *wl_et_reader_metadata(const wl_et_reader *reader);
/* Next node, converted to 0.0.4 when the file is older; *out is NULL at the end of the file. */
CS_MUST_USE cs_status wl_et_reader_next(wl_et_reader *reader, const wl_et_node **out,
                                        cs_error *err);
/* Offset of the frame of the node last read, in the unpacked file. */
int64_t wl_et_reader_offset(const wl_et_reader *reader);

/* ---- writing ---- */

typedef struct wl_et_writer wl_et_writer;

/* Starts `path` (compressed when it ends in .gz), beginning with the metadata (NULL: version
 * "0.0.4" alone).  The file appears under its name when wl_et_writer_close succeeds. */
CS_MUST_USE cs_status wl_et_writer_open(const char *path, const wl_et_metadata *metadata,
                                        wl_et_writer **out, cs_error *err);
/* Appends one node as it is. */
CS_MUST_USE cs_status wl_et_writer_put(wl_et_writer *writer, const wl_et_node *node, cs_error *err);
/* Finishes and names the file; destroys the writer in every case. */
CS_MUST_USE cs_status wl_et_writer_close(wl_et_writer *writer, cs_error *err);
/* Drops the file. NULL is a no-op. */
void wl_et_writer_abandon(wl_et_writer *writer);
/* Bytes before compression so far. */
uint64_t wl_et_writer_bytes(const wl_et_writer *writer);

/* ---- the forms that every known reader accepts (SCHEMA 12) ---- */

/* A node to write by its facts.  Zero it, then set what applies; `set` says which of the optional
 * values are there. */
typedef struct {
    uint64_t id; /* from 1, ascending */
    const char *name;
    wl_node_type type;
    const uint64_t *data_deps; /* smaller ids */
    size_t n_deps;
    const uint64_t *ctrl_deps; /* program order; readers of one kind ignore it */
    size_t n_ctrl;
    int64_t duration_ps; /* also written exactly, as attribute duration_ps, when not whole us */
    bool cpu;
    int64_t num_ops, tensor_size; /* COMP, memory nodes */
    bool has_ops;
    wl_chakra_comm comm; /* COLL */
    int64_t comm_size;   /* COLL, SEND, RECV */
    int32_t src, dst, tag, priority;
    int32_t splits; /* chunks of this collective, written when above 0 (ours: others ignore it) */
    const char *group; /* pg_name, NULL or "": world */
    const int32_t *involved;
    size_t n_involved; /* 0: attribute not written */
} wl_et_plain;

/* Appends a node in those forms. */
CS_MUST_USE cs_status wl_et_writer_plain(wl_et_writer *writer, const wl_et_plain *node,
                                         cs_error *err);

/* For files of many ranks that differ in little: a node packed once, appended to each file with
 * what differs behind it. */

/* The bytes of a plain node; arena memory. */
CS_MUST_USE cs_status wl_et_pack_plain(const wl_et_plain *node, cs_arena *arena, wl_bytes *out,
                                       cs_error *err);
/* The bytes of one text attribute, to stand behind a packed node; arena memory. */
CS_MUST_USE cs_status wl_et_pack_text(const char *name, const char *value, cs_arena *arena,
                                      wl_bytes *out, cs_error *err);
/* Appends a node made of packed bytes (`tail`: more of it, or empty). */
CS_MUST_USE cs_status wl_et_writer_packed(wl_et_writer *writer, wl_bytes node, wl_bytes tail,
                                          cs_error *err);

/* Writes {"name": [ranks...], ...}; whole or not at all. */
CS_MUST_USE cs_status wl_et_write_groups(const char *path, const wl_trace_group *group, size_t n,
                                         cs_error *err);

#endif
