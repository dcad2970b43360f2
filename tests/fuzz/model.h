/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Bytes as the model of a problem. */
#ifndef FUZZ_MODEL_H
#define FUZZ_MODEL_H

#include "tests/fuzz/problem.h"

static inline void fuzz_summarize(const char *text, size_t n)
{
    cs_arena *arena = cs_arena_create(0);
    wl_model *model = NULL;
    wl_summary summary;
    cs_error err;

    if (wl_model_parse(text, n, "model.yaml", &model, &err) == CS_OK)
        (void)!wl_model_summary(model, 2, 128, arena, &summary, &err);
    wl_model_destroy(model);
    cs_arena_destroy(arena);
}

static inline void fuzz_model(const uint8_t *data, size_t size)
{
    cs_files *files = cs_files_create();

    fuzz_summarize((const char *)data, size);
    fuzz_put(files, "psa.yaml", FUZZ_PSA, sizeof FUZZ_PSA - 1);
    fuzz_put(files, "model.yaml", data, size);
    fuzz_put_file(files, "system.yaml", "configs/systems/ring-8.yaml");
    fuzz_put_file(files, "../devices/h100-sxm.yaml", "configs/devices/h100-sxm.yaml");
    fuzz_problem(files);
}

#endif
