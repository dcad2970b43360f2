/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the tests of workloads/ share: models by file, a plain configuration, sums over items. */
#ifndef WL_TEST_H
#define WL_TEST_H

#include "tests/test.h"
#include "workloads/workload.h"

#define MODELS "configs/models/"

static inline wl_model *model_load(const char *path)
{
    wl_model *model = NULL;
    cs_error err = {{0}};

    if (wl_model_load(path, &model, &err) != CS_OK)
        fail_msg("%s", err.text);
    return model;
}

static inline wl_model *model_parse(const char *text)
{
    wl_model *model = NULL;
    cs_error err = {{0}};

    if (wl_model_parse(text, strlen(text), "test.yaml", &model, &err) != CS_OK)
        fail_msg("%s", err.text);
    return model;
}

/* One NPU, bf16, flash attention, nothing recomputed. */
static inline wl_config plain_config(void)
{
    return (wl_config){.dp = 1,
                       .tp = 1,
                       .sp = 1,
                       .ep = 1,
                       .pp = 1,
                       .micro_batch = 1,
                       .virtual_stages = 1,
                       .recompute_every = 1,
                       .prefetch = 1,
                       .capacity_factor = 1,
                       .imbalance = 1,
                       .cp_balanced = 1,
                       .reshard = 1};
}

static inline wl_workload training(const wl_model *model, int64_t batch, int64_t sequence)
{
    return (wl_workload){
        .model = model, .global_batch = batch, .sequence = sequence, .output = 1, .weight = 1};
}

/* Builds into the arena; fails the test with the message otherwise. */
static inline const wl_program *program_build(const wl_workload *workload, const wl_config *config,
                                              cs_arena *arena)
{
    wl_program *program = NULL;
    cs_error err = {{0}};

    if (wl_program_build(workload, config, arena, &program, &err) != CS_OK)
        fail_msg("%s", err.text);
    return program;
}

static inline const wl_block *block_named(const wl_program *program, const char *name)
{
    for (size_t b = 0; b < program->n_blocks; b++)
        if (strcmp(program->block[b].name, name) == 0)
            return &program->block[b];
    fail_msg("no block %s", name);
    return NULL;
}

/* Bytes and number of a pass's collectives of one type over one group. */
static inline double collective_bytes(const wl_pass *pass, wl_collective type, wl_group group,
                                      int *n)
{
    double bytes = 0.0;

    *n = 0;
    for (size_t i = 0; i < pass->n; i++)
        if (pass->item[i].kind == WL_COMM && pass->item[i].collective == type &&
            pass->item[i].group == group) {
            bytes += pass->item[i].bytes;
            ++*n;
        }
    return bytes;
}

static inline double pass_flops(const wl_pass *pass)
{
    double flops = 0.0;

    for (size_t i = 0; i < pass->n; i++)
        if (pass->item[i].kind == WL_COMPUTE)
            flops += pass->item[i].flops;
    return flops;
}

/* Calls fn(stage, block) for all blocks of all stages, with the count of each segment. */
static inline double sum_over_blocks(const wl_program *program, double (*fn)(const wl_block *block))
{
    double sum = 0.0;

    for (size_t s = 0; s < program->n_stages; s++)
        for (size_t c = 0; c < program->stage[s].n_chunks; c++)
            for (size_t i = 0; i < program->stage[s].n_segments[c]; i++)
                sum += (double)program->stage[s].segment[c][i].count *
                       fn(&program->block[program->stage[s].segment[c][i].block]);
    return sum;
}

#endif
