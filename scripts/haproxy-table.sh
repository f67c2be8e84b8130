#!/usr/bin/env bash
#
# What: long connections through HAProxy in steps, more with each, and requests at a steady rate:
#   plain, under TLS and over HTTP/2. Prints a table with the rates of success and failure, and says
#   where it ended and why.
# Why: it repeats, as far as one machine goes, the tests of HAProxy with a million long connections
#   and 16,000 requests a second. STEPS (connections), TLS_STEPS, RATE (requests a second), EVERY,
#   TIME, CONNECT_RATE (connections a second) and MEMORY (MiB that a step may take) are taken from
#   the environment; RATE=0 and no steps leave a part out. 2,000 connections a second are those of
#   the published test: a message is due a period after its connection was accepted by the kernel,
#   and a proxy that has many yet to accept is late with it. ONRAMP names a binary in place of a release build. The column "all" is what the
#   whole machine has less of for each connection: nothing else should run. The columns of HAProxy
#   and load are their own memory for each.
# Changes on the machine: installs HAProxy and openssl from Debian's packages if they are missing, and
#   stops the service that HAProxy's package starts. Servers listen on 127.0.0.1 and on 127.0.1.x,
#   ports 19000 to 19006; certificates, configuration and logs are in a temporary directory.
# Restores: ends the servers and removes the directory, also after Ctrl-C. The packages stay.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

IFS=' ' read -r -a steps <<<"${STEPS-1000 5000 20000 50000 100000 200000 500000 1000000}"
IFS=' ' read -r -a tls_steps <<<"${TLS_STEPS-1000 5000 20000 50000 100000}"
rate=${RATE:-16000}
every=${EVERY:-10s}
seconds=${TIME:-20s}
connect_rate=${CONNECT_RATE:-2000}
memory=${MEMORY:-}
# A process has one descriptor table, and HAProxy needs two descriptors for a connection: more
# connections are shared out to more processes, which listen on the same port.
limit=$(ulimit -Hn)
[[ $limit == unlimited || $limit -gt 1000000 ]] && limit=1000000
each=$(((limit - 500) / 2))
# From one address to another there are so many ports, and the kernel looks for a free one by trying
# one after the other, at first of every second only: with most of those taken, connect() was half of
# all CPU time. So HAProxy gets an address of the target for a fifth of the ports.
read -r first last </proc/sys/net/ipv4/ip_local_port_range
ports=$(((last - first) / 5))
# What may be used of the memory that is available, in percent.
memory_share=80

want_compiler
haproxy_is_new=no
have haproxy || haproxy_is_new=yes
want haproxy haproxy
want openssl openssl
install_missing
if [[ $haproxy_is_new == yes && -d /run/systemd/system ]]; then
    systemctl disable --now haproxy.service || say "haproxy.service is still enabled"
fi
onramp=${ONRAMP:-}
if [[ -z $onramp ]]; then
    need_cargo
    cargo build --release --locked
    onramp=$(release_binary)
fi

