/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Collectives of a trace.  Back end aware: every member starts its part at once, message by
 * message.  Back end unaware: no member can end before the last has begun, and collectives do not
 * touch each other, so the whole is computed when the last member arrives: by closed form when all
 * start together, by the recurrence of the group's ring, or message by message on a clock of its
 * own. */
#include "sim/cluster_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a node asks for ---- */

/* Type and size in ASTRA-sim's terms; false (and a failure) for what the model cannot run. */
static bool coll_kind(sim__cluster *c, uint32_t index, wl_collective *type, int64_t *bytes)
{
    static const struct {
        int8_t type;
        bool astra; /* ASTRA-sim runs it */
    } kinds[WL_N_CHAKRA_COMMS] = {[WL_CHAKRA_ALL_REDUCE] = {WL_ALL_REDUCE, true},
                                  [WL_CHAKRA_REDUCE] = {WL_REDUCE, false},
                                  [WL_CHAKRA_ALL_GATHER] = {WL_ALL_GATHER, true},
                                  [WL_CHAKRA_GATHER] = {WL_GATHER, false},
                                  [WL_CHAKRA_SCATTER] = {WL_SCATTER, false},
                                  [WL_CHAKRA_BROADCAST] = {WL_BROADCAST, false},
                                  [WL_CHAKRA_ALL_TO_ALL] = {WL_ALL_TO_ALL, true},
                                  [WL_CHAKRA_REDUCE_SCATTER] = {WL_REDUCE_SCATTER, true},
                                  [WL_CHAKRA_REDUCE_SCATTER_BLOCK] = {WL_REDUCE_SCATTER, true},
                                  [WL_CHAKRA_BARRIER] = {WL_ALL_REDUCE, true}};
    const wl_trace_node *node = &c->trace->node[index];
    const bool barrier = node->comm == WL_CHAKRA_BARRIER;
    char text[160];

    if (node->comm >= WL_N_CHAKRA_COMMS ||
        (c->contention.net == NULL && !kinds[node->comm].astra)) {
        sim__cluster_fail(c, CS_EINVAL, "%s: this model cannot run %s",
                          sim__cluster_node_text(c, index, text),
                          node->comm >= WL_N_CHAKRA_COMMS ? "a collective without a type"
                                                          : wl_chakra_comm_names[node->comm]);
        return false;
    }
    if (node->comm_size < 0 && !barrier) {
        sim__cluster_fail(c, CS_ETRACE, "%s has no size", sim__cluster_node_text(c, index, text));
        return false;
    }
    *type = (wl_collective)kinds[node->comm].type;
    *bytes = barrier ? 1 : node->comm_size;
    return true;
}

static bool coll_agrees(sim__cluster *c, const sim__stream *s, sim__coll *coll, uint32_t index)
{
    wl_collective type;
    int64_t bytes;
    uint32_t other = SIM__NONE;
    char a[160], b[160];

    if (!coll_kind(c, index, &type, &bytes))
        return false;
    if (coll->n_joined == 0) {
        coll->type = type;
        coll->bytes = bytes;
        coll->splits = c->trace->node[index].splits;
        return true;
    }
    if (coll->type == type && coll->bytes == bytes)
        return true;
    for (uint32_t j = 0; j < s->n && other == SIM__NONE; j++)
        other = coll->node[j];
    sim__cluster_fail(
        c, CS_ETRACE,
        "%s is %s of %" PRId64 " bytes, but %s, the same collective of group '%.40s', "
        "is %s of %" PRId64,
        sim__cluster_node_text(c, index, a), wl_chakra_comm_names[c->trace->node[index].comm],
        bytes, sim__cluster_node_text(c, other, b), c->trace->group[s->group].name,
        wl_chakra_comm_names[c->trace->node[other].comm], coll->bytes);
    return false;
}

void sim__cluster_costs_nothing(sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                                uint32_t index)
{
    char text[160];

    if (coll->bytes > 0 && (s->n > 1 || (s->mask != 0 && c->astra->network.npus > 1)))
        sim__cluster_fail(c, CS_ETRACE, "%s: %s of %" PRId64 " bytes moved nothing",
                          sim__cluster_node_text(c, index, text),
                          wl_chakra_comm_names[c->trace->node[index].comm], coll->bytes);
}

/* What a collective is to model astra. */
typedef struct {
    sim_astra_op op;
    sim__astra_plan plan;
} request;

static sim_astra_op coll_op(const sim__cluster *c, const sim__stream *s, const sim__coll *coll)
{
    const bool whole = s->mask != 0 || (int64_t)s->n == c->astra->network.npus;

    return (sim_astra_op){.type = coll->type,
                          .bytes = coll->bytes,
                          .splits = coll->splits,
                          .ranks = whole ? NULL : s->rank,
                          .n_ranks = whole ? 0 : s->n,
                          .involved = s->mask,
                          .backend = c->options->backend};
}

