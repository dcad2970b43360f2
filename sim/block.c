/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/engine.h"

#include <string.h>

static sim_time later(sim_time a, sim_time b)
{
    return a > b ? a : b;
}

/* What is left of a time after the end of compute. */
static sim_time since(sim_time t, sim_time compute)
{
    return t > compute ? t - compute : 0;
}

/* A stretch in which some dimension is busy. */
typedef struct {
    sim_time from, to;
} span;

/* Mutable part of one sweep. */
typedef struct {
    const sim_lowered *pass;
    sim_time compute;
    sim_time *server; /* by dimension */
    sim_time *times;
    span *busy, *last; /* in order, apart from each other; the first begins with what is counted */
    uint64_t sum, shape;
    sim_account *account;
} sweep;

/* What was compared goes into `shape`: where all times lie on lines and the shape is the same at
 * two points, it is the same between them, and so the union grows in a line as well. */
static void note_shape(sweep *s, uint64_t what)
{
    s->shape = (s->shape ^ what) * 0x9e3779b97f4a7c15ULL;
}

/* Adds a stretch that begins before the last one.  O(stretches behind it). */
static void insert_busy(sweep *s, sim_time from, sim_time to)
{
    span *first = s->last, *end;

    while (first > s->busy && first[-1].to >= from)
        first--;
    for (end = first; end <= s->last && end->from <= to;)
        end++;
    note_shape(s, (uint64_t)(first - s->busy) << 20 ^ (uint64_t)(end - s->busy));
    if (end > first) {
        s->shape += (first->from < from) + 2u * (end[-1].to > to);
        from = first->from < from ? first->from : from;
        to = later(to, end[-1].to);
    }
    if (end != first + 1)
        memmove(first + 1, end, (size_t)(s->last + 1 - end) * sizeof *end);
    s->last += first + 1 - end;
    *first = (span){from, to};
}

/* Adds a stretch to the union.  O(1) when stretches come in order. */
static inline void add_busy(sweep *s, sim_time from, sim_time to)
{
    span *last = s->last;

    if (from < last->from) {
        insert_busy(s, from, to);
    } else if (from <= last->to) { /* nearly always */
        bool longer = to > last->to;
        note_shape(s, 2u + longer);
        last->to = longer ? to : last->to;
    } else {
        note_shape(s, 1);
        *++s->last = (span){from, to};
    }
}

/* Network time of the pass that was not counted before. */
static sim_time busy_time(const sweep *s, sim_time counted)
{
    sim_time sum = -counted;

    for (const span *b = s->busy; b <= s->last; b++)
        sum += b->to - b->from;
    return sum;
}

sim_time sim__op_arrival(const sim_op *op, const sim_time *times, int *slot)
{
    sim_time latest = 0;

    for (size_t i = 0; i < op->n_deps; i++)
        if (times[op->dep[i]] > latest) {
            *slot = op->dep[i];
            latest = times[*slot];
        }
    return latest;
}

void sim__book_wait(const sim_lowered *pass, const sim_state *state, sim_time from, sim_time until,
                    int slot, sim_account *account)
{
    int64_t cause = slot == SIM_SLOT_REDUCED ? WL_DP
                    : slot == SIM_SLOT_INPUT ? state->input_cause
                                             : pass->slot_cause[slot] & SIM_CAUSE_MASK;

    if (slot > SIM_SLOT_INPUT && (pass->slot_cause[slot] & SIM_OF_INPUT) != 0 &&
        state->input > from) {
        account->wait[state->input_cause] += state->input - from;
        from = state->input;
    }
    account->wait[cause] += until - from;
}

static void run_compute(sweep *s, const sim_op *op, const sim_state *state)
{
    int slot = SIM_SLOT_REDUCED;
    sim_time ready = sim__op_arrival(op, s->times, &slot);

    if (op->gated && state->reduced > ready) {
        ready = state->reduced;
        slot = SIM_SLOT_REDUCED;
    }
    if (ready > s->compute) {
        sim__book_wait(s->pass, state, s->compute, ready, slot, s->account);
        s->compute = ready;
    }
    s->compute += op->duration;
    s->times[op->out] = s->compute;
    s->sum += (uint64_t)s->compute;
}

/* When the server of a phase, and those it occupies besides, are free. */
static sim_time latest_server(const sweep *s, const sim_flow_phase *phase, sim_time from)
{
    from = later(from, s->server[phase->server - 1]);
    for (unsigned d = 0, rest = phase->other_servers; rest != 0; d++, rest >>= 1)
        if (rest & 1u)
            from = later(from, s->server[d]);
    return from;
}

static void occupy(sweep *s, const sim_flow_phase *phase, sim_time until)
{
    s->server[phase->server - 1] = until;
    for (unsigned d = 0, rest = phase->other_servers; rest != 0; d++, rest >>= 1)
        if (rest & 1u)
            s->server[d] = until;
}

/* Chunks of a phase that may all start at `end`. */
static sim_time run_ready(sweep *s, const sim_op *op, sim_time end)
{
    sim_time *slot = &s->times[op->out], from = end;

    for (int16_t c = 0; c < op->count; c++) {
        slot[c] = end += op->duration;
        s->sum += (uint64_t)end;
    }
    add_busy(s, from, end);
    return end;
}

