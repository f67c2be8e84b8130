#!/usr/bin/env bash
#
# What: counts the round trips to a MariaDB server that statements of real programs cost, direct and
#   through the pool: sysbench's oltp_read_write, a request of Django with ATOMIC_REQUESTS, a session
#   of SQLAlchemy with pool_pre_ping and its reset on return, and a transaction of a Java program
#   behind HikariCP. Prints a table: trips for each unit of work, direct and through the pool, and their
#   ratio. A program that is served directly makes one trip for each statement that it sends.
# Why: in a pool a round trip is a turn of the group, a turn of the server and a wait. What the pool
#   asks for itself must not add any, and what needs no server must not cost one.
# Changes on the machine: installs MariaDB, sysbench and python3-venv (Debian) if they are missing, as
#   scripts/lib.sh describes; fetches Django, SQLAlchemy and PyMySQL into a folder below /tmp; the
#   server runs from there on a free port. HikariCP is that of scripts/drivers.sh (target/drivers/jdbc);
#   without it, or without Java, its row is left out.
# Restores: ends the server, the pool and what counts, and removes the folder.
#
# UNITS (300) may be set in the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh
want sysbench sysbench
want python3 python3 python3-pip

get_ready --bin onramp
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
    --target "$folder/python" Django==4.2.16 SQLAlchemy==2.0.44 PyMySQL==1.1.2
start_server --max-connections=200
make_tables --tables=1 --table-size=1000

PYTHONPATH=$folder/python UNITS=${UNITS:-300} \
    python3 scripts/round_trips.py "$binary" "$server_port" "$folder"
