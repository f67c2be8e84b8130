#!/usr/bin/env bash
#
# What: builds the Debian package of a debug build, boots a minimal Debian in a container
#   (systemd-nspawn, with the network of this machine), installs the package there, and does with the
#   service what an operator does: starts it, logs in, reloads it, upgrades it with a client in a
#   transaction, kills a successor and the service itself, lets systemd hold its socket, stops it,
#   removes the package. Where systemd knows it (253), Type=notify-reload is set for the reload.
# Why: what a unit forbids, what a package lacks and what systemd makes of an upgrade shows nowhere else.
# Changes on the machine: `cargo install` of cargo-deb into target/tools, if it is missing; the minimal
#   system is kept as ~/.cache/onramp/SUITE.tar (70 MB). Server and container live below /tmp.
# Restores: ends both and removes the folder.
#
# DEB names a package that is there already, to be tried in place of a debug build's. SUITE (bookworm)
# is the release of Debian: trixie has a systemd that knows notify-reload.
#
# Where it cannot run (not root, a tool or the mirror is missing, no container boots) it says so as
# skipped, and ends well.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/server.sh
source scripts/server.sh

# skipped REASON
skipped() {
    skip "package in a clean system" "$1"
    exit 0
}

((EUID == 0)) || skipped "it needs root"
for tool in mmdebstrap systemd-nspawn nsenter dpkg-deb strip; do
    have "$tool" || skipped "$tool is not installed"
done
need_cargo

suite=${SUITE:-bookworm}
base=${XDG_CACHE_HOME:-$HOME/.cache}/onramp/$suite.tar
if [[ ! -s $base ]]; then
    mkdir -p "$(dirname "$base")"
    mmdebstrap --format=tar --variant=minbase --include=systemd,systemd-sysv,dbus,adduser,procps \
        "$suite" "$base.new" >"$folder/mmdebstrap.log" 2>&1 ||
        skipped "no minimal system: $(grep '^E:' "$folder/mmdebstrap.log" | tail -1)"
    mv "$base.new" "$base"
fi

build_package() {
    local built
    built=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug/onramp
    cargo build --quiet --locked --bin onramp
    cargo_tool cargo-deb "$cargo_deb"
    fill_package "$built"
    cargo deb --quiet --no-build --locked --profile dev --output "$folder/onramp.deb" \
        >/dev/null 2>"$folder/deb.log" || fail "package: $(tail -3 "$folder/deb.log")"
}

if [[ -n ${DEB:-} ]]; then
    cp "$DEB" "$folder/onramp.deb"
else
    build_package
fi
dpkg-deb --contents "$folder/onramp.deb" >"$folder/contents"

start_server

# The container: its processes are seen from here by other numbers.
root=$folder/root
mkdir "$root"
tar -C "$root" -xf "$base"
container=
init=
end_container() {
    [[ -z $container ]] || { kill "$container" && wait "$container"; } 2>/dev/null || true
    end_all
}
trap end_container EXIT
systemd-nspawn --directory "$root" --machine "onramp-$$" --boot --register=no --keep-unit --quiet \
    </dev/null >"$folder/boot.log" 2>&1 &
container=$!

inside() { nsenter -t "$init" -m -u -i -p -C -r -w env PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }

# await WHAT COMMAND...: until the command succeeds.
await() {
    local what=$1 until=$((SECONDS + 60))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < until)) || {
            [[ -z $init ]] || inside journalctl --no-pager -u onramp -n 40 || true
            fail "package: $what: not within 60 s"
        }
        sleep 0.1
    done
}

has_booted() {
    init=$(pgrep -P "$container" -o) || { ! kill -0 "$container" 2>/dev/null; return; }
    [[ $(inside systemctl is-system-running 2>/dev/null) =~ running|degraded ]]
}
await "the system has booted" has_booted
kill -0 "$container" 2>/dev/null ||
    skipped "no container boots here: $(tail -1 "$folder/boot.log")"

say "package: it is installed"
cp "$folder/onramp.deb" "$root/root/onramp.deb"
inside dpkg --install /root/onramp.deb >"$folder/dpkg.log" 2>&1 || fail "$(tail -5 "$folder/dpkg.log")"
inside dpkg --verify onramp
[[ $(inside stat -c '%U:%G %a' /etc/onramp/pool.toml) == "root:onramp 640" ]] ||
    fail "package: who may read the configuration"
