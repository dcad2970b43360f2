#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Calls only go down: cli -> report, search -> agents, sim -> workloads, psa -> common.  A file may
# include headers of its own folder and of those below; a third-party header stands in one .c file;
# no public header includes any; only cli/ prints or exits.
set -u
cd "$(dirname "$0")/.."
bad=0

complain() {
    echo "$*"
    bad=1
}

# allowed FOLDER: folders its files may include from
allowed() {
    case $1 in
    common) echo "common" ;;
    psa) echo "psa common" ;;
    workloads) echo "workloads common" ;;
    sim) echo "sim workloads psa common" ;;
    agents) echo "agents psa common" ;;
    search) echo "search agents sim workloads psa common" ;;
    report) echo "report search agents sim workloads psa common" ;;
    cli) echo "cli report search agents sim workloads psa common" ;;
    esac
}

for folder in common psa workloads sim agents search report cli; do
    for file in "$folder"/*.[ch]; do
        [ -e "$file" ] || continue
        head -n 1 "$file" | grep -q 'SPDX-License-Identifier: GPL-3.0-or-later' ||
            complain "$file: the first line has no SPDX identifier"
        while read -r header; do
            from=${header%%/*}
            [ "$from" = "$header" ] && continue
            case $from in sys | gsl) continue ;; esac
            case " $(allowed $folder) " in
            *" $from "*) ;;
            *) complain "$file: includes $header, which is above it" ;;
            esac
        done < <(sed -n 's/^ *# *include *["<]\([^">]*\)[">].*/\1/p' "$file")
        [ "$folder" = cli ] && continue
        grep -nE '(^|[^a-z_])(printf|puts|putchar|perror|exit|abort|_exit) *\(|fprintf *\((stdout|stderr)|fputs *\([^;]*, *(stdout|stderr)\)' "$file" |
            grep -vE '^[0-9]+: *(\*|/\*|//)' | while read -r line; do
            echo "$file:$line: only cli/ prints or exits"
        done | grep . && bad=1
    done
done

for header in yaml.h sqlite3.h jansson.h zlib.h mpi.h; do
    users=$(grep -lE "# *include *[<\"]$header" {common,psa,workloads,sim,agents,search,report,cli}/*.[ch] 2>/dev/null)
    n=$(echo "$users" | grep -c .)
    [ "$n" -le 1 ] || complain "$header is included in $n files:" $users
    echo "$users" | grep '\.h$' && complain "$header is included in a header"
done
pb=$(grep -lE '# *include *[<"][^">]*\.pb-c\.h' {common,psa,workloads,sim,agents,search,report,cli}/*.[ch] 2>/dev/null)
[ "$(echo "$pb" | grep -c .)" -le 1 ] || complain "*.pb-c.h is included in several files:" $pb
for file in $(grep -lE '# *include *<gsl/' {psa,workloads,sim,search,report,cli}/*.[ch] 2>/dev/null); do
    complain "$file: GSL belongs in common/ and agents/"
done
exit $bad
