/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How many designs a second: uniformly drawn, fully simulated, nothing remembered between designs.
 */
#include "search/search_private.h"

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

static cs_status next(search__draws *draws, size_t n, cs_error *err)
{
    cs_status status = search__draws_next(draws, n);

    if (status == CS_OK)
        return CS_OK;
    return cs_fail(err, status, "%s",
                   status == CS_ENOMEM ? "out of memory" : "the space has no valid point");
}

cs_status search_bench(const search_problem *problem, double seconds, int jobs, uint64_t seed,
                       search_bench_result *out, cs_error *err)
{
    cs_status status = CS_OK;
    search__draws draws;
    search_bench_result result = {.jobs = jobs > 0 ? jobs : search_default_jobs()};
    size_t n;

    if (result.jobs > MOST_JOBS)
        result.jobs = MOST_JOBS;
    n = (size_t)result.jobs * PER_THREAD;
    CS_TRY(search__draws_init(&draws, problem, result.jobs, n, cs_rng_create(seed, 0, 0)));
    CS_TRY(next(&draws, 1, err));
    result.first_sample_s = search__now_s() - begun_s;
    const double start_s = search__now_s();
    do {
        CS_TRY(next(&draws, n, err));
        for (size_t i = 0; i < n; i++) {
            result.feasible += draws.trials[i].status == SEARCH_FEASIBLE;
            result.rejected += draws.trials[i].status != SEARCH_FEASIBLE;
        }
        result.wall_s = search__now_s() - start_s;
    } while (result.wall_s < seconds);
    result.evaluations_per_s = (double)result.feasible / result.wall_s;
    result.evaluations_per_s_per_core = result.evaluations_per_s / result.jobs;
    result.rejected_per_s = (double)result.rejected / result.wall_s;
    *out = result;
done:
    search__draws_fini(&draws);
    return status;
}
