/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Shared inside search/: the design cache, the database, the best designs so far. */
#ifndef SEARCH_PRIVATE_H
#define SEARCH_PRIVATE_H

#include "search/search.h"

/* ---- cache: canonical point -> score ---- */

/* Points are packed to the bits their variables need, so keys are exact (no hash collisions); about
 * 50 bytes a design. */
typedef struct search__cache search__cache;
search__cache *search__cache_create(const psa_space *space, size_t n_objectives);
void search__cache_destroy(search__cache *cache); /* NULL is a no-op */
#define SEARCH__NO_ENTRY SIZE_MAX
/* Entry of a point, or SEARCH__NO_ENTRY. */
size_t search__cache_find(search__cache *cache, const int32_t *point);
/* Adds a point that is not there; its score is pending until search__cache_set.  SEARCH__NO_ENTRY
 * when out of memory. */
size_t search__cache_add(search__cache *cache, const int32_t *point);
void search__cache_set(search__cache *cache, size_t entry, const agent_score *score);
/* False while the score is pending. */
bool search__cache_get(const search__cache *cache, size_t entry, agent_score *score);

/* ---- scores ---- */

/* Objectives to be minimized, from a trial. */
agent_score search__score(const search_problem *problem, const search_trial *trial);

/* ---- best designs so far ---- */

typedef struct {
    const search_problem *problem;
    double baseline_bandwidth; /* sum over active dimensions, B/s */
    search_outcome *outcome;   /* best, best_at_bandwidth, least are kept there */
} search__best;
cs_status search__best_init(search__best *best, const search_problem *problem,
                            search_outcome *outcome, cs_error *err);
void search__best_update(search__best *best, const search_trial *trial);

/* ---- the database: the only user of SQLite ---- */

/* One stored trial. */
typedef struct {
    uint64_t id;
    int status;
    const char *reason; /* borrowed until the next call */
    double violation;
    double objective[AGENT_MAX_OBJECTIVES];
    const void *point, *result;
    size_t point_bytes, result_bytes;
} search__row;

typedef struct {
    uint64_t trials, proposals, hits;
    const void *agent; /* borrowed until the next call */
    size_t agent_bytes;
} search__snapshot;

typedef struct search__store search__store;
typedef enum { SEARCH__CREATE, SEARCH__WRITE, SEARCH__READ } search__mode;
cs_status search__store_open(const char *path, search__mode mode, search__store **out,
                             cs_error *err);
/* True for a database without tables, false for anything else. */
bool search__store_blank(const char *path);
void search__store_close(search__store *store); /* NULL is a no-op; commits what is open */
cs_status search__store_begin(search__store *store, cs_error *err); /* no-op inside one */
cs_status search__store_commit(search__store *store, cs_error *err);
cs_status search__store_put_info(search__store *store, const char *key, const char *value,
                                 cs_error *err);
/* *value is NULL when absent; the caller frees it. */
cs_status search__store_get_info(search__store *store, const char *key, char **value,
                                 cs_error *err);
cs_status search__store_put_file(search__store *store, const char *path, const char *text, size_t n,
                                 cs_error *err);
cs_status search__store_get_files(search__store *store, cs_files *files, cs_error *err);
cs_status search__store_put_trial(search__store *store, const search__row *row, cs_error *err);
cs_status search__store_put_snapshot(search__store *store, const search__snapshot *snapshot,
                                     cs_error *err);
/* snapshot->agent is NULL when there is none yet. */
cs_status search__store_get_snapshot(search__store *store, search__snapshot *snapshot,
                                     cs_error *err);
cs_status search__store_count(search__store *store, uint64_t *n, cs_error *err);
/* Rows with first <= id <= last in order; stops when fn returns false. */
typedef bool (*search__row_fn)(void *context, const search__row *row);
cs_status search__store_each(search__store *store, uint64_t first, uint64_t last, search__row_fn fn,
                             void *context, cs_error *err);

