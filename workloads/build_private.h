/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The state of one program build, shared inside workloads/.
 *
 * `plan` works out the numbers of every operator under a split over the four axes that cut tensors
 * (tp, sp, ep, dp); `forward` and `backward` walk the operators and let collectives arise from
 * layout differences (DESIGN 5.1), which gives the outline of a pass; `cost` fills in its numbers.
 */
#ifndef BUILD_PRIVATE_H
#define BUILD_PRIVATE_H

#include "workloads/workload_private.h"

/* Bytes of an element by use, by precision. */
typedef struct {
    double weight, activation, gemm, gradient, optimizer;
    uint8_t arithmetic, vector; /* wl_precision of GEMMs, of everything else */
} wl__bytes;

/* Numbers of one operator under the split, on one NPU where not said otherwise. */
typedef struct {
    const wl__op_layout *at;
    double divisor; /* product of the split factors */
    double flops;   /* forward, of all NPUs together without redundancy, causal in full, padded */
    double exact;   /* the same of the model: unpadded */
    double elements[WL__MAX_IN], out_elements;
    double bytes[WL__MAX_IN], out_bytes; /* read and written by the forward pass */
    double m, n, k;                      /* GEMM: rows, columns, contraction */
} wl__plan;

/* A tensor (or the gradient of one) in a certain layout at some point of a pass. */
typedef struct {
    wl__layout layout;
    int16_t tensor;
    int16_t converted, next; /* first value converted from it, next one of the same source; -1 */
    uint8_t n_deps;
    int16_t dep[WL_MAX_DEPS];
} wl__value;

/* Gradient buckets of a block: elements whose gradient is reduced over the same NPUs. */
typedef enum { WL__DENSE, WL__EXPERT, WL__N_BUCKETS } wl__bucket;

/* Parameters of a block on one NPU, in elements. */
typedef struct {
    double local[WL__N_BUCKETS];  /* held before sharding over data */
    double padded[WL__N_BUCKETS]; /* of these, vocabulary padding */
    double used[WL__N_BUCKETS];   /* to gather for a pass: with a tied table of the same stage */
    double tied;                  /* of the dense ones: shared by two blocks */
    double over_tp;               /* gradient is a partial sum over tp */
    double over_replicas;         /* likewise over the replicas of K, V heads */
    int32_t replicas;
} wl__parameters;

/* What an item reads and writes, in terms of the plan of its operator. */
typedef enum {
    WL__READ,     /* bytes of operand `at` */
    WL__WRITE,    /* bytes of the result */
    WL__MASK,     /* bytes of the result, read once more with a mask of one byte an element */
    WL__RESULT,   /* elements of the result */
    WL__SCORES,   /* scores of attention */
    WL__GRADIENT, /* bytes of the gradient of parameter operand `at` */
    WL__TENSOR,   /* bytes of tensor `at` in `layout` */
    WL__INNER,    /* bytes of the collective inside a kernel, on axis `at` */
    WL__N_QUANTITIES
} wl__quantity;
typedef struct {
    double times;
    wl__layout layout;
    int16_t at;
    int16_t next; /* term of the same item, -1 */
    uint8_t what; /* wl__quantity */
} wl__term;

/* How a GEMM's shape follows from the forward one: itself, dX, dW. */
typedef enum { WL__NO_GEMM, WL__GEMM_FORWARD, WL__GEMM_DX, WL__GEMM_DW } wl__gemm_kind;

/* Where the numbers of an item come from. */
typedef struct {
    double times, second;  /* forward FLOPs, and of these for scores computed again; 0: none */
    int16_t op;            /* of the block */
    int16_t first, last;   /* terms of its bytes; -1: none */
    uint8_t gemm;          /* wl__gemm_kind */
    bool again, again_end; /* first and last item of a recomputation */
} wl__cost;

/* A pass without its numbers: the same for all splits that cut on the same axes. */
typedef struct {
    const wl_item *item;
    const wl__cost *cost;
    const wl__term *term;
    size_t n, n_terms;
    int16_t output;
} wl__outline;
typedef enum { WL__FORWARD, WL__BACKWARD } wl__pass_kind;

/* Outlines made before, by all that decides them. */
typedef struct wl__outlines wl__outlines;

