/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Proposals -> scores: look up, evaluate what is new on all threads, number and record it in the
 * order of proposal.  A resumed study answers for the designs it holds already. */
#include "search/search_private.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 256, MOST_JOBS = 1024, VERDICTS = 1 << 15 };

/* The new designs being evaluated together, and what goes with them. */
struct search__slice {
    search_trial trial[SLICE];
    size_t origin[SLICE]; /* position in the batch */
    unsigned char done[SLICE];
    cs_status status[SLICE]; /* of the evaluation */
    size_t n;
};

cs_status search__engine_init(search__engine *e, const search_problem *problem, search_outcome *out,
                              int jobs, size_t batch, cs_error *err)
{
    e->problem = problem;
    e->out = out;
    e->n_vars = psa_space_n_vars(problem->space);
    e->batch = batch;
    e->start_s = search__now_s();
    e->deadline_s = INFINITY;
    e->entry = calloc(batch, sizeof *e->entry);
    e->slice = calloc(1, sizeof *e->slice);
    e->verdict = calloc(VERDICTS, sizeof *e->verdict);
    e->cache = search__cache_create(problem->space, problem->n_objectives);
    if (jobs <= 0)
        jobs = search_default_jobs();
    if (jobs > MOST_JOBS)
        jobs = MOST_JOBS;
    e->scratch = calloc((size_t)jobs, sizeof(sim_scratch *));
    if (e->entry == NULL || e->slice == NULL || e->verdict == NULL || e->cache == NULL ||
        e->scratch == NULL)
        return cs_fail(err, CS_ENOMEM, "search");
    for (e->jobs = 0; e->jobs < jobs; e->jobs++) {
        e->scratch[e->jobs] = sim_scratch_create(problem->model);
        if (e->scratch[e->jobs] == NULL)
            return cs_fail(err, CS_ENOMEM, "search threads");
    }
    out->jobs = e->jobs;
    return search__best_init(&e->best, problem, out, err);
}

void search__engine_fini(search__engine *e)
{
    search_study_close(e->study);
    search__cache_destroy(e->cache);
    for (int i = 0; i < e->jobs; i++)
        sim_scratch_destroy(e->scratch[i]);
    free(e->scratch);
    free(e->entry);
    free(e->slice);
    free(e->verdict);
}

bool search__engine_lookup(void *context, const int32_t *point, agent_score *score)
{
    search__engine *e = context;
    size_t entry = search__cache_find(e->cache, point);

    return entry != SEARCH__NO_ENTRY && search__cache_get(e->cache, entry, score);
}

static double excess(search__engine *e, const int32_t *point)
{
    sim_config config;
    sim_result result;

    memset(&config, 0, sizeof config);
    memset(&result, 0, sizeof result);
    psa_space_decode(e->problem->space, point, &config);
    const cs_status status = sim_precheck(e->problem->model, &config, e->scratch[0], &result, NULL);
    e->no_memory = e->no_memory || status == CS_ENOMEM;
    if (status != CS_OK)
        return -1.0;
    return result.verdict == SIM_OUT_OF_MEMORY ? fmax(result.memory_excess, 1e-9) : 0.0;
}

double search__engine_precheck(void *context, const int32_t *point)
{
    search__engine *e = context;
    const uint64_t hash = psa_space_point_hash(e->problem->space, point);
    search__verdict *memo = &e->verdict[hash % VERDICTS];

    if (memo->hash != hash) {
        const double start_s = search__now_s();
        *memo = (search__verdict){hash, excess(e, point)};
        e->out->precheck_s += search__now_s() - start_s;
    }
    return memo->violation;
}

/* Counts a finished trial and keeps it if it is among the best. */
static void account(search__engine *e, const search_trial *trial)
{
    e->out->unique++;
    e->out->infeasible += trial->status == SEARCH_INFEASIBLE;
    if (trial->status == SEARCH_FAILED && e->out->failed++ == 0)
        memcpy(e->out->failure, trial->reason, sizeof e->out->failure);
    e->invalid += trial->status == SEARCH_INVALID;
    search__best_update(&e->best, trial);
}

