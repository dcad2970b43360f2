/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * PSA files (Parameter Set Architecture): knobs, values, constraints, objectives -> an indexed
 * space of valid designs.  psa knows neither models nor simulator: the caller hands in constant
 * tables (what a configuration consists of, what rules always hold, what results are called), and a
 * knob's name is a path into the configuration.
 *
 * Flow: psa_schema_load (parse PSA and system file) -> the caller loads the models and binds their
 * facts (psa_schema_bind) -> psa_space_create. */
#ifndef PSA_H
#define PSA_H

#include "common/doc.h"

#define PSA_MAX_DIMS 8

/* ---- tables owned by the caller ---- */

typedef enum {
    PSA_INT,  /* stored as int64_t */
    PSA_REAL, /* stored as double, SI */
    PSA_ENUM, /* stored as int32_t index into names */
    PSA_BOOL, /* stored as int32_t 0/1 */
    PSA_ORDER /* stored as int32_t through psa_field.parse (placement) */
} psa_kind;

/* One field of the configuration. */
typedef struct {
    const char *path; /* "network.bandwidth"; its stack is the part before the first dot */
    psa_kind kind;
    cs_dimension unit;
    bool per_dimension;       /* PSA_MAX_DIMS values from offset on */
    size_t offset;            /* into the configuration struct */
    const char *const *names; /* PSA_ENUM: NULL-terminated */
    double fallback;          /* value where neither PSA nor system file gives one; NAN: required */
    double min, max;          /* accepted range (inclusive); 0,0: any */
    /* PSA_ORDER: text <-> stored value; parse fails with what was expected. */
    cs_status (*parse)(const char *text, int32_t *out, cs_error *err);
    const char *(*format)(int32_t value, char text[64]);
    const char *help;
    /* Name of the enumerator/size condition under which the field has no effect on a dimension of
     * size 1 (topology, algorithm, bandwidth): inactive there. */
    bool inactive_on_size_one;
    bool optional; /* PSA_REAL with a NAN fallback: absent (NAN) where no file gives it */
} psa_field;

/* An implied constraint, always in force.  `expression` is in the PSA language over fields, facts
 * (`model.heads`) and other names; if one of its `model.` facts is absent the rule does not apply.
 * `relaxed_by` says when it is out of force: "allow_idle" when that top-level key (or
 * uneven_stages, memory_limit) is on, "!allow_idle" when it is off, "?network_cost" unless the
 * PSA's objectives or constraints mention that result; NULL: never. `per_dimension`: the expression
 * mentions fields indexed by the name `d`, and holds for each d. */
typedef struct {
    const char *name;       /* "tensor parallel divides heads" */
    const char *expression; /* "model.heads % workload.tp == 0" */
    const char *relaxed_by;
    bool per_dimension;
} psa_rule;

/* A named result usable in objectives and limits; a double at `offset` of the result struct. */
typedef struct {
    const char *name; /* "latency" */
    cs_dimension unit;
    size_t offset;
    const char *help;
} psa_result;

typedef struct {
    const psa_field *fields;
    size_t n_fields;
    size_t config_size; /* bytes of the configuration struct; it may be copied by memcpy */
    const psa_rule *rules;
    size_t n_rules;
    const psa_result *results;
    size_t n_results;
    const char *dimension_count_path; /* "network.npus": per-dimension field that gives D */
} psa_tables;

/* A constant of one workload, e.g. {"model.heads", 96} or {"workload.global_batch", 2048}. */
typedef struct {
    const char *name;
    double value;
} psa_fact;

/* One entry of `workloads:`; paths are resolved against the PSA file. */
typedef struct {
    const char *model_path;
    const cs_node *node; /* the whole mapping, for keys psa does not know (mode, context ...) */
    double weight;       /* default 1 */
} psa_workload;

/* ---- schema ---- */

typedef struct psa_schema psa_schema;

/* Reads the PSA file and its system file, checks every key, value, unit and expression against the
 * tables (which must outlive the schema).  CS_EPARSE / CS_ESCHEMA with file:line:column. */
CS_MUST_USE cs_status psa_schema_load(const char *path, const psa_tables *tables, psa_schema **out,
                                      cs_error *err);
