/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Variable elimination (Dechter, Artificial Intelligence 113, 1999, "bucket elimination") over
 * sparse tables with exact counts.  Eliminating a variable joins the tables that hold it; the
 * joined rows stay as its bucket (which values it may take, and how many points follow, for each
 * assignment of its neighbours), their sums go on as a message.  The order is greedy: the variable
 * whose join is estimated smallest goes next. */
#include "psa/elim_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* State of the ordering. */
typedef struct {
    bool by_message;  /* smallest message next instead of smallest join */
    const bool *keep; /* nets that stay; NULL: none */
    double *cost;
    bool *done, *stale;
} order;

static bool holds(const psa__factor *factor, int32_t net)
{
    for (uint32_t i = 0; i < factor->n_scope; i++)
        if (factor->scope[i] == net)
            return true;
    return false;
}

/* Log of the expected rows of the join of everything that holds `net`: the average-case size of a
 * join, no more than all combinations and no less than its largest table. */
static double join_cost(psa__build *build, int32_t net, bool by_message)
{
    const psa_space *space = build->space;
    double all = 0, expected = 0, largest = 0;
    uint8_t seen[PSA__MAX_NETS] = {0};

    for (size_t f = 0; f < build->n_factors; f++) {
        const psa__factor *factor = &build->factor[f];
        double rows;
        if (factor->used || !holds(factor, net))
            continue;
        rows = log((double)factor->n_rows + 1);
        largest = fmax(largest, rows);
        expected += rows;
        for (uint32_t i = 0; i < factor->n_scope; i++) {
            double card = log((double)space->net[factor->scope[i]].card + 1);
            if (seen[factor->scope[i]])
                expected -= card;
            else
                all += card;
            seen[factor->scope[i]] = 1;
        }
    }
    if (by_message)
        all -= log((double)space->net[net].card + 1);
    return by_message ? all : fmin(all, fmax(expected, largest));
}

static int32_t next_net(psa__build *build, order *o)
{
    int32_t best = -1;

    for (size_t i = 0; i < build->space->n_nets; i++) {
        if (o->done[i])
            continue;
        if (o->stale[i]) {
            o->cost[i] = join_cost(build, (int32_t)i, o->by_message);
            o->stale[i] = false;
        }
        if (best < 0 || o->cost[i] < o->cost[best])
            best = (int32_t)i;
    }
    return best;
}

static bool in_scope(const psa__table *table, int32_t net)
{
    for (uint32_t i = 0; i < table->n_scope; i++)
        if (table->scope[i] == net)
            return true;
    return false;
}

/* The table to join next: the one that adds fewest variables, then the smallest. */
static size_t next_factor(psa__factor *const *list, size_t n, const psa__table *joined)
{
    size_t best = 0;
    uint32_t fewest = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        uint32_t fresh = 0;
        for (uint32_t k = 0; k < list[i]->n_scope && joined->n_scope > 0; k++)
            fresh += !in_scope(joined, list[i]->scope[k]);
        if (fresh < fewest || (fresh == fewest && list[i]->n_rows < list[best]->n_rows)) {
            fewest = fresh;
            best = i;
        }
    }
    return best;
}

/* Joins everything that holds `net`; the children of its bucket are the senders of messages. */
static cs_status join_all(psa__build *build, int32_t net, psa__bucket *bucket, psa__table *out,
                          int32_t *origin)
{
    cs_status status = CS_OK;
    psa__factor **list = malloc((build->n_factors + 1) * sizeof *list);
    psa__table joined = {0};
    size_t n = 0;

    memset(out, 0, sizeof *out);
    bucket->child =
        cs_arena_alloc(build->space->arena, (build->n_factors + 1) * sizeof *bucket->child);
    if (list == NULL || bucket->child == NULL) {
        free(list);
        return psa__no_memory(build);
    }
    for (size_t f = 0; f < build->n_factors; f++)
        if (!build->factor[f].used && holds(&build->factor[f], net)) {
            list[n++] = &build->factor[f];
            if (build->factor[f].bucket >= 0)
                bucket->child[bucket->n_children++] = build->factor[f].bucket;
        }
    while (n > 0) {
        size_t next = next_factor(list, n, out);
        psa__factor *factor = list[next];
        list[next] = list[--n];
        *origin = factor->origin >= 0 ? factor->origin : *origin;
        factor->used = true;
        if (out->n_scope == 0) {
            CS_TRY(psa__table_copy(build, factor, out));
            continue;
        }
        CS_TRY(psa__table_join(build, out, factor, *origin, &joined));
        psa__table_fini(out);
        *out = joined;
    }
done:
    free(list);
    return status;
}

