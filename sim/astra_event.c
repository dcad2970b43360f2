/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Pools, the heap of events, and timers batched by NPU and nanosecond. */
#include "sim/astra_engine.h"

#include <stdlib.h>
#include <string.h>

/* ---- pools ---- */

uint32_t sim__pool_take(sim__engine *engine, sim__pool *pool)
{
    uint32_t index = pool->free;

    if (index != SIM__NONE) {
        memcpy(&pool->free, (char *)pool->data + index * pool->size, sizeof pool->free);
        return index;
    }
    if (pool->n == pool->capacity) {
        void *data = pool->n + 1 >= SIM__NONE
                         ? NULL
                         : cs_room(pool->data, &pool->capacity, pool->n + 1, pool->size);
        if (data == NULL) {
            engine->out_of_memory = true;
            return SIM__NONE;
        }
        pool->data = data;
    }
    return (uint32_t)pool->n++;
}

/* The first bytes of a free record are the index of the next. */
void sim__pool_give(sim__pool *pool, uint32_t index)
{
    memcpy((char *)pool->data + index * pool->size, &pool->free, sizeof pool->free);
    pool->free = index;
}

/* ---- events ---- */

static bool event_before(const sim__event *a, const sim__event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim__event_push(sim__engine *engine, int64_t at, sim__kind kind, uint32_t index)
{
    const sim__event event = {at, engine->order++, kind, index};
    sim__event *heap = engine->heap;
    size_t i = engine->n_heap;

    if (i == engine->heap_capacity) {
        heap = cs_room(heap, &engine->heap_capacity, i + 1, sizeof *heap);
        if (heap == NULL) {
            engine->out_of_memory = true;
            return;
        }
        engine->heap = heap;
    }
    engine->n_heap++;
    for (; i > 0 && event_before(&event, &heap[(i - 1) / 4]); i = (i - 1) / 4)
        heap[i] = heap[(i - 1) / 4];
    heap[i] = event;
}

sim__event sim__event_pop(sim__engine *engine)
{
    sim__event *heap = engine->heap;
    const sim__event top = heap[0];
    const sim__event last = heap[--engine->n_heap];
    const size_t n = engine->n_heap;
    size_t i = 0;

    for (;;) {
        const size_t first = 4 * i + 1;
        const size_t end = first + 4 < n ? first + 4 : n;
        size_t best = first;
        if (first >= n)
            break;
        for (size_t child = first + 1; child < end; child++)
            if (event_before(&heap[child], &heap[best]))
                best = child;
        if (!event_before(&heap[best], &last))
            break;
        heap[i] = heap[best];
        i = best;
    }
    heap[i] = last;
    return top;
}

/* ---- batches of timers ---- */

static sim__batch *batch_at(sim__engine *engine, uint32_t batch)
{
    return (sim__batch *)engine->batches.data + batch;
}

static size_t batch_home(const sim__engine *engine, uint32_t npu, int64_t at)
{
    return (size_t)cs_mix64((uint64_t)at * 0x9e3779b97f4a7c15ULL + npu) & engine->batch_mask;
}

/* Slot that holds (npu, at), or the empty one where it belongs. */
static size_t batch_slot(sim__engine *engine, uint32_t npu, int64_t at)
{
    size_t slot = batch_home(engine, npu, at);

    for (; engine->batch_table[slot] != SIM__NONE; slot = (slot + 1) & engine->batch_mask) {
        const sim__batch *batch = batch_at(engine, engine->batch_table[slot]);
        if (batch->at == at && batch->npu == npu)
            break;
    }
    return slot;
}

static bool batch_table_grow(sim__engine *engine)
{
    uint32_t *old = engine->batch_table;
    const size_t n_old = old == NULL ? 0 : engine->batch_mask + 1;
    const size_t n = n_old == 0 ? 1024 : 2 * n_old;
    uint32_t *table = malloc(n * sizeof *table);

    if (table == NULL) {
        engine->out_of_memory = true;
        return false;
    }
    memset(table, 0xff, n * sizeof *table);
    engine->batch_table = table;
    engine->batch_mask = n - 1;
    for (size_t i = 0; i < n_old; i++)
        if (old[i] != SIM__NONE) {
            const sim__batch *batch = batch_at(engine, old[i]);
            table[batch_slot(engine, batch->npu, batch->at)] = old[i];
        }
    free(old);
    return true;
}

static void batch_remove(sim__engine *engine, uint32_t index)
{
    const sim__batch *batch = batch_at(engine, index);
    size_t hole = batch_slot(engine, batch->npu, batch->at);
    size_t slot = hole;

    for (;;) {
        size_t home;
        const sim__batch *other;
        slot = (slot + 1) & engine->batch_mask;
        if (engine->batch_table[slot] == SIM__NONE)
            break;
        other = batch_at(engine, engine->batch_table[slot]);
        home = batch_home(engine, other->npu, other->at);
        if (((slot - home) & engine->batch_mask) >= ((slot - hole) & engine->batch_mask)) {
            engine->batch_table[hole] = engine->batch_table[slot];
            hole = slot;
        }
    }
    engine->batch_table[hole] = SIM__NONE;
    engine->n_batches--;
    sim__pool_give(&engine->batches, index);
}

/* Batch of the NPU at a time, made (with its event) when there is none. */
static uint32_t batch_find(sim__engine *engine, uint32_t npu, int64_t at)
{
    size_t slot;
    uint32_t index;

    if (engine->batch_table == NULL || 2 * engine->n_batches >= engine->batch_mask)
        if (!batch_table_grow(engine))
            return SIM__NONE;
    slot = batch_slot(engine, npu, at);
    if (engine->batch_table[slot] != SIM__NONE)
        return engine->batch_table[slot];
    index = sim__pool_take(engine, &engine->batches);
    if (index == SIM__NONE)
        return SIM__NONE;
    *batch_at(engine, index) = (sim__batch){at, npu, SIM__NONE, SIM__NONE};
    engine->batch_table[slot] = index;
    engine->n_batches++;
    sim__event_push(engine, at, SIM__EVENT_TIMERS, index);
    return index;
}

void sim__timer_push(sim__engine *engine, int64_t delay_ns, sim__timer timer)
{
    const uint32_t index = batch_find(engine, timer.npu, engine->now + delay_ns);
    const uint32_t slot = index == SIM__NONE ? SIM__NONE : sim__pool_take(engine, &engine->timers);
    sim__timer *timers;
    sim__batch *batch;

    if (slot == SIM__NONE)
        return;
    timers = engine->timers.data;
    batch = batch_at(engine, index);
    timer.next = SIM__NONE;
    timers[slot] = timer;
    if (batch->head == SIM__NONE)
        batch->head = slot;
    else
        timers[batch->tail].next = slot;
    batch->tail = slot;
}

static void timer_run(sim__engine *engine, const sim__timer *timer)
{
    if (timer->kind == SIM__TIMER_USER)
        engine->hooks.timer(engine->hooks.context, timer->npu, timer->target);
    else if (timer->reduce) {
        sim__timer rest = *timer;
        rest.reduce = false;
        sim__timer_push(engine, timer->reduction_ns, rest);
    } else
        sim__flow_timer(engine, timer->target);
}

void sim__timers_run(sim__engine *engine, uint32_t index)
{
    while (!engine->out_of_memory && !engine->stop) {
        sim__batch *batch = batch_at(engine, index);
        const uint32_t slot = batch->head;
        sim__timer timer;
        if (slot == SIM__NONE)
            break;
        timer = ((sim__timer *)engine->timers.data)[slot];
        batch->head = timer.next;
        sim__pool_give(&engine->timers, slot);
        timer_run(engine, &timer);
    }
    batch_remove(engine, index);
}
