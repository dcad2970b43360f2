#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The sharding, micro-batch and recompute of the systems' baselines are the feasible combination of
# least latency for GPT3-175B at batch 2,048 (H100: Llama-3-70B at 1,024): enumerated here.
. "$(dirname "$0")/lib.sh"

enumerate() { # SYSTEM MODEL BATCH SEQUENCE
    cat >"$1.yaml" <<YAML
psa: 1
name: $1
workloads:
  - {model: configs/models/$2.yaml, mode: train, global_batch: $3, sequence: $4}
system: configs/systems/$1.yaml
knobs:
  workload.sharding:    {values: [none, optimizer, gradients, weights]}
  workload.micro_batch: {powers_of_two: [1, 16]}
  workload.recompute:   {values: [none, selective, full]}
objectives:
  latency: {minimize: latency}
YAML
    expect 0 'ended: exhausted' run "$1.yaml" --agent exhaustive --evaluations 1000 --study "$1.db"
    grep -qE '^better than baseline +- +1\.00 x' .out || fail "$1: $(grep better .out)"
}

enumerate cosmic-system1 gpt3-175b 2048 2048
enumerate cosmic-system2 gpt3-175b 2048 2048
enumerate cosmic-system3 gpt3-175b 2048 2048
enumerate h100-512 llama3-70b 1024 8192
finish
