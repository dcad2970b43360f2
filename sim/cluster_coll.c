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

/* ---- streams: the collectives of a group, in order ---- */

static bool stream_members(sim__cluster *c, sim__stream *s)
{
    const wl_trace_group *group = &c->trace->group[s->group];
    const sim_astra_network *net = &c->astra->network;
    const bool listed = s->group != WL_GROUP_WORLD && group->n > 0;

    s->n = listed ? group->n : (uint32_t)net->npus;
    if (s->mask != 0) {
        s->n = 1;
        for (size_t d = 0; d < net->n_dims; d++)
            if ((s->mask >> d & 1) != 0)
                s->n *= (uint32_t)net->dim[d].n;
    }
    s->rank = malloc((s->n + 1) * sizeof *s->rank);
    s->issued = calloc((size_t)s->n + 1, sizeof *s->issued);
    if (s->rank == NULL || s->issued == NULL)
        return false;
    for (uint32_t j = 0; j < s->n; j++) {
        int64_t rest = j, stride = 1;
        s->rank[j] = listed ? group->rank[j] : j;
        if (s->mask == 0)
            continue;
        s->rank[j] = s->base;
        for (size_t d = 0; d < net->n_dims; stride *= net->dim[d++].n)
            if ((s->mask >> d & 1) != 0) {
                s->rank[j] += rest % net->dim[d].n * stride;
                rest /= net->dim[d].n;
            }
    }
    return true;
}

/* Members must be ranks of the machine, each once. */
static bool stream_is_valid(sim__cluster *c, const sim__stream *s, uint32_t node)
{
    const int64_t npus = c->astra->network.npus;
    unsigned char *seen = calloc((size_t)npus, 1);
    bool valid = seen != NULL;
    char text[160];

    for (uint32_t j = 0; j < s->n && valid; j++)
        valid = s->rank[j] < npus && seen[s->rank[j]]++ == 0;
    if (!valid)
        sim__cluster_fail(
            c, seen == NULL ? CS_ENOMEM : CS_ETRACE,
            "%s: group '%.40s' has ranks twice or beyond the %" PRId64 " of the machine",
            sim__cluster_node_text(c, node, text), c->trace->group[s->group].name, npus);
    free(seen);
    return valid;
}

static sim__stream *stream_add(sim__cluster *c, int32_t group, uint32_t mask, uint32_t base,
                               uint32_t node)
{
    sim__stream *s;

    if (c->n_streams == c->stream_capacity) {
        const uint32_t capacity = c->stream_capacity == 0 ? 64 : 2 * c->stream_capacity;
        sim__stream *grown = realloc(c->stream, capacity * sizeof *grown);
        if (grown == NULL) {
            sim__cluster_fail(c, CS_ENOMEM, "groups");
            return NULL;
        }
        c->stream = grown;
        c->stream_capacity = capacity;
    }
    s = &c->stream[c->n_streams++];
    *s = (sim__stream){.group = group, .mask = mask, .base = base};
    if (!stream_members(c, s)) {
        sim__cluster_fail(c, CS_ENOMEM, "groups");
        return NULL;
    }
    return stream_is_valid(c, s, node) ? s : NULL;
}

/* Dimensions a world collective involves; 0 when all. */
static uint32_t involved_mask(const sim__cluster *c, const wl_trace_node *node)
{
    const uint32_t all = (1u << c->astra->network.n_dims) - 1;
    const uint32_t mask = node->involved & all;

    if (node->group != WL_GROUP_WORLD || node->involved == 0 || mask == all)
        return 0;
    return mask;
}

/* Rank with the coordinates of the masked dimensions set to 0. */
static uint32_t mask_base(const sim__cluster *c, uint32_t rank, uint32_t mask)
{
    const sim_astra_network *net = &c->astra->network;
    int64_t base = 0, stride = 1;

    for (size_t d = 0; d < net->n_dims; stride *= net->dim[d++].n)
        if ((mask >> d & 1) == 0)
            base += rank / stride % net->dim[d].n * stride;
    return (uint32_t)base;
}

