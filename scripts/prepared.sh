#!/usr/bin/env bash
#
# What: 10,000 clients of the pool prepare 91 statements each, as sysbench's oltp_read_write does
#   over 10 tables (nine for each table, and COMMIT), and execute them. Samples the server's
#   Prepared_stmt_count meanwhile and prints its peak against `prepared_max` and the server's
#   max_prepared_stmt_count, the errors, and the pool's memory for each client. Twice: `same`, all
#   clients prepare the same 91 texts; `other`, each eighth of them has texts of its own, 728 in all,
#   more than a backend may have at once.
# Why: connections of their own would need 910,000 prepared statements on a server that allows
#   16,382.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server, the pools and the loads, and removes the folder.
#
# CLIENTS (10000), EVENTS_EACH (2, how often all 91 are executed for each client on average),
# PREPARED_MAX (8192) and VARIANTS ("same other") may be set in the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh disable=SC2154
source scripts/server.sh

clients=${CLIENTS:-10000}
events_each=${EVENTS_EACH:-2}
prepared_max=${PREPARED_MAX:-8192}
read -ra variants <<<"${VARIANTS:-same other}"
loads=8
tables=10

get_ready --bin onramp

# statements MARK: sets `texts` to the options of an event that needs all 91; MARK makes them
# texts of their own.
statements() {
    local table text
    texts=()
    for ((table = 1; table <= tables; table++)); do
        for text in \
            "SELECT c FROM sbtest$table WHERE id=?" \
            "SELECT c FROM sbtest$table WHERE id BETWEEN ? AND ?" \
            "SELECT SUM(k) FROM sbtest$table WHERE id BETWEEN ? AND ?" \
            "SELECT c FROM sbtest$table WHERE id BETWEEN ? AND ? ORDER BY c" \
            "SELECT DISTINCT c FROM sbtest$table WHERE id BETWEEN ? AND ? ORDER BY c" \
            "UPDATE sbtest$table SET k=k+1 WHERE id=?" \
            "UPDATE sbtest$table SET c=? WHERE id=?" \
            "DELETE FROM sbtest$table WHERE id=?" \
            "REPLACE INTO sbtest$table (id, k, c, pad) VALUES (?, ?, 'c', 'pad')"; do
            texts+=(--statement "$text$1")
        done
    done
    texts+=(--statement "COMMIT$1")
}

status() { admin -BNe "SHOW GLOBAL STATUS LIKE '$1'" | awk '{ print $2 }'; }

# sample FILE: the server's Prepared_stmt_count, twenty times a second, until it is ended.
sample() {
    while sleep 0.05; do
        printf "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count';\n"
    done | admin -BNn >"$1" 2>/dev/null
}

# run VARIANT: the first events arrive one at each client, for those idle longest are taken first; so
# each client prepares all 91. Further events go to whoever is done.
run() {
    start_pool "clients_max = $((clients + 1000))" "prepared_max = $prepared_max"
    sleep 1
    local before after peak number prepared mark each=$((clients / loads))
    before=$(pool_rss)
    prepared=$(status Com_stmt_prepare)
    sample "$folder/samples" &
    local sampler=$!
    local -a pids=()
    for ((number = 1; number <= loads; number++)); do
        mark=
        [[ $1 == same ]] || mark=" -- $number"
        statements "$mark"
        "$binary" load statements run "${texts[@]}" --db-ps-mode auto --connections "$each" \
            --groups 1 --tables "$tables" --table-size 100 --rate 100000 --arrivals constant \
            --events $((each * events_each)) --time 0 --connect-rate 500 --json "$folder/load$number.json" \
            --target "mysql://app:app@127.0.0.1:$pool_port/sbtest" \
            >/dev/null 2>"$folder/load$number.log" &
        pids+=($!)
    done
    after=0
    while kill -0 "${pids[@]}" 2>/dev/null; do
        number=$(pool_rss)
        ((number <= after)) || after=$number
        sleep 0.2
    done
    for ((number = 1; number <= loads; number++)); do
        wait "${pids[number - 1]}" ||
            fail "a load failed: $(tail -3 "$folder/load$number.log")"
    done
    { kill "$sampler" && wait "$sampler"; } 2>/dev/null || true
    peak=$(sort -k2,2n "$folder/samples" | awk 'END { print $2 + 0 }')
    prepared=$(($(status Com_stmt_prepare) - prepared))
    printf '%s: %d clients; Prepared_stmt_count at most %d of prepared_max %d ' "$1" "$clients" \
        "$peak" "$prepared_max"
    printf '(max_prepared_stmt_count %s); ' "$(admin -BNe 'SELECT @@max_prepared_stmt_count')"
    printf '%d prepares on the server; ' "$prepared"
    printf "the pool's memory at most %d bytes for each client, that of running included\n" \
        $(((after - before) / clients))
    local asked failed
    asked=$(field statements "$folder"/load?.json)
    failed=$(($(field failed_statements "$folder"/load?.json) +
        $(field ignored_errors "$folder"/load?.json)))
    printf '%s: %d of %d statements executed, %d errors\n' "$1" "$asked" \
        $((each * loads * events_each * (9 * tables + 1))) "$failed"
    ! grep -A5 '"errors": \[$' "$folder"/load?.json || fail "the loads met errors"
    ((peak <= prepared_max)) || fail "more statements were prepared than prepared_max allows"
    end_pool
}

start_server --innodb-flush-log-at-trx-commit=0
make_tables --tables "$tables" --table-size 100
for variant in "${variants[@]}"; do
    run "$variant"
done
