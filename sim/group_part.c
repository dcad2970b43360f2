/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Part of a group: `part` members, `stride` apart in the group's NPU order (hybrid sharding,
 * replicated key-value heads). */
#include "sim/network.h"

/* Takes the divisor `want` off the front of `have`; 0 when it does not divide. */
static int64_t common_part(int64_t have, int64_t want)
{
    if (want >= have)
        return want % have == 0 ? have : 0;
    return have % want == 0 ? want : 0;
}

/* The first and the last member (tied embeddings on the outer stages): taken as pairs half of the
 * outermost span apart, where it is even, else as the whole group.  Never nearer than they are. */
static void ends_of(const sim_footprint *group, sim_footprint *out)
{
    const sim_span *outer = &group->span[group->n_spans - 1];

    *out = *group;
    if (group->routed || outer->n % 2 != 0)
        return;
    out->n = 2;
    out->n_spans = 1;
    out->span[0] = (sim_span){outer->dim, 2, outer->stride * (outer->n / 2)};
}

cs_status sim_footprint_part(const sim_footprint *group, int64_t part, int64_t stride,
                             sim_footprint *out, cs_error *err)
{
    int64_t skip = stride, take = part;

    if (part == 2 && stride == group->n - 1 && group->n > 2) {
        ends_of(group, out);
        return CS_OK;
    }
    if (part < 1 || stride < 1 || group->n % part != 0 || group->n / part % stride != 0)
        return cs_fail(err, CS_EINVAL, "%lld NPUs, %lld apart, are no part of a group of %lld",
                       (long long)part, (long long)stride, (long long)group->n);
    *out = *group;
    if (group->routed && part != group->n)
        return cs_fail(err, CS_EINVAL,
                       "a part of a group that is no product of dimensions cannot "
                       "be placed; choose another placement");
    out->n = part;
    out->n_spans = 0;
    for (size_t i = 0; i < group->n_spans; i++) {
        sim_span span = group->span[i];
        int64_t skipped = common_part(span.n, skip), taken;
        if (skipped == 0)
            return cs_fail(err, CS_EINVAL,
                           "a part of %lld, %lld apart, does not divide %lld NPUs "
                           "of dimension %d",
                           (long long)part, (long long)stride, (long long)span.n, span.dim + 1);
        skip /= skipped;
        span.n /= skipped;
        span.stride *= skipped;
        taken = common_part(span.n, take);
        if (taken == 0)
            return cs_fail(err, CS_EINVAL,
                           "a part of %lld does not divide %lld NPUs of dimension "
                           "%d",
                           (long long)part, (long long)span.n, span.dim + 1);
        take /= taken;
        span.n = taken;
        if (taken > 1)
            out->span[out->n_spans++] = span;
    }
    return CS_OK;
}
