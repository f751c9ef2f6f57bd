//! What bytes are for, counted as they pass. The borders are [`ByteUses`]'s.
//!
//! A message costs one addition here and one where its data is handed on: framing is never looked at, it is what
//! remains.

use pushlab_workload::result::ByteUses;
use std::ops::AddAssign;

/// Bytes of both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// What sockets brought.
    pub down: WayTally,
    /// What was given to sockets.
    pub up: WayTally,
}

/// Bytes of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WayTally {
    /// All of them; whoever owns the socket counts them.
    pub all: u64,
    /// Heads of requests and responses, as they are sent: with HTTP/2, compressed.
    pub heads: u64,
    /// Heads of HTTP/2's frames, and those frames that carry no message.
    pub frames: u64,
    /// What the transport carries: texts of WebSockets, lines, data of events, bodies.
    pub texts: u64,
    /// Of those, data of publications and echoes; whoever gets the data counts it.
    pub payload: u64,
}

impl WayTally {
    /// What the bytes since an earlier count were for. They add up to all of them: where a message's first bytes
    /// came before the earlier count, so that its parts are more than what came since, the parts give way.
    pub fn uses_since(&self, earlier: &Self) -> ByteUses {
        let all = self.all - earlier.all;
        let heads = (self.heads - earlier.heads).min(all);
        let http2_frames = (self.frames - earlier.frames).min(all - heads);
        let rest = all - heads - http2_frames;
        let payload = (self.payload - earlier.payload).min(rest);
        let texts = (self.texts - earlier.texts).min(rest);
        let dialect = texts.saturating_sub(payload);
        ByteUses { payload, dialect, framing: rest - payload - dialect, heads, http2_frames, tls: 0 }
    }
}

impl AddAssign for WayTally {
    fn add_assign(&mut self, more: Self) {
        self.all += more.all;
        self.heads += more.heads;
        self.frames += more.frames;
        self.texts += more.texts;
        self.payload += more.payload;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Outgoing;
    use crate::transport::script::{chunked, play, upgrade, uses};
    use crate::transport::{Receiver, ReceiverVisitor, Requests, Sending, with_receiver};
    use proptest::prelude::*;
    use pushlab_wire::transport::Transport;
    use pushlab_workload::plan::Target;

    fn way(all: u64, heads: u64, texts: u64, payload: u64) -> WayTally {
        WayTally { all, heads, frames: 0, texts, payload }
    }

    proptest! {
        #[test]
        fn uses_add_up_whatever_was_noted(before in 0u64..99, more in prop::array::uniform5(0u64..99)) {
            let earlier = way(before, before / 2, before / 3, before / 4);
            let [all, heads, texts, payload, frames] = more;
            let later = way(before + all, before / 2 + heads, before / 3 + texts, before / 4 + payload);
            let later = WayTally { frames, ..later };
            prop_assert_eq!(later.uses_since(&earlier).total(), all);
        }
    }

    /// Rows of the two tables of examples: what, its bytes, and what they are for.
    fn examples() -> Vec<(String, Vec<u8>, ByteUses)> {
        let section = include_str!("../../../docs/networks.md").split("## What the bytes are").nth(1).unwrap();
        let rows = section.lines().filter_map(|line| {
            let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
            let [what, bytes, counts @ ..] = cells.as_slice() else { return None };
            let counts: Vec<usize> = counts.iter().map_while(|count| count.parse().ok()).collect();
            Some(((*what).to_owned(), unescape(bytes.trim_matches('`')), uses(counts.try_into().ok()?)))
        });
        rows.collect()
    }

    fn transport_of(name: &str) -> Option<Transport> {
        Transport::ALL.into_iter().find(|transport| transport.to_string() == name)
    }

    fn unescape(text: &str) -> Vec<u8> {
        let mut parts = text.split('\\');
        let mut out = parts.next().unwrap().as_bytes().to_vec();
        for part in parts {
            let (byte, size) = match part.as_bytes()[0] {
                b'r' => (b'\r', 1),
                b'n' => (b'\n', 1),
                _ => (u8::from_str_radix(&part[1..3], 16).unwrap(), 3),
            };
            out.push(byte);
            out.extend_from_slice(&part.as_bytes()[size..]);
        }
        out
    }

    /// Plays an example after the head of its stream, and says what its own bytes were for.
    struct Example<'a>(&'a [u8]);

    impl ReceiverVisitor for Example<'_> {
        type Output = ByteUses;
        fn visit<R: Receiver>(self) -> ByteUses {
            let head = |request: &str| match request {
                poll if poll.starts_with("GET /poll") => Vec::new(),
                socket if socket.starts_with("GET /ws") => upgrade(socket),
                _ => chunked("text/plain", b"", 1),
            };
            let with_head = |request: &str| [&head(request), self.0].concat();
            let outcome = play(&mut R::new(), &[3], &with_head).unwrap();
            ByteUses { heads: outcome.down.heads - head(&outcome.request).len() as u64, ..outcome.down }
        }
    }

    #[test]
    fn the_examples_in_the_docs_are_right() {
        let examples = examples();
        for (what, bytes, uses) in &examples {
            assert_eq!(uses.total(), bytes.len() as u64, "{what}");
            if let Some(transport) = transport_of(what) {
                assert_eq!(with_receiver(transport, None, Example(bytes)), *uses, "{what}");
            }
        }
        let transports = examples.iter().filter(|(what, ..)| transport_of(what).is_some()).count();
        assert_eq!((transports, examples.len()), (Transport::ALL.len(), Transport::ALL.len() + 4));
        // Unmasked, the frames of clients are what clients make.
        let requests = Requests::new(&Target::plain("127.0.0.1:8000".parse().unwrap()), "a", "a", 25);
        let (mut post, mut frame) = (Outgoing::default(), Vec::new());
        requests.encode_post(&mut post, Sending::Publish, br#"{"n":1}"#);
        requests.encode_frame(&mut frame, Sending::Publish, br#"{"n":1}"#);
        assert!(examples.iter().any(|(_, bytes, uses)| *bytes == post.bytes() && uses.payload == 7));
        assert!(examples.iter().any(|(_, bytes, uses)| bytes.get(6..) == Some(&frame) && uses.framing == 6));
    }

    #[test]
    fn what_remains_is_framing() {
        let uses = WayTally { frames: 40, ..way(1_100, 330, 620, 512) }.uses_since(&way(100, 30, 20, 12));
        let expected = ByteUses { payload: 500, dialect: 100, framing: 60, heads: 300, http2_frames: 40, tls: 0 };
        assert_eq!(uses, expected);
        let uses = way(60, 0, 100, 80).uses_since(&WayTally::default());
        assert_eq!(uses, ByteUses { payload: 60, ..ByteUses::default() }, "its beginning came before");
    }
}
