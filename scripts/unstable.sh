# shellcheck shell=bash
#
# What: fetch_unstable FOLDER PACKAGE..., for get-mysql.sh and get-peers.sh: unpacks packages of
#   Debian's unstable suite, with all that they need, into FOLDER. FOLDER/run PROGRAM ARGUMENT...
#   starts a program of it with the libraries that came along. Source it behind lib.sh.
# Why: the machine's own suite has older programs, or none; nothing of it is to be replaced.
# Changes on the machine: writes FOLDER, and nothing else; apt's own state stays as it is.
# Restores: remove FOLDER, and it is gone.

fetch_unstable() {
    local folder=$1 mirror work apt package
    shift
    have apt-get && have dpkg || fail "there is no apt-get here"
    # The address of the main archive, in either form of apt's lists; security has other packages.
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
        grep -E '^(deb |URIs:)' | grep -oE '[a-z]+://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' ' || true)
    [[ -n $mirror ]] || fail "no Debian mirror in apt's lists"

    work=$folder/.apt
    mkdir -p "$work"/{lists/partial,cache/archives/partial}
    : >"$work/status"
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s sid main\n' \
        "${mirror%/}" >"$work/list"
    # The machine's own settings of apt (proxies and the like), without its hooks: those of Debian's
    # images for containers empty /var/cache/apt/archives after every update, whatever Dir::Cache says,
    # and an apt-get install beside this one then misses what it has just fetched. apt reads the file
    # that APT_CONFIG names before all others, and here nothing but that.
    apt-config dump | grep -vE '^(APT::Update|DPkg)::(Pre|Post)-|^Dir::Etc::(main|parts)' \
        >"$work/apt.conf"
    printf 'Dir::Etc::%s "/dev/null";\n' main parts >>"$work/apt.conf"
    local -x APT_CONFIG=$work/apt.conf
    apt=(apt-get -q -o "Dir::Etc::sourcelist=$work/list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache"
        -o "Dir::State::status=$work/status" -o APT::Install-Recommends=0 -o Debug::NoLocking=1)

    say "fetching $* of Debian's unstable suite into $folder"
    "${apt[@]}" update >/dev/null || fail "the lists could not be fetched from $mirror"
    "${apt[@]}" -y --download-only install "$@" >/dev/null ||
        fail "$* could not be fetched from $mirror"
    for package in "$work"/cache/archives/*.deb; do
        dpkg -x "$package" "$folder"
    done
    rm -rf "$work"

    cat >"$folder/run" <<'RUN'
#!/usr/bin/env bash
# run PROGRAM ARGUMENT...: starts a program of this folder with the C library of this folder.
root=$(cd "$(dirname "$0")" && pwd -P)
name=$1
shift
program=
for place in usr/sbin usr/bin; do
    [[ -z $program && -x $root/$place/$name ]] && program=$root/$place/$name
done
[[ -n $program ]] || { echo "run: no $name in $root" >&2; exit 127; }
loader=$(find "$root" -name 'ld-linux-*.so.*' | head -n 1)
libraries=$(find "$root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
first=()
if [[ $name == mysqld ]]; then
    # These two must be the first argument of all.
    [[ ${1:-} == --no-defaults || ${1:-} == --defaults-file=* ]] && { first=("$1"); shift; }
    first+=("--basedir=$root/usr" "--lc-messages-dir=$root/usr/share/mysql"
        "--character-sets-dir=$root/usr/share/mysql/charsets"
        "--plugin-dir=$root/usr/lib/mysql/plugin")
fi
exec "$loader" --library-path "$libraries" "$program" "${first[@]}" "$@"
RUN
    chmod +x "$folder/run"
}
