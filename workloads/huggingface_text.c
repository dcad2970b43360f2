/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Writes a transformer as the text of a model file. */
#include "workloads/hf_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY ((size_t)32768)

typedef struct {
    char *text;
    size_t n;
} buffer;

static void put(buffer *b, const char *fmt, ...) CS_PRINTF(2, 3);
static void put(buffer *b, const char *fmt, ...)
{
    va_list list;
    int n;

    va_start(list, fmt);
    n = vsnprintf(b->text + b->n, CAPACITY - b->n, fmt, list);
    va_end(list);
    if (n > 0 && (size_t)n < CAPACITY - b->n)
        b->n += (size_t)n;
}

static void dim(buffer *b, const char *name, const char *role, int64_t size)
{
    if (size > 0)
        put(b, "  %s: {role: %s, size: %lld}\n", name, role, (long long)size);
}

static void dims(buffer *b, const wl__hf *hf)
{
    put(b, "model: 1\nname: %s\ndims:\n  b: {role: batch}\n  s: {role: sequence}\n", hf->name);
    dim(b, "d", "hidden", hf->hidden);
    dim(b, "h", "heads", hf->heads);
    dim(b, "v", "vocabulary", hf->vocabulary);
    dim(b, "p", "none", hf->positions);
    if (hf->kv_rank > 0) {
        dim(b, "r", "none", hf->q_rank);
        dim(b, "l", "none", hf->kv_rank);
        dim(b, "a", "head_dim", hf->nope + hf->rope);
        dim(b, "n", "head_dim", hf->nope);
        dim(b, "t", "none", hf->rope);
        dim(b, "e", "head_dim", hf->v_dim);
    } else {
        dim(b, "g", "kv_heads", hf->kv_heads);
        dim(b, "e", "head_dim", hf->head_dim);
    }
    if (hf->experts == 0 || hf->dense_layers > 0)
        dim(b, "f", "ffn", hf->ffn);
    if (hf->experts > 0) {
        put(b, "  x: {role: experts, size: %lld, top_k: %lld}\n  c: {role: capacity}\n",
            (long long)hf->experts, (long long)hf->top_k);
        dim(b, "m", "ffn", hf->expert_ffn);
        dim(b, "k", "ffn", hf->shared_ffn);
        dim(b, "o", "none", hf->shared_gate ? 1 : 0);
    }
}

static void norm_parameter(buffer *b, const wl__hf *hf, const char *name, const char *over)
{
    put(b, "      %s: %s\n", name, over);
    if (hf->layer_norm)
        put(b, "      %s_bias: %s\n", name, over);
}

static void norm(buffer *b, const wl__hf *hf, const char *out, const char *in, const char *name)
{
    put(b, "      - {name: %s, kernel: %s, in: [%s, %s", out,
        hf->layer_norm ? "layer_norm" : "rms_norm", in, name);
    put(b, hf->layer_norm ? ", %s_bias]}\n" : "]}\n", name);
}

static void einsum(buffer *b, const char *out, const char *letters, const char *in,
                   const char *bias)
{
    put(b, "      - {name: %s, einsum: \"%s\", in: [%s%s%s]}\n", out, letters, in,
        bias != NULL ? ", " : "", bias != NULL ? bias : "");
}

static void latent_parameters(buffer *b, const wl__hf *hf)
{
    if (hf->q_rank > 0)
        put(b, "      wq_down: d r\n      q_norm: r\n      wq: r h a\n");
    else
        put(b, "      wq: d h a\n");
    put(b, "      wkv_down: d l\n      wk_rope: d t\n      kv_norm: l\n      wk: l h n\n"
           "      wv: l h e\n      wo: h e d\n");
}

static void attention_parameters(buffer *b, const wl__hf *hf)
{
    norm_parameter(b, hf, "norm1", "d");
    if (hf->kv_rank > 0) {
        latent_parameters(b, hf);
        return;
    }
    put(b, "      wq: d h e\n      wk: d g e\n      wv: d g e\n      wo: h e d\n");
    if (hf->qkv_bias)
        put(b, "      bq: h e\n      bk: g e\n      bv: g e\n");
    if (hf->o_bias)
        put(b, "      bo: d\n");
    if (hf->qk_norm)
        put(b, "      q_norm: e\n      k_norm: e\n");
}

