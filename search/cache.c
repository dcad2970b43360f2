/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Open-addressing hash of evaluated designs: packed exact keys and scores in dense arrays, slots
 * hold positions in them. */
#include "search/search_private.h"

#include <stdlib.h>
#include <string.h>

enum { PENDING = 255 };

struct search__cache {
    size_t n_vars, n_words, n_values; /* values: violation and objectives of one entry */
    unsigned char *bits;              /* of each variable */
    uint64_t *key;                    /* n x n_words */
    double *value;                    /* n x n_values */
    unsigned char *outcome;           /* n */
    size_t n, capacity;
    uint32_t *slot; /* entry + 1, 0 when free; a power of two, at most half full */
    size_t n_slots;
    uint64_t *probe; /* n_words, the key looked for */
};

static bool grow_entries(search__cache *c)
{
    size_t capacity = c->capacity == 0 ? 1024 : c->capacity + c->capacity / 2;
    uint64_t *key = realloc(c->key, capacity * c->n_words * sizeof *key);
    if (key == NULL)
        return false;
    c->key = key;
    double *value = realloc(c->value, capacity * c->n_values * sizeof *value);
    if (value == NULL)
        return false;
    c->value = value;
    unsigned char *outcome = realloc(c->outcome, capacity);
    if (outcome == NULL)
        return false;
    c->outcome = outcome;
    c->capacity = capacity;
    return true;
}

static uint64_t hash_key(const search__cache *c, const uint64_t *key)
{
    uint64_t h = 0;

    for (size_t i = 0; i < c->n_words; i++)
        h = cs_mix64(h ^ key[i]);
    return h;
}

static bool grow_slots(search__cache *c)
{
    size_t n_slots = c->n_slots == 0 ? 4096 : 2 * c->n_slots;
    uint32_t *slot = calloc(n_slots, sizeof *slot);

    if (slot == NULL)
        return false;
    for (size_t i = 0; i < c->n; i++) {
        size_t at = (size_t)hash_key(c, c->key + i * c->n_words) & (n_slots - 1);
        while (slot[at] != 0)
            at = (at + 1) & (n_slots - 1);
        slot[at] = (uint32_t)(i + 1);
    }
    free(c->slot);
    c->slot = slot;
    c->n_slots = n_slots;
    return true;
}

search__cache *search__cache_create(const psa_space *space, size_t n_objectives)
{
    search__cache *c = calloc(1, sizeof *c);
    size_t bits = 0;

    if (c == NULL)
        return NULL;
    c->n_vars = psa_space_n_vars(space);
    c->n_values = 1 + n_objectives;
    c->bits = calloc(c->n_vars + 1, 1);
    if (c->bits == NULL)
        goto failed;
    for (size_t v = 0; v < c->n_vars; v++) {
        while (c->bits[v] < 31 && (int64_t)1 << c->bits[v] < psa_space_card(space, v))
            c->bits[v]++;
        bits += c->bits[v];
    }
    c->n_words = bits / 64 + 1;
    c->probe = calloc(c->n_words, sizeof *c->probe);
    if (c->probe == NULL || !grow_entries(c) || !grow_slots(c))
        goto failed;
    return c;
failed:
    search__cache_destroy(c);
    return NULL;
}

void search__cache_destroy(search__cache *cache)
{
    if (cache == NULL)
        return;
    free(cache->bits);
    free(cache->key);
    free(cache->value);
    free(cache->outcome);
    free(cache->slot);
    free(cache->probe);
    free(cache);
}

static void pack(search__cache *c, const int32_t *point)
{
    size_t at = 0;

    memset(c->probe, 0, c->n_words * sizeof *c->probe);
    for (size_t v = 0; v < c->n_vars; v++) {
        const uint64_t x = (uint64_t)(uint32_t)point[v];
        c->probe[at / 64] |= x << at % 64;
        if (at % 64 + c->bits[v] > 64)
            c->probe[at / 64 + 1] |= x >> (64 - at % 64);
        at += c->bits[v];
    }
}

/* Slot of the probe key, or the free slot where it belongs. */
static size_t locate(const search__cache *c)
{
    const size_t mask = c->n_slots - 1;
    size_t at = (size_t)hash_key(c, c->probe) & mask;

    while (c->slot[at] != 0 && memcmp(c->key + (size_t)(c->slot[at] - 1) * c->n_words, c->probe,
                                      c->n_words * sizeof *c->probe) != 0)
        at = (at + 1) & mask;
    return at;
}

size_t search__cache_find(search__cache *cache, const int32_t *point)
{
    pack(cache, point);
    uint32_t entry = cache->slot[locate(cache)];
    return entry == 0 ? SEARCH__NO_ENTRY : (size_t)entry - 1;
}

size_t search__cache_add(search__cache *cache, const int32_t *point)
{
    if (cache->n >= UINT32_MAX - 1 || (cache->n == cache->capacity && !grow_entries(cache)) ||
        (2 * (cache->n + 1) > cache->n_slots && !grow_slots(cache)))
        return SEARCH__NO_ENTRY;
    const size_t entry = cache->n++;
    pack(cache, point);
    cache->slot[locate(cache)] = (uint32_t)(entry + 1);
    memcpy(cache->key + entry * cache->n_words, cache->probe,
           cache->n_words * sizeof *cache->probe);
    cache->outcome[entry] = PENDING;
    return entry;
}

void search__cache_set(search__cache *cache, size_t entry, const agent_score *score)
{
    double *value = cache->value + entry * cache->n_values;

    value[0] = score->violation;
    for (size_t i = 1; i < cache->n_values; i++)
        value[i] = score->objective[i - 1];
    cache->outcome[entry] = (unsigned char)score->outcome;
}

bool search__cache_get(const search__cache *cache, size_t entry, agent_score *score)
{
    const double *value = cache->value + entry * cache->n_values;

    if (cache->outcome[entry] == PENDING)
        return false;
    *score = (agent_score){
        .outcome = (agent_outcome)cache->outcome[entry], .violation = value[0], .cached = true};
    for (size_t i = 1; i < cache->n_values; i++)
        score->objective[i - 1] = value[i];
    return true;
}
