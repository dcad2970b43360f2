/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The state of iterated local search, shared by its descent (local.c) and its kicks. */
#ifndef AGENTS_LOCAL_PRIVATE_H
#define AGENTS_LOCAL_PRIVATE_H

#include "agents/ridge.h"

/* Free work a chain may do in one ask: a neighbour looked at is one step, a kick many; then it goes
 * on elsewhere.  Designs remembered in each table. */
enum { FREE_STEPS = 64, KICK_STEPS = 16, REMEMBERED = 1024 };

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
        int32_t focused;  /* the neighbourhood is thinned around what a kick changed */
        int32_t new_seen; /* a design was proposed since the last kick */
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
    /* By hash: what did not fit and was made to fit before; whose neighbourhood was opened. */
    uint64_t refused[REMEMBERED], opened[REMEMBERED];
} local_state;

enum { CHAINS, BATCH, START_WITH, KICK, COMPOUND, RESTART, FOCUS, CHOICE };

/* Puts the chain where its next descent begins: at the most promising of some uniform designs. */
cs_status agent__local_start(local_state *st, local_chain *c, cs_error *err);
/* Moves a point that does not fit to one that does, away from variable `pinned`; false when that
 * fails, or was tried from there before. */
bool agent__local_fit(local_state *st, local_chain *c, size_t pinned, int32_t *point);
/* The same after a kick from the incumbent: another split, or a few random moves. */
void agent__local_kick(local_state *st, local_chain *c);

#endif
