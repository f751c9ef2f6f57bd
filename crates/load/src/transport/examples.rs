//! The examples of docs/networks.md: what the bytes of each transport are for.

use super::script::{chunked, play, upgrade, uses};
use super::{Receiver, ReceiverVisitor, Requests, Sending, with_receiver};
use crate::connection::Outgoing;
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::Target;
use pushlab_workload::result::ByteUses;

/// Rows of the two tables of examples: what, its bytes, and what they are for.
fn examples() -> Vec<(String, Vec<u8>, ByteUses)> {
    let section = include_str!("../../../../docs/networks.md").split("## What the bytes are").nth(1).unwrap();
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
