/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "search/search_private.h"

#include <omp.h>
#include <stdlib.h>

cs_status search__draws_init(search__draws *d, const search_problem *problem, int jobs, size_t room,
                             cs_rng *rng)
{
    *d = (search__draws){.problem = problem,
                         .rng = rng,
                         .jobs = jobs,
                         .n_vars = psa_space_n_vars(problem->space),
                         .scratch = calloc((size_t)jobs, sizeof(sim_scratch *)),
                         .trials = calloc(room, sizeof(search_trial)),
                         .status = calloc(room, sizeof(cs_status))};
    d->points = calloc(room * d->n_vars + 1, sizeof *d->points);
    if (d->rng == NULL || d->scratch == NULL || d->trials == NULL || d->status == NULL ||
        d->points == NULL)
        return CS_ENOMEM;
    for (int i = 0; i < jobs; i++)
        if ((d->scratch[i] = sim_scratch_create(problem->model)) == NULL)
            return CS_ENOMEM;
    return CS_OK;
}

void search__draws_fini(search__draws *d)
{
    for (int i = 0; d->scratch != NULL && i < d->jobs; i++)
        sim_scratch_destroy(d->scratch[i]);
    free(d->scratch);
    free(d->points);
    free(d->trials);
    free(d->status);
    cs_rng_destroy(d->rng);
}

cs_status search__draws_next(search__draws *d, size_t n)
{
    cs_status status = CS_OK;

    for (size_t i = 0; i < n; i++) {
        d->trials[i].id = i + 1;
        d->trials[i].point = d->points + i * d->n_vars;
        CS_TRY(psa_space_sample(d->problem->space, d->rng, d->points + i * d->n_vars));
    }
#pragma omp parallel for schedule(dynamic) default(none) shared(d, n) num_threads(d->jobs)
    for (size_t i = 0; i < n; i++)
        d->status[i] = search_evaluate(d->problem, d->trials[i].point,
                                       d->scratch[omp_get_thread_num()], &d->trials[i]);
    for (size_t i = 0; i < n; i++)
        CS_TRY(d->status[i]);
done:
    return status;
}
