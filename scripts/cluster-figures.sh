#!/usr/bin/env bash
#
# What: figures of several servers, each beside its goal:
#   cluster-figures.sh mariadb|mysql|galera|group [SECONDS [PART,...]]
#   failover    killed writers of a cluster under a bank, for SECONDS: from the first write that
#               another server takes to the first that the pool answers; clients disconnected
#   bank        faults of all kinds for SECONDS: transfers lost, doubled, wrongly reported
#   half        every second answer of the writer is late for SECONDS: changes of the writer
#   switchover  SWITCH TO under 1,000 clients, three times: errors, the longest statement
#   own-writes  p50 and p99 of a read 20 ms behind a write of the same client, on readers that are asked
#               for the write (read_consistency = "session") and on ones that are not ("none"), in
#               turns; mariadb and mysql
#   reads       reads a second of two readers, each on a core of its own, beside one server on one
#               core, behind the same pool; the reads cost the server milliseconds; mariadb and mysql
#   SECONDS are 10 unless given, of each run; the parts are all that the kind has.
# Why: docs/pool/several-servers.md promises them.
# Changes on the machine: what scripts/cluster.sh and scripts/cluster-faults.sh do; builds onramp for
#   release (or ONRAMP names it), and for failover, bank and half the end-to-end tests.
# Restores: all of it.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh
need_cargo

