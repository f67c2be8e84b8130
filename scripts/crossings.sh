#!/usr/bin/env bash
#
# What: how many functions and files of wire, sql, session and pool one plain SELECT and its reply
#   cross in a group, and which. Prints the two numbers, of all functions and of those that have at
#   least LINES lines (14 unless set: accessors and functions that only hand on are shorter); with
#   --list, each function with its lines and its calls for one statement.
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
LINES=${LINES:-14}

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
python3 - "$STATEMENTS" "$LINES" "$folder/calls-$STATEMENTS-01" "$folder/calls-$((2 * STATEMENTS))-01" "$@" <<'PYTHON'
import re, sys

CRATES = re.compile(r"crates/(wire|sql|session|pool)/src/(.*\.rs)$")


def calls(path):
    """How often each function of the four crates was called, by file and name, and where it is."""
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
                short = re.sub(r"(::)?<.*>::", "::", re.sub(r"'\d+$", "", short))
                where = (file.group(0)[len("crates/"):], short)
                count, at = map(int, value.split()[:2])
                before = found.get(where, (0, at))
                found[where] = (before[0] + count, min(before[1], at))
            called_place = place
    return found


def length(file, name, at):
    """Lines of the function of this name that is called at a line of a file, as rustfmt writes it."""
    lines = open(f"crates/{file}").read().split("\n")
    head = re.compile(rf"^(\s*)(pub(\(.*?\))? )?((const|async|unsafe) )*fn {name.split('::')[-1]}\b")
    for first in range(min(at, len(lines)) - 1, -1, -1):
        begins = head.match(lines[first])
        if begins and lines[first].endswith("}"):
            return 1
        if begins:
            ends = (n for n in range(first, len(lines)) if lines[n] == begins[1] + "}")
            return next(ends, first) - first + 1
    return 1


def counted(crossed):
    return f"{len(crossed)} functions in {len({file for file, _ in crossed})} files"


statements, lines_min = int(sys.argv[1]), int(sys.argv[2])
once, twice = calls(sys.argv[3]), calls(sys.argv[4])
more = {where: count - once.get(where, (0, 0))[0] for where, (count, _) in twice.items()}
crossed = {where: count for where, count in more.items() if count >= statements}
lines = {where: length(*where, twice[where][1]) for where in crossed}
if "--list" in sys.argv:
    for (file, name), count in sorted(crossed.items()):
        print(f"{lines[file, name]:4} lines {count / statements:6.1f}  {file}  {name}")
print(counted(crossed))
long = [where for where in crossed if lines[where] >= lines_min]
print(f"{counted(long)} with {lines_min} lines or more")
PYTHON
