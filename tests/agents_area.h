/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Hypervolume of two objectives to be minimized: the area between designs and a reference point. */
#ifndef TESTS_AGENTS_AREA_H
#define TESTS_AGENTS_AREA_H

#include <stdlib.h>

typedef struct {
    double a, b;
} pair;

static inline int by_a(const void *x, const void *y)
{
    const pair *p = x, *q = y;

    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return (p->b > q->b) - (p->b < q->b);
}

/* Area dominated by `n` designs below `reference`; sorts them.  O(n log n). */
static inline double hypervolume(pair *list, size_t n, pair reference)
{
    double area = 0.0, low = reference.b;

    qsort(list, n, sizeof *list, by_a);
    for (size_t i = 0; i < n; i++) {
        if (list[i].a >= reference.a || list[i].b >= low)
            continue;
        area += (reference.a - list[i].a) * (low - list[i].b);
        low = list[i].b;
    }
    return area;
}

#endif