/* ---- back end unaware: when the last member has arrived ---- */

void sim__cluster_finish_all(sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                             const int64_t *end)
{
    for (uint32_t j = 0; j < s->n; j++) {
        if (!sim__fold_stands(c, (uint32_t)s->rank[j]))
            continue;
        sim__fold_push(c, coll->node[j], SIM__FROM_GROUP);
        sim__astra_engine_timer(c->engine, (uint32_t)s->rank[j],
                                end[j] > c->engine->now ? end[j] - c->engine->now : 0,
                                coll->node[j]);
    }
}

static bool starts_together(const sim__stream *s, const sim__coll *coll)
{
    for (uint32_t j = 1; j < s->n; j++)
        if (coll->start[j] != coll->start[0])
            return false;
    return true;
}

static cs_status run_together(sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                              const sim__astra_plan *plan, int64_t *end, cs_error *err)
{
    sim_astra_result r = {.n_dims = c->astra->network.n_dims};
    cs_status status;

    CS_TRY(sim__astra_flow(c->astra, plan, &r, err));
    for (uint32_t j = 0; j < s->n; j++)
        end[j] = coll->start[j] + r.time_ns;
    for (size_t d = 0; d < r.n_dims; d++)
        c->result->bytes_moved += r.sent_bytes[d] * (double)s->n;
done:
    return status;
}

static void side_done(void *context, uint32_t member, uint64_t user)
{
    sim__cluster *c = context;

    (void)user;
    c->side_end[member] = c->side->now;
}

static void side_join(void *context, uint32_t npu, uint32_t member)
{
    sim__cluster *c = context;

    (void)npu;
    sim__astra_engine_join(c->side, c->side_instance, member);
}

/* Message by message, from the members' own starts, on a clock of its own. */
static cs_status run_apart(sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                           const request *r, int64_t *end, cs_error *err)
{
    const bool whole = r->op.ranks == NULL;
    const sim__hooks hooks = {.context = c, .done = side_done, .timer = side_join};
    cs_status status = CS_OK;

    if (c->side == NULL)
        CS_TRY(sim__astra_engine_create(c->astra, SIM_ASTRA_UNAWARE, &hooks, &c->side, err));
    if (c->side_end == NULL)
        c->side_end = malloc((size_t)c->astra->network.npus * sizeof *c->side_end);
    if (c->side_end == NULL)
        return cs_fail(err, CS_ENOMEM, "a collective of %u members", s->n);
    CS_TRY(sim__astra_engine_collective(c->side, &r->op, &r->plan, 0, &c->side_instance, err));
    c->side->now = 0;
    for (uint32_t j = 0; j < s->n; j++)
        sim__astra_engine_timer(c->side, (uint32_t)s->rank[j], coll->start[j],
                                whole ? (uint32_t)s->rank[j] : j);
    CS_TRY(sim__astra_engine_run(c->side, err));
    for (uint32_t j = 0; j < s->n; j++)
        end[j] = c->side_end[whole ? (size_t)s->rank[j] : j];
    sim__astra_engine_abandon(c->side, c->side_instance);
done:
    return status;
}

/* Whether a run message by message depends on those before it: by the queues that they took, or the
 * trees. */
static bool remembers(const sim__cluster *c, const sim__astra_plan *plan)
{
    for (size_t p = 0; p < plan->n_phases; p++)
        if (plan->phase[p].algorithm->algorithm == SIM_ALGO_DOUBLE_BINARY_TREE)
            return true;
    return c->astra->system.queues_per_dim > 1;
}

static cs_status run_unaware(sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                             int64_t *end, cs_error *err)
{
    request r = {.op = coll_op(c, s, coll)};
    const sim__astra_phase *first = &r.plan.phase[0];
    sim__astra_sequence seq;
    cs_status status;

    CS_TRY(sim__astra_plan_make(c->astra, &r.op, &r.plan, err));
    if (r.plan.n_phases == 0) {
        memcpy(end, coll->start, s->n * sizeof *end);
        sim__cluster_costs_nothing(c, s, coll, coll->node[0]);
    } else if (first->listed && first->algorithm->algorithm == SIM_ALGO_RING) {
        CS_TRY(sim__astra_ring_group(c->astra, &r.op, &r.plan, coll->start, end, err));
        seq = sim__astra_sequence_make(first);
        c->result->bytes_moved +=
            (double)(seq.sends * seq.bytes) * (double)r.plan.n_chunks * (double)s->n;
    } else if (starts_together(s, coll) && sim__astra_is_symmetric(c->astra, &r.op, &r.plan))
        CS_TRY(run_together(c, s, coll, &r.plan, end, err));
    else if (c->fold != NULL && (r.op.ranks != NULL || s->mask != 0 || remembers(c, &r.plan)))
        sim__fold_break(c);
    else
        CS_TRY(run_apart(c, s, coll, &r, end, err));
done:
    return status;
}