typedef struct {
    const wl_model *model;
    const wl_workload *workload;
    const wl_config *config;
    cs_arena *arena;
    wl__outlines *outlines; /* NULL: none are kept */
    wl__bytes bytes;
    bool training;
    bool failed;        /* out of memory or over a table's size */
    bool tp_sequence;   /* off while decoding: there is one token */
    bool ring;          /* attention exchanges K, V around a ring */
    double cache_parts; /* decoding: ways the cache's sequence is cut */
    double npus;        /* of one stage */
    int64_t axis[WL_N_AXES];
    double batch;               /* sequences of a micro-batch, all data ranks */
    double keys;                /* sequence length attention looks at */
    double capacity, imbalance; /* of experts */
    double touched;             /* expected share of experts that some token of the group picks */
    bool one_token;             /* the sizes are those of a single token; */
    bool sized;                 /* they have been filled */
    double size[WL__MAX_DIMS];  /* padded, with capacity factor and imbalance */
    double exact[WL__MAX_DIMS];
    double ways[WL__AXES];
    uint64_t padded; /* dimensions whose two sizes may differ */
    uint64_t narrow; /* dimensions with fewer elements than tp, replicated and not cut further */

    /* the block being built */
    const wl__block *block;
    bool recompute;
    const wl__layouts *layouts;
    wl__plan plan[WL__MAX_OPS];
    wl__parameters parameters;
    double count[WL__MAX_TENSORS]; /* elements, unsplit */
    bool saved[WL__MAX_TENSORS];   /* kept from forward to backward */
    bool wanted[WL__MAX_TENSORS];  /* read by some backward */
    double plain[WL__MAX_TENSORS]; /* bytes in the home layout */
    double kept[WL__MAX_TENSORS];  /* bytes as saved */
    double boundary;               /* elements of the block's input */

    /* the pass being emitted */
    wl_item item[WL__MAX_ITEMS];
    wl__cost cost[WL__MAX_ITEMS];
    size_t n_items;
    wl__term term[WL__MAX_TERMS];
    size_t n_terms;
    wl__value value[WL__MAX_VALUES];
    size_t n_values;
    int16_t of[WL__MAX_TENSORS];   /* tensor -> its value in this pass, -1 */
    int16_t grad[WL__MAX_TENSORS]; /* tensor -> finished gradient value, -1 */
    int16_t contribution[WL__MAX_TENSORS][4];
    uint8_t n_contributions[WL__MAX_TENSORS];
    uint16_t uses[WL__MAX_TENSORS]; /* contributions still to come */
    struct {
        int16_t op, gradient, input;
    } pending[WL__MAX_OPS]; /* weight gradients not yet emitted */
    size_t n_pending;
    int16_t loss; /* value of the loss, -1 */
    /* FLOPs of all NPUs in the pass at mean load: executed, the model's own among them, replicated
     * or padded; of the model's own: flash attention's second scores, what recomputation repeats */
    double hardware, exact_done, redundant, flash, again;
} wl__build;

/* build.c */
/* State of a build; the caller frees it with free().  NULL when out of memory. */
wl__build *wl__build_create(const wl_workload *workload, const wl_config *config, cs_arena *arena);
/* Sizes, layouts, liveness and parameters of a block, ready to emit its passes. */
void wl__enter(wl__build *b, const wl__block *block, bool recompute);

/* plan.c */
void wl__plan_block(wl__build *b);
double wl__scores(const wl__build *b, const wl__op *op, const wl__plan *plan);

/* Ways in which the axis cuts dimension `dim`. */
static inline double wl__factor(const wl__build *b, size_t axis, int8_t dim)
{
    if (dim < 0)
        return 1.0;
    return (b->narrow >> dim & 1) != 0 ? (double)b->model->dim[dim].size : b->ways[axis];
}

/* Elements of tensor t on one NPU. */
static inline double wl__elements(const wl__build *b, int16_t t, wl__layout layout)
{
    double parts = 1.0;

    for (size_t a = 0; a < WL__AXES; a++)
        parts *= wl__factor(b, a, layout.at[a]);
    return b->count[t] / parts;
}

/* emit.c */
int16_t wl__emit(wl__build *b, const wl_item *item);
int16_t wl__value_add(wl__build *b, int16_t tensor, wl__layout layout);
void wl__value_dep(wl__build *b, int16_t value, int16_t item);
void wl__item_dep(wl__build *b, wl_item *item, int16_t value);
int16_t wl__convert_steps(wl__build *b, int16_t value, wl__layout to, int16_t op);
/* The value in layout `to`: itself, one converted before, or new collectives of operator `op`. */
static inline int16_t wl__convert(wl__build *b, int16_t value, wl__layout to, int16_t op)
{
    return wl__layout_equal(b->value[value].layout, to) ? value
                                                        : wl__convert_steps(b, value, to, op);
}
int16_t wl__merge(wl__build *b, int16_t x, int16_t y);
/* Bytes of an element: logits are fp32, also where only their gradient is meant. */
static inline double wl__element_bytes(const wl__build *b, int16_t t)
{
    return b->block->tensor[t].fp32 ? 4.0 : b->bytes.activation;
}
void wl__pass_begin(wl__build *b);
/* The pass emitted so far, ending in the value `output` (-1: none). */
wl__outline wl__pass_outline(wl__build *b, int16_t output);
/* The items of the pass at hand in arena memory; item `output` ends it. */
wl_pass wl__pass_end(wl__build *b, int16_t output);

