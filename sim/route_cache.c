/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Costs kept by (algorithm, kind, topology, N, n, stride, oversubscription): an open hash table. A
 * full cache is emptied; that changes no digit. */
#include "sim/network_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_WORDS = 3, FIRST_SLOTS = 256, N_FLAT_LISTS = 256 };

typedef struct {
    uint64_t key[KEY_WORDS];
    sim__kept *cost; /* NULL: free */
} slot;

struct sim_route_cache {
    slot *slots;
    size_t n_slots, n_used; /* n_slots: a power of two */
    size_t bytes, limit;
    sim__cost scratch;
    sim__flat *flats[N_FLAT_LISTS];
};

sim_route_cache *sim_route_cache_create(size_t limit_bytes)
{
    sim_route_cache *cache = calloc(1, sizeof *cache);

    if (cache == NULL)
        return NULL;
    cache->slots = calloc(FIRST_SLOTS, sizeof *cache->slots);
    if (cache->slots == NULL) {
        free(cache);
        return NULL;
    }
    cache->n_slots = FIRST_SLOTS;
    cache->bytes = FIRST_SLOTS * sizeof *cache->slots;
    cache->limit = limit_bytes;
    return cache;
}

static void empty(sim_route_cache *cache)
{
    for (size_t i = 0; i < cache->n_slots; i++) {
        free(cache->slots[i].cost);
        cache->slots[i].cost = NULL;
    }
    for (size_t i = 0; i < N_FLAT_LISTS; i++) {
        sim__flat_destroy(cache->flats[i]);
        cache->flats[i] = NULL;
    }
    cache->n_used = 0;
    cache->bytes = cache->n_slots * sizeof *cache->slots;
}

void sim_route_cache_destroy(sim_route_cache *cache)
{
    if (cache == NULL)
        return;
    empty(cache);
    free(cache->slots);
    free(cache);
}

sim__flat **sim__route_flats(sim_route_cache *cache, const void *key, size_t key_size)
{
    return &cache->flats[cs_mix64(cs_hash(CS_HASH_START, key, key_size)) % N_FLAT_LISTS];
}

void sim__route_charge(sim_route_cache *cache, size_t bytes)
{
    if (cache->limit > 0 && cache->bytes + bytes > cache->limit)
        empty(cache);
    cache->bytes += bytes;
}

static slot *find(slot *slots, size_t n_slots, const uint64_t key[KEY_WORDS])
{
    size_t mask = n_slots - 1, i = (size_t)cs_mix64(key[0] ^ (key[1] << 57 | key[1] >> 7) ^ key[2]);

    for (i &= mask; slots[i].cost != NULL; i = (i + 1) & mask)
        if (slots[i].key[0] == key[0] && slots[i].key[1] == key[1] && slots[i].key[2] == key[2])
            break;
    return &slots[i];
}

static cs_status widen(sim_route_cache *cache, cs_error *err)
{
    size_t n = 2 * cache->n_slots;
    slot *slots = calloc(n, sizeof *slots);

    if (slots == NULL)
        return cs_fail(err, CS_ENOMEM, "route cache");
    for (size_t i = 0; i < cache->n_slots; i++)
        if (cache->slots[i].cost != NULL)
            *find(slots, n, cache->slots[i].key) = cache->slots[i];
    free(cache->slots);
    cache->slots = slots;
    cache->bytes += cache->n_slots * sizeof *slots;
    cache->n_slots = n;
    return CS_OK;
}

static sim__kept *keep(const sim__cost *c)
{
    sim__kept *k = malloc(sizeof *k + c->steady.n * sizeof(sim__line));

    if (k == NULL)
        return NULL;
    *k = (sim__kept){.steps = c->steps,
                     .slice_hops = c->slice_hops,
                     .slice_load = c->slice_load,
                     .messages = c->messages,
                     .reduced = c->reduced,
                     .sent = c->sent,
                     .n_lines = c->steady.n};
    memcpy(k->line, c->steady.line, c->steady.n * sizeof(sim__line));
    return k;
}

