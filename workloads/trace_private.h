/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Shared by the trace_*.c files. */
#ifndef WORKLOADS_TRACE_PRIVATE_H
#define WORKLOADS_TRACE_PRIVATE_H

#include "workloads/trace_io.h"

/* ---- scratch memory of one frame (trace_pool.c) ---- */

/* Bump allocator whose chunks are kept over resets.  Memory is not zeroed. */
typedef struct wl__pool wl__pool;
wl__pool *wl__pool_create(size_t limit_bytes);     /* NULL: out of memory */
void wl__pool_destroy(wl__pool *pool);             /* NULL is a no-op */
void *wl__pool_alloc(wl__pool *pool, size_t size); /* NULL: out of memory or over the limit */
void wl__pool_reset(wl__pool *pool);

/* ---- growing arrays ---- */

/* Makes room for one more element of `size` bytes in *array (count n, capacity *cap); false when
 * out of memory or past UINT32_MAX elements. */
bool wl__grow(void **array, size_t n, size_t *cap, size_t size);

/* Interned strings: equal text has one number. */
typedef struct wl__strings wl__strings;
wl__strings *wl__strings_create(cs_arena *arena); /* texts are kept in the arena */
void wl__strings_destroy(wl__strings *strings);
/* Number of the text, UINT32_MAX when out of memory. */
uint32_t wl__strings_add(wl__strings *strings, const char *text);
/* The same for string i of another table, without hashing it again. */
uint32_t wl__strings_join(wl__strings *strings, const wl__strings *from, uint32_t i);
const char *const *wl__strings_list(const wl__strings *strings, uint32_t *n);

/* Copies `text` with control characters, backslashes of escapes and invalid UTF-8 as \xNN;
 * *escaped says whether invalid UTF-8 was met. Arena memory, NULL when out of memory; `text`
 * itself when nothing had to change. */
const char *wl__printable(cs_arena *arena, const char *text, bool *escaped);

/* ---- framed bytes (trace_file.c) ---- */

typedef struct wl__source wl__source;
cs_status wl__source_open(const char *path, wl__source **out, cs_error *err);
void wl__source_close(wl__source *source); /* NULL is a no-op */
/* Next frame; data is NULL at the end of the file, never NULL for an empty frame. */
cs_status wl__source_frame(wl__source *source, wl_bytes *frame, int64_t *offset, cs_error *err);
cs_status wl__source_rewind(wl__source *source, cs_error *err);
bool wl__source_gzip(const wl__source *source);
uint64_t wl__source_file_bytes(const wl__source *source);
const char *wl__source_path(const wl__source *source);
/* First bytes of the unpacked file, up to `size`; returns how many; rewinds. */
size_t wl__source_peek(wl__source *source, uint8_t *bytes, size_t size);

typedef struct wl__sink wl__sink;
cs_status wl__sink_open(const char *path, wl__sink **out, cs_error *err);
cs_status wl__sink_frame(wl__sink *sink, wl_bytes frame, cs_error *err);
/* One frame in two pieces. */
cs_status wl__sink_frame2(wl__sink *sink, wl_bytes frame, wl_bytes tail, cs_error *err);
cs_status wl__sink_close(wl__sink *sink, cs_error *err); /* renames; frees in every case */
void wl__sink_abandon(wl__sink *sink);
uint64_t wl__sink_bytes(const wl__sink *sink);

/* ---- schema 0.0.4 (trace_pb.c) ---- */

/* Unpacked into the pool; false when the bytes are no such message. */
bool wl__pb_node(wl_bytes frame, wl__pool *pool, wl_et_node *out);
bool wl__pb_metadata(wl_bytes frame, wl__pool *pool, wl_et_metadata *out, size_t *n_unknown);
/* Packed into the pool; false when out of memory. */
bool wl__pb_pack_node(const wl_et_node *node, wl__pool *pool, wl_bytes *out);
bool wl__pb_pack_metadata(const wl_et_metadata *metadata, wl__pool *pool, wl_bytes *out);

/* A node packed for later: the frame in arena memory; and a packed frame appended. */
cs_status wl__writer_pack(wl_et_writer *writer, const wl_et_node *node, cs_arena *arena,
                          wl_bytes *out, cs_error *err);
cs_status wl__writer_frame(wl_et_writer *writer, wl_bytes frame, cs_error *err);

/* ---- plain nodes (trace_writer.c) ---- */

enum { WL__PLAIN_ATTRS = 13 };
/* Attributes of a plain node, in the arms of SCHEMA 4; the node points into it. */
typedef struct {
    wl_et_attr attr[WL__PLAIN_ATTRS];
    size_t n;
    uint64_t tensor_size;
    int32_t cpu;
    int64_t comm_type;
} wl__plain_attrs;
void wl__plain_node(const wl_et_plain *plain, wl__plain_attrs *attrs, wl_et_node *out);