/* The same from memory: `psa` NULL reads the file `name`; `system` NULL reads what the PSA names.
 * All texts are borrowed for the call. */
typedef struct {
    const char *name; /* stands for the file in messages; paths are relative to it */
    const char *psa;
    size_t psa_length;
    const char *system;
    size_t system_length;
} psa_text;
CS_MUST_USE cs_status psa_schema_parse(const psa_text *text, const psa_tables *tables,
                                       psa_schema **out, cs_error *err);
void psa_schema_destroy(psa_schema *schema); /* NULL is a no-op */

/* The PSA's own document, for positions of what the caller parses (workload entries). */
const cs_doc *psa_schema_doc(const psa_schema *schema);
const cs_doc *psa_schema_system_doc(const psa_schema *schema); /* NULL: none */
const cs_doc *psa_schema_device_doc(const psa_schema *schema); /* NULL: none */
/* What is allowed but looks like a slip, such as a bandwidth of 50 B/s: "file:line:column: ...". */
size_t psa_schema_n_warnings(const psa_schema *schema);
const char *psa_schema_warning(const psa_schema *schema, size_t i); /* borrowed */
/* Adds to the warnings what of an assignment ("network.bandwidth=50 B/s") looks like a slip; the
 * same errors as psa_schema_assign. */
CS_MUST_USE cs_status psa_schema_question(psa_schema *schema, const char *assignment,
                                          cs_error *err);
/* Pinned starting designs (`starts:`, mappings of knob to value): the baseline with the values of
 * start i, written into `config`. */
size_t psa_schema_n_starts(const psa_schema *schema);
CS_MUST_USE cs_status psa_schema_start(const psa_schema *schema, size_t i, void *config,
                                       cs_error *err);
const char *psa_schema_name(const psa_schema *schema);
uint64_t psa_schema_hash(const psa_schema *schema); /* PSA + system + device files */
size_t psa_schema_n_workloads(const psa_schema *schema);
const psa_workload *psa_schema_workload(const psa_schema *schema, size_t i);
/* Way several workloads are combined: "sum" (weighted), "mean", "max"; `aggregate:` of the PSA. */
const char *psa_schema_aggregate(const psa_schema *schema);
size_t psa_schema_n_dims(const psa_schema *schema);
const psa_tables *psa_schema_tables(const psa_schema *schema);
/* Top-level switches. */
bool psa_schema_allow_idle(const psa_schema *schema);
bool psa_schema_memory_limit(const psa_schema *schema);
/* `prices:` table name of the system file ("cosmic" when absent). */
const char *psa_schema_prices(const psa_schema *schema);

/* Gives the facts of workload `i` (copied). Call once for each workload, before psa_space_create.
 */
CS_MUST_USE cs_status psa_schema_bind(psa_schema *schema, size_t i, const psa_fact *facts, size_t n,
                                      cs_error *err);

/* Keeps only knobs of the named stacks ("workload", "collective", "network", "compute"), the rest
 * take the system's baseline value; and fixes single knobs ("workload.dp", or "network.npus[2]")
 * to a value text.  Call before psa_space_create. */
CS_MUST_USE cs_status psa_schema_select_stacks(psa_schema *schema, const char *const *stacks,
                                               size_t n, cs_error *err);
CS_MUST_USE cs_status psa_schema_fix(psa_schema *schema, const char *assignment, cs_error *err);

/* Writes the system's baseline configuration into `config` (config_size bytes). */
void psa_schema_baseline(const psa_schema *schema, void *config);
/* Applies "knob=value" (value may be a comma list for a per-dimension knob, or knob[2]=value;
 * any field, whether it is a knob of the PSA or not). */
CS_MUST_USE cs_status psa_schema_assign(const psa_schema *schema, const char *assignment,
                                        void *config, cs_error *err);
/* Checks a configuration against every constraint, written and implied.  CS_EINVAL with one line
 * per violated constraint, each with its arithmetic ("96 heads % tp 36 = 24"). */
CS_MUST_USE cs_status psa_schema_check(const psa_schema *schema, const void *config, cs_error *err);

