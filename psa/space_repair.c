/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Repair: any point -> a valid one near it.  Going backwards through the elimination order, every
 * variable takes the allowed value nearest to the wanted one; that alone never fails.  To keep one
 * variable as it is, the variables its bucket depends on (the path to its root) are searched first,
 * with conflict-directed backjumping (Prosser, Computational Intelligence 9, 1993): a dead end
 * changes the deepest variable that takes part in it.  Where that takes long, one pass up the path
 * marks what the pinned value allows, and going down it again cannot fail. */
#include "psa/space_private.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MAX_TRIES   4000   /* candidate values looked at before the path is swept instead */
#define MAX_PATH    64     /* a longer path is not searched */
#define MAX_GROUPS  65536u /* of a path that is swept */
#define MAX_ENTRIES 200000u

typedef struct {
    const psa_space *space;
    cs_rng *rng;
    const int32_t *wanted; /* by net; -1: no wish */
    int32_t *net;
} repair;

static double distance(const psa_space *space, const psa__net *net, int32_t a, int32_t b)
{
    double x, y, d;

    if (a == b || b < 0)
        return 0;
    if (net->var >= 0)
        return psa_space_distance(space, (size_t)net->var, a, b);
    if (net->value == NULL)
        return 1;
    x = net->value[a];
    y = net->value[b];
    d = x > 0 && y > 0 ? fabs(log2(x / y)) : fabs(x - y);
    return isfinite(d) ? d : DBL_MAX; /* partial results may be infinite or no number */
}

/* A value of a group in order of distance; equal ones in a rotated order. */
typedef struct {
    double distance;
    size_t rank; /* rotated position */
    size_t turn; /* by how much positions are rotated */
} candidate;

static bool after(const candidate *a, double d, size_t rank)
{
    return d > a->distance || (d == a->distance && rank > a->rank);
}

/* The next candidate after *last in bucket's group; the value, or -1 when there is none. */
static int32_t next_value(const repair *r, const psa__bucket *bucket, int32_t group,
                          candidate *last, size_t *tries)
{
    size_t first = bucket->start[group], n = bucket->start[group + 1] - first;
    const psa__net *net = &r->space->net[bucket->net];
    int32_t wish = r->wanted[bucket->net], best = -1;
    candidate found = {HUGE_VAL, SIZE_MAX, last->turn};

    if (last->distance < 0 && wish >= 0) {
        int64_t at = psa__position(bucket, group, wish);
        if (at >= 0) {
            last->distance = 0;
            last->rank = ((size_t)at - first + n - last->turn % n) % n;
            return wish;
        }
    }
    for (size_t i = 0; i < n; i++) {
        size_t rank = (i + n - last->turn % n) % n;
        double d = distance(r->space, net, bucket->value[first + i], wish);
        if (after(last, d, rank) &&
            (d < found.distance || (d == found.distance && rank < found.rank))) {
            found.distance = d;
            found.rank = rank;
            best = bucket->value[first + i];
        }
    }
    *tries += n;
    *last = found;
    return best;
}

static candidate fresh(const repair *r)
{
    return (candidate){-1, 0, r->rng == NULL ? 0 : (size_t)cs_rng_below(r->rng, 1 << 20)};
}

/* Nearest allowed values for every bucket that is not settled yet. */
static void complete(const repair *r, const bool *settled)
{
    const psa_space *space = r->space;
    size_t tries = 0;

    for (size_t b = space->n_buckets; b-- > 0;) {
        const psa__bucket *bucket = &space->bucket[b];
        candidate last = {-1, 0, 0};
        int32_t group, wish = r->wanted[bucket->net];
        if (settled != NULL && settled[b])
            continue;
        group = psa__group(bucket, r->net);
        if (wish >= 0 && psa__position(bucket, group, wish) >= 0) {
            r->net[bucket->net] = wish;
            continue;
        }
        last = fresh(r);
        r->net[bucket->net] = next_value(r, bucket, group, &last, &tries);
    }
}

