/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a configuration consists of, which rules always hold, what results are called: the constant
 * tables that psa works from.  A new field is one row here and one member of sim_config. */
#include <math.h>

#include "sim/sim.h"

static const char *const sharding_names[] = {"none", "optimizer", "gradients", "weights", NULL};
static const char *const recompute_names[] = {"none", "selective", "full", NULL};
static const char *const schedule_names[] = {"1f1b",  "gpipe", "interleaved",
                                             "zb_h1", "zb_h2", NULL};
static const char *const precision_names[] = {"bf16", "fp16", "fp32", "fp8", NULL};
static const char *const gradient_names[] = {"half", "fp32", NULL};
static const char *const attention_names[] = {"flash", "gpt-2022", NULL};
static const char *const cp_names[] = {"gather", "ring", NULL};
static const char *const offload_names[] = {"none", "optimizer", "weights", "activations", NULL};
static const char *const multi_dim_names[] = {"baseline", "hierarchical", NULL};
static const char *const scheduling_names[] = {"program",  "fifo",   "lifo",
                                               "smallest", "themis", NULL};

#define AT(member) offsetof(sim_config, member)
#define COUNT(name, member, default_, help_)                                                       \
    {                                                                                              \
        .path = name, .kind = PSA_INT, .offset = AT(member), .fallback = default_, .min = 1,       \
        .max = 1e9, .help = help_                                                                  \
    }
#define ENUM(name, member, names_, help_)                                                          \
    {                                                                                              \
        .path = name, .kind = PSA_ENUM, .offset = AT(member), .names = names_, .help = help_       \
    }
#define FLAG(name, member, default_, help_)                                                        \
    {                                                                                              \
        .path = name, .kind = PSA_BOOL, .offset = AT(member), .fallback = default_, .help = help_  \
    }
#define REAL(name, member, unit_, default_, min_, max_, help_)                                     \
    {                                                                                              \
        .path = name, .kind = PSA_REAL, .offset = AT(member), .unit = unit_, .fallback = default_, \
        .min = min_, .max = max_, .help = help_                                                    \
    }
#define OPTIONAL(name, member, unit_, max_, help_)                                                 \
    {                                                                                              \
        .path = name, .kind = PSA_REAL, .offset = AT(member), .unit = unit_, .fallback = NAN,      \
        .optional = true, .max = max_, .help = help_                                               \
    }

