/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The loop: ask, look up, evaluate what is new, record, tell.  Batches are synchronous and told in
 * ask order; each new design gets its number in ask order; so neither threads nor a kill and resume
 * change a digit.  A resumed run starts from the agent's last snapshot and asks again: designs that
 * the study already holds are read from it instead of evaluated. */
#include "search/search_private.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 256, MOST_JOBS = 1024, ASKS_PER_EVALUATION = 200 };

typedef struct {
    const search_problem *problem;
    const search_options *options;
    search_outcome *out;
    search__best best;
    search__cache *cache;
    search_study *study;
    agent *agent;
    double param[AGENT_MAX_PARAMS];
    bool raw;
    sim_scratch *scratch[MOST_JOBS];
    int jobs;
    size_t n_vars, batch;
    int32_t *points;    /* batch x n_vars */
    agent_score *score; /* batch */
    size_t *entry;      /* batch: cache entry whose score the proposal takes, or SEARCH__NO_ENTRY */
    /* The new designs of the slice being evaluated. */
    search_trial *slice;
    size_t *origin; /* position in the batch */
    unsigned char *done;
    size_t n_slice;
    uint64_t stored;       /* trials the study holds already: replayed */
    uint64_t snapshot_at;  /* trials at the last snapshot */
    size_t snapshot_bytes; /* its size */
    double start_s, deadline_s;
    uint64_t invalid; /* trials of a raw agent that break a constraint */
    bool ended;
} run;

static void run_fini(run *r)
{
    agent_destroy(r->agent);
    search_study_close(r->study);
    search__cache_destroy(r->cache);
    for (int i = 0; i < r->jobs; i++)
        sim_scratch_destroy(r->scratch[i]);
    free(r->points);
    free(r->score);
    free(r->entry);
    free(r->slice);
    free(r->origin);
    free(r->done);
}

/* ---- what agents may ask for free ---- */

static bool lookup(void *context, const int32_t *point, agent_score *score)
{
    run *r = context;
    size_t entry = search__cache_find(r->cache, point);

    return entry != SEARCH__NO_ENTRY && search__cache_get(r->cache, entry, score);
}

static double precheck(void *context, const int32_t *point)
{
    run *r = context;
    sim_config config;
    sim_result result;

    memset(&config, 0, sizeof config);
    memset(&result, 0, sizeof result);
    psa_space_decode(r->problem->space, point, &config);
    if (sim_precheck(r->problem->model, &config, r->scratch[0], &result, NULL) != CS_OK)
        return -1.0;
    return result.verdict == SIM_OUT_OF_MEMORY ? fmax(result.memory_excess, 1e-9) : 0.0;
}

/* ---- setting up ---- */

static cs_status allocate(run *r, cs_error *err)
{
    r->n_vars = psa_space_n_vars(r->problem->space);
    r->batch = agent_batch(r->options->agent, r->param);
    r->points = calloc(r->batch * r->n_vars + 1, sizeof *r->points);
    r->score = calloc(r->batch, sizeof *r->score);
    r->entry = calloc(r->batch, sizeof *r->entry);
    r->slice = calloc(SLICE, sizeof *r->slice);
    r->origin = calloc(SLICE, sizeof *r->origin);
    r->done = calloc(SLICE, 1);
    r->cache = search__cache_create(r->problem->space, r->problem->n_objectives);
    if (r->points == NULL || r->score == NULL || r->entry == NULL || r->slice == NULL ||
        r->origin == NULL || r->done == NULL || r->cache == NULL)
        return cs_fail(err, CS_ENOMEM, "search");
    const int jobs = r->options->jobs > 0 ? r->options->jobs : search_default_jobs();
    for (r->jobs = 0; r->jobs < jobs && r->jobs < MOST_JOBS; r->jobs++) {
        r->scratch[r->jobs] = sim_scratch_create(r->problem->model);
        if (r->scratch[r->jobs] == NULL)
            return cs_fail(err, CS_ENOMEM, "search threads");
    }
    r->out->jobs = r->jobs;
    return CS_OK;
}

static cs_status open_study(run *r, uint64_t *evaluations, cs_error *err)
{
    const search_options *o = r->options;
    cs_status status = CS_OK;
    char params[2048];

    *evaluations = o->evaluations;
    if (o->study_path == NULL)
        return CS_OK;
    search_study_setup setup = {
        .agent = o->agent->name,
        .params = agent_params_text(o->agent, r->param, params, sizeof params),
        .seed = o->seed,
        .evaluations = o->evaluations,
    };
    if (!o->resume || search__study_absent(o->study_path))
        return search_study_create(o->study_path, r->problem, &setup, &r->study, err);
    CS_TRY(search_study_resume(o->study_path, r->problem, &setup, &r->study, err));
    r->stored = search_study_n_trials(r->study);
    *evaluations = strtoull(search_study_info(r->study, "evaluations"), NULL, 10);
done:
    return status;
}

