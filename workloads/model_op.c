/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Reads one operator of a block: an einsum whose letters are checked against its operands, or a
 * named kernel.  The operator's name is also the name of its result. */
#include "workloads/workload_private.h"

#include <string.h>

/* Where reading takes place. */
typedef struct {
    const cs_doc *doc;
    const wl_model *model;
    const wl__block *block;
    cs_error *err;
} reader;

static const char *dims_text(const wl_model *model, const wl__tensor *tensor)
{
    const char *text = "";

    for (size_t i = 0; i < tensor->rank; i++)
        text = cs_arena_printf(model->arena, "%s%s%s", text, i > 0 ? " " : "",
                               model->dim[tensor->dim[i]].name);
    return text == NULL || *text == 0 ? "(none)" : text;
}

static cs_status dim_find(const reader *r, const cs_node *node, const char *word, size_t length,
                          uint8_t *out)
{
    const char *names[WL__MAX_DIMS], *near;
    char copy[64];

    for (size_t d = 0; d < r->model->n_dims; d++) {
        names[d] = r->model->dim[d].name;
        if (strlen(names[d]) == length && memcmp(names[d], word, length) == 0) {
            *out = (uint8_t)d;
            return CS_OK;
        }
    }
    length = length < sizeof copy ? length : sizeof copy - 1;
    memcpy(copy, word, length);
    copy[length] = 0;
    near = cs_nearest(copy, names, r->model->n_dims);
    return cs_doc_fail(r->doc, node, r->err, "unknown dimension '%s'%s%s%s", copy,
                       near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                       near != NULL ? "'?" : "");
}

static cs_status dims_span(const reader *r, const cs_node *node, const char *text, size_t length,
                           wl__tensor *out)
{
    cs_status status = CS_OK;

    out->rank = 0;
    out->mask = 0;
    for (size_t i = 0; i < length;) {
        size_t end = i;
        uint8_t dim = 0;

        while (end < length && text[end] != ' ')
            end++;
        if (end == i) {
            i++;
            continue;
        }
        CS_TRY(dim_find(r, node, text + i, end - i, &dim));
        if (out->rank == WL__MAX_RANK)
            return cs_doc_fail(r->doc, node, r->err, "more than %d dimensions", WL__MAX_RANK);
        if ((out->mask >> dim & 1) != 0)
            return cs_doc_fail(r->doc, node, r->err, "dimension '%s' twice in '%.*s'",
                               r->model->dim[dim].name, (int)length, text);
        out->dim[out->rank++] = dim;
        out->mask |= UINT64_C(1) << dim;
        i = end;
    }
done:
    return status;
}

cs_status wl__dims_read(const cs_doc *doc, const cs_node *node, const char *text,
                        const wl_model *model, wl__tensor *out, cs_error *err)
{
    const reader r = {doc, model, NULL, err};

    return dims_span(&r, node, text, strlen(text), out);
}

static cs_status tensor_find(const reader *r, const cs_node *node, int16_t *out)
{
    cs_status status = CS_OK;
    const char *names[WL__MAX_TENSORS], *name, *near;

    CS_TRY(cs_node_string(r->doc, node, &name, r->err));
    for (size_t t = 0; t < r->block->n_tensors; t++) {
        names[t] = r->block->tensor[t].name;
        if (strcmp(names[t], name) == 0) {
            *out = (int16_t)t;
            return CS_OK;
        }
    }
    near = cs_nearest(name, names, r->block->n_tensors);
    return cs_doc_fail(r->doc, node, r->err,
                       "block '%s' has no tensor '%s' before this operator%s%s%s", r->block->name,
                       name, near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                       near != NULL ? "'?" : "");
done:
    return status;
}

static cs_status inputs_read(const reader *r, const cs_node *node, wl__op *op)
{
    cs_status status = CS_OK;
    const cs_node *list;

    CS_TRY(cs_node_require(r->doc, node, "in", &list, r->err));
    CS_TRY(cs_node_expect(r->doc, list, CS_DOC_LIST, r->err));
    if (list->n == 0 || list->n > WL__MAX_IN)
        return cs_doc_fail(r->doc, list, r->err,
                           "operator '%s': expected 1 to %d operands, got %zu", op->name,
                           WL__MAX_IN, list->n);
    for (size_t i = 0; i < list->n; i++) {
        CS_TRY(tensor_find(r, list->item[i], &op->in[i]));
        if (!r->block->tensor[op->in[i]].parameter) {
            if (op->n_data != i)
                return cs_doc_fail(r->doc, list->item[i], r->err,
                                   "operator '%s': activations stand before parameters", op->name);
            op->n_data++;
        }
    }
    op->n_in = (uint8_t)list->n;
done:
    return status;
}

