/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Drives an agent over a small space whose landscape is a function of the rank of a point: a cache,
 * a budget, and a digest of everything proposed. */
#ifndef TESTS_AGENTS_DRIVE_H
#define TESTS_AGENTS_DRIVE_H

#include "agents/agent.h"
#include "tests/psa_fixture.h"

typedef agent_score (*drive_landscape)(const psa_space *space, const int32_t *point);

typedef struct {
    const agent_type *type;
    const psa_space *space;
    drive_landscape landscape;
    uint64_t budget, seed;
    size_t n_objectives;
    const char *const *params;
    size_t n_params;
    uint64_t reload_at; /* once so many designs are evaluated, go on from a snapshot; 0: never */
    bool precheck;      /* tell infeasible designs for free */

    double param[AGENT_MAX_PARAMS];

    /* Results. */
    uint64_t unique, asked, digest;
    agent_score best;
    bool has_best;
    agent_score *known; /* by rank; outcome AGENT_INVALID when unknown */
} drive;

static bool drive_lookup(void *context, const int32_t *point, agent_score *score)
{
    drive *d = context;
    const agent_score *known = &d->known[(size_t)psa_space_rank(d->space, point)];

    if (known->outcome == AGENT_INVALID)
        return false;
    *score = *known;
    score->cached = true;
    return true;
}

static double drive_precheck(void *context, const int32_t *point)
{
    drive *d = context;
    agent_score score = d->landscape(d->space, point);

    return score.outcome == AGENT_INFEASIBLE ? score.violation : 0.0;
}

static inline agent *drive_agent(drive *d)
{
    double *param = d->param;
    cs_error err = {""};
    agent *a = NULL;

    if (agent_params(d->type, d->params, d->n_params, param, &err) != CS_OK)
        fail_msg("%s", err.text);
    agent_setup setup = {.space = d->space,
                         .seed = d->seed,
                         .param = param,
                         .n_objectives = d->n_objectives > 0 ? d->n_objectives : 1,
                         .budget = d->budget,
                         .lookup = drive_lookup,
                         .lookup_context = d};
    if (d->precheck) {
        setup.precheck = drive_precheck;
        setup.precheck_context = d;
    }
    if (agent_create(d->type, &setup, &a, &err) != CS_OK)
        fail_msg("%s: %s", d->type->name, err.text);
    return a;
}

/* Takes one proposal: false when the budget ends there. */
static inline bool drive_take(drive *d, const int32_t *point, agent_score *score)
{
    const size_t n_vars = psa_space_n_vars(d->space);

    d->asked++;
    d->digest = cs_hash(d->digest, point, n_vars * sizeof *point);
    if (d->type->raw && n_vars > 0 && point[0] < 0) {
        *score = (agent_score){.outcome = AGENT_INVALID};
        if (d->unique == d->budget)
            return false;
        d->unique++;
        return true;
    }
    if (!psa_space_valid(d->space, point))
        fail_msg("%s proposed an invalid point", d->type->name);
    if (drive_lookup(d, point, score))
        return true;
    if (d->unique == d->budget)
        return false;
    *score = d->landscape(d->space, point);
    d->known[(size_t)psa_space_rank(d->space, point)] = *score;
    d->unique++;
    if (score->outcome == AGENT_FEASIBLE &&
        (!d->has_best || agent_score_compare(score, &d->best) < 0)) {
        d->best = *score;
        d->has_best = true;
    }
    return true;
}

static inline agent *drive_reload(drive *d, agent *a)
{
    agent_bytes bytes = {0};
    cs_error err = {""};

    if (agent_save(a, &bytes, &err) != CS_OK)
        fail_msg("%s: %s", d->type->name, err.text);
    agent_destroy(a);
    a = drive_agent(d);
    if (agent_load(a, bytes.data, bytes.n, &err) != CS_OK)
        fail_msg("%s: %s", d->type->name, err.text);
    agent_bytes_fini(&bytes);
    d->reload_at = 0;
    return a;
}

/* Runs until the budget is used, the space is exhausted, or 200 proposals per evaluation are made;
 * drive_fini afterwards. */
static inline void drive_run(drive *d)
{
    const uint64_t points = (uint64_t)psa_space_valid_points(d->space);
    double param[AGENT_MAX_PARAMS];
    cs_error err = {""};
    size_t n;

    assert_int_equal(agent_params(d->type, d->params, d->n_params, param, &err), CS_OK);
    const size_t batch = agent_batch(d->type, param);
    int32_t *asked = calloc(batch * psa_space_n_vars(d->space) + 1, sizeof *asked);
    agent_score *score = calloc(batch, sizeof *score);
    d->known = calloc(points + 1, sizeof *d->known);
    assert_true(asked != NULL && score != NULL && d->known != NULL);
    for (uint64_t i = 0; i < points; i++)
        d->known[i].outcome = AGENT_INVALID;
    d->digest = CS_HASH_START;
    agent *a = drive_agent(d);
    bool more = true;
    while (more && d->unique < d->budget && d->unique < points && d->asked < 200 * d->budget) {
        if (agent_ask(a, &n, asked, &err) != CS_OK)
            fail_msg("%s: %s", d->type->name, err.text);
        assert_true(n <= batch);
        if (n == 0)
            break;
        for (size_t i = 0; i < n && more; i++)
            more = drive_take(d, asked + i * psa_space_n_vars(d->space), &score[i]);
        if (!more)
            break;
        if (agent_tell(a, n, asked, score, &err) != CS_OK)
            fail_msg("%s: %s", d->type->name, err.text);
        if (d->reload_at > 0 && d->unique >= d->reload_at)
            a = drive_reload(d, a);
    }
    agent_destroy(a);
    free(asked);
    free(score);
}

static inline void drive_fini(drive *d)
{
    free(d->known);
}

#endif
