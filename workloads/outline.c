/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Outlines of passes kept between builds.  A few dozen serve a whole search: an outline depends on
 * the axes that cut, never on how far. */
#include "workloads/build_private.h"

#include <stdlib.h>

enum { N_SLOTS = 1024, MOST_USED = 3 * N_SLOTS / 4 };

/* All that decides an outline; no padding.  Models are told by their hash: one may be gone and
 * another lie in its place. */
typedef struct {
    uint64_t model;
    uint8_t block, kind, cut, mode, recompute, attention, precision;
    uint8_t flags;
} key;
enum { RINGS = 1, CACHE_CUT = 2, WEIGHTS_GATHERED = 4 };

typedef struct {
    bool used;
    key key;
    wl__outline outline;
} slot;

struct wl__outlines {
    cs_arena *arena;
    size_t limit, used;
    slot slots[N_SLOTS];
};

wl__outlines *wl__outlines_create(size_t limit_bytes)
{
    wl__outlines *outlines = calloc(1, sizeof *outlines);

    if (outlines == NULL)
        return NULL;
    outlines->limit = limit_bytes;
    outlines->arena = cs_arena_create(0);
    if (outlines->arena != NULL)
        return outlines;
    free(outlines);
    return NULL;
}

void wl__outlines_destroy(wl__outlines *outlines)
{
    if (outlines == NULL)
        return;
    cs_arena_destroy(outlines->arena);
    free(outlines);
}

static key key_of(const wl__build *b, wl__pass_kind kind)
{
    const wl_config *c = b->config;
    const unsigned flags = (b->ring ? RINGS : 0u) | (b->cache_parts > 1.0 ? CACHE_CUT : 0u) |
                           (c->sharding == WL_SHARD_WEIGHTS ? WEIGHTS_GATHERED : 0u);

    return (key){.model = b->model->hash,
                 .block = (uint8_t)(b->block - b->model->block),
                 .kind = (uint8_t)kind,
                 .cut = (uint8_t)(b->layouts - b->block->layouts),
                 .mode = (uint8_t)b->workload->mode,
                 .recompute = (uint8_t)(b->recompute ? c->recompute : WL_RECOMPUTE_NONE),
                 .attention = (uint8_t)c->attention,
                 .precision = (uint8_t)c->precision,
                 .flags = (uint8_t)flags};
}

/* The slot of the key, or the free one where it belongs. */
static slot *find(wl__outlines *outlines, const key *k)
{
    size_t at = cs_mix64(cs_hash(CS_HASH_START, k, sizeof *k)) % N_SLOTS;

    while (outlines->slots[at].used && memcmp(&outlines->slots[at].key, k, sizeof *k) != 0)
        at = (at + 1) % N_SLOTS;
    return &outlines->slots[at];
}

static bool make_room(wl__outlines *outlines)
{
    cs_arena *fresh;

    if (outlines->used < MOST_USED && cs_arena_bytes(outlines->arena) < outlines->limit)
        return true;
    fresh = cs_arena_create(0);
    if (fresh == NULL)
        return false;
    cs_arena_destroy(outlines->arena);
    outlines->arena = fresh;
    outlines->used = 0;
    memset(outlines->slots, 0, sizeof outlines->slots);
    return true;
}

/* Keeps an outline; without memory it is just made again the next time. */
static void keep(wl__outlines *outlines, const key *k, const wl__outline *outline)
{
    wl__outline kept = *outline;
    slot *s;

    if (!make_room(outlines))
        return;
    kept.item = cs_arena_copy(outlines->arena, outline->item, outline->n * sizeof *kept.item);
    kept.cost = cs_arena_copy(outlines->arena, outline->cost, outline->n * sizeof *kept.cost);
    kept.term = cs_arena_copy(outlines->arena, outline->term, outline->n_terms * sizeof *kept.term);
    if (kept.item == NULL || kept.cost == NULL || kept.term == NULL)
        return;
    s = find(outlines, k);
    s->used = true;
    s->key = *k;
    s->outline = kept;
    outlines->used++;
}

wl__outline wl__outline_get(wl__build *b, wl__pass_kind kind)
{
    const key k = key_of(b, kind);
    wl__outline made;

    if (b->outlines != NULL) {
        const slot *s = find(b->outlines, &k);

        if (s->used)
            return s->outline;
    }
    made = kind == WL__FORWARD ? wl__forward_outline(b) : wl__backward_outline(b);
    if (b->outlines != NULL && !b->failed)
        keep(b->outlines, &k, &made);
    return made;
}
