# shellcheck shell=bash
#
# What: the functions that demo.sh, test.sh and bench.sh share. Source it, do not run it.
# Why: each of them must work on a fresh Debian 12 with nothing but Rust, and must install what is
#   missing in the same way.
# Changes on the machine: install_missing installs Debian packages, after it has said which. It
#   needs root, or sudo. Nothing else here writes outside target/.
# Restores: installing mariadb-server starts a service and has it start at each boot;
#   install_missing stops and disables it again. The packages stay.

missing_packages=()
# The longest that this waits for another program that installs packages, in seconds.
apt_wait=600

say() {
    printf '%s\n' "onramp: $*"
}

fail() {
    printf '%s\n' "onramp: $*" >&2
    exit 1
}

# skip NAME REASON: says what is left out; a run of test.sh lists it at its end.
skip() {
    printf '%s: %s\n' "$1" "$2" >>"${ONRAMP_SKIPPED_FILE:-/dev/null}"
    say "skipped: $1: $2"
}

# Servers live in sbin, which the PATH of an ordinary user often leaves out.
have() {
    PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" command -v "$1" >/dev/null
}

# want PROGRAM PACKAGE...: notes the packages if the program is not there.
want() {
    local program=$1
    shift
    have "$program" || missing_packages+=("$@")
}

# rust-toolchain.toml pins a version, which rustup fetches by itself. Where it may not or cannot,
# the same version is often there under the name `stable`, and does as well.
need_cargo() {
    have cargo || fail "cargo is not on the PATH; install Rust with rustup, then run this again"
    cargo --version >/dev/null && return 0
    local pinned
    pinned=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
    export RUSTUP_TOOLCHAIN=stable
    [[ $(cargo --version 2>/dev/null) == "cargo $pinned "* ]] ||
        fail "Rust $pinned is not installed; run: rustup toolchain install $pinned"
    say "the toolchain named stable is Rust $pinned; going on with it"
}

# Versions of the tools that make packages. A later cargo-deb does not pack debug builds.
export cargo_deb=3.8.0 cargo_generate_rpm=0.21.1

# cargo_tool NAME VERSION: has this tool of cargo's in target/tools. It is built without optimization,
# in a fifth of the time.
cargo_tool() {
    export PATH="$PWD/target/tools/bin:$PATH"
    [[ $(cargo "${1#cargo-}" --version 2>/dev/null) != *"$2" ]] || return 0
    say "$1 $2 is built first, into target/tools: that takes minutes, once"
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 \
        cargo install --quiet --debug --locked --root target/tools "$1@$2"
}

# fill_package BINARY: what packages have that is made: the program without its symbols, manual pages,
# completions. The symbols stay beside it, where gdb and perf find them: onramp.debug.
fill_package() {
    rm -rf target/package
    mkdir -p target/package/man target/package/completions
    objcopy --only-keep-debug --compress-debug-sections "$1" target/package/onramp.debug
    strip -o target/package/onramp "$1"
    objcopy --add-gnu-debuglink=target/package/onramp.debug target/package/onramp
    "$1" generate man target/package/man
    "$1" generate completions target/package/completions
}

# Wanted by every build: the C and assembly parts of aws-lc-sys, and the linker.
want_compiler() {
    want cc gcc libc6-dev
}

want_mariadb() {
    want mariadbd mariadb-server
}

# install_missing [LOG]: installs what `want` noted, in one go; does nothing if nothing is missing. With
# LOG it goes on beside the script, until wait_for_install, and what apt-get says goes there.
install_missing() {
    ((${#missing_packages[@]})) || return 0
    local -a install=(apt-get -o "DPkg::Lock::Timeout=$apt_wait" install -y
        --no-install-recommends "${missing_packages[@]}")
    local commands="apt-get update && ${install[*]}"
    local -a as_root=(env DEBIAN_FRONTEND=noninteractive)

    have apt-get || fail "missing, and there is no apt-get here: ${missing_packages[*]}"
    if ((EUID != 0)); then
        have sudo || fail "packages are missing; run as root, then try again: $commands"
        as_root=(sudo "${as_root[@]}")
    fi
    say "packages are missing; this needs root and runs${1:+ meanwhile}: $commands"
    if [[ -z ${1:-} ]]; then
        install_now
    else
        # A password is asked for here.
        "${as_root[@]}" true
        mkdir -p "$(dirname "$1")"
        # apt-get is not left half done, nor by Ctrl-C.
        { trap '' INT && install_now; } >"$1" 2>&1 &
        installing=$! install_log=$1
        trap wait_for_install EXIT
    fi
    missing_packages=()
}

# The part of install_missing that takes long; uses its `as_root` and `install`.
install_now() {
    local server_is_new=no status=0
    [[ " ${missing_packages[*]} " == *" mariadb-server "* ]] && server_is_new=yes
    update_lists "${as_root[@]}"
    "${as_root[@]}" "${install[@]}" || status=$?
    if [[ $server_is_new == yes ]]; then
        stop_new_service "${as_root[@]}"
    fi
    ((status == 0)) || fail "the installation failed with status $status: ${install[*]}"
}

# Waits for what install_missing does beside the script.
wait_for_install() {
    [[ -n ${installing:-} ]] || return 0
    local process=$installing
    installing=
    ! kill -0 "$process" 2>/dev/null || say "packages are still being installed; waiting"
    wait "$process" || { cat "$install_log"; fail "packages could not be installed"; }
}

# update_lists AS_ROOT...: fetches the lists of packages. apt waits for dpkg's lock by itself
# (DPkg::Lock::Timeout), but not for the one on the lists, so that is tried again.
update_lists() {
    local said until=$((SECONDS + apt_wait))
    while ! said=$("$@" apt-get -o "DPkg::Lock::Timeout=$apt_wait" update 2>&1); do
        [[ $said == *"Could not get lock"* ]] || fail "apt-get update failed: $said"
        ((SECONDS < until)) || fail "apt-get update: another program has had the lock on the lists \
for $apt_wait s: $said"
        say "another program has the lock on apt's lists; waiting"
        sleep 2
    done
}

# stop_new_service AS_ROOT...: undoes the start, and the start at boot, of a MariaDB service that
# was not on the machine before. Benchmarks and tests run private servers of their own.
stop_new_service() {
    if [[ -d /run/systemd/system ]]; then
        say "stopping the MariaDB service that the package started"
        "$@" systemctl disable --now mariadb.service || say "mariadb.service is still enabled"
    elif [[ -x /etc/init.d/mariadb ]]; then
        say "stopping the MariaDB service, if the package started it"
        "$@" /etc/init.d/mariadb stop || say "/etc/init.d/mariadb stop failed"
        "$@" update-rc.d mariadb disable || say "/etc/init.d/mariadb still starts at boot"
    fi
}

# build_release [WHAT...]: builds the release binary, or what of the workspace is named; nothing
# where ONRAMP names a binary that is built already.
build_release() {
    [[ -n ${ONRAMP:-} ]] || cargo build --release --locked "$@"
}

# release_binary [PROFILE]: prints the whole path of the release binary, or that of another profile,
# wherever cargo was told to put it.
release_binary() {
    realpath "${CARGO_TARGET_DIR:-target}/${1:-release}/onramp"
}
