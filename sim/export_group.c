/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Members of the groups that a design's collectives run on, as lists of NPU ids. */
#include "sim/export_private.h"

#include <stdlib.h>

static int64_t group_size(const sim_export *x, wl_group axes)
{
    int64_t n = 1;

    for (size_t i = 0; i < x->layout.n; i++)
        if (axes & x->layout.digit[i].axis)
            n *= x->layout.digit[i].size;
    return n;
}

/* The id with the digits of the group at 0. */
static int64_t base_of(const sim_export *x, wl_group axes, int64_t npu)
{
    for (size_t i = 0; i < x->layout.n; i++) {
        const sim__digit *d = &x->layout.digit[i];

        if (axes & d->axis)
            npu -= npu / d->stride % d->size * d->stride;
    }
    return npu;
}

/* The k-th member, ascending, after base_of. */
static int64_t member_at(const sim_export *x, wl_group axes, int64_t base, int64_t k)
{
    for (size_t i = 0; i < x->layout.n; i++) {
        const sim__digit *d = &x->layout.digit[i];

        if ((axes & d->axis) == 0)
            continue;
        base += k % d->size * d->stride;
        k /= d->size;
    }
    return base;
}

static int64_t position_of(const sim_export *x, wl_group axes, int64_t npu)
{
    int64_t k = 0, factor = 1;

    for (size_t i = 0; i < x->layout.n; i++) {
        const sim__digit *d = &x->layout.digit[i];

        if ((axes & d->axis) == 0)
            continue;
        k += npu / d->stride % d->size * factor;
        factor *= d->size;
    }
    return k;
}

/* Whether `other` is in the same part of its group as the one at `own`. */
static bool same_part(const sim__class *c, int64_t own, int64_t other)
{
    int64_t window = c->part * (int64_t)c->part_stride;

    if (c->part == 0)
        return true;
    return own % c->part_stride == other % c->part_stride && own / window == other / window;
}

/* Whether two NPUs differ only along the span of the class. */
static bool same_line(const sim_export *x, const sim__class *c, int64_t a, int64_t b)
{
    int64_t window = c->n * c->stride;

    for (size_t d = 0; c->dim >= 0 && d < x->network.n_dims; d++) {
        int64_t size = x->network.dim[d].n, p = a % size, q = b % size;

        a /= size;
        b /= size;
        if ((int32_t)d != c->dim ? p != q
                                 : p % c->stride != q % c->stride || p / window != q / window)
            return false;
    }
    return true;
}

size_t sim__class_members(const sim_export *x, const sim__class *c, int64_t npu, uint32_t *member)
{
    int64_t n = group_size(x, c->axes), base, own;
    size_t found = 0;

    if (npu < 0)
        return (size_t)(c->dim >= 0 ? c->n : c->part > 0 ? c->part : n);
    base = base_of(x, c->axes, npu);
    own = position_of(x, c->axes, npu);
    for (int64_t k = 0; k < n; k++) {
        int64_t other = member_at(x, c->axes, base, k);

        if (same_part(c, own, k) && same_line(x, c, npu, other) && found < c->size)
            member[found++] = (uint32_t)other;
    }
    return found;
}
