#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| caipe_a2a::fuzzing::address(data));
