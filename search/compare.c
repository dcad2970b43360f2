/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Runs agents on problems, seed by seed.  Runs are spread over threads, one thread each; they
 * finish in rounds and are written in order, so the file of runs does not depend on the number of
 * threads. */
#include "search/compare.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND = 4 }; /* runs per thread and round */

typedef struct {
    const search_compare_options *options;
    search__suite suite;
    search__records records;
    search_compare_result *out;
    bool *maximize;
    int jobs;
    uint64_t total, done;
    /* The problem being worked on, and the runs of the next round. */
    const search__suite_problem *what;
    size_t index;
    search_problem problem;
    search__task *tasks;
    size_t n, round;
} comparison;

static void tick(comparison *c, uint64_t n)
{
    c->done = c->done + n < c->total ? c->done + n : c->total;
    if (c->options->progress != NULL)
        c->options->progress(c->options->progress_context, c->done, c->total);
}

/* Writes a finished run and keeps it; the list then owns it. */
static cs_status keep(comparison *c, search__record *record, cs_error *err)
{
    cs_status status = CS_OK;

    CS_TRY(search__record_write(c->options->runs_path, record, err));
    CS_TRY(search__records_add(&c->records, record, err));
done:
    search__record_fini(record);
    return status;
}

/* Runs the tasks of a round side by side and keeps their records in order. */
static cs_status run_round(comparison *c, cs_error *err)
{
    cs_status status = CS_OK;
    const size_t n = c->n;
    search__record *records = calloc(n + 1, sizeof *records);
    cs_status *statuses = calloc(n + 1, sizeof *statuses);

    if (records == NULL || statuses == NULL) {
        status = cs_fail(err, CS_ENOMEM, "comparison");
        goto done;
    }
#pragma omp parallel for schedule(dynamic) default(none) shared(c, n, records, statuses)           \
    num_threads(c->jobs)
    for (size_t i = 0; i < n; i++)
        statuses[i] = search__task_run(&c->tasks[i], &records[i]);

    for (size_t i = 0; i < n; i++) {
        if (status == CS_OK && statuses[i] != CS_OK)
            status = cs_fail(err, statuses[i], "%s on %s: %s", c->tasks[i].who->label,
                             c->what->label, cs_status_text(statuses[i]));
        if (statuses[i] == CS_OK && status == CS_OK)
            status = keep(c, &records[i], err);
        search__record_fini(&records[i]);
    }
    c->out->runs_done += n;
    tick(c, n);
done:
    c->n = 0;
    free(records);
    free(statuses);
    return status;
}

static search__task task_of(comparison *c)
{
    return (search__task){
        .problem = &c->problem, .label = c->what->label, .jobs = 1, .stop = c->options->stop};
}

static cs_status add_task(comparison *c, const search__task *task, cs_error *err)
{
    c->tasks[c->n++] = *task;
    return c->n == c->round ? run_round(c, err) : CS_OK;
}

/* ---- what is known of a problem ---- */

static cs_status enumerate(comparison *c, cs_error *err)
{
    cs_status status = CS_OK;
    search__record record = {0};
    search__task task = task_of(c);

    for (size_t i = 0; i < c->records.n; i++)
        if (strcmp(c->records.list[i].agent, SEARCH__EXHAUSTIVE_LABEL) == 0 &&
            strcmp(c->records.list[i].problem, c->what->label) == 0)
            return CS_OK;
    task.jobs = c->jobs;
    status = search__task_exhaustive(&task, &record);
    if (status != CS_OK)
        return cs_fail(err, status, "exhaustive search of %s: %s", c->what->label,
                       cs_status_text(status));
    return keep(c, &record, err);
}

/* The long runs that come first. */
static cs_status run_references(comparison *c, cs_error *err)
{
    cs_status status = CS_OK;
    search__task task = task_of(c);

    task.evaluations = c->suite.reference_evaluations;
    for (size_t a = 0; a < c->suite.n_references; a++)
        for (task.seed = 1; task.seed <= c->suite.reference_seeds; task.seed++) {
            task.who = &c->suite.references[a];
            if (search__records_find(&c->records, task.label, task.who->label, task.seed,
                                     task.evaluations) == NULL)
                CS_TRY(add_task(c, &task, err));
        }
    if (c->n > 0)
        CS_TRY(run_round(c, err));
done:
    return status;
}

static cs_status draw_uniformly(comparison *c, cs_error *err)
{
    cs_status status = CS_OK;
    search__record record = {0};
    search__task task = task_of(c);
    const bool maximize = c->maximize[c->index];

    task.evaluations = c->what->uniform_draws > 0 ? c->what->uniform_draws : c->suite.uniform_draws;
    if (c->what->optimum == SEARCH__EXHAUSTIVE || task.evaluations == 0)
        return CS_OK;
    task.jobs = c->jobs;
    task.optimum = c->what->optimum == SEARCH__STATED
                       ? c->what->stated
                       : search__records_best(&c->records, task.label, maximize, 0);
    for (size_t i = 0; i < c->records.n; i++) {
        const search__record *r = &c->records.list[i];
        if (strcmp(r->agent, SEARCH__UNIFORM_LABEL) == 0 && strcmp(r->problem, task.label) == 0 &&
            r->optimum == task.optimum &&
            (r->hits >= SEARCH__ENOUGH_HITS || r->evaluations >= task.evaluations))
            return CS_OK;
    }
    status = isnan(task.optimum) ? CS_EINFEASIBLE : search__task_uniform(&task, &record);
    if (status != CS_OK)
        return cs_fail(err, status, "uniform draws of %s: %s", task.label, cs_status_text(status));
    return keep(c, &record, err);
}

