/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A design as Chakra traces: one file a rank, the groups, and ASTRA-sim's network.yml and
 * system.json, so that other simulators can run it.
 *
 * Nodes stand in program order; true dependencies are data dependencies, the order of service of
 * compute and of each network dimension is in control dependencies.  A collective is one node where
 * that gives the same times; where collectives of one block share a dimension with one that runs in
 * the background, they are written chunk by chunk and dimension by dimension, in the order in which
 * the block engine serves them (DESIGN 5.3). */
#ifndef SIM_EXPORT_H
#define SIM_EXPORT_H

#include "sim/sim.h"

typedef struct sim_export sim_export;

typedef enum {
    SIM_EXPORT_FUSED, /* compute that nothing comes between is one node */
    SIM_EXPORT_OP     /* a node for every operator */
} sim_granularity;

/* All zero: workload 0, fused. */
typedef struct {
    size_t workload;
    sim_granularity granularity;
} sim_export_options;

/* Lays out the traces of a workload of a valid design in memory.  CS_EINVAL when the design has no
 * such form.  The caller owns *out.  O(nodes of all stages). */
CS_MUST_USE cs_status sim_export_create(const sim_model *model, const sim_config *config,
                                        sim_scratch *scratch, const sim_export_options *options,
                                        sim_export **out, cs_error *err);
void sim_export_destroy(sim_export *export); /* NULL is a no-op */

typedef struct {
    uint64_t ranks, nodes, bytes; /* bytes of all .et files, to a few bytes a node */
} sim_export_size;
sim_export_size sim_export_measure(const sim_export *export);

/* Writes DIR/trace.<rank>.et, DIR/trace.json (the groups), network.yml and system.json into an
 * existing or new folder.  CS_EINVAL for what ASTRA-sim's files cannot say (open lines of NPUs). */
CS_MUST_USE cs_status sim_export_write(const sim_export *export, const char *folder, cs_error *err);

#endif
