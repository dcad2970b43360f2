/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The parsed model and the state of one program build, shared inside workloads/.
 *
 * A model is dimensions with roles, tensors over them and operators; everything is an index once
 * loaded, so a build never looks at a name.  A build lays every tensor out over the four axes that
 * cut tensors (tp, sp, ep, dp) and emits items: `plan` fixes the layouts, `forward` and `backward`
 * walk the operators and let collectives arise from layout differences (DESIGN 5.1). */
#ifndef WORKLOAD_PRIVATE_H
#define WORKLOAD_PRIVATE_H

#include "workloads/workload.h"

#include <string.h>

enum {
    WL__MAX_RANK = 8,
    WL__MAX_LOOPS = 12,
    WL__MAX_DIMS = 62,
    WL__MAX_OPS = 96,
    WL__MAX_TENSORS = 224,
    WL__MAX_IN = 8,
    WL__MAX_BLOCKS = 16,
    WL__MAX_STACK = 64,
    WL__MAX_ITEMS = 640,
    WL__MAX_VALUES = 1200,
    WL__MAX_TERMS = 4096,
    WL__AXES = 4, /* tp, sp, ep, dp: the axes that cut tensors; pp cuts the stack */
    WL__CUTS = 24 /* ways to choose the axes that cut; tp alone, or with tp_sequence */
};

typedef enum {
    WL__BATCH,
    WL__SEQUENCE,
    WL__HIDDEN,
    WL__HEADS,
    WL__KV_HEADS,
    WL__HEAD_DIM,
    WL__FFN,
    WL__VOCABULARY,
    WL__EXPERTS,
    WL__CAPACITY, /* tokens of one expert */
    WL__NONE,
    WL__N_ROLES
} wl__role;
extern const char *const wl__role_names[];

typedef struct {
    const char *name;
    int32_t role;
    int64_t size; /* 0 for batch, sequence, capacity: known at build */
    int64_t top_k;
} wl__dim;

typedef struct {
    const char *name;
    uint8_t rank, dim[WL__MAX_RANK];
    uint64_t mask; /* bit per dimension */
    bool parameter;
    bool needs_gradient;
    bool fp32;                     /* logits */
    int16_t tie_block, tie_tensor; /* parameter that lives elsewhere; -1: here */
    bool tied;                     /* used in two blocks: here and where it is tied to */
    bool wanted;                   /* some operator keeps it for its backward as an operand, */
    bool wanted_result;            /* or as its result (unfused attention does not) */
    uint8_t position;              /* operand of its first use */
    int16_t producer;              /* operator, -1: block input or parameter */
    int16_t first_use, last_use;   /* operators; -1: none */
} wl__tensor;

/* What an operator does besides its einsum letters: one const row a kernel. */
typedef struct {
    const char *name;
    uint8_t data_inputs_min, data_inputs_max; /* activations; parameters follow */
    bool needs_parameter;
    bool needs_shape;  /* the result's dimensions stand in the file (`shape:`) */
    bool linear;       /* partial sums pass through */
    bool pass_through; /* backward hands the gradient on unchanged */
    bool loss;         /* ends the model: no result, fp32 input */
    bool lookup;       /* reads only the rows it needs of its parameter */
    bool aligned;      /* capacity stands for batch and sequence (dispatch, combine) */
    bool keys;         /* operands after the first have a sequence of their own (attention) */
    bool pairwise;     /* dot products of the operand's rows */
    bool cheap;        /* recomputed by `selective` with flash attention */
    uint8_t saves;     /* bit per data operand kept for backward */
    bool saves_result;
    /* Collective inside the kernel when the axis splits this role; role WL__N_ROLES: none. */
    int32_t inner_role;
    double inner_floats; /* fp32 numbers per element of the operand without that dimension */
} wl__kernel;

/* ---- layouts ---- */

enum { WL__WHOLE = -1, WL__PARTIAL = -2 }; /* else: index of the dimension split */
typedef struct {
    int8_t at[WL__AXES];
} wl__layout;

/* How an operator and its operands lie. */
typedef struct {
    int8_t split[WL__AXES]; /* loop dimension, -1: replicated */
    wl__layout need[WL__MAX_IN];
    wl__layout gradient[WL__MAX_IN]; /* as the operator yields the operand's gradient */
    wl__layout out;
} wl__op_layout;

/* Layouts of a block.  They depend on which axes cut at all, not on how far, so every model holds
 * them for the WL__CUTS ways. */
typedef struct {
    wl__op_layout *op;
    wl__layout *home;  /* of a tensor once partial sums are resolved */
    wl__layout *whole; /* the same with the remaining partial sums whole: of its gradient */
    wl__layout *keep;  /* as saved for backward */
    wl__layout stream; /* of block inputs and outputs */
} wl__layouts;

const wl__kernel *wl__kernel_find(const char *name, const char **nearest);
extern const wl__kernel wl__einsum;

/* Operator classes: rows of the strategy table. */
typedef enum {
    WL__CLASS_POINTWISE,
    WL__CLASS_HEADS,
    WL__CLASS_FFN,
    WL__CLASS_VOCABULARY,
    WL__CLASS_EXPERT,
    WL__N_CLASSES
} wl__class;

