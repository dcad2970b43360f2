/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the files of psa/ share: expression nodes and their bytecode, the schema's parts, the space
 * and its elimination tables.  Everything a schema owns lives in its arena; likewise a space. */
#ifndef PSA_PRIVATE_H
#define PSA_PRIVATE_H

#include "psa/psa.h"

/* ---- expression nodes: scalars only, vectors are expanded while parsing ---- */

/* name, arguments (0: leaf, 9: any number, associative and commutative) */
#define PSA__OP_MAP(X)                                                                             \
    X(CONST, 0)                                                                                    \
    X(FIELD, 0)                                                                                    \
    X(FACT, 0)                                                                                     \
    X(RESULT, 0)                                                                                   \
    X(VAR, 0)                                                                                      \
    X(ADD, 9)                                                                                      \
    X(MUL, 9)                                                                                      \
    X(MIN, 9)                                                                                      \
    X(MAX, 9)                                                                                      \
    X(AND, 9)                                                                                      \
    X(OR, 9)                                                                                       \
    X(SUB, 2)                                                                                      \
    X(DIV, 2)                                                                                      \
    X(MOD, 2)                                                                                      \
    X(POW, 2)                                                                                      \
    X(EQ, 2)                                                                                       \
    X(NE, 2)                                                                                       \
    X(LT, 2)                                                                                       \
    X(LE, 2)                                                                                       \
    X(GT, 2)                                                                                       \
    X(GE, 2)                                                                                       \
    X(NEG, 1)                                                                                      \
    X(NOT, 1)                                                                                      \
    X(LOG2, 1)                                                                                     \
    X(SQRT, 1)                                                                                     \
    X(ABS, 1)                                                                                      \
    X(CEIL, 1)                                                                                     \
    X(FLOOR, 1)                                                                                    \
    X(IF, 3)

typedef enum {
#define X(name, arity) PSA__##name,
    PSA__OP_MAP(X)
#undef X
        PSA__N_OPS
} psa__op;

/* Interned: equal nodes of one pool are one pointer.  CONST uses value, the other leaves a and b:
 * FIELD (field, dimension from 0), FACT (index), RESULT (index), VAR (index). */
typedef struct psa__node {
    psa__op op;
    uint32_t id, n, depth;
    uint32_t size; /* nodes of the tree, shared ones counted every time */
    int32_t a, b;
    double value;
    const struct psa__node *const *arg;
} psa__node;

/* Largest expression, all of them together, and the deepest, after derived values are put in. */
#define PSA__MAX_SIZE  100000u
#define PSA__MAX_TOTAL 1000000u
#define PSA__MAX_DEPTH 200u
#define PSA__MAX_ARGS  2048u

typedef struct {
    cs_arena *arena; /* borrowed; nodes live in it */
    psa__node **slot;
    size_t n_slots, n_nodes;
    bool normalize; /* flatten, fold and sort associative nodes (changes the order of rounding) */
    bool too_large; /* the last failure was a limit, not memory */
} psa__pool;

/* An empty pool; false when out of memory.  The slots are the caller's to free by fini. */
bool psa__pool_init(psa__pool *pool, cs_arena *arena, bool normalize);
void psa__pool_fini(psa__pool *pool);
/* Each returns NULL when out of memory, over a limit, or when an argument is NULL. */
const psa__node *psa__const(psa__pool *pool, double value);
const psa__node *psa__leaf(psa__pool *pool, psa__op op, int32_t a, int32_t b);
const psa__node *psa__make(psa__pool *pool, psa__op op, size_t n, const psa__node *const *arg);
const psa__node *psa__make1(psa__pool *pool, psa__op op, const psa__node *a);
const psa__node *psa__make2(psa__pool *pool, psa__op op, const psa__node *a, const psa__node *b);
const psa__node *psa__make3(psa__pool *pool, psa__op op, const psa__node *a, const psa__node *b,
                            const psa__node *c);
bool psa__is_associative(psa__op op);
bool psa__is_comparison(psa__op op);

/* Value of an operator; comparisons and conditions give 0 or 1.  Comparisons of numbers that are
 * not both whole allow a relative rounding error of 1e-9, and so does the remainder. */
double psa__apply(psa__op op, size_t n, const double *value);
bool psa__same(double a, double b);

/* ---- bytecode: a stack machine over doubles ---- */

typedef struct {
    const void *config, *result;
    const double *fact, *var;
} psa__env;

typedef enum {
    PSA__LOAD_CONST,
    PSA__LOAD_INT,
    PSA__LOAD_REAL,
    PSA__LOAD_I32,
    PSA__LOAD_RESULT,
    PSA__LOAD_FACT,
    PSA__LOAD_VAR,
    PSA__CODE_OP /* + psa__op */
} psa__code;