static cs_status start_agent(run *r, uint64_t evaluations, cs_error *err)
{
    agent_setup setup = {
        .space = r->problem->space,
        .seed = r->options->seed,
        .param = r->param,
        .n_objectives = r->problem->n_objectives,
        .budget = evaluations,
        .lookup = lookup,
        .lookup_context = r,
    };

    if (psa_schema_memory_limit(r->problem->schema)) {
        setup.precheck = precheck;
        setup.precheck_context = r;
    }
    return agent_create(r->options->agent, &setup, &r->agent, err);
}

/* Counts a finished trial and keeps it if it is among the best. */
static void account(run *r, const search_trial *trial)
{
    r->out->unique++;
    r->out->infeasible += trial->status == SEARCH_INFEASIBLE;
    r->out->failed += trial->status == SEARCH_FAILED;
    r->invalid += trial->status == SEARCH_INVALID;
    search__best_update(&r->best, trial);
}

static bool reload(void *context, const search_trial *trial)
{
    run *r = context;

    if (trial->status != SEARCH_INVALID) {
        const agent_score score = search__score(r->problem, trial);
        size_t entry = search__cache_add(r->cache, trial->point);
        if (entry == SEARCH__NO_ENTRY)
            return false;
        search__cache_set(r->cache, entry, &score);
    }
    account(r, trial);
    return true;
}

/* Takes up the agent where its last snapshot left it. */
static cs_status restore(run *r, cs_error *err)
{
    cs_status status = CS_OK;
    search__snapshot snapshot;

    CS_TRY(search__study_last_snapshot(r->study, &snapshot, err));
    if (snapshot.agent == NULL)
        return CS_OK;
    CS_TRY(agent_load(r->agent, snapshot.agent, snapshot.agent_bytes, err));
    r->out->proposals = snapshot.proposals;
    r->out->cache_hits = snapshot.hits;
    r->snapshot_at = snapshot.trials;
    r->snapshot_bytes = snapshot.agent_bytes;
    CS_TRY(search__study_range(r->study, 1, snapshot.trials, reload, r, err));
    if (r->out->unique != snapshot.trials)
        status =
            cs_fail(err, CS_EIO, "the study is damaged: %" PRIu64 " of %" PRIu64 " trials read",
                    r->out->unique, snapshot.trials);
done:
    return status;
}

/* ---- one batch ---- */

static bool out_of_time(const run *r)
{
    return (r->options->stop != NULL && *r->options->stop != 0) || search__now_s() >= r->deadline_s;
}

static void end(run *r, search_stop why)
{
    if (!r->ended)
        r->out->stop = why;
    r->ended = true;
}

/* Takes proposals from position `i` on into the slice until it is full, the batch ends, or the
 * budget is used up (then *cut).  Returns the position after the last one taken. */
static cs_status collect(run *r, size_t n, size_t *i, bool *cut, cs_error *err)
{
    r->n_slice = 0;
    for (; *i < n && r->n_slice < SLICE; ++*i) {
        const int32_t *point = r->points + *i * r->n_vars;
        const bool invalid = r->raw && r->n_vars > 0 && point[0] < 0;

        r->entry[*i] = invalid ? SEARCH__NO_ENTRY : search__cache_find(r->cache, point);
        if (r->entry[*i] != SEARCH__NO_ENTRY) {
            r->out->proposals++;
            r->out->cache_hits++;
            continue;
        }
        if (r->out->unique + r->n_slice >= r->options->evaluations) {
            *cut = true;
            return CS_OK;
        }
        if (!invalid) {
            r->entry[*i] = search__cache_add(r->cache, point);
            if (r->entry[*i] == SEARCH__NO_ENTRY)
                return cs_fail(err, CS_ENOMEM, "design cache");
        }
        r->out->proposals++;
        search_trial *trial = &r->slice[r->n_slice];
        trial->id = r->out->unique + r->n_slice + 1;
        trial->point = point;
        r->done[r->n_slice] = 0;
        r->origin[r->n_slice++] = *i;
    }
    return CS_OK;
}