static sim__stream *stream_of(sim__cluster *c, uint32_t index)
{
    const wl_trace_node *node = &c->trace->node[index];
    const uint32_t mask = involved_mask(c, node);
    uint32_t base;

    if (mask == 0) {
        uint32_t *slot = &c->group_stream[node->group];
        sim__stream *s;
        if (*slot != 0)
            return &c->stream[*slot - 1];
        s = stream_add(c, node->group, 0, 0, index);
        *slot = s == NULL ? 0 : c->n_streams;
        return s;
    }
    base = mask_base(c, c->trace->rank[c->rank_of[index]].rank, mask);
    for (uint32_t i = 0; i < c->n_streams; i++)
        if (c->stream[i].mask == mask && c->stream[i].base == base)
            return &c->stream[i];
    return stream_add(c, node->group, mask, base, index);
}

static uint32_t member_of(const sim__stream *s, int64_t rank)
{
    if (s->n > 0 && rank < s->n && s->rank[rank] == rank)
        return (uint32_t)rank;
    for (uint32_t j = 0; j < s->n; j++)
        if (s->rank[j] == rank)
            return j;
    return SIM__NONE;
}

/* ---- one collective ---- */

static void coll_destroy(sim__coll *coll)
{
    if (coll == NULL)
        return;
    free(coll->start);
    free(coll->node);
    free(coll);
}

static sim__coll *coll_create(sim__cluster *c, uint32_t n)
{
    sim__coll *coll = calloc(1, sizeof *coll);

    if (coll != NULL) {
        coll->start = malloc(n * sizeof *coll->start);
        coll->node = malloc(n * sizeof *coll->node);
    }
    if (coll == NULL || coll->start == NULL || coll->node == NULL) {
        coll_destroy(coll);
        sim__cluster_fail(c, CS_ENOMEM, "a collective of %u members", n);
        return NULL;
    }
    memset(coll->node, 0xff, n * sizeof *coll->node);
    coll->instance = SIM__NONE;
    return coll;
}

static bool stream_reserve(sim__cluster *c, sim__stream *s, uint32_t n)
{
    const uint32_t capacity = n < 4 ? 4 : 2 * n;
    sim__coll **grown;

    if (n <= s->capacity)
        return true;
    grown = realloc(s->open, capacity * sizeof(sim__coll *));
    if (grown == NULL) {
        sim__cluster_fail(c, CS_ENOMEM, "collectives");
        return false;
    }
    s->open = grown;
    s->capacity = capacity;
    return true;
}

/* The k-th collective of the stream, made (with those before it) when nobody has issued it yet. */
static sim__coll *coll_at(sim__cluster *c, sim__stream *s, uint32_t k)
{
    const uint32_t i = k - s->first;

    if (!stream_reserve(c, s, i + 1))
        return NULL;
    while (s->n_open <= i) {
        sim__coll *coll = coll_create(c, s->n);
        if (coll == NULL)
            return NULL;
        coll->number = s->first + s->n_open;
        s->open[s->n_open++] = coll;
    }
    return s->open[i];
}

/* Forgets the collectives at the front that have ended everywhere. */
static void stream_drop(sim__stream *s)
{
    uint32_t n = 0;

    while (n < s->n_open && s->open[n]->n_done == s->n)
        coll_destroy(s->open[n++]);
    s->n_open -= n;
    s->first += n;
    memmove(s->open, s->open + n, s->n_open * sizeof(sim__coll *));
}

void sim__cluster_streams_fini(sim__cluster *c)
{
    for (uint32_t i = 0; i < c->n_streams; i++) {
        for (uint32_t k = 0; k < c->stream[i].n_open; k++)
            coll_destroy(c->stream[i].open[k]);
        free(c->stream[i].open);
        free(c->stream[i].price);
        free(c->stream[i].rank);
        free(c->stream[i].issued);
    }
    free(c->stream);
}

const sim__coll *sim__cluster_find_coll(const sim__cluster *c, uint32_t node,
                                        const sim__stream **stream)
{
    const sim__stream *s;

    if (c->partner[node] >= c->n_streams)
        return NULL;
    s = *stream = &c->stream[c->partner[node]];
    for (uint32_t k = 0; k < s->n_open; k++)
        if (s->open[k]->node[c->heap_child[node]] == node)
            return s->open[k];
    return NULL;
}

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

