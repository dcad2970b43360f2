/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One collective of model `astra`: checks, then the cheapest of the exact ways to simulate it. */
#include "sim/astra_private.h"

#include <stdlib.h>
#include <string.h>

static cs_status check_ranks(const sim_astra *astra, const sim_astra_op *op, cs_error *err)
{
    cs_status status = CS_OK;
    const size_t npus = (size_t)astra->network.npus;
    unsigned char *seen;

    if (op->ranks == NULL)
        return CS_OK;
    if (op->n_ranks == 0)
        return cs_fail(err, CS_EINVAL, "a group without members");
    seen = calloc(npus, 1);
    if (seen == NULL)
        return cs_fail(err, CS_ENOMEM, "%zu NPUs", npus);
    for (size_t i = 0; i < op->n_ranks && status == CS_OK; i++) {
        const int64_t rank = op->ranks[i];
        if (rank < 0 || rank >= astra->network.npus)
            status = cs_fail(err, CS_EINVAL, "rank %lld is not one of the %zu NPUs",
                             (long long)rank, npus);
        else if (seen[rank]++ != 0)
            status = cs_fail(err, CS_EINVAL, "rank %lld is twice in the group", (long long)rank);
    }
    free(seen);
    return status;
}

static bool is_flat_ring(const sim_astra_op *op, const sim__astra_plan *plan)
{
    return op->backend == SIM_ASTRA_UNAWARE && plan->n_phases == 1 && plan->phase[0].listed &&
           plan->phase[0].algorithm->algorithm == SIM_ALGO_RING;
}

static cs_status run_ring(const sim_astra *astra, const sim_astra_op *op,
                          const sim__astra_plan *plan, sim_astra_result *out, int64_t *end_ns,
                          cs_error *err)
{
    const sim__astra_sequence seq = sim__astra_sequence_make(&plan->phase[0]);
    int64_t *start = calloc(op->n_ranks, sizeof *start);
    cs_status status;

    if (start == NULL)
        return cs_fail(err, CS_ENOMEM, "a group of %zu members", op->n_ranks);
    CS_TRY(sim__astra_ring_group(astra, op, plan, start, end_ns, err));
    for (size_t j = 0; j < op->n_ranks; j++) {
        const size_t d =
            sim__astra_pair_dim(&astra->network, op->ranks[j], op->ranks[(j + 1) % op->n_ranks]);
        out->sent_bytes[d] = (double)(seq.sends * seq.bytes) * (double)plan->n_chunks;
    }
done:
    free(start);
    return status;
}

static void summarize(sim_astra_result *out, const sim__astra_plan *plan, wl_collective type,
                      const int64_t *end_ns)
{
    for (int64_t j = 0; j < plan->members && end_ns != NULL; j++) {
        out->time_ns = end_ns[j] > out->time_ns ? end_ns[j] : out->time_ns;
        out->min_time_ns = j == 0 || end_ns[j] < out->min_time_ns ? end_ns[j] : out->min_time_ns;
    }
    if (out->time_ns == 0)
        return;
    out->algbw_bytes_per_s = (double)plan->bus_bytes * 1e9 / (double)out->time_ns;
    out->busbw_bytes_per_s = out->algbw_bytes_per_s * (double)(plan->members - 1) /
                             (double)plan->members * (type == WL_ALL_REDUCE ? 2.0 : 1.0);
}

cs_status sim_astra_collective(const sim_astra *astra, const sim_astra_op *op,
                               sim_astra_result *out, int64_t *npu_time_ns, cs_error *err)
{
    cs_status status;
    sim__astra_plan plan;
    int64_t *end = NULL;

    *out = (sim_astra_result){.n_dims = astra->network.n_dims};
    if ((unsigned)op->type >= SIM_ASTRA_N_TYPES)
        return cs_fail(err, CS_EINVAL, "ASTRA-sim has no such collective");
    CS_TRY(check_ranks(astra, op, err));
    CS_TRY(sim__astra_plan_make(astra, op, &plan, err));
    out->chunks = plan.n_chunks;
    out->chunk_bytes = plan.chunk_bytes;
    if (sim__astra_is_symmetric(astra, op, &plan)) {
        CS_TRY(sim__astra_flow(astra, &plan, out, err));
        for (int64_t j = 0; j < plan.members && npu_time_ns != NULL; j++)
            npu_time_ns[j] = out->time_ns;
    } else {
        end = calloc((size_t)plan.members, sizeof *end);
        if (end == NULL)
            return cs_fail(err, CS_ENOMEM, "%lld NPUs", (long long)plan.members);
        if (is_flat_ring(op, &plan))
            CS_TRY(run_ring(astra, op, &plan, out, end, err));
        else
            CS_TRY(sim__astra_events(astra, op, &plan, out, end, err));
        if (npu_time_ns != NULL)
            memcpy(npu_time_ns, end, (size_t)plan.members * sizeof *end);
    }
    summarize(out, &plan, op->type, end);
done:
    free(end);
    return status;
}
