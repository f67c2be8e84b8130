#!/usr/bin/env bash
#
# What: builds onramp by the profile demo and climbs the default rungs, direct against pooled, on a
#   private MariaDB, with 3 s for each measurement; `onramp climb` of a release build measures longer.
# Why: one command from a fresh Debian 12 with only Rust to the report.
# Changes on the machine: installs a C compiler and MariaDB from Debian's packages if they are
#   missing (says so first; needs root or sudo); writes target/, climb.html and climb.json. No
#   kernel setting is touched.
# Restores: a MariaDB service that the installation started is stopped and disabled; the private
#   MariaDB ends with the climb. `make clean` removes the files, apt-get the packages.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

need_cargo
want_compiler
want_mariadb
install_missing

say "building"
# The report names the commit that it measured.
ONRAMP_COMMIT=$(git rev-parse --short HEAD 2>/dev/null || true)
export ONRAMP_COMMIT
cargo build --profile demo --locked

say "climbing"
"$(release_binary demo)" climb --warmup-time 1 --time 3

say "the report to look at: $PWD/climb.html"
say "the same as data:      $PWD/climb.json"
