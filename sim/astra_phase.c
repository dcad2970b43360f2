/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * How a collective is cut into chunks and phases, and what single messages cost.
 *
 * Chunks: floor(bytes / splits) each; the last may stand for fewer bytes but is simulated in full.
 * Phases of a chunk: reduce-scatter and all-to-all visit the dimensions upwards, all-gather
 * downwards; an all-reduce runs in full on every dimension (baseline) or as reduce-scatter up,
 * all-reduce on the last, all-gather down (localBWAware).  Sizes follow by integer division.
 *
 * A message of m bytes over h links takes floor(h * latency + m / B) ns, B = GiB/s * 2^30 / 1e9
 * bytes/ns, computed in double precision and truncated. */
#include "sim/astra_private.h"

#include <math.h>
#include <string.h>

static const char *const type_names[SIM_ASTRA_N_TYPES] = {"all-reduce", "reduce-scatter",
                                                          "all-gather", "all-to-all"};

int64_t sim__astra_slots(const sim_astra_system *system)
{
    return (system->active_chunks + system->queues_per_dim - 1) / system->queues_per_dim;
}

int64_t sim__astra_delay(const sim_astra_dim *dim, int64_t hops, int64_t bytes)
{
    const double bytes_per_ns = dim->bandwidth_gib_per_s * (double)(1 << 30) / 1000000000.0;

    return (int64_t)((double)hops * dim->latency_ns + (double)bytes / bytes_per_ns);
}

int64_t sim__astra_hops(const sim_astra_dim *dim, int64_t shift)
{
    if (dim->topology == SIM_FULLY_CONNECTED)
        return 1;
    if (dim->topology == SIM_SWITCH)
        return 2;
    if (shift < 0)
        shift = -shift;
    return shift <= dim->n - shift ? shift : dim->n - shift;
}

size_t sim__astra_pair_dim(const sim_astra_network *net, int64_t from, int64_t to)
{
    size_t d = 0;

    while (d + 1 < net->n_dims && from % net->dim[d].n == to % net->dim[d].n) {
        from /= net->dim[d].n;
        to /= net->dim[d].n;
        d++;
    }
    return d;
}

int64_t sim__astra_pair_delay(const sim_astra_network *net, int64_t from, int64_t to, int64_t bytes)
{
    const size_t d = sim__astra_pair_dim(net, from, to);
    int64_t stride = 1;

    for (size_t i = 0; i < d; i++)
        stride *= net->dim[i].n;
    return sim__astra_delay(
        &net->dim[d],
        sim__astra_hops(&net->dim[d], to / stride % net->dim[d].n - from / stride % net->dim[d].n),
        bytes);
}

int64_t sim__astra_reduction(const sim_astra_system *system, int64_t bytes)
{
    if (system->local_mem_bytes_per_s <= 0.0)
        return 0;
    return 3 * (int64_t)((double)bytes / system->local_mem_bytes_per_s * 1e9);
}

size_t sim__astra_queue_take(const sim_astra_system *system, sim__astra_queues *queues,
                             const sim__astra_phase *phase, bool *reversed)
{
    const size_t n = (size_t)system->queues_per_dim;
    const size_t begin = phase->queue_rule == SIM__LAST_QUEUES ? n / 2 : 0;
    const size_t end = phase->queue_rule == SIM__FIRST_QUEUES && n > 1 ? n / 2 : n;
    uint8_t *next = &queues->next[phase->queue_rule][phase->level];
    const size_t taken = begin + *next % (end - begin);

    *next = (uint8_t)((*next + 1) % (end - begin));
    *reversed = phase->queue_rule == SIM__LAST_QUEUES ||
                (phase->queue_rule == SIM__ANY_QUEUE && n > 1 && taken >= n / 2);
    return taken;
}

/* ---- phases ---- */

static bool is_power_of_two(int64_t n)
{
    return (n & (n - 1)) == 0;
}

/* Whether the steps of a halving-doubling all-gather pair all NPUs up, as they must to end. */
static bool gather_pairs_up(int64_t n)
{
    for (int64_t offset = n / 2; offset >= 1; offset /= 2)
        if (n % (2 * offset) != 0)
            return false;
    return true;
}

