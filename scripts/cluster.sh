#!/usr/bin/env bash
#
# What: a cluster of three real servers on 127.0.0.1 to 127.0.0.3, on one port:
#   cluster.sh mariadb|mysql    a writer, db1, and two replicas, semi-synchronous, with GTIDs
#   cluster.sh galera           three nodes of MariaDB with Debian's galera-4
#   cluster.sh group            MySQL's Group Replication, db1 the primary
#   It prints NAME ADDRESS PID FOLDER for each server, then `ready FOLDER`, and ends them all when its
#   standard input ends, or by SIGTERM. Then, in another shell:
#   cluster.sh sql FOLDER/db1 TEXT...     runs a text there as root
#   cluster.sh start FOLDER/db1           starts a server again that was killed; prints its pid
#   cluster.sh promote FOLDER/db2         as an orchestrator: db2 takes the writes; those of the others
#                                         that answer replicate from it
#   cluster.sh failover FOLDER            promotes the one that has most, and prints its name
#   cluster.sh rejoin FOLDER/db1          starts a server that was killed with the data of another
#                                         replica, which is restarted for it
#   cluster.sh cut|mend FOLDER/db1        takes the cable between it and the other two out, and back
#   With ONRAMP_NAMESPACES=1 (the same for all commands), and below `unshare -n`, each server has a
#   network namespace of its own, at 10.77.0.1 to 10.77.0.3; without it there is no cut.
#   With ONRAMP_DISK_MB, as root, each has a disk of its own of that size.
#   Each has the accounts app (password app, all rights) and monitor (monitor, what the pool needs).
#   A replica starts read-only, and so does a writer that comes back.
# Why: what a pool makes of several servers is true when real ones say so.
# Changes on the machine: a folder below /tmp, ports on loopback; about 150 MB of memory for each
#   MariaDB, 400 for each MySQL (target/mysql, or ONRAMP_MYSQL). As root, MariaDB runs as mysql.
# Restores: ends what it started, by pid, and removes the folder.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh
PATH="$PATH:/usr/sbin"
tries_max=300

# The tests skip what ends so.
not_installed() {
    printf '%s\n' "onramp: $*" >&2
    exit 77
}

sql() {
    local where=$1
    shift
    mariadb --no-defaults -S "$where/socket" -uroot -N -e "$*"
}

# start NODE: in the background; its pid is in NODE/pid.
start() {
    setsid bash -c 'echo $$ >"$0/pid"; exec "$0/run"' "$1" </dev/null >>"$1/log" 2>&1 &
    local tries=0
    until sql "$1" 'SELECT 1' >/dev/null 2>&1; do
        ((++tries < tries_max)) || fail "$1 did not start: $(tail -3 "$1/log")"
        sleep 0.1
    done
}

port_of() { sed -n 's/.*--port=\([0-9]*\).*/\1/p' "$1/run"; }
network=127.0.0
[[ -z ${ONRAMP_NAMESPACES:-} ]] || network=10.77.0
host_of() { echo "$network.${1##*/db}"; }

# follow NODE SOURCE
follow() {
    local port
    port=$(port_of "$2")
    if grep -q mariadbd "$1/run"; then
        sql "$1" "STOP SLAVE; CHANGE MASTER TO MASTER_HOST='$(host_of "$2")', MASTER_PORT=$port,
            MASTER_USER='repl', MASTER_PASSWORD='repl', MASTER_CONNECT_RETRY=1,
            MASTER_HEARTBEAT_PERIOD=1, MASTER_USE_GTID=slave_pos; START SLAVE; SET GLOBAL read_only=1"
    else
        sql "$1" "STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_HOST='$(host_of "$2")',
            SOURCE_PORT=$port, SOURCE_USER='repl', SOURCE_PASSWORD='repl', SOURCE_CONNECT_RETRY=1,
            SOURCE_HEARTBEAT_PERIOD=1, SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1;
            START REPLICA; SET GLOBAL super_read_only=1"
    fi
}

promote() {
    local node
    if grep -q mariadbd "$1/run"; then
        sql "$1" 'STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only=0'
    else
        sql "$1" 'STOP REPLICA; RESET REPLICA ALL; SET GLOBAL super_read_only=0, read_only=0'
    fi
    for node in "${1%/*}"/db*; do
        [[ $node == "$1" ]] || ! sql "$node" 'SELECT 1' >/dev/null 2>&1 || follow "$node" "$1"
    done
}

