/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Loaded before the C library by tests/cli_faults.sh (LD_PRELOAD); what goes wrong is told by the
 * environment:
 *   CS_FAULT_ALLOC=N    allocation N fails (from 1); `N+`: it and all that follow
 *   CS_FAULT_COUNT=FILE writes the number of allocations there at the end
 *   CS_FAULT_CLOCK=S    the time of day jumps by S seconds forth and back at every look; the clock
 *                       that only goes forward is left alone */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The allocator of glibc under names that are not replaced. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_ulong allocations;
static unsigned long fail_at;
static bool fail_on, counting;
static long jump_s;

__attribute__((constructor)) static void begin(void)
{
    const char *alloc = getenv("CS_FAULT_ALLOC"), *clock = getenv("CS_FAULT_CLOCK");
    char *end = NULL;

    if (alloc != NULL) {
        fail_at = strtoul(alloc, &end, 10);
        fail_on = *end == '+';
    }
    if (clock != NULL)
        jump_s = strtol(clock, NULL, 10);
    counting = true;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("CS_FAULT_COUNT");
    const unsigned long n = atomic_load(&allocations);
    FILE *file;

    counting = false;
    file = path == NULL ? NULL : fopen(path, "w");
    if (file == NULL)
        return;
    fprintf(file, "%lu\n", n);
    fclose(file);
}

static bool fails(void)
{
    unsigned long n;

    if (!counting)
        return false;
    n = atomic_fetch_add(&allocations, 1) + 1;
    if (fail_at == 0 || (fail_on ? n < fail_at : n != fail_at))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *memory = fails() ? NULL : __libc_memalign(alignment, size);

    if (memory == NULL)
        return ENOMEM;
    *out = memory;
    return 0;
}

/* ---- time of day ---- */

static long jump(void)
{
    static atomic_uint looks;

    return atomic_fetch_add(&looks, 1) % 2 == 0 ? jump_s : -jump_s;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    const int result = (int)syscall(SYS_clock_gettime, clock, out);

    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += jump();
    return result;
}

time_t time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
