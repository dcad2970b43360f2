/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Loading a job: the ranks are read in waves, in parallel, and joined in rank order, so that the
 * result does not depend on threads. */
#include "workloads/trace_private.h"

#include <stdlib.h>

enum { WAVE = 64, MOST_IN_WAVE = 512, SMALL_WAVE = 1 << 18 };

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "out of memory while loading a trace");
}

/* ---- loading ---- */

static void fill_part(wl__part *part, const wl__wave *wave, size_t i, wl__builder *b)
{
    const wl__rank_file *file = &wave->file[i];

    part->status = wl__part_init(part, file, &b->options, wave->alone ? b->trace->owner : NULL);
    if (part->status == CS_OK) {
        cs_error err = {.text = ""};

        part->status = wave->fill(part, wave->context, &err);
        part->err = err;
    } else {
        cs_fail(&part->err, CS_ENOMEM, "%s: out of memory", file->path);
    }
}

/* Adds filled parts in order; the lowest failing rank decides. */
static cs_status join_parts(wl__builder *b, wl__wave *wave, wl__part *part, cs_error *err)
{
    cs_status status = CS_OK;

    for (size_t i = 0; i < wave->n; i++) {
        if (part[i].status != CS_OK) {
            if (err != NULL)
                *err = part[i].err;
            return part[i].status;
        }
        if (part[i].ctrl_broken && b->options.ctrl == WL_CTRL_AUTO && b->ctrl) {
            wave->restart = b->trace->n_ranks > 0;
            b->ctrl = false;
        }
    }
    for (size_t i = 0; i < wave->n && status == CS_OK && !wave->restart; i++)
        status = wl__builder_add(b, &part[i], err);
    return status;
}

cs_status wl__load_wave(wl__builder *b, wl__wave *wave, cs_error *err)
{
    size_t n = wave->n;
    wl__part *part = calloc(n, sizeof *part);
    cs_status status;

    if (part == NULL)
        return no_memory(err);
#pragma omp parallel for schedule(dynamic) default(none) shared(n, part, wave, b) if (!wave->small)
    for (size_t i = 0; i < n; i++)
        fill_part(&part[i], wave, i, b);
    status = join_parts(b, wave, part, err);
    wave->bytes = 0;
    for (size_t i = 0; i < n; i++) {
        wave->bytes += part[i].head.file_bytes;
        wl__part_fini(&part[i]);
    }
    free(part);
    return status;
}

static cs_status fill_from_file(wl__part *part, const void *context, cs_error *err)
{
    (void)context;
    return wl__part_read(part, err);
}

/* How many ranks come next: files of a few nodes in long waves, on one thread, since a thread that
 * waits costs more than they do. */
static void plan_wave(wl__wave *wave, size_t left)
{
    if (wave->n == 0)
        wave->n = WAVE;
    else if (wave->bytes < SMALL_WAVE && wave->n < MOST_IN_WAVE)
        wave->n *= 2;
    wave->small = wave->bytes > 0 && wave->bytes < SMALL_WAVE;
    wave->n = wave->n < left ? wave->n : left;
}

static cs_status load_set(const wl__set *set, const wl_trace_options *options, bool ctrl,
                          wl_trace **out, bool *restart, cs_error *err)
{
    wl__builder *b = NULL;
    const char *groups = options->group_file != NULL ? options->group_file : set->group_file;
    wl__wave wave = {.fill = fill_from_file, .alone = set->n == 1};
    cs_status status = wl__builder_create(options, &b, err);

    if (status != CS_OK)
        return status;
    b->ctrl = b->ctrl && ctrl;
    b->ctrl_broken = !ctrl;
    b->excerpt = set->excerpt;
    if (groups != NULL && !options->custom)
        CS_TRY(wl__builder_groups(b, groups, err));
    for (size_t i = 0; i < set->n && !wave.restart; i += wave.n) {
        wave.file = set->file + i;
        plan_wave(&wave, set->n - i);
        CS_TRY(wl__load_wave(b, &wave, err));
    }
    if (!wave.restart)
        status = wl__builder_finish(b, out, err);
    *restart = wave.restart;
done:
    wl__builder_destroy(b);
    return status;
}

cs_status wl_trace_load(const char *path, const wl_trace_options *options, wl_trace **out,
                        cs_error *err)
{
    wl_trace_options defaults = {0};
    wl__set set;
    bool restart = false;
    cs_status status = wl__set_find(path, &set, err);

    if (status != CS_OK)
        return status;
    if (options == NULL)
        options = &defaults;
    if (set.text || options->schema == WL_SCHEMA_TEXT) {
        status = wl__text_load(set.file[0].path, options, out, err);
    } else {
        status = load_set(&set, options, true, out, &restart, err);
        if (status == CS_OK && restart) {
            restart = false;
            status = load_set(&set, options, false, out, &restart, err);
        }
    }
    wl__set_fini(&set);
    return status;
}

/* ---- small questions ---- */

const char *wl_trace_name(const wl_trace *trace, uint32_t node)
{
    return trace->names[trace->node[node].name];
}

uint32_t wl_trace_rank_of(const wl_trace *trace, uint32_t node)
{
    uint32_t low = 0, high = trace->n_ranks;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (trace->rank[middle].first <= node)
            low = middle;
        else
            high = middle;
    }
    return low;
}