# drained NODE: it hears its source no more, and has applied what it has received. Prints how many
# transactions it has.
drained() {
    if grep -q mariadbd "$1/run"; then
        sql "$1" 'STOP SLAVE IO_THREAD'
        local tries=0
        until sql "$1" 'SHOW SLAVE STATUS' | grep -q 'has read all relay log'; do
            [[ -n $(sql "$1" 'SHOW SLAVE STATUS') ]] && ((++tries < tries_max)) || break
            sleep 0.02
        done
        sql "$1" 'SELECT @@gtid_current_pos' | sed 's/.*-//'
    else
        sql "$1" "STOP REPLICA IO_THREAD;
            DO WAIT_FOR_EXECUTED_GTID_SET((SELECT RECEIVED_TRANSACTION_SET
                FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME=''), 30);
            SELECT @@global.gtid_executed" |
            tr ',:' '\n\n' | awk -F- '/^ *[0-9]+(-[0-9]+)?$/ { sum += $NF - $1 + 1 } END { print sum + 0 }'
    fi
}

failover() {
    local node has best='' most=-1
    for node in "$1"/db*; do
        sql "$node" 'SELECT 1' >/dev/null 2>&1 || continue
        has=$(drained "$node")
        ((${has:-0} <= most)) || { best=$node most=${has:-0}; }
    done
    promote "$best"
    echo "${best##*/}"
}

rejoin() {
    local node from='' pid
    for node in "${1%/*}"/db*; do
        [[ $node == "$1" || -z $(sql "$node" 'SHOW SLAVE STATUS' 2>/dev/null ||
            sql "$node" 'SHOW REPLICA STATUS' 2>/dev/null) ]] || from=$node
    done
    pid=$(cat "$from/pid")
    kill "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
    rm -rf "$1/data"
    cp -a "$from/data" "$1/data"
    rm -f "$1/data/auto.cnf"
    start "$from"
    start "$1"
}

# Packets for an address that nobody has are lost without a word.
cable() {
    local node other
    for node in "${1%/*}"/db*; do
        for other in "${1%/*}"/db*; do
            [[ $node != "$other" && ($node == "$1" || $other == "$1") ]] || continue
            local neighbour=(nsenter -t "$(cat "$node/host")" -n ip neigh)
            case $2 in
            cut) "${neighbour[@]}" replace "$(host_of "$other")" lladdr 02:00:00:00:00:99 dev eth0 nud permanent ;;
            mend) "${neighbour[@]}" delete "$(host_of "$other")" dev eth0 ;;
            esac
        done
    done
}

case ${1:-} in
sql) shift; sql "$@"; exit ;;
start) start "$2"; cat "$2/pid"; exit ;;
promote) promote "$2"; exit ;;
failover) failover "$2"; exit ;;
rejoin) rejoin "$2"; exit ;;
cut | mend) cable "$2" "$1"; exit ;;
mariadb | mysql | galera | group) kind=$1 ;;
*) fail "cluster.sh mariadb|mysql|galera|group; see its head" ;;
esac

have mariadb || not_installed "needs mariadb-client"
folder=$(mktemp -d /tmp/onramp-cluster.XXXXXX)
chmod 755 "$folder"
((EUID != 0)) || chown mysql: "$folder"
end_all() {
    local file pid
    for file in "$folder"/db*/{pid,host}; do
        pid=$(cat "$file" 2>/dev/null) && kill -9 "$pid" 2>/dev/null || true
    done
    for file in "$folder"/db*/pid; do
        pid=$(cat "$file" 2>/dev/null) || continue
        while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
    done
    [[ -z ${ONRAMP_DISK_MB:-} ]] || umount "${nodes[@]}"
    rm -rf "$folder"
}
trap end_all EXIT
trap 'exit 130' INT TERM HUP

# free_port: one that nobody listens on at any of the three addresses; below those of connections.
free_port() {
    local port host
    while port=$((10000 + RANDOM % 20000)); do
        for host in $network.{1..3}; do
            ! (: <>"/dev/tcp/$host/$port") 2>/dev/null || continue 2
        done
        echo "$port"
        return
    done
}

as_user=()
[[ $EUID != 0 ]] || as_user=(--user=mysql)
mysql_run=${ONRAMP_MYSQL:-target/mysql}/run
nodes=("$folder"/db{1..3})

