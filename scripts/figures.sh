#!/usr/bin/env bash
#
# What: the ratios of docs/performance.md between the pool and what stands in its place, row by row:
#   a server with a thread for each connection, the server's own pool of threads, and HAProxy. A row
#   runs its ways ROUNDS times in turns; of each round it takes the ratio, and prints their median
#   and all of them. Below them stands the CPU time of a statement (with sysbench: a transaction) in
#   us, program + kernel, median of the rounds. `all` has the clients too, and interrupts.
# Why: rates differ from machine to machine and from minute to minute; ratios of runs beside each
#   other do so less.
# Changes on the machine: installs MariaDB, sysbench and HAProxy (Debian) if they are missing, as
#   scripts/lib.sh describes; all of them run from a folder below /tmp on free ports.
# Restores: ends them and removes the folder.
#
# ROWS are names, all unless it is set:
#   txn-64, txn-10000            BEGIN, UPDATE, COMMIT
#   sysbench-64, sysbench-8000   sysbench itself as the client, point selects
#   index-64, index-1000         the same, oltp_update_index
#   write-1000                   the same, oltp_read_write
#   prepared-10000               prepared point selects beside text ones
#   point-10000                  point selects
#   crowd                        point selects at 100,000 beside 1,000, and p99 by the mean there
# ROUNDS (5), SECONDS_EACH (5, at least 3) and CROWD (100000) may be set in the environment. SOCKET=1
# lets the pool reach the server by its Unix socket, as docs/pool/sizing.md advises where both share a
# machine; clients come by TCP in any case. All rows take 25 minutes on two cores. `auto` beside fixed
# numbers is scripts/concurrency.sh.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-5}
crowd=${CROWD:-100000}
read -ra rows <<<"${ROWS:-txn-64 txn-10000 sysbench-64 sysbench-8000 index-64 index-1000 \
write-1000 prepared-10000 point-10000 crowd}"
tables=4
size=25000

want sysbench sysbench
want haproxy haproxy
get_ready --bin onramp

server_options=(--max-connections=12000 --back-log=4096 --table-open-cache=8000
    --connect-timeout=60 --innodb-flush-log-at-trx-commit=0)

# A second server of the same kind, which runs its own pool of threads.
start_own_pool() {
    local -a as_root=()
    local tries=0
    [[ $EUID != 0 ]] || as_root=(--user=root)
    own_port=$((server_port + 5000))
    mariadb-install-db --no-defaults --datadir="$folder/own" --skip-test-db \
        --auth-root-authentication-method=normal "${as_root[@]}" >/dev/null
    mariadbd --no-defaults --datadir="$folder/own" --socket="$folder/own.socket" \
        --port="$own_port" --bind-address=127.0.0.1 --skip-name-resolve \
        --innodb-buffer-pool-size=256M --performance-schema=OFF \
        --thread-handling=pool-of-threads "${as_root[@]}" "${server_options[@]}" \
        2>"$folder/own.log" &
    server_pid="$server_pid $!"
    until ask_own -e 'SELECT 1' >/dev/null 2>&1; do
        ((++tries < 100)) || fail "the second server did not start: $(tail -3 "$folder/own.log")"
        sleep 0.2
    done
    ask_own -e "CREATE DATABASE sbtest; CREATE USER app@'%' IDENTIFIED BY 'app';
        GRANT ALL ON sbtest.* TO app@'%'"
    "$binary" load oltp_read_write prepare --tables="$tables" --table-size="$size" \
        --target "mysql://app:app@127.0.0.1:$own_port/sbtest" >"$folder/tables.log" 2>&1 ||
        fail "no tables: $(tail -3 "$folder/tables.log")"
}

ask_own() { mariadb --no-defaults -S "$folder/own.socket" -uroot "$@"; }

start_haproxy() {
    haproxy_port=$((server_port + 10000))
    cat >"$folder/haproxy.cfg" <<END
global
    maxconn 9000
defaults
    mode tcp
    timeout connect 60s
    timeout client 1h
    timeout server 1h
listen mysql
    bind 127.0.0.1:$haproxy_port
    server one 127.0.0.1:$server_port
END
    haproxy -db -f "$folder/haproxy.cfg" >"$folder/haproxy.log" 2>&1 &
    server_pid="$server_pid $!"
}

