/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A real problem, small enough to search in a test, and studies in a folder of their own. */
#ifndef TESTS_SEARCH_FIXTURE_H
#define TESTS_SEARCH_FIXTURE_H

#include "search/search.h"
#include "tests/test.h"

#include <unistd.h>

#define FX_PSA "configs/psa/llama3-70b-h100.yaml"

static char fx_folder[] = "/tmp/cosmic-search-XXXXXX";

static int fx_open_folder(void **state)
{
    (void)state;
    return mkdtemp(fx_folder) == NULL ? -1 : 0;
}

static int fx_close_folder(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -r %s", fx_folder);
    return system(command);
}

/* Path of a file in the folder; four may be in use at a time. */
static inline const char *fx_path(const char *name)
{
    static char path[4][256];
    static int turn;

    turn = (turn + 1) % 4;
    (void)snprintf(path[turn], sizeof path[turn], "%s/%s", fx_folder, name);
    return path[turn];
}

static inline search_problem fx_problem(const char *psa, const char *const *fixes, size_t n,
                                        const char *objectives)
{
    search_problem problem;
    cs_error err = {""};
    search_problem_options options = {
        .psa_path = psa, .fixes = fixes, .n_fixes = n, .objectives = objectives};

    if (search_problem_load(&options, &problem, &err) != CS_OK)
        fail_msg("%s", err.text);
    return problem;
}

static inline const agent_type *fx_agent(const char *name)
{
    const agent_type *type = NULL;

    assert_int_equal(agent_find(name, &type, NULL), CS_OK);
    return type;
}

static inline void fx_run(const search_problem *problem, const search_options *options,
                          search_outcome *out)
{
    cs_error err = {""};

    if (search_run(problem, options, out, &err) != CS_OK)
        fail_msg("%s", err.text);
}

typedef struct {
    const search_problem *problem;
    uint64_t hash, n;
} fx_digest;

/* Everything a trial says: number, point, status, reason and every number of its result. */
static inline bool fx_add(void *context, const search_trial *t)
{
    fx_digest *d = context;

    d->n++;
    d->hash = cs_hash(d->hash, &t->id, sizeof t->id);
    d->hash = cs_hash(d->hash, t->point, psa_space_n_vars(d->problem->space) * sizeof *t->point);
    d->hash = cs_hash(d->hash, &t->status, sizeof t->status);
    d->hash = cs_hash(d->hash, t->reason, strlen(t->reason));
    d->hash = cs_hash(d->hash, &t->violation, sizeof t->violation);
    for (size_t i = 0; i < d->problem->n_objectives; i++)
        d->hash = cs_hash(d->hash, &t->objective[i], sizeof t->objective[i]);
    d->hash = cs_hash(d->hash, &t->result, sizeof t->result);
    return true;
}

static inline void fx_on_trial(void *context, const search_trial *trial)
{
    (void)fx_add(context, trial);
}

static inline fx_digest fx_study_digest(const char *path)
{
    search_study *study = NULL;
    cs_error err = {""};

    if (search_study_open(path, &study, &err) != CS_OK)
        fail_msg("%s", err.text);
    fx_digest d = {.problem = search_study_problem(study), .hash = CS_HASH_START};
    if (search_study_each(study, fx_add, &d, &err) != CS_OK)
        fail_msg("%s", err.text);
    search_study_close(study);
    return d;
}

#endif