/* ---- wire level (trace_wire.c) ---- */

typedef enum { WL__VARINT = 0, WL__FIXED64 = 1, WL__LENGTH = 2, WL__FIXED32 = 5 } wl__wire_type;
typedef struct {
    uint32_t number;
    wl__wire_type type;
    uint64_t value; /* VARINT, FIXED64, FIXED32 */
    wl_bytes bytes; /* LENGTH */
} wl__field;
/* Reads the next field of *rest and advances it: 1, 0 at the end, -1 when malformed. */
int wl__wire_next(wl_bytes *rest, wl__field *field);
/* Decodes a varint: bytes used, 0 when cut off, -1 when longer than 10 bytes or over 64 bits. */
int wl__varint(const uint8_t *bytes, size_t n, uint64_t *value);
/* True when frame 0 can be a GlobalMetadata of any schema. */
bool wl__is_metadata(wl_bytes frame);
/* Schema by the fields of the first frames (SCHEMA 3); rewinds.  *certain is false for a guess. */
cs_status wl__detect_schema(wl__source *source, wl_schema *schema, bool *certain, cs_error *err);
/* Whether the bytes, at least 16, are all 0. */
bool wl__is_blank(const uint8_t *bytes, size_t n);
/* What a file that is no trace seems to be ("a PNG image"), NULL when nothing known. */
const char *wl__sniff(const uint8_t *bytes, size_t n);

/* ---- schemas 0.0.1 - 0.0.3 (trace_old.c) ---- */

/* Decodes an old node as 0.0.4 would state it; false when malformed. */
bool wl__old_node(wl_bytes frame, wl_schema schema, wl__pool *pool, wl_et_node *out);

/* ---- issues (trace_issue.c) ---- */

/* Lines in an arena; the first ISSUES_KEPT are kept, all are counted. */
enum { WL__ISSUES_KEPT = 256 };
typedef struct {
    cs_arena *arena;
    wl_trace_issue *list;
    size_t n, cap, n_errors, n_warnings;
} wl__issues;

/* What an issue is about: a file (NULL: none) and a rank (-1: none). */
typedef struct {
    const char *path;
    int64_t rank;
} wl__place;
wl__place wl__place_of(const wl_trace_rank *rank);

/* Adds "path: class: message". */
void wl__issue(wl__issues *issues, wl_severity severity, wl_issue_class class_, wl__place place,
               const char *fmt, ...) CS_PRINTF(5, 6);
/* Appends all of `more`, texts not copied. */
void wl__issues_append(wl__issues *issues, const wl__issues *more);
void wl__issues_fini(wl__issues *issues);

/* ---- one rank on its way into a trace (trace_part.c) ---- */

typedef struct {
    char *path;
    uint32_t rank;
} wl__rank_file;

/* Edges as read: ids of the parents of node i are id[first[i] .. first[i + 1] - 1]. */
typedef struct {
    uint64_t *id;
    size_t n_id, cap_id;
    uint32_t *first;
    size_t cap_first;
} wl__edges;
void wl__edges_fini(wl__edges *edges);

/* Parents of node i of n: dep[first[i] .. first[i + 1] - 1], distinct. */
typedef struct {
    size_t n;
    uint32_t *first, *dep;
} wl__graph;

/* A group that a METADATA node declares. */
typedef struct {
    uint32_t name; /* in part.groups */
    uint32_t *rank;
    uint32_t n;
} wl__declared;

typedef struct {
    const wl_trace_options *options;
    wl_trace_rank head; /* path, rank, counts, facts */
    cs_arena *arena;
    wl__strings *names, *groups;
    bool borrowed; /* arena and names are the owner's */
    wl_trace_node *node;
    size_t n, cap;
    int64_t *offset; /* of the frames, for messages */
    size_t cap_offset;
    wl__edges data, ctrl;
    wl__graph needs, both; /* data dependencies; with control dependencies too */
    uint64_t depth_needs, depth_both;
    wl__declared *declared;
    size_t n_declared, cap_declared;
    wl__issues issues;
    bool ctrl_broken; /* missing or self references, or cycles with the data dependencies */
    uint64_t host_collectives, unsized; /* counted into one line each */
    uint64_t repeated_attrs, bad_names, invalid_nodes;
    cs_status status;
    cs_error err;
} wl__part;

/* With `owner` (a job of one rank) names and texts go straight to the trace, else to the part. */
cs_status wl__part_init(wl__part *part, const wl__rank_file *file, const wl_trace_options *options,
                        wl_trace_owner *owner);
