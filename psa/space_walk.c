/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Using the buckets: membership, uniform samples, ranks.  A bucket may only look at variables that
 * were eliminated after it, so going backwards through the order every choice has a completion. */
#include "psa/space_private.h"

#include <string.h>

/* Value of a function of earlier nets, -1: impossible. */
static int32_t function_value(const psa_space *space, const psa__net *f, const int32_t *net)
{
    size_t at = 0, stride = 1;

    for (uint32_t i = 0; i < f->n_args; i++) {
        if (net[f->arg[i]] < 0)
            return -1;
        at += (size_t)net[f->arg[i]] * stride;
        stride *= (size_t)space->net[f->arg[i]].card;
    }
    return f->table[at];
}

bool psa__nets_of(const psa_space *space, const int32_t *point, int32_t *net)
{
    bool defined = true;

    for (size_t i = 0; i < space->n_nets; i++) {
        const psa__net *n = &space->net[i];
        if (n->var >= 0)
            net[i] = point[n->var] >= 0 && point[n->var] < n->card ? point[n->var] : -1;
        else
            net[i] = function_value(space, n, net);
        defined = defined && net[i] >= 0;
    }
    return defined;
}

int32_t psa__group(const psa__bucket *bucket, const int32_t *net)
{
    uint64_t key = 0, at;

    for (uint32_t i = 0; i < bucket->n_sep; i++)
        key += (uint64_t)net[bucket->sep[i]] * bucket->stride[i];
    if (bucket->dense)
        return bucket->slot[key] - 1;
    at = cs_mix64(key) & (bucket->n_slots - 1);
    while (bucket->slot[at] != 0) {
        if (bucket->key[bucket->slot[at] - 1] == key)
            return bucket->slot[at] - 1;
        at = (at + 1) & (bucket->n_slots - 1);
    }
    return -1;
}

int64_t psa__position(const psa__bucket *bucket, int32_t group, int32_t value)
{
    size_t low = bucket->start[group], high = bucket->start[group + 1];

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (bucket->value[middle] == value)
            return (int64_t)middle;
        if (bucket->value[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static psa__count group_total(const psa__bucket *bucket, int32_t group)
{
    return bucket->cumulative[bucket->start[group + 1] - 1];
}

/* First entry of the group whose cumulative count is above r. */
static size_t pick(const psa__bucket *bucket, int32_t group, psa__count r)
{
    size_t low = bucket->start[group], high = (size_t)bucket->start[group + 1] - 1;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (bucket->cumulative[middle] > r)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static size_t draw(const psa__bucket *bucket, int32_t group, cs_rng *rng)
{
    size_t first = bucket->start[group], n = bucket->start[group + 1] - first;
    psa__count total;

    if (n == 1)
        return first;
    if (bucket->uniform)
        return first + (size_t)cs_rng_below(rng, n);
    total = group_total(bucket, group);
    if (total >> 64 == 0)
        return pick(bucket, group, cs_rng_below(rng, (uint64_t)total));
    return pick(bucket, group, cs_rng_below_u128(rng, total));
}

static void read_point(const psa_space *space, const int32_t *net, int32_t *point)
{
    for (size_t v = 0; v < space->n_vars; v++)
        point[v] = space->var[v].n_members == 0 ? 0 : net[space->var[v].net];
}

cs_status psa_space_sample(const psa_space *space, cs_rng *rng, int32_t *point)
{
    int32_t net[PSA__MAX_NETS];

    if (space->empty)
        return CS_EINFEASIBLE;
    for (size_t b = space->n_buckets; b-- > 0;) {
        const psa__bucket *bucket = &space->bucket[b];
        net[bucket->net] = bucket->value[draw(bucket, psa__group(bucket, net), rng)];
    }
    read_point(space, net, point);
    return CS_OK;
}

bool psa_space_valid(const psa_space *space, const int32_t *point)
{
    int32_t net[PSA__MAX_NETS];

    if (space->empty || !psa__nets_of(space, point, net))
        return false;
    for (size_t b = space->n_buckets; b-- > 0;) {
        const psa__bucket *bucket = &space->bucket[b];
        if (bucket->is_free)
            continue;
        int32_t group = psa__group(bucket, net);
        if (group < 0 || psa__position(bucket, group, net[bucket->net]) < 0)
            return false;
    }
    return true;
}

/* The count of a bucket's entry is the product of its children's totals, so the rest of a rank
 * is a number in mixed radix over the children. */
psa__count psa_space_rank(const psa_space *space, const int32_t *point)
{
    int32_t net[PSA__MAX_NETS];
    psa__count rank[PSA__MAX_NETS], all = 0;

    if (space->empty || !psa__nets_of(space, point, net))
        return 0;
    for (size_t b = 0; b < space->n_buckets; b++) {
        const psa__bucket *bucket = &space->bucket[b];
        int32_t group = psa__group(bucket, net);
        int64_t at = group < 0 ? -1 : psa__position(bucket, group, net[bucket->net]);
        psa__count rest = 0;
        if (at < 0)
            return 0;
        for (uint32_t c = bucket->n_children; c-- > 0;) {
            const psa__bucket *child = &space->bucket[bucket->child[c]];
            rest = rest * group_total(child, psa__group(child, net)) + rank[bucket->child[c]];
        }
        rank[b] = rest + (at == (int64_t)bucket->start[group] ? 0 : bucket->cumulative[at - 1]);
    }
    for (size_t b = 0; b < space->n_buckets; b++)
        if (space->bucket[b].parent < 0)
            all = all * group_total(&space->bucket[b], 0) + rank[b];
    return all;
}

void psa_space_unrank(const psa_space *space, psa__count rank, int32_t *point)
{
    int32_t net[PSA__MAX_NETS];
    psa__count rest[PSA__MAX_NETS];

    if (space->empty) {
        memset(point, 0, space->n_vars * sizeof *point);
        return;
    }
    rank %= space->valid_points;
    for (size_t b = space->n_buckets; b-- > 0;) {
        const psa__bucket *bucket = &space->bucket[b];
        int32_t group;
        size_t at;
        psa__count r;
        if (bucket->parent < 0) {
            rest[b] = rank % group_total(bucket, 0);
            rank /= group_total(bucket, 0);
        }
        group = psa__group(bucket, net);
        at = pick(bucket, group, rest[b]);
        net[bucket->net] = bucket->value[at];
        r = rest[b] - (at == bucket->start[group] ? 0 : bucket->cumulative[at - 1]);
        for (uint32_t c = 0; c < bucket->n_children; c++) {
            const psa__bucket *child = &space->bucket[bucket->child[c]];
            psa__count total = group_total(child, psa__group(child, net));
            rest[bucket->child[c]] = r % total;
            r /= total;
        }
    }
    read_point(space, net, point);
}
