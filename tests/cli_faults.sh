#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Faults: memory that runs out, full disks, folders that cannot be written, damaged studies, signals
# at random moments, output that nobody takes, clocks that jump.  After each one the program ends
# with a code of the contract and one message, leaves no file half written, and a study that was
# begun opens again.
. "$(dirname "$0")/lib.sh"
psa=configs/psa/llama3-70b-h100.yaml
seed=${CS_FAULT_SEED:-1} # another one tries other places
RANDOM=$seed
echo "CS_FAULT_SEED=$seed"

# check_study FILE WHAT: it opens, and `best` works when it holds a feasible design.
check_study() {
    local code
    "$cli" trials "$1" -f csv >.trials 2>.err
    code=$?
    checks=$((checks + 1))
    # Stopped before its first transaction, a study has no trial and no problem yet.
    [ $code = 2 ] && grep -q 'not a study yet' .err && return
    [ $code = 0 ] || {
        fail "$2: trials $1: exit $code: $(head -c 300 .err)"
        return
    }
    "$cli" best "$1" -f json >.best 2>.err
    code=$?
    [ $code = 0 ] || { [ $code = 3 ] && ! tail -n +2 .trials | grep -q ',feasible,'; } ||
        fail "$2: best $1: exit $code: $(head -c 300 .err)"
}

# one_message WHAT: standard error of the last command holds one message.
one_message() {
    [ "$(grep -cE '^(cosmic-search|libgomp): ' .err)" = 1 ] || fail "$1: not one message: $(head -c 400 .err)"
}

"$cli" run $psa --evaluations 40 --study kept.db -q >/dev/null 2>&1 || fail "no study to begin with"

# ---- memory runs out at the n-th allocation: it alone, or from it on ----
# without_memory N COMMAND...: 0 when the outcome is as promised.
without_memory() {
    local at=$1 code
    shift
    rm -rf made.db* made.html made
    LD_PRELOAD=$CS_FAULTS CS_FAULT_ALLOC=$at MALLOC_PERTURB_=165 OMP_NUM_THREADS=1 \
        timeout 60 "$cli" "$@" >.out 2>.err </dev/null
    code=$?
    checks=$((checks + 1))
    case $code in
    0) ;;
    1)
        grep -qiE 'out of memory|cannot allocate memory' .err || fail "allocation $at: $*: $(head -c 300 .err)"
        one_message "allocation $at: $*"
        [ ! -e made.html ] || fail "allocation $at: $*: left made.html"
        ;;
    *) fail "allocation $at: $*: exit $code: $(head -c 300 .err)" ;;
    esac
    [ ! -s made.db ] || check_study made.db "allocation $at: $*"
}

# sweep SAMPLES COMMAND...: allocations all over its run.
sweep() {
    local samples=$1 n at
    shift
    rm -rf made.db* made.html made
    LD_PRELOAD=$CS_FAULTS CS_FAULT_COUNT=.count OMP_NUM_THREADS=1 "$cli" "$@" >.whole 2>/dev/null
    n=$(cat .count)
    for ((i = 0; i < samples; i++)); do
        at=$((1 + (RANDOM * 32768 + RANDOM) % n))
        without_memory $at "$@"
        [ $((i % 2)) = 0 ] && without_memory $at+ "$@"
    done
}
if [ -n "${CS_FAULTS:-}" ]; then
    samples=${CS_FAULT_SAMPLES:-6}
    sweep "$samples" describe $psa --fix workload.pp=4 --fix workload.sp=1
    sweep "$samples" simulate $psa
    sweep "$samples" model configs/models/llama3-70b.yaml -f json
    for agent in genetic local bayesian; do
        sweep "$samples" run $psa --agent $agent --evaluations 20 --jobs 1 --study made.db -q
    done
    sweep "$samples" run $psa --evaluations 20 --jobs 1 --out made -f json
    sweep "$samples" best kept.db -f json
    sweep "$samples" trials kept.db -f json
    sweep "$samples" report kept.db -o made.html
    sweep "$samples" emit kept.db --trial 1 --for megatron
    sweep "$samples" collective --system configs/systems/ring-8.yaml --type all_reduce --bytes 1GiB
    rm -rf made.db* made.html made
else
    echo "skipped: no allocations fail beside a sanitizer"
fi

# ---- a limit on the size of files: a write fails in the middle, whoever one is ----
# The study is larger than the limit; what was committed before stays.
for kilobytes in 1 30 60 200 500; do
    rm -rf limited.db* limited
    (
        trap '' XFSZ
        ulimit -f $kilobytes
        "$cli" run $psa --agent random --evaluations 30000 --study limited.db -q >/dev/null 2>.err
    )
    code=$?
    checks=$((checks + 1))
    [ $code = 1 ] || fail "files of $kilobytes KiB: exit $code: $(head -c 300 .err)"
    one_message "files of $kilobytes KiB"
    [ ! -e limited.db ] || check_study limited.db "files of $kilobytes KiB"
