#!/usr/bin/env bash
#
# What: everything a change must pass, cheapest first: format, tidy, lints, then unit tests,
#   simulation and end-to-end tests. Stops at the first step that fails.
# Why: a developer and the continuous integration run the same thing.
# Changes on the machine: installs a C compiler, MariaDB with its client, and Python with PyMySQL
#   from Debian's packages if they are missing (says so first; needs root or sudo); writes target/,
#   and the caches of the package managers that scripts/drivers.sh uses.
# Restores: a MariaDB service that the installation started is stopped and disabled; the tests end
#   the servers that they start. The packages stay.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

# PyMySQL answers the RSA part of caching_sha2_password with `cryptography`.
speaks_mysql() {
    "$1" -c 'import pymysql, cryptography' 2>/dev/null
}

want_python() {
    speaks_mysql python3 || speaks_mysql /usr/bin/python3 ||
        missing_packages+=(python3 python3-pymysql python3-cryptography)
}

# Debian's modules belong to Debian's interpreter, and another one may come first on the PATH. The
# tests ask for plain `python3`, so a virtual environment on top of Debian's goes in front.
choose_python() {
    speaks_mysql python3 && return 0
    local environment=$PWD/target/venv
    /usr/bin/python3 -m venv --without-pip --system-site-packages "$environment"
    export PATH="$environment/bin:$PATH"
    speaks_mysql python3 || fail "python3 finds no PyMySQL in $environment; remove it, try again"
}

# step TITLE COMMAND...
step() {
    local title=$1 started=$SECONDS
    shift
    printf '\n==> %s: %s\n' "$title" "$*"
    "$@" || fail "FAILED after $((SECONDS - started)) s: $title; to repeat it: $*"
    printf '==> %s: passed in %d s\n' "$title" "$((SECONDS - started))"
}

need_cargo
want_compiler
want_mariadb
want mariadb mariadb-client
want_python
install_missing
choose_python

step "format" cargo fmt --all --check
step "tidy" cargo run --quiet --locked -p xtask -- tidy
step "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
step "drivers" bash scripts/drivers.sh
step "tests" cargo test --workspace --locked

say "all passed in $SECONDS s"
