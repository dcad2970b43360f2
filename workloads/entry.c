/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The keys of a PSA's workload entry. */
#include "workloads/workload_private.h"

static cs_status read_int(const cs_doc *doc, const cs_node *node, const char *key, int64_t *out,
                          cs_error *err)
{
    const cs_node *value = cs_node_get(node, key);

    return value == NULL ? CS_OK : cs_node_int(doc, value, 1, INT64_C(1) << 32, out, err);
}

static cs_status require(const cs_doc *doc, const cs_node *node, int64_t value, const char *key,
                         const char *mode, cs_error *err)
{
    if (value > 0)
        return CS_OK;
    return cs_doc_fail(doc, node, err, "mode %s needs the key '%s'", mode, key);
}

static cs_status read_load(const cs_doc *doc, const cs_node *node, wl_workload *w, cs_error *err)
{
    const cs_node *value = cs_node_get(node, "requests_per_s");
    cs_status status = CS_OK;

    if (value == NULL)
        return CS_OK;
    if (w->mode != WL_SERVE)
        return cs_doc_fail(doc, value, err, "requests_per_s needs mode: serve");
    CS_TRY(cs_node_real(doc, value, &w->requests_per_s, err));
    if (!(w->requests_per_s > 0.0 && w->requests_per_s < 1e12))
        return cs_doc_fail(doc, value, err, "expected more than 0 requests per second");
done:
    return status;
}

cs_status wl_workload_parse(const cs_doc *doc, const cs_node *node, const wl_model *model,
                            wl_workload *out, cs_error *err)
{
    static const char *const keys[] = {"model",  "mode", "global_batch",   "sequence", "context",
                                       "output", "npus", "requests_per_s", "weight"};
    static const char *const modes[] = {"train", "prefill", "decode", "serve"};
    cs_status status = CS_OK;
    wl_workload w = {.model = model, .weight = 1.0, .output = 1};
    const cs_node *value;
    int32_t mode = WL_TRAIN;

    CS_TRY(cs_node_check_keys(doc, node, keys, CS_COUNT(keys), err));
    if ((value = cs_node_get(node, "mode")) != NULL)
        CS_TRY(cs_node_enum(doc, value, modes, CS_COUNT(modes), &mode, err));
    w.mode = (wl_mode)mode;
    CS_TRY(read_int(doc, node, "global_batch", &w.global_batch, err));
    CS_TRY(read_int(doc, node, "sequence", &w.sequence, err));
    CS_TRY(read_int(doc, node, "context", &w.context, err));
    CS_TRY(read_int(doc, node, "output", &w.output, err));
    CS_TRY(read_int(doc, node, "npus", &w.npus, err));
    CS_TRY(read_load(doc, node, &w, err));
    if ((value = cs_node_get(node, "weight")) != NULL)
        CS_TRY(cs_node_real(doc, value, &w.weight, err));
    if (!(w.weight >= 0.0 && w.weight < 1e12))
        return cs_doc_fail(doc, value, err, "expected a weight of 0 or more");
    CS_TRY(require(doc, node, w.global_batch, "global_batch", modes[mode], err));
    if (w.mode == WL_DECODE)
        CS_TRY(require(doc, node, w.context, "context", modes[mode], err));
    else
        CS_TRY(require(doc, node, w.sequence, "sequence", modes[mode], err));
    if (w.mode == WL_DECODE)
        w.sequence = 1;
    *out = w;
done:
    return status;
}
