#!/usr/bin/env bash
#
# What: a profile of the pool while it relays: point selects of many connections at once, and where
#   the pool's threads are on the CPU meanwhile. Prints statements a second, the pool's CPU time for
#   each, the shares of kernel and program, and the costliest functions of both.
# Why: the relay path is what every statement pays; docs/performance.md says how to read it.
# Changes on the machine: installs MariaDB and perf (Debian) if they are missing, as scripts/lib.sh
#   describes; the server runs from a folder below /tmp on a free port. Profiles of the kernel's
#   part want root, or kernel.perf_event_paranoid at most 1.
# Restores: ends the server, the pool and the load, and removes the folder.
#
# CONNECTIONS (1000) and TIME (10, seconds that are recorded) may be set in the environment; PERF
# names a file that keeps the profile.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh disable=SC2154
source scripts/server.sh

connections=${CONNECTIONS:-1000}
seconds=${TIME:-10}

want perf linux-perf
get_ready --bin onramp
profile=${PERF:-$folder/perf.data}

# shares KEY LINES: the profile's samples by that key.
shares() {
    perf report -i "$profile" --no-children -g none --sort "$1" 2>/dev/null |
        awk -v most="$2" '/^ +[0-9.]+%/ && n++ < most { sub(/ +- +- *$/, ""); print }'
}

start_server --innodb-flush-log-at-trx-commit=0
start_pool "clients_max = $((connections + 1000))"
tables=(--tables 4 --table-size 25000)
make_tables "${tables[@]}"
"$binary" load oltp_point_select run "${tables[@]}" --connections "$connections" --warmup-time 2 \
    --time "$((seconds + 1))" --report-interval 1 --json "$folder/load.json" \
    --target "mysql://app:app@127.0.0.1:$pool_port/sbtest" >"$folder/load" 2>&1 &
load_pid=$!
until grep -qs '^\[ 1s \]' "$folder/load"; do
    kill -0 "$load_pid" 2>/dev/null || fail "the load ended: $(tail -3 "$folder/load")"
    sleep 0.05
done
before=$(pool_ticks)
perf record -q -F 1500 -g -p "$pool_pid" -o "$profile" -- sleep "$((seconds - 1))"
ticks=$(($(pool_ticks) - before))
wait "$load_pid" || fail "the load failed: $(tail -3 "$folder/load")"

rate=$(field statements_per_s "$folder/load.json")
awk -v n="$connections" -v cores="$(nproc)" -v rate="$rate" -v ticks="$ticks" \
    -v per="$(getconf CLK_TCK)" -v seconds="$((seconds - 1))" 'BEGIN {
        printf "%d connections, %d cores: %.0f statements/s, %.1f us of the pool'"'"'s CPU for each\n",
            n, cores, rate, ticks / per / seconds / rate * 1e6 }'
printf 'by object:\n'
shares dso 5
printf 'by function:\n'
shares symbol 40
