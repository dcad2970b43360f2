/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "sim/lower_private.h"

sim_lowering *sim__lowering_create(void)
{
    return calloc(1, sizeof(sim_lowering));
}

void sim__lowering_destroy(sim_lowering *lowering)
{
    if (lowering == NULL)
        return;
    sim__pool_fini(&lowering->pool);
    for (size_t i = 0; i < SIM_N_LISTS; i++)
        free(lowering->room[i]);
    free(lowering->cause_room);
    free(lowering->item_room);
    free(lowering);
}

void sim__lowering_reset(sim_lowering *lowering, const sim_job *job)
{
    lowering->job = job;
    sim__pool_reset(&lowering->pool);
    sim__timing_reset(&lowering->timing[0], job);
    lowering->slow_job = *job;
    if (job->slow != NULL)
        lowering->slow_job.network = job->slow->network;
    sim__timing_reset(&lowering->timing[1], &lowering->slow_job);
    lowering->n_entries = 0;
    lowering->generation++;
    if (lowering->generation == 0) {
        memset(lowering->table, 0, sizeof lowering->table);
        lowering->generation = 1;
    }
}

const wl_pass *sim__pass_of(const sim_job *job, sim_pass_id id)
{
    const wl_program *program = job->program;

    switch ((sim_pass_kind)id.kind) {
    case SIM_PASS_FORWARD:
        return &program->block[id.block].forward;
    case SIM_PASS_BACKWARD:
    case SIM_PASS_INPUT:
    case SIM_PASS_WEIGHT:
        return &program->block[id.block].backward;
    case SIM_PASS_BACKWARD_LAST:
    case SIM_PASS_WEIGHT_LAST:
        return &program->block[id.block].backward_last;
    case SIM_PASS_UPDATE:
        return &program->stage[id.block].update;
    case SIM_PASS_NONE:
    case SIM_N_PASSES:
        break;
    }
    return NULL;
}

/* Which items of its wl_pass a kind of pass runs in the foreground. */
bool sim__pass_takes(sim_pass_kind kind, const wl_item *item)
{
    if (item->background)
        return false;
    if (kind == SIM_PASS_INPUT)
        return !item->weight_gradient;
    if (kind == SIM_PASS_WEIGHT || kind == SIM_PASS_WEIGHT_LAST)
        return item->weight_gradient;
    return true;
}

/* Reductions stand behind the foreground that they wait for, so that the search from the end is
 * short. */
bool sim__pass_reduces(const sim_job *job, sim_pass_id id)
{
    const wl_pass *pass = id.kind == SIM_PASS_INPUT ? NULL : sim__pass_of(job, id);

    for (size_t i = pass == NULL ? 0 : pass->n; i-- > 0;)
        if (pass->item[i].background)
            return true;
    return false;
}

bool sim__pass_gathers(const sim_job *job, sim_pass_id id)
{
    if (id.kind == SIM_PASS_UPDATE || id.kind == SIM_PASS_NONE || id.kind == SIM_PASS_WEIGHT ||
        id.kind == SIM_PASS_WEIGHT_LAST)
        return false;
    if (id.kind != SIM_PASS_FORWARD && !job->config->reshard)
        return false;
    return job->program->block[id.block].n_gathers > 0;
}

/* The first of the passes that are the same list of items: backward passes that reduce in every
 * micro-batch, optimizer steps of equal stages. */
static sim_pass_id first_equal(const sim_job *job, sim_pass_id id)
{
    const wl_program *program = job->program;
    const wl_item *item = sim__pass_of(job, id) == NULL ? NULL : sim__pass_of(job, id)->item;

    if ((id.kind == SIM_PASS_BACKWARD_LAST || id.kind == SIM_PASS_WEIGHT_LAST) &&
        item == program->block[id.block].backward.item)
        id.kind = id.kind == SIM_PASS_WEIGHT_LAST ? SIM_PASS_WEIGHT : SIM_PASS_BACKWARD;
    for (uint16_t s = 0; id.kind == SIM_PASS_UPDATE && s < id.block; s++)
        if (program->stage[s].update.item == item)
            id.block = s;
    return id;
}

static uint64_t key_of(sim_pass_id id)
{
    return id.kind == SIM_PASS_NONE ? SIM_PASS_NONE : (uint64_t)id.block << 4 | id.kind;
}

cs_status sim__lower(sim_lowering *l, sim_context context, const sim_lowered **out, size_t *index,
                     cs_error *err)
{
    cs_status status = CS_OK;
    uint64_t key;
    size_t at;

    context.self = first_equal(l->job, context.self);
    context.gather = first_equal(l->job, context.gather);
    context.reduce = first_equal(l->job, context.reduce);
    key = key_of(context.self) | key_of(context.gather) << 20 | key_of(context.reduce) << 40 |
          (uint64_t)context.send << 60 | (uint64_t)context.slow << 62;
    at = cs_mix64(key) % SIM_CONTEXT_TABLE;

    for (; l->table[at].generation == l->generation; at = (at + 1) % SIM_CONTEXT_TABLE) {
        const sim_lowered_entry *found = &l->entries[l->table[at].entry];
        if (found->key == key) {
            *index = l->table[at].entry;
            *out = &found->pass;
            return CS_OK;
        }
    }
    if (l->n_entries == SIM_MOST_CONTEXTS)
        return cs_fail(err, CS_EINVAL, "more than %d kinds of block passes in one design",
                       SIM_MOST_CONTEXTS);
    CS_TRY(sim__lower_pass(l, context, &l->entries[l->n_entries].pass, err));
    l->entries[l->n_entries].key = key;
    l->table[at].generation = l->generation;
    l->table[at].entry = (uint32_t)l->n_entries;
    *index = l->n_entries++;
    *out = &l->entries[*index].pass;
done:
    return status;
}
