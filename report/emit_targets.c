/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What training programs call the fields of a design.  Names are those of Megatron-LM
 * (megatron/training/arguments.py), torchtitan (torchtitan/config/job_config.py) and NeMo
 * (examples/nlp/language_modeling/conf/megatron_gpt_config.yaml). */
#include "report/emit_private.h"

const char *const report_target_names[] = {"megatron", "torchtitan", "nemo", NULL};

static const emit__rule megatron_rules[] = {
    {"workload.tp", NULL, "--tensor-model-parallel-size", "%"},
    {"workload.sp", NULL, "--context-parallel-size", "%"},
    {"workload.pp", NULL, "--pipeline-model-parallel-size", "%"},
    {"workload.ep", "1", NULL, NULL},
    {"workload.ep", NULL, "--expert-model-parallel-size", "%"},
    {"workload.micro_batch", NULL, "--micro-batch-size", "%"},
    {"workload.virtual_stages", "1", NULL, NULL},
    {"workload.virtual_stages", NULL, "--num-virtual-stages-per-pipeline-rank", "%"},
    {"workload.schedule", "interleaved", "--num-virtual-stages-per-pipeline-rank", "*"},
    {"workload.schedule", "1f1b", NULL, NULL},
    {"workload.tp_sequence", "true", "--sequence-parallel", ""},
    {"workload.tp_sequence", "false", NULL, NULL},
    {"workload.sharding", "optimizer", "--use-distributed-optimizer", ""},
    {"workload.sharding", "gradients", "--data-parallel-sharding-strategy", "optim_grads"},
    {"workload.sharding", "weights", "--data-parallel-sharding-strategy", "optim_grads_params"},
    {"workload.sharding", "gradients", "--use-megatron-fsdp", ""},
    {"workload.sharding", "weights", "--use-megatron-fsdp", ""},
    {"workload.sharding", "none", NULL, NULL},
    {"workload.recompute", "selective", "--recompute-granularity", "selective"},
    {"workload.recompute", "full", "--recompute-granularity", "full"},
    {"workload.recompute", "full", "--recompute-method", "uniform"},
    {"workload.recompute", "full", "--recompute-num-layers", "1"},
    {"workload.recompute", "none", NULL, NULL},
    {"workload.precision", "bf16", "--bf16", ""},
    {"workload.precision", "fp16", "--fp16", ""},
    {"workload.precision", "fp8", "--fp8-format", "hybrid"},
    {"workload.precision", "fp32", NULL, NULL},
    {"workload.gradients", "fp32", "--accumulate-allreduce-grads-in-fp32", ""},
    {"workload.gradients", "half", "--grad-reduce-in-bf16", ""},
    {"workload.attention", "flash", "--attention-backend", "flash"},
    {"workload.attention", "gpt-2022", "--attention-backend", "unfused"},
    {"workload.cp_form", "ring", "--cp-comm-type", "p2p"},
    {"workload.cp_form", "gather", "--cp-comm-type", "all_gather"},
    {"workload.capacity_factor", "1", NULL, NULL},
    {"workload.capacity_factor", NULL, "--moe-expert-capacity-factor", "%"},
    {"workload.offload", "optimizer", "--optimizer-cpu-offload", ""},
    {"workload.offload", "none", NULL, NULL},
    {"placement", "tp sp ep pp dp", "--use-tp-pp-dp-mapping", ""},
    {"placement", "tp sp ep dp pp", NULL, NULL},
    {NULL, NULL, NULL, NULL},
};

static const emit__rule torchtitan_rules[] = {
    {"workload.tp", NULL, "parallelism.tensor_parallel_degree", "%"},
    {"workload.sp", NULL, "parallelism.context_parallel_degree", "%"},
    {"workload.pp", NULL, "parallelism.pipeline_parallel_degree", "%"},
    {"workload.ep", NULL, "parallelism.expert_parallel_degree", "%"},
    {"workload.micro_batch", NULL, "parallelism.pipeline_parallel_microbatch_size", "%"},
    {"workload.schedule", "1f1b", "parallelism.pipeline_parallel_schedule", "1F1B"},
    {"workload.schedule", "gpipe", "parallelism.pipeline_parallel_schedule", "GPipe"},
    {"workload.schedule", "interleaved", "parallelism.pipeline_parallel_schedule",
     "Interleaved1F1B"},
    {"workload.schedule", "zb_h1", "parallelism.pipeline_parallel_schedule",
     "InterleavedZeroBubble"},
    {"workload.sharding", "weights", "parallelism.fsdp_reshard_after_forward", "always"},
    {"workload.sharding", "gradients", "parallelism.fsdp_reshard_after_forward", "never"},
    {"workload.sharding", "none", NULL, NULL},
    {"workload.recompute", NULL, "activation_checkpoint.mode", "%"},
    {"workload.precision", "bf16", "training.mixed_precision_param", "bfloat16"},
    {"workload.precision", "fp32", "training.mixed_precision_param", "float32"},
    {"workload.gradients", "fp32", "training.mixed_precision_reduce", "float32"},
    {"workload.cp_form", "gather", "parallelism.context_parallel_rotate_method", "allgather"},
    {"workload.cp_form", "ring", "parallelism.context_parallel_rotate_method", "alltoall"},
    {"workload.offload", "weights", "training.enable_cpu_offload", "true"},
    {"workload.offload", "none", NULL, NULL},
    {"workload.tp_sequence", "true", NULL, NULL},
    {"workload.attention", "flash", NULL, NULL},
    {NULL, NULL, NULL, NULL},
};