/* A variable that nothing restricts: all its values, each once. */
static bool free_bucket(psa_space *space, psa__bucket *bucket)
{
    size_t card = (size_t)space->net[bucket->net].card;

    bucket->n_groups = 1;
    bucket->dense = true;
    bucket->n_slots = 1;
    bucket->slot = cs_arena_alloc(space->arena, sizeof *bucket->slot);
    bucket->start = cs_arena_alloc(space->arena, 2 * sizeof *bucket->start);
    bucket->value = cs_arena_alloc(space->arena, card * sizeof *bucket->value);
    bucket->cumulative = cs_arena_alloc(space->arena, card * sizeof *bucket->cumulative);
    if (bucket->slot == NULL || bucket->start == NULL || bucket->value == NULL ||
        bucket->cumulative == NULL)
        return false;
    bucket->slot[0] = 1;
    bucket->start[1] = (uint32_t)card;
    for (size_t i = 0; i < card; i++) {
        bucket->value[i] = (int32_t)i;
        bucket->cumulative[i] = i + 1;
    }
    bucket->uniform = bucket->is_free = true;
    return true;
}

/* Keys of the rows: the separator's combination, then the variable's value; sorted. */
static cs_status sort_rows(psa__build *build, psa__bucket *bucket, const psa__table *table,
                           int32_t origin, uint64_t **key, uint32_t **row)
{
    uint32_t column[64], own = 0, n = 0;
    uint64_t product, card = (uint64_t)build->space->net[bucket->net].card;

    bucket->sep = cs_arena_alloc(build->space->arena, (table->n_scope + 1) * sizeof *bucket->sep);
    bucket->stride =
        cs_arena_alloc(build->space->arena, (table->n_scope + 1) * sizeof *bucket->stride);
    *key = malloc((table->n_rows + 1) * sizeof **key);
    *row = malloc((table->n_rows + 1) * sizeof **row);
    if (bucket->sep == NULL || bucket->stride == NULL || *key == NULL || *row == NULL)
        return psa__no_memory(build);
    for (uint32_t i = 0; i < table->n_scope; i++) {
        if (table->scope[i] == bucket->net) {
            own = i;
            continue;
        }
        column[n] = i;
        bucket->sep[n++] = table->scope[i];
    }
    bucket->n_sep = n;
    product = psa__strides(build->space, bucket->sep, n, bucket->stride);
    if (product == 0 || product > (UINT64_C(1) << 62) / card)
        return psa__too_large(build, origin, "a table that is too wide");
    bucket->n_slots = product;
    for (size_t r = 0; r < table->n_rows; r++) {
        const int32_t *from = table->row + r * table->n_scope;
        (*row)[r] = (uint32_t)r;
        (*key)[r] = (uint64_t)from[own];
        for (uint32_t i = 0; i < n; i++)
            (*key)[r] += (uint64_t)from[column[i]] * bucket->stride[i] * card;
    }
    return psa__sort_keys(*key, *row, table->n_rows) ? CS_OK : psa__no_memory(build);
}

