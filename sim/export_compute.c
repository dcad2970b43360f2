/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Compute nodes of a pass, fused where nothing can tell two operators apart, and what the inputs of
 * operators stand for. */
#include "sim/compute.h"
#include "sim/export_private.h"

/* ---- values ---- */

static sim__nodes gathered_weights(const sim__pass_work *w)
{
    sim__nodes out = {.n = 0};
    bool own = false;

    for (size_t i = 0; w->job->config->prefetch == 0 && i < w->n_colls; i++)
        if (w->coll[i].list == SIM__GATHER) {
            own = true;
            sim__nodes_join(&out, &w->coll[i].end);
        }
    return own ? out : w->stage->gathered[0];
}

/* What an item's dependency stands for. */
static sim__nodes value_of(const sim__pass_work *w, int dep)
{
    if (dep == WL_DEP_INPUT)
        return w->stage->input;
    if (dep == WL_DEP_WEIGHTS)
        return gathered_weights(w);
    return w->value[dep];
}

sim__nodes sim__export_inputs(const sim__pass_work *w, const wl_item *item)
{
    sim__nodes out = {.n = 0};

    for (size_t i = 0; i < item->n_deps; i++) {
        sim__nodes value = value_of(w, item->dep[i]);
        sim__nodes_join(&out, &value);
    }
    if (item->n_deps == 0 && w->context.self.kind == SIM_PASS_UPDATE)
        sim__nodes_join(&out, &w->stage->input);
    return out;
}

/* ---- compute ---- */

static bool feeds_more_than_compute(const sim__pass_work *w, int32_t item)
{
    if (w->pass->output == item)
        return true;
    for (size_t i = 0; i < w->pass->n; i++) {
        const wl_item *other = &w->pass->item[i];

        if (other->kind == WL_COMPUTE)
            continue;
        for (size_t d = 0; d < other->n_deps; d++)
            if (other->dep[d] == item)
                return true;
    }
    return false;
}

static bool is_gated(const sim__pass_work *w, const wl_item *item)
{
    return item->weight_gradient && w->job->config->sharding >= WL_SHARD_GRADIENTS;
}

/* Adds the item to the node of the item before, when nothing can tell the two apart. */
static bool fuse(sim__pass_work *w, size_t at, const wl_item *item, const sim__nodes *data,
                 sim_time duration)
{
    sim__stage *stage = w->stage;
    const sim__entry *before = at > 0 ? &w->entry[at - 1] : NULL;
    sim__nodes known = {.n = 0};
    sim__node *node;

    if (w->x->granularity != SIM_EXPORT_FUSED || before == NULL ||
        before->kind != SIM__ENTRY_COMPUTE || feeds_more_than_compute(w, before->index) ||
        is_gated(w, item) != is_gated(w, &w->pass->item[before->index]))
        return false;
    node = &stage->node[stage->compute - 1];
    for (uint16_t i = 0; i < node->n_data; i++)
        sim__nodes_add(&known, stage->dep[node->dep + i]);
    sim__nodes_add(&known, stage->compute);
    sim__nodes_add(&known, w->start);
    for (uint32_t i = 0; i < data->n; i++)
        if (stage->node[data->id[i] - 1].type == WL_NODE_COMP)
            sim__nodes_add(&known, data->id[i]); /* compute runs in order */
    if (!sim__nodes_hold(&known, data))
        return false;
    node->duration_ps += duration;
    node->flops += item->flops;
    node->bytes += item->memory_bytes;
    return true;
}

cs_status sim__export_compute(sim__pass_work *w, size_t at)
{
    int32_t i = w->entry[at].index;
    const wl_item *item = &w->pass->item[i];
    sim__nodes data = sim__export_inputs(w, item), ctrl = {.n = 0};
    sim__node node = {
        .type = WL_NODE_COMP, .name = item->op, .flops = item->flops, .bytes = item->memory_bytes};
    sim_time duration;
    cs_status status;

    CS_TRY(sim_time_from_s(sim__kernel_seconds(w->job->device, item), &duration, w->err));
    if (is_gated(w, item))
        sim__nodes_join(&data, &w->stage->reduced);
    if (!fuse(w, at, item, &data, duration)) {
        sim__nodes_add(&ctrl, w->stage->compute);
        node.duration_ps = duration;
        w->stage->compute = sim__export_node(w->stage, &node, &data, &ctrl);
        if (w->stage->compute == SIM__NO_NODE)
            return sim__export_no_memory(w);
    }
    w->value[i] = (sim__nodes){{w->stage->compute}, 1};
done:
    return status;
}
