/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/engine.h"

#include <string.h>

enum { N_SERVERS = 1 + SIM_MAX_DIMS };

/* One event-driven pass.  Operations go: blocked (inputs missing) -> waiting (inputs known, maybe
 * in the future) -> running -> done.  Compute is served in program order. */
typedef struct {
    const sim_lowered *pass;
    sim_state *state;
    sim_account *account;
    sim_time *times;
    sim_time now, compute, busy_until, reduced;
    int32_t running[N_SERVERS]; /* operation; -1 none */
    sim_time ends[N_SERVERS];
    int32_t *missing; /* inputs, by operation */
    sim_time *ready;  /* when all inputs are there */
    int32_t *waiting; /* operations whose inputs are known, in order of arrival */
    size_t n_waiting, left;
    int32_t next_compute;
} events;

size_t sim__events_bytes(const sim_lowered *pass)
{
    return (pass->n + 1) * (sizeof(sim_time) + 2 * sizeof(int32_t));
}

static void finish(events *e, int32_t index, sim_time at);

/* All inputs of an operation are known: it waits for its server from `ready` on. */
static void arrive(events *e, int32_t index)
{
    const sim_op *op = &e->pass->op[index];
    int slot;

    e->ready[index] = sim__op_arrival(op, e->times, &slot);
    if (op->gated && e->reduced > e->ready[index])
        e->ready[index] = e->reduced;
    if (op->server == SIM_NO_SERVER)
        finish(e, index, e->ready[index]);
    else if (op->server != 0)
        e->waiting[e->n_waiting++] = index;
}

static void finish(events *e, int32_t index, sim_time at)
{
    int16_t slot = e->pass->op[index].out;

    e->times[slot] = at;
    e->left--;
    for (int32_t i = e->pass->reader_start[slot]; i < e->pass->reader_start[slot + 1]; i++)
        if (--e->missing[e->pass->reader[i]] == 0)
            arrive(e, e->pass->reader[i]);
}

static bool is_free(const events *e, const sim_op *op)
{
    if (e->running[op->server] >= 0 || e->ends[op->server] > e->now)
        return false;
    for (unsigned d = 0, rest = op->other_servers; rest != 0; d++, rest >>= 1)
        if ((rest & 1u) != 0 && (e->running[1 + d] >= 0 || e->ends[1 + d] > e->now))
            return false;
    return true;
}

/* Whether operation a is served before b; `waiting` is in order of arrival at equal times. */
static bool before(const events *e, int32_t a, int32_t b)
{
    sim_time x = e->ready[a], y = e->ready[b];

    if (e->pass->scheduling == SIM_LIFO)
        return x >= y;
    if (e->pass->scheduling == SIM_FIFO)
        return x < y;
    return e->pass->op[a].duration < e->pass->op[b].duration;
}

static size_t pick(const events *e, uint8_t server)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < e->n_waiting; i++) {
        const sim_op *op = &e->pass->op[e->waiting[i]];
        if (op->server != server || e->ready[e->waiting[i]] > e->now || !is_free(e, op))
            continue;
        if (best == SIZE_MAX || before(e, e->waiting[i], e->waiting[best]))
            best = i;
    }
    return best;
}

static void start_network(events *e, size_t at)
{
    int32_t index = e->waiting[at];
    const sim_op *op = &e->pass->op[index];
    sim_time end = e->now + op->duration;
    sim_time from = e->now > e->busy_until ? e->now : e->busy_until;

    memmove(&e->waiting[at], &e->waiting[at + 1], (e->n_waiting - at - 1) * sizeof *e->waiting);
    e->n_waiting--;
    e->running[op->server] = index;
    e->ends[op->server] = end;
    for (unsigned d = 0, rest = op->other_servers; rest != 0; d++, rest >>= 1)
        if (rest & 1u)
            e->ends[1 + d] = end;
    if (end > from) {
        e->account->network += end - from;
        e->busy_until = end;
    }
}

static void find_next_compute(events *e)
{
    while ((size_t)e->next_compute < e->pass->n && e->pass->op[e->next_compute].server != 0)
        e->next_compute++;
}