# port_of WAY: the port that leads there.
port_of() {
    case $1 in
        each) echo "$server_port" ;;
        own) echo "$own_port" ;;
        onramp) echo "$pool_port" ;;
        haproxy) echo "$haproxy_port" ;;
    esac
}

# by_load WAY WORKLOAD CONNECTIONS OPTION...: statements a second of onramp's own generator.
by_load() {
    local way=$1 workload=$2 connections=$3
    shift 3
    "$binary" load "$workload" run --tables "$tables" --table-size "$size" \
        --target "mysql://app:app@127.0.0.1:$(port_of "$way")/sbtest" --live never \
        --connections "$connections" --connect-rate 8000 --end-timeout 60 \
        --warmup-time $((1 + connections / 10000)) --time $((seconds + connections / 10000)) \
        --json "$folder/load.json" "$@" >"$folder/load.log" 2>&1 ||
        fail "load failed on $way: $(tail -3 "$folder/load.log")"
    field statements_per_s "$folder/load.json"
}

# by_sysbench WAY WORKLOAD CONNECTIONS: transactions a second of sysbench itself.
by_sysbench() {
    sysbench "$2" --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port="$(port_of "$1")" \
        --mysql-user=app --mysql-password=app --mysql-db=sbtest --tables="$tables" \
        --table-size="$size" --db-ps-mode=disable --threads="$3" --time="$seconds" \
        run >"$folder/sysbench.log" 2>&1 ||
        fail "sysbench failed on $1: $(tail -3 "$folder/sysbench.log")"
    sed -n 's/.*transactions: .*(\([0-9.]*\) per sec.*/\1/p' "$folder/sysbench.log"
}

# watched CLIENT WAY WORKLOAD CONNECTIONS OPTION...: runs it, and notes its rate and what CPU time each
# part took for a statement, between two looks while all connections work.
watched() {
    local client=$1 way=$2 workload=$3 connections=$4 pid before after
    shift 4
    rm -f "$folder/sysbench.log"
    "by_$client" "$way" "$workload" "$connections" "$@" >"$folder/rate" &
    pid=$!
    if [[ $client == sysbench ]]; then
        until grep -qs 'Threads started' "$folder/sysbench.log" || ! kill -0 "$pid" 2>/dev/null; do
            sleep 0.1
        done
    else
        sleep $((1 + connections / 8000 + connections / 10000))
    fi
    sleep 1
    before=$(cpu_times "$way")
    sleep $((seconds - 2))
    after=$(cpu_times "$way")
    wait "$pid"
    cat "$folder/rate" >>"$folder/rate.$way"
    awk -v before="$before" -v after="$after" '{
        split(before, from); split(after, to)
        for (part = 2; part <= 6; part++)
            printf "%.1f ", (to[part] - from[part]) * 10000 / ($1 * (to[1] - from[1]))
        print ""
    }' "$folder/rate" >>"$folder/cpu.$way"
}

# cpu_times WAY: the time of day in seconds, and the CPU time taken so far in ticks of 10 ms: of the
# server behind WAY and of the pool, program and kernel each, and of the whole machine.
cpu_times() {
    local -a pids server pool all
    read -ra pids <<<"$server_pid"
    read -ra server <"/proc/${pids[$([[ $1 == own ]] && echo 1 || echo 0)]}/stat"
    read -ra pool <"/proc/$pool_pid/stat"
    read -ra all </proc/stat
    echo "$EPOCHREALTIME ${server[13]} ${server[14]} ${pool[13]} ${pool[14]}" \
        $((all[1] + all[2] + all[3] + all[6] + all[7]))
}

median() { median_of 2; }

# median_of DIGITS: of the numbers that it reads, with so many digits behind the point.
median_of() {
    sort -n | awk -v digits="$1" \
        '{ of[NR] = $1 } END { printf "%." digits "f\n", of[int((NR + 1) / 2)] }'
}

# say_ratio ROW WORDS: the ratios of all rounds stand in a file, one a line.
say_ratio() {
    printf '%-14s %-34s %s   (%s)\n' "$1" "$2" "$(median <"$folder/ratios")" \
        "$(paste -sd' ' "$folder/ratios")"
}