[[ $(readelf --sections "$root/usr/bin/onramp") != *.symtab* ]] ||
    fail "package: the program is not stripped"
for file in /usr/share/man/man1/onramp-pool.1.gz /usr/share/doc/onramp/docs/pool/start.md \
    /usr/share/doc/onramp/monitoring/alerts.yml /usr/share/doc/onramp/monitoring/grafana-dashboard.json \
    /usr/share/bash-completion/completions/onramp /usr/share/zsh/vendor-completions/_onramp \
    /usr/share/fish/vendor_completions.d/onramp.fish; do
    # A minimal system leaves manuals and documents out (/etc/dpkg/dpkg.cfg.d), so the package is asked.
    grep -q "[.]$file$" "$folder/contents" || fail "package: no $file"
done
[[ $(inside systemctl is-enabled onramp) == disabled ]] || fail "package: it is enabled"

# As docs/pool/packages.md says.
port=$pool_port
configure() {
    sed -e "s/^listen = .*/listen = [\"127.0.0.1:$port\"]\n$1/" -e "s/:3306/:$server_port/" \
        packaging/pool.toml >"$root/etc/onramp/pool.toml"
}
configure 'wait_ms_max = 10000'
inside install -m 0600 -o onramp /dev/stdin /etc/onramp/app.password <<<app
say "package: it is started"
inside timeout 60 systemctl start onramp
client() {
    mariadb --no-defaults -h127.0.0.1 -P"$port" -uapp -papp -N "$@" sbtest
}
pid() { inside systemctl show -p MainPID --value onramp; }
logged() { inside journalctl --no-pager -u onramp | grep -q "$1"; }
[[ $(client -e 'SELECT 6 * 7') == 42 ]] || fail "package: no login"
user=$(inside ps -o user= "$(pid)")
[[ $user == onramp ]] || fail "package: it runs as $user"

