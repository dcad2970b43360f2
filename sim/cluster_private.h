/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the files of the cluster engine share. */
#ifndef SIM_CLUSTER_PRIVATE_H
#define SIM_CLUSTER_PRIVATE_H

#include "sim/astra_engine.h"
#include "sim/cluster.h"

/* Places of a rank; a node needs its own free to be issued. */
typedef enum {
    SIM__PLACE_GPU,
    SIM__PLACE_CPU,
    SIM__PLACE_COMM,
    SIM__PLACE_NONE,
    SIM__N_PLACES
} sim__place;

typedef struct {
    uint32_t ready[SIM__N_PLACES]; /* pairing heaps of nodes by id, by place */
    uint32_t fresh;                /* nodes that became ready during a pass */
    uint32_t busy[SIM__N_PLACES];  /* nodes in flight */
    uint32_t n_done;
    int64_t changed; /* when `busy` last changed */
    sim_cluster_rank times;
} sim__rank;

/* One collective that some members have issued. */
typedef struct {
    wl_collective type;
    int64_t bytes;
    int64_t splits;  /* chunks; 0: as the system says */
    uint32_t number; /* within its stream */
    uint32_t n_joined, n_done;
    uint32_t instance;    /* of the engine (back end aware), SIM__NONE before */
    uint32_t chunks_left; /* model contention */
    /* Model contention, by phase: chunks that have come to it, and that it has been given to. */
    uint32_t arrived[SIM_MAX_PHASES], entered[SIM_MAX_PHASES];
    uint32_t priced; /* model contention: index into the stream's prices */
    uint32_t weight; /* groups that this one stands for; 0: not yet known */
    int64_t *start;  /* by member */
    uint32_t *node;  /* by member; SIM__NONE: not yet issued */
} sim__coll;

/* Phases of a chunk of one kind of collective, model contention. */
typedef struct {
    wl_collective type;
    int64_t bytes, chunks;
    sim_phases phases;
} sim__price;

/* Collectives of one group, in order. */
typedef struct {
    int32_t group;    /* index into the trace */
    uint32_t mask;    /* dimensions involved; 0: all */
    uint32_t base;    /* lowest rank of a masked part of the world */
    uint32_t n;       /* members */
    int64_t *rank;    /* by member, ascending for the world */
    uint32_t *issued; /* by member: collectives so far */
    sim__coll **open; /* collectives first .. first + n_open - 1 */
    uint32_t first, n_open;
    size_t capacity; /* of open */
    /* model contention */
    bool has_footprint, listed; /* listed: no product, and no pair */
    sim_footprint footprint;
    sim__price *price;
    uint32_t n_prices;
} sim__stream;

/* Ranks that are alike, and what happened to those that stand for them (cluster_fold.h). */
typedef enum { SIM__OWN, SIM__FROM_GROUP, SIM__FROM_PEER } sim__cause;

typedef struct {
    int64_t at; /* when it was put on the clock */
    uint64_t turn;
    sim__cause cause;
} sim__push;

typedef struct {
    uint32_t n_classes;
    uint32_t *class_, *rep, *size; /* by rank; by class: who stands for it, and how many it has */
    sim__push *push;               /* by node in flight */
    sim__push *last;               /* by rank: what it was that ended last ... */
    int64_t *last_at;              /* ... and when */
    uint64_t *last_turn;
    uint64_t turn;
    bool broken; /* the run must start again with all ranks */
} sim__fold;

/* Messages of one (source, destination, tag): sends or receives that wait for the other side, a
 * list through `sibling`. */
typedef struct {
    int64_t tag;
    uint32_t from, to;
    uint32_t head, tail;
    bool sends; /* what waits */
    bool used;
} sim__channel;

/* What model contention waits for: the end of a chunk's phase, or the head of a parcel at a
 * device. */
typedef struct {
    uint32_t stream, coll, chunk, phase; /* chunk */
    uint32_t node, at, to;               /* parcel: its SEND, where it is, its destination */
    uint32_t entered;                    /* parcel: where it entered its dimension */
    uint8_t dim, in_switch;
    bool landed; /* parcel: all of it is at `at` */
    bool served; /* parcel: its turn in the dimension has come */
    bool parcel;
    double bytes;
} sim__note;

#define SIM__MAX_SLOW 64

/* State of model contention. */
typedef struct {
    const sim_network *net;
    sim_route_cache *routes;
    int64_t *server_free; /* by NPU and dimension: end of its collectives so far, ps */
    int64_t *message_end; /* by NPU and dimension: end of its messages so far, ps */
    int64_t *link_free;   /* by link, ps */
    size_t link_base[SIM_MAX_DIMS], links_per_npu[SIM_MAX_DIMS];
    int64_t stride[SIM_MAX_DIMS];
    sim__pool notes;
    sim__slow_link slow[SIM__MAX_SLOW];
    size_t n_slow;
    uint16_t *parcels; /* by SEND: parcels on their way */
} sim__contention;

