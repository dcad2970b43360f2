#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The command line on the reference data beside the repository: collectives and traced jobs to the
# nanosecond.
. "$(dirname "$0")/lib.sh"
reference=$root/../shared/reference/astra
if [ ! -f "$reference/collectives.csv" ]; then
    echo "skipped: no reference data beside the repository"
    exit 0
fi

# ---- collectives ----
"$cli" collective --cases "$reference/collectives.csv" -f csv >cases.csv || fail "collective --cases"
awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["result_cycles"] == $at["predicted_ns"] { same++; next }
    {
        off = $at["predicted_ns"] / $at["result_cycles"] - 1
        if ($at["predicted_ns"] == "" || off > 0.01 || off < -0.01) { print; bad++ } else near++
    }
    END { printf "%d rows equal, %d within 1 %%, %d further off\n", same, near, bad; exit bad > 0 }
' cases.csv || fail "collectives differ from the reference"

# ---- end to end ----
while IFS=, read -r case system max min exposed; do
    folder=$reference/endtoend/$case
    [ "$case" != case ] && [ -d "$folder" ] || continue
    "$cli" trace simulate "$folder" --network "$folder/network.yml" \
        --system "$folder/system.$system.json" -q -f json >job.json || fail "$case $system"
    checks=$((checks + 1))
    for pair in "max_ns $max" "min_ns $min" "max_exposed_ns $exposed"; do
        read -r key value <<<"$pair"
        [ -z "$value" ] || grep -q "\"$key\": $value,\{0,1\}\$" job.json ||
            fail "$case, system $system: $(grep "\"$key\"" job.json), expected $value"
    done
done <"$reference/endtoend/expected.csv"
finish