/* cost.c */
/* Adds to the bytes of an item (-1: an emission that failed). */
void wl__term_add(wl__build *b, int16_t item, wl__quantity what, int16_t at, double times);
void wl__tensor_add(wl__build *b, int16_t item, int16_t tensor, wl__layout layout, double times);
/* Sets an item's FLOPs: `times` forward, and `second` times for scores computed again. */
void wl__flops_set(wl__build *b, int16_t item, double times, double second, wl__gemm_kind gemm);
/* Makes the outline's items the pass at hand, with their numbers, and the pass's totals. */
void wl__evaluate(wl__build *b, const wl__outline *outline);

/* outline.c */
/* Keeps outlines in at most about `limit_bytes`.  NULL when out of memory. */
wl__outlines *wl__outlines_create(size_t limit_bytes);
void wl__outlines_destroy(wl__outlines *outlines);
/* The outline of a pass of the block at hand: kept, or made now; valid until the next one. */
wl__outline wl__outline_get(wl__build *b, wl__pass_kind kind);

/* forward.c, backward.c */
void wl__forward_op(wl__build *b, size_t op);
wl__outline wl__forward_outline(wl__build *b);
wl__outline wl__backward_outline(wl__build *b);
wl_pass wl__forward(wl__build *b);
/* Value of a tensor in this pass: computed, saved, or recomputed now. */
int16_t wl__operand(wl__build *b, int16_t tensor);
/* Dropout mask on the branches of an addition (gpt-2022). */
bool wl__has_mask(const wl__build *b, const wl__op *op);
int16_t wl__ring_emit(wl__build *b, const wl__op *op, wl_collective type, const int16_t *values);
bool wl__rings(const wl__build *b, const wl__op *op);
/* *plain: without gradient reductions; *last: with those of the last micro-batch. */
void wl__backward(wl__build *b, wl_pass *plain, wl_pass *last);
void wl__parameters_of(wl__build *b, wl__parameters *out);
void wl__reductions(wl__build *b);
/* `elements` padded to a multiple of the number of parts. */
double wl__flat(double elements, double parts);
wl_group wl__bucket_group(wl__bucket bucket);
/* Members of a bucket's group, and of the part that shares one shard. */
double wl__bucket_size(const wl__build *b, wl__bucket bucket);
double wl__shard_size(const wl__build *b, wl__bucket bucket);

/* memory.c */
void wl__liveness(wl__build *b); /* after wl__plan_block */
void wl__block_memory(wl__build *b, wl_block *out);

/* stage.c */
/* Blocks of a program: each kind plain and, for layers, with recomputation. */
typedef struct {
    int16_t index[WL__MAX_BLOCKS][2]; /* into wl_program.block, -1: unused */
    wl__parameters parameters[2 * WL__MAX_BLOCKS];
    double kv_bytes[2 * WL__MAX_BLOCKS]; /* cache of one block on one NPU, all sequences */
    double model[2 * WL__MAX_BLOCKS];    /* FLOPs of a micro-batch: model, causal, executed, */
    double causal[2 * WL__MAX_BLOCKS];   /* recomputed, flash's second scores */
    double redundant[2 * WL__MAX_BLOCKS], again[2 * WL__MAX_BLOCKS], flash[2 * WL__MAX_BLOCKS];
} wl__blocks;
void wl__stages(wl__build *b, const wl__blocks *blocks, wl_program *program);
/* Layers of chunk c of `chunks`: the extra ones of an uneven division sit in the middle, away from
 * embedding and logits. */
void wl__chunk_range(int64_t layers, int64_t chunks, int64_t c, int64_t *first, int64_t *end);
/* static.c */
wl_static_memory wl__static_memory(const wl__build *b, const wl__blocks *blocks,
                                   const wl_program *program, const wl_stage *stage);
wl_stage_blocks wl__stage_blocks(const wl_program *program, const wl_stage *stage);
wl_pass wl__update(wl__build *b, const wl__blocks *blocks, const wl_stage *stage, bool tied);
/* check.c */
CS_MUST_USE cs_status wl__check(const wl_workload *workload, const wl_config *config,
                                cs_error *err);

#endif
