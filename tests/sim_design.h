/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Designs of a PSA given as text, for tests of the simulator. */
#ifndef SIM_DESIGN_H
#define SIM_DESIGN_H

#include "sim/sim.h"
#include "tests/test.h"

typedef struct {
    psa_schema *schema;
    sim_model *model;
    sim_scratch *scratch;
    sim_config config; /* the system's baseline, then what is set */
} design;

/* Opens a PSA given as text, as if it stood in configs/psa/. */
static inline void design_open(design *d, const char *psa)
{
    cs_error err = {""};
    psa_text text = {.name = "configs/psa/test.yaml", .psa = psa, .psa_length = strlen(psa)};

    memset(d, 0, sizeof *d);
    if (psa_schema_parse(&text, sim_tables(), &d->schema, &err) != CS_OK ||
        sim_model_create(d->schema, &d->model, &err) != CS_OK)
        fail_msg("%s", err.text);
    d->scratch = sim_scratch_create(d->model);
    assert_non_null(d->scratch);
    psa_schema_baseline(d->schema, &d->config);
}

static inline void design_close(design *d)
{
    sim_scratch_destroy(d->scratch);
    sim_model_destroy(d->model);
    psa_schema_destroy(d->schema);
}

/* "a=1 b=2": assignments parted by spaces. */
static inline void design_set(design *d, const char *assignments)
{
    char copy[1024];
    cs_error err = {""};

    snprintf(copy, sizeof copy, "%s", assignments);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        if (psa_schema_assign(d->schema, word, &d->config, &err) != CS_OK)
            fail_msg("%s: %s", word, err.text);
}

static inline sim_result design_run(design *d)
{
    cs_error err = {""};
    sim_result result;

    if (sim_evaluate(d->model, &d->config, d->scratch, &result, &err) != CS_OK)
        fail_msg("%s", err.text);
    return result;
}

static inline sim_result design_unroll(design *d)
{
    cs_error err = {""};
    sim_result result;

    if (sim_evaluate_unrolled(d->model, &d->config, d->scratch, &result, &err) != CS_OK)
        fail_msg("%s", err.text);
    return result;
}

/* One PSA, one result: `workloads` is the list's text, `settings` as for design_set. */
static inline sim_result design_once(const char *workloads, const char *system,
                                     const char *settings)
{
    char psa[2048];
    design d;
    sim_result result;

    snprintf(psa, sizeof psa,
             "psa: 1\nname: test\nworkloads: %s\nsystem: ../systems/%s.yaml\n"
             "knobs:\n  workload.pp: {values: [1]}\nobjectives: {latency: {minimize: latency}}\n",
             workloads, system);
    design_open(&d, psa);
    design_set(&d, settings);
    result = design_run(&d);
    design_close(&d);
    return result;
}

#endif
