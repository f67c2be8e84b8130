#!/usr/bin/env bash
#
# What: builds the Debian package into target/debian/, the RPM into target/generate-rpm/, and the list
#   of what the program is made of (CycloneDX, JSON) into target/package/onramp.cdx.json, with the
#   manual pages and completions that the program makes itself. With TRY=FOLDER, a folder with a minimal Debian 12 (as `debootstrap
#   --variant=minbase bookworm FOLDER` makes one), it also installs the package there, in a namespace
#   of its own, and lets the program print its version and check the configuration.
# Why: what is packaged by hand differs from one release to the next.
# Changes on the machine: `cargo install` of cargo-deb, cargo-generate-rpm and cargo-cyclonedx into
#   target/tools, of those that are missing; else nothing
#   outside of target/ and of FOLDER.
# Restores: nothing.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

need_cargo
[[ -n ${BINARY:-} ]] || cargo build --locked --release
export PATH="$PWD/target/tools/bin:$PATH"
for tool in cargo-deb cargo-generate-rpm cargo-cyclonedx; do
    have "$tool" || cargo install "$tool" --locked --root target/tools
done

rm -rf target/package
mkdir -p target/package/man target/package/completions
"${BINARY:-target/release/onramp}" generate man target/package/man
"${BINARY:-target/release/onramp}" generate completions target/package/completions
cargo deb --no-build --locked

package=$(find target/debian -name 'onramp_*.deb' | sort | tail -1)
say "$package"
cargo generate-rpm
find target/generate-rpm -name 'onramp-*.rpm' | sort | tail -1
# It writes beside each Cargo.toml; that of the program is what there is to know.
cargo cyclonedx --format json --override-filename onramp.cdx
mv onramp.cdx.json target/package/onramp.cdx.json
find crates xtask tests -name onramp.cdx.json -delete
say target/package/onramp.cdx.json
[[ -n ${TRY:-} ]] || exit 0

cp "$package" "$TRY/tmp/onramp.deb"
chroot "$TRY" apt-get install --yes --no-install-recommends /tmp/onramp.deb
chroot "$TRY" onramp --version
chroot "$TRY" id onramp
chroot "$TRY" test -s /usr/share/man/man1/onramp-pool.1.gz
chroot "$TRY" test -s /lib/systemd/system/onramp.service