static void latent_ops(buffer *b, const wl__hf *hf)
{
    if (hf->q_rank > 0) {
        einsum(b, "q_low", "b s d, d r -> b s r", "n1, wq_down", NULL);
        put(b, "      - {name: q_low_n, kernel: rms_norm, in: [q_low, q_norm]}\n");
        einsum(b, "q", "b s r, r h a -> b s h a", "q_low_n, wq", NULL);
    } else {
        einsum(b, "q", "b s d, d h a -> b s h a", "n1, wq", NULL);
    }
    einsum(b, "kv_low", "b s d, d l -> b s l", "n1, wkv_down", NULL);
    put(b, "      - {name: kv_low_n, kernel: rms_norm, in: [kv_low, kv_norm]}\n");
    einsum(b, "k_rope", "b s d, d t -> b s t", "n1, wk_rope", NULL);
    einsum(b, "key", "b s l, l h n -> b s h n", "kv_low_n, wk", NULL);
    einsum(b, "value", "b s l, l h e -> b s h e", "kv_low_n, wv", NULL);
    put(b, "      - {name: core, kernel: attention, in: [q, key, value, k_rope], causal: true, "
           "cache: [kv_low_n, k_rope]}\n");
}

static void attention_ops(buffer *b, const wl__hf *hf)
{
    norm(b, hf, "n1", "x", "norm1");
    if (hf->kv_rank > 0) {
        latent_ops(b, hf);
    } else {
        einsum(b, "q", "b s d, d h e -> b s h e", "n1, wq", hf->qkv_bias ? "bq" : NULL);
        einsum(b, "key", "b s d, d g e -> b s g e", "n1, wk", hf->qkv_bias ? "bk" : NULL);
        einsum(b, "value", "b s d, d g e -> b s g e", "n1, wv", hf->qkv_bias ? "bv" : NULL);
        if (hf->qk_norm)
            put(b, "      - {name: qn, kernel: rms_norm, in: [q, q_norm]}\n"
                   "      - {name: kn, kernel: rms_norm, in: [key, k_norm]}\n");
        put(b, "      - {name: core, kernel: attention, in: [%s, value], causal: true}\n",
            hf->qk_norm ? "qn, kn" : "q, key");
    }
    einsum(b, "out", "b s h e, h e d -> b s d", "core, wo", NULL);
    if (!hf->parallel)
        put(b, "      - {name: r1, kernel: add, in: [x, out%s]}\n", hf->o_bias ? ", bo" : "");
}

/* Feed-forward network of width letter f, m or k; `x` prefixes an expert's. */
static void ffn_ops(buffer *b, const wl__hf *hf, const char *tokens, char width, const char *in,
                    const char *tag)
{
    const char *e = *tokens == 'x' ? "x " : "";
    const char *bias = hf->bias && width == 'f' ? ", b1" : "";

    put(b, "      - {name: up_%s, einsum: \"%s d, %sd %c -> %s %c\", in: [%s, w_up_%s]}\n", tag,
        tokens, e, width, tokens, width, in, tag);
    if (hf->gated) {
        put(b, "      - {name: gate_%s, einsum: \"%s d, %sd %c -> %s %c\", in: [%s, w_gate_%s]}\n",
            tag, tokens, e, width, tokens, width, in, tag);
        put(b, "      - {name: act_%s, kernel: gated_activation, in: [gate_%s, up_%s]}\n", tag, tag,
            tag);
    } else {
        put(b, "      - {name: act_%s, kernel: activation, in: [up_%s%s]}\n", tag, tag, bias);
    }
    put(b, "      - {name: down_%s, einsum: \"%s %c, %s%c d -> %s d\", in: [act_%s, w_down_%s]}\n",
        tag, tokens, width, e, width, tokens, tag, tag);
}

static void ffn_parameters(buffer *b, const wl__hf *hf, const char *over, char width,
                           const char *tag)
{
    put(b, "      w_up_%s: %sd %c\n      w_down_%s: %s%c d\n", tag, over, width, tag, over, width);
    if (hf->gated)
        put(b, "      w_gate_%s: %sd %c\n", tag, over, width);
}

static void dense_layer(buffer *b, const wl__hf *hf)
{
    put(b, "  dense:\n    input: {x: b s d}\n    parameters:\n");
    attention_parameters(b, hf);
    norm_parameter(b, hf, "norm2", "d");
    ffn_parameters(b, hf, "", 'f', "f");
    if (hf->bias)
        put(b, "      b1: f\n      b2: d\n");
    put(b, "    ops:\n");
    attention_ops(b, hf);
    norm(b, hf, "n2", hf->parallel ? "x" : "r1", "norm2");
    ffn_ops(b, hf, "b s", 'f', "n2", "f");
    if (hf->parallel)
        put(b, "      - {name: r2, kernel: add, in: [x, out, down_f%s%s]}\n",
            hf->o_bias ? ", bo" : "", hf->bias ? ", b2" : "");
    else
        put(b, "      - {name: r2, kernel: add, in: [r1, down_f%s]}\n", hf->bias ? ", b2" : "");
}

