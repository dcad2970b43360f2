/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Bump memory that is reset, not freed, between designs (private to sim/): no malloc once warm. */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include "common/common.h"

typedef struct sim_pool_block sim_pool_block;
typedef struct {
    sim_pool_block *first, *current;
} sim_pool;

/* Memory for any type, not zeroed, valid until reset; NULL when out of memory. */
void *sim__pool_alloc(sim_pool *pool, size_t size);
void sim__pool_reset(sim_pool *pool);
void sim__pool_fini(sim_pool *pool);

#endif
