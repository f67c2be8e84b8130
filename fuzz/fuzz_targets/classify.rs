//! libFuzzer's way into the target `classify` of `testkit::fuzz`.
//!
//! What it is fed and what must hold is said there; its corpus is `fuzz/corpus/classify`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::run("classify", data));