/* ---- the agents ---- */

/* Value that runs of this pass stop near.  The first pass knows only what was found before it, so
 * that a resumed comparison stops where an uninterrupted one would. */
static double stop_value(const comparison *c, bool first)
{
    const bool maximize = c->maximize[c->index], known = c->what->optimum == SEARCH__BEST_KNOWN;

    if (c->what->optimum == SEARCH__STATED)
        return c->what->stated;
    return search__records_best(&c->records, c->what->label, maximize,
                                first && known ? c->suite.reference_evaluations : 0);
}

/* A run that stopped early stands as long as it is near the optimum. */
static bool stands(const comparison *c, const search__record *r, double optimum)
{
    return r != NULL &&
           (!r->stopped || (c->suite.stop_within > 0.0 &&
                            search__near(r->value[r->n - 1], optimum, c->suite.stop_within,
                                         c->maximize[c->index])));
}

/* Makes the runs that are missing; *made is their number. */
static cs_status run_pass(comparison *c, bool first, size_t *made, cs_error *err)
{
    cs_status status = CS_OK;
    search__task task = task_of(c);

    *made = 0;
    task.evaluations = c->suite.evaluations;
    task.stop_within = c->suite.stop_within;
    task.optimum = task.stop_within > 0.0 ? stop_value(c, first) : NAN;
    for (size_t a = 0; a < c->suite.n_agents; a++)
        for (task.seed = 1; task.seed <= c->suite.seeds; task.seed++) {
            task.who = &c->suite.agents[a];
            if (stands(c,
                       search__records_find(&c->records, task.label, task.who->label, task.seed,
                                            task.evaluations),
                       task.optimum)) {
                c->out->runs_kept += first;
                tick(c, first);
                continue;
            }
            ++*made;
            CS_TRY(add_task(c, &task, err));
        }
    if (c->n > 0)
        CS_TRY(run_round(c, err));
done:
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
    cs_status status = CS_OK;
    bool first = true;
    size_t made;

    c->what = p;
    c->index = index;
    CS_TRY(search_problem_load(&options, &c->problem, err));
    c->maximize[index] = psa_schema_objective_maximize(c->problem.schema, c->problem.objective[0]);
    cs_u128_text(psa_space_valid_points(c->problem.space), c->out->problems[index].valid_points);
    if (p->optimum == SEARCH__EXHAUSTIVE)
        CS_TRY(enumerate(c, err));
    if (p->optimum == SEARCH__BEST_KNOWN)
        CS_TRY(run_references(c, err));
    do {
        CS_TRY(run_pass(c, first, &made, err));
        first = false;
    } while (made > 0);
    CS_TRY(draw_uniformly(c, err));
done:
    search_problem_fini(&c->problem);
    return status;
}

static cs_status prepare(comparison *c, cs_error *err)
{
    cs_status status = CS_OK;
    const search_compare_options *o = c->options;
    search_compare_result *out = c->out;

    c->jobs = o->jobs > 0 ? o->jobs : search_default_jobs();
    c->round = (size_t)(ROUND * c->jobs);
    CS_TRY(search__suite_load(o->suite_path, &c->suite, err));
    CS_TRY(search__records_read(o->runs_path, &c->records, err));
    c->total = c->suite.n_problems * c->suite.n_agents * c->suite.seeds;
    for (size_t i = 0; i < c->suite.n_problems; i++)
        if (c->suite.problems[i].optimum == SEARCH__BEST_KNOWN)
            c->total += c->suite.n_references * c->suite.reference_seeds;
    c->maximize = calloc(c->suite.n_problems, sizeof *c->maximize);
    c->tasks = calloc(c->round, sizeof *c->tasks);
    out->problems = calloc(c->suite.n_problems, sizeof *out->problems);
    out->name = strdup(c->suite.name);
    if (c->maximize == NULL || c->tasks == NULL || out->problems == NULL || out->name == NULL)
        return cs_fail(err, CS_ENOMEM, "comparison");
    out->n_problems = c->suite.n_problems;
    out->stop_within = c->suite.stop_within;
done:
    return status;
}

cs_status search_compare(const search_compare_options *options, search_compare_result *out,
                         cs_error *err)
{
    cs_status status = CS_OK;
    comparison c = {.options = options, .out = out};

    *out = (search_compare_result){0};
    CS_TRY(prepare(&c, err));
    for (size_t i = 0; i < c.suite.n_problems; i++)
        CS_TRY(run_problem(&c, i, err));
    CS_TRY(search__compare_tables(&c.suite, &c.records, c.maximize, out, err));
done:
    search__records_fini(&c.records);
    search__suite_fini(&c.suite);
    free(c.maximize);
    free(c.tasks);
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
