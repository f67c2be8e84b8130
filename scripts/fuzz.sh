#!/usr/bin/env bash
#
# What: searches with libFuzzer for inputs on which a property of a parser does not hold:
#   fuzz.sh SECONDS [TARGET...]. All targets of `testkit::fuzz` unless some are named. What it finds
#   goes to fuzz/artifacts/TARGET, and the inputs that it keeps for later to fuzz/found/TARGET.
# Why: `make test` tries a bounded number of mutations without looking at coverage; this looks.
# Changes on the machine: installs a C++ compiler from Debian's packages if there is none (says so
#   first), and cargo-fuzz with cargo, into target/fuzz-tools. The build goes to target/fuzz.
# Restores: nothing is left outside of the two folders. An input that failed is committed to
#   fuzz/corpus/TARGET, under a name that says what it showed, together with its mend.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/lib.sh
source scripts/lib.sh

seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "$seconds: expected a number of seconds for each target"
shift || true

need_cargo
want_compiler
want c++ g++ libc6-dev
install_missing
tools=$PWD/target/fuzz-tools
[[ -x $tools/bin/cargo-fuzz ]] ||
    cargo install --quiet --locked --root "$tools" cargo-fuzz@0.13.2
export PATH="$tools/bin:$PATH"
# The sanitizers need options of a nightly compiler; the pinned one has them too, if it is asked.
export RUSTC_BOOTSTRAP=1

targets=("$@")
((${#targets[@]})) || mapfile -t targets < <(cargo fuzz list --fuzz-dir fuzz)
failed=()
for target in "${targets[@]}"; do
    say "$target: $seconds s"
    mkdir -p "fuzz/found/$target"
    cargo fuzz run --fuzz-dir fuzz --target-dir target/fuzz "$target" "fuzz/found/$target" \
        "fuzz/corpus/$target" -- -max_total_time="$seconds" -max_len=4096 -verbosity=0 \
        -print_final_stats=1 || failed+=("$target")
done
((${#failed[@]} == 0)) || fail "found something: ${failed[*]}; see fuzz/artifacts"
say "nothing found in ${#targets[@]} targets"
