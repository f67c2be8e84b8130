#!/usr/bin/env bash
#
# What: measures what others feel of clients that send or take a lot: 1,000 clients that begin
#   compressed commands of 16 MiB and do not end them (zlib; zstd in front of MySQL), 3 clients that
#   loop replies of 40 MiB, 6 that loop statements of 16 to 60 MiB, 120 that loop four packed ones
#   of 16 MiB, 8 that send commands without end which need no server (of each kind, and packed,
#   under TLS, in a transaction, and without taking an answer), each through the pool, and where it
#   makes sense without. Prints the latencies of 32 clients (8 beside those floods) that ask short
#   questions meanwhile, how often the burden was done, and how far the pool's memory has grown.
#   Then 40 clients that read nothing of 100 MB each, on 16 backends, without a spool, with a full
#   one and with the default, beside clients of their account and of another, and 40 with a text of
#   its own each.
# Why: nobody may be held up, and no memory taken, by what one client sends.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the servers run from a folder below /tmp on free ports.
# Restores: ends the servers and the pools and removes the folder.
#
# Each burden runs twice: as fast as it goes, where the pool may carry more of it than the server
# does by itself, and with PACE milliseconds (1000) from one beginning to the next, where both carry
# the same. SECONDS_EACH (10), ROUNDS (2), FRAMES (1000) and MODES may be set in the environment.
# zstd is left out where there is no MySQL (scripts/get-mysql.sh, or ONRAMP_MYSQL).

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

seconds=${SECONDS_EACH:-10}
rounds=${ROUNDS:-2}
frames=${FRAMES:-1000}
pace=${PACE:-1000}
floods="flood-none flood-ping flood-empty flood-commit flood-set flood-reset flood-close"
floods+=" flood-error flood-ping-zlib flood-set-zlib flood-ping-tls flood-ping-open"
floods+=" flood-ping-unread flood-ping-zstd flood-set-zstd"
modes=${MODES:-"none zlib replies replies@$pace statements statements@$pace packed $floods unread zstd"}

want openssl openssl
get_ready -p onramp -p testkit --bin onramp --example heavy
heavy=${HEAVY:-$(dirname "$binary")/examples/heavy}
bounds=("clients_max = 5000" "input_bytes_max = 134217728")

# settle: until the server has worked off what the last run has left in its sockets.
settle() {
    local before=0 now=100
    while ((now - before > 3)); do
        sleep 0.3
        before=$now
        # MySQL runs beside MariaDB, which is idle then.
        now=$(for pid in $server_pid; do
            awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$pid/stat"
        done | awk '{ sum += $1 } END { print sum }')
    done
}

through() {
    settle
    printf '%-22s %s\n' "pool $1" \
        "$("$heavy" "127.0.0.1:$pool_port" "$1" "$2" "$seconds" "$pool_pid")"
}
direct() {
    settle
    printf '%-22s %s\n' "direct $1" \
        "$("$heavy" "127.0.0.1:$server_port" "$1" "$2" "$seconds")"
}

# A direct client needs the limit for its statements; the pool's room is that of the default.
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
    -keyout "$folder/key.pem" -out "$folder/cert.pem" 2>"$folder/openssl.log"
pool_tls=("[tls]" "cert = \"$folder/cert.pem\"" "key = \"$folder/key.pem\"")
start_server --max-allowed-packet=64M --max-connections=2000 --ssl-cert="$folder/cert.pem" \
    --ssl-key="$folder/key.pem"
admin sbtest -e 'CREATE TABLE forty (n INT PRIMARY KEY) SELECT seq AS n FROM seq_1_to_40'
start_pool "${bounds[@]}" "${pool_tls[@]}"
for ((round = 0; round < rounds; round++)); do
    for mode in $modes; do
        case $mode in
            zstd | *-zstd | unread) ;;
            zlib) through zlib "$frames" ;;
            none) direct none 0 && through none 0 ;;
            replies*) direct "$mode" 3 && through "$mode" 3 ;;
            packed) direct packed 120 && through packed 120 ;;
            statements*) direct "$mode" 6 && through "$mode" 6 ;;
            flood-*) direct "$mode" 8 && through "$mode" 8 ;;
            *) fail "MODES: $mode is unknown" ;;
        esac
    done
done

if [[ $modes == *unread* ]]; then
    admin sbtest -e 'CREATE USER other@"%" IDENTIFIED BY "other"; GRANT ALL ON sbtest.* TO other@"%";
        CREATE TABLE beside (i INT PRIMARY KEY, n INT) SELECT seq - 1 AS i, 0 AS n FROM seq_1_to_4;
        CREATE TABLE beside2 LIKE beside; INSERT INTO beside2 SELECT * FROM beside'
    pool_user+=('[[user]]' 'name = "other"' 'password = "other"')
    for spool in 0 16777216 default; do
        end_pool
        spool_bounds=("spool_folder = \"$folder\"")
        [[ $spool == default ]] || spool_bounds+=("spool_bytes_max = $spool")
        start_pool "${bounds[@]}" 'backends_max = 16' "${spool_bounds[@]}"
        printf 'spool_bytes_max = %s\n' "$spool"
        for ((round = 0; round < rounds; round++)); do
            through unread 0 && through unread 40 && through unread@other 40
            through unread-own 40
        done
    done
fi

mysql=${ONRAMP_MYSQL:-target/mysql}/run
if [[ $modes == *zstd* && -x $mysql ]]; then
    end_pool
    start_mysql "$mysql"
    start_pool "${bounds[@]}"
    for ((round = 0; round < rounds; round++)); do
        for mode in $modes; do
            case $mode in
                zstd) through none 0 && through zstd "$frames" ;;
                *-zstd) direct "$mode" 8 && through "$mode" 8 ;;
            esac
        done
    done
elif [[ $modes == *zstd* ]]; then
    printf 'zstd: left out, there is no MySQL\n'
fi
