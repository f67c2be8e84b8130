#!/usr/bin/env bash
#
# What: measures what others feel of clients that send or take a lot: 1,000 clients that begin
#   compressed commands of 16 MiB and do not end them, 3 clients that loop replies of 40 MiB, 6 that
#   loop statements of 16 to 60 MiB, each through the pool, and where it makes sense without. Prints
#   the latencies of 32 clients that ask short questions meanwhile, and how far the pool's memory
#   has grown.
# Why: nobody may be held up, and no memory taken, by what one client sends.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server and the pool and removes the folder.
#
# SECONDS_EACH (10), ROUNDS (2) and FRAMES (1000) may be set in the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

seconds=${SECONDS_EACH:-10}
rounds=${ROUNDS:-2}
frames=${FRAMES:-1000}

get_ready -p onramp -p testkit --bin onramp --example heavy
heavy=${HEAVY:-$(dirname "$binary")/examples/heavy}

# A direct client needs the limit for its statements; the pool's room is that of the default.
start_server --max-allowed-packet=64M --max-connections=2000
start_pool "clients_max = 5000" "input_bytes_max = 134217728"

through() {
    printf '%-20s %s\n' "pool $1" \
        "$("$heavy" "127.0.0.1:$pool_port" "$1" "$2" "$seconds" "$pool_pid")"
}
direct() {
    printf '%-20s %s\n' "direct $1" \
        "$("$heavy" "127.0.0.1:$server_port" "$1" "$2" "$seconds")"
}

for ((round = 0; round < rounds; round++)); do
    direct none 0
    through none 0
    through zlib "$frames"
    direct replies 3
    through replies 3
    direct statements 6
    through statements 6
done
