/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Seconds of flat rings and boundaries routed over several dimensions. */
#include "sim/route_flat.h"

#include <math.h>

static double latency_of(const sim_network *net, const sim__flat_class *m)
{
    double sum = net->endpoint_delay_s;

    for (size_t d = 0; d < net->n_dims; d++)
        sum += m->hops[d] * net->dim[d].latency_s;
    return sum;
}

/* Cut through: serialized once, where it is slowest. */
static double serial_of(const sim_network *net, const sim__flat_class *m, double bytes)
{
    double most = 0;

    for (size_t d = 0; d < net->n_dims; d++)
        most = fmax(most, m->load[d] * bytes / net->dim[d].bandwidth_bytes_per_s);
    return most;
}

/* A class in a group: how many messages, how long each. */
typedef struct {
    double count, seconds;
} lasting;

/* Most that `steps` messages around a ring of `members` take: whole turns, then the longest. */
static double longest_walk(lasting *m, size_t n, double members, double steps)
{
    double sum = 0, turns = floor(steps / members);

    for (size_t i = 0; i < n; i++)
        sum += turns * m[i].count * m[i].seconds;
    steps -= turns * members;
    for (size_t i = 1; i < n; i++) {
        lasting key = m[i];
        size_t at = i;
        for (; at > 0 && m[at - 1].seconds < key.seconds; at--)
            m[at] = m[at - 1];
        m[at] = key;
    }
    for (size_t i = 0; i < n && steps > 0; i++) {
        double count = fmin(steps, m[i].count);
        sum += count * m[i].seconds;
        steps -= count;
    }
    return sum;
}

/* Most that `steps` messages one after the other take, from any member on. Summed anew from each,
 * so that no longer message makes a shorter sum. */
static double longest_stretch(const uint8_t *walk, size_t n, const double *seconds, size_t steps)
{
    double twice[2 * SIM__FLAT_WALK], turn = 0, longest = 0;

    for (size_t i = 0; i < n; i++) {
        twice[i] = twice[n + i] = seconds[walk[i]];
        turn += twice[i];
    }
    for (size_t first = 0; first < n; first++) {
        double sum = 0;
        for (size_t i = 0; i < steps % n; i++)
            sum += twice[first + i];
        longest = fmax(longest, sum);
    }
    return longest + (double)(steps / n) * turn;
}

static double group_walk(const sim__plan *p, const sim__flat *f, size_t g, const double *seconds,
                         double steps)
{
    const uint8_t *walk = &f->walk[g * SIM__FLAT_WALK];
    lasting m[SIM__FLAT_CLASSES];
    size_t n = 0;

    if (walk[0] != SIM__FLAT_NO_WALK)
        return longest_stretch(walk, (size_t)p->group->n, seconds, (size_t)steps);
    for (size_t c = 0; c < f->n_classes; c++)
        if (f->count[g * SIM__FLAT_CLASSES + c] > 0)
            m[n++] = (lasting){f->count[g * SIM__FLAT_CLASSES + c], seconds[c]};
    return longest_walk(m, n, (double)p->group->n, steps);
}

/* `steps` steps of `bytes` each in which a step starts when the message before has come and the own
 * one is sent: the longer of a walk around (in large groups bounded by the longest messages) and of
 * all steps at the slowest sender. */
static double ring_seconds(const sim__plan *p, const sim__flat *f, double steps, double bytes)
{
    double longest = 0, seconds[SIM__FLAT_CLASSES];

    for (size_t c = 0; c < f->n_classes; c++) {
        double latency = latency_of(p->net, &f->class[c]);
        double serial = serial_of(p->net, &f->class[c], bytes);
        seconds[c] = latency + serial;
        longest = fmax(longest, latency + steps * serial);
    }
    for (size_t g = 0; g < f->n_groups; g++)
        longest = fmax(longest, group_walk(p, f, g, seconds, steps));
    return longest;
}

/* By neighbours, shortest way: floor(n/2) steps, floor(n^2/4) blocks in all, both ways. */
static double exchange_seconds(const sim__plan *p, const sim__flat *f, double bytes)
{
    double n = (double)p->group->n, steps = floor(n / 2);

    return ring_seconds(p, f, steps, bytes * floor(n * n / 4) / steps);
}

