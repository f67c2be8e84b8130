#!/usr/bin/env bash
#
# What: holds long TCP connections and asks over HTTP, first directly and then through HAProxy, and
#   prints the rates of success and failure of each.
# Why: it is the example of docs/long.md, to be run and changed: CONNECTIONS, HTTP_CONNECTIONS,
#   EVERY, TIME and PAYLOAD_SIZE are taken from the environment.
# Changes on the machine: installs HAProxy from Debian's packages if it is missing, and stops the
#   service that the package starts. Servers listen on 127.0.0.1, ports 19000 to 19003; HAProxy's
#   configuration is in a temporary directory.
# Restores: ends the servers and removes the directory, also after Ctrl-C. The package stays.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

# HAProxy has one descriptor table and needs two descriptors for a connection.
limit=$(ulimit -Hn)
[[ $limit == unlimited ]] && limit=1000000
most=$(((limit - 1000) / 2))
connections=${CONNECTIONS:-$((most < 9000 ? most : 9000))}
http_connections=${HTTP_CONNECTIONS:-1000}
every=${EVERY:-10s}
seconds=${TIME:-20s}
size=${PAYLOAD_SIZE:-2}
((connections <= most)) ||
    fail "CONNECTIONS=$connections: HAProxy has room for $most with a limit of $limit descriptors"

need_cargo
want_compiler
haproxy_is_new=no
have haproxy || haproxy_is_new=yes
want haproxy haproxy
install_missing
if [[ $haproxy_is_new == yes && -d /run/systemd/system ]]; then
    systemctl disable --now haproxy.service || say "haproxy.service is still enabled"
fi
cargo build --release --locked
onramp=$(release_binary)

directory=$(mktemp -d)
started=()
cleanup() {
    ((${#started[@]} == 0)) || kill "${started[@]}" 2>/dev/null || true
    wait
    rm -rf "$directory"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

cat >"$directory/haproxy.cfg" <<END
global
    maxconn $most
defaults
    timeout connect 10s
    timeout client 1h
    timeout server 1h
listen tcp
    mode tcp
    bind 127.0.0.1:19001
    server target 127.0.0.1:19000
listen http
    mode http
    option http-keep-alive
    bind 127.0.0.1:19003
    server target 127.0.0.1:19002
END

# start LOG WORDS COMMAND...: starts a server and waits until it has said WORDS in its log.
start() {
    local log=$directory/$1 words=$2
    shift 2
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

ulimit -Sn "$(ulimit -Hn)"
start tcp.log 'listening on' "$onramp" target tcp --listen 127.0.0.1:19000 \
    --every "$every" --payload-size "$size" --connections-max "$((connections * 2))"
start http.log 'listening on' "$onramp" target http --listen 127.0.0.1:19002 \
    --payload-size "$size" --connections-max "$((http_connections * 2))"
start haproxy.log 'Loading success' haproxy -W -db -V -f "$directory/haproxy.cfg"

hold() {
    printf '\n== %s long connections, a message of %s bytes every %s, %s\n' \
        "$connections" "$size" "$every" "$1"
    "$onramp" load tcp-hold --target "tcp://127.0.0.1:$2" --connections "$connections" \
        --every "$every" --payload-size "$size" --time "$seconds" --report-interval 0
}

ask() {
    printf '\n== HTTP, %s connections, %s\n' "$http_connections" "$1"
    "$onramp" load "http://127.0.0.1:$2/" --connections "$http_connections" \
        --expect-size "$size" "${@:3}" --time "$seconds" --report-interval 0
}

hold 'directly' 19000
hold 'through HAProxy' 19001
ask '0.1 to 1 s to think, directly' 19002 --think-time 100ms-1s
ask '0.1 to 1 s to think, through HAProxy' 19003 --think-time 100ms-1s
ask 'without a pause, directly' 19002
ask 'without a pause, through HAProxy' 19003
