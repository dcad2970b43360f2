/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A transformer by its shape alone. */
#include "workloads/hf_private.h"

#include <string.h>

static cs_status shape_check(const wl_shape *shape, cs_error *err)
{
    const struct {
        const char *name;
        int64_t value, min;
    } range[] = {{"layers", shape->layers, 1},         {"hidden", shape->hidden, 1},
                 {"heads", shape->heads, 1},           {"kv_heads", shape->kv_heads, 0},
                 {"head_dim", shape->head_dim, 0},     {"ffn", shape->ffn, 0},
                 {"vocabulary", shape->vocabulary, 1}, {"positions", shape->positions, 0},
                 {"experts", shape->experts, 0},       {"expert_ffn", shape->expert_ffn, 0},
                 {"shared_ffn", shape->shared_ffn, 0}, {"dense_layers", shape->dense_layers, 0}};

    for (size_t i = 0; i < CS_COUNT(range); i++)
        if (range[i].value < range[i].min || range[i].value > INT64_C(1000000000))
            return cs_fail(err, CS_EINVAL, "%s is %lld, expected %lld to 1000000000", range[i].name,
                           (long long)range[i].value, (long long)range[i].min);
    if (shape->head_dim == 0 && shape->hidden % shape->heads != 0)
        return cs_fail(err, CS_EINVAL, "hidden %lld %% heads %lld = %lld", (long long)shape->hidden,
                       (long long)shape->heads, (long long)(shape->hidden % shape->heads));
    if (shape->experts > 0 && (shape->top_k < 1 || shape->top_k > shape->experts))
        return cs_fail(err, CS_EINVAL, "top_k %lld of %lld experts", (long long)shape->top_k,
                       (long long)shape->experts);
    if (shape->experts > 0 && shape->dense_layers >= shape->layers)
        return cs_fail(err, CS_EINVAL, "%lld dense layers of %lld leave no expert layer",
                       (long long)shape->dense_layers, (long long)shape->layers);
    return CS_OK;
}

static int64_t or_else(int64_t value, int64_t fallback)
{
    return value > 0 ? value : fallback;
}

static wl__hf shape_expand(const wl_shape *shape)
{
    const int64_t ffn = or_else(shape->ffn, 4 * shape->hidden);

    return (wl__hf){.name = "model",
                    .layers = shape->layers,
                    .hidden = shape->hidden,
                    .heads = shape->heads,
                    .kv_heads = or_else(shape->kv_heads, shape->heads),
                    .head_dim = or_else(shape->head_dim, shape->hidden / shape->heads),
                    .ffn = ffn,
                    .vocabulary = shape->vocabulary,
                    .positions = shape->positions,
                    .experts = shape->experts,
                    .top_k = shape->top_k,
                    .expert_ffn = or_else(shape->expert_ffn, ffn),
                    .shared_ffn = shape->shared_ffn,
                    .dense_layers = shape->experts > 0 ? shape->dense_layers : 0,
                    .layer_norm = shape->layer_norm,
                    .gated = shape->gated,
                    .qkv_bias = shape->bias,
                    .o_bias = shape->bias,
                    .bias = shape->bias && !shape->gated,
                    .tied = shape->tied};
}

cs_status wl_model_from_shape(const wl_shape *shape, wl_model **out, cs_error *err)
{
    cs_status status = CS_OK;
    cs_arena *arena = NULL;
    const char *text;
    wl__hf hf;

    CS_TRY(shape_check(shape, err));
    hf = shape_expand(shape);
    arena = cs_arena_create(0);
    text = arena != NULL ? wl__hf_write(&hf, arena) : NULL;
    if (text == NULL) {
        status = cs_fail(err, CS_ENOMEM, "model");
        goto done;
    }
    CS_TRY(
        wl_model_parse(text, strlen(text), shape->name != NULL ? shape->name : "model", out, err));
done:
    cs_arena_destroy(arena);
    return status;
}
