//! `http-streaming`: one endless response, a JSON array a line; publications go by POST.

use super::streams::StreamReader;
use super::{Asking, CursorText, Cut, Event, MAX_MESSAGE_BYTES, Receiver, Requests, Tally, Uplink, forward};
use fastrand::Rng;
use pushlab_wire::lines::LineDecoder;
use pushlab_wire::native::ServerFrame;

/// A client of `GET /stream`.
#[derive(Debug)]
pub struct HttpStreaming {
    reader: StreamReader,
    lines: LineDecoder,
    cursor: CursorText,
    is_subscribed: bool,
}

impl Receiver for HttpStreaming {
    const ASKING: Asking = Asking::Never;
    const UPLINK: Uplink = Uplink::Posts;

    fn new() -> Self {
        Self {
            reader: StreamReader::default(),
            lines: LineDecoder::new(MAX_MESSAGE_BYTES),
            cursor: CursorText::default(),
            is_subscribed: false,
        }
    }

    fn open(&mut self, requests: &Requests, _: &mut Rng, out: &mut Vec<u8>) {
        requests.encode_get(out, "/stream", "", &self.cursor);
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
        let Self { reader, lines, cursor, is_subscribed } = self;
        reader.receive("/stream", input, tally, |data, texts| {
            let mut broken = None;
            lines.decode(data, |line| {
                *texts += line.len() as u64;
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
            broken.map_or(Ok(()), Err)
        })
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
