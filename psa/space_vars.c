/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Search variables: which there are, their names, neighbourhoods, distances and features. */
#include "psa/space_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_SCALE 512 /* solutions up to which the largest distance is searched, not bounded */
#define MAX_LONELY  512 /* solutions without a single move that get their nearest ones */

static bool is_per_dimension(const psa__raw *raw)
{
    return raw->knob->per_dimension;
}

/* "network.npus" when it is all of that knob, "workload.dp*tp*sp" otherwise. */
static const char *tuple_name(psa_space *space, const psa__tuple *tuple)
{
    const psa__raw *first = &space->raw[tuple->member[0]];
    char text[512];
    size_t used;
    bool same = true;

    for (size_t i = 1; i < tuple->n; i++)
        same = same && space->raw[tuple->member[i]].knob == first->knob;
    if (same)
        return first->knob->field->path;
    used = (size_t)snprintf(text, sizeof text, "%s", first->name);
    for (size_t i = 1; i < tuple->n && used < sizeof text; i++) {
        const char *name = space->raw[tuple->member[i]].name;
        const char *dot = strchr(first->name, '.');
        size_t prefix = dot == NULL ? 0 : (size_t)(dot - first->name) + 1;
        if (prefix > 0 && strncmp(name, first->name, prefix) == 0)
            name += prefix;
        used += (size_t)snprintf(text + used, sizeof text - used, "%c%s", tuple->is_sum ? '+' : '*',
                                 name);
    }
    return cs_arena_strdup(space->arena, text);
}

static bool fill_single(psa_space *space, psa__var *var, int32_t raw)
{
    psa__raw *r = &space->raw[raw];

    var->kind = r->ordered ? PSA_VAR_ORDERED : PSA_VAR_CATEGORY;
    var->card = (int32_t)r->n;
    var->name = r->name;
    var->group = is_per_dimension(r) ? r->elem + 1 : 0;
    var->n_members = 1;
    var->member = cs_arena_alloc(space->arena, sizeof *var->member);
    if (var->member == NULL)
        return false;
    var->member[0] = raw;
    return true;
}

static uint64_t solution_hash(const int32_t *solution, size_t n)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < n; i++)
        hash = cs_mix64(hash ^ (uint64_t)(uint32_t)solution[i]);
    return hash;
}

int32_t psa__find_solution(const psa__var *var, const int32_t *solution)
{
    size_t n = var->n_members;
    uint64_t at = solution_hash(solution, n) & (var->n_hash - 1);

    for (; var->from_hash[at] != 0; at = (at + 1) & (var->n_hash - 1)) {
        int32_t value = var->from_hash[at] - 1;
        if (memcmp(var->solution + (size_t)value * n, solution, n * sizeof *solution) == 0)
            return value;
    }
    return -1;
}

static bool hash_solutions(psa_space *space, psa__var *var)
{
    var->n_hash = 16;
    while (var->n_hash < 2 * (size_t)var->card)
        var->n_hash *= 2;
    var->from_hash = cs_arena_alloc(space->arena, var->n_hash * sizeof *var->from_hash);
    if (var->from_hash == NULL)
        return false;
    for (int32_t s = 0; s < var->card; s++) {
        uint64_t at = solution_hash(var->solution + (size_t)s * var->n_members, var->n_members) &
                      (var->n_hash - 1);
        while (var->from_hash[at] != 0)
            at = (at + 1) & (var->n_hash - 1);
        var->from_hash[at] = s + 1;
    }
    return true;
}

/* Where a tuple's value lies, for distances and features: log2 of products' members, sums'
 * members as they are. */
static void fill_coordinates(const psa_space *space, psa__var *var)
{
    for (int32_t s = 0; s < var->card; s++)
        for (size_t m = 0; m < var->n_members; m++) {
            const psa__raw *raw = &space->raw[var->member[m]];
            size_t at = (size_t)s * var->n_members + m;
            double value = raw->value[raw->domain[var->solution[at]]];
            var->coordinate[at] = var->is_sum ? value : log2(value);
        }
}

static double raw_distance(const psa__var *var, int32_t a, int32_t b)
{
    const double *x = var->coordinate + (size_t)a * var->n_members;
    const double *y = var->coordinate + (size_t)b * var->n_members;
    double sum = 0;

    for (size_t m = 0; m < var->n_members; m++)
        sum += fabs(x[m] - y[m]);
    return sum / 2;
}

