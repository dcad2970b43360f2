#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Timed figures, checked against what the project promises.  Never part of test.sh: a busy machine
# must not fail it.  Usage: tests/bench.sh [PROGRAM]
. "$(dirname "$0")/lib.sh"
[ $# -ge 1 ] && cli=$(cd "$root" && realpath "$1")
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

"$cli" bench "$full" --seconds 5 --jobs 1 -f json >one.json || fail "bench"
rate=$(value one.json evaluations_per_s)
at_least "evaluations/s, one core, gpt3-175b-system3" "$rate" 3000
at_most "first sample from process start, s" "$(value one.json first_sample_s)" 0.01
"$cli" bench "$full" --seconds 5 --jobs 2 -f json >two.json || fail "bench on two cores"
at_least "speed-up on two cores" \
    "$(awk -v a="$(value two.json evaluations_per_s)" -v b="$rate" 'BEGIN { print a / b }')" 1.8
"$cli" run "$full" --agent random --evaluations 20000 --jobs 1 --study r.db -f json >run.json ||
    fail "run --agent random"
feasible=$(awk -v n="$(value run.json evaluations)" -v i="$(value run.json infeasible)" \
    -v t="$(value run.json wall_s)" 'BEGIN { print (n - i) / t }')
at_least "feasible designs/s of run --agent random over bench" \
    "$(awk -v a="$feasible" -v b="$rate" 'BEGIN { print a / b }')" 0.7
start=$(date +%s%N)
"$cli" run "$full" --out quickstart --agent genetic --evaluations 10000 --seed 1 >/dev/null 2>&1
at_most "the search of run.sh, s" "$((($(date +%s%N) - start) / 1000000))e-3" 20

"$cli" run "$full" --agent random --evaluations 50000 --study big.db -q >/dev/null 2>&1 ||
    fail "run --agent random"
start=$(date +%s%N)
"$cli" report big.db -o report.html >/dev/null || fail "report"
at_most "report of 50,000 trials, s" "$((($(date +%s%N) - start) / 1000000))e-3" 5
at_most "its size, bytes" "$(stat -c %s report.html)" 15000000
finish
