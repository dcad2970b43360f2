/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Threads available to this process, and the clock. */
#define _GNU_SOURCE 1 /* sched_getaffinity */
#include "search/search_private.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double search__now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double search__cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int from_environment(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    long n = text == NULL ? 0 : strtol(text, NULL, 10);

    return n > 0 && n < 1 << 16 ? (int)n : 0;
}

static int from_affinity(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

/* "max 100000" or "200000 100000" (version 2). */
static double quota_v2(const char *folder)
{
    char path[4300];
    long long quota = 0, period = 0;

    (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return INFINITY;
    int n = fscanf(file, "%lld %lld", &quota, &period);
    (void)fclose(file);
    return n == 2 && quota > 0 && period > 0 ? (double)quota / (double)period : INFINITY;
}

static double read_number(const char *folder, const char *name)
{
    char path[4300];
    double value = 0;

    (void)snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lf", &value) != 1)
        value = 0;
    (void)fclose(file);
    return value;
}

static double quota_v1(const char *folder)
{
    double quota = read_number(folder, "cpu.cfs_quota_us");
    double period = read_number(folder, "cpu.cfs_period_us");

    return quota > 0 && period > 0 ? quota / period : INFINITY;
}

/* The tightest quota from this process's group up to the root. */
static double quota_up(char *folder, double (*quota)(const char *))
{
    double least = quota("");

    while (folder[0] != 0) {
        least = fmin(least, quota(folder));
        *strrchr(folder, '/') = 0;
    }
    return least;
}

static double from_cgroup(void)
{
    char line[4200];
    double least = fmin(quota_v2(""), quota_v1(""));
    FILE *file = fopen("/proc/self/cgroup", "r");

    if (file == NULL)
        return least;
    while (fgets(line, sizeof line, file) != NULL) {
        char *controllers = strchr(line, ':');
        char *folder = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (folder == NULL || folder[1] != '/')
            continue;
        folder++;
        folder[strcspn(folder, "\n")] = 0;
        bool v2 = strncmp(controllers, "::", 2) == 0;
        if (strcmp(folder, "/") == 0)
            folder[0] = 0;
        if (v2 || strstr(controllers, "cpu") != NULL)
            least = fmin(least, quota_up(folder, v2 ? quota_v2 : quota_v1));
    }
    (void)fclose(file);
    return least;
}

int search_default_jobs(void)
{
    int jobs = from_affinity();
    const int wanted = from_environment();
    const double quota = from_cgroup();

    if (wanted > 0 && wanted < jobs)
        jobs = wanted;
    /* A quota of 2.5 CPUs keeps 3 threads busy most of the time. */
    if (quota < jobs)
        jobs = (int)ceil(quota);
    return jobs < 1 ? 1 : jobs;
}
