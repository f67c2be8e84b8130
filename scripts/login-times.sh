#!/usr/bin/env bash
#
# What: whether a failed login tells a known name from an unknown one. In front of MariaDB, and of
#   MySQL where there is one, for users of the settings (each plugin, with a password and with its
#   hash only) and for accounts of the server (auth = "server"): COUNT logins with a known name and a
#   wrong password, and COUNT with an unknown name, in turn, one at a time. Fails if any packet
#   differs. Prints percentiles of both, and how often an unknown name took longer.
# Why: a pool that answers one of them otherwise, or sooner, tells anybody which accounts it has.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the servers run from a folder below /tmp on free ports.
# Restores: ends the servers and the pools, and removes the folder.
#
# COUNT (10000) may be set in the environment. MySQL is left out where there is none
# (scripts/get-mysql.sh, or ONRAMP_MYSQL).

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

count=${COUNT:-10000}

get_ready -p onramp -p testkit --bin onramp --example login_flood
login_flood=${LOGIN_FLOOD:-$(dirname "$binary")/examples/login_flood}

# measure PLUGIN: on the pool that runs.
measure() {
    "$login_flood" time "127.0.0.1:$pool_port" known where "$count" "$1"
    end_pool
}

# log_in: once, so that the pool learns of the password what it can.
log_in() {
    "$binary" load select run --connections 1 --events 1 \
        --target "mysql://known:app@127.0.0.1:$pool_port/sbtest" >"$folder/load.log" 2>&1 ||
        fail "no login: $(tail -3 "$folder/load.log")"
}

# measure_all SERVER PLUGIN: PLUGIN is that of the server's accounts.
measure_all() {
    local plugin proof
    pool_backend=()
    for plugin in mysql_native_password caching_sha2_password; do
        for proof in 'password = "app"' "password_hash = \"$hash\""; do
            pool_user=('name = "known"' "$proof" "auth = \"$plugin\""
                'backend_user = "app"' 'backend_password = "app"')
            start_pool
            printf '%s, %s, %s\n' "$1" "$plugin" "${proof%% *}"
            [[ $proof != password_hash* ]] || log_in
            measure "$plugin"
        done
    done
    pool_user=()
    pool_backend=('monitor_user = "monitor"' 'monitor_password = "monitor"')
    start_pool 'auth = "server"'
    printf '%s, %s, auth = "server"\n' "$1" "$2"
    log_in
    measure "$2"
}

start_server
# Of mysql_native_password, for the password `app`.
hash=$(admin -Ne "SELECT PASSWORD('app')")
# Each account may be asked for one plugin only, so that a name does not choose it.
admin -e "CREATE USER known@'%' IDENTIFIED BY 'app'; GRANT ALL ON sbtest.* TO known@'%';
    CREATE USER monitor@'%' IDENTIFIED BY 'monitor';
    GRANT SELECT ON mysql.global_priv TO monitor@'%'"
measure_all MariaDB mysql_native_password

mysql=${ONRAMP_MYSQL:-target/mysql}/run
if [[ ! -x $mysql ]]; then
    printf 'MySQL: left out, there is none\n'
    exit 0
fi
start_mysql "$mysql"
tell -e "CREATE USER known@'%' IDENTIFIED BY 'app'; GRANT ALL ON *.* TO known@'%';
    CREATE USER monitor@'%' IDENTIFIED BY 'monitor'; GRANT SELECT ON mysql.user TO monitor@'%'"
measure_all MySQL caching_sha2_password
