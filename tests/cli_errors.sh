#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Bad input: one message with file:line:column, what was expected and the nearest valid name, the
# exit code of the contract, nothing left behind.
. "$(dirname "$0")/lib.sh"

# psa NAME LINE...: a small PSA with further top-level lines.
psa() {
    local name=$1
    shift
    {
        echo "psa: 1"
        echo "name: small"
        echo "workloads:"
        echo "  - {model: configs/models/gpt3-13b.yaml, mode: train, global_batch: 512, sequence: 2048}"
        echo "system: configs/systems/cosmic-system1.yaml"
        printf '%s\n' "$@"
    } >"$name"
}
good_knobs="knobs: {workload.dp: {powers_of_two: [1, 64]}, workload.tp: {values: [1, 2, 4, 8]}, workload.sp: {powers_of_two: [1, 64]}, workload.pp: {values: [1, 2, 4]}}"
good_objectives="objectives: {latency: {minimize: latency}}"

# ---- usage ----
expect_error 2 'unknown command describ; did you mean describe' describ configs/psa/gpt3-175b-system3.yaml
expect_error 2 'unknown command xyzzy|neither a command nor a file' xyzzy
expect_error 2 'did you mean --evaluations' run --evaluation 3 x.yaml
expect_error 2 'expected N after' run x.yaml --evaluations
expect_error 2 'whole number from 1' run x.yaml --evaluations 0
expect_error 2 'whole number' run x.yaml --evaluations 1e3
expect_error 2 'whole number' run x.yaml --evaluations 99999999999999999999
expect_error 2 'table.json.csv' trials x.db -f xml
expect_error 2 'takes no value' run x.yaml --resume=1
expect_error 2 'too few arguments; usage' run
expect_error 2 'one argument too many' describe a.yaml b.yaml
expect_error 2 'did you mean "genetic"' run configs/psa/gpt3-13b-system1.yaml --agent genetics
expect_error 2 'batch' run configs/psa/gpt3-13b-system1.yaml --agent genetic --param batc=3
expect_error 2 'perf_per_cost' run configs/psa/gpt3-13b-system1.yaml --objective perf_per_cosd
expect_error 2 'network' describe configs/psa/gpt3-13b-system1.yaml --stack netwrk
expect_error 2 'workload.dp' describe configs/psa/gpt3-13b-system1.yaml --fix workload.dpp=8

expect_error 2 'unknown command xyzzy|neither' help xyzzy
expect_error 2 'there are workload' describe configs/psa/gpt3-13b-system1.yaml --stack nothing
expect_error 2 'contradicts' describe configs/psa/gpt3-13b-system1.yaml --fix workload.dp=2 --fix workload.dp=4

# ---- results that the workload does not have ----
sed "s|\.\./|configs/|g; s/^constraints:/&\n  - \"ttft <= 200 ms\"/" configs/psa/gpt3-13b-system1.yaml >ttft.yaml
expect_error 2 'ttft.yaml:29:5: ttft: needs a workload of mode serve or prefill' describe ttft.yaml
sed 's|\.\./|configs/|g; s/{minimize: latency}/{minimize: "latency + tpot"}/' configs/psa/gpt3-13b-system1.yaml >tpot.yaml
expect_error 2 'tpot.yaml:33:34: tpot: needs a workload of mode serve or decode' run tpot.yaml --objective latency

# ---- files ----
expect_error 2 'missing.yaml.*(no such file|No such file)' run missing.yaml
expect_error 2 'missing.yaml' describe missing.yaml
expect_error 2 'missing.yaml' model missing.yaml
expect_error 2 'missing.db' trials missing.db
expect_error 2 '.' describe configs
expect_error 2 'directory' best configs
expect_error 2 'directory' run configs/psa/llama3-70b-h100.yaml --study configs --resume
: >empty.db
expect_error 2 'not a study yet.*--resume. begins again' best empty.db
ln -s loop loop
expect_error 2 'loop' describe loop
: >empty.yaml
expect_error 2 'empty.yaml.*empty' describe empty.yaml
echo "not a study" >bad.db
expect_error 2 'bad.db' best bad.db
head -c 100000 /dev/urandom >random.yaml
expect_error 2 'random.yaml' describe random.yaml
printf 'psa: 1\nknobs: {a: [' >cut.yaml
expect_error 2 'cut.yaml:[23]:[0-9]' describe cut.yaml