/* What is asked for and not kept yet. */
typedef struct {
    sim__place place;
    int32_t algorithm, kind;
} cold;

static cs_status insert(sim_route_cache *cache, const uint64_t key[KEY_WORDS], const cold *c,
                        const sim__kept **out, cs_error *err)
{
    cs_status status = CS_OK;
    sim__kept *kept;
    slot *s;

    CS_TRY(sim__cost_build(&c->place, c->algorithm, c->kind, &cache->scratch, err));
    kept = keep(&cache->scratch);
    if (kept == NULL)
        return cs_fail(err, CS_ENOMEM, "route cache");
    sim__route_charge(cache, sizeof *kept + kept->n_lines * sizeof(sim__line));
    if (2 * cache->n_used >= cache->n_slots) {
        status = widen(cache, err);
        if (status != CS_OK) {
            free(kept);
            return status;
        }
    }
    s = find(cache->slots, cache->n_slots, key);
    *s = (slot){{key[0], key[1], key[2]}, kept};
    cache->n_used++;
    *out = kept;
done:
    return status;
}

cs_status sim__route_cost(sim_route_cache *cache, const sim_dim *dim, const sim_span *span,
                          int32_t kind, const sim__kept **out, cs_error *err)
{
    bool is_switch = dim->topology == SIM_SWITCH;
    double over = is_switch && dim->oversubscription > 1 ? dim->oversubscription : 1;
    bool reduces = is_switch && dim->in_network_reduction != 0;
    uint64_t key[KEY_WORDS] = {0, (uint64_t)span->stride, 0};
    slot *s;

    if (dim->n > SIM__MAX_NPUS || dim->algorithm < 0 || dim->algorithm >= SIM_N_ALGOS ||
        dim->topology < 0 || dim->topology >= SIM_N_TOPOLOGIES)
        return cs_fail(err, CS_EINVAL,
                       "network: a dimension of %lld NPUs, topology %d, algorithm %d",
                       (long long)dim->n, (int)dim->topology, (int)dim->algorithm);
    memcpy(&key[2], &over, sizeof over);
    key[0] = (uint64_t)dim->n | (uint64_t)span->n << 21 | (uint64_t)kind << 42 |
             (uint64_t)dim->topology << 48 | (uint64_t)dim->algorithm << 52 |
             (uint64_t)reduces << 56;
    s = find(cache->slots, cache->n_slots, key);
    if (s->cost != NULL) {
        *out = s->cost;
        return CS_OK;
    }
    cold c = {{dim->topology, dim->n, span->n, span->stride, over, reduces}, dim->algorithm, kind};
    return insert(cache, key, &c, out, err);
}

/* Slices are as many as is best: (c + k) (a + b/k) is convex in k with its least at
 * sqrt(c b / a).  Without any latency the more the better: the limit is b. */
double sim__pipelined(double c, double a, double b)
{
    double k, low, high;

    if (a <= 0)
        return c > 0 ? b : a + b;
    k = floor(sqrt(c * b / a));
    k = k < 1 ? 1 : k;
    low = (c + k) * (a + b / k);
    high = (c + k + 1) * (a + b / (k + 1));
    return low < high ? low : high;
}

double sim__cost_seconds(const sim__kept *cost, const sim_dim *dim, const sim_network *net,
                         double bytes)
{
    double unit = bytes / dim->bandwidth_bytes_per_s, latency = dim->latency_s, seconds = 0;

    for (size_t i = 0; i < cost->n_lines; i++) {
        double t = cost->line[i].hops * latency + cost->line[i].load * unit;
        seconds = t > seconds ? t : seconds;
    }
    if (cost->steps > 0)
        seconds +=
            sim__pipelined(cost->steps - 1, cost->slice_hops * latency + net->endpoint_delay_s,
                           cost->slice_load * unit);
    seconds += cost->messages * net->endpoint_delay_s;
    if (net->reduction_bytes_per_s > 0)
        seconds += cost->reduced * bytes / net->reduction_bytes_per_s;
    return seconds;
}
