/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A transformer as config.json files describe it. */
#ifndef HF_PRIVATE_H
#define HF_PRIVATE_H

#include "workloads/workload_private.h"

typedef struct {
    const char *name;
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, positions;
    int64_t experts, top_k, expert_ffn, shared_experts, shared_ffn, dense_layers, sparse_step;
    int64_t q_rank, kv_rank, nope, rope, v_dim; /* latent attention; kv_rank 0: none */
    bool layer_norm, bias, gated, qkv_bias, o_bias, qk_norm, parallel, tied, embedding_norm;
    bool router_bias, shared_gate;
} wl__hf;

/* Text of the model file, arena memory; NULL when out of memory. */
const char *wl__hf_write(const wl__hf *hf, cs_arena *arena);

#endif
