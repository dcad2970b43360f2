/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Reads a model document: dimensions with roles, blocks of operators, the stack of blocks. */
#include "workloads/workload_private.h"

#include <string.h>

#define MAX_SIZE   INT64_C(1000000000000)
#define MAX_LAYERS 60000 /* a wl_segment counts in 16 bits */

static const char *copy(wl_model *model, const char *text)
{
    return cs_arena_strdup(model->arena, text);
}

static cs_status out_of_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "model");
}

static cs_status dim_read(const cs_doc *doc, const cs_node *key, const cs_node *node, wl__dim *dim,
                          cs_error *err)
{
    static const char *const keys[] = {"role", "size", "top_k"};
    cs_status status = CS_OK;
    const cs_node *value;
    bool free_size;

    CS_TRY(cs_node_check_keys(doc, node, keys, CS_COUNT(keys), err));
    if (*key->text == 0 || strpbrk(key->text, " ,->\t") != NULL)
        return cs_doc_fail(doc, key, err, "'%s' cannot name a dimension", key->text);
    CS_TRY(cs_node_require(doc, node, "role", &value, err));
    CS_TRY(cs_node_enum(doc, value, wl__role_names, WL__N_ROLES, &dim->role, err));
    free_size = dim->role == WL__BATCH || dim->role == WL__SEQUENCE || dim->role == WL__CAPACITY;
    value = cs_node_get(node, "size");
    if (free_size && value != NULL)
        return cs_doc_fail(doc, value, err, "the size of a %s dimension comes from the workload",
                           wl__role_names[dim->role]);
    if (!free_size) {
        CS_TRY(cs_node_require(doc, node, "size", &value, err));
        CS_TRY(cs_node_int(doc, value, 1, MAX_SIZE, &dim->size, err));
    }
    dim->top_k = 0;
    if ((value = cs_node_get(node, "top_k")) != NULL)
        CS_TRY(cs_node_int(doc, value, 1, dim->size > 0 ? dim->size : 1, &dim->top_k, err));
    if ((dim->role == WL__EXPERTS) != (dim->top_k > 0))
        return cs_doc_fail(doc, node, err, "top_k belongs to a dimension of role experts");
done:
    return status;
}

static cs_status dims_section(const cs_doc *doc, const cs_node *node, wl_model *model,
                              cs_error *err)
{
    cs_status status = CS_OK;

    CS_TRY(cs_node_expect(doc, node, CS_DOC_MAP, err));
    if (node->n > WL__MAX_DIMS)
        return cs_doc_fail(doc, node, err, "more than %d dimensions", WL__MAX_DIMS);
    for (size_t i = 0; i < node->n; i++) {
        CS_TRY(dim_read(doc, node->key[i], node->item[i], &model->dim[i], err));
        model->dim[i].name = copy(model, node->key[i]->text);
        if (model->dim[i].name == NULL)
            return out_of_memory(err);
        model->of_role[model->dim[i].role] |= UINT64_C(1) << i;
        model->n_dims++;
    }
done:
    return status;
}

static cs_status name_free(const cs_doc *doc, const cs_node *at, const wl__block *block,
                           const char *name, cs_error *err)
{
    for (size_t t = 0; t < block->n_tensors; t++)
        if (strcmp(block->tensor[t].name, name) == 0)
            return cs_doc_fail(doc, at, err, "the name '%s' is taken in block '%s'", name,
                               block->name);
    if (block->n_tensors == WL__MAX_TENSORS)
        return cs_doc_fail(doc, at, err, "block '%s' has too many tensors", block->name);
    return CS_OK;
}

/* Resolves "block.parameter" among the blocks read so far. */
static cs_status tie_read(const cs_doc *doc, const cs_node *node, wl_model *model,
                          wl__tensor *tensor, cs_error *err)
{
    cs_status status = CS_OK;
    const cs_node *value;
    const char *text;

    CS_TRY(cs_node_require(doc, node, "tie", &value, err));
    CS_TRY(cs_node_string(doc, value, &text, err));
    for (size_t b = 0; b < model->n_blocks; b++) {
        wl__block *block = &model->block[b];
        const size_t length = strlen(block->name);

        if (strncmp(text, block->name, length) != 0 || text[length] != '.')
            continue;
        for (size_t t = 0; t < block->n_tensors; t++) {
            const wl__tensor *other = &block->tensor[t];
            const char *name = tensor->name;

            if (!other->parameter || strcmp(other->name, text + length + 1) != 0)
                continue;
            *tensor = *other;
            tensor->name = name;
            tensor->tie_block = (int16_t)b;
            tensor->tie_tensor = (int16_t)t;
            tensor->tied = block->tensor[t].tied = true;
            return CS_OK;
        }
    }
    return cs_doc_fail(doc, value, err, "no parameter '%s' in an earlier block", text);
done:
    return status;
}