# ---- PSA files ----
psa tab.yaml "$good_knobs" "objectives:" "	latency: {minimize: latency}"
expect_error 2 'tab.yaml:8:1.*tab' describe tab.yaml
psa twice.yaml "$good_knobs" "$good_objectives" "name: again"
expect_error 2 'twice.yaml:8:1.*(twice|duplicate)' describe twice.yaml
psa unknown.yaml "$good_knobs" "objetives: {latency: {minimize: latency}}"
expect_error 2 'unknown.yaml:7:1.*objectives' describe unknown.yaml
psa knob.yaml "knobs: {workload.dpp: {values: [1, 2]}}" "$good_objectives"
expect_error 2 'knob.yaml:6:9.*workload.dp' describe knob.yaml
psa unit.yaml "knobs: {network.bandwidth: {values: [50 GBps], per: dimension}}" "$good_objectives"
expect_error 2 'unit.yaml:6:.*GB/s' describe unit.yaml
psa bare.yaml "knobs: {network.bandwidth: {values: [50], per: dimension}}" "$good_objectives"
expect_error 2 'bare.yaml:6:.*unit' describe bare.yaml
psa step.yaml "knobs: {network.bandwidth: {range: [50 GB/s, 500 GB/s], step: 40 GB/s, per: dimension}}" "$good_objectives"
expect_error 2 'step.yaml:6:' describe step.yaml
psa power.yaml "knobs: {workload.dp: {powers_of_two: [1, 12]}}" "$good_objectives"
expect_error 2 'power.yaml:6:.*power' describe power.yaml
psa scope.yaml "$good_knobs" "$good_objectives" "constraints:" "  - workload.dp <= modl.heads"
expect_error 2 'scope.yaml:9:.*modl' describe scope.yaml
psa near.yaml "$good_knobs" "objectives: {l: {minimize: latenci}}"
expect_error 2 'near.yaml:7:.*latency' describe near.yaml
psa flow.yaml "$good_knobs" "objectives: {l: {minimize: max(latency, 1 s)}}"
expect_error 2 'flow.yaml:7:.*quote' describe flow.yaml
psa dimension.yaml "$good_knobs" "objectives: {l: {minimize: latency + peak_memory}}"
expect_error 2 'dimension.yaml:7:' describe dimension.yaml
psa constant.yaml "$good_knobs" "$good_objectives" "constraints:" "  - 3 > 4"
expect_error 2 'constant.yaml:9:.*3.*4' describe constant.yaml
psa noname.yaml "$good_knobs" "$good_objectives"
sed -i 's/name: small/name: ""/' noname.yaml
expect_error 2 'noname.yaml:2:7' describe noname.yaml
psa nomodel.yaml "$good_knobs" "$good_objectives"
sed -i 's/gpt3-13b/gpt3-14b/' nomodel.yaml
expect_error 2 'gpt3-14b' describe nomodel.yaml
psa nosystem.yaml "$good_knobs" "$good_objectives"
sed -i 's/cosmic-system1/cosmic-system9/' nosystem.yaml
expect_error 2 'cosmic-system9' describe nosystem.yaml

# ---- a contradiction: all the numbers ----
psa npus.yaml "knobs: {workload.dp: {values: [3, 5]}, workload.tp: {values: [1]}, workload.sp: {values: [1]}, workload.pp: {values: [1]}}" "$good_objectives"
expect_error 3 'no valid point' run npus.yaml -q -f json
expect 3 '512' run npus.yaml
sed -i 's/\[3, 5\]/[3]/' npus.yaml
expect_error 2 '3 \* 1 \* 1 \* 1.*512' run npus.yaml
expect_error 2 '512' simulate configs/psa/gpt3-13b-system1.yaml --set workload.dp=16
expect_error 2 '40.*16' simulate configs/psa/gpt3-13b-system1.yaml --set workload.tp=16 --set workload.dp=2
expect_error 2 'did you mean .workload.(dp|pp)' simulate configs/psa/gpt3-13b-system1.yaml --set workload.pd=2
expect_error 2 'workload.dp' simulate configs/psa/gpt3-13b-system1.yaml --set workload.dp=x
expect_error 2 'npus' simulate configs/psa/gpt3-13b-system1.yaml --set 'network.npus[9]=2'

