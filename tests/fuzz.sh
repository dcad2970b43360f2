#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Long fuzzing: tests/fuzz.sh [SECONDS [TARGET...]] runs every target (or those named) for that long
# (600), one on each processor, with the address and undefined-behaviour sanitizers, from seeds made
# of the shipped configs and a corpus that is kept in build-fuzz/corpus/.  A crash is left in
# build-fuzz/crashes/.  Prints executions, coverage (edges) and features of each target.  No input
# may use over 1 GB or 10 s.
set -u
cd "$(dirname "$0")/.." || exit 1
dir=build-fuzz
alone=""
[ "${1:-}" = --alone ] && alone=1 && shift # one target, built already
seconds=${1:-600}
[ $# -gt 0 ] && shift
targets=${*:-expression psa model config_json system astra serve trace_et trace_text}

# fuzz TARGET: one of them; its last line of statistics is shown.
fuzz() {
    local target=$1
    local program=$dir/fuzz_$target corpus=$dir/corpus/$target log=$dir/fuzz_$target.log code
    mkdir -p "$corpus" "$dir/crashes/$target"
    CS_FUZZ_SEEDS=$corpus "$program" || return 1
    "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
        -print_final_stats=1 -artifact_prefix="$dir/crashes/$target/" "$corpus" >"$log" 2>&1
    code=$?
    printf '%-12s %s  %s\n' "$target" \
        "$(grep -oE 'number_of_executed_units: +[0-9]+' "$log" | tr -s ' ')" \
        "$(grep -oE 'cov: [0-9]+ ft: [0-9]+ corp: [0-9]+' "$log" | tail -n 1)"
    [ $code = 0 ] && return 0
    grep -E 'ERROR|runtime error|SUMMARY|Test unit written' "$log"
    return 1
}

if [ -n "$alone" ]; then
    fuzz "$targets"
    exit
fi
. ./.ci/setup.sh
(build $dir fuzz -DCMAKE_C_COMPILER=clang -DCS_FUZZ=ON -DCMAKE_BUILD_TYPE=Fuzz \
    "-DCMAKE_C_FLAGS=-O1 -g") || exit 1
# shellcheck disable=SC2086
printf '%s\n' $targets | xargs -n 1 -P "$(nproc)" tests/fuzz.sh --alone "$seconds"