/* Who gets the trials of a store. */
typedef struct {
    search__store *store;
    const search_problem *problem;
    search_trial_fn fn;
    void *context;
} search__reader;
/* Trials first..last in order; CS_EIO naming the first that cannot be read. */
cs_status search__read_trials(const search__reader *reader, uint64_t first, uint64_t last,
                              cs_error *err);

/* ---- the study behind its public face ---- */

cs_status search__study_append(search_study *study, const search_trial *trial, cs_error *err);
/* Stored trial `id` into `trial`, whose point must have room; CS_EIO when it is missing or not of
 * this space. */
cs_status search__study_fetch(search_study *study, uint64_t id, search_trial *trial, int32_t *point,
                              cs_error *err);
/* Calls fn for the trials first..last. */
cs_status search__study_range(const search_study *study, uint64_t first, uint64_t last,
                              search_trial_fn fn, void *context, cs_error *err);
/* Info beyond the fixed keys, e.g. the number of trials taken over at the start. */
cs_status search__study_put(search_study *study, const char *key, uint64_t value, cs_error *err);
/* *found is false when the key is absent. */
cs_status search__study_get(search_study *study, const char *key, uint64_t *value, bool *found,
                            cs_error *err);
/* Closes a study whose run has failed or come to nothing; one that this process made and that holds
 * no trial is removed.  NULL is a no-op. */
void search__study_abandon(search_study *study);
/* Ends the open transaction when it is 100 ms old, or always with `now`. */
cs_status search__study_commit(search_study *study, bool now, cs_error *err);
/* Stores the agent's snapshot in the open transaction, as the state after `trials` trials. */
cs_status search__study_snapshot(search_study *study, const search__snapshot *snapshot,
                                 cs_error *err);
cs_status search__study_last_snapshot(search_study *study, search__snapshot *snapshot,
                                      cs_error *err);
/* True when there is no file at `path`, or one without content that a killed run left. */
bool search__study_absent(const char *path);

/* Points and results as compact bytes: base-128 numbers, and the non-zero 8-byte words of a result
 * behind a bitmap.  Return the number of bytes; the buffer must hold 5 * n_vars, or
 * SEARCH__RESULT_MAX. */
#define SEARCH__RESULT_WORDS ((sizeof(sim_result) + 7) / 8)
#define SEARCH__RESULT_MAX   (SEARCH__RESULT_WORDS * 8 + (SEARCH__RESULT_WORDS + 7) / 8)
size_t search__pack_point(const int32_t *point, size_t n_vars, unsigned char *bytes);
bool search__unpack_point(const unsigned char *bytes, size_t n, int32_t *point, size_t n_vars);
size_t search__pack_result(const sim_result *result, unsigned char *bytes);
bool search__unpack_result(const unsigned char *bytes, size_t n, sim_result *result);

/* ---- designs known before a run ---- */

typedef struct {
    size_t n, capacity;
    int32_t *points; /* n x n_vars */
    search_trial *trials;
    uint64_t refused; /* rows that are no design of this space */
} search__warm;
void search__warm_fini(search__warm *warm);
/* From another study of the same input files, or from CSV as printed by `trials -f csv`. */
cs_status search__warm_load(const search_problem *problem, const char *path, search__warm *warm,
                            cs_error *err);
/* From the first n trials of the run's own study. */
cs_status search__warm_stored(search_study *study, uint64_t n, search__warm *warm, cs_error *err);

/* ---- uniform draws of valid designs ---- */

typedef struct {
    const search_problem *problem;
    cs_rng *rng;
    sim_scratch **scratch; /* jobs */
    int jobs;
    size_t n_vars;
    int32_t *points;
    search_trial *trials; /* the last ones drawn, in order */
    cs_status *status;    /* of their evaluation */
} search__draws;
/* Room for `room` draws at a time on `jobs` threads; takes over `rng`, NULL being out of memory.
 * To be finished also when it fails. */
CS_MUST_USE cs_status search__draws_init(search__draws *d, const search_problem *problem, int jobs,
                                         size_t room, cs_rng *rng);
void search__draws_fini(search__draws *d);
/* Draws and evaluates n <= room designs; the same ones for any number of jobs.  CS_ENOMEM, or
 * another status when the space has no valid point. */
