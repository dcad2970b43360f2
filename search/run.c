/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The loop: ask, evaluate, tell.  Batches are synchronous and told in ask order; each new design
 * gets its number in ask order; so neither threads nor a kill and resume change a digit.  A resumed
 * run starts from the agent's last snapshot and asks again: designs that the study already holds
 * are read from it instead of evaluated. */
#include "search/search_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ASKS_PER_EVALUATION = 200 };

typedef struct {
    const search_options *options;
    search__engine engine;
    agent *agent;
    double param[AGENT_MAX_PARAMS];
    int32_t *points;       /* batch x n_vars */
    agent_score *score;    /* batch */
    uint64_t snapshot_at;  /* trials at the last snapshot */
    size_t snapshot_bytes; /* its size */
} run;

static void run_fini(run *r)
{
    agent_destroy(r->agent);
    search__engine_fini(&r->engine);
    free(r->points);
    free(r->score);
}

static void report(void *context)
{
    const run *r = context;
    const search__engine *e = &r->engine;
    const search_outcome *out = e->out;
    search_progress p = {
        .done = out->unique,
        .budget = r->options->evaluations,
        .cache_hits = out->cache_hits,
        .infeasible = out->infeasible,
        .failed = out->failed,
        .wall_s = search__now_s() - e->start_s,
        .has_best = out->has_best,
        .best = out->has_best ? out->best.objective[0] : NAN,
        .bound = out->bound,
        .gap = out->gap,
    };

    p.evaluations_per_s = p.wall_s > 0 ? (double)out->unique / p.wall_s : 0;
    r->options->progress(r->options->progress_context, &p);
}

static void on_trial(void *context, const search_trial *trial)
{
    const run *r = context;

    r->options->on_trial(r->options->progress_context, trial);
}

static cs_status prepare(run *r, const search_problem *problem, search_outcome *out, cs_error *err)
{
    const search_options *o = r->options;
    search__engine *e = &r->engine;
    cs_status status = CS_OK;
    const size_t batch = agent_batch(o->agent, r->param);

    CS_TRY(search__engine_init(e, problem, out, o->jobs, batch, err));
    e->budget = o->evaluations;
    e->agent_name = o->agent->name;
    e->raw = o->agent->raw;
    e->stop = o->stop;
    e->deadline_s = o->timeout_s > 0 ? e->start_s + o->timeout_s : INFINITY;
    e->context = r;
    e->on_slice = o->progress != NULL ? report : NULL;
    e->on_trial = o->on_trial != NULL ? on_trial : NULL;
    r->points = calloc(batch * e->n_vars + 1, sizeof *r->points);
    r->score = calloc(batch, sizeof *r->score);
    if (r->points == NULL || r->score == NULL)
        status = cs_fail(err, CS_ENOMEM, "search");
done:
    return status;
}

/* Resumes a study when there is one to resume, before the agent is made (*evaluations is then the
 * budget the agent planned with); creates one afterwards, so that an agent that refuses leaves no
 * file behind. */
static cs_status open_study(run *r, bool create, uint64_t *evaluations, cs_error *err)
{
    const search_options *o = r->options;
    search__engine *e = &r->engine;
    cs_status status = CS_OK;
    char params[2048];
    search_study_setup setup = {
        .agent = o->agent->name,
        .params = agent_params_text(o->agent, r->param, params, sizeof params),
        .seed = o->seed,
        .evaluations = o->evaluations,
    };

    if (o->study_path == NULL || e->study != NULL)
        return CS_OK;
    const bool resume = o->resume && !search__study_absent(o->study_path);
    if (create)
        return search_study_create(o->study_path, e->problem, &setup, &e->study, err);
    if (!resume)
        return CS_OK;
    CS_TRY(search_study_resume(o->study_path, e->problem, &setup, &e->study, err));
    e->stored = search_study_n_trials(e->study);
    *evaluations = strtoull(search_study_info(e->study, "evaluations"), NULL, 10);
done:
    return status;
}

static cs_status start_agent(run *r, uint64_t evaluations, cs_error *err)
{
    search__engine *e = &r->engine;
    agent_setup setup = {
        .space = e->problem->space,
        .seed = r->options->seed,
        .param = r->param,
        .n_objectives = e->problem->n_objectives,
        .budget = evaluations,
        .lookup = search__engine_lookup,
        .lookup_context = e,
    };

    if (psa_schema_memory_limit(e->problem->schema)) {
        setup.precheck = search__engine_precheck;
        setup.precheck_context = e;
    }
    return agent_create(r->options->agent, &setup, &r->agent, err);
}

/* Takes up the agent where its last snapshot left it; without one, begins. */
static cs_status restore(run *r, cs_error *err)
{
    cs_status status = CS_OK;
    search__engine *e = &r->engine;
    search__snapshot snapshot;
    uint64_t adopted;

    CS_TRY(search__study_last_snapshot(e->study, &snapshot, err));
    if (snapshot.agent == NULL)
        return search__begin(e, r->agent, r->options->warm_start, err);
    CS_TRY(search__begun_with(e, &adopted, err));
    e->budget += adopted;
    CS_TRY(agent_load(r->agent, snapshot.agent, snapshot.agent_bytes, err));
    e->out->proposals = snapshot.proposals;
    e->out->cache_hits = snapshot.hits;
    r->snapshot_at = snapshot.trials;
    r->snapshot_bytes = snapshot.agent_bytes;
    CS_TRY(search__engine_reload(e, snapshot.trials, err));
done:
    return status;
}

