/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A search problem of which one file is hostile, used as `run` and `simulate` would. */
#ifndef FUZZ_PROBLEM_H
#define FUZZ_PROBLEM_H

#include "search/search.h"
#include "tests/fuzz/files.h"

#define FUZZ_PSA                                                                                   \
    "psa: 1\nname: fuzz\nworkloads:\n"                                                             \
    "  - {model: model.yaml, mode: train, global_batch: 8, sequence: 64}\n"                        \
    "system: system.yaml\nallow_idle: true\nuneven_stages: true\nmemory_limit: off\n"              \
    "knobs: {workload.dp: [1, 2, 4, 8], workload.tp: [1, 2], workload.pp: [1, 2]}\n"               \
    "objectives: {latency: {minimize: latency}}\n"

static inline void fuzz_use(const search_problem *problem)
{
    sim_scratch *scratch = sim_scratch_create(problem->model);
    int32_t *point = calloc(psa_space_n_vars(problem->space) + 1, sizeof *point);
    cs_rng *rng = cs_rng_create(1, 2, 3);
    search_trial trial = {.point = point};
    sim_config config;

    if (scratch == NULL || point == NULL || rng == NULL)
        abort();
    psa_schema_baseline(problem->schema, &config);
    (void)!search_evaluate_config(problem, &config, scratch, &trial);
    for (int i = 0; i < 4 && psa_space_sample(problem->space, rng, point) == CS_OK; i++)
        (void)!search_evaluate(problem, point, scratch, &trial);
    cs_rng_destroy(rng);
    free(point);
    sim_scratch_destroy(scratch);
}

/* Takes over `files`, which hold psa.yaml and all that it names. */
static inline void fuzz_problem(cs_files *files)
{
    const search_problem_options options = {.psa_path = "psa.yaml"};
    search_problem problem;
    cs_error err;

    cs_files_stand_in(files);
    if (search_problem_load(&options, &problem, &err) == CS_OK) {
        fuzz_use(&problem);
        search_problem_fini(&problem);
    }
    cs_files_stand_in(NULL);
    cs_files_destroy(files);
}

#endif
