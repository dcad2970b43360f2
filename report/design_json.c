/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Designs and their results as JSON.  One table of results drives the JSON keys, the CSV columns
 * and the dictionary in --help. */
#include "report/report_private.h"

#include <math.h>
#include <string.h>

#define RESULT(field) offsetof(sim_result, field)

const report_result report_results[] = {
    {"latency_s", "latency", RESULT(latency_s), CS_SECONDS, true,
     "time of one optimizer step (training) or request batch (inference)"},
    {"compute_s", "compute", RESULT(compute_s), CS_SECONDS, true,
     "time the compute stream works, on the stage that ends last"},
    {"exposed_s", "exposed communication", RESULT(exposed_s), CS_SECONDS, true,
     "time compute waits for communication"},
    {"exposed_by_axis_s.tp", "tensor parallel", RESULT(exposed_by_axis_s[WL_TP]), CS_SECONDS, true,
     "of exposed_s: tensor parallel"},
    {"exposed_by_axis_s.sp", "sequence parallel", RESULT(exposed_by_axis_s[WL_SP]), CS_SECONDS,
     true, "of exposed_s: sequence (context) parallel"},
    {"exposed_by_axis_s.ep", "expert parallel", RESULT(exposed_by_axis_s[WL_EP]), CS_SECONDS, true,
     "of exposed_s: expert parallel"},
    {"exposed_by_axis_s.dp", "data parallel", RESULT(exposed_by_axis_s[WL_DP]), CS_SECONDS, true,
     "of exposed_s: data parallel (gradients and sharded weights)"},
    {"exposed_by_axis_s.pp", "pipeline", RESULT(exposed_by_axis_s[WL_PP]), CS_SECONDS, true,
     "of exposed_s: pipeline boundaries"},
    {"hidden_s", "hidden communication", RESULT(hidden_s), CS_SECONDS, true,
     "communication that runs beside compute"},
    {"bubble_s", "bubble", RESULT(bubble_s), CS_SECONDS, true,
     "time a stage waits for another stage"},
    {"idle_s", "idle", RESULT(idle_s), CS_SECONDS, true, "time after the stage's last operation"},
    {"peak_memory_bytes", "peak memory", RESULT(peak_memory_bytes), CS_BYTES, true,
     "largest memory of an NPU"},
    {"memory_by_part_bytes.weights", "weights", RESULT(memory.weights), CS_BYTES, true,
     "of peak memory: weights"},
    {"memory_by_part_bytes.gradients", "gradients", RESULT(memory.gradients), CS_BYTES, true,
     "of peak memory: gradients"},
    {"memory_by_part_bytes.optimizer", "optimizer", RESULT(memory.optimizer), CS_BYTES, true,
     "of peak memory: optimizer state"},
    {"memory_by_part_bytes.activations", "activations", RESULT(memory.activations), CS_BYTES, true,
     "of peak memory: activations"},
    {"memory_by_part_bytes.gathered", "gathered weights", RESULT(memory.gathered), CS_BYTES, true,
     "of peak memory: gathered weights"},
    {"memory_by_part_bytes.communication", "buffers", RESULT(memory.communication), CS_BYTES, true,
     "of peak memory: communication buffers"},
    {"memory_by_part_bytes.logits", "logits", RESULT(memory.logits), CS_BYTES, true,
     "of peak memory: logits"},
    {"memory_by_part_bytes.kv_cache", "KV cache", RESULT(memory.kv_cache), CS_BYTES, true,
     "of peak memory: key-value cache"},
    {"memory_by_part_bytes.transient", "transient", RESULT(memory.transient), CS_BYTES, true,
     "of peak memory: what lives only inside one block"},
    {"bandwidth_per_npu_bytes_per_s", "bandwidth per NPU", RESULT(bandwidth_per_npu_bytes_per_s),
     CS_BANDWIDTH, true, "sum of one NPU's bandwidth over the dimensions"},
    {"network_cost_usd", "network cost", RESULT(network_cost_usd), CS_DOLLARS, true,
     "price of links, switches and NICs; absent where a dimension has no price"},
    {"mfu", "MFU", RESULT(mfu), CS_DIMENSIONLESS, true,
     "model FLOPs (causal attention in full) per second over the peak of all NPUs"},
    {"tokens_per_s", "tokens/s", RESULT(tokens_per_s), CS_DIMENSIONLESS, true,
     "tokens per second, all NPUs"},
    {"tokens_per_s_per_npu", "tokens/s per NPU", RESULT(tokens_per_s_per_npu), CS_DIMENSIONLESS,
     true, "tokens per second and NPU"},
    {"energy_j", "energy", RESULT(energy_j), CS_JOULES, false,
     "energy of one iteration, where the device states power"},
    {"ttft_s", "time to first token", RESULT(ttft_s), CS_SECONDS, false,
     "time to first token (inference)"},
    {"tpot_s", "time per token", RESULT(tpot_s), CS_SECONDS, false,
     "time per output token (inference)"},
    {NULL, NULL, 0, CS_DIMENSIONLESS, false, NULL},
};

