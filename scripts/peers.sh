#!/usr/bin/env bash
#
# What: measures HAProxy, MySQL Router with connection sharing, the server's own thread pool and
#   Onramp side by side by `onramp climb`, and writes docs/peers.md (scripts/peers.py): workloads by
#   second of the server's CPU, one client alone, logins, idle clients, what a session keeps
#   (scripts/session.lua), failover and switchover. About 20 minutes on two cores.
# Why: a comparison is worth what its repetition costs.
# Changes on the machine: installs MariaDB and a C compiler (Debian) if they are missing, as
#   scripts/lib.sh describes; scripts/get-mysql.sh and scripts/get-peers.sh fetch into target/;
#   results stay in target/peers-results; docs/peers.md is replaced. Servers and proxies run from a
#   scratch folder.
# Restores: all that it starts has ended; git checkout docs/peers.md.
#
# RUNGS (64,1000), TIME (6, seconds of a cell), PATHS (direct,server-pool,haproxy,router,onramp) and
# CROWD (5000, clients that log in and are idle) may be set in the environment; ONRAMP names a binary,
# else the release binary is built.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

rungs=${RUNGS:-64,1000}
time=${TIME:-6}
paths=${PATHS:-direct,server-pool,haproxy,router,onramp}
crowd=${CROWD:-5000}
results=target/peers-results

want_mariadb
[[ -n ${ONRAMP:-} ]] || { need_cargo && want_compiler; }
install_missing
have python3 || fail "python3 is not installed (package python3)"
bash scripts/get-mysql.sh
bash scripts/get-peers.sh
ONRAMP_COMMIT=$(git rev-parse --short HEAD)
export ONRAMP_COMMIT
build_release --bin onramp
binary=${ONRAMP:-$(release_binary)}
rm -rf "$results"
mkdir -p "$results"
cpus=()
# The server alone on a core; a third is load's where there is one.
(($(nproc) == 1)) || cpus=(--cpus "server=0,pool=1,load=$(($(nproc) > 2 ? 2 : 1))")

# climb NAME ARGUMENT...: one climb, to NAME.json.
climb() {
    local name=$1
    shift
    say "$name"
    "$binary" climb "$@" --out-json "$results/$name.json" --out-html "$results/$name.html" \
        >"$results/$name.log" 2>&1 || fail "$name: $(tail -n 3 "$results/$name.log")"
}

# cells NAME ARGUMENT...: a workload by all paths.
cells() {
    climb "$1" --server mysql --paths "$paths" "${cpus[@]}" --warmup-time 2 "${@:2}"
}

workload() {
    cells "$1" --rungs "$rungs" --time "$time" "${@:2}"
}

preamble=()
for statement in "SET NAMES utf8mb4" \
    "SET SESSION sql_mode='STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'" "SET time_zone='+00:00'" \
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED" "SET autocommit=1"; do
    preamble+=("--load-arg=--init-sql=$statement")
done
# Ten statements a second, whoever sends them: nearly all clients are idle.
idle=(--rungs "$crowd" --time 1 --load-arg=--rate=10)

workload point-select --workload oltp_point_select
workload point-select-prepared --workload oltp_point_select --prepared
workload update-by-index --workload oltp_update_index
workload begin-update-commit --workload oltp_write_only --load-arg=--index-updates=0 \
    --load-arg=--delete-inserts=0
workload read-write --workload oltp_read_write
workload read-write-preamble --workload oltp_read_write "${preamble[@]}"
cells one --rungs 1 --time "$time"
cells storm "${idle[@]}" --connect-rate 1000000
cells idle "${idle[@]}"
paths=${paths/server-pool,/} cells session --rungs 64 --time 3 --workload scripts/session.lua \
    --load-arg=--ignore-errors=all
climb failover --scenario failover
climb switchover --scenario switchover
python3 scripts/peers.py "$results" >"$results/peers.md"
mv "$results/peers.md" docs/peers.md
say "docs/peers.md is written"
