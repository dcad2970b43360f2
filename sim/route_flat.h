/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Messages routed over several dimensions, sorted into classes (private to sim/). */
#ifndef SIM_ROUTE_FLAT_H
#define SIM_ROUTE_FLAT_H

#include "sim/collective.h"

enum {
    SIM__FLAT_CLASSES = 128,
    SIM__FLAT_GROUPS = 64,
    SIM__FLAT_WALK = 16,
    SIM__FLAT_NO_WALK = 255
};

/* A message by dimension: hops, load of its busiest link, its own share of that.  Loads are of a
 * step in which every member sends one byte, half of it each way round (two members: all of it to
 * the other). */
typedef struct {
    double hops[SIM_MAX_DIMS], load[SIM_MAX_DIMS], own[SIM_MAX_DIMS];
} sim__flat_class;

/* Everything the classes depend on; zeroed, then filled, so that bytes can be compared. */
typedef struct {
    int64_t n[SIM_MAX_DIMS], mesh[WL_N_AXES];
    double oversubscription[SIM_MAX_DIMS];
    int32_t topology[SIM_MAX_DIMS], order, n_dims, axes, boundary; /* 1 forward, 2 backward */
} sim__flat_key;

struct sim__flat {
    sim__flat_key key;
    sim__flat *next;
    size_t bytes;
    size_t n_classes, n_groups;
    sim__flat_class *class;
    double *count; /* n_groups x n_classes: messages of a class in a group (one way) */
    uint8_t *walk; /* n_groups x SIM__FLAT_WALK: classes of a group's messages around the ring;
                      begins with SIM__FLAT_NO_WALK where it is too long or merged */
};

/* The classes of a plan's ring (boundary 0) or of its stage boundary (1 forward, 2 backward), from
 * the cache or built; valid until the next call. */
CS_MUST_USE cs_status sim__flat_find(const sim__plan *plan, int boundary, const sim__flat **out,
                                     cs_error *err);

#endif
