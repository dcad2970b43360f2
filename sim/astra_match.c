/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Messages and receives of collectives, matched in order by (chunk on a member, sender, size).
 * Between two NPUs messages of a size cannot overtake each other, so a balance is enough. */
#include "sim/astra_engine.h"

#include <stdlib.h>

static size_t match_home(const sim__engine *engine, const sim__match *key)
{
    const uint64_t word = ((uint64_t)key->flow << 32) | key->from;

    return (size_t)cs_mix64(word ^ ((uint64_t)key->bytes * 0x9e3779b97f4a7c15ULL)) &
           engine->match_mask;
}

/* Slot of the key, or the free one where it belongs. */
static size_t match_slot(const sim__engine *engine, const sim__match *key)
{
    size_t slot = match_home(engine, key);

    for (; engine->match_table[slot].balance != 0; slot = (slot + 1) & engine->match_mask) {
        const sim__match *m = &engine->match_table[slot];
        if (m->flow == key->flow && m->from == key->from && m->bytes == key->bytes)
            break;
    }
    return slot;
}

static bool match_grow(sim__engine *engine)
{
    sim__match *old = engine->match_table;
    const size_t n_old = old == NULL ? 0 : engine->match_mask + 1;
    const size_t n = n_old == 0 ? 1024 : 2 * n_old;
    sim__match *table = calloc(n, sizeof *table);

    if (table == NULL) {
        engine->out_of_memory = true;
        return false;
    }
    engine->match_table = table;
    engine->match_mask = n - 1;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].balance != 0)
            table[match_slot(engine, &old[i])] = old[i];
    free(old);
    return true;
}

static void match_remove(sim__engine *engine, size_t hole)
{
    size_t slot = hole;

    for (;;) {
        size_t home;
        slot = (slot + 1) & engine->match_mask;
        if (engine->match_table[slot].balance == 0)
            break;
        home = match_home(engine, &engine->match_table[slot]);
        if (((slot - home) & engine->match_mask) >= ((slot - hole) & engine->match_mask)) {
            engine->match_table[hole] = engine->match_table[slot];
            hole = slot;
        }
    }
    engine->match_table[hole].balance = 0;
    engine->n_matches--;
}

/* Adds +1 (arrival) or -1 (receive) to a key's balance; true when the other side was there. */
static bool match(sim__engine *engine, sim__match key, int32_t sign)
{
    size_t slot;
    int32_t before;

    if (engine->match_table == NULL || 2 * engine->n_matches >= engine->match_mask)
        if (!match_grow(engine))
            return false;
    slot = match_slot(engine, &key);
    before = engine->match_table[slot].balance;
    if (before == 0) {
        key.balance = sign;
        engine->match_table[slot] = key;
        engine->n_matches++;
        return false;
    }
    engine->match_table[slot].balance = before + sign;
    if (before + sign == 0)
        match_remove(engine, slot);
    return (before > 0) != (sign > 0);
}

void sim__message_arrived(sim__engine *engine, uint32_t index)
{
    const sim__message m = *sim__message_at(engine, index);

    sim__pool_give(&engine->messages, index);
    if (m.user)
        engine->hooks.arrived(engine->hooks.context, m.flow);
    else if (match(engine, (sim__match){m.bytes, m.flow, m.from, 0}, 1))
        sim__flow_received(engine, m.flow);
}

void sim__receive_post(sim__engine *engine, uint32_t flow, uint32_t from, int64_t bytes)
{
    if (match(engine, (sim__match){bytes, flow, from, 0}, -1))
        sim__event_push(engine, engine->now, SIM__EVENT_RECEIVE, flow);
}
