/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The engine: collectives in flight, their chunks in the queues of each NPU, messages matched with
 * receives, and the loop over events. */
#include "sim/astra_engine.h"

#include <stdlib.h>
#include <string.h>

/* Messages of one collective that may be simulated one by one. */
#define MAX_MESSAGES 4e9
#define MAX_FLOWS    (1u << 28)

static sim__pool pool_of(size_t size)
{
    return (sim__pool){.size = size, .free = SIM__NONE};
}

static void *filled(size_t n, size_t size, int byte)
{
    void *data = malloc(n * size);

    if (data != NULL)
        memset(data, byte, n * size);
    return data;
}

cs_status sim__astra_engine_create(const sim_astra *astra, sim_astra_backend backend,
                                   const sim__hooks *hooks, sim__engine **out, cs_error *err)
{
    const sim_astra_network *net = &astra->network;
    const size_t npus = (size_t)net->npus;
    cs_status status = CS_OK;
    sim__engine *engine = calloc(1, sizeof *engine);

    if (engine == NULL)
        return cs_fail(err, CS_ENOMEM, "simulation engine");
    engine->astra = astra;
    engine->backend = backend;
    engine->hooks = *hooks;
    engine->timers = pool_of(sizeof(sim__timer));
    engine->batches = pool_of(sizeof(sim__batch));
    engine->messages = pool_of(sizeof(sim__message));
    engine->flows = pool_of(sizeof(sim__flow));
    engine->instances = pool_of(sizeof(sim__instance));
    engine->stride[0] = 1;
    for (size_t d = 1; d < net->n_dims; d++)
        engine->stride[d] = engine->stride[d - 1] * net->dim[d - 1].n;
    engine->servers_per_npu = net->n_dims * (size_t)astra->system.queues_per_dim;
    engine->server = malloc(npus * engine->servers_per_npu * sizeof *engine->server);
    engine->queues = filled(npus, sizeof *engine->queues, 0);
    engine->sent = calloc(npus * net->n_dims, sizeof *engine->sent);
    if (engine->server == NULL || engine->queues == NULL || engine->sent == NULL) {
        status = cs_fail(err, CS_ENOMEM, "%zu NPUs", npus);
        goto done;
    }
    for (size_t i = 0; i < npus * engine->servers_per_npu; i++)
        engine->server[i] = (sim__server){SIM__NONE, SIM__NONE, 0};
    if (backend == SIM_ASTRA_AWARE)
        CS_TRY(sim__network_create(engine, err));
    *out = engine;
    engine = NULL;
done:
    sim__astra_engine_destroy(engine);
    return status;
}

void sim__astra_engine_destroy(sim__engine *engine)
{
    if (engine == NULL)
        return;
    for (uint32_t i = 0; i < engine->instances.n; i++)
        if (sim__instance_at(engine, i)->active) {
            free(sim__instance_at(engine, i)->queue);
            free(sim__instance_at(engine, i)->left);
        }
    free(engine->heap);
    free(engine->timers.data);
    free(engine->batches.data);
    free(engine->messages.data);
    free(engine->flows.data);
    free(engine->instances.data);
    free(engine->gap);
    free(engine->batch_table);
    free(engine->match_table);
    free(engine->link);
    free(engine->sent);
    free(engine->server);
    free(engine->queues);
    free(engine);
}

/* ---- collectives in flight ---- */

/* Trees alternate with every phase made on a dimension, over all collectives of a list. */
static void assign_trees(sim__engine *engine, const sim_astra_op *op, sim__instance *in)
{
    for (size_t p = 0; p < in->plan.n_phases; p++) {
        const uint8_t level = in->plan.phase[p].level;
        in->visits[p] = 0;
        in->tree[p] = engine->tree_turn[op->type][level];
        for (size_t q = 0; q < in->plan.n_phases; q++)
            if (in->plan.phase[q].level == level) {
                in->visits[p]++;
                in->tree[p] = (uint8_t)(in->tree[p] + (q < p));
            }
    }
    for (size_t p = 0; p < in->plan.n_phases; p++)
        engine->tree_turn[op->type][in->plan.phase[p].level] =
            (uint8_t)((engine->tree_turn[op->type][in->plan.phase[p].level] +
                       in->plan.n_chunks % 2) %
                      2);
}