/* Number of written and implied constraints, their text and origin (for describe). */
size_t psa_schema_n_constraints(const psa_schema *schema);
const char *psa_schema_constraint_text(const psa_schema *schema, size_t i, bool *implied);
/* For a result that the workloads at hand do not have: CS_ESCHEMA at the first constraint or
 * objective of the PSA that mentions it, with `why`; CS_OK when none does. */
CS_MUST_USE cs_status psa_schema_refuse_result(const psa_schema *schema, const char *name,
                                               const char *why, cs_error *err);
/* Whether constraint i mentions a result: a limit, which decides feasible and not valid. */
bool psa_schema_constraint_is_limit(const psa_schema *schema, size_t i);

/* ---- objectives and limits ---- */

size_t psa_schema_n_objectives(const psa_schema *schema);
const char *psa_schema_objective_name(const psa_schema *schema, size_t i);
const char *psa_schema_objective_text(const psa_schema *schema, size_t i); /* the expression */
bool psa_schema_objective_maximize(const psa_schema *schema, size_t i);
/* Index of a named objective; fails with the nearest name. */
CS_MUST_USE cs_status psa_schema_find_objective(const psa_schema *schema, const char *name,
                                                size_t *out, cs_error *err);
/* Value of objective i for a configuration and its result struct. NAN when it cannot be computed
 * (an absent result).  O(expression). */
double psa_schema_objective(const psa_schema *schema, size_t i, const void *config,
                            const void *result);
/* Graded violation of the PSA's limits on results (constraints that mention result names): sum over
 * violated ones of log(excess ratio) where comparable, 1 otherwise; 0 when all hold. *which is the
 * index (psa_schema_constraint_text) of the worst, untouched when none. */
double psa_schema_limit_violation(const psa_schema *schema, const void *config, const void *result,
                                  size_t *which);
/* `paper_reward` and other built-in objectives are expressions too; see psa/README or --help. */

/* ---- the indexed space ---- */

typedef enum {
    PSA_VAR_CATEGORY, /* unordered: enumerators */
    PSA_VAR_ORDERED,  /* numbers in order */
    PSA_VAR_TUPLE     /* solutions of a product or sum equality over several knobs */
} psa_var_kind;

typedef struct psa_space psa_space;

/* Compiles the schema: product equalities become one composite variable, knobs that a condition
 * switches off are canonical (first value), constraints over one variable are gone, and the rest is
 * kept as tables for counting, sampling and repair by variable elimination (tables up to 10^7
 * entries; beyond: CS_ESCHEMA naming the constraint).  A constraint false on constants alone is
 * CS_ESCHEMA with its numbers; a space without a valid point is CS_OK with count 0. */
CS_MUST_USE cs_status psa_space_create(const psa_schema *schema, psa_space **out, cs_error *err);
void psa_space_destroy(psa_space *space); /* NULL is a no-op */

unsigned __int128 psa_space_raw_points(const psa_space *space);
unsigned __int128 psa_space_valid_points(const psa_space *space);
/* Points that remain when only constraint i (psa_schema_constraint_text) is enforced on the raw
 * space, for "what each constraint removes". */
CS_MUST_USE cs_status psa_space_points_under(const psa_space *space, size_t constraint,
                                             unsigned __int128 *out, cs_error *err);

/* Calls fn for every combination of values that the chosen knobs (n_knobs flags) take in valid
 * points, with the number of valid points that have it; `config` has those values and any other
 * field as in the baseline.  For what depends on few knobs only, such as how many points fit in
 * memory.  Knobs of one composite variable go together.  CS_ESCHEMA when there are more than
 * `limit` combinations. */
typedef void (*psa_combination_fn)(void *context, const void *config, unsigned __int128 points);
typedef struct {
    const bool *chosen;
    size_t limit;
    psa_combination_fn fn;
    void *context;
} psa_combinations;
CS_MUST_USE cs_status psa_space_combinations(const psa_space *space,
                                             const psa_combinations *request, cs_error *err);