static cs_status check_algorithm(const sim__astra_phase *phase, bool allow_incomplete,
                                 cs_error *err)
{
    const int32_t algorithm = phase->algorithm->algorithm;
    const char *name =
        algorithm == SIM_ALGO_HALVING_DOUBLING ? "halvingDoubling" : "doubleBinaryTree";

    if (algorithm == SIM_ALGO_RING || algorithm == SIM_ALGO_DIRECT)
        return CS_OK;
    if (algorithm == SIM_ALGO_HALVING_DOUBLING && phase->type == WL_ALL_TO_ALL)
        return cs_fail(err, CS_EINVAL, "halvingDoubling cannot run an all-to-all");
    if (allow_incomplete && algorithm == SIM_ALGO_HALVING_DOUBLING &&
        phase->type == WL_ALL_GATHER && gather_pairs_up(phase->n))
        return CS_OK;
    if (!is_power_of_two(phase->n))
        return cs_fail(err, CS_EINVAL, "%s needs a power of two of NPUs, dimension %d has %lld",
                       name, phase->level + 1, (long long)phase->n);
    if (algorithm == SIM_ALGO_DOUBLE_BINARY_TREE && phase->listed)
        return cs_fail(err, CS_EINVAL,
                       "doubleBinaryTree cannot run in a group smaller than the machine");
    return CS_OK;
}

/* Bytes after a phase. */
static cs_status output_bytes(const sim__astra_phase *phase, int64_t *out, cs_error *err)
{
    *out = phase->size;
    if (phase->algorithm->algorithm == SIM_ALGO_DOUBLE_BINARY_TREE)
        return CS_OK;
    if (phase->type == WL_REDUCE_SCATTER)
        *out = phase->size / phase->n;
    if (phase->type == WL_ALL_GATHER && __builtin_mul_overflow(phase->size, phase->n, out))
        return cs_fail(err, CS_EINVAL, "an all-gather of %lld bytes over %lld NPUs is too large",
                       (long long)phase->size, (long long)phase->n);
    return CS_OK;
}

/* The dimensions a collective visits, without those of one NPU. */
typedef struct {
    size_t n;
    sim__astra_phase dim[SIM_ASTRA_MAX_DIMS];
} visits;

static void visit_dimensions(const sim_astra *astra, const sim_astra_op *op, visits *out)
{
    const sim_astra_network *net = &astra->network;
    const sim_astra_algorithm *algorithm = astra->system.algorithm[op->type];
    int64_t stride = 1;

    out->n = 0;
    for (size_t d = 0; d < net->n_dims && !algorithm[0].one; d++) {
        if (net->dim[d].n > 1 && (op->involved == 0 || (op->involved >> d & 1) != 0))
            out->dim[out->n++] = (sim__astra_phase){.level = (uint8_t)d,
                                                    .n = net->dim[d].n,
                                                    .stride = stride,
                                                    .algorithm = &algorithm[d]};
        stride *= net->dim[d].n;
    }
    if (algorithm[0].one && net->npus > 1)
        out->dim[out->n++] =
            (sim__astra_phase){.n = net->npus, .stride = 1, .algorithm = &algorithm[0]};
}

/* A group smaller than the machine: a ring over its list, or the one algorithm that is named. */
static void visit_group(const sim_astra *astra, const sim_astra_op *op, visits *out)
{
    static const sim_astra_algorithm ring = {.algorithm = SIM_ALGO_RING};
    const bool named = astra->system.n_algorithms[op->type] == 1;

    out->n = op->n_ranks > 1 ? 1 : 0;
    out->dim[0] =
        (sim__astra_phase){.listed = true,
                           .n = (int64_t)op->n_ranks,
                           .stride = 0,
                           .algorithm = named ? astra->system.algorithm[op->type] : &ring};
}

static cs_status add_phase(sim__astra_plan *plan, const sim__astra_phase *dim, wl_collective type,
                           sim__rule rule, int64_t *bytes, cs_error *err)
{
    sim__astra_phase *phase = &plan->phase[plan->n_phases++];
    cs_status status;

    *phase = *dim;
    phase->type = type;
    phase->queue_rule = (uint8_t)rule;
    phase->size = *bytes;
    CS_TRY(check_algorithm(phase, plan->allow_incomplete, err));
    CS_TRY(output_bytes(phase, bytes, err));
done:
    return status;
}

