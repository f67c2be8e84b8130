#!/usr/bin/env bash
#
# What: has Prometheus itself read what is in monitoring/ and what the pool serves: promtool looks at the
#   metrics; a Prometheus loads the alert rules, scrapes a pool with some statements, failed logins and a
#   pinned client, and answers each query of the dashboard. Fails where something cannot be read, and
#   where a rule is in error. Prints how many queries have an answer.
# Why: names that exist in the pool are checked by a unit test; whether the programs take the files is not.
# Changes on the machine: installs MariaDB and Prometheus (Debian) if they are missing, as scripts/lib.sh
#   describes; all of it runs below /tmp on free ports.
# Restores: ends all of it and removes the folder. A Prometheus service that the installation started
#   is stopped and disabled.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

if ! have prometheus || ! have promtool; then
    want promtool prometheus
    install_missing
    ! have systemctl || systemctl disable --now prometheus 2>/dev/null || true
fi
[[ -n ${ONRAMP:-} ]] || get_ready --bin onramp
binary=${ONRAMP:-${binary:-}}

watcher=
end_watcher() {
    [[ -z $watcher ]] || { kill "$watcher" && wait "$watcher"; } 2>/dev/null || true
}
trap 'end_watcher; end_all' EXIT

http_port=$((31000 + RANDOM % 400))
port=$((31500 + RANDOM % 400))
start_server
start_pool "http = \"127.0.0.1:$http_port\""
client() { mariadb --no-defaults -h127.0.0.1 -P"$pool_port" -uapp "$@" sbtest; }
coproc PINNED { client -papp --unbuffered; }
printf "SELECT GET_LOCK('pinned', 0);\n" >&"${PINNED[1]}"
read -r _ <&"${PINNED[0]}"
client -papp --force -e 'SELECT 1; SELECT * FROM nowhere; SELECT 2' >/dev/null 2>&1 || true
! client -pwrong -e 'SELECT 1' 2>/dev/null || fail "a wrong password is right"

say "promtool: $(promtool --version 2>&1 | head -1)"
# It reads Prometheus' own text; Prometheus itself asks for OpenMetrics below.
curl -fs "http://127.0.0.1:$http_port/metrics" | promtool check metrics || fail "promtool does not like the metrics"
cat >"$folder/prometheus.yml" <<YAML
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [$PWD/monitoring/alerts.yml]
scrape_configs:
  - job_name: onramp
    static_configs: [{ targets: ["127.0.0.1:$http_port"] }]
YAML
promtool check config "$folder/prometheus.yml" >"$folder/checked" || fail "$(cat "$folder/checked")"
prometheus --config.file="$folder/prometheus.yml" --storage.tsdb.path="$folder/tsdb" \
    --web.listen-address="127.0.0.1:$port" >"$folder/prometheus.log" 2>&1 &
watcher=$!
python3 scripts/prometheus.py "http://127.0.0.1:$port" monitoring/grafana-dashboard.json ||
    fail "$(tail -3 "$folder/prometheus.log")"
