#![no_main]

#[path = "../../tests/support/fuzzed.rs"]
mod fuzzed;
#[path = "../../tests/support/request_bytes.rs"]
mod request_bytes;

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzed::segment_recovery(input));