(($# >= 1)) || fail "cluster-figures.sh KIND [SECONDS [PART,...]]; see its head"
kind=$1 seconds=${2:-10}
replication=,own-writes,reads
[[ $kind == mariadb || $kind == mysql ]] || replication=
parts=,${3:-failover,bank,half,switchover$replication},
[[ $kind == mariadb || $kind == mysql || $parts != *,own-writes,* && $parts != *,reads,* ]] ||
    fail "own-writes and reads are of mariadb and mysql"
[[ -n ${ONRAMP:-} ]] || build_release --bin onramp
binary=${ONRAMP:-$(release_binary)}
pool_pid='' cluster_pid='' folder='' scratch=$(mktemp -d /tmp/onramp-figures.XXXXXX)
addresses=() pids=()
port=$((30000 + RANDOM % 2000))

wants() { [[ $parts == *,$1,* ]]; }
figure() { say "$kind, load $(cut -d ' ' -f 1 /proc/loadavg): $*"; }

end_all() {
    [[ -z $pool_pid ]] || { kill "$pool_pid" && wait "$pool_pid"; } 2>/dev/null || true
    if [[ -n $cluster_pid ]]; then
        exec {cluster_in}>&-
        eval "exec ${cluster[1]}>&-" 2>/dev/null || true
        wait "$cluster_pid" 2>/dev/null || true
    fi
    rm -rf "$scratch"
}
trap end_all EXIT
trap 'exit 130' INT TERM

# faults NAME [FAULT...]: what the servers and the bank went through, in $scratch/faults.
faults() {
    local name=$1 chosen=${2:-}
    scripts/cluster-faults.sh "$kind" "$seconds" 1 ${chosen:+"$chosen"} >"$scratch/faults" 2>&1 ||
        fail "$name: $(tail -5 "$scratch/faults")"
}
# told PATTERN: the last number of the run that stands in front of it.
told() { sed -n "s/.*[^0-9]\([0-9]*\) $1.*/\1/p" "$scratch/faults" | tail -1; }

start_cluster() {
    [[ -z $cluster_pid ]] || return 0
    coproc cluster { exec scripts/cluster.sh "$kind"; }
    cluster_pid=$!
    # Its own descriptor: bash closes the coprocess's behind its end.
    exec {cluster_in}>&"${cluster[1]}" {cluster_out}<&"${cluster[0]}"
    local name address pid
    while read -r name address pid _ <&"$cluster_out"; do
        [[ $name != ready ]] || { folder=$address; break; }
        addresses+=("$address") pids+=("$pid")
    done
    [[ -n $folder ]] || fail "the cluster did not start"
    "$binary" load oltp_point_select prepare --target "mysql://app:app@${addresses[0]}/app" \
        --table-size 10000 --tables 1 >"$scratch/tables" 2>&1 || fail "no tables: $(tail -3 "$scratch/tables")"
    sleep 2
}

# start_pool USER-LINES SERVER...: the servers by their numbers, the first the writer.
start_pool() {
    local lines=$1 server words=$kind
    shift
    case $kind in
    mariadb | mysql) words=replication ;;
    group) words=group_replication ;;
    esac
    [[ -z $pool_pid ]] || { kill "$pool_pid"; wait "$pool_pid" || true; }
    {
        printf 'listen = ["127.0.0.1:%s"]\nbackends_max = 24\ngroups = 2\n[backend]\n' "$port"
        printf 'monitor_user = "app"\nmonitor_password = "app"\n'
        if (($# == 1)); then
            printf 'address = "%s"\n' "${addresses[$1]}"
        else
            for server; do
                printf '[[server]]\nname = "db%s"\naddress = "%s"\n' "$((server + 1))" "${addresses[$server]}"
            done
            printf '[cluster]\nkind = "%s"\n' "$words"
        fi
        printf '[console]\nlisten = "127.0.0.1:%s"\nadmin_user = "admin"\nadmin_password = "admin"\n' "$((port + 1))"
        printf '[[user]]\nname = "app"\npassword = "app"\n%s\n' "$lines"
    } >"$scratch/pool.toml"
    # What an earlier pool said must not be taken for this one's.
    : >"$scratch/pool.log"
    "$binary" pool --config "$scratch/pool.toml" 2>"$scratch/pool.log" &
    pool_pid=$!
    local tries=0
    until grep -q 'event=listening' "$scratch/pool.log" &&
        { (($# == 1)) || (($(grep -c 'is reader' "$scratch/pool.log") >= $# - 1)); }; do
        ((++tries < 300)) || fail "the pool did not start: $(tail -3 "$scratch/pool.log")"
        sleep 0.1
    done
}

console() {
    mariadb --no-defaults --skip-ssl -h 127.0.0.1 -P "$((port + 1))" -uadmin -padmin -N -e "$1"
}

# load CONNECTIONS OPTION...: the JSON of a run.
load() {
    local connections=$1
    shift
    "$binary" load statements run --target "mysql://app:app@127.0.0.1:$port/app" \
        --connections "$connections" --time "$seconds" --table-size 10000 --tables 1 --live never \
        --json "$scratch/load.json" "$@" >"$scratch/load.log" 2>&1 ||
        fail "load: $(tail -3 "$scratch/load.log")"
}

# told_by_load FORMAT: of the last run; {p50}, {p99} of a read, {max} of a statement in ms, {rate} of
# statements a second, {failed} statements, {lost} connections.
told_by_load() {
    python3 - "$scratch/load.json" "$1" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))
read = run["latencies"]["read"]
print(sys.argv[2].format(
    p50=read["p50_ms"], p99=read["p99_ms"], max=run["max_ms"], rate=round(run["statements_per_s"], 1),
    failed=run["failed_statements"], lost=run["lost_connections"]))
PYTHON
}

write='UPDATE sbtest# SET c = REVERSE(c) WHERE id=?'
read='SELECT c FROM sbtest# WHERE id=?'

if wants failover; then
    ONRAMP_CLUSTER_LASTS_MS=2000 faults failover kill
    mapfile -t later < <(sed -n 's/^figure: \(-\?[0-9]*\) ms.*/\1/p' "$scratch/faults" | sort -n)
    ((${#later[@]})) || fail "failover: no writer was killed; give it more seconds"
    figure "writer killed ${#later[@]} times: first answered write after ${later[*]} ms (goal 1000), "\
"$(told 'disconnected') clients disconnected (goal 0)"
fi
if wants bank; then
    faults bank
    figure "bank, $seconds s of faults: $(grep -h ' seed ' "$scratch/faults" | tail -1); "\
"$(grep -h '^lost ' "$scratch/faults" | tail -1) (goals 0)"
fi
if wants half; then
    ONRAMP_CLUSTER_LASTS_MS=$((seconds * 500)) faults half half
    figure "half dead for $seconds s: $(($(told moves) - 1)) changes of the writer (goal 1 in 300 s)"
fi
if wants switchover; then
    start_cluster
    start_pool '' 0 1 2
    for round in 1 2 3; do
        to=db$((round % 3 + 1))
        { sleep "$((seconds / 2))" && console "SWITCH TO $to"; } >"$scratch/switch" 2>&1 &
        load 1000 --rate 500 --ignore-errors all --statement "$write" --statement "$read"
        wait $! || fail "SWITCH TO $to: $(tail -1 "$scratch/switch")"
        figure "switchover $round to $to under 1,000 clients: $(told_by_load \
            '{failed} statements failed, {lost} connections lost (goals 0), longest {max:.0f} ms (goal 1000)')"
        # The others have to replicate from it before the next.
        [[ $kind != m* ]] || scripts/cluster.sh promote "$folder/$to"
        sleep 3
    done
    ! wants own-writes && ! wants reads || [[ $kind != m* ]] || scripts/cluster.sh promote "$folder/db1"
fi
if wants own-writes; then
    start_cluster
    for round in 1 2 3; do
        for consistency in none session; do
            start_pool "read_from = \"readers\"
read_consistency = \"$consistency\"" 0 1 2
            # The readers have the write by then: what asking for it costs is measured, not their lag.
            load 4 --statement "$write" --statement 'DO SLEEP(0.02)' --statement "$read"
            figure "round $round, read behind a write, $consistency: $(told_by_load \
                'p50 {p50:.3f} ms, p99 {p99:.3f} ms') (goal: p50 of session within 10 % of none)"
        done
    done
fi
if wants reads; then
    start_cluster
    for server in 0 1 2; do taskset -acp $((server == 2)) "${pids[$server]}" >/dev/null; done
    heavy='SELECT SUM(LENGTH(REVERSE(c))) FROM sbtest# WHERE id BETWEEN 1 AND 4000 AND id <> ?'
    for round in 1 2 3; do
        start_pool '' 0
        load 8 --statement "$heavy"
        one=$(told_by_load '{rate}')
        start_pool 'read_from = "readers"' 0 1 2
        load 8 --statement "$heavy"
        two=$(told_by_load '{rate}')
        figure "round $round, reads a second: one server $one, two readers $two, $(python3 -c \
            "print(round($two / $one, 2))") times (goal 1.5)"
    done
fi
