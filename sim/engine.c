/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Applies the actions of a schedule stage by stage.  A stage waits for what its neighbours send; a
 * sender does not wait. */
#include "sim/engine.h"

#include <stdlib.h>
#include <string.h>

#include "sim/segment.h"

/* When a boundary value reaches a stage and when its sender had it ready; at < 0: not yet. */
typedef struct {
    sim_time at, left;
} parcel;

typedef struct {
    sim_state state;
    sim_pass_id pending; /* pass whose gradients wait for their reduction */
    size_t next;         /* action */
    sim_account account;
    sim_time bubble, boundary;
} stage_run;

struct sim_engine {
    sim_lowering *lowering;
    sim_memo *memo;
    sim_time *times;
    size_t n_times;
    unsigned char *room;
    size_t n_room;
    stage_run *stage;
    size_t n_stages;
    parcel *parcel; /* forward then backward; by chunk, stage, micro-batch */
    size_t n_parcels;
};

/* One run. */
typedef struct {
    sim_engine *engine;
    const sim_job *job;
    sim_runner runner;
    bool split, gathers; /* backward in two actions; any block has gathered weights */
    cs_error *err;
} iteration;

static const sim_pass_id no_pass = {0, SIM_PASS_NONE};

sim_engine *sim__engine_create(void)
{
    sim_engine *engine = calloc(1, sizeof *engine);

    if (engine == NULL)
        return NULL;
    engine->lowering = sim__lowering_create();
    engine->memo = sim__memo_create();
    if (engine->lowering == NULL || engine->memo == NULL) {
        sim__engine_destroy(engine);
        return NULL;
    }
    return engine;
}

void sim__engine_destroy(sim_engine *engine)
{
    if (engine == NULL)
        return;
    sim__lowering_destroy(engine->lowering);
    sim__memo_destroy(engine->memo);
    free(engine->times);
    free(engine->room);
    free(engine->stage);
    free(engine->parcel);
    free(engine);
}

static cs_status reserve(void *pointer, size_t *have, size_t want, size_t size, cs_error *err)
{
    void **at = pointer;
    void *larger;

    if (want <= *have)
        return CS_OK;
    larger = realloc(*at, want * size);
    if (larger == NULL)
        return cs_fail(err, CS_ENOMEM, "room for %zu values of the engine", want);
    *at = larger;
    *have = want;
    return CS_OK;
}

/* ---- segments of a stage in the order of an action ---- */

typedef struct {
    const wl_segment *segment;
    size_t n;
    bool reversed;
    sim_pass_kind kind;
} sequence;

static sequence sequence_of(const iteration *it, size_t stage, const sim_action *action)
{
    const wl_stage *s = &it->job->program->stage[stage];
    sequence out = {s->segment[action->chunk], s->n_segments[action->chunk],
                    action->kind != SIM_FORWARD, SIM_PASS_FORWARD};

    if (action->kind == SIM_BACKWARD)
        out.kind = it->split      ? SIM_PASS_INPUT
                   : action->last ? SIM_PASS_BACKWARD_LAST
                                  : SIM_PASS_BACKWARD;
    else if (action->kind == SIM_WEIGHT)
        out.kind = action->last ? SIM_PASS_WEIGHT_LAST : SIM_PASS_WEIGHT;
    return out;
}

static const wl_segment *segment_at(const sequence *s, size_t i)
{
    return &s->segment[s->reversed ? s->n - 1 - i : i];
}

/* A place in the program of a stage: the `at`-th block of a segment of an action. */
typedef struct {
    size_t stage, action, segment;
    int64_t at;
} place;

static const sim_action *action_at(const iteration *it, size_t stage, size_t action)
{
    const sim_schedule *schedule = it->job->schedule;
    return &schedule->action[stage * schedule->n_actions + action];
}

/* The pass `ahead` blocks after a place if it needs gathered weights, else no_pass. */
static sim_pass_id gather_ahead(const iteration *it, place from, int64_t ahead)
{
    int64_t position = from.at + ahead;

    for (size_t a = from.action; a < it->job->schedule->n_actions; a++) {
        sequence s = sequence_of(it, from.stage, action_at(it, from.stage, a));
        for (size_t i = a == from.action ? from.segment : 0; i < s.n; i++) {
            const wl_segment *segment = segment_at(&s, i);
            sim_pass_id id = {segment->block, (uint8_t)s.kind};
            if (position < segment->count)
                return sim__pass_gathers(it->job, id) ? id : no_pass;
            position -= segment->count;
        }
    }
    return no_pass;
}

