/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A small configuration and its tables, so that psa is tested without models and simulator. */
#ifndef TESTS_PSA_FIXTURE_H
#define TESTS_PSA_FIXTURE_H

#include "psa/psa.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    int64_t dp, tp, sp, pp, micro_batch;
    int32_t sharding, schedule, tp_sequence, placement;
    int32_t topology[PSA_MAX_DIMS], algorithm[PSA_MAX_DIMS];
    int64_t npus[PSA_MAX_DIMS];
    double bandwidth[PSA_MAX_DIMS], latency[PSA_MAX_DIMS];
    int64_t chunks;
    double peak, capacity, power;
} fx_config;

typedef struct {
    double latency, memory, cost, rate, energy;
} fx_result;

static const char *const fx_sharding[] = {"none", "optimizer", "weights", NULL};
static const char *const fx_schedule[] = {"1f1b", "gpipe", NULL};
static const char *const fx_topology[] = {"ring", "switch", "fully_connected", NULL};
static const char *const fx_algorithm[] = {"ring", "direct", "halving_doubling", NULL};

static cs_status fx_parse_order(const char *text, int32_t *out, cs_error *err)
{
    for (int32_t i = 0; i < 3; i++)
        if (strlen(text) == 3 && text[0] == "abc"[i]) {
            *out = i;
            return CS_OK;
        }
    return cs_fail(err, CS_EINVAL, "expected an order such as abc, found '%s'", text);
}

static const char *fx_format_order(int32_t value, char text[64])
{
    static const char *const orders[] = {"abc", "bca", "cab"};

    (void)snprintf(text, 64, "%s", orders[value]);
    return text;
}

#define FX_AT(member) offsetof(fx_config, member)
#define FX_INT(path_, member, fallback_, min_, max_)                                               \
    {                                                                                              \
        .path = path_, .kind = PSA_INT, .offset = FX_AT(member), .fallback = fallback_,            \
        .min = min_, .max = max_, .help = "a number"                                               \
    }
#define FX_REAL(path_, member, unit_, fallback_)                                                   \
    {                                                                                              \
        .path = path_, .kind = PSA_REAL, .unit = unit_, .offset = FX_AT(member),                   \
        .fallback = fallback_, .help = "a quantity"                                                \
    }

static const psa_field fx_fields[] = {
    FX_INT("workload.dp", dp, 1, 1, 1e9),
    FX_INT("workload.tp", tp, 1, 1, 1e9),
    FX_INT("workload.sp", sp, 1, 1, 1e9),
    FX_INT("workload.pp", pp, 1, 1, 1e9),
    FX_INT("workload.micro_batch", micro_batch, 1, 1, 1e9),
    {.path = "workload.sharding",
     .kind = PSA_ENUM,
     .offset = FX_AT(sharding),
     .names = fx_sharding},
    {.path = "workload.schedule",
     .kind = PSA_ENUM,
     .offset = FX_AT(schedule),
     .names = fx_schedule},
    {.path = "workload.tp_sequence", .kind = PSA_BOOL, .offset = FX_AT(tp_sequence)},
    {.path = "placement",
     .kind = PSA_ORDER,
     .offset = FX_AT(placement),
     .parse = fx_parse_order,
     .format = fx_format_order},
    {.path = "network.topology",
     .kind = PSA_ENUM,
     .per_dimension = true,
     .offset = FX_AT(topology),
     .names = fx_topology,
     .inactive_on_size_one = true},
    {.path = "network.npus",
     .kind = PSA_INT,
     .per_dimension = true,
     .offset = FX_AT(npus),
     .fallback = NAN,
     .min = 1,
     .max = 1e6,
     .help = "NPUs along a dimension"},
    {.path = "network.bandwidth",
     .kind = PSA_REAL,
     .unit = {{-1, 1, 0, 0, 0}},
     .per_dimension = true,
     .offset = FX_AT(bandwidth),
     .fallback = 50e9,
     .inactive_on_size_one = true},
    {.path = "network.latency",
     .kind = PSA_REAL,
     .unit = {{1, 0, 0, 0, 0}},
     .per_dimension = true,
     .offset = FX_AT(latency),
     .fallback = 1e-6},
    {.path = "collective.algorithm",
     .kind = PSA_ENUM,
     .per_dimension = true,
     .offset = FX_AT(algorithm),
     .names = fx_algorithm,
     .inactive_on_size_one = true},
    FX_INT("collective.chunks", chunks, 4, 1, 100000),
    FX_REAL("compute.peak", peak, ((cs_dimension){{-1, 0, 1, 0, 0}}), 900e12),
    FX_REAL("compute.capacity", capacity, ((cs_dimension){{0, 1, 0, 0, 0}}), 24e9),
    {.path = "compute.power",
     .kind = PSA_REAL,
     .unit = {{-1, 0, 0, 0, 1}},
     .offset = FX_AT(power),
     .fallback = NAN,
     .optional = true},
};