/* One level of the search along a path: bucket, where it stands, who is to blame below it. */
typedef struct {
    int32_t bucket;
    uint64_t separator; /* levels its group depends on */
    uint64_t conflict;
    candidate last;
} level;

static size_t build_path(const psa_space *space, int32_t bucket, level *path)
{
    size_t n = 0;

    for (int32_t b = bucket; b >= 0; b = space->bucket[b].parent) {
        if (n == MAX_PATH)
            return 0;
        path[n++].bucket = b;
    }
    for (size_t i = 0; i < n / 2; i++) {
        int32_t b = path[i].bucket;
        path[i].bucket = path[n - 1 - i].bucket;
        path[n - 1 - i].bucket = b;
    }
    for (size_t i = 0; i < n; i++) {
        const psa__bucket *here = &space->bucket[path[i].bucket];
        path[i].separator = 0;
        for (uint32_t s = 0; s < here->n_sep; s++)
            for (size_t k = 0; k < i; k++)
                if (space->bucket[path[k].bucket].net == here->sep[s])
                    path[i].separator |= UINT64_C(1) << k;
    }
    return n;
}

/* Deepest level of a set; sets are not empty. */
static size_t deepest(uint64_t set)
{
    return 63 - (size_t)__builtin_clzll(set);
}

/* Searches the path, root first, for values under which the last bucket (the pinned one) may keep
 * its own.  1: found, 0: there are none, -1: it takes too long to tell. */
static int search_path(const repair *r, level *path, size_t n)
{
    const psa_space *space = r->space;
    size_t i = 0, tries = 0;

    for (size_t k = 0; k < n; k++)
        path[k].conflict = 0;
    path[0].last = fresh(r);
    while (tries < MAX_TRIES) {
        const psa__bucket *bucket = &space->bucket[path[i].bucket];
        int32_t group = psa__group(bucket, r->net), value = -1;
        uint64_t blame;
        tries++;
        if (i == n - 1) {
            if (group >= 0 && psa__position(bucket, group, r->wanted[bucket->net]) >= 0) {
                r->net[bucket->net] = r->wanted[bucket->net];
                return 1;
            }
        } else if (group >= 0) {
            value = next_value(r, bucket, group, &path[i].last, &tries);
        }
        if (value >= 0) {
            r->net[bucket->net] = value;
            i++;
            path[i].last = fresh(r);
            path[i].conflict = 0;
            continue;
        }
        blame = path[i].conflict | path[i].separator;
        if (blame == 0)
            return 0;
        i = deepest(blame);
        path[i].conflict |= blame & ~(UINT64_C(1) << i);
    }
    return -1;
}

/* Groups of the buckets on a path under which the pinned value remains possible. */
typedef struct {
    const level *path;
    size_t n;
    size_t first[MAX_PATH]; /* of each bucket in the set */
    uint64_t bits[MAX_GROUPS / 64];
} alive_set;

static bool is_alive(const alive_set *set, size_t i, int32_t group)
{
    size_t at = group < 0 ? 0 : set->first[i] + (size_t)group;

    return group >= 0 && (set->bits[at / 64] >> (at % 64) & 1) != 0;
}

/* Lays out the set; false when the path is too large to sweep. */
static bool place_groups(const psa_space *space, alive_set *set)
{
    size_t groups = 0, entries = 0;

    for (size_t i = 0; i < set->n; i++) {
        const psa__bucket *bucket = &space->bucket[set->path[i].bucket];
        set->first[i] = groups;
        groups += bucket->n_groups;
        entries += bucket->start[bucket->n_groups];
        if (groups > MAX_GROUPS || entries > MAX_ENTRIES)
            return false;
    }
    memset(set->bits, 0, (groups + 63) / 64 * sizeof *set->bits);
    return true;
}

