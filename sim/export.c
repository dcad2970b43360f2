/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The nodes of every stage, written while the engine runs the design unrolled: the engine says
 * which pass comes next, so that the trace has the engine's own order. */
#include "sim/export_private.h"

#include <stdlib.h>
#include <string.h>

#include "sim/compute.h"
#include "sim/model_private.h"

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "out of memory for the export of a design");
}

int32_t sim__export_class(sim_export *x, const sim__class *wanted)
{
    for (size_t i = 0; i < x->n_classes; i++) {
        const sim__class *c = &x->classes[i];

        if (c->axes == wanted->axes && c->part == wanted->part &&
            c->part_stride == wanted->part_stride && c->dim == wanted->dim && c->n == wanted->n &&
            c->stride == wanted->stride)
            return (int32_t)i;
    }
    if (x->n_classes == SIM__EXPORT_MOST_CLASSES)
        return -1;
    x->classes[x->n_classes] = *wanted;
    x->classes[x->n_classes].size =
        (uint32_t)sim__class_members(x, &x->classes[x->n_classes], -1, NULL);
    return (int32_t)x->n_classes++;
}

/* ---- recording ---- */

/* Behaviour that the nodes of a trace cannot carry. */
static cs_status check_config(const sim_config *config, cs_error *err)
{
    const struct {
        bool odd;
        const char *rule;
    } rules[] = {{config->behaviour.overlap == 0, "workload.overlap must be 1"},
                 {config->behaviour.p2p_overlap == 0, "workload.p2p_overlap must be 1"},
                 {config->behaviour.slow_stage != 0, "workload.slow_stage must be 0"},
                 {config->compute.jitter > 0, "compute.jitter must be 0"},
                 {config->compute.interference > 0, "compute.interference must be 0"},
                 {config->compute.tp_overlap > 0, "compute.tp_overlap must be 0"}};

    for (size_t i = 0; i < CS_COUNT(rules); i++)
        if (rules[i].odd)
            return cs_fail(err, CS_EINVAL, "export: %s; a trace cannot say otherwise",
                           rules[i].rule);
    return CS_OK;
}

static cs_status keep_names(sim_export *x, const wl_program *program, size_t n, cs_error *err)
{
    if (n <= x->n_ops)
        return CS_OK;
    x->op_name = cs_arena_alloc(x->arena, n * sizeof *x->op_name);
    if (x->op_name == NULL)
        return no_memory(err);
    for (size_t i = 0; i < n; i++) {
        x->op_name[i] = cs_arena_strdup(x->arena, program->op_names[i]);
        if (x->op_name[i] == NULL)
            return no_memory(err);
    }
    x->n_ops = n;
    return CS_OK;
}

static size_t count_names(const wl_pass *pass, size_t n)
{
    for (size_t i = 0; i < pass->n; i++)
        if (pass->item[i].op >= 0 && (size_t)pass->item[i].op + 1 > n)
            n = (size_t)pass->item[i].op + 1;
    return n;
}

static bool overlaps(const wl_pass *pass)
{
    for (size_t i = 0; i < pass->n; i++)
        if (pass->item[i].overlapped)
            return true;
    return false;
}

/* Some of what the engine does has no form in a trace. */
static cs_status check_job(const sim_job *job, cs_error *err)
{
    if (job->network->scheduling != SIM_PROGRAM)
        return cs_fail(err, CS_EINVAL,
                       "export: collective.scheduling must be program; only that order can be "
                       "written down");
    for (size_t b = 0; b < job->program->n_blocks; b++)
        if (overlaps(&job->program->block[b].forward) || overlaps(&job->program->block[b].backward))
            return cs_fail(err, CS_EINVAL,
                           "export: ring attention overlaps inside an operator, which a trace "
                           "cannot say; choose workload.cp_form = gather");
    return CS_OK;
}

/* First call: what is the same for all passes. */
static cs_status begin(sim_export *x, const sim_job *job, cs_error *err)
{
    size_t names = 0;
    cs_status status;

    x->network = *job->network;
    x->mesh = *job->mesh;
    x->device = *job->device;
    x->boundary_bytes = job->program->boundary_bytes;
    x->peak = sim__device_peak(job->device, (wl_precision)job->config->precision);
    CS_TRY(check_job(job, err));
    CS_TRY(sim__layout_make(job->network, job->mesh, job->order, &x->layout, err));
    for (size_t b = 0; b < job->program->n_blocks; b++) {
        names = count_names(&job->program->block[b].forward, names);
        names = count_names(&job->program->block[b].backward, names);
        names = count_names(&job->program->block[b].backward_last, names);
    }
    x->n_stages = job->program->n_stages;
    for (size_t s = 0; s < x->n_stages; s++)
        names = count_names(&job->program->stage[s].update, names);
    CS_TRY(keep_names(x, job->program, names, err));
    x->stage = calloc(x->n_stages, sizeof *x->stage);
    x->timing = calloc(1, sizeof *x->timing);
    if (x->stage == NULL || x->timing == NULL)
        return no_memory(err);
    sim__timing_reset(x->timing, job);
    x->ready = true;
done:
    return status;
}

