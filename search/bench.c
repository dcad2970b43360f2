/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How many designs a second: uniformly drawn, fully simulated, nothing remembered between designs.
 */
#include "search/search_private.h"

#include <omp.h>
#include <stdlib.h>
#include <time.h>

enum { PER_THREAD = 64, MOST_JOBS = 1024 };

/* When the program began: the clock when its code was entered, less the processor time that
 * starting it had taken by then. */
static double begun_s;

__attribute__((constructor)) static void note_start(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    begun_s = search__now_s() - ((double)used.tv_sec + 1e-9 * (double)used.tv_nsec);
}

typedef struct {
    const search_problem *problem;
    cs_rng *rng;
    sim_scratch **scratch;
    int jobs;
    size_t n, n_vars;
    int32_t *points;
    search_trial *trials;
} bench;

static cs_status prepare(bench *b, uint64_t seed, cs_error *err)
{
    b->n = (size_t)b->jobs * PER_THREAD;
    b->n_vars = psa_space_n_vars(b->problem->space);
    b->rng = cs_rng_create(seed, 0, 0);
    b->scratch = calloc((size_t)b->jobs, sizeof(sim_scratch *));
    b->points = calloc(b->n * b->n_vars + 1, sizeof *b->points);
    b->trials = calloc(b->n, sizeof *b->trials);
    if (b->rng == NULL || b->scratch == NULL || b->points == NULL || b->trials == NULL)
        return cs_fail(err, CS_ENOMEM, "bench");
    for (int i = 0; i < b->jobs; i++)
        if ((b->scratch[i] = sim_scratch_create(b->problem->model)) == NULL)
            return cs_fail(err, CS_ENOMEM, "bench");
    return CS_OK;
}

static void bench_fini(bench *b)
{
    for (int i = 0; b->scratch != NULL && i < b->jobs; i++)
        sim_scratch_destroy(b->scratch[i]);
    free(b->scratch);
    free(b->points);
    free(b->trials);
    cs_rng_destroy(b->rng);
}

static cs_status draw(bench *b, cs_error *err)
{
    for (size_t i = 0; i < b->n; i++) {
        cs_status status = psa_space_sample(b->problem->space, b->rng, b->points + i * b->n_vars);
        if (status != CS_OK)
            return cs_fail(err, status, "the space has no valid point");
    }
    return CS_OK;
}

static void evaluate(bench *b)
{
#pragma omp parallel for schedule(dynamic) default(none) shared(b) num_threads(b->jobs)
    for (size_t i = 0; i < b->n; i++)
        search_evaluate(b->problem, b->points + i * b->n_vars, b->scratch[omp_get_thread_num()],
                        &b->trials[i]);
}

cs_status search_bench(const search_problem *problem, double seconds, int jobs, uint64_t seed,
                       search_bench_result *out, cs_error *err)
{
    cs_status status = CS_OK;
    bench b = {.problem = problem, .jobs = jobs > 0 ? jobs : search_default_jobs()};
    search_bench_result result = {0};

    if (b.jobs > MOST_JOBS)
        b.jobs = MOST_JOBS;
    result.jobs = b.jobs;
    CS_TRY(prepare(&b, seed, err));
    status = psa_space_sample(problem->space, b.rng, b.points);
    if (status != CS_OK) {
        cs_fail(err, status, "the space has no valid point");
        goto done;
    }
    result.first_sample_s = search__now_s() - begun_s;
    const double start_s = search__now_s();
    do {
        CS_TRY(draw(&b, err));
        evaluate(&b);
        for (size_t i = 0; i < b.n; i++) {
            result.feasible += b.trials[i].status == SEARCH_FEASIBLE;
            result.rejected += b.trials[i].status != SEARCH_FEASIBLE;
        }
        result.wall_s = search__now_s() - start_s;
    } while (result.wall_s < seconds);
    result.evaluations_per_s = (double)result.feasible / result.wall_s;
    result.evaluations_per_s_per_core = result.evaluations_per_s / result.jobs;
    result.rejected_per_s = (double)result.rejected / result.wall_s;
    *out = result;
done:
    bench_fini(&b);
    return status;
}
