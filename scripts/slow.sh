#!/usr/bin/env bash
#
# What: clients that do not read, beside others that work. A closed loop of point selects through the
#   pool: its p99 by itself, and beside SLOW clients that send SELECT REPEAT('x',1000000) FROM t
#   LIMIT 100 and read nothing: while their replies are taken off their backends, and after that.
#   Then an export of EXPORT_MB at RATE_MB a second beside the same load:
#   whether it is complete and equal to what the server itself sends. Prints the pool's memory before,
#   during and after. Before that, the same without the pool: the closed loop at the server itself,
#   alone and beside SLOW connections that read such replies as fast as they come. What the server
#   takes to make the replies, no pool can give back.
# Why: who does not read must not take what others need, and a slow reader must miss nothing.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port. Needs python3 with PyMySQL.
# Restores: ends the server, the pool and the loads, and removes the folder.
#
# WORKING (32), SLOW (40), TIME (20, seconds of each run), AUTOCOMMIT (on; off is PyMySQL's default),
# EXPORT_MB (2000; 0 leaves the export out) and RATE_MB (10) may be set in the environment; SPOOL
# names another folder for the spool than one below /tmp.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

working=${WORKING:-32}
slow=${SLOW:-40}
time=${TIME:-20}
autocommit=${AUTOCOMMIT:-on}
export_mb=${EXPORT_MB:-2000}
rate_mb=${RATE_MB:-10}

get_ready --bin onramp

start_server --innodb-flush-log-at-trx-commit=0 --max-allowed-packet=64M
start_pool 'backends_max = 16' "spool_folder = \"${SPOOL:-$folder}\"" 'spool_bytes_max = 8589934592'
make_tables --table-size 100000
admin sbtest -e 'CREATE TABLE t (v INT); INSERT INTO t SELECT seq FROM seq_1_to_100'

# work WHAT [PORT]: on the pool, or that port.
work() {
    "$binary" load oltp_point_select run --table-size 100000 \
        --target "mysql://app:app@127.0.0.1:${2:-$pool_port}/sbtest" \
        --connections "$working" --time "$time" --percentile 99 >"$folder/work.$1" 2>&1 ||
        fail "the load failed: $(tail -3 "$folder/work.$1")"
    awk -v what="$1" '/99th percentile/ { printf "p99 of %s: %s ms\n", what, $NF }
        /events\/s|transactions:/ { print "  " $0 }' "$folder/work.$1"
}

rss() { printf 'resident %s: %d MiB\n' "$1" "$(($(pool_rss) >> 20))"; }

work 'the working clients at the server itself, alone' "$server_port"
python3 - "$server_port" "$slow" "$time" >"$folder/quick.out" 2>&1 <<'PYTHON' &
import pymysql, selectors, sys, time
from pymysql.constants import COMMAND
port, count, seconds = map(int, sys.argv[1:])
ready, buffer, got, open_ = selectors.DefaultSelector(), bytearray(1 << 20), 0, []
for _ in range(count):
    client = pymysql.connect(host="127.0.0.1", port=port, user="app", password="app", db="sbtest")
    open_.append(client)
    # So many rows that it does not end before the load does.
    client._execute_command(COMMAND.COM_QUERY, "SELECT REPEAT('x',1000000) FROM t, t b, t c")
    ready.register(client._sock, selectors.EVENT_READ)
began = time.monotonic()
while time.monotonic() < began + seconds:
    for key, _ in ready.select(1):
        got += key.fileobj.recv_into(buffer)
print(f"  {got / 1e6 / (time.monotonic() - began):.0f} MB/s of replies meanwhile")
sys.stdout.flush()
time.sleep(3600)
PYTHON
quick_pid=$!
work "the working clients at the server itself, beside $slow that read" "$server_port"
until grep -q MB/s "$folder/quick.out"; do sleep 0.2; done
cat "$folder/quick.out"
kill "$quick_pid"
wait "$quick_pid" 2>/dev/null || true

work 'the working clients alone'
rss 'before'

python3 - "$pool_port" "$slow" "$autocommit" >"$folder/slow.out" 2>&1 <<'PYTHON' &
import pymysql, sys, time
from pymysql.constants import COMMAND
port, count, autocommit = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "on"
clients = []
for _ in range(count):
    client = pymysql.connect(host="127.0.0.1", port=port, user="app", password="app", db="sbtest",
                             autocommit=autocommit)
    client._execute_command(COMMAND.COM_QUERY, "SELECT REPEAT('x',1000000) FROM t LIMIT 100")
    clients.append(client)
time.sleep(3600)
PYTHON
slow_pid=$!
work "the working clients beside $slow that do not read, whose replies go to the spool"
# Their number off backends, or closed, stays the same for five seconds once all are there.
there() {
    take_census
    grep -oE '(spooled_clients|spooled_bytes|slow_closed): [0-9]+' <<<"$census"
}
begun=$SECONDS before=
until [[ $(there) == "$before" ]] || ((SECONDS - begun > 180)); do
    before=$(there)
    sleep 5
done
printf 'they are there after %d s more\n' "$((SECONDS - begun))"
work "the working clients beside $slow that do not read, once they are there"
take_census
grep -oE '(slow_readers|spooled_clients|spooled_bytes|spooled|slow_closed): [0-9]+' <<<"$census" |
    paste -sd' '
rss 'beside them'
kill "$slow_pid"
wait "$slow_pid" 2>/dev/null || true
until take_census && grep -q 'spooled_bytes: 0,' <<<"$census"; do sleep 0.2; done
rss 'after they left'

cat >"$folder/export.py" <<'PYTHON'
import hashlib, pymysql, pymysql.cursors, sys, time
port, mb, rate = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
client = pymysql.connect(host="127.0.0.1", port=port, user="app", password="app", db="sbtest",
                         cursorclass=pymysql.cursors.SSCursor)
cursor = client.cursor()
cursor.execute(f"SELECT seq, REPEAT(SHA2(seq, 512), 781) FROM sbtest.n LIMIT {mb * 10}")
digest, got, began = hashlib.sha256(), 0, time.monotonic()
for seq, text in cursor:
    digest.update(f"{seq} {text}".encode())
    got += len(text)
    ahead = got / 1e6 / rate - (time.monotonic() - began) if rate else 0
    if ahead > 0:
        time.sleep(ahead)
print(f"{got} bytes, sha256 {digest.hexdigest()}")
PYTHON
((export_mb > 0)) || exit 0
admin sbtest -e "CREATE TABLE n (seq INT PRIMARY KEY) SELECT seq FROM seq_1_to_$((export_mb * 10))"
expected=$(python3 "$folder/export.py" "$server_port" "$export_mb" 0)
python3 "$folder/export.py" "$pool_port" "$export_mb" "$rate_mb" >"$folder/exported" &
export_pid=$!
while kill -0 "$export_pid" 2>/dev/null; do work 'the working clients beside the export'; done
wait "$export_pid"
printf 'export at %s MB/s: %s\n' "$rate_mb" "$(cat "$folder/exported")"
[[ $expected == "$(cat "$folder/exported")" ]] || fail "the server itself sends: $expected"
printf 'the server itself sends the same\n'
