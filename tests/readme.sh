#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Runs every command of README.md.  In ```console blocks a command follows "$ " and its output
# stands below it: compared line by line, where "..." stands for any number of lines and figures
# that are times of this machine are written as "<...>".  In ```sh blocks each line is a command.
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

compare() { # COMMAND: with the lines in `expected`
    [ -n "$1" ] || return
    [ -s expected ] && run_command "$1" && {
        same expected got >difference || fail "$1: $(cat difference)"
    }
    [ -s expected ] || run_command "$1"
}

block=""
command=""
while IFS= read -r line; do
    case $line in
    '```console') block=console command="" ;;
    '```sh') block=sh ;;
    '```'*)
        [ "$block" = console ] && compare "$command"
        block=$([ -z "$block" ] && echo other)
        command=""
        ;;
    *)
        if [ "$block" = sh ] && [ -n "${line%%#*}" ]; then
            run_command "$line"
        elif [ "$block" = console ] && [ "${line#\$ }" != "$line" ]; then
            compare "$command"
            command=${line#\$ }
            : >expected
        elif [ "$block" = console ]; then
            printf '%s\n' "$line" >>expected
        fi
        ;;
    esac
done <"$root/README.md"
finish
