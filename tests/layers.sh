#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Calls only go down: cli -> report, search -> agents, sim -> workloads, psa -> common.  A file may
# include headers of its own folder and of those below; a third-party header stands in one .c file;
# no public header includes any; only cli/ prints or exits; every file names its licence.
set -u
cd "$(dirname "$0")/.." || exit 1
files=$(ls {common,psa,workloads,sim,agents,search,report,cli}/*.[ch] 2>/dev/null)
bad=0

# shellcheck disable=SC2086
awk '
    BEGIN {
        below["common"] = " common "
        below["psa"] = " psa common "
        below["workloads"] = " workloads common "
        below["sim"] = " sim workloads psa common "
        below["agents"] = " agents psa common "
        below["search"] = " search agents sim workloads psa common "
        below["report"] = " report search agents sim workloads psa common "
        below["cli"] = " cli report search agents sim workloads psa common "
    }
    function complain(text) { print FILENAME ":" FNR ": " text; bad = 1 }
    FNR == 1 {
        folder = FILENAME
        sub(/\/.*/, "", folder)
        header = FILENAME ~ /\.h$/
        if ($0 !~ /SPDX-License-Identifier: GPL-3.0-or-later/) complain("no SPDX identifier in the first line")
    }
    /^ *# *include/ {
        name = $0
        sub(/^ *# *include *["<]/, "", name)
        sub(/[">].*/, "", name)
        from = name
        sub(/\/.*/, "", from)
        if (from in below && index(below[folder], " " from " ") == 0)
            complain("includes " name ", which is above it")
        third = name ~ /^(yaml|sqlite3|jansson|zlib|mpi|omp)\.h$/ || name ~ /\.pb-c\.h$/ || from == "gsl"
        if (third && header) complain("a header includes " name)
        if (from == "gsl" && folder != "common" && folder != "agents" && FILENAME !~ /forest|calibrate|fit/)
            complain("GSL belongs in common/ and agents/")
        if (third && from != "gsl" && name != "omp.h") {
            if (name in user && user[name] != FILENAME) complain(name " is included by " user[name] " too")
            user[name] = FILENAME
        }
    }
    folder != "cli" && !/^ *(\*|\/\*|\/\/)/ {
        if ($0 ~ /(^|[^a-zA-Z_0-9.>])(printf|puts|putchar|perror|exit|abort|_exit) *\(/ ||
            $0 ~ /fprintf *\((stdout|stderr)/ || $0 ~ /fput[sc] *\([^;]*, *(stdout|stderr)\)/)
            complain("only cli/ prints or exits")
    }
    END { exit bad }' $files || bad=1
[ $bad = 0 ] && echo "$(echo "$files" | wc -l) files keep the layers"
exit $bad
