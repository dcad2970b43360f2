/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Interned expression nodes and the meaning of the operators. */
#include "psa/psa_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING  1e-9
#define MAX_WHOLE 9007199254740992.0 /* 2^53: whole numbers are exact below */

static const uint8_t arity[PSA__N_OPS] = {
#define X(name, n) [PSA__##name] = n,
    PSA__OP_MAP(X)
#undef X
};

bool psa__is_associative(psa__op op)
{
    return arity[op] == 9;
}

bool psa__is_comparison(psa__op op)
{
    return op >= PSA__EQ && op <= PSA__GE;
}

static bool is_whole(double x)
{
    return fabs(x) < MAX_WHOLE && x == floor(x);
}

bool psa__same(double a, double b)
{
    if (a == b)
        return true;
    if ((is_whole(a) && is_whole(b)) || !isfinite(a) || !isfinite(b))
        return false;
    return fabs(a - b) <= ROUNDING * fmax(fabs(a), fabs(b));
}

/* 0.3 % 0.1 is 0 to a person, so a remainder within rounding of 0 or of b counts as 0. */
static double remainder_of(double a, double b)
{
    double r = fmod(a, b);

    if (is_whole(a) && is_whole(b))
        return r;
    if (fabs(r) <= ROUNDING * fabs(b) || fabs(b) - fabs(r) <= ROUNDING * fabs(b))
        return 0;
    return r;
}

static double compare(psa__op op, double a, double b)
{
    bool same = psa__same(a, b);

    switch (op) {
    case PSA__EQ:
        return same;
    case PSA__NE:
        return !same;
    case PSA__LT:
        return a < b && !same;
    case PSA__LE:
        return a < b || same;
    case PSA__GT:
        return a > b && !same;
    default:
        return a > b || same;
    }
}

static double apply_binary(psa__op op, double a, double b)
{
    switch (op) {
    case PSA__ADD:
        return a + b;
    case PSA__MUL:
        return a * b;
    case PSA__MIN:
        return a < b ? a : b;
    case PSA__MAX:
        return a > b ? a : b;
    case PSA__AND:
        return a != 0 && b != 0;
    case PSA__OR:
        return a != 0 || b != 0;
    case PSA__SUB:
        return a - b;
    case PSA__DIV:
        return a / b;
    case PSA__MOD:
        return remainder_of(a, b);
    case PSA__POW:
        return pow(a, b);
    default:
        return compare(op, a, b);
    }
}

static double apply_unary(psa__op op, double a)
{
    switch (op) {
    case PSA__NEG:
        return -a;
    case PSA__NOT:
        return a == 0;
    case PSA__LOG2:
        return log2(a);
    case PSA__SQRT:
        return sqrt(a);
    case PSA__ABS:
        return fabs(a);
    case PSA__CEIL:
        return ceil(a);
    case PSA__FLOOR:
        return floor(a);
    default:
        return a;
    }
}

double psa__apply(psa__op op, size_t n, const double *value)
{
    double acc = value[0];

    if (op == PSA__IF && n == 3)
        return value[0] != 0 ? value[1] : value[2];
    if (arity[op] == 1)
        return apply_unary(op, acc);
    for (size_t i = 1; i < n; i++)
        acc = apply_binary(op, acc, value[i]);
    return acc;
}

bool psa__pool_init(psa__pool *pool, cs_arena *arena, bool normalize)
{
    memset(pool, 0, sizeof *pool);
    pool->arena = arena;
    pool->normalize = normalize;
    pool->n_slots = 256;
    pool->slot = calloc(pool->n_slots, sizeof *pool->slot);
    return pool->slot != NULL;
}

void psa__pool_fini(psa__pool *pool)
{
    free(pool->slot);
    pool->slot = NULL;
}

static uint64_t node_hash(const psa__node *node)
{
    uint64_t hash = cs_mix64((uint64_t)node->op * 31 + node->n);
    uint64_t bits;

    memcpy(&bits, &node->value, sizeof bits);
    hash = cs_mix64(hash ^ bits);
    hash = cs_mix64(hash ^ (((uint64_t)(uint32_t)node->a << 32) | (uint32_t)node->b));
    for (size_t i = 0; i < node->n; i++)
        hash = cs_mix64(hash ^ node->arg[i]->id);
    return hash;
}

