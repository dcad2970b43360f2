/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Upper envelopes of lines hops * x + load, x = latency / (bytes / bandwidth).  A time kept as such
 * an envelope costs a few multiplications to evaluate and cannot fall when latency or bytes rise.
 */
#include "sim/network_private.h"

#include <stdlib.h>

static int by_hops(const void *a, const void *b)
{
    const sim__line *x = a, *y = b;

    if (x->hops != y->hops)
        return x->hops > y->hops ? -1 : 1;
    return x->load == y->load ? 0 : x->load > y->load ? -1 : 1;
}

/* With hops falling and loads rising from a over b to c: true when b is below the others
 * everywhere. */
static bool hidden(const sim__line *a, const sim__line *b, const sim__line *c)
{
    return (b->load - a->load) * (b->hops - c->hops) <= (c->load - b->load) * (a->hops - b->hops);
}

void sim__envelope_reduce(sim__envelope *e)
{
    size_t n = 0;

    qsort(e->line, e->n, sizeof *e->line, by_hops);
    for (size_t i = 0; i < e->n; i++) {
        sim__line next = e->line[i];
        if (n > 0 && next.load <= e->line[n - 1].load)
            continue;
        while (n >= 2 && hidden(&e->line[n - 2], &e->line[n - 1], &next))
            n--;
        e->line[n++] = next;
    }
    e->n = n;
}

/* Makes room by replacing the two neighbours in the middle by what bounds both. */
static void coarsen(sim__envelope *e)
{
    size_t at = e->n / 2;

    e->line[at - 1].load = e->line[at].load;
    for (size_t i = at; i + 1 < e->n; i++)
        e->line[i] = e->line[i + 1];
    e->n--;
}

void sim__envelope_add(sim__envelope *e, double hops, double load)
{
    if (e->n > 0 && hops <= e->line[0].hops && load <= e->line[0].load)
        return;
    if (e->n > 0 && hops >= e->line[0].hops && load >= e->line[0].load) {
        e->line[0] = (sim__line){hops, load};
        return;
    }
    if (e->n == SIM__MAX_LINES)
        sim__envelope_reduce(e);
    if (e->n == SIM__MAX_LINES)
        coarsen(e);
    e->line[e->n++] = (sim__line){hops, load};
}

void sim__envelope_scale(sim__envelope *e, double factor)
{
    for (size_t i = 0; i < e->n; i++)
        e->line[i].load *= factor;
}

/* The sum of two convex envelopes walks both in the order of their break points: the pair (i, j)
 * moves on where the break comes first as x falls. */
void sim__envelope_append(sim__envelope *sum, const sim__envelope *e, double times)
{
    sim__envelope old = *sum;
    size_t i = 0, j = 0;

    if (e->n == 0 || times <= 0)
        return;
    if (old.n == 0)
        old = (sim__envelope){.n = 1};
    sum->n = 0;
    for (;;) {
        bool more_i = i + 1 < old.n, more_j = j + 1 < e->n;
        double x_i = 0, x_j = 0;
        sim__envelope_add(sum, old.line[i].hops + times * e->line[j].hops,
                          old.line[i].load + times * e->line[j].load);
        if (!more_i && !more_j)
            break;
        if (more_i)
            x_i = (old.line[i + 1].load - old.line[i].load) /
                  (old.line[i].hops - old.line[i + 1].hops);
        if (more_j)
            x_j = (e->line[j + 1].load - e->line[j].load) / (e->line[j].hops - e->line[j + 1].hops);
        if (more_i && (!more_j || x_i >= x_j))
            i++;
        else
            j++;
    }
    sim__envelope_reduce(sum);
}
