//! Both roles: any split of the bytes gives the same events and the same error, and an event encoded again is read
//! back as itself.
#![no_main]

mod split;

use libfuzzer_sys::fuzz_target;
use pushlab_wire::websocket::{Config, Decoded, Decoder, Event, FrameError, Opcode, Role, encode};
use split::{pieces, take_cuts};

type Frame = (Opcode, Vec<u8>);

/// Small limits, so that short inputs reach them.
fn config(role: Role) -> Config {
    Config { max_message_bytes: 300, max_fragments: 4, ..Config::new(role) }
}

fn frame(event: Event<'_>) -> Frame {
    match event {
        Event::Text(text) => (Opcode::Text, text.into()),
        Event::Binary(bytes) => (Opcode::Binary, bytes.into()),
        Event::Compressed { .. } => unreachable!("nothing was agreed on"),
        Event::Ping(bytes) => (Opcode::Ping, bytes.into()),
        Event::Pong(bytes) => (Opcode::Pong, bytes.into()),
        Event::Close(None) => (Opcode::Close, Vec::new()),
        Event::Close(Some((code, reason))) => (Opcode::Close, [&code.to_be_bytes(), reason.as_bytes()].concat()),
    }
}

fn decode(pieces: Vec<&[u8]>, config: &Config) -> (Vec<Frame>, Option<FrameError>) {
    let mut decoder = Decoder::default();
    let (mut frames, mut held) = (Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            match decoder.decode(&mut held, config) {
                Ok(Decoded::Incomplete { needed }) => {
                    assert!(needed > held.len(), "a decoder that needs no more must decode");
                    break;
                }
                Ok(Decoded::Frame { consumed, event }) => {
                    frames.extend(event.map(frame));
                    held.drain(..consumed);
                }
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, data)) = data.split_first() else { return };
    let Some((cuts, input)) = take_cuts(data) else { return };
    let (role, mask) = match first % 2 {
        0 => (Role::Server, Some([first, 1, 2, 3])),
        _ => (Role::Client, None),
    };
    let config = config(role);
    let whole = decode(vec![input], &config);
    assert_eq!(whole, decode(pieces(input, &cuts), &config));

    let mut again = Vec::new();
    for (opcode, payload) in &whole.0 {
        assert!(payload.len() <= config.max_message_bytes);
        encode(&mut again, *opcode, payload, mask);
    }
    assert_eq!(decode(pieces(&again, &cuts), &config), (whole.0, None));
});
