#!/usr/bin/env bash
#
# What: memory of an idle client of the pool, and of an idle connection of the load generator: the
#   growth of the pool's resident memory with CLIENTS connections, and load's last lines.
# Why: who sizes a host needs the figure of this build on this machine. The kernel's memory of the
#   sockets is not in it.
# Changes on the machine: table sbtest1 in the schema sbtest of the server.
# Restores: drops the table, ends pool and load.
#
# PW is the password of the account USER_NAME (app), which the server at SERVER (127.0.0.1:3306) has;
# CLIENTS (100000) and PORT (6033) may be set too.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
: "${PW:?the password of the account}"
export PW
onramp=target/release/onramp
clients=${CLIENTS:-100000} user=${USER_NAME:-app} server=${SERVER:-127.0.0.1:3306} port=${PORT:-6033}
direct="mysql://$user@$server/sbtest?password_env=PW"

"$onramp" load select prepare --target "$direct"
"$onramp" pool --listen "127.0.0.1:$port" --backend "mysql://$user@$server?password_env=PW" \
    --clients-max "$clients" &
pool=$!
trap 'kill "$pool"; "$onramp" load select cleanup --target "$direct"' EXIT
rss() { awk '/^VmRSS/ { print $2 }' "/proc/$pool/status"; }
sleep 2
before=$(rss)
"$onramp" load select run --target "mysql://$user@127.0.0.1:$port/sbtest?password_env=PW" \
    --connections "$clients" --connect-rate 8000 --idle-time 20 --time 1 \
    2> >(while read -r line; do
        echo "$line"
        [[ $line == *"holding "* ]] &&
            echo "$((($(rss) - before) * 1024 / clients)) bytes for each idle client of the pool"
    done >&2)