static bool node_equal(const psa__node *x, const psa__node *y)
{
    if (x->op != y->op || x->n != y->n || x->a != y->a || x->b != y->b ||
        memcmp(&x->value, &y->value, sizeof x->value) != 0)
        return false;
    return x->n == 0 || memcmp(x->arg, y->arg, x->n * sizeof *x->arg) == 0;
}

static bool pool_resize(psa__pool *pool)
{
    size_t n = pool->n_slots * 2;
    psa__node **slot = calloc(n, sizeof *slot);

    if (slot == NULL)
        return false;
    for (size_t i = 0; i < pool->n_slots; i++) {
        size_t at;
        if (pool->slot[i] == NULL)
            continue;
        at = node_hash(pool->slot[i]) & (n - 1);
        while (slot[at] != NULL)
            at = (at + 1) & (n - 1);
        slot[at] = pool->slot[i];
    }
    free(pool->slot);
    pool->slot = slot;
    pool->n_slots = n;
    return true;
}

/* Copies a new node with its argument list into the arena. */
static psa__node *node_copy(psa__pool *pool, const psa__node *key)
{
    psa__node *node = cs_arena_alloc(pool->arena, sizeof *node);
    const psa__node **arg;

    if (node == NULL)
        return NULL;
    *node = *key;
    if (key->n > 0) {
        arg = cs_arena_alloc(pool->arena, key->n * sizeof *arg);
        if (arg == NULL)
            return NULL;
        memcpy(arg, key->arg, key->n * sizeof *arg);
        node->arg = arg;
    }
    return node;
}

static const psa__node *intern(psa__pool *pool, psa__node *key)
{
    size_t at;
    psa__node *node;

    pool->too_large = false;
    if (pool->n_nodes * 2 > pool->n_slots && !pool_resize(pool))
        return NULL;
    at = node_hash(key) & (pool->n_slots - 1);
    while (pool->slot[at] != NULL) {
        if (node_equal(pool->slot[at], key))
            return pool->slot[at];
        at = (at + 1) & (pool->n_slots - 1);
    }
    key->size = key->depth = 1;
    for (size_t i = 0; i < key->n; i++) {
        key->size += key->arg[i]->size;
        if (key->arg[i]->depth >= key->depth)
            key->depth = key->arg[i]->depth + 1;
        if (key->size > PSA__MAX_SIZE || key->depth > PSA__MAX_DEPTH) {
            pool->too_large = true;
            return NULL;
        }
    }
    node = node_copy(pool, key);
    if (node == NULL)
        return NULL;
    node->id = (uint32_t)pool->n_nodes++;
    pool->slot[at] = node;
    return node;
}

const psa__node *psa__const(psa__pool *pool, double value)
{
    psa__node key = {.op = PSA__CONST, .value = value == 0 ? 0 : value};

    return intern(pool, &key);
}

const psa__node *psa__leaf(psa__pool *pool, psa__op op, int32_t a, int32_t b)
{
    psa__node key = {.op = op, .a = a, .b = b};

    return intern(pool, &key);
}

static int by_id(const void *x, const void *y)
{
    uint32_t a = (*(const psa__node *const *)x)->id, b = (*(const psa__node *const *)y)->id;

    return a < b ? -1 : a > b;
}

/* Arguments of an associative node with nested ones of the same operator opened. */
typedef struct {
    size_t n;
    const psa__node *arg[PSA__MAX_ARGS];
    bool has_constant;
    double constant;
} flat_args;

static bool flat_add(flat_args *flat, psa__op op, const psa__node *arg)
{
    double pair[2] = {flat->constant, arg->value};

    if (arg->op == op) {
        for (size_t i = 0; i < arg->n; i++)
            if (!flat_add(flat, op, arg->arg[i]))
                return false;
        return true;
    }
    if (arg->op == PSA__CONST) {
        flat->constant = flat->has_constant ? psa__apply(op, 2, pair) : arg->value;
        flat->has_constant = true;
        return true;
    }
    if (flat->n == PSA__MAX_ARGS)
        return false;
    flat->arg[flat->n++] = arg;
    return true;
}

