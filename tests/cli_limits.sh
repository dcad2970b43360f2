#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Limits that hold: every exit code of the contract (DESIGN 3), --timeout, Ctrl-C, threads, agents
# outside that do not behave, and hostile inputs of 10 MB.  Bounds on time are generous: they tell a
# hang from an end.
. "$(dirname "$0")/lib.sh"
psa=configs/psa/llama3-70b-h100.yaml

# ---- the exit codes, one by one ----
expect 0 . describe $psa
expect 0 . run $psa --evaluations 20 --study zero.db -q
expect 0 '"stop": "exhausted"' run $psa --fix workload.dp=16 --fix workload.tp=8 --fix workload.sp=1 \
    --fix workload.micro_batch=1 --agent exhaustive --evaluations 100000 --study all.db -f json
"$cli" describe $psa >/dev/full 2>.err
[ $? = 1 ] || fail "1 (failed): output that is lost gives another exit code"
expect_error 2 'did you mean' describe $psa --fix workload.dpp=1
expect_error 2 'No such file' best none.db
expect 3 'no feasible|least violating|no valid' run $psa --fix workload.dp=512 --fix workload.tp=1 \
    --fix workload.sp=1 --fix workload.pp=1 --fix workload.sharding=none --evaluations 20 --study three.db
# 4: a trace whose bytes are none, and two ranks that wait for each other's message for ever.
printf 'no trace at all' >bad.0.et
expect_error 4 'bad.0.et' trace info bad.0.et
attribute() { # NAME VALUE: an attribute of a node, as text for printf
    local body
    body=$(printf '\\x0a\\x%02x%s\\x48\\x%02x' ${#1} "$1" "$2")
    printf '\\x52\\x%02x%s' "$(printf "$body" | wc -c)" "$body"
}
node() { # ID TYPE DEPENDENCY SOURCE DESTINATION
    local body
    body=$(printf '\\x08\\x%02x\\x12\\x01n\\x18\\x%02x' "$1" "$2")
    [ "$3" = 0 ] || body+=$(printf '\\x28\\x%02x' "$3")
    body+=$(attribute comm_src "$4")$(attribute comm_dst "$5")$(attribute comm_tag 1)$(attribute comm_size 64)
    printf '\\x%02x%s' "$(printf "$body" | wc -c)" "$body"
}
for rank in 0 1; do # receive (6) from the other, then send (5) to it
    printf "$(printf '\\x07\\x0a\\x05''0.0.4')$(node 1 6 0 $((1 - rank)) $rank)$(node 2 5 1 $rank $((1 - rank)))" >wait.$rank.et
done
printf 'topology: [ Ring ]\nnpus_count: [ 2 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n' >network.yml
printf '{"preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["ring"]}' >system.json
expect 4 'deadlock.*2 of 2 ranks wait' trace simulate wait --network network.yml --system system.json
expect_error 2 'neither a file nor a folder' trace info /dev/null

# ended CODE MOST PATTERN SIGNAL ARGUMENT...: a signal after half a second ends it with CODE within
# MOST ms, and says PATTERN.  What it reads is open and empty.
mkfifo quiet
exec 9<>quiet
ended() {
    local code=$1 most=$2 pattern=$3 signal=$4 pid start got took
    shift 4
    "$cli" "$@" >.out 2>.err <&9 &
    pid=$!
    sleep 0.5
    start=$(date +%s%N)
    kill -"$signal" $pid
    wait $pid
    got=$?
    took=$((($(date +%s%N) - start) / 1000000))
    checks=$((checks + 1))
    [ $got = "$code" ] || fail "$*: SIG$signal: exit $got, expected $code: $(head -c 300 .err)"
    [ $took -lt "$most" ] || fail "$*: SIG$signal: $took ms"
    grep -q "$pattern" .err || fail "$*: SIG$signal: no /$pattern/ in $(head -c 300 .err)"
    [ -z "${CS_SHOW:-}" ] || echo "SIG$signal $1 $4: $took ms"
}
for agent in random local bayesian auto; do
    ended 130 5000 'stopped by a signal' INT run $psa --agent $agent --evaluations 100000000 --study int-$agent.db --timeout 60
done
ended 143 5000 'stopped by a signal' TERM run $psa --agent genetic --evaluations 100000000 --study term.db --timeout 60
ended 130 5000 'stopped by a signal' INT run $psa --agent-command 'sleep 60' --study outside.db --timeout 60
ended 130 5000 'stopped by a signal' INT pareto $psa --objectives latency,peak_memory --evaluations 100000000 --out pareto --timeout 60
ended 143 5000 'stopped by a signal' TERM serve $psa --seed 1

# ---- --timeout: it ends, and its trials are those a longer run begins with ----
for agent in random genetic bayesian; do
    start=$(date +%s%N)
    "$cli" run $psa --agent $agent --evaluations 100000000 --timeout 2 --study t.db -q -f json >t.json 2>.err ||
        fail "--timeout: $agent: $(cat .err)"
    took=$((($(date +%s%N) - start) / 1000000))
    checks=$((checks + 2))
    grep -q '"stop": "timeout"' t.json || fail "--timeout: $agent: $(grep '"stop"' t.json)"
    [ $took -lt 20000 ] || fail "--timeout 2: $agent: $took ms"
    [ -z "${CS_SHOW:-}" ] || echo "--timeout 2 $agent: $took ms"
    "$cli" trials t.db -f csv >t.csv
    n=$(($(wc -l <t.csv) - 1))
    most=$n
    [ $most -gt 2000 ] && most=2000
    # The budget is the same, so that nothing depends on it; the run is ended once it has as many.
    "$cli" run $psa --agent $agent --evaluations 100000000 --study u.db -q >/dev/null 2>&1 &
    pid=$!
    for ((i = 0; i < 600; i++)); do
        sleep 0.1
        [ "$("$cli" trials u.db -f csv 2>/dev/null | wc -l)" -gt $most ] && break
    done
    kill -INT $pid
    wait $pid
    cmp <(head -n $((most + 1)) t.csv) <("$cli" trials u.db -f csv | head -n $((most + 1))) ||
        fail "--timeout: $agent: its trials are no prefix"
    rm -f t.db* u.db*
done

# ---- nothing is written but what --study and --out name ----
mkdir elsewhere home temporary
ln -s "$root/configs" elsewhere/configs
(
    cd elsewhere || exit 1
    export HOME=$work/home TMPDIR=$work/temporary
    "$cli" run $psa --agent genetic --evaluations 200 --study "$work/named.db" -q
    "$cli" run $psa --evaluations 50 --out "$work/named" -q
    "$cli" best "$work/named.db"
    "$cli" report "$work/named.db" -o "$work/named.html"
    "$cli" simulate $psa --timeline "$work/named.json"
    echo '{"cmd":"sample","n":2}' | "$cli" serve $psa
) >.out 2>&1 || fail "named places: $(head -c 300 .out)"
checks=$((checks + 1))
written=$(find elsewhere home temporary ! -type d ! -name configs; ls -d named* | tr '\n' ' ')
[ "$written" = "named named.db named.html named.json " ] || fail "written: $written"

# ---- threads: what there is, what is asked for, and it is printed ----
threads() { # EXPECTED COMMAND...
    local expected=$1
    shift
    "$@" >/dev/null 2>.err
    checks=$((checks + 1))
    grep -q "on $expected threads" .err || fail "$*: not $expected threads: $(head -c 200 .err)"
}
run="run $psa --evaluations 5 --study threads.db --resume"
threads 3 "$cli" $run --jobs 3
threads 1 env OMP_NUM_THREADS=1 "$cli" $run
command -v taskset >/dev/null && threads 1 env -u OMP_NUM_THREADS taskset -c 0 "$cli" $run

# ---- agents outside that do not behave ----
outside() { # PATTERN COMMAND
    rm -f outside.db*
    expect_error 2 "$1" run $psa --agent-command "$2" --timeout 20 --study outside.db -q
}
outside '100 requests in a row were refused' 'yes'
outside 'longer than 16 MiB' 'cat /dev/zero'
outside 'no design \(exit code 3\)' 'exit 3'
start=$SECONDS
expect_error 2 'no design' run $psa --agent-command 'sleep 100' --timeout 1 --study outside.db -q
expect_error 2 'no design' run $psa --agent-command "yes '{\"cmd\":\"best\"}'" --timeout 1 --study outside.db -q
[ $((SECONDS - start)) -lt 40 ] || fail "silent and deaf agents: $((SECONDS - start)) s"

# ---- hostile inputs of 10 MB: refused or read within 1 GB and in good time ----
[ -n "${CS_FAULTS:-}" ] || {
    echo "skipped: how much memory an input takes tells nothing beside a sanitizer"
    finish
    exit
}
bytes=10000000
# lines TEXT: it again and again.
lines() { yes -- "$1" | head -n $((bytes / (${#1} + 1))); }
deep() { head -c $bytes /dev/zero | tr '\0' "$1"; }
psa_head='psa: 1
name: big
workloads: [{model: configs/models/gpt3-1.3b.yaml, mode: train, global_batch: 8, sequence: 128}]
system: configs/systems/ring-8.yaml
objectives: {latency: {minimize: latency}}
'
numbers() { seq -s ', ' 1 1400000; }
{ echo "${psa_head}knobs:"; seq 1 700000 | sed 's/.*/  k&: [1]/'; } >psa-knobs.yaml
{ echo "${psa_head}knobs: {workload.dp: [1, 2, 4, 8]}"; echo "constraints:"; lines '  - workload.dp < 9'; } >psa-constraints.yaml
{ echo "${psa_head}knobs: {workload.dp: ["; numbers; echo "]}"; } >psa-values.yaml
{ echo "${psa_head}knobs: {workload.dp: {values: [1, 2], when: \""; lines '1 + '; echo "1 > 0\"}}"; } >psa-expression.yaml
{ echo "${psa_head}knobs: {workload.dp: {values: [1, 2], when: \""; deep '('; echo "\"}}"; } >psa-parentheses.yaml
{ echo "${psa_head}knobs: {workload.dp: {values: [1, 2], when: \""; lines '-'; echo "1\"}}"; } >psa-minus.yaml
{ echo "${psa_head}knobs: {workload.dp: [1]}"; echo "derived:"; seq 1 600000 | sed 's/.*/  d&: 1 + &/'; } >psa-derived.yaml
{ echo "${psa_head}knobs: {workload.dp: [1]}"; echo "starts:"; lines '  - {workload.dp: 1}'; } >psa-starts.yaml
deep '[' >deep.yaml
deep '{' >braces.yaml
lines '- a' >list.yaml
seq 1 1300000 | sed 's/$/: 1/' >map.yaml
{ echo 'a: &a [1, 1]'; seq 1 500000 | sed 's/.*/b&: \&b& [*a, *a]/'; } >alias.yaml
{ printf 'a: "'; deep x; echo '"'; } >scalar.yaml
{ sed '/^blocks:/,$d' configs/models/llama3-8b.yaml; echo 'blocks:'; seq 1 500000 | sed 's/.*/  b&: {ops: {}}/'; } >model-blocks.yaml
{ echo 'model: 1'; echo 'name: big'; echo 'dims: {'; seq -s ', ' 1 600000 | sed 's/[0-9]\+/d&: &/g' ; echo '}'; } >model-dims.yaml
{ printf '{"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 8, "intermediate_size": 128, "vocab_size": 512, "x": ['; numbers; echo ']}'; } >config.json
{ printf '{"model_type": "qwen3_moe", "num_hidden_layers": 1000000000, "hidden_size": 1000000000, "num_attention_heads": 8, "intermediate_size": 128, "vocab_size": 512, "num_experts": 1000000000, "num_experts_per_tok": 8, "moe_intermediate_size": 32, "mlp_only_layers": ['; numbers; echo ']}'; } >config-layers.json
{ sed '/^network:/,$d; s,\.\./devices,configs/devices,' configs/systems/ring-8.yaml; echo 'network: {topology: ['; lines 'ring,'; echo 'ring], npus: ['; echo '8]}'; } >system-dims.yaml
{ sed 's,\.\./devices,configs/devices,' configs/systems/ring-8.yaml; seq 1 500000 | sed 's/.*/  workload.x&: 1/'; } >system-baseline.yaml
{ echo 'topology: ['; lines 'Ring,'; echo 'Ring ]'; echo 'npus_count: [ 8 ]'; } >network-dims.yml
{ printf '{"all-reduce-implementation": ['; lines '"ring",'; printf '"ring"]}'; } >system-list.json
{ printf '{"cmd":"evaluate","designs":['; lines '{"workload.dp":1},' | tr -d '\n'; printf '{"workload.dp":1}]}\n'; } >serve-designs.txt
{ printf '{"cmd":"sample","n":65536}\n'; } >serve-sample.txt
{ deep '['; echo; } >serve-deep.txt
{ printf '{"cmd":"evaluate","designs":[{'; seq 1 700000 | sed 's/.*/"k&":1,/' | tr -d '\n'; printf '"a":1}]}\n'; } >serve-keys.txt
{ deep '('; echo; } >expression.txt

# bounded INPUT COMMAND...: a code of the contract within 1 GB of memory and a minute; CS_SHOW=1
# prints what it took.
bounded() {
    local input=$1 code
    shift
    (
        ulimit -v 1048576
        ${timer:+"$timer" -f "%e s %M KiB" -o .time} timeout 60 "$cli" "$@" <"$input" >.out 2>.err
    )
    code=$?
    checks=$((checks + 1))
    [ -z "${CS_SHOW:-}" ] || echo "$input: $* -> $code, $(tail -n 1 .time): $(head -c 120 .err | head -n 1)"
    case $code in
    0 | 2 | 3) ;;
    *) fail "$input: $*: exit $code: $(head -c 300 .err)" ;;
    esac
    if [ -s .time ] && [ "$(awk 'END { print ($3 > 1000000) }' .time)" = 1 ]; then
        fail "$input: $*: $(tail -n 1 .time)"
    fi
}
timer=$(type -P time) # the shell has a word of that name
for file in psa-*.yaml deep.yaml braces.yaml list.yaml map.yaml alias.yaml scalar.yaml; do
    bounded $file describe $file
done
for file in model-*.yaml config*.json deep.yaml list.yaml map.yaml alias.yaml scalar.yaml; do
    bounded $file model $file
done
for file in system-*.yaml map.yaml list.yaml; do
    bounded $file collective --system $file --type all_reduce --bytes 1GiB
    echo "${psa_head/configs\/systems\/ring-8.yaml/$file}knobs: {workload.dp: [1, 8]}" >with-system.yaml
    bounded $file describe with-system.yaml
done
for file in network-dims.yml map.yaml list.yaml deep.yaml; do
    bounded $file collective --network $file --system system.json --type all_reduce --bytes 1GiB
done
for file in system-list.json deep.yaml list.yaml map.yaml; do
    bounded $file collective --network network.yml --system $file --type all_reduce --bytes 1GiB
done
for file in serve-*.txt; do
    bounded $file serve $psa --jobs 1 --budget 100
done
bounded expression.txt describe $psa --fix "workload.dp=$(head -c 100000 expression.txt)"

finish
