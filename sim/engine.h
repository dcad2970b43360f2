/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Block engine (private to sim/): one representative NPU per pipeline stage; servers `compute` and
 * one per network dimension, each serving operations in program order (DESIGN 5.3, 5.4).
 *
 * A pass of a block is lowered to a flat list of operations (lower.c).  Running it (block.c) is one
 * sweep of
 *     start = max(server, inputs),  end = start + duration
 * over that list: a max-plus linear function of a small state.  Equal layers are not run one by
 * one (segment.c): a state that comes back repeats exactly; and along a line of states every
 * operation time is convex, so that if the sum of all operation times at steps 0, 1 and n-1 lies on
 * one line, each of them does at all steps between.  (Max-plus functions are convex: Baccelli et
 * al., Synchronization and Linearity, 1992, chapter 3.)  Both shortcuts are exact to the
 * picosecond; `unrolled` takes neither. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "sim/schedule.h"
#include "sim/sim.h"

/* Who is to blame for a wait of the compute stream: an axis, or another stage. */
enum { SIM_WAIT_REMOTE = WL_N_AXES, SIM_WAIT_CAUSES, SIM_OF_INPUT = 0x80, SIM_CAUSE_MASK = 0x7f };

/* Blocks whose weights can be gathered ahead. */
enum { SIM_MOST_PREFETCH = 8 };

/* Times that outlive a block, relative to the end of its last compute operation; none is
 * negative. */
typedef struct {
    sim_time server[SIM_MAX_DIMS]; /* end of the last operation of each dimension */
    sim_time input;                /* the block's input value is there */
    /* Weights of the next blocks are there: [0] those of the next one. */
    sim_time gathered[SIM_MOST_PREFETCH];
    sim_time reduced;    /* the last gradient reduction that was run is done */
    sim_time busy_until; /* end of what is counted as network time already */
    int64_t input_cause; /* axis whose collective made `input`, or SIM_WAIT_REMOTE */
} sim_state;

/* What a stretch of program did: sums over its operations. */
typedef struct {
    sim_time compute;
    sim_time wait[SIM_WAIT_CAUSES];
    sim_time network;   /* time with any dimension busy */
    int64_t sent_bytes; /* by one NPU into its dimensions */
    uint64_t ends;      /* weighted sum of operation times modulo 2^64, for the convexity test */
} sim_account;

enum { SIM_NO_SERVER = 255, SIM_FLOW = 254 };

/* All chunks of a collective through its phases, where nothing else can come between: the end of
 * chunk c of phase p is the largest of p + 1 lines in c, so that first and last chunk suffice
 * (block.c). */
typedef struct {
    sim_time duration; /* of a chunk */
    uint8_t server, other_servers;
} sim_flow_phase;

typedef struct {
    int64_t chunks;
    size_t n_phases;
    const sim_flow_phase *phase;
} sim_flow;

/* One operator, or one chunk of a collective in one phase, or a whole flow. */
typedef struct {
    sim_time duration;
    int16_t dep[WL_MAX_DEPS]; /* value slots */
    int16_t out;              /* value slot written */
    int16_t name;             /* operator name, for timelines */
    int16_t flow;             /* SIM_FLOW: number of the flow */
    int16_t count;            /* chunks on end; each writes the next slot, and reads the next where
                                 dep[0] == out */
    uint8_t n_deps;
    uint8_t server; /* 0 compute, 1 + dimension, SIM_NO_SERVER: a join of its inputs, or SIM_FLOW */
    uint8_t other_servers; /* further dimensions occupied (bit set) */
    bool gated;            /* weight gradient that waits for the reduction before last */
} sim_op;

/* Value slots that every pass has; the rest are operators and chunks. */
enum { SIM_SLOT_START, SIM_SLOT_INPUT, SIM_SLOT_WEIGHTS, SIM_SLOT_FIRST };

/* A pass lowered in its context. */
typedef struct {
    const sim_op *op;
    size_t n;
    size_t n_slots, n_dims;
    size_t n_chunks; /* operations, chunks on end each for one */
    const sim_flow *flow;
    /* Axis that made the slot (compute results: SIM_WAIT_CAUSES), with SIM_OF_INPUT for collectives
     * that wait for the input of the block. */
    const uint8_t *slot_cause;
    int16_t output;   /* slot of the block's output */
    int16_t gathered; /* slot of the prefetched weights; -1 none */
    uint8_t prefetch; /* blocks they are ahead; 0: gathered just in time */
    int16_t reduced;  /* slot of the reductions run here; -1 none */
    int16_t sent;     /* slot of the boundary transfer; -1 none */
    int16_t left;     /* slot of what it waits for, where compute waits for the transfer; -1 none */
    /* Ops that read slot s: reader[reader_start[s] .. reader_start[s+1]); NULL under `program`. */
    const int32_t *reader_start, *reader;
    int32_t scheduling; /* sim_scheduling */
    sim_time compute;   /* sum of compute durations */
    int64_t sent_bytes;
    double total_s; /* sum of all durations, for the overflow check */
} sim_lowered;