static cs_status letters_check(const reader *r, const cs_node *node, const wl__op *op, size_t i,
                               const wl__tensor *letters)
{
    const wl__tensor *operand = &r->block->tensor[op->in[i]];

    if (operand->rank == letters->rank && memcmp(operand->dim, letters->dim, operand->rank) == 0)
        return CS_OK;
    return cs_doc_fail(
        r->doc, node, r->err,
        "operator '%s': operand %zu, '%s', has dimensions '%s', the einsum says '%s'", op->name,
        i + 1, operand->name, dims_text(r->model, operand), dims_text(r->model, letters));
}

/* Checks "b s d, d h e -> b s h e" against the operands and fills the result's dimensions. */
static cs_status einsum_read(const reader *r, const cs_node *node, wl__op *op, wl__tensor *out)
{
    cs_status status = CS_OK;
    const char *text, *arrow, *at;
    uint64_t operands = 0;
    size_t i = 0;

    CS_TRY(cs_node_string(r->doc, node, &text, r->err));
    arrow = strstr(text, "->");
    if (arrow == NULL)
        return cs_doc_fail(r->doc, node, r->err,
                           "operator '%s': expected an einsum like \"b s d, d f -> b s f\"",
                           op->name);
    for (at = text; at < arrow; i++) {
        const char *comma = memchr(at, ',', (size_t)(arrow - at));
        const char *end = comma != NULL ? comma : arrow;
        wl__tensor letters = {0};

        CS_TRY(dims_span(r, node, at, (size_t)(end - at), &letters));
        if (i >= op->n_in)
            return cs_doc_fail(r->doc, node, r->err,
                               "operator '%s': more einsum operands than in `in:`", op->name);
        CS_TRY(letters_check(r, node, op, i, &letters));
        operands |= letters.mask;
        at = comma != NULL ? comma + 1 : arrow;
    }
    CS_TRY(wl__dims_read(r->doc, node, arrow + 2, r->model, out, r->err));
    if (i != 2 || op->n_in < 2 || op->n_in > 3)
        return cs_doc_fail(r->doc, node, r->err,
                           "operator '%s': an einsum has two operands, and a bias in `in:` at most",
                           op->name);
    if ((out->mask & ~operands) != 0)
        return cs_doc_fail(r->doc, node, r->err,
                           "operator '%s': a letter of the result is in no operand: '%s'", op->name,
                           text);
    if (op->n_in == 3 && (r->block->tensor[op->in[2]].mask & ~out->mask) != 0)
        return cs_doc_fail(r->doc, node, r->err,
                           "operator '%s': the bias has a dimension that the result lacks",
                           op->name);
done:
    return status;
}

/* Attention's result: the query's dimensions with the last replaced by the value's last. */
static cs_status attention_shape(const reader *r, const cs_node *node, const wl__op *op,
                                 wl__tensor *out)
{
    const wl__tensor *q = &r->block->tensor[op->in[0]], *v = &r->block->tensor[op->in[2]];

    if (q->rank < 3 || v->rank < 3)
        return cs_doc_fail(r->doc, node, r->err,
                           "operator '%s': attention takes q \"b s h e\", k and v \"b s g e\"",
                           op->name);
    *out = *q;
    out->dim[q->rank - 1] = v->dim[v->rank - 1];
    out->mask = 0;
    for (size_t i = 0; i < out->rank; i++)
        out->mask |= UINT64_C(1) << out->dim[i];
    return CS_OK;
}

static cs_status kernel_read(const reader *r, const cs_node *node, wl__op *op, wl__tensor *out)
{
    cs_status status = CS_OK;
    const cs_node *name = cs_node_get(node, "kernel"), *shape = cs_node_get(node, "shape");
    const char *text, *near = NULL;

    CS_TRY(cs_node_string(r->doc, name, &text, r->err));
    op->kernel = wl__kernel_find(text, &near);
    if (op->kernel == NULL)
        return cs_doc_fail(r->doc, name, r->err, "operator '%s': unknown kernel '%s'%s%s%s",
                           op->name, text, near != NULL ? "; did you mean '" : "",
                           near != NULL ? near : "", near != NULL ? "'?" : "");
    if (op->n_data < op->kernel->data_inputs_min || op->n_data > op->kernel->data_inputs_max ||
        (op->kernel->needs_parameter && op->n_data == op->n_in))
        return cs_doc_fail(r->doc, name, r->err,
                           "operator '%s': kernel %s takes %d to %d activations%s, got %d",
                           op->name, text, op->kernel->data_inputs_min, op->kernel->data_inputs_max,
                           op->kernel->needs_parameter ? " and a parameter" : "", op->n_data);
    if (op->kernel->needs_shape) {
        CS_TRY(cs_node_require(r->doc, node, "shape", &shape, r->err));
        CS_TRY(cs_node_string(r->doc, shape, &text, r->err));
        CS_TRY(wl__dims_read(r->doc, shape, text, r->model, out, r->err));
    } else if (op->kernel->keys) {
        CS_TRY(attention_shape(r, name, op, out));
    } else {
        *out = r->block->tensor[op->in[0]];
    }
done:
    return status;
}

