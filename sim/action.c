/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One action of a stage: its segments in order, each block in its context. */
#include <string.h>

#include "sim/engine_private.h"

const sim_pass_id sim__no_pass = {0, SIM_PASS_NONE};

/* Of the start of an action in sim_account.ends: more than that of all its passes; odd, so that no
 * difference is lost. */
#define ACTION_WEIGHT ((UINT64_C(1) << 40) + 1)

/* Segments of a stage in the order of an action. */
typedef struct {
    const wl_segment *segment;
    size_t n;
    bool reversed;
    sim_pass_kind kind;
} sequence;

static sequence sequence_of(const sim_iteration *it, size_t stage, const sim_action *action)
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

static const sim_action *action_at(const sim_iteration *it, size_t stage, size_t action)
{
    const sim_schedule *schedule = it->job->schedule;
    return &schedule->action[stage * schedule->n_actions + action];
}

/* The pass `ahead` blocks after a place if it needs gathered weights, else sim__no_pass. */
static sim_pass_id gather_ahead(const sim_iteration *it, place from, int64_t ahead)
{
    int64_t position = from.at + ahead;

    for (size_t a = from.action; a < it->job->schedule->n_actions; a++) {
        sequence s = sequence_of(it, from.stage, action_at(it, from.stage, a));
        for (size_t i = a == from.action ? from.segment : 0; i < s.n; i++) {
            const wl_segment *segment = segment_at(&s, i);
            sim_pass_id id = {segment->block, (uint8_t)s.kind};
            if (position < segment->count)
                return sim__pass_gathers(it->job, id) ? id : sim__no_pass;
            position -= segment->count;
        }
    }
    return sim__no_pass;
}

/* Bits of sim_context.slow. */
static uint8_t slow_bits(const sim_iteration *it, size_t stage, uint8_t send)
{
    const sim_slow *slow = it->job->slow;
    size_t p = it->job->schedule->pipeline.n_stages, other;

    if (slow == NULL)
        return 0;
    other = send == 0 ? stage : (stage + (send == 1 ? 1 : p - 1)) % p;
    return (uint8_t)((stage == slow->stage) | (stage == slow->stage || other == slow->stage) << 1);
}

/* Runs `n` passes in one context and leaves the reductions of the last pending. */
cs_status sim__run_passes(sim_iteration *it, sim_stage_run *run, sim_context context, int64_t n)
{
    cs_status status;
    sim_engine *engine = it->engine;
    const sim_lowered *pass;
    size_t index;

    context.reduce = run->pending;
    context.slow = slow_bits(it, (size_t)it->runner.stage, context.send);
    if (it->job->recorder != NULL)
        CS_TRY(it->job->recorder->passes(it->job->recorder->context, it->job,
                                         (size_t)it->runner.stage, &context, n, it->err));
    CS_TRY(sim__lower(engine->lowering, context, &pass, &index, it->err));
    CS_TRY(sim__reserve(&engine->times, &engine->n_times, pass->n_slots + 2 * (pass->n_chunks + 1),
                        sizeof *engine->times, it->err));
    CS_TRY(sim__reserve(&engine->room, &engine->n_room, sim__events_bytes(pass), 1, it->err));
    it->runner.times = engine->times;
    it->runner.room = engine->room;
    CS_TRY(sim__segment_run(&it->runner, pass, index, n, &run->course, it->err));
    run->pending = sim__pass_reduces(it->job, context.self) ? context.self : sim__no_pass;
done:
    return status;
}

/* How many blocks from `at` on, the last of the segment apart, run in one context: the first
 * carries the reductions left before it, and the last few gather for what comes after. */
static int64_t alike(const sim_iteration *it, int64_t count, int64_t at)
{
    int64_t until = count - (it->job->config->prefetch > 1 ? it->job->config->prefetch : 1);

    return at == 0 || at >= until ? 1 : until - at;
}

static cs_status run_segment(sim_iteration *it, sim_stage_run *run, place where,
                             const sim_context *last)
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
        CS_TRY(sim__run_passes(it, run, context, n));
        where.at += n;
    }
done:
    return status;
}

static cs_status run_sequence(sim_iteration *it, sim_stage_run *run, place where, sim_context last)
{
    cs_status status = CS_OK;
    sequence s = sequence_of(it, where.stage, action_at(it, where.stage, where.action));

    if (s.n == 0) {
        last.self = last.gather = sim__no_pass;
        return sim__run_passes(it, run, last, 1);
    }
    for (; where.segment < s.n; where.segment++)
        CS_TRY(run_segment(it, run, where, &last));
done:
    return status;
}

sim_pass_id sim__gather_at(const sim_iteration *it, size_t stage, size_t action, int64_t ahead)
{
    return gather_ahead(it, (place){stage, action, 0, 0}, ahead);
}

/* Stage at the other end of what an action sends (sender) or waits for; false when there is none.
 */
