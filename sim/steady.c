/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Rounds of a schedule.  In a phase of it every stage repeats the same few actions, so that a round
 * maps all times (clocks of the stages, what they left behind, values on their way) to those a
 * round later.  Two shortcuts, both exact:
 *   All times stand, relative to one clock, as they did a round ago: the rest repeats.
 *   All times move along a line, each at its own rate (a first stage that is slower, say, so that a
 *   wait shrinks from round to round).  A round is max-plus linear, hence every time in it convex
 *   along the line; if the sums of all operation times in rounds 0, 1 and j lie on one line, each
 *   time does in all rounds between (Baccelli et al., Synchronization and Linearity, 1992). */
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

/* Rounds of a phase as they are run: three marks at most, the last one now. */
typedef struct {
    sim_iteration *it;
    const sim_phase_plan *plan;
    int64_t round, last;          /* done, and to be done */
    size_t marks;                 /* since the last jump */
    int64_t next_trial, patience; /* after as many failures, rounds to wait for a straighter line */
    const sim_mark *x[3];
} rounds;

static cs_status mark_round(rounds *r)
{
    cs_status status;
    sim_mark *mark = &r->it->engine->mark[r->marks % 3];

    CS_TRY(sim__mark_take(r->it, mark));
    r->x[0] = r->x[1];
    r->x[1] = r->x[2];
    r->x[2] = mark;
    r->marks++;
done:
    return status;
}

/* Moves the stages to the next round of their actions and `times` further. */
static void skip_actions(const rounds *r, int64_t times)
{
    for (size_t s = 0; s < r->it->job->schedule->pipeline.n_stages; s++)
        r->it->engine->stage[s].next += r->plan->period * (size_t)times;
}

/* Whether the last round left all as before, relative to one clock. */
static bool repeats(const rounds *r)
{
    const sim_mark *a = r->x[1], *b = r->x[2];
    sim_time by;

    if (r->marks < 2 || a->shape != b->shape || a->n_time != b->n_time)
        return false;
    by = b->time[0] - a->time[0];
    for (size_t i = 0; i < b->n_time; i++)
        if (b->time[i] - a->time[i] != (i < b->n_absolute ? by : 0))
            return false;
    return true;
}

/* Whether all times of the last three rounds lie on a line. */
static bool on_line(const rounds *r)
{
    const sim_mark *a = r->x[0], *b = r->x[1], *c = r->x[2];

    if (r->marks < 3 || a->shape != b->shape || b->shape != c->shape || a->n_time != b->n_time ||
        b->n_time != c->n_time)
        return false;
    for (size_t i = 0; i < c->n_time; i++)
        if (c->time[i] - b->time[i] != b->time[i] - a->time[i])
            return false;
    return true;
}

/* The point `j` steps behind the first of three marks on a line. */
static cs_status line_point(const rounds *r, int64_t j, sim_mark *out)
{
    cs_status status;
    const sim_mark *a = r->x[0], *b = r->x[1];

    CS_TRY(sim__mark_reserve(r->x[2], out, r->it->err));
    for (size_t i = 0; i < out->n_time; i++) {
        double far = (double)a->time[i] + (double)j * (double)(b->time[i] - a->time[i]);
        if (far > (double)SIM_TIME_MAX)
            return cs_fail(r->it->err, CS_EINVAL, "the iteration takes longer than %g s",
                           SIM_S(SIM_TIME_MAX));
        out->time[i] = a->time[i] + j * (b->time[i] - a->time[i]);
    }
done:
    return status;
}

/* Whether the round from step j, just run and marked as `end`, is on the line: its times, and what
 * it added to the sums of the last mark. */
static bool ends_on_line(const rounds *r, int64_t j, const sim_mark *end)
{
    const sim_mark *a = r->x[0], *b = r->x[1], *c = r->x[2];

    if (end->shape != c->shape || end->n_time != c->n_time)
        return false;
    for (size_t i = 0; i < end->n_time; i++)
        if (end->time[i] != a->time[i] + (j + 1) * (b->time[i] - a->time[i]))
            return false;
    for (size_t i = 0; i < end->n_sum; i++) {
        uint64_t first = b->sum[i] - a->sum[i], second = c->sum[i] - b->sum[i];
        if (end->sum[i] - c->sum[i] != first + (uint64_t)j * (second - first))
            return false;
    }
    return true;
}