static sim_astra_op coll_op(const sim__cluster *c, const sim__stream *s, const sim__coll *coll)
{
    const bool whole = s->mask != 0 || (int64_t)s->n == c->astra->network.npus;

    return (sim_astra_op){.type = coll->type,
                          .bytes = coll->bytes,
                          .ranks = whole ? NULL : s->rank,
                          .n_ranks = whole ? 0 : s->n,
                          .involved = s->mask,
                          .backend = c->options->backend};
}

/* ---- back end unaware: when the last member has arrived ---- */

static void finish_later(sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                         const int64_t *end)
{
    for (uint32_t j = 0; j < s->n; j++)
        sim__astra_engine_timer(c->engine, (uint32_t)s->rank[j], end[j] - c->engine->now,
                                coll->node[j]);
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
                           const sim_astra_op *op, const sim__astra_plan *plan, int64_t *end,
                           cs_error *err)
{
    const sim__hooks hooks = {.context = c, .done = side_done, .timer = side_join};
    cs_status status = CS_OK;

    if (c->side == NULL)
        CS_TRY(sim__astra_engine_create(c->astra, SIM_ASTRA_UNAWARE, &hooks, &c->side, err));
    if (c->side_end == NULL)
        c->side_end = malloc((size_t)c->astra->network.npus * sizeof *c->side_end);
    if (c->side_end == NULL)
        return cs_fail(err, CS_ENOMEM, "a collective of %u members", s->n);
    CS_TRY(sim__astra_engine_collective(c->side, op, plan, 0, &c->side_instance, err));
    c->side->now = 0;
    for (uint32_t j = 0; j < s->n; j++)
        sim__astra_engine_timer(c->side, (uint32_t)s->rank[j], coll->start[j],
                                op->ranks == NULL ? (uint32_t)s->rank[j] : j);
    CS_TRY(sim__astra_engine_run(c->side, err));
    for (uint32_t j = 0; j < s->n; j++)
        end[j] = c->side_end[op->ranks == NULL ? (size_t)s->rank[j] : j];
    sim__astra_engine_abandon(c->side, c->side_instance);
done:
    return status;
}

static cs_status run_unaware(sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                             int64_t *end, cs_error *err)
{
    const sim_astra_op op = coll_op(c, s, coll);
    sim__astra_plan plan;
    sim__astra_sequence seq;
    cs_status status;

    CS_TRY(sim__astra_plan_make(c->astra, &op, &plan, err));
    if (plan.n_phases == 0)
        memcpy(end, coll->start, s->n * sizeof *end);
    else if (plan.phase[0].listed && plan.phase[0].algorithm->algorithm == SIM_ALGO_RING) {
        CS_TRY(sim__astra_ring_group(c->astra, &op, &plan, coll->start, end, err));
        seq = sim__astra_sequence_make(&plan.phase[0]);
        c->result->bytes_moved +=
            (double)(seq.sends * seq.bytes) * (double)plan.n_chunks * (double)s->n;
    } else if (starts_together(s, coll) && sim__astra_is_symmetric(c->astra, &op, &plan))
        CS_TRY(run_together(c, s, coll, &plan, end, err));
    else
        CS_TRY(run_apart(c, s, coll, &op, &plan, end, err));
done:
    return status;
}

