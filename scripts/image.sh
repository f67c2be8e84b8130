#!/usr/bin/env bash
#
# What: lays out the root of the image as packaging/Dockerfile does (packaging/image.sh), and runs the
#   pool in it as that image would: nothing else there, no /proc, not root, with what Docker puts there
#   (/etc/hosts, the configuration); logs in through it to a private MariaDB that it knows by a
#   name, and ends it. PROFILE (dev) is cargo's.
# Why: what a program without libraries lacks (names of hosts and users, files) shows only where there
#   is nothing else.
# Changes on the machine: target/ and a folder below /tmp.
# Restores: ends both and removes the folder.
#
# Where it cannot run (not root) it says so as skipped, and ends well.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

((EUID == 0)) || { say "skipped: image: it needs root"; exit 0; }
need_cargo

image=$folder/image
PROFILE=${PROFILE:-dev} bash packaging/image.sh "$image"
# The loader's name is in each program that has one.
! LC_ALL=C grep -aq '/ld-linux' "$image/usr/bin/onramp" || fail "image: the program wants a loader"
files=$(cd "$image" && find . -type f | sort | tr '\n' ' ')
[[ $files == "./etc/onramp/pool.toml ./usr/bin/onramp " ]] || fail "image: it has $files"
say "image: $(du -m "$image/usr/bin/onramp" | cut -f1) MiB, and nothing but the program"

start_server
printf '127.0.0.1 localhost db.example\n' >"$image/etc/hosts"
{
    printf 'listen = "127.0.0.1:%s"\n[backend]\naddress = "db.example:%s"\n' "$pool_port" "$server_port"
    printf '[[user]]\nname = "app"\npassword = "app"\n'
} >"$image/etc/onramp/pool.toml"
inside=(chroot --userspec=65532:65532 "$image" /usr/bin/onramp)
"${inside[@]}" --version
"${inside[@]}" pool --config /etc/onramp/pool.toml 2>"$folder/pool.log" &
pool_pid=$!
await_pool
read -r user group < <(ps -o uid=,gid= "$pool_pid")
[[ $user:$group == 65532:65532 ]] || fail "image: it runs as $user:$group"
client() { mariadb --no-defaults -h127.0.0.1 -P"$pool_port" -uapp -papp -N "$@" sbtest; }
[[ $(client -e 'SELECT 6 * 7') == 42 ]] || fail "image: no login"
end_pool
grep -q 'event=ended' "$folder/pool.log" || fail "image: it has not ended well"
say "image: passed"
