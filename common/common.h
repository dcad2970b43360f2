/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The base every folder stands on: status codes, error messages, arena memory, random streams,
 * name matching and hashing.  Nothing here prints or exits. */
#ifndef CS_COMMON_H
#define CS_COMMON_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__
#define CS_MUST_USE     __attribute__((warn_unused_result))
#define CS_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define CS_MUST_USE
#define CS_PRINTF(f, a)
#endif

/* Why a call could not do its work.  0 is success, negatives are failures.  An infeasible design is
 * not an error but a result (sim_verdict). */
#define CS_STATUS_MAP(X)                                                                           \
    X(CS_OK, 0, "success")                                                                         \
    X(CS_ENOMEM, -1, "out of memory")                                                              \
    X(CS_EINVAL, -2, "invalid argument")                                                           \
    X(CS_EPARSE, -3, "malformed input file")                                                       \
    X(CS_ESCHEMA, -4, "input does not match the schema")                                           \
    X(CS_EIO, -5, "file or database error")                                                        \
    X(CS_EDEADLOCK, -6, "simulated program cannot finish")                                         \
    X(CS_ETRACE, -7, "malformed trace")                                                            \
    X(CS_ENOENT, -8, "no such file")                                                               \
    X(CS_ESTOPPED, -9, "stopped by a signal")                                                      \
    X(CS_EINFEASIBLE, -10, "no feasible design")                                                   \
    X(CS_EINTERNAL, -11, "internal error")

typedef enum {
#define X(name, value, text) name = value,
    CS_STATUS_MAP(X)
#undef X
} cs_status;

/* Caller-owned message; every fallible entry point takes one, NULL allowed.  The text may hold
 * several lines (one per violated rule). */
typedef struct {
    char text[2048];
} cs_error;

/* Fixed English text of a status; never NULL. */
const char *cs_status_text(cs_status status);

/* Writes the message into *err (when not NULL) and returns `status`, so that a failing function can
 * end in `return cs_fail(err, CS_EINVAL, "...")`. */
cs_status cs_fail(cs_error *err, cs_status status, const char *fmt, ...) CS_PRINTF(3, 4);

/* Appends to an existing message (used to list several offenders). */
void cs_error_append(cs_error *err, const char *fmt, ...) CS_PRINTF(2, 3);

/* Jumps to `done:` when the call fails; needs a local `cs_status status`. */
#define CS_TRY(call)                                                                               \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != CS_OK)                                                                       \
            goto done;                                                                             \
    } while (0)

#define CS_COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- arena: objects that die together ---- */

typedef struct cs_arena cs_arena;

/* Creates an empty arena; `limit_bytes` bounds its total size (0: no bound).  NULL when out of
 * memory.  The caller owns it. */
cs_arena *cs_arena_create(size_t limit_bytes);
void cs_arena_destroy(cs_arena *arena); /* NULL is a no-op */

/* Zeroed memory aligned for any type, living as long as the arena; NULL when out of memory or over
 * the limit. */
void *cs_arena_alloc(cs_arena *arena, size_t size);
/* A copy of `size` bytes, aligned for any type; NULL as above. */
void *cs_arena_copy(cs_arena *arena, const void *bytes, size_t size);
/* Copies `length` bytes of `text` and ends them with 0; NULL when out of memory. */
char *cs_arena_strndup(cs_arena *arena, const char *text, size_t length);
char *cs_arena_strdup(cs_arena *arena, const char *text);
/* Formats into arena memory; NULL when out of memory. */
char *cs_arena_printf(cs_arena *arena, const char *fmt, ...) CS_PRINTF(2, 3);
/* Bytes handed out so far. */
size_t cs_arena_bytes(const cs_arena *arena);

/* ---- arrays that grow ---- */

/* Room for at least `want` elements of `size` > 0 bytes in a heap array of *capacity: the array,
 * moved and grown by half where needed, contents kept.  NULL when out of memory: the array is as it
 * was. The caller owns it; amortized O(1) an element. */
CS_MUST_USE void *cs_room(void *array, size_t *capacity, size_t want, size_t size);

/* ---- random streams: derived from one master seed, never shared ---- */

typedef struct cs_rng cs_rng;

/* A stream of its own for (master, a, b), e.g. (seed, agent, chain): Mersenne twister seeded by a
 * mix of the three.  NULL when out of memory; the caller owns it. */
cs_rng *cs_rng_create(uint64_t master, uint64_t a, uint64_t b);
void cs_rng_destroy(cs_rng *rng);               /* NULL is a no-op */
uint64_t cs_rng_u64(cs_rng *rng);               /* 64 uniform bits */
uint64_t cs_rng_below(cs_rng *rng, uint64_t n); /* unbiased in [0, n), n > 0 */
unsigned __int128 cs_rng_below_u128(cs_rng *rng, unsigned __int128 n); /* likewise */
double cs_rng_uniform(cs_rng *rng);                                    /* [0, 1) */
/* Serialized state, for study snapshots: cs_rng_state_size() bytes. */
size_t cs_rng_state_size(void);
void cs_rng_save(const cs_rng *rng, void *bytes);
void cs_rng_load(cs_rng *rng, const void *bytes);

/* ---- names, numbers, hashes ---- */

/* The entry of `names` (count n) nearest to `word` by edit distance, or NULL when none is near
 * enough to be a likely slip.  O(n * |word|^2). */
const char *cs_nearest(const char *word, const char *const *names, size_t n);

/* FNV-1a over bytes, chained: start with CS_HASH_START. */
#define CS_HASH_START 14695981039346656037ULL
uint64_t cs_hash(uint64_t hash, const void *bytes, size_t n);
/* Finalizing mixer (splitmix64): use for hash-table slots. */
uint64_t cs_mix64(uint64_t x);

/* Decimal text of a 128-bit count into `text` (40 bytes); returns text. */
const char *cs_u128_text(unsigned __int128 value, char text[40]);
/* Shortest decimal that reads back as the same double ("0.1", "1e+300"), whole
 * numbers below 1e15 without an exponent; 32 bytes. */
const char *cs_double_text(double value, char text[32]);

/* a * b and a + b with an overflow report: false when the result does not fit. */
bool cs_u128_mul(unsigned __int128 a, unsigned __int128 b, unsigned __int128 *out);
bool cs_u128_add(unsigned __int128 a, unsigned __int128 b, unsigned __int128 *out);

/* Program version ("0.1.0") as built. */
const char *cs_version(void);

#endif