typedef struct sim__cluster {
    const wl_trace *trace;
    const sim_cluster_options *options;
    const sim_astra *astra;
    sim_astra shape;            /* of the network, model contention */
    sim__contention contention; /* net NULL: model astra */
    int64_t ticks_per_ns;       /* of the engine's clock: 1, or 1000 under contention */
    sim__engine *engine;        /* the clock; messages; collectives of the back end aware */
    sim__engine *side;          /* collectives that do not start together, back end unaware */
    cs_status status;           /* of the first failure in an event */
    cs_error error;
    sim_cluster_result *result;

    /* Custom collective: NPU and start (ticks) of each rank of its trace; NULL otherwise. */
    const int64_t *member, *start;
    sim__rank *rank;
    uint32_t *order;   /* by node: position by id within its rank */
    uint32_t *rank_of; /* by node */
    uint32_t *pending; /* by node: dependencies not yet done */
    uint32_t *child_first, *child;
    uint32_t *heap_child; /* pairing heaps; COLL in flight: its member */
    uint32_t *sibling;    /* pairing heaps and lists */
    uint32_t *partner;    /* SEND: its receive; COLL: its stream; SIM__NONE before */
    uint8_t *state;       /* by node: sim__node_state */
    int64_t *started;

    sim__stream *stream;
    uint32_t n_streams;
    size_t stream_capacity;
    uint32_t *group_stream; /* by trace group: stream + 1 */
    /* By COLL node: which collective of its stream it is, in the order of ids.  NULL: collectives
     * are numbered as they are issued, as ASTRA-sim does. */
    uint32_t *number;
    sim__channel *channel; /* hash table */
    size_t channel_mask, n_channels;
    int64_t *side_end; /* by member, of the collective in the side engine */
    uint32_t side_instance;
    sim__fold *fold; /* NULL: every rank is simulated */
} sim__cluster;

typedef enum { SIM__WAITING, SIM__RUNNING, SIM__DONE } sim__node_state;

/* The parts of a run; destroy also after a failed create. */
CS_MUST_USE cs_status sim__cluster_create(sim__cluster *c, cs_error *err);
CS_MUST_USE cs_status sim__cluster_play(sim__cluster *c, cs_error *err);
double sim__cluster_sent_bytes(const sim__cluster *c);
void sim__cluster_destroy(sim__cluster *c);

/* NPU of a rank of the trace. */
static inline uint32_t sim__cluster_npu(const sim__cluster *c, uint32_t rank)
{
    return c->member == NULL ? rank : (uint32_t)c->member[rank];
}

/* Runs the trace of a custom collective; end: ticks, by member. */
CS_MUST_USE cs_status sim__cluster_custom(sim__cluster *c, const sim__stream *s,
                                          const sim__coll *coll, int64_t *end, cs_error *err);
/* A collective of its group costs nothing: right for no bytes and for a group of one, else a
 * failure, since a trace whose communication is free says nothing. */
void sim__cluster_costs_nothing(sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                                uint32_t node);
/* All members of a collective end at once, or each at its own time (ticks, not in the past). */
void sim__cluster_finish_all(sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                             const int64_t *end);

/* Records the first failure; the run stops. */
void sim__cluster_fail(sim__cluster *c, cs_status status, const char *fmt, ...) CS_PRINTF(3, 4);
/* "rank 3 node 17 (name)"; returns text. */
const char *sim__cluster_node_text(const sim__cluster *c, uint32_t node, char text[160]);

/* The graph: who waits for whom. */
CS_MUST_USE cs_status sim__cluster_graph(sim__cluster *c, cs_error *err);
sim__place sim__cluster_place(const sim__cluster *c, uint32_t node);
void sim__cluster_make_ready(sim__cluster *c, uint32_t node);
/* Takes the node of least id whose place is free; SIM__NONE when there is none. */
uint32_t sim__cluster_take(sim__cluster *c, uint32_t rank);
/* Moves nodes that became ready to their heaps; false when there are none. */
bool sim__cluster_refresh(sim__cluster *c, uint32_t rank);

/* The node has ended now: frees its place and issues what can start. */
void sim__cluster_finish(sim__cluster *c, uint32_t node);

