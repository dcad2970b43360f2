/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the agents share: moves in the encoded space, snapshots, the agent tables. */
#ifndef AGENTS_PRIVATE_H
#define AGENTS_PRIVATE_H

#include "agents/agent.h"

/* Stream numbers of the agents' random generators: (seed, stream, chain). */
enum {
    AGENT__STREAM_RANDOM = 1,
    AGENT__STREAM_WALK,
    AGENT__STREAM_GENETIC,
    AGENT__STREAM_LOCAL,
    AGENT__STREAM_ANNEALING,
    AGENT__STREAM_ANT_COLONY,
    AGENT__STREAM_TPE,
    AGENT__STREAM_BAYESIAN,
    AGENT__STREAM_NSGA2,
    AGENT__STREAM_RANDOM_RAW,
    AGENT__STREAM_GENETIC_RAW,
    AGENT__STREAM_AUTO
};

extern const agent_type agent__random, agent__walk, agent__genetic, agent__local, agent__annealing,
    agent__ant_colony, agent__tpe, agent__bayesian, agent__nsga2, agent__exhaustive, agent__auto,
    agent__random_raw, agent__genetic_raw;

/* ---- snapshots: one function per agent walks its state, for writing and for reading ---- */

struct agent__io {
    agent_bytes *out;        /* writing when not NULL */
    const unsigned char *in; /* reading otherwise */
    size_t left;
    cs_status status; /* first failure; later calls do nothing */
};

/* Writes `n` bytes of `data`, or overwrites them from the snapshot. */
void agent__io_block(agent__io *io, void *data, size_t n);
void agent__io_rng(agent__io *io, cs_rng *rng);
/* The snapshot of an agent inside another. */
void agent__io_agent(agent__io *io, agent *inner);
#define AGENT__IO(io, x) agent__io_block((io), &(x), sizeof(x))

/* ---- moves ---- */

typedef struct {
    int32_t var, value;
} agent__move;

/* Upper limit of agent__moves for any point of the space. */
size_t agent__moves_max(const psa_space *space);
/* All one-variable moves from `point` over active variables into `list`; returns their number.
 * Ordered variables step by 1 and 2, and by powers of two when they have more than 4 levels;
 * categories take every other value (64 random ones of larger sets); tuples take their neighbours.
 */
size_t agent__moves(const psa_space *space, cs_rng *rng, const int32_t *point, agent__move *list);
/* Applies a move and repairs the rest around it.  False (point undefined) when the move cannot be
 * kept or leads back to `from`. */
bool agent__apply(const psa_space *space, cs_rng *rng, const int32_t *from, agent__move move,
                  int32_t *point);
/* Gives variable `var` another value: mostly a neighbour, now and then any.  The point is left
 * invalid or not canonical: repair it. */
void agent__mutate_var(const psa_space *space, cs_rng *rng, size_t var, int32_t *point);
/* `n` random moves, each to a valid neighbour; the point stays valid. */
void agent__perturb(const psa_space *space, cs_rng *rng, size_t n, int32_t *point);

/* `n` moves of one tuple variable drawn at random (of any variable, should there be no tuple), each
 * to a neighbour or to any value with equal chances; returns n, or 0 when no variable has a choice.
 * `point` is as before afterwards. */
size_t agent__split_moves(const psa_space *space, cs_rng *rng, int32_t *point, size_t n,
                          agent__move *list);

bool agent__same(const agent_setup *setup, const int32_t *a, const int32_t *b);
/* True when the point has been evaluated already (then *score); false too when the caller keeps no
 * cache. */
bool agent__known(const agent_setup *setup, const int32_t *point, agent_score *score);
/* False when the memory pre-check refuses the point. */
bool agent__fits(const agent_setup *setup, const int32_t *point);
/* Moves a point that the memory pre-check refuses to one that fits, by up to three one-variable
 * moves away from variable `pinned`, each the best there is.  False when that is not enough.
 * `list` has room for agent__moves_max moves, `scratch` for three points. */
bool agent__make_fit(const agent_setup *setup, cs_rng *rng, size_t pinned, agent__move *list,
                     int32_t *scratch, int32_t *point);
/* What is known for free about a point: its cached score, or "infeasible" from the memory
 * pre-check.  False when only an evaluation can tell. */
bool agent__free_score(const agent_setup *setup, const int32_t *point, agent_score *score);
/* A valid point that is not known yet: up to `tries` uniform samples, then, in a space of at most
 * 2^20 points, the next unknown one after a random position; any point when there is none. */
cs_status agent__sample_new(const agent_setup *setup, cs_rng *rng, int tries, int32_t *point,
                            cs_error *err);
/* An unknown point that the memory pre-check does not refuse: up to 64 uniform samples; then
 * agent__sample_new. */
cs_status agent__sample_fitting(const agent_setup *setup, cs_rng *rng, int32_t *point,
                                cs_error *err);

/* Fisher-Yates over `n` moves. */
void agent__shuffle(cs_rng *rng, agent__move *list, size_t n);
/* Standard normal deviate. */
double agent__normal(cs_rng *rng);
/* Energy to compare designs on one scale: log of a positive objective, so that steps are relative;
 * infeasible ones lie above every feasible one by their violation. */
double agent__energy(const agent_score *score);

/* Reads the setup's parameter by position, as a count of at least 1. */
size_t agent__count(const agent_setup *setup, size_t index);

#endif