done
(
    trap '' XFSZ
    ulimit -f 100
    "$cli" report kept.db -o limited.html 2>.err
)
code=$?
[ $code = 1 ] || fail "a report over the limit: exit $code"
[ "$(ls | grep -c limited.html)" = 0 ] || fail "a report over the limit left $(ls | grep limited.html)"

# ---- a full disk and one that cannot be written: real ones, where this user may mount ----
mkdir small
# on_disk OPTIONS COMMAND: the command in a shell that sees a file system of its own in small/.
on_disk() {
    unshare -Urm sh -c "mount -t tmpfs $1 none small && $2" 2>.err
}
if on_disk "-o size=400k" true; then
    # A study from before the disk was full; then one that fills it; resumed with room, it goes on.
    on_disk "-o size=4m" "
        '$cli' run $psa --agent genetic --evaluations 100000 --study small/s.db -q >/dev/null 2>&1
        echo \$? >.code
        cp small/s.db* . && '$cli' best small/s.db -f json >.best"
    code=$?
    [ "$(cat .code)" = 1 ] || fail "a full disk: exit $(cat .code)"
    [ $code = 0 ] || fail "a full disk: best: exit $code: $(cat .err)"
    check_study s.db "a full disk"
    [ "$(wc -l <.trials)" -gt 100 ] || fail "a full disk: $(wc -l <.trials) trials are left"
    whole=$(($(wc -l <.trials) - 1 + 500))
    "$cli" run $psa --agent genetic --evaluations $whole --study s.db --resume -q >/dev/null 2>.err ||
        fail "a full disk, resumed: $(cat .err)"
    "$cli" run $psa --agent genetic --evaluations $whole --study fresh.db -q >/dev/null 2>&1
    "$cli" trials s.db -f csv >a.csv
    "$cli" trials fresh.db -f csv >b.csv
    cmp a.csv b.csv || fail "a full disk, resumed: other trials than without"
    # A result that does not fit is not left in part.
    on_disk "-o size=300k" "cp kept.db small/ && '$cli' report small/kept.db -o small/r.html; echo \$? >.code; ls small >.ls"
    [ "$(cat .code)" = 1 ] || fail "a report on a full disk: exit $(cat .code)"
    grep -q r.html .ls && fail "a report on a full disk: left $(cat .ls)"
    # A disk that cannot be written: a study is read from it, nothing is written to it.
    on_disk "-o size=4m" "cp kept.db small/ && mount -o remount,ro small &&
        '$cli' best small/kept.db -f json >/dev/null &&
        ! '$cli' run $psa --evaluations 20 --out small/new -q >/dev/null 2>.err1 &&
        ! '$cli' run $psa --evaluations 60 --study small/kept.db --resume -q >/dev/null 2>.err2 &&
        ! '$cli' report small/kept.db -o small/r.html >/dev/null 2>.err3" ||
        fail "a disk that cannot be written: $(cat .err .err1 .err2 .err3 2>/dev/null)"
    for i in 1 2 3; do
        [ "$(grep -c '^cosmic-search: error: ' .err$i)" = 1 ] ||
            fail "a disk that cannot be written: not one message: $(cat .err$i)"
    done
    checks=$((checks + 6))
else
    echo "skipped: this user may not mount a small disk: $(head -c 200 .err)"
fi
if [ "$(id -u)" != 0 ]; then
    mkdir locked && cp kept.db locked/ && chmod a-w locked locked/kept.db
    expect 0 . best locked/kept.db -f json
    expect 2 'locked' run $psa --study locked/new.db --evaluations 20
    chmod u+w locked
fi

# ---- damaged studies: a code of the contract, one message, the file untouched ----
# try_damaged WHAT: every reader and a resumed run on damaged.db.
try_damaged() {
    local before code
    rm -f damaged.db-*
    before=$(md5sum <damaged.db)
    for command in "best damaged.db -f json" "trials damaged.db -f csv" "front damaged.db -f json" \
        "report damaged.db -o damaged.html" "explain damaged.db"; do
        timeout 60 "$cli" $command >.out 2>.err </dev/null
        code=$?
        checks=$((checks + 1))
        case $code in
        0 | 3) ;;
        1 | 2) one_message "$1: $command" ;;
        *) fail "$1: $command: exit $code: $(head -c 300 .err)" ;;
        esac
    done
    rm -f damaged.html
    [ "$before" = "$(md5sum <damaged.db)" ] || fail "$1: a reader changed the study"
    timeout 60 "$cli" run $psa --evaluations 60 --study damaged.db --resume -q >.out 2>.err
    code=$?
    checks=$((checks + 1))
    case $code in
    0) ;;
    1 | 2) one_message "$1: resume" ;;
    *) fail "$1: resume: exit $code: $(head -c 300 .err)" ;;
    esac
}
size=$(stat -c %s kept.db)
: >damaged.db
try_damaged "an empty file"
head -c 5000 /dev/urandom >damaged.db
try_damaged "random bytes"
cp "$root/README.md" damaged.db
try_damaged "a text"
for cut in 1 100 $((size / 2)) $((size - 1)); do
    head -c "$cut" kept.db >damaged.db
    try_damaged "cut to $cut bytes"
