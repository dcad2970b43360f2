/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/feasible.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COMBINATIONS = 50000, SAMPLES = 2000 };

typedef struct {
    const search_problem *problem;
    sim_scratch *scratch;
    cli_feasibility found;
    bool failed;    /* a combination could not be computed */
    bool no_memory; /* because memory ran out */
} counting;

static bool fits(counting *c, const sim_config *config)
{
    sim_result result;
    const cs_status status = sim_precheck(c->problem->model, config, c->scratch, &result, NULL);

    c->found.tried++;
    c->failed = c->failed || status != CS_OK;
    c->no_memory = c->no_memory || status == CS_ENOMEM;
    return status == CS_OK && result.verdict == SIM_FEASIBLE;
}

static void count_combination(void *context, const void *config, unsigned __int128 points)
{
    counting *c = context;

    if (fits(c, config))
        c->found.fits += points;
}

/* Knobs that decide memory. */
static bool decides_memory(const char *knob)
{
    return strncmp(knob, "workload.", 9) == 0 || strncmp(knob, "compute.", 8) == 0;
}

static bool count_all(counting *c)
{
    const psa_space *space = c->problem->space;
    size_t n = psa_space_n_knobs(space);
    bool *chosen = calloc(n + 1, sizeof *chosen), done;
    const psa_combinations request = {chosen, MOST_COMBINATIONS, count_combination, c};
    cs_status status;

    if (chosen == NULL) {
        c->no_memory = true;
        return false;
    }
    for (size_t i = 0; i < n; i++)
        chosen[i] = decides_memory(psa_space_knob_name(space, i));
    status = psa_space_combinations(space, &request, NULL);
    done = status == CS_OK && !c->failed;
    c->no_memory = c->no_memory || status == CS_ENOMEM;
    free(chosen);
    c->found.exact = done;
    c->found.share = (double)c->found.fits / (double)psa_space_valid_points(c->problem->space);
    return done;
}

static void estimate(counting *c)
{
    const psa_space *space = c->problem->space;
    int32_t *point = calloc(psa_space_n_vars(space) + 1, sizeof *point);
    cs_rng *rng = cs_rng_create(1, 0, 0);
    size_t hits = 0;
    sim_config config;

    c->found = (cli_feasibility){.share = NAN};
    c->no_memory = point == NULL || rng == NULL;
    for (size_t i = 0; rng != NULL && point != NULL && i < SAMPLES; i++) {
        if (psa_space_sample(space, rng, point) != CS_OK)
            break;
        memset(&config, 0, sizeof config);
        psa_space_decode(space, point, &config);
        hits += fits(c, &config);
    }
    if (c->found.tried > 0)
        c->found.share = (double)hits / (double)c->found.tried;
    free(point);
    cs_rng_destroy(rng);
}

cs_status cli_count_feasible(const search_problem *problem, cli_feasibility *out, cs_error *err)
{
    counting c = {.problem = problem, .scratch = sim_scratch_create(problem->model)};

    c.found.share = NAN;
    c.no_memory = c.scratch == NULL;
    if (c.scratch != NULL && psa_space_valid_points(problem->space) > 0 && !count_all(&c) &&
        !c.no_memory)
        estimate(&c);
    sim_scratch_destroy(c.scratch);
    *out = c.found;
    return c.no_memory ? cs_fail(err, CS_ENOMEM, "counting feasible points") : CS_OK;
}
