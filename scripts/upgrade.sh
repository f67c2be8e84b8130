#!/usr/bin/env bash
#
# What: upgrades in a row under load. CLIENTS connections run sysbench's oltp_read_write (each of its
#   events is a transaction) or oltp_point_select, half of them each, at RATE events a second in all;
#   meanwhile the pool is told UPGRADES times to let a new process take over (SIGUSR2). Prints the
#   errors of the loads, how long each hand-over took, how many clients went, and the longest time
#   that one was out of service. With TLS=1 the clients are under TLS. With OTHER=BINARY, the program
#   of another version, the two take turns: BINARY first, then the present one, and so on. Versions
#   whose hand-overs differ refuse each other: that is printed, and the process goes on that was there.
# Why: an upgrade must cost nobody a connection, a statement or a noticeable time.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server, the pools and the loads, and removes the folder.
#
# CLIENTS (2000), UPGRADES (10), RATE (2000, events a second), TIME (60, seconds of the loads), TLS and
# OTHER may be set in the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

clients=${CLIENTS:-2000}
upgrades=${UPGRADES:-10}
rate=${RATE:-2000}
time=${TIME:-60}

[[ -n ${ONRAMP:-} ]] || get_ready --bin onramp
binary=${ONRAMP:-${binary:-}}

start_server --innodb-flush-log-at-trx-commit=0 --max-connections=500
make_tables --table-size 100000
settings=('backends_max = 64' "clients_max = $((2 * clients))" 'drain_ms_max = 60000')
secured=()
if [[ -n ${TLS:-} ]]; then
    "$binary" tls init "$folder/tls" >/dev/null
    settings+=('[tls]' "cert = \"$folder/tls/cert.pem\"" "key = \"$folder/tls/key.pem\"")
    secured=(--tls --ca "$folder/tls/ca.pem")
fi
# A new program is put in place as a package does it: by a rename.
put_in_place() {
    cp "$1" "$folder/onramp.new"
    mv "$folder/onramp.new" "$folder/onramp"
}
present=$binary
put_in_place "$present"
binary=$folder/onramp start_pool "${settings[@]}"

work() {
    "$present" load "$1" run --table-size 100000 --preflight off "${secured[@]}" \
        --target "mysql://app:app@127.0.0.1:$pool_port/sbtest" \
        --connections "$((clients / 2))" --rate "$((rate / 2))" --time "$time" --percentile 99 \
        >"$folder/$1.out" 2>&1
}
work oltp_read_write &
loads=$!
work oltp_point_select &
loads="$loads $!"

await_counted clients "$((clients / 2 * 2))" "${loads##* }" "$folder/oltp_point_select.out"

logged() { grep -c "event=$1 " "$folder/pool.log" || true; }

for ((done = 1; done <= upgrades; done++)); do
    old=$pool_pid
    begun=$(date +%s%N)
    before=$(logged upgraded)
    failed=$(logged upgrade-failed)
    [[ -z ${OTHER:-} ]] || put_in_place "$( ((done % 2)) && echo "$OTHER" || echo "$present")"
    kill -USR2 "$old"
    until (($(logged upgraded) > before)); do
        # The successor has ended by then, and its end was noticed.
        (($(logged upgrade-failed) == failed)) || break
        sleep 0.05
    done
    if (($(logged upgraded) == before)); then
        [[ -n ${OTHER:-} ]] || fail "upgrade $done: $(grep event=upgrade-failed "$folder/pool.log" | head -1)"
        until grep -q 'event=upgrade-failed .*has ended' <(tail -n 5 "$folder/pool.log"); do sleep 0.05; done
        kill -0 "$old" || fail "upgrade $done: the process that was there has ended"
        printf 'upgrade %d: refused: %s\n' "$done" \
            "$(grep event=upgrade-failed "$folder/pool.log" | tail -n +"$((failed + 1))" | head -1 | sed 's/.*message=//')"
        continue
    fi
    ended=$(date +%s%N)
    pool_pid=$(sed -n 's/.*process \([0-9]*\) is started from.*/\1/p' "$folder/pool.log" | tail -1)
    printf 'upgrade %d: %d ms, %s\n' "$done" "$(((ended - begun) / 1000000))" \
        "$(grep 'event=upgraded' "$folder/pool.log" | tail -1 | sed 's/.*message=//')"
done

status=0
for load in $loads; do wait "$load" || status=$?; done
for name in oltp_read_write oltp_point_select; do
    printf '%s:\n' "$name"
    grep -E 'transactions:|errors|reconnects|99th|max:' "$folder/$name.out" || tail -5 "$folder/$name.out"
done
longest=$(sed -n 's/.*longest pause \([0-9]*\) us.*/\1/p' "$folder/pool.log" | sort -n | tail -1)
printf 'longest time out of service: %d ms\n' "$((${longest:-0} / 1000))"
((status == 0)) || fail "a load has failed"
