#!/usr/bin/env bash
#
# What: records the facts of this host and of a MariaDB on it three times, as `onramp doctor
#   --save-facts` writes them: as-is.json; small.json, where a network of its own has 1,000 ports,
#   a control group 400 threads and 1 GiB, and a user 1,024 descriptors and 600 threads; large.json,
#   after the doctor has set what 100,000 direct connections and a million through onramp need.
# Why: the doctor's checks are tested over recorded hosts, and not only over composed ones.
#   crates/doctor/src/catalog/fixtures/recorded/ holds what this has written.
# Changes on the machine: for large.json the kernel settings that `onramp doctor --apply` shows, for
#   some seconds; control groups named onramp-record; /tmp/onramp-record. Needs root and MariaDB.
# Restores: `onramp doctor --undo` sets the settings back, from the record in that folder, also after
#   Ctrl-C; servers, groups and the folder are removed.
#
# Usage: record.sh FOLDER [as-is|small|large]...     ONRAMP names a binary that is built already.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

# A name that says nothing about the machine, since paths are among the facts.
work=/tmp/onramp-record
socket=$work/socket
export PATH="$PATH:/usr/sbin:/sbin"

# inside FILE SERVER_OPTION...: starts a server and records; runs within the limits already.
inside() {
    local file=$1
    shift
    mariadbd --no-defaults --datadir="$work/data" --socket="$socket" --pid-file="$work/pid" \
        --port=3306 --bind-address=127.0.0.1 --skip-log-bin --innodb-buffer-pool-size=64M \
        --user="$(id -u)" "$@" 2>"$work/log" &
    local server=$! tries=0 status=0
    until [[ -S $socket && -s $work/pid ]]; do
        if ((++tries > 150)) || ! kill -0 "$server" 2>/dev/null; then
            tail -5 "$work/log" >&2
            fail "the server did not start"
        fi
        sleep 0.1
    done
    # Status 1 says that some number is not reached, which is no matter here.
    "$work/onramp" doctor --target "mysql://root@/?socket=$socket" --save-facts "$file" \
        >"$work/said" || status=$?
    kill "$server"
    wait "$server" || true
    rm -f "$socket" "$work/pid"
    ((status <= 1)) || fail "the doctor ended with status $status"
}

if [[ ${1:-} == inside ]]; then
    inside "${@:2}"
    exit 0
fi

((EUID == 0)) || fail "recording needs root, for limits and namespaces"
(($# >= 1)) || fail "usage: record.sh FOLDER [as-is|small|large]..."
folder=$(realpath "$1")
shift
want_mariadb
install_missing
if [[ -z ${ONRAMP:-} ]]; then
    need_cargo
    want_compiler
    install_missing
    cargo build --release --locked
    ONRAMP=$(release_binary)
fi

# The hierarchies in which groups bound threads and memory: one of version 2, two of version 1.
groups=(/sys/fs/cgroup)
[[ ! -d /sys/fs/cgroup/pids ]] || groups=(/sys/fs/cgroup/pids /sys/fs/cgroup/memory)
record=$work/undo.json

undo() {
    [[ ! -e $record ]] || "$work/onramp" doctor --undo --yes --record "$record" >&2
}
cleanup() {
    undo || say "settings are not back yet: $work/onramp doctor --undo --record $record"
    local group
    for group in "${groups[@]}"; do
        [[ ! -d $group/onramp-record ]] || rmdir "$group/onramp-record"
    done
    [[ -e $record ]] || rm -rf "$work"
}
mkdir "$work" || fail "$work is there; another run, or what one left"
trap cleanup EXIT
trap 'exit 130' INT TERM
cp "$ONRAMP" "$work/onramp"

# fresh_data USER: an installed data folder that belongs to the user.
fresh_data() {
    rm -rf "$work/data" "$work/log" "$work/said"
    mariadb-install-db --no-defaults --datadir="$work/data" --skip-test-db --user="$1" \
        --auth-root-authentication-method=normal >/dev/null
    chown "$1" "$work"
}

# bound FILE VALUE: sets a limit of the group in the hierarchy that has it.
bound() {
    local group
    for group in "${groups[@]}"; do
        [[ ! -e $group/onramp-record/$1 ]] || echo "$2" >"$group/onramp-record/$1"
    done
}

# grouped COMMAND...: runs it in the group, which keeps paths of the machine out of the facts.
grouped() {
    local group
    (
        for group in "${groups[@]}"; do
            echo "$BASHPID" >"$group/onramp-record/cgroup.procs"
        done
        exec "$@"
    )
}

for group in "${groups[@]}"; do
    mkdir "$group/onramp-record"
done
[[ ${groups[0]} == */pids ]] || echo "+pids +memory" >/sys/fs/cgroup/cgroup.subtree_control

record_as_is() {
    fresh_data root
    grouped bash "$0" inside "$work/as-is.json"
}

record_small() {
    fresh_data nobody
    bound pids.max 400
    bound memory.max $((1 << 30))
    bound memory.limit_in_bytes $((1 << 30))
    # shellcheck disable=SC2016
    grouped unshare --net sh -c 'ip link set lo up &&
        echo 20000 20999 >/proc/sys/net/ipv4/ip_local_port_range && exec "$@"' sh \
        prlimit --nofile=1024:1024 --nproc=600:600 \
        setpriv --reuid nobody --regid nogroup --clear-groups --inh-caps=-all -- \
        bash "$0" inside "$work/small.json"
    bound pids.max max
    bound memory.max max
    bound memory.limit_in_bytes -1
}

record_large() {
    fresh_data root
    # The process is this shell, so that the server inherits what is set, and no other server is
    # found instead.
    local options=(--yes --record "$record" --apply --server-pid $$)
    # What this user may not set stays as it is, and the status says so.
    "$work/onramp" doctor "${options[@]}" --connections 100000 --way direct >&2 || true
    "$work/onramp" doctor "${options[@]}" --connections 1000000 --way onramp >&2 || true
    grouped bash "$0" inside "$work/large.json" --max-connections=100000 --back-log=65535 \
        --max-prepared-stmt-count=1048576 --skip-name-resolve --thread-handling=pool-of-threads
    undo
}

(($# > 0)) || set -- as-is small large
for name in "$@"; do
    "record_${name//-/_}"
    cp "$work/$name.json" "$folder/$name.json"
    say "recorded $folder/$name.json"
done