directory=$(mktemp -d)
started=()
cleanup() {
    ((${#started[@]} == 0)) || kill "${started[@]}" 2>/dev/null || true
    wait
    rm -rf "$directory"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# start LOG WORDS COMMAND...: starts a server and waits until it has said WORDS in its log.
start() {
    local log=$directory/$1 words=$2
    shift 2
    # What the server before it has said would count as said.
    : >"$log"
    "$@" >"$log" 2>&1 &
    started+=($!)
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        grep -q "$words" "$log" && return 0
        kill -0 "${started[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    cat "$log" >&2
    fail "did not start: $*"
}

# stop: ends all servers.
stop() {
    ((${#started[@]} == 0)) || kill "${started[@]}" 2>/dev/null || true
    wait
    started=()
}

certificates() {
    local -a key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
    (
        cd "$directory"
        openssl req -x509 "${key[@]}" -keyout ca.key -out ca.pem -subj /CN=onramp-test -days 2
        openssl req -new "${key[@]}" -keyout server.key -out server.csr -subj /CN=127.0.0.1
        printf 'subjectAltName=IP:127.0.0.1\n' >names
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
            -extfile names -out server.crt
        cat server.crt server.key >server.pem
    ) 2>"$directory/openssl.log" || {
        cat "$directory/openssl.log" >&2
        fail "openssl could not make certificates"
    }
}

# configure CONNECTIONS: HAProxy's file, with as many addresses of the target as ports ask for.
configure() {
    local addresses=$((($1 + ports - 1) / ports)) n
    {
        printf '%s\n' global "    maxconn $each" defaults '    timeout connect 10s' \
            '    timeout client 1h' '    timeout server 1h' \
            'listen tcp' '    mode tcp' '    bind 127.0.0.1:19001' \
            "    bind 127.0.0.1:19002 ssl crt $directory/server.pem"
        for ((n = 1; n <= addresses; n++)); do
            printf '    server target%s 127.0.1.%s:19000\n' "$n" "$n"
        done
        printf '%s\n' 'listen http' '    mode http' '    option http-keep-alive' \
            '    bind 127.0.0.1:19004' \
            "    bind 127.0.0.1:19005 ssl crt $directory/server.pem alpn h2,http/1.1" \
            '    bind 127.0.0.1:19006 proto h2' '    server target 127.0.0.1:19003'
    } >"$directory/haproxy.cfg"
}

# proxies CONNECTIONS: as many processes of HAProxy as they need. Which of them takes a connection
# the kernel draws by lot, so each has room for a tenth more than its share.
proxies() {
    local count=$((($1 * 11 / 10 + each - 1) / each)) n
    ((count > 1 || $1 <= each)) || count=2
    ((count > 0)) || count=1
    configure "$1"
    for ((n = 0; n < count; n++)); do
        start "haproxy$n.log" 'Loading success' haproxy -W -db -V -f "$directory/haproxy.cfg"
    done
}

available_kib() {
    awk '/^MemAvailable/ { print $2 }' /proc/meminfo
}

# own_kib PID...: the memory of processes and of those that they have started, in KiB.
own_kib() {
    local pid
    {
        for pid in "$@"; do
            cat "/proc/$pid/smaps_rollup" 2>/dev/null || true
            pgrep -P "$pid" | while read -r pid; do
                cat "/proc/$pid/smaps_rollup" 2>/dev/null || true
            done
        done
    } | awk '/^Pss:/ { sum += $2 } END { print sum + 0 }'
}

# row WHAT CONNECTIONS HAPROXY ALL: a row of the table, from the report in the file and KiB for each
# connection.
row() {
    awk -v what="$1" -v connections="$2" -v haproxy="$3" -v all="$4" '
        /^generator:/ {
            for (i = 1; i < NF; i++) if ($i == "bytes") load = sprintf("%.1f", $(i - 1) / 1024)
        }
        /^connections:/ { stood = $4; failed = $6; lost = $10 }
        / % success/ { success = $1; failure = $4; rate = $7 }
        /^latency, ms:/ { mean = $4; for (i = 1; i < NF; i++) if ($i == "p99") p99 = $(i + 1) }
        END {
            gsub(",", "", mean); gsub(",", "", p99)
            printf "| %s | %s | %s | %s | %s | %s %% | %s %% | %s | %s | %s | %s | %s | %s |\n",
                what, connections, stood, failed, lost, success, failure, rate, mean, p99,
                haproxy, load, all
        }' "$directory/report"
}

# is_clean: every connection stood to the end and everything came.
is_clean() {
    grep -q '100.0000 % success' "$directory/report" &&
        grep -q '^connections:.* 0 failed to open, 0 lost' "$directory/report"
}

# load WHAT CONNECTIONS ARGUMENTS...: a run, whose report is in the file then.
load() {
    local what=$1 connections=$2
    shift 2
    "$onramp" load "$@" --connections "$connections" --report-interval 0 \
        >"$directory/report" 2>"$directory/progress" || tail -n 1 "$directory/progress" >&2
    local error
    while read -r error; do
        ends+=("$what, $connections connections: $error")
    done < <(sed -n 's/^error: *//p' "$directory/report")
}

# ask WHAT CONNECTIONS ARGUMENTS...: a run of requests and its row.
ask() {
    load "$@"
    row "$1" "$2" - -
}

# hold WHAT SCHEME PORT STEP...: more connections with each step, until something fails.
hold() {
    local what=$1 place=$2://127.0.0.1:$3 kib=0 connections before after needed room own most
    local -a certificate=()
    [[ $2 == tcp ]] || certificate=(--ca "$directory/ca.pem")
    shift 3
    (($# > 0)) || return 0
    for connections in "$@"; do
        needed=$((kib * connections / 1024))
        room=$(($(available_kib) / 1024 * memory_share / 100))
        [[ -z $memory || $memory -gt $room ]] || room=$memory
        if ((needed > room)); then
            ends+=("$what: $connections connections were not tried: at $kib KiB for each, HAProxy, \
load, target and the kernel's four sockets together, they need $needed MiB, and $room MiB may be used")
            return
        fi
        start target.log 'listening on' "$onramp" target tcp --listen 0.0.0.0:19000 \
            --every "$every" --connections-max "$((connections * 5 / 4))"
        proxies "$connections"
        before=$(available_kib)
        local -a haproxies=("${started[@]:1}")
        own=$(own_kib "${haproxies[@]}")
        # The least that is available while it runs, and the most that HAProxy has.
        (
            least=$before most=0
            while sleep 4; do
                now=$(available_kib)
                ((now >= least)) || least=$now
                now=$(own_kib "${haproxies[@]}")
                ((now <= most)) || most=$now
                printf '%s %s\n' "$least" "$most" >"$directory/memory"
            done
        ) &
        local watch=$!
        load "$what" "$connections" tcp-hold --target "$place" "${certificate[@]}" \
            --every "$every" --time "$seconds" --connect-rate "$connect_rate"
        kill "$watch" 2>/dev/null || true
        wait "$watch" 2>/dev/null || true
        stop
        read -r after most <"$directory/memory"
        kib=$((((before - after) + connections - 1) / connections))
        ((kib > 0)) || kib=1
        row "$what" "$connections" \
            "$(awk -v kib=$((most - own)) -v n="$connections" 'BEGIN { printf "%.1f", kib / n }')" \
            "$kib"
        if ! is_clean; then
            ends+=("$what: $connections connections did not all come through without a failure: \
$(sed -n 's/^messages: *//p' "$directory/report")")
            return
        fi
    done
    ends+=("$what: all steps passed; the last had $connections connections, $kib KiB for each")
}

# requests: the rows of requests. Connections think for 50 to 150 ms, so each asks ten times a second.
requests() {
    start target.log 'listening on' "$onramp" target http --listen 127.0.0.1:19003 \
        --connections-max "$((rate / 4))"
    proxies "$((rate / 5))"
    local -a think=(--think-time 50ms-150ms --timeout 10s --expect ok --time "$seconds")
    local asked=$((rate / 10))
    local -a secure=(https://127.0.0.1:19005/ --ca "$directory/ca.pem")
    ask "HTTP/1.1, $rate/s wanted" "$asked" http://127.0.0.1:19004/ "${think[@]}"
    ask "HTTP/1.1 under TLS, $rate/s wanted" "$asked" "${secure[@]}" "${think[@]}"
    ask "HTTP/2 under TLS, 10 streams, $rate/s wanted" "$((asked / 10))" "${secure[@]}" \
        --http-version 2 --streams 10 "${think[@]}"
    ask "HTTP/2, 10 streams, $rate/s wanted" "$((asked / 10))" http://127.0.0.1:19006/ \
        --http-version 2 --streams 10 "${think[@]}"
    stop
}

ends=()
certificates
ulimit -Sn "$(ulimit -Hn)"
say "HAProxy $(haproxy -v | awk 'NR == 1 { print $3 }'), $(nproc) cores," \
    "$(($(available_kib) / 1024)) MiB available, $limit descriptors a process: $each connections"
printf '\n| test | connections | stood | failed to open | lost | success | failure | a second | %s | %s |\n' \
    'mean ms | p99 ms' 'KiB for each: HAProxy | load | all'
printf '|---|---|---|---|---|---|---|---|---|---|---|---|---|\n'
hold "held, a message each $every" tcp 19001 "${steps[@]}"
hold "held under TLS, a message each $every" tls 19002 "${tls_steps[@]}"

((rate == 0)) || requests

printf '\n'
for end in "${ends[@]}"; do
    say "$end"
done
