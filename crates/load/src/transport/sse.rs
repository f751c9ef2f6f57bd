//! `sse`: an event stream; publications go by POST.

use super::events::forward;
use super::{Asking, Event, Hearing, MAX_MESSAGE_BYTES, Receiver, Requests, Uplink};
use crate::connection::{Head, Outgoing};
use crate::cut::Cut;
use fastrand::Rng;
use pushlab_wire::cursor::CursorText;
use pushlab_wire::event_stream::EventStreamDecoder;
use pushlab_wire::native::ServerFrame;

/// A client of `GET /sse`.
#[derive(Debug)]
pub struct Sse {
    events: EventStreamDecoder,
    cursor: CursorText,
    is_subscribed: bool,
}

impl Receiver for Sse {
    const ASKING: Asking = Asking::Never;
    const UPLINK: Uplink = Uplink::Posts;

    fn new() -> Self {
        Self { events: EventStreamDecoder::new(MAX_MESSAGE_BYTES), cursor: CursorText::default(), is_subscribed: false }
    }

    fn open(&mut self, requests: &Requests, _: &mut Rng, out: &mut Outgoing) {
        requests.encode_event_source(out, "/sse", &self.cursor);
        *self = Self { cursor: self.cursor, ..Self::new() };
    }

    fn head<S: FnMut(Event<'_>)>(&mut self, head: &Head<'_>, _: &mut Hearing<'_, S>) -> Result<(), Cut> {
        head.accept("/sse")
    }

    #[inline]
    fn body<S: FnMut(Event<'_>)>(
        &mut self,
        data: &[u8],
        is_last: bool,
        hearing: &mut Hearing<'_, S>,
    ) -> Result<(), Cut> {
        let Self { events, cursor, is_subscribed } = self;
        let Hearing { texts, sink, .. } = hearing;
        let mut broken = None;
        let decoded = events.decode(data, |event| {
            **texts += event.data.len() as u64;
            match ServerFrame::parse(event.data) {
                Ok(frame) => forward(&frame, cursor, sink),
                Err(error) => broken = Some(error),
            }
        });
        if !events.last_id().is_empty() {
            cursor.set(events.last_id());
            if !*is_subscribed {
                *is_subscribed = true;
                sink(Event::Subscribed);
            }
        }
        decoded?;
        match broken {
            Some(error) => Err(error.into()),
            None if is_last => {
                if let Some(after_ms) = events.retry_ms() {
                    sink(Event::ComeBack { after_ms: u64::from(after_ms) });
                }
                Err(Cut::StreamEnded)
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{Told, chunk_bytes, chunked, head_bytes, play, requests, uses};
    use super::*;
    use crate::connection::{Http1, Protocol as _};
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

    #[test]
    fn a_stream_that_ends_says_when_to_come_back() {
        let stream = chunked("text/event-stream", b"id:e.4\n\nretry:618\n\n", 99);
        let (mut client, mut events, mut http1) = (Sse::new(), Vec::new(), Http1::default());
        let mut told = Told::new(&mut client, |event: Event<'_>| events.push(format!("{event:?}")));
        told.client.open(&requests(), &mut told.rng, &mut told.out);
        http1.has_sent(0, &mut told.out);
        let ended = http1.receive(&mut [stream, b"0\r\n\r\n".to_vec()].concat(), &mut told);
        assert!(matches!(ended, Err(Cut::StreamEnded)));
        assert_eq!(events, ["Subscribed", "ComeBack { after_ms: 618 }"]);
    }

    #[test]
    fn what_a_refusal_says_is_told_on_one_line_without_the_framing_around_it() {
        let said = |answer: &'static str| {
            play(&mut Sse::new(), &[answer.len()], &|_: &str| answer.into()).unwrap_err().to_string()
        };
        let chunked =
            "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n{\"error\":\r\n\r\n7\r\n\"busy\"}\r\n0\r\n\r\n";
        assert_eq!(said(chunked), r#"/sse answered 503 {"error": "busy"}"#);
        assert_eq!(said("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"), "/sse answered 404");
    }
}
