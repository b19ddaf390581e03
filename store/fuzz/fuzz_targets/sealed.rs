#![no_main]

#[path = "../bodies.rs"]
mod bodies;
#[path = "../../tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::sealed(bytes));
