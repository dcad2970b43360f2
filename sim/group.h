/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The mesh as digits of NPU ids (private to sim/). */
#ifndef SIM_GROUP_H
#define SIM_GROUP_H

#include "sim/network.h"

/* An axis in the NPU id: (id / stride) % size is its coordinate. */
typedef struct {
    int64_t stride, size;
    wl_group axis; /* one bit */
} sim__digit;

typedef struct {
    size_t n;
    sim__digit digit[WL_N_AXES]; /* of more than one value, innermost first */
    int64_t used, npus;          /* NPUs of the mesh, of the network */
} sim__layout;

/* CS_EINVAL when a size is not positive or the mesh does not fit the network. */
CS_MUST_USE cs_status sim__layout_make(const sim_network *net, const sim_mesh *mesh,
                                       sim_order order, sim__layout *out, cs_error *err);

#endif
