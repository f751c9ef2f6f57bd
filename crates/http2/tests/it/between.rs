//! Two ends, talking at random.

use crate::raw::list;
use fastrand::Rng;
use pushlab_http2::connection::{Connection, Refused, Role};
use pushlab_http2::event::Event;
use pushlab_http2::limits::Limits;
use pushlab_wire::fields::FieldList;
use std::collections::HashMap;
use std::time::Duration;

/// A side of one stream: what it has to say, how much it has said, and what it has heard.
#[derive(Default)]
struct Side {
    number: u32,
    words: Vec<u8>,
    said: usize,
    heard: Vec<u8>,
    has_ended: bool,
    has_heard_end: bool,
}

struct End {
    connection: Connection,
    sides: HashMap<u32, Side>,
    carry: Vec<u8>,
}

fn words(random: &mut Rng) -> Vec<u8> {
    let size = *random.choice(&[0, 1, 100, 5_000, 100_000]).unwrap();
    (0..size).map(|_| random.u8(..)).collect()
}

impl End {
    fn new(role: Role, random: &mut Rng) -> Self {
        let limits = Limits {
            stream_window: random.u32(65_535..200_000),
            connection_window: random.u32(65_535..200_000),
            max_output_bytes: random.usize(1_000..100_000),
            ..Limits::default()
        };
        Self { connection: Connection::new(role, limits), sides: HashMap::new(), carry: Vec::new() }
    }

    /// Says what it can on a stream.
    fn speak(&mut self, owner: u32) {
        let side = self.sides.get_mut(&owner).unwrap();
        if side.has_ended {
            return;
        }
        side.said += self.connection.data(side.number, &side.words[side.said..]).unwrap();
        if side.said == side.words.len() {
            side.has_ended = true;
            self.connection.end(side.number);
        }
    }

    /// Takes what comes, cut anywhere.
    fn hear(&mut self, bytes: &[u8], random: &mut Rng) {
        self.carry.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let mut head = FieldList::default();
            let (used, event) = self.connection.receive(&mut self.carry[at..], Duration::ZERO, &mut head).unwrap();
            at += used;
            match event {
                Event::Request { stream, is_end, .. } => {
                    self.connection.set_owner(stream, stream);
                    let side = Side { number: stream, words: words(random), has_heard_end: is_end, ..Side::default() };
                    self.sides.insert(stream, side);
                    self.connection.head(
                        stream,
                        &list(&[(":status", "200"), ("x-number", &stream.to_string())]),
                        false,
                    );
                    self.speak(stream);
                }
                Event::Response { owner, head, is_end } => {
                    let side = self.sides.get_mut(&owner).unwrap();
                    assert_eq!(head.get("x-number"), Some(side.number.to_string().as_bytes()));
                    side.has_heard_end = is_end;
                }
                Event::Data { owner, bytes, is_end } => {
                    let side = self.sides.get_mut(&owner).unwrap();
                    side.heard.extend_from_slice(bytes);
                    side.has_heard_end = is_end;
                    let (number, size) = (side.number, bytes.len());
                    self.connection.used(number, size);
                }
                Event::Nothing => {}
                other => panic!("{other:?}"),
            }
            if used == 0 {
                break;
            }
        }
        self.carry.drain(..at);
    }
}

#[test]
fn whatever_is_said_is_heard_once_and_in_order() {
    for seed in 0..30 {
        let random = &mut Rng::with_seed(seed);
        let (mut client, mut server) = (End::new(Role::Client, random), End::new(Role::Server, random));
        let mut left = 40;
        for step in 0.. {
            assert!(step < 1_000_000, "seed {seed}: it stands still");
            if left > 0 && random.u8(..4) == 0 {
                let owner = 1000 + left;
                let head =
                    list(&[(":method", "POST"), (":scheme", "http"), (":path", "/"), ("x-left", &left.to_string())]);
                match client.connection.open(owner, &head, false) {
                    Ok(number) => {
                        left -= 1;
                        client.sides.insert(owner, Side { number, words: words(random), ..Side::default() });
                        client.speak(owner);
                    }
                    Err(error) => assert_eq!(error, Refused::Full),
                }
            }
            let (from, to) = if random.bool() { (&mut client, &mut server) } else { (&mut server, &mut client) };
            while let Some(owner) = from.connection.next_ready() {
                from.speak(owner);
            }
            let size = random.usize(..=from.connection.output().len());
            let bytes = from.connection.output()[..size].to_vec();
            from.connection.sent(size);
            to.hear(&bytes, random);
            let is_done = |end: &End| {
                end.connection.output().is_empty()
                    && end.sides.values().all(|side| side.has_ended && side.has_heard_end)
            };
            if left == 0 && server.sides.len() == 40 && is_done(&client) && is_done(&server) {
                break;
            }
        }
        for side in client.sides.values() {
            let other = &server.sides[&side.number];
            assert!(side.heard == other.words && other.heard == side.words, "seed {seed}, stream {}", side.number);
        }
        assert_eq!((client.connection.open_streams(), server.connection.open_streams()), (0, 0));
        let (ours, theirs) = (client.connection.counts(), server.connection.counts());
        assert_eq!(ours.sent, theirs.received, "every byte has one use");
        assert_eq!(theirs.sent, ours.received);
        let data: usize = client.sides.values().map(|side| side.words.len()).sum();
        assert_eq!(ours.sent.data, data as u64);
    }
}