static cs_status add_phases(const sim_astra *astra, wl_collective type, const visits *visited,
                            sim__astra_plan *plan, cs_error *err)
{
    const bool split = type == WL_ALL_REDUCE && astra->system.local_bw_aware;
    const size_t n = visited->n;
    int64_t bytes = plan->chunk_bytes;
    cs_status status = CS_OK;

    for (size_t i = 0; i < n && !split; i++) {
        const size_t d = type == WL_ALL_GATHER ? n - 1 - i : i;
        CS_TRY(add_phase(plan, &visited->dim[d], type, SIM__ANY_QUEUE, &bytes, err));
    }
    for (size_t i = 0; i + 1 < n && split; i++)
        CS_TRY(
            add_phase(plan, &visited->dim[i], WL_REDUCE_SCATTER, SIM__FIRST_QUEUES, &bytes, err));
    if (split && n > 0)
        CS_TRY(
            add_phase(plan, &visited->dim[n - 1], WL_ALL_REDUCE, SIM__FIRST_QUEUES, &bytes, err));
    for (size_t i = n; split && i-- > 1;)
        CS_TRY(add_phase(plan, &visited->dim[i - 1], WL_ALL_GATHER, SIM__LAST_QUEUES, &bytes, err));
done:
    return status;
}

/* ---- chunks ---- */

static cs_status cut_chunks(const sim_astra *astra, const sim_astra_op *op, sim__astra_plan *plan,
                            cs_error *err)
{
    const int64_t splits = op->splits > 0 ? op->splits : astra->system.splits;
    int64_t bytes = op->bytes;

    if (op->bytes < 1)
        return cs_fail(err, CS_EINVAL, "a collective of %lld bytes", (long long)op->bytes);
    plan->chunk_bytes = bytes / splits;
    if (op->type != WL_ALL_GATHER && plan->chunk_bytes < astra->network.npus) {
        plan->chunk_bytes = astra->network.npus;
        bytes = splits * plan->chunk_bytes;
    }
    if (plan->chunk_bytes == 0)
        return cs_fail(err, CS_EINVAL,
                       "an all-gather of %lld bytes cannot be split into %lld chunks",
                       (long long)op->bytes, (long long)splits);
    plan->n_chunks = bytes / plan->chunk_bytes + (bytes % plan->chunk_bytes != 0);
    plan->bus_bytes = op->bytes;
    if (op->type == WL_ALL_GATHER &&
        __builtin_mul_overflow(op->bytes, plan->members, &plan->bus_bytes))
        return cs_fail(err, CS_EINVAL, "an all-gather of %lld bytes over %lld NPUs is too large",
                       (long long)op->bytes, (long long)plan->members);
    return CS_OK;
}

/* Refuses what would overflow: a crude upper bound in floating point, before integers are used. */
static cs_status check_range(const sim_astra *astra, const sim__astra_plan *plan, cs_error *err)
{
    const double memory = astra->system.local_mem_bytes_per_s;
    double total = 0.0;

    for (size_t p = 0; p < plan->n_phases; p++) {
        const sim__astra_phase *phase = &plan->phase[p];
        const sim__astra_sequence seq = sim__astra_sequence_make(phase);
        const double bytes =
            (double)phase->size * (phase->type == WL_ALL_GATHER ? (double)phase->n : 1.0);
        double slowest = 0.0;
        for (size_t d = 0; d < astra->network.n_dims; d++) {
            const sim_astra_dim *dim = &astra->network.dim[d];
            slowest =
                fmax(slowest, (double)dim->n * dim->latency_ns + bytes / dim->bandwidth_gib_per_s);
        }
        total += (double)(seq.sends + 2) * (slowest + (double)plan->endpoint_delay_ns +
                                            (memory > 0.0 ? 3.0e9 * bytes / memory : 0.0));
    }
    if (total * (double)plan->n_chunks > (double)SIM__ASTRA_MAX_NS)
        return cs_fail(err, CS_EINVAL, "the collective may take longer than 146 years");
    return CS_OK;
}

cs_status sim__astra_plan_make(const sim_astra *astra, const sim_astra_op *op, sim__astra_plan *out,
                               cs_error *err)
{
    cs_status status;
    visits visited;
    const bool whole = op->ranks == NULL || (int64_t)op->n_ranks == astra->network.npus;

    out->n_phases = 0;
    out->allow_incomplete = op->allow_incomplete;
    out->members = whole ? astra->network.npus : (int64_t)op->n_ranks;
    out->endpoint_delay_ns = whole ? astra->system.endpoint_delay_ns : SIM__ASTRA_GROUP_DELAY_NS;
    if (whole && astra->system.n_algorithms[op->type] == 0 && astra->network.npus > 1)
        return cs_fail(err, CS_EINVAL, "the system names no algorithm for %s",
                       type_names[op->type]);
    CS_TRY(cut_chunks(astra, op, out, err));
    if (whole)
        visit_dimensions(astra, op, &visited);
    else
        visit_group(astra, op, &visited);
    CS_TRY(add_phases(astra, op->type, &visited, out, err));
    CS_TRY(check_range(astra, out, err));
done:
    return status;
}

/* ---- packet sequences ---- */

