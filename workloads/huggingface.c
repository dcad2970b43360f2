/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Hugging Face config.json -> facts of the architecture (huggingface_text.c writes them as a model
 * file, read by the same reader as every other). */
#include "workloads/hf_private.h"

#include <string.h>

#define MAX_VALUE INT64_C(1000000000)

/* One family: the names its config.json uses, and what it consists of. */
typedef struct {
    const char *model_type;
    const char *layers, *hidden, *heads, *ffn, *positions; /* keys */
    bool layer_norm, bias, gated, learned_positions, parallel, qkv_bias, qk_norm, embedding_norm;
    bool tied; /* unless tie_word_embeddings says otherwise */
} family;

#define LLAMA_KEYS                                                                                 \
    .layers = "num_hidden_layers", .hidden = "hidden_size", .heads = "num_attention_heads",        \
    .ffn = "intermediate_size"

static const family families[] = {
    {"llama", LLAMA_KEYS, .gated = true},
    {"mistral", LLAMA_KEYS, .gated = true},
    {"mixtral", LLAMA_KEYS, .gated = true},
    {"qwen2", LLAMA_KEYS, .gated = true, .qkv_bias = true},
    {"qwen2_moe", LLAMA_KEYS, .gated = true, .qkv_bias = true},
    {"qwen3", LLAMA_KEYS, .gated = true, .qk_norm = true},
    {"qwen3_moe", LLAMA_KEYS, .gated = true, .qk_norm = true},
    {"deepseek_v2", LLAMA_KEYS, .gated = true},
    {"deepseek_v3", LLAMA_KEYS, .gated = true},
    {"gpt2", .layers = "n_layer", .hidden = "n_embd", .heads = "n_head", .ffn = "n_inner",
     .positions = "n_positions", .layer_norm = true, .bias = true, .learned_positions = true,
     .tied = true},
    {"gpt_neox", LLAMA_KEYS, .layer_norm = true, .bias = true, .parallel = true},
    {"bloom", .layers = "n_layer", .hidden = "hidden_size", .heads = "n_head", .ffn = "n_inner",
     .layer_norm = true, .bias = true, .embedding_norm = true, .tied = true},
};

static cs_status read_family(const cs_doc *doc, const family **out, cs_error *err)
{
    cs_status status = CS_OK;
    const char *names[CS_COUNT(families)];
    const cs_node *node;
    int32_t index = 0;

    for (size_t i = 0; i < CS_COUNT(families); i++)
        names[i] = families[i].model_type;
    CS_TRY(cs_node_require(doc, cs_doc_root(doc), "model_type", &node, err));
    CS_TRY(cs_node_enum(doc, node, names, CS_COUNT(families), &index, err));
    *out = &families[index];
done:
    return status;
}

static bool present(const cs_node *node)
{
    return node != NULL && !(node->kind == CS_DOC_SCALAR && !node->quoted &&
                             (strcmp(node->text, "null") == 0 || *node->text == 0));
}

/* An integer key that may be absent or null; *out keeps its value then. */
static cs_status optional(const cs_doc *doc, const char *key, int64_t *out, cs_error *err)
{
    const cs_node *node = key != NULL ? cs_node_get(cs_doc_root(doc), key) : NULL;

    return present(node) ? cs_node_int(doc, node, 0, MAX_VALUE, out, err) : CS_OK;
}

static cs_status required(const cs_doc *doc, const char *key, int64_t *out, cs_error *err)
{
    cs_status status = CS_OK;
    const cs_node *node;

    CS_TRY(cs_node_require(doc, cs_doc_root(doc), key, &node, err));
    CS_TRY(cs_node_int(doc, node, 1, MAX_VALUE, out, err));
done:
    return status;
}

static cs_status flag(const cs_doc *doc, const char *key, bool *out, cs_error *err)
{
    const cs_node *node = cs_node_get(cs_doc_root(doc), key);

    return present(node) ? cs_node_bool(doc, node, out, err) : CS_OK;
}

static cs_status read_experts(const cs_doc *doc, wl__hf *hf, cs_error *err)
{
    /* the same fact has a name of its own in each family */
    const struct {
        const char *key;
        int64_t *out;
    } names[] = {{"num_local_experts", &hf->experts},
                 {"num_experts", &hf->experts},
                 {"n_routed_experts", &hf->experts},
                 {"num_experts_per_tok", &hf->top_k},
                 {"moe_intermediate_size", &hf->expert_ffn},
                 {"first_k_dense_replace", &hf->dense_layers},
                 {"n_shared_experts", &hf->shared_experts},
                 {"shared_expert_intermediate_size", &hf->shared_ffn},
                 {"decoder_sparse_step", &hf->sparse_step},
                 {"moe_layer_freq", &hf->sparse_step}};
    cs_status status = CS_OK;

    for (size_t i = 0; i < CS_COUNT(names); i++)
        CS_TRY(optional(doc, names[i].key, names[i].out, err));
    if (hf->experts == 0)
        return CS_OK;
    if (hf->top_k < 1 || hf->top_k > hf->experts)
        return cs_doc_fail(doc, cs_doc_root(doc), err,
                           "num_experts_per_tok is %lld, expected 1 to the %lld experts",
                           (long long)hf->top_k, (long long)hf->experts);
    if (hf->expert_ffn == 0)
        hf->expert_ffn = hf->ffn;
    if (hf->shared_ffn > 0)
        hf->shared_gate = true;
    else
        hf->shared_ffn = hf->shared_experts * hf->expert_ffn;
    if (hf->sparse_step > 1)
        return cs_doc_fail(doc, cs_doc_root(doc), err,
                           "alternating dense and expert layers are not read from a config.json: "
                           "write a model file");
    if (hf->dense_layers >= hf->layers)
        return cs_doc_fail(doc, cs_doc_root(doc), err,
                           "first_k_dense_replace leaves no expert "
                           "layer");
done:
    return status;
}