size_t psa_space_n_vars(const psa_space *space);
const char *psa_space_var_name(const psa_space *space, size_t var); /* "workload.dp*tp*sp*pp" */
psa_var_kind psa_space_var_kind(const psa_space *space, size_t var);
int32_t psa_space_card(const psa_space *space, size_t var);
/* Linkage group: variables of one network dimension share it (1-based dimension), 0 otherwise. */
size_t psa_space_group(const psa_space *space, size_t var);
/* Values one move away: ordered: the levels next to it; category: all others; tuple: one prime
 * factor (or step) moved between two members.  *list is borrowed; returns its length. */
size_t psa_space_neighbours(const psa_space *space, size_t var, int32_t value,
                            const int32_t **list);
/* Distance in [0, 1] between two values of a variable: category 0/1; ordered |a-b|/(card-1); tuple
 * half the sum of |log2| differences, scaled by the largest. */
double psa_space_distance(const psa_space *space, size_t var, int32_t a, int32_t b);
/* Numeric features for surrogate models: tuples give one log2 coordinate per member, ordered one
 * level, categories one index; each scaled to [0,1] (category: raw index). */
size_t psa_space_n_features(const psa_space *space);
/* First feature of a variable; its last stands before the first of the next variable. */
size_t psa_space_feature(const psa_space *space, size_t var);
bool psa_space_feature_is_category(const psa_space *space, size_t feature);
void psa_space_features(const psa_space *space, const int32_t *point, double *out);

/* A uniformly random valid point; O(variables * log card).  CS_EINFEASIBLE when there is none. */
CS_MUST_USE cs_status psa_space_sample(const psa_space *space, cs_rng *rng, int32_t *point);
/* Sets switched-off variables to their canonical value. */
void psa_space_canonicalize(const psa_space *space, int32_t *point);
/* Whether variable `var` has an effect in this point. */
bool psa_space_active(const psa_space *space, const int32_t *point, size_t var);
bool psa_space_valid(const psa_space *space, const int32_t *point);
/* Turns any point into a valid canonical one near it, keeping variable `pinned` when possible
 * (SIZE_MAX: none).  Deterministic given rng state.  false when it could not keep `pinned` (the
 * point is valid all the same, unless the space is empty). */
bool psa_space_repair(const psa_space *space, cs_rng *rng, size_t pinned, int32_t *point);
/* Position of a valid canonical point in [0, valid_points) and back, in a fixed order. */
unsigned __int128 psa_space_rank(const psa_space *space, const int32_t *point);
void psa_space_unrank(const psa_space *space, unsigned __int128 rank, int32_t *point);
uint64_t psa_space_point_hash(const psa_space *space, const int32_t *point);

/* Writes the configuration of a point (baseline where a field is no knob). */
void psa_space_decode(const psa_space *space, const int32_t *point, void *config);
/* Inverse: CS_EINVAL when the configuration is no point of the space (says which knob). */
CS_MUST_USE cs_status psa_space_encode(const psa_space *space, const void *config, int32_t *point,
                                       cs_error *err);

/* ---- raw knobs, for printing, CSV columns and importance ---- */

/* Raw knob elements in file order: a per-dimension knob counts D times. */
size_t psa_space_n_knobs(const psa_space *space);
const char *psa_space_knob_name(const psa_space *space, size_t knob); /* "network.npus[2]" */
cs_dimension psa_space_knob_unit(const psa_space *space, size_t knob);
size_t psa_space_knob_count(const psa_space *space, size_t knob);
/* Index of the value a point gives to a knob, and whether the knob is active there. */
int32_t psa_space_knob_index(const psa_space *space, const int32_t *point, size_t knob,
                             bool *active);
/* Text of value `index` as a person writes it ("50 GB/s", "ring", "true"). */
const char *psa_space_knob_value(const psa_space *space, size_t knob, int32_t index, char text[64]);
/* The point with the given raw value indices, if valid (random_raw, genetic_raw): false if not. */
bool psa_space_from_raw(const psa_space *space, const int32_t *knob_index, int32_t *point);

/* Text of any configuration field value, for output ("8,16,4,4" for per-dimension fields). */
void psa_field_text(const psa_field *field, const void *config, size_t n_dims, char *text,
                    size_t size);

#endif
