#!/usr/bin/env bash
#
# What: builds the Debian package into target/debian/, the RPM into target/generate-rpm/, and the list
#   of what the program is made of (CycloneDX, JSON) into target/package/onramp.cdx.json, with the
#   manual pages and completions that the program makes itself. The packages' program has no symbols;
#   they are in target/package/onramp.debug. With TRY=FOLDER, a folder with a minimal Debian 12 (as `debootstrap
#   --variant=minbase bookworm FOLDER` makes one), it also installs the package there, in a namespace
#   of its own, and lets the program print its version and check the configuration.
# Why: what is packaged by hand differs from one release to the next.
# Changes on the machine: `cargo install` of cargo-deb and cargo-generate-rpm into target/tools, of those
#   that are missing; else nothing outside of target/ and of FOLDER.
# Restores: nothing.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

need_cargo
for tool in python3 objcopy; do
    have "$tool" || fail "$tool is not installed (packages python3 and binutils)"
done
[[ -n ${BINARY:-} ]] || cargo build --locked --release
cargo_tool cargo-deb "$cargo_deb"
cargo_tool cargo-generate-rpm "$cargo_generate_rpm"

fill_package "${BINARY:-target/release/onramp}"
cargo deb --no-build --locked

package=$(find target/debian -name 'onramp_*.deb' | sort | tail -1)
say "$package"
cargo generate-rpm
find target/generate-rpm -name 'onramp-*.rpm' | sort | tail -1
say target/package/onramp.debug
python3 scripts/sbom.py >target/package/onramp.cdx.json
say target/package/onramp.cdx.json
[[ -n ${TRY:-} ]] || exit 0

cp "$package" "$TRY/tmp/onramp.deb"
chroot "$TRY" apt-get install --yes --no-install-recommends /tmp/onramp.deb
chroot "$TRY" onramp --version
chroot "$TRY" id onramp
chroot "$TRY" test -s /usr/share/man/man1/onramp-pool.1.gz
chroot "$TRY" test -s /lib/systemd/system/onramp.service
