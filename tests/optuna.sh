#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Optuna as an opponent of our agents: a few evaluations through `serve`, and its rows in the table
# of the comparison.  Skipped where no interpreter has Optuna (Debian: python3-optuna, python3-yaml).
. "$(dirname "$0")/lib.sh"
python=
for candidate in "${CS_PYTHON:-python3}" /usr/bin/python3; do
    "$candidate" -c 'import optuna, yaml' 2>"$work/.err" && python=$candidate && break
done
[ -n "$python" ] || {
    echo "skipped: $(tail -n 1 "$work/.err")"
    exit 77
}
cat >suite.yaml <<YAML
suite: 1
name: tiny
evaluations: 12
seeds: 2
agents: [random]
pairs: [[random, optuna_random]]
problems:
  - {psa: configs/psa/gpt3-175b-system3.yaml, label: "full stack", objective: perf_per_bandwidth}
  - {psa: configs/psa/gpt3-13b-system1.yaml, label: "split", objective: latency, stacks: [workload]}
YAML
mkdir runs
opponent() { "$python" "$root/tests/optuna_opponent.py" "$cli" suite.yaml runs/runs.jsonl "$@"; }
opponent 2 tpe,nsga2,random || fail "Optuna's samplers did not run"
[ "$(wc -l <runs/runs.jsonl)" = 12 ] || fail "expected 12 runs: 3 samplers, 2 problems, 2 seeds"
cp runs/runs.jsonl before
opponent 2 tpe,nsga2,random || fail "a second call failed"
cmp -s before runs/runs.jsonl || fail "runs that were there were made again"
expect 0 'optuna_tpe' compare suite.yaml --out runs --resume
grep -q '^random,optuna_random,full stack,2,' runs/pairs.csv || fail "the pair is not in pairs.csv"
# The same seed gives the same run.
mv runs/runs.jsonl first
opponent 1 random || fail "a third call failed"
grep -q -F "$(head -n 1 runs/runs.jsonl | sed 's/.*"trace"/"trace"/')" first || fail "same seed, another trace"
finish
