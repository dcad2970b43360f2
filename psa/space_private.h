/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The indexed space and how it is compiled:
 *   raws        one a knob element, with its values
 *   conditions  expressions over raws that must hold; propagated until nothing changes
 *   tuples      solutions of a product or sum equality, one variable in place of its members
 *   network     variables and tables (factors); auxiliary variables hold partial sums and products
 *   buckets     variable elimination of the network: exact counts, sampling, ranks, repair */
#ifndef PSA_SPACE_PRIVATE_H
#define PSA_SPACE_PRIVATE_H

#include "psa/psa_private.h"

typedef unsigned __int128 psa__count;

#define PSA__MAX_ROWS  10000000u  /* of one table */
#define PSA__MAX_CELLS 60000000u  /* rows x columns */
#define PSA__MAX_WORK  100000000u /* combinations evaluated in one compilation */
#define PSA__MAX_NETS  1024u
#define PSA__MAX_TUPLE 16u   /* members */
#define PSA__DIRECT    4096u /* combinations that are tabulated without taking an expression apart */

/* ---- raws ---- */

typedef struct {
    const psa__knob *knob;
    size_t elem; /* dimension from 0; 0 for a knob with one value */
    size_t n_values;
    double *value;   /* in file order */
    size_t n;        /* values that propagation left */
    int32_t *domain; /* their file indices; numbers ascending */
    int32_t first;   /* position of file index 0 in the domain, -1: gone */
    bool ordered;
    size_t stamp;            /* of the last change of the domain */
    const psa__node *active; /* over raws; NULL: always */
    psa__program active_program;
    size_t n_scope;
    int32_t *scope;     /* raws that `active` names */
    int32_t switch_var; /* where one variable decides, it and the answer for each of its values */
    bool *active_by_value; /* NULL: `active` is evaluated */
    char name[128];
    /* where its value comes from: a search variable (and member), or a constant */
    int32_t var; /* -1: constant, domain[0] */
    int32_t member;
} psa__raw;

/* ---- search variables ---- */

typedef struct {
    psa_var_kind kind;
    int32_t card;
    const char *name;
    size_t group;
    size_t n_members;
    int32_t *member;   /* raws */
    int32_t *solution; /* card x n_members: positions in the members' domains */
    bool is_sum;       /* TUPLE of a sum */
    size_t *hood;      /* card + 1 offsets into hood_list */
    int32_t *hood_list;
    double scale;                                     /* largest distance of a tuple */
    double *coordinate;                               /* TUPLE: card x n_members, log2 or value */
    double low[PSA__MAX_TUPLE], span[PSA__MAX_TUPLE]; /* of each member's coordinate */
    size_t net;
    size_t feature;     /* first one */
    int32_t *from_hash; /* TUPLE: open addressing over solutions, value + 1 */
    size_t n_hash;
} psa__var;

/* ---- elimination ---- */

typedef struct {
    int32_t net;
    int32_t parent; /* bucket that consumed the message, -1: a root */
    uint32_t n_sep;
    int32_t *sep;
    uint64_t *stride;
    bool dense;
    uint64_t n_slots;
    int32_t *slot; /* dense: group + 1 by key; otherwise hash of groups */
    uint64_t *key; /* by group, when hashed */
    size_t n_groups;
    uint32_t *start; /* n_groups + 1 */
    int32_t *value;
    psa__count *cumulative; /* within its group, inclusive */
    bool uniform;           /* all weights equal within each group */
    bool is_free;           /* every value of the net, whatever the others are */
    uint32_t n_children;
    int32_t *child;
} psa__bucket;

typedef struct {
    int32_t card;
    double *value;      /* NULL for tuples */
    int32_t raw, tuple; /* -1: none */
    /* function of earlier nets: index by mixed radix over args, -1: impossible */
    uint32_t n_args;
    int32_t arg[PSA__MAX_TUPLE];
    int32_t *table;
    int32_t bucket;
    int32_t var; /* search variable, -1: auxiliary */
} psa__net;

struct psa_space {
    cs_arena *arena;
    const psa_schema *schema;
    bool empty; /* no valid point */
    size_t n_raws;
    psa__raw *raw;
    size_t n_vars;
    psa__var *var;
    size_t n_features;
    bool *feature_is_category;
    size_t n_switched; /* raws that psa_space_canonicalize may set back, */
    int32_t *switched; /* ascending */
    size_t n_nets;
    psa__net *net;
    size_t n_buckets;
    psa__bucket *bucket; /* in order of elimination */
    psa__count raw_points, valid_points;
    char *base; /* configuration with the constants in it */
};

/* ---- compilation ---- */

typedef struct {
    const psa__node *node;
    int32_t origin; /* index into schema->constraint, -1: a knob's condition */
    size_t stamp;   /* when it last filtered domains, 0: never */
} psa__condition;

typedef struct {
    uint32_t n_scope;
    int32_t *scope; /* nets */
    size_t n_rows;
    int32_t *row;       /* n_rows x n_scope */
    psa__count *weight; /* NULL: ones */
    int32_t origin;
    int32_t bucket; /* that sent it, -1: a table of the file */
    bool used;
} psa__factor;

