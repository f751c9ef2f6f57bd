//! A cursor that is read is printed as text that is the same cursor, of the documented form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushlab_wire::cursor::{Cursor, MAX_EPOCH_BYTES};

fuzz_target!(|text: &str| {
    let Ok(cursor) = Cursor::parse(text) else { return };
    let printed = cursor.to_string();
    assert_eq!(Cursor::parse(&printed), Ok(cursor));
    let (epoch, offset) = text.split_once('.').expect("a cursor has a dot");
    assert_eq!(cursor.epoch.as_str(), epoch);
    assert!((1..=MAX_EPOCH_BYTES).contains(&epoch.len()) && epoch.bytes().all(|b| b.is_ascii_alphanumeric()));
    assert_eq!(offset.parse(), Ok(cursor.offset));
});
