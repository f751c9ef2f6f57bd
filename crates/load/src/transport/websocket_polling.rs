//! `websocket-polling`: the client asks at an interval, over a WebSocket.

use super::events::forward;
use super::frames::{Frames, encode_text};
use super::{Asking, Event, Hearing, Receiver, Requests, Uplink};
use crate::connection::Outgoing;
use crate::cut::Cut;
use fastrand::Rng;
use pushlab_wire::cursor::CursorText;
use pushlab_wire::native::{ServerFrame, parse_reply};
use pushlab_wire::websocket::permessage_deflate::Agreement;

/// A client of `GET /ws?mode=poll`.
#[derive(Debug, Default)]
pub struct WebSocketPolling {
    frames: Frames,
    cursor: CursorText,
    is_open: bool,
    is_subscribed: bool,
    is_waiting: bool,
}

impl WebSocketPolling {
    fn ask(&mut self, rng: &mut Rng, out: &mut Outgoing) {
        let text = format!("[\"poll\",\"{}\"]", self.cursor.get().unwrap_or_default());
        encode_text(out, text.as_bytes(), rng);
        self.is_waiting = true;
    }
}

impl Receiver for WebSocketPolling {
    const ASKING: Asking = Asking::AtInterval;
    const UPLINK: Uplink = Uplink::Frames;

    fn new() -> Self {
        Self::default()
    }

    fn open(&mut self, requests: &Requests, rng: &mut Rng, out: &mut Outgoing) {
        let target = format!("/ws?channel={}{}&mode=poll", requests.channel, requests.version);
        self.frames.open(requests, &target, rng, out);
        (self.is_open, self.is_subscribed) = (false, false);
        self.is_waiting = true;
    }

    fn poll(&mut self, _: &Requests, rng: &mut Rng, out: &mut Outgoing) -> bool {
        if self.is_waiting || !self.is_open {
            return false;
        }
        self.ask(rng, out);
        true
    }

    fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    fn agree(&mut self, agreement: Agreement) {
        self.frames.agree(agreement);
    }

    fn compressed_bytes_max(&self) -> usize {
        self.frames.compressed_bytes_max()
    }

    fn frames<S: FnMut(Event<'_>)>(&mut self, bytes: &mut [u8], hearing: &mut Hearing<'_, S>) -> Result<usize, Cut> {
        let Self { frames, cursor, is_open, is_subscribed, is_waiting } = self;
        // A server may greet with its cursor; only a reply says that polling works.
        let on_text = |text: &str, sink: &mut S| {
            if !text.starts_with("[[") {
                let frame = ServerFrame::parse(text)?;
                match frame {
                    // Not a new position: the cursor asked from must not skip what is pending.
                    ServerFrame::Cursor(_) if cursor.get().is_some() => {}
                    frame => forward(&frame, cursor, sink),
                }
                return Ok(());
            }
            parse_reply(text, |frame| forward(&frame, cursor, sink))?;
            *is_waiting = false;
            if !*is_subscribed {
                *is_subscribed = true;
                sink(Event::Subscribed);
            }
            sink(Event::Answered { keeps_alive: true });
            Ok(())
        };
        let consumed = frames.receive(bytes, hearing, on_text)?;
        if !std::mem::replace(is_open, true) {
            self.ask(hearing.rng, hearing.out);
        }
        Ok(consumed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{head_bytes, play, upgrade, uses};
    use super::*;
    use proptest::prelude::*;
    use pushlab_wire::websocket::{Opcode, encode};
    use pushlab_workload::plan::Target;

    proptest! {
        #[test]
        fn any_split_gives_the_same(cuts in prop::collection::vec(1usize..60, 1..9)) {
            let answer = |request: &str| {
                let mut out = upgrade(request);
                encode(&mut out, Opcode::Text, br#"["server",{"heartbeat_ms":25000,"max_message_bytes":65536,"max_channels":64}]"#, None);
                encode(&mut out, Opcode::Text, br#"["cursor","e.4"]"#, None);
                encode(&mut out, Opcode::Text, br#"[["msg","a","e.5",1],["msg","a","e.6",2],["cursor","e.6"]]"#, None);
                encode(&mut out, Opcode::Text, br#"["echo",3]"#, None);
                out
            };
            let mut client = WebSocketPolling::new();
            let mut out = Outgoing::default();
            let mut rng = fastrand::Rng::with_seed(1);
            let requests = Requests::new(&Target::plain("127.0.0.1:1".parse().unwrap()), "a", "a", 0);
            let outcome = play(&mut client, &cuts, &answer).unwrap();
            prop_assert_eq!(outcome.events, ["message 1", "message 2", "subscribed", "answered", "echo 3"]);
            prop_assert!(!outcome.written.is_empty(), "the first poll");
            // The announcement, the greeting, the reply with its array, and the echo's array.
            let head = head_bytes(&upgrade(&outcome.request));
            prop_assert_eq!(outcome.down, uses([head, 4 * 2, 77 + 16 + (58 - 2) + 9, 2 + 1]));
            // Whether the greeting has come with the handshake's answer decides what the first poll asks from.
            let first = outcome.written.len() - 6;
            prop_assert!([11, 14].contains(&first), "{}", first);
            prop_assert_eq!(outcome.up, uses([outcome.request.len(), 6, first, 0]));
            prop_assert!(client.poll(&requests, &mut rng, &mut out));
            prop_assert!(!client.poll(&requests, &mut rng, &mut out), "one at a time");
            prop_assert_eq!((out.tally().texts, out.tally().all), (14, 6 + 14));
        }
    }
}
