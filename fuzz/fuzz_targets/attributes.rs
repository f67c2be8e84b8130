//! libFuzzer's way into the target `attributes` of `testkit::fuzz`.
//!
//! What it is fed and what must hold is said there; its corpus is `fuzz/corpus/attributes`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::run("attributes", data));
