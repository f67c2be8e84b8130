#!/usr/bin/env bash
#
# What: builds the program without any library that it would need besides, and lays out the root of
#   its image in a folder: `packaging/image.sh FOLDER`. PROFILE (release) is cargo's.
# Why: an image with nothing but one program has nothing else to be kept up to date, and no loader.
# Changes on the machine: nothing outside of target/ and of FOLDER.
# Restores: nothing.

set -euo pipefail
image=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# By its name, or what runs while the program is built (macros) would be linked so as well.
host=$(rustc -vV | sed -n 's/^host: //p')
profile=${PROFILE:-release}
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" \
    cargo build --locked --profile "$profile" --target "$host" --bin onramp
built=${CARGO_TARGET_DIR:-target}/$host/${profile/dev/debug}/onramp

install -D "$built" "$image/usr/bin/onramp"
install -D -m 0644 packaging/pool.toml "$image/etc/onramp/pool.toml"
# In /var/tmp are the replies of slow readers.
install -d -m 1777 "$image/tmp" "$image/var/tmp"
