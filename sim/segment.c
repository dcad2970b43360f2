/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/segment.h"

#include <stdlib.h>
#include <string.h>

/* Of the start of a pass in sim_account.ends: more than that of all its operations; odd, so that no
 * difference is lost. */
#define PASS_WEIGHT ((UINT64_C(1) << 20) + 1)

enum { MEMO_SLOTS = 4096, MEMO_FULL = 1536, SPILL = 64 };

typedef struct {
    uint64_t id;
    sim_state state;
    sim_step step;
} memo_entry;

struct sim_memo {
    uint32_t generation;
    size_t n, spill;
    size_t n_dims, n_ahead; /* parts of a state that are in use */
    struct {
        uint32_t generation, entry;
    } slot[MEMO_SLOTS];
    memo_entry entry[MEMO_FULL];
    sim_step spilled[SPILL];
};

sim_memo *sim__memo_create(void)
{
    return calloc(1, sizeof(sim_memo));
}

void sim__memo_destroy(sim_memo *memo)
{
    free(memo);
}

void sim__memo_reset(sim_memo *memo, size_t n_dims, size_t n_ahead)
{
    memo->n_dims = n_dims;
    memo->n_ahead = n_ahead;
    memo->n = 0;
    memo->generation++;
    if (memo->generation == 0) {
        memset(memo->slot, 0, sizeof memo->slot);
        memo->generation = 1;
    }
}

bool sim__state_equal(const sim_state *a, const sim_state *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static uint64_t mix(uint64_t hash, const sim_time *t, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (uint64_t)t[i]) * 0x9e3779b97f4a7c15ULL;
    return hash;
}

/* The parts of a state that can differ in this design: servers of real dimensions, weights of the
 * blocks gathered ahead. */
static size_t slot_of(const sim_memo *memo, uint64_t id, const sim_state *state)
{
    uint64_t hash = mix(id, state->server, memo->n_dims);

    hash = mix(hash, state->gathered, memo->n_ahead);
    hash = mix(hash, &state->input, 1);
    hash = mix(hash, &state->reduced, 1);
    hash = mix(hash, &state->busy_until, 1);
    return (size_t)(hash >> 40) % MEMO_SLOTS;
}

static bool same_state(const sim_memo *memo, const sim_state *a, const sim_state *b)
{
    uint64_t differ = (uint64_t)(a->input ^ b->input) | (uint64_t)(a->reduced ^ b->reduced) |
                      (uint64_t)(a->busy_until ^ b->busy_until) |
                      (uint64_t)(a->input_cause ^ b->input_cause);

    for (size_t d = 0; d < memo->n_dims; d++)
        differ |= (uint64_t)(a->server[d] ^ b->server[d]);
    for (size_t i = 0; i < memo->n_ahead; i++)
        differ |= (uint64_t)(a->gathered[i] ^ b->gathered[i]);
    return differ == 0;
}

const sim_step *sim__memo_find(const sim_memo *memo, uint64_t id, const sim_state *state)
{
    for (size_t at = slot_of(memo, id, state);; at = (at + 1) % MEMO_SLOTS) {
        const memo_entry *e = &memo->entry[memo->slot[at].entry];
        if (memo->slot[at].generation != memo->generation)
            return NULL;
        if (e->id == id && same_state(memo, &e->state, state))
            return &e->step;
    }
}

sim_step *sim__memo_add(sim_memo *memo, uint64_t id, const sim_state *state)
{
    size_t at = slot_of(memo, id, state);
    memo_entry *e;

    if (memo->n == MEMO_FULL) { /* kept for the next SPILL steps only */
        memo->spill = (memo->spill + 1) % SPILL;
        return &memo->spilled[memo->spill];
    }
    while (memo->slot[at].generation == memo->generation)
        at = (at + 1) % MEMO_SLOTS;
    memo->slot[at].generation = memo->generation;
    memo->slot[at].entry = (uint32_t)memo->n;
    e = &memo->entry[memo->n++];
    e->id = id;
    e->state = *state;
    return &e->step;
}

/* a + k * (b - a), by component; the cause is that of `a`. */
static sim_state state_on_line(const sim_state *a, const sim_state *b, int64_t k)
{
    sim_state x = *a;

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
    total->ends += (uint64_t)times * part->ends;
}

/* Operation times of `n` passes that begin `took` apart count from the beginning of the action, not
 * of the pass; a start counts for more than all operations of a pass. */
static void shift_ends(sim_account *total, sim_time clock, sim_time took, int64_t n)
{
    uint64_t starts = (uint64_t)n * (uint64_t)clock + (uint64_t)(n * (n - 1) / 2) * (uint64_t)took;

    total->ends += starts * PASS_WEIGHT;
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
    total->ends += (uint64_t)(j + 1) * first->ends +
                   (uint64_t)(j * (j + 1) / 2) * (second->ends - first->ends);
}

