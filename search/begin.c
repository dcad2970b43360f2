/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What comes before the first ask: designs taken over from elsewhere, and the PSA's pinned starts.
 */
#include "search/search_private.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SEEDS = 1024 };

/* Designs for the agent, with their scores. */
typedef struct {
    size_t n, capacity;
    const int32_t **point;
    agent_score *score;
} seeds;

static cs_status add_seed(seeds *s, const int32_t *point, const agent_score *score, cs_error *err)
{
    if (s->n == s->capacity) {
        size_t capacity = s->capacity == 0 ? 64 : 2 * s->capacity;
        const int32_t **points = realloc(s->point, capacity * sizeof *points);
        if (points == NULL)
            return cs_fail(err, CS_ENOMEM, "starting designs");
        s->point = points;
        agent_score *scores = realloc(s->score, capacity * sizeof *scores);
        if (scores == NULL)
            return cs_fail(err, CS_ENOMEM, "starting designs");
        s->score = scores;
        s->capacity = capacity;
    }
    s->point[s->n] = point;
    s->score[s->n++] = *score;
    return CS_OK;
}

/* Gives the agent the best seeds, best first, earlier ones first on ties. */
static cs_status hand_over(const seeds *s, agent *who, size_t n_vars, cs_error *err)
{
    cs_status status = CS_OK;
    size_t n = 0;
    int32_t *points = calloc(MOST_SEEDS * n_vars + 1, sizeof *points);
    agent_score *score = calloc(MOST_SEEDS + 1, sizeof *score);

    if (points == NULL || score == NULL) {
        status = cs_fail(err, CS_ENOMEM, "starting designs");
        goto done;
    }
    for (size_t i = 0; i < s->n; i++) {
        size_t at = n;
        while (at > 0 && agent_score_compare(&s->score[i], &score[at - 1]) < 0)
            at--;
        if (at == MOST_SEEDS)
            continue;
        n += n < MOST_SEEDS;
        const size_t behind = n - at - 1;
        memmove(points + (at + 1) * n_vars, points + at * n_vars, behind * n_vars * sizeof *points);
        memmove(score + at + 1, score + at, behind * sizeof *score);
        memcpy(points + at * n_vars, s->point[i], n_vars * sizeof *points);
        score[at] = s->score[i];
    }
    CS_TRY(agent_seed(who, n, points, score, err));
done:
    free(points);
    free(score);
    return status;
}

cs_status search__begun_with(search__engine *e, uint64_t *n, cs_error *err)
{
    bool found;

    return search__study_get(e->study, "adopted", n, &found, err);
}

/* Fills `warm` and the engine with what is known before the run. */
static cs_status adopt(search__engine *e, const char *warm_path, search__warm *warm, cs_error *err)
{
    cs_status status = CS_OK;
    uint64_t n = 0;
    bool found = false;

    if (e->study != NULL)
        CS_TRY(search__study_get(e->study, "adopted", &n, &found, err));
    if (found) {
        CS_TRY(search__warm_stored(e->study, n, warm, err));
        CS_TRY(search__engine_reload(e, n, err));
        e->budget += n;
        return CS_OK;
    }
    if (warm_path != NULL && e->stored == 0) {
        CS_TRY(search__warm_load(e->problem, warm_path, warm, err));
        for (size_t i = 0; i < warm->n; i++)
            CS_TRY(search__engine_adopt(e, &warm->trials[i], err));
    }
    if (e->study != NULL && e->stored == 0) {
        CS_TRY(search__study_put(e->study, "adopted", e->out->unique, err));
        CS_TRY(search__study_commit(e->study, true, err));
    }
done:
    return status;
}

/* The PSA's pinned designs that are points of this space; *n of them, the caller frees *points. */
static cs_status pinned(const search__engine *e, int32_t **points, size_t *n, cs_error *err)
{
    const search_problem *p = e->problem;
    const size_t n_starts = psa_schema_n_starts(p->schema);
    cs_status status = CS_OK;
    sim_config config;

    *n = 0;
    *points = calloc(n_starts * e->n_vars + 1, sizeof **points);
    if (*points == NULL)
        return cs_fail(err, CS_ENOMEM, "starting designs");
    for (size_t i = 0; i < n_starts && *n < e->batch; i++) {
        memset(&config, 0, sizeof config);
        CS_TRY(psa_schema_start(p->schema, i, &config, err));
        if (psa_space_encode(p->space, &config, *points + *n * e->n_vars, NULL) == CS_OK)
            ++*n;
    }
done:
    return status;
}

cs_status search__begin(search__engine *e, agent *who, const char *warm_path, cs_error *err)
{
    cs_status status = CS_OK;
    search__warm warm = {0};
    seeds s = {0};
    int32_t *points = NULL;
    agent_score *score = NULL;
    size_t n = 0;

    CS_TRY(adopt(e, warm_path, &warm, err));
    CS_TRY(pinned(e, &points, &n, err));
    score = calloc(n + 1, sizeof *score);
    if (score == NULL) {
        status = cs_fail(err, CS_ENOMEM, "starting designs");
        goto done;
    }
    if (n > 0)
        CS_TRY(search__engine_work(e, n, points, score, err));
    for (size_t i = 0; i < warm.n; i++) {
        const agent_score known = search__score(e->problem, &warm.trials[i]);
        CS_TRY(add_seed(&s, warm.trials[i].point, &known, err));
    }
    for (size_t i = 0; i < n && !e->ended; i++)
        CS_TRY(add_seed(&s, points + i * e->n_vars, &score[i], err));
    if (s.n > 0)
        CS_TRY(hand_over(&s, who, e->n_vars, err));
done:
    search__warm_fini(&warm);
    free(s.point);
    free(s.score);
    free(points);
    free(score);
    return status;
}
