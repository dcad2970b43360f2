/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Ask -> evaluate -> tell: budget, cache, OpenMP over candidates, the study file.  The place where
 * agents and simulator meet. */
#ifndef SEARCH_H
#define SEARCH_H

#include "agents/agent.h"
#include "common/files.h"
#include "common/json.h"
#include "sim/sim.h"

/* ---- a problem: PSA + models + space + objective ---- */

typedef struct {
    const char *psa_path;
    const char *const *stacks; /* NULL: all */
    size_t n_stacks;
    const char *const *fixes; /* "knob=value" */
    size_t n_fixes;
    const char *objectives; /* comma list of names; NULL: the PSA's first */
} search_problem_options;

typedef struct {
    psa_schema *schema;
    sim_model *model;
    psa_space *space;
    size_t n_objectives;
    size_t objective[AGENT_MAX_OBJECTIVES]; /* indices into the schema's objectives */
    uint64_t hash;                          /* of PSA, system, models, stacks, fixes */
    cs_files *files;                        /* every input file as read */
    /* As given, for the study's record; lists are joined by newlines. */
    char *psa_path, *stacks, *fixes, *objectives;
} search_problem;

CS_MUST_USE cs_status search_problem_load(const search_problem_options *options,
                                          search_problem *out, cs_error *err);
void search_problem_fini(search_problem *problem);

/* ---- trials ---- */

typedef enum { SEARCH_FEASIBLE, SEARCH_INFEASIBLE, SEARCH_FAILED, SEARCH_INVALID } search_status;
extern const char *const search_status_names[];

enum { SEARCH_REASON_BYTES = 256 };

/* One evaluated design. `objective[i]` is the value as the PSA states it (not negated). */
typedef struct {
    uint64_t id; /* from 1, in ask order */
    search_status status;
    char reason[SEARCH_REASON_BYTES]; /* what search_trial_reason cannot tell from the result */
    double violation;
    double objective[AGENT_MAX_OBJECTIVES]; /* of the problem's selected objectives */
    sim_result result;
    const int32_t *point; /* n_vars, borrowed from the study or caller */
} search_trial;

/* Why a trial is infeasible or failed ("memory: ...", "limit: ..."); "" otherwise.  Either part of
 * the trial or written to `text`. */
const char *search_trial_reason(const search_trial *trial, char text[SEARCH_REASON_BYTES]);

/* Evaluates one point into `out` (id and point are left alone).  A design that does not fit in
 * memory is rejected before the engine runs: its times are NAN.  Simulator errors become
 * SEARCH_FAILED with the reason; the status is CS_ENOMEM when this process ran out of memory, which
 * says nothing about the design, else CS_OK. */
cs_status search_evaluate(const search_problem *problem, const int32_t *point, sim_scratch *scratch,
                          search_trial *out);
/* The same for a configuration that need not be a point of the space. */
cs_status search_evaluate_config(const search_problem *problem, const sim_config *config,
                                 sim_scratch *scratch, search_trial *out);

/* < 0 when a is better: feasible first, then objective 0, then lower network cost, lower sum of
 * bandwidth, lower memory, lower id. */
int search_trial_compare(const search_problem *problem, const search_trial *a,
                         const search_trial *b);

/* ---- study: one SQLite file ---- */

typedef struct search_study search_study;

typedef struct {
    const char *agent;
    const char *params; /* agent_params_text */
    uint64_t seed;
    uint64_t evaluations; /* budget the agent plans with; kept when a resume asks for more */
} search_study_setup;

/* Creates a study (refused when the file exists), or opens one for resume: the difference is named
 * when version, PSA, seed, agent or parameters differ, and a second process is refused. */
CS_MUST_USE cs_status search_study_create(const char *path, const search_problem *problem,
                                          const search_study_setup *setup, search_study **out,
                                          cs_error *err);
CS_MUST_USE cs_status search_study_resume(const char *path, const search_problem *problem,
                                          const search_study_setup *setup, search_study **out,
                                          cs_error *err);
/* Read-only, for trials/best/front/report; rebuilds the problem from the texts kept inside. */
CS_MUST_USE cs_status search_study_open(const char *path, search_study **out, cs_error *err);
void search_study_close(search_study *study); /* NULL is a no-op */
const search_problem *search_study_problem(const search_study *study);
uint64_t search_study_n_trials(const search_study *study);
/* Value of the study's info table: "agent", "params", "seed", "version", "psa_name", "psa_path",
 * "hash", "stacks", "fixes", "objectives", "evaluations"; NULL for another key. */
const char *search_study_info(const search_study *study, const char *key);
/* Calls `fn` for every trial in id order; stops when it returns false. */
typedef bool (*search_trial_fn)(void *context, const search_trial *trial);
CS_MUST_USE cs_status search_study_each(const search_study *study, search_trial_fn fn,
                                        void *context, cs_error *err);

/* ---- the loop ---- */

/* What a run tells while it goes (for the progress line); called after each batch. */
typedef struct {
    uint64_t done, budget, cache_hits, infeasible, failed;
    double wall_s, evaluations_per_s;
    bool has_best;
    double best;
    double bound, gap; /* NAN: none */
} search_progress;

