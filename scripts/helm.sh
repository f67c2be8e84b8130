#!/usr/bin/env bash
#
# What: checks the chart (deploy/helm/onramp): `helm lint`, and `helm template | kubeconform -strict`
#   for each file of deploy/helm/values. With `run` it then starts what the first of them renders: the
#   command, user, groups, capabilities, seccomp filter (containerd's default), memory limit, read-only
#   root and volumes of the manifest, in namespaces of its own; logs in, has a changed ConfigMap and Secret reloaded, drains it.
# Why: a chart that renders may still not start.
# Changes on the machine: target/; with `run` a private MariaDB below /tmp, as scripts/server.sh has
#   it, and the image's program (PROFILE, dev).
# Restores: ends both and removes the folder.
#
# Needs scripts/get-helm.sh first; without it, and `run` without root, it says what it skips.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

export PATH="$PWD/target/tools:$PATH"
have helm && have kubeconform || { skip "chart" "run scripts/get-helm.sh"; exit 0; }
render() { helm template shop deploy/helm/onramp --values "$@"; }
for values in deploy/helm/values/*.yaml; do
    helm lint --strict --quiet deploy/helm/onramp --values "$values" 2>/dev/null
    render "$values" 2>/dev/null | kubeconform -strict -summary \
        -schema-location 'target/tools/schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json'
done
# Whole numbers are written so, and no fraction is cut.
render deploy/helm/values/large.yaml --set-json 'settings={"stall_ms":0.5}' 2>/dev/null >target/tools/half.yaml
grep -q 'stall_ms = 0.5$' target/tools/half.yaml && grep -q 'clients_max = 900000$' target/tools/half.yaml ||
    fail "a number of the chart's values is another one in pool.toml"
say "chart: passed"
[[ ${1:-} == run ]] || exit 0
((EUID == 0)) || { skip "chart in namespaces" "it needs root"; exit 0; }
# shellcheck source=scripts/server.sh
source scripts/server.sh
image=${ONRAMP_IMAGE:-$folder/image}
[[ -d $image ]] || PROFILE=${PROFILE:-dev} bash packaging/image.sh "$image"
start_server
# The settings of each are what the pool takes.
"$image/usr/bin/onramp" --version
for values in deploy/helm/values/*.yaml; do
    render "$values" 2>/dev/null | python3 scripts/helm.py settings "$folder"
    "$image/usr/bin/onramp" pool --config "$folder/settings.toml" --check
done
render deploy/helm/values/small.yaml >"$folder/manifests.yaml" 2>/dev/null
python3 scripts/helm.py run "$folder" "$image" "$server_port"
say "chart in namespaces: passed"
