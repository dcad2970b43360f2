/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Evaluation of one design (private to sim/): phase.c runs a phase of a workload, inference.c says
 * which phases a request consists of, evaluate.c sums them up, observe.c shows them. */
#ifndef SIM_EVALUATE_H
#define SIM_EVALUATE_H

#include "sim/model_private.h"

/* One design on its way. */
typedef struct {
    const sim_model *model;
    const sim_config *config;
    sim_scratch *scratch;
    sim_network network;
    bool unrolled;
    sim_timeline_fn timeline;
    void *timeline_context;
    const sim_recorder *recorder;
    cs_error *err;
} sim__evaluation;

/* One run of the engine: a workload that trains, prefills, or decodes one token. */
typedef struct {
    wl_workload workload;
    wl_config split; /* dp is that of its pool */
    size_t key;      /* of its programs in the table */
    bool twice;      /* run two times on end, a micro-batch again when its first output is there */
} sim__phase;

/* What a run adds up to; seconds, bytes, FLOPs.  One array, so that runs can be summed. */
enum {
    SIM_SUM_LATENCY,
    SIM_SUM_COMPUTE,
    SIM_SUM_EXPOSED,
    SIM_SUM_HIDDEN,
    SIM_SUM_BUBBLE,
    SIM_SUM_AXIS,
    SIM_N_TIMES = SIM_SUM_AXIS + WL_N_AXES,
    SIM_SUM_SENT = SIM_N_TIMES,
    SIM_SUM_MODEL_FLOPS,
    SIM_SUM_HARDWARE_FLOPS,
    SIM_SUM_REDUNDANT_FLOPS,
    SIM_SUM_RECOMPUTE_FLOPS,
    SIM_SUM_TOKENS,
    SIM_SUM_OPERATORS, /* run on all stages; of requests only */
    SIM_N_SUMS
};
typedef struct {
    double v[SIM_N_SUMS];
} sim__sums;

/* NPUs of the machine. */
double sim__npus(const sim__evaluation *e);
/* Reads the network of a design; CS_EINVAL for degrees and pools that fit no machine. */
CS_MUST_USE cs_status sim__begin(sim__evaluation *e);

void sim__sums_add(sim__sums *total, const sim__sums *part, double times);

/* What a workload comes to. */
typedef struct {
    sim__sums sums;        /* of one iteration, or one batch of requests */
    double ttft_s, tpot_s; /* NAN: none */
    double idle_s;         /* waits for other requests */
    double transfer_s;     /* part of the latency: caches on the way to the pool that decodes */
    double overload;       /* log(load / what it can serve) when over, 0 otherwise */
    bool window;           /* FLOPs and tokens are the machine's during one request */
} sim__outcome;

/* A decode step on its own, and what it adds when it follows on one like it: with pipeline stages,
 * a micro-batch begins its next step when its own token is there. */
typedef struct {
    sim__sums alone, twice, added;
} sim__step;

/* Kinds of phases of a workload, for keys. */
typedef enum {
    SIM_PHASE_WHOLE,
    SIM_PHASE_PREFILL,
    SIM_PHASE_STEP, /* number: the step */
    SIM_PHASE_MEAN, /* number: micro-batches */
    SIM_PHASE_FIRST /* a prompt for each replica */
} sim__phase_kind;

/* Phase of workload i; CS_EINVAL where its pool is not a whole number of replicas. */
CS_MUST_USE cs_status sim__phase_make(const sim__evaluation *e, size_t i, sim__phase_kind kind,
                                      int64_t number, sim__phase *out);
/* Runs a phase. */
CS_MUST_USE cs_status sim__phase_run(const sim__evaluation *e, const sim__phase *phase,
                                     sim__sums *out);
/* Peak memory of the fullest stage in a phase, from the table where this split was seen. */
CS_MUST_USE cs_status sim__phase_memory(const sim__evaluation *e, const sim__phase *phase,
                                        sim_peak *out);

/* Prefill of a workload's whole batch, and step j >= 1 of its decoding. */
CS_MUST_USE cs_status sim__prefill_make(const sim__evaluation *e, size_t i, sim__phase *out);
CS_MUST_USE cs_status sim__step_make(const sim__evaluation *e, size_t i, int64_t j,
                                     sim__phase *out);

/* Runs a step; *phase is left as it was.  Twice the cost of a phase when there are stages. */
CS_MUST_USE cs_status sim__step_run(const sim__evaluation *e, sim__phase *phase, sim__step *out);

/* Requests instead of iterations (inference.c): runs workload i, whose mode is not train. */
CS_MUST_USE cs_status sim__serve(const sim__evaluation *e, size_t i, sim__outcome *out);
/* Its peak memory. */
CS_MUST_USE cs_status sim__serve_memory(const sim__evaluation *e, size_t i, sim_peak *out);

#endif
