//! libFuzzer's way into the target `client_login` of `testkit::fuzz`.
//!
//! What it is fed and what must hold is said there; its corpus is `fuzz/corpus/client_login`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| testkit::fuzz::run("client_login", data));