static void report(const sim_runner *runner, const sim_lowered *pass, sim_time clock)
{
    for (size_t i = 0; i < pass->n; i++) {
        const sim_op *op = &pass->op[i];
        sim_span_event event = {.stage = runner->stage,
                                .thread = op->server,
                                .name = op->name < 0 ? "transfer" : runner->op_names[op->name],
                                .length = op->duration};
        if (op->server == SIM_NO_SERVER || op->duration == 0)
            continue;
        event.start = clock + runner->times[op->out] - op->duration;
        runner->timeline(runner->timeline_context, &event);
    }
}

static sim_time run_pass(const sim_runner *runner, const sim_lowered *pass, sim_step *step)
{
    if (pass->scheduling == SIM_PROGRAM)
        return sim__block_run(pass, &step->state, &step->account, &step->leave, runner->times);
    return sim__block_run_events(pass, &step->state, &step->account, &step->leave, runner->times,
                                 runner->room);
}

/* A run of equal passes in progress. */
typedef struct {
    const sim_runner *runner;
    const sim_lowered *pass;
    uint64_t id;
    int64_t left;
    sim_course *course;
} run;

/* One pass from a state, from memory where it was taken before.  Valid for a few
 * dozen more: a jump takes one and at most one for each bit of the count. */
static const sim_step *take(const run *r, const sim_state *state)
{
    const sim_step *known = sim__memo_find(r->runner->memo, r->id, state);
    sim_step *step;

    if (known != NULL)
        return known;
    step = sim__memo_add(r->runner->memo, r->id, state);
    memset(step, 0, sizeof *step);
    step->state = *state;
    step->took = run_pass(r->runner, r->pass, step);
    return step;
}

/* `times` passes of which the last, `step`, starts at `clock`. */
static void arrive(run *r, sim_time clock, const sim_step *step, int64_t times)
{
    r->course->leave.output = clock + step->leave.output;
    r->course->leave.sent = clock + step->leave.sent;
    r->course->now.clock = clock + step->took;
    r->course->now.state = step->state;
    r->left -= times;
}

static void advance(run *r, const sim_step *step)
{
    sim__account_add(&r->course->account, &step->account, 1);
    shift_ends(&r->course->account, r->course->now.clock, 0, 1);
    arrive(r, r->course->now.clock, step, 1);
}

/* The state came back: the rest repeats. */
static void repeat(run *r, const sim_step *step)
{
    sim__account_add(&r->course->account, &step->account, r->left);
    shift_ends(&r->course->account, r->course->now.clock, step->took, r->left);
    arrive(r, r->course->now.clock + (r->left - 1) * step->took, step, r->left);
}

/* Whether step j from the state `line` continues the line through `first` and `second`. */
static bool on_line(const sim_step *first, const sim_step *second, const sim_step *step,
                    const sim_state *next, int64_t j)
{
    return step->took == first->took &&
           step->account.ends ==
               first->account.ends + (uint64_t)j * (second->account.ends - first->account.ends) &&
           sim__state_equal(&step->state, next);
}

/* Tries to take many steps along the line of states through the next two; false when the states
 * do not lie on a line. */
static bool jump(run *r, const sim_step *first)
{
    const sim_state *x0 = &r->course->now.state, *x1 = &first->state;
    const sim_step *second = take(r, x1);
    sim_state line = state_on_line(x0, x1, 2);

    line.input_cause = x1->input_cause;
    if (second->took != first->took || !sim__state_equal(&second->state, &line))
        return false;
    for (int64_t j = r->left - 1; j >= 3; j /= 2) {
        sim_state at = state_on_line(x0, x1, j), next = state_on_line(x0, x1, j + 1);
        const sim_step *step;

        at.input_cause = next.input_cause = x1->input_cause;
        step = take(r, &at);
        if (!on_line(first, second, step, &next, j))
            continue;
        account_add_series(&r->course->account, &first->account, &second->account, j);
        shift_ends(&r->course->account, r->course->now.clock, first->took, j + 1);
        arrive(r, r->course->now.clock + j * first->took, step, j + 1);
        return true;
    }
    return false;
}

static void run_unrolled(run *r)
{
    while (r->left > 0) {
        sim_step step = {.state = r->course->now.state};
        step.took = run_pass(r->runner, r->pass, &step);
        if (r->runner->timeline != NULL)
            report(r->runner, r->pass, r->course->now.clock);
        advance(r, &step);
    }
}

cs_status sim__segment_run(const sim_runner *runner, const sim_lowered *pass, uint64_t id,
                           int64_t n, sim_course *course, cs_error *err)
{
    run r = {runner, pass, id, n, course};

    if (SIM_S(course->now.clock) + (double)n * pass->total_s > SIM_S(SIM_TIME_MAX))
        return cs_fail(err, CS_EINVAL, "the iteration takes longer than %g s", SIM_S(SIM_TIME_MAX));
    if (runner->memo == NULL) {
        run_unrolled(&r);
        return CS_OK;
    }
    while (r.left > 0) {
        const sim_step *step = take(&r, &course->now.state);
        if (sim__state_equal(&step->state, &course->now.state))
            repeat(&r, step);
        else if (r.left < 4 || pass->scheduling != SIM_PROGRAM || !jump(&r, step))
            advance(&r, step);
    }
    return CS_OK;
}