CS_MUST_USE cs_status search__draws_next(search__draws *d, size_t n);

/* ---- engine: proposals -> scores ---- */

typedef struct search__slice search__slice;
typedef struct {
    uint64_t hash; /* of the point */
    double violation;
} search__verdict;

/* Filled by the caller after init: budget, stop, deadline_s, raw, study and stored, the hooks. */
typedef struct {
    const search_problem *problem;
    search_outcome *out; /* counters and best designs are kept there */
    search__best best;
    search__cache *cache;
    search_study *study;    /* owned, NULL: none */
    uint64_t stored;        /* trials the study holds already: replayed */
    uint64_t budget;        /* unique evaluations in all */
    uint64_t invalid;       /* trials of a raw agent that break a constraint */
    const char *agent_name; /* for messages */
    bool raw;               /* proposals may be invalid: point[0] < 0 */
    const volatile int *stop;
    double start_s, deadline_s;
    sim_scratch **scratch;
    int jobs;
    size_t n_vars, batch;
    /* The batch being worked on. */
    const int32_t *points;
    agent_score *score;
    size_t *entry; /* cache entry whose score a proposal takes, or SEARCH__NO_ENTRY */
    search__slice *slice;
    bool ended; /* out->stop says why */
    /* Called for each trial in order, and after each slice of a batch; NULL allowed. */
    void (*on_trial)(void *context, const search_trial *trial);
    void (*on_slice)(void *context);
    void *context;
    search__verdict *verdict; /* pre-checks made lately, by hash of the design */
    bool no_memory;           /* a pre-check ran out of memory */
} search__engine;

/* `batch`: most proposals at once; jobs 0: search_default_jobs.  Fini whatever init returned. */
cs_status search__engine_init(search__engine *e, const search_problem *problem, search_outcome *out,
                              int jobs, size_t batch, cs_error *err);
void search__engine_fini(search__engine *e); /* of a zeroed engine: a no-op */
/* Scores of n valid canonical points.  When the run ends inside the batch (budget, time, signal)
 * e->ended is set, the trials are a prefix in ask order, and `score` is not complete. */
cs_status search__engine_work(search__engine *e, size_t n, const int32_t *points,
                              agent_score *score, cs_error *err);
void search__engine_end(search__engine *e, search_stop why); /* the first reason stays */
/* Takes over a trial that was not evaluated here: it gets the next number, goes to cache and study
 * and raises the budget by one.  A known design is left out. */
cs_status search__engine_adopt(search__engine *e, search_trial *trial, cs_error *err);
/* Takes over the study's first `trials` trials. */
cs_status search__engine_reload(search__engine *e, uint64_t trials, cs_error *err);
bool search__engine_exhausted(const search__engine *e);
/* agent_setup.lookup and .precheck, with the engine as context. */
bool search__engine_lookup(void *context, const int32_t *point, agent_score *score);
double search__engine_precheck(void *context, const int32_t *point);

/* Before the first ask: takes over the designs of `warm_path` (NULL: none), evaluates the designs
 * that the PSA pins, and gives both to the agent.  A study that holds them already answers itself.
 */
cs_status search__begin(search__engine *e, agent *who, const char *warm_path, cs_error *err);
/* Trials the study took over at its start. */
cs_status search__begun_with(search__engine *e, uint64_t *n, cs_error *err);

/* A design as {"knob": "value", ...}, active knobs only; the caller owns it. */
cs_json *search__design_json(const search_problem *problem, const int32_t *point);
/* Reads {"knob": value, ...} (knobs not named get their first value), {"index": [one per knob]}, or
 * {"point": [one per variable]}, which is repaired; `index` is work space of n_knobs.  Knobs that
 * break a constraint give point[0] = -1. */
cs_status search__design_read(const search_problem *problem, const cs_json *design, int32_t *index,
                              cs_rng *rng, int32_t *point, cs_error *err);

/* Seconds of a clock that only goes forward. */
double search__now_s(void);
/* Processor time of this thread. */
double search__cpu_s(void);

#endif
