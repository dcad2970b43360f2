/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Memory of the trace code: a bump allocator for one frame at a time, growing arrays, interned
 * strings, printable names. */
#include "workloads/trace_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL_CHUNK = 64 * 1024, POOL_ALIGN = 16 };

typedef struct pool_chunk {
    struct pool_chunk *next;
    size_t size;
    _Alignas(POOL_ALIGN) unsigned char bytes[];
} pool_chunk;

struct wl__pool {
    pool_chunk *first, *current;
    size_t used; /* of current */
    size_t total, limit;
};

wl__pool *wl__pool_create(size_t limit_bytes)
{
    wl__pool *pool = calloc(1, sizeof *pool);

    if (pool != NULL)
        pool->limit = limit_bytes;
    return pool;
}

void wl__pool_destroy(wl__pool *pool)
{
    if (pool == NULL)
        return;
    for (pool_chunk *c = pool->first; c != NULL;) {
        pool_chunk *next = c->next;
        free(c);
        c = next;
    }
    free(pool);
}

void wl__pool_reset(wl__pool *pool)
{
    pool->current = pool->first;
    pool->used = 0;
}

static bool add_chunk(wl__pool *pool, size_t size)
{
    size_t bytes = size > POOL_CHUNK ? size : POOL_CHUNK;
    pool_chunk *c;

    if (bytes > pool->limit - pool->total)
        return false;
    c = malloc(sizeof *c + bytes);
    if (c == NULL)
        return false;
    pool->total += bytes;
    c->size = bytes;
    c->next = pool->current != NULL ? pool->current->next : NULL;
    if (pool->current != NULL)
        pool->current->next = c;
    else
        pool->first = c;
    pool->current = c;
    pool->used = 0;
    return true;
}

void *wl__pool_alloc(wl__pool *pool, size_t size)
{
    void *out;

    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
    while (pool->current == NULL || pool->current->size - pool->used < size) {
        if (pool->current != NULL && pool->current->next != NULL) {
            pool->current = pool->current->next;
            pool->used = 0;
        } else if (!add_chunk(pool, size)) {
            return NULL;
        }
    }
    out = pool->current->bytes + pool->used;
    pool->used += size;
    return out;
}

bool wl__grow(void **array, size_t n, size_t *cap, size_t size)
{
    void *grown = n >= UINT32_MAX - 1 ? NULL : cs_room(*array, cap, n + 1, size);

    if (grown == NULL)
        return false;
    *array = grown;
    return true;
}

/* ---- interned strings ---- */

struct wl__strings {
    cs_arena *arena;
    const char **list;
    size_t n, cap;
    uint64_t *hash; /* of each */
    size_t cap_hash;
    uint32_t *slot; /* open addressing: number + 1, 0 empty */
    size_t n_slots;
};

wl__strings *wl__strings_create(cs_arena *arena)
{
    wl__strings *strings = calloc(1, sizeof *strings);

    if (strings == NULL)
        return NULL;
    strings->arena = arena;
    strings->n_slots = 256;
    strings->slot = calloc(strings->n_slots, sizeof *strings->slot);
    if (strings->slot == NULL) {
        free(strings);
        return NULL;
    }
    return strings;
}

void wl__strings_destroy(wl__strings *strings)
{
    if (strings == NULL)
        return;
    free(strings->list);
    free(strings->hash);
    free(strings->slot);
    free(strings);
}

/* Eight bytes at a step: names are many and long. */
static uint64_t text_hash(const char *text, size_t n)
{
    uint64_t hash = CS_HASH_START ^ n, word;

    for (; n >= 8; n -= 8, text += 8) {
        memcpy(&word, text, 8);
        hash = cs_mix64(hash ^ word);
    }
    return cs_mix64(cs_hash(hash, text, n));
}

static size_t string_slot(const wl__strings *strings, const char *text, uint64_t hash)
{
    size_t mask = strings->n_slots - 1;
    size_t i = (size_t)hash & mask;

    for (; strings->slot[i] != 0; i = (i + 1) & mask) {
        size_t k = strings->slot[i] - 1;

        if (strings->hash[k] == hash && strcmp(strings->list[k], text) == 0)
            break;
    }
    return i;
}

