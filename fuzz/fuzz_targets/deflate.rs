//! Any bytes are inflated within the limit or refused, an error leaves nothing behind, and what we compress comes back,
//! as messages of one connection too. Whatever a server answers to an offer is agreed on, or refused with a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushlab_wire::deflate::{Deflater, InflateDecoder};
use pushlab_wire::websocket::permessage_deflate::agree;
use pushlab_wire::websocket::permessage_deflate::{Agreement, OFFER};

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
        for _ in 0..2 {
            assert_eq!(decoder.inflate_next(&small, data.len()).map(|text| &*text), Ok(data));
        }
    }
    assert_eq!(decoder.inflate(data, MAX).map(|text| text.to_vec()), first);

    let mut own = InflateDecoder::default();
    for message in data.split(|byte| *byte == 0x7e) {
        if let Ok(text) = own.inflate_next(message, MAX) {
            assert!(text.len() <= MAX);
        }
    }

    let Ok(text) = std::str::from_utf8(data) else { return };
    let answer = format!("permessage-deflate;{text}");
    for answer in [text, &answer] {
        match Agreement::of([answer].into_iter(), true) {
            Ok(Some(agreed)) => assert!((1 << 8..=1 << 15).contains(&agreed.window_bytes)),
            Ok(None) => assert!(answer.split(',').all(|extension| extension.trim().is_empty())),
            Err(bad) => assert_eq!(bad.text, answer),
        }
    }
    if let Some(agreed) = agree([text, OFFER].into_iter()) {
        let answer = agreed.answer;
        let agreed = Agreement::of([answer].into_iter(), true);
        assert!(agreed.is_ok_and(|agreed| agreed.is_some_and(|agreed| !agreed.keeps_context)));
    }
});
