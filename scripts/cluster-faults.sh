#!/usr/bin/env bash
#
# What: faults on a real cluster of three under a bank whose ledger is checked in the end:
#   cluster-faults.sh mariadb|mysql|galera|group [SECONDS [SEED [FAULT,...]]]
#   With ONRAMP_CLUSTER_LASTS_MS each is of the writer, and lasts so long (half and full twice that).
#   The faults are kill, stop, half (every second answer late), slow, silent, switch, and as root,
#   which gives each server a network namespace and a small disk, cut (from the others), cut-all
#   and full (its disk).
# Why: a cluster breaks in ways that a model of it does not have.
# Changes on the machine: what scripts/cluster.sh does; namespaces that end with it.
# Restores: all of it.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh
need_cargo

(($# >= 1)) || fail "cluster-faults.sh KIND [SECONDS [SEED [FAULT,...]]]; see its head"
export ONRAMP_CLUSTER_KIND=$1 ONRAMP_CLUSTER_SECONDS=${2:-600} ONRAMP_CLUSTER_SEED=${3:-1}
[[ -z ${4:-} ]] || export ONRAMP_CLUSTER_FAULTS=$4
cargo build --quiet --locked --tests --bins
apart=()
[[ $EUID != 0 ]] || apart=(unshare --net --mount env ONRAMP_NAMESPACES=1 "ONRAMP_DISK_MB=${ONRAMP_DISK_MB:-500}")
# shellcheck disable=SC2016
"${apart[@]}" bash -c '[[ -z ${ONRAMP_NAMESPACES:-} ]] || ip link set lo up
    exec cargo test --quiet --locked --offline --test e2e real_clusters::faults_from_a_seed -- --nocapture'
