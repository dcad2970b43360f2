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
    uint64_t uniform_draws; /* 0: the suite's */
} search__suite_problem;

/* Two agents to test against each other; one may be another program's. */
typedef struct {
    const char *first, *second;
} search__suite_pair;

/* All memory is in the arena or the document. */
typedef struct {
    cs_doc *doc;
    cs_arena *arena;
    const char *name;
    uint64_t evaluations, seeds;
    double stop_within;     /* 0: runs go on to their budget */
    uint64_t uniform_draws; /* 0: none */
    search__suite_agent *agents;
    size_t n_agents;
    size_t n_listed; /* the first of them, without the lottery's */
    search__suite_problem *problems;
    size_t n_problems;
    /* Long runs whose best design is the reference of problems that are not enumerated. */
    search__suite_agent *references;
    size_t n_references;
    uint64_t reference_evaluations, reference_seeds;
    search__suite_pair *pairs;
    size_t n_pairs;
} search__suite;

/* Labels of the runs that measure a problem instead of an agent. */
#define SEARCH__EXHAUSTIVE_LABEL "exhaustive"
#define SEARCH__UNIFORM_LABEL    "uniform"

/* Keys:
 *   suite: 1
 *   name, evaluations (budget of a run), seeds (1 to that)
 *   agents: names, or {name, label, params: {k: v}}
 *   problems: {psa, label, objective, stacks, fix, optimum: exhaustive | best_known | a number,
 *     uniform: draws, instead of the suite's}
 *   lottery: {agents, configs}: random settings of these agents, labelled name~1, name~2, ...
 *   stop_within: regret at which a run ends, where only runs to a target are asked
 *   reference: {agents, evaluations, seeds}: long runs that come first
 *   uniform: draws that estimate the share of designs near the optimum where it is not counted
 *   pairs: [[a, b], ...]: agents to test against each other, seed by seed */
cs_status search__suite_load(const char *path, search__suite *out, cs_error *err);
void search__suite_fini(search__suite *suite);

#endif
