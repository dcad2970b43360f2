/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * All times and sums of an iteration at the end of a round, as vectors. */
#include <stdlib.h>
#include <string.h>

#include "sim/engine_private.h"

/* Where a walk over the fields of the stages stands in a mark. */
typedef struct {
    sim_time *time;
    uint64_t *sum;
    bool back; /* from the mark to the stages */
} cursor;

static void carry_time(cursor *c, sim_time *field)
{
    if (c->back)
        *field = *c->time++;
    else
        *c->time++ = *field;
}

static void carry_sum(cursor *c, uint64_t value, void *field)
{
    if (c->back)
        memcpy(field, c->sum++, sizeof value);
    else
        *c->sum++ = value;
}

static void carry_sums(cursor *c, sim_stage_run *run)
{
    sim_account *a = &run->course.account;

    carry_sum(c, (uint64_t)a->compute, &a->compute);
    for (size_t i = 0; i < SIM_WAIT_CAUSES; i++)
        carry_sum(c, (uint64_t)a->wait[i], &a->wait[i]);
    carry_sum(c, (uint64_t)a->network, &a->network);
    carry_sum(c, (uint64_t)a->sent_bytes, &a->sent_bytes);
    carry_sum(c, a->ends, &a->ends);
    carry_sum(c, (uint64_t)run->bubble, &run->bubble);
    carry_sum(c, (uint64_t)run->boundary, &run->boundary);
}
enum { SUMS_OF_STAGE = SIM_WAIT_CAUSES + 6 };

static void carry_absolute(cursor *c, sim_stage_run *run)
{
    carry_time(c, &run->course.now.clock);
    for (size_t d = 0; d < SIM_N_QUEUES; d++)
        for (size_t i = run->queue[d].taken; i < run->queue[d].sent; i++) {
            carry_time(c, &run->queue[d].parcel[i].at);
            carry_time(c, &run->queue[d].parcel[i].left);
        }
}

static void carry_relative(const sim_iteration *it, cursor *c, sim_state *state)
{
    for (size_t d = 0; d < it->job->network->n_dims; d++)
        carry_time(c, &state->server[d]);
    for (int64_t i = 0; i < it->job->config->prefetch; i++)
        carry_time(c, &state->gathered[i]);
    carry_time(c, &state->input);
    carry_time(c, &state->reduced);
    carry_time(c, &state->busy_until);
}

static size_t parcels_on_their_way(const sim_stage_run *run)
{
    size_t n = 0;

    for (size_t d = 0; d < SIM_N_QUEUES; d++)
        n += run->queue[d].sent - run->queue[d].taken;
    return n;
}

/* What is not a time: a word that is the same when all of it is. */
static uint64_t shape_of(const sim_stage_run *run)
{
    uint64_t lengths = 0;

    for (size_t d = 0; d < SIM_N_QUEUES; d++)
        lengths = 1000003 * lengths + (run->queue[d].sent - run->queue[d].taken);
    return lengths + ((uint64_t)run->pending.block << 40 | (uint64_t)run->pending.kind << 56 |
                      (uint64_t)run->course.now.state.input_cause << 60);
}

static void walk(const sim_iteration *it, const sim_mark *mark, bool back)
{
    size_t n = it->job->schedule->pipeline.n_stages;
    cursor c = {mark->time, mark->sum, back};

    for (size_t s = 0; s < n; s++)
        carry_absolute(&c, &it->engine->stage[s]);
    for (size_t s = 0; s < n; s++)
        carry_relative(it, &c, &it->engine->stage[s].course.now.state);
    for (size_t s = 0; s < n; s++)
        carry_sums(&c, &it->engine->stage[s]);
}

cs_status sim__mark_reserve(const sim_mark *like, sim_mark *mark, cs_error *err)
{
    cs_status status;

    CS_TRY(sim__reserve(&mark->time, &mark->room_time, like->n_time, sizeof *mark->time, err));
    CS_TRY(sim__reserve(&mark->sum, &mark->room_sum, like->n_sum, sizeof *mark->sum, err));
    mark->n_time = like->n_time;
    mark->n_absolute = like->n_absolute;
    mark->n_sum = like->n_sum;
    mark->shape = like->shape;
done:
    return status;
}

cs_status sim__mark_take(const sim_iteration *it, sim_mark *mark)
{
    cs_status status;
    size_t n = it->job->schedule->pipeline.n_stages;
    sim_mark size = {.n_absolute = n, .n_sum = n * SUMS_OF_STAGE};

    for (size_t s = 0; s < n; s++) {
        const sim_stage_run *run = &it->engine->stage[s];
        size.n_absolute += 2 * parcels_on_their_way(run);
        size.shape = cs_mix64(size.shape ^ shape_of(run));
    }
    size.n_time =
        size.n_absolute + n * (it->job->network->n_dims + (size_t)it->job->config->prefetch + 3);
    CS_TRY(sim__mark_reserve(&size, mark, it->err));
    walk(it, mark, false);
done:
    return status;
}

void sim__mark_restore(const sim_iteration *it, const sim_mark *mark)
{
    walk(it, mark, true);
}

void sim__mark_free(sim_mark *mark)
{
    free(mark->time);
    free(mark->sum);
}
