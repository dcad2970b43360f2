/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A collective given as a trace of its own: its ranks are positions in the group. */
#include "sim/cluster_private.h"

#include <string.h>

static cs_status check_members(const wl_trace *trace, const sim__stream *s, cs_error *err)
{
    if (trace->n_ranks == s->n && trace->job_ranks == s->n)
        return CS_OK;
    return cs_fail(err, CS_EINVAL,
                   "the custom collective is for %u ranks (%u files), its group has %u",
                   trace->job_ranks, trace->n_ranks, s->n);
}

cs_status sim__cluster_custom(sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                              int64_t *end, cs_error *err)
{
    const wl_trace *trace = c->options->custom[coll->type];
    const sim_cluster_options options = {.astra = c->options->astra,
                                         .backend = c->options->backend,
                                         .network = c->options->network,
                                         .streams_by_dimension = c->options->streams_by_dimension,
                                         .link = c->options->link,
                                         .n_links = c->options->n_links};
    sim_cluster_result result = {0};
    sim__cluster sub = {.trace = trace,
                        .options = &options,
                        .astra = c->astra,
                        .contention = {.net = options.network},
                        .ticks_per_ns = c->ticks_per_ns,
                        .member = s->rank,
                        .start = coll->start,
                        .result = &result};
    cs_status status;

    CS_TRY(check_members(trace, s, err));
    CS_TRY(sim__cluster_create(&sub, err));
    CS_TRY(sim__cluster_play(&sub, err));
    for (uint32_t j = 0; j < s->n; j++)
        end[j] = trace->rank[j].n == 0 ? coll->start[j] : sub.rank[j].times.total_ns;
    result.bytes_moved += sim__cluster_sent_bytes(&sub);
    c->result->bytes_moved += result.bytes_moved;
    if (!(result.bytes_moved > 0.0))
        CS_TRY(cs_fail(err, CS_ETRACE, "the custom collective moves nothing"));
done:
    sim__cluster_destroy(&sub);
    sim_cluster_result_fini(&result);
    return status;
}
