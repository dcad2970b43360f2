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
    const double *param; /* in the order of agent_type.params; must outlive the agent */
    size_t n_objectives;
    uint64_t budget; /* unique evaluations planned, for schedules */
    /* Free, cheap memory verdict of a point (NULL: none): < 0 unknown, 0 fits, > 0 violation. */
    double (*precheck)(void *context, const int32_t *point);
    void *precheck_context;
    /* Score of a point that has been evaluated already (NULL: the caller keeps no cache): false
     * when it is new.  What it knows follows from the trials told so far, so a resumed run sees the
     * same. */
    bool (*lookup)(void *context, const int32_t *point, agent_score *score);
    void *lookup_context;
} agent_setup;

/* Growing buffer for snapshots. */
typedef struct {
    unsigned char *data;
    size_t n, capacity;
} agent_bytes;
CS_MUST_USE cs_status agent_bytes_put(agent_bytes *bytes, const void *data, size_t n);
void agent_bytes_fini(agent_bytes *bytes);

/* A snapshot being written or read (agents_private.h). */
typedef struct agent__io agent__io;

/* One algorithm.  Required: init, ask, tell, snapshot, fini.  `ask` writes up to *n points (n_vars
 * each) and sets *n; 0 points means the agent has nothing left to propose (space exhausted).
 * `tell` gets exactly the points of the last ask in ask order; a snapshot is only taken after a
 * tell.  Everything that decides the future is in the snapshot: a state read back continues to the
 * same digits. */
typedef struct {
    const char *name, *summary;
    size_t state_size;
    const agent_param *params; /* ends with a NULL name */
    /* Proposes invalid points too (comparison only): such a proposal has point[0] < 0. */
    bool raw;
    cs_status (*init)(void *state, const agent_setup *setup, cs_error *err);
    cs_status (*ask)(void *state, size_t *n, int32_t *points, cs_error *err);
    cs_status (*tell)(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err);
    /* Optional: designs known before the start (warm start, pinned designs), best first; called
     * once before the first ask. */
    cs_status (*seed)(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err);
    /* Optional: designs that others have evaluated meanwhile (of a portfolio), between a tell and
     * the next ask. */
    void (*observe)(void *state, size_t n, const int32_t *points, const agent_score *score);
    /* Walks the state, writing it to `io` or reading it from there. */
    void (*snapshot)(void *state, agent__io *io);
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
/* Canonical record of all parameters, "k=v k=v"; returns text. */
const char *agent_params_text(const agent_type *type, const double *param, char *text, size_t size);
/* Largest number of points one ask may return, from the parameters (its `batch`, times its `chains`
 * where it has several). */
size_t agent_batch(const agent_type *type, const double *param);

/* An agent in being: type + state. */
typedef struct agent agent;
CS_MUST_USE cs_status agent_create(const agent_type *type, const agent_setup *setup, agent **out,
                                   cs_error *err);
void agent_destroy(agent *self); /* NULL is a no-op */
CS_MUST_USE cs_status agent_ask(agent *self, size_t *n, int32_t *points, cs_error *err);
CS_MUST_USE cs_status agent_tell(agent *self, size_t n, const int32_t *points,
                                 const agent_score *score, cs_error *err);
/* Designs known before the start, best first; ignored by agents that cannot use them. */
CS_MUST_USE cs_status agent_seed(agent *self, size_t n, const int32_t *points,
                                 const agent_score *score, cs_error *err);
/* Designs that others have evaluated since the last tell; ignored by agents that cannot use them.
 */
void agent_observe(agent *self, size_t n, const int32_t *points, const agent_score *score);
/* Appends the agent's snapshot to `out`; reads one back into an agent created alike (CS_EIO when it
 * does not fit). */
CS_MUST_USE cs_status agent_save(agent *self, agent_bytes *out, cs_error *err);
CS_MUST_USE cs_status agent_load(agent *self, const void *bytes, size_t n, cs_error *err);

#endif
