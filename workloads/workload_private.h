/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The parsed model, shared inside workloads/: dimensions with roles, tensors over them and
 * operators.  Everything is an index once loaded, so a build never looks at a name; and how tensors
 * lie on the axes is known, so a build only works out how much. */
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

/* layout.c, index.c: once at load */
/* Layouts of a block for every choice of axes that cut.  False when out of memory. */
CS_MUST_USE bool wl__layouts_fill(const wl_model *model, wl__block *block);
/* What builds look up about tensors and operators.  False when out of memory. */
CS_MUST_USE bool wl__block_index(const wl_model *model, wl__block *block);
/* Entry of wl__block.layouts where these axes cut. */
size_t wl__cut_index(const bool cut[WL__AXES], bool tp_sequence);

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

#endif