static cs_status check_messages(const sim__instance *in, cs_error *err)
{
    double messages = 0.0;

    for (size_t p = 0; p < in->plan.n_phases; p++)
        messages += (double)in->seq[p].sends;
    messages *= (double)in->plan.n_chunks * (double)in->plan.members;
    if (messages > MAX_MESSAGES || (double)in->plan.n_chunks * (double)in->plan.members > MAX_FLOWS)
        return cs_fail(err, CS_EINVAL,
                       "a collective of %.3g messages is too large to simulate one by one",
                       messages);
    return CS_OK;
}

/* A released block of exactly n flows. */
static bool take_gap(sim__engine *engine, uint32_t n, uint32_t *first)
{
    for (size_t i = engine->n_gaps; i-- > 0;)
        if (engine->gap[i].n == n) {
            *first = engine->gap[i].first;
            engine->gap[i] = engine->gap[--engine->n_gaps];
            return true;
        }
    return false;
}

static void give_gap(sim__engine *engine, uint32_t first, uint32_t n)
{
    void *gap =
        cs_room(engine->gap, &engine->gap_capacity, engine->n_gaps + 1, sizeof *engine->gap);

    if (gap == NULL)
        return; /* the block is only lost until the engine is destroyed */
    engine->gap = gap;
    engine->gap[engine->n_gaps].first = first;
    engine->gap[engine->n_gaps++].n = n;
}

/* Flows of an instance lie side by side. */
static cs_status take_flows(sim__engine *engine, sim__instance *in, cs_error *err)
{
    const size_t n = (size_t)(in->plan.n_chunks * in->plan.members);
    const size_t wanted = engine->flows.n + n;

    in->n_flows = in->n_left = (uint32_t)n;
    if (take_gap(engine, (uint32_t)n, &in->first_flow))
        return CS_OK;
    if (wanted > engine->flows.capacity) {
        void *data = wanted >= SIM__NONE ? NULL
                                         : cs_room(engine->flows.data, &engine->flows.capacity,
                                                   wanted, engine->flows.size);
        if (data == NULL)
            return cs_fail(err, CS_ENOMEM, "%zu chunks", n);
        engine->flows.data = data;
    }
    in->first_flow = (uint32_t)engine->flows.n;
    engine->flows.n += n;
    return CS_OK;
}

cs_status sim__astra_engine_collective(sim__engine *engine, const sim_astra_op *op,
                                       const sim__astra_plan *plan, uint64_t user,
                                       uint32_t *instance, cs_error *err)
{
    cs_status status;
    sim__instance in = {.plan = *plan, .user = user, .active = true};
    const bool whole = plan->n_phases == 0 || !plan->phase[0].listed;
    const size_t members = (size_t)plan->members;

    in.ranks = whole ? NULL : op->ranks;
    for (size_t p = 0; p < plan->n_phases; p++)
        in.seq[p] = sim__astra_sequence_make(&plan->phase[p]);
    CS_TRY(check_messages(&in, err));
    assign_trees(engine, op, &in);
    in.left = malloc(members * sizeof *in.left);
    in.queue = malloc(members * (size_t)plan->n_chunks * plan->n_phases + 1);
    *instance = sim__pool_take(engine, &engine->instances);
    if (in.left == NULL || in.queue == NULL || *instance == SIM__NONE) {
        status = cs_fail(err, CS_ENOMEM, "a collective of %zu members", members);
        goto done;
    }
    for (size_t j = 0; j < members; j++)
        in.left[j] = (uint32_t)plan->n_chunks;
    *sim__instance_at(engine, *instance) = (sim__instance){0};
    CS_TRY(take_flows(engine, &in, err));
    *sim__instance_at(engine, *instance) = in;
    in.left = NULL;
    in.queue = NULL;
done:
    free(in.left);
    free(in.queue);
    return status;
}

/* Gives back what the instance holds once its last flow has ended. */
static void release(sim__engine *engine, uint32_t instance)
{
    sim__instance *in = sim__instance_at(engine, instance);

    free(in->left);
    free(in->queue);
    in->left = NULL;
    in->queue = NULL;
    in->active = false;
    give_gap(engine, in->first_flow, in->n_flows);
    sim__pool_give(&engine->instances, instance);
}

/* ---- queues of an NPU ---- */

