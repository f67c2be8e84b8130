#!/usr/bin/env bash
#
# What: reloads under load. The pool has USERS users; CONNECTIONS clients run oltp_point_select at RATE events
#   a second. RELOADS times every user gets other limits in the file, one user goes and another one
#   comes, and SIGHUP has the file read. Prints how long each reload took by the log, and the load's
#   errors and latencies. Fails where the load has an error, or a reload was not applied.
# Why: settings change while clients work, and no client may notice.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server, the pool and the load, and removes the folder.
#
# USERS (1000), RELOADS (20), CONNECTIONS (1000), RATE (5000) and TIME (30, seconds of the load) may be set
# in the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

users=${USERS:-1000}
reloads=${RELOADS:-20}
connections=${CONNECTIONS:-1000}
rate=${RATE:-5000}
time=${TIME:-30}

[[ -n ${ONRAMP:-} ]] || get_ready --bin onramp
binary=${ONRAMP:-${binary:-}}
start_server --max-connections=200
make_tables --table-size 10000

# configure ROUND: the users of a round, and a limit of theirs that differs from round to round.
configure() {
    local number
    printf '%s\n' "listen = [\"127.0.0.1:$pool_port\"]" "clients_max = $((2 * connections))" \
        'backends_max = 32' "prio_kickup_ms = $((1000 + $1))" \
        '[backend]' "address = \"127.0.0.1:$server_port\"" \
        '[[user]]' 'name = "app"' 'password = "app"' "clients_max = $((connections + $1 + 1))"
    for ((number = $1 + 1; number < users + $1; number++)); do
        printf '[[user]]\nname = "user%d"\npassword = "secret"\nclients_max = %d\n' \
            "$number" "$((10 + $1))"
    done
}
configure 0 >"$folder/more.toml"
"$binary" pool --config "$folder/more.toml" 2>"$folder/pool.log" &
pool_pid=$!
await_pool

"$binary" load oltp_point_select run --table-size 10000 --preflight off \
    --target "mysql://app:app@127.0.0.1:$pool_port/sbtest" --connections "$connections" \
    --rate "$rate" --time "$time" --percentile 99 >"$folder/load.out" 2>&1 &
load=$!
await_counted clients "$connections" "$load" "$folder/load.out"

# The log's time of its last line of an event, in milliseconds.
time_of() { date -d "$(grep "event=$1 " "$folder/pool.log" | tail -1 | cut -d' ' -f1)" +%s%3N; }
for ((round = 1; round <= reloads; round++)); do
    configure "$round" >"$folder/more.new"
    mv "$folder/more.new" "$folder/more.toml"
    kill -HUP "$pool_pid"
    until (($(grep -c 'event=settings-read ' "$folder/pool.log") >= round)); do
        ! grep 'event=settings-kept ' "$folder/pool.log" || fail "reload $round was not applied"
        sleep 0.02
    done
    printf '%d ms\n' "$(($(time_of settings-read) - $(time_of signal)))" >>"$folder/times"
done
kill -0 "$load" 2>/dev/null || fail "the load was over before the last reload: raise TIME"
wait "$load" || fail "the load has failed: $(tail -5 "$folder/load.out")"
printf '%d reloads of %d users: median %s, longest %s\n' "$reloads" "$users" \
    "$(sort -n "$folder/times" | sed -n "$(((reloads + 1) / 2))p")" "$(sort -n "$folder/times" | tail -1)"
grep -E 'transactions:|errors|reconnects|99th|max:' "$folder/load.out"
grep -Eq 'ignored errors: +0 ' "$folder/load.out" || fail "the load had errors"
end_pool