/* Runs `n` passes in one context and leaves the reductions of the last pending. */
static cs_status run_passes(iteration *it, stage_run *run, sim_context context, int64_t n,
                            sim_exit *leave)
{
    cs_status status;
    sim_engine *engine = it->engine;
    const sim_lowered *pass;
    size_t index;

    context.reduce = run->pending;
    CS_TRY(sim__lower(engine->lowering, context, &pass, &index, it->err));
    CS_TRY(
        reserve(&engine->times, &engine->n_times, pass->n_slots, sizeof *engine->times, it->err));
    CS_TRY(reserve(&engine->room, &engine->n_room, sim__events_bytes(pass), 1, it->err));
    it->runner.times = engine->times;
    it->runner.room = engine->room;
    CS_TRY(
        sim__segment_run(&it->runner, pass, index, n, &run->state, &run->account, leave, it->err));
    run->pending = sim__pass_reduces(it->job, context.self) ? context.self : no_pass;
done:
    return status;
}

/* How many blocks from `at` on, the last of the segment apart, run in one context: the first
 * carries the reductions left before it, and the last few gather for what comes after. */
static int64_t alike(const iteration *it, int64_t count, int64_t at)
{
    int64_t until = count - (it->job->config->prefetch > 1 ? it->job->config->prefetch : 1);

    return at == 0 || at >= until ? 1 : until - at;
}

static cs_status run_segment(iteration *it, stage_run *run, place where, const sim_context *last,
                             sim_exit *leave)
{
    cs_status status = CS_OK;
    sequence s = sequence_of(it, where.stage, action_at(it, where.stage, where.action));
    const wl_segment *segment = segment_at(&s, where.segment);

    while (where.at < segment->count) {
        sim_context context = {.self = {segment->block, (uint8_t)s.kind}};
        int64_t n = alike(it, segment->count, where.at);
        if (where.at + 1 == segment->count && where.segment + 1 == s.n)
            context.send = last->send;
        context.gather = gather_ahead(it, where, it->job->config->prefetch);
        CS_TRY(run_passes(it, run, context, n, leave));
        where.at += n;
    }
done:
    return status;
}

static cs_status run_sequence(iteration *it, stage_run *run, place where, sim_context last,
                              sim_exit *leave)
{
    cs_status status = CS_OK;
    sequence s = sequence_of(it, where.stage, action_at(it, where.stage, where.action));

    if (s.n == 0) {
        last.self = last.gather = no_pass;
        return run_passes(it, run, last, 1, leave);
    }
    for (; where.segment < s.n; where.segment++)
        CS_TRY(run_segment(it, run, where, &last, leave));
done:
    return status;
}

/* ---- actions ---- */

static parcel *parcel_of(const iteration *it, bool backward, size_t chunk, size_t stage, int32_t mb)
{
    const sim_schedule *s = it->job->schedule;
    size_t half = s->n_chunks * s->n_stages * (size_t)s->micro_batches;

    return &it->engine
                ->parcel[(backward ? half : 0) +
                         (chunk * s->n_stages + stage) * (size_t)s->micro_batches + (size_t)mb];
}

/* Position of (chunk, stage) along the model, and the neighbour it sends to. */
static bool neighbour(const iteration *it, const sim_action *action, size_t stage, bool sender,
                      size_t *chunk, size_t *at)
{
    size_t p = it->job->schedule->n_stages, v = it->job->schedule->n_chunks;
    size_t position = action->chunk * p + stage;
    bool up = (action->kind == SIM_FORWARD) == sender;

    if (action->kind == SIM_WEIGHT || (up ? position + 1 == p * v : position == 0))
        return false;
    position = up ? position + 1 : position - 1;
    *chunk = position / p;
    *at = position % p;
    return true;
}

/* The value this action waits for; NULL when it needs none. */
static const parcel *awaited(const iteration *it, const sim_action *action, size_t stage)
{
    size_t chunk, at;

    if (!neighbour(it, action, stage, false, &chunk, &at))
        return NULL;
    return parcel_of(it, action->kind == SIM_BACKWARD, action->chunk, stage, action->micro_batch);
}

static void book_remote_wait(stage_run *run, sim_time wait, const parcel *from)
{
    sim_time transfer = from->at - from->left;

    run->boundary += wait < transfer ? wait : transfer;
    run->bubble += wait < transfer ? 0 : wait - transfer;
}

/* The first stage whose chunk runs the same segments. */
static size_t class_of(const iteration *it, size_t stage, size_t chunk)
{
    const wl_stage *stages = it->job->program->stage;
    size_t first = 0;

    while (stages[first].segment[chunk] != stages[stage].segment[chunk] ||
           stages[first].n_segments[chunk] != stages[stage].n_segments[chunk])
        first++;
    return first;
}

