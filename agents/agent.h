/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Search algorithms behind one constant table each.  An agent sees only the encoded space and
 * scores; search/ evaluates, counts, caches, stops.  A new agent is one file and one row of the
 * registry. */
#ifndef AGENT_H
#define AGENT_H

#include "psa/psa.h"

#define AGENT_MAX_OBJECTIVES 4

typedef enum { AGENT_FEASIBLE, AGENT_INFEASIBLE, AGENT_FAILED, AGENT_INVALID } agent_outcome;

/* What the evaluation of a point gave; objectives are to be minimized. */
typedef struct {
    agent_outcome outcome;
    double
        objective[AGENT_MAX_OBJECTIVES]; /* meaningful when feasible (also given when infeasible) */
    double violation;                    /* > 0 when infeasible: larger is worse */
    bool cached;                         /* came from the cache */
} agent_score;

/* Deb's order: feasible before infeasible before failed; then objective[0]; then violation.
 * < 0 when a is better. */
int agent_score_compare(const agent_score *a, const agent_score *b);

typedef struct {
    const char *name;       /* key of --param */
    double value, min, max; /* default and accepted range */
    const char *help;
} agent_param;

/* What an agent is started with. */
typedef struct {
    const psa_space *space;
    uint64_t seed;       /* master seed; streams are (seed, agent id, chain) */
    const double *param; /* in the order of agent_type.params */
    size_t n_objectives;
    uint64_t budget; /* unique evaluations planned, for schedules */
    /* Free, cheap memory verdict of a point (NULL: none): < 0 unknown, 0 fits, > 0 violation. */
    double (*precheck)(void *context, const int32_t *point);
    void *precheck_context;
} agent_setup;

/* Growing buffer for save. */
typedef struct {
    unsigned char *data;
    size_t n, capacity;
} agent_bytes;
CS_MUST_USE cs_status agent_bytes_put(agent_bytes *bytes, const void *data, size_t n);
void agent_bytes_fini(agent_bytes *bytes);

/* One algorithm.  Required: init, ask, tell, save, load, fini.  `ask` writes up to *n points
 * (n_vars each) and sets *n; 0 points means the agent has nothing left to propose (space
 * exhausted). `tell` gets exactly the points of the last ask in ask order.  Everything that decides
 * the future is in what `save` writes: load(save(state)) continues to the same digits. */
typedef struct {
    const char *name, *summary;
    size_t state_size;
    const agent_param *params; /* ends with a NULL name */
    bool raw;                  /* proposes invalid points too (comparison only) */
    cs_status (*init)(void *state, const agent_setup *setup, cs_error *err);
    cs_status (*ask)(void *state, size_t *n, int32_t *points, cs_error *err);
    cs_status (*tell)(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err);
    /* Serializes into a growing byte buffer / reads it back. */
    cs_status (*save)(const void *state, agent_bytes *out, cs_error *err);
    cs_status (*load)(void *state, const void *bytes, size_t n, cs_error *err);
    void (*fini)(void *state);
} agent_type;

/* The registry. */
extern const agent_type *const agent_types[]; /* ends with NULL */
/* By name; CS_EINVAL with the nearest name. */
CS_MUST_USE cs_status agent_find(const char *name, const agent_type **out, cs_error *err);
#define AGENT_MAX_PARAMS 32
/* Fills param with the defaults, then applies "k=v" assignments; range checked. */
CS_MUST_USE cs_status agent_params(const agent_type *type, const char *const *assignments, size_t n,
                                   double param[AGENT_MAX_PARAMS], cs_error *err);
/* Largest number of points one ask may return, from the parameters (its `batch`). */
size_t agent_batch(const agent_type *type, const double *param);

/* An agent in being: type + state. */
typedef struct agent agent;
CS_MUST_USE cs_status agent_create(const agent_type *type, const agent_setup *setup, agent **out,
                                   cs_error *err);
void agent_destroy(agent *agent); /* NULL is a no-op */
CS_MUST_USE cs_status agent_ask(agent *agent, size_t *n, int32_t *points, cs_error *err);
CS_MUST_USE cs_status agent_tell(agent *agent, size_t n, const int32_t *points,
                                 const agent_score *score, cs_error *err);
CS_MUST_USE cs_status agent_save(const agent *agent, agent_bytes *out, cs_error *err);
CS_MUST_USE cs_status agent_load(agent *agent, const void *bytes, size_t n, cs_error *err);

#endif
