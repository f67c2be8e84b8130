#!/usr/bin/env bash
#
# What: the console's answers while many statements wait. A table is locked, CONNECTIONS clients select
#   from it through a pool with two backends, and once all but a few of them wait in its queues, each
#   of the console's questions is asked ROUNDS times on one connection. Prints the longest and the
#   median time of each, in milliseconds, as the mariadb command line measures them.
# Why: an operator asks when nothing else goes on any more.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server, the pool and the load, and removes the folder.
#
# CONNECTIONS (10000) and ROUNDS (20) may be set in the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

connections=${CONNECTIONS:-10000}
rounds=${ROUNDS:-20}
console_port=$((31000 + RANDOM % 900))

get_ready --bin onramp
start_server --max-connections=100
make_tables --table-size 100
printf 'console\n' >"$folder/password"
chmod 600 "$folder/password"
start_pool "clients_max = $((connections + 1000))" 'backends_max = 2' 'wait_ms_max = 3600000' \
    "waiting_max = $connections" '[console]' "listen = \"127.0.0.1:$console_port\"" \
    'admin_user = "admin"' "admin_password_file = \"$folder/password\""

# The lock lasts as long as what holds this end of the pipe.
mkfifo "$folder/lock"
admin sbtest --unbuffered <"$folder/lock" >"$folder/locked" &
lock_pid=$!
exec 8>"$folder/lock"
printf 'LOCK TABLES sbtest1 WRITE;\nSELECT 1;\n' >&8
until grep -qs 1 "$folder/locked"; do
    kill -0 "$lock_pid" 2>/dev/null || fail "the table could not be locked"
    sleep 0.1
done

"$binary" load statements run --statement 'SELECT c FROM sbtest1 WHERE id=1' --time 3600 \
    --connections "$connections" --end-timeout 3600 --preflight off \
    --target "mysql://app:app@127.0.0.1:$pool_port/sbtest" >"$folder/load.out" 2>&1 &
load_pid=$!
await_counted waiting $((connections - 10)) "$load_pid" "$folder/load.out"

ask() { mariadb --no-defaults -h 127.0.0.1 -P "$console_port" -u admin -pconsole -vvv "$@"; }

for what in CLIENTS BACKENDS SERVERS GROUPS QUEUES PINS USERS STATEMENTS CONFIG STATS MEMORY ERRORS; do
    for ((round = 0; round < rounds; round++)); do
        printf 'SHOW %s;\n' "$what"
    done | ask | sed -n 's/.* in set.* (\([0-9.]*\) sec).*/\1/p; s/^Empty set.* (\([0-9.]*\) sec).*/\1/p' |
        sort -n | awk -v what="$what" '
            { all[NR] = $1 * 1000 }
            END { printf "SHOW %-12s median %4.0f ms, longest %4.0f ms, %d answers\n",
                what, all[int((NR + 1) / 2)], all[NR], NR }'
done
kill -KILL "$load_pid"
wait "$load_pid" 2>/dev/null || true
exec 8>&-
wait "$lock_pid"
