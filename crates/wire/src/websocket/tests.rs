use super::*;
use proptest::prelude::*;

/// Everything a decoder says about some bytes fed in pieces of the given sizes (the last repeats).
fn decode(input: &[u8], config: &Config, cuts: &[usize]) -> (Vec<String>, Option<FrameError>) {
    let mut decoder = Decoder::default();
    let (mut events, mut held, mut start, mut cut) = (Vec::new(), Vec::new(), 0, 0);
    while start < input.len() {
        let size = cuts.get(cut).or(cuts.last()).copied().unwrap_or(input.len()).max(1);
        cut += 1;
        let end = (start + size).min(input.len());
        held.extend_from_slice(&input[start..end]);
        start = end;
        loop {
            let consumed = match decoder.decode(&mut held, config) {
                Ok(Decoded::Incomplete { needed }) => {
                    assert!(needed > held.len(), "a decoder that needs no more must decode");
                    break;
                }
                Ok(Decoded::Frame { consumed, event }) => {
                    events.extend(event.map(|e| format!("{e:?}")));
                    consumed
                }
                Err(error) => return (events, Some(error)),
            };
            held.drain(..consumed);
        }
    }
    (events, None)
}

fn server() -> Config {
    Config { max_message_bytes: 1000, max_fragments: 4, ..Config::new(Role::Server) }
}

proptest! {
    #[test]
    fn frames_come_back_masked_or_not(payload in prop::collection::vec(any::<u8>(), 0..70_000), mask: [u8; 4], cuts in prop::collection::vec(1usize..50_000, 1..4)) {
        for (role, mask) in [(Role::Server, Some(mask)), (Role::Client, None)] {
            let config = Config { max_message_bytes: 70_000, ..Config::new(role) };
            let mut wire = Vec::new();
            encode(&mut wire, Opcode::Binary, &payload, mask);
            let expected = format!("{:?}", Event::Binary(&payload));
            prop_assert_eq!(decode(&wire, &config, &cuts), (vec![expected], None));
        }
    }

    #[test]
    fn any_bytes_give_the_same_events_however_they_are_cut(
        frames in prop::collection::vec((0u8..16, any::<bool>(), prop::collection::vec(any::<u8>(), 0..130), any::<[u8; 4]>()), 0..6),
        noise in prop::collection::vec(any::<u8>(), 0..12),
        cuts in prop::collection::vec(1usize..40, 1..6),
    ) {
        let mut wire = Vec::new();
        for (opcode, is_final, payload, mask) in frames {
            let start = wire.len();
            encode(&mut wire, Opcode::Text, &payload, Some(mask));
            wire[start] = u8::from(is_final) << 7 | opcode;
        }
        wire.extend(noise);
        prop_assert_eq!(decode(&wire, &server(), &cuts), decode(&wire, &server(), &[1]));
    }
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    encode(&mut wire, Opcode::Text, payload, Some([9, 8, 7, 6]));
    wire[0] = first;
    wire
}

#[test]
fn fragments_join_around_control_frames() {
    let wire =
        [frame(0x01, b"H\xc3"), frame(0x89, b"?"), frame(0x00, b""), frame(0x80, b"\xa4t"), frame(0x81, b"x")].concat();
    let expected = [Event::Ping(b"?"), Event::Text("Hät"), Event::Text("x")].map(|e| format!("{e:?}"));
    for cuts in [&[1][..], &[3], &[100]] {
        assert_eq!(decode(&wire, &server(), cuts), (expected.to_vec(), None));
    }
}

#[test]
fn every_violation_has_its_error() {
    let cases: [(Vec<u8>, FrameError); 14] = [
        (frame(0xc1, b""), FrameError::ReservedBits),
        (frame(0x83, b""), FrameError::UnknownOpcode(3)),
        (vec![0x81, 0x01, b'x'], FrameError::Unmasked),
        (frame(0x09, b""), FrameError::BadControl),
        (frame(0x89, &[0; 126]), FrameError::BadControl),
        (vec![0x81, 0xfe, 0, 5], FrameError::LongLength),
        (frame(0x82, &[0; 1001]), FrameError::TooLarge { max: 1000 }),
        (frame(0x80, b""), FrameError::StrayContinuation),
        ([frame(0x01, b"a"), frame(0x81, b"b")].concat(), FrameError::Interleaved),
        (frame(0x81, b"\xff"), FrameError::NotUtf8),
        (frame(0x88, &[3, 0xed]), FrameError::BadCloseCode(1005)),
        (frame(0x88, &[3]), FrameError::ShortClose),
        ([frame(0x02, &[0; 600]), frame(0x80, &[0; 600])].concat(), FrameError::TooLarge { max: 1000 }),
        (
            std::iter::once(frame(0x02, b"")).chain((0..5).map(|_| frame(0, b""))).collect::<Vec<_>>().concat(),
            FrameError::TooManyFragments,
        ),
    ];
    for (wire, error) in cases {
        assert_eq!(decode(&wire, &server(), &[1]).1, Some(error));
        assert_eq!(decode(&wire, &server(), &[5000]).1, Some(error));
    }
    let mut masked = Vec::new();
    encode(&mut masked, Opcode::Text, b"x", Some([1; 4]));
    assert_eq!(decode(&masked, &Config::new(Role::Client), &[]).1, Some(FrameError::Masked));
}

#[test]
fn a_huge_length_is_refused_before_its_payload() {
    let wire = [0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(decode(&wire, &server(), &[]).1, Some(FrameError::TooLarge { max: 1000 }));
}

#[test]
fn closing_carries_code_and_reason() {
    let mut wire = Vec::new();
    encode_close(&mut wire, CloseCode::GoingAway, &"ä".repeat(100), None);
    let (events, error) = decode(&wire, &Config::new(Role::Client), &[]);
    assert_eq!(error, None);
    assert_eq!(events, [format!("{:?}", Event::Close(Some((1001, &"ä".repeat(61)))))]);
    assert_eq!(decode(&frame(0x88, b""), &server(), &[]).0, ["Close(None)"]);
}
