//! Any bytes give a packet whose parts add up or none, and any packets are counted to the byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushlab_link::direction::{Fate, Heading};
use pushlab_link::packet::{Kind, classify};
use pushlab_link::totals::Accountant;

/// Few, so that the limit is met.
const MAX_FLOWS: usize = 4;

fuzz_target!(|data: &[u8]| {
    let mut accountant = Accountant::new(Some([10, 83, 0, 3].into()), MAX_FLOWS);
    let (mut rest, mut offered, mut packets) = (data, 0, 0);
    // A byte says which way the packet goes, and how long it is.
    while let [first, tail @ ..] = rest {
        let (bytes, after) = tail.split_at(tail.len().min(usize::from(first >> 1)));
        rest = after;
        let packet = classify(bytes);
        if let Some(packet) = packet {
            assert!(packet.bytes as usize <= bytes.len());
            assert_eq!(packet.bytes, packet.header_bytes + packet.payload_bytes);
        }
        let counted = packet.filter(|packet| packet.kind != Kind::Other);
        offered += counted.map_or(bytes.len() as u64, |packet| u64::from(packet.bytes));
        packets += 1;
        accountant.note(if first & 1 == 0 { Heading::Down } else { Heading::Up }, bytes, Fate::Accepted);
    }
    let totals = accountant.totals();
    let whole = totals.down.sum().plus(&totals.up.sum());
    let used = whole.data_header_bytes + whole.payload_bytes + whole.retransmitted_bytes;
    let used = used + whole.ack_bytes + whole.control_bytes + totals.down.others.bytes + totals.up.others.bytes;
    assert_eq!((whole.packets, whole.bytes, used), (packets, offered, offered));
});
