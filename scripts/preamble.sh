#!/usr/bin/env bash
#
# What: compares clients that set their session up, as object-relational mappers do, with clients
#   that do not: oltp_read_write through the pool, in three variants that take turns, each run with a
#   pool of its own. `none` sets nothing; `same` runs the preamble below in every connection;
#   `differ` has another time_zone in every second one, so that backends have to be restored. Prints
#   transactions a second and their ratios, what was restored, who was pinned, and the pool's bytes
#   for each idle client of all three.
# Why: nearly every client of a pool has such a preamble, and it must cost nothing.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server, the pools and the loads, and removes the folder.
#
# WORKLOAD (oltp_read_write), CONNECTIONS (1000), SECONDS_EACH (8), ROUNDS (2) and IDLE (10000, clients
# for the memory; 0 leaves that out, as ROUNDS=0 does with the runs) may be set in the environment.
# RESULTS=FILE keeps the lines of the runs and adds up those that are in it already, so that many rounds
# can be had in pieces.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh disable=SC2154
source scripts/server.sh

workload=${WORKLOAD:-oltp_read_write}
connections=${CONNECTIONS:-1000}
seconds=${SECONDS_EACH:-8}
rounds=${ROUNDS:-2}
idle=${IDLE:-10000}
results=${RESULTS:-$folder/results}

get_ready --bin onramp

# preamble ZONE: sets `init` to the options of a client in that time zone.
preamble() {
    init=(
        --init-sql "SET NAMES utf8mb4"
        --init-sql "SET SESSION sql_mode='STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'"
        --init-sql "SET time_zone='$1'"
        --init-sql "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
        --init-sql "SET autocommit=1"
    )
}

# start_loads VARIANT CONNECTIONS OPTION...: two loads with half of the connections each, in every
# variant, for `differ` needs two.
start_loads() {
    local variant=$1 half=$(($2 / 2)) number
    shift 2
    load_pids=()
    for number in 1 2; do
        local -a init=()
        case $variant:$number in
            none:*) ;;
            differ:2) preamble +02:00 ;;
            *) preamble +00:00 ;;
        esac
        "$binary" load "$workload" run --target "mysql://app:app@127.0.0.1:$pool_port/sbtest" \
            "${tables[@]}" --connections "$half" --json "$folder/load$number.json" "${init[@]}" \
            "$@" >/dev/null 2>"$folder/load$number.log" &
        load_pids+=($!)
    done
}

end_loads() {
    local number
    for number in 1 2; do
        wait "${load_pids[number - 1]}" || fail "a load failed: $(tail -3 "$folder/load$number.log")"
    done
}

# run VARIANT: one run with a new pool; a line in the results.
run() {
    start_pool "clients_max = $((connections + 1000))"
    start_loads "$1" "$connections" --time "$seconds" --warmup-time 2
    end_loads
    take_census
    local pins
    pins=$(grep -oE '\bpins: \{[^}]*\}' <<<"$census" |
        awk -F': ' '{ for (i = 3; i <= NF; i++) sum += $i } END { print sum + 0 }')
    printf '%s rate %s mean %s restored %s in_front %s statements %s pins %s failed %s\n' "$1" \
        "$(field events_per_s "$folder"/load?.json)" "$(field mean_ms "$folder/load1.json")" \
        "$(count restored)" "$(count restored_in_front)" "$(count statements)" "$pins" \
        "$(field failed_statements "$folder"/load?.json)" | tee -a "$results"
    end_pool
}

# idle_bytes VARIANT: what each idle client costs the pool.
idle_bytes() {
    start_pool "clients_max = $((idle + 1000))"
    sleep 1
    local before held
    before=$(pool_rss)
    start_loads "$1" "$idle" --time 1 --idle-time 6 --connect-rate 2500
    until grep -q holding "$folder/load1.log" && grep -q holding "$folder/load2.log"; do
        kill -0 "${load_pids[@]}" || fail "no load: $(tail -3 "$folder"/load?.log)"
        sleep 0.1
    done
    sleep 2
    held=$(pool_rss)
    kill -INT "${load_pids[@]}"
    wait "${load_pids[@]}" || true
    printf '%-6s %6d bytes for each of %d idle clients of the pool\n' "$1" \
        $(((held - before) / idle)) "$idle"
    end_pool
}

tables=(--tables 4 --table-size 25000)
# What is measured is the pool; the disk's mood is not.
start_server --innodb-flush-log-at-trx-commit=0
make_tables "${tables[@]}"

for ((round = 0; round < rounds; round++)); do
    # Forwards, then backwards: what drifts over time meets all of them alike.
    order=(none same differ differ same none)
    for variant in "${order[@]:round % 2 * 3:3}"; do
        run "$variant"
    done
done
if [[ -s $results ]]; then
    printf '%s, %s connections, %s cores, runs of %s s each, taking turns\n' "$workload" \
        "$connections" "$(nproc)" "$seconds"
    awk '
        {
            runs[$1]++; rate[$1] += $3; mean[$1] += $5; restored[$1] += $7; front[$1] += $9
            statements[$1] += $11; pins[$1] += $13; failed[$1] += $15
        }
        END {
            for (i = split("none same differ", names, " "); i > 0; i--) {
                n = names[4 - i]
                if (!runs[n]) continue
                printf "%-6s %d runs: %8.1f events/s (%.3f of none), mean %.3f ms; " \
                    "restored before %.2f %% of statements (%.2f %% in front); " \
                    "clients ever pinned %d; failed %d\n", n, runs[n], rate[n] / runs[n],
                    rate[n] / runs[n] / (rate["none"] / runs["none"]), mean[n] / runs[n],
                    100 * restored[n] / statements[n], 100 * front[n] / statements[n], pins[n], failed[n]
            }
        }
    ' "$results"
fi
((idle == 0)) || for variant in none same differ; do idle_bytes "$variant"; done
