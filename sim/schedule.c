/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Every schedule here is "warm up with w(s) forwards, then forward and backward in turn, then the
 * remaining backwards"; they differ in w(s) and in how many weight gradients stage s puts off:
 *
 *   gpipe        w = m            Huang et al., NeurIPS 2019
 *   1f1b         w = p-1-s        Narayanan et al., SC21
 *   interleaved  w = 2(p-1-s) + (v-1)p
 *   zb_h1        w = p-1-s,  puts off s   weight gradients    Qi et al., ICLR 2024
 *   zb_h2        w = 2(p-1-s), puts off 2s weight gradients
 */
#include "sim/schedule.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ACTIONS = 1 << 24 };

typedef struct {
    int64_t per_later_stage; /* warm-up forwards per stage behind this one; -1: all */
    int64_t per_chunk;       /* and p times this per further chunk */
    int64_t delay_per_stage; /* weight gradients put off, times s */
    bool split;              /* backward in two actions */
} rule;

static const rule rules[] = {
    [WL_1F1B] = {1, 0, 0, false},        [WL_GPIPE] = {-1, 0, 0, false},
    [WL_INTERLEAVED] = {2, 1, 0, false}, [WL_ZB_H1] = {1, 0, 1, true},
    [WL_ZB_H2] = {2, 0, 2, true},
};

/* Writes actions of one stage. */
typedef struct {
    sim_schedule *schedule;
    sim_action *next;
    uint8_t lap;
    int64_t n_virtual; /* micro-batches times chunks */
} writer;

/* Micro-batch and chunk of the k-th forward: groups of p micro-batches run through all chunks. */
static void put(writer *w, sim_action_kind kind, int64_t k)
{
    const sim_schedule *schedule = w->schedule;
    int64_t p = (int64_t)schedule->pipeline.n_stages, v = (int64_t)schedule->pipeline.n_chunks;
    int64_t chunk = k % (p * v) / p;

    if (v == 1)
        chunk = 0;
    else if (kind != SIM_FORWARD)
        chunk = v - 1 - chunk;
    *w->next++ = (sim_action){
        .kind = (uint8_t)kind,
        .chunk = (uint8_t)chunk,
        .lap = w->lap,
        .micro_batch = (int32_t)(v == 1 ? k : k / (p * v) * p + k % p),
    };
}

static int64_t warm_up(const sim_pipeline *pipeline, const rule *r, int64_t stage, int64_t n)
{
    int64_t p = (int64_t)pipeline->n_stages, v = (int64_t)pipeline->n_chunks;
    int64_t warm = r->per_later_stage < 0
                       ? n
                       : r->per_later_stage * (p - 1 - stage) + r->per_chunk * (v - 1) * p;
    return warm < n ? warm : n;
}

static void write_stage(writer *w, const rule *r, int64_t stage)
{
    int64_t n = w->n_virtual;
    int64_t warm = warm_up(&w->schedule->pipeline, r, stage, n);
    int64_t delay = r->delay_per_stage * stage;
    int64_t forward = 0, weight = 0;

    while (forward < warm)
        put(w, SIM_FORWARD, forward++);
    for (int64_t backward = 0; backward < n; backward++) {
        if (forward < n)
            put(w, SIM_FORWARD, forward++);
        put(w, SIM_BACKWARD, backward);
        if (r->split && backward >= delay)
            put(w, SIM_WEIGHT, weight++);
    }
    while (r->split && weight < n)
        put(w, SIM_WEIGHT, weight++);
}

/* Marks the last action of each chunk that completes weight gradients. */
static void mark_last(sim_action *action, size_t n, size_t n_chunks, sim_action_kind kind)
{
    for (size_t chunk = 0; chunk < n_chunks; chunk++)
        for (size_t i = n; i-- > 0;)
            if (action[i].kind == kind && action[i].chunk == chunk) {
                action[i].last = true;
                break;
            }
}

/* Activations are held from a forward to the action that completes its gradients: most at the first
 * backward, when w(s) + 1 forwards have run, and with weight gradients put off, that many more. */
double sim__in_flight(wl_schedule kind, const sim_pipeline *pipeline, size_t stage)
{
    const rule *r = &rules[kind];
    int64_t n = pipeline->micro_batches * (int64_t)pipeline->n_chunks;
    int64_t held =
        warm_up(pipeline, r, (int64_t)stage, n) + 1 + r->delay_per_stage * (int64_t)stage;

    if (pipeline->forward_only)
        held = 1;
    return (double)(held < n ? held : n);
}