static bool neighbour(const sim_iteration *it, const sim_action *action, size_t stage, bool sender,
                      size_t *at)
{
    const sim_pipeline *pipeline = &it->job->schedule->pipeline;
    size_t p = pipeline->n_stages, v = pipeline->n_chunks;
    size_t chunk = action->lap * v + action->chunk, chunks = v * (size_t)sim__laps(pipeline);
    bool up = (action->kind == SIM_FORWARD) == sender;

    if (action->kind == SIM_WEIGHT ||
        (up ? stage + 1 == p && chunk + 1 == chunks : stage == 0 && chunk == 0))
        return false;
    if (up)
        *at = stage + 1 == p ? 0 : stage + 1;
    else
        *at = stage == 0 ? p - 1 : stage - 1;
    return true;
}

/* Where the value of an action stands in line: that which leaves the last stage for the first (the
 * last chunk's), or arrives there, is of another lap. */
static size_t queue_of(const sim_iteration *it, const sim_action *action, size_t stage, bool sender)
{
    const sim_pipeline *pipeline = &it->job->schedule->pipeline;
    bool ends = stage + 1 == pipeline->n_stages && action->chunk + 1u == pipeline->n_chunks;

    if (action->kind != SIM_FORWARD)
        return SIM_FROM_BEHIND;
    return (sender ? ends : stage == 0 && action->chunk == 0) ? SIM_FROM_LAP : SIM_FROM_BEFORE;
}

static void book_remote_wait(sim_stage_run *run, sim_time wait, const sim_parcel *from)
{
    sim_time transfer = from->at - from->left;

    run->boundary += wait < transfer ? wait : transfer;
    run->bubble += wait < transfer ? 0 : wait - transfer;
}

/* Whether a stage is slow or may send to one that is. */
static bool near_slow(const sim_iteration *it, size_t stage)
{
    return (slow_bits(it, stage, 1) | slow_bits(it, stage, 2)) != 0;
}

/* The first stage whose chunk runs the same segments at the same speed. O(stages). */
static size_t class_of(const sim_iteration *it, size_t stage, size_t chunk)
{
    const wl_stage *stages = it->job->program->stage;
    size_t first = 0;

    if (near_slow(it, stage))
        return stage;
    while (near_slow(it, first) || stages[first].segment[chunk] != stages[stage].segment[chunk] ||
           stages[first].n_segments[chunk] != stages[stage].n_segments[chunk])
        first++;
    return first;
}

cs_status sim__find_classes(sim_iteration *it)
{
    cs_status status;
    size_t p = it->job->schedule->pipeline.n_stages, v = it->job->schedule->pipeline.n_chunks;
    sim_engine *engine = it->engine;

    CS_TRY(sim__reserve(&engine->stage_class, &engine->n_classes, p * v,
                        sizeof *engine->stage_class, it->err));
    for (size_t stage = 0; stage < p; stage++)
        for (size_t chunk = 0; chunk < v; chunk++)
            engine->stage_class[stage * v + chunk] = (uint16_t)class_of(it, stage, chunk);
done:
    return status;
}

/* Number of an action that decides, with the state, all that it does; 0 when more than the next
 * block would have to be told (gathers further ahead). */
static uint64_t action_id(const sim_iteration *it, size_t stage, const sim_action *action,
                          bool sends)
{
    const sim_stage_run *run = &it->engine->stage[stage];
    sim_pass_id gather = sim__no_pass;
    size_t v = it->job->schedule->pipeline.n_chunks;
    uint16_t stage_class = it->engine->stage_class[stage * v + action->chunk];

    if (it->runner.memo == NULL)
        return 0;
    if (it->gathers && it->job->config->prefetch > 1)
        return 0;
    if (it->gathers && it->job->config->prefetch == 1)
        gather = sim__gather_at(it, stage, run->next + 1, 0);
    return UINT64_C(1) << 63 | (uint64_t)stage_class << 50 | (uint64_t)action->chunk << 45 |
           (uint64_t)action->kind << 43 | (uint64_t)action->last << 42 | (uint64_t)sends << 41 |
           (uint64_t)(gather.block << 4 | gather.kind) << 20 |
           (uint64_t)(run->pending.block << 4 | run->pending.kind);
}

/* Runs an action and describes it as a step. */
static cs_status run_as_step(sim_iteration *it, size_t stage, uint8_t send, sim_step *step)
{
    cs_status status;
    sim_stage_run *run = &it->engine->stage[stage];
    sim_time start = run->course.now.clock;
    sim_account before = run->course.account;
    sim_context last = {.send = send};
    /* timelines tell the time; what is remembered does not depend on it */
    sim_time origin = it->runner.memo == NULL ? start : 0;

    memset(&run->course.account, 0, sizeof run->course.account);
    run->course.now.clock = origin;
    CS_TRY(run_sequence(it, run, (place){stage, run->next, 0, 0}, last));
    step->took = run->course.now.clock - origin;
    step->state = run->course.now.state;
    step->account = run->course.account;
    step->leave.output = run->course.leave.output - origin;
    step->leave.sent = run->course.leave.sent - origin;
    step->pending = run->pending;
    run->course.account = before;
    run->course.now.clock = start;
done:
    return status;
}

