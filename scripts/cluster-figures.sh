#!/usr/bin/env bash
#
# What: what reads on several servers cost and bring: cluster-figures.sh mariadb|mysql [SECONDS]
#   1. p50 and p99 of a read behind a write of the same client, on readers that are asked for the
#      write (read_consistency = "session") and on ones that are not ("none"), in turns.
#   2. Reads a second of two readers, each on a core of its own, beside one server on one core,
#      behind the same pool. The reads cost the server milliseconds: it is the bound.
# Why: both are promises of docs/pool/several-servers.md.
# Changes on the machine: what scripts/cluster.sh does; builds onramp for release (or ONRAMP names it).
# Restores: all of it.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh
need_cargo

(($# >= 1)) || fail "cluster-figures.sh mariadb|mysql [SECONDS]; see its head"
kind=$1 seconds=${2:-10}
[[ -n ${ONRAMP:-} ]] || build_release --bin onramp
binary=${ONRAMP:-$(release_binary)}
pool_pid=
coproc cluster { exec scripts/cluster.sh "$kind"; }
cluster_pid=$!
# Its own descriptor: bash closes the coprocess's behind its end.
exec {cluster_in}>&"${cluster[1]}" {cluster_out}<&"${cluster[0]}"
end_all() {
    [[ -z $pool_pid ]] || { kill "$pool_pid" && wait "$pool_pid"; } 2>/dev/null || true
    exec {cluster_in}>&-
    eval "exec ${cluster[1]}>&-" 2>/dev/null || true
    wait "$cluster_pid" 2>/dev/null || true
}
trap end_all EXIT
trap 'exit 130' INT TERM
addresses=() pids=() folder=
while read -r name address pid _ <&"$cluster_out"; do
    [[ $name != ready ]] || { folder=$address; break; }
    addresses+=("$address") pids+=("$pid")
done
[[ -n $folder ]] || fail "the cluster did not start"
port=$((30000 + RANDOM % 2000))

# start_pool USER-LINES SERVER...: the servers by their numbers, the first the writer.
start_pool() {
    local lines=$1 server
    shift
    [[ -z $pool_pid ]] || { kill "$pool_pid"; wait "$pool_pid" || true; }
    {
        printf 'listen = ["127.0.0.1:%s"]\nbackends_max = 24\ngroups = 2\n[backend]\n' "$port"
        printf 'monitor_user = "app"\nmonitor_password = "app"\n'
        if (($# == 1)); then
            printf 'address = "%s"\n' "${addresses[$1]}"
        else
            for server; do
                printf '[[server]]\nname = "db%s"\naddress = "%s"\n' "$server" "${addresses[$server]}"
            done
        fi
        printf '[[user]]\nname = "app"\npassword = "app"\n%s\n' "$lines"
    } >"$folder/pool.toml"
    "$binary" pool --config "$folder/pool.toml" 2>"$folder/pool.log" &
    pool_pid=$!
    local tries=0
    until grep -q 'event=listening' "$folder/pool.log" && { (($# == 1)) || (($(grep -c 'is reader' "$folder/pool.log") >= $# - 1)); }; do
        ((++tries < 200)) || fail "the pool did not start: $(tail -3 "$folder/pool.log")"
        sleep 0.1
    done
}

# load CONNECTIONS STATEMENT...: the JSON of a run.
load() {
    local connections=$1 statement all=()
    shift
    for statement; do all+=(--statement "$statement"); done
    "$binary" load statements run --target "mysql://app:app@127.0.0.1:$port/app" \
        --connections "$connections" --time "$seconds" --table-size 10000 --tables 1 \
        --json "$folder/load.json" "${all[@]}" >"$folder/load.log" 2>&1 ||
        fail "load: $(tail -3 "$folder/load.log")"
}

# figure FORMAT: of the last run; {p50} and {p99} of a read in ms, {rate} of statements a second.
figure() {
    python3 - "$folder/load.json" "$1" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))
read = run["latencies"]["read"]
rate = run["statements_per_s"]
print(sys.argv[2].format(p50=read["p50_ms"], p99=read["p99_ms"], rate=round(rate, 1)))
PYTHON
}

"$binary" load oltp_point_select prepare --target "mysql://app:app@${addresses[0]}/app" \
    --table-size 10000 --tables 1 >/dev/null
sleep 2
say "$kind, $(uptime | sed 's/.*load/load/')"
write='UPDATE sbtest# SET c = REVERSE(c) WHERE id=?'
read='SELECT c FROM sbtest# WHERE id=?'
for round in 1 2 3; do
    for consistency in none session; do
        start_pool "read_from = \"readers\"
read_consistency = \"$consistency\"" 0 1 2
        load 4 "$write" "$read"
        say "round $round, read behind a write, $consistency: $(figure 'p50 {p50:.3f} ms, p99 {p99:.3f} ms')"
    done
done
for server in 0 1 2; do taskset -acp $((server == 2)) "${pids[$server]}" >/dev/null; done
heavy='SELECT SUM(LENGTH(REVERSE(c))) FROM sbtest# WHERE id BETWEEN 1 AND 4000 AND id <> ?'
for round in 1 2 3; do
    start_pool '' 0
    load 8 "$heavy"
    one=$(figure '{rate}')
    start_pool 'read_from = "readers"' 0 1 2
    load 8 "$heavy"
    say "round $round, reads a second: one server $one, two readers $(figure '{rate}')"
done
