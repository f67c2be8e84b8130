#!/usr/bin/env bash
#
# What: what watching costs. Point selects of CONNECTIONS clients through two pools in turns, PAIRS
#   times each: one with metrics that are scraped every second, digests of statements and the live page
#   open, the other with none of that; then the same with the statement log (masked, with its rate of
#   1,000 a second, and with a million) and without. Prints the throughput of each run, and the median ratio.
# Why: throughput with everything on is to be at least 0.98 of that without.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server, the pools and the loads, and removes the folder.
#
# CONNECTIONS (64), PAIRS (5) and TIME (20, seconds of a run) may be set in the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

connections=${CONNECTIONS:-64}
pairs=${PAIRS:-5}
time=${TIME:-20}
http_port=$((31000 + RANDOM % 900))

[[ -n ${ONRAMP:-} ]] || get_ready --bin onramp
binary=${ONRAMP:-${binary:-}}
start_server --max-connections=200
make_tables --table-size 10000

# What an open page and Prometheus ask for, once a second, until the load has ended.
watch_pool() {
    while sleep 1; do
        curl -fs "http://127.0.0.1:$http_port/metrics" >/dev/null || true
        curl -fs "http://127.0.0.1:$http_port/live.json" >/dev/null || true
    done
}

# run WATCHED LINE...: statements a second through a pool with these settings.
run() {
    local watched=$1 watcher=
    shift
    start_pool 'backends_max = 16' "$@"
    if [[ $watched == yes ]]; then
        watch_pool &
        watcher=$!
    fi
    "$binary" load oltp_point_select run --table-size 10000 --preflight off \
        --target "mysql://app:app@127.0.0.1:$pool_port/sbtest" \
        --connections "$connections" --time "$time" >"$folder/load.out" 2>&1 ||
        fail "the load has failed: $(tail -3 "$folder/load.out")"
    [[ -z $watcher ]] || { kill "$watcher" && wait "$watcher"; } 2>/dev/null || true
    end_pool
    sed -n 's/.*queries:.*(\([0-9.]*\) per sec.*/\1/p' "$folder/load.out"
}

# compare TITLE ON OFF: two functions, each of which prints a throughput.
compare() {
    local title=$1 on off ratios=
    for ((pair = 1; pair <= pairs; pair++)); do
        # Which one is first changes from pair to pair: machines drift.
        if ((pair % 2)); then
            on=$("$2"); off=$("$3")
        else
            off=$("$3"); on=$("$2")
        fi
        ratios+="$(awk "BEGIN { printf \"%.3f\", $on / $off }")"$'\n'
        printf '%s, pair %d: %s on, %s off\n' "$title" "$pair" "$on" "$off"
    done
    printf '%s: median of on / off %s\n' "$title" \
        "$(printf '%s' "$ratios" | sort -n | sed -n "$(((pairs + 1) / 2))p")"
}

watched() { run yes "http = \"127.0.0.1:$http_port\""; }
unwatched() { run no 'digests_max = 0'; }
logged() { run no 'statement_log = "masked"' 'statement_log_per_s_max = 1000000'; }
bounded() { run no 'statement_log = "masked"'; }
unlogged() { run no; }

compare "metrics, digests and the page" watched unwatched
compare "statement log, at most 1,000 a second as it is unless set" bounded unlogged
compare "statement log, all statements" logged unlogged
