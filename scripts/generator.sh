#!/usr/bin/env bash
#
# What: compares the load generator with sysbench in one paired run: point selects as text over
#   TCP, direct to a private MariaDB, the two taking turns. Prints statements a second and CPU
#   seconds of the generator per million statements, and the two ratios.
# Why: what a generator costs is taken from the server it measures when both share a machine.
# Changes on the machine: installs sysbench and MariaDB (Debian) if they are missing, as
#   scripts/lib.sh describes; the server runs from a folder below /tmp on a free port.
# Restores: ends the server and removes its folder.
#
# THREADS (1000), SECONDS_EACH (8) and ROUNDS (2) may be set in the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

threads=${THREADS:-1000}
seconds=${SECONDS_EACH:-8}
rounds=${ROUNDS:-2}

want sysbench sysbench
get_ready --bin onramp
start_server --max-connections=$((threads + 50)) --back-log=4096 --table-open-cache=4000
line=(oltp_point_select --mysql-host=127.0.0.1 "--mysql-port=$server_port" --mysql-user=app
    --mysql-password=app --tables=1 --table-size=100000 --db-ps-mode=disable
    --rand-type=uniform "--threads=$threads" "--time=$seconds")
"$binary" sysbench "${line[@]}" prepare >/dev/null

# measure NAME PROGRAM...: one run; adds a line NAME STATEMENTS SECONDS CPU to the results.
measure() {
    local name=$1
    shift
    local TIMEFORMAT='%U %S'
    { time "$@" "${line[@]}" run >"$folder/report" 2>"$folder/said"; } 2>"$folder/cpu" ||
        fail "$name failed: $(tail -3 "$folder/report" "$folder/said")"
    awk -v name="$name" '
        FNR == NR { cpu = $1 + $2; next }
        /total time:/ { seconds = $3 + 0 }
        /^ +total: / { statements = $2 }
        END { print name, statements, seconds, cpu }
    ' "$folder/cpu" "$folder/report" >>"$folder/results"
}

for ((round = 0; round < rounds; round++)); do
    measure sysbench sysbench
    measure onramp "$binary" sysbench
done

printf 'point selects as text, %s connections, %s runs of %s s each, taking turns\n' \
    "$threads" "$rounds" "$seconds"
printf '%s; %s; %s cores\n' "$(sysbench --version)" "$(mariadbd --version)" "$(nproc)"
awk '
    { statements[$1] += $2; seconds[$1] += $3; cpu[$1] += $4 }
    END {
        for (name in statements) {
            rate[name] = statements[name] / seconds[name]
            cost[name] = cpu[name] / statements[name] * 1e6
        }
        for (i = split("sysbench onramp", names, " "); i > 0; i--)
            printf "%-9s %8.0f statements/s %8.2f CPU s per million\n",
                names[i], rate[names[i]], cost[names[i]]
        printf "throughput %.2f of sysbench, CPU per statement %.2f of sysbench\n",
            rate["onramp"] / rate["sysbench"], cost["onramp"] / cost["sysbench"]
    }
' "$folder/results"