static double chain_seconds(const sim__plan *p, const sim__flat *f, double bytes)
{
    double latency = 0, serial = 0;

    for (size_t c = 0; c < f->n_classes; c++) {
        latency = fmax(latency, latency_of(p->net, &f->class[c]));
        serial = fmax(serial, serial_of(p->net, &f->class[c], bytes));
    }
    return sim__pipelined((double)(p->group->n - 2), latency, serial);
}

static double routed_seconds(const sim__plan *p, const sim__flat *f, double bytes)
{
    double n = (double)p->group->n, share = bytes / n;

    switch (p->type) {
    case WL_ALL_REDUCE:
        return ring_seconds(p, f, 2 * (n - 1), share);
    case WL_ALL_TO_ALL:
        return exchange_seconds(p, f, share);
    case WL_BROADCAST:
    case WL_REDUCE:
        return chain_seconds(p, f, bytes);
    default:
        return ring_seconds(p, f, n - 1, share);
    }
}

static uint32_t dims_crossed(const sim__flat *f)
{
    uint32_t dims = 0;

    for (size_t c = 0; c < f->n_classes; c++)
        for (uint32_t d = 0; d < SIM_MAX_DIMS; d++)
            if (f->class[c].hops[d] > 0)
                dims |= 1u << d;
    return dims;
}

cs_status sim__routed_phases(const sim__plan *p, double bytes, sim_phases *out, cs_error *err)
{
    const sim__flat *f = NULL;
    sim_phase *phase = &out->phase[0];
    double n = (double)p->group->n, share = (n - 1) / n;
    uint32_t dims;
    cs_status status = CS_OK;

    out->n = 0;
    CS_TRY(sim__flat_find(p, 0, &f, err));
    dims = dims_crossed(f);
    phase->dim = 0;
    while ((dims >> phase->dim & 1) == 0)
        phase->dim++;
    phase->other_dims = dims & ~(1u << phase->dim);
    phase->seconds = routed_seconds(p, f, bytes);
    phase->bytes = bytes * (p->type == WL_ALL_REDUCE ? 2 * share : share);
    if (p->type == WL_ALL_TO_ALL)
        phase->bytes = bytes * floor(n * n / 4) / n;
    if (p->net->reduction_bytes_per_s > 0 &&
        (p->type == WL_ALL_REDUCE || p->type == WL_REDUCE_SCATTER || p->type == WL_REDUCE))
        phase->seconds += share * bytes / p->net->reduction_bytes_per_s;
    out->n = 1;
done:
    return status;
}

/* The round of a boundary in one dimension: a message all its way, or the busiest link. */
static double boundary_seconds(const sim_dim *dim, const sim__flat *f, size_t d, double bytes)
{
    double seconds = 0, unit = bytes / dim->bandwidth_bytes_per_s;
    double nearest = dim->topology == SIM_SWITCH ? 2 : 1;

    for (size_t c = 0; c < f->n_classes; c++) {
        const sim__flat_class *m = &f->class[c];
        if (m->hops[d] > 0)
            seconds = fmax(seconds, fmax(m->hops[d] * dim->latency_s + m->own[d] * unit,
                                         nearest * dim->latency_s + m->load[d] * unit));
    }
    return seconds;
}

cs_status sim__routed_boundary(const sim__plan *p, double bytes, bool backward, sim_phases *out,
                               cs_error *err)
{
    const sim__flat *f = NULL;
    cs_status status = CS_OK;

    out->n = 0;
    CS_TRY(sim__flat_find(p, backward ? 2 : 1, &f, err));
    for (size_t d = 0; d < p->net->n_dims; d++) {
        if ((dims_crossed(f) >> d & 1) != 0)
            out->phase[out->n++] = (sim_phase){
                (uint8_t)d, 0,
                boundary_seconds(&p->net->dim[d], f, d, bytes) + p->net->endpoint_delay_s, bytes};
    }
done:
    return status;
}
