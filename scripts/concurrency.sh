#!/usr/bin/env bash
#
# What: runs sysbench through pools with fixed numbers of statements at once (oversubscribe), and
#   through one that finds the number itself ("auto"), in turns. Prints the transactions a second of
#   each with their medians, and auto's relative to each fixed number's: the median of the rounds'
#   ratios, and the least of these, which is the one to the best fixed number. Workloads: point
#   selects, updates of an index, read-write, and `half`: point selects of which the server has one
#   processor only in the second half of the run.
# Why: the number that makes a server fastest differs from load to load.
# Changes on the machine: installs MariaDB and sysbench (Debian) if they are missing, as
#   scripts/lib.sh describes; the server runs from a folder below /tmp on a free port.
# Restores: ends the server and the pools, and removes the folder.
#
# NUMBERS ("0 1 3 7 15 31"), WORKLOADS ("point update write half"), THREADS (200), SECONDS_EACH
# (10) and ROUNDS (3) may be set in the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh
want sysbench sysbench

read -ra numbers <<<"${NUMBERS:-0 1 3 7 15 31}"
read -ra workloads <<<"${WORKLOADS:-point update write half}"
threads=${THREADS:-200}
seconds=${SECONDS_EACH:-10}
rounds=${ROUNDS:-3}

get_ready --bin onramp
start_server --max-connections=400 --innodb-flush-log-at-trx-commit=0
make_tables --tables=4 --table-size=20000

processors=$(taskset -cp "$server_pid" | sed 's/.*: //')
one=${processors%%[-,]*}

# Half of the processors, in the second half of the run; the other half is its load's anyway.
take_half() {
    sleep $((seconds / 2))
    taskset -acp "$one" "$server_pid" >/dev/null
}

# run WORKLOAD: prints transactions a second.
run() {
    local script taker=
    case $1 in
        point | half) script=oltp_point_select ;;
        update) script=oltp_update_index ;;
        write) script=oltp_read_write ;;
        *) fail "WORKLOADS: $1 is unknown" ;;
    esac
    if [[ $1 == half ]]; then
        take_half &
        taker=$!
    fi
    sysbench "$script" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$pool_port" \
        --mysql-user=app --mysql-password=app --mysql-db=sbtest --tables=4 --table-size=20000 \
        --db-ps-mode=disable --threads="$threads" --time="$seconds" run >"$folder/run.log" 2>&1 ||
        fail "sysbench failed: $(tail -3 "$folder/run.log")"
    if [[ -n $taker ]]; then
        wait "$taker"
        taskset -acp "$processors" "$server_pid" >/dev/null
    fi
    sed -n 's/.*transactions: .*(\([0-9.]*\) per sec.*/\1/p' "$folder/run.log"
}

median() { sort -n | awk '{ of[NR] = $1 } END { print of[int((NR + 1) / 2)] }'; }

for workload in "${workloads[@]}"; do
    for ((round = 0; round < rounds; round++)); do
        for number in "${numbers[@]}" auto; do
            value=$number
            [[ $number != auto ]] || value='"auto"'
            start_pool "backends_max = 200" "oversubscribe = $value"
            run "$workload" >>"$folder/$workload.$number"
            end_pool
        done
    done
    # A round's runs are beside each other, so the ratio is taken in each round. Of the fixed numbers,
    # the one that auto does worst against is the best.
    least=
    for number in "${numbers[@]}" auto; do
        printf '%-7s %-5s %10s   (%s)\n' "$workload" "$number" \
            "$(median <"$folder/$workload.$number")" "$(paste -sd' ' "$folder/$workload.$number")"
    done
    for number in "${numbers[@]}"; do
        paste "$folder/$workload.auto" "$folder/$workload.$number" |
            awk '{ printf "%.2f\n", $1 / $2 }' >"$folder/ratios"
        middle=$(median <"$folder/ratios")
        printf '%-7s auto / %-5s %s   (%s)\n' "$workload" "$number" "$middle" \
            "$(paste -sd' ' "$folder/ratios")"
        least=$(printf '%s\n' "${least:-$middle}" "$middle" | sort -g | head -1)
    done
    printf '%-7s auto / best fixed: %s\n' "$workload" "$least"
done
