#!/usr/bin/env bash
#
# What: builds onramp by the profile demo and climbs the default rungs, direct against pooled, on a
#   private MariaDB, with 3 s for each measurement, and says how long each part took; `onramp climb`
#   of a release build measures longer.
# Why: one command from a fresh Debian 12 with only Rust to the report.
# Changes on the machine: installs a C compiler and MariaDB from Debian's packages if they are
#   missing (says so first; needs root or sudo), MariaDB while onramp is built, with what apt-get says
#   in target/demo-install.log; writes target/, climb.html and climb.json. No kernel setting is touched.
# Restores: a MariaDB service that the installation started is stopped and disabled; the private
#   MariaDB ends with the climb. `make clean` removes the files, apt-get the packages.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

# took WHAT: says how long that took, since the last time.
said_at=0
took() {
    say "$1 took $((SECONDS - said_at)) s"
    said_at=$SECONDS
}

need_cargo
want_compiler
install_missing
want_mariadb
install_missing target/demo-install.log
took "preparing"

say "building"
# The report names the commit that it measured.
ONRAMP_COMMIT=$(git rev-parse --short HEAD 2>/dev/null || true)
export ONRAMP_COMMIT
cargo build --profile demo --locked
wait_for_install
took "building"

say "climbing"
"$(release_binary demo)" climb --warmup-time 1 --time 3
took "climbing"

say "the report to look at: $PWD/climb.html"
say "the same as data:      $PWD/climb.json"
say "from the command to the report: $SECONDS s"
