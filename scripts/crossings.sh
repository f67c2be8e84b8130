#!/usr/bin/env bash
#
# What: how many functions and files of wire, sql, session and pool one plain SELECT and its reply
#   cross in a group, and which. Prints the two numbers; with --list, each function with its calls
#   for one statement.
# Why: what a newcomer has to read to follow a statement. Two runs of the same program, one with
#   twice as many statements, are counted by valgrind's callgrind; the difference is the statements'
#   alone. A build without optimisation has each function of the sources as one.
# Changes on the machine: builds a debug program in target/; a private MariaDB runs from a folder
#   below /tmp on a free port.
# Restores: ends the server and removes the folder.
# Needs: valgrind, python3, MariaDB.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

STATEMENTS=20

have valgrind || fail "valgrind is not installed (apt-get install valgrind)"
# rustix reads the clock past the C library, from a page that valgrind does not show.
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/crossings
RUSTFLAGS='--cfg rustix_use_libc' CARGO_TARGET_DIR=$target \
    cargo build --quiet --locked -p testkit --example crossings
program=$target/debug/examples/crossings

start_server
admin -e 'CREATE TABLE sbtest.crossed (id INT PRIMARY KEY, n INT);
    INSERT INTO sbtest.crossed VALUES (1, 0)'

# count STATEMENTS: the calls in the group's thread, into a file of that name.
count() {
    valgrind --quiet --tool=callgrind --separate-threads=yes --compress-strings=no \
        --compress-pos=no \
        --callgrind-out-file="$folder/calls-$1" \
        "$program" "$server_port" "$1" >/dev/null 2>"$folder/errors" ||
        fail "the program failed: $(tail -3 "$folder/errors")"
}

count "$STATEMENTS"
count "$((2 * STATEMENTS))"
python3 - "$STATEMENTS" "$folder/calls-$STATEMENTS-01" "$folder/calls-$((2 * STATEMENTS))-01" "$@" <<'PYTHON'
import re, sys

CRATES = re.compile(r"crates/(wire|sql|session|pool)/src/(.*\.rs)$")


def calls(path):
    """How often each function of the four crates was called, by file and name."""
    found, place, name = {}, None, None
    for line in open(path, errors="replace"):
        key, _, value = line.rstrip("\n").partition("=")
        if key in ("fl", "fi", "fe"):
            place = value
        elif key in ("cfi", "cfl"):
            called_place = value
        elif key == "fn":
            name, called_place = value, place
        elif key == "cfn":
            called = value
        elif key == "calls":
            file = CRATES.search(called_place)
            if file:
                # Closures and the kinds of a generic function are that function.
                short = re.sub(r"::\{\{?closure.*", "", called)
                short = re.sub(r"<.*>::|'\d+$", "", short)
                where = (file.group(0)[len("crates/"):], short)
                found[where] = found.get(where, 0) + int(value.split()[0])
            called_place = place
    return found


statements = int(sys.argv[1])
once, twice = calls(sys.argv[2]), calls(sys.argv[3])
more = {where: twice[where] - once.get(where, 0) for where in twice}
crossed = {where: count for where, count in more.items() if count >= statements}
if "--list" in sys.argv:
    for (file, name), count in sorted(crossed.items()):
        print(f"{count / statements:6.1f}  {file}  {name}")
print(f"{len(crossed)} functions in {len({file for file, _ in crossed})} files")
PYTHON
