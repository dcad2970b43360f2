/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/programs.h"

#include <stdlib.h>
#include <string.h>

enum { N_SLOTS = 1 << 14, MOST_PROBES = 8, N_PEAKS = 1 << 16, OUTLINES_BYTES = 4 << 20 };

typedef struct {
    uint64_t hash;
    size_t workload;
    wl_config config;
    cs_arena *arena; /* NULL: free */
    wl_program *program;
} slot;

typedef struct {
    uint64_t key[2]; /* two independent hashes; 0, 0: free */
    sim_peak peak;
} peak_slot;

struct sim_programs {
    wl_builder *builder;
    size_t limit, bytes;
    size_t hand; /* next slot to be emptied when over the limit */
    slot slots[N_SLOTS];
    peak_slot peaks[N_PEAKS];
};

sim_programs *sim__programs_create(size_t limit_bytes)
{
    sim_programs *programs = calloc(1, sizeof *programs);

    if (programs == NULL)
        return NULL;
    programs->limit = limit_bytes;
    programs->builder = wl_builder_create(OUTLINES_BYTES);
    if (programs->builder != NULL)
        return programs;
    free(programs);
    return NULL;
}

static void empty(sim_programs *programs, slot *s)
{
    if (s->arena == NULL)
        return;
    programs->bytes -= cs_arena_bytes(s->arena);
    cs_arena_destroy(s->arena);
    s->arena = NULL;
}

void sim__programs_destroy(sim_programs *programs)
{
    if (programs == NULL)
        return;
    for (size_t i = 0; i < N_SLOTS; i++)
        empty(programs, &programs->slots[i]);
    wl_builder_destroy(programs->builder);
    free(programs);
}

/* Two independent hashes of a split, a word at a time. */
static void split_key(size_t workload_index, const wl_config *config, uint64_t key[2])
{
    uint64_t word[sizeof *config / sizeof(uint64_t)];
    uint64_t a = workload_index + 1, b = ~(uint64_t)workload_index;

    _Static_assert(sizeof word == sizeof *config, "wl_config is whole words");
    memcpy(word, config, sizeof word);
    for (size_t i = 0; i < CS_COUNT(word); i++) {
        a = (a ^ word[i]) * 0x9e3779b97f4a7c15ULL;
        b = (b + word[i]) * 0xd6e8feb86659fd93ULL;
        b ^= b >> 29;
    }
    key[0] = cs_mix64(a);
    key[1] = cs_mix64(b);
}

static bool is_key(const slot *s, uint64_t hash, size_t workload, const wl_config *config)
{
    return s->arena != NULL && s->hash == hash && s->workload == workload &&
           memcmp(&s->config, config, sizeof *config) == 0;
}

/* The slot that holds the key, or the one to (re)use for it. */
static slot *find(sim_programs *programs, uint64_t hash, size_t workload, const wl_config *config)
{
    slot *first = &programs->slots[hash % N_SLOTS], *unused = NULL;

    for (size_t i = 0; i < MOST_PROBES; i++) {
        slot *s = &programs->slots[(hash + i) % N_SLOTS];
        if (is_key(s, hash, workload, config))
            return s;
        if (s->arena == NULL && unused == NULL)
            unused = s;
    }
    return unused != NULL ? unused : first;
}

static void make_room(sim_programs *programs)
{
    while (programs->bytes > programs->limit) {
        empty(programs, &programs->slots[programs->hand]);
        programs->hand = (programs->hand + 1) % N_SLOTS;
    }
}

cs_status sim__program_get(sim_programs *programs, const wl_workload *workload,
                           size_t workload_index, const wl_config *config, const wl_program **out,
                           cs_error *err)
{
    cs_status status = CS_OK;
    uint64_t key[2], hash;
    slot *s;
    cs_arena *arena = NULL;

    split_key(workload_index, config, key);
    hash = key[0];
    s = find(programs, hash, workload_index, config);
    if (is_key(s, hash, workload_index, config)) {
        *out = s->program;
        return CS_OK;
    }
    empty(programs, s);
    make_room(programs);
    arena = cs_arena_create(0);
    if (arena == NULL)
        return cs_fail(err, CS_ENOMEM, "table of programs");
    CS_TRY(wl_builder_build(programs->builder, workload, config, arena, &s->program, err));
    s->hash = hash;
    s->workload = workload_index;
    s->config = *config;
    s->arena = arena;
    programs->bytes += cs_arena_bytes(arena);
    arena = NULL;
    *out = s->program;
done:
    cs_arena_destroy(arena);
    return status;
}

const sim_peak *sim__peak_find(const sim_programs *programs, size_t workload_index,
                               const wl_config *config)
{
    uint64_t key[2];
    const peak_slot *s;

    split_key(workload_index, config, key);
    s = &programs->peaks[key[0] % N_PEAKS];
    return s->key[0] == key[0] && s->key[1] == key[1] ? &s->peak : NULL;
}

void sim__peak_put(sim_programs *programs, size_t workload_index, const wl_config *config,
                   const sim_peak *peak)
{
    uint64_t key[2];

    split_key(workload_index, config, key);
    programs->peaks[key[0] % N_PEAKS] = (peak_slot){{key[0], key[1]}, *peak};
}