static bool double_slots(wl__strings *strings)
{
    uint32_t *slot = calloc(strings->n_slots * 2, sizeof *slot);

    if (slot == NULL)
        return false;
    free(strings->slot);
    strings->slot = slot;
    strings->n_slots *= 2;
    for (size_t k = 0; k < strings->n; k++)
        strings->slot[string_slot(strings, strings->list[k], strings->hash[k])] = (uint32_t)k + 1;
    return true;
}

static uint32_t add_hashed(wl__strings *strings, const char *text, size_t n, uint64_t hash)
{
    size_t i = string_slot(strings, text, hash);
    const char *copy;

    if (strings->slot[i] != 0)
        return strings->slot[i] - 1;
    copy = cs_arena_strndup(strings->arena, text, n);
    if (copy == NULL ||
        !wl__grow((void **)&strings->list, strings->n, &strings->cap, sizeof *strings->list) ||
        !wl__grow((void **)&strings->hash, strings->n, &strings->cap_hash, sizeof *strings->hash))
        return UINT32_MAX;
    strings->list[strings->n] = copy;
    strings->hash[strings->n++] = hash;
    strings->slot[i] = (uint32_t)strings->n;
    if (strings->n * 2 > strings->n_slots && !double_slots(strings))
        return UINT32_MAX;
    return (uint32_t)strings->n - 1;
}

uint32_t wl__strings_add(wl__strings *strings, const char *text)
{
    size_t n = strlen(text);

    return add_hashed(strings, text, n, text_hash(text, n));
}

uint32_t wl__strings_join(wl__strings *strings, const wl__strings *from, uint32_t i)
{
    const char *text = from->list[i];

    return add_hashed(strings, text, strlen(text), from->hash[i]);
}

const char *const *wl__strings_list(const wl__strings *strings, uint32_t *n)
{
    *n = (uint32_t)strings->n;
    return strings->list;
}

/* ---- printable text ---- */

/* Length of the valid UTF-8 sequence at p, 0 when invalid (overlong, surrogate, over U+10FFFF). */
static size_t utf8_length(const unsigned char *p)
{
    static const struct {
        unsigned char mask, lead, n;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 1, 0},
                 {0xe0, 0xc0, 2, 0x80},
                 {0xf0, 0xe0, 3, 0x800},
                 {0xf8, 0xf0, 4, 0x10000}};

    for (size_t f = 0; f < CS_COUNT(forms); f++) {
        uint32_t code = p[0] & (unsigned char)~forms[f].mask;

        if ((p[0] & forms[f].mask) != forms[f].lead)
            continue;
        for (size_t k = 1; k < forms[f].n; k++) {
            if ((p[k] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (p[k] & 0x3fu);
        }
        if (code < forms[f].least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
            return 0;
        return forms[f].n;
    }
    return 0;
}

static bool plain_byte(unsigned char c)
{
    return c >= 0x20 && c != 0x7f;
}

static bool plain_ascii(const unsigned char *p)
{
    while (*p >= 0x20 && *p < 0x7f)
        p++;
    return *p == 0;
}

const char *wl__printable(cs_arena *arena, const char *text, bool *escaped)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t bad = 0, n;
    char *out, *q;

    *escaped = false;
    if (plain_ascii(p))
        return text;
    for (const unsigned char *s = p; *s != 0; s += n) {
        n = utf8_length(s);
        *escaped = *escaped || n == 0;
        bad += n == 0 || !plain_byte(*s);
        n = n == 0 ? 1 : n;
    }
    if (bad == 0)
        return text;
    out = q = cs_arena_alloc(arena, strlen(text) + 3 * bad + 1);
    for (; out != NULL && *p != 0; p += n) {
        n = utf8_length(p);
        if (n != 0 && plain_byte(*p)) {
            memcpy(q, p, n);
            q += n;
        } else {
            n = 1;
            q += sprintf(q, "\\x%02x", *p);
        }
    }
    return out;
}
