//! `http-streaming`: one endless response, a JSON array a line; publications go by POST.

use super::events::forward;
use super::{Asking, Event, Hearing, MAX_MESSAGE_BYTES, Receiver, Requests, Uplink};
use crate::connection::{Head, Outgoing};
use crate::cut::Cut;
use fastrand::Rng;
use pushlab_wire::cursor::CursorText;
use pushlab_wire::lines::LineDecoder;
use pushlab_wire::native::ServerFrame;

/// A client of `GET /stream`.
#[derive(Debug)]
pub struct HttpStreaming {
    lines: LineDecoder,
    cursor: CursorText,
    is_subscribed: bool,
}

impl Receiver for HttpStreaming {
    const ASKING: Asking = Asking::Never;
    const UPLINK: Uplink = Uplink::Posts;

    fn new() -> Self {
        Self { lines: LineDecoder::new(MAX_MESSAGE_BYTES), cursor: CursorText::default(), is_subscribed: false }
    }

    fn open(&mut self, requests: &Requests, _: &mut Rng, out: &mut Outgoing) {
        requests.encode_get(out, "/stream", "", &self.cursor);
        *self = Self { cursor: self.cursor, ..Self::new() };
    }

    fn head<S: FnMut(Event<'_>)>(&mut self, head: &Head<'_>, _: &mut Hearing<'_, S>) -> Result<(), Cut> {
        head.accept("/stream")
    }

    #[inline]
    fn body<S: FnMut(Event<'_>)>(
        &mut self,
        data: &[u8],
        is_last: bool,
        hearing: &mut Hearing<'_, S>,
    ) -> Result<(), Cut> {
        let Self { lines, cursor, is_subscribed } = self;
        let Hearing { texts, sink, .. } = hearing;
        let mut broken = None;
        lines.decode(data, |line| {
            **texts += line.len() as u64;
            match parse(line) {
                Ok(frame) => {
                    forward(&frame, cursor, sink);
                    if !*is_subscribed && matches!(frame, ServerFrame::Cursor(_)) {
                        *is_subscribed = true;
                        sink(Event::Subscribed);
                    }
                }
                Err(cut) => broken = Some(cut),
            }
        })?;
        match broken {
            Some(cut) => Err(cut),
            None if is_last => Err(Cut::StreamEnded),
            None => Ok(()),
        }
    }
}

fn parse(line: &[u8]) -> Result<ServerFrame<'_>, Cut> {
    let text = std::str::from_utf8(line).map_err(|_| Cut::NotUtf8)?;
    Ok(ServerFrame::parse(text)?)
}

#[cfg(test)]
mod tests {
    use super::super::script::{chunk_bytes, chunked, head_bytes, play, uses};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_split_gives_the_same(cuts in prop::collection::vec(1usize..40, 1..9), chunk in 1usize..50) {
            let stream = "[\"server\",{\"heartbeat_ms\":25000,\"max_message_bytes\":65536,\"max_channels\":64}]\n[\"cursor\",\"e.4\"]\n\n[\"msg\",\"a\",\"e.5\",{\"n\":1}]\n[\"gap\",\"e.5\",\"e.9\"]\n\n[\"msg\",\"a\",\"e.10\",2]\n";
            let answer = |_: &str| chunked("application/x-ndjson", stream.as_bytes(), chunk);
            let mut client = HttpStreaming::new();
            let outcome = play(&mut client, &cuts, &answer).unwrap();
            prop_assert_eq!(outcome.events, ["subscribed", "message {\"n\":1}", "gap", "message 2"]);
            let framing = 7 + chunk_bytes(stream.len(), chunk);
            prop_assert_eq!(outcome.down, uses([head_bytes(&answer("")), framing, 77 + 16 + 18 + 19 + 19, 7 + 1]));
            prop_assert_eq!(outcome.up, uses([outcome.request.len(), 0, 0, 0]));
            let again = play(&mut client, &cuts, &answer).unwrap();
            prop_assert!(again.request.starts_with("GET /stream?channel=a&after=e.10 HTTP/1.1\r\n"), "{}", again.request);
        }
    }

    #[test]
    fn a_broken_line_is_a_cut() {
        let broken = |_: &str| chunked("application/x-ndjson", b"[\"cursor\",\n", 99);
        assert!(matches!(play(&mut HttpStreaming::new(), &[7], &broken), Err(Cut::Native(_))));
    }
}