/* Sums after the steps 2 to j of an arithmetic series whose first two terms are known. */
static void add_series(const rounds *r, int64_t j, sim_mark *end)
{
    const sim_mark *a = r->x[0], *b = r->x[1], *c = r->x[2];

    for (size_t i = 0; i < end->n_sum; i++) {
        uint64_t first = b->sum[i] - a->sum[i], second = c->sum[i] - b->sum[i];
        end->sum[i] =
            a->sum[i] + (uint64_t)(j + 1) * first + (uint64_t)(j * (j + 1) / 2) * (second - first);
    }
}

/* Runs the round that begins j steps behind the first mark.  *fits tells whether it is on the line;
 * if not, all is as before. */
static cs_status try_round(rounds *r, int64_t j, bool *fits)
{
    cs_status status;
    sim_engine *engine = r->it->engine;
    size_t n = r->it->job->schedule->pipeline.n_stages;
    sim_mark *tried = &engine->tried;

    CS_TRY(sim__reserve(&engine->saved, &engine->n_saved, n, sizeof *engine->saved, r->it->err));
    memcpy(engine->saved, engine->stage, n * sizeof *engine->stage);
    CS_TRY(sim__mark_take(r->it, &engine->before));
    CS_TRY(line_point(r, j, tried));
    memcpy(tried->sum, r->x[2]->sum, tried->n_sum * sizeof *tried->sum);
    sim__mark_restore(r->it, tried);
    CS_TRY(run_until(r->it, r->plan, r->round + 1));
    CS_TRY(sim__mark_take(r->it, tried));
    *fits = ends_on_line(r, j, tried);
    if (*fits) {
        add_series(r, j, tried);
        sim__mark_restore(r->it, tried);
    } else {
        memcpy(engine->stage, engine->saved, n * sizeof *engine->stage);
        sim__mark_restore(r->it, &engine->before);
    }
done:
    return status;
}

/* Follows the line as far as a few trials find it straight: 4 rounds, 16, 64, ... */
static cs_status jump(rounds *r)
{
    cs_status status = CS_OK;
    /* step 2 of the line is the round after the last mark */
    int64_t begin = r->round - 2, reached = 1, most = r->last - 1 - begin;
    bool fits = true;

    for (int64_t j = 4; fits && reached < most; j *= 4) {
        int64_t step = j < most ? j : most;
        CS_TRY(try_round(r, step, &fits));
        if (!fits)
            break;
        skip_actions(r, step - reached - 1);
        reached = step;
        r->round = begin + reached + 1;
    }
    r->patience = reached == 1 ? 2 * r->patience + 1 : 0;
    r->next_trial = r->round + r->patience;
    if (reached == 1)
        return CS_OK;
    r->marks = 0;
    CS_TRY(mark_round(r));
done:
    return status;
}

/* All rounds that are left, like the last one. */
static cs_status repeat(rounds *r)
{
    cs_status status;
    int64_t times = r->last - r->round;
    sim_mark *end = &r->it->engine->tried;
    const sim_mark *a = r->x[1], *b = r->x[2];
    double far = SIM_S(b->time[0]) + (double)times * SIM_S(b->time[0] - a->time[0]);

    if (far > SIM_S(SIM_TIME_MAX))
        return cs_fail(r->it->err, CS_EINVAL, "the iteration takes longer than %g s",
                       SIM_S(SIM_TIME_MAX));
    CS_TRY(sim__mark_reserve(b, end, r->it->err));
    for (size_t i = 0; i < end->n_time; i++)
        end->time[i] = b->time[i] + times * (b->time[i] - a->time[i]);
    for (size_t i = 0; i < end->n_sum; i++)
        end->sum[i] = b->sum[i] + (uint64_t)times * (b->sum[i] - a->sum[i]);
    sim__mark_restore(r->it, end);
    skip_actions(r, times);
    r->round = r->last;
done:
    return status;
}

static cs_status run_phase(sim_iteration *it, const sim_phase_plan *plan)
{
    cs_status status;
    rounds r = {.it = it, .plan = plan, .last = plan->rounds - tail_rounds(it)};
    bool monotone = it->job->network->scheduling == SIM_PROGRAM;

    CS_TRY(run_until(it, plan, 0));
    if (it->runner.memo == NULL || r.last < 1)
        return CS_OK;
    CS_TRY(mark_round(&r));
    while (r.round < r.last) {
        CS_TRY(run_until(it, plan, ++r.round));
        CS_TRY(mark_round(&r));
        if (repeats(&r))
            CS_TRY(repeat(&r));
        else if (monotone && r.round >= r.next_trial && r.last - r.round > 2 && on_line(&r))
            CS_TRY(jump(&r));
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
