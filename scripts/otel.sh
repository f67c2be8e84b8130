#!/usr/bin/env bash
#
# What: has the pool export to a collector that reads each request by the protocol's own definitions
#   (opentelemetry-proto of PyPI, which OpenTelemetry makes from them), with unknown fields refused. Some
#   statements with a trace run meanwhile. Prints how many metrics and spans were read, and fails at
#   whatever the definitions do not have.
# Why: the tests' collector knows what this project takes the protocol to be.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes; fetches
#   opentelemetry-proto and protobuf into target/otel. Server and pool run below /tmp on free ports.
# Restores: ends both and removes the folder.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

[[ -n ${ONRAMP:-} ]] || get_ready --bin onramp
binary=${ONRAMP:-${binary:-}}
[[ -d target/otel/opentelemetry ]] || python3 -m pip install --quiet --disable-pip-version-check \
    --root-user-action=ignore --target target/otel opentelemetry-proto==1.45.2

PYTHONPATH=target/otel python3 scripts/otel.py >"$folder/collector.out" 2>&1 &
collector=$!
until grep -qs '^port ' "$folder/collector.out"; do
    kill -0 "$collector" 2>/dev/null || fail "no collector: $(tail -3 "$folder/collector.out")"
    sleep 0.1
done
port=$(sed -n 's/^port //p' "$folder/collector.out")
start_server
start_pool 'statement_log = "masked"' '[otel]' "endpoint = \"http://127.0.0.1:$port\"" 'interval_s = 1'
trace=0af7651916cd43dd8448eb211c80319c
for ((round = 0; round < 10; round++)); do
    printf "SELECT %d, 'a' /*traceparent='00-$trace-b7ad6b7169203331-01'*/;\n" "$round"
    printf "SELECT * FROM nowhere /*traceparent='00-$trace-b7ad6b7169203331-01'*/;\n"
done | mariadb --no-defaults --comments --force -h127.0.0.1 -P"$pool_port" -uapp -papp sbtest \
    >/dev/null 2>"$folder/errors" || true
# The collector ends when it has metrics and 20 spans.
wait "$collector" || fail "$(tail -5 "$folder/collector.out")"
grep -v '^port ' "$folder/collector.out"
end_pool