static void complete_unaware(sim__cluster *c, const sim__stream *s, const sim__coll *coll)
{
    int64_t *end = malloc(s->n * sizeof *end);
    cs_status status = CS_OK;
    cs_error err;
    char text[160];

    if (end == NULL) {
        sim__cluster_fail(c, CS_ENOMEM, "a collective of %u members", s->n);
        return;
    }
    if (coll->bytes == 0 || s->n == 1)
        memcpy(end, coll->start, s->n * sizeof *end);
    else
        status = run_unaware(c, s, coll, end, &err);
    for (uint32_t j = 0; j < s->n; j++) /* nothing to move: all leave together */
        end[j] = end[j] < c->engine->now ? c->engine->now : end[j];
    if (status != CS_OK)
        sim__cluster_fail(c, status, "%s: %s", sim__cluster_node_text(c, coll->node[0], text),
                          err.text);
    else
        finish_later(c, s, coll, end);
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

void sim__cluster_collective_ended(sim__cluster *c, uint32_t node)
{
    sim__stream *s = &c->stream[c->partner[node]];
    const uint32_t member = c->heap_child[node];

    for (uint32_t i = 0; i < s->n_open; i++)
        if (s->open[i]->node[member] == node) {
            s->open[i]->n_done++;
            break;
        }
    stream_drop(s);
}

/* user: stream and number of the collective. */
void sim__cluster_collective_done(sim__cluster *c, uint32_t member, uint64_t user)
{
    const sim__stream *s = &c->stream[user >> 32];
    const sim__coll *coll = s->open[(uint32_t)user - s->first];

    if (coll_op(c, s, coll).ranks == NULL)
        member = member_of(s, member);
    sim__cluster_finish(c, coll->node[member]);
}

void sim__cluster_collective(sim__cluster *c, uint32_t index)
{
    sim__stream *s = stream_of(c, index);
    const uint32_t rank = c->trace->rank[c->rank_of[index]].rank;
    const uint32_t member = s == NULL ? SIM__NONE : member_of(s, rank);
    sim__coll *coll;
    char text[160];

    if (s == NULL)
        return;
    if (member == SIM__NONE) {
        sim__cluster_fail(c, CS_ETRACE, "%s: its rank is not in group '%.40s'",
                          sim__cluster_node_text(c, index, text), c->trace->group[s->group].name);
        return;
    }
    coll = coll_at(c, s, c->number != NULL ? c->number[index] : s->issued[member]);
    if (coll == NULL || !coll_agrees(c, s, coll, index))
        return;
    s->issued[member]++;
    coll->start[member] = c->engine->now;
    coll->node[member] = index;
    c->partner[index] = (uint32_t)(s - c->stream);
    c->heap_child[index] = member;
    if (coll->n_joined++ == 0)
        c->result->collectives++;
    if (c->contention.net != NULL) {
        if (coll->n_joined == s->n)
            sim__contention_collective(c, s, coll);
    } else if (c->options->backend == SIM_ASTRA_AWARE && coll->bytes > 0 && s->n > 1)
        join_aware(c, s, coll, member);
    else if (coll->n_joined == s->n)
        complete_unaware(c, s, coll);
}

cs_status sim__cluster_number(sim__cluster *c, cs_error *err)
{
    const wl_trace *trace = c->trace;
    uint32_t *by_id = malloc(((size_t)trace->n_nodes + 1) * sizeof *by_id);

    c->number = malloc(((size_t)trace->n_nodes + 1) * sizeof *c->number);
    if (by_id == NULL || c->number == NULL) {
        free(by_id);
        return cs_fail(err, CS_ENOMEM, "a trace of %u nodes", trace->n_nodes);
    }
    for (uint32_t r = 0; r < trace->n_ranks && c->status == CS_OK; r++) {
        const wl_trace_rank *rank = &trace->rank[r];
        for (uint32_t i = rank->first; i < rank->first + rank->n; i++)
            by_id[rank->first + c->order[i]] = i;
        for (uint32_t i = rank->first; i < rank->first + rank->n; i++) {
            sim__stream *s = NULL;
            uint32_t member = SIM__NONE;
            if (sim__cluster_is_collective(c, by_id[i]))
                s = stream_of(c, by_id[i]);
            if (s != NULL)
                member = member_of(s, rank->rank);
            if (member != SIM__NONE) /* else told when it is issued */
                c->number[by_id[i]] = s->issued[member]++;
        }
    }
    for (uint32_t i = 0; i < c->n_streams; i++)
        memset(c->stream[i].issued, 0, c->stream[i].n * sizeof *c->stream[i].issued);
    free(by_id);
    return c->status == CS_OK ? CS_OK : cs_fail(err, c->status, "%s", c->error.text);
}