void wl__part_fini(wl__part *part);
/* Appends one node with its dependencies; `offset` for messages. */
cs_status wl__part_add(wl__part *part, const wl_et_node *node, int64_t offset, cs_error *err);
/* Resolves ids, drops what is broken, computes the facts. */
cs_status wl__part_finish(wl__part *part, cs_error *err);
/* Reads a whole file into the part. */
cs_status wl__part_read(wl__part *part, cs_error *err);

/* Facts of one node by its attributes (trace_attr.c); value issues go to part->issues. */
cs_status wl__part_attributes(wl__part *part, const wl_et_node *from, wl_trace_node *to,
                              cs_error *err);
/* Process groups of a METADATA node (trace_group.c). */
cs_status wl__part_declare(wl__part *part, const wl_et_node *node, cs_error *err);

/* ---- graphs (trace_graph.c) ---- */

void wl__graph_fini(wl__graph *graph);
/* Topological order into order[n]; returns how many nodes could be ordered, SIZE_MAX when out of
 * memory.  O(n + edges). */
size_t wl__graph_order(const wl__graph *graph, uint32_t *order);
/* Some cycle of a graph that has one, as at most `max` indices, each needing the next; returns
 * the length of the cycle, SIZE_MAX when out of memory. */
size_t wl__graph_cycle(const wl__graph *graph, uint32_t *cycle, size_t max);
/* Union of two edge sets over the same nodes, distinct; false when out of memory. */
bool wl__graph_merge(const wl__graph *a, const wl__graph *b, wl__graph *out);

/* ---- the set (trace_set.c) ---- */

typedef struct {
    wl__rank_file *file; /* ascending by rank */
    size_t n;
    char *group_file; /* found beside the traces, or NULL */
    bool text;        /* one text workload */
    bool excerpt;     /* one file named in full that has siblings */
} wl__set;

cs_status wl__set_find(const char *path, wl__set *set, cs_error *err);
void wl__set_fini(wl__set *set);

/* ---- groups of a job (trace_group.c) ---- */

struct wl_trace_owner {
    cs_arena *arena;
    wl__strings *names, *groups; /* group 0 is "" */
    wl__issues issues;
    wl_trace_group *group;
    size_t cap_groups;
};

/* Reads a comm_group.json into the trace's groups. */
cs_status wl__groups_load(wl_trace *trace, const char *path, cs_error *err);
/* Number of a group by name, new when unknown; UINT32_MAX: out of memory. */
uint32_t wl__group_add(wl_trace *trace, const char *name);
/* Sets the members of group g; false when it is declared with other members. */
bool wl__group_declare(wl_trace *trace, uint32_t g, const uint32_t *rank, uint32_t n);

/* Collects parts, in rank order, into a trace (trace_load.c). */
typedef struct wl__builder {
    wl_trace_options options;
    wl_trace *trace;
    bool ctrl; /* control dependencies are enforced so far */
    bool ctrl_broken;
    bool excerpt, groups_given;
    wl_trace_rank *rank;
    size_t cap_ranks;
    wl_trace_node *node;
    size_t cap_nodes;
    uint32_t *dep_first, *dep;
    size_t cap_first, n_dep, cap_dep;
} wl__builder;
cs_status wl__builder_create(const wl_trace_options *options, wl__builder **out, cs_error *err);
void wl__builder_destroy(wl__builder *builder); /* NULL is a no-op */
/* Takes the contents of a finished part (which stays to be fini'd). */
cs_status wl__builder_add(wl__builder *builder, wl__part *part, cs_error *err);
/* Completes the trace: groups, issues, checks.  The builder stays to be destroyed. */
cs_status wl__builder_finish(wl__builder *builder, wl_trace **out, cs_error *err);
/* Takes the groups of a file, to be called before parts are added; METADATA is ignored then. */
cs_status wl__builder_groups(wl__builder *builder, const char *path, cs_error *err);

/* Ranks that are read in parallel and joined in order. */
typedef struct {
    /* Fills an initialized part with the nodes of its rank and finishes it. */
    cs_status (*fill)(wl__part *part, const void *context, cs_error *err);
    const void *context;
    const wl__rank_file *file;
    size_t n;
    bool alone;     /* the one rank of the job */
    bool small;     /* one thread does */
    uint64_t bytes; /* out: of the files */
    bool restart;   /* out: control dependencies turned out broken after ranks were joined */
} wl__wave;
cs_status wl__load_wave(wl__builder *b, wl__wave *wave, cs_error *err);
/* Loads a text workload (trace_text_load.c). */
cs_status wl__text_load(const char *path, const wl_trace_options *options, wl_trace **out,
                        cs_error *err);

/* Checks across ranks (trace_check.c): issues go to the trace. */
cs_status wl__check_ranks(wl_trace *trace, cs_error *err);

#endif
