/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Text workloads of ASTRA-sim v1 and SimAI: the file, and the program of one rank. */
#ifndef WORKLOADS_TRACE_TEXT_H
#define WORKLOADS_TRACE_TEXT_H

#include "workloads/trace_private.h"

typedef enum {
    WL__DATA,
    WL__MODEL,
    WL__MICRO,
    WL__HYBRID_DATA_MODEL,
    WL__HYBRID_MODEL_DATA,
    WL__HYBRID_TRANSFORMER,
    WL__HYBRID_TRANSFORMER_FWD_IN_BCKWD,
    WL__HYBRID_DLRM,
    WL__HYBRID_DLRM_ENHANCED,
    WL__HYBRID_CUSTOMIZED,
    WL__DISTRIBUTED_INFERENCE,
    WL__N_POLICIES
} wl__policy;
extern const char *const wl__policy_names[];

/* Who takes part in a collective. */
typedef enum {
    WL__ALL,
    WL__FIRST_DIM,  /* the first network dimension */
    WL__OTHER_DIMS, /* all but the first */
    WL__TP,         /* k consecutive ranks */
    WL__DP,
    WL__EP,
    WL__DP_EP, /* the data group over ep */
    WL__NOBODY,
    WL__N_SCOPES
} wl__scope;

enum { WL__FORWARD, WL__INPUT, WL__WEIGHT, WL__N_PASSES };

typedef struct {
    int64_t ns;
    uint8_t comm[2]; /* wl_chakra_comm, up to two in turn */
    uint8_t n_comms;
    uint8_t suffix; /* WL__ALL: none; WL__EP, WL__DP_EP */
    int64_t bytes;
} wl__text_phase;

typedef struct {
    const char *name;
    wl__text_phase phase[WL__N_PASSES];
    int64_t update_ns;
    wl__policy policy;
    bool checkpoint, initiates; /* recomputation starts here / is asked for here */
} wl__text_row;

typedef struct {
    cs_arena *arena;
    const char *path;
    wl__policy policy;
    wl__text_row *row;
    size_t n;
    bool simai; /* sizes of all-gathers are of the whole tensor */
    int64_t tp, ep, pp, all_gpus, pp_comm, last_bottom;
} wl__text;

/* Reads a file.  CS_ETRACE with file:line. */
cs_status wl__text_read(const char *path, wl__text *text, cs_error *err);
void wl__text_fini(wl__text *text);

/* One node of the program that every rank runs. */
typedef struct {
    const char *name;
    int64_t duration_ps;
    int64_t bytes;
    uint8_t type, comm, scope;
    uint8_t n_deps;
    uint32_t dep[4]; /* earlier nodes */
} wl__text_node;

typedef struct {
    wl__text_node *node;
    size_t n, cap;
    int64_t ranks;
    int64_t size[WL__N_SCOPES];   /* of a group; 0: by network dimension */
    uint32_t first[WL__N_SCOPES]; /* number of the first group of a scope, from 1; 0: none */
    wl_trace_group *group;        /* names "1", "2", ...; arena of the text */
    size_t n_groups;
} wl__text_program;

/* Builds the program for `ranks` NPUs (0: the file's) and `passes` iterations (0: 1).  CS_EINVAL
 * when the number of NPUs is unknown or does not divide. */
cs_status wl__text_program_make(wl__text *text, uint32_t ranks, uint32_t passes,
                                wl__text_program *out, cs_error *err);
void wl__text_program_fini(wl__text_program *program);
/* Number of the group of a rank in a scope, 0 for the world and network dimensions. */
uint32_t wl__text_group(const wl__text_program *program, wl__scope scope, uint32_t rank);
/* A node of the program as rank `rank` writes it; ids from 1.  `deps` and `involved` hold four. */
void wl__text_plain(const wl__text_program *program, size_t i, uint32_t rank, uint64_t *deps,
                    int32_t *involved, wl_et_plain *out);

#endif
