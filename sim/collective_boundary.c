/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Messages that are no collective: pipeline boundaries, single messages, and all-to-all of unequal
 * sizes, all routed dimension by dimension. */
#include "sim/collective.h"
#include "sim/group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A stage axis over several spans counts like a mixed-radix number: going on by one moves the first
 * span on, or back to 0 with a carry into the next one. */
cs_status sim_boundary_phases(const sim_network *net, const sim_boundary *what,
                              sim_route_cache *cache, sim_phases *out, cs_error *err)
{
    sim_footprint stages;
    cs_status status;

    out->n = 0;
    if (!(what->bytes >= 0))
        return cs_fail(err, CS_EINVAL, "a pipeline boundary of %g bytes", what->bytes);
    CS_TRY(sim_footprint_make(net, what->mesh, what->order, WL_GROUP(WL_PP), &stages, err));
    if (stages.n <= 1)
        return CS_OK;
    if (stages.routed) {
        sim__plan plan = {net, &stages, cache, WL_N_COLLECTIVES, NULL};
        return sim__routed_boundary(&plan, what->bytes, what->backward, out, err);
    }
    for (size_t i = 0; i < stages.n_spans; i++) {
        const sim_span *s = &stages.span[i];
        const sim_dim *dim = &net->dim[s->dim];
        const sim__kept *cost = NULL;
        int kind = i + 1 < stages.n_spans ? SIM__SHIFT_WRAP : SIM__SHIFT;
        CS_TRY(sim__route_cost(cache, dim, s, kind, &cost, err));
        out->phase[out->n++] =
            (sim_phase){s->dim, 0, sim__cost_seconds(cost, dim, net, what->bytes), what->bytes};
    }
done:
    return status;
}

static double link_share(const sim_dim *dim)
{
    if (dim->topology == SIM_FULLY_CONNECTED)
        return 1 / (double)(dim->n - 1);
    return dim->topology != SIM_SWITCH && dim->n > 2 ? 0.5 : 1;
}

cs_status sim_message_phases(const sim_network *net, int64_t src, int64_t dst, double bytes,
                             sim_phases *out, cs_error *err)
{
    int64_t npus = 1;

    out->n = 0;
    for (size_t d = 0; d < net->n_dims; d++)
        npus *= net->dim[d].n;
    if (src < 0 || dst < 0 || src >= npus || dst >= npus || !(bytes >= 0))
        return cs_fail(err, CS_EINVAL, "a message of %g bytes from NPU %lld to %lld of %lld", bytes,
                       (long long)src, (long long)dst, (long long)npus);
    for (size_t d = 0; d < net->n_dims; d++) {
        const sim_dim *dim = &net->dim[d];
        sim__place place = {.topology = dim->topology, .N = dim->n, .n = dim->n, .stride = 1};
        int64_t a = src % dim->n, b = dst % dim->n;
        double own = bytes, hops;
        src /= dim->n;
        dst /= dim->n;
        if (a == b)
            continue;
        hops = sim__place_hops(&place, a, b);
        if (dim->topology == SIM_RING && dim->n > 2 && 2 * hops >= (double)dim->n)
            own = bytes / 2;
        out->phase[out->n++] = (sim_phase){
            (uint8_t)d, 0,
            hops * dim->latency_s + own / (link_share(dim) * dim->bandwidth_bytes_per_s) +
                net->endpoint_delay_s,
            bytes};
    }
    return CS_OK;
}

/* ---- all-to-all of unequal sizes ---- */

/* A group as mixed-radix numbers: member = sum of coordinate * weight over its spans. */
typedef struct {
    const sim_footprint *group;
    const double *bytes;
    int64_t weight[2 * SIM_MAX_DIMS];
} exchange;

static int64_t coordinate(const exchange *x, int64_t member, size_t span)
{
    return member / x->weight[span] % x->group->span[span].n;
}

/* What is sent in phase `span` sits where spans before it are the receiver's and the others still
 * the sender's; the round of it is `line`, numbered by those coordinates. */
