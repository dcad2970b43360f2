#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Timed figures, checked against what the project promises.  Never part of test.sh: a busy machine
# must not fail it.  A busy machine fails figures per second of the clock here too; those per second
# of processor time stand beside them.  Usage: tests/bench.sh [PROGRAM]
[ $# -ge 1 ] && CS_CLI=$(realpath "$1")
. "$(dirname "$0")/lib.sh"
full=configs/psa/gpt3-175b-system3.yaml

# value FILE KEY: a number of the JSON printed one key a line
value() {
    sed -n "s/^ *\"$2\": *\([0-9.eE+-]*\),\{0,1\}\$/\1/p" "$1" | head -n 1
}

# at_least NAME GOT LIMIT, at_most NAME GOT LIMIT
at_least() {
    checks=$((checks + 1))
    printf '%-52s %12.6g  (at least %g)\n' "$1" "$2" "$3"
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a >= b) }' || fail "$1: $2, at least $3"
}
at_most() {
    checks=$((checks + 1))
    printf '%-52s %12.6g  (at most %g)\n' "$1" "$2" "$3"
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a <= b) }' || fail "$1: $2, at most $3"
}

# timed NAME ARGUMENT...: runs the program into NAME.json; the processor seconds it took in $cpu
timed() {
    local name=$1
    shift
    TIMEFORMAT='%U %S'
    cpu=$({ time "$cli" "$@" -f json >"$name.json" 2>"$name.err"; } 2>&1 | awk '{ print $1 + $2 }')
    [ -s "$name.json" ] || fail "$*: $(head -c 300 "$name.err")"
}

# per_cpu NAME: feasible designs per processor second of a bench
per_cpu() {
    awk -v n="$(value "$1.json" feasible)" -v t="$cpu" 'BEGIN { print n / t }'
}

timed one bench "$full" --seconds 5 --jobs 1
one_cpu=$(per_cpu one)
rate=$(value one.json evaluations_per_s)
at_least "evaluations/s of processor time" "$one_cpu" 10000
at_least "evaluations/s, one core, gpt3-175b-system3" "$rate" 10000
at_most "first sample from process start, s" "$(value one.json first_sample_s)" 0.01
# Threads that wait must not count as work: they sleep here.
export OMP_WAIT_POLICY=passive
timed two bench "$full" --seconds 5 --jobs 2
unset OMP_WAIT_POLICY
at_least "speed-up on two cores, of processor time" \
    "$(awk -v a="$(per_cpu two)" -v b="$one_cpu" 'BEGIN { print 2 * a / b }')" 1.8
at_least "speed-up on two cores" \
    "$(awk -v a="$(value two.json evaluations_per_s)" -v b="$rate" 'BEGIN { print a / b }')" 1.8
timed run run "$full" --agent random --evaluations 20000 --jobs 1 --study r.db
at_least "the same of run --agent random over bench" "$(awk -v n="$(value run.json evaluations)" \
    -v i="$(value run.json infeasible)" -v t="$cpu" -v b="$one_cpu" \
    'BEGIN { print (n - i) / t / b }')" 0.7
feasible=$(awk -v n="$(value run.json evaluations)" -v i="$(value run.json infeasible)" \
    -v t="$(value run.json wall_s)" 'BEGIN { print (n - i) / t }')
at_least "feasible designs/s of run --agent random over bench" \
    "$(awk -v a="$feasible" -v b="$rate" 'BEGIN { print a / b }')" 0.7
start=$(date +%s%N)
"$cli" run "$full" --out quickstart --evaluations 10000 --seed 1 >/dev/null 2>&1
at_most "the search of run.sh, s" "$((($(date +%s%N) - start) / 1000000))e-3" 20

# Deep pipelines: 16 stages of 2 or 3 virtual ones, 64 micro-batches.
cat >fabric.yaml <<'END'
system: 1
name: fabric-16384
device: configs/devices/h100-sxm.yaml
network:
  topology:  [switch, switch, switch]
  npus:      [8, 32, 64]
  bandwidth: [450 GB/s, 50 GB/s, 50 GB/s]
  latency:   [500 ns, 1 us, 2.5 us]
collective: {algorithm: [ring, ring, halving_doubling], chunks: 4, multi_dim: hierarchical}
placement: tp sp ep dp pp
baseline: {workload.dp: 128, workload.tp: 8, workload.pp: 16, workload.ep: 8,
           workload.virtual_stages: 2, workload.schedule: interleaved}
END
cat >deep.yaml <<'END'
psa: 1
name: mixtral-8x22b-16384
workloads:
  - {model: configs/models/mixtral-8x22b.yaml, mode: train, global_batch: 8192, sequence: 4096}
system: fabric.yaml
uneven_stages: true
knobs:
  workload.ep:             [1, 2, 4, 8]
  workload.virtual_stages: [2, 3]
  workload.micro_batch:    [1]
  workload.recompute:      [none, selective, full]
  workload.sharding:       [none, optimizer, gradients, weights]
  collective.chunks:       [2, 4, 8]
  network.bandwidth:       {range: [50 GB/s, 500 GB/s], step: 50 GB/s, per: dimension}
  placement:               ["tp sp ep dp pp", "dp tp sp ep pp"]
objectives:
  latency: {minimize: latency}
END
timed deep bench deep.yaml --seconds 5 --jobs 1
at_least "evaluations/s of processor time, 16,384 NPUs, pp 16" "$(per_cpu deep)" 2000

# Ten times the layers, the same designs, whether they fit or not.
for layers in 96 960; do
    sed "s/count: 96/count: $layers/" configs/models/gpt3-175b.yaml >"gpt-$layers.yaml"
    sed "s|../models/gpt3-175b.yaml|gpt-$layers.yaml|; s|\.\./|configs/|; s/^knobs/memory_limit: off\nknobs/" \
        "$full" >"layers-$layers.yaml"
    timed "layers$layers" bench "layers-$layers.yaml" --seconds 5 --jobs 1
done
at_most "time of 960 layers over that of 96" \
    "$(awk -v a="$(per_cpu layers96)" -v b="$(per_cpu layers960)" 'BEGIN { print a / b }')" 2

"$cli" compare configs/suites/overhead.yaml --jobs 1 --out overhead -q >/dev/null 2>&1 ||
    fail "compare configs/suites/overhead.yaml"
# agent PROBLEM SECONDS, the last column of the table
awk -F, 'NR > 1 { print $2 "|" $1 "|" $NF }' overhead/table.csv >overhead.txt
while IFS='|' read -r agent problem seconds; do
    at_most "s/proposal, $agent, $problem" "$seconds" 1e-5
done <overhead.txt
[ "$(wc -l <overhead.txt)" -eq 20 ] || fail "20 rows of overhead expected"

"$cli" run "$full" --agent random --evaluations 50000 --study big.db -q >/dev/null 2>&1 ||
    fail "run --agent random"
start=$(date +%s%N)
"$cli" report big.db -o report.html >/dev/null || fail "report"
at_most "report of 50,000 trials, s" "$((($(date +%s%N) - start) / 1000000))e-3" 5
at_most "its size, bytes" "$(stat -c %s report.html)" 15000000
finish
