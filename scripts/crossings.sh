#!/usr/bin/env bash
#
# What: how many functions and files of wire, sql, session and pool one plain SELECT and its reply
#   cross in a group, and which. Prints the two numbers, of all functions and of those that have at
#   least LINES lines (14 unless set: accessors and functions that only hand on are shorter), and
#   what those do for it; with --list, each function with its lines and its calls for one statement.
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
plain=()
for crate in session sql testkit wire; do
    plain+=(--config "profile.dev.package.$crate.opt-level=0")
done
RUSTFLAGS='--cfg rustix_use_libc' CARGO_TARGET_DIR=$target \
    cargo build --quiet --locked -p testkit --example crossings "${plain[@]}"
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


# What a function does for a statement, by its file: the first that begins so counts.
JOBS = {
    "a turn of the group: what is due, for whom, until when": [
        "pool/src/group.rs", "pool/src/group/parts", "pool/src/group/tasks", "pool/src/scheduler/running_limit",
    ],
    "bytes from and to sockets, and what waits of them": [
        "pool/src/client/input", "pool/src/client/output", "pool/src/backend/input",
        "pool/src/backend/output", "pool/src/client/buffers", "pool/src/limits", "pool/src/client/pump",
        "pool/src/scheduler/bulk",
    ],
    "packets, commands and replies": [
        "wire/src", "pool/src/backend/relay", "pool/src/pair/passing", "session/src/reply_summary",
    ],
    "the text: its tokens, and its class": ["sql/src/lex", "sql/src/classify", "sql/src/text"],
    "digests and figures": ["sql/src/digest", "pool/src/observe", "session/src/shapes"],
    "what it needs, leaves and may ask, before it is sent": [
        "session/src/beforehand", "session/src/found", "session/src/standing",
        "session/src/state", "pool/src/statements",
        "pool/src/server/redefinition",
    ],
    "the backend that it gets, and who gets that next": [
        "pool/src/scheduler", "pool/src/client/place", "pool/src/backend/",
    ],
    "client and backend: the session of both, before and behind it": [
        "pool/src/pair", "pool/src/client",
        "pool/src/backend.rs", "pool/src/server", "session/src",
    ],
}


def job_of(file):
    """What the functions of a file do."""
    jobs = (job for job, begins in JOBS.items() if file.startswith(tuple(begins)))
    return next(jobs, "elsewhere")


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
for job in [*JOBS, "elsewhere"]:
    of_job = [where for where in long if job_of(where[0]) == job]
    if of_job:
        print(f"  {counted(of_job)}: {job}")
PYTHON
