#!/usr/bin/env bash
#
# What: everything a change must pass, cheapest first: format, tidy, dependencies (cargo-deny, where
#   it is installed), lints, then unit tests, simulation and end-to-end tests, with the slowest named.
#   Stops at the first step that fails; then the Debian package in a minimal system
#   (scripts/packaged.sh). What was skipped is listed at the end, with its reason and how often.
#   `test.sh check` ends after lints, units, simulation and 40 seeds of the oracle on MariaDB: under
#   five minutes on a built tree.
# Why: a developer and the continuous integration run the same thing.
# Changes on the machine: installs a C compiler, MariaDB with its client, Python with PyMySQL, and for
#   root mmdebstrap and systemd-nspawn from Debian's packages if they are missing (says so first; needs
#   root or sudo); fetches MySQL into target/mysql (scripts/get-mysql.sh) unless ONRAMP_MYSQL names one;
#   writes target/, the caches of the package managers that scripts/drivers.sh uses, and ~/.cache/onramp.
# Restores: a MariaDB service that the installation started is stopped and disabled; the tests end
#   the servers that they start. The packages stay.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

# Debian's interpreter, with the pip that fetches the pinned drivers and with `cryptography`, by which
# PyMySQL answers the RSA part of caching_sha2_password.
has_python() {
    /usr/bin/python3 -c 'import cryptography, ensurepip, pip, pymysql' 2>/dev/null
}

want_python() {
    has_python || missing_packages+=(python3 python3-venv python3-pip python3-pymysql python3-cryptography)
}

# The tests ask for plain `python3`. They get an environment of their own on top of Debian's, in which
# the drivers that scripts/drivers.sh pins come before Debian's, whatever the machine has besides.
choose_python() {
    local environment=$PWD/target/venv
    has_python || fail "/usr/bin/python3 has no pip, PyMySQL or cryptography"
    # `venv` makes nothing where a link stands, as in a worktree that borrows another one's.
    [[ ! -L $environment ]] || rm "$environment"
    /usr/bin/python3 -m venv --without-pip --system-site-packages "$environment"
    printf '%s\n' "$PWD/target/drivers/python/lib" \
        >"$(echo "$environment"/lib/python3*/site-packages)/pinned-drivers.pth"
    export PATH="$environment/bin:$PATH"
}

# MySQL's half of the tests needs a MySQL, which Debian's stable suites do not have.
fetch_mysql() {
    [[ -z ${ONRAMP_MYSQL:-} ]] || return 0
    bash scripts/get-mysql.sh ||
        skip "MySQL" "it could not be fetched (see above): its half of the tests"
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
slowest_count=20
# Seeds that the oracle tells where the tests are cut short.
check_seeds=40
# `test.sh check` leaves out what takes long.
checking=$([[ ${1:-} == check ]] && echo 1 || echo 0)
: >"$ONRAMP_SKIPPED_FILE"

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

# The time of each test is printed by test programs of nightly toolchains, or with this variable. It is
# set for them alone: builds would begin anew with it.
run_tests() {
    local triple
    triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
    export "CARGO_TARGET_${triple}_RUNNER=env RUSTC_BOOTSTRAP=1"
    log=$tests_log step "tests" cargo test --workspace --locked --lib --bins --tests -- \
        -Z unstable-options --report-time
    step "examples in docs" cargo test --workspace --locked --doc
}

# The tests that took longest. `head` and `sed q` would end `sort` by SIGPIPE, and with it this script.
list_slowest() {
    say "the $slowest_count slowest tests, in seconds:"
    sed -nE 's/^test (.*) \.\.\. ok <([0-9.]+)s>$/\2 \1/p' "$tests_log" |
        sort -rn | awk -v count="$slowest_count" 'NR <= count'
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

# Cheap enough to be run after each change: no MySQL, no end-to-end tests but the oracle's.
check() {
    step "units and simulation" cargo test --workspace --exclude onramp --locked
    step "oracle" env "ONRAMP_ORACLE_SEEDS=$check_seeds" \
        cargo test --locked --test e2e oracle::the_oracle_finds_no_difference_on_mariadb
    say "all passed in $SECONDS s; MySQL, drivers and end-to-end tests are in \`make test\`"
}

need_cargo
want_compiler
want_mariadb
want mariadb mariadb-client
want_python
want_container
install_missing
choose_python
((checking)) || fetch_mysql

step "format" cargo fmt --all --check
step "tidy" cargo run --quiet --locked -p xtask -- tidy
check_dependencies
check_alerts
step "lints" cargo clippy --workspace --all-targets --locked -- -D warnings
if ((checking)); then
    check
    exit
fi
step "drivers" bash scripts/drivers.sh
# End-to-end tests wait for servers, locks and timeouts: one for each of a few cores leaves those idle.
cores=$(nproc)
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((cores < 4 ? 4 : cores))}
run_tests
step "package" bash scripts/packaged.sh
step "chart" bash scripts/helm.sh

list_slowest
list_skipped
say "all passed in $SECONDS s"