static cs_status tensor_read(const cs_doc *doc, const cs_node *key, const cs_node *node,
                             wl_model *model, wl__block *block, cs_error *err)
{
    cs_status status = CS_OK;
    const char *text;
    wl__tensor tensor = {.tie_block = -1, .tie_tensor = -1};

    CS_TRY(name_free(doc, key, block, key->text, err));
    tensor.name = copy(model, key->text);
    if (tensor.name == NULL)
        return out_of_memory(err);
    if (node->kind == CS_DOC_MAP) {
        CS_TRY(tie_read(doc, node, model, &tensor, err));
    } else {
        CS_TRY(cs_node_string(doc, node, &text, err));
        CS_TRY(wl__dims_read(doc, node, text, model, &tensor, err));
    }
    block->tensor[block->n_tensors++] = tensor;
done:
    return status;
}

static cs_status parameters_read(const cs_doc *doc, const cs_node *node, wl_model *model,
                                 wl__block *block, cs_error *err)
{
    cs_status status = CS_OK;

    if (node == NULL)
        return CS_OK;
    CS_TRY(cs_node_expect(doc, node, CS_DOC_MAP, err));
    for (size_t i = 0; i < node->n; i++) {
        CS_TRY(tensor_read(doc, node->key[i], node->item[i], model, block, err));
        block->tensor[block->n_tensors - 1].parameter = true;
        for (size_t d = 0; d < model->n_dims; d++)
            if ((block->tensor[block->n_tensors - 1].mask >> d & 1) != 0 && model->dim[d].size == 0)
                return cs_doc_fail(doc, node->item[i], err,
                                   "a parameter cannot have the %s dimension '%s'",
                                   wl__role_names[model->dim[d].role], model->dim[d].name);
    }
done:
    return status;
}

/* First and last use of every tensor, its producer, and whether a gradient flows into it: from a
 * parameter or the block's input through the operators. */
static void uses_fill(wl__block *block)
{
    for (size_t t = 0; t < block->n_tensors; t++) {
        wl__tensor *tensor = &block->tensor[t];

        tensor->producer = tensor->first_use = tensor->last_use = -1;
        tensor->needs_gradient = tensor->parameter || (int16_t)t == block->input;
    }
    for (size_t o = 0; o < block->n_ops; o++) {
        const wl__op *op = &block->op[o];
        bool any = false;

        for (size_t i = 0; i < op->n_in; i++) {
            wl__tensor *tensor = &block->tensor[op->in[i]];

            any = any || tensor->needs_gradient;
            tensor->last_use = (int16_t)o;
            if (tensor->first_use < 0)
                tensor->first_use = (int16_t)o;
        }
        if (op->out >= 0) {
            block->tensor[op->out].producer = (int16_t)o;
            block->tensor[op->out].needs_gradient = any;
        }
    }
}

/* Block input: "x: b s d"; a block of data (token ids, pixels) has `data:` instead, which needs
 * no gradient. */
static cs_status input_read(const cs_doc *doc, const cs_node *node, wl_model *model,
                            wl__block *block, cs_error *err)
{
    static const char *const names[] = {"input", "data"};
    cs_status status = CS_OK;

    for (size_t k = 0; k < CS_COUNT(names); k++) {
        const cs_node *map = cs_node_get(node, names[k]);

        if (map == NULL)
            continue;
        CS_TRY(cs_node_expect(doc, map, CS_DOC_MAP, err));
        if (k == 0 && map->n != 1)
            return cs_doc_fail(doc, map, err, "expected one input, like {x: b s d}");
        for (size_t i = 0; i < map->n; i++)
            CS_TRY(tensor_read(doc, map->key[i], map->item[i], model, block, err));
        if (k == 0)
            block->input = 0;
    }
done:
    return status;
}

static cs_status ops_read(const cs_doc *doc, const cs_node *list, wl_model *model, wl__block *block,
                          cs_error *err)
{
    cs_status status = CS_OK;

    CS_TRY(cs_node_expect(doc, list, CS_DOC_LIST, err));
    if (list->n == 0 || list->n > WL__MAX_OPS)
        return cs_doc_fail(doc, list, err, "block '%s': expected 1 to %d operators", block->name,
                           WL__MAX_OPS);
    for (size_t i = 0; i < list->n; i++) {
        wl__op *op = &block->op[i];

        CS_TRY(wl__op_read(doc, list->item[i], model, block, op, err));
        op->class = wl__op_class(model, op);
        block->n_ops++;
        block->output = op->out;
    }
done:
    return status;
}

