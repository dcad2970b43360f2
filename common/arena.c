/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Chunked bump allocator: allocations are zeroed, live as long as the arena, and die together. */
#include "common/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20, ALIGNMENT = 16 };

typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(ALIGNMENT) unsigned char bytes[];
} chunk;

struct cs_arena {
    chunk *head;
    size_t limit, total;
    size_t next_size;
};

cs_arena *cs_arena_create(size_t limit_bytes)
{
    cs_arena *arena = calloc(1, sizeof *arena);

    if (arena != NULL) {
        arena->limit = limit_bytes;
        arena->next_size = FIRST_CHUNK;
    }
    return arena;
}

void cs_arena_destroy(cs_arena *arena)
{
    if (arena == NULL)
        return;
    for (chunk *c = arena->head; c != NULL;) {
        chunk *next = c->next;
        free(c);
        c = next;
    }
    free(arena);
}

static chunk *add_chunk(cs_arena *arena, size_t size)
{
    size_t bytes = size > arena->next_size ? size : arena->next_size;
    chunk *c = malloc(sizeof *c + bytes);

    if (c == NULL)
        return NULL;
    if (arena->next_size < LARGEST_CHUNK)
        arena->next_size *= 2;
    c->used = 0;
    c->size = bytes;
    c->next = arena->head;
    arena->head = c;
    return c;
}

/* Rounds the size up to the alignment. */
static void *reserve(cs_arena *arena, size_t size)
{
    chunk *c = arena->head;
    void *out;

    if (size > SIZE_MAX / 4)
        return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (arena->limit != 0 && (size > arena->limit || arena->total > arena->limit - size))
        return NULL;
    if (c == NULL || c->size - c->used < size) {
        c = add_chunk(arena, size);
        if (c == NULL)
            return NULL;
    }
    out = c->bytes + c->used;
    c->used += size;
    arena->total += size;
    return out;
}

void *cs_arena_alloc(cs_arena *arena, size_t size)
{
    void *out = reserve(arena, size);

    return out == NULL ? NULL : memset(out, 0, size);
}

void *cs_arena_copy(cs_arena *arena, const void *bytes, size_t size)
{
    void *out = reserve(arena, size);

    return out == NULL ? NULL : memcpy(out, bytes, size);
}

char *cs_arena_strndup(cs_arena *arena, const char *text, size_t length)
{
    char *copy = cs_arena_alloc(arena, length + 1);

    if (copy != NULL)
        memcpy(copy, text, length);
    return copy;
}

char *cs_arena_strdup(cs_arena *arena, const char *text)
{
    return cs_arena_strndup(arena, text, strlen(text));
}

char *cs_arena_printf(cs_arena *arena, const char *fmt, ...)
{
    va_list args;
    char *text;
    int length;

    va_start(args, fmt);
    length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (length < 0)
        return NULL;
    text = cs_arena_alloc(arena, (size_t)length + 1);
    if (text == NULL)
        return NULL;
    va_start(args, fmt);
    (void)vsnprintf(text, (size_t)length + 1, fmt, args);
    va_end(args);
    return text;
}

size_t cs_arena_bytes(const cs_arena *arena)
{
    return arena->total;
}