static void invalid_trial(search_trial *trial)
{
    trial->status = SEARCH_INVALID;
    trial->violation = 0.0;
    (void)strcpy(trial->reason, "breaks a constraint");
    memset(&trial->result, 0, sizeof trial->result);
    for (size_t i = 0; i < AGENT_MAX_OBJECTIVES; i++)
        trial->objective[i] = NAN;
}

/* Reads the designs of the slice that the study holds already. */
static cs_status replay(run *r, cs_error *err)
{
    cs_status status = CS_OK;
    int32_t *point = NULL;

    if (r->slice[0].id > r->stored)
        return CS_OK;
    point = calloc(r->n_vars + 1, sizeof *point);
    if (point == NULL)
        return cs_fail(err, CS_ENOMEM, "replay");
    for (size_t k = 0; k < r->n_slice && r->slice[k].id <= r->stored; k++) {
        search_trial *trial = &r->slice[k];
        const int32_t *expected = trial->point;
        CS_TRY(search__study_fetch(r->study, trial->id, trial, point, err));
        trial->point = expected;
        if (memcmp(point, expected, r->n_vars * sizeof *point) != 0) {
            status = cs_fail(err, CS_EIO,
                             "the study is damaged: trial %" PRIu64
                             " is not what agent %s proposes there",
                             trial->id, r->options->agent->name);
            goto done;
        }
        r->done[k] = 1;
    }
done:
    free(point);
    return status;
}

static void evaluate(run *r)
{
    const size_t n = r->n_slice;
    const bool raw = r->raw && r->n_vars > 0;
    int jobs = n < (size_t)r->jobs ? (int)n : r->jobs;

#pragma omp parallel for schedule(dynamic) default(none) shared(r, n, raw)                         \
    num_threads(jobs) if (jobs > 1)
    for (size_t k = 0; k < n; k++) {
        if (r->done[k] || out_of_time(r))
            continue;
        if (raw && r->slice[k].point[0] < 0)
            invalid_trial(&r->slice[k]);
        else
            search_evaluate(r->problem, r->slice[k].point, r->scratch[omp_get_thread_num()],
                            &r->slice[k]);
        r->done[k] = 1;
    }
}

/* Records the finished prefix of the slice; stops the run when something is missing. */
static cs_status record(run *r, cs_error *err)
{
    cs_status status = CS_OK;

    for (size_t k = 0; k < r->n_slice; k++) {
        const search_trial *trial = &r->slice[k];
        if (!r->done[k]) {
            const bool signal = r->options->stop != NULL && *r->options->stop != 0;
            end(r, signal ? SEARCH_SIGNAL : SEARCH_TIMEOUT);
            break;
        }
        agent_score *score = &r->score[r->origin[k]];
        *score = search__score(r->problem, trial);
        if (r->entry[r->origin[k]] != SEARCH__NO_ENTRY)
            search__cache_set(r->cache, r->entry[r->origin[k]], score);
        r->entry[r->origin[k]] = SEARCH__NO_ENTRY; /* not a hit: its score is in place */
        account(r, trial);
        if (r->study != NULL && trial->id > r->stored)
            CS_TRY(search__study_append(r->study, trial, err));
    }
    if (r->study != NULL)
        CS_TRY(search__study_commit(r->study, false, err));
done:
    return status;
}

static void report(const run *r)
{
    const search_outcome *out = r->out;
    search_progress p = {
        .done = out->unique,
        .budget = r->options->evaluations,
        .cache_hits = out->cache_hits,
        .infeasible = out->infeasible,
        .failed = out->failed,
        .wall_s = search__now_s() - r->start_s,
        .has_best = out->has_best,
        .best = out->has_best ? out->best.objective[0] : NAN,
        .bound = out->bound,
        .gap = out->gap,
    };

    if (r->options->progress == NULL)
        return;
    p.evaluations_per_s = p.wall_s > 0 ? (double)out->unique / p.wall_s : 0;
    r->options->progress(r->options->progress_context, &p);
}

/* A snapshot costs what it writes: one is due when the trials since the last have written as much.
 */
static cs_status maybe_snapshot(run *r, bool now, cs_error *err)
{
    enum { TRIAL_BYTES = 200 };
    cs_status status = CS_OK;
    agent_bytes bytes = {0};

    if (r->study == NULL || r->out->unique <= r->snapshot_at ||
        (!now && (r->out->unique - r->snapshot_at) * TRIAL_BYTES < r->snapshot_bytes))
        return CS_OK;
    CS_TRY(agent_save(r->agent, &bytes, err));
    search__snapshot snapshot = {.trials = r->out->unique,
                                 .proposals = r->out->proposals,
                                 .hits = r->out->cache_hits,
                                 .agent = bytes.data,
                                 .agent_bytes = bytes.n};
    /* While replaying, the study is ahead of the agent: nothing is gained by writing. */
    if (r->out->unique >= r->stored)
        CS_TRY(search__study_snapshot(r->study, &snapshot, err));
    r->snapshot_at = r->out->unique;
    r->snapshot_bytes = bytes.n;
done:
    agent_bytes_fini(&bytes);
    return status;
}

