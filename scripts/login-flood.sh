#!/usr/bin/env bash
#
# What: what a flood of failed logins costs others: 32 clients ask short questions, by themselves and
#   beside FLOOD full authentications of caching_sha2_password with random bytes for the encrypted
#   password, again and again, AT_ONCE at a time, from one address and from SOURCES. In turns; prints
#   the latencies of the 32, and how the flood was answered.
# Why: each of those makes the pool decrypt with its RSA key, which costs more than a hundred
#   statements.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server, the pool and the flood, and removes the folder.
#
# FLOOD (12000), AT_ONCE (100), SOURCES (4000), SECONDS_EACH (10) and ROUNDS (3) may be set in the
# environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

flood=${FLOOD:-12000}
at_once=${AT_ONCE:-100}
sources=${SOURCES:-4000}
seconds=${SECONDS_EACH:-10}
rounds=${ROUNDS:-3}

get_ready -p onramp -p testkit --bin onramp --example heavy --example login_flood
heavy=${HEAVY:-$(dirname "$binary")/examples/heavy}
login_flood=${LOGIN_FLOOD:-$(dirname "$binary")/examples/login_flood}

start_server
pool_user=('name = "app"' 'password = "app"' '[[user]]' 'name = "flooded"' 'password = "flooded"'
    'auth = "caching_sha2_password"' 'backend_user = "app"' 'backend_password = "app"')
start_pool "clients_max = 5000"

work() {
    printf '%-24s %s\n' "$1" "$("$heavy" "127.0.0.1:$pool_port" none 0 "$seconds" "$pool_pid")"
}

# beside SOURCES: the same beside floods that begin again as long as it takes.
beside() {
    "$login_flood" flood "127.0.0.1:$pool_port" flooded 10000000 "$at_once" "$1" \
        >"$folder/flood" 2>&1 &
    local pid=$!
    work "beside it, $1 addresses"
    kill "$pid"
    wait "$pid" 2>/dev/null || true
}

for ((round = 0; round < rounds; round++)); do
    work alone
    beside 1
    work alone
    beside "$sources"
done
for from in 1 "$sources"; do
    printf '%s from %s addresses: ' "$flood" "$from"
    "$login_flood" flood "127.0.0.1:$pool_port" flooded "$flood" "$at_once" "$from" | paste -sd' '
done
take_census
grep -oE '(denied|refused|password[a-z-]*)"?: [0-9]+' <<<"$census" | paste -sd' '
