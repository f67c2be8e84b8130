#!/usr/bin/env bash
#
# What: Percona's sysbench-tpcc, unmodified, by `onramp sysbench`: prepare, run and check against a
#   private MariaDB. Prints how long each took, the rates, and what the check said.
# Why: it is the largest script that people run in sysbench; its files are under a licence of their
#   own and are not here. TPCC names the folder with tpcc.lua, from
#   https://github.com/Percona-Lab/sysbench-tpcc
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes; the
#   server runs from a folder below /tmp on a free port, with about 150 MB for each warehouse.
# Restores: ends the server and removes its folder.
#
# SCALE (10 warehouses), THREADS (10) and SECONDS_EACH (20) may be set in the environment.

set -euo pipefail
tpcc=$(realpath "${TPCC:?names the folder of sysbench-tpcc}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

scale=${SCALE:-10}
threads=${THREADS:-10}
seconds=${SECONDS_EACH:-20}

get_ready --bin onramp
start_server --max-connections=$((threads + 50)) --innodb-flush-log-at-trx-commit=0 \
    --innodb-log-file-size=1G --innodb-buffer-pool-size=1G --skip-log-bin
binary=$(realpath "$binary")
# Its scripts look for each other in the current folder.
cd "$tpcc"
run() {
    local command=$1 before=$SECONDS status=0
    "$binary" sysbench ./tpcc.lua --mysql-host=127.0.0.1 "--mysql-port=$server_port" \
        --mysql-user=app --mysql-password=app --mysql-db=sbtest --tables=1 "--scale=$scale" \
        "--threads=$threads" "--time=$seconds" "${@:2}" "$command" \
        >"$folder/$command" 2>"$folder/$command.said" || status=$?
    printf '%s: status %s, %s s, %s FATAL\n' "$command" "$status" "$((SECONDS - before))" \
        "$(cat "$folder/$command" "$folder/$command.said" | grep -c FATAL)"
}
printf 'sysbench-tpcc, %s warehouses, %s connections; %s\n' "$scale" "$threads" "$(mariadbd --version)"
run prepare
run run
grep -E 'transactions:|queries:|ignored errors:|95th' "$folder/run" || tail -3 "$folder/run.said"
run check
printf 'checks passed: %s, failed: %s\n' "$(grep -ci 'PASSED' "$folder/check")" \
    "$(grep -ciE 'FAILED|error' "$folder/check")"
