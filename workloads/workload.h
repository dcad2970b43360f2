/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Model files -> symbolic tensor graph -> the graph of one block on one NPU under a split, with the
 * collectives that arise where producer and consumer layouts differ (DESIGN 5.1), its FLOPs, bytes
 * and memory.  No times here: sim/ turns items into durations. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include "common/doc.h"

/* ---- mesh axes ---- */

/* Coordinates of an NPU, as in a placement.  WL_DP here is the outer part dp/ep: the data-parallel
 * group of size dp is the product of EP and DP. */
typedef enum { WL_TP, WL_SP, WL_EP, WL_DP, WL_PP, WL_N_AXES } wl_axis;
typedef uint8_t wl_group; /* set of axes: 1 << axis */
#define WL_GROUP(axis) ((wl_group)(1u << (axis)))
#define WL_GROUP_DATA  ((wl_group)(WL_GROUP(WL_EP) | WL_GROUP(WL_DP))) /* the dp group */

extern const char *const wl_axis_names[]; /* "tp","sp","ep","dp","pp", NULL */

/* ---- strategy: the workload part of a configuration ---- */

typedef enum {
    WL_SHARD_NONE,
    WL_SHARD_OPTIMIZER,
    WL_SHARD_GRADIENTS,
    WL_SHARD_WEIGHTS
} wl_sharding;
typedef enum { WL_RECOMPUTE_NONE, WL_RECOMPUTE_SELECTIVE, WL_RECOMPUTE_FULL } wl_recompute;
typedef enum { WL_BF16, WL_FP16, WL_FP32, WL_FP8 } wl_precision;
typedef enum { WL_ATTENTION_FLASH, WL_ATTENTION_GPT2022 } wl_attention_kind;
typedef enum { WL_CP_GATHER, WL_CP_RING } wl_cp_form;
/* WL_SERVE is a prefill and then `output` decode steps; a program is built for one of the others.
 */
typedef enum { WL_TRAIN, WL_PREFILL, WL_DECODE, WL_SERVE } wl_mode;
typedef enum { WL_1F1B, WL_GPIPE, WL_INTERLEAVED, WL_ZB_H1, WL_ZB_H2 } wl_schedule;
typedef enum {
    WL_OFFLOAD_NONE,
    WL_OFFLOAD_OPTIMIZER,
    WL_OFFLOAD_WEIGHTS,
    WL_OFFLOAD_ACTIVATIONS
} wl_offload;

/* Fields "workload.*".  Integers are int64_t, enumerators int32_t, as psa stores them. */
typedef struct {
    int64_t dp, tp, sp, ep, pp;
    int64_t micro_batch;     /* sequences per NPU group and micro-batch */
    int64_t virtual_stages;  /* v of the interleaved schedule, 1 otherwise */
    int64_t recompute_every; /* full recompute of every k-th layer (1: all) */
    int64_t hsdp_shard;      /* NPUs of the data group inside which state is sharded; 0: all */
    int64_t prefetch;        /* blocks gathered ahead, 1 by default */
    double capacity_factor;  /* of experts, default 1 */
    double imbalance;        /* busiest expert's load over the mean, default 1 */
    int32_t tp_sequence;     /* 0/1 */
    int32_t sharding;        /* wl_sharding */
    int32_t recompute;       /* wl_recompute */
    int32_t schedule;        /* wl_schedule */
    int32_t precision;       /* wl_precision */
    int32_t gradients_fp32;  /* 0/1 */
    int32_t attention;       /* wl_attention_kind */
    int32_t cp_form;         /* wl_cp_form */
    int32_t cp_balanced;     /* 0/1 */
    int32_t reshard;         /* 1: gathered weights are dropped after each pass */
    int32_t offload;         /* wl_offload */
} wl_config;

/* ---- models ---- */

typedef struct wl_model wl_model;

