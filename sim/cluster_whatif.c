/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What if a link carried less: links named by their ends, found in the layout that both engines
 * share (by dimension, then NPU, then direction or peer). */
#include "sim/cluster_private.h"

#include <inttypes.h>

/* Topology and link bandwidth of a dimension under either model. */
typedef struct {
    int32_t topology;
    int64_t n;
    double bytes_per_s;
} shape;

static shape shape_of(const sim__cluster *c, size_t d)
{
    const sim_network *net = c->contention.net;
    const sim_astra_dim *dim = &c->astra->network.dim[d];

    if (net != NULL)
        return (shape){net->dim[d].topology, net->dim[d].n, sim__link_bytes_per_s(&net->dim[d])};
    return (shape){dim->topology, dim->n, dim->bandwidth_gib_per_s * 1073741824.0};
}

/* Position of the link among those of its NPU, -1 when the NPUs are not next to each other. */
static int64_t link_in_dim(const shape *s, int64_t a, int64_t b)
{
    if (s->topology == SIM_FULLY_CONNECTED)
        return b;
    if (s->topology == SIM_SWITCH)
        return 0;
    if (b == a + 1 || (s->topology == SIM_RING && a + 1 == s->n && b == 0))
        return 0;
    if (b == a - 1 || (s->topology == SIM_RING && a == 0 && b + 1 == s->n))
        return 1;
    return -1;
}

static cs_status find_link(const sim__cluster *c, const sim_cluster_link *link, sim__slow_link *out,
                           cs_error *err)
{
    const sim_astra_network *net = &c->astra->network;
    const bool contention = c->contention.net != NULL;
    const size_t *base = contention ? c->contention.link_base : c->engine->link_base;
    const size_t *per_npu = contention ? c->contention.links_per_npu : c->engine->links_per_npu;
    int64_t position = -1, stride = 1;
    size_t d = 0;
    shape s;

    if (link->from < 0 || link->to < 0 || link->from >= net->npus || link->to >= net->npus ||
        link->from == link->to)
        return cs_fail(err, CS_EINVAL, "no link from NPU %" PRId64 " to %" PRId64 " of %" PRId64,
                       link->from, link->to, net->npus);
    d = sim__astra_pair_dim(net, link->from, link->to);
    s = shape_of(c, d);
    for (size_t i = 0; i < d; i++)
        stride *= net->dim[i].n;
    if ((link->to - link->from) % stride == 0 &&
        link->to / (stride * s.n) == link->from / (stride * s.n))
        position = link_in_dim(&s, link->from / stride % s.n, link->to / stride % s.n);
    if (position < 0)
        return cs_fail(err, CS_EINVAL,
                       "NPUs %" PRId64 " and %" PRId64 " are not next to each other", link->from,
                       link->to);
    out->link = base[d] + (size_t)link->from * per_npu[d] + (size_t)position;
    out->from = (uint32_t)link->from;
    out->dim = (uint8_t)d;
    out->share = link->factor - link->background_bytes_per_s / s.bytes_per_s;
    if (!(link->factor > 0.0 && link->factor <= 1.0 && link->background_bytes_per_s >= 0.0))
        return cs_fail(err, CS_EINVAL,
                       "the share of a link must be above 0 and at most 1, its background traffic "
                       "not negative");
    if (!(out->share > 0.0))
        return cs_fail(err, CS_EINVAL,
                       "nothing is left of the link from NPU %" PRId64 " to %" PRId64 " (%g B/s)",
                       link->from, link->to, s.bytes_per_s);
    return CS_OK;
}

cs_status sim__cluster_slow_links(sim__cluster *c, cs_error *err)
{
    cs_status status = CS_OK;

    if (c->options->n_links > SIM__MAX_SLOW)
        return cs_fail(err, CS_EINVAL, "at most %d links can be changed", SIM__MAX_SLOW);
    if (c->options->n_links > 0 && c->contention.net == NULL &&
        c->options->backend != SIM_ASTRA_AWARE)
        return cs_fail(err, CS_EINVAL,
                       "model astra has no single links: use astra-aware or contention");
    for (size_t i = 0; i < c->options->n_links; i++)
        CS_TRY(find_link(c, &c->options->link[i], &c->contention.slow[i], err));
    c->contention.n_slow = c->options->n_links;
    if (c->contention.net == NULL) {
        c->engine->slow = c->contention.slow;
        c->engine->n_slow = c->contention.n_slow;
    }
done:
    return status;
}
