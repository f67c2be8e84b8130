#!/usr/bin/env bash
#
# What: two and then three pools of a fleet behind HAProxy, in front of one MariaDB, under 2,000
#   connections: sysbench, `onramp load`, a bank whose ledger is checked, and HikariCP (behind HAProxy,
#   and with all pools' addresses in its own list). One pool is killed, one stopped for a while, one
#   upgraded, one drained. The server's connections are counted each 100 ms. Prints each load's errors
#   by phase, and the pools' parts beside their shares 5 s after the demand changed.
# Why: shows that a fleet keeps its limit whatever happens, and what clients see of it.
# Changes on the machine: installs MariaDB, HAProxy, sysbench and PyMySQL (Debian) where they are
#   missing; runs from a folder below /tmp on free ports.
# Restores: ends all of them and removes the folder.
#
# ONRAMP may name a binary; else it is built for release. CONNECTIONS (2000), BACKENDS (32) and
# SECONDS_EACH (8) may be set. HikariCP runs where scripts/drivers.sh has fetched it.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

want haproxy haproxy
want sysbench sysbench
want python3 python3 python3-pymysql
get_ready --bin onramp
start_server --max-connections=300 --back-log=4096
admin -e "CREATE USER monitor@'%' IDENTIFIED BY 'monitor';
    CREATE TABLE sbtest.account (id INT PRIMARY KEY, v INT) ENGINE=InnoDB;
    CREATE TABLE sbtest.ledger (tag VARCHAR(40), KEY (tag)) ENGINE=InnoDB;
    INSERT INTO sbtest.account SELECT seq, 1000 FROM sbtest.seq_0_to_49"
make_tables --tables 1 --table-size 10000
say "$(haproxy -v | head -1); $(mariadbd --version); $(nproc) cores; load $(cut -d ' ' -f 1-3 /proc/loadavg)"
python=python3
[[ ! -x target/venv/bin/python ]] || python=target/venv/bin/python
"$python" scripts/pools.py --onramp "$binary" --folder "$folder" --server "$server_port" \
    --connections "${CONNECTIONS:-2000}" --backends "${BACKENDS:-32}" --seconds "${SECONDS_EACH:-8}"