/* Number of an action that decides, with the state, all that it does; 0 when more than the next
 * block would have to be told (gathers further ahead). */
static uint64_t action_id(const iteration *it, size_t stage, const sim_action *action, bool sends)
{
    const stage_run *run = &it->engine->stage[stage];
    sim_pass_id gather = no_pass;

    if (it->runner.memo == NULL)
        return 0;
    if (it->gathers && it->job->config->prefetch > 1)
        return 0;
    if (it->gathers && it->job->config->prefetch == 1)
        gather = gather_ahead(it, (place){stage, run->next + 1, 0, 0}, 0);
    return UINT64_C(1) << 63 | (uint64_t)class_of(it, stage, action->chunk) << 50 |
           (uint64_t)action->chunk << 45 | (uint64_t)action->kind << 43 |
           (uint64_t)action->last << 42 | (uint64_t)sends << 41 |
           (uint64_t)(gather.block << 4 | gather.kind) << 20 |
           (uint64_t)(run->pending.block << 4 | run->pending.kind);
}

/* Runs an action, or takes it from memory where it was run from the same state. */
static cs_status take_action(iteration *it, size_t stage, const sim_action *action, bool sends,
                             sim_exit *leave)
{
    cs_status status;
    stage_run *run = &it->engine->stage[stage];
    uint64_t id = action_id(it, stage, action, sends);
    sim_context last = {.send = (uint8_t)(!sends ? 0 : action->kind == SIM_FORWARD ? 1 : 2)};
    sim_state relative = sim__state_relative(&run->state);
    const sim_step *known = id == 0 ? NULL : sim__memo_find(it->engine->memo, id, &relative);
    sim_time start = run->state.compute;
    sim_account before = run->account;
    sim_step step;

    if (known == NULL) {
        memset(&run->account, 0, sizeof run->account);
        CS_TRY(run_sequence(it, run, (place){stage, run->next, 0, 0}, last, leave));
        step = (sim_step){.state = run->state,
                          .account = run->account,
                          .leave = {leave->output - start, leave->sent - start},
                          .pending = run->pending};
        sim__state_shift(&step.state, -start);
        run->account = before;
        if (id != 0)
            sim__memo_put(it->engine->memo, id, &relative, &step);
        known = &step;
    }
    run->state = known->state;
    sim__state_shift(&run->state, start);
    sim__account_add(&run->account, &known->account, 1);
    run->pending = known->pending;
    *leave = (sim_exit){start + known->leave.output, start + known->leave.sent};
    status = CS_OK;
done:
    return status;
}

static cs_status run_action(iteration *it, size_t stage, const sim_action *action,
                            const parcel *from)
{
    cs_status status;
    stage_run *run = &it->engine->stage[stage];
    sim_time waited = run->account.wait[SIM_WAIT_REMOTE];
    sim_exit leave;
    size_t chunk, at;
    bool sends = neighbour(it, action, stage, true, &chunk, &at);

    run->state.input = run->state.compute;
    run->state.input_cause = WL_DP;
    if (from != NULL && from->at > run->state.compute) {
        run->state.input = from->at;
        run->state.input_cause = SIM_WAIT_REMOTE;
    }
    it->runner.stage = (int32_t)stage;
    CS_TRY(take_action(it, stage, action, sends, &leave));
    if (from != NULL)
        book_remote_wait(run, run->account.wait[SIM_WAIT_REMOTE] - waited, from);
    if (sends)
        *parcel_of(it, action->kind == SIM_BACKWARD, chunk, at, action->micro_batch) =
            (parcel){leave.sent, leave.output};
done:
    return status;
}

/* Runs the actions of a stage until one waits for a value that is not known yet. */
static cs_status run_stage(iteration *it, size_t stage, bool *progress)
{
    cs_status status = CS_OK;
    const sim_schedule *schedule = it->job->schedule;
    stage_run *run = &it->engine->stage[stage];

    while (run->next < schedule->n_actions) {
        const sim_action *action = action_at(it, stage, run->next);
        const parcel *from = awaited(it, action, stage);
        if (from != NULL && from->at < 0)
            break;
        CS_TRY(run_action(it, stage, action, from));
        run->next++;
        *progress = true;
    }
done:
    return status;
}

