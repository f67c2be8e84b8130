#!/usr/bin/env bash
#
# What: two and then three pools of a fleet behind HAProxy, in front of one MariaDB, under 2,000
#   connections: sysbench, `onramp load`, a bank whose ledger is checked, and HikariCP, through HAProxy
#   and by names with all pools' addresses, HikariCP also with its own list of them. One pool is
#   killed, one stopped for a while, one upgraded, one drained. The server's connections are counted
#   each 100 ms. Before that each pool has a demand that is known, and 5 s later its part of the limit
#   is compared with that. Prints each load's totals and errors.
# Why: shows that a fleet keeps its limit whatever happens, and what clients see of it.
# Changes on the machine: installs MariaDB, HAProxy, sysbench and PyMySQL (Debian) where they are
#   missing; runs from a folder below /tmp on free ports, in a mount namespace that has the names in
#   its /etc/hosts. Needs root for that.
# Restores: ends all of them and removes the folder.
#
# ONRAMP may name a binary; else it is built for release. CONNECTIONS (2000), BACKENDS (32) and
# SECONDS_EACH (8) may be set. HikariCP runs where scripts/drivers.sh has fetched it.

set -euo pipefail
((EUID == 0)) || { echo "skipped: pools: it needs root"; exit 0; }
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
# The same addresses in each order: nobody deals them out, as a name server does.
cp /etc/hosts "$folder/hosts"
for first in 0 1 2; do
    for step in 0 1 2; do
        echo "127.0.1.$(((first + step) % 3 + 1)) pools$first" >>"$folder/hosts"
    done
done
unshare --mount --propagation private sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' "$folder/hosts" \
    "$python" scripts/pools.py --onramp "$binary" --folder "$folder" --server "$server_port" \
    --connections "${CONNECTIONS:-2000}" --backends "${BACKENDS:-32}" --seconds "${SECONDS_EACH:-8}"
