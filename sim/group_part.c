/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Part of a group: `part` members, `stride` apart in the group's NPU order (hybrid sharding,
 * replicated key-value heads). */
#include "sim/collective.h"

/* Takes the divisor `want` off the front of `have`; 0 when it does not divide. */
static int64_t common_part(int64_t have, int64_t want)
{
    if (want >= have)
        return want % have == 0 ? have : 0;
    return have % want == 0 ? want : 0;
}

/* The first and the last member (tied embeddings on the outer stages): they differ in every span of
 * the group, and are taken for half of it apart; as the whole group where a span is odd.  Never
 * nearer than they are. */
static void ends_of(const sim_footprint *group, sim_footprint *out)
{
    *out = *group;
    for (size_t i = 0; i < group->n_spans; i++)
        if (group->span[i].n % 2 != 0)
            return;
    if (group->routed)
        return;
    out->n = 2;
    out->routed = out->pair = group->n_spans > 1;
    for (size_t i = 0; i < group->n_spans; i++)
        out->span[i] =
            (sim_span){group->span[i].dim, 2, group->span[i].stride * (group->span[i].n / 2)};
}

cs_status sim__pair_phases(const sim__plan *p, double bytes, sim_phases *out, cs_error *err)
{
    sim_phase whole = {.seconds = 0};
    uint32_t dims = 0;
    cs_status status = CS_OK;

    for (size_t i = 0; i < p->group->n_spans; i++) {
        const sim_footprint one = {.n = 2, .n_spans = 1, .span = {p->group->span[i]}};
        const sim__plan own = {p->net, &one, p->cache, p->type, p->order};
        sim_phases phases;
        CS_TRY(sim__plan_phases(&own, bytes, &phases, err));
        for (size_t k = 0; k < phases.n; k++) {
            whole.seconds += phases.phase[k].seconds;
            whole.bytes += phases.phase[k].bytes;
            dims |= 1u << phases.phase[k].dim;
        }
    }
    whole.dim = (uint8_t)__builtin_ctz(dims);
    whole.other_dims = dims & (dims - 1);
    *out = (sim_phases){.n = 1, .phase = {whole}};
done:
    return status;
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
