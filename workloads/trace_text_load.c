/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A text workload as a trace in memory. */
#include "workloads/trace_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WAVE = 64 };
#define MOST_NODES ((uint64_t)1 << 26) /* some 7 GB in memory */

static cs_status fill_from_program(wl__part *part, const void *context, cs_error *err)
{
    const wl__text_program *program = context;
    cs_status status = CS_OK;

    part->head.schema = WL_SCHEMA_TEXT;
    part->head.metadata = true;
    for (size_t i = 0; i < program->n && status == CS_OK; i++) {
        uint64_t deps[4];
        int32_t involved[4];
        wl_et_plain plain;
        wl__plain_attrs attrs;
        wl_et_node node;

        wl__text_plain(program, i, part->head.rank, deps, involved, &plain);
        wl__plain_node(&plain, &attrs, &node);
        status = wl__part_add(part, &node, (int64_t)i, err);
    }
    return status == CS_OK ? wl__part_finish(part, err) : status;
}

static cs_status declare_groups(wl__builder *b, const wl__text_program *program, cs_error *err)
{
    for (size_t g = 0; g < program->n_groups; g++) {
        const wl_trace_group *group = &program->group[g];
        uint32_t *rank = cs_arena_alloc(b->trace->owner->arena, group->n * sizeof *rank);
        uint32_t number = wl__group_add(b->trace, group->name);

        if (rank == NULL || number == UINT32_MAX)
            return cs_fail(err, CS_ENOMEM, "out of memory while loading a text workload");
        memcpy(rank, group->rank, group->n * sizeof *rank);
        (void)wl__group_declare(b->trace, number, rank, group->n);
    }
    b->groups_given = true;
    return CS_OK;
}

static cs_status build(wl__builder *b, const char *path, const wl__text_program *program,
                       wl_trace **out, cs_error *err)
{
    wl__rank_file file[WAVE];
    wl__wave wave = {.fill = fill_from_program, .context = program, .file = file};
    size_t ranks = (size_t)program->ranks;
    char *name = strdup(path);
    cs_status status = name != NULL ? CS_OK : CS_ENOMEM;

    for (size_t at = 0; at < ranks && status == CS_OK; at += wave.n) {
        wave.n = ranks - at < WAVE ? ranks - at : WAVE;
        for (size_t i = 0; i < wave.n; i++)
            file[i] = (wl__rank_file){name, (uint32_t)(at + i)};
        status = wl__load_wave(b, &wave, err);
    }
    free(name);
    return status == CS_OK ? wl__builder_finish(b, out, err) : status;
}

static void warn_pipeline(wl__builder *b, const wl__text *text)
{
    if (text->pp > 1 && text->pp_comm > 0)
        wl__issue(&b->trace->owner->issues, WL_WARNING, WL_ISSUE_VALUE, (wl__place){text->path, -1},
                  "the rows are one pipeline stage: the %" PRId64
                  " bytes of pp_comm between stages and the bubble are not in them",
                  text->pp_comm);
}

cs_status wl__text_load(const char *path, const wl_trace_options *options, wl_trace **out,
                        cs_error *err)
{
    wl__text text;
    wl__text_program program = {0};
    wl__builder *b = NULL;
    cs_status status = wl__text_read(path, &text, err);

    if (status != CS_OK)
        return status;
    CS_TRY(wl__text_program_make(&text, options->job_ranks, options->passes, &program, err));
    if ((uint64_t)program.n * (uint64_t)program.ranks > MOST_NODES) {
        status = cs_fail(err, CS_EINVAL,
                         "%s: %zu nodes on each of %" PRId64
                         " NPUs are too many to hold; give a smaller number of NPUs",
                         path, program.n, program.ranks);
        goto done;
    }
    CS_TRY(wl__builder_create(options, &b, err));
    CS_TRY(declare_groups(b, &program, err));
    warn_pipeline(b, &text);
    CS_TRY(build(b, path, &program, out, err));
done:
    wl__builder_destroy(b);
    wl__text_program_fini(&program);
    wl__text_fini(&text);
    return status;
}