# make_hosts: a namespace for each server, and a bridge to it from this one.
make_hosts() {
    local node number
    [[ $(readlink /proc/self/ns/net) != "$(readlink /proc/1/ns/net)" ]] ||
        fail "ONRAMP_NAMESPACES: run this below 'unshare -n'"
    ip link set lo up
    ip link add bridge type bridge
    ip address add "$network.254/24" dev bridge
    ip link set bridge up
    for node in "${nodes[@]}"; do
        number=${node##*/db}
        unshare -n sleep infinity </dev/null >/dev/null 2>&1 &
        echo $! >"$node/host"
        # No `wait` waits for it.
        disown
        until [[ $(readlink "/proc/$!/ns/net") != "$(readlink /proc/self/ns/net)" ]]; do sleep 0.01; done
        ip link add "cable$number" type veth peer name eth0 netns $!
        ip link set "cable$number" master bridge up
        nsenter -t $! -n bash -c "ip link set lo up; ip address add $network.$number/24 dev eth0; ip link set eth0 up"
    done
}

# The first data of all three: made once, and copied.
make_data() {
    if [[ $kind == mariadb || $kind == galera ]]; then
        have mariadbd || not_installed "needs mariadb-server"
        mariadb-install-db --no-defaults --datadir="$folder/data" --skip-test-db --tmpdir="$folder" \
            --auth-root-authentication-method=normal "${as_user[@]}" >"$folder/log" 2>&1 ||
            fail "no data: $(tail -3 "$folder/log")"
    else
        [[ -x $mysql_run ]] || not_installed "no MySQL; run scripts/get-mysql.sh, or set ONRAMP_MYSQL"
        mysql_run=$(realpath "$mysql_run")
        "$mysql_run" mysqld --no-defaults --datadir="$folder/data" --initialize-insecure \
            "${as_user[@]/mysql/root}" >"$folder/log" 2>&1 ||
            fail "no data: $(tail -3 "$folder/log")"
        rm -f "$folder/data/auto.cnf"
    fi
    local node
    for node in "${nodes[@]}"; do cp -a "$folder/data" "$node/data"; done
    rm -rf "$folder/data"
}

# write_run NODE OPTION...: the command that starts it.
write_run() {
    local node=$1 program user=("${as_user[@]}") enter=()
    shift
    [[ ! -e $node/host ]] || enter=(nsenter -t "$(cat "$node/host")" -n)
    program=(mariadbd --no-defaults --skip-name-resolve --innodb-buffer-pool-size=32M)
    if [[ $kind == mysql || $kind == group ]]; then
        user=("${as_user[@]/mysql/root}")
        program=("$mysql_run" mysqld --no-defaults --mysqlx=OFF --skip-name-resolve
            --innodb-buffer-pool-size=32M --secure-file-priv=NULL)
    fi
    {
        printf '#!/usr/bin/env bash\nexec'
        printf ' %q' "${enter[@]}" "${program[@]}" "${user[@]}" --datadir="$node/data" --tmpdir="$node" \
            --socket="$node/socket" --bind-address="$(host_of "$node")" --port="$port" \
            --report-host="$(host_of "$node")" --server-id="${node##*/db}" --log-bin=log --binlog-format=ROW "$@"
        printf '\n'
    } >"$node/run"
    chmod +x "$node/run"
    ((EUID != 0)) || chown -R mysql: "$node"
}

make_accounts() {
    local rights='PROCESS, RELOAD, REPLICATION CLIENT, SYSTEM_VARIABLES_ADMIN, CONNECTION_ADMIN,
        REPLICATION_SLAVE_ADMIN, GROUP_REPLICATION_ADMIN'
    [[ $kind == mysql || $kind == group ]] || rights='PROCESS, RELOAD, BINLOG MONITOR, SLAVE MONITOR,
        READ ONLY ADMIN, REPLICATION SLAVE ADMIN'
    sql "$1" "CREATE DATABASE app;
        CREATE USER repl IDENTIFIED BY 'repl'; GRANT REPLICATION SLAVE ON *.* TO repl;
        CREATE USER app IDENTIFIED BY 'app'; GRANT ALL ON *.* TO app WITH GRANT OPTION;
        CREATE USER monitor IDENTIFIED BY 'monitor'; GRANT $rights ON *.* TO monitor"
    [[ $kind != group ]] || sql "$1" "GRANT SELECT ON performance_schema.* TO monitor;
        GRANT BACKUP_ADMIN, GROUP_REPLICATION_STREAM, CONNECTION_ADMIN ON *.* TO repl"
}

replicate() {
    local node
    for node in "${nodes[@]}"; do
        write_run "$node" --read-only=1 "$@"
        start "$node" &
    done
    wait
    promote "${nodes[0]}"
    make_accounts "${nodes[0]}"
}

# A killed node leaves after 10 seconds. With less, a node that a busy machine holds up for as long is
# taken for lost too, and the last of three takes no writes.
start_galera() {
    local library node all= host base
    library=$(find /usr/lib -name 'libgalera_smm.so' 2>/dev/null | head -1)
    [[ -n $library ]] && have rsync || not_installed "galera needs the packages galera-4 and rsync"
    base=$(free_port)
    for node in "${nodes[@]}"; do all+=",$(host_of "$node"):$base"; done
    for node in "${nodes[@]}"; do
        host=$(host_of "$node")
        # shellcheck disable=SC2054
        local options=(--wsrep-on=ON --wsrep-provider="$library" --innodb-autoinc-lock-mode=2
            --wsrep-cluster-name=onramp --wsrep-sst-method=rsync --wsrep-node-name="${node##*/}"
            --wsrep-cluster-address="gcomm://${all#,}" --wsrep-node-address="$host:$base"
            --wsrep-node-incoming-address="$host:$port" --wsrep-sst-receive-address="$host:$((base + 2))"
            --wsrep-provider-options="base_host=$host;base_port=$base;gmcast.listen_addr=tcp://$host:$base;ist.recv_addr=$host:$((base + 1));gcache.size=16M;evs.suspect_timeout=PT10S;evs.inactive_timeout=PT30S;evs.keepalive_period=PT0.5S;evs.inactive_check_period=PT0.5S")
        write_run "$node" "${options[@]}"
    done
    # Only the first start of the first node makes the cluster.
    cp "${nodes[0]}/run" "$folder/run"
    sed -i '$s/$/ --wsrep-new-cluster/' "${nodes[0]}/run"
    start "${nodes[0]}"
    cp "$folder/run" "${nodes[0]}/run"
    start "${nodes[1]}"
    start "${nodes[2]}"
    make_accounts "${nodes[0]}"
}

# Members want an address that an interface has: on loopback one, and three ports.
group_host() { [[ -n ${ONRAMP_NAMESPACES:-} ]] && echo "$network.$1" || echo 127.0.0.1; }

# A killed member is expelled after 10 seconds, as a node of Galera.
start_group() {
    local node seeds= base
    base=$(free_port)
    for node in 1 2 3; do seeds+=",$(group_host $node):$((base + node))"; done
    for node in "${nodes[@]}"; do
        write_run "$node" --plugin-load-add=group_replication.so \
            --loose-group-replication-group-name=aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa \
            --loose-group-replication-local-address="$(group_host "${node##*/db}"):$((base + ${node##*/db}))" \
            --loose-group-replication-group-seeds="${seeds#,}" \
            --loose-group-replication-member-expel-timeout=5 \
            --loose-group-replication-recovery-get-public-key=ON --gtid-mode=ON \
            --loose-group-replication-start-on-boot=OFF --enforce-gtid-consistency=ON
        start "$node" &
    done
    wait
    make_accounts "${nodes[0]}"
    local join="CHANGE REPLICATION SOURCE TO SOURCE_USER='repl', SOURCE_PASSWORD='repl'
        FOR CHANNEL 'group_replication_recovery'; START GROUP_REPLICATION"
    sql "${nodes[0]}" 'SET GLOBAL group_replication_bootstrap_group=ON'
    sql "${nodes[0]}" "$join"
    sql "${nodes[0]}" 'SET GLOBAL group_replication_bootstrap_group=OFF'
    for node in "${nodes[@]:1}"; do
        sql "$node" "RESET BINARY LOGS AND GTIDS; $join"
        sed -i 's/start-on-boot=OFF/start-on-boot=ON/' "$node/run"
    done
    sed -i 's/start-on-boot=OFF/start-on-boot=ON/' "${nodes[0]}/run"
}

mkdir "${nodes[@]}"
for node in "${nodes[@]}"; do
    [[ -z ${ONRAMP_DISK_MB:-} ]] || mount -t tmpfs -o "size=${ONRAMP_DISK_MB}m" disk "$node"
done
[[ -z ${ONRAMP_NAMESPACES:-} ]] || make_hosts
port=$(free_port)
make_data
case $kind in
mariadb)
    replicate --gtid-strict-mode=1 --log-slave-updates --rpl-semi-sync-master-enabled=1 \
        --rpl-semi-sync-slave-enabled=1 --rpl-semi-sync-master-timeout=60000 \
        --rpl-semi-sync-master-wait-no-slave=0
    ;;
mysql)
    replicate --gtid-mode=ON --enforce-gtid-consistency=ON \
        --plugin-load-add='rpl_semi_sync_source=semisync_source.so;rpl_semi_sync_replica=semisync_replica.so' \
        --loose-rpl-semi-sync-source-enabled=1 --loose-rpl-semi-sync-replica-enabled=1 \
        --loose-rpl-semi-sync-source-timeout=60000 \
        --loose-rpl-semi-sync-source-wait-no-replica=0
    ;;
galera) start_galera ;;
group) start_group ;;
esac
for node in "${nodes[@]}"; do
    echo "${node##*/} $(host_of "$node"):$port $(cat "$node/pid") $node"
done
echo "ready $folder"
while read -r _; do :; done
