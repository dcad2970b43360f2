/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/engine.h"

#include <string.h>

static sim_time later(sim_time a, sim_time b)
{
    return a > b ? a : b;
}

/* Mutable part of one sweep. */
typedef struct {
    const sim_lowered *pass;
    sim_time compute, busy_until;
    sim_time *server; /* by dimension */
    sim_time *times;
    int64_t input_cause;
    uint64_t sum;
    sim_account *account;
} sweep;

sim_time sim__op_arrival(const sim_lowered *pass, const sim_op *op, const sim_time *times,
                         int64_t input_cause, int64_t *cause)
{
    sim_time latest = 0;

    for (size_t i = 0; i < op->n_deps; i++) {
        int slot = op->dep[i];
        if (times[slot] <= latest)
            continue;
        latest = times[slot];
        *cause = slot == SIM_SLOT_INPUT ? input_cause : pass->slot_cause[slot];
    }
    return latest;
}

static sim_time arrival(const sweep *s, const sim_op *op, int64_t *cause)
{
    return sim__op_arrival(s->pass, op, s->times, s->input_cause, cause);
}

static void run_compute(sweep *s, const sim_op *op, sim_time reduced)
{
    int64_t cause = WL_DP;
    sim_time ready = arrival(s, op, &cause);

    if (op->gated && reduced > ready) {
        ready = reduced;
        cause = WL_DP;
    }
    if (ready > s->compute) {
        s->account->wait[cause] += ready - s->compute;
        s->compute = ready;
    }
    s->compute += op->duration;
    s->times[op->out] = s->compute;
    s->sum += (uint64_t)s->compute;
}

static void run_network(sweep *s, const sim_op *op)
{
    sim_time *server = &s->server[op->server - 1];
    sim_time start = *server, from;

    for (size_t i = 0; i < op->n_deps; i++)
        start = later(start, s->times[op->dep[i]]);
    for (unsigned d = 0, rest = op->other_servers; rest != 0; d++, rest >>= 1)
        if (rest & 1u)
            start = later(start, s->server[d]);
    *server = start + op->duration;
    for (unsigned d = 0, rest = op->other_servers; rest != 0; d++, rest >>= 1)
        if (rest & 1u)
            s->server[d] = *server;
    s->times[op->out] = *server;
    from = later(start, s->busy_until);
    if (*server > from) {
        s->account->network += *server - from;
        s->busy_until = *server;
    }
    s->sum += (uint64_t)*server + (uint64_t)from + (uint64_t)s->busy_until;
}

static void join(sweep *s, const sim_op *op)
{
    int64_t cause;
    s->times[op->out] = arrival(s, op, &cause);
}

/* The next block's weights move to the front; those gathered here are `prefetch` blocks ahead. */
static void shift_gathers(const sim_lowered *pass, sim_time here, sim_state *state)
{
    for (size_t i = 0; i + 1 < SIM_MOST_PREFETCH; i++)
        state->gathered[i] = later(state->compute, state->gathered[i + 1]);
    state->gathered[SIM_MOST_PREFETCH - 1] = state->compute;
    if (pass->prefetch > 0)
        state->gathered[pass->prefetch - 1] = later(state->compute, here);
}

/* Nothing that is left of this pass can start before its last compute operation ended, so that
 * earlier times need not be told apart. */
void sim__block_leave(const sim_lowered *pass, sim_time compute, sim_time busy_until,
                      const sim_time *times, sim_state *state, sim_exit *leave)
{
    int64_t cause =
        pass->output == SIM_SLOT_INPUT ? state->input_cause : pass->slot_cause[pass->output];

    leave->output = later(compute, times[pass->output]);
    leave->sent = pass->sent < 0 ? leave->output : times[pass->sent];
    state->compute = compute;
    state->input = leave->output;
    state->input_cause = state->input > compute ? cause : WL_DP;
    shift_gathers(pass, pass->gathered < 0 ? compute : times[pass->gathered], state);
    if (pass->reduced >= 0)
        state->reduced = times[pass->reduced];
    state->reduced = later(compute, state->reduced);
    state->busy_until = later(compute, busy_until);
    for (size_t d = 0; d < SIM_MAX_DIMS; d++)
        state->server[d] = later(compute, state->server[d]);
}

uint64_t sim__block_run(const sim_lowered *pass, sim_state *state, sim_account *account,
                        sim_exit *leave, sim_time *times)
{
    sim_time start = state->compute;
    sweep s = {pass, start,  state->busy_until, state->server, times, state->input_cause,
               0,    account};

    times[SIM_SLOT_START] = start;
    times[SIM_SLOT_INPUT] = state->input;
    times[SIM_SLOT_WEIGHTS] = state->gathered[0];
    for (size_t i = 0; i < pass->n; i++) {
        const sim_op *op = &pass->op[i];
        if (op->server == 0)
            run_compute(&s, op, state->reduced);
        else if (op->server != SIM_NO_SERVER)
            run_network(&s, op);
        else
            join(&s, op);
    }
    account->compute += pass->compute;
    account->sent_bytes += pass->sent_bytes;
    sim__block_leave(pass, s.compute, s.busy_until, times, state, leave);
    return s.sum - (uint64_t)start * pass->n_terms; /* relative to the start of the pass */
}
