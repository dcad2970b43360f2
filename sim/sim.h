/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From a configuration to a number: durations (roofline, collectives), block engine and pipeline
 * schedule, memory, cost.  sim knows no agent. */
#ifndef SIM_H
#define SIM_H

#include "psa/psa.h"
#include "sim/network.h"

typedef int64_t sim_time; /* picoseconds; 106 days */
#define SIM_TIME_MAX (INT64_MAX / 4)
/* The one rounding function; CS_EINVAL when the time does not fit (negative, not finite, too long).
 */
CS_MUST_USE cs_status sim_time_from_s(double seconds, sim_time *out, cs_error *err);
#define SIM_S(t) ((double)(t)*1e-12)

/* The accelerator.  Fields "compute.*". */
typedef struct {
    double peak;                     /* FLOP/s, 16-bit */
    double peak_fp32, peak_fp8;      /* 0: peak/2, peak*2 */
    double memory_bandwidth;         /* B/s */
    double memory_capacity;          /* bytes */
    double efficiency;               /* share of peak a GEMM reaches, default 1 */
    double launch_overhead;          /* s per kernel, default 0 */
    double host_bandwidth;           /* B/s to host memory (offload), 0: none */
    double power_active, power_idle; /* W, NAN: absent */
    double link_energy;              /* J/byte, NAN: absent */
    double price;                    /* dollars, NAN: absent */
    double interference; /* share of compute and memory bandwidth a running collective takes */
    double tp_overlap;   /* share of a GEMM that runs beside its tensor parallel collective */
    double jitter;       /* relative deviation of the NPUs' compute times */
} sim_device;

/* What may run beside what, and one NPU that is slower than the others. */
typedef struct {
    int32_t overlap;     /* 0: one operation at a time; the caller sets prefetch to 0 too */
    int32_t p2p_overlap; /* 0: a stage waits until its value has reached the next one */
    int64_t slow_stage;  /* from 1; 0: none.  A synchronous stage goes at its slowest NPU's pace */
    int64_t decode_tp, decode_pp;   /* degrees of a pool that decodes; 0: those of the others */
    double slow_factor;             /* share of peak and memory bandwidth that NPU has */
    double slow_link[PSA_MAX_DIMS]; /* share of its bandwidth into each dimension */
} sim_behaviour;

/* A whole configuration.  Plain data: may be copied and compared by its fields.  Everything a PSA
 * can name is a field of sim_tables. */
typedef struct {
    wl_config workload;
    int32_t placement; /* sim_order */
    int32_t pad_;
    struct {
        int32_t topology[PSA_MAX_DIMS];
        int64_t npus[PSA_MAX_DIMS];
        double bandwidth[PSA_MAX_DIMS];
        double latency[PSA_MAX_DIMS];
        double oversubscription[PSA_MAX_DIMS];
        int32_t in_network_reduction[PSA_MAX_DIMS];
    } network;
    struct {
        int32_t algorithm[PSA_MAX_DIMS];
        int64_t chunks;
        int32_t scheduling;
        int32_t multi_dim;
        double endpoint_delay;
    } collective;
    sim_device compute;
    sim_behaviour behaviour;
} sim_config;

/* The network and collective settings of a configuration with `n_dims` dimensions. */
void sim_config_network(const sim_config *config, size_t n_dims, sim_network *out);

/* Degrees of a pool that decodes: its own, or those of the others where it has none.  Whether it
 * has any of its own. */
bool sim_decode_degrees(const sim_config *config, int64_t *tp, int64_t *pp);

/* The tables psa needs: fields of sim_config, implied rules, result names. */
const psa_tables *sim_tables(void);

typedef enum { SIM_FEASIBLE, SIM_OUT_OF_MEMORY, SIM_OVER_LIMIT, SIM_N_VERDICTS } sim_verdict;
extern const char *const sim_verdict_names[]; /* "feasible", "out_of_memory", "over_limit" */

#define SIM_MAX_WORKLOADS 16