/* Chunks of a phase that wait for the phase before. */
static sim_time run_behind(sweep *s, const sim_op *op, sim_time end)
{
    sim_time *slot = &s->times[op->out], from, to;

    from = to = later(end, slot[0]);
    for (int16_t c = 0; c < op->count; c++) {
        sim_time start = later(end, slot[c]);
        if (start != to) {
            note_shape(s, (uint16_t)c);
            add_busy(s, from, to);
            from = start;
        }
        slot[c] = to = end = start + op->duration;
        s->sum += (uint64_t)end;
    }
    add_busy(s, from, to);
    return end;
}

/* Operations of one server on end: chunks of a phase. */
static void run_network(sweep *s, const sim_op *op)
{
    const sim_flow_phase where = {op->duration, op->server, op->other_servers};
    sim_time end = latest_server(s, &where, 0);

    if (op->dep[0] == op->out) {
        end = run_behind(s, op, end);
    } else {
        for (size_t i = 0; i < op->n_deps; i++)
            end = later(end, s->times[op->dep[i]]);
        end = run_ready(s, op, end);
    }
    occupy(s, &where, end);
}

static void join(sweep *s, const sim_op *op)
{
    int slot;
    s->times[op->out] = sim__op_arrival(op, s->times, &slot);
}

/* The next block's weights move to the front; those gathered here are `prefetch` blocks ahead. */
static void shift_gathers(const sim_lowered *pass, sim_time here, sim_time compute,
                          sim_state *state)
{
    for (size_t i = 0; i + 1 < SIM_MOST_PREFETCH; i++)
        state->gathered[i] = since(state->gathered[i + 1], compute);
    state->gathered[SIM_MOST_PREFETCH - 1] = 0;
    if (pass->prefetch > 0)
        state->gathered[pass->prefetch - 1] = since(here, compute);
}

/* Nothing that is left of this pass can start before its last compute operation ended, so that
 * earlier times need not be told apart. */
void sim__block_leave(const sim_lowered *pass, sim_time compute, sim_time busy_until,
                      const sim_time *times, sim_state *state, sim_exit *leave)
{
    int64_t cause = pass->output == SIM_SLOT_INPUT
                        ? state->input_cause
                        : pass->slot_cause[pass->output] & SIM_CAUSE_MASK;

    leave->output = later(compute, times[pass->output]);
    state->input = leave->output - compute;
    leave->sent = pass->sent < 0 ? leave->output : times[pass->sent];
    if (pass->left >= 0)
        leave->output = times[pass->left];
    state->input_cause = state->input > 0 ? cause : WL_DP;
    shift_gathers(pass, pass->gathered < 0 ? compute : times[pass->gathered], compute, state);
    state->reduced = since(pass->reduced >= 0 ? times[pass->reduced] : state->reduced, compute);
    state->busy_until = since(busy_until, compute);
    for (size_t d = 0; d < pass->n_dims; d++)
        state->server[d] = since(state->server[d], compute);
}

/* end(c, p) = max(end(c, p-1), end(c-1, p)) + d_p.  It is convex in c, so the maximum over earlier
 * chunks is at the first or at c itself: each phase adds d_p to the lines start + slope c of the
 * phases before and one line of its own.  O(phases^2) whatever the number of chunks.  From the
 * first start of a phase to its last end some dimension is always busy: a chunk that has not come
 * yet is served in a phase before. */
static void run_flow(sweep *s, const sim_op *op)
{
    const sim_flow *f = &s->pass->flow[op->flow];
    sim_time start[SIM_MAX_PHASES], first = 0, last = 0, begin;

    for (size_t i = 0; i < op->n_deps; i++)
        first = later(first, s->times[op->dep[i]]);
    for (size_t p = 0; p < f->n_phases; p++) {
        sim_time d = f->phase[p].duration;
        first = latest_server(s, &f->phase[p], first);
        start[p] = begin = first;
        first = last = 0;
        for (size_t i = 0; i <= p; i++) {
            start[i] += d;
            first = later(first, start[i]);
            last = later(last, start[i] + f->phase[i].duration * (f->chunks - 1));
        }
        occupy(s, &f->phase[p], last);
        add_busy(s, begin, last);
        s->sum += (uint64_t)start[p] + (uint64_t)first + (uint64_t)last;
    }
    s->times[op->out] = last;
}

sim_time sim__block_run(const sim_lowered *pass, sim_state *state, sim_account *account,
                        sim_exit *leave, sim_time *times)
{
    sweep s = {.pass = pass,
               .server = state->server,
               .times = times,
               .busy = (span *)(void *)(times + pass->n_slots),
               .account = account};
    const sim_time counted = state->busy_until;

    s.last = s.busy;
    *s.last = (span){0, counted};
    times[SIM_SLOT_START] = 0;
    times[SIM_SLOT_INPUT] = state->input;
    times[SIM_SLOT_WEIGHTS] = state->gathered[0];
    for (size_t i = 0; i < pass->n; i++) {
        const sim_op *op = &pass->op[i];
        if (op->server == 0)
            run_compute(&s, op, state);
        else if (op->server == SIM_FLOW)
            run_flow(&s, op);
        else if (op->server != SIM_NO_SERVER)
            run_network(&s, op);
        else
            join(&s, op);
    }
    account->compute += pass->compute;
    account->sent_bytes += pass->sent_bytes;
    account->network += busy_time(&s, counted);
    sim__block_leave(pass, s.compute, s.last->to, times, state, leave);
    account->ends += s.sum + (uint64_t)s.compute + s.shape;
    return s.compute;
}
