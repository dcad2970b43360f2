/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A collective over a group smaller than the machine, back end unaware: a flat ring in the listed
 * order, whatever the dimensions, with a fixed endpoint delay.  Member j sends its k-th message at
 *   G_1(j) = start + 10,
 *   G_{k+1}(j) = max(G_k(j-1) + d(j-1 -> j), G_k(j)) + 10 (+ r, when the packet is reduced),
 * and ends a chunk at G_{steps+1}; the next chunk of its queue starts then. */
#include "sim/astra_private.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t n;
    const sim__astra_sequence *seq;
    int64_t endpoint_ns, reduction_ns;
    const int64_t *delay_ns; /* from the predecessor, by member */
    bool reversed;           /* the predecessor of j is j + 1 */
    int64_t *g, *g_next;
} ring_run;

static bool all_equal(const int64_t *values, int64_t n)
{
    for (int64_t j = 1; j < n; j++)
        if (values[j] != values[0])
            return false;
    return true;
}

/* One step of every member; g advances from G_k to G_{k+1}. */
static void ring_step(ring_run *run, int64_t k)
{
    const int64_t n = run->n;
    const int64_t pause =
        run->endpoint_ns + (sim__astra_is_reduced(run->seq, k) ? run->reduction_ns : 0);
    int64_t *swap = run->g;

    for (int64_t j = 0; j < n; j++) {
        const int64_t from = run->reversed ? (j + 1 == n ? 0 : j + 1) : (j == 0 ? n - 1 : j - 1);
        const int64_t arrival = run->g[from] + run->delay_ns[j];
        run->g_next[j] = (arrival > run->g[j] ? arrival : run->g[j]) + pause;
    }
    run->g = run->g_next;
    run->g_next = swap;
}

/* One chunk: g holds the start of each member, then its end. */
static void ring_chunk(ring_run *run)
{
    const bool equal_delays = all_equal(run->delay_ns, run->n);

    for (int64_t j = 0; j < run->n; j++)
        run->g[j] += run->endpoint_ns;
    for (int64_t k = 1; k <= run->seq->sends; k++) {
        if (equal_delays && all_equal(run->g, run->n)) {
            int64_t end = run->g[0];
            for (; k <= run->seq->sends; k++)
                end += run->delay_ns[0] + run->endpoint_ns +
                       (sim__astra_is_reduced(run->seq, k) ? run->reduction_ns : 0);
            for (int64_t j = 0; j < run->n; j++)
                run->g[j] = end;
            return;
        }
        ring_step(run, k);
    }
}

static void ring_delays(const sim_astra *astra, const sim_astra_op *op, int64_t bytes,
                        bool reversed, int64_t *delay)
{
    const size_t n = op->n_ranks;

    for (size_t j = 0; j < n; j++) {
        const size_t from = reversed ? (j + 1) % n : (j + n - 1) % n;
        delay[j] = sim__astra_pair_delay(&astra->network, op->ranks[from], op->ranks[j], bytes);
    }
}

cs_status sim__astra_ring_group(const sim_astra *astra, const sim_astra_op *op,
                                const sim__astra_plan *plan, const int64_t *start_ns,
                                int64_t *end_ns, cs_error *err)
{
    const sim__astra_phase *phase = &plan->phase[0];
    const sim__astra_sequence seq = sim__astra_sequence_make(phase);
    const size_t n = op->n_ranks;
    const int64_t allowed = sim__astra_slots(&astra->system);
    const size_t slots = (size_t)(allowed < plan->n_chunks ? allowed : plan->n_chunks);
    const size_t n_ends = slots * (size_t)astra->system.queues_per_dim;
    sim__astra_queues queues = {{{0}}};
    /* delays clockwise and back, two rows of G, and the ends of the last chunks of each slot */
    int64_t *block = calloc(n * (4 + n_ends), sizeof *block);
    int64_t *ends = block + 4 * n;
    uint32_t turn[16] = {0};

    if (block == NULL)
        return cs_fail(err, CS_ENOMEM, "a group of %zu members", n);
    ring_delays(astra, op, seq.bytes, false, block);
    ring_delays(astra, op, seq.bytes, true, block + n);
    for (size_t i = 0; i < n_ends; i++)
        memcpy(ends + i * n, start_ns, n * sizeof *ends);
    memcpy(end_ns, start_ns, n * sizeof *end_ns);
    for (int64_t chunk = 0; chunk < plan->n_chunks; chunk++) {
        ring_run run = {.n = (int64_t)n,
                        .seq = &seq,
                        .endpoint_ns = plan->endpoint_delay_ns,
                        .reduction_ns = sim__astra_reduction(&astra->system, seq.bytes),
                        .g = block + 2 * n,
                        .g_next = block + 3 * n};
        const size_t queue = sim__astra_queue_take(&astra->system, &queues, phase, &run.reversed);
        int64_t *slot = ends + (queue * slots + turn[queue]++ % slots) * n;
        run.delay_ns = run.reversed ? block + n : block;
        memcpy(run.g, slot, n * sizeof *slot);
        ring_chunk(&run);
        memcpy(slot, run.g, n * sizeof *slot);
        for (size_t j = 0; j < n; j++)
            end_ns[j] = run.g[j] > end_ns[j] ? run.g[j] : end_ns[j];
    }
    free(block);
    return CS_OK;
}
