/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/timed.h"

#include <math.h>
#include <string.h>

#include "sim/collective.h"

void sim__timing_reset(sim_timing *timing, const sim_job *job)
{
    timing->job = job;
    timing->n = 0;
    memset(timing->has_footprint, 0, sizeof timing->has_footprint);
    memset(timing->has_boundary, 0, sizeof timing->has_boundary);
}

static cs_status footprint_of(sim_timing *timing, wl_group group, const sim_footprint **out,
                              cs_error *err)
{
    cs_status status = CS_OK;

    if (!timing->has_footprint[group]) {
        CS_TRY(sim_footprint_make(timing->job->network, timing->job->mesh, timing->job->order,
                                  group, &timing->footprint[group], err));
        timing->has_footprint[group] = true;
    }
    *out = &timing->footprint[group];
done:
    return status;
}

static cs_status time_phases(const sim_phases *phases, sim_timed *out, cs_error *err)
{
    const sim_phase *phase = phases->phase;
    cs_status status = CS_OK;

    out->n_phases = phases->n;
    out->dims = 0;
    for (size_t i = 0; i < phases->n; i++) {
        out->dims |= 1u << phase[i].dim | phase[i].other_dims;
        out->phase[i].server = (uint8_t)(1 + phase[i].dim);
        out->phase[i].bytes = llround(phase[i].bytes);
        out->phase[i].others = (uint8_t)phase[i].other_dims;
        CS_TRY(sim_time_from_s(phase[i].seconds, &out->phase[i].duration, err));
    }
done:
    return status;
}

static bool same_key(const sim_collective_key *a, const sim_collective_key *b)
{
    return a->kind == b->kind && a->group == b->group && a->bytes == b->bytes &&
           a->part == b->part && a->part_stride == b->part_stride;
}

static cs_status group_of(sim_timing *timing, const sim_collective_key *key, sim_footprint *out,
                          cs_error *err)
{
    cs_status status;
    const sim_footprint *whole;

    CS_TRY(footprint_of(timing, key->group, &whole, err));
    *out = *whole;
    if (key->part != 0)
        CS_TRY(sim_footprint_part(whole, key->part, key->part_stride, out, err));
done:
    return status;
}

static cs_status phases_of(sim_timing *timing, const sim_collective_key *key, sim_phases *out,
                           cs_error *err)
{
    cs_status status;
    sim_footprint group;
    const sim_collective what = {&group, (wl_collective)key->kind, key->bytes, 0};

    CS_TRY(group_of(timing, key, &group, err));
    CS_TRY(sim_collective_phases(timing->job->network, &what, timing->job->routes, out, err));
done:
    return status;
}

cs_status sim__timed_themis(sim_timing *timing, const sim_timed *like, double load[SIM_MAX_DIMS],
                            sim_timed *out, cs_error *err)
{
    cs_status status;
    const sim_network *net = timing->job->network;
    sim_footprint group;
    uint8_t order[2 * SIM_MAX_DIMS];
    sim_phases phases;
    sim__plan plan = {net, &group, timing->job->routes, (wl_collective)like->key.kind, order};

    *out = *like;
    CS_TRY(group_of(timing, &like->key, &group, err));
    if (group.routed)
        return CS_OK;
    sim__least_loaded_first(&group, load, order);
    CS_TRY(sim__plan_phases(&plan, like->key.bytes / (double)net->chunks, &phases, err));
    CS_TRY(time_phases(&phases, out, err));
    for (size_t i = 0; i < phases.n; i++)
        load[phases.phase[i].dim] += phases.phase[i].seconds;
done:
    return status;
}

cs_status sim__timed_collective(sim_timing *timing, const sim_collective_key *key,
                                const sim_timed **out, cs_error *err)
{
    cs_status status;
    sim_phases phases;
    sim_timed *timed;

    for (size_t i = 0; i < timing->n; i++)
        if (same_key(&timing->collective[i].key, key)) {
            *out = &timing->collective[i];
            return CS_OK;
        }
    CS_TRY(phases_of(timing, key, &phases, err));
    if (timing->n == SIM_MOST_TIMED)
        timing->n = 0; /* callers keep no pointer, so that the oldest may go */
    timed = &timing->collective[timing->n++];
    timed->key = *key;
    CS_TRY(time_phases(&phases, timed, err));
    *out = timed;
done:
    return status;
}

cs_status sim__timed_boundary(sim_timing *timing, bool backward, const sim_timed **out,
                              cs_error *err)
{
    cs_status status = CS_OK;
    const sim_job *job = timing->job;
    const sim_boundary what = {job->mesh, job->order, job->program->boundary_bytes, backward};
    sim_phases phases;

    *out = &timing->boundary[backward];
    if (timing->has_boundary[backward])
        return CS_OK;
    CS_TRY(sim_boundary_phases(job->network, &what, job->routes, &phases, err));
    CS_TRY(time_phases(&phases, &timing->boundary[backward], err));
    timing->has_boundary[backward] = true;
done:
    return status;
}