/* Runs an action, or takes it from memory where it was run from the same state. */
static cs_status take_action(sim_iteration *it, size_t stage, const sim_action *action, bool sends)
{
    cs_status status = CS_OK;
    sim_stage_run *run = &it->engine->stage[stage];
    uint64_t id = action_id(it, stage, action, sends);
    uint8_t send = (uint8_t)(!sends ? 0 : action->kind == SIM_FORWARD ? 1 : 2);
    const sim_step *known =
        id == 0 ? NULL : sim__memo_find(it->engine->memo, id, &run->course.now.state);

    if (known == NULL) {
        sim_state begin = run->course.now.state;
        sim_step *fresh = &it->engine->fresh;
        CS_TRY(run_as_step(it, stage, send, fresh));
        if (id != 0)
            *sim__memo_add(it->engine->memo, id, &begin) = *fresh;
        known = fresh;
    }
    if (known->took > SIM_TIME_MAX - run->course.now.clock)
        return cs_fail(it->err, CS_EINVAL, "the iteration takes longer than %g s",
                       SIM_S(SIM_TIME_MAX));
    run->course.account.ends += (uint64_t)run->course.now.clock * ACTION_WEIGHT;
    run->course.leave.output = run->course.now.clock + known->leave.output;
    run->course.leave.sent = run->course.now.clock + known->leave.sent;
    run->course.now.clock += known->took;
    run->course.now.state = known->state;
    sim__account_add(&run->course.account, &known->account, 1);
    run->pending = known->pending;
done:
    return status;
}

/* A sample of the memory of a stage: with what is live inside a block, or between actions. */
static void report_memory(const sim_iteration *it, size_t stage, sim_time at, bool within)
{
    const sim_job *job = it->job;
    wl_memory memory =
        wl_stage_memory(job->program, job->config, stage, (double)it->engine->stage[stage].held);
    sim_span_event event = {.stage = (int32_t)stage,
                            .thread = SIM_THREAD_MEMORY,
                            .name = "memory",
                            .start = at,
                            .bytes = memory.total - (within ? 0 : memory.transient)};

    job->timeline(job->timeline_context, &event);
}

static void report_begin(sim_iteration *it, size_t stage, const sim_action *action)
{
    sim_stage_run *run = &it->engine->stage[stage];

    if (it->job->timeline == NULL)
        return;
    run->held += action->kind == SIM_FORWARD;
    report_memory(it, stage, run->course.now.clock + run->course.now.state.input, true);
}

/* Activations are kept until the action that completes their gradients. */
static void report_end(sim_iteration *it, size_t stage, const sim_action *action)
{
    sim_stage_run *run = &it->engine->stage[stage];

    if (it->job->timeline == NULL)
        return;
    run->held -= it->job->inference || action->kind == (it->split ? SIM_WEIGHT : SIM_BACKWARD);
    report_memory(it, stage, run->course.now.clock, false);
}

static cs_status run_action(sim_iteration *it, size_t stage, const sim_action *action,
                            const sim_parcel *from)
{
    cs_status status;
    sim_stage_run *run = &it->engine->stage[stage];
    sim_time waited = run->course.account.wait[SIM_WAIT_REMOTE];
    size_t to = 0;
    bool sends = neighbour(it, action, stage, true, &to);

    if (!it->job->serial) {
        run->course.now.state.input = 0;
        run->course.now.state.input_cause = WL_DP;
    }
    if (from != NULL && from->at > run->course.now.clock + run->course.now.state.input) {
        run->course.now.state.input = from->at - run->course.now.clock;
        run->course.now.state.input_cause = SIM_WAIT_REMOTE;
    }
    it->runner.stage = (int32_t)stage;
    if (it->job->recorder != NULL)
        CS_TRY(it->job->recorder->action(it->job->recorder->context, it->job, stage, action,
                                         from != NULL, it->err));
    report_begin(it, stage, action);
    CS_TRY(take_action(it, stage, action, sends));
    report_end(it, stage, action);
    if (from != NULL)
        book_remote_wait(run, run->course.account.wait[SIM_WAIT_REMOTE] - waited, from);
    if (sends) {
        sim_queue *queue = &it->engine->stage[to].queue[queue_of(it, action, stage, true)];
        queue->parcel[queue->sent++] =
            (sim_parcel){run->course.leave.sent, run->course.leave.output};
    }
done:
    return status;
}

cs_status sim__run_stage(sim_iteration *it, size_t stage, size_t until, bool *progress)
{
    cs_status status = CS_OK;
    sim_stage_run *run = &it->engine->stage[stage];
    size_t from;

    while (run->next < until) {
        const sim_action *action = action_at(it, stage, run->next);
        sim_queue *queue = &run->queue[queue_of(it, action, stage, false)];
        bool waits = neighbour(it, action, stage, false, &from);
        if (waits && queue->taken == queue->sent)
            break;
        CS_TRY(run_action(it, stage, action, waits ? &queue->parcel[queue->taken] : NULL));
        queue->taken += waits;
        run->next++;
        *progress = true;
    }
done:
    return status;
}