static int64_t log2_floor(int64_t n)
{
    int64_t log = 0;

    while (n > 1) {
        n /= 2;
        log++;
    }
    return log;
}

static sim__astra_sequence ring_sequence(const sim__astra_phase *phase)
{
    const int64_t n = phase->n;
    const int64_t sends = phase->type == WL_ALL_REDUCE   ? 2 * (n - 1)
                          : phase->type == WL_ALL_TO_ALL ? n * (n - 1) / 2
                                                         : n - 1;

    return (sim__astra_sequence){.sends = sends, .window = 1, .first = 1, .later = n - 1};
}

static sim__astra_sequence direct_sequence(const sim__astra_phase *phase)
{
    const int64_t peers = phase->n - 1;
    const int64_t wanted = phase->algorithm->window;
    const int64_t window = wanted > 0 && wanted < peers ? wanted : peers;

    return (sim__astra_sequence){.sends = phase->type == WL_ALL_REDUCE ? 2 * peers : peers,
                                 .window = window,
                                 .first = window,
                                 .later = phase->listed ? peers * window : window,
                                 .half = phase->type == WL_ALL_REDUCE ? peers : 0};
}

static sim__astra_sequence halving_sequence(const sim__astra_phase *phase)
{
    const int64_t log = log2_floor(phase->n);

    return (sim__astra_sequence){.sends = phase->type == WL_ALL_REDUCE ? 2 * log : log,
                                 .window = 1,
                                 .first = 1,
                                 .later = log - 1};
}

/* Bounds only: trees are not packet sequences. */
static sim__astra_sequence tree_sequence(const sim__astra_phase *phase)
{
    return (sim__astra_sequence){.sends = 4 * log2_floor(phase->n) + 4};
}

sim__astra_sequence sim__astra_sequence_make(const sim__astra_phase *phase)
{
    static sim__astra_sequence (*const make[SIM_N_ALGOS])(const sim__astra_phase *) = {
        [SIM_ALGO_RING] = ring_sequence,
        [SIM_ALGO_DIRECT] = direct_sequence,
        [SIM_ALGO_HALVING_DOUBLING] = halving_sequence,
        [SIM_ALGO_DOUBLE_BINARY_TREE] = tree_sequence};
    sim__astra_sequence seq = make[phase->algorithm->algorithm](phase);

    seq.n = phase->n;
    seq.bytes = phase->type == WL_ALL_GATHER ? phase->size : phase->size / phase->n;
    seq.reduces = phase->type == WL_REDUCE_SCATTER || phase->type == WL_ALL_REDUCE;
    seq.all_reduce = phase->type == WL_ALL_REDUCE;
    return seq;
}

bool sim__astra_is_reduced(const sim__astra_sequence *seq, int64_t k)
{
    const int64_t round = seq->first + seq->later;

    if (!seq->reduces || k % round < seq->first)
        return false;
    return !seq->all_reduce || k / round % 2 == 0;
}

/* Distance of the partner: 1, 2, 4 .. up, and back or n/2, n/4 .. 1 for gathers. */
static int64_t halving_offset(const sim__astra_phase *phase, const sim__astra_sequence *seq,
                              int64_t k)
{
    if (phase->type == WL_ALL_GATHER)
        return phase->n >> (k + 1);
    return seq->all_reduce && k >= seq->sends / 2 ? phase->n >> (k + 1 - seq->sends / 2)
                                                  : (int64_t)1 << k;
}

int64_t sim__astra_message_bytes(const sim__astra_phase *phase, const sim__astra_sequence *seq,
                                 int64_t k)
{
    if (phase->algorithm->algorithm != SIM_ALGO_HALVING_DOUBLING || k >= seq->sends)
        return seq->bytes;
    if (phase->type == WL_ALL_GATHER)
        return phase->size << k;
    if (!seq->all_reduce || k < seq->sends / 2)
        return phase->size >> (k + 1);
    /* The way back doubles what the last halving, one step too far, has left. */
    return (phase->size >> (seq->sends / 2 + 1)) << (k - seq->sends / 2 + 1);
}

int64_t sim__astra_message_shift(const sim__astra_phase *phase, const sim__astra_sequence *seq,
                                 int64_t k, int64_t index)
{
    if (phase->algorithm->algorithm == SIM_ALGO_DIRECT)
        return 1 + k % (phase->n - 1);
    if (phase->algorithm->algorithm == SIM_ALGO_HALVING_DOUBLING && k < seq->sends) {
        const int64_t offset = halving_offset(phase, seq, k);
        return index / offset % 2 == 0 ? offset : -offset;
    }
    return 1;
}