static void fill_ranges(psa__var *var)
{
    for (size_t m = 0; m < var->n_members; m++) {
        double high = var->coordinate[m];
        var->low[m] = var->coordinate[m];
        for (int32_t s = 0; s < var->card; s++) {
            var->low[m] = fmin(var->low[m], var->coordinate[(size_t)s * var->n_members + m]);
            high = fmax(high, var->coordinate[(size_t)s * var->n_members + m]);
        }
        var->span[m] = high - var->low[m];
    }
}

static double largest_distance(const psa__var *var)
{
    double largest = 0;

    for (size_t m = 0; m < var->n_members && var->card > EXACT_SCALE; m++)
        largest += var->span[m] / 2;
    for (int32_t a = 0; a < var->card && var->card <= EXACT_SCALE; a++)
        for (int32_t b = a + 1; b < var->card; b++)
            largest = fmax(largest, raw_distance(var, a, b));
    return largest;
}

static bool fill_tuple(psa_space *space, psa__var *var, const psa__tuple *tuple)
{
    size_t n = tuple->n, cells = tuple->n_solutions * n;

    var->kind = PSA_VAR_TUPLE;
    var->card = (int32_t)tuple->n_solutions;
    var->is_sum = tuple->is_sum;
    var->n_members = n;
    var->name = tuple_name(space, tuple);
    var->member = cs_arena_alloc(space->arena, n * sizeof *var->member);
    var->solution = cs_arena_alloc(space->arena, cells * sizeof *var->solution);
    var->coordinate = cs_arena_alloc(space->arena, cells * sizeof *var->coordinate);
    if (var->name == NULL || var->member == NULL || var->solution == NULL ||
        var->coordinate == NULL)
        return false;
    memcpy(var->member, tuple->member, n * sizeof *var->member);
    for (size_t m = 0; m < n; m++) {
        const psa__raw *raw = &space->raw[tuple->member[m]];
        for (size_t s = 0; s < tuple->n_solutions; s++)
            for (size_t k = 0; k < raw->n; k++)
                if (raw->domain[k] == tuple->solution[s * n + m])
                    var->solution[s * n + m] = (int32_t)k;
    }
    fill_coordinates(space, var);
    fill_ranges(var);
    var->scale = largest_distance(var);
    return hash_solutions(space, var);
}