static cs_status output_read(const cs_doc *doc, const cs_node *node, wl__block *block,
                             cs_error *err)
{
    cs_status status = CS_OK;
    const cs_node *value = cs_node_get(node, "output");
    const char *name;

    if (value == NULL)
        return CS_OK;
    CS_TRY(cs_node_string(doc, value, &name, err));
    for (size_t o = 0; o < block->n_ops; o++)
        if (strcmp(block->op[o].name, name) == 0 && block->op[o].out >= 0) {
            block->output = block->op[o].out;
            return CS_OK;
        }
    return cs_doc_fail(doc, value, err, "block '%s' has no operator '%s'", block->name, name);
done:
    return status;
}

/* What nobody needs is a slip: a parameter no operator reads, a result no operator uses. */
static cs_status leftovers_check(const cs_doc *doc, const cs_node *node, const wl__block *block,
                                 cs_error *err)
{
    for (size_t t = 0; t < block->n_tensors; t++) {
        const wl__tensor *tensor = &block->tensor[t];

        if (tensor->parameter && tensor->first_use < 0)
            return cs_doc_fail(doc, node, err, "block '%s': no operator uses the parameter '%s'",
                               block->name, tensor->name);
        if (tensor->producer >= 0 && tensor->first_use < 0 && (int16_t)t != block->output)
            return cs_doc_fail(doc, node, err, "block '%s': nothing uses the result of '%s'",
                               block->name, tensor->name);
    }
    return CS_OK;
}

static cs_status block_read(const cs_doc *doc, const cs_node *key, const cs_node *node,
                            wl_model *model, wl__block *block, cs_error *err)
{
    static const char *const keys[] = {"input", "data", "parameters", "ops", "output"};
    cs_status status = CS_OK;
    const cs_node *ops;

    CS_TRY(cs_node_check_keys(doc, node, keys, CS_COUNT(keys), err));
    block->name = copy(model, key->text);
    block->op = cs_arena_alloc(model->arena, WL__MAX_OPS * sizeof *block->op);
    block->tensor = cs_arena_alloc(model->arena, WL__MAX_TENSORS * sizeof *block->tensor);
    if (block->name == NULL || block->op == NULL || block->tensor == NULL)
        return out_of_memory(err);
    block->input = block->output = -1;
    CS_TRY(input_read(doc, node, model, block, err));
    CS_TRY(parameters_read(doc, cs_node_get(node, "parameters"), model, block, err));
    CS_TRY(cs_node_require(doc, node, "ops", &ops, err));
    CS_TRY(ops_read(doc, ops, model, block, err));
    CS_TRY(output_read(doc, node, block, err));
    uses_fill(block);
    CS_TRY(leftovers_check(doc, node, block, err));
    if (!wl__block_index(model, block))
        return out_of_memory(err);
done:
    return status;
}

static cs_status blocks_section(const cs_doc *doc, const cs_node *node, wl_model *model,
                                cs_error *err)
{
    cs_status status = CS_OK;

    CS_TRY(cs_node_expect(doc, node, CS_DOC_MAP, err));
    if (node->n > WL__MAX_BLOCKS)
        return cs_doc_fail(doc, node, err, "more than %d kinds of blocks", WL__MAX_BLOCKS);
    for (size_t i = 0; i < node->n; i++) {
        CS_TRY(block_read(doc, node->key[i], node->item[i], model, &model->block[i], err));
        model->n_blocks++;
    }
done:
    return status;
}

static cs_status stack_entry(const cs_doc *doc, const cs_node *node, wl_model *model,
                             wl__stack *entry, cs_error *err)
{
    static const char *const keys[] = {"block", "count"};
    cs_status status = CS_OK;
    const cs_node *name = node, *count;
    const char *names[WL__MAX_BLOCKS];
    int32_t index = 0;

    *entry = (wl__stack){.count = 1};
    for (size_t b = 0; b < model->n_blocks; b++)
        names[b] = model->block[b].name;
    if (node->kind == CS_DOC_MAP) {
        CS_TRY(cs_node_check_keys(doc, node, keys, CS_COUNT(keys), err));
        CS_TRY(cs_node_require(doc, node, "block", &name, err));
        CS_TRY(cs_node_require(doc, node, "count", &count, err));
        CS_TRY(cs_node_int(doc, count, 1, MAX_LAYERS, &entry->count, err));
        entry->layer = true;
    }
    CS_TRY(cs_node_enum(doc, name, names, model->n_blocks, &index, err));
    entry->block = (int16_t)index;
done:
    return status;
}

