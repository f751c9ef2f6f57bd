//! Any bytes are inflated within the limit or refused, an error leaves nothing behind, and what we compress comes back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushlab_wire::websocket::deflate::{Deflater, InflateDecoder};

const MAX: usize = 10_000;

fuzz_target!(|data: &[u8]| {
    let mut decoder = InflateDecoder::default();
    let first = decoder.inflate(data, MAX).map(|text| text.to_vec());
    if let Ok(text) = &first {
        assert!(text.len() <= MAX);
    }
    if let Some(small) = Deflater::default().deflate(data) {
        assert!(small.len() < data.len());
        assert_eq!(decoder.inflate(&small, data.len()).map(|text| &*text), Ok(data));
    }
    assert_eq!(decoder.inflate(data, MAX).map(|text| text.to_vec()), first);
});