/* Reads a model file, or a Hugging Face config.json (told by its content).  CS_ESCHEMA with the
 * position for operators whose letters do not fit.  The caller owns *out.
 *
 * A model file has `model: 1`, `name:` and
 *   dims:    name: {role: R, size: N}; R is batch, sequence, capacity (no size: they come from the
 *            workload), hidden, heads, kv_heads, head_dim, ffn, vocabulary, experts (with top_k),
 *            or none.  Behaviour follows from roles and operators, never from names.
 *   blocks:  name: with `input:` {tensor: dims} (or `data:` for what needs no gradient),
 *            `parameters:` {tensor: dims, or {tie: block.parameter}}, `ops:`, `output:` (default:
 *            the last operator).
 *   ops:     {name: q, einsum: "b s d, d h e -> b s h e", in: [x, wq, bias]} or
 *            {name: a, kernel: K, in: [activations..., parameters...]}; the name is the result's.
 *            Kernels (workloads/kernels.c): attention (q, k, v; `causal:`, `cache:`), rms_norm,
 *            layer_norm, activation, gated_activation, multiply, add, position, embedding,
 *            cross_entropy, router, dispatch, combine, pool, convolution, scan, interaction; those
 *            whose result has other dimensions take `shape:`.
 *   stack:   blocks in order; a counted entry {block: layer, count: 96} is a run of layers, which
 *            spread over pipeline stages; what stands before is on the first stage, after on the
 *            last.
 * Sizes that experts see: capacity = tokens * top_k / experts. */
CS_MUST_USE cs_status wl_model_load(const char *path, wl_model **out, cs_error *err);
/* The same from `length` bytes of text; `name` stands for the file in messages. */
CS_MUST_USE cs_status wl_model_parse(const char *text, size_t length, const char *name,
                                     wl_model **out, cs_error *err);
void wl_model_destroy(wl_model *model); /* NULL is a no-op */

/* A transformer by its shape, for callers that know sizes only (measured runs).  Zeros: kv_heads as
 * heads, head_dim hidden/heads, ffn 4 * hidden, no positions, no experts; expert_ffn as ffn. */
typedef struct {
    const char *name;
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
    int64_t positions; /* learned ones; 0: none */
    int64_t experts, top_k, expert_ffn, shared_ffn, dense_layers;
    bool gated;      /* three matrices in the feed-forward network, else two */
    bool layer_norm; /* else root mean square */
    bool bias;       /* on every matrix */
    bool tied;       /* logits share the embedding's table */
} wl_shape;
/* The caller owns *out.  CS_EINVAL for sizes that make no transformer. */
CS_MUST_USE cs_status wl_model_from_shape(const wl_shape *shape, wl_model **out, cs_error *err);
const char *wl_model_name(const wl_model *model);
uint64_t wl_model_hash(const wl_model *model);

/* Exact integers of the model; 0 where it has none. */
typedef struct {
    int64_t parameters, active_parameters;
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, experts, top_k;
} wl_facts;
wl_facts wl_model_facts(const wl_model *model);

/* One line of `cosmic-search model`: an operator of a block, for a batch and sequence, unsplit. */
typedef struct {
    const char *block, *op, *kind;        /* kind: "einsum" or the kernel's name */
    int64_t count;                        /* how many times the block occurs */
    int64_t parameters;                   /* of one occurrence */
    double flops_forward, flops_backward; /* one occurrence, causal attention in full */
    double flops_causal_saving;           /* of forward + backward: what causal halving takes off */
    double bytes_forward, bytes_backward;
} wl_op_summary;
/* Lines in program order, arena memory. */
typedef struct {
    wl_op_summary *line;
    size_t n;
} wl_summary;
CS_MUST_USE cs_status wl_model_summary(const wl_model *model, int64_t batch, int64_t sequence,
                                       cs_arena *arena, wl_summary *out, cs_error *err);

/* ---- one workload entry of a PSA ---- */

typedef struct {
    const wl_model *model; /* borrowed */
    wl_mode mode;
    int64_t global_batch,
        sequence;          /* sequence: training and prefill length; serve: of the prompt */
    int64_t context;       /* decode: tokens in the KV cache before the first step */
    int64_t output;        /* decode, serve: steps, each a token of every sequence (k) */
    int64_t npus;          /* size of the pool it runs on; 0: the whole machine */
    double requests_per_s; /* serve: arriving load; 0: one batch on its own */
    double weight;
} wl_workload;

