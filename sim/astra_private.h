/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What the files of model `astra` share: the phases of a chunk, message delays, the event core. */
#ifndef SIM_ASTRA_PRIVATE_H
#define SIM_ASTRA_PRIVATE_H

#include "sim/astra.h"

#define SIM__ASTRA_MAX_PHASES (2 * SIM_ASTRA_MAX_DIMS)
#define SIM__ASTRA_MAX_QUEUES 16
/* Fixed endpoint delay of collectives over a group smaller than the machine, ns. */
#define SIM__ASTRA_GROUP_DELAY_NS 10
/* Times beyond this (146 years) are refused, so that sums of them cannot overflow. */
#define SIM__ASTRA_MAX_NS (INT64_MAX / 2)

/* Which queues of a dimension a phase may use when there are several. */
typedef enum { SIM__ANY_QUEUE, SIM__FIRST_QUEUES, SIM__LAST_QUEUES, SIM__N_QUEUE_RULES } sim__rule;

/* One phase of a chunk. */
typedef struct {
    wl_collective type;
    uint8_t level;      /* dimension whose queues it takes */
    uint8_t queue_rule; /* sim__rule */
    bool listed;        /* members are the ranks of a group, not a dimension */
    int64_t n, stride;  /* members and the distance of their ids */
    int64_t size;       /* input bytes */
    const sim_astra_algorithm *algorithm;
} sim__astra_phase;

typedef struct {
    int64_t chunk_bytes, n_chunks;
    int64_t endpoint_delay_ns;
    int64_t bus_bytes; /* bytes as NCCL states them: all-gather by its output */
    int64_t members;
    bool allow_incomplete;
    size_t n_phases;
    sim__astra_phase phase[SIM__ASTRA_MAX_PHASES];
} sim__astra_plan;

/* Chunks and phases of an operation; 0 phases for a single NPU.  O(dims). */
CS_MUST_USE cs_status sim__astra_plan_make(const sim_astra *astra, const sim_astra_op *op,
                                           sim__astra_plan *out, cs_error *err);

/* Streams of one queue that may run at a time. */
int64_t sim__astra_slots(const sim_astra_system *system);

/* Delay of a message over `hops` links of a dimension without contention, ns. */
int64_t sim__astra_delay(const sim_astra_dim *dim, int64_t hops, int64_t bytes);
/* Hops between two members `shift` apart in a dimension. */
int64_t sim__astra_hops(const sim_astra_dim *dim, int64_t shift);
/* Delay from NPU to NPU: only the lowest dimension in which they differ counts. O(dims). */
int64_t sim__astra_pair_delay(const sim_astra_network *net, int64_t from, int64_t to,
                              int64_t bytes);
/* Lowest dimension in which the ids differ. */
size_t sim__astra_pair_dim(const sim_astra_network *net, int64_t from, int64_t to);
/* Reduction of a message: one write and two reads of the local memory, ns. */
int64_t sim__astra_reduction(const sim_astra_system *system, int64_t bytes);

/* Rotating choice of queues, one per NPU. */
typedef struct {
    uint8_t next[SIM__N_QUEUE_RULES][SIM_ASTRA_MAX_DIMS];
} sim__astra_queues;
/* Queue for the next phase of a level; *reversed tells that rings turn the other way. */
size_t sim__astra_queue_take(const sim_astra_system *system, sim__astra_queues *queues,
                             const sim__astra_phase *phase, bool *reversed);

/* ---- one message sequence, as each algorithm makes it ---- */

/* Shape of an algorithm's packet sequence on one NPU; the k-th packet is determined by it. */
typedef struct {
    int64_t n;            /* members */
    int64_t sends;        /* messages of one NPU */
    int64_t window;       /* packets kept going */
    int64_t first, later; /* packets of a round that start it, and that follow */
    int64_t bytes;        /* of ring and direct messages */
    int64_t half;         /* direct all-reduce: messages of each half; 0 for others */
    bool reduces;         /* packets of odd rounds are reduced */
    bool all_reduce;
} sim__astra_sequence;

sim__astra_sequence sim__astra_sequence_make(const sim__astra_phase *phase);
/* Whether the k-th packet is reduced before it is sent on. */
bool sim__astra_is_reduced(const sim__astra_sequence *seq, int64_t k);
/* Bytes of the k-th message, and the signed distance of its receiver for the member `index`. */
int64_t sim__astra_message_bytes(const sim__astra_phase *phase, const sim__astra_sequence *seq,
                                 int64_t k);
int64_t sim__astra_message_shift(const sim__astra_phase *phase, const sim__astra_sequence *seq,
                                 int64_t k, int64_t index);

/* ---- the three ways to simulate a plan ---- */

/* All NPUs alike: closed-form phases through a flow shop. */
bool sim__astra_is_symmetric(const sim_astra *astra, const sim_astra_op *op,
                             const sim__astra_plan *plan);
CS_MUST_USE cs_status sim__astra_flow(const sim_astra *astra, const sim__astra_plan *plan,
                                      sim_astra_result *out, cs_error *err);

/* Flat ring of a group, back end unaware: start_ns and end_ns of each member, in list order. */
CS_MUST_USE cs_status sim__astra_ring_group(const sim_astra *astra, const sim_astra_op *op,
                                            const sim__astra_plan *plan, const int64_t *start_ns,
                                            int64_t *end_ns, cs_error *err);

/* Message by message. end_ns: one value a member. */
CS_MUST_USE cs_status sim__astra_events(const sim_astra *astra, const sim_astra_op *op,
                                        const sim__astra_plan *plan, sim_astra_result *out,
                                        int64_t *end_ns, cs_error *err);

#endif