const report_column report_trial_columns[] = {
    {"trial", "trial", REPORT_INTEGER, CS_DIMENSIONLESS,
     "number of the trial, from 1 in ask order"},
    {"status", "status", REPORT_TEXT, CS_DIMENSIONLESS, "feasible, infeasible, failed or invalid"},
    {"feasible", "feasible", REPORT_TEXT, CS_DIMENSIONLESS, "true when the design fits all limits"},
    {"verdict", "verdict", REPORT_TEXT, CS_DIMENSIONLESS,
     "feasible, out_of_memory or over_limit; absent when the simulator failed"},
    {"reason", "reason", REPORT_TEXT, CS_DIMENSIONLESS, "why a design is infeasible or failed"},
    {"violation", "violation", REPORT_REAL, CS_DIMENSIONLESS,
     "how far over the limits: log of the excess ratio, 0 when feasible"},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

double report__result_value(const search_trial *trial, const report_result *r)
{
    double value;

    if (trial->status == SEARCH_FAILED || trial->status == SEARCH_INVALID)
        return NAN;
    memcpy(&value, (const char *)&trial->result + r->offset, sizeof value);
    return value;
}

bool report__has_result(const search_trial *trial)
{
    return trial->status == SEARCH_FEASIBLE || trial->status == SEARCH_INFEASIBLE;
}

const char *report__objective_name(const search_problem *problem, size_t i)
{
    return psa_schema_objective_name(problem->schema, problem->objective[i]);
}

/* ---- configurations ---- */

static cs_json *field_value(const psa_field *field, const sim_config *config, size_t d)
{
    const char *at = (const char *)config + field->offset;
    char text[64];
    int64_t integer;
    int32_t small;
    double real;

    if (field->kind == PSA_INT) {
        memcpy(&integer, at + d * sizeof integer, sizeof integer);
        return cs_json_int(integer);
    }
    if (field->kind == PSA_REAL) {
        memcpy(&real, at + d * sizeof real, sizeof real);
        return cs_json_real(real);
    }
    memcpy(&small, at + d * sizeof small, sizeof small);
    if (field->kind == PSA_ENUM)
        return cs_json_string(field->names[small]);
    if (field->kind == PSA_BOOL)
        return cs_json_bool(small != 0);
    return cs_json_string(field->format(small, text));
}

/* Whether the field, or one of its elements "path[2]", is a knob of the space. */
static bool is_knob(const psa_space *space, const char *path)
{
    const size_t length = strlen(path);

    for (size_t k = 0; k < psa_space_n_knobs(space); k++) {
        const char *name = psa_space_knob_name(space, k);
        if (strncmp(name, path, length) == 0 && (name[length] == '\0' || name[length] == '['))
            return true;
    }
    return false;
}

cs_json *report_config_json(const psa_schema *schema, const psa_space *space,
                            const sim_config *config)
{
    const psa_tables *tables = psa_schema_tables(schema);
    cs_json *object = cs_json_object();

    for (size_t f = 0; f < tables->n_fields; f++) {
        const psa_field *field = &tables->fields[f];
        if (space != NULL && !is_knob(space, field->path))
            continue;
        if (!field->per_dimension) {
            cs_json_set(object, field->path, field_value(field, config, 0));
            continue;
        }
        cs_json *list = cs_json_array();
        for (size_t d = 0; d < psa_schema_n_dims(schema); d++)
            cs_json_push(list, field_value(field, config, d));
        cs_json_set(object, field->path, list);
    }
    return object;
}

/* ---- JSON ---- */

cs_json *report_header_json(const char *command, const search_problem *problem)
{
    cs_json *object = cs_json_object();
    char hash[24];

    cs_json_set(object, "version", cs_json_string(cs_version()));
    cs_json_set(object, "command", cs_json_string(command));
    if (problem == NULL)
        return object;
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)problem->hash);
    cs_json_set(object, "name", cs_json_string(psa_schema_name(problem->schema)));
    cs_json_set(object, "inputs_hash", cs_json_string(hash));
    return object;
}

