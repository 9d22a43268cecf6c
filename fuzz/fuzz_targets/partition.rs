#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| xfskit_fuzz::partition(input));