static cs_status cache_read(const reader *r, const cs_node *node, wl__op *op)
{
    cs_status status = CS_OK;
    const cs_node *list = cs_node_get(node, "cache");

    if (op->kernel->keys && list == NULL) {
        op->cache[0] = op->in[1];
        op->cache[1] = op->in[2];
        op->n_cache = 2;
    }
    if (list == NULL)
        return CS_OK;
    CS_TRY(cs_node_expect(r->doc, list, CS_DOC_LIST, r->err));
    if (list->n > CS_COUNT(op->cache))
        return cs_doc_fail(r->doc, list, r->err, "at most %zu cached tensors", CS_COUNT(op->cache));
    for (size_t i = 0; i < list->n; i++)
        CS_TRY(tensor_find(r, list->item[i], &op->cache[i]));
    op->n_cache = (uint8_t)list->n;
done:
    return status;
}

static cs_status loops_fill(const reader *r, const cs_node *node, wl__op *op, const wl__tensor *out)
{
    for (size_t i = 0; i < op->n_in; i++)
        op->operand_loops |= r->block->tensor[op->in[i]].mask;
    op->loops = op->operand_loops | out->mask;
    for (size_t d = 0; d < r->model->n_dims; d++) {
        if ((op->loops >> d & 1) == 0)
            continue;
        if (op->n_loops == WL__MAX_LOOPS)
            return cs_doc_fail(r->doc, node, r->err,
                               "operator '%s' has more than %d loop dimensions", op->name,
                               WL__MAX_LOOPS);
        op->loop[op->n_loops++] = (uint8_t)d;
    }
    return CS_OK;
}

cs_status wl__op_read(const cs_doc *doc, const cs_node *node, wl_model *model, wl__block *block,
                      wl__op *op, cs_error *err)
{
    static const char *const keys[] = {"name",  "einsum", "kernel", "in",
                                       "shape", "causal", "cache"};
    cs_status status = CS_OK;
    const cs_node *einsum, *kernel, *value;
    const reader r = {doc, model, block, err};
    wl__tensor *tensors = block->tensor, out = {0};

    CS_TRY(cs_node_expect(doc, node, CS_DOC_MAP, err));
    CS_TRY(cs_node_check_keys(doc, node, keys, CS_COUNT(keys), err));
    CS_TRY(cs_node_require(doc, node, "name", &value, err));
    CS_TRY(cs_node_string(doc, value, &op->name, err));
    op->name = cs_arena_strdup(model->arena, op->name);
    for (size_t t = 0; op->name != NULL && t < block->n_tensors; t++)
        if (strcmp(tensors[t].name, op->name) == 0)
            return cs_doc_fail(doc, value, err, "the name '%s' is taken in block '%s'", op->name,
                               block->name);
    CS_TRY(inputs_read(&r, node, op));
    einsum = cs_node_get(node, "einsum");
    kernel = cs_node_get(node, "kernel");
    if ((einsum == NULL) == (kernel == NULL))
        return cs_doc_fail(doc, node, err, "operator '%s': give either einsum or kernel", op->name);
    op->kernel = &wl__einsum;
    CS_TRY(einsum != NULL ? einsum_read(&r, einsum, op, &out) : kernel_read(&r, node, op, &out));
    if ((value = cs_node_get(node, "causal")) != NULL)
        CS_TRY(cs_node_bool(doc, value, &op->causal, err));
    CS_TRY(cache_read(&r, node, op));
    CS_TRY(loops_fill(&r, node, op, &out));
    op->out = -1;
    if (op->kernel->loss) {
        tensors[op->in[0]].fp32 = true;
        block->head = true;
        return CS_OK;
    }
    if (block->n_tensors == WL__MAX_TENSORS)
        return cs_doc_fail(doc, node, err, "block '%s' has too many tensors", block->name);
    out.name = op->name;
    out.parameter = false;
    out.fp32 = false;
    op->out = (int16_t)block->n_tensors;
    tensors[block->n_tensors++] = out;
done:
    return status;
}