/* Weights of the first blocks are gathered before anything runs. */
static cs_status begin_stage(iteration *it, size_t stage)
{
    cs_status status = CS_OK;
    stage_run *run = &it->engine->stage[stage];
    sim_exit leave;

    memset(run, 0, sizeof *run);
    run->pending = no_pass;
    it->runner.stage = (int32_t)stage;
    for (int64_t ahead = 0; ahead < it->job->config->prefetch; ahead++) {
        sim_context context = {.self = no_pass,
                               .gather = gather_ahead(it, (place){stage, 0, 0, 0}, ahead)};
        CS_TRY(run_passes(it, run, context, 1, &leave));
    }
done:
    return status;
}

/* Remaining reductions, then the optimizer step; the end of the stage. */
static cs_status end_stage(iteration *it, size_t stage, sim_time *end)
{
    cs_status status;
    stage_run *run = &it->engine->stage[stage];
    sim_context drain = {.self = no_pass, .gather = no_pass};
    sim_context update = {.self = {(uint16_t)stage, SIM_PASS_UPDATE}, .gather = no_pass};
    sim_exit leave;

    it->runner.stage = (int32_t)stage;
    run->state.input = run->state.compute;
    CS_TRY(run_passes(it, run, drain, 1, &leave));
    run->state.input = run->state.reduced;
    run->state.input_cause = WL_DP;
    if (!it->job->inference)
        CS_TRY(run_passes(it, run, update, 1, &leave));
    *end = run->state.compute;
    for (size_t d = 0; d < it->job->network->n_dims; d++)
        if (run->state.server[d] > *end)
            *end = run->state.server[d];
done:
    return status;
}

static cs_status run_all_actions(iteration *it)
{
    cs_status status = CS_OK;
    size_t stages = it->job->schedule->n_stages;
    bool progress = true;

    while (progress) {
        progress = false;
        for (size_t stage = 0; stage < stages; stage++)
            CS_TRY(run_stage(it, stage, &progress));
    }
    for (size_t stage = 0; stage < stages; stage++)
        if (it->engine->stage[stage].next < it->job->schedule->n_actions)
            return cs_fail(it->err, CS_EDEADLOCK,
                           "pipeline schedule: stage %zu waits for ever at "
                           "its action %zu",
                           stage, it->engine->stage[stage].next);
done:
    return status;
}

static void fill_result(const iteration *it, size_t stage, sim_time end, sim_engine_result *out)
{
    const stage_run *run = &it->engine->stage[stage];

    out->latency = end;
    out->last_stage = stage;
    out->account = run->account;
    out->bubble = run->bubble;
    out->boundary = run->boundary;
    out->tail = end - run->state.compute;
}

static cs_status prepare(sim_engine *engine, const sim_job *job, cs_error *err)
{
    cs_status status;
    const sim_schedule *s = job->schedule;
    size_t parcels = 2 * s->n_chunks * s->n_stages * (size_t)s->micro_batches;

    sim__lowering_reset(engine->lowering, job);
    sim__memo_reset(engine->memo);
    if (s->n_stages * s->n_chunks == 1)
        parcels = 0;
    CS_TRY(reserve(&engine->stage, &engine->n_stages, s->n_stages, sizeof *engine->stage, err));
    CS_TRY(reserve(&engine->parcel, &engine->n_parcels, parcels, sizeof *engine->parcel, err));
    for (size_t i = 0; i < parcels; i++)
        engine->parcel[i].at = -1;
done:
    return status;
}

cs_status sim__engine_run(sim_engine *engine, const sim_job *job, sim_engine_result *out,
                          cs_error *err)
{
    cs_status status;
    iteration it = {.engine = engine, .job = job, .err = err};

    it.runner = (sim_runner){.memo = job->unrolled ? NULL : engine->memo,
                             .timeline = job->timeline,
                             .timeline_context = job->timeline_context,
                             .op_names = job->program->op_names};
    it.split =
        !job->inference && (job->config->schedule == WL_ZB_H1 || job->config->schedule == WL_ZB_H2);
    for (size_t b = 0; b < job->program->n_blocks; b++)
        it.gathers = it.gathers || job->program->block[b].n_gathers > 0;
    CS_TRY(prepare(engine, job, err));
    for (size_t stage = 0; stage < job->schedule->n_stages; stage++)
        CS_TRY(begin_stage(&it, stage));
    CS_TRY(run_all_actions(&it));
    out->latency = -1;
    for (size_t stage = 0; stage < job->schedule->n_stages; stage++) {
        sim_time end;
        CS_TRY(end_stage(&it, stage, &end));
        if (end > out->latency)
            fill_result(&it, stage, end, out);
    }
done:
    return status;
}
