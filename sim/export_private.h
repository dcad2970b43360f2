/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the files of the export share: export.c (stages and their state), export_pass.c (order of a
 * pass), export_emit.c (its nodes), export_group.c (members), export_write.c and export_files.c. */
#ifndef SIM_EXPORT_PRIVATE_H
#define SIM_EXPORT_PRIVATE_H

#include "sim/export.h"
#include "sim/group.h"
#include "sim/lower_private.h"
#include "workloads/trace_io.h"

enum { SIM__NO_NODE = 0, SIM__EXPORT_MOST_CLASSES = 512, SIM__EXPORT_SET = 40 };

/* A kind of group: NPUs that differ in some mesh axes, or a part of those, or only their
 * neighbours along one dimension. */
typedef struct {
    wl_group axes;
    int32_t part, part_stride; /* 0: whole */
    int32_t dim;               /* -1: in all dimensions */
    int64_t n, stride;         /* with dim: the span */
    uint32_t size;             /* members */
} sim__class;

/* A few nodes, the latest of which counts. */
typedef struct {
    uint32_t id[SIM__EXPORT_SET];
    uint32_t n;
} sim__nodes;

/* One node of every rank of a stage; ids from 1 in order. */
typedef struct {
    int64_t duration_ps;
    double flops, bytes; /* compute: operations, memory traffic; messages and collectives: bytes */
    uint32_t dep;        /* first of its dependencies: n_data, then n_ctrl */
    uint16_t n_data, n_ctrl;
    int32_t name; /* operator, or below 0: sim__name */
    int32_t class_, splits, tag;
    uint8_t type, comm;
    bool to_next; /* messages: the peer is the next stage, else the one before */
} sim__node;
enum { SIM__NAME_GATHER = -1, SIM__NAME_SEND = -2, SIM__NAME_RECV = -3, SIM__NAME_IDLE = -4 };

typedef struct {
    sim__node *node;
    size_t n, cap;
    uint32_t *dep;
    size_t n_dep, cap_dep;
    /* State at the end of what is written: node numbers, 0 none. */
    uint32_t compute, server[SIM_MAX_DIMS];
    sim__nodes input, gathered[SIM_MOST_PREFETCH], reduced;
    uint32_t sent[2], taken[2]; /* messages so far: forward, backward */
    bool sends_next, receives_from_next;
} sim__stage;

struct sim_export {
    sim_granularity granularity;
    cs_arena *arena;
    sim_network network;
    sim_mesh mesh;
    sim__layout layout;
    sim_device device;
    double peak;
    sim__stage *stage;
    size_t n_stages;
    const char **op_name;
    size_t n_ops;
    sim__class classes[SIM__EXPORT_MOST_CLASSES];
    size_t n_classes;
    double boundary_bytes;
    sim_timing *timing;          /* while recording */
    struct sim__pass_work *work; /* likewise */
    bool ready;
};

/* Number of a class, new when unknown; -1 when there are too many. */
int32_t sim__export_class(sim_export *x, const sim__class *wanted);

/* ---- a pass ---- */

enum { SIM__MOST_COLLS = 96, SIM__MOST_PHASE_ROOM = 2 * SIM_MAX_DIMS };

typedef struct {
    sim_collective_key key;
    sim_timed timed;
    size_t chunks;
    uint8_t list;  /* sim__list */
    uint32_t dims; /* bit set of the dimensions it takes */
    bool apart;    /* written phase by phase and chunk by chunk */
    bool written;  /* as a whole */
    int32_t name;
    int32_t item;       /* of its pass; -1: gather */
    sim__nodes waits;   /* data dependencies */
    uint32_t *chunk_at; /* apart: node of the phase before, by chunk */
    sim__nodes end;
} sim__coll_part;
typedef enum { SIM__URGENT, SIM__GATHER, SIM__REDUCE } sim__list;

typedef enum { SIM__ENTRY_COMPUTE, SIM__ENTRY_CHUNK, SIM__ENTRY_SEND } sim__entry_kind;
typedef struct {
    uint8_t kind;
    uint8_t phase;
    uint16_t chunk;
    int32_t index; /* item, or collective */
} sim__entry;

/* A pass being written. */
typedef struct sim__pass_work {
    sim_export *x;
    const sim_job *job;
    sim__stage *stage;
    sim_context context;
    const wl_pass *pass; /* may be NULL */
    sim__coll_part coll[SIM__MOST_COLLS];
    size_t n_colls;
    sim__entry *entry;
    size_t n_entries, cap_entries;
    uint32_t background;    /* dimensions of the gathers and reductions */
    uint32_t send_dims;     /* of the pass's transfer to another stage */
    uint32_t boundary_dims; /* of all transfers between stages */
    size_t urgent, merged_urgent;
    size_t merged[3]; /* entries of the gather and reduce lists that stand in order already */
    sim__entry *listed[3];
    size_t n_listed[3], cap_listed[3];
    int32_t *coll_of;  /* by item: collective, or -1 */
    sim__nodes *value; /* by item */
    bool *mark;        /* by item, scratch */
    size_t cap_items;
    uint32_t start; /* compute node before the pass */
    sim__nodes weights;
    cs_error *err;
} sim__pass_work;

/* Lists the collectives and the order of all operations of a pass (export_pass.c). */
CS_MUST_USE cs_status sim__export_order(sim__pass_work *w);
/* Writes the nodes in that order (export_emit.c). */
CS_MUST_USE cs_status sim__export_emit(sim__pass_work *w);

/* Appends to a set; sets are small, the oldest go when one is full (they are not the latest). */
void sim__nodes_add(sim__nodes *set, uint32_t id);
void sim__nodes_join(sim__nodes *set, const sim__nodes *more);

bool sim__nodes_hold(const sim__nodes *set, const sim__nodes *part);

cs_status sim__export_no_memory(const sim__pass_work *w);
/* Nodes that an item waits for (export_compute.c). */
sim__nodes sim__export_inputs(const sim__pass_work *w, const wl_item *item);
/* Writes the compute operation of entry `at`. */
CS_MUST_USE cs_status sim__export_compute(sim__pass_work *w, size_t at);

/* Adds a node with its dependencies; its number, or 0 when out of memory. */
uint32_t sim__export_node(sim__stage *stage, const sim__node *node, const sim__nodes *data,
                          const sim__nodes *ctrl);

/* ---- groups ---- */

/* Members of a class that an NPU belongs to, ascending; `member` has room for the class's size.
 * Returns how many; 0: out of memory. */
size_t sim__class_members(const sim_export *x, const sim__class *c, int64_t npu, uint32_t *member);

/* network.yml and system.json. */
CS_MUST_USE cs_status sim__export_files(const sim_export *x, const char *folder, cs_error *err);

#endif
