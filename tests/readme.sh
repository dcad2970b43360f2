#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Runs every command of README.md.  In ```console blocks a command follows "$ " and its output
# stands below it: compared line by line, where "..." stands for any number of lines and figures
# that are times of this machine are written as "<...>".  In ```sh blocks each line is a command.
# With --update the outputs in README.md are replaced by what the commands print now; a block with
# "..." keeps as many lines before and after it as it had.
. "$(dirname "$0")/lib.sh"
ln -s "$cli" cosmic-search
mkdir -p results

# What run.sh does, in this folder.
eval "$(sed -n '/^exec .\/cosmic-search/,$p' "$root/run.sh" | sed 's/^exec //')" >run.out 2>run.err ||
    fail "the search of run.sh: $(cat run.err)"

# skipped COMMAND: what cannot run inside a test, and why
skipped() {
    case $1 in
    ./run.sh* | ./test.sh* | .ci/run* | git\ * | tests/bench.sh*) echo "builds or clones" ;;
    cmake\ * | ./build*) echo "builds" ;;
    *) return 1 ;;
    esac
}

# same EXPECTED GOT: line by line, "..." matching any lines and <...> any text in a line
same() {
    awk -v got="$2" '
        function pattern(line) {
            gsub(/[][\\.*^$+?(){}|]/, "\\\\&", line)
            gsub(/<[^>]*>/, ".*", line)
            return "^" line "$"
        }
        BEGIN { while ((getline line < got) > 0) g[++n] = line }
        $0 == "..." { skip = 1; next }
        {
            while (i < n) {
                i++
                if (g[i] ~ pattern($0)) { skip = 0; next }
                if (!skip) { print "line " i ": expected: " $0; print "got: " g[i]; exit 1 }
            }
            print "missing: " $0
            bad = 1
            exit 1
        }
        END { if (!bad && !skip && i < n) { print "more: " g[i + 1]; exit 1 } }' "$1"
}

run_command() { # COMMAND
    local reason
    if reason=$(skipped "$1"); then
        echo "skipped: $1 ($reason)"
        return 1
    fi
    checks=$((checks + 1))
    timeout 120 bash -c "$1" >got 2>got.err </dev/null || {
        fail "$1: exit $?: $(head -c 400 got.err)"
        return 1
    }
}

# renewed EXPECTED GOT: what GOT has in the places of EXPECTED
renewed() {
    awk -v expected="$1" '
        BEGIN { while ((getline line < expected) > 0) { n++; if (line == "...") cut = n } }
        { got[NR] = $0 }
        END {
            if (!cut) { for (i = 1; i <= NR; i++) print got[i]; exit }
            for (i = 1; i < cut; i++) print got[i]
            print "..."
            for (i = NR - (n - cut) + 1; i <= NR; i++) print got[i]
        }' "$2"
}

compare() { # COMMAND: with the lines in `expected`
    [ -n "$1" ] || return
    run_command "$1" || {
        cat expected >>README.new
        return
    }
    renewed expected got >>README.new
    [ -s expected ] || return
    [ -n "$update" ] || same expected got >difference || fail "$1: $(cat difference)"
}

update=""
[ "${1:-}" = --update ] && update=yes
block=""
command=""
: >README.new
while IFS= read -r line; do
    if [ "$block" = console ] && [ "${line#\$ }" = "$line" ] && [ "$line" != '```' ]; then
        printf '%s\n' "$line" >>expected
        continue
    fi
    case $line in
    '```console') block='console' command="" ;;
    '```sh') block='sh' ;;
    '```'*)
        [ "$block" = console ] && compare "$command"
        block=$([ -z "$block" ] && echo other)
        command=""
        ;;
    *)
        if [ "$block" = sh ] && [ -n "${line%%#*}" ]; then
            run_command "$line"
        elif [ "$block" = console ]; then
            compare "$command"
            command=${line#\$ }
            : >expected
        fi
        ;;
    esac
    printf '%s\n' "$line" >>README.new
done <"$root/README.md"
[ -z "$update" ] || cp README.new "$root/README.md"
finish
