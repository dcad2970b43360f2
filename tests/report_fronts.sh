#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The front in CSV, JSON and HTML is the brute-force non-dominated set by trial number, with failures
# and infeasible designs among the trials; the pages of odd studies can be written.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || {
    echo "skipped: no python3 here"
    exit 0
}

expect 0 'on the front' pareto configs/psa/gpt3-13b-system1.yaml --objectives latency,network_cost \
    --evaluations 600 --agent random --seed 4 --out out
for file in study.db front.csv front.json report.html; do
    [ -s out/$file ] || fail "pareto does not write $file"
done

# Failures, infeasible designs with good numbers, and designs equal to others.
python3 - out/study.db study.db <<'P' || fail "cannot change the study"
import sqlite3, sys
old, new = sqlite3.connect(sys.argv[1]), sqlite3.connect(sys.argv[2])
old.backup(new)
new.execute("UPDATE trial SET status = 1, reason = 'limit: made up' WHERE id % 7 = 1")
new.execute("UPDATE trial SET status = 2, reason = 'negative time' WHERE id % 5 = 0")
new.commit()
P
for names in latency,network_cost latency,bandwidth latency,network_cost,peak_memory latency,mfu; do
    expect 0 . front study.db --objectives $names
    "$cli" front study.db --objectives $names -f csv >front.csv
    "$cli" front study.db --objectives $names -f json >front.json
    "$cli" trials study.db -f json >trials.json
    expect 0 . report study.db --objectives $names -o page.html
    python3 - $names <<'P' || fail "the fronts of $names differ"
import base64, csv, json, re, struct, sys
names = sys.argv[1].split(",")
keys = {"latency": "latency_s", "network_cost": "network_cost_usd", "mfu": "mfu",
        "bandwidth": "bandwidth_per_npu_bytes_per_s", "peak_memory": "peak_memory_bytes"}
sign = [-1 if name == "mfu" else 1 for name in names]
trials = json.load(open("trials.json"))["trials"]
assert len(trials) == 600, len(trials)
value = {t["trial"]: [s * t[keys[n]] for s, n in zip(sign, names)]
         for t in trials if t["status"] == "feasible" and all(t[keys[n]] is not None for n in names)}
assert sum(t["status"] == "failed" for t in trials) == 120
front = []
for i, v in value.items():
    dominated = any(all(a <= b for a, b in zip(w, v)) and (w != v or j < i)
                    for j, w in value.items() if j != i)
    if not dominated:
        front.append(i)
front.sort()
from_json = json.load(open("front.json"))
from_csv = [int(row["trial"]) for row in csv.DictReader(open("front.csv"))]
ids = [t["trial"] for t in from_json["trials"]]
assert ids == from_csv, (ids, from_csv)
assert len(ids) == len(set(ids)), "duplicates"
assert sorted(ids) == front, (sorted(ids), front)
page = json.loads(re.search(r'id="data">\s*(.*?)\s*</script>', open("page.html").read(), re.S).group(1))
study = page["studies"][0]
n = study["rows"]["n"]
number = struct.unpack(f"<{n}d", base64.b64decode(study["rows"]["trial"]["f64"]))
assert [number[r] for r in study["about"]["front"]["rows"]] == ids
for i, trial in enumerate(from_json["trials"]):
    assert [s * v for s, v in zip(sign, trial["criteria"].values())] == value[trial["trial"]]
    if i > 0:
        assert trial["changes_from_previous"], "two equal designs on the front"
assert len(front) < 3 or from_json["knee_trial"] in front
P
    checks=$((checks + 1))
done

expect_error 2 'did you mean' front study.db --objectives latncy,mfu
expect_error 2 'twice' front study.db --objectives latency,latency
expect_error 2 'two or more' pareto configs/psa/gpt3-13b-system1.yaml --objectives latency
expect_error 2 'valid points' pareto configs/psa/gpt3-13b-system1.yaml --exact
expect_error 2 '.' report nothing.db

# --exact: the front of the whole (narrowed) space is that of every design.
expect 0 'whole space' pareto configs/psa/gpt3-13b-system1.yaml --exact --stack workload \
    --objectives latency,peak_memory --out exact
finish
