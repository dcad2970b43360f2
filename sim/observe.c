/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Designs operator by operator for those who look on: timelines, and the recorder of exports. */
#include <math.h>

#include "sim/evaluate.h"

enum { SHOWN_STEPS = 8 };

/* A phase that starts at `offset` on the observer's clock. */
typedef struct {
    const sim_observer *observer;
    sim_time offset;
} shifted;

static void pass_on(void *context, const sim_span_event *event)
{
    const shifted *s = context;
    sim_span_event moved = *event;

    moved.start += s->offset;
    s->observer->fn(s->observer->context, &moved);
}

/* Runs a phase; the next one starts when it has ended. */
static cs_status show(sim__evaluation *e, const sim__phase *phase, shifted *s)
{
    cs_status status;
    sim__sums sums;

    CS_TRY(sim__phase_run(e, phase, &sums));
    s->offset += llround(sums.v[SIM_SUM_LATENCY] * 1e12);
done:
    return status;
}

/* Steps overlap: the next one begins earlier than this one ends, by as much as it adds less. */
static cs_status show_steps(sim__evaluation *e, size_t w, shifted *s)
{
    cs_status status = CS_OK;
    int64_t steps = e->model->workloads[w].output;
    sim__evaluation unseen = *e;
    sim__phase phase;
    sim__step step;

    unseen.timeline = NULL;
    for (int64_t j = 1; j <= steps && j <= SHOWN_STEPS; j++) {
        CS_TRY(sim__step_make(e, w, j, &phase));
        CS_TRY(sim__step_run(&unseen, &phase, &step));
        if (j > 1)
            s->offset +=
                llround(1e12 * (step.added.v[SIM_SUM_LATENCY] - step.alone.v[SIM_SUM_LATENCY]));
        CS_TRY(show(e, &phase, s));
    }
done:
    return status;
}

cs_status sim_timeline(const sim_model *model, size_t w, const sim_config *config,
                       sim_scratch *scratch, const sim_observer *observer, cs_error *err)
{
    cs_status status;
    shifted s = {observer, 0};
    sim__evaluation e = {.model = model,
                         .config = config,
                         .scratch = scratch,
                         .unrolled = true,
                         .timeline = pass_on,
                         .timeline_context = &s,
                         .err = err};
    wl_mode mode = model->workloads[w].mode;
    sim__phase phase;

    CS_TRY(sim__begin(&e));
    if (mode == WL_TRAIN)
        CS_TRY(sim__phase_make(&e, w, SIM_PHASE_WHOLE, 0, &phase));
    else if (mode != WL_DECODE)
        CS_TRY(sim__prefill_make(&e, w, &phase));
    if (mode != WL_DECODE)
        CS_TRY(show(&e, &phase, &s));
    if (mode == WL_DECODE || mode == WL_SERVE)
        CS_TRY(show_steps(&e, w, &s));
done:
    return status;
}

cs_status sim__record(const sim_model *model, size_t w, const sim_config *config,
                      sim_scratch *scratch, const sim_recorder *recorder, cs_error *err)
{
    cs_status status;
    sim__evaluation e = {.model = model,
                         .config = config,
                         .scratch = scratch,
                         .unrolled = true,
                         .recorder = recorder,
                         .err = err};
    wl_mode mode = model->workloads[w].mode;
    sim__phase phase;
    sim__sums sums;

    CS_TRY(sim__begin(&e));
    if (mode == WL_DECODE)
        CS_TRY(sim__step_make(&e, w, 1, &phase));
    else if (mode == WL_TRAIN)
        CS_TRY(sim__phase_make(&e, w, SIM_PHASE_WHOLE, 0, &phase));
    else
        CS_TRY(sim__prefill_make(&e, w, &phase));
    CS_TRY(sim__phase_run(&e, &phase, &sums));
done:
    return status;
}