/* Index from separator to group: an array where it is not much larger than the groups. */
static bool index_groups(psa_space *space, psa__bucket *bucket, const uint64_t *group_key)
{
    uint64_t slots = 16;

    bucket->dense = bucket->n_slots <= 4 * (uint64_t)bucket->n_groups + 1024;
    while (!bucket->dense && slots < 2 * (uint64_t)bucket->n_groups)
        slots *= 2;
    bucket->n_slots = bucket->dense ? bucket->n_slots : slots;
    bucket->key = cs_arena_alloc(space->arena, (bucket->n_groups + 1) * sizeof *bucket->key);
    bucket->slot = cs_arena_alloc(space->arena, bucket->n_slots * sizeof *bucket->slot);
    if (bucket->key == NULL || bucket->slot == NULL)
        return false;
    memcpy(bucket->key, group_key, bucket->n_groups * sizeof *bucket->key);
    for (size_t g = 0; g < bucket->n_groups; g++) {
        uint64_t at = bucket->dense ? group_key[g] : cs_mix64(group_key[g]) & (slots - 1);
        while (!bucket->dense && bucket->slot[at] != 0)
            at = (at + 1) & (slots - 1);
        bucket->slot[at] = (int32_t)g + 1;
    }
    return true;
}

cs_status psa__count_overflow(psa__build *build)
{
    return cs_fail(build->err, CS_ESCHEMA, "%s: the space has over 2^128 valid points",
                   cs_doc_path(build->schema->doc));
}

/* Sorted rows -> groups with cumulative counts; `group_key` has room for all rows. */
static cs_status fill_bucket(psa__build *build, psa__bucket *bucket, const psa__table *table,
                             const uint64_t *key, const uint32_t *row, uint64_t *group_key)
{
    cs_arena *arena = build->space->arena;
    uint64_t card = (uint64_t)build->space->net[bucket->net].card;
    psa__count first = 0;

    bucket->start = cs_arena_alloc(arena, (table->n_rows + 2) * sizeof *bucket->start);
    bucket->value = cs_arena_alloc(arena, (table->n_rows + 1) * sizeof *bucket->value);
    bucket->cumulative = cs_arena_alloc(arena, (table->n_rows + 1) * sizeof *bucket->cumulative);
    if (bucket->start == NULL || bucket->value == NULL || bucket->cumulative == NULL)
        return psa__no_memory(build);
    bucket->uniform = true;
    for (size_t r = 0; r < table->n_rows; r++) {
        psa__count weight = table->weight[row[r]], before = 0;
        uint64_t group = key[r] / card;
        if (bucket->n_groups == 0 || group_key[bucket->n_groups - 1] != group) {
            group_key[bucket->n_groups] = group;
            bucket->start[bucket->n_groups++] = (uint32_t)r;
            first = weight;
        } else {
            before = bucket->cumulative[r - 1];
        }
        bucket->uniform = bucket->uniform && weight == first;
        bucket->value[r] = (int32_t)(key[r] % card);
        if (!cs_u128_add(before, weight, &bucket->cumulative[r]))
            return psa__count_overflow(build);
    }
    bucket->start[bucket->n_groups] = (uint32_t)table->n_rows;
    return index_groups(build->space, bucket, group_key) ? CS_OK : psa__no_memory(build);
}

static psa__count group_total(const psa__bucket *bucket, size_t group)
{
    return bucket->cumulative[bucket->start[group + 1] - 1];
}

/* What a bucket tells the rest: the number of completions for each separator combination. */
static cs_status send(psa__build *build, psa__bucket *bucket, int32_t id, const uint64_t *group_key,
                      int32_t origin)
{
    psa__factor factor = {.n_scope = bucket->n_sep, .origin = origin, .bucket = id};
    cs_arena *arena = build->arena;

    if (bucket->n_sep == 0) {
        if (!cs_u128_mul(build->space->valid_points, group_total(bucket, 0),
                         &build->space->valid_points))
            return psa__count_overflow(build);
        return CS_OK;
    }
    factor.scope = bucket->sep;
    factor.n_rows = bucket->n_groups;
    factor.row = cs_arena_alloc(arena, (factor.n_rows * factor.n_scope + 1) * sizeof *factor.row);
    factor.weight = cs_arena_alloc(arena, (factor.n_rows + 1) * sizeof *factor.weight);
    if (factor.row == NULL || factor.weight == NULL)
        return psa__no_memory(build);
    for (size_t g = 0; g < bucket->n_groups; g++) {
        factor.weight[g] = group_total(bucket, g);
        for (uint32_t i = 0; i < bucket->n_sep; i++)
            factor.row[g * factor.n_scope + i] =
                (int32_t)(group_key[g] / bucket->stride[i] %
                          (uint64_t)build->space->net[bucket->sep[i]].card);
    }
    return psa__add_factor(build, &factor);
}