typedef struct {
    int32_t code;
    int32_t a; /* slot of a fact or variable, number of operands */
    union {
        double value;
        size_t offset;
    };
} psa__instr;

typedef struct {
    psa__instr *code;
    size_t n;
} psa__program;

/* Compiles into arena memory; false when out of memory.  `tables` gives the offsets. */
bool psa__compile(cs_arena *arena, const psa_tables *tables, const psa__node *node,
                  psa__program *out);
double psa__run(const psa__program *program, const psa__env *env);

/* ---- fields ---- */

/* Reads / writes element `d` (0 for a scalar field) as a double: enumerators and booleans are
 * their index. */
double psa__field_get(const psa_field *field, const void *config, size_t d);
void psa__field_set(const psa_field *field, void *config, size_t d, double value);
/* Value of one element from text, checked against kind, unit and range. */
CS_MUST_USE cs_status psa__field_parse(const psa_field *field, const char *text, double *out,
                                       cs_error *err);
/* Text of one element. */
const char *psa__field_format(const psa_field *field, double value, char text[64]);
bool psa__field_is_number(const psa_field *field);
/* Index of a path in the tables, SIZE_MAX when unknown. */
size_t psa__field_find(const psa_tables *tables, const char *path, size_t length);

/* ---- the schema ---- */

typedef struct {
    const psa_field *field;
    size_t field_index;
    const cs_node *node;
    bool per_dimension; /* one variable a dimension; otherwise one value for all of them */
    size_t n_elems;
    size_t n_values;
    double *value; /* in file order */
    const psa__node *when[PSA_MAX_DIMS];
    bool fixed[PSA_MAX_DIMS]; /* holds fixed_value instead */
    double fixed_value[PSA_MAX_DIMS];
} psa__knob;

/* Typed result of an expression: one node, or one a dimension. */
typedef enum { PSA__NUMBER, PSA__BOOL, PSA__ENUM, PSA__TEXT } psa__type;
typedef struct {
    psa__type type;
    cs_dimension unit;
    const psa_field *field; /* PSA__ENUM: whose enumerators */
    const char *text;       /* PSA__TEXT */
    bool vector;
    bool sized; /* an entry is switched off where its dimension has size 1 */
    size_t n;
    const psa__node *node[PSA_MAX_DIMS];
    size_t start, end; /* bytes of the source */
} psa__value;

/* An expression's text, where it stands and what it may name. */
typedef struct {
    psa_schema *schema;
    const cs_doc *doc;   /* NULL: a rule of the tables */
    const cs_node *node; /* scalar that holds the text */
    const char *text;
    size_t d;          /* value of the pseudo-index `d`, 0: not in scope */
    bool allow_result; /* results may be named */
} psa__source;

/* What parsing gives; when the whole expression is one comparison, also its two sides. */
typedef struct {
    psa__value value;
    bool compared;
    psa__op op;
    psa__value left, right;
} psa__parsed;

CS_MUST_USE cs_status psa__parse(const psa__source *source, psa__parsed *out, cs_error *err);
/* Adds an expression's size to the schema's total; refuses when it is over the limit. */
CS_MUST_USE cs_status psa__count_size(const psa__source *source, const psa__parsed *parsed,
                                      cs_error *err);
/* Refusal at byte `offset` of the source. */
cs_status psa__source_fail(const psa__source *source, size_t offset, cs_error *err, const char *fmt,
                           ...) CS_PRINTF(4, 5);

typedef struct {
    const char *name;
    const cs_node *node; /* scalar with the expression */
    int state;           /* 0 not parsed, 1 being parsed, 2 done */
    psa__value value;
} psa__derived;

/* One condition of a constraint: a rule that holds for each dimension has one a dimension. */
typedef struct {
    size_t d; /* 1-based dimension, 0: none */
    const psa__node *node;
    psa__program program;
    psa__parsed parsed;
} psa__part;

typedef struct {
    const char *text;   /* shown to people */
    const char *source; /* the expression */
    const char *name;   /* of a rule, NULL for a written constraint */
    const cs_node *node;
    bool implied, limit;
    size_t n_parts;
    psa__part *part;
    size_t n_facts;
    int32_t *fact; /* facts it names */
} psa__constraint;

typedef struct {
    const char *name, *text;
    const cs_node *node;
    bool maximize;
    const psa__node *root;
    psa__program program;
    size_t n_facts;
    int32_t *fact;
} psa__objective;

typedef struct {
    const char *name;
    const cs_node *node; /* where first named by the user, NULL: by rules only */
    size_t offset;
} psa__fact;