typedef struct {
    const char *name;
    const wl__kernel *kernel;
    int32_t class;
    uint8_t n_in, n_data; /* data operands come first, parameters after them */
    int16_t in[WL__MAX_IN];
    int16_t out; /* -1: none */
    uint8_t n_loops, loop[WL__MAX_LOOPS];
    uint8_t gemm[WL__MAX_LOOPS];   /* wl__gemm: what a loop of an einsum counts as */
    uint64_t loops, operand_loops; /* masks: all, of operands only */
    uint64_t sizes;                /* loops, and dimensions of cached tensors */
    bool causal;
    uint8_t n_cache;
    int16_t cache[4];      /* attention: tensors kept as KV cache */
    uint16_t live, n_live; /* in wl__block.live: tensors that may be live at this operator */
} wl__op;

/* Loops of a GEMM: batch, rows, columns, contraction. */
typedef enum { WL__GEMM_BATCH, WL__GEMM_M, WL__GEMM_N, WL__GEMM_K, WL__N_GEMM } wl__gemm;

/* Why a tensor is live at an operator. */
enum {
    WL__LIVE_FORWARD = 1,  /* produced and still to be read */
    WL__LIVE_GRADIENT = 2, /* in backward its gradient is between first consumer and producer */
    WL__LIVE_AGAIN = 4     /* in backward this operator is the first to read it */
};
typedef struct {
    int16_t tensor;
    uint8_t why;
} wl__live;

typedef struct {
    const char *name;
    wl__op *op;
    size_t n_ops;
    wl__tensor *tensor;
    size_t n_tensors;
    wl__live *live;
    wl__layouts layouts[WL__CUTS];
    int16_t input, output; /* tensors; -1 */
    bool head;
    int16_t op_base; /* index of the first operator in wl_model.op_names */
} wl__block;

typedef struct {
    int16_t block;
    int64_t count;
    bool layer; /* counted entries are layers: they spread over the stages */
} wl__stack;

struct wl_model {
    cs_arena *arena;
    const char *name;
    uint64_t hash;
    wl__dim dim[WL__MAX_DIMS];
    size_t n_dims;
    uint64_t of_role[WL__N_ROLES]; /* masks of dimensions */
    wl__block block[WL__MAX_BLOCKS];
    size_t n_blocks;
    wl__stack stack[WL__MAX_STACK];
    size_t n_stack;
    wl_facts facts;
    const char **op_names; /* of all blocks, then those of wl__op_code */
    int16_t n_op_names;
};

/* Items that belong to no operator of the model file: negative operator indices. */
typedef enum {
    WL__OP_GRADIENTS = -1,
    WL__OP_OPTIMIZER = -2,
    WL__OP_PARAMETERS = -3,
    WL__OP_TIED = -4
} wl__op_code;

/* Text of a model file for a Hugging Face config.json (arena memory). */
CS_MUST_USE cs_status wl__hf_text(const cs_doc *doc, cs_arena *arena, const char **out,
                                  cs_error *err);
/* Fills model from a model document. */
CS_MUST_USE cs_status wl__model_read(const cs_doc *doc, wl_model *model, cs_error *err);
/* Checks and indexes the operators of a block: classes, loops, uses, gradients. */
CS_MUST_USE cs_status wl__op_read(const cs_doc *doc, const cs_node *node, wl_model *model,
                                  wl__block *block, wl__op *op, cs_error *err);
/* Dimensions of "b s d" into rank/dim/mask. */
CS_MUST_USE cs_status wl__dims_read(const cs_doc *doc, const cs_node *node, const char *text,
                                    const wl_model *model, wl__tensor *out, cs_error *err);
/* Loop dimension the axis splits in this operator, WL__WHOLE: none. */
int8_t wl__strategy_split(const wl_model *model, const wl__op *op, size_t axis, bool tp_sequence);
int32_t wl__op_class(const wl_model *model, const wl__op *op);
/* Elements of a parameter of the model file, unpadded. */
double wl__parameter_size(const wl_model *model, const wl__tensor *tensor);
/* Sums up the stack; false when there are too many parameters to count exactly. */
bool wl__model_facts(wl_model *model);

/* ---- one build ---- */

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

/* layout.c, index.c: once at load */
/* Layouts of a block for every choice of axes that cut.  False when out of memory. */
CS_MUST_USE bool wl__layouts_fill(const wl_model *model, wl__block *block);
/* What builds look up about tensors and operators.  False when out of memory. */
CS_MUST_USE bool wl__block_index(const wl_model *model, wl__block *block);
/* Entry of wl__block.layouts where these axes cut. */
size_t wl__cut_index(const bool cut[WL__AXES], bool tp_sequence);

/* plan.c */
void wl__plan_block(wl__build *b);
double wl__scores(const wl__build *b, const wl__op *op, const wl__plan *plan);

static inline bool wl__layout_equal(wl__layout x, wl__layout y)
{
    return memcmp(&x, &y, sizeof x) == 0;
}

/* Partial sums made whole: a partial sum in forward has a whole gradient. */
static inline wl__layout wl__resolved(wl__layout layout)
{
    for (size_t a = 0; a < WL__AXES; a++)
        if (layout.at[a] == WL__PARTIAL)
            layout.at[a] = WL__WHOLE;
    return layout;
}

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