static const psa_field fields[] = {
    COUNT("workload.dp", workload.dp, 1, "data parallel degree"),
    COUNT("workload.tp", workload.tp, 1, "tensor parallel degree"),
    COUNT("workload.sp", workload.sp, 1, "sequence (context) parallel degree"),
    COUNT("workload.ep", workload.ep, 1, "expert parallel degree, a part of dp"),
    COUNT("workload.pp", workload.pp, 1, "pipeline stages"),
    COUNT("workload.micro_batch", workload.micro_batch, 1, "sequences of a micro-batch"),
    COUNT("workload.virtual_stages", workload.virtual_stages, 1,
          "model chunks per stage (interleaved schedule)"),
    COUNT("workload.recompute_every", workload.recompute_every, 1,
          "full recompute of every k-th layer"),
    {.path = "workload.hsdp_shard",
     .kind = PSA_INT,
     .offset = AT(workload.hsdp_shard),
     .fallback = 0,
     .min = 0,
     .max = 1e9,
     .help = "NPUs of the data group that share sharded state; 0: all of it"},
    {.path = "workload.prefetch",
     .kind = PSA_INT,
     .offset = AT(workload.prefetch),
     .fallback = 1,
     .min = 0,
     .max = 8,
     .help = "blocks whose weights are gathered ahead; 0: just in time"},
    REAL("workload.capacity_factor", workload.capacity_factor, CS_DIMENSIONLESS, 1, 0.01, 1000,
         "expert capacity over the even share"),
    REAL("workload.imbalance", workload.imbalance, CS_DIMENSIONLESS, 1, 1, 1e6,
         "load of the busiest expert over the mean"),
    FLAG("workload.tp_sequence", workload.tp_sequence, 0,
         "norms and residuals split over the sequence inside a tensor parallel group"),
    ENUM("workload.sharding", workload.sharding, sharding_names,
         "what is sharded over data parallel NPUs (ZeRO 0 to 3)"),
    ENUM("workload.recompute", workload.recompute, recompute_names, "activations computed again"),
    ENUM("workload.schedule", workload.schedule, schedule_names, "pipeline schedule"),
    ENUM("workload.precision", workload.precision, precision_names, "data type of the arithmetic"),
    ENUM("workload.gradients", workload.gradients_fp32, gradient_names,
         "data type in which gradients are kept and reduced"),
    ENUM("workload.attention", workload.attention, attention_names, "attention kernel"),
    ENUM("workload.cp_form", workload.cp_form, cp_names,
         "how context parallel attention exchanges"),
    FLAG("workload.cp_balanced", workload.cp_balanced, 0,
         "causal work balanced over the sequence parts"),
    FLAG("workload.overlap", behaviour.overlap, 1, "communication runs beside computation"),
    FLAG("workload.p2p_overlap", behaviour.p2p_overlap, 1,
         "a pipeline stage goes on while its value is on the way to the next"),
    {.path = "workload.slow_stage",
     .kind = PSA_INT,
     .offset = AT(behaviour.slow_stage),
     .fallback = 0,
     .min = 0,
     .max = 1e9,
     .help = "pipeline stage with one slow NPU; 0: none"},
    {.path = "workload.decode_tp",
     .kind = PSA_INT,
     .offset = AT(behaviour.decode_tp),
     .fallback = 0,
     .min = 0,
     .max = 1e9,
     .help = "tensor parallel degree of a pool that decodes; 0: workload.tp"},
    {.path = "workload.decode_pp",
     .kind = PSA_INT,
     .offset = AT(behaviour.decode_pp),
     .fallback = 0,
     .min = 0,
     .max = 1e9,
     .help = "pipeline stages of a pool that decodes; 0: workload.pp"},
    FLAG("workload.reshard", workload.reshard, 1, "gathered weights are dropped after each pass"),
    ENUM("workload.offload", workload.offload, offload_names, "state kept in host memory"),
    {.path = "placement",
     .kind = PSA_ORDER,
     .offset = AT(placement),
     .fallback = NAN,
     .parse = sim_order_parse,
     .format = sim_order_format,
     .help = "order of the parallel groups over NPU numbers, innermost first"},
    {.path = "network.topology",
     .kind = PSA_ENUM,
     .per_dimension = true,
     .offset = AT(network.topology),
     .names = sim_topology_names,
     .fallback = NAN,
     .inactive_on_size_one = true,
     .help = "shape of a dimension"},
    {.path = "network.npus",
     .kind = PSA_INT,
     .per_dimension = true,
     .offset = AT(network.npus),
     .fallback = NAN,
     .min = 1,
     .max = 1 << 20,
     .help = "NPUs along a dimension"},
    {.path = "network.bandwidth",
     .kind = PSA_REAL,
     .unit = CS_BANDWIDTH,
     .per_dimension = true,
     .offset = AT(network.bandwidth),
     .fallback = NAN,
     .min = 1,
     .max = 1e18,
     .inactive_on_size_one = true,
     .help = "egress of one NPU into a dimension, one direction"},
    {.path = "network.slow_factor",
     .kind = PSA_REAL,
     .unit = CS_DIMENSIONLESS,
     .per_dimension = true,
     .offset = AT(behaviour.slow_link),
     .fallback = 1,
     .min = 1e-6,
     .max = 1,
     .help = "share of its bandwidth that the slow NPU has"},
    {.path = "network.latency",
     .kind = PSA_REAL,
     .unit = CS_SECONDS,
     .per_dimension = true,
     .offset = AT(network.latency),
     .fallback = NAN,
     .min = 0,
     .max = 10,
     .help = "of one hop"},
    {.path = "network.oversubscription",
     .kind = PSA_REAL,
     .per_dimension = true,
     .offset = AT(network.oversubscription),
     .fallback = 1,
     .min = 1,
     .max = 1e6,
     .help = "of a switch: attached over internal bandwidth"},
    {.path = "network.in_network_reduction",
     .kind = PSA_BOOL,
     .per_dimension = true,
     .offset = AT(network.in_network_reduction),
     .help = "the switch of a dimension reduces"},
    {.path = "collective.algorithm",
     .kind = PSA_ENUM,
     .per_dimension = true,
     .offset = AT(collective.algorithm),
     .names = sim_algorithm_names,
     .fallback = NAN,
     .inactive_on_size_one = true,
     .help = "algorithm of collectives on a dimension"},
    {.path = "collective.chunks",
     .kind = PSA_INT,
     .offset = AT(collective.chunks),
     .fallback = 4,
     .min = 1,
     .max = 256,
     .help = "pieces a collective is cut into"},
    ENUM("collective.scheduling", collective.scheduling, scheduling_names,
         "order in which a dimension serves collectives"),
    {.path = "collective.multi_dim",
     .kind = PSA_ENUM,
     .offset = AT(collective.multi_dim),
     .names = multi_dim_names,
     .fallback = SIM_HIERARCHICAL,
     .help = "how a collective uses several dimensions"},
    REAL("collective.endpoint_delay", collective.endpoint_delay, CS_SECONDS, 0, 0, 1,
         "added to every message"),
    REAL("compute.peak", compute.peak, CS_FLOP_RATE, NAN, 1, 1e24, "16-bit peak of an NPU"),
    REAL("compute.peak_fp32", compute.peak_fp32, CS_FLOP_RATE, 0, 0, 1e24,
         "32-bit peak; 0: half of peak"),
    REAL("compute.peak_fp8", compute.peak_fp8, CS_FLOP_RATE, 0, 0, 1e24,
         "8-bit peak; 0: twice the peak"),
    REAL("compute.memory_bandwidth", compute.memory_bandwidth, CS_BANDWIDTH, NAN, 1, 1e18,
         "of an NPU's memory"),
    REAL("compute.memory_capacity", compute.memory_capacity, CS_BYTES, NAN, 1, 1e18,
         "of an NPU's memory"),
    REAL("compute.efficiency", compute.efficiency, CS_DIMENSIONLESS, 1, 1e-6, 1,
         "share of the peak that a matrix product reaches"),
    REAL("compute.launch_overhead", compute.launch_overhead, CS_SECONDS, 0, 0, 1,
         "of one operator"),
    REAL("compute.host_bandwidth", compute.host_bandwidth, CS_BANDWIDTH, 0, 0, 1e18,
         "to host memory, for offload; 0: none"),
    OPTIONAL("compute.power_active", compute.power_active, CS_WATTS, 1e9,
             "of a busy NPU; without it energy is not given"),
    OPTIONAL("compute.power_idle", compute.power_idle, CS_WATTS, 1e9, "of a waiting NPU"),
    {.path = "compute.link_energy",
     .kind = PSA_REAL,
     .unit = {{0, -1, 0, 0, 1}},
     .offset = AT(compute.link_energy),
     .fallback = 0,
     .min = 0,
     .max = 1,
     .help = "of a byte sent, e.g. 10 pJ/bit"},
    OPTIONAL("compute.price", compute.price, CS_DOLLARS, 1e12, "of one NPU"),
    REAL("compute.interference", compute.interference, CS_DIMENSIONLESS, 0, 0, 0.95,
         "share of compute and memory bandwidth that a running collective takes"),
    REAL("compute.tp_overlap", compute.tp_overlap, CS_DIMENSIONLESS, 0, 0, 1,
         "share of a tensor parallel collective hidden by ring-decomposed matrix products"),
    REAL("compute.jitter", compute.jitter, CS_DIMENSIONLESS, 0, 0, 1,
         "relative deviation of the compute times of NPUs; the slowest sets the pace"),
    REAL("compute.slow_factor", behaviour.slow_factor, CS_DIMENSIONLESS, 1, 1e-6, 1,
         "share of peak and memory bandwidth that the slow NPU has"),
};

