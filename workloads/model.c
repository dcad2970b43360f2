/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Life of a model, and its exact integers. */
#include "workloads/workload_private.h"

#include <stdlib.h>

#define MAX_PARAMETERS 9e15 /* doubles count exactly up to 2^53 */

static cs_status model_from_doc(const cs_doc *doc, wl_model **out, cs_error *err);

/* A document without the key `model` is taken for a config.json and rewritten as a model file. */
static cs_status from_config(const cs_doc *doc, wl_model **out, cs_error *err)
{
    cs_status status = CS_OK;
    cs_arena *arena = cs_arena_create(0);
    cs_doc *rewritten = NULL;
    const char *text;
    size_t n = 0;

    if (arena == NULL)
        return cs_fail(err, CS_ENOMEM, "model");
    CS_TRY(wl__hf_text(doc, arena, &text, err));
    while (text[n] != 0)
        n++;
    CS_TRY(cs_doc_parse(text, n, cs_doc_path(doc), &rewritten, err));
    CS_TRY(model_from_doc(rewritten, out, err));
    (*out)->hash = cs_doc_hash(doc);
done:
    cs_doc_destroy(rewritten);
    cs_arena_destroy(arena);
    return status;
}

static cs_status model_from_doc(const cs_doc *doc, wl_model **out, cs_error *err)
{
    cs_status status = CS_OK;
    wl_model *model = NULL;

    CS_TRY(cs_node_expect(doc, cs_doc_root(doc), CS_DOC_MAP, err));
    if (cs_node_get(cs_doc_root(doc), "model") == NULL &&
        cs_node_get(cs_doc_root(doc), "model_type") != NULL)
        return from_config(doc, out, err);
    model = calloc(1, sizeof *model);
    if (model == NULL || (model->arena = cs_arena_create(0)) == NULL) {
        status = cs_fail(err, CS_ENOMEM, "model");
        goto done;
    }
    CS_TRY(wl__model_read(doc, model, err));
    model->hash = cs_doc_hash(doc);
    *out = model;
    model = NULL; /* ownership has moved to the caller */
done:
    wl_model_destroy(model);
    return status;
}

cs_status wl_model_load(const char *path, wl_model **out, cs_error *err)
{
    cs_status status = CS_OK;
    cs_doc *doc = NULL;

    CS_TRY(cs_doc_load(path, &doc, err));
    CS_TRY(model_from_doc(doc, out, err));
done:
    cs_doc_destroy(doc);
    return status;
}

cs_status wl_model_parse(const char *text, size_t length, const char *name, wl_model **out,
                         cs_error *err)
{
    cs_status status = CS_OK;
    cs_doc *doc = NULL;

    CS_TRY(cs_doc_parse(text, length, name, &doc, err));
    CS_TRY(model_from_doc(doc, out, err));
done:
    cs_doc_destroy(doc);
    return status;
}

void wl_model_destroy(wl_model *model)
{
    if (model == NULL)
        return;
    cs_arena_destroy(model->arena);
    free(model);
}

const char *wl_model_name(const wl_model *model)
{
    return model->name;
}

uint64_t wl_model_hash(const wl_model *model)
{
    return model->hash;
}

wl_facts wl_model_facts(const wl_model *model)
{
    return model->facts;
}

double wl__parameter_size(const wl_model *model, const wl__tensor *tensor)
{
    double n = 1.0;

    for (size_t i = 0; i < tensor->rank; i++)
        n *= (double)model->dim[tensor->dim[i]].size;
    return n;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Share of an expert parameter that one token uses. */
static double active_share(const wl_model *model, const wl__block *block, size_t t)
{
    const wl__op *op = &block->op[block->tensor[t].first_use];

    if (op->class != WL__CLASS_EXPERT)
        return 1.0;
    for (size_t i = 0; i < block->tensor[t].rank; i++) {
        const wl__dim *dim = &model->dim[block->tensor[t].dim[i]];

        if (dim->role == WL__EXPERTS)
            return (double)dim->top_k / (double)dim->size;
    }
    return 1.0;
}

static void facts_of_block(const wl_model *model, const wl__block *block, double *all,
                           double *active)
{
    for (size_t t = 0; t < block->n_tensors; t++) {
        const wl__tensor *tensor = &block->tensor[t];
        double size;

        if (!tensor->parameter || tensor->tie_block >= 0)
            continue;
        size = wl__parameter_size(model, tensor);
        *all += size;
        *active += size * active_share(model, block, t);
    }
}

/* A degree must divide every dimension of its role, so facts are greatest common divisors where a
 * model has several (dense and expert feed-forward widths). */
static void facts_of_dims(const wl_model *model, wl_facts *facts)
{
    const struct {
        int32_t role;
        int64_t *fact;
    } map[] = {{WL__HEADS, &facts->heads},       {WL__KV_HEADS, &facts->kv_heads},
               {WL__FFN, &facts->ffn},           {WL__VOCABULARY, &facts->vocabulary},
               {WL__EXPERTS, &facts->experts},   {WL__HIDDEN, &facts->hidden},
               {WL__HEAD_DIM, &facts->head_dim}, {WL__N_ROLES, NULL}};

    for (size_t d = 0; d < model->n_dims; d++) {
        const wl__dim *dim = &model->dim[d];

        for (size_t i = 0; map[i].fact != NULL; i++)
            if (map[i].role == dim->role)
                *map[i].fact = gcd(dim->size, *map[i].fact);
        if (dim->top_k > facts->top_k)
            facts->top_k = dim->top_k;
    }
    if (facts->kv_heads == 0)
        facts->kv_heads = facts->heads;
}

bool wl__model_facts(wl_model *model)
{
    wl_facts facts = {0};
    double all = 0.0, active = 0.0;

    facts_of_dims(model, &facts);
    for (size_t i = 0; i < model->n_stack; i++) {
        double block_all = 0.0, block_active = 0.0;

        facts_of_block(model, &model->block[model->stack[i].block], &block_all, &block_active);
        all += block_all * (double)model->stack[i].count;
        active += block_active * (double)model->stack[i].count;
        if (model->stack[i].layer)
            facts.layers += model->stack[i].count;
    }
    model->facts = facts;
    if (all > MAX_PARAMETERS)
        return false;
    model->facts.parameters = (int64_t)all;
    model->facts.active_parameters = (int64_t)active;
    return true;
}