/* Position in a raw's domain of a value, -1: none. */
static int32_t level_of(const psa__raw *raw, double value)
{
    size_t low = 0, high = raw->n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        double at = raw->value[raw->domain[middle]];
        if (psa__same(at, value))
            return (int32_t)middle;
        if (at < value)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static bool push(psa_space *space, psa__var *var, size_t *capacity, size_t *n, int32_t value)
{
    if (!psa__grow(space->arena, (void **)&var->hood_list, capacity, *n, sizeof *var->hood_list))
        return false;
    var->hood_list[(*n)++] = value;
    return true;
}

/* The value that member m has after one prime (or one step) is moved from it; then the one that
 * takes it.  -1: no such solution. */
static int32_t moved(const psa_space *space, const psa__var *var, int32_t s, const size_t pair[2],
                     double amount)
{
    int32_t solution[PSA__MAX_TUPLE];

    memcpy(solution, var->solution + (size_t)s * var->n_members, var->n_members * sizeof *solution);
    for (int i = 0; i < 2; i++) {
        const psa__raw *raw = &space->raw[var->member[pair[i]]];
        double value = raw->value[raw->domain[solution[pair[i]]]];
        if (var->is_sum)
            value += i == 0 ? -amount : amount;
        else
            value *= i == 0 ? 1 / amount : amount;
        solution[pair[i]] = level_of(raw, value);
        if (solution[pair[i]] < 0)
            return -1;
    }
    return psa__find_solution(var, solution);
}

/* Next prime factor of a whole number from `from` on; 0 when there is none. */
static double next_prime(double value, double from)
{
    for (double p = from; p * p <= value; p++)
        if (fmod(value, p) == 0)
            return p;
    return value >= from && value > 1 ? value : 0;
}

static bool moves_between(psa_space *space, psa__var *var, int32_t s, const size_t pair[2],
                          size_t *capacity, size_t *n)
{
    const psa__raw *raw = &space->raw[var->member[pair[0]]];
    int32_t level = var->solution[(size_t)s * var->n_members + pair[0]];
    double value = raw->value[raw->domain[level]], amount = 0;
    int32_t other;

    if (var->is_sum) {
        if (level == 0)
            return true;
        other = moved(space, var, s, pair, value - raw->value[raw->domain[level - 1]]);
        return other < 0 || push(space, var, capacity, n, other);
    }
    if (value != floor(value) || value > 1e9)
        return true;
    for (amount = next_prime(value, 2); amount > 0; amount = next_prime(value, amount + 1)) {
        other = moved(space, var, s, pair, amount);
        if (other >= 0 && !push(space, var, capacity, n, other))
            return false;
        while (fmod(value, amount) == 0)
            value /= amount;
    }
    return true;
}

/* A solution from which no single move leads anywhere gets the nearest ones. */
static bool nearest(psa_space *space, psa__var *var, int32_t s, size_t *capacity, size_t *n)
{
    double best = HUGE_VAL;

    for (int32_t o = 0; o < var->card; o++)
        if (o != s)
            best = fmin(best, raw_distance(var, s, o));
    for (int32_t o = 0; o < var->card; o++)
        if (o != s && raw_distance(var, s, o) <= best * (1 + 1e-9) &&
            !push(space, var, capacity, n, o))
            return false;
    return true;
}

static bool tuple_hood(psa_space *space, psa__var *var)
{
    size_t capacity = 0, n = 0, isolated = 0;

    for (int32_t s = 0; s < var->card; s++) {
        size_t pair[2];
        var->hood[s] = n;
        for (pair[0] = 0; pair[0] < var->n_members; pair[0]++)
            for (pair[1] = 0; pair[1] < var->n_members; pair[1]++)
                if (pair[0] != pair[1] && !moves_between(space, var, s, pair, &capacity, &n))
                    return false;
        /* Searching for the nearest is linear: bounded for tuples with many lonely solutions. */
        if (n == var->hood[s] && isolated++ < MAX_LONELY && !nearest(space, var, s, &capacity, &n))
            return false;
    }
    var->hood[var->card] = n;
    return true;
}

static bool ordered_hood(psa_space *space, psa__var *var)
{
    size_t n = 0;

    var->hood_list = cs_arena_alloc(space->arena, 2 * (size_t)var->card * sizeof(int32_t));
    if (var->hood_list == NULL)
        return false;
    for (int32_t v = 0; v < var->card; v++) {
        var->hood[v] = n;
        if (v > 0)
            var->hood_list[n++] = v - 1;
        if (v + 1 < var->card)
            var->hood_list[n++] = v + 1;
    }
    var->hood[var->card] = n;
    return true;
}

/* All values twice over: those other than v are the card - 1 entries from v + 1 on. */
static bool category_hood(psa_space *space, psa__var *var)
{
    var->hood_list = cs_arena_alloc(space->arena, 2 * (size_t)var->card * sizeof(int32_t));
    for (int32_t v = 0; var->hood_list != NULL && v < 2 * var->card; v++)
        var->hood_list[v] = v % var->card;
    return var->hood_list != NULL;
}

static bool fill_hood(psa_space *space, psa__var *var)
{
    if (var->kind == PSA_VAR_CATEGORY)
        return category_hood(space, var);
    var->hood = cs_arena_alloc(space->arena, ((size_t)var->card + 1) * sizeof *var->hood);
    if (var->hood == NULL)
        return false;
    return var->kind == PSA_VAR_ORDERED ? ordered_hood(space, var) : tuple_hood(space, var);
}

/* Points back from the raws to the variables, and the position of each first value. */
static void link_raws(psa_space *space)
{
    for (size_t i = 0; i < space->n_raws; i++) {
        psa__raw *raw = &space->raw[i];
        raw->var = -1;
        raw->first = -1;
        for (size_t k = 0; k < raw->n; k++)
            if (raw->domain[k] == 0)
                raw->first = (int32_t)k;
    }
    for (size_t v = 0; v < space->n_vars; v++)
        for (size_t m = 0; m < space->var[v].n_members; m++) {
            space->raw[space->var[v].member[m]].var = (int32_t)v;
            space->raw[space->var[v].member[m]].member = (int32_t)m;
        }
}

static bool fill_features(psa_space *space)
{
    size_t n = 0;

    for (size_t v = 0; v < space->n_vars; v++) {
        space->var[v].feature = n;
        n += space->var[v].kind == PSA_VAR_TUPLE ? space->var[v].n_members : 1;
    }
    space->n_features = n;
    space->feature_is_category = cs_arena_alloc(space->arena, n + 1);
    if (space->feature_is_category == NULL)
        return false;
    for (size_t v = 0; v < space->n_vars; v++)
        space->feature_is_category[space->var[v].feature] = space->var[v].kind == PSA_VAR_CATEGORY;
    return true;
}

cs_status psa__build_vars(psa__build *build)
{
    psa_space *space = build->space;

    space->var = cs_arena_alloc(space->arena, (space->n_raws + 1) * sizeof *space->var);
    if (space->var == NULL)
        return psa__no_memory(build);
    for (size_t i = 0; i < space->n_raws; i++) {
        int32_t t = build->tuple_of[i];
        psa__var *var = &space->var[space->n_vars];
        bool first = t >= 0 && build->tuple[t].member[0] == (int32_t)i;
        if (t >= 0 ? !first || build->tuple[t].n_solutions < 2 : space->raw[i].n < 2)
            continue;
        if (!(t >= 0 ? fill_tuple(space, var, &build->tuple[t])
                     : fill_single(space, var, (int32_t)i)))
            return psa__no_memory(build);
        space->n_vars++;
    }
    if (space->n_vars == 0) {
        space->var[0].kind = PSA_VAR_CATEGORY;
        space->var[0].card = 1;
        space->var[0].name = "constant";
        space->n_vars = 1;
    }
    for (size_t v = 0; v < space->n_vars; v++)
        if (!fill_hood(space, &space->var[v]))
            return psa__no_memory(build);
    link_raws(space);
    return psa__index_activity(space) && fill_features(space) ? CS_OK : psa__no_memory(build);
}

size_t psa_space_n_vars(const psa_space *space)
{
    return space->n_vars;
}

const char *psa_space_var_name(const psa_space *space, size_t var)
{
    return space->var[var].name;
}

psa_var_kind psa_space_var_kind(const psa_space *space, size_t var)
{
    return space->var[var].kind;
}

int32_t psa_space_card(const psa_space *space, size_t var)
{
    return space->var[var].card;
}

size_t psa_space_group(const psa_space *space, size_t var)
{
    return space->var[var].group;
}

size_t psa_space_neighbours(const psa_space *space, size_t var, int32_t value, const int32_t **list)
{
    const psa__var *v = &space->var[var];

    if (v->kind == PSA_VAR_CATEGORY) {
        *list = v->hood_list + value + 1;
        return (size_t)v->card - 1;
    }
    *list = v->hood_list + v->hood[value];
    return v->hood[value + 1] - v->hood[value];
}

double psa_space_distance(const psa_space *space, size_t var, int32_t a, int32_t b)
{
    const psa__var *v = &space->var[var];
    double distance;

    if (a == b)
        return 0;
    if (v->kind == PSA_VAR_CATEGORY)
        return 1;
    if (v->kind == PSA_VAR_ORDERED)
        return fabs((double)a - (double)b) / (v->card - 1);
    distance = v->scale > 0 ? raw_distance(v, a, b) / v->scale : 1;
    return distance > 1 ? 1 : distance;
}

size_t psa_space_n_features(const psa_space *space)
{
    return space->n_features;
}

size_t psa_space_feature(const psa_space *space, size_t var)
{
    return space->var[var].feature;
}

bool psa_space_feature_is_category(const psa_space *space, size_t feature)
{
    return space->feature_is_category[feature];
}

void psa_space_features(const psa_space *space, const int32_t *point, double *out)
{
    for (size_t v = 0; v < space->n_vars; v++) {
        const psa__var *var = &space->var[v];
        if (var->kind == PSA_VAR_CATEGORY) {
            out[var->feature] = point[v];
            continue;
        }
        if (var->kind == PSA_VAR_ORDERED) {
            out[var->feature] = point[v] / (double)(var->card > 1 ? var->card - 1 : 1);
            continue;
        }
        for (size_t m = 0; m < var->n_members; m++) {
            double low = var->low[m], span = var->span[m];
            double x = var->coordinate[(size_t)point[v] * var->n_members + m];
            out[var->feature + m] = span > 0 ? (x - low) / span : 0;
        }
    }
}
