//! Any blocks, one after the other, keep a decoder within its limits, and what it gave comes back through our encoder
//! and decoder, whose tables stay alike however their limit changes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushlab_http2::hpack::{Decoder, Encoder, INITIAL_TABLE_BYTES};
use pushlab_wire::fields::FieldList;

/// Small limits, so that short inputs reach them.
const MAX_LIST_BYTES: [usize; 4] = [0, 100, 300, 10_000];
const MAX_TABLE_BYTES: [u32; 4] = [0, 80, 200, INITIAL_TABLE_BYTES];

fuzz_target!(|data: &[u8]| {
    let mut max_table_bytes = INITIAL_TABLE_BYTES;
    let mut foreign = Decoder::new(max_table_bytes);
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(max_table_bytes));
    let mut rest = data;
    // A byte has the limits, the next the length of the block.
    while let [limits, length, tail @ ..] = rest {
        let (block, after) = tail.split_at(tail.len().min(usize::from(*length)));
        rest = after;
        if limits & 1 == 1 {
            let wanted = MAX_TABLE_BYTES[usize::from(limits >> 1 & 3)];
            foreign.set_max_table_bytes(wanted);
            encoder.set_max_table_bytes(wanted);
            decoder.set_max_table_bytes(wanted);
            // What was allowed stays in use until the block tells otherwise, and then it is within the new limit.
            max_table_bytes = wanted;
        }
        let max_list_bytes = MAX_LIST_BYTES[usize::from(limits >> 3 & 3)];

        let mut fields = FieldList::default();
        let outcome = foreign.decode(block, max_list_bytes, &mut fields);
        assert!(fields.size() <= max_list_bytes);
        let mut again = Vec::new();
        encoder.encode(fields.iter(), &mut again);
        let mut back = FieldList::default();
        let whole = decoder.decode(&again, fields.size(), &mut back).expect("what we encode can be decoded");
        assert!(!whole.is_cut && back == fields);
        assert_eq!(encoder.table_bytes(), decoder.table_bytes());
        assert!(encoder.table_bytes() <= max_table_bytes);
        if outcome.is_err() {
            return;
        }
        assert!(foreign.table_bytes() <= max_table_bytes);
    }
});
