#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# kill -9 at random moments, resume, kill again: the trials are those of an undisturbed run, for
# every agent.  tests/kills.sh [KILLS [AGENT...]]: kills of a running search for each agent (3), agents
# (all).
. "$(dirname "$0")/lib.sh"
psa=configs/psa/llama3-70b-h100.yaml
kills=${1:-3}
[ $# -gt 0 ] && shift
seed=${CS_KILL_SEED:-$RANDOM}
RANDOM=$seed
echo "CS_KILL_SEED=$seed"
agents=${*:-$("$cli" run $psa --agent xyzzy 2>&1 | sed -n 's/.*(agents: \(.*\)).*/\1/p')}
[ -n "$agents" ] || fail "no agents"

# evaluations AGENT: few seconds at most, so that kills fall everywhere.
evaluations() {
    case $1 in
    bayesian) echo 40 ;;
    tpe | auto) echo 150 ;;
    *) echo 1500 ;;
    esac
}

# go AGENT FILE: starts or resumes the run in the background; sets pid.
go() {
    "$cli" run $psa --agent "$1" --evaluations "$n" --seed 5 --study "$2" --resume -q >/dev/null 2>.err &
    pid=$!
}

for agent in $agents; do
    n=$(evaluations "$agent")
    start=$(date +%s%N)
    go "$agent" whole.db
    wait $pid || fail "$agent: $(cat .err)"
    took=$((($(date +%s%N) - start) / 1000000))
    "$cli" trials whole.db -f csv >whole.csv
    landed=0
    # A kill that comes after the end does not count; then a fresh run is begun.
    for ((i = 0; landed < kills && i < 4 * kills; i++)); do
        go "$agent" killed.db
        sleep "$(printf '%d.%03d' $((RANDOM % (took + 1) / 1000)) $((RANDOM % (took + 1) % 1000)))"
        kill -9 $pid 2>/dev/null
        wait $pid 2>/dev/null
        [ $? = 137 ] && landed=$((landed + 1))
        if [ -s killed.db ] && [ $((i % 5)) = 4 ]; then
            # Killed before its first transaction, a study has no trial and no problem yet.
            "$cli" best killed.db -f json >/dev/null 2>.err || [ $? = 3 ] ||
                grep -q 'not a study yet' .err || fail "$agent: best: $(cat .err)"
        fi
        if [ -s killed.db ] && [ "$("$cli" trials killed.db -f csv 2>/dev/null | wc -l)" -gt "$n" ]; then
            "$cli" trials killed.db -f csv | cmp - whole.csv || fail "$agent: other trials after $((i + 1)) kills"
            rm -f killed.db*
        fi
    done
    go "$agent" killed.db
    wait $pid || fail "$agent: the last resume: $(cat .err)"
    "$cli" trials killed.db -f csv >killed.csv
    checks=$((checks + 1))
    cmp whole.csv killed.csv || fail "$agent: other trials after $landed kills"
    [ $landed = "$kills" ] || fail "$agent: only $landed kills while it ran"
    echo "$agent: $n evaluations, $took ms, $landed kills"
    rm -f whole.db* killed.db*
done

finish
