//! libFuzzer's way into the target `compressed` of `testkit::fuzz`.
//!
//! What it is fed and what must hold is said there; its corpus is `fuzz/corpus/compressed`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::run("compressed", data));
