#!/usr/bin/env bash
#
# What: how many logins a second the pool takes (mysql_native_password over TCP on this machine):
#   connections that arrive as fast as they are let in, and ask nothing. Prints logins a second and
#   the pool's CPU time for each, run by run.
# Why: a login costs more than a statement, and the generator's half of it is on the same machine.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server, the pool and the loads, and removes the folder.
#
# LOGINS (50000) and ROUNDS (3) may be set in the environment; PERF names a file for a profile of the
# pool's on-CPU time in all rounds (linux-perf).

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

logins=${LOGINS:-50000}
rounds=${ROUNDS:-3}

get_ready --bin onramp

start_server --innodb-flush-log-at-trx-commit=0
start_pool "clients_max = $((logins + 1000))"
ticks_per_second=$(getconf CLK_TCK)
printf '%s logins, %s cores\n' "$logins" "$(nproc)"
for ((round = 0; round < rounds; round++)); do
    before=$(pool_ticks)
    if [[ -n ${PERF:-} ]]; then
        perf record -q -g -p "$pool_pid" -o "$PERF.$round" &
        perf_pid=$!
    fi
    "$binary" load oltp_point_select run --connections "$logins" --connect-rate 0 \
        --idle-time 600 --time 1 \
        --target "mysql://app:app@127.0.0.1:$pool_port/sbtest" >/dev/null 2>"$folder/load" &
    load_pid=$!
    until grep -qs 'holding' "$folder/load"; do
        kill -0 "$load_pid" 2>/dev/null || fail "the load ended: $(tail -3 "$folder/load")"
        sleep 0.05
    done
    ticks=$(($(pool_ticks) - before))
    if [[ -n ${PERF:-} ]]; then
        kill -INT "$perf_pid"
        wait "$perf_pid" || true
    fi
    # What it does after the signal needs tables that are not there.
    kill -KILL "$load_pid"
    wait "$load_pid" 2>/dev/null || true
    grep -o "connected $logins of .*" "$folder/load" | awk -v ticks="$ticks" -v n="$logins" \
        -v per="$ticks_per_second" '{ seconds = $(NF - 1) }
        END { printf "%.0f logins/s; %.1f us of the pool'"'"'s CPU for each\n",
            n / seconds, ticks / per / n * 1e6 }'
    sleep 1
done
