#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# collective, trace, serve, explain, compare from the command line.
. "$(dirname "$0")/lib.sh"
psa=configs/psa/llama3-70b-h100.yaml

# ---- collective ----
# Ring all-reduce of 1 GiB over 8 NPUs of 50 GB/s: 2 * 7/8 * 2^30 / 50e9 = 37.581 ms.
expect 0 '37\.581 ms' collective --system configs/systems/ring-8.yaml --type all_reduce --bytes 1GiB
expect 0 'busbw  50\.000 GB/s' collective configs/systems/ring-8.yaml --type ALL_REDUCE --bytes 1073741824
expect 0 '"time_ns": 37580963' collective configs/systems/ring-8.yaml --type all_reduce --bytes 1GiB -f json
# 1 GB over 100 GB/s: direct all-reduce on a ring 40.0 ms, halving-doubling on a ring 50.0 ms.
for pair in 'direct 40.0' 'halving_doubling 50.0'; do
    read -r algorithm ms <<<"$pair"
    expect 0 "time   $ms" collective configs/systems/ring-8.yaml --type all_reduce --bytes 1GB \
        --set network.bandwidth=100GB/s --set network.latency=500ns \
        --set collective.algorithm=$algorithm --set collective.chunks=1
done
expect_error 2 'did you mean all_reduce' collective configs/systems/ring-8.yaml --type all_reduc --bytes 1
expect_error 2 'bytes is missing' collective configs/systems/ring-8.yaml --type all_reduce
expect_error 2 'bytes' collective configs/systems/ring-8.yaml --type all_reduce --bytes -5
expect_error 2 'halving_doubling' collective configs/systems/ring-8.yaml --type all_reduce --bytes 1MB \
    --set network.npus=6 --set collective.algorithm=halving_doubling

cat >network.yml <<YAML
topology: [ Ring ]
npus_count: [ 8 ]
bandwidth: [ 50.0 ]
latency: [ 500.0 ]
YAML
cat >system.json <<JSON
{"all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
 "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["ring"],
 "collective-optimization": "baseline", "preferred-dataset-splits": 1,
 "active-chunks-per-dimension": 1, "endpoint-delay": 0}
JSON
# 14 steps of 500 + trunc(131072 / (50 * 2^30 / 1e9)) = 2441 ns.
expect 0 '"time_ns": 41174' collective --network network.yml --system system.json \
    --type ALL_REDUCE --bytes 1048576 -f json
# The same on 50 GB/s a NPU: 14 * (500 + 131072 / 50) ns, both ways of the ring at once.
expect 0 'time   43\.700 us' collective configs/systems/ring-8.yaml --type all_reduce \
    --bytes 1048576 --set network.latency=500ns --set collective.chunks=1

# ---- trace ----
# A design on 16 NPUs, exported and read back: the block engine's time within 1 %.
cat >small.yaml <<YAML
psa: 1
name: small
workloads:
  - {model: configs/models/gpt3-1.3b.yaml, mode: train, global_batch: 32, sequence: 2048}
system: small-system.yaml
knobs:
  workload.dp: {values: [4]}
objectives:
  latency: {minimize: latency}
YAML
cat >small-system.yaml <<YAML
system: 1
name: small
device: configs/devices/h100-sxm.yaml
network: {topology: [ring, switch], npus: [4, 4], bandwidth: [200 GB/s, 50 GB/s], latency: [500 ns, 1 us]}
collective: {algorithm: [ring, direct], chunks: 2, scheduling: program, multi_dim: hierarchical}
placement: tp sp dp pp
baseline: {workload.dp: 4, workload.tp: 4, workload.sharding: optimizer}
YAML
expect 0 '16 ranks' trace export small.yaml --out exported
"$cli" simulate small.yaml -f json >block.json || fail "simulate small.yaml"
"$cli" trace simulate exported --network exported/network.yml --system exported/system.json \
    --model contention --streams dimension -q -f json >cluster.json || fail "exported traces"
checks=$((checks + 1))
awk '/"latency_s"/ && !block { gsub(/[^0-9.e-]/, "", $2); block = $2 * 1e9 }
     /"max_ns"/ { gsub(/[^0-9]/, "", $2); cluster = $2 + 0 }
     END { print block, cluster; exit !(block > 0 && cluster > 0.99 * block && cluster < 1.01 * block) }
