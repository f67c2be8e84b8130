#!/usr/bin/env bash
#
# What: a storm of logins through the pool while others work: a closed loop of point selects, and in
#   its middle 50,000 connections that arrive as fast as they are let in and then hold. Prints the
#   working clients' p99 before and during the storm, the ratio, logins a second, and what failed.
# Why: who works must hardly notice who arrives.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server, the pool and the loads, and removes the folder.
#
# WORKING (200), STORM (50000), CALM (12, seconds before the storm) and TIME (60, seconds of the
# whole run) may be set in the environment; TLS=1 has all of them log in and work under TLS.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

working=${WORKING:-200}
storm=${STORM:-50000}
calm=${CALM:-12}
time=${TIME:-60}

get_ready --bin onramp

start_server --innodb-flush-log-at-trx-commit=0
secure=()
pool_tls=()
if [[ -n ${TLS:-} ]]; then
    "$binary" tls init "$folder/tls" >/dev/null
    secure=(--tls --ca "$folder/tls/ca.pem")
    pool_tls=('[tls]' 'mode = "required"' "cert = \"$folder/tls/cert.pem\""
        "key = \"$folder/tls/key.pem\"")
fi
start_pool "clients_max = $((storm + working + 1000))" "${pool_tls[@]}"
grep 'groups' "$folder/pool.log"
rows=100000
make_tables --table-size "$rows"
line=(load oltp_point_select run --table-size "$rows"
    --target "mysql://app:app@127.0.0.1:$pool_port/sbtest" "${secure[@]}")

seconds_now() { date +%s.%N; }

"$binary" "${line[@]}" --connections "$working" --time "$time" --report-interval 1 \
    --percentile 99 >"$folder/work" 2>"$folder/work.log" &
work_pid=$!
until grep -qs '^\[ 1s \]' "$folder/work"; do sleep 0.1; done
began=$(seconds_now)
sleep "$calm"

storm_began=$(seconds_now)
"$binary" "${line[@]}" --connections "$storm" --connect-rate 0 --idle-time 600 --time 1 \
    >"$folder/storm" 2>"$folder/storm.log" &
storm_pid=$!
# The load says when all of them are in.
until grep -qs 'holding' "$folder/storm.log"; do
    kill -0 "$work_pid" 2>/dev/null || break
    sleep 0.05
done
storm_ended=$(seconds_now)
wait "$work_pid" || fail "the working load failed: $(tail -3 "$folder/work.log")"
kill -INT "$storm_pid" 2>/dev/null || true
wait "$storm_pid" || true
cat "$folder/storm.log"

printf '%s working connections, %s arrive; %s cores\n' "$working" "$storm" "$(nproc)"
awk -v began="$began" -v from="$storm_began" -v to="$storm_ended" -v storm="$storm" '
    match($0, /^\[ [0-9]+s \]/) {
        second = substr($0, 3) + 0
        at = began + second - 1
        match($0, /99%\): [0-9.]+/)
        p99 = substr($0, RSTART + 6, RLENGTH - 6) + 0
        match($0, /tps: [0-9.]+/)
        rate = substr($0, RSTART + 5, RLENGTH - 5) + 0
        phase = at <= from ? "before" : (at >= from + 1 && at <= to ? "during" : "other")
        n[phase]++; sum[phase] += p99; rates[phase] += rate
        if (p99 > worst[phase]) worst[phase] = p99
        seconds[phase] = seconds[phase] " " p99
    }
    END {
        split("before during", phases, " ")
        for (i = 1; i <= 2; i++) {
            p = phases[i]
            if (!n[p]) { printf "%s the storm: shorter than a second\n", p; continue }
            printf "%s the storm: %d s, %.0f statements/s, p99 of a second %.2f ms on average, %.2f at worst\n",
                p, n[p], rates[p] / n[p], sum[p] / n[p], worst[p]
        }
        if (n["during"]) printf "p99 second by second during the storm, in ms:%s\n", seconds["during"]
        if (n["during"]) printf "p99 during the storm: %.2f of that before\n",
            sum["during"] / n["during"] / (sum["before"] / n["before"])
        printf "%d logins in %.1f s: %.0f a second\n", storm, to - from, storm / (to - from)
    }
' "$folder/work"
take_census
grep -oE '(logins|refused|denied|accept_failures|dialled|dial_failures|backends_lost): [0-9]+' \
    <<<"$census" | paste -sd' '
printf 'connections at once on the server: %s\n' "$(admin -BNe "SHOW STATUS LIKE 'Max_used_con%'")"