/* Whether some value of the group leads to a living group of the next bucket on the path. */
static bool leads_on(const repair *r, const alive_set *set, size_t i, size_t group)
{
    const psa__bucket *bucket = &r->space->bucket[set->path[i].bucket];

    for (uint32_t s = 0; s < bucket->n_sep; s++)
        r->net[bucket->sep[s]] = (int32_t)(bucket->key[group] / bucket->stride[s] %
                                           (uint64_t)r->space->net[bucket->sep[s]].card);
    for (size_t e = bucket->start[group]; e < bucket->start[group + 1]; e++) {
        r->net[bucket->net] = bucket->value[e];
        if (is_alive(set, i + 1, psa__group(&r->space->bucket[set->path[i + 1].bucket], r->net)))
            return true;
    }
    return false;
}

/* Upward pass. */
static bool sweep_path(const repair *r, alive_set *set)
{
    const psa__bucket *last = &r->space->bucket[set->path[set->n - 1].bucket];

    if (!place_groups(r->space, set))
        return false;
    for (size_t i = set->n; i-- > 0;) {
        const psa__bucket *bucket = &r->space->bucket[set->path[i].bucket];
        for (size_t g = 0; g < bucket->n_groups; g++) {
            size_t at = set->first[i] + g;
            bool alive = i == set->n - 1
                             ? psa__position(last, (int32_t)g, r->wanted[last->net]) >= 0
                             : leads_on(r, set, i, g);
            set->bits[at / 64] |= (uint64_t)alive << (at % 64);
        }
    }
    return is_alive(set, 0, 0);
}

/* Downward pass: the nearest values that lead on. */
static bool descend_path(const repair *r, const level *path, size_t n)
{
    alive_set set;
    size_t tries = 0;

    set.path = path;
    set.n = n;
    if (!sweep_path(r, &set))
        return false;
    for (size_t i = 0; i + 1 < n; i++) {
        const psa__bucket *bucket = &r->space->bucket[path[i].bucket];
        int32_t group = psa__group(bucket, r->net);
        candidate last = fresh(r);
        do {
            r->net[bucket->net] = next_value(r, bucket, group, &last, &tries);
        } while (r->net[bucket->net] >= 0 &&
                 !is_alive(&set, i + 1, psa__group(&r->space->bucket[path[i + 1].bucket], r->net)));
    }
    r->net[r->space->bucket[path[n - 1].bucket].net] =
        r->wanted[r->space->bucket[path[n - 1].bucket].net];
    return true;
}

static bool keep_pinned(const repair *r, size_t pinned)
{
    const psa_space *space = r->space;
    level path[MAX_PATH];
    bool settled[PSA__MAX_NETS] = {false};
    size_t net = space->var[pinned].net, n;
    int found;

    n = build_path(space, space->net[net].bucket, path);
    if (n == 0 || r->wanted[net] < 0)
        return false;
    found = search_path(r, path, n);
    if (found == 0 || (found < 0 && !descend_path(r, path, n)))
        return false;
    for (size_t i = 0; i < n; i++)
        settled[path[i].bucket] = true;
    complete(r, settled);
    return true;
}

bool psa_space_repair(const psa_space *space, cs_rng *rng, size_t pinned, int32_t *point)
{
    int32_t wanted[PSA__MAX_NETS], net[PSA__MAX_NETS];
    repair r = {space, rng, wanted, net};
    bool kept = true;

    if (space->empty)
        return false;
    (void)psa__nets_of(space, point, wanted);
    if (pinned < space->n_vars && space->var[pinned].n_members > 0)
        kept = keep_pinned(&r, pinned);
    if (!kept || pinned >= space->n_vars || space->var[pinned].n_members == 0)
        complete(&r, NULL);
    for (size_t v = 0; v < space->n_vars; v++)
        point[v] = space->var[v].n_members == 0 ? 0 : net[space->var[v].net];
    return kept;
}