/* Degrees of a pool that decodes. */
#define DECODE_TP "if(workload.decode_tp > 0, workload.decode_tp, workload.tp)"
#define DECODE_PP "if(workload.decode_pp > 0, workload.decode_pp, workload.pp)"

#define DECODE_REPLICA DECODE_TP " * workload.sp * " DECODE_PP
#define OWN_DEGREES    "workload.decoders > 0 and workload.decode_tp + workload.decode_pp > 0"

/* DESIGN 4: implied constraints. */
static const psa_rule rules[] = {
    {.name = "degrees fill the network",
     .expression = "workload.dp * workload.tp * workload.sp * workload.pp == product(network.npus)",
     .relaxed_by = "allow_idle"},
    {.name = "degrees fit the network",
     .expression = "workload.dp * workload.tp * workload.sp * workload.pp <= product(network.npus)",
     .relaxed_by = "!allow_idle"},
    {.name = "tp divides heads", .expression = "model.heads % workload.tp == 0"},
    {.name = "tp fits key-value heads",
     .expression = "model.kv_heads % workload.tp == 0 or workload.tp % model.kv_heads == 0"},
    {.name = "tp divides ffn", .expression = "model.ffn % workload.tp == 0"},
    {.name = "stages divide layers",
     .expression = "model.layers % (workload.pp * workload.virtual_stages) == 0",
     .relaxed_by = "uneven_stages"},
    {.name = "a layer for each stage",
     .expression = "model.layers >= workload.pp * workload.virtual_stages",
     .relaxed_by = "!uneven_stages"},
    {.name = "sp divides the sequence",
     .expression = "workload.sequence == 1 or "
                   "workload.sequence % (workload.sp * if(workload.tp_sequence, workload.tp, 1) * "
                   "if(workload.cp_balanced and workload.sp > 1, 2, 1)) == 0"},
    {.name = "the batch divides",
     .expression = "workload.global_batch % (workload.dp * workload.micro_batch) == 0"},
    {.name = "a pool is a number of replicas",
     .expression =
         "workload.npus == 0 or "
         "(not (" OWN_DEGREES ") and workload.dp * workload.npus % product(network.npus) == 0) or "
         "(" OWN_DEGREES " and workload.decoders % (" DECODE_REPLICA " * workload.ep) == 0 and "
         "model.heads % " DECODE_TP " == 0 and model.ffn % " DECODE_TP " == 0 and "
         "(model.kv_heads % " DECODE_TP " == 0 or " DECODE_TP " % model.kv_heads == 0) and "
         "model.layers % (" DECODE_PP " * workload.virtual_stages) == 0 and "
         "workload.global_batch * " DECODE_REPLICA
         " % (workload.decoders * workload.micro_batch) == 0)"},
    {.name = "ep divides experts",
     .expression = "if(model.experts > 0, model.experts % workload.ep, workload.ep - 1) == 0"},
    {.name = "ep divides dp", .expression = "workload.dp % workload.ep == 0"},
    {.name = "sharding groups divide dp",
     .expression = "workload.hsdp_shard == 0 or workload.dp % max(workload.hsdp_shard, 1) == 0"},
    {.name = "offload needs a link to host memory",
     .expression = "workload.offload == \"none\" or compute.host_bandwidth > 0"},
    {.name = "only the interleaved schedule has virtual stages",
     .expression = "workload.virtual_stages == 1 or workload.schedule == \"interleaved\""},
    {.name = "interleaving needs whole rounds of micro-batches",
     .expression = "workload.virtual_stages == 1 or workload.global_batch % (workload.dp * "
                   "workload.micro_batch * workload.pp) == 0"},
    {.name = "a switch on dimension 1 of 4 or more has no price",
     .expression = "network.topology[1] != \"switch\" or network.npus[1] == 1 or "
                   "count(network.npus > 0) < 4",
     .relaxed_by = "?network_cost"},
    {.name = "halving_doubling needs a power of two",
     .expression = "not (collective.algorithm[d] == \"halving_doubling\") or "
                   "log2(network.npus[d]) % 1 == 0",
     .per_dimension = true},
};