static int64_t line_of(const exchange *x, int64_t from, int64_t to, size_t span)
{
    int64_t w = x->weight[span], next = w * x->group->span[span].n;

    return to % w + from / next * next;
}

/* Bytes between the members of every line of a span: table[line][a][b]. */
static void collect(const exchange *x, size_t span, double *table)
{
    int64_t n = x->group->n, m = x->group->span[span].n;

    memset(table, 0, (size_t)(n * m) * sizeof *table);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t a = coordinate(x, i, span), b = coordinate(x, j, span);
            int64_t line = line_of(x, i, j, span);
            table[(line + a * x->weight[span]) * m + b] += x->bytes[i * n + j];
        }
}

static double busiest_line(const exchange *x, size_t span, const sim_dim *dim, sim__round *round,
                           const double *table)
{
    int64_t m = x->group->span[span].n, w = x->weight[span];
    double seconds = 0, unit = 1 / dim->bandwidth_bytes_per_s;
    sim__envelope e;

    for (int64_t first = 0; first < x->group->n; first++) {
        if (coordinate(x, first, span) != 0)
            continue;
        for (int64_t a = 0; a < m; a++)
            for (int64_t b = 0; b < m; b++)
                if (a != b && table[(first + a * w) * m + b] > 0)
                    sim__round_send(round, a, b, table[(first + a * w) * m + b]);
        sim__round_time(round, &e);
        sim__round_clear(round);
        for (size_t i = 0; i < e.n; i++)
            seconds = fmax(seconds, e.line[i].hops * dim->latency_s + e.line[i].load * unit);
    }
    return seconds;
}

static double most_sent(const exchange *x, size_t span, const double *table)
{
    int64_t m = x->group->span[span].n;
    double most = 0;

    for (int64_t i = 0; i < x->group->n; i++) {
        double sum = 0;
        for (int64_t b = 0; b < m; b++)
            sum += b == coordinate(x, i, span) ? 0 : table[i * m + b];
        most = fmax(most, sum);
    }
    return most;
}

static cs_status exchange_phase(const exchange *x, const sim_network *net, size_t span,
                                double *table, sim_phase *out, cs_error *err)
{
    const sim_span *s = &x->group->span[span];
    const sim_dim *dim = &net->dim[s->dim];
    sim__place place = {dim->topology, dim->n, s->n, s->stride, fmax(1, dim->oversubscription),
                        false};
    sim__round *round = sim__round_create(&place);

    if (round == NULL)
        return cs_fail(err, CS_ENOMEM, "rounds of a dimension of %lld NPUs", (long long)dim->n);
    collect(x, span, table);
    *out = (sim_phase){s->dim, 0, busiest_line(x, span, dim, round, table) + net->endpoint_delay_s,
                       most_sent(x, span, table)};
    sim__round_destroy(round);
    return CS_OK;
}

cs_status sim_all_to_all_v_phases(const sim_network *net, const sim_footprint *group,
                                  const double *bytes, sim_phases *out, cs_error *err)
{
    exchange x = {.group = group, .bytes = bytes};
    int64_t weight = 1, widest = 1;
    double *table = NULL;
    cs_status status = CS_OK;

    out->n = 0;
    if (group->routed || group->n > 1 << 14)
        return cs_fail(err, CS_EINVAL, "all-to-all of unequal sizes: %lld NPUs%s",
                       (long long)group->n, group->routed ? " that are no product" : "");
    for (size_t i = 0; i < group->n_spans; i++) {
        x.weight[i] = weight;
        weight *= group->span[i].n;
        widest = group->span[i].n > widest ? group->span[i].n : widest;
    }
    table = malloc((size_t)(group->n * widest) * sizeof *table);
    if (table == NULL)
        return cs_fail(err, CS_ENOMEM, "all-to-all of %lld NPUs", (long long)group->n);
    for (size_t i = 0; i < group->n_spans; i++)
        CS_TRY(exchange_phase(&x, net, i, table, &out->phase[out->n++], err));
done:
    free(table);
    return status;
}
