"""Writes docs/peers.md from the climbs of scripts/peers.sh: peers.py FOLDER."""

import json
import os
import pathlib
import re
import sys

PATHS = ["direct", "server-pool", "haproxy", "router", "onramp"]
PROXIES = PATHS[2:]
NAMES = {"direct": "direct", "server-pool": "server-pool", "haproxy": "HAProxy", "router": "Router", "onramp": "Onramp"}
WORKLOADS = {
    "point-select": "select",
    "point-select-prepared": "prepared-select",
    "update-by-index": "update",
    "begin-update-commit": "BEGIN-UPDATE-COMMIT",
    "read-write": "read-write",
    "read-write-preamble": "read-write+preamble",
}
# The checks, in the order of their errors' numbers, and the first number.
LUA = pathlib.Path(__file__).with_name("session.lua").read_text()
SESSION = re.findall(r'^  \{ "(.+)", function', LUA, re.MULTILINE)
FIRST_ERROR = int(re.search(r"^local FIRST_ERROR = (\d+)$", LUA, re.MULTILINE)[1])
# Seconds of a cell from which figures may be compared.
TIME_MIN = 5
REASON_MAX = 100

folder = pathlib.Path(sys.argv[1])
results = {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}
# Workloads and clients that failed, by path and reason.
notes = {}


def figure(value):
    """Three significant digits, as in the table of climb."""
    if value is None:
        return "-"
    digits = 3 if value < 1 else 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{digits}f}"


def table(head, rows):
    """A table without blanks: the rows of the page are few words."""
    print()
    for row in [head, ["---"] * len(head), *rows]:
        print("|" + "|".join(row) + "|")


def row_of(name, connections, path):
    rows = results[name]["rows"]
    return next((row for row in rows if (row["connections"], row["path"]) == (connections, path)), None)


def rungs(name):
    return sorted({row["connections"] for row in results[name]["rows"]})


def reason(text):
    """The words of a failure, without what is of one machine and run."""
    text = re.sub(r"127\.0\.0\.1:\d+|'?/[^\s']*'?", "…", text)
    return (text if len(text) <= REASON_MAX else text[:REASON_MAX].rsplit(" ", 1)[0] + " …").replace("|", "/")


def note_failures(name, title, expected=()):
    """Cells that could not be held, and statements and logins that failed, as rows of a table."""
    for row in results[name]["rows"]:
        failed = (row["failed_statements"] or 0) + (row["failed_connects"] or 0)
        errors = [error for error in row["errors"] if error["code"] not in expected]
        first = max(errors, key=lambda error: error["count"], default=None)
        if row["limit"]:
            said = reason(row["limit"])
        elif failed and first:
            said = f"statements or logins failed: {first['code']} {reason(first['message'] or '')}"
        else:
            continue
        notes.setdefault((NAMES[row["path"]], said), []).append(f"{title}({row['connections']:,})")


def by_workload(key, paths, scale=1):
    rows = []
    for name, title in WORKLOADS.items():
        for connections in rungs(name):
            cells = [row_of(name, connections, path) for path in paths]
            values = [cell[key] if cell else None for cell in cells]
            rows.append([title, f"{connections:,}"] + [figure(value and value * scale) for value in values])
    table(["workload", "clients"] + [NAMES[path] for path in paths], rows)


def version(text):
    found = re.search(r"\d+\.\d+(\.\d+)?", text)
    return found[0] if found else text