static void work_fini(sim__pass_work *w)
{
    if (w == NULL)
        return;
    for (int list = 0; list < 3; list++)
        free(w->listed[list]);
    free(w->entry);
    free(w->coll_of);
    free(w->value);
    free(w->mark);
    free(w);
}

/* Readies the work of the last pass for another; its arrays stay. */
static cs_status work_begin(sim_export *x, const sim_job *job, size_t stage,
                            const sim_context *context, cs_error *err)
{
    sim__pass_work *w = x->work;
    size_t items;

    w->x = x;
    w->job = job;
    w->stage = &x->stage[stage];
    w->context = *context;
    w->pass = sim__pass_of(job, context->self);
    w->start = w->stage->compute;
    w->err = err;
    w->n_colls = w->n_entries = w->urgent = w->merged_urgent = 0;
    memset(w->merged, 0, sizeof w->merged);
    memset(w->n_listed, 0, sizeof w->n_listed);
    items = w->pass != NULL ? w->pass->n : 0;
    if (items > w->cap_items) {
        free(w->coll_of);
        free(w->value);
        free(w->mark);
        w->mark = malloc(items * sizeof *w->mark);
        w->coll_of = malloc(items * sizeof *w->coll_of);
        w->value = malloc(items * sizeof *w->value);
        w->cap_items = w->coll_of != NULL && w->value != NULL && w->mark != NULL ? items : 0;
    }
    for (size_t i = 0; i < items && items <= w->cap_items; i++)
        w->value[i] = (sim__nodes){.n = 0};
    return items <= w->cap_items ? CS_OK : no_memory(err);
}

static cs_status export_pass(sim_export *x, const sim_job *job, size_t stage,
                             const sim_context *context, cs_error *err)
{
    cs_status status;

    CS_TRY(work_begin(x, job, stage, context, err));
    CS_TRY(sim__export_order(x->work));
    CS_TRY(sim__export_emit(x->work));
done:
    for (size_t i = 0; i < x->work->n_colls; i++)
        free(x->work->coll[i].chunk_at);
    return status;
}

/* A pass that needs gathered weights may run before any action of its stage. */
static cs_status on_passes(void *context, const sim_job *job, size_t stage, const sim_context *pass,
                           int64_t n, cs_error *err)
{
    sim_export *x = context;
    cs_status status = CS_OK;

    if (!x->ready)
        CS_TRY(begin(x, job, err));
    if (pass->self.kind == SIM_PASS_UPDATE) {
        x->stage[stage].input = x->stage[stage].reduced;
        sim__nodes_add(&x->stage[stage].input, x->stage[stage].compute);
    }
    for (int64_t i = 0; i < n; i++)
        CS_TRY(export_pass(x, job, stage, pass, err));
done:
    return status;
}

static cs_status take_value(sim_export *x, size_t stage, const sim_action *action, bool receives,
                            cs_error *err)
{
    sim__stage *s = &x->stage[stage];
    bool backward = action->kind != SIM_FORWARD;
    const sim__nodes none = {.n = 0};
    sim__node node = {.type = WL_NODE_RECV,
                      .name = SIM__NAME_RECV,
                      .bytes = x->boundary_bytes,
                      .to_next = backward,
                      .tag = (int32_t)(2 * s->taken[backward] + backward)};

    s->input = none;
    sim__nodes_add(&s->input, s->compute);
    if (!receives)
        return CS_OK;
    s->taken[backward]++;
    sim__nodes_add(&s->input, sim__export_node(s, &node, &none, &none));
    return s->n > 0 ? CS_OK : no_memory(err);
}

static cs_status on_action(void *context, const sim_job *job, size_t stage,
                           const sim_action *action, bool receives, cs_error *err)
{
    sim_export *x = context;
    cs_status status = x->ready ? CS_OK : begin(x, job, err);

    return status == CS_OK ? take_value(x, stage, action, receives, err) : status;
}

cs_status sim_export_create(const sim_model *model, const sim_config *config, sim_scratch *scratch,
                            const sim_export_options *options, sim_export **out, cs_error *err)
{
    sim_export *x = calloc(1, sizeof *x);
    const sim_recorder recorder = {x, on_passes, on_action};
    cs_status status = CS_OK;

    if (x == NULL)
        return no_memory(err);
    x->granularity = options->granularity;
    x->arena = cs_arena_create(0);
    x->work = calloc(1, sizeof *x->work);
    if (x->arena == NULL || x->work == NULL) {
        status = no_memory(err);
        goto done;
    }
    CS_TRY(check_config(config, err));
    CS_TRY(sim__record(model, options->workload, config, scratch, &recorder, err));
    free(x->timing);
    x->timing = NULL;
    work_fini(x->work);
    x->work = NULL;
    *out = x;
    x = NULL;
done:
    sim_export_destroy(x);
    return status;
}

void sim_export_destroy(sim_export *x)
{
    if (x == NULL)
        return;
    for (size_t s = 0; x->stage != NULL && s < x->n_stages; s++) {
        free(x->stage[s].node);
        free(x->stage[s].dep);
    }
    free(x->stage);
    free(x->timing);
    work_fini(x->work);
    cs_arena_destroy(x->arena);
    free(x);
}
