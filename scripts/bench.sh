#!/usr/bin/env bash
#
# What: measures the figures with the release build, one after the other, and keeps each result
#   with the machine, the versions and the commit it belongs to.
# Why: a figure without those cannot be compared with the next one.
# Changes on the machine: as demo.sh; the results go to bench-results/DATE-COMMIT/, which git
#   ignores. A run of 100,000 connections takes some gigabytes of memory while it lasts.
# Restores: as demo.sh. The results stay; `make clean` keeps them too.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

# json_fields NAME VALUE...: the lines of a JSON object of strings.
json_fields() {
    local separator=''
    while (($#)); do
        local value=${2//\\/\\\\}
        value=${value//\"/\\\"}
        printf '%s  "%s": "%s"' "$separator" "$1" "$value"
        separator=$',\n'
        shift 2
    done
    printf '\n'
}

commit() {
    local id
    id=$(git rev-parse --short=12 HEAD 2>/dev/null) || { echo unknown; return; }
    [[ -z $(git status --porcelain --untracked-files=no) ]] || id+=-changed
    printf '%s\n' "$id"
}

describe_machine() {
    local server
    server=$(PATH="$PATH:/usr/sbin" mariadbd --version)
    json_fields \
        date "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
        commit "$(commit)" \
        processor "$(awk -F ': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)" \
        cores "$(nproc)" \
        memory_kib "$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)" \
        kernel "$(uname -sr)" \
        descriptors_limit "$(ulimit -Hn)" \
        ports "$(tr '\t' ' ' </proc/sys/net/ipv4/ip_local_port_range)" \
        rust "$(rustc --version)" \
        server "$server"
}

# measure NAME OPTION...: one climb in a folder of its own, where it leaves its report.
measure() {
    local name=$1
    shift
    mkdir -p "$results/$name"
    printf '\n== %s: onramp climb %s\n' "$name" "$*" | tee -a "$results/summary.txt"
    (cd "$results/$name" && "$binary" climb "$@") | tee -a "$results/summary.txt"
}

need_cargo
want_compiler
want_mariadb
want sysbench sysbench
install_missing

say "building the release binary"
# The report names the commit that it measured.
ONRAMP_COMMIT=$(git rev-parse --short HEAD 2>/dev/null || true)
export ONRAMP_COMMIT
cargo build --release --locked
binary=$(release_binary)
results=$PWD/bench-results/$(date -u +%Y%m%dT%H%M%SZ)-$(commit)
mkdir -p "$results"

machine=$(describe_machine)
printf '{\n%s\n}\n' "$machine" >"$results/machine.json"
printf '%s\n' "$machine" | tr -d '",' >"$results/summary.txt"

measure direct-against-pooled
measure pooled-to-100000 --rungs 1000,10000,100000 --paths onramp

printf '\n== the generator beside sysbench: scripts/generator.sh\n' | tee -a "$results/summary.txt"
ONRAMP=$binary bash scripts/generator.sh | tee -a "$results/summary.txt"

say "results: $results"
