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
    bool failed; /* a combination could not be computed */
} counting;

static bool fits(counting *c, const sim_config *config)
{
    sim_result result;

    c->found.tried++;
    if (sim_precheck(c->problem->model, config, c->scratch, &result, NULL) != CS_OK)
        c->failed = true;
    else if (result.verdict == SIM_FEASIBLE)
        return true;
    return false;
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

    if (chosen == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        chosen[i] = decides_memory(psa_space_knob_name(space, i));
    done = psa_space_combinations(space, &request, NULL) == CS_OK && !c->failed;
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

cli_feasibility cli_count_feasible(const search_problem *problem)
{
    counting c = {.problem = problem, .scratch = sim_scratch_create(problem->model)};

    c.found.share = NAN;
    if (c.scratch != NULL && psa_space_valid_points(problem->space) > 0 && !count_all(&c))
        estimate(&c);
    sim_scratch_destroy(c.scratch);
    return c.found;
}