' block.json cluster.json || fail "exported: other times than the block engine's"
expect_error 2 'missing' trace info missing
expect_error 2 'did you mean info' trace inf x
expect_error 2 'needed' trace simulate x
reference=$root/../shared/reference/chakra
if [ -d "$reference" ]; then
    expect 0 '8 of 8' trace info "$reference/micro/all_reduce_8"
    expect 0 '"nodes": 8' trace info "$reference/micro/all_reduce_8" -f json
    expect 4 'cycl' trace info "$reference/bad/06_cycle.0.et"
    expect 0 'max_ns' trace simulate "$reference/micro/all_reduce_8" --network network.yml \
        --system system.json -f json --timeline t.json
    [ -s t.json ] || fail "no timeline of a trace"
    sed 's|"all-reduce|"all-reduce-implementation-custom": ["'"$reference"'/custom/ring_allreduce_8/custom_allreduce"], "all-reduce|' \
        system.json >custom.json
    expect 0 '"max_ns": 90174' trace simulate "$reference/micro/all_reduce_8" \
        --network network.yml --system custom.json -q -f json
else
    echo "skipped: 5 checks of traces, no reference data beside the repository"
fi

# ---- serve ----
printf '%s\n' '{"cmd":"sample","n":2}' '{"cmd":"nonsense"}' '{"cmd":"best"}' '{"cmd":"quit"}' |
    "$cli" serve $psa >answers || fail "serve: exit $?"
checks=$((checks + 1))
[ "$(grep -c '"ok":true' answers)" = 3 ] && [ "$(grep -c '"ok":false' answers)" = 1 ] ||
    fail "serve: $(cat answers)"

# ---- an agent outside: samples 20 designs, has them evaluated ----
cat >agent.sh <<'SH'
echo '{"cmd":"sample","n":20}'
read -r answer
printf '%s\n' "$answer" | sed 's/^{/{"cmd":"evaluate",/; s/,"ok":true}$/}/'
read -r answer
SH
expect 0 '"evaluations": 20,' run $psa --agent-command 'sh agent.sh' --study x.db --evaluations 30 -f json
expect 0 '^20,' trials x.db -f csv
expect_error 2 'proposed no design' run $psa --agent-command 'exit 3' --out gone --evaluations 30

# ---- explain ----
"$cli" run $psa --agent random --evaluations 100 --study s.db -q >/dev/null 2>&1
expect 0 'elasticity' explain s.db
expect 0 'second - first' explain s.db --top 2
expect 0 '"one_change": \[' explain s.db --trial 1 -f json
expect_error 2 'no trial 101' explain s.db --trial 101
# A knob without effect has no other value that is another design.
"$cli" run configs/psa/gpt3-175b-system1.yaml --agent random --evaluations 20 --study one.db -q >/dev/null 2>&1
"$cli" explain one.db --top 2 -f json >one.json || fail "explain one.db"
grep -q '"change": ""' one.json && fail "explain: an empty change"
# A build without charts says so in one line and goes on; one with them says nothing.
mkdir -p built/web
printf 'npm failed' >built/web/missing.txt
(set -eu && . "$root/.ci/setup.sh" && say_missing_charts built) 2>said ||
    fail "missing charts end the run"
[ "$(wc -l <said)" = 1 ] && grep -q 'npm failed.*To get them' said || fail "missing charts: $(cat said)"
: >built/web/missing.txt
(. "$root/.ci/setup.sh" && say_missing_charts built) 2>said
[ -s said ] && fail "charts are there: $(cat said)"
expect 0 '^trial,target,text' emit s.db --for megatron -f csv
expect 0 '^[0-9]+,megatron,' emit s.db --for megatron -f csv
expect 0 'trace export configs/psa/llama3-70b-fsdp8.yaml' trace --help

# ---- compare ----
cat >suite.yaml <<YAML
suite: 1
name: tiny
evaluations: 30
seeds: 2
agents: [random, genetic]
problems:
  - psa: $psa
    label: tiny
    objective: latency
    fix: ["workload.pp=4", "workload.micro_batch=1", "workload.recompute=none", "workload.sharding=optimizer", "placement=tp sp ep dp pp"]
    optimum: exhaustive
YAML
expect 0 'Written: c/' compare suite.yaml --out c
[ -s c/table.md ] && [ -s c/table.csv ] && [ -s c/table.json ] || fail "compare: a table is missing"
expect_error 2 'resume' compare suite.yaml --out c
expect 0 '"agent": "genetic"' compare suite.yaml --out c --resume -f json
finish