/* Tensors handed from block to block have the same dimensions all along. */
static cs_status chain_check(const cs_doc *doc, const cs_node *node, const wl_model *model,
                             size_t i, cs_error *err)
{
    const wl__block *block = &model->block[model->stack[i].block], *before;
    const wl__tensor *in, *out;

    if (i == 0)
        return CS_OK;
    before = &model->block[model->stack[i - 1].block];
    if (before->output < 0 || block->input < 0)
        return cs_doc_fail(doc, node, err, "block '%s' %s", block->name,
                           block->input < 0 ? "has no input" : "follows the one with the loss");
    in = &block->tensor[block->input];
    out = &before->tensor[before->output];
    if (in->rank != out->rank || memcmp(in->dim, out->dim, in->rank) != 0)
        return cs_doc_fail(doc, node, err,
                           "the input of block '%s' has other dimensions than the output of '%s'",
                           block->name, before->name);
    return CS_OK;
}

static cs_status stack_section(const cs_doc *doc, const cs_node *node, wl_model *model,
                               cs_error *err)
{
    cs_status status = CS_OK;
    bool closed = false, layers = false;

    CS_TRY(cs_node_expect(doc, node, CS_DOC_LIST, err));
    if (node->n == 0 || node->n > WL__MAX_STACK)
        return cs_doc_fail(doc, node, err, "expected 1 to %d entries", WL__MAX_STACK);
    for (size_t i = 0; i < node->n; i++) {
        wl__stack *entry = &model->stack[i];

        CS_TRY(stack_entry(doc, node->item[i], model, entry, err));
        CS_TRY(chain_check(doc, node->item[i], model, i, err));
        if (entry->layer && closed)
            return cs_doc_fail(doc, node->item[i], err,
                               "counted blocks (layers) must stand together");
        closed = closed || (layers && !entry->layer);
        layers = layers || entry->layer;
        model->n_stack++;
    }
    if (!layers)
        return cs_doc_fail(doc, node, err,
                           "expected a counted entry, like {block: layer, count: 96}");
done:
    return status;
}

/* Every stage receives what its neighbour's layer hands over: a layer has input and output. */
static cs_status layers_check(const cs_doc *doc, const cs_node *node, const wl_model *model,
                              cs_error *err)
{
    for (size_t i = 0; i < model->n_stack; i++) {
        const wl__block *block = &model->block[model->stack[i].block];

        if (model->stack[i].layer && (block->input < 0 || block->output < 0))
            return cs_doc_fail(doc, node, err, "a layer needs an input and an output: '%s'",
                               block->name);
    }
    return CS_OK;
}

static cs_status op_names_fill(wl_model *model, cs_error *err)
{
    static const char *const others[] = {"gradients", "optimizer", "parameters", "tied"};
    size_t n = 0;

    for (size_t b = 0; b < model->n_blocks; b++)
        n += model->block[b].n_ops;
    model->op_names = cs_arena_alloc(model->arena, (n + CS_COUNT(others)) * sizeof(char *));
    if (model->op_names == NULL)
        return out_of_memory(err);
    model->n_op_names = (int16_t)n;
    n = 0;
    for (size_t b = 0; b < model->n_blocks; b++) {
        model->block[b].op_base = (int16_t)n;
        for (size_t o = 0; o < model->block[b].n_ops; o++)
            model->op_names[n++] = model->block[b].op[o].name;
    }
    for (size_t i = 0; i < CS_COUNT(others); i++)
        model->op_names[n++] = others[i];
    return CS_OK;
}

cs_status wl__model_read(const cs_doc *doc, wl_model *model, cs_error *err)
{
    static const char *const keys[] = {"model", "name", "dims", "blocks", "stack"};
    cs_status status = CS_OK;
    const cs_node *root = cs_doc_root(doc), *node;
    int64_t version;

    CS_TRY(cs_node_check_keys(doc, root, keys, CS_COUNT(keys), err));
    CS_TRY(cs_node_require(doc, root, "model", &node, err));
    CS_TRY(cs_node_int(doc, node, 1, 1, &version, err));
    CS_TRY(cs_node_require(doc, root, "name", &node, err));
    CS_TRY(cs_node_string(doc, node, &model->name, err));
    model->name = copy(model, model->name);
    if (model->name == NULL)
        return out_of_memory(err);
    CS_TRY(cs_node_require(doc, root, "dims", &node, err));
    CS_TRY(dims_section(doc, node, model, err));
    CS_TRY(cs_node_require(doc, root, "blocks", &node, err));
    CS_TRY(blocks_section(doc, node, model, err));
    CS_TRY(cs_node_require(doc, root, "stack", &node, err));
    CS_TRY(stack_section(doc, node, model, err));
    CS_TRY(layers_check(doc, node, model, err));
    CS_TRY(op_names_fill(model, err));
    if (!wl__model_facts(model))
        return cs_doc_fail(doc, node, err, "the model has more than 9e15 parameters");
    if (model->facts.layers > MAX_LAYERS)
        return cs_doc_fail(doc, node, err, "the model has more than %d layers", MAX_LAYERS);
done:
    return status;
}
