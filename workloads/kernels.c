/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Two tables decide how every operator behaves: the kernels, and the strategy {operator class,
 * axis} -> loop dimension that the axis splits (DESIGN 5.1). */
#include "workloads/workload_private.h"

#include <string.h>

const char *const wl_axis_names[] = {"tp", "sp", "ep", "dp", "pp", NULL};
const char *const wl_collective_names[] = {"all_reduce", "reduce_scatter", "all_gather",
                                           "all_to_all", "broadcast",      "reduce",
                                           "scatter",    "gather",         NULL};
const char *const wl__role_names[] = {"batch",    "sequence", "hidden", "heads",
                                      "kv_heads", "head_dim", "ffn",    "vocabulary",
                                      "experts",  "capacity", "none",   NULL};

const wl__kernel wl__einsum = {.name = "einsum",
                               .data_inputs_min = 1,
                               .data_inputs_max = 2,
                               .saves = 3,
                               .inner_role = WL__N_ROLES};

#define PLAIN(n) .data_inputs_min = n, .data_inputs_max = n
#define NO_INNER .inner_role = WL__N_ROLES

/* Saved operands follow what training frameworks keep: a norm its input, an activation its input,
 * flash attention q, k, v, its result and one fp32 statistic a row (Dao et al. 2022), cross-entropy
 * its fp32 logits, overwritten by the softmax (Shoeybi et al. 2019). */
static const wl__kernel kernels[] = {
    {.name = "attention",
     .data_inputs_min = 3,
     .data_inputs_max = 5,
     .keys = true,
     .saves = 31,
     .saves_result = true,
     NO_INNER},
    {.name = "rms_norm",
     PLAIN(1),
     .cheap = true,
     .saves = 1,
     .inner_role = WL__HIDDEN,
     .inner_floats = 1},
    {.name = "layer_norm",
     PLAIN(1),
     .cheap = true,
     .saves = 1,
     .inner_role = WL__HIDDEN,
     .inner_floats = 2},
    {.name = "activation", PLAIN(1), .cheap = true, .saves = 1, NO_INNER},
    {.name = "gated_activation", PLAIN(2), .cheap = true, .saves = 3, NO_INNER},
    {.name = "multiply", PLAIN(2), .saves = 3, NO_INNER},
    {.name = "add",
     .data_inputs_min = 1,
     .data_inputs_max = 5,
     .linear = true,
     .pass_through = true,
     NO_INNER},
    {.name = "position", PLAIN(1), .pass_through = true, NO_INNER},
    {.name = "embedding",
     PLAIN(0),
     .needs_parameter = true,
     .needs_shape = true,
     .lookup = true,
     NO_INNER},
    {.name = "cross_entropy",
     PLAIN(1),
     .loss = true,
     .saves = 1,
     .inner_role = WL__VOCABULARY,
     .inner_floats = 3},
    {.name = "router", PLAIN(1), .saves = 1, NO_INNER},
    {.name = "dispatch", PLAIN(2), .needs_shape = true, .linear = true, .aligned = true, NO_INNER},
    {.name = "combine",
     PLAIN(2),
     .needs_shape = true,
     .linear = true,
     .aligned = true,
     .saves = 1,
     NO_INNER},
    {.name = "pool", PLAIN(1), .needs_shape = true, .linear = true, NO_INNER},
    {.name = "convolution", PLAIN(1), .saves = 1, NO_INNER},
    {.name = "scan",
     .data_inputs_min = 2,
     .data_inputs_max = 5,
     .saves = 31,
     .inner_role = WL__SEQUENCE,
     .inner_floats = 1},
    {.name = "interaction",
     .pairwise = true,
     .data_inputs_min = 1,
     .data_inputs_max = 2,
     .needs_shape = true,
     .saves = 3,
     NO_INNER},
};

const wl__kernel *wl__kernel_find(const char *name, const char **nearest)
{
    const char *names[CS_COUNT(kernels)];

    for (size_t i = 0; i < CS_COUNT(kernels); i++) {
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
        names[i] = kernels[i].name;
    }
    *nearest = cs_nearest(name, names, CS_COUNT(names));
    return NULL;
}

int32_t wl__op_class(const wl_model *model, const wl__op *op)
{
    static const struct {
        int32_t role, class;
    } by_role[] = {{WL__HEADS, WL__CLASS_HEADS},
                   {WL__KV_HEADS, WL__CLASS_HEADS},
                   {WL__FFN, WL__CLASS_FFN},
                   {WL__VOCABULARY, WL__CLASS_VOCABULARY}};
    const uint64_t slots = model->of_role[WL__CAPACITY];

    if ((op->loops & slots) != 0 && !op->kernel->aligned)
        return WL__CLASS_EXPERT;
    for (size_t i = 0; i < CS_COUNT(by_role); i++)
        if ((op->loops & model->of_role[by_role[i].role]) != 0)
            return by_role[i].class;
    return WL__CLASS_POINTWISE;
}

/* {class, axis} -> roles of the loop dimension split, first match; WL__N_ROLES: none.  The
 * sequence is split over tp only with tp_sequence. */
static const int32_t strategy[WL__N_CLASSES][WL__AXES][2] = {
    [WL__CLASS_POINTWISE] = {{WL__SEQUENCE, WL__N_ROLES},
                             {WL__SEQUENCE, WL__N_ROLES},
                             {WL__BATCH, WL__N_ROLES},
                             {WL__BATCH, WL__N_ROLES}},
    [WL__CLASS_HEADS] = {{WL__HEADS, WL__KV_HEADS},
                         {WL__SEQUENCE, WL__N_ROLES},
                         {WL__BATCH, WL__N_ROLES},
                         {WL__BATCH, WL__N_ROLES}},
    [WL__CLASS_FFN] = {{WL__FFN, WL__N_ROLES},
                       {WL__SEQUENCE, WL__N_ROLES},
                       {WL__BATCH, WL__N_ROLES},
                       {WL__BATCH, WL__N_ROLES}},
    [WL__CLASS_VOCABULARY] = {{WL__VOCABULARY, WL__N_ROLES},
                              {WL__SEQUENCE, WL__N_ROLES},
                              {WL__BATCH, WL__N_ROLES},
                              {WL__BATCH, WL__N_ROLES}},
    [WL__CLASS_EXPERT] = {{WL__FFN, WL__N_ROLES},
                          {WL__CAPACITY, WL__N_ROLES},
                          {WL__EXPERTS, WL__N_ROLES},
                          {WL__CAPACITY, WL__N_ROLES}},
};

int8_t wl__strategy_split(const wl_model *model, const wl__op *op, size_t axis, bool tp_sequence)
{
    for (size_t r = 0; r < 2; r++) {
        const int32_t role = strategy[op->class][axis][r];

        if (role == WL__N_ROLES || (axis == WL_TP && role == WL__SEQUENCE && !tp_sequence))
            continue;
        for (size_t l = 0; l < op->n_loops; l++)
            if (model->dim[op->loop[l]].role == role)
                return (int8_t)op->loop[l];
    }
    return WL__WHOLE;
}
