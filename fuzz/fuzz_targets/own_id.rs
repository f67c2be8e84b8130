//! libFuzzer's way into the target `own_id` of `testkit::fuzz`.
//!
//! What it is fed and what must hold is said there; its corpus is `fuzz/corpus/own_id`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::run("own_id", data));