version=$(inside systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p')
exposure=$(inside systemd-analyze security --no-pager onramp | sed -n 's/.*exposure level.*: \([0-9.]*\).*/\1/p')
((version != 252)) || grep -q "rates the unit at $exposure " docs/pool/packages.md ||
    fail "package: systemd-analyze security says $exposure, docs/pool/packages.md something else"

say "package: it is reloaded"
configure 'wait_ms_max = 12345'
inside systemctl reload onramp
await "a reload" logged 'wait_ms_max: .* -> 12345'

# drop_in UNIT LINE...: more lines for a unit.
drop_in() {
    local folder=$root/etc/systemd/system/$1.d
    shift
    mkdir -p "$folder"
    printf '%s\n' "$@" >"$folder/test.conf"
    inside systemctl daemon-reload
}
if ((version >= 253)); then
    say "package: it is reloaded by systemd $version, which waits until that is done"
    drop_in onramp.service '[Service]' 'Type=notify-reload' 'ExecReload='
    [[ $(inside systemctl show -p Type --value onramp) == notify-reload ]] || fail "package: its type"
    for millis in 12346 12347 12348; do
        configure "wait_ms_max = $millis"
        inside systemctl reload onramp
        logged "wait_ms_max: .* -> $millis" || fail "package: a reload was over before the settings were read"
    done
    [[ $(inside systemctl is-active onramp) == active ]] || fail "package: it is not active after a reload"
fi

say "package: a successor is killed, then one takes over, and a client in a transaction goes along"
admin -e 'CREATE TABLE sbtest.kept (a INT)'
coproc SESSION { client --unbuffered; }
session=$SESSION_PID
# ask STATEMENT: the client's answer, one line.
ask() {
    printf '%s;\n' "$1" >&"${SESSION[1]}"
    read -r -t 30 answer <&"${SESSION[0]}" || fail "package: the client has no answer to $1"
}
ask "SET @mine = 7; BEGIN; INSERT INTO kept VALUES (1); SELECT @mine"
old=$(pid)
inside systemctl kill --kill-whom=main -s USR2 onramp
# The program of before has that parent; as soon as it is there it is killed.
await "a successor" inside pkill -KILL -P "$old" -x onramp
await "its end is noticed" logged 'event=upgrade-failed'
[[ $(pid) == "$old" ]] || fail "package: the service is another process"
ask "SELECT COUNT(*) + @mine FROM kept"
[[ $answer == 8 ]] || fail "package: the client has $answer"
inside systemctl kill --kill-whom=main -s USR2 onramp
is_another() { [[ $(pid) != "$old" && $(pid) != 0 ]]; }
await "an upgrade" is_another
await "an upgrade" logged 'event=upgraded'
ask "SELECT COUNT(*) + @mine FROM kept"
[[ $answer == 8 ]] || fail "package: the client has $answer after an upgrade"
[[ $(admin -N -e 'SELECT COUNT(*) FROM sbtest.kept') == 0 ]] || fail "package: it was committed"
ask "COMMIT; SELECT 1"
is_gone() { ! inside kill -0 "$old"; }
await "the process of before ends" is_gone
[[ $(inside systemctl is-active onramp) == active ]] || fail "package: it is not active"
kill "$session" 2>/dev/null || true

say "package: the service is killed, and systemd starts it again"
old=$(pid)
inside systemctl kill --kill-whom=main -s KILL onramp
await "another start" is_another
await "a login" client -e 'SELECT 1'

say "package: a mistake of its file is not tried again, a refused account is, and a password is safe there"
is_state() { [[ $(inside systemctl show -p SubState --value onramp) == "$1" ]]; }
configure 'clients_maximum = 5'
! inside systemctl restart onramp 2>/dev/null || fail "package: it runs with a mistake"
is_state failed || fail "package: systemd tries a mistake again"
configure ''
inside install -m 0600 -o onramp /dev/stdin /etc/onramp/app.password <<<wrong
! inside systemctl restart onramp 2>/dev/null || fail "package: it runs with a wrong password"
is_state auto-restart || fail "package: systemd does not try a refused account again"
sed -i 's|^password_file = .*|password = "app"|' "$root/etc/onramp/pool.toml"
await "a start with the right one" is_state running
await "a login" client -e 'SELECT 1'
! logged 'can read it' || fail "package: it warns of a file that nobody else reads"

say "package: systemd holds its socket: a login starts it, and a restart refuses nobody"
inside systemctl stop onramp
! client -e 'SELECT 1' 2>/dev/null || fail "package: somebody else answers"
drop_in onramp.socket '[Socket]' 'ListenStream=' "ListenStream=127.0.0.1:$port"
inside systemctl start onramp.socket
[[ $(inside systemctl is-active onramp) == inactive ]] || fail "package: it runs before anybody has come"
[[ $(client -e 'SELECT 6 * 7') == 42 ]] || fail "package: no login by the socket"
[[ $(inside systemctl is-active onramp) == active ]] || fail "package: the socket has not started it"
inside systemctl restart onramp &
restart=$!
logins=0
while kill -0 "$restart" 2>/dev/null || ((logins < 10)); do
    # A drain closes who rests between two statements, or refuses the statement that has come by then
    # ("at line 1"): that may be one that has just logged in.
    if [[ $(client -e 'SELECT 6 * 7' 2>"$folder/refused") != 42 ]]; then
        grep -qE 'ERROR (20(06|13)|1053 .* at line 1)' "$folder/refused" ||
            fail "package: while it is restarted: $(tail -1 "$folder/refused")"
        continue
    fi
    logins=$((logins + 1))
done
wait "$restart" || fail "package: the restart has failed"
old=$(pid)
inside systemctl kill --kill-whom=main -s USR2 onramp
await "an upgrade with a socket of systemd's" is_another
[[ $(client -e 'SELECT 6 * 7') == 42 ]] || fail "package: no login after an upgrade"
inside systemctl stop onramp.socket

say "package: it is stopped, after an upgrade, and removed"
old=$(pid)
inside systemctl stop onramp
result=$(inside systemctl show -p Result --value onramp)
[[ $result == success ]] && logged "onramp\[$old\].*event=ended" || {
    inside journalctl --no-pager -u onramp -n 20
    fail "package: its end has failed: $result"
}
inside dpkg --purge onramp >>"$folder/dpkg.log" 2>&1 || fail "$(tail -5 "$folder/dpkg.log")"
! inside getent passwd onramp || fail "package: its user is still there"
[[ ! -e $root/etc/onramp/pool.toml && ! -e $root/usr/bin/onramp ]] || fail "package: files are still there"
say "package: passed"
