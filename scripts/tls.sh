#!/usr/bin/env bash
#
# What: TLS of clients against none. Bytes of the pool for each of CLIENTS connections that say next to
#   nothing; then point selects of 1,000 connections and logins of 64, each plain and under TLS in
#   turns, RUNS times for TIME seconds.
# Why: what an idle client under TLS takes, and what TLS costs those who work, are figures of
#   docs/decisions/0024-tls-records.md.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server, the pools and the loads, and removes the folder.
#
# CLIENTS (50000), RUNS (3), TIME (10) and WHAT ("memory selects logins") may be set in the
# environment; ONRAMP names a binary that is built already.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

clients=${CLIENTS:-50000}
runs=${RUNS:-3}
time=${TIME:-10}
what=${WHAT:-memory selects logins}

[[ -n ${ONRAMP:-} ]] || get_ready --bin onramp
binary=${ONRAMP:-$binary}

start_server --innodb-flush-log-at-trx-commit=0 --max-connections=500
make_tables --table-size 10000
"$binary" tls init "$folder/tls" >/dev/null

start_tls_pool() {
    start_pool 'backends_max = 32' "clients_max = $((2 * clients + 2000))" '[tls]' \
        "cert = \"$folder/tls/cert.pem\"" "key = \"$folder/tls/key.pem\""
}

# arguments KIND: sets `load` to the command for point selects, under TLS if that is the kind.
arguments() {
    load=("$binary" load oltp_point_select run --table-size 10000 --preflight off
        --target "mysql://app:app@127.0.0.1:$pool_port/sbtest")
    [[ $1 == plain ]] || load+=(--tls --ca "$folder/tls/ca.pem")
}

memory() {
    start_tls_pool
    local before load_pid
    before=$(pool_rss)
    arguments "$1"
    "${load[@]}" --connections "$clients" --rate 20 --time 600 >"$folder/load.out" 2>&1 &
    load_pid=$!
    await_counted clients "$clients" "$load_pid" "$folder/load.out"
    # Some of them say something.
    sleep 5
    printf '%s: %d idle clients, %d bytes each\n' "$1" "$clients" \
        $((($(pool_rss) - before) / clients))
    kill -KILL "$load_pid"
    wait "$load_pid" 2>/dev/null || true
    end_pool
}

# turns N OPTION...: runs of each kind in turns; how many N (a word of the report) a second, and the
# pool's CPU time for each.
turns() {
    local name=$1 run kind before ticks
    shift
    start_tls_pool
    for ((run = 1; run <= runs; run++)); do
        for kind in plain tls; do
            arguments "$kind"
            before=$(pool_ticks)
            "${load[@]}" --time "$time" "$@" >"$folder/load.out" 2>&1
            ticks=$(($(pool_ticks) - before))
            awk -v ticks="$ticks" -v per="$(getconf CLK_TCK)" -v time="$time" -v kind="$kind" \
                -v name="$name" -v rate="$(per_second "$name")" 'BEGIN {
                printf "%s: %.0f %s a second, %.1f us of the pool'"'"'s CPU for each\n",
                    kind, rate, name, ticks / per / (rate * time) * 1e6 }'
        done
    done
    end_pool
}

per_second() { sed -n "s/.*$1: .*(\([0-9.]*\) per sec.*/\1/p" "$folder/load.out"; }

[[ $what != *memory* ]] || for kind in plain tls; do memory "$kind"; done

[[ $what != *selects* ]] || turns queries --connections 1000
[[ $what != *logins* ]] || turns reconnects --connections 64 --reconnect 1