static bool is_custom(const sim__cluster *c, const sim__coll *coll)
{
    return (size_t)coll->type < SIM_ASTRA_N_TYPES && c->options->custom[coll->type] != NULL;
}

/* Computes the whole, now that all members have arrived. */
static void complete_at_once(sim__cluster *c, const sim__stream *s, const sim__coll *coll)
{
    const double before = c->result->bytes_moved;
    int64_t *end = malloc(s->n * sizeof *end);
    cs_status status = CS_OK;
    cs_error err;
    char text[160];

    if (end == NULL) {
        sim__cluster_fail(c, CS_ENOMEM, "a collective of %u members", s->n);
        return;
    }
    if (coll->bytes == 0 || s->n == 1) {
        memcpy(end, coll->start, s->n * sizeof *end);
        sim__cluster_costs_nothing(c, s, coll, coll->node[0]);
    } else if (is_custom(c, coll))
        status = sim__cluster_custom(c, s, coll, end, &err);
    else
        status = run_unaware(c, s, coll, end, &err);
    if (status != CS_OK)
        sim__cluster_fail(c, status, "%s: %s", sim__cluster_node_text(c, coll->node[0], text),
                          err.text);
    else if (!c->engine->stop && sim__fold_ends(c, s, coll, end))
        sim__cluster_finish_all(c, s, coll, end);
    c->result->bytes_moved = before + (c->result->bytes_moved - before) * coll->weight;
    free(end);
}

/* ---- back end aware: every member at once ---- */

static void join_aware(sim__cluster *c, const sim__stream *s, sim__coll *coll, uint32_t member)
{
    const uint64_t user = (uint64_t)(s - c->stream) << 32 | coll->number;
    const sim_astra_op op = coll_op(c, s, coll);
    const uint32_t engine_member = op.ranks == NULL ? (uint32_t)s->rank[member] : member;
    sim__astra_plan plan;
    cs_status status = CS_OK;
    cs_error err;
    char text[160];

    if (coll->instance == SIM__NONE) {
        status = sim__astra_plan_make(c->astra, &op, &plan, &err);
        if (status == CS_OK && plan.n_phases == 0) {
            sim__cluster_costs_nothing(c, s, coll, coll->node[member]);
            sim__astra_engine_timer(c->engine, (uint32_t)s->rank[member], 0, coll->node[member]);
            return;
        }
        if (status == CS_OK)
            status =
                sim__astra_engine_collective(c->engine, &op, &plan, user, &coll->instance, &err);
    }
    if (status != CS_OK)
        sim__cluster_fail(c, status, "%s: %s", sim__cluster_node_text(c, coll->node[member], text),
                          err.text);
    else
        sim__astra_engine_join(c->engine, coll->instance, engine_member);
}

/* user: stream and number of the collective. */
void sim__cluster_collective_done(sim__cluster *c, uint32_t member, uint64_t user)
{
    const sim__stream *s = &c->stream[user >> 32];
    const sim__coll *coll = s->open[(uint32_t)user - s->first];

    if (coll_op(c, s, coll).ranks == NULL)
        member = sim__stream_member(s, member);
    sim__cluster_finish(c, coll->node[member]);
}

void sim__cluster_collective(sim__cluster *c, uint32_t index)
{
    sim__stream *s = sim__stream_of(c, index);
    const uint32_t rank = c->trace->rank[c->rank_of[index]].rank;
    const uint32_t member = s == NULL ? SIM__NONE : sim__stream_member(s, rank);
    sim__coll *coll;
    bool started = false;
    char text[160];

    if (s == NULL)
        return;
    if (member == SIM__NONE) {
        sim__cluster_fail(c, CS_ETRACE, "%s: its rank is not in group '%.40s'",
                          sim__cluster_node_text(c, index, text), c->trace->group[s->group].name);
        return;
    }
    coll = sim__stream_coll(c, s, c->number != NULL ? c->number[index] : s->issued[member]);
    if (coll == NULL || !coll_agrees(c, s, coll, index))
        return;
    s->issued[member]++;
    c->partner[index] = (uint32_t)(s - c->stream);
    c->heap_child[index] = member;
    if (coll->n_joined == 0)
        started = true;
    sim__fold_join(c, s, coll, member, index);
    if (started)
        c->result->collectives += coll->weight;
    if (c->contention.net == NULL && c->options->backend == SIM_ASTRA_AWARE && coll->bytes > 0 &&
        s->n > 1 && !is_custom(c, coll))
        join_aware(c, s, coll, member);
    else if (coll->n_joined == s->n && c->contention.net != NULL && !is_custom(c, coll))
        sim__contention_collective(c, s, coll);
    else if (coll->n_joined == s->n)
        complete_at_once(c, s, coll);
}
