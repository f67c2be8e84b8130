#!/usr/bin/env bash
#
# What: compares skewed clients with evenly spread ones in one paired run: 6 groups, a closed loop of
#   point selects, 90 % of the connections in one group, or the same number in each, taking turns.
#   Prints statements a second, mean and p99 of both, and the ratio of the two p99.
# Why: the kernel deals clients to groups by chance, and a group must not be slow because it got
#   more of them.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes;
#   the server runs from a folder below /tmp on a free port.
# Restores: ends the server and the pool and removes the folder.
#
# CONNECTIONS (2000), GROUPS_OF_POOL (6), PERCENT (90), SECONDS_EACH (8) and ROUNDS (2) may be set in
# the environment.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

connections=${CONNECTIONS:-2000}
groups=${GROUPS_OF_POOL:-6}
percent=${PERCENT:-90}
seconds=${SECONDS_EACH:-8}
rounds=${ROUNDS:-2}

get_ready -p onramp -p testkit --bin onramp --example skew
skew=${SKEW:-$(dirname "$binary")/examples/skew}

start_server --innodb-flush-log-at-trx-commit=0
start_pool "groups = $groups" "clients_max = 20000"
rows=100000
make_tables --table-size "$rows"

for ((round = 0; round < rounds; round++)); do
    for share in 0 "$percent"; do
        line=$("$skew" "127.0.0.1:$pool_port" "$groups" "$connections" "$share" "$seconds" \
            "$rows")
        printf 'share %s %s\n' "$share" "$line" | tee -a "$folder/results"
    done
done
printf '%s connections, %s groups, %s cores, %s runs of %s s each, taking turns\n' \
    "$connections" "$groups" "$(nproc)" "$rounds" "$seconds"
awk '
    $1 == "share" { runs[$2]++; rate[$2] += $4; mean[$2] += $6; p99[$2] += $10 }
    END {
        for (share in runs)
            printf "%3s %% in one group: %8.0f statements/s  mean %8.2f ms  p99 %8.2f ms\n",
                share, rate[share] / runs[share], mean[share] / runs[share],
                p99[share] / runs[share]
        for (share in runs)
            if (share > 0) printf "p99 %.2f of that of the even spread (0 %%)\n", p99[share] / p99[0]
    }
' "$folder/results"