static void start_compute(events *e)
{
    const sim_op *op;
    int slot = SIM_SLOT_REDUCED;
    sim_time ready;

    if (e->running[0] >= 0 || (size_t)e->next_compute >= e->pass->n ||
        e->missing[e->next_compute] > 0)
        return;
    op = &e->pass->op[e->next_compute];
    ready = sim__op_arrival(op, e->times, &slot);
    if (op->gated && e->reduced > ready) {
        ready = e->reduced;
        slot = SIM_SLOT_REDUCED;
    }
    if (ready > e->now)
        return;
    if (ready > e->compute) {
        sim__book_wait(e->pass, e->state, e->compute, ready, slot, e->account);
        e->compute = ready;
    }
    e->running[0] = e->next_compute++;
    e->compute += op->duration;
    e->ends[0] = e->compute;
    find_next_compute(e);
}

static sim_time earlier(sim_time a, sim_time b)
{
    return a < b ? a : b;
}

/* The next time anything can happen. */
static sim_time next_time(const events *e)
{
    sim_time next = INT64_MAX;
    int32_t c = e->next_compute;

    for (size_t s = 0; s < N_SERVERS; s++)
        if (e->running[s] >= 0 || e->ends[s] > e->now)
            next = earlier(next, e->ends[s]);
    for (size_t i = 0; i < e->n_waiting; i++)
        if (e->ready[e->waiting[i]] > e->now)
            next = earlier(next, e->ready[e->waiting[i]]);
    if (e->running[0] < 0 && (size_t)c < e->pass->n && e->missing[c] == 0 && e->ready[c] > e->now)
        next = earlier(next, e->ready[c]);
    return next;
}

static void complete(events *e)
{
    for (size_t s = 0; s < N_SERVERS; s++) {
        int32_t index = e->running[s];
        if (index < 0 || e->ends[s] > e->now)
            continue;
        e->running[s] = -1;
        finish(e, index, e->ends[s]);
    }
}

static void start_all(events *e)
{
    start_compute(e);
    for (size_t d = 0; d < e->pass->n_dims; d++) {
        size_t at = pick(e, (uint8_t)(1 + d));
        if (at != SIZE_MAX)
            start_network(e, at);
    }
}

/* Operations without inputs from this pass.  They are marked first, so that what their arrival
 * releases is not released again. */
static void release_first(events *e)
{
    const sim_lowered *pass = e->pass;

    for (size_t i = 0; i < pass->n; i++) {
        e->missing[i] = 0;
        for (size_t d = 0; d < pass->op[i].n_deps; d++)
            e->missing[i] += pass->op[i].dep[d] >= SIM_SLOT_FIRST;
        if (e->missing[i] == 0)
            e->missing[i] = -1;
    }
    for (size_t i = 0; i < pass->n; i++)
        if (e->missing[i] < 0) {
            e->missing[i] = 0;
            arrive(e, (int32_t)i);
        }
}

static void begin(events *e, void *room)
{
    const sim_lowered *pass = e->pass;

    e->ready = room;
    e->missing = (int32_t *)(void *)(e->ready + pass->n + 1);
    e->waiting = e->missing + pass->n + 1;
    e->now = e->compute = 0;
    e->busy_until = e->state->busy_until;
    e->reduced = e->state->reduced;
    e->left = pass->n;
    for (size_t s = 0; s < N_SERVERS; s++) {
        e->running[s] = -1;
        e->ends[s] = s == 0 ? e->now : e->state->server[s - 1];
    }
    e->times[SIM_SLOT_START] = e->now;
    e->times[SIM_SLOT_INPUT] = e->state->input;
    e->times[SIM_SLOT_WEIGHTS] = e->state->gathered[0];
    release_first(e);
    find_next_compute(e);
}

sim_time sim__block_run_events(const sim_lowered *pass, sim_state *state, sim_account *account,
                               sim_exit *leave, sim_time *times, void *room)
{
    events e = {.pass = pass, .state = state, .account = account, .times = times};

    begin(&e, room);
    while (e.left > 0) {
        start_all(&e);
        e.now = next_time(&e);
        if (e.now == INT64_MAX)
            break;
        complete(&e);
    }
    account->compute += pass->compute;
    account->sent_bytes += pass->sent_bytes;
    for (size_t d = 0; d < pass->n_dims; d++)
        state->server[d] = e.ends[1 + d];
    sim__block_leave(pass, e.compute, e.busy_until, times, state, leave);
    return e.compute;
}
