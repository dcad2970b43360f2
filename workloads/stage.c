/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Spreads the stack over pipeline stages and their virtual chunks. */
#include "workloads/build_private.h"

void wl__chunk_range(int64_t layers, int64_t chunks, int64_t c, int64_t *first, int64_t *end)
{
    const int64_t base = layers / chunks, rest = layers % chunks, start = (chunks - rest) / 2;
    int64_t before = c - start;

    before = before < 0 ? 0 : before > rest ? rest : before;
    *first = c * base + before;
    *end = *first + base + (c >= start && c < start + rest ? 1 : 0);
}

typedef struct {
    wl_segment list[2 * WL__MAX_STACK];
    size_t n;
} segments;

static void segment_add(segments *s, int16_t block, int64_t count)
{
    if (count <= 0 || block < 0)
        return;
    if (s->n > 0 && s->list[s->n - 1].block == block) {
        s->list[s->n - 1].count = (uint16_t)(s->list[s->n - 1].count + count);
        return;
    }
    s->list[s->n].block = (uint16_t)block;
    s->list[s->n++].count = (uint16_t)count;
}

/* `count` layers of one kind: of every k one is recomputed; which ones does not matter to time or
 * memory, so they stand together. */
static void layers_add(const wl__build *b, const wl__blocks *blocks, int16_t block, int64_t count,
                       segments *s)
{
    const int64_t every = b->config->recompute_every > 1 ? b->config->recompute_every : 1;
    int64_t again = (count + every - 1) / every;

    if (blocks->index[block][1] < 0)
        again = 0;
    segment_add(s, blocks->index[block][1], again);
    segment_add(s, blocks->index[block][0], count - again);
}

static void chunk_fill(const wl__build *b, const wl__blocks *blocks, int64_t c, int64_t chunks,
                       segments *s)
{
    int64_t first, end, at = 0;
    bool layers = false;

    s->n = 0;
    wl__chunk_range(b->model->facts.layers, chunks, c, &first, &end);
    for (size_t i = 0; i < b->model->n_stack; i++) {
        const wl__stack *entry = &b->model->stack[i];

        if (!entry->layer) {
            if (layers ? c == chunks - 1 : c == 0)
                segment_add(s, blocks->index[entry->block][0], 1);
            continue;
        }
        layers = true;
        {
            const int64_t from = first > at ? first : at;
            const int64_t to = end < at + entry->count ? end : at + entry->count;

            layers_add(b, blocks, entry->block, to - from, s);
        }
        at += entry->count;
    }
}

static const wl_segment *keep(wl__build *b, const segments *s, const wl_stage *before, size_t j)
{
    wl_segment *copy;

    if (before != NULL && before->n_segments[j] == s->n &&
        memcmp(before->segment[j], s->list, s->n * sizeof *s->list) == 0)
        return before->segment[j];
    copy = cs_arena_alloc(b->arena, (s->n > 0 ? s->n : 1) * sizeof *copy);
    if (copy == NULL)
        b->failed = true;
    else
        memcpy(copy, s->list, s->n * sizeof *copy);
    return copy;
}

static bool same(const wl_stage *x, const wl_stage *y)
{
    for (size_t j = 0; j < x->n_chunks; j++)
        if (x->segment[j] != y->segment[j] || x->n_segments[j] != y->n_segments[j])
            return false;
    return x->n_chunks == y->n_chunks;
}

void wl__stages(wl__build *b, const wl__blocks *blocks, wl_program *program)
{
    const int64_t pp = b->config->pp;
    const int64_t v = b->config->virtual_stages > 1 ? b->config->virtual_stages : 1;
    wl_stage *list = cs_arena_alloc(b->arena, (size_t)pp * sizeof *list);

    program->stage = list;
    program->n_stages = (size_t)pp;
    b->failed = b->failed || list == NULL;
    for (int64_t s = 0; s < pp && !b->failed; s++) {
        const wl_stage *before = s > 0 ? &list[s - 1] : NULL;

        list[s].n_chunks = (size_t)v;
        for (int64_t j = 0; j < v; j++) {
            segments found;

            chunk_fill(b, blocks, j * pp + s, pp * v, &found);
            list[s].segment[j] = keep(b, &found, before, (size_t)j);
            list[s].n_segments[j] = found.n;
        }
        if (b->failed)
            return;
        if (before != NULL && same(before, &list[s])) {
            list[s].memory = before->memory;
            list[s].blocks = before->blocks;
            list[s].update = before->update;
            continue;
        }
        list[s].memory = wl__static_memory(b, blocks, program, &list[s]);
        list[s].blocks = wl__stage_blocks(program, &list[s]);
        list[s].update.output = WL_DEP_INPUT;
        if (b->training)
            list[s].update = wl__update(b, blocks, &list[s], pp > 1);
    }
}
