/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Model `astra`: what ASTRA-sim's analytical back ends compute, to the nanosecond, from ASTRA-sim's
 * own input files.  It keeps ASTRA-sim's conventions: one "GB/s" is 2^30 B/s of one directed link,
 * every message is truncated to whole nanoseconds, the size of an all-gather is the shard of one
 * NPU, a group smaller than the machine runs a flat ring.  It proves what this program does; it is
 * no statement about real networks (DESIGN 5.3).
 *
 * Source: Won et al., "ASTRA-sim2.0", ISPASS 2023, and the behaviour of its analytical back ends.
 */
#ifndef SIM_ASTRA_H
#define SIM_ASTRA_H

#include "sim/network.h"

#define SIM_ASTRA_MAX_DIMS     16
#define SIM_ASTRA_MAX_WARNINGS 32
#define SIM_ASTRA_MAX_NPUS     (1 << 24)
#define SIM_ASTRA_N_TYPES      4 /* all-reduce, reduce-scatter, all-gather, all-to-all */

/* One dimension of network.yml, in the units of that file. */
typedef struct {
    int32_t topology; /* SIM_RING, SIM_FULLY_CONNECTED, SIM_SWITCH */
    int64_t n;
    double bandwidth_gib_per_s; /* of one directed link */
    double latency_ns;          /* per hop */
} sim_astra_dim;

typedef struct {
    size_t n_dims;
    int64_t npus;
    sim_astra_dim dim[SIM_ASTRA_MAX_DIMS];
} sim_astra_network;

/* Algorithm of one dimension: "ring", "direct", "direct4", "oneRing", ... */
typedef struct {
    int32_t algorithm; /* sim_algorithm */
    bool one;          /* one*: a single flat dimension over the whole machine */
    int64_t window;    /* direct: messages outstanding; 0: all at once */
} sim_astra_algorithm;

/* system.json.  Lists are indexed by wl_collective (the first SIM_ASTRA_N_TYPES). */
typedef struct {
    sim_astra_algorithm algorithm[SIM_ASTRA_N_TYPES][SIM_ASTRA_MAX_DIMS];
    size_t n_algorithms[SIM_ASTRA_N_TYPES]; /* 0: the key is absent */
    char custom[SIM_ASTRA_N_TYPES][256];    /* "<type>-implementation-custom" prefix, "" none */
    bool local_bw_aware;    /* "collective-optimization": all-reduce as RS, AR, AG */
    int64_t splits;         /* "preferred-dataset-splits" */
    int64_t active_chunks;  /* "active-chunks-per-dimension" */
    int64_t queues_per_dim; /* ASTRA-sim's command line; 1 by default */
    int64_t endpoint_delay_ns;
    double local_mem_bytes_per_s; /* 0: reductions are free */
    bool roofline;
    bool replay_only;
    double peak_flops; /* FLOP/s, 0: not given */
} sim_astra_system;

/* Both files.  Plain data, may be copied; nothing to release. */
typedef struct {
    sim_astra_network network;
    sim_astra_system system;
    size_t n_warnings;
    char warning[SIM_ASTRA_MAX_WARNINGS][256]; /* keys without effect, "path:line:column: ..." */
} sim_astra;

/* Reads network.yml and system.json as ASTRA-sim's users have them.  CS_ENOENT, CS_EPARSE,
 * CS_ESCHEMA with the position: unknown topology or algorithm, lists that do not fit the
 * dimensions, values out of range. */
CS_MUST_USE cs_status sim_astra_load(const char *network_path, const char *system_path,
                                     sim_astra *out, cs_error *err);
/* The two halves, e.g. when a network has several systems.  Warnings are appended to *out. */
CS_MUST_USE cs_status sim_astra_network_load(const char *path, sim_astra *out, cs_error *err);
CS_MUST_USE cs_status sim_astra_system_load(const char *path, sim_astra *out, cs_error *err);

/* The same links as a network of model contention: bandwidth becomes the egress of one NPU, the
 * algorithm of a dimension that of all-reduce. CS_EINVAL for more than SIM_MAX_DIMS dimensions. */
CS_MUST_USE cs_status sim_astra_as_network(const sim_astra *astra, sim_network *out, cs_error *err);