# ---- a slip is warned of, wherever the value is given ----
for value in 'bandwidth=50 MB/s' 'bandwidth=11 TB/s' 'latency=0.5 ns' 'latency=2 ms'; do
    expect 0 'warning: network.*is the unit right' simulate configs/psa/llama3-70b-h100.yaml --set "network.$value"
    expect 0 'warning: network.*is the unit right' describe configs/psa/llama3-70b-h100.yaml --fix "network.$value"
done
for value in 'bandwidth=0.1 GB/s' 'latency=0 ns' 'latency=1 ms'; do
    expect 0 . simulate configs/psa/llama3-70b-h100.yaml --set "network.$value"
    grep -q warning "$work/.err" && fail "a warning of network.$value"
done

# ---- a search without a feasible design ----
psa full.yaml "knobs: {workload.dp: {values: [64, 128]}, workload.tp: {values: [4, 8]}, workload.sp: {values: [1]}, workload.pp: {values: [1]}, workload.sharding: {values: [none]}}" "$good_objectives"
sed -i 's/gpt3-13b/gpt3-175b/' full.yaml
expect 3 'least violating' run full.yaml --out full --evaluations 10
expect 3 '"least_violating": \[' run full.yaml --out full2 --evaluations 10 -f json
psa infinite.yaml "$good_knobs" "objectives: {x: {minimize: workload.dp / 0}}"
expect 3 'failed: objective x has no finite value' run infinite.yaml --study infinite.db --evaluations 5

# ---- places ----
expect 0 . run configs/psa/llama3-70b-h100.yaml --out kept --evaluations 20 -q
before=$(md5sum <kept/study.db)
expect_error 2 'exists and is not overwritten' run configs/psa/llama3-70b-h100.yaml --out kept --evaluations 20
[ "$before" = "$(md5sum <kept/study.db)" ] || fail "the existing study was changed"
expect_error 2 'missing.csv' run configs/psa/llama3-70b-h100.yaml --warm-start missing.csv --out gone
touch plain
expect_error 2 'plain' run configs/psa/llama3-70b-h100.yaml --out plain/x --evaluations 20
expect_error 2 'plain' run configs/psa/llama3-70b-h100.yaml --out plain --evaluations 20
expect_error 2 '.' run configs/psa/llama3-70b-h100.yaml --study nowhere/s.db --evaluations 20
expect_error 2 '.' simulate configs/psa/llama3-70b-h100.yaml --timeline nowhere/t.json
expect_error 2 'directory' simulate configs/psa/llama3-70b-h100.yaml --timeline .
expect 2 'plain.*is no folder|plain.*cannot' trace export configs/psa/llama3-70b-h100.yaml --out plain
expect_error 2 'directory' report kept/study.db -o .
[ "$(ls kept)" = "$(printf 'run.json\nstudy.db\ntrials.csv')" ] || fail "kept/ holds $(ls kept | tr '\n' ' ')"
if [ "$(id -u)" != 0 ]; then
    mkdir locked && chmod a-w locked
    expect_error 2 'locked' run configs/psa/llama3-70b-h100.yaml --out locked --evaluations 20
else
    echo "skipped: a folder without write permission does not stop root"
fi
expect_error 2 'seed' run configs/psa/llama3-70b-h100.yaml --out kept --resume --seed 2 --evaluations 20
expect_error 2 'agent' run configs/psa/llama3-70b-h100.yaml --out kept --resume --agent walk --evaluations 20

# ---- output that cannot be written ----
checks=$((checks + 3))
"$cli" describe configs/psa/llama3-70b-h100.yaml >/dev/full 2>.err
[ $? = 1 ] || fail "a full device is not reported"
"$cli" describe configs/psa/llama3-70b-h100.yaml >&- 2>.err
[ $? = 1 ] || fail "closed standard output is not reported"
"$cli" trials kept/study.db -f csv | head -n 1 >.out
[ "${PIPESTATUS[0]}" = 0 ] || fail "| head: exit ${PIPESTATUS[0]}"

# A key of a device that nothing reads is refused where it stands.
sed 's,\.\./devices/[a-z0-9-]*,device-kernels,' configs/systems/ring-8.yaml >system-kernels.yaml
{ cat "configs/devices/$(sed -n 's,.*\.\./devices/,,p' configs/systems/ring-8.yaml)"; echo 'kernels: nothing.csv'; } >device-kernels.yaml
expect_error 2 'device-kernels.yaml:[0-9]+:1: .*unknown field .kernels.' collective --system system-kernels.yaml --type all_reduce --bytes 1MiB

finish
