/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "sim/model_private.h"

enum { PROGRAM_BYTES = 40 << 20, ROUTE_BYTES = 16 << 20 };

/* Facts of a workload by name; psa's implied constraints are written over them. */
static cs_status bind_facts(psa_schema *schema, size_t i, const wl_workload *workload,
                            cs_error *err)
{
    wl_facts f = wl_model_facts(workload->model);
    const psa_fact facts[] = {
        {"workload.global_batch", (double)workload->global_batch},
        {"workload.sequence", (double)workload->sequence},
        {"workload.npus", (double)workload->npus},
        {"workload.decoders", workload->mode == WL_DECODE ? (double)workload->npus : 0},
        {"model.parameters", (double)f.parameters},
        {"model.active_parameters", (double)f.active_parameters},
        {"model.layers", (double)f.layers},
        {"model.hidden", (double)f.hidden},
        {"model.heads", (double)f.heads},
        {"model.kv_heads", (double)f.kv_heads},
        {"model.head_dim", (double)f.head_dim},
        {"model.ffn", (double)f.ffn},
        {"model.vocabulary", (double)f.vocabulary},
        {"model.experts", (double)f.experts},
        {"model.top_k", (double)f.top_k},
    };
    return psa_schema_bind(schema, i, facts, CS_COUNT(facts), err);
}

static cs_status load_workload(sim_model *model, psa_schema *schema, size_t i, cs_error *err)
{
    cs_status status;
    const psa_workload *entry = psa_schema_workload(schema, i);

    for (size_t j = 0; j < i && model->models[i] == NULL; j++)
        if (strcmp(psa_schema_workload(schema, j)->model_path, entry->model_path) == 0)
            model->models[i] = model->models[j];
    if (model->models[i] == NULL) {
        CS_TRY(wl_model_load(entry->model_path, &model->models[i], err));
        model->owned[i] = true;
    }
    CS_TRY(wl_workload_parse(psa_schema_doc(schema), entry->node, model->models[i],
                             &model->workloads[i], err));
    model->workloads[i].weight = entry->weight;
    model->n_workloads = i + 1;
    CS_TRY(bind_facts(schema, i, &model->workloads[i], err));
done:
    return status;
}

static sim_aggregate aggregate_of(const char *name)
{
    return strcmp(name, "mean") == 0 ? SIM_MEAN : strcmp(name, "max") == 0 ? SIM_MAX : SIM_SUM;
}

/* Results that only some kinds of workload have. */
static cs_status check_results(const sim_model *model, const psa_schema *schema, cs_error *err)
{
    cs_status status = CS_OK;
    bool prefill = false, decode = false;

    for (size_t i = 0; i < model->n_workloads; i++) {
        const wl_mode mode = model->workloads[i].mode;
        prefill = prefill || mode == WL_PREFILL || mode == WL_SERVE;
        decode = decode || mode == WL_DECODE || mode == WL_SERVE;
    }
    if (!prefill)
        CS_TRY(psa_schema_refuse_result(schema, "ttft", "needs a workload of mode serve or prefill",
                                        err));
    if (!decode)
        CS_TRY(psa_schema_refuse_result(schema, "tpot", "needs a workload of mode serve or decode",
                                        err));
done:
    return status;
}

cs_status sim_model_create(psa_schema *schema, sim_model **out, cs_error *err)
{
    cs_status status = CS_OK;
    size_t n = psa_schema_n_workloads(schema);
    sim_model *model = calloc(1, sizeof *model);

    if (model == NULL)
        return cs_fail(err, CS_ENOMEM, "simulator model");
    if (n == 0 || n > SIM_MAX_WORKLOADS) {
        status = cs_fail(err, CS_ESCHEMA, "%s: workloads: expected 1 to %d entries, found %zu",
                         cs_doc_path(psa_schema_doc(schema)), SIM_MAX_WORKLOADS, n);
        goto done;
    }
    for (size_t i = 0; i < n; i++)
        CS_TRY(load_workload(model, schema, i, err));
    CS_TRY(check_results(model, schema, err));
    model->n_dims = psa_schema_n_dims(schema);
    model->aggregate = aggregate_of(psa_schema_aggregate(schema));
    model->prices = psa_schema_prices(schema);
    model->memory_limit = psa_schema_memory_limit(schema);
    *out = model;
    model = NULL;
done:
    sim_model_destroy(model);
    return status;
}

void sim_model_destroy(sim_model *model)
{
    if (model == NULL)
        return;
    for (size_t i = 0; i < SIM_MAX_WORKLOADS; i++)
        if (model->owned[i])
            wl_model_destroy(model->models[i]);
    free(model);
}

const wl_workload *sim_model_workload(const sim_model *model, size_t i)
{
    return &model->workloads[i];
}

size_t sim_model_n_workloads(const sim_model *model)
{
    return model->n_workloads;
}

sim_scratch *sim_scratch_create(const sim_model *model)
{
    sim_scratch *scratch = calloc(1, sizeof *scratch);

    (void)model;
    if (scratch == NULL)
        return NULL;
    scratch->engine = sim__engine_create();
    scratch->routes = sim_route_cache_create(ROUTE_BYTES);
    scratch->programs = sim__programs_create(PROGRAM_BYTES);
    if (scratch->engine == NULL || scratch->routes == NULL || scratch->programs == NULL) {
        sim_scratch_destroy(scratch);
        return NULL;
    }
    return scratch;
}

void sim_scratch_destroy(sim_scratch *scratch)
{
    if (scratch == NULL)
        return;
    sim__engine_destroy(scratch->engine);
    sim__schedule_fini(&scratch->schedule);
    sim_route_cache_destroy(scratch->routes);
    sim__programs_destroy(scratch->programs);
    free(scratch);
}

static void fill_dimension(const sim_config *config, size_t d, sim_dim *out)
{
    *out = (sim_dim){
        .topology = config->network.topology[d],
        .algorithm = config->collective.algorithm[d],
        .n = config->network.npus[d],
        .bandwidth_bytes_per_s = config->network.bandwidth[d],
        .latency_s = config->network.latency[d],
        .oversubscription = config->network.oversubscription[d],
        .in_network_reduction = config->network.in_network_reduction[d],
    };
}

void sim_config_network(const sim_config *config, size_t n_dims, sim_network *out)
{
    memset(out, 0, sizeof *out);
    out->n_dims = n_dims;
    for (size_t d = 0; d < n_dims; d++)
        fill_dimension(config, d, &out->dim[d]);
    out->multi_dim = config->collective.multi_dim;
    out->scheduling = config->collective.scheduling;
    out->chunks = config->collective.chunks;
    out->endpoint_delay_s = config->collective.endpoint_delay;
}

void sim__mesh_make(const wl_config *split, sim_mesh *out)
{
    *out = (sim_mesh){{0}};
    out->size[WL_TP] = split->tp;
    out->size[WL_SP] = split->sp;
    out->size[WL_EP] = split->ep;
    out->size[WL_DP] = split->dp / split->ep;
    out->size[WL_PP] = split->pp;
}