static void shared_ops(buffer *b, const wl__hf *hf)
{
    if (hf->shared_ffn == 0)
        return;
    ffn_ops(b, hf, "b s", 'k', "n2", "s");
    if (hf->shared_gate) {
        einsum(b, "share", "b s d, d o -> b s o", "n2, w_share", NULL);
        put(b, "      - {name: gated, kernel: multiply, in: [down_s, share]}\n");
    }
}

static void expert_layer(buffer *b, const wl__hf *hf)
{
    put(b, "  moe:\n    input: {x: b s d}\n    parameters:\n");
    attention_parameters(b, hf);
    norm_parameter(b, hf, "norm2", "d");
    put(b, "      w_router: d x\n");
    if (hf->router_bias)
        put(b, "      b_router: x\n");
    ffn_parameters(b, hf, "x ", 'm', "x");
    if (hf->shared_ffn > 0)
        ffn_parameters(b, hf, "", 'k', "s");
    if (hf->shared_gate)
        put(b, "      w_share: d o\n");
    put(b, "    ops:\n");
    attention_ops(b, hf);
    norm(b, hf, "n2", "r1", "norm2");
    einsum(b, "route", "b s d, d x -> b s x", "n2, w_router", NULL);
    put(b, "      - {name: gates, kernel: router, in: [route%s]}\n",
        hf->router_bias ? ", b_router" : "");
    put(b, "      - {name: sent, kernel: dispatch, in: [n2, gates], shape: \"x c d\"}\n");
    shared_ops(b, hf); /* beside the all-to-all of the routed tokens */
    ffn_ops(b, hf, "x c", 'm', "sent", "x");
    put(b, "      - {name: got, kernel: combine, in: [down_x, gates], shape: \"b s d\"}\n");
    put(b, "      - {name: r2, kernel: add, in: [r1, got%s]}\n",
        hf->shared_ffn == 0 ? "" : (hf->shared_gate ? ", gated" : ", down_s"));
}

static void embedding(buffer *b, const wl__hf *hf)
{
    put(b, "blocks:\n  embedding:\n    parameters:\n      table: v d\n");
    if (hf->positions > 0)
        put(b, "      positions: p d\n");
    if (hf->embedding_norm)
        norm_parameter(b, hf, "norm", "d");
    put(b, "    ops:\n      - {name: words, kernel: embedding, in: [table], shape: \"b s d\"}\n");
    if (hf->positions > 0)
        put(b, "      - {name: placed, kernel: position, in: [words, positions]}\n");
    if (hf->embedding_norm)
        norm(b, hf, "normed", "words", "norm");
}

static void head_and_stack(buffer *b, const wl__hf *hf)
{
    const bool both = hf->experts > 0 && hf->dense_layers > 0;

    put(b, "  head:\n    input: {x: b s d}\n    parameters:\n");
    norm_parameter(b, hf, "norm", "d");
    put(b, "      table: %s\n    ops:\n", hf->tied ? "{tie: embedding.table}" : "v d");
    norm(b, hf, "n", "x", "norm");
    einsum(b, "logits", "b s d, v d -> b s v", "n, table", NULL);
    put(b, "      - {name: loss, kernel: cross_entropy, in: [logits]}\nstack:\n  - embedding\n");
    if (hf->experts == 0 || both)
        put(b, "  - {block: dense, count: %lld}\n",
            (long long)(both ? hf->dense_layers : hf->layers));
    if (hf->experts > 0)
        put(b, "  - {block: moe, count: %lld}\n",
            (long long)(hf->layers - (both ? hf->dense_layers : 0)));
    put(b, "  - head\n");
}

const char *wl__hf_write(const wl__hf *hf, cs_arena *arena)
{
    buffer b = {cs_arena_alloc(arena, CAPACITY), 0};

    if (b.text == NULL)
        return NULL;
    dims(&b, hf);
    embedding(&b, hf);
    if (hf->experts == 0 || hf->dense_layers > 0)
        dense_layer(&b, hf);
    if (hf->experts > 0)
        expert_layer(&b, hf);
    head_and_stack(&b, hf);
    return b.text;
}