/* Reads the keys of a PSA's workload entry; `model` already loaded: model, mode (train, prefill,
 * decode, serve), global_batch, sequence, context, output, npus, requests_per_s, weight. */
CS_MUST_USE cs_status wl_workload_parse(const cs_doc *doc, const cs_node *node,
                                        const wl_model *model, wl_workload *out, cs_error *err);

/* ---- the sharded program of one NPU ---- */

typedef enum {
    WL_ALL_REDUCE,
    WL_REDUCE_SCATTER,
    WL_ALL_GATHER,
    WL_ALL_TO_ALL,
    WL_BROADCAST,
    WL_REDUCE,
    WL_SCATTER,
    WL_GATHER,
    WL_N_COLLECTIVES
} wl_collective;
extern const char *const wl_collective_names[]; /* "all_reduce", ..., NULL */

typedef enum { WL_COMPUTE, WL_COMM } wl_item_kind;

#define WL_MAX_DEPS    6
#define WL_DEP_INPUT   (-1) /* the block's input value: activations, or the incoming gradient */
#define WL_DEP_WEIGHTS (-2) /* this block's gathered weights */

/* One operator or collective of a pass, in program order.  Deps are indices of earlier items of
 * the same pass or the negative constants. */
typedef struct {
    uint8_t kind; /* wl_item_kind */
    uint8_t n_deps;
    uint8_t precision;    /* wl_precision of the arithmetic (compute) */
    uint8_t collective;   /* wl_collective */
    wl_group group;       /* NPUs of the collective: product of these axes */
    uint8_t axis;         /* wl_axis its exposed time is booked on (dp for gradient reductions) */
    bool background;      /* nothing in its block waits for it: gradient reduction */
    bool weight_gradient; /* part of W when backward is split into B and W */
    bool overlapped;      /* ring-exchange of attention: runs beside item dep[0]'s consumer */
    int16_t dep[WL_MAX_DEPS];
    int16_t op;          /* index into wl_program.op_names */
    double flops;        /* hardware FLOPs of this NPU, causal halved */
    double memory_bytes; /* bytes read + written */
    double m, n, k;      /* GEMM shape (0: not a GEMM) */
    double bytes;        /* collective: whole tensor of the group, DESIGN 5.3 */
    double host_bytes;   /* moved over the link to host memory beside the item (offload)  */
    /* Collective on a part of the group only: `part` members, `part_stride` apart in NPU order (the
     * siblings do the same); 0: all members.  Hybrid sharding and replicated K, V need it. */
    int32_t part, part_stride;
} wl_item;

typedef struct {
    wl_item *item;
    size_t n;
    int16_t output; /* item whose end makes the block's output (-1: the input itself) */
} wl_pass;

/* Gather of a block's weights (sharding: weights); one per distinct group (experts apart). */
typedef struct {
    wl_group group;
    double bytes;              /* whole tensor of the group: what one NPU holds when gathered */
    int32_t part, part_stride; /* as in wl_item */
} wl_gather;
#define WL_MAX_GATHERS 3

/* A kind of block.  Backward passes include the recomputation that the strategy asks for.  Where
 * gradients are reduced every micro-batch both backward variants do it; else only backward_last. */
typedef struct {
    const char *name;
    bool head; /* computes the loss: what it saves is booked as logits */
    wl_pass forward, backward, backward_last;
    wl_gather gather[WL_MAX_GATHERS];
    size_t n_gathers;
    /* Bytes of one micro-batch, on one NPU: */
    double saved_bytes;                             /* kept from forward to backward */
    double forward_peak_bytes, backward_peak_bytes; /* transient beyond saved */
    double gathered_bytes;                          /* gathered weights of the block */
} wl_block;

/* What one pipeline stage (one model chunk of it, with virtual stages) runs, in forward order. */
typedef struct {
    uint16_t block; /* index into wl_program.block */
    uint16_t count; /* consecutive occurrences */
} wl_segment;

