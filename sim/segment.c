/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/segment.h"

#include <stdlib.h>
#include <string.h>

enum { MEMO_SLOTS = 2048, MEMO_FULL = MEMO_SLOTS * 3 / 4 };

typedef struct {
    uint64_t id;
    uint32_t generation;
    sim_state state;
    sim_step step;
} memo_entry;

struct sim_memo {
    uint32_t generation;
    size_t n;
    memo_entry entry[MEMO_SLOTS];
};

sim_memo *sim__memo_create(void)
{
    return calloc(1, sizeof(sim_memo));
}

void sim__memo_destroy(sim_memo *memo)
{
    free(memo);
}

void sim__memo_reset(sim_memo *memo)
{
    memo->n = 0;
    memo->generation++;
    if (memo->generation == 0) {
        memset(memo->entry, 0, sizeof memo->entry);
        memo->generation = 1;
    }
}

bool sim__state_equal(const sim_state *a, const sim_state *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static size_t slot_of(uint64_t id, const sim_state *state)
{
    uint64_t word[sizeof *state / sizeof(uint64_t)];
    uint64_t hash = id;

    memcpy(word, state, sizeof word);
    for (size_t i = 0; i < CS_COUNT(word); i++)
        hash = (hash ^ word[i]) * 0x9e3779b97f4a7c15ULL;
    return (size_t)(hash >> 40) % MEMO_SLOTS;
}

const sim_step *sim__memo_find(const sim_memo *memo, uint64_t id, const sim_state *state)
{
    for (size_t at = slot_of(id, state);; at = (at + 1) % MEMO_SLOTS) {
        const memo_entry *e = &memo->entry[at];
        if (e->generation != memo->generation)
            return NULL;
        if (e->id == id && sim__state_equal(&e->state, state))
            return &e->step;
    }
}

void sim__memo_put(sim_memo *memo, uint64_t id, const sim_state *state, const sim_step *step)
{
    size_t at = slot_of(id, state);

    if (memo->n == MEMO_FULL)
        return;
    while (memo->entry[at].generation == memo->generation)
        at = (at + 1) % MEMO_SLOTS;
    memo->entry[at] = (memo_entry){id, memo->generation, *state, *step};
    memo->n++;
}

void sim__state_shift(sim_state *state, sim_time by)
{
    state->compute += by;
    for (size_t d = 0; d < SIM_MAX_DIMS; d++)
        state->server[d] += by;
    state->input += by;
    for (size_t i = 0; i < SIM_MOST_PREFETCH; i++)
        state->gathered[i] += by;
    state->reduced += by;
    state->busy_until += by;
}

sim_state sim__state_relative(const sim_state *state)
{
    sim_state relative = *state;
    sim__state_shift(&relative, -state->compute);
    return relative;
}

/* a + k * (b - a), by component; the cause is that of `a`. */
static sim_state state_on_line(const sim_state *a, const sim_state *b, int64_t k)
{
    sim_state x = *a;

    x.compute += k * (b->compute - a->compute);
    for (size_t d = 0; d < SIM_MAX_DIMS; d++)
        x.server[d] += k * (b->server[d] - a->server[d]);
    x.input += k * (b->input - a->input);
    for (size_t i = 0; i < SIM_MOST_PREFETCH; i++)
        x.gathered[i] += k * (b->gathered[i] - a->gathered[i]);
    x.reduced += k * (b->reduced - a->reduced);
    x.busy_until += k * (b->busy_until - a->busy_until);
    return x;
}

void sim__account_add(sim_account *total, const sim_account *part, sim_time times)
{
    total->compute += times * part->compute;
    for (size_t i = 0; i < SIM_WAIT_CAUSES; i++)
        total->wait[i] += times * part->wait[i];
    total->network += times * part->network;
    total->sent_bytes += times * part->sent_bytes;
}

static sim_time series(sim_time first, sim_time second, int64_t j)
{
    return (j + 1) * first + j * (j + 1) / 2 * (second - first);
}

/* Adds steps 0..j of an arithmetic series whose first two terms are given. */
static void account_add_series(sim_account *total, const sim_account *first,
                               const sim_account *second, int64_t j)
{
    total->compute += series(first->compute, second->compute, j);
    for (size_t i = 0; i < SIM_WAIT_CAUSES; i++)
        total->wait[i] += series(first->wait[i], second->wait[i], j);
    total->network += series(first->network, second->network, j);
    total->sent_bytes += series(first->sent_bytes, second->sent_bytes, j);
}

static void report(const sim_runner *runner, const sim_lowered *pass)
{
    for (size_t i = 0; i < pass->n; i++) {
        const sim_op *op = &pass->op[i];
        sim_span_event event = {.stage = runner->stage,
                                .thread = op->server,
                                .name = op->name < 0 ? "transfer" : runner->op_names[op->name],
                                .length = op->duration};
        if (op->server == SIM_NO_SERVER || op->duration == 0)
            continue;
        event.start = runner->times[op->out] - op->duration;
        runner->timeline(runner->timeline_context, &event);
    }
}

static uint64_t run_pass(const sim_runner *runner, const sim_lowered *pass, sim_state *state,
                         sim_account *account, sim_exit *leave)
{
    if (pass->scheduling == SIM_PROGRAM)
        return sim__block_run(pass, state, account, leave, runner->times);
    sim__block_run_events(pass, state, account, leave, runner->times, runner->room);
    return 0;
}

/* One pass from a state with compute 0, from memory where it was taken before. */
static sim_step take(const sim_runner *runner, const sim_lowered *pass, uint64_t id,
                     const sim_state *relative)
{
    const sim_step *known = sim__memo_find(runner->memo, id, relative);
    sim_step step = {.state = *relative};

    if (known != NULL)
        return *known;
    step.sum = run_pass(runner, pass, &step.state, &step.account, &step.leave);
    sim__memo_put(runner->memo, id, relative, &step);
    return step;
}

/* A run of equal passes in progress. */
typedef struct {
    const sim_runner *runner;
    const sim_lowered *pass;
    uint64_t id;
    int64_t left;
    sim_state *state;
    sim_account *account;
    sim_exit *leave;
} run;

static sim_step take_at(const run *r, const sim_state *state)
{
    sim_state relative = sim__state_relative(state);
    return take(r->runner, r->pass, r->id, &relative);
}

static sim_state after(const sim_state *state, const sim_step *step)
{
    sim_state next = step->state;
    sim__state_shift(&next, state->compute);
    return next;
}

static void leave_at(const run *r, const sim_state *state, const sim_step *step)
{
    r->leave->output = state->compute + step->leave.output;
    r->leave->sent = state->compute + step->leave.sent;
}

static void advance(run *r, const sim_step *step)
{
    leave_at(r, r->state, step);
    sim__account_add(r->account, &step->account, 1);
    *r->state = after(r->state, step);
    r->left--;
}

/* The state came back: the rest repeats. */
static void repeat(run *r, const sim_step *step)
{
    sim__state_shift(r->state, (r->left - 1) * step->state.compute);
    sim__account_add(r->account, &step->account, r->left - 1);
    r->left = 1;
    advance(r, step);
}

/* Whether step j from `at` continues the line through steps `first` and `second`. */
static bool on_line(const sim_step *first, const sim_step *second, const sim_step *step,
                    const sim_state *expect, const sim_state *reached, int64_t j)
{
    return step->sum == first->sum + (uint64_t)j * (second->sum - first->sum) &&
           sim__state_equal(expect, reached);
}

/* Tries to take many steps along the line of states through the next two; false when the states
 * do not lie on a line. */
static bool jump(run *r, const sim_step *first)
{
    sim_state x0 = *r->state, x1 = after(&x0, first), x2, line;
    sim_step second = take_at(r, &x1);

    x2 = after(&x1, &second);
    line = state_on_line(&x0, &x1, 2);
    line.input_cause = x2.input_cause;
    if (!sim__state_equal(&x2, &line) || x1.input_cause != x2.input_cause)
        return false;
    for (int64_t j = r->left - 1; j >= 3; j /= 2) {
        sim_state xj = state_on_line(&x0, &x1, j), expect, reached;
        sim_step step;

        xj.input_cause = x1.input_cause;
        step = take_at(r, &xj);
        reached = after(&xj, &step);
        expect = state_on_line(&x0, &x1, j + 1);
        expect.input_cause = x1.input_cause;
        if (!on_line(first, &second, &step, &expect, &reached, j))
            continue;
        leave_at(r, &xj, &step);
        account_add_series(r->account, &first->account, &second.account, j);
        *r->state = reached;
        r->left -= j + 1;
        return true;
    }
    return false;
}

static void run_unrolled(run *r)
{
    for (; r->left > 0; r->left--) {
        (void)run_pass(r->runner, r->pass, r->state, r->account, r->leave);
        if (r->runner->timeline != NULL)
            report(r->runner, r->pass);
    }
}

cs_status sim__segment_run(const sim_runner *runner, const sim_lowered *pass, uint64_t id,
                           int64_t n, sim_state *state, sim_account *account, sim_exit *leave,
                           cs_error *err)
{
    run r = {runner, pass, id, n, state, account, leave};

    if (SIM_S(state->compute) + (double)n * pass->total_s > SIM_S(SIM_TIME_MAX))
        return cs_fail(err, CS_EINVAL, "the iteration takes longer than %g s", SIM_S(SIM_TIME_MAX));
    if (runner->memo == NULL) {
        run_unrolled(&r);
        return CS_OK;
    }
    while (r.left > 0) {
        sim_step step = take_at(&r, r.state);
        sim_state relative = sim__state_relative(r.state), next = sim__state_relative(&step.state);
        if (sim__state_equal(&relative, &next))
            repeat(&r, &step);
        else if (r.left < 4 || pass->scheduling != SIM_PROGRAM || !jump(&r, &step))
            advance(&r, &step);
    }
    return CS_OK;
}