/* x op neutral = x; x op absorbing = absorbing. */
static bool is_neutral(psa__op op, double c)
{
    return op == PSA__ADD                       ? c == 0
           : (op == PSA__MUL || op == PSA__AND) ? c == 1
           : op == PSA__OR                      ? c == 0
                                                : false;
}

static bool is_absorbing(psa__op op, double c)
{
    return op == PSA__MUL || op == PSA__AND ? c == 0 : op == PSA__OR && c != 0;
}

/* Equal conditions count once. */
static void drop_repeats(flat_args *flat)
{
    size_t n = 0;

    for (size_t i = 0; i < flat->n; i++)
        if (i == 0 || flat->arg[i] != flat->arg[i - 1])
            flat->arg[n++] = flat->arg[i];
    flat->n = n;
}

static const psa__node *make_normal(psa__pool *pool, psa__op op, size_t n,
                                    const psa__node *const *arg)
{
    flat_args flat;
    psa__node key = {.op = op};

    flat.n = 0;
    flat.has_constant = false;
    flat.constant = 0;
    for (size_t i = 0; i < n; i++)
        if (!flat_add(&flat, op, arg[i])) {
            pool->too_large = true;
            return NULL;
        }
    if (flat.has_constant && (flat.n == 0 || is_absorbing(op, flat.constant)))
        return psa__const(pool, flat.constant);
    qsort(flat.arg, flat.n, sizeof *flat.arg, by_id);
    if (op != PSA__ADD && op != PSA__MUL)
        drop_repeats(&flat);
    if (flat.has_constant && !is_neutral(op, flat.constant)) {
        if (flat.n == PSA__MAX_ARGS)
            return NULL;
        flat.arg[flat.n] = psa__const(pool, flat.constant);
        if (flat.arg[flat.n++] == NULL)
            return NULL;
    }
    if (flat.n == 1)
        return flat.arg[0];
    key.n = (uint32_t)flat.n;
    key.arg = flat.arg;
    return intern(pool, &key);
}

static const psa__node *fold(psa__pool *pool, psa__op op, size_t n, const psa__node *const *arg)
{
    double value[PSA_MAX_DIMS] = {0};

    for (size_t i = 0; i < n; i++)
        value[i] = arg[i]->value;
    return psa__const(pool, psa__apply(op, n, value));
}

const psa__node *psa__make(psa__pool *pool, psa__op op, size_t n, const psa__node *const *arg)
{
    psa__node key = {.op = op, .n = (uint32_t)n, .arg = arg};
    bool constant = n <= PSA_MAX_DIMS;

    for (size_t i = 0; i < n; i++) {
        if (arg[i] == NULL)
            return NULL;
        constant = constant && arg[i]->op == PSA__CONST;
    }
    if (n > PSA__MAX_ARGS) {
        pool->too_large = true;
        return NULL;
    }
    if (constant)
        return fold(pool, op, n, arg);
    if (op == PSA__IF && n == 3 && arg[0]->op == PSA__CONST)
        return arg[0]->value != 0 ? arg[1] : arg[2];
    if (psa__is_associative(op)) {
        if (n == 1)
            return arg[0];
        if (pool->normalize)
            return make_normal(pool, op, n, arg);
    }
    return intern(pool, &key);
}

const psa__node *psa__make1(psa__pool *pool, psa__op op, const psa__node *a)
{
    return psa__make(pool, op, 1, &a);
}

const psa__node *psa__make2(psa__pool *pool, psa__op op, const psa__node *a, const psa__node *b)
{
    const psa__node *arg[2] = {a, b};

    return psa__make(pool, op, 2, arg);
}

const psa__node *psa__make3(psa__pool *pool, psa__op op, const psa__node *a, const psa__node *b,
                            const psa__node *c)
{
    const psa__node *arg[3] = {a, b, c};

    return psa__make(pool, op, 3, arg);
}