/* Static memory of a stage on its fullest NPU, bytes. */
typedef struct {
    double weights, gradients, optimizer, kv_cache, communication;
    double padding;    /* included above: vocabulary and flat-shard padding */
    double offloaded;  /* moved to host memory */
    double parameters; /* parameters held by one NPU before sharding over data */
} wl_static_memory;

/* Activations and gathered weights of a stage's blocks, bytes on one NPU. */
typedef struct {
    double n;                          /* blocks */
    double saved, logits;              /* kept of one micro-batch; the latter by the head */
    double gathered, largest_gathered; /* of all blocks, of the largest */
    double transient;                  /* most that lives only inside one block: of */
    int32_t peak_block, peak_pass;     /* this block's forward (0) or backward (1) */
} wl_stage_blocks;

typedef struct {
    size_t n_chunks;               /* = virtual stages */
    const wl_segment *segment[16]; /* per chunk */
    size_t n_segments[16];
    wl_static_memory memory;
    wl_stage_blocks blocks;
    wl_pass update; /* optimizer step, its updated-parameter gathers (sharding
                       optimizer/gradients), tied-embedding reduction */
} wl_stage;

/* Exact totals of an iteration over all NPUs. */
typedef struct {
    double model_flops;        /* forward+backward, causal in full (the published convention) */
    double model_flops_causal; /* causal halved */
    double hardware_flops;     /* what NPUs execute: + recompute + redundant + flash recompute */
    double recompute_flops, redundant_flops;
    double flash_flops; /* part of recompute_flops: scores computed again by flash backward */
} wl_flops;

/* Everything the engine needs for one workload under one split. */
typedef struct {
    const wl_block *block;
    size_t n_blocks;
    const wl_stage *stage; /* pp of them; identical ones may share pointers */
    size_t n_stages;
    const char *const *op_names;
    int64_t micro_batches;
    double boundary_bytes; /* one micro-batch across a stage boundary, one direction, per NPU */
    double tokens;         /* of one iteration, all NPUs */
    wl_flops flops;
} wl_program;

/* Builds the program of a valid split in arena memory; pure: same input, same output.  CS_EINVAL
 * with one line per degree that does not divide its dimension, with the arithmetic.  `npus_per_...`
 * are not needed: the group sizes follow from the degrees.  Typical cost 50-200 us; callers keep
 * programs in a table keyed by wl_config. */
CS_MUST_USE cs_status wl_program_build(const wl_workload *workload, const wl_config *config,
                                       cs_arena *arena, wl_program **out, cs_error *err);

/* What many builds share: working memory, and the passes without their numbers, which are the same
 * for all splits that cut on the same axes.  One thread at a time. */
typedef struct wl_builder wl_builder;
/* Keeps up to about `limit_bytes` (4 MiB hold everything a search meets).  NULL when out of memory;
 * the caller owns it. */
wl_builder *wl_builder_create(size_t limit_bytes);
void wl_builder_destroy(wl_builder *builder); /* NULL is a no-op */
/* wl_program_build, to the last digit, at about a third of its cost once warm. */
CS_MUST_USE cs_status wl_builder_build(wl_builder *builder, const wl_workload *workload,
                                       const wl_config *config, cs_arena *arena, wl_program **out,
                                       cs_error *err);

/* Peak memory of one stage by part, bytes, given how many micro-batches (times chunks) are in
 * flight there: in_flight counts stage-chunks whose activations are held at the worst moment. */
typedef struct {
    double weights, gradients, optimizer, activations, gathered, communication, logits, kv_cache;
    double
        transient; /* live only inside one block: its gradients, gathered or recomputed tensors */
    double total;
    int32_t peak_block; /* index into wl_program.block: the peak is reached in its ... */
    int32_t peak_pass;  /* ... forward (0) or backward (1) */
} wl_memory;
wl_memory wl_stage_memory(const wl_program *program, const wl_config *config, size_t stage,
                          double in_flight);

#endif