def header():
    point = results["point-select"]
    host, settings = point["host"], point["settings"]
    versions = [f"{name} {version(text)}" for name, text in zip(["HAProxy", "MySQL Router"], host["peers"])]
    commit = host["onramp_commit"] or os.environ.get("ONRAMP_COMMIT") or host["onramp_version"]
    servers = [f"MySQL {version(host['server'])}", f"MariaDB {version(results['failover']['host']['server'])}"]
    gib = round(host["memory_bytes"] / 2**30)
    print("# Peers\n")
    print("What clients get of a MySQL by itself, by its thread pool, and through three proxies. Read across: a row is"
          " one workload of sysbench; `preamble` is five SETs of an ORM after each login."
          " [`onramp climb`](climb.md) measures; `make peers` makes this page.\n")
    print(f"- **{', '.join(versions)}, Onramp {commit}, {servers[0]}**, for the changes of writer {servers[1]};"
          f" {host['cpus']} x {host['cpu_model']}, {gib} GiB, {host['kernel']}; {host['date'][:10]}.")
    by = ", all connections by TCP" if settings["place"] == "apart" else ""
    print(f"- Processors: {settings['cpus'] or 'shared'} (`pool`: the proxy){by}; {settings['time_s']} s a cell.")
    print("- HAProxy relays bytes; Router shares connections and needs TLS for that."
          " [What failed](#what-failed) has reasons.")
    if settings["time_s"] < TIME_MIN:
        print("- **A trial: its figures show that it runs, and nothing else.**")


def clients():
    paths = PATHS
    crowd = rungs("storm")[0]

    def cells(name, value):
        rows = [row_of(name, rungs(name)[0], path) for path in paths]
        return [figure(value(row) if row else None) for row in rows]

    def logins(row):
        return row["connections"] / row["connect_s"] if row["connect_s"] and not row["limit"] else None

    def idle(row):
        key = "pool" if row["path"] in PROXIES else "server"
        return row[f"{key}_bytes_per_client"]

    table(["clients"] + [NAMES[path] for path in paths], [
        ["one: p50, ms"] + cells("one", lambda row: row["p50_ms"]),
        [f"{crowd:,} log in at once: logins/s"] + cells("storm", logins),
        [f"{crowd:,} idle: bytes of proxy (server) each"] + cells("idle", idle),
    ])


def session():
    paths = [path for path in PATHS if row_of("session", rungs("session")[0], path)]
    rows = {path: row_of("session", rungs("session")[0], path) for path in paths}

    def cell(path, number):
        if rows[path]["limit"]:
            return "-"
        found = [error["message"] for error in rows[path]["errors"] if error["code"] == FIRST_ERROR + number]
        return found[0].split(": ", 1)[-1] if found else "kept"

    table(["session"] + [NAMES[path] for path in paths],
          [[name] + [cell(path, number) for path in paths] for number, name in enumerate(SESSION)])


def change(name):
    outcomes = {outcome["way"]: outcome for outcome in results[name]["outcomes"]}
    keys = ["disconnected", "longest_gap_ms", "lost"]
    rows = []
    for path in PATHS:
        outcome = outcomes.get(path)
        if outcome:
            failed = sum(outcome["errors"].values())
            rows.append([NAMES[path], f"{failed:,}"] + [f"{outcome[key]:,}" for key in keys])
        elif path == "router":
            rows.append([NAMES[path], "cannot: its addresses are fixed", "", "", ""])
    table([name, "failed updates", "disconnected", "longest gap, ms", "lost"], rows)


header()
for name, title in WORKLOADS.items():
    note_failures(name, title)
note_failures("one", "one client")
note_failures("storm", "logins")
note_failures("idle", "idle")
note_failures("session", "session", range(FIRST_ERROR, FIRST_ERROR + len(SESSION)))
print("\n## Statements by second of the server's CPU\n\nMore is better.")
by_workload("statements_per_server_cpu_s", PATHS)
print("\n## Statements a second\n\nMore is better; proxy and load share a core.")
by_workload("statements_per_s", PATHS)
print("\n## Microseconds of the proxy's CPU for a statement")
by_workload("pool_us_per_statement", PROXIES)
print("\n## Latency: p99, ms")
by_workload("p99_ms", PATHS)
print("\n## Clients")
clients()
print("\n## What a session keeps\n\n64 clients, each with state of its own: `wrong` is another's, or none.")
session()
print("\n## Changes of the writer\n\n64 clients update rows ([scenarios](climb.md#scenarios)).")
change("failover")
change("switchover")
print("\n## What failed")
if notes:
    table(["path", "workloads(clients)", "what"],
          [[path, ",".join(cells), said] for (path, said), cells in notes.items()])
else:
    print("\nNothing.")