/* Parses "ring", "direct4", "oneRing", "halvingDoubling", "doubleBinaryTree"; false for others. */
bool sim_astra_algorithm_parse(const char *text, sim_astra_algorithm *out);
/* Parses "Ring", "FullyConnected", "Switch" (and lower case); false for others. */
bool sim_astra_topology_parse(const char *text, int32_t *out);
/* Parses "ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER", "ALL_TO_ALL" (and the lower-case names of
 * wl_collective_names); false for others. */
bool sim_astra_type_parse(const char *text, wl_collective *out);

typedef enum {
    SIM_ASTRA_UNAWARE, /* links shared without loss */
    SIM_ASTRA_AWARE    /* a FIFO per directed link, whole messages stored and forwarded */
} sim_astra_backend;

/* One collective, alone in the machine. */
typedef struct {
    wl_collective type;
    int64_t bytes;        /* ASTRA-sim's comm_size: the input buffer of one NPU */
    const int64_t *ranks; /* members of a sub-group in ring order; NULL: the whole machine */
    size_t n_ranks;
    int64_t splits;    /* chunks; 0: as the system says */
    uint32_t involved; /* of the whole machine: bit set of the dimensions it runs on; 0: all */
    sim_astra_backend backend;
    /* Also run the all-gathers by halving-doubling over 3 * 2^k NPUs that ASTRA-sim ends after
     * floor(log2 n) steps, with a time although not every NPU has received every shard.  For
     * comparisons; refused otherwise. */
    bool allow_incomplete;
} sim_astra_op;

typedef struct {
    int64_t time_ns;     /* of the NPU that ends last */
    int64_t min_time_ns; /* of the NPU that ends first */
    int64_t chunks, chunk_bytes;
    size_t n_dims;
    double sent_bytes[SIM_ASTRA_MAX_DIMS];       /* of the NPU that sends most into the dimension */
    double algbw_bytes_per_s, busbw_bytes_per_s; /* as NCCL defines them; 0 when no time passes */
} sim_astra_result;

/* Simulates it.  npu_time_ns, when not NULL, receives the time of every member (n_ranks or npus
 * values).  CS_EINVAL for what ASTRA-sim cannot run: halving-doubling or a double binary tree over
 * a number of NPUs that is no power of two, halving-doubling all-to-all, a type without an
 * algorithm; and for ranks out of range or repeated.
 * Cost: O(chunks * phases) when all NPUs are alike (back end unaware; ring, direct,
 * halvingDoubling), otherwise the number of messages times its logarithm. */
CS_MUST_USE cs_status sim_astra_collective(const sim_astra *astra, const sim_astra_op *op,
                                           sim_astra_result *out, int64_t *npu_time_ns,
                                           cs_error *err);

/* ---- a table of collectives ---- */

/* A CSV file with the columns collective, bytes, topology, npus_count, bandwidth_GBps, latency_ns,
 * algorithm, splits, and optionally backend (unaware, aware, aware_md), active_chunks,
 * collective_optimization, scheduling_policy, endpoint_delay, local_mem_bw_GBps, queues_per_dim and
 * others, which are kept but not read.  Lists over dimensions are separated by ';', '|' or blanks.
 */
typedef struct sim_astra_cases sim_astra_cases;

/* Reads the table (at most 64 MiB).  The caller owns *out. */
CS_MUST_USE cs_status sim_astra_cases_load(const char *path, sim_astra_cases **out, cs_error *err);
void sim_astra_cases_destroy(sim_astra_cases *cases); /* NULL is a no-op */
size_t sim_astra_cases_count(const sim_astra_cases *cases);
/* The header line and the i-th row as they stand in the file; borrowed. */
const char *sim_astra_cases_header(const sim_astra_cases *cases);
const char *sim_astra_cases_row(const sim_astra_cases *cases, size_t i);
/* Field of row i by column name, NULL when there is no such column; borrowed. */
const char *sim_astra_cases_field(const sim_astra_cases *cases, size_t i, const char *column);
/* Simulates row i, with allow_incomplete.  Errors begin with "path:line: ". */
CS_MUST_USE cs_status sim_astra_cases_predict(const sim_astra_cases *cases, size_t i,
                                              sim_astra_result *out, cs_error *err);

#endif
