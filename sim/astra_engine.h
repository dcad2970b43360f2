/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Event core of model `astra`: every message of every NPU, on shared or congested links.  Used for
 * what has no closed form, and by the cluster engine.  Private to sim/.
 *
 * Order of events, as ASTRA-sim's: by time, then by insertion.  Timers of one NPU that expire at
 * the same nanosecond are one event, at the place of the first of them. */
#ifndef SIM_ASTRA_ENGINE_H
#define SIM_ASTRA_ENGINE_H

#include "sim/astra_private.h"

#define SIM__NONE UINT32_MAX

/* ---- events and timers ---- */

typedef enum {
    SIM__EVENT_TIMERS,
    SIM__EVENT_ARRIVAL,
    SIM__EVENT_LINK,
    SIM__EVENT_RECEIVE,
    SIM__EVENT_USER
} sim__kind;

typedef struct {
    int64_t at;
    uint64_t order; /* insertion number */
    uint32_t kind, index;
} sim__event;

typedef enum { SIM__TIMER_PACKET, SIM__TIMER_USER } sim__timer_kind;

typedef struct {
    uint32_t next, target; /* target: flow, or the user's value */
    uint32_t npu;
    uint32_t kind;
    int64_t reduction_ns; /* still to run after the endpoint delay */
    bool reduce;
} sim__timer;

/* Timers of one NPU at one time. */
typedef struct {
    int64_t at;
    uint32_t npu, head, tail;
} sim__batch;

typedef struct {
    uint32_t flow, from, to, at; /* from: member of the collective; to, at: NPUs */
    uint32_t next;               /* in the queue of a link, or free */
    uint32_t at_next;
    uint8_t in_switch, switch_next; /* dimension + 1 while at its switch */
    bool user;                      /* flow is the user's value */
    int64_t bytes;
} sim__message;

typedef struct {
    uint32_t head, tail; /* waiting messages */
    bool busy;
} sim__link;

/* A link that carries only a share of its bandwidth. */
typedef struct {
    size_t link;
    uint32_t from; /* the NPU it leaves */
    uint8_t dim;
    double share; /* in (0, 1] */
} sim__slow_link;

/* Receives posted less messages arrived, of one (flow, sender, size). */
typedef struct {
    int64_t bytes;
    uint32_t flow, from;
    int32_t balance; /* > 0: arrived and not yet asked for; 0: free slot */
} sim__match;

/* A pool of equal records with a free list through the given index field. */
typedef struct {
    void *data;
    size_t size, n, capacity;
    uint32_t free;
} sim__pool;

/* ---- chunks on their way ---- */

/* One chunk on one member. */
typedef struct {
    uint32_t instance, member, chunk, next; /* next: waiting in a queue */
    uint32_t inserted, sent, received, idle;
    uint8_t phase, tree_state, tree_reductions;
} sim__flow;

typedef struct {
    uint32_t head, tail, running;
} sim__server;

/* One collective in flight. */
typedef struct {
    sim__astra_plan plan;
    sim__astra_sequence seq[SIM__ASTRA_MAX_PHASES];
    uint8_t tree[SIM__ASTRA_MAX_PHASES];   /* first tree of a phase */
    uint8_t visits[SIM__ASTRA_MAX_PHASES]; /* phases of a chunk on the same dimension */
    const int64_t *ranks;                  /* borrowed; NULL: all NPUs */
    uint8_t *queue;                        /* by flow and phase: queue, bit 7 reversed */
    uint32_t first_flow, n_flows;
    uint32_t n_left; /* flows that have not finished */
    uint32_t *left;  /* by member: chunks that have not finished */
    uint64_t user;   /* the user's value */
    bool active;
} sim__instance;

typedef struct {
    void *context;
    /* The collective has ended on a member. */
    void (*done)(void *context, uint32_t member, uint64_t user);
    /* A timer of sim__astra_engine_timer has expired. */
    void (*timer)(void *context, uint32_t npu, uint32_t value);
    /* A message of sim__astra_engine_send has arrived. */
    void (*arrived)(void *context, uint32_t value);
} sim__hooks;

typedef struct sim__engine {
    const sim_astra *astra;
    sim_astra_backend backend;
    sim__hooks hooks;
    int64_t now;
    uint64_t order;
    bool out_of_memory, stop; /* stop: the user ends the run */

    sim__event *heap;
    size_t n_heap, heap_capacity;
    sim__pool timers, batches, messages, flows, instances;
    struct {
        uint32_t first, n;
    } * gap; /* released blocks of flows */
    size_t n_gaps, gap_capacity;
    uint32_t *batch_table; /* (npu, time) -> batch */
    size_t batch_mask, n_batches;
    sim__match *match_table;
    size_t match_mask, n_matches;

    int64_t stride[SIM_ASTRA_MAX_DIMS]; /* of ids, by dimension */
    size_t link_base[SIM_ASTRA_MAX_DIMS], links_per_npu[SIM_ASTRA_MAX_DIMS];
    sim__link *link;            /* NULL: back end unaware */
    const sim__slow_link *slow; /* borrowed */
    size_t n_slow;
    double *sent; /* bytes by NPU and dimension; NULL: not counted */
    sim__server *server;
    sim__astra_queues *queues; /* by NPU */
    size_t servers_per_npu;
    uint8_t tree_turn[SIM_ASTRA_N_TYPES][SIM_ASTRA_MAX_DIMS];
} sim__engine;

