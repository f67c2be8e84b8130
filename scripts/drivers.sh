#!/usr/bin/env bash
#
# What: fetches the drivers that tests/drivers does its work with, builds those programs, and puts
#   a way to start each into target/drivers/NAME/run. Versions are pinned by the files beside the
#   programs. What cannot be had is said in target/drivers/NAME/missing, and is no failure: the
#   test of that name is skipped with these words.
# Why: the tests run what users run. `make test` calls this; what is there already is not fetched
#   again, unless its files have changed.
# Changes on the machine: writes target/drivers (some 400 MB, most of it the build of sqlx), and
#   the caches of pip, go, npm, Maven and cargo. Nothing is installed.
# Restores: remove target/drivers, and it is gone.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

sources=$PWD/tests/drivers
target=$PWD/target/drivers
# The longest that one driver may take to be fetched and built, in seconds.
limit=150

# launcher NAME/PROGRAM LINE...: writes target/drivers/NAME/PROGRAM.
launcher() {
    mkdir -p "$target/${1%/*}"
    printf '%s\n' '#!/bin/sh' "${@:2}" >"$target/$1"
    chmod +x "$target/$1"
}

# need PROGRAM...: whether all of them are there; says which is not.
need() {
    local program
    for program in "$@"; do
        have "$program" || { echo "$program is not installed" >&2; return 1; }
    done
}

fetch_python() {
    need python3
    python3 -m pip install --quiet --no-deps --disable-pip-version-check --root-user-action=ignore \
        --upgrade --target "$target/python/lib" -r "$sources/python/requirements.txt"
    local pair
    for pair in pymysql:pymysql sqlalchemy:sqlalchemy mysql-connector-python:connector; do
        launcher "${pair%:*}/run" "export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='$target/python/lib'" \
            "exec python3 '$sources/python/${pair#*:}_work.py' \"\$@\""
    done
    for pair in pymysql mysql-connector-python; do
        launcher "$pair/ends" "export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='$target/python/lib'" \
            "exec python3 '$sources/python/ends.py' $pair \"\$@\""
    done
}

fetch_go() {
    need go
    (cd "$sources/go" && go build -mod=readonly -o "$target/go/work" .)
    (cd "$sources/go" && go build -mod=readonly -o "$target/go/ending" ./ends)
    launcher go/run "exec '$target/go/work' \"\$@\""
    launcher go/ends "exec '$target/go/ending' \"\$@\""
}

# node_driver SOURCE NAME: a driver for Node, from the registry of npm.
node_driver() {
    mkdir -p "$target/$2"
    cp "$sources/node/shared.mjs" "$sources/node/$1"/{package.json,package-lock.json,.npmrc,work.mjs} \
        "$target/$2"
    (cd "$target/$2" && npm ci --silent --ignore-scripts)
    launcher "$2/run" "exec node '$target/$2/work.mjs' \"\$@\""
}

fetch_node() {
    need node npm
    node_driver mysql2 mysql2
    cp "$sources/node/mysql2/ends.mjs" "$target/mysql2"
    launcher mysql2/ends "exec node '$target/mysql2/ends.mjs' \"\$@\""
    node_driver mariadb mariadb-node
}

fetch_jdbc() {
    need mvn javac java
    rm -rf "$target/jdbc"
    mkdir -p "$target/jdbc"
    mvn -q -B -f "$sources/jdbc/pom.xml" -DoutputDirectory="$target/jdbc/lib" \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies
    javac -d "$target/jdbc/classes" -cp "$target/jdbc/lib/*" "$sources/jdbc/Work.java" \
        "$sources/jdbc/Ends.java"
    local driver
    for driver in mysql mariadb; do
        launcher "$driver-connector-j/run" \
            "exec java -cp '$target/jdbc/classes:$target/jdbc/lib/*' Work $driver \"\$@\""
        launcher "$driver-connector-j/ends" \
            "exec java -cp '$target/jdbc/classes:$target/jdbc/lib/*' Ends $driver \"\$@\""
    done
}

fetch_sqlx() {
    (cd "$sources/sqlx" && cargo build --quiet --locked --target-dir "$target/sqlx/build")
    launcher sqlx/run "exec '$target/sqlx/build/debug/drivers-sqlx' \"\$@\""
}

# fetch SOURCE NAME...: fetches what lies in tests/drivers/SOURCE, for the drivers of these names.
fetch() {
    local source=$1 name stamp started=$SECONDS log
    shift
    stamp=$(cd "$sources/$source" && find . -type f ! -path '*/target/*' -print0 | sort -z |
        xargs -0 sha256sum | sha256sum)
    log=$target/$source.log
    mkdir -p "$target"
    [[ -f $target/$source.stamp && $(<"$target/$source.stamp") == "$stamp" ]] && return 0
    for name; do
        mkdir -p "$target/$name"
        rm -f "$target/$name"/{run,missing}
    done
    if timeout "$limit" bash scripts/drivers.sh --only "$source" >"$log" 2>&1; then
        printf '%s\n' "$stamp" >"$target/$source.stamp"
        say "drivers: $* after $((SECONDS - started)) s"
        return 0
    fi
    local why
    why=$(grep -v '^ *$' "$log" | tail -n 1 || true)
    for name; do
        printf 'could not be fetched or built: %s\n' "${why:-it took more than $limit s}" \
            >"$target/$name/missing"
        rm -f "$target/$name/run"
    done
    say "drivers: $*: left out: ${why:-it took more than $limit s} (all of it: $log)"
}

if [[ ${1:-} == --only ]]; then
    "fetch_$2"
    exit
fi
need_cargo
fetch python pymysql sqlalchemy mysql-connector-python
fetch go go
fetch node mysql2 mariadb-node
fetch jdbc mysql-connector-j mariadb-connector-j
fetch sqlx sqlx
