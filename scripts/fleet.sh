#!/usr/bin/env bash
#
# What: onramp as the workers of a real Locust master: the rate of USERS users over 4 workers beside
#   the same without Locust, taking turns; what a request costs a worker beside Locust's own Python
#   client (PyMySQL with gevent); how long it takes, after a worker was killed, until its users
#   are elsewhere, for workers of both kinds; and the master's own page in headless Chromium: start
#   the users, watch, see failures, change the number, stop.
# Why: a fleet must not be slower than its machines alone, and must heal as Locust's own does.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes, and
#   Locust and PyMySQL from PyPI into a folder below /tmp, unless LOCUST names a `locust` that has
#   PyMySQL beside it; for the page also playwright, and Chromium (Debian). Server and pool run from
#   that folder on free ports.
# Restores: ends all of them and removes the folder.
#
# USERS (20000), SECONDS_EACH (15), ROUNDS (3), PARTS ("rate cost kill page") and PICTURES, a folder
# for pictures of the page, may be set in the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

users=${USERS:-20000}

parts=${PARTS:-rate cost kill page}
[[ " $parts " != *" page "* ]] || want chromium chromium
want python3 python3 python3-venv
get_ready --bin onramp
locust=${LOCUST:-}
if [[ -z $locust ]]; then
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install -q locust PyMySQL playwright ||
        fail "pip could not install Locust"
    locust=$folder/venv/bin/locust
fi
start_server --max-connections=1000 --back-log=4096 --table-open-cache=8000
make_tables --tables 1 --table-size 100000
start_pool "clients_max = $((users + 2000))" "backends_max = 32"
say "$("$locust" --version | cut -d ' ' -f 1-2); $(mariadbd --version); $(nproc) cores;" \
    "load $(cut -d ' ' -f 1-3 /proc/loadavg)"
"$(dirname "$(realpath -s "$locust")")/python3" scripts/fleet.py \
    --onramp "$binary" --locust "$locust" --folder "$folder" \
    --pool "mysql://app:app@127.0.0.1:$pool_port/sbtest" --socket "$folder/socket" \
    --pids "$server_pid,$pool_pid" \
    --users "$users" --seconds "${SECONDS_EACH:-15}" --rounds "${ROUNDS:-3}" \
    --parts "$parts" --chromium "$(command -v chromium || true)" --pictures "${PICTURES:-}"
