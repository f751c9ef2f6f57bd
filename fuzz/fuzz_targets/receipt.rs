//! A mark found in any bytes is one that encodes to bytes which are there; filling a place changes nothing else.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushlab_wire::receipt::{PLACE, RECEIPT_BYTES, Receipt};

fuzz_target!(|data: &[u8]| {
    if let Some(receipt) = Receipt::find(data) {
        let text = receipt.encode();
        assert!(data.windows(RECEIPT_BYTES).any(|window| window == text));
    }
    let (receipt, mut filled) = (Receipt { instant_ns: 1_234_500 }, data.to_vec());
    let place = data.windows(RECEIPT_BYTES).position(|window| window == PLACE);
    assert_eq!(receipt.fill(&mut filled), place.is_some());
    if let Some(at) = place {
        filled[at..at + RECEIPT_BYTES].copy_from_slice(PLACE);
    }
    assert_eq!(filled, data);
});