/* Gives every proposal that was known before its score. */
static void fill_hits(run *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (r->entry[i] != SEARCH__NO_ENTRY)
            (void)search__cache_get(r->cache, r->entry[i], &r->score[i]);
}

static cs_status work_through(run *r, size_t n, cs_error *err)
{
    cs_status status = CS_OK;
    bool cut = false;

    for (size_t i = 0; i < n && !cut && !r->ended;) {
        CS_TRY(collect(r, n, &i, &cut, err));
        if (r->n_slice > 0) {
            CS_TRY(replay(r, err));
            evaluate(r);
            CS_TRY(record(r, err));
            report(r);
        }
    }
    if (cut)
        end(r, SEARCH_BUDGET);
done:
    return status;
}

static cs_status ask(run *r, size_t *n, cs_error *err)
{
    double t = search__now_s();
    cs_status status = agent_ask(r->agent, n, r->points, err);

    r->out->agent_s += search__now_s() - t;
    return status;
}

static cs_status tell(run *r, size_t n, cs_error *err)
{
    double t = search__now_s();
    cs_status status = agent_tell(r->agent, n, r->points, r->score, err);

    r->out->agent_s += search__now_s() - t;
    return status;
}

static bool finished(run *r)
{
    const search_outcome *out = r->out;

    if (out->unique >= r->options->evaluations)
        end(r, SEARCH_BUDGET);
    if (out->unique - r->invalid >= psa_space_valid_points(r->problem->space))
        end(r, SEARCH_EXHAUSTED);
    if (out->proposals / ASKS_PER_EVALUATION > r->options->evaluations)
        end(r, SEARCH_STALLED);
    if (r->options->stop != NULL && *r->options->stop != 0)
        end(r, SEARCH_SIGNAL);
    if (search__now_s() >= r->deadline_s)
        end(r, SEARCH_TIMEOUT);
    return r->ended;
}

static cs_status loop(run *r, cs_error *err)
{
    cs_status status = CS_OK;
    size_t n;

    while (!finished(r)) {
        CS_TRY(ask(r, &n, err));
        if (n == 0) {
            end(r, SEARCH_EXHAUSTED);
            break;
        }
        CS_TRY(work_through(r, n, err));
        if (r->ended)
            break;
        fill_hits(r, n);
        CS_TRY(tell(r, n, err));
        CS_TRY(maybe_snapshot(r, false, err));
    }
    if (r->study != NULL)
        CS_TRY(search__study_commit(r->study, true, err));
done:
    return status;
}

static void finish(run *r)
{
    search_outcome *out = r->out;

    out->wall_s = search__now_s() - r->start_s;
    out->evaluations_per_s = out->wall_s > 0 ? (double)out->unique / out->wall_s : 0;
}

cs_status search_run(const search_problem *problem, const search_options *options,
                     search_outcome *out, cs_error *err)
{
    cs_status status = CS_OK;
    uint64_t evaluations;
    run *r = calloc(1, sizeof *r);

    if (r == NULL)
        return cs_fail(err, CS_ENOMEM, "search");
    *out = (search_outcome){.bound = NAN, .gap = NAN};
    r->problem = problem;
    r->options = options;
    r->out = out;
    r->raw = options->agent->raw;
    r->start_s = search__now_s();
    r->deadline_s = options->timeout_s > 0 ? r->start_s + options->timeout_s : INFINITY;
    CS_TRY(agent_params(options->agent, options->params, options->n_params, r->param, err));
    if (psa_space_valid_points(problem->space) == 0) {
        status = cs_fail(err, CS_EINFEASIBLE, "the space has no valid point");
        goto done;
    }
    CS_TRY(search__best_init(&r->best, problem, out, err));
    CS_TRY(allocate(r, err));
    CS_TRY(open_study(r, &evaluations, err));
    CS_TRY(start_agent(r, evaluations, err));
    if (r->study != NULL)
        CS_TRY(restore(r, err));
    CS_TRY(loop(r, err));
    finish(r);
done:
    run_fini(r);
    free(r);
    if (status != CS_OK)
        search_outcome_fini(out);
    return status;
}
