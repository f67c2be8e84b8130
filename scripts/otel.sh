#!/usr/bin/env bash
#
# What: has the pool export metrics, spans and its log, while statements with a trace run: first to a
#   collector that reads each request by the protocol's own definitions (opentelemetry-proto of PyPI, which
#   OpenTelemetry makes from them), with unknown fields refused; then, where Go is installed, to
#   OpenTelemetry's own collector, which is built from its modules. Prints what was read, and fails at
#   whatever the definitions do not have, and at each request that the collector does not take.
# Why: the tests' collector knows what this project takes the protocol to be.
# Changes on the machine: installs MariaDB (Debian) if it is missing, as scripts/lib.sh describes; fetches
#   opentelemetry-proto and protobuf, and builds the collector, into target/otel. Servers and pools run
#   below /tmp on free ports.
# Restores: ends all of them and removes the folder.
#
# OTELCOL names a collector that is there already; it needs the receiver otlp and the exporter debug.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

# Modules of the collector have two numbers.
collector_version=v0.165.0
provider_version=v1.71.0
trace=0af7651916cd43dd8448eb211c80319c

[[ -n ${ONRAMP:-} ]] || get_ready --bin onramp
binary=${ONRAMP:-${binary:-}}
collector=
end_collector() {
    [[ -z $collector ]] || { kill "$collector" && wait "$collector"; } 2>/dev/null || true
    collector=
}
trap 'end_collector; end_all' EXIT

# await_line PATTERN: until the collector has written that; it must run.
await_line() {
    local tries=0
    until grep -qsE "$1" "$folder/collector.out"; do
        kill -0 "$collector" 2>/dev/null || fail "no collector: $(tail -3 "$folder/collector.out")"
        ((++tries < 600)) || fail "the collector has not said $1: $(tail -3 "$folder/collector.out")"
        sleep 0.1
    done
}

# export_to PORT: a pool that exports there, and 20 statements of which each second one fails.
export_to() {
    start_pool "http = \"127.0.0.1:$http_port\"" 'statement_log = "masked"' '[otel]' \
        "endpoint = \"http://127.0.0.1:$1\"" 'interval_s = 1' 'logs = true'
    local round
    for ((round = 0; round < 10; round++)); do
        printf "SELECT %d, 'a' /*traceparent='00-$trace-b7ad6b7169203331-01'*/;\n" "$round"
        printf "SELECT * FROM nowhere /*traceparent='00-$trace-b7ad6b7169203331-01'*/;\n"
    done | mariadb --no-defaults --comments --force -h127.0.0.1 -P"$pool_port" -uapp -papp sbtest \
        >/dev/null 2>"$folder/errors" || true
}

# figure NAME: one of the pool's.
figure() { curl -sf "http://127.0.0.1:$http_port/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }

build_collector() {
    OTELCOL=$PWD/target/otel/collector/otelcol
    [[ ! -x $OTELCOL ]] || return 0
    say "building OpenTelemetry's collector $collector_version from its modules"
    cat >"$folder/builder.yaml" <<YAML
dist:
  name: otelcol
  output_path: $PWD/target/otel/collector
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $collector_version
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/debugexporter $collector_version
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/envprovider $provider_version
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider $provider_version
YAML
    go run "go.opentelemetry.io/collector/cmd/builder@$collector_version" \
        --config "$folder/builder.yaml" >"$folder/build.log" 2>&1 || fail "$(tail -5 "$folder/build.log")"
}

http_port=$((31000 + RANDOM % 500))
start_server

say "the protocol's own definitions"
[[ -d target/otel/opentelemetry ]] || python3 -m pip install --quiet --disable-pip-version-check \
    --root-user-action=ignore --target target/otel opentelemetry-proto==1.45.2
PYTHONPATH=target/otel python3 scripts/otel.py >"$folder/collector.out" 2>&1 &
collector=$!
await_line '^port '
export_to "$(sed -n 's/^port //p' "$folder/collector.out")"
# The collector ends when it has metrics, 20 spans and 20 lines of the log about statements.
wait "$collector" || fail "$(tail -5 "$folder/collector.out")"
collector=
grep -v '^port ' "$folder/collector.out"
end_pool

if [[ -z ${OTELCOL:-} ]] && ! have go; then
    say "skipped: OpenTelemetry's collector: Go is not installed"
    exit 0
fi
[[ -n ${OTELCOL:-} ]] || build_collector
port=$((31500 + RANDOM % 500))
cat >"$folder/collector.yaml" <<YAML
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:$port
exporters:
  debug:
    verbosity: detailed
    sampling_initial: 100000
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    metrics: { receivers: [otlp], exporters: [debug] }
    traces: { receivers: [otlp], exporters: [debug] }
    logs: { receivers: [otlp], exporters: [debug] }
YAML
say "OpenTelemetry's collector"
"$OTELCOL" --config "$folder/collector.yaml" >"$folder/collector.out" 2>&1 &
collector=$!
await_line 'Everything is ready'
export_to "$port"
sent() { figure "onramp_pool_otel_$1_total{outcome=\"sent\"}"; }
tries=0
until [[ $(sent spans) == 20 && $(sent log_records) -ge 20 ]]; do
    ((++tries < 300)) || fail "sent: $(sent spans) spans, $(sent log_records) lines of the log"
    sleep 0.1
done
await_line 'Name: onramp_pool_statements_total$'
# The end of the pool sends what is left.
failed=$(figure 'onramp_pool_otel_requests_total{result="failed"}')
end_pool
await_line 'EventName: onramp.ended$'
[[ $failed == 0 ]] || fail "the collector has not taken $failed requests"
# count PATTERN
count() { grep -cE "$1" "$folder/collector.out" || true; }
(($(count '^Span #') == 20)) || fail "$(count '^Span #') spans"
(($(count '^EventName: onramp.statement$') == 20)) || fail "$(count 'onramp.statement$') statements"
(($(count "^Trace ID: $trace\$") == 20)) || fail "lines of the log have another trace"
(($(count "^    Trace ID       : $trace\$") == 20)) || fail "spans have another trace"
say "taken: $(count '^ *-> Name: onramp_') metrics, $(count '^Span #') spans, \
$(count '^LogRecord #') lines of the log, 0 requests failed"
