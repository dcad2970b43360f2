#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Sizes: functions have a median of at most 15 lines, none over 80, at most 6 parameters; files are
# under 500 lines.  Tests are held to the file size alone.
set -u
cd "$(dirname "$0")/.."
command -v ctags >/dev/null && ctags --version | grep -q Universal || {
    echo "skipped: universal-ctags is not installed"
    exit 0
}
bad=0
files=$(git ls-files '*.c' '*.h' | grep -v '^tests/')

while read -r lines file; do
    [ "$file" = total ] && continue
    if [ "$lines" -ge 500 ]; then
        echo "$file: $lines lines, 500 or more"
        bad=1
    fi
done < <(git ls-files '*.c' '*.h' | xargs wc -l)

# name, file, lines, parameters of every function
functions=$(ctags --languages=C --kinds-C=f --fields=+neS -f - $files | awk -F'\t' '
    { l = 0; e = 0; s = ""
      for (i = 4; i <= NF; i++) {
          if ($i ~ /^line:/) l = substr($i, 6)
          if ($i ~ /^end:/) e = substr($i, 5)
          if ($i ~ /^signature:/) s = substr($i, 11)
      }
      gsub(/\([^()]*\)\([^()]*\)/, "", s)      # function pointers among the parameters
      n = gsub(/,/, ",", s) + 1
      if (e > 0) print $1, $2, e - l + 1, n }')

echo "$functions" | awk '
    $3 > 80 { print $2 ": " $1 " has " $3 " lines, over 80"; bad = 1 }
    $4 > 6  { print $2 ": " $1 " has " $4 " parameters, over 6"; bad = 1 }
    END { exit bad }' || bad=1

# A function with external linkage has one definition: static libraries hide a second one.
twice=$(ctags --languages=C --kinds-C=f --fields=+f -f - $files |
    awk -F'\t' '$0 !~ /\tfile:/ { print $1 }' | sort | uniq -d)
if [ -n "$twice" ]; then
    echo "defined in two files:" $twice
    bad=1
fi

median=$(echo "$functions" | awk '{ print $3 }' | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
echo "$(echo "$functions" | wc -l) functions, median $median lines"
if [ "$median" -gt 15 ]; then
    echo "the median is over 15"
    bad=1
fi
exit $bad