static cs_status eliminate_net(psa__build *build, int32_t net, order *o)
{
    cs_status status;
    psa_space *space = build->space;
    int32_t id = (int32_t)space->n_buckets, origin = -1;
    psa__bucket *bucket = &space->bucket[space->n_buckets++];
    psa__table table;
    uint64_t *key = NULL, *group_key = NULL;
    uint32_t *row = NULL;

    bucket->net = net;
    bucket->parent = -1;
    space->net[net].bucket = id;
    o->done[net] = true;
    CS_TRY(join_all(build, net, bucket, &table, &origin));
    if (table.n_scope == 0) {
        status =
            free_bucket(space, bucket) ? send(build, bucket, id, NULL, -1) : psa__no_memory(build);
        goto done;
    }
    if (table.n_rows == 0) {
        build->unsatisfiable = true;
        goto done;
    }
    CS_TRY(sort_rows(build, bucket, &table, origin, &key, &row));
    group_key = malloc((table.n_rows + 1) * sizeof *group_key);
    if (group_key == NULL) {
        status = psa__no_memory(build);
        goto done;
    }
    CS_TRY(fill_bucket(build, bucket, &table, key, row, group_key));
    CS_TRY(send(build, bucket, id, group_key, origin));
    for (uint32_t i = 0; i < bucket->n_sep; i++)
        o->stale[bucket->sep[i]] = true;
    for (uint32_t c = 0; c < bucket->n_children; c++)
        space->bucket[bucket->child[c]].parent = id;
done:
    psa__table_fini(&table);
    free(key);
    free(row);
    free(group_key);
    return status;
}

static cs_status eliminate_all(psa__build *build, order *o)
{
    cs_status status = CS_OK;
    psa_space *space = build->space;
    size_t n = space->n_nets;

    memset(o->stale, 1, n);
    memset(o->done, 0, n);
    for (size_t i = 0; i < n; i++)
        o->done[i] = o->keep != NULL && o->keep[i];
    space->valid_points = 1;
    space->n_buckets = 0;
    memset(space->bucket, 0, n * sizeof *space->bucket);
    for (int32_t net = next_net(build, o); net >= 0 && !build->unsatisfiable;
         net = next_net(build, o))
        CS_TRY(eliminate_net(build, net, o));
done:
    return status;
}

/* No greedy rule is always good: where one leads to a table that is too large, another is tried
 * before the file is refused. */
cs_status psa__eliminate(psa__build *build, const bool *keep)
{
    cs_status status;
    psa_space *space = build->space;
    size_t n = space->n_nets, n_factors = build->n_factors;
    order o = {.keep = keep};

    o.cost = cs_arena_alloc(build->arena, (n + 1) * sizeof *o.cost);
    o.done = cs_arena_alloc(build->arena, n + 1);
    o.stale = cs_arena_alloc(build->arena, n + 1);
    space->bucket = cs_arena_alloc(space->arena, (n + 1) * sizeof *space->bucket);
    if (o.cost == NULL || o.done == NULL || o.stale == NULL || space->bucket == NULL)
        return psa__no_memory(build);
    status = eliminate_all(build, &o);
    if (status != CS_ESCHEMA)
        return status;
    o.by_message = true;
    build->n_factors = n_factors;
    for (size_t f = 0; f < n_factors; f++)
        build->factor[f].used = false;
    return eliminate_all(build, &o);
}