#define RESULT(name_, unit_, member, help_)                                                        \
    {                                                                                              \
        .name = name_, .unit = unit_, .offset = offsetof(sim_result, member), .help = help_        \
    }

static const psa_result results[] = {
    RESULT("latency", CS_SECONDS, latency_s, "one optimizer step, or one request batch"),
    RESULT("network_cost", CS_DOLLARS, network_cost_usd, "dollars of the network"),
    RESULT("peak_memory", CS_BYTES, peak_memory_bytes, "of the fullest NPU"),
    RESULT("tokens_per_s", CS_DIMENSIONLESS, tokens_per_s, "of the whole machine"),
    RESULT("tokens_per_s_per_npu", CS_DIMENSIONLESS, tokens_per_s_per_npu, "of one NPU"),
    RESULT("mfu", CS_DIMENSIONLESS, mfu, "model FLOPs over peak"),
    RESULT("energy", CS_JOULES, energy_j, "of an iteration"),
    RESULT("ttft", CS_SECONDS, ttft_s, "time to first token"),
    RESULT("tpot", CS_SECONDS, tpot_s, "time per output token"),
    RESULT("bubble", CS_SECONDS, bubble_s, "waits for other pipeline stages"),
    RESULT("exposed", CS_SECONDS, exposed_s, "waits for communication"),
};

static const psa_tables tables = {
    .fields = fields,
    .n_fields = CS_COUNT(fields),
    .config_size = sizeof(sim_config),
    .rules = rules,
    .n_rules = CS_COUNT(rules),
    .results = results,
    .n_results = CS_COUNT(results),
    .dimension_count_path = "network.npus",
};

const psa_tables *sim_tables(void)
{
    return &tables;
}
