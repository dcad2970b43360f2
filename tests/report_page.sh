#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The report page in a real browser, for ordinary and for odd studies.  Skipped, with the reason,
# where there is no browser or no node.
. "$(dirname "$0")/lib.sh"

skip() {
    echo "skipped: $*"
    exit 0
}
browser=${CS_BROWSER:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
[ -n "$browser" ] || skip "no chromium here (apt-get install chromium, or set CS_BROWSER)"
command -v node >/dev/null && command -v npm >/dev/null || skip "no node and npm here"
command -v python3 >/dev/null || skip "no python3 here"

# playwright-core as the lock file pins it, beside the build.
modules=${CS_PLAYWRIGHT:-$(dirname "$cli")/web-test}
if [ ! -d "$modules/node_modules/playwright-core" ]; then
    mkdir -p "$modules"
    cp "$root/report/web/package.json" "$root/report/web/package-lock.json" "$modules"
    (cd "$modules" && npm ci --no-audit --no-fund --loglevel=error) >"$work/npm.log" 2>&1 ||
        skip "npm cannot install playwright-core: $(tail -n 1 "$work/npm.log")"
fi

# A small space with a trade-off, in which some designs do not fit their memory.
psa=configs/psa/gpt3-13b-system1.yaml
expect 0 . run $psa --evaluations 200 --agent random --seed 3 --study study.db
mkdir pages
expect 0 . report study.db -o pages/normal.html --objectives latency,network_cost
"$cli" trials study.db -f json >pages/trials.json
"$cli" front study.db -f json --objectives latency,network_cost >pages/front.json

# change NAME SQL...: a copy of the study after statements, as pages/NAME.html.
change() {
    local name=$1
    shift
    python3 - study.db "$name.db" "$@" <<'P' || fail "$name: cannot change the study"
import sqlite3, sys
source, target, *statements = sys.argv[1:]
old, new = sqlite3.connect(source), sqlite3.connect(target)
old.backup(new)
for statement in statements:
    new.execute(statement)
new.commit()
new.close()
P
    expect 0 . report "$name.db" -o "pages/$name.html"
}
change none 'DELETE FROM trial'
change one 'DELETE FROM trial WHERE id > 1'
change two 'DELETE FROM trial WHERE id > 2'
change infeasible "UPDATE trial SET status = 1, reason = 'memory: 90 GB needed, 80 GB there'"
change failed "UPDATE trial SET status = 2, reason = 'negative time' WHERE id % 3 = 0"
expect 0 . report study.db failed.db infeasible.db -o pages/overlaid.html

# The page of a build without node: no charts, and the reason.
python3 - <<'P' || fail "cannot take the charts out"
import re
page = open("pages/normal.html").read()
begin = page.index("<script>", page.index('id="data"')) + len("<script>")
page = page[:begin] + page[page.index("</script>", begin):]
page = page.replace('"missing":null', '"missing":"node was not there"')
assert "node was not there" in page
open("pages/tables.html", "w").write(page)
page = open("pages/normal.html").read()
assert '"bound":null' in page
open("pages/bound.html", "w").write(page.replace('"bound":null', '"bound":1.0'))
P

# An objective that is the same for every design, and equal points: one network, knobs without cost.
cp -rL "$root/configs" constant
sed -i 's|^objectives:.*|objectives:\n  constant: {minimize: "latency / latency"}|' \
    constant/psa/gpt3-13b-system1.yaml
expect 0 . run constant/psa/gpt3-13b-system1.yaml --evaluations 60 --seed 1 --study constant.db
expect 0 . report constant.db -o pages/constant.html
expect 0 . run $psa --evaluations 40 --seed 1 --stack collective --study equal.db
expect 0 . report equal.db -o pages/equal.html --objectives network_cost,peak_memory

cat >suite.yaml <<'S'
suite: 1
name: tiny
evaluations: 60
seeds: 3
agents: [random, genetic, local]
problems:
  - {psa: configs/psa/gpt3-13b-system1.yaml, label: "</script><img src=x>", objective: latency, stacks: [workload]}
S
expect 0 . compare suite.yaml --out compared
cp compared/report.html pages/compared.html

# Names that would be markup, in the PSA file and in a reason.
cp -rL "$root/configs" hostile
sed -i "s|^name: .*|name: '</script><b>x \\& <!-- \"'|" hostile/psa/gpt3-13b-system1.yaml
rm -f study.db*
expect 0 . run hostile/psa/gpt3-13b-system1.yaml --evaluations 60 --seed 1 --study study.db
change hostile "UPDATE trial SET status = 1, reason = '</script><img src=x onerror=alert(1)>' WHERE id % 2 = 0"

node "$root/tests/report_page.js" "$modules/node_modules" "$browser" "$work/pages"
case $? in
0) ;;
77) exit 0 ;;
*) failures=$((failures + 1)) ;;
esac
checks=$((checks + 1))
finish
