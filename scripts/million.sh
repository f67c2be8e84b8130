#!/usr/bin/env bash
#
# What: climbs one rung of a million executing connections (or as many as the first argument says)
#   through the pool, on this machine; further arguments go to `onramp climb`.
# Why: so many sockets meet limits of the kernel that few machines have set for them. Where the
#   defaults do, as on most machines with 24 GiB, nothing is changed. No limit on descriptors of a
#   process is among them: the pool and the load keep a descriptor table for each of their groups.
# Changes on the machine: only as root, and only those of the settings below that are too low: each
#   is said with its value before and after. Not as root, it says what to set and goes on.
# Restores: every setting that it changed, at its end, also after Ctrl-C. As demo.sh otherwise.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

connections=${1:-1000000}
[[ $connections =~ ^[1-9][0-9]*$ ]] || fail "$connections: expected a number of connections"
shift || true

# Both ends of every connection are on this machine.
ends=$((2 * connections))
changed=()

# need SETTING AT_LEAST WHY: raises a kernel setting that is lower, where it exists.
need() {
    local setting=$1 at_least=$2 why=$3 before
    before=$(sysctl -n "$setting" 2>/dev/null) || return 0
    ((before < at_least)) || return 0
    if ((EUID != 0)); then
        say "$setting is $before, and $at_least are needed ($why): sysctl -w $setting=$at_least"
    elif sysctl -qw "$setting=$at_least" 2>/dev/null; then
        say "$setting was $before and is $at_least now ($why); it is restored at the end"
        changed+=("$setting=$before")
    else
        say "$setting is $before, $at_least are needed ($why), and this system forbids to set it"
    fi
}

restore() {
    local setting
    for setting in "${changed[@]}"; do
        sysctl -qw "$setting" && say "restored $setting"
    done
}

need_cargo
want_compiler
want_mariadb
want sysctl procps
install_missing

trap restore EXIT
trap 'exit 130' INT TERM
need fs.file-max $((ends + 50000)) "open sockets of the whole machine; root is exempt"
need fs.epoll.max_user_watches $((ends + 50000)) "sockets that wait for events, of one user"
need net.core.somaxconn 4096 "connections that wait to be accepted, for each listener"
need net.netfilter.nf_conntrack_max $((connections + 50000)) "connections that the firewall tracks"

# Measured: 6.1 KiB in the kernel for both ends, 0.5 KiB in the two processes.
want_kib=$((connections * 7))
have_kib=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
((have_kib > want_kib)) ||
    say "$((want_kib / 1024)) MiB of memory are needed and $((have_kib / 1024)) are available"

cargo build --release --locked
"$(release_binary)" climb --rungs "$connections" --paths onramp "$@"
