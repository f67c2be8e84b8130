#!/usr/bin/env bash
#
# What: compares sysbench and `onramp sysbench` on the same script in Lua, unmodified, the two taking
#   turns: oltp_point_select.lua with 1,000 connections, direct to a private MariaDB. Then it runs
#   oltp_read_write.lua with 20,000 connections in one process, through the pool, because 20,000
#   threads of a server have no room here. Prints the rates, their ratio, CPU and memory.
# Why: a script must be no slower here than where it was written for, and must scale.
# Changes on the machine: installs sysbench and MariaDB (Debian) if they are missing, as
#   scripts/lib.sh describes; server and pool run from a folder below /tmp on free ports.
# Restores: ends both and removes the folder.
#
# THREADS (1000), SECONDS_EACH (8), ROUNDS (4) and MANY (20000) may be set in the environment;
# ROUNDS=0 or MANY=0 leaves a part out. PERF=FILE writes a profile of onramp's last run of the first
# part, where perf is installed.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

threads=${THREADS:-1000}
seconds=${SECONDS_EACH:-8}
rounds=${ROUNDS:-4}
many=${MANY:-20000}
scripts=/usr/share/sysbench

want sysbench sysbench
get_ready --bin onramp
start_server --max-connections=$((threads + 300)) --back-log=4096 --table-open-cache=8000 \
    --max-prepared-stmt-count=200000
make_tables --tables 1 --table-size 100000

# line PORT THREADS SECONDS: sets `line`, what both programs are given.
set_line() {
    line=(--mysql-host=127.0.0.1 "--mysql-port=$1" --mysql-user=app --mysql-password=app --tables=1
        --table-size=100000 --rand-type=uniform "--threads=$2" "--time=$3")
}

# measure NAME PROGRAM...: one run; adds a line NAME STATEMENTS SECONDS CPU to the results.
measure() {
    local name=$1
    shift
    local TIMEFORMAT='%U %S'
    { time "$@" "$scripts/oltp_point_select.lua" "${line[@]}" run \
        >"$folder/report" 2>"$folder/said"; } 2>"$folder/cpu" ||
        fail "$name failed: $(tail -3 "$folder/report" "$folder/said")"
    awk -v name="$name" '
        FNR == NR { cpu = $1 + $2; next }
        /total time:/ { seconds = $3 + 0 }
        /^ +total: / { statements = $2 }
        END { print name, statements, seconds, cpu }
    ' "$folder/cpu" "$folder/report" | tee -a "$folder/results"
}

say "$(sysbench --version); $(mariadbd --version); $(nproc) cores; load $(cut -d ' ' -f 1-3 /proc/loadavg)"
set_line "$server_port" "$threads" "$seconds"
for ((round = 0; round < rounds; round++)); do
    measure sysbench sysbench
    profiler=()
    if [[ -n ${PERF:-} && $round == $((rounds - 1)) ]]; then
        profiler=(perf record -q -g -o "$PERF" --)
    fi
    measure onramp "${profiler[@]}" "$binary" sysbench
done
if ((rounds > 0)); then
    printf 'oltp_point_select.lua, %s connections, %s runs of %s s each, taking turns\n' \
        "$threads" "$rounds" "$seconds"
    awk '
        { statements[$1] += $2; seconds[$1] += $3; cpu[$1] += $4 }
        { rates[$1, ++runs[$1]] = $2 / $3 }
        END {
            for (name in statements) {
                rate[name] = statements[name] / seconds[name]
                cost[name] = cpu[name] / statements[name] * 1e6
            }
            for (i = split("sysbench onramp", names, " "); i > 0; i--)
                printf "%-9s %8.0f statements/s %8.2f CPU s per million\n",
                    names[i], rate[names[i]], cost[names[i]]
            printf "throughput %.2f of sysbench (pairs:", rate["onramp"] / rate["sysbench"]
            for (i = 1; i <= runs["onramp"]; i++)
                printf " %.2f", rates["onramp", i] / rates["sysbench", i]
            printf "), CPU per statement %.2f of sysbench\n", cost["onramp"] / cost["sysbench"]
        }
    ' "$folder/results"
fi

((many > 0)) || exit 0
start_pool "clients_max = $((many + 1000))" "backends_max = 32"
set_line "$pool_port" "$many" 20
"$binary" sysbench "$scripts/oltp_read_write.lua" "${line[@]}" --mysql-ignore-errors=all run \
    >"$folder/report" 2>"$folder/said" &
run_pid=$!
most=0
while kill -0 "$run_pid" 2>/dev/null; do
    now=$(awk '/^VmHWM/ { print $2 }' "/proc/$run_pid/status" 2>/dev/null || echo 0)
    ((${now:-0} <= most)) || most=$now
    sleep 0.5
done
wait "$run_pid" || fail "oltp_read_write.lua failed: $(tail -3 "$folder/report" "$folder/said")"
printf 'oltp_read_write.lua, %s connections in one process, through the pool\n' "$many"
grep -E 'queries:|transactions:|ignored errors:|total time:' "$folder/report"
grep -E '^load: (connects|statements|this generator)' "$folder/said" || true
awk -v kib="$most" -v n="$many" 'BEGIN {
    printf "memory of the process at its largest: %.1f MiB, %.1f KiB for each connection\n",
        kib / 1024, kib / n
}'
