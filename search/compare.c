/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Runs agents on problems, seed by seed.  Runs are spread over threads, one thread each; they
 * finish in rounds and are written in order, so the file of runs does not depend on the number of
 * threads. */
#include "search/compare.h"
#include "search/search_private.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND = 4 }; /* runs per thread and round */

/* Label of the run that visits every design of a problem. */
static const char exhaustive_label[] = "exhaustive";

typedef struct {
    const search_compare_options *options;
    search__suite suite;
    search__records records;
    search_compare_result *out;
    search_problem problem; /* the one being worked on */
    bool *maximize;
    int jobs;
    uint64_t total, done;
} comparison;

/* Follows one run. */
typedef struct {
    search__record record;
    bool maximize, failed;
    double best;
    /* Exhaustive runs keep every feasible value to count those near the optimum. */
    double *values;
    size_t n_values, capacity;
    uint64_t n;
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

static void follow(void *context, const search_trial *trial)
{
    follower *f = context;
    const double value = trial->objective[0];

    f->n++;
    if (trial->status != SEARCH_FEASIBLE)
        return;
    if (isnan(f->record.share_1))
        keep_value(f, value);
    if (f->record.n > 0 && (f->maximize ? value <= f->best : value >= f->best))
        return;
    f->best = value;
    if (search__record_improve(&f->record, trial->id, value) != CS_OK)
        f->failed = true;
}

static void count_near(follower *f)
{
    size_t near = 0;

    for (size_t i = 0; i < f->n_values; i++)
        near += fabs(f->values[i] / f->best - 1.0) <= 0.01;
    f->record.share_1 = f->n > 0 ? (double)near / (double)f->n : NAN;
}

/* One run into `record`; share_1 NAN on entry asks for the count of designs near the optimum. */
static cs_status run_one(const comparison *c, const search__suite_problem *p,
                         const search__suite_agent *a, uint64_t seed, int jobs,
                         search__record *record)
{
    cs_status status = CS_OK;
    const bool all = strcmp(a->label, exhaustive_label) == 0;
    search_outcome out = {0};
    follower f = {.maximize =
                      psa_schema_objective_maximize(c->problem.schema, c->problem.objective[0])};
    search_options options = {.agent = a->type,
                              .params = a->params,
                              .n_params = a->n_params,
                              .evaluations = all ? UINT64_MAX / 400 : c->suite.evaluations,
                              .seed = seed,
                              .jobs = jobs,
                              .stop = c->options->stop,
                              .on_trial = follow,
                              .progress_context = &f};

    f.record.share_1 = all ? NAN : 0.0;
    CS_TRY(search_run(&c->problem, &options, &out, NULL));
    if (out.stop == SEARCH_SIGNAL || f.failed) {
        status = f.failed ? CS_ENOMEM : CS_ESTOPPED;
        goto done;
    }
    if (all)
        count_near(&f);
    else
        f.record.share_1 = NAN;
    f.record.problem = strdup(p->label);
    f.record.agent = strdup(a->label);
    f.record.seed = seed;
    f.record.evaluations = all ? out.unique : c->suite.evaluations;
    f.record.proposals = out.proposals;
    f.record.agent_s = out.agent_s;
    if (f.record.problem == NULL || f.record.agent == NULL)
        status = CS_ENOMEM;
    *record = f.record;
    f.record = (search__record){0};
done:
    search__record_fini(&f.record);
    free(f.values);
    search_outcome_fini(&out);
    return status;
}

typedef struct {
    const search__suite_agent *agent;
    uint64_t seed;
    search__record record;
    cs_status status;
} task;

static void tick(comparison *c, uint64_t n)
{
    c->done += n;
    if (c->options->progress != NULL)
        c->options->progress(c->options->progress_context, c->done, c->total);
}

/* Runs a round of tasks side by side and keeps their records in order. */
static cs_status run_round(comparison *c, const search__suite_problem *p, task *tasks, size_t n,
                           cs_error *err)
{
    cs_status status = CS_OK;
    const int jobs = c->jobs;

#pragma omp parallel for schedule(dynamic) default(none) shared(c, p, tasks, n) num_threads(jobs)
    for (size_t i = 0; i < n; i++)
        tasks[i].status = run_one(c, p, tasks[i].agent, tasks[i].seed, 1, &tasks[i].record);

    for (size_t i = 0; i < n; i++) {
        if (tasks[i].status != CS_OK) {
            if (status == CS_OK)
                status = cs_fail(err, tasks[i].status, "%s on %s: %s", tasks[i].agent->label,
                                 p->label, cs_status_text(tasks[i].status));
            search__record_fini(&tasks[i].record);
            continue;
        }
        if (status == CS_OK)
            status = search__record_write(c->options->runs_path, &tasks[i].record, err);
        if (status == CS_OK)
            status = search__records_add(&c->records, &tasks[i].record, err);
        search__record_fini(&tasks[i].record);
        c->out->runs_done++;
    }
    tick(c, n);
    return status;
}

static cs_status find_optimum(comparison *c, const search__suite_problem *p, cs_error *err)
{
    static const search__suite_agent exhaustive = {.label = exhaustive_label};
    search__suite_agent a = exhaustive;
    cs_status status = CS_OK;
    search__record record = {0};

    if (p->optimum != SEARCH__EXHAUSTIVE)
        return CS_OK;
    for (size_t i = 0; i < c->records.n; i++)
        if (strcmp(c->records.list[i].agent, exhaustive_label) == 0 &&
            strcmp(c->records.list[i].problem, p->label) == 0)
            return CS_OK;
    CS_TRY(agent_find(exhaustive_label, &a.type, err));
    status = run_one(c, p, &a, 0, c->jobs, &record);
    if (status != CS_OK) {
        cs_fail(err, status, "exhaustive search of %s: %s", p->label, cs_status_text(status));
        goto done;
    }
    CS_TRY(search__record_write(c->options->runs_path, &record, err));
    CS_TRY(search__records_add(&c->records, &record, err));
done:
    search__record_fini(&record);
    return status;
}

static cs_status run_problem(comparison *c, size_t index, cs_error *err)
{
    const search__suite_problem *p = &c->suite.problems[index];
    const search_problem_options options = {.psa_path = p->psa,
                                            .stacks = p->n_stacks > 0 ? p->stacks : NULL,
                                            .n_stacks = p->n_stacks,
                                            .fixes = p->fixes,
                                            .n_fixes = p->n_fixes,
                                            .objectives = p->objective};
    const size_t round = (size_t)(ROUND * c->jobs);
    cs_status status = CS_OK;
    task *tasks = calloc(round, sizeof *tasks);
    size_t n = 0;

    if (tasks == NULL)
        return cs_fail(err, CS_ENOMEM, "comparison");
    CS_TRY(search_problem_load(&options, &c->problem, err));
    c->maximize[index] = psa_schema_objective_maximize(c->problem.schema, c->problem.objective[0]);
    cs_u128_text(psa_space_valid_points(c->problem.space), c->out->problems[index].valid_points);
    CS_TRY(find_optimum(c, p, err));
    for (size_t a = 0; a < c->suite.n_agents; a++)
        for (uint64_t seed = 1; seed <= c->suite.seeds; seed++) {
            const search__suite_agent *who = &c->suite.agents[a];
            if (search__records_find(&c->records, p->label, who->label, seed,
                                     c->suite.evaluations) != NULL) {
                c->out->runs_kept++;
                tick(c, 1);
                continue;
            }
            tasks[n++] = (task){.agent = who, .seed = seed};
            if (n < round)
                continue;
            CS_TRY(run_round(c, p, tasks, n, err));
            n = 0;
        }
    if (n > 0)
        CS_TRY(run_round(c, p, tasks, n, err));
done:
    free(tasks);
    search_problem_fini(&c->problem);
    return status;
}

cs_status search_compare(const search_compare_options *options, search_compare_result *out,
                         cs_error *err)
{
    cs_status status = CS_OK;
    comparison c = {.options = options, .out = out};

    *out = (search_compare_result){0};
    c.jobs = options->jobs > 0 ? options->jobs : search_default_jobs();
    CS_TRY(search__suite_load(options->suite_path, &c.suite, err));
    CS_TRY(search__records_read(options->runs_path, &c.records, err));
    c.total = c.suite.n_problems * c.suite.n_agents * c.suite.seeds;
    c.maximize = calloc(c.suite.n_problems, sizeof *c.maximize);
    out->problems = calloc(c.suite.n_problems, sizeof *out->problems);
    out->name = strdup(c.suite.name);
    if (c.maximize == NULL || out->problems == NULL || out->name == NULL) {
        status = cs_fail(err, CS_ENOMEM, "comparison");
        goto done;
    }
    out->n_problems = c.suite.n_problems;
    for (size_t i = 0; i < c.suite.n_problems; i++)
        CS_TRY(run_problem(&c, i, err));
    CS_TRY(search__compare_tables(&c.suite, &c.records, c.maximize, out, err));
done:
    search__records_fini(&c.records);
    search__suite_fini(&c.suite);
    free(c.maximize);
    if (status != CS_OK)
        search_compare_fini(out);
    return status;
}

void search_compare_fini(search_compare_result *result)
{
    cs_arena_destroy(result->storage);
    free(result->name);
    free(result->problems);
    free(result->rows);
    *result = (search_compare_result){0};
}