/* Takes over a trial that a study holds. */
static bool reload(void *context, const search_trial *trial)
{
    search__engine *e = context;

    if (trial->status != SEARCH_INVALID) {
        const agent_score score = search__score(e->problem, trial);
        size_t entry = search__cache_add(e->cache, trial->point);
        if (entry == SEARCH__NO_ENTRY)
            return false;
        search__cache_set(e->cache, entry, &score);
    }
    account(e, trial);
    return true;
}

static bool out_of_time(const search__engine *e)
{
    return (e->stop != NULL && *e->stop != 0) || search__now_s() >= e->deadline_s;
}

void search__engine_end(search__engine *e, search_stop why)
{
    if (!e->ended)
        e->out->stop = why;
    e->ended = true;
}

/* Takes proposals from position `i` on into the slice until it is full, the batch ends, or the
 * budget is used up (then *cut).  Returns the position after the last one taken. */
static cs_status collect(search__engine *e, size_t n, size_t *i, bool *cut, cs_error *err)
{
    e->slice->n = 0;
    for (; *i < n && e->slice->n < SLICE; ++*i) {
        const int32_t *point = e->points + *i * e->n_vars;
        const bool invalid = e->raw && e->n_vars > 0 && point[0] < 0;

        e->entry[*i] = invalid ? SEARCH__NO_ENTRY : search__cache_find(e->cache, point);
        if (e->entry[*i] != SEARCH__NO_ENTRY) {
            e->out->proposals++;
            e->out->cache_hits++;
            continue;
        }
        if (e->out->unique + e->slice->n >= e->budget) {
            *cut = true;
            return CS_OK;
        }
        if (!invalid) {
            e->entry[*i] = search__cache_add(e->cache, point);
            if (e->entry[*i] == SEARCH__NO_ENTRY)
                return cs_fail(err, CS_ENOMEM, "design cache");
        }
        e->out->proposals++;
        search_trial *trial = &e->slice->trial[e->slice->n];
        trial->id = e->out->unique + e->slice->n + 1;
        trial->point = point;
        e->slice->done[e->slice->n] = 0;
        e->slice->status[e->slice->n] = CS_OK;
        e->slice->origin[e->slice->n++] = *i;
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
static cs_status replay(search__engine *e, cs_error *err)
{
    cs_status status = CS_OK;
    int32_t *point = NULL;

    if (e->slice->trial[0].id > e->stored)
        return CS_OK;
    point = calloc(e->n_vars + 1, sizeof *point);
    if (point == NULL)
        return cs_fail(err, CS_ENOMEM, "replay");
    for (size_t k = 0; k < e->slice->n && e->slice->trial[k].id <= e->stored; k++) {
        search_trial *trial = &e->slice->trial[k];
        const int32_t *expected = trial->point;
        CS_TRY(search__study_fetch(e->study, trial->id, trial, point, err));
        trial->point = expected;
        if (memcmp(point, expected, e->n_vars * sizeof *point) != 0) {
            status = cs_fail(err, CS_EIO,
                             "the study is damaged: trial %" PRIu64
                             " is not what agent %s proposes there",
                             trial->id, e->agent_name);
            goto done;
        }
        e->slice->done[k] = 1;
    }
done:
    free(point);
    return status;
}

static void evaluate(search__engine *e)
{
    const size_t n = e->slice->n;
    const bool raw = e->raw && e->n_vars > 0;
    int jobs = n < (size_t)e->jobs ? (int)n : e->jobs;

#pragma omp parallel for schedule(dynamic) default(none) shared(e, n, raw)                         \
    num_threads(jobs) if (jobs > 1)
    for (size_t k = 0; k < n; k++) {
        if (e->slice->done[k] || out_of_time(e))
            continue;
        if (raw && e->slice->trial[k].point[0] < 0)
            invalid_trial(&e->slice->trial[k]);
        else
            e->slice->status[k] =
                search_evaluate(e->problem, e->slice->trial[k].point,
                                e->scratch[omp_get_thread_num()], &e->slice->trial[k]);
        e->slice->done[k] = 1;
    }
}

/* Records the finished prefix of the slice; stops the run when something is missing. */
static cs_status record(search__engine *e, cs_error *err)
{
    cs_status status = CS_OK;

    if (e->no_memory) /* the agent was told something else of a design */
        return cs_fail(err, CS_ENOMEM, "memory of a design");
    for (size_t k = 0; k < e->slice->n; k++) {
        const search_trial *trial = &e->slice->trial[k];
        if (!e->slice->done[k]) {
            const bool signal = e->stop != NULL && *e->stop != 0;
            search__engine_end(e, signal ? SEARCH_SIGNAL : SEARCH_TIMEOUT);
            break;
        }
        if (e->slice->status[k] != CS_OK) {
            status = cs_fail(err, e->slice->status[k], "trial %" PRIu64, trial->id);
            goto done;
        }
        agent_score *score = &e->score[e->slice->origin[k]];
        *score = search__score(e->problem, trial);
        if (e->entry[e->slice->origin[k]] != SEARCH__NO_ENTRY)
            search__cache_set(e->cache, e->entry[e->slice->origin[k]], score);
        e->entry[e->slice->origin[k]] = SEARCH__NO_ENTRY; /* not a hit: its score is in place */
        account(e, trial);
        if (e->study != NULL && trial->id > e->stored)
            CS_TRY(search__study_append(e->study, trial, err));
        if (e->on_trial != NULL)
            e->on_trial(e->context, trial);
    }
    if (e->study != NULL)
        CS_TRY(search__study_commit(e->study, false, err));
done:
    return status;
}

/* Gives every proposal that was known before its score. */
static void fill_hits(search__engine *e, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (e->entry[i] != SEARCH__NO_ENTRY)
            (void)search__cache_get(e->cache, e->entry[i], &e->score[i]);
}

cs_status search__engine_work(search__engine *e, size_t n, const int32_t *points,
                              agent_score *score, cs_error *err)
{
    cs_status status = CS_OK;
    bool cut = false;

    e->points = points;
    e->score = score;
    for (size_t i = 0; i < n && !cut && !e->ended;) {
        CS_TRY(collect(e, n, &i, &cut, err));
        if (e->slice->n == 0)
            continue;
        CS_TRY(replay(e, err));
        evaluate(e);
        CS_TRY(record(e, err));
        if (e->on_slice != NULL)
            e->on_slice(e->context);
    }
    if (cut)
        search__engine_end(e, SEARCH_BUDGET);
    if (!e->ended)
        fill_hits(e, n);
done:
    return status;
}

cs_status search__engine_reload(search__engine *e, uint64_t trials, cs_error *err)
{
    cs_status status;

    CS_TRY(search__study_range(e->study, 1, trials, reload, e, err));
    if (e->out->unique != trials)
        status =
            cs_fail(err, CS_EIO, "the study is damaged: %" PRIu64 " of %" PRIu64 " trials read",
                    e->out->unique, trials);
done:
    return status;
}

cs_status search__engine_adopt(search__engine *e, search_trial *trial, cs_error *err)
{
    cs_status status = CS_OK;

    if (search__cache_find(e->cache, trial->point) != SEARCH__NO_ENTRY)
        return CS_OK;
    trial->id = e->out->unique + 1;
    if (!reload(e, trial))
        return cs_fail(err, CS_ENOMEM, "design cache");
    if (e->budget < UINT64_MAX)
        e->budget++;
    if (e->study != NULL)
        CS_TRY(search__study_append(e->study, trial, err));
done:
    return status;
}

bool search__engine_exhausted(const search__engine *e)
{
    return e->out->unique - e->invalid >= psa_space_valid_points(e->problem->space);
}