static cs_status reserve(sim_schedule *s, size_t n_actions, cs_error *err)
{
    size_t *first;

    if (s->capacity_actions < n_actions) {
        sim_action *action = realloc(s->action, n_actions * sizeof *action);
        if (action == NULL)
            return cs_fail(err, CS_ENOMEM, "pipeline schedule of %zu actions", n_actions);
        s->action = action;
        s->capacity_actions = n_actions;
    }
    if (s->capacity_stages < s->pipeline.n_stages) {
        first = realloc(s->first, 3 * s->pipeline.n_stages * sizeof *first);
        if (first == NULL)
            return cs_fail(err, CS_ENOMEM, "pipeline schedule of %zu stages", s->pipeline.n_stages);
        s->first = first;
        s->capacity_stages = s->pipeline.n_stages;
    }
    return CS_OK;
}

static void write_forward_only(writer *w)
{
    for (w->lap = 0; w->lap < sim__laps(&w->schedule->pipeline); w->lap++)
        for (int64_t k = 0; k < w->n_virtual; k++)
            put(w, SIM_FORWARD, k);
}

static void add_phase(sim_schedule *s, size_t period, int64_t rounds)
{
    s->phase[s->n_phases] =
        (sim_phase_plan){s->first + s->n_phases * s->pipeline.n_stages, period, rounds};
    for (size_t stage = 0; stage < s->pipeline.n_stages; stage++)
        s->phase[s->n_phases].first[stage] = s->n_actions;
    s->n_phases++;
}

/* Where the schedule repeats: with all forwards first, the forwards and then the backwards, or the
 * second lap; else from the first action at which every stage alternates until the first stage runs
 * out of forwards.
 * Interleaved chunks repeat every p * v forwards. */
static void find_phases(sim_schedule *s, const rule *r, int64_t n, bool forward_only)
{
    int64_t turn =
        s->pipeline.n_chunks == 1 ? 1 : (int64_t)(s->pipeline.n_stages * s->pipeline.n_chunks);
    bool apart = forward_only || r->per_later_stage < 0;
    int64_t alternate = n - warm_up(&s->pipeline, r, 0, n) -
                        r->delay_per_stage * ((int64_t)s->pipeline.n_stages - 1);

    s->n_phases = 0;
    if (apart) {
        bool second = !forward_only || s->pipeline.twice;
        add_phase(s, (size_t)turn, n / turn);
        memset(s->phase[0].first, 0, s->pipeline.n_stages * sizeof *s->phase[0].first);
        if (second)
            add_phase(s, (size_t)turn, n / turn);
        for (size_t stage = 0; second && stage < s->pipeline.n_stages; stage++)
            s->phase[1].first[stage] = (size_t)n;
    } else if (alternate > 0) {
        add_phase(s, (size_t)turn * (r->split ? 3 : 2), alternate / turn);
        for (int64_t stage = 0; stage < (int64_t)s->pipeline.n_stages; stage++)
            s->phase[0].first[stage] =
                (size_t)(warm_up(&s->pipeline, r, stage, n) + 2 * r->delay_per_stage * stage);
    }
    add_phase(s, 0, 0);
    s->n_phases--;
}

cs_status sim__schedule_make(wl_schedule kind, const sim_pipeline *pipeline, sim_schedule *out,
                             cs_error *err)
{
    cs_status status;
    const rule *r = &rules[kind];
    size_t kinds = pipeline->forward_only ? (size_t)sim__laps(pipeline)
                   : r->split             ? 3
                                          : 2,
           p = pipeline->n_stages;
    int64_t m = pipeline->micro_batches, n = m * (int64_t)pipeline->n_chunks;

    if (pipeline->n_chunks > 1 && m % (int64_t)p != 0)
        return cs_fail(err, CS_EINVAL,
                       "interleaved schedule: %lld micro-batches %% %zu stages = %lld, must be 0",
                       (long long)m, p, (long long)(m % (int64_t)p));
    if (n < 1 || n > MOST_ACTIONS / 3 || (size_t)n * kinds > MOST_ACTIONS / p)
        return cs_fail(err, CS_EINVAL, "%lld micro-batches over %zu stages are too many actions",
                       (long long)m, p);
    out->pipeline = *pipeline;
    out->n_actions = (size_t)n * kinds;
    CS_TRY(reserve(out, out->n_actions * p, err));
    for (size_t stage = 0; stage < p; stage++) {
        sim_action *first = out->action + stage * out->n_actions;
        writer w = {.schedule = out, .next = first, .n_virtual = n};
        if (pipeline->forward_only)
            write_forward_only(&w);
        else
            write_stage(&w, r, (int64_t)stage);
        mark_last(first, out->n_actions, pipeline->n_chunks, r->split ? SIM_WEIGHT : SIM_BACKWARD);
    }
    find_phases(out, r, n, pipeline->forward_only);
done:
    return status;
}

void sim__schedule_fini(sim_schedule *schedule)
{
    free(schedule->action);
    free(schedule->first);
    *schedule = (sim_schedule){0};
}
