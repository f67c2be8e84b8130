# shellcheck shell=bash
#
# What: what scripts that measure begin with: get_ready, and start_server, start_pool and what
#   belongs to them: a private MariaDB with the schema sbtest and the account app, and the pool in
#   front of it. Source it in the root of the repository, do not run it.
# Changes on the machine: get_ready installs what is missing, as lib.sh describes; both run from a
#   folder below /tmp on free ports.
# Restores: ends both and removes the folder when the script ends, however it ends.
#
# Sets folder, server_port, pool_port and pool_pid; get_ready sets binary, the onramp to run.

# shellcheck source=scripts/lib.sh
source scripts/lib.sh

PATH="$PATH:/usr/sbin"
folder=$(mktemp -d /tmp/onramp-measure.XXXXXX)
server_pid=
pool_pid=
server_port=$((20000 + RANDOM % 5000))
pool_port=$((26000 + RANDOM % 5000))

end_all() {
    local pid
    for pid in $pool_pid $server_pid; do
        { kill "$pid" && wait "$pid"; } 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap end_all EXIT
trap 'exit 130' INT TERM

# get_ready WHAT...: installs what is missing and builds, for release, what of the workspace is
# named; nothing is built where ONRAMP names a binary that is there already.
get_ready() {
    need_cargo
    want_compiler
    want_mariadb
    install_missing
    build_release "$@"
    binary=${ONRAMP:-$(release_binary)}
}

# start_server OPTION...: options go to mariadbd.
start_server() {
    local -a as_root=()
    [[ $EUID != 0 ]] || as_root=(--user=root)
    # A server that starts removes the temporary tables of others from a folder that they share.
    mariadb-install-db --no-defaults --datadir="$folder/data" --tmpdir="$folder" --skip-test-db \
        --auth-root-authentication-method=normal "${as_root[@]}" >/dev/null
    mariadbd --no-defaults --datadir="$folder/data" --tmpdir="$folder" --socket="$folder/socket" \
        --port="$server_port" --bind-address=127.0.0.1 --skip-name-resolve \
        --innodb-buffer-pool-size=256M --performance-schema=OFF "${as_root[@]}" "$@" \
        2>"$folder/server.log" &
    server_pid=$!
    local tries=0
    until admin -e 'SELECT 1' >/dev/null 2>&1; do
        ((++tries < 100)) || fail "the server did not start: $(tail -3 "$folder/server.log")"
        sleep 0.2
    done
    admin -e "CREATE DATABASE sbtest; CREATE USER app@'%' IDENTIFIED BY 'app';
        GRANT ALL ON sbtest.* TO app@'%'"
}

# start_mysql RUN: a MySQL besides, in which `tell` asks as root; pools that are started then have it.
start_mysql() {
    local run=$1 tries=0
    local -a options=(--no-defaults "--datadir=$folder/mysql")
    [[ $EUID != 0 ]] || options+=(--user=root)
    server_port=$((32000 + RANDOM % 500))
    "$run" mysqld "${options[@]}" --initialize-insecure 2>"$folder/mysql.log"
    "$run" mysqld "${options[@]}" --port="$server_port" --bind-address=127.0.0.1 \
        --socket="$folder/mysql.socket" --mysqlx=OFF --max-connections=2000 \
        --secure-file-priv=NULL \
        2>>"$folder/mysql.log" &
    server_pid="$server_pid $!"
    until tell -e 'SELECT 1' >/dev/null 2>&1; do
        ((++tries < 200)) || fail "MySQL did not start: $(tail -3 "$folder/mysql.log")"
        sleep 0.2
    done
    tell -e "CREATE DATABASE sbtest; CREATE USER app@'%' IDENTIFIED BY 'app';
        GRANT ALL ON *.* TO app@'%'"
}

tell() { mariadb --no-defaults -S "$folder/mysql.socket" -uroot "$@"; }

# make_tables OPTION...: makes sysbench's tables, on the server itself.
make_tables() {
    "$binary" load oltp_read_write prepare "$@" \
        --target "mysql://app:app@127.0.0.1:$server_port/sbtest" >"$folder/tables.log" 2>&1 ||
        fail "no tables: $(tail -3 "$folder/tables.log")"
}

admin() { mariadb --no-defaults -S "$folder/socket" -uroot "$@"; }

# The user of the pools that follow, as lines of their configuration.
pool_user=('name = "app"' 'password = "app"')

# Where they reach the server; its port on loopback, unless set.
pool_address=

# Further lines of their section about the server.
pool_backend=()

# start_pool LINE...: lines of its configuration.
start_pool() {
    {
        printf '%s\n' "listen = [\"127.0.0.1:$pool_port\"]" "$@"
        printf '[backend]\naddress = "%s"\n' "${pool_address:-127.0.0.1:$server_port}"
        ((${#pool_backend[@]} == 0)) || printf '%s\n' "${pool_backend[@]}"
        ((${#pool_user[@]} == 0)) || printf '%s\n' '[[user]]' "${pool_user[@]}"
    } >"$folder/pool.toml"
    # What an earlier pool said must not be taken for this one's.
    rm -f "$folder/pool.log"
    "$binary" pool --config "$folder/pool.toml" 2>"$folder/pool.log" &
    pool_pid=$!
    await_pool
}

# await_pool: until it listens.
await_pool() {
    local tries=0
    until grep -qs 'listening on' "$folder/pool.log"; do
        kill -0 "$pool_pid" 2>/dev/null && ((++tries < 100)) ||
            fail "the pool did not start: $(tail -3 "$folder/pool.log")"
        sleep 0.1
    done
}

# take_census: sets `census` to the pool's line of counts.
take_census() {
    local before look
    before=$(grep -c event=census "$folder/pool.log") || true
    kill -USR1 "$pool_pid"
    for ((look = 0; $(grep -c event=census "$folder/pool.log") == before; look++)); do
        ((look < 300)) || fail "the pool has written no census for 30 s"
        sleep 0.1
    done
    census=$(grep event=census "$folder/pool.log" | tail -1)
}

# count NAME: of the census that was taken last.
count() {
    grep -oE "\b$1: [0-9]+" <<<"$census" | head -1 | grep -oE '[0-9]+$'
}

# await_counted NAME NUMBER PID LOG: until the census counts so many; the load PID, whose output is
# in LOG, must not end before.
await_counted() {
    local counted=0
    until ((counted >= $2)); do
        kill -0 "$3" 2>/dev/null || fail "the load has ended: $(tail -n 3 "$4")"
        take_census
        counted=$(count "$1") || fail "the census has no $1: $census"
    done
}

# pool_rss: bytes of the pool's resident memory.
pool_rss() { awk '/^VmRSS/ { print $2 * 1024 }' "/proc/$pool_pid/status"; }

# pool_ticks: the pool's CPU time so far, in ticks of the kernel.
pool_ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$pool_pid/stat"; }

# end_pool: ends it well; another may be started then.
end_pool() {
    kill "$pool_pid"
    wait "$pool_pid" || fail "the pool failed: $(tail -3 "$folder/pool.log")"
    pool_pid=
    pool_port=$((26000 + RANDOM % 5000))
}

# field NAME FILE...: the sum of a number in JSON files, of the line that names it first in each.
field() {
    local name=$1
    shift
    awk -v name="\"$name\":" '
        FNR == 1 { found = 0 }
        !found && $1 == name { sum += $2; found = 1 }
        END { print sum + 0 }
    ' "$@"
}