static cs_status read_attention(const cs_doc *doc, wl__hf *hf, cs_error *err)
{
    cs_status status = CS_OK;

    CS_TRY(optional(doc, "num_key_value_heads", &hf->kv_heads, err));
    CS_TRY(optional(doc, "head_dim", &hf->head_dim, err));
    CS_TRY(optional(doc, "q_lora_rank", &hf->q_rank, err));
    CS_TRY(optional(doc, "kv_lora_rank", &hf->kv_rank, err));
    CS_TRY(optional(doc, "qk_nope_head_dim", &hf->nope, err));
    CS_TRY(optional(doc, "qk_rope_head_dim", &hf->rope, err));
    CS_TRY(optional(doc, "v_head_dim", &hf->v_dim, err));
    if (hf->kv_heads == 0)
        hf->kv_heads = hf->heads;
    if (hf->kv_rank > 0 && (hf->nope == 0 || hf->rope == 0 || hf->v_dim == 0))
        return cs_doc_fail(doc, cs_doc_root(doc), err,
                           "kv_lora_rank needs qk_nope_head_dim, qk_rope_head_dim and v_head_dim");
    if (hf->head_dim == 0 && hf->hidden % hf->heads != 0)
        return cs_doc_fail(doc, cs_doc_root(doc), err, "hidden size %lld %% heads %lld = %lld",
                           (long long)hf->hidden, (long long)hf->heads,
                           (long long)(hf->hidden % hf->heads));
    if (hf->head_dim == 0)
        hf->head_dim = hf->hidden / hf->heads;
    if (hf->kv_heads > hf->heads || hf->heads % hf->kv_heads != 0)
        return cs_doc_fail(doc, cs_doc_root(doc), err, "%lld heads, %lld key-value heads",
                           (long long)hf->heads, (long long)hf->kv_heads);
done:
    return status;
}

static cs_status read_flags(const cs_doc *doc, const family *f, wl__hf *hf, cs_error *err)
{
    bool mlp_bias = false;
    const struct {
        const char *key;
        bool *out;
    } flags[] = {{"tie_word_embeddings", &hf->tied},
                 {"attention_bias", &hf->o_bias},
                 {"use_parallel_residual", &hf->parallel},
                 {"mlp_bias", &mlp_bias}};
    cs_status status = CS_OK;
    const cs_node *list;

    hf->layer_norm = f->layer_norm;
    hf->bias = f->bias;
    hf->gated = f->gated;
    hf->qk_norm = f->qk_norm;
    hf->embedding_norm = f->embedding_norm;
    hf->tied = f->tied;
    hf->parallel = f->parallel;
    hf->o_bias = f->bias;
    for (size_t i = 0; i < CS_COUNT(flags); i++)
        CS_TRY(flag(doc, flags[i].key, flags[i].out, err));
    list = cs_node_get(cs_doc_root(doc), "mlp_only_layers");
    if (list != NULL && list->n > 0)
        return cs_doc_fail(doc, list, err,
                           "single dense layers among expert layers are not read "
                           "from a config.json: write a model file");
    if (mlp_bias && f->gated)
        return cs_doc_fail(doc, cs_node_get(cs_doc_root(doc), "mlp_bias"), err,
                           "biases of a gated feed-forward network are not read from a "
                           "config.json: write a model file");
    hf->qkv_bias = f->qkv_bias || hf->o_bias;
    hf->router_bias = strcmp(f->model_type, "deepseek_v3") == 0;
done:
    return status;
}

static cs_status read_sizes(const cs_doc *doc, const family *f, wl__hf *hf, cs_error *err)
{
    cs_status status = CS_OK;

    CS_TRY(required(doc, f->layers, &hf->layers, err));
    if (cs_node_get(cs_doc_root(doc), f->hidden) == NULL)
        CS_TRY(optional(doc, "n_embed", &hf->hidden, err));
    if (hf->hidden == 0)
        CS_TRY(required(doc, f->hidden, &hf->hidden, err));
    if (cs_node_get(cs_doc_root(doc), f->heads) == NULL)
        CS_TRY(optional(doc, "num_attention_heads", &hf->heads, err));
    if (hf->heads == 0)
        CS_TRY(required(doc, f->heads, &hf->heads, err));
    CS_TRY(required(doc, "vocab_size", &hf->vocabulary, err));
    CS_TRY(optional(doc, f->ffn, &hf->ffn, err));
    if (hf->ffn == 0)
        hf->ffn = 4 * hf->hidden;
    if (f->learned_positions)
        CS_TRY(required(doc, f->positions, &hf->positions, err));
done:
    return status;
}

cs_status wl__hf_text(const cs_doc *doc, cs_arena *arena, const char **out, cs_error *err)
{
    cs_status status = CS_OK;
    const family *f;
    wl__hf hf = {0};

    CS_TRY(read_family(doc, &f, err));
    hf.name = f->model_type;
    CS_TRY(read_sizes(doc, f, &hf, err));
    CS_TRY(read_flags(doc, f, &hf, err));
    CS_TRY(read_attention(doc, &hf, err));
    CS_TRY(read_experts(doc, &hf, err));
    *out = wl__hf_write(&hf, arena);
    if (*out == NULL)
        status = cs_fail(err, CS_ENOMEM, "model from config.json");
done:
    return status;
}