/* Creates an engine over borrowed files; CS_EINVAL when the links would not fit in memory. */
CS_MUST_USE cs_status sim__astra_engine_create(const sim_astra *astra, sim_astra_backend backend,
                                               const sim__hooks *hooks, sim__engine **out,
                                               cs_error *err);
void sim__astra_engine_destroy(sim__engine *engine);

/* Prepares a collective; members join one by one.  `ranks` is borrowed until it has ended.
 * CS_EINVAL when it has too many messages to simulate one by one. */
CS_MUST_USE cs_status sim__astra_engine_collective(sim__engine *engine, const sim_astra_op *op,
                                                   const sim__astra_plan *plan, uint64_t user,
                                                   uint32_t *instance, cs_error *err);
/* The member starts its part now. */
void sim__astra_engine_join(sim__engine *engine, uint32_t instance, uint32_t member);
/* Calls hooks.timer after `delay_ns`. */
void sim__astra_engine_timer(sim__engine *engine, uint32_t npu, int64_t delay_ns, uint32_t value);
/* Sends a message that is nobody's; hooks.arrived gets `value`. */
void sim__astra_engine_send(sim__engine *engine, uint32_t from, uint32_t to, int64_t bytes,
                            uint32_t value);
/* Calls hooks.arrived with `value` after what is due at this time already. */
void sim__astra_engine_soon(sim__engine *engine, uint32_t value);
/* Releases a collective of which only some members have joined, all of them done. */
void sim__astra_engine_abandon(sim__engine *engine, uint32_t instance);
/* Runs until nothing is left to happen. */
CS_MUST_USE cs_status sim__astra_engine_run(sim__engine *engine, cs_error *err);

/* ---- between the files of the engine ---- */

/* Index of a fresh record (SIM__NONE and out_of_memory set on failure). */
uint32_t sim__pool_take(sim__engine *engine, sim__pool *pool);
void sim__pool_give(sim__pool *pool, uint32_t index);

void sim__event_push(sim__engine *engine, int64_t at, sim__kind kind, uint32_t index);
sim__event sim__event_pop(sim__engine *engine);
/* Registers a timer of the NPU. */
void sim__timer_push(sim__engine *engine, int64_t delay_ns, sim__timer timer);
/* Runs a batch: each timer once, with those that join while it runs. */
void sim__timers_run(sim__engine *engine, uint32_t batch);

/* Puts a message on its way; sim__message_arrived is called at its destination. */
void sim__network_send(sim__engine *engine, uint32_t message);
void sim__network_arrival(sim__engine *engine, uint32_t message);
void sim__network_link_free(sim__engine *engine, uint32_t link);
CS_MUST_USE cs_status sim__network_create(sim__engine *engine, cs_error *err);

void sim__message_arrived(sim__engine *engine, uint32_t message);
/* A receive of the flow; when the message is there already, it is delivered as a new event. */
void sim__receive_post(sim__engine *engine, uint32_t flow, uint32_t from, int64_t bytes);
void sim__flow_send(sim__engine *engine, uint32_t flow, uint32_t to_member, int64_t bytes);

/* Packet machines. */
void sim__flow_begin(sim__engine *engine, uint32_t flow);
void sim__flow_timer(sim__engine *engine, uint32_t flow);
void sim__flow_received(sim__engine *engine, uint32_t flow);
/* The flow's phase has ended: next phase or end, and the queues move on. */
void sim__flow_proceed(sim__engine *engine, uint32_t flow);

static inline sim__flow *sim__flow_at(sim__engine *engine, uint32_t flow)
{
    return (sim__flow *)engine->flows.data + flow;
}
static inline sim__instance *sim__instance_at(sim__engine *engine, uint32_t instance)
{
    return (sim__instance *)engine->instances.data + instance;
}
static inline sim__message *sim__message_at(sim__engine *engine, uint32_t message)
{
    return (sim__message *)engine->messages.data + message;
}

/* NPU of a member in a phase of the flow that runs on `npu`. */
int64_t sim__member_npu(const sim__instance *in, const sim__astra_phase *phase, int64_t npu,
                        int64_t member);
int64_t sim__flow_npu(sim__engine *engine, const sim__flow *flow);
/* Position of the flow's NPU among the members of its phase. */
int64_t sim__flow_index(sim__engine *engine, const sim__flow *flow, const sim__astra_phase *phase);

#endif