done
for ((i = 0; i < ${CS_FAULT_FLIPS:-12}; i++)); do
    cp kept.db damaged.db
    flips=""
    for ((k = 0; k < 1 + i % 4; k++)); do
        at=$(((RANDOM * 32768 + RANDOM) % size))
        printf "\\x$(printf %02x $((RANDOM % 256)))" | dd of=damaged.db bs=1 seek=$at conv=notrunc 2>/dev/null
        flips="$flips $at"
    done
    try_damaged "bytes changed at$flips"
done
if command -v python3 >/dev/null; then
    # Another program's database, another version's study, a study with a row or a table missing.
    for sql in "DROP TABLE trial" "DELETE FROM info WHERE key = 'seed'" "DELETE FROM trial WHERE id = 7" \
        "UPDATE info SET value = '99.0.0' WHERE key = 'version'" "UPDATE trial SET point = x''" \
        "UPDATE info SET value = '1' WHERE key = 'result_bytes'" "DELETE FROM file" \
        "UPDATE snapshot SET agent = x'00'" "UPDATE trial SET result = x'ffffffffffffffffffffff'"; do
        cp kept.db damaged.db
        python3 -c 'import sqlite3, sys; c = sqlite3.connect("damaged.db"); c.execute(sys.argv[1]); c.commit()' "$sql"
        try_damaged "$sql"
    done
    cp kept.db damaged.db
    python3 -c 'import sqlite3; c = sqlite3.connect("damaged.db"); c.execute("UPDATE info SET value = \"99.0.0\" WHERE key = \"version\""); c.commit()'
    expect 2 'version is "99.0.0"' run $psa --evaluations 60 --study damaged.db --resume -q
fi

# ---- signals at random moments ----
for signal in INT TERM HUP PIPE; do
    for ((i = 0; i < ${CS_FAULT_SIGNALS:-4}; i++)); do
        rm -f hit.db*
        "$cli" run $psa --agent genetic --evaluations 100000000 --timeout 60 --study hit.db -q >/dev/null 2>.err &
        pid=$!
        # A write to a closed pipe must not end a run, once it is one.
        for ((k = 0; k < 200; k++)); do
            [ $signal = PIPE ] && [ ! -s hit.db ] || break
            sleep 0.1
        done
        sleep 0.$(printf %03d $((RANDOM % 900)))
        kill -$signal $pid
        [ $signal = PIPE ] && sleep 0.1 && kill -INT $pid
        wait $pid
        code=$?
        checks=$((checks + 1))
        case $signal:$code in
        INT:130 | TERM:143 | HUP:129 | PIPE:130) ;;
        *) fail "SIG$signal: exit $code: $(head -c 300 .err)" ;;
        esac
        [ ! -s hit.db ] || check_study hit.db "SIG$signal"
    done
done

# ---- output that nobody takes ----
for command in "trials kept.db -f csv" "best kept.db" "describe $psa -f json" "simulate $psa -f csv" "model configs/models/llama3-8b.yaml"; do
    "$cli" $command >/dev/full 2>.err
    code=$?
    checks=$((checks + 2))
    [ $code = 1 ] || fail "$command on a full device: exit $code"
    one_message "$command on a full device"
    "$cli" $command >&- 2>.err
    code=$?
    [ $code = 1 ] || fail "$command with standard output closed: exit $code"
    one_message "$command with standard output closed"
done
"$cli" run $psa --evaluations 30 --study closed.db -q >&- 2>&-
[ $? = 1 ] || fail "run with standard output and error closed: another exit than 1"
check_study closed.db "standard output and error closed"

# ---- clocks that jump: the time of day is not what limits a run ----
if [ -n "${CS_FAULTS:-}" ]; then
    for jump in 86400 1000000000; do
        start=$SECONDS
        rm -f clock.db*
        LD_PRELOAD=$CS_FAULTS CS_FAULT_CLOCK=$jump timeout 60 "$cli" run $psa --agent random \
            --evaluations 100000000 --timeout 1 --study clock.db -q >/dev/null 2>.err
        code=$?
        checks=$((checks + 1))
        [ $code = 0 ] || fail "jumps of $jump s: exit $code: $(cat .err)"
        [ $((SECONDS - start)) -lt 30 ] || fail "jumps of $jump s: $((SECONDS - start)) s"
        check_study clock.db "jumps of $jump s"
        [ "$(wc -l <.trials)" -gt 100 ] || fail "jumps of $jump s: $(wc -l <.trials) trials in a second"
    done
fi

finish
