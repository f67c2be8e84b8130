#!/usr/bin/env bash
#
# What: fetches the peers that `onramp climb --paths haproxy,router` measures into target/peers (or
#   the folder that is named), beside whatever the machine runs: HAProxy and MySQL Router.
#   FOLDER/run haproxy -v and FOLDER/run mysqlrouter --version start them.
# Why: stable suites have an old HAProxy and no MySQL Router; a comparison is with the newest.
# Changes on the machine: writes FOLDER, about 90 MB. Nothing is installed. Needs apt-get and dpkg,
#   no root.
# Restores: remove FOLDER, and it is gone.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh
# shellcheck source=scripts/unstable.sh
source scripts/unstable.sh

folder=$(realpath -m "${1:-target/peers}")
if [[ ! -x $folder/run ]]; then
    fetch_unstable "$folder" haproxy mysql-router
fi
say "$("$folder/run" haproxy -v | head -n 1)"
say "$("$folder/run" mysqlrouter --version | head -n 1)"