static const psa_rule fx_rules[] = {
    {.name = "degrees fill the network",
     .expression = "workload.dp * workload.tp * workload.sp * workload.pp == product(network.npus)",
     .relaxed_by = "allow_idle"},
    {.name = "degrees fit the network",
     .expression = "workload.dp * workload.tp * workload.sp * workload.pp <= product(network.npus)",
     .relaxed_by = "!allow_idle"},
    {.name = "tp divides heads", .expression = "model.heads % workload.tp == 0"},
    {.name = "stages divide layers",
     .expression = "model.layers % workload.pp == 0",
     .relaxed_by = "uneven_stages"},
    {.name = "the batch divides",
     .expression = "workload.global_batch % (workload.dp * workload.micro_batch) == 0"},
    {.name = "no price for a switch on dimension 1",
     .expression = "network.topology[1] != \"switch\" or network.npus[1] == 1",
     .relaxed_by = "?network_cost"},
    {.name = "halving_doubling needs a power of two",
     .expression = "not (collective.algorithm[d] == \"halving_doubling\") or "
                   "log2(network.npus[d]) % 1 == 0",
     .per_dimension = true},
};

static const psa_result fx_results[] = {
    {"latency", {{1, 0, 0, 0, 0}}, offsetof(fx_result, latency), "seconds"},
    {"peak_memory", {{0, 1, 0, 0, 0}}, offsetof(fx_result, memory), "bytes"},
    {"network_cost", {{0, 0, 0, 1, 0}}, offsetof(fx_result, cost), "dollars"},
    {"tokens_per_s", {{-1, 0, 0, 0, 0}}, offsetof(fx_result, rate), "rate"},
    {"energy", {{0, 0, 0, 0, 1}}, offsetof(fx_result, energy), "joules"},
};

static const psa_tables fx_tables = {
    .fields = fx_fields,
    .n_fields = CS_COUNT(fx_fields),
    .config_size = sizeof(fx_config),
    .rules = fx_rules,
    .n_rules = CS_COUNT(fx_rules),
    .results = fx_results,
    .n_results = CS_COUNT(fx_results),
    .dimension_count_path = "network.npus",
};

/* The same without implied rules, where a test wants only what it writes. */
static const psa_tables fx_plain = {
    .fields = fx_fields,
    .n_fields = CS_COUNT(fx_fields),
    .config_size = sizeof(fx_config),
    .results = fx_results,
    .n_results = CS_COUNT(fx_results),
    .dimension_count_path = "network.npus",
};

#define FX_SYSTEM                                                                                  \
    "system: 1\nname: small\nnetwork:\n  npus: [4, 8]\n  topology: [ring, switch]\n"               \
    "  bandwidth: [100 GB/s, 50 GB/s]\nbaseline:\n  workload.dp: 32\n"

static cs_status fx_parse(const psa_tables *tables, const char *psa, const char *system,
                          psa_schema **out, cs_error *err)
{
    psa_text text = {"test.yaml", psa, strlen(psa), system, system == NULL ? 0 : strlen(system)};

    return psa_schema_parse(&text, tables, out, err);
}

/* Loads and binds; prints the message when it does not work. */
static inline psa_schema *fx_load(const psa_tables *tables, const char *psa, const char *system)
{
    static const psa_fact facts[] = {
        {"model.heads", 96}, {"model.layers", 96}, {"model.kv_heads", 8}};
    psa_schema *schema = NULL;
    cs_error err = {""};

    if (fx_parse(tables, psa, system, &schema, &err) != CS_OK)
        fail_msg("%s", err.text);
    for (size_t w = 0; w < psa_schema_n_workloads(schema); w++)
        if (psa_schema_bind(schema, w, facts, CS_COUNT(facts), &err) != CS_OK)
            fail_msg("%s", err.text);
    return schema;
}

static inline psa_space *fx_space(const psa_schema *schema)
{
    psa_space *space = NULL;
    cs_error err = {""};

    if (psa_space_create(schema, &space, &err) != CS_OK)
        fail_msg("%s", err.text);
    return space;
}

static inline void fx_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, text);
}

#endif