static sim__server *server_of(sim__engine *engine, uint32_t index)
{
    const sim__flow *flow = sim__flow_at(engine, index);
    const sim__instance *in = sim__instance_at(engine, flow->instance);
    const size_t local = index - in->first_flow;
    const size_t queue = in->queue[local * in->plan.n_phases + flow->phase] & 0x7f;
    const size_t npu = (size_t)sim__flow_npu(engine, flow);

    return &engine->server[npu * engine->servers_per_npu +
                           in->plan.phase[flow->phase].level *
                               (size_t)engine->astra->system.queues_per_dim +
                           queue];
}

static void server_wait(sim__engine *engine, sim__server *server, uint32_t flow)
{
    sim__flow_at(engine, flow)->next = SIM__NONE;
    if (server->head == SIM__NONE)
        server->head = flow;
    else
        sim__flow_at(engine, server->tail)->next = flow;
    server->tail = flow;
}

static void server_start(sim__engine *engine, sim__server *server)
{
    const int64_t slots = sim__astra_slots(&engine->astra->system);

    while (server->head != SIM__NONE && server->running < slots) {
        const uint32_t flow = server->head;
        server->head = sim__flow_at(engine, flow)->next;
        server->running++;
        sim__flow_begin(engine, flow);
    }
}

void sim__flow_proceed(sim__engine *engine, uint32_t index)
{
    sim__server *before = server_of(engine, index);
    sim__server *after;
    sim__flow *flow = sim__flow_at(engine, index);
    sim__instance *in = sim__instance_at(engine, flow->instance);

    if (flow->phase + 1u < in->plan.n_phases) {
        flow->phase++;
        after = server_of(engine, index);
        server_wait(engine, after, index);
        before->running--;
        server_start(engine, before);
        server_start(engine, after);
        return;
    }
    before->running--;
    in->n_left--;
    if (--in->left[flow->member] == 0)
        engine->hooks.done(engine->hooks.context, flow->member, in->user);
    server_start(engine, before);
    flow = sim__flow_at(engine, index);
    if (sim__instance_at(engine, flow->instance)->n_left == 0)
        release(engine, flow->instance);
}

void sim__astra_engine_join(sim__engine *engine, uint32_t instance, uint32_t member)
{
    const sim__instance *in = sim__instance_at(engine, instance);
    const size_t n_phases = in->plan.n_phases;
    const int64_t n_chunks = in->plan.n_chunks;
    const uint32_t first = in->first_flow + (uint32_t)(member * n_chunks);
    const int64_t npu = in->ranks == NULL ? member : in->ranks[member];

    for (uint32_t chunk = 0; chunk < n_chunks; chunk++) {
        sim__server *server;
        *sim__flow_at(engine, first + chunk) =
            (sim__flow){.instance = instance, .member = member, .chunk = chunk};
        in = sim__instance_at(engine, instance);
        for (size_t p = 0; p < n_phases; p++) {
            bool reversed;
            const size_t queue = sim__astra_queue_take(&engine->astra->system, &engine->queues[npu],
                                                       &in->plan.phase[p], &reversed);
            in->queue[(size_t)(first + chunk - in->first_flow) * n_phases + p] =
                (uint8_t)(queue | (reversed ? 0x80u : 0));
        }
        server = server_of(engine, first + chunk);
        server_wait(engine, server, first + chunk);
        server_start(engine, server);
    }
}

/* ---- messages ---- */

int64_t sim__flow_npu(sim__engine *engine, const sim__flow *flow)
{
    const sim__instance *in = sim__instance_at(engine, flow->instance);

    return in->ranks == NULL ? flow->member : in->ranks[flow->member];
}

int64_t sim__flow_index(sim__engine *engine, const sim__flow *flow, const sim__astra_phase *phase)
{
    if (phase->listed)
        return flow->member;
    return sim__flow_npu(engine, flow) / phase->stride % phase->n;
}

