/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Applies the actions of a schedule stage by stage.  A stage waits for what its neighbours send; a
 * sender does not wait. */
#include <stdlib.h>
#include <string.h>

#include "sim/engine_private.h"

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
    free(engine->saved);
    for (size_t i = 0; i < CS_COUNT(engine->mark); i++)
        sim__mark_free(&engine->mark[i]);
    sim__mark_free(&engine->before);
    sim__mark_free(&engine->tried);
    free(engine->stage_class);
    free(engine->parcel);
    free(engine);
}

cs_status sim__reserve(void *pointer, size_t *have, size_t want, size_t size, cs_error *err)
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

/* Values that a stage takes from one side. */
static size_t parcels_of(const sim_schedule *schedule)
{
    const sim_pipeline *p = &schedule->pipeline;
    return p->n_chunks * (size_t)(p->micro_batches * sim__laps(p));
}

/* Queues of a stage: only second laps take from laps. */
static size_t queues_of(const sim_schedule *schedule)
{
    return schedule->pipeline.twice ? SIM_N_QUEUES : SIM_FROM_LAP;
}

/* Nothing has run; the queues of each stage are empty. */
static void reset_stages(sim_engine *engine, const sim_schedule *schedule)
{
    size_t room = parcels_of(schedule), n = queues_of(schedule);

    for (size_t s = 0; s < schedule->pipeline.n_stages; s++) {
        memset(&engine->stage[s], 0, sizeof engine->stage[s]);
        engine->stage[s].pending = sim__no_pass;
        for (size_t d = 0; d < n; d++)
            engine->stage[s].queue[d].parcel = engine->parcel + (n * s + d) * room;
    }
}

static cs_status prepare(sim_engine *engine, const sim_job *job, cs_error *err)
{
    cs_status status;
    const sim_schedule *s = job->schedule;
    size_t parcels = queues_of(s) * s->pipeline.n_stages * parcels_of(s);

    sim__lowering_reset(engine->lowering, job);
    sim__memo_reset(engine->memo, job->network->n_dims, (size_t)job->config->prefetch);
    CS_TRY(sim__reserve(&engine->stage, &engine->n_stages, s->pipeline.n_stages,
                        sizeof *engine->stage, err));
    CS_TRY(sim__reserve(&engine->parcel, &engine->n_parcels, parcels, sizeof *engine->parcel, err));
    reset_stages(engine, s);
done:
    return status;
}

/* Weights of the first blocks are gathered before anything runs. */
static cs_status begin_stage(sim_iteration *it, size_t stage)
{
    cs_status status = CS_OK;
    sim_stage_run *run = &it->engine->stage[stage];

    it->runner.stage = (int32_t)stage;
    for (int64_t ahead = 0; ahead < it->job->config->prefetch; ahead++) {
        sim_context context = {.self = sim__no_pass, .gather = sim__gather_at(it, stage, 0, ahead)};
        CS_TRY(sim__run_passes(it, run, context, 1));
    }
done:
    return status;
}

/* Remaining reductions, then the optimizer step; the end of the stage. */
static cs_status end_stage(sim_iteration *it, size_t stage, sim_time *end, int64_t *tail_axis)
{
    cs_status status;
    sim_stage_run *run = &it->engine->stage[stage];
    sim_context drain = {.self = sim__no_pass, .gather = sim__no_pass};
    sim_context update = {.self = {(uint16_t)stage, SIM_PASS_UPDATE}, .gather = sim__no_pass};

    it->runner.stage = (int32_t)stage;
    *tail_axis = it->job->inference ? run->course.now.state.input_cause : WL_DP;
    if (!it->job->serial)
        run->course.now.state.input = 0;
    CS_TRY(sim__run_passes(it, run, drain, 1));
    if (!it->job->serial) {
        run->course.now.state.input = run->course.now.state.reduced;
        run->course.now.state.input_cause = WL_DP;
    }
    if (!it->job->inference)
        CS_TRY(sim__run_passes(it, run, update, 1));
    *end = run->course.now.clock;
    for (size_t d = 0; d < it->job->network->n_dims; d++)
        if (run->course.now.clock + run->course.now.state.server[d] > *end)
            *end = run->course.now.clock + run->course.now.state.server[d];
done:
    return status;
}

static void fill_result(const sim_iteration *it, size_t stage, sim_time end, sim_engine_result *out)
{
    const sim_stage_run *run = &it->engine->stage[stage];

    out->latency = end;
    out->last_stage = stage;
    out->account = run->course.account;
    out->account.ends = 0; /* depends on the shortcuts taken */
    out->bubble = run->bubble;
    out->boundary = run->boundary;
    out->tail = end - run->course.now.clock;
}

cs_status sim__engine_run(sim_engine *engine, const sim_job *job, sim_engine_result *out,
                          cs_error *err)
{
    cs_status status;
    sim_iteration it = {.engine = engine, .job = job, .err = err};

    it.runner = (sim_runner){.memo = job->unrolled ? NULL : engine->memo,
                             .timeline = job->timeline,
                             .timeline_context = job->timeline_context,
                             .op_names = job->program->op_names};
    it.split =
        !job->inference && (job->config->schedule == WL_ZB_H1 || job->config->schedule == WL_ZB_H2);
    for (size_t b = 0; b < job->program->n_blocks; b++)
        it.gathers = it.gathers || job->program->block[b].n_gathers > 0;
    CS_TRY(prepare(engine, job, err));
    CS_TRY(sim__find_classes(&it));
    for (size_t stage = 0; stage < job->schedule->pipeline.n_stages; stage++)
        CS_TRY(begin_stage(&it, stage));
    CS_TRY(sim__run_actions(&it));
    out->latency = -1;
    for (size_t stage = 0; stage < job->schedule->pipeline.n_stages; stage++) {
        sim_time end;
        int64_t tail_axis;
        CS_TRY(end_stage(&it, stage, &end, &tail_axis));
        if (end <= out->latency)
            continue;
        fill_result(&it, stage, end, out);
        out->tail_axis = tail_axis < WL_N_AXES ? tail_axis : WL_DP;
    }
done:
    return status;
}
