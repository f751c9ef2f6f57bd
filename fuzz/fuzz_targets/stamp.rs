//! A stamp found in any bytes is one that encodes to bytes which are there, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushlab_wire::stamp::{STAMP_BYTES, Stamp};

fuzz_target!(|data: &[u8]| {
    if let Some(stamp) = Stamp::find(data) {
        let text = stamp.encode();
        assert!(data.windows(STAMP_BYTES).any(|window| window == text));
    }
});