static const emit__rule nemo_rules[] = {
    {"workload.tp", NULL, "model.tensor_model_parallel_size", "%"},
    {"workload.sp", NULL, "model.context_parallel_size", "%"},
    {"workload.pp", NULL, "model.pipeline_model_parallel_size", "%"},
    {"workload.ep", "1", NULL, NULL},
    {"workload.ep", NULL, "model.expert_model_parallel_size", "%"},
    {"workload.micro_batch", NULL, "model.micro_batch_size", "%"},
    {"workload.virtual_stages", "1", NULL, NULL},
    {"workload.virtual_stages", NULL, "model.virtual_pipeline_model_parallel_size", "%"},
    {"workload.schedule", "interleaved", "model.virtual_pipeline_model_parallel_size", "*"},
    {"workload.schedule", "1f1b", NULL, NULL},
    {"workload.tp_sequence", "true", "model.sequence_parallel", "True"},
    {"workload.tp_sequence", "false", "model.sequence_parallel", "False"},
    {"workload.sharding", "weights", "model.fsdp", "True"},
    {"workload.sharding", "weights", "model.fsdp_sharding_strategy", "full"},
    {"workload.sharding", "optimizer", "model.optim.name", "mcore_distributed_optim"},
    {"workload.sharding", "gradients", "model.optim.name", "distributed_fused_adam"},
    {"workload.sharding", "none", "model.optim.name", "fused_adam"},
    {"workload.recompute", "selective", "model.activations_checkpoint_granularity", "selective"},
    {"workload.recompute", "full", "model.activations_checkpoint_granularity", "full"},
    {"workload.recompute", "full", "model.activations_checkpoint_method", "uniform"},
    {"workload.recompute", "full", "model.activations_checkpoint_num_layers", "1"},
    {"workload.recompute", "none", "model.activations_checkpoint_granularity", "null"},
    {"workload.precision", "bf16", "trainer.precision", "bf16"},
    {"workload.precision", "fp16", "trainer.precision", "16"},
    {"workload.precision", "fp32", "trainer.precision", "32"},
    {"workload.precision", "fp8", "model.fp8", "True"},
    {"workload.attention", "flash", "model.use_flash_attention", "True"},
    {"workload.attention", "gpt-2022", "model.use_flash_attention", "False"},
    {"placement", "tp sp ep dp pp", NULL, NULL},
    {NULL, NULL, NULL, NULL},
};

static const char *const megatron_begin[] = {
    "Arguments of Megatron-LM's pretrain_gpt.py; data, tokenizer and learning rate are yours.",
    NULL,
};
static const char *const torchtitan_begin[] = {
    "Configuration of torchtitan; the model, data and learning rate are yours.",
    NULL,
};
static const char *const nemo_begin[] = {
    "Overrides of NeMo's megatron_gpt_pretraining.py; data and learning rate are yours.",
    NULL,
};

const emit__target emit__targets[REPORT_N_TARGETS] = {
    [REPORT_MEGATRON] =
        {
            .begin = megatron_begin,
            .rules = megatron_rules,
            .fact =
                {
                    [EMIT_GLOBAL_BATCH] = "--global-batch-size",
                    [EMIT_SEQUENCE] = "--seq-length",
                    [EMIT_LAYERS] = "--num-layers",
                    [EMIT_HIDDEN] = "--hidden-size",
                    [EMIT_FFN] = "--ffn-hidden-size",
                    [EMIT_HEADS] = "--num-attention-heads",
                    [EMIT_KV_HEADS] = "--num-query-groups",
                    [EMIT_EXPERTS] = "--num-experts",
                    [EMIT_TOP_K] = "--moe-router-topk",
                },
            .nodes = "--nnodes",
            .per_node = "--nproc-per-node",
            .separator = " ",
            .continued = " \\\n    ",
            .program = "pretrain_gpt.py",
        },
    [REPORT_TORCHTITAN] =
        {
            .begin = torchtitan_begin,
            .rules = torchtitan_rules,
            .fact =
                {
                    [EMIT_GLOBAL_BATCH] = "training.global_batch_size",
                    [EMIT_SEQUENCE] = "training.seq_len",
                },
            .replicate = "parallelism.data_parallel_replicate_degree",
            .shard = "parallelism.data_parallel_shard_degree",
            .sections = true,
            .separator = " = ",
        },
    [REPORT_NEMO] =
        {
            .begin = nemo_begin,
            .rules = nemo_rules,
            .fact =
                {
                    [EMIT_GLOBAL_BATCH] = "model.global_batch_size",
                    [EMIT_SEQUENCE] = "model.encoder_seq_length",
                    [EMIT_LAYERS] = "model.num_layers",
                    [EMIT_HIDDEN] = "model.hidden_size",
                    [EMIT_FFN] = "model.ffn_hidden_size",
                    [EMIT_HEADS] = "model.num_attention_heads",
                    [EMIT_KV_HEADS] = "model.num_query_groups",
                    [EMIT_EXPERTS] = "model.num_moe_experts",
                    [EMIT_TOP_K] = "model.moe_router_topk",
                },
            .nodes = "trainer.num_nodes",
            .per_node = "trainer.devices",
            .separator = "=",
            .continued = " \\\n    ",
            .program = "python megatron_gpt_pretraining.py",
        },
};