enum { PSA__ALLOW_IDLE, PSA__UNEVEN_STAGES, PSA__MEMORY_LIMIT, PSA__N_SWITCHES };
extern const char *const psa__switch_names[PSA__N_SWITCHES]; /* keys of a PSA file */

struct psa_schema {
    cs_arena *arena;
    psa__pool pool;
    const psa_tables *tables;
    cs_doc *doc, *system, *device;
    const char *name, *aggregate, *prices;
    size_t n_dims;
    size_t count_field; /* index of the field that gives D, SIZE_MAX: none */
    bool on[PSA__N_SWITCHES];
    size_t n_workloads;
    psa_workload *workload;
    size_t n_knobs;
    psa__knob *knob;
    size_t n_derived;
    psa__derived *derived;
    int derived_depth; /* of the one being parsed */
    size_t total_size; /* nodes of all constraints and objectives */
    size_t n_constraints;
    psa__constraint *constraint;
    size_t n_objectives; /* listed ones; the built-in ones follow */
    size_t n_all_objectives;
    psa__objective *objective;
    size_t n_facts, facts_capacity;
    psa__fact *fact;
    double *fact_value; /* n_workloads x n_facts, NAN: absent */
    bool *bound;        /* n_workloads */
    size_t n_starts;
    const cs_node **start;
    void *baseline;
    bool *given; /* n_fields: the files give a value */
    size_t n_warnings, warnings_capacity;
    const char **warning;
};

/* Grows an arena array by doubling; false when out of memory. */
bool psa__grow(cs_arena *arena, void **array, size_t *capacity, size_t n, size_t size);
/* Index of a fact, added when new; -1 when out of memory. */
int32_t psa__fact_index(psa_schema *schema, const char *name, size_t length,
                        const psa__source *source, size_t offset);
/* Facts named in a node: appended to the list without repeats. */
bool psa__collect_facts(cs_arena *arena, const psa__node *node, int32_t **list, size_t *n);
bool psa__mentions(const psa__node *node, psa__op op, int32_t a);
/* Whether every fact of a list is known for a workload. */
bool psa__facts_known(const psa_schema *schema, size_t workload, const int32_t *list, size_t n);
/* Values of the facts for a workload (row n_workloads: all unknown). */
const double *psa__facts_of(const psa_schema *schema, size_t workload);
/* Whether a constraint is in force: a rule needs all its facts, for some workload. */
bool psa__applies(const psa_schema *schema, const psa__constraint *c);
/* i-th constraint in force, NULL past the end. O(constraints). */
const psa__constraint *psa__constraint_at(const psa_schema *schema, size_t i);
double psa__evaluate(const psa_schema *schema, const psa__node *node, const psa__env *env);

/* Parts of loading, in this order. */
CS_MUST_USE cs_status psa__load_system(psa_schema *schema, const cs_node *root, cs_error *err);
CS_MUST_USE cs_status psa__load_knobs(psa_schema *schema, const cs_node *node, cs_error *err);
CS_MUST_USE cs_status psa__load_derived(psa_schema *schema, const cs_node *node, cs_error *err);
CS_MUST_USE cs_status psa__load_conditions(psa_schema *schema, cs_error *err);
CS_MUST_USE cs_status psa__load_constraints(psa_schema *schema, const cs_node *node, cs_error *err);
/* Also the rules of the tables, which may depend on what the objectives mention. */
CS_MUST_USE cs_status psa__load_objectives(psa_schema *schema, const cs_node *node, cs_error *err);
CS_MUST_USE cs_status psa__load_rules(psa_schema *schema, cs_error *err);
CS_MUST_USE cs_status psa__finish_baseline(psa_schema *schema, cs_error *err);
CS_MUST_USE cs_status psa__finish_facts(psa_schema *schema, cs_error *err);
/* The quote hint for a value of the mapping that a flow comma has cut. */
CS_MUST_USE cs_status psa__check_cut(const cs_doc *doc, const cs_node *map, cs_error *err);
/* Field values of a mapping into a configuration; `prefix` ("network") or NULL for full paths. */
CS_MUST_USE cs_status psa__read_value(psa_schema *schema, const cs_doc *doc, const cs_node *node,
                                      size_t field, void *config, cs_error *err);
/* Warns when a bandwidth or latency is far from anything that exists. */
bool psa__check_plausible(psa_schema *schema, const psa_field *field, double value,
                          const char *where);
/* Nearest field path, ready to append to a message ("; did you mean 'x'?"), or "". */
const char *psa__suggest(const char *word, const char *const *names, size_t n, char text[128]);

/* One line on a violated part with its arithmetic. */
void psa__explain(const psa_schema *schema, const psa__constraint *constraint,
                  const psa__part *part, const psa__env *env, cs_error *err);

#endif
