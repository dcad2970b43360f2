/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/pool.h"

#include <stdlib.h>

enum { BLOCK_BYTES = 256 << 10, ALIGNMENT = 16 };

struct sim_pool_block {
    sim_pool_block *next;
    size_t size, used;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

static sim_pool_block *new_block(size_t size)
{
    size_t bytes = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    sim_pool_block *block = malloc(sizeof *block + bytes);

    if (block != NULL)
        *block = (sim_pool_block){.size = bytes};
    return block;
}

void *sim__pool_alloc(sim_pool *pool, size_t size)
{
    sim_pool_block **link = pool->current == NULL ? &pool->first : &pool->current;
    void *out;

    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    while (*link != NULL && (*link)->size - (*link)->used < size)
        link = &(*link)->next;
    if (*link == NULL)
        *link = new_block(size);
    if (*link == NULL)
        return NULL;
    pool->current = *link;
    out = pool->current->bytes + pool->current->used;
    pool->current->used += size;
    return out;
}

void sim__pool_reset(sim_pool *pool)
{
    for (sim_pool_block *block = pool->first; block != NULL; block = block->next)
        block->used = 0;
    pool->current = pool->first;
}

void sim__pool_fini(sim_pool *pool)
{
    for (sim_pool_block *block = pool->first; block != NULL;) {
        sim_pool_block *next = block->next;
        free(block);
        block = next;
    }
    *pool = (sim_pool){0};
}
