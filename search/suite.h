/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A benchmark suite as read from YAML. */
#ifndef SEARCH_SUITE_H
#define SEARCH_SUITE_H

#include "search/search.h"

typedef struct {
    const char *label;
    const agent_type *type;
    const char **params;
    size_t n_params;
} search__suite_agent;

typedef enum { SEARCH__EXHAUSTIVE, SEARCH__STATED, SEARCH__BEST_KNOWN } search__optimum;

typedef struct {
    const char *label, *psa, *objective; /* objective NULL: the PSA's first */
    const char **stacks, **fixes;
    size_t n_stacks, n_fixes;
    search__optimum optimum;
    double stated;
} search__suite_problem;

/* All memory is in the arena or the document. */
typedef struct {
    cs_doc *doc;
    cs_arena *arena;
    const char *name;
    uint64_t evaluations, seeds;
    search__suite_agent *agents;
    size_t n_agents;
    search__suite_problem *problems;
    size_t n_problems;
} search__suite;

/* Keys: suite (1), name, evaluations, seeds, agents (names, or {name, label, params: {k: v}}),
 * problems
 * ({psa, label, objective, stacks, fix, optimum: exhaustive | best_known | a number}), lottery
 * ({agents, configs}: random settings of these agents, labelled name~1, name~2, ...). */
cs_status search__suite_load(const char *path, search__suite *out, cs_error *err);
void search__suite_fini(search__suite *suite);

#endif
