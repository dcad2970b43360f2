/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Rounds of a schedule.  In a phase of it every stage repeats the same few actions.  When all
 * stages and all values on their way stand, relative to one clock, as they did a round ago, the
 * rounds that are left repeat exactly. */
#include <string.h>

#include "sim/engine_private.h"

/* Rounds before the end of a phase that are run one by one: their last blocks gather weights for
 * what comes after the phase. */
static int64_t tail_rounds(const sim_iteration *it)
{
    return 2 + it->job->config->prefetch;
}

/* Runs each stage up to its `first` action of a phase plus so many rounds. */
static cs_status run_until(sim_iteration *it, const sim_phase_plan *plan, int64_t rounds)
{
    cs_status status = CS_OK;
    const sim_schedule *schedule = it->job->schedule;
    bool progress = true, done;

    while (progress) {
        progress = false;
        done = true;
        for (size_t stage = 0; stage < schedule->pipeline.n_stages; stage++) {
            size_t until = plan->first[stage] + plan->period * (size_t)rounds;
            CS_TRY(sim__run_stage(it, stage, until, &progress));
            done = done && it->engine->stage[stage].next >= until;
        }
        if (done)
            return CS_OK;
    }
    for (size_t stage = 0; stage < schedule->pipeline.n_stages; stage++)
        if (it->engine->stage[stage].next < plan->first[stage] + plan->period * (size_t)rounds)
            return cs_fail(it->err, CS_EDEADLOCK,
                           "pipeline schedule: stage %zu waits for ever at its action %zu", stage,
                           it->engine->stage[stage].next);
done:
    return status;
}

/* Remembers all stages and the values on their way. */
static cs_status mark(sim_iteration *it)
{
    cs_status status;
    sim_engine *engine = it->engine;
    size_t n = it->job->schedule->pipeline.n_stages, k = 0;

    CS_TRY(sim__reserve(&engine->mark, &engine->n_marks, n, sizeof *engine->mark, it->err));
    memcpy(engine->mark, engine->stage, n * sizeof *engine->mark);
    for (size_t q = 0; q < 2 * n; q++)
        k += engine->stage[q / 2].queue[q % 2].sent - engine->stage[q / 2].queue[q % 2].taken;
    CS_TRY(sim__reserve(&engine->marked_parcel, &engine->n_marked_parcels, k + 1,
                        sizeof *engine->marked_parcel, it->err));
    k = 0;
    for (size_t q = 0; q < 2 * n; q++) {
        const sim_queue *queue = &engine->stage[q / 2].queue[q % 2];
        memcpy(&engine->marked_parcel[k], &queue->parcel[queue->taken],
               (queue->sent - queue->taken) * sizeof *queue->parcel);
        k += queue->sent - queue->taken;
    }
done:
    return status;
}

static bool same_stage(const sim_stage_run *now, const sim_stage_run *then, sim_time by)
{
    return now->course.now.clock == then->course.now.clock + by &&
           sim__state_equal(&now->course.now.state, &then->course.now.state) &&
           now->pending.block == then->pending.block && now->pending.kind == then->pending.kind;
}

/* Whether everything stands as at the mark, later by `by`. */
static bool repeats(const sim_engine *engine, size_t n, sim_time by)
{
    size_t k = 0;

    for (size_t s = 0; s < n; s++) {
        if (!same_stage(&engine->stage[s], &engine->mark[s], by))
            return false;
        for (size_t d = 0; d < 2; d++) {
            const sim_queue *now = &engine->stage[s].queue[d], *then = &engine->mark[s].queue[d];
            if (now->sent - now->taken != then->sent - then->taken)
                return false;
            for (size_t i = now->taken; i < now->sent; i++, k++)
                if (now->parcel[i].at != engine->marked_parcel[k].at + by ||
                    now->parcel[i].left != engine->marked_parcel[k].left + by)
                    return false;
        }
    }
    return true;
}

static void subtract(sim_account *a, const sim_account *b)
{
    sim__account_add(a, b, -1);
}

/* `times` more rounds like the one since the mark. */
static void repeat_stage(sim_stage_run *now, const sim_stage_run *then, size_t period,
                         int64_t times, sim_time by)
{
    sim_account round = now->course.account;

    subtract(&round, &then->course.account);
    sim__account_add(&now->course.account, &round, times);
    now->bubble += times * (now->bubble - then->bubble);
    now->boundary += times * (now->boundary - then->boundary);
    now->next += period * (size_t)times;
    now->course.now.clock += times * by;
    for (size_t d = 0; d < 2; d++)
        for (size_t i = now->queue[d].taken; i < now->queue[d].sent; i++) {
            now->queue[d].parcel[i].at += times * by;
            now->queue[d].parcel[i].left += times * by;
        }
}

static cs_status check_length(sim_iteration *it, int64_t times, sim_time by)
{
    if (SIM_S(by) * (double)times + SIM_S(it->engine->stage[0].course.now.clock) <=
        SIM_S(SIM_TIME_MAX))
        return CS_OK;
    return cs_fail(it->err, CS_EINVAL, "the iteration takes longer than %g s", SIM_S(SIM_TIME_MAX));
}

static cs_status run_phase(sim_iteration *it, const sim_phase_plan *plan)
{
    cs_status status;
    sim_engine *engine = it->engine;
    size_t n = it->job->schedule->pipeline.n_stages;
    int64_t last = plan->rounds - tail_rounds(it);

    CS_TRY(run_until(it, plan, 0));
    for (int64_t round = 1; it->runner.memo != NULL && round <= last; round++) {
        sim_time by;
        CS_TRY(mark(it));
        CS_TRY(run_until(it, plan, round));
        by = engine->stage[0].course.now.clock - engine->mark[0].course.now.clock;
        if (!repeats(engine, n, by))
            continue;
        CS_TRY(check_length(it, last - round, by));
        for (size_t s = 0; s < n; s++)
            repeat_stage(&engine->stage[s], &engine->mark[s], plan->period, last - round, by);
        break;
    }
done:
    return status;
}

cs_status sim__run_actions(sim_iteration *it)
{
    cs_status status = CS_OK;
    const sim_schedule *schedule = it->job->schedule;

    for (size_t i = 0; i < schedule->n_phases; i++)
        CS_TRY(run_phase(it, &schedule->phase[i]));
    CS_TRY(run_until(it, &schedule->phase[schedule->n_phases], 0));
done:
    return status;
}
