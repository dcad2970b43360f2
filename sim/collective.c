/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A collective as phases: which span of its group it uses in which order and with what share of the
 * bytes (DESIGN 5.3).  The hot path: one table look-up and a few multiplications a phase. */
#include "sim/collective.h"

/* How a kind walks over the spans of a group. */
typedef enum { INWARD, OUTWARD } direction;
typedef enum { FULL, DIVIDED } volume;

typedef struct {
    uint8_t direction; /* INWARD: innermost span first */
    uint8_t volume;    /* DIVIDED: later (INWARD) or earlier (OUTWARD) spans have 1/n of it */
} walk;

static const walk walks[WL_N_COLLECTIVES] = {
    [WL_ALL_REDUCE] = {INWARD, FULL},     [WL_REDUCE_SCATTER] = {INWARD, DIVIDED},
    [WL_ALL_GATHER] = {OUTWARD, DIVIDED}, [WL_ALL_TO_ALL] = {INWARD, FULL},
    [WL_BROADCAST] = {OUTWARD, FULL},     [WL_REDUCE] = {INWARD, FULL},
    [WL_SCATTER] = {OUTWARD, DIVIDED},    [WL_GATHER] = {INWARD, DIVIDED},
};

static cs_status add_phase(const sim__plan *p, size_t span, int32_t kind, double bytes,
                           sim_phases *out, cs_error *err)
{
    const sim_span *s = &p->group->span[span];
    const sim_dim *dim = &p->net->dim[s->dim];
    const sim__kept *cost = NULL;
    sim_phase *phase;
    cs_status status = sim__route_cost(p->cache, dim, s, kind, &cost, err);

    if (status != CS_OK)
        return status;
    phase = &out->phase[out->n++];
    phase->dim = s->dim;
    phase->other_dims = 0;
    phase->seconds = sim__cost_seconds(cost, dim, p->net, bytes);
    phase->bytes = cost->sent * bytes;
    return CS_OK;
}

/* True where the members of a ring end a reduce-scatter at different times, so that the all-gather
 * that follows runs into it: each then takes half of an all-reduce. */
static bool runs_on(const sim_dim *dim, const sim_span *span)
{
    bool line = dim->topology == SIM_MESH ||
                (dim->topology == SIM_RING && dim->n != span->n * span->stride);

    return line && span->n > 2 &&
           (dim->algorithm == SIM_ALGO_RING || dim->algorithm == SIM_ALGO_DOUBLE_BINARY_TREE);
}

static cs_status add_half(const sim__plan *p, size_t span, wl_collective kind, double bytes,
                          sim_phases *out, cs_error *err)
{
    const sim_span *s = &p->group->span[span];
    int32_t paired = kind == WL_ALL_GATHER ? SIM__PAIRED_GATHER : SIM__PAIRED_SCATTER;
    bool runs = runs_on(&p->net->dim[s->dim], s);

    return add_phase(p, span, runs ? paired : (int32_t)kind, bytes, out, err);
}

/* Reduce-scatter over all spans but the last, all-reduce there, all-gather back. */
static cs_status hierarchical(const sim__plan *p, double bytes, sim_phases *out, cs_error *err)
{
    size_t last = p->group->n_spans - 1;
    double size = bytes;
    cs_status status = CS_OK;

    for (size_t i = 0; i < last; i++) {
        CS_TRY(add_half(p, p->order[i], WL_REDUCE_SCATTER, size, out, err));
        size /= (double)p->group->span[p->order[i]].n;
    }
    CS_TRY(add_phase(p, p->order[last], WL_ALL_REDUCE, size, out, err));
    for (size_t i = last; i-- > 0;) {
        size *= (double)p->group->span[p->order[i]].n;
        CS_TRY(add_half(p, p->order[i], WL_ALL_GATHER, size, out, err));
    }
done:
    return status;
}

static cs_status inward(const sim__plan *p, double bytes, bool divided, sim_phases *out,
                        cs_error *err)
{
    cs_status status = CS_OK;
    double size = bytes;

    for (size_t i = 0; i < p->group->n_spans; i++) {
        CS_TRY(add_phase(p, p->order[i], (int32_t)p->type, size, out, err));
        if (divided)
            size /= (double)p->group->span[p->order[i]].n;
    }
done:
    return status;
}

static cs_status outward(const sim__plan *p, double bytes, bool divided, sim_phases *out,
                         cs_error *err)
{
    cs_status status = CS_OK;
    double size = bytes;

    for (size_t i = 0; divided && i + 1 < p->group->n_spans; i++)
        size /= (double)p->group->span[p->order[i]].n;
    for (size_t i = p->group->n_spans; i-- > 0;) {
        CS_TRY(add_phase(p, p->order[i], (int32_t)p->type, size, out, err));
        if (divided && i > 0)
            size *= (double)p->group->span[p->order[i - 1]].n;
    }
done:
    return status;
}

cs_status sim__plan_phases(const sim__plan *p, double bytes, sim_phases *out, cs_error *err)
{
    walk w = walks[p->type];

    out->n = 0;
    if (p->type == WL_ALL_REDUCE && p->net->multi_dim == SIM_HIERARCHICAL)
        return hierarchical(p, bytes, out, err);
    if (w.direction == INWARD)
        return inward(p, bytes, w.volume == DIVIDED, out, err);
    return outward(p, bytes, w.volume == DIVIDED, out, err);
}

cs_status sim_collective_phases(const sim_network *net, const sim_collective *what,
                                sim_route_cache *cache, sim_phases *out, cs_error *err)
{
    static const uint8_t in_order[2 * SIM_MAX_DIMS] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                       8, 9, 10, 11, 12, 13, 14, 15};
    sim__plan plan = {net, what->group, cache, what->type, in_order};
    double chunk = what->bytes / (double)(net->chunks > 1 ? net->chunks : 1);

    out->n = 0;
    if ((unsigned)what->type >= WL_N_COLLECTIVES || !(what->bytes >= 0))
        return cs_fail(err, CS_EINVAL, "collective %d of %g bytes", (int)what->type, what->bytes);
    if (what->group->n <= 1)
        return CS_OK;
    if (what->group->pair)
        return sim__pair_phases(&plan, chunk, out, err);
    if (what->group->routed)
        return sim__routed_phases(&plan, chunk, out, err);
    return sim__plan_phases(&plan, chunk, out, err);
}
