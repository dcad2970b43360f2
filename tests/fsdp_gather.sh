#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Time against memory of gathering sharded weights early: results/tables/fsdp_gather.md.
# bash tests/fsdp_gather.sh [PROGRAM]
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/cosmic-search}
psa=configs/psa/llama3-70b-fsdp8.yaml
table=results/tables/fsdp_gather.md
mkdir -p results/tables

# value KEY BANDWIDTH BLOCKS: one number of a design
value() {
    "$program" simulate $psa -f csv --set workload.sharding=weights --set workload.recompute=full \
        --set network.bandwidth="$2 GB/s" --set workload.prefetch="$3" |
        awk -F, -v key="$1" '$1 == key { print $2 }'
}

row() {
    local base memory time peak exposed
    base=$(value latency_s "$1" 0)
    memory=$(value peak_memory_bytes "$1" 0)
    for blocks in 0 1 2 8; do
        time=$(value latency_s "$1" $blocks)
        peak=$(value peak_memory_bytes "$1" $blocks)
        exposed=$(value exposed_s "$1" $blocks)
        awk -v b="$1" -v k=$blocks -v t="$time" -v t0="$base" -v m="$peak" -v m0="$memory" \
            -v e="$exposed" 'BEGIN {
                printf "| %s GB/s | %d | %.3f s | %.1f %% | %.1f %% | %.2f GB | +%.2f GB |\n",
                    b, k, t, 100 * e / t, 100 * (1 - t / t0), m / 1e9, (m - m0) / 1e9 }'
    done
}

{
    cat <<'TEXT'
# When to gather sharded weights

Llama-3-70B fully sharded (FSDP) over 8 H100 on a ring, 16 sequences of 8,192 tokens, one a
micro-batch, activations recomputed. `workload.prefetch` is the number of blocks whose weights are
gathered ahead; 0 gathers just in time. Gain and price are against just in time; every block counts
in memory as the largest one.

| bandwidth | blocks ahead | step | exposed | gain | peak memory | price |
|---|---|---|---|---|---|---|
TEXT
    for bandwidth in 12.5 25 50 500; do
        row $bandwidth
    done
    cat <<'TEXT'

One block ahead gives nearly all there is, for the memory of one more block. The gain is small where
communication dominates (little to hide it behind) and small where little was exposed; it is largest
where both take about as long. Further blocks only cost memory: gathers follow each other on the
same links, however early they are asked for.

Made by `bash tests/fsdp_gather.sh build/cosmic-search`.
TEXT
} > "$table.new"
mv "$table.new" "$table"