/* Result of one design; times in seconds are exact picosecond integers times 1e-12. */
typedef struct {
    double latency_s; /* aggregated over workloads: the value objectives see */
    double compute_s, exposed_s, hidden_s, bubble_s, idle_s;
    double exposed_by_axis_s[WL_N_AXES]; /* ep part of the data group is booked on its own axis */
    double peak_memory_bytes;
    wl_memory memory; /* of the stage with the highest peak */
    size_t memory_stage;
    double bandwidth_per_npu_bytes_per_s;
    double network_cost_usd; /* NAN: no price */
    double mfu, tokens_per_s, tokens_per_s_per_npu;
    double model_flops, hardware_flops, redundant_flops, recompute_flops;
    double sent_bytes;     /* by one NPU into its network dimensions */
    double energy_j;       /* NAN: not given */
    double ttft_s, tpot_s; /* inference; NAN in training */
    double workload_latency_s[SIM_MAX_WORKLOADS];
    double npus;
    double memory_excess; /* log(peak / capacity) when over, 0 otherwise */
    sim_verdict verdict;
} sim_result;

/* Models, workloads and constants of one PSA, ready to evaluate.  Immutable after creation: shared
 * by threads. */
typedef struct sim_model sim_model;
/* Loads the models named in the schema, binds their facts to it (psa_schema_bind), keeps what the
 * simulator needs.  Call before psa_space_create. */
CS_MUST_USE cs_status sim_model_create(psa_schema *schema, sim_model **out, cs_error *err);
void sim_model_destroy(sim_model *model); /* NULL is a no-op */
const wl_workload *sim_model_workload(const sim_model *model, size_t i);
size_t sim_model_n_workloads(const sim_model *model);

/* Per-thread memory: arenas, tables of model terms (bounded), route cache. */
typedef struct sim_scratch sim_scratch;
sim_scratch *sim_scratch_create(const sim_model *model);
void sim_scratch_destroy(sim_scratch *scratch); /* NULL is a no-op */

/* Simulates one valid configuration.  An infeasible design is a result (verdict), CS_EINVAL means
 * the configuration breaks a rule.  No allocation once the tables are warm. */
CS_MUST_USE cs_status sim_evaluate(const sim_model *model, const sim_config *config,
                                   sim_scratch *scratch, sim_result *out, cs_error *err);

/* Memory and cost alone (no engine run): fills memory, verdict, cost, bandwidth. ~50 ns when the
 * split is in the table. */
CS_MUST_USE cs_status sim_precheck(const sim_model *model, const sim_config *config,
                                   sim_scratch *scratch, sim_result *out, cs_error *err);

/* Same as sim_evaluate, but every layer and micro-batch operator by operator: the test's oracle. */
CS_MUST_USE cs_status sim_evaluate_unrolled(const sim_model *model, const sim_config *config,
                                            sim_scratch *scratch, sim_result *out, cs_error *err);

/* One interval of a timeline: stage, thread (0 compute, 1.. dimensions), label, start, length. */
typedef struct {
    int32_t stage, thread;
    const char *name;
    sim_time start, length;
    double bytes; /* SIM_THREAD_MEMORY: in use by the stage from `start` on */
} sim_span_event;
enum { SIM_THREAD_MEMORY = -1 }; /* a sample, not an interval */
typedef void (*sim_timeline_fn)(void *context, const sim_span_event *event);
typedef struct {
    sim_timeline_fn fn;
    void *context;
} sim_observer;
/* Runs unrolled and reports every interval of the workload `w`, and at the begin and end of every
 * action the memory of its stage, whose maximum is the peak of the memory model.  Of requests: the
 * prefill and the first 8 steps.  Interference is not shown: it is no interval of its own. */
CS_MUST_USE cs_status sim_timeline(const sim_model *model, size_t w, const sim_config *config,
                                   sim_scratch *scratch, const sim_observer *observer,
                                   cs_error *err);

#endif
