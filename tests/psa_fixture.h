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

/* ---- spaces that several tests use ---- */

#define FX_WORKLOAD "workloads: [{model: m.yaml, global_batch: 96, sequence: 1024}]\n"

/* Degrees against a network whose size is free, a conditional, a boolean conditional, modulo:
 * 7*5*4*4*4*2*2 * 4*4 * 3*3 * 2*2 = 5,160,960 raw points. */
#define FX_SPACE_A                                                                                 \
    "psa: 1\n" FX_WORKLOAD "knobs:\n"                                                              \
    "  workload.dp: {powers_of_two: [1, 64]}\n"                                                    \
    "  workload.tp: {powers_of_two: [1, 16]}\n"                                                    \
    "  workload.sp: {powers_of_two: [1, 8]}\n"                                                     \
    "  workload.pp: {values: [1, 2, 4, 8]}\n"                                                      \
    "  workload.micro_batch: {values: [1, 2, 3, 6]}\n"                                             \
    "  workload.schedule: {values: [gpipe, 1f1b], when: workload.pp > 1}\n"                        \
    "  workload.tp_sequence: {values: [false, true], when: workload.tp > 1 and "                   \
    "workload.sharding != \"weights\"}\n"                                                          \
    "  network.npus: {values: [4, 1, 2, 8], per: dimension}\n"                                     \
    "  network.topology: {values: [ring, switch, fully_connected], per: dimension}\n"              \
    "  network.bandwidth: {values: [50 GB/s, 100 GB/s], per: dimension}\n"                         \
    "constraints:\n  - network.topology[2] != \"switch\" or workload.tp_sequence\n"

/* A network of a fixed size, a sum over what is switched on, powers of two where needed:
 * 6^3 * 3^3 * 3^3 * 3^3 = 4,251,528 raw points. */
#define FX_SPACE_B                                                                                 \
    "psa: 1\n" FX_WORKLOAD "knobs:\n"                                                              \
    "  network.npus: {values: [1, 2, 3, 4, 6, 8], per: dimension}\n"                               \
    "  network.topology: {values: [ring, switch, fully_connected], per: dimension}\n"              \
    "  network.bandwidth: {range: [50 GB/s, 150 GB/s], step: 50 GB/s, per: dimension}\n"           \
    "  collective.algorithm: {values: [direct, ring, halving_doubling], per: dimension}\n"         \
    "constraints:\n  - product(network.npus) == 24\n"                                              \
    "  - sum(network.bandwidth) <= 250 GB/s\n"                                                     \
    "  - count(network.topology == \"switch\") < 2\n"
#define FX_SYSTEM_B "system: 1\nnetwork: {npus: [1, 1, 24]}\nbaseline: {workload.dp: 24}\n"

/* Sums and remainders over many knobs, nothing that is a product equality:
 * 12 * 12 * 10 * 9 * 8 * 2 * 3 * 2 = 1,244,160 raw points. */
#define FX_SPACE_C                                                                                 \
    "psa: 1\nallow_idle: true\nknobs:\n"                                                           \
    "  workload.dp: {range: [1, 12], step: 1}\n"                                                   \
    "  workload.tp: {range: [1, 12], step: 1}\n"                                                   \
    "  workload.sp: {range: [1, 10], step: 1}\n"                                                   \
    "  workload.pp: {range: [2, 10], step: 1}\n"                                                   \
    "  workload.micro_batch: {range: [1, 8], step: 1}\n"                                           \
    "  workload.tp_sequence: [true, false]\n"                                                      \
    "  workload.sharding: {values: [weights, none, optimizer]}\n"                                  \
    "  placement: {values: [bca, abc]}\n"                                                          \
    "derived:\n  total: workload.dp + workload.tp + workload.sp + workload.pp\n"                   \
    "constraints:\n  - total % 7 == workload.micro_batch % 7\n"                                    \
    "  - total * 2 + workload.micro_batch >= 45 or workload.tp_sequence\n"                         \
    "  - max(workload.dp, workload.tp, workload.sp) - min(workload.dp, workload.tp) <= 4\n"        \
    "  - not (workload.sharding == \"none\" and placement == \"abc\")\n"
#define FX_SYSTEM_C "system: 1\nnetwork: {npus: [10, 200]}\n"

#define FX_SMALL                                                                                   \
    "psa: 1\nknobs:\n"                                                                             \
    "  workload.dp: {powers_of_two: [1, 16]}\n"                                                    \
    "  workload.tp: {powers_of_two: [1, 8]}\n"                                                     \
    "  workload.pp: {values: [1, 2, 4]}\n"                                                         \
    "  workload.schedule: {values: [1f1b, gpipe], when: workload.pp > 1}\n"                        \
    "  workload.micro_batch: {values: [1, 2, 3, 4]}\n"                                             \
    "  network.npus: {values: [1, 2, 4], per: dimension}\n"                                        \
    "  network.bandwidth: {values: [50 GB/s, 75 GB/s], per: dimension}\n"                          \
    "constraints:\n"                                                                               \
    "  - workload.dp * workload.tp * workload.pp == product(network.npus)\n"                       \
    "  - 12 % (workload.dp * workload.micro_batch) == 0\n"

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
