/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The state of iterated local search, shared by its descent (local.c) and its kicks. */
#ifndef AGENTS_LOCAL_PRIVATE_H
#define AGENTS_LOCAL_PRIVATE_H

#include "agents/ridge.h"

/* Free neighbours a chain may look at in one ask; designs remembered as made to fit before. */
enum { FREE_STEPS = 1024, REFUSED = 1024 };

enum { SCOUT, START, DESCEND }; /* phases of a chain */

typedef struct {
    cs_rng *rng;
    int32_t *at, *incumbent; /* current design and best local optimum since the start */
    agent__move *moves;      /* neighbourhood of `at`, most promising first */
    double *promise;         /* change of energy that the model expects of each move */
    int32_t *asked;          /* batch x n_vars: proposals of the open ask */
    struct {
        agent_score at_score, incumbent_score;
        uint64_t n_moves, next_move; /* list and position in it */
        uint64_t failures;           /* kicks without a better optimum */
        double hit_rate;             /* recent share of improving neighbours */
        uint64_t scouted;            /* designs drawn before the first descent */
        int32_t phase, has_incumbent;
        int32_t focused, pad_; /* the neighbourhood is thinned around what a kick changed */
    } run;
    size_t n_asked;
} local_chain;

typedef struct {
    agent_setup setup;
    size_t n_vars, n_chains, batch, n_choice;
    local_chain *chains;
    int32_t *work, *kicked; /* candidates */
    int32_t *scratch;       /* three points */
    agent__move *fixes;     /* neighbourhood of a design being made to fit */
    agent__ridge *model;
    uint64_t refused[REFUSED]; /* by hash: what did not fit and was made to fit before */
} local_state;

enum { CHAINS, BATCH, START_WITH, KICK, COMPOUND, RESTART, FOCUS, CHOICE };

/* Puts the chain where its next descent begins: at the most promising of some uniform designs. */
cs_status agent__local_start(local_state *st, local_chain *c, cs_error *err);
/* The same after a kick from the incumbent: another split, or a few random moves. */
void agent__local_kick(local_state *st, local_chain *c);

#endif