typedef struct {
    const agent_type *agent;
    const char *const *params;
    size_t n_params;
    uint64_t evaluations; /* unique evaluations in all, also after resume */
    double timeout_s;     /* 0: none */
    uint64_t seed;
    int jobs;               /* threads; 0: what is available */
    const char *study_path; /* NULL: no study */
    bool resume;
    const char *warm_start;   /* study or CSV, NULL */
    const volatile int *stop; /* set by a signal handler to the signal number */
    void (*progress)(void *context, const search_progress *progress);
    /* Each trial in order as it is recorded (borrowed); NULL: none. */
    void (*on_trial)(void *context, const search_trial *trial);
    void *progress_context; /* of both */
} search_options;

/* Why a run ended. */
typedef enum {
    SEARCH_BUDGET,
    SEARCH_EXHAUSTED,
    SEARCH_TIMEOUT,
    SEARCH_SIGNAL,
    SEARCH_GAP,
    SEARCH_STALLED /* 200 proposals per evaluation of the budget, and no new design among them */
} search_stop;
extern const char *const search_stop_names[];

/* Outcome; owns copies of the best and least-violating trials. */
typedef struct search_outcome {
    uint64_t unique, cache_hits, infeasible, failed, proposals;
    double wall_s, evaluations_per_s;
    double agent_s;    /* processor time inside the agent but for pre-checks */
    double precheck_s; /* elapsed time of memory pre-checks made for the agent */
    search_stop stop;
    char failure[256]; /* reason of the first failed trial; "" when none failed */
    bool has_best;
    search_trial best; /* best feasible */
    size_t n_least;    /* up to 3 least-violating when nothing is feasible */
    search_trial least[3];
    bool has_best_at_bandwidth; /* best feasible at no more than the baseline's total bandwidth */
    search_trial best_at_bandwidth;
    int32_t *points; /* storage of the trials' points */
    int jobs;
    double bound, gap;
} search_outcome;

CS_MUST_USE cs_status search_run(const search_problem *problem, const search_options *options,
                                 search_outcome *out, cs_error *err);
void search_outcome_fini(search_outcome *outcome);

/* Knobs without effect at a design: idle[k] (n_knobs) is true when knob k is active, at least one
 * change of it alone is valid, and none changes status, latency, memory or objectives.  Simulates
 * up to as many designs as the knobs have values. */
CS_MUST_USE cs_status search_idle_knobs(const search_problem *problem, const int32_t *point,
                                        bool *idle, cs_error *err);

/* ---- serve: an environment for agents outside ---- */

/* Lines in and out, without their newline. */
typedef struct {
    /* Next request, valid until the next call; false at the end. */
    bool (*read)(void *context, const char **line, size_t *length);
    /* false when nobody reads any more. */
    bool (*write)(void *context, const char *line, size_t length);
    void *context;
} search_channel;

typedef struct {
    const agent_type *agent; /* of `ask`; NULL: requests to ask are refused */
    const char *const *params;
    size_t n_params;
    uint64_t evaluations; /* budget of unique evaluations, 0: none */
    double timeout_s;     /* 0: none */
    uint64_t seed;        /* of `sample` and of the agent */
    int jobs;
    const char *study_path; /* NULL: no study; must not exist */
    const volatile int *stop;
    unsigned most_refused; /* requests refused in a row that end it with CS_EINVAL, 0: any number */
    /* Full description of a trial, for answers; NULL: the short one. */
    cs_json *(*trial_json)(void *context, const search_problem *problem, const search_trial *trial);
    void *trial_context;
} search_serve_options;

/* Answers requests until the channel ends, "quit", or the budget is used up.  One JSON object a
 * line:
 *   {"cmd":"describe"}                          knobs with their values, counts, objectives
 *   {"cmd":"sample","n":N}                      N uniformly drawn valid designs
 *   {"cmd":"evaluate","designs":[D,...]}        trials, in order; a known design is answered again
 *   {"cmd":"ask"}                               the built-in agent's next designs
 *   {"cmd":"tell","results":[{"objectives":[..],"violation":V},...]}  what they scored elsewhere;
 *                                               without "results" they are evaluated here
 *   {"cmd":"best"}                              the best trial so far, or the least violating one
 *   {"cmd":"quit"}
 * A design D is {"knob": value, ...} with values as in the PSA file, or {"index": [i, ...]} with
 * one value index per knob in the order of describe.  Every answer has "ok"; false comes with
 * "error" and changes nothing.  A line may have at most 16 MiB, a request at most 65,536 designs.
 */
CS_MUST_USE cs_status search_serve(const search_problem *problem,
                                   const search_serve_options *options,
                                   const search_channel *channel, search_outcome *out,
                                   cs_error *err);

/* ---- compare: agents x problems x seeds, with statistics ---- */

/* Evaluations at which regret is read. */
#define SEARCH_N_CHECKPOINTS 6
extern const uint64_t search_checkpoints[SEARCH_N_CHECKPOINTS]; /* 30, 100, ... 10,000 */

