/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Proves that the thread sanitizer sees through OpenMP in this build.  `race`: threads add to one
 * number without a lock, which has to be reported; `clean`: each adds to its own, and the sums meet
 * behind the loop's barrier, which must not be. */
#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 2, TURNS = 10000 };

static long race(void)
{
    long sum = 0;

#pragma omp parallel for schedule(static) default(none) shared(sum) num_threads(THREADS)
    for (int i = 0; i < THREADS * TURNS; i++)
        sum++;
    return sum;
}

static long clean(void)
{
    long own[THREADS] = {0}, sum = 0;

#pragma omp parallel for schedule(static) default(none) shared(own) num_threads(THREADS)
    for (int i = 0; i < THREADS * TURNS; i++)
        own[omp_get_thread_num()]++;
    for (int t = 0; t < THREADS; t++)
        sum += own[t];
    return sum;
}

int main(int argc, char **argv)
{
    const int racy = argc > 1 && strcmp(argv[1], "race") == 0;

    printf("%ld\n", racy ? race() : clean());
    return 0;
}
