#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What the program does when all is well: commands, formats, files, determinism, signals.
. "$(dirname "$0")/lib.sh"
psa=configs/psa/llama3-70b-h100.yaml
full=configs/psa/gpt3-175b-system3.yaml

# json FILE EXPRESSION: value of a Python expression over the parsed JSON `d`.
json() {
    python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}
have_python=$(command -v python3)

# ---- texts ----
expect 0 'configs/psa/gpt3-175b-system3.yaml'
expect 0 '^cosmic-search [0-9]+\.[0-9]+' --version
expect 0 'run +search a PSA' --help
for command in run describe model simulate trials best front bench; do
    expect 0 'Example:' "$command" --help
    expect 0 'Exit codes' help "$command"
done

# Every option a command names in its table exists.
for command in run describe model simulate trials best front bench collective; do
    "$cli" $command --help >help.txt
    for option in $(sed -n "/\.name = \"$command\"/,/\.min_files/p" "$root"/cli/*.c | tr -d '\n' |
        sed -n 's/.*\.options *= *\([^,]*\),.*/\1/p' | tr -d '"'); do
        grep -q -- "--$option" help.txt || fail "$command --help does not list --$option"
    done
done

# ---- describe, model, simulate ----
expect 0 'valid points' describe "$full"
expect 0 '"raw_points": "[0-9]+"' describe "$full" -f json
expect 0 '^knob,unit,count,values' describe "$full" -f csv
expect 0 '174,604,259,328 parameters' model configs/models/gpt3-175b.yaml
expect 0 '"flops_forward_backward": 2204412785197056' model configs/models/gpt3-175b.yaml -f json
expect 0 '70,553,706,496 parameters' model configs/models/llama3-70b.yaml
expect 0 'latency' simulate "$full"
expect 0 '"latency_s": [0-9.e+-]+' simulate "$full" -f json
# What does not fit is shown and named, by how much, with the exit code of "no feasible design".
for format in table json csv; do
    expect 3 'not feasible: memory: .* of 24 GB, .* over on stage 1' simulate configs/psa/gpt3-175b-system3.yaml \
        --set workload.sharding=none --set workload.recompute=none -f $format
done
expect 0 '^latency_s,[0-9.e+-]+' simulate "$full" -f csv
expect 0 'waits|compute' simulate "$psa" --timeline t.json
[ -s t.json ] || fail "no timeline"
[ -n "$have_python" ] && [ "$(json t.json 'len(d["traceEvents"]) > 100')" = True ] ||
    [ -z "$have_python" ] || fail "the timeline is no trace"

# ---- run: places, files, the screen ----
expect 0 'best at baseline' run "$psa" --evaluations 300 --seed 7
[ -s results/llama3-70b-h100-001/study.db ] || fail "no results/llama3-70b-h100-001/study.db"
expect 0 'best at baseline' "$psa" --evaluations 50 --agent random
[ -s results/llama3-70b-h100-002/trials.csv ] || fail "no results/llama3-70b-h100-002/trials.csv"
expect 0 '"evaluations": 60,' run "$psa" --evaluations 60 --study only.db -f json
[ -s only.db ] || fail "--study alone makes no study"
[ -d results/llama3-70b-h100-003 ] && fail "--study alone makes a folder too"
"$cli" run "$psa" --evaluations 100 --out q --resume >one 2>/dev/null
"$cli" run "$psa" --evaluations 100 --out q --resume >two 2>/dev/null
cmp one two || fail "a second run with --resume prints another screen"

# ---- trials, best, front ----
study=results/llama3-70b-h100-001/study.db
"$cli" trials $study -f csv >trials.csv
[ "$(wc -l <trials.csv)" = 301 ] || fail "trials: $(wc -l <trials.csv) lines, expected 301"
cmp trials.csv results/llama3-70b-h100-001/trials.csv || fail "trials.csv differs from trials"
expect 0 '^trial,status,feasible' trials $study -f csv
expect 0 'trial +verdict' trials $study
expect 0 '"verdict": "feasible"' best $study -f json
expect 0 'Limited by' best $study
expect 0 '^trial,' best $study --top 3 -f csv
expect 0 '"trials": \[' front $study -f json --objectives latency,peak_memory
if [ -n "$have_python" ]; then
    "$cli" trials $study -f json >trials.json
    [ "$(json trials.json 'len(d["trials"])')" = 300 ] || fail "trials.json: not 300 trials"
    "$cli" front $study -f json --objectives latency,peak_memory >front.json
    python3 - <<'P' || fail "the front is not the set of non-dominated trials"
import json
key = lambda t: (t["latency_s"], t["peak_memory_bytes"])
trials = [t for t in json.load(open("trials.json"))["trials"] if t["feasible"]]
front = json.load(open("front.json"))["trials"]
seen, expected = set(), []
for t in trials:
    k = key(t)
    if k in seen or any(key(o)[0] <= k[0] and key(o)[1] <= k[1] and key(o) != k for o in trials):
        continue
    seen.add(k)
    expected.append(t["trial"])
assert sorted(expected) == sorted(t["trial"] for t in front), (expected, front)
P
    "$cli" best $study -f json >best.json
    python3 - <<'P' || fail "best is not the least latency of the trials"
import json
best = json.load(open("best.json"))
trials = [t for t in json.load(open("trials.json"))["trials"] if t["feasible"]]
assert best["latency_s"] == min(t["latency_s"] for t in trials)
total = sum(best[k] for k in ("compute_s", "exposed_s", "bubble_s", "idle_s"))
assert abs(total - best["latency_s"]) < 1e-9, total
assert abs(sum(best["exposed_by_axis_s"].values()) - best["exposed_s"]) < 1e-9
assert abs(sum(best["memory_by_part_bytes"].values()) - best["peak_memory_bytes"]) < 1
P
fi

# ---- the same digits for any number of threads ----
for jobs in 1 2 4 16; do
    "$cli" run "$full" --evaluations 200 --seed 3 --jobs $jobs --study j$jobs.db -q >/dev/null 2>&1
    "$cli" trials j$jobs.db -f csv >j$jobs.csv
done
for jobs in 2 4 16; do
    cmp j1.csv j$jobs.csv || fail "--jobs $jobs gives other trials than --jobs 1"
done
[ "$(wc -l <j1.csv)" = 201 ] || fail "j1.csv: $(wc -l <j1.csv) lines"

# ---- stacks and fixed knobs ----
expect 0 . run "$full" --stack network,collective --evaluations 50 --study stack.db
"$cli" trials stack.db -f csv | awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) if ($i == "workload.dp") dp = i; next }
    $dp != 8 { bad = 1 }
    END { exit bad }' || fail "--stack network,collective changes a workload knob"
expect 0 . run "$full" --fix workload.dp=8 --evaluations 50 --study fix.db -f json

# ---- signals: under a second, a valid study, the code of the signal ----
for signal in INT TERM; do
    "$cli" run "$full" --evaluations 100000000 --timeout 60 --study $signal.db -q >/dev/null 2>.err &
    pid=$!
    sleep 1
    start=$(date +%s%N)
    kill -$signal $pid
    wait $pid
    code=$?
    took=$((($(date +%s%N) - start) / 1000000))
    checks=$((checks + 1))
    expected=$([ $signal = INT ] && echo 130 || echo 143)
    [ $code = "$expected" ] || fail "SIG$signal: exit $code, expected $expected: $(cat .err)"
    [ $took -lt 1500 ] || fail "SIG$signal: took $took ms"
    expect 0 . best $signal.db -f json
done

finish
