#!/usr/bin/env bash
#
# What: whether the time of a failed login tells a known name from an unknown one. For each plugin,
#   with a password and with its hash only, COUNT logins with a known name and a wrong password, and
#   COUNT with an unknown name, in turn, one at a time. Prints percentiles of both, and how often an
#   unknown name took longer.
# Why: a pool that answers one of them sooner tells anybody which accounts it has.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server and the pools, and removes the folder.
#
# COUNT (10000) may be set in the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

count=${COUNT:-10000}

get_ready -p onramp -p testkit --bin onramp --example login_flood
start_server
# Of mysql_native_password, for the password `app`.
hash=$(admin -Ne "SELECT PASSWORD('app')")
for plugin in mysql_native_password caching_sha2_password; do
    for proof in 'password = "app"' "password_hash = \"$hash\""; do
        pool_user=('name = "known"' "$proof" "auth = \"$plugin\""
            'backend_user = "app"' 'backend_password = "app"')
        start_pool
        printf '%s, %s\n' "$plugin" "${proof%% *}"
        if [[ $proof == password_hash* ]]; then
            # The pool learns of the password what it can.
            "$binary" load select run --connections 1 --events 1 \
                --target "mysql://known:app@127.0.0.1:$pool_port/sbtest" >"$folder/load.log" 2>&1 ||
                fail "no login: $(tail -3 "$folder/load.log")"
        fi
        "$(dirname "$binary")/examples/login_flood" time "127.0.0.1:$pool_port" known where \
            "$count" "$plugin"
        end_pool
    done
done
