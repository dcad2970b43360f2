/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Chakra execution traces in memory: every rank of a job as compact arrays, with its groups, what
 * is odd about it, and the checks that need no clock.  Reads schema 0.0.4 natively and 0.0.1-0.0.3
 * by detection, gzip or plain, and the text workloads of ASTRA-sim v1 and SimAI.  Node by node
 * reading and writing is in trace_io.h.
 *
 * Status of every call that reads: CS_ENOENT for a missing path, CS_ETRACE for bad content (the
 * message names file, class, and byte offset or rank and node), CS_EINVAL for bad options. */
#ifndef WORKLOADS_TRACE_H
#define WORKLOADS_TRACE_H

#include "common/common.h"

/* ---- vocabulary, numbers as on the wire of 0.0.4 ---- */

typedef enum {
    WL_NODE_INVALID,
    WL_NODE_METADATA,
    WL_NODE_MEM_LOAD,
    WL_NODE_MEM_STORE,
    WL_NODE_COMP,
    WL_NODE_SEND,
    WL_NODE_RECV,
    WL_NODE_COLL,
    WL_N_NODE_TYPES
} wl_node_type;
extern const char *const wl_node_type_names[]; /* "INVALID", "METADATA", ..., NULL */

typedef enum {
    WL_CHAKRA_ALL_REDUCE,
    WL_CHAKRA_REDUCE,
    WL_CHAKRA_ALL_GATHER,
    WL_CHAKRA_GATHER,
    WL_CHAKRA_SCATTER,
    WL_CHAKRA_BROADCAST,
    WL_CHAKRA_ALL_TO_ALL,
    WL_CHAKRA_REDUCE_SCATTER,
    WL_CHAKRA_REDUCE_SCATTER_BLOCK,
    WL_CHAKRA_BARRIER,
    WL_N_CHAKRA_COMMS,
    WL_CHAKRA_NONE = 255 /* node without a comm_type */
} wl_chakra_comm;
extern const char *const wl_chakra_comm_names[]; /* "ALL_REDUCE", ..., NULL */

/* Flags of a node. */
#define WL_NODE_CPU 1u /* is_cpu_op is present and true */
#define WL_NODE_HOST_COLL                                                                          \
    2u                         /* COMM_COLL that only launches: CPU op, or without comm_type and   \
                                  comm_size.  Costs its duration, moves nothing (SCHEMA 9). */
#define WL_NODE_CPU_ABSENT 4u  /* is_cpu_op is not in the file (treated as false) */
#define WL_NODE_DURATION   8u  /* a duration is in the file (also an explicit attribute 0) */
#define WL_NODE_CHUNKED    16u /* bytes are a share of the collective: chunk_count/chunk_total */

#define WL_ABSENT      (-1) /* of num_ops, tensor_size, comm_size, src, dst, stream */
#define WL_GROUP_WORLD 0    /* group 0 of every trace: all ranks of the job */

/* One node of one rank. */
typedef struct {
    uint64_t id;         /* as in the file: unique within its rank only */
    int64_t duration_ps; /* 0 when absent; from duration_micros, "runtime" or "duration_ps" */
    int64_t num_ops;     /* WL_ABSENT or >= 0 */
    int64_t tensor_size; /* bytes; WL_ABSENT or >= 0 */
    int64_t comm_size;   /* bytes as Chakra states them (an all-gather by its shard), or absent */
    int64_t tag;         /* 0 when absent */
    uint32_t name;       /* index into wl_trace.names */
    int32_t src, dst;    /* positions in the group (0.0.4 writers: global ranks, group world) */
    int32_t group;       /* index into wl_trace.group */
    int32_t priority;    /* 0 when absent */
    int32_t stream;      /* GPU stream of a PyTorch trace, or absent */
    int32_t splits;      /* chunks of a collective; 0: as the system says (attribute of ours) */
    int32_t chunk_count, chunk_total; /* with WL_NODE_CHUNKED: bytes = collective * count / total */
    uint8_t type;                     /* wl_node_type */
    uint8_t comm;                     /* wl_chakra_comm or WL_CHAKRA_NONE */
    uint8_t flags;                    /* WL_NODE_* flags */
    uint8_t involved;                 /* bit d: involved_dim[d]; 0 when the attribute is absent */
} wl_trace_node;