/* Sets `key` in the object, or "inner" in its child "outer" for a key "outer.inner".  The children
 * collect in *group until another group begins. */
static void set_result(cs_json *object, const char **group, cs_json **child, const char *key,
                       cs_json *value)
{
    const char *dot = strchr(key, '.');
    char outer[64];

    if (dot == NULL) {
        cs_json_set(object, key, value);
        return;
    }
    if (*group == NULL || strncmp(*group, key, (size_t)(dot - key) + 1) != 0) {
        snprintf(outer, sizeof outer, "%.*s", (int)(dot - key), key);
        *child = cs_json_object();
        cs_json_set(object, outer, *child);
        *group = key;
    }
    cs_json_set(*child, dot + 1, value);
}

static void set_results(cs_json *object, const search_trial *trial)
{
    const char *group = NULL;
    cs_json *child = NULL;

    for (const report_result *r = report_results; r->key != NULL; r++) {
        const double value = report__result_value(trial, r);
        if (r->required || isfinite(value))
            set_result(object, &group, &child, r->key, cs_json_real(value));
    }
}

cs_json *report_trial_json(const search_problem *problem, const search_trial *trial,
                           const sim_config *config)
{
    cs_json *object = cs_json_object();
    cs_json *objectives = cs_json_object();
    sim_config decoded;
    char text[SEARCH_REASON_BYTES];
    const char *reason = search_trial_reason(trial, text);

    if (trial->id > 0)
        cs_json_set(object, "trial", cs_json_int((int64_t)trial->id));
    cs_json_set(object, "status", cs_json_string(search_status_names[trial->status]));
    cs_json_set(object, "feasible", cs_json_bool(trial->status == SEARCH_FEASIBLE));
    cs_json_set(object, "verdict",
                report__has_result(trial) ? cs_json_string(sim_verdict_names[trial->result.verdict])
                                          : cs_json_null());
    if (reason[0] != '\0')
        cs_json_set(object, "reason", cs_json_string(reason));
    cs_json_set(object, "violation", cs_json_real(trial->violation));
    for (size_t i = 0; i < problem->n_objectives; i++)
        cs_json_set(objectives, report__objective_name(problem, i),
                    cs_json_real(report__has_result(trial) ? trial->objective[i] : NAN));
    cs_json_set(object, "objectives", objectives);
    set_results(object, trial);
    if (config == NULL) {
        psa_space_decode(problem->space, trial->point, &decoded);
        cs_json_set(object, "config",
                    report_config_json(problem->schema, problem->space, &decoded));
    } else {
        cs_json_set(object, "config", report_config_json(problem->schema, NULL, config));
    }
    return object;
}
