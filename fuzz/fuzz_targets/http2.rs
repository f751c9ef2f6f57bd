//! Both roles: any split of the bytes gives the same events and the same answers, and no peer makes us hold more than the
//! limits allow.
#![no_main]

mod split;

use libfuzzer_sys::fuzz_target;
use pushlab_http2::connection::{Connection, Role};
use pushlab_http2::event::Event;
use pushlab_http2::frame::PREFACE;
use pushlab_http2::limits::{Limits, Rate};
use pushlab_wire::fields::FieldList;
use split::{pieces, take_cuts};
use std::time::Duration;

/// Small limits, so that short inputs reach them.
const LIMITS: Limits = Limits {
    max_streams: 4,
    max_head_bytes: 512,
    max_continuations: 2,
    stream_window: 65_535,
    connection_window: 70_000,
    max_output_bytes: 2_000,
    max_unread_bytes: 4_000,
    resets: Rate { burst: 8, per_second: 1 },
    idle_frames: Rate { burst: 16, per_second: 1 },
};

/// What a connection says and tells; the owner of each stream answers as soon as it can.
fn converse(role: Role, pieces: Vec<&[u8]>) -> (Vec<String>, Vec<u8>) {
    let mut connection = Connection::new(role, LIMITS);
    let mut answer = FieldList::default();
    answer.push(b":status", b"200");
    if role == Role::Client {
        let mut request = FieldList::default();
        for (name, value) in [(":method", "POST"), (":scheme", "http"), (":path", "/")] {
            request.push(name.as_bytes(), value.as_bytes());
        }
        for owner in 0..3 {
            let _ = connection.open(owner, &request, owner == 0);
        }
    }
    let (mut told, mut held) = (Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            let mut head = FieldList::default();
            let Ok((used, event)) = connection.receive(&mut held, Duration::ZERO, &mut head) else {
                told.push("error".to_owned());
                return (told, connection.output().to_vec());
            };
            if event != Event::Nothing {
                told.push(format!("{event:?}"));
            }
            if let Event::Request { stream, head, .. } = event {
                assert!(head.size() <= LIMITS.max_head_bytes as usize);
                connection.set_owner(stream, stream);
                connection.head(stream, &answer, false);
                let _ = connection.data(stream, &[b'x'; 300]);
            } else if let Event::Data { owner, bytes, .. } = event {
                let size = bytes.len();
                connection.used(owner, size);
            }
            while let Some(owner) = connection.next_ready() {
                if connection.data(owner, &[b'y'; 100]).is_none() {
                    break;
                }
            }
            assert!(connection.open_streams() <= 4);
            assert!(connection.output().len() <= LIMITS.max_unread_bytes + 1_000);
            if used == 0 {
                break;
            }
            held.drain(..used);
        }
    }
    (told, connection.output().to_vec())
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, data)) = data.split_first() else { return };
    let Some((cuts, input)) = take_cuts(data) else { return };
    let role = if first.is_multiple_of(2) { Role::Server } else { Role::Client };
    let mut bytes = Vec::new();
    if role == Role::Server && first % 4 < 2 {
        bytes.extend_from_slice(PREFACE);
        bytes.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    }
    bytes.extend_from_slice(input);
    assert_eq!(converse(role, vec![&bytes]), converse(role, pieces(&bytes, &cuts)));
});