typedef struct {
    const char *name;     /* "" for the world */
    const uint32_t *rank; /* global ranks in listed order */
    uint32_t n;
    bool declared; /* in the group file or a METADATA node; else only used by nodes: n is 0 */
} wl_trace_group;

typedef enum {
    WL_SCHEMA_AUTO,
    WL_SCHEMA_001,
    WL_SCHEMA_002,
    WL_SCHEMA_003,
    WL_SCHEMA_004,
    WL_SCHEMA_TEXT,
    WL_N_SCHEMAS
} wl_schema;
extern const char *const wl_schema_names[]; /* "auto", "0.0.1", ..., "text", NULL */

/* What one rank's file holds, over all its nodes as written (before repairs). */
typedef struct {
    uint64_t nodes, by_type[WL_N_NODE_TYPES];
    uint64_t cpu_nodes;
    uint64_t data_edges, ctrl_edges; /* distinct (node, parent) pairs, missing and self included */
    uint64_t data_refs_missing, ctrl_refs_missing;
    uint64_t self_ctrl;
    bool data_cyclic, ctrl_cyclic; /* ctrl: together with the data dependencies */
    int64_t comp_duration_ps;      /* sum over COMP nodes */
    int64_t comp_longest_path_ps;  /* longest chain of data dependencies, COMP durations only */
    uint64_t depth;                /* nodes on the longest chain of enforced dependencies */
    uint64_t num_ops;              /* sum over nodes that have it */
    uint64_t coll_count[WL_N_CHAKRA_COMMS + 1]; /* last: COMM_COLL without comm_type */
    uint64_t coll_bytes; /* sum of comm_size over COMM_COLL nodes, host ops too */
    uint64_t send_bytes, recv_bytes;
} wl_rank_facts;

/* One rank file; its nodes are wl_trace.node[first .. first + n - 1] in file order. */
typedef struct {
    const char *path;
    uint32_t rank; /* global */
    uint32_t first, n;
    uint64_t file_bytes; /* on disk */
    uint8_t schema;      /* wl_schema as read */
    bool metadata;       /* has a GlobalMetadata frame */
    bool gzip;
    const char *schema_text; /* version or attribute "schema" of the metadata, "" without */
    wl_rank_facts facts;
} wl_trace_rank;

/* ---- what is wrong or odd ---- */

typedef enum { WL_WARNING, WL_ERROR } wl_severity;
typedef enum {
    WL_ISSUE_FRAMING,
    WL_ISSUE_EMPTY,
    WL_ISSUE_TYPE,
    WL_ISSUE_NODE,
    WL_ISSUE_VALUE,
    WL_ISSUE_GRAPH,
    WL_ISSUE_RANKS,
    WL_N_ISSUES
} wl_issue_class;
extern const char *const wl_issue_class_names[]; /* "framing", "empty", ..., NULL */

typedef struct {
    wl_severity severity;
    wl_issue_class class_;
    int64_t rank;     /* -1: of the job */
    const char *text; /* whole line without the severity: "w.0.et: graph: node 1 needs ..." */
} wl_trace_issue;

typedef struct wl_trace_owner wl_trace_owner;

/* A job.  Immutable after loading; may be shared by threads.  Pointers live as long as it. */
typedef struct wl_trace {
    uint32_t job_ranks;        /* size of the job: highest rank + 1 */
    uint32_t n_ranks;          /* rank files present; fewer than job_ranks in a sample */
    const wl_trace_rank *rank; /* ascending by rank */
    uint32_t n_nodes;
    const wl_trace_node *node;
    /* Enforced dependencies, distinct, without self: parents of node i are
     * dep[dep_first[i] .. dep_first[i + 1] - 1], as indices into node, of the same rank.  Data
     * dependencies, and control dependencies when ctrl_enforced. */
    const uint32_t *dep_first, *dep;
    bool ctrl_enforced;
    uint32_t n_groups;
    const wl_trace_group *group;
    const char *const *names; /* printable: invalid UTF-8 and control characters are escaped */
    uint32_t n_names;
    const wl_trace_issue *issue;
    size_t n_issues, n_errors, n_warnings; /* kept issues; counts of all */
    bool sample;                           /* only some ranks of the job are present */
    wl_trace_owner *owner;                 /* private */
} wl_trace;

typedef enum { WL_CTRL_AUTO, WL_CTRL_ON, WL_CTRL_OFF } wl_ctrl_mode;