typedef struct {
    size_t n;
    int32_t member[PSA__MAX_TUPLE]; /* raws */
    bool is_sum;
    size_t n_solutions;
    int32_t *solution; /* n_solutions x n, file indices */
    int32_t origin;
} psa__tuple;

typedef struct {
    const psa__node *node;
    int32_t net;
} psa__known_net;

typedef struct {
    psa_space *space;
    const psa_schema *schema;
    cs_arena *arena; /* dies with the build */
    psa__pool pool;
    cs_error *err;
    bool unsatisfiable;
    size_t clock;         /* counts changes of domains */
    size_t failed_tuples; /* equalities with too many solutions */
    size_t work;          /* combinations evaluated for tables */
    size_t n_conditions, conditions_capacity;
    psa__condition *condition;
    size_t n_equal, equal_capacity; /* expressions known to be a constant */
    const psa__node **equal;
    double *equal_value;
    size_t equal_value_capacity;
    size_t n_tuples;
    psa__tuple *tuple;
    int32_t *tuple_of; /* by raw, -1: none */
    int32_t *raw_net;  /* by raw, -1: not in the network */
    int32_t *tuple_net;
    size_t nets_capacity;
    size_t n_factors, factors_capacity;
    psa__factor *factor;
    size_t n_known, known_capacity;
    psa__known_net *known;
    double *x; /* values of the raws during enumeration */
    bool *mark;
} psa__build;

/* Raws and conditions from the schema; `only`: that constraint alone, without switched-off knobs
 * (NULL: all). */
CS_MUST_USE cs_status psa__build_raws(psa__build *build);
CS_MUST_USE cs_status psa__build_conditions(psa__build *build, const psa__constraint *only);
CS_MUST_USE cs_status psa__propagate(psa__build *build);
CS_MUST_USE cs_status psa__find_tuples(psa__build *build);
CS_MUST_USE cs_status psa__build_vars(psa__build *build);
/* Prepares psa__active_at and psa_space_canonicalize once the variables stand; false when memory is
 * short. */
bool psa__index_activity(psa_space *space);
CS_MUST_USE cs_status psa__build_network(psa__build *build);
/* Eliminates all nets but those in `keep` (NULL: all). */
CS_MUST_USE cs_status psa__eliminate(psa__build *build, const bool *keep);
/* Memory of a build and its space; false when there is none.  Both need psa__build_fini. */
bool psa__build_init(psa__build *build, const psa_schema *schema, cs_error *err);
void psa__build_fini(psa__build *build);
/* Everything before elimination; *only as in psa__build_conditions. */
CS_MUST_USE cs_status psa__prepare(psa__build *build, const psa__constraint *only);

/* All values of every raw again, as if nothing had been propagated. */
CS_MUST_USE cs_status psa__restore_domains(psa__build *build);
cs_status psa__no_memory(psa__build *build);
/* Refusal of an expression that takes too large a table. */
cs_status psa__too_large(psa__build *build, int32_t origin, const char *what);
/* Sets build->mark for the raws of a node. */
void psa__mark_scope(psa__build *build, const psa__node *node);
/* Raws named in a node, ascending, into `list` (room for n_raws); returns how many. */
size_t psa__scope(psa__build *build, const psa__node *node, int32_t *list);
/* Number of combinations of the values of some raws; HUGE_VAL when over 1e18. */
double psa__combinations(const psa__build *build, const int32_t *list, size_t n);
/* Copy of a node with parts replaced: `replace` gives the new node, or NULL to go inside (on a leaf
 * NULL is a failure).  NULL when out of memory. */
typedef const psa__node *(*psa__replace_fn)(psa__build *build, const psa__node *node,
                                            const void *context);
const psa__node *psa__rewrite(psa__build *build, const psa__node *node, psa__replace_fn replace,
                              const void *context);
bool psa__add_condition(psa__build *build, const psa__node *node, int32_t origin);
/* Adds a net; negative when there are too many or memory is short. */
int32_t psa__add_net(psa__build *build, int32_t card);
CS_MUST_USE cs_status psa__add_factor(psa__build *build, const psa__factor *factor);
/* Stable sort of keys with their rows (LSD radix). */
bool psa__sort_keys(uint64_t *key, uint32_t *row, size_t n);

/* ---- running ---- */

/* Values of all nets from a point; false when a value is out of range or a function undefined. */
bool psa__nets_of(const psa_space *space, const int32_t *point, int32_t *net);
/* Group of a bucket under the assigned nets, -1: none. */
int32_t psa__group(const psa__bucket *bucket, const int32_t *net);
/* Position of a value in a group, -1: none. */
int64_t psa__position(const psa__bucket *bucket, int32_t group, int32_t value);
/* File index of a raw in a point. */
int32_t psa__raw_index(const psa_space *space, const int32_t *point, size_t raw);
/* The baseline with the constants and the chosen raws of a point. */
void psa__decode_chosen(const psa_space *space, const int32_t *point, const bool *chosen,
                        void *config);
/* Whether a raw has an effect: at values of all raws, and at a point. */
bool psa__active(const psa__raw *raw, const double *x);
bool psa__active_at(const psa_space *space, const int32_t *point, const psa__raw *raw);
/* Number of a tuple's solution, -1: none. */
int32_t psa__find_solution(const psa__var *var, const int32_t *solution);

#endif
