/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Any bytes as a config.json: read, summed up, and trained on a ring of eight. */
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_model(data, size);
    return 0;
}

/* One per family of keys. */
static const char *const seeds[] = {
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 64,"
    " \"num_attention_heads\": 8, \"num_key_value_heads\": 2, \"intermediate_size\": 128,"
    " \"vocab_size\": 512, \"tie_word_embeddings\": true, \"torch_dtype\": \"bfloat16\"}",
    "{\"model_type\": \"mixtral\", \"num_hidden_layers\": 4, \"hidden_size\": 64,"
    " \"num_attention_heads\": 8, \"num_key_value_heads\": 2, \"intermediate_size\": 128,"
    " \"num_local_experts\": 8, \"num_experts_per_tok\": 2, \"vocab_size\": 512}",
    "{\"model_type\": \"qwen3_moe\", \"num_hidden_layers\": 4, \"hidden_size\": 64, \"head_dim\": "
    "16,"
    " \"num_attention_heads\": 8, \"num_key_value_heads\": 2, \"moe_intermediate_size\": 32,"
    " \"intermediate_size\": 128, \"num_experts\": 8, \"num_experts_per_tok\": 2,"
    " \"decoder_sparse_step\": 1, \"mlp_only_layers\": [], \"vocab_size\": 512}",
    "{\"model_type\": \"deepseek_v3\", \"num_hidden_layers\": 4, \"hidden_size\": 64,"
    " \"num_attention_heads\": 8, \"q_lora_rank\": 16, \"kv_lora_rank\": 8,"
    " \"qk_nope_head_dim\": 8, \"qk_rope_head_dim\": 4, \"v_head_dim\": 8, \"n_routed_experts\": 8,"
    " \"n_shared_experts\": 1, \"num_experts_per_tok\": 2, \"first_k_dense_replace\": 1,"
    " \"moe_intermediate_size\": 32, \"intermediate_size\": 128, \"vocab_size\": 512,"
    " \"num_nextn_predict_layers\": 1}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 64, \"n_head\": 8, \"n_inner\": null,"
    " \"n_positions\": 128, \"vocab_size\": 512}",
    "{\"model_type\": \"bloom\", \"n_layer\": 4, \"hidden_size\": 64, \"n_head\": 8,"
    " \"vocab_size\": 512}",
    "{\"model_type\": \"gpt_neox\", \"num_hidden_layers\": 4, \"hidden_size\": 64,"
    " \"num_attention_heads\": 8, \"intermediate_size\": 256, \"vocab_size\": 512}",
};

size_t fuzz_seeds(void)
{
    return CS_COUNT(seeds);
}

size_t fuzz_seed(size_t k, uint8_t *bytes, size_t capacity)
{
    return fuzz_text(seeds[k], bytes, capacity);
}
