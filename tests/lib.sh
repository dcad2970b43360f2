# SPDX-License-Identifier: GPL-3.0-or-later
#
# Sourced by the tests of the command line: CS_CLI is the program, $work an empty folder that is
# removed at the end, in which configs/ is a link to the shipped ones.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cli=${CS_CLI:-$root/build/cosmic-search}
[ -x "$cli" ] || {
    echo "$cli: not built"
    exit 1
}
case $cli in /*) ;; *) cli=$PWD/$cli ;; esac
work=$(mktemp -d)
# A subshell that is killed at its start may still have this trap.
trap '[ "$BASHPID" != $$ ] || { chmod -R u+w "$work"; rm -rf "$work"; }' EXIT
cd "$work" || exit 1
ln -s "$root/configs" configs
checks=0
failures=0

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# expect CODE PATTERN ARGUMENT...: the program exits with CODE, and standard output and error
# together match the extended regular expression.
expect() {
    local code=$1 pattern=$2 got
    shift 2
    "$cli" "$@" >"$work/.out" 2>"$work/.err" </dev/null
    got=$?
    checks=$((checks + 1))
    if [ "$got" != "$code" ]; then
        fail "cosmic-search $*: exit $got, expected $code: $(head -c 600 "$work/.err")"
    elif ! cat "$work/.out" "$work/.err" | grep -qE -- "$pattern"; then
        fail "cosmic-search $*: no /$pattern/ in: $(cat "$work/.out" "$work/.err" | head -c 600)"
    fi
}

# expect_error CODE PATTERN ARGUMENT...: likewise, with one message on standard error, nothing on
# standard output, and nothing left behind in the folder.
expect_error() {
    local before after left
    before=$(find . ! -name .out ! -name .err | sort)
    expect "$@"
    after=$(find . ! -name .out ! -name .err | sort)
    left=$(comm -13 <(echo "$before") <(echo "$after"))
    [ -z "$left" ] || fail "$*: left behind: $left"
    [ -s "$work/.out" ] && fail "$*: prints on standard output: $(head -c 200 "$work/.out")"
    [ "$(grep -c '^cosmic-search: ' "$work/.err")" = 1 ] ||
        fail "$*: not one message: $(head -c 600 "$work/.err")"
}

finish() {
    echo "$checks checks, $failures failures"
    [ "$failures" = 0 ]
}