/* A snapshot costs what it writes: one is due when the trials since the last have written as much.
 */
static cs_status maybe_snapshot(run *r, cs_error *err)
{
    enum { TRIAL_BYTES = 200 };
    cs_status status = CS_OK;
    const search__engine *e = &r->engine;
    const search_outcome *out = e->out;
    agent_bytes bytes = {0};

    if (e->study == NULL || (out->unique - r->snapshot_at) * TRIAL_BYTES < r->snapshot_bytes ||
        out->unique == r->snapshot_at)
        return CS_OK;
    CS_TRY(agent_save(r->agent, &bytes, err));
    r->snapshot_at = out->unique;
    r->snapshot_bytes = bytes.n;
    search__snapshot snapshot = {.trials = out->unique,
                                 .proposals = out->proposals,
                                 .hits = out->cache_hits,
                                 .agent = bytes.data,
                                 .agent_bytes = bytes.n};
    /* While replaying, the study is ahead of the agent: nothing is gained by writing. */
    if (out->unique >= e->stored)
        CS_TRY(search__study_snapshot(e->study, &snapshot, err));
done:
    agent_bytes_fini(&bytes);
    return status;
}

typedef struct {
    double cpu_s, wall_s, precheck_s;
} stopwatch;

static stopwatch start_watch(const run *r)
{
    return (stopwatch){search__cpu_s(), search__now_s(), r->engine.out->precheck_s};
}

/* Processor time since then but for the share of the pre-checks, whose clock is the cheaper one. */
static void stop_watch(run *r, const stopwatch *start)
{
    search_outcome *out = r->engine.out;
    const double wall_s = search__now_s() - start->wall_s;
    const double prechecks_s = out->precheck_s - start->precheck_s;
    const double own = wall_s > prechecks_s ? 1.0 - prechecks_s / wall_s : 0.0;

    out->agent_s += own * (search__cpu_s() - start->cpu_s);
}

static cs_status ask(run *r, size_t *n, cs_error *err)
{
    const stopwatch watch = start_watch(r);
    const cs_status status = agent_ask(r->agent, n, r->points, err);

    stop_watch(r, &watch);
    return status;
}

static cs_status tell(run *r, size_t n, cs_error *err)
{
    const stopwatch watch = start_watch(r);
    const cs_status status = agent_tell(r->agent, n, r->points, r->score, err);

    stop_watch(r, &watch);
    return status;
}

static bool finished(run *r)
{
    search__engine *e = &r->engine;
    const search_outcome *out = e->out;

    if (out->unique >= e->budget)
        search__engine_end(e, SEARCH_BUDGET);
    if (search__engine_exhausted(e))
        search__engine_end(e, SEARCH_EXHAUSTED);
    if (out->proposals / ASKS_PER_EVALUATION > e->budget)
        search__engine_end(e, SEARCH_STALLED);
    if (e->stop != NULL && *e->stop != 0)
        search__engine_end(e, SEARCH_SIGNAL);
    if (search__now_s() >= e->deadline_s)
        search__engine_end(e, SEARCH_TIMEOUT);
    return e->ended;
}

static cs_status loop(run *r, cs_error *err)
{
    cs_status status = CS_OK;
    search__engine *e = &r->engine;
    size_t n;

    while (!finished(r)) {
        CS_TRY(ask(r, &n, err));
        if (n == 0) {
            search__engine_end(e, SEARCH_EXHAUSTED);
            break;
        }
        CS_TRY(search__engine_work(e, n, r->points, r->score, err));
        if (e->ended)
            break;
        CS_TRY(tell(r, n, err));
        CS_TRY(maybe_snapshot(r, err));
    }
    if (e->study != NULL)
        CS_TRY(search__study_commit(e->study, true, err));
done:
    return status;
}

cs_status search_run(const search_problem *problem, const search_options *options,
                     search_outcome *out, cs_error *err)
{
    cs_status status = CS_OK;
    uint64_t evaluations = options->evaluations;
    run *r = calloc(1, sizeof *r);

    if (r == NULL)
        return cs_fail(err, CS_ENOMEM, "search");
    *out = (search_outcome){.bound = NAN, .gap = NAN};
    r->options = options;
    CS_TRY(agent_params(options->agent, options->params, options->n_params, r->param, err));
    if (psa_space_valid_points(problem->space) == 0) {
        status = cs_fail(err, CS_EINFEASIBLE, "the space has no valid point");
        goto done;
    }
    CS_TRY(prepare(r, problem, out, err));
    CS_TRY(open_study(r, false, &evaluations, err));
    CS_TRY(start_agent(r, evaluations, err));
    CS_TRY(open_study(r, true, &evaluations, err));
    if (r->engine.study != NULL)
        CS_TRY(restore(r, err));
    else
        CS_TRY(search__begin(&r->engine, r->agent, options->warm_start, err));
    CS_TRY(loop(r, err));
    out->wall_s = search__now_s() - r->engine.start_s;
    out->evaluations_per_s = out->wall_s > 0 ? (double)out->unique / out->wall_s : 0;
done:
    if (status != CS_OK) {
        search__study_abandon(r->engine.study);
        r->engine.study = NULL;
    }
    run_fini(r);
    free(r);
    if (status != CS_OK)
        search_outcome_fini(out);
    return status;
}
