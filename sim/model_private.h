/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SIM_MODEL_PRIVATE_H
#define SIM_MODEL_PRIVATE_H

#include "sim/engine.h"
#include "sim/programs.h"

typedef enum { SIM_SUM, SIM_MEAN, SIM_MAX } sim_aggregate;

struct sim_model {
    size_t n_workloads, n_dims;
    wl_model *models[SIM_MAX_WORKLOADS]; /* shared entries where two workloads name one file */
    bool owned[SIM_MAX_WORKLOADS];
    wl_workload workloads[SIM_MAX_WORKLOADS];
    sim_aggregate aggregate;
    const char *prices; /* borrowed from the schema */
    bool memory_limit;
};

struct sim_scratch {
    sim_engine *engine;
    sim_schedule schedule;
    sim_route_cache *routes;
    sim_programs *programs;
};

/* Runs workload `w` of a design unrolled and tells the recorder. */
CS_MUST_USE cs_status sim__record(const sim_model *model, size_t w, const sim_config *config,
                                  sim_scratch *scratch, const sim_recorder *recorder,
                                  cs_error *err);

void sim__mesh_make(const wl_config *split, sim_mesh *out);

#endif