/* One problem of a suite. */
typedef struct {
    const char *label;
    double optimum;       /* value of its objective that regret refers to */
    const char *kind;     /* "exhaustive", "stated", or "best_known" (over all runs of the suite) */
    size_t references;    /* best_known: long runs made first, */
    size_t agreeing;      /* and those of them that end there (to 1e-9) */
    double share_1;       /* share of uniform designs within 1 % of it, NAN when unknown */
    uint64_t draws, hits; /* where the share is estimated: draws, and those within 1 % */
    double random_median; /* log 2 / share_1: uniform draws to within 1 %; INFINITY without a hit */
    double random_least;  /* lower end of its 95 % interval; random_median when it is counted */
    char valid_points[40];
} search_compare_problem;

/* One agent on one problem.  Regret r = |best / optimum - 1|; infinite before the first feasible
 * design.  Medians and quartiles over the seeds; NAN where a checkpoint is beyond the budget.  In a
 * suite whose runs stop near the optimum, regrets below that are not told apart, and evaluations to
 * there are ranked and tested instead. */
typedef struct {
    size_t problem; /* index */
    const char *agent;
    size_t runs;
    double regret[SEARCH_N_CHECKPOINTS], low[SEARCH_N_CHECKPOINTS], high[SEARCH_N_CHECKPOINTS];
    double ci_low, ci_high;      /* bootstrap 95 % interval of the median at the end */
    double final;                /* median regret at the end */
    double success_1, success_5; /* share of runs that reach 1 % and 5 % */
    double ert_1, ert_5;         /* evaluations of all runs over successes (INFINITY: none) */
    double median_1, median_5;   /* evaluations to target, unreached counts as infinite */
    double speedup;              /* uniform's median (or its least, without a hit) over median_1 */
    double area;                 /* anytime: mean over log-spaced budgets of log regret, 0..1 */
    double rank;                 /* mean rank by final regret among agents, ties averaged */
    double p;                    /* Wilcoxon signed rank against the best agent, Holm */
    double a12;                  /* chance that the best agent does better, ties half */
    bool best, tied;             /* tied: not told apart from the best at 5 % */
    double agent_s_per_proposal; /* time inside the agent */
} search_compare_row;

/* Two agents on one problem, over the seeds that both ran. */
typedef struct {
    size_t problem;
    const char *first, *second;
    size_t n, wins, ties; /* seeds; those where the first is better, or as good */
    double median[2];     /* of what is tested: final regret, or evaluations to target */
    double p, holm;       /* Wilcoxon signed rank; adjusted over the pair's problems */
    bool better, worse;   /* first than second: p < 0.01 */
} search_compare_pair;

/* Random settings of an agent's parameters on one problem: medians of final regret. */
typedef struct {
    size_t problem, configs;
    const char *agent;
    double own;                 /* of the agent with its defaults, NAN when it did not run */
    double best, median, worst; /* of the settings */
    double as_good;             /* share of the settings no worse than the defaults */
    double ert_own, ert_median; /* ERT to 1 % of the defaults, median ERT of the settings */
} search_compare_lottery;

typedef struct {
    char *name;
    double stop_within; /* of the suite; 0: none */
    search_compare_problem *problems;
    size_t n_problems;
    search_compare_row *rows; /* by problem, then agent in the suite's order */
    size_t n_rows;
    search_compare_pair *pairs; /* by pair of the suite, then problem */
    size_t n_pairs;
    search_compare_lottery *lottery; /* by problem, then agent */
    size_t n_lottery;
    uint64_t runs_done, runs_kept; /* done now, taken from an earlier call */
    void *storage;
} search_compare_result;

typedef struct {
    const char *suite_path;
    const char *runs_path; /* JSON lines, one finished run each: appended to, and read on resume */
    int jobs;
    const volatile int *stop;
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
} search_compare_options;

/* Runs what `runs_path` does not hold yet and computes the tables.  CS_ESTOPPED when a signal came
 * first; what was finished is kept in the file.  Lines of other programs in the same form count as
 * further agents: {"problem", "agent", "seed", "evaluations", "proposals", "agent_s", "trace": [[n,
 * value], ...]}, where the trace lists improvements of the best feasible value. */
CS_MUST_USE cs_status search_compare(const search_compare_options *options,
                                     search_compare_result *out, cs_error *err);
void search_compare_fini(search_compare_result *result);

/* Threads available here: the least of OMP_NUM_THREADS, affinity and the cgroup's CPU quota. */
int search_default_jobs(void);

/* Bench: uniformly drawn feasible designs simulated for `seconds` (no design cache). */
typedef struct {
    double evaluations_per_s, evaluations_per_s_per_core, rejected_per_s;
    uint64_t feasible, rejected;
    double wall_s, first_sample_s;
    int jobs;
} search_bench_result;
CS_MUST_USE cs_status search_bench(const search_problem *problem, double seconds, int jobs,
                                   uint64_t seed, search_bench_result *out, cs_error *err);

#endif
