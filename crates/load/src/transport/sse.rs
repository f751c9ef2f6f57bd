//! `sse`: an event stream; publications go by POST.

use super::streams::StreamReader;
use super::{Asking, CursorText, Cut, Event, MAX_MESSAGE_BYTES, Receiver, Requests, Tally, Uplink, forward};
use fastrand::Rng;
use pushlab_wire::event_stream::EventStreamDecoder;
use pushlab_wire::native::ServerFrame;

/// A client of `GET /sse`.
#[derive(Debug)]
pub struct Sse {
    reader: StreamReader,
    events: EventStreamDecoder,
    cursor: CursorText,
    is_subscribed: bool,
}

impl Receiver for Sse {
    const ASKING: Asking = Asking::Never;
    const UPLINK: Uplink = Uplink::Posts;

    fn new() -> Self {
        Self {
            reader: StreamReader::default(),
            events: EventStreamDecoder::new(MAX_MESSAGE_BYTES),
            cursor: CursorText::default(),
            is_subscribed: false,
        }
    }

    fn open(&mut self, requests: &Requests, _: &mut Rng, out: &mut Vec<u8>) {
        requests.encode_event_source(out, "/sse", &self.cursor);
        *self = Self { cursor: self.cursor, ..Self::new() };
    }

    fn poll(&mut self, _: &Requests, _: &mut Rng, _: &mut Vec<u8>, _: &mut Tally) -> bool {
        false
    }

    fn receive(
        &mut self,
        _: &mut Rng,
        input: &mut [u8],
        _: &mut Vec<u8>,
        tally: &mut Tally,
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<usize, Cut> {
        let Self { reader, events, cursor, is_subscribed } = self;
        let consumed = reader.receive("/sse", input, tally, |data, texts| {
            let mut broken = None;
            events.decode(data, |event| {
                *texts += event.data.len() as u64;
                match ServerFrame::parse(event.data) {
                    Ok(frame) => forward(&frame, cursor, sink),
                    Err(error) => broken = Some(error),
                }
            })?;
            broken.map_or(Ok(()), |error| Err(error.into()))
        });
        if !events.last_id().is_empty() {
            cursor.set(events.last_id());
            if !*is_subscribed {
                *is_subscribed = true;
                sink(Event::Subscribed);
            }
        }
        consumed
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{chunk_bytes, chunked, head_bytes, play, uses};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_split_gives_the_same(cuts in prop::collection::vec(1usize..40, 1..9), chunk in 1usize..50) {
            let stream = "data:[\"server\",{\"heartbeat_ms\":25000,\"max_message_bytes\":65536,\"max_channels\":64}]\n\nid:e.4\n\n:\n\nid:e.5\ndata:[\"msg\",\"a\",{\"n\":1}]\n\nid: e.9\ndata: [\"gap\",\"e.5\",\"e.9\"]\n\nid:e.10\ndata:[\"msg\",\"a\",2]\n\n";
            let answer = |_: &str| chunked("text/event-stream", stream.as_bytes(), chunk);
            let mut client = Sse::new();
            let mut outcome = play(&mut client, &cuts, &answer).unwrap();
            // When the first bytes hold a message as well, being subscribed is noticed after it.
            outcome.events.retain(|event| event != "subscribed");
            prop_assert_eq!(outcome.events, ["message {\"n\":1}", "gap", "message 2"]);
            prop_assert!(client.is_subscribed);
            let head = head_bytes(&answer(""));
            let (dialect, payload) = (77 + 12 + 19 + 12, 7 + 1);
            let framing = stream.len() - dialect - payload + chunk_bytes(stream.len(), chunk);
            prop_assert_eq!(outcome.down, uses([head, framing, dialect, payload]));
            prop_assert_eq!(outcome.up, uses([outcome.request.len(), 0, 0, 0]));
            let again = play(&mut client, &cuts, &answer).unwrap();
            prop_assert!(again.request.starts_with("GET /sse?channel=a&after=e.10 HTTP/1.1\r\n"), "{}", again.request);
        }
    }

    #[test]
    fn an_ended_or_refused_stream_is_a_cut() {
        let ended = |_: &str| b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec();
        assert!(matches!(play(&mut Sse::new(), &[7], &ended), Err(Cut::StreamEnded)));
        let refused = |_: &str| b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n".to_vec();
        assert!(matches!(play(&mut Sse::new(), &[7], &refused), Err(Cut::Status { status: 404, .. })));
    }
}
