/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One run of a comparison: an agent's, every design, or uniform draws. */
#include "search/compare.h"
#include "search/search_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Share of designs near the optimum: how near, and draws at once. */
#define NEAR 0.01
enum { CHUNK = 4096 };

/* Follows one run. */
typedef struct {
    const search__task *task;
    search__record record;
    bool maximize, failed;
    volatile int stop; /* the caller's signal, or 1 when the run is near enough */
    /* Exhaustive runs keep every feasible value to count those near the optimum. */
    bool keeps;
    double *values;
    size_t n_values, capacity;
} follower;

static void keep_value(follower *f, double value)
{
    double *values = cs_room(f->values, &f->capacity, f->n_values + 1, sizeof *values);

    if (values == NULL) {
        f->failed = true;
        return;
    }
    f->values = values;
    f->values[f->n_values++] = value;
}

static bool better(const follower *f, double value)
{
    const search__record *r = &f->record;

    return r->n == 0 || (f->maximize ? value > r->value[r->n - 1] : value < r->value[r->n - 1]);
}

static void follow(void *context, const search_trial *trial)
{
    follower *f = context;
    const search__task *task = f->task;
    const double value = trial->objective[0];

    if (task->stop != NULL && *task->stop != 0)
        f->stop = *task->stop;
    if (trial->status != SEARCH_FEASIBLE || f->record.stopped)
        return;
    if (f->keeps)
        keep_value(f, value);
    if (!better(f, value))
        return;
    if (search__record_improve(&f->record, trial->id, value) != CS_OK)
        f->failed = true;
    if (task->stop_within > 0.0 &&
        search__near(value, task->optimum, task->stop_within, f->maximize)) {
        f->record.stopped = true;
        f->stop = 1;
    }
}

static follower start(const search__task *task)
{
    const search_problem *p = task->problem;

    return (follower){.task = task,
                      .maximize = psa_schema_objective_maximize(p->schema, p->objective[0]),
                      .record = {.seed = task->seed, .share_1 = NAN, .optimum = NAN}};
}

/* Hands over the finished record. */
static cs_status finish(follower *f, const char *agent_, search__record *out)
{
    f->record.problem = strdup(f->task->label);
    f->record.agent = strdup(agent_);
    if (f->record.problem == NULL || f->record.agent == NULL || f->failed)
        return CS_ENOMEM;
    *out = f->record;
    f->record = (search__record){0};
    return CS_OK;
}

static cs_status run(follower *f, const search__suite_agent *who, uint64_t evaluations,
                     search_outcome *out)
{
    const search__task *task = f->task;
    const search_options options = {.agent = who->type,
                                    .params = who->params,
                                    .n_params = who->n_params,
                                    .evaluations = evaluations,
                                    .seed = task->seed,
                                    .jobs = task->jobs,
                                    .stop = &f->stop,
                                    .on_trial = follow,
                                    .progress_context = f};
    cs_status status = CS_OK;

    if (task->stop != NULL)
        f->stop = *task->stop;
    CS_TRY(search_run(task->problem, &options, out, NULL));
    if (out->stop == SEARCH_SIGNAL && !f->record.stopped)
        status = CS_ESTOPPED;
    f->record.proposals = out->proposals;
    f->record.agent_s = out->agent_s;
done:
    return status;
}

cs_status search__task_run(const search__task *task, search__record *out)
{
    cs_status status = CS_OK;
    search_outcome outcome = {0};
    follower f = start(task);

    f.record.evaluations = task->evaluations;
    CS_TRY(run(&f, task->who, task->evaluations, &outcome));
    CS_TRY(finish(&f, task->who->label, out));
done:
    search__record_fini(&f.record);
    search_outcome_fini(&outcome);
    return status;
}

cs_status search__task_exhaustive(const search__task *task, search__record *out)
{
    cs_status status = CS_OK;
    search__suite_agent who = {.label = SEARCH__EXHAUSTIVE_LABEL};
    search_outcome outcome = {0};
    follower f = start(task);
    size_t near = 0;

    f.keeps = true;
    f.record.seed = 0;
    CS_TRY(agent_find("exhaustive", &who.type, NULL));
    CS_TRY(run(&f, &who, UINT64_MAX / 400, &outcome));
    for (size_t i = 0; i < f.n_values && !f.failed; i++)
        near += search__near(f.values[i], f.record.value[f.record.n - 1], NEAR, f.maximize);
    f.record.evaluations = outcome.unique;
    f.record.share_1 = outcome.unique > 0 ? (double)near / (double)outcome.unique : NAN;
    CS_TRY(finish(&f, who.label, out));
done:
    search__record_fini(&f.record);
    free(f.values);
    search_outcome_fini(&outcome);
    return status;
}

/* Takes up `n` drawn values in order. */
static void count_hits(follower *f, const search_trial *trials, size_t n)
{
    search__record *r = &f->record;

    for (size_t i = 0; i < n; i++) {
        const double value = trials[i].objective[0];
        r->evaluations++;
        if (trials[i].status != SEARCH_FEASIBLE)
            continue;
        if (better(f, value) && search__record_improve(r, r->evaluations, value) != CS_OK)
            f->failed = true;
        r->hits += search__near(value, r->optimum, NEAR, f->maximize);
    }
}

cs_status search__task_uniform(const search__task *task, search__record *out)
{
    cs_status status = CS_OK;
    follower f = start(task);
    search__draws draws;

    f.record.optimum = task->optimum;
    CS_TRY(search__draws_init(&draws, task->problem, task->jobs, CHUNK,
                              cs_rng_create(task->seed, CHUNK, 0)));
    while (f.record.evaluations < task->evaluations && f.record.hits < SEARCH__ENOUGH_HITS) {
        const uint64_t left = task->evaluations - f.record.evaluations;
        const size_t n = left < CHUNK ? (size_t)left : CHUNK;
        if (task->stop != NULL && *task->stop != 0) {
            status = CS_ESTOPPED;
            goto done;
        }
        CS_TRY(search__draws_next(&draws, n));
        count_hits(&f, draws.trials, n);
    }
    CS_TRY(finish(&f, SEARCH__UNIFORM_LABEL, out));
done:
    search__record_fini(&f.record);
    search__draws_fini(&draws);
    return status;
}
