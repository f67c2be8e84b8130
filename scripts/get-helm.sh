#!/usr/bin/env bash
#
# What: builds helm and kubeconform from their Go modules into target/tools, the schemas that
#   kubeconform checks by, from the Go types of Kubernetes' API, into target/tools/schemas, and
#   containerd's default seccomp filter into target/tools/seccomp.json.
# Why: Debian has neither, and the check of the chart must not ask the network for schemas.
# Changes on the machine: writes target/tools, about 150 MB, and Go's own caches. Needs go (Debian:
#   golang, 1.23 or later).
# Restores: remove target/tools, and it is gone.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

PATH=$PATH:/usr/local/go/bin
have go || fail "needs go (Debian: golang)"
tools=$PWD/target/tools
[[ -x $tools/helm && -x $tools/kubeconform && -f $tools/schemas/service-v1.json && -s $tools/seccomp.json ]] && { say "they are in $tools"; exit 0; }
mkdir -p "$tools/schemas" "$tools/src" "$tools/src-seccomp"
export GOBIN=$tools
go install helm.sh/helm/v3/cmd/helm@v3.16.4
go install github.com/yannh/kubeconform/cmd/kubeconform@v0.6.7
cp deploy/helm/schemas/main.go "$tools/src/"
cd "$tools/src"
[[ -f go.mod ]] || go mod init schemas
go get k8s.io/api@v0.31.3 k8s.io/apimachinery@v0.31.3 \
    github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring@v0.78.2
go get .
go run . "$tools/schemas"
cp "$OLDPWD/deploy/helm/seccomp/main.go" "$tools/src-seccomp/"
cd "$tools/src-seccomp"
[[ -f go.mod ]] || go mod init seccomp
go get github.com/containerd/containerd/contrib/seccomp@v1.7.24
go get .
go run . >"$tools/seccomp.json"
say "helm, kubeconform and $(find "$tools/schemas" -name '*.json' | wc -l) schemas are in $tools"