/* When the output of a pass was there, and when the next stage had it. */
typedef struct {
    sim_time output, sent;
} sim_exit;

/* Runs a lowered pass from *state and adds to *account; `leave` is relative to its start.  Returns
 * how long it took until the end of its last compute operation.  `times` holds n_slots + 2 n_chunks
 * + 2 values and is left with the end of every slot. */
sim_time sim__block_run(const sim_lowered *pass, sim_state *state, sim_account *account,
                        sim_exit *leave, sim_time *times);

/* The same when each dimension picks among the operations that wait for it: `fifo` the one that
 * came first, `lifo` the one that came last, `smallest` the shortest.  Event-driven; not monotone
 * in the durations, so that only repetition, not jumps, may shorten it.  Operations of a block
 * compete with each other; what is left of the block before is served first.  `room` holds
 * sim__events_bytes(pass) bytes.  O(operations * waiting). */
sim_time sim__block_run_events(const sim_lowered *pass, sim_state *state, sim_account *account,
                               sim_exit *leave, sim_time *times, void *room);
size_t sim__events_bytes(const sim_lowered *pass);

/* Shared by both: the state after a pass that took `compute`, from the slots' times. */
void sim__block_leave(const sim_lowered *pass, sim_time compute, sim_time busy_until,
                      const sim_time *times, sim_state *state, sim_exit *leave);
/* Latest of an operation's inputs, and which slot that is. */
sim_time sim__op_arrival(const sim_op *op, const sim_time *times, int *slot);
/* Books a wait of compute from `from` to `until` on what arrived last (slot, or SIM_SLOT_REDUCED);
 * where that is a collective of the awaited input, the time until the input came is the input's. */
enum { SIM_SLOT_REDUCED = -1 };
void sim__book_wait(const sim_lowered *pass, const sim_state *state, sim_time from, sim_time until,
                    int slot, sim_account *account);

struct sim_job;
struct sim_context;

/* Who is told, stage by stage, in program order, of what an unrolled run does (export). */
typedef struct {
    void *context;
    /* `n` equal passes in a row. */
    cs_status (*passes)(void *context, const struct sim_job *job, size_t stage,
                        const struct sim_context *pass, int64_t n, cs_error *err);
    /* The next passes belong to this action, which first takes a value from another stage when
     * `receives`. */
    cs_status (*action)(void *context, const struct sim_job *job, size_t stage,
                        const sim_action *action, bool receives, cs_error *err);
} sim_recorder;

/* Stage of a slower NPU, from 0, and what it has. */
typedef struct {
    size_t stage;
    const sim_device *device;
    const sim_network *network;
} sim_slow;

/* What the engine is to run. */
typedef struct sim_job {
    const wl_program *program;
    const wl_config *config;
    const sim_network *network;
    const sim_mesh *mesh;
    sim_order order;
    const sim_device *device;
    sim_route_cache *routes;
    const sim_schedule *schedule;
    bool inference;       /* forward passes only */
    bool serial;          /* one operation at a time; needs config->prefetch 0 */
    bool p2p_waits;       /* a stage waits for what it sends */
    const sim_slow *slow; /* NULL: none */
    bool unrolled;
    sim_timeline_fn timeline; /* NULL: none; needs unrolled */
    void *timeline_context;
    const sim_recorder *recorder; /* NULL: none; needs unrolled */
} sim_job;

typedef struct {
    sim_time latency;
    size_t last_stage;         /* the one that ends last, lowest on ties */
    sim_account account;       /* of that stage; wait[SIM_WAIT_REMOTE] is split in the next two */
    sim_time bubble, boundary; /* waits for another stage's work, and for its transfer */
    sim_time tail;             /* exposed after the last compute operation, */
    int64_t tail_axis;         /* on dp, or in inference on what made the output */
} sim_engine_result;

typedef struct sim_engine sim_engine;
sim_engine *sim__engine_create(void); /* NULL when out of memory */
void sim__engine_destroy(sim_engine *engine);

/* Simulates one iteration.  CS_EINVAL when a collective cannot run on its network or the time does
 * not fit.  O(distinct states * operations of a block + actions). */
CS_MUST_USE cs_status sim__engine_run(sim_engine *engine, const sim_job *job,
                                      sim_engine_result *out, cs_error *err);

#endif
