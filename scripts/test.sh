#!/usr/bin/env bash
#
# What: everything a change must pass, cheapest first: format, tidy, dependencies (cargo-deny, where
#   it is installed), lints, then unit tests, simulation and end-to-end tests. Stops at the first
#   step that fails; then the Debian package in a minimal system (scripts/packaged.sh). What was skipped is listed at the end, with its reason and how often.
# Why: a developer and the continuous integration run the same thing.
# Changes on the machine: installs a C compiler, MariaDB with its client, Python with PyMySQL, and for
#   root mmdebstrap and systemd-nspawn from Debian's packages if they are missing (says so first; needs
#   root or sudo); writes target/, the caches of the package managers that scripts/drivers.sh uses, and
#   ~/.cache/onramp.
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

# step TITLE COMMAND...: with `log` set, what the command says goes to that file too.
step() {
    local title=$1 started=$SECONDS
    shift
    printf '\n==> %s: %s\n' "$title" "$*"
    "$@" 2>&1 | tee "${log:-/dev/null}" ||
        fail "FAILED after $((SECONDS - started)) s: $title; to repeat it: $*"
    printf '==> %s: passed in %d s\n' "$title" "$((SECONDS - started))"
}

# What is skipped in this run, a line each. Tests append to it (testkit::real::skipped).
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
mkdir -p "$target"
export ONRAMP_SKIPPED_FILE=$target/skipped.txt
tests_log=$target/tests.log
: >"$ONRAMP_SKIPPED_FILE"

# skip NAME REASON
skip() {
    printf '%s: %s\n' "$1" "$2" >>"$ONRAMP_SKIPPED_FILE"
    say "skipped: $1: $2"
}

# cargo-deny judges licences, sources and bans by deny.toml, and advisories by a list that it
# fetches.
check_dependencies() {
    if ! cargo deny --version >/dev/null 2>&1; then
        skip "cargo-deny" "it is not installed (cargo install --locked cargo-deny)"
        return 0
    fi
    step "dependencies" cargo deny --locked check bans licenses sources
    if cargo deny fetch db >/dev/null 2>&1; then
        step "advisories" cargo deny --locked check advisories
    else
        skip "cargo-deny advisories" "the list of advisories could not be fetched"
    fi
}

# Prometheus' own program reads the rules.
check_alerts() {
    if have promtool; then
        step "alerts" promtool check rules monitoring/alerts.yml
    else
        skip "alert rules" "promtool is not installed (apt-get install prometheus)"
    fi
}

# What scripts/packaged.sh boots a minimal system with; without them it is skipped.
want_container() {
    ((EUID == 0)) && have apt-get || return 0
    want mmdebstrap mmdebstrap
    want systemd-nspawn systemd-container
}

# The tests that were skipped: those that said so, and those that are marked in the sources.
list_skipped() {
    {
        cat "$ONRAMP_SKIPPED_FILE"
        sed -nE 's/^test (.*) \.\.\. ignored(, )?(.*)$/\1: ignored by default: \3/p' "$tests_log"
    } | sort | uniq -c >"$ONRAMP_SKIPPED_FILE.counted"
    say "skipped: $(wc -l <"$ONRAMP_SKIPPED_FILE.counted"); each with how often, name and reason:"
    cat "$ONRAMP_SKIPPED_FILE.counted"
}

need_cargo
want_compiler
want_mariadb
want mariadb mariadb-client
want_python
want_container
install_missing
choose_python

step "format" cargo fmt --all --check
step "tidy" cargo run --quiet --locked -p xtask -- tidy
check_dependencies
check_alerts
step "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
step "drivers" bash scripts/drivers.sh
# End-to-end tests wait for servers, locks and timeouts: one for each of a few cores leaves those idle.
cores=$(nproc)
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((cores < 4 ? 4 : cores))}
log=$tests_log step "tests" cargo test --workspace --locked
step "package" bash scripts/packaged.sh

list_skipped
say "all passed in $SECONDS s"