void sim__flow_send(sim__engine *engine, uint32_t index, uint32_t to_member, int64_t bytes)
{
    const sim__flow *flow = sim__flow_at(engine, index);
    const sim__instance *in = sim__instance_at(engine, flow->instance);
    const uint32_t message = sim__pool_take(engine, &engine->messages);

    if (message == SIM__NONE)
        return;
    *sim__message_at(engine, message) = (sim__message){
        .flow = in->first_flow + (uint32_t)(to_member * in->plan.n_chunks + flow->chunk),
        .from = flow->member,
        .at = (uint32_t)sim__flow_npu(engine, flow),
        .to = (uint32_t)(in->ranks == NULL ? to_member : in->ranks[to_member]),
        .bytes = bytes};
    sim__network_send(engine, message);
}

void sim__astra_engine_send(sim__engine *engine, uint32_t from, uint32_t to, int64_t bytes,
                            uint32_t value)
{
    const uint32_t message = sim__pool_take(engine, &engine->messages);

    if (message == SIM__NONE)
        return;
    *sim__message_at(engine, message) =
        (sim__message){.flow = value, .at = from, .to = to, .user = true, .bytes = bytes};
    sim__network_send(engine, message);
}

void sim__astra_engine_soon(sim__engine *engine, uint32_t value)
{
    sim__event_push(engine, engine->now, SIM__EVENT_USER, value);
}

void sim__astra_engine_abandon(sim__engine *engine, uint32_t instance)
{
    if (instance < engine->instances.n && sim__instance_at(engine, instance)->active)
        release(engine, instance);
}

void sim__astra_engine_timer(sim__engine *engine, uint32_t npu, int64_t delay_ns, uint32_t value)
{
    sim__timer_push(engine, delay_ns,
                    (sim__timer){.target = value, .npu = npu, .kind = SIM__TIMER_USER});
}

/* ---- the loop ---- */

cs_status sim__astra_engine_run(sim__engine *engine, cs_error *err)
{
    while (engine->n_heap > 0 && !engine->out_of_memory && !engine->stop) {
        const sim__event event = sim__event_pop(engine);
        engine->now = event.at;
        switch ((sim__kind)event.kind) {
        case SIM__EVENT_TIMERS:
            sim__timers_run(engine, event.index);
            break;
        case SIM__EVENT_ARRIVAL:
            sim__network_arrival(engine, event.index);
            break;
        case SIM__EVENT_LINK:
            sim__network_link_free(engine, event.index);
            break;
        case SIM__EVENT_RECEIVE:
            sim__flow_received(engine, event.index);
            break;
        case SIM__EVENT_USER:
            engine->hooks.arrived(engine->hooks.context, event.index);
            break;
        }
    }
    return engine->out_of_memory ? cs_fail(err, CS_ENOMEM, "messages in flight") : CS_OK;
}

/* ---- one collective alone ---- */

typedef struct {
    sim__engine *engine;
    int64_t *end_ns;
    int64_t n_done;
} solo;

static void solo_done(void *context, uint32_t member, uint64_t user)
{
    solo *s = context;

    (void)user;
    s->end_ns[member] = s->engine->now;
    s->n_done++;
}

cs_status sim__astra_events(const sim_astra *astra, const sim_astra_op *op,
                            const sim__astra_plan *plan, sim_astra_result *out, int64_t *end_ns,
                            cs_error *err)
{
    cs_status status;
    solo s = {.end_ns = end_ns};
    const sim__hooks hooks = {.context = &s, .done = solo_done};
    uint32_t instance;

    if (plan->n_phases == 0)
        return CS_OK;
    CS_TRY(sim__astra_engine_create(astra, op->backend, &hooks, &s.engine, err));
    CS_TRY(sim__astra_engine_collective(s.engine, op, plan, 0, &instance, err));
    for (int64_t j = 0; j < plan->members; j++)
        sim__astra_engine_join(s.engine, instance, (uint32_t)j);
    CS_TRY(sim__astra_engine_run(s.engine, err));
    if (s.n_done != plan->members) {
        status = cs_fail(err, CS_EDEADLOCK, "%lld of %lld NPUs never finish the collective",
                         (long long)(plan->members - s.n_done), (long long)plan->members);
        goto done;
    }
    for (int64_t i = 0; i < astra->network.npus; i++)
        for (size_t d = 0; d < out->n_dims; d++) {
            const double sent = s.engine->sent[(size_t)i * out->n_dims + d];
            out->sent_bytes[d] = sent > out->sent_bytes[d] ? sent : out->sent_bytes[d];
        }
done:
    sim__astra_engine_destroy(s.engine);
    return status;
}