/* Whether a COLL node runs as a collective, and not for a duration. */
bool sim__cluster_is_collective(const sim__cluster *c, uint32_t node);
/* Numbers the collectives of every rank in the order of their ids. */
CS_MUST_USE cs_status sim__cluster_number(sim__cluster *c, cs_error *err);
void sim__cluster_collective(sim__cluster *c, uint32_t node);
void sim__cluster_collective_done(sim__cluster *c, uint32_t member, uint64_t user);
/* Stream of a COLL node, made at its first use; NULL (and a failure) when its group is wrong. */
sim__stream *sim__stream_of(sim__cluster *c, uint32_t node);
/* Position of a rank, SIM__NONE when it is no member. O(members) unless the list is ascending. */
uint32_t sim__stream_member(const sim__stream *s, int64_t rank);
/* The k-th collective, made (with those before it) when nobody has issued it yet. */
sim__coll *sim__stream_coll(sim__cluster *c, sim__stream *s, uint32_t k);
/* Bookkeeping of a collective's node that has ended. */
void sim__cluster_collective_ended(sim__cluster *c, uint32_t node);
void sim__cluster_streams_fini(sim__cluster *c);
/* Stream and collective a blocked node belongs to; NULL when it is none. */
const sim__coll *sim__cluster_find_coll(const sim__cluster *c, uint32_t node,
                                        const sim__stream **stream);

void sim__cluster_send(sim__cluster *c, uint32_t node);
void sim__cluster_receive(sim__cluster *c, uint32_t node);
/* A message has arrived (node: a SEND), or one that was there is taken (node: a RECV). */
void sim__cluster_arrived(sim__cluster *c, uint32_t node);
/* The other side of a SEND or RECV, -1 when the node names none. */
int64_t sim__cluster_peer(const sim__cluster *c, uint32_t node);

/* Finds the links of the options in the engine, or under contention in c->contention. */
CS_MUST_USE cs_status sim__cluster_slow_links(sim__cluster *c, cs_error *err);

/* Model contention. */
CS_MUST_USE cs_status sim__contention_create(sim__cluster *c, cs_error *err);
void sim__contention_destroy(sim__cluster *c);
/* The last member of a collective has arrived. */
void sim__contention_collective(sim__cluster *c, sim__stream *s, sim__coll *coll);
void sim__contention_send(sim__cluster *c, uint32_t node, uint32_t from, uint32_t to);
/* What a note stands for happens now. */
void sim__contention_note(sim__cluster *c, uint32_t note);
void sim__contention_parcel(sim__cluster *c, uint32_t note);
uint32_t sim__contention_note_at(sim__cluster *c, int64_t at, const sim__note *note);

/* Bandwidth of one link of a dimension. */
double sim__link_bytes_per_s(const sim_dim *dim);

/* Group of a list of ranks on a network: a product of spans or a pair, when it is one. */
bool sim__footprint_of_ranks(const sim_network *net, const int64_t *rank, uint32_t n,
                             sim_footprint *out);

/* Folding.  All may be called without: they then do what one rank at a time does. */

/* Finds what can be folded; c->fold stays NULL when nothing can. */
void sim__fold_create(sim__cluster *c);
void sim__fold_destroy(sim__cluster *c);
/* Whether the rank is simulated itself. */
static inline bool sim__fold_stands(const sim__cluster *c, uint32_t rank)
{
    return c->fold == NULL || c->fold->rep[c->fold->class_[rank]] == rank;
}
/* Ranks that the rank stands for, itself included. */
static inline uint32_t sim__fold_size(const sim__cluster *c, uint32_t rank)
{
    return c->fold == NULL ? 1 : c->fold->size[c->fold->class_[rank]];
}
static inline uint32_t sim__fold_rep(const sim__cluster *c, uint32_t rank)
{
    return c->fold == NULL ? rank : c->fold->rep[c->fold->class_[rank]];
}
/* The rank issues its part of the collective, and with it the members it stands for. */
void sim__fold_join(sim__cluster *c, const sim__stream *s, sim__coll *coll, uint32_t member,
                    uint32_t node);
/* Members whose part of the collective is the node. */
uint32_t sim__fold_members(const sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                           uint32_t node);
/* Whether members of a class end together; else the run starts again. */
bool sim__fold_ends(sim__cluster *c, const sim__stream *s, const sim__coll *coll,
                    const int64_t *end);
/* The run starts again with all ranks. */
void sim__fold_break(sim__cluster *c);
/* The end of the node is on the clock. */
void sim__fold_push(sim__cluster *c, uint32_t node, sim__cause cause);
/* The node ends now; the message of the SEND is at its rank now. */
void sim__fold_ended(sim__cluster *c, uint32_t node);
void sim__fold_reached(sim__cluster *c, uint32_t send);

/* Explains why the ranks wait for ever. */
cs_status sim__cluster_deadlock(const sim__cluster *c, cs_error *err);

#endif