/* All zero is the default. */
typedef struct {
    wl_schema schema;       /* WL_SCHEMA_AUTO: detect */
    wl_ctrl_mode ctrl;      /* AUTO: enforced unless some rank's control graph is broken */
    const char *group_file; /* NULL: PREFIX.json or comm_group.json beside the traces, if any */
    uint32_t job_ranks;     /* 0: highest rank + 1; text workloads: NPUs (0: the file's all_gpus) */
    uint32_t passes;        /* text workloads: iterations, 0 means 1 */
    bool custom;        /* files of a custom collective: src, dst are positions in the group, the
                           comm_type of sends is junk, groups are not read */
    bool chain_streams; /* each GPU stream's nodes run in id order (chakra issue 215) */
} wl_trace_options;

/* Loads PREFIX.<rank>.et (or .eg, .et.gz) of all ranks; one file named in full (a job of that rank
 * alone); a folder holding one set; or a text workload.  Files that cannot be decoded (framing,
 * empty, type, node) fail with CS_ETRACE; what is wrong with the graph, the values or across the
 * ranks becomes issues of the trace, which wl_trace_verdict turns into a status.  The caller owns
 * *out.  O(bytes); about 100 bytes of memory a node. */
CS_MUST_USE cs_status wl_trace_load(const char *path, const wl_trace_options *options,
                                    wl_trace **out, cs_error *err);
void wl_trace_destroy(wl_trace *trace); /* NULL is a no-op */

/* CS_ETRACE when the trace has an error (strict: or a warning), with up to five of them in the
 * message, one a line; else CS_OK. */
CS_MUST_USE cs_status wl_trace_verdict(const wl_trace *trace, bool strict, cs_error *err);

/* Name of a node, printable. */
const char *wl_trace_name(const wl_trace *trace, uint32_t node);
/* Rank (index into trace->rank) that holds a node; O(log ranks). */
uint32_t wl_trace_rank_of(const wl_trace *trace, uint32_t node);
/* Index of a group by name (pg_name; "" and, unless declared, "0" are the world), -1 when
 * unknown. O(groups). */
int32_t wl_trace_find_group(const wl_trace *trace, const char *name);
/* Position of a global rank in a group, -1 when it is not a member. O(members). */
int32_t wl_trace_group_position(const wl_trace_group *group, uint32_t rank);

/* ---- trace info ---- */

/* Traffic of one (collective or send/recv, group) over all ranks. */
typedef struct {
    const char *kind;  /* "ALL_REDUCE", ..., "COMM_COLL" without type, "SEND", "RECV" */
    const char *group; /* "" world */
    uint64_t count, bytes;
    uint32_t ranks; /* members of the group */
} wl_trace_traffic;

typedef struct {
    wl_rank_facts total;             /* sums; depth and longest path are maxima over ranks */
    const wl_trace_traffic *traffic; /* ordered by group, then kind */
    size_t n_traffic;
    uint64_t file_bytes;
    const char *const *oddity; /* lines for people: dialects, samples, repeated facts */
    size_t n_oddities;
    const char *const *line; /* the report itself, ready to print */
    size_t n_lines;
} wl_trace_info;

/* Summary of a loaded trace; arena memory. O(nodes). */
CS_MUST_USE cs_status wl_trace_summarize(const wl_trace *trace, cs_arena *arena,
                                         wl_trace_info **out, cs_error *err);

/* ---- convert ---- */

typedef struct {
    uint64_t ranks, nodes, bytes; /* written */
} wl_convert_report;

/* About how many bytes wl_trace_convert would write: the last rank's times the ranks for text
 * workloads, the size of the input files for traces.  To be shown before writing. */
CS_MUST_USE cs_status wl_trace_convert_size(const char *path, const wl_trace_options *options,
                                            uint64_t *bytes, cs_error *err);

/* Rewrites a trace of any schema, or a text workload, as 0.0.4 files OUT.<rank>.et in the forms
 * that every reader accepts (SCHEMA 12), and OUT.json when there are groups.  All attributes are
 * kept.  Files appear whole or not at all. */
CS_MUST_USE cs_status wl_trace_convert(const char *path, const wl_trace_options *options,
                                       const char *out_prefix, wl_convert_report *report,
                                       cs_error *err);

#endif