# compare ROW CLIENT WORKLOAD CONNECTIONS WAY...: onramp in turns with each of the ways.
compare() {
    local row=$1 client=$2 workload=$3 connections=$4 round way place
    shift 4
    local -a ways=(onramp "$@") options=()
    [[ $row != txn-* ]] || options=(--index-updates=0 --delete-inserts=0)
    rm -f "$folder"/rate.* "$folder"/cpu.*
    for ((round = 0; round < rounds; round++)); do
        # Whoever comes first differs.
        for ((place = 0; place < ${#ways[@]}; place++)); do
            way=${ways[(place + round) % ${#ways[@]}]}
            watched "$client" "$way" "$workload" "$connections" "${options[@]}"
        done
    done
    for way in "$@"; do
        paste "$folder/rate.onramp" "$folder/rate.$way" |
            awk '{ printf "%.2f\n", $1 / $2 }' >"$folder/ratios"
        say_ratio "$row" "onramp / $(name_of "$way")"
    done
    for way in "${ways[@]}"; do
        printf '%-14s   %-32s %s a second\n' '' "$(name_of "$way")" \
            "$(awk '{ printf "%.0f ", $1 }' "$folder/rate.$way")"
        printf '%-14s     server %s + %s, pool %s + %s, all %s us\n' '' \
            "$(cpu_of "$way" 1)" "$(cpu_of "$way" 2)" "$(cpu_of "$way" 3)" \
            "$(cpu_of "$way" 4)" "$(cpu_of "$way" 5)"
    done
}

cpu_of() { awk -v part="$2" '{ print $part }' "$folder/cpu.$1" | median_of 1; }

name_of() {
    case $1 in
        each) echo "a thread each" ;;
        own) echo "the server's own pool" ;;
        haproxy) echo "HAProxy" ;;
        *) echo "$1" ;;
    esac
}

prepared() {
    local round text
    rm -f "$folder/ratios"
    for ((round = 0; round < rounds; round++)); do
        text=$(by_load onramp oltp_point_select 10000)
        by_load onramp oltp_point_select 10000 --db-ps-mode=auto |
            awk -v text="$text" '{ printf "%.2f\n", $1 / text }' >>"$folder/ratios"
    done
    say_ratio "$1" "prepared / text"
}

# A crowd may be larger than what the server's tables and this shell's limits allow for the others.
crowd() {
    local round few many
    rm -f "$folder/ratios" "$folder/tails"
    end_pool
    start_pool "clients_max = $((crowd + 2000))" "wait_ms_max = 60000"
    for ((round = 0; round < rounds; round++)); do
        few=$(by_load onramp oltp_point_select 1000)
        many=$(by_load onramp oltp_point_select "$crowd")
        awk -v few="$few" -v many="$many" 'BEGIN { printf "%.2f\n", many / few }' \
            >>"$folder/ratios"
        tail_by_mean >>"$folder/tails"
    done
    say_ratio "$1" "$crowd / 1000"
    mv "$folder/tails" "$folder/ratios"
    say_ratio "$1" "p99 / mean at $crowd"
    end_pool
    start_ordinary_pool
}

# Of the report that was written last.
tail_by_mean() {
    awk -v p99="$(field p99_ms "$folder/load.json")" -v mean="$(field mean_ms "$folder/load.json")" \
        'BEGIN { printf "%.2f\n", p99 / mean }'
}

start_ordinary_pool() { start_pool "clients_max = 12000" "wait_ms_max = 60000"; }

run_row() {
    case $1 in
        txn-64) compare "$1" load oltp_write_only 64 each own ;;
        txn-10000) compare "$1" load oltp_write_only 10000 each own ;;
        sysbench-64) compare "$1" sysbench oltp_point_select 64 each ;;
        sysbench-8000) compare "$1" sysbench oltp_point_select 8000 own haproxy ;;
        index-64) compare "$1" sysbench oltp_update_index 64 each ;;
        index-1000) compare "$1" sysbench oltp_update_index 1000 own ;;
        write-1000) compare "$1" sysbench oltp_read_write 1000 each own ;;
        prepared-10000) prepared "$1" ;;
        point-10000) compare "$1" load oltp_point_select 10000 each own ;;
        crowd) crowd "$1" ;;
        *) fail "ROWS: $1 is unknown" ;;
    esac
}

start_server "${server_options[@]}"
make_tables --tables="$tables" --table-size="$size"
start_own_pool
start_haproxy
[[ -z ${SOCKET:-} ]] || pool_address=$folder/socket
start_ordinary_pool
say "$(mariadbd --version); $(sysbench --version); $(nproc) cores; load \
$(cut -d ' ' -f 1-3 /proc/loadavg)"
for row in "${rows[@]}"; do run_row "$row"; done
