//! `websocket`: the server pushes frames; publications travel the other way on the same connection.

use super::frames::Frames;
use super::{Asking, CursorText, Cut, Event, Receiver, Requests, Uplink, forward};
use fastrand::Rng;
use pushlab_wire::native::ServerFrame;

/// A client of `GET /ws`.
#[derive(Debug, Default)]
pub struct WebSocket {
    frames: Frames,
    cursor: CursorText,
    is_subscribed: bool,
}

impl Receiver for WebSocket {
    const ASKING: Asking = Asking::Never;
    const UPLINK: Uplink = Uplink::Frames;

    fn new() -> Self {
        Self::default()
    }

    fn open(&mut self, requests: &Requests, rng: &mut Rng, out: &mut Vec<u8>) {
        let mut target = format!("/ws?channel={}", requests.channel);
        if !self.cursor.is_empty() {
            target.push_str("&after=");
            target.push_str(self.cursor.as_str());
        }
        self.frames.open(requests, &target, rng, out);
        self.is_subscribed = false;
    }

    fn poll(&mut self, _: &Requests, _: &mut Rng, _: &mut Vec<u8>) -> bool {
        false
    }

    #[inline]
    fn receive(
        &mut self,
        rng: &mut Rng,
        input: &mut [u8],
        out: &mut Vec<u8>,
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<usize, Cut> {
        let Self { frames, cursor, is_subscribed } = self;
        frames.receive(rng, input, out, |text| {
            let frame = ServerFrame::parse(text)?;
            forward(&frame, cursor, sink);
            if !*is_subscribed && matches!(frame, ServerFrame::Cursor(_)) {
                *is_subscribed = true;
                sink(Event::Subscribed);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{Heard, play};
    use super::*;
    use proptest::prelude::*;
    use pushlab_wire::codes::CloseCode;
    use pushlab_wire::websocket::{Opcode, encode, encode_close};

    fn script(frames: &[&str]) -> impl Fn(&str) -> Vec<u8> {
        let frames: Vec<String> = frames.iter().map(|f| (*f).to_owned()).collect();
        move |request: &str| {
            let mut out = super::super::script::upgrade(request);
            encode(&mut out, Opcode::Ping, b"are you there", None);
            frames.iter().for_each(|frame| encode(&mut out, Opcode::Text, frame.as_bytes(), None));
            out
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(cuts in prop::collection::vec(1usize..60, 1..9)) {
            let answer = script(&[r#"["cursor","e.0"]"#, r#"["msg","a","e.1",{"n":1}]"#, r#"["gap","e.1","e.5"]"#, r#"["echo","x"]"#, r#"["error","bad","no"]"#, r#"["msg","a","e.6",2]"#]);
            let mut client = WebSocket::new();
            let heard = play(&mut client, &cuts, &answer).unwrap();
            prop_assert_eq!(heard.events, ["subscribed", "message {\"n\":1}", "gap", "echo \"x\"", "error bad no", "message 2"]);
            prop_assert_eq!(heard.written.len(), 2 + 4 + "are you there".len());
            let Heard { request, .. } = play(&mut client, &cuts, &answer).unwrap();
            prop_assert!(request.starts_with("GET /ws?channel=a&after=e.6 "), "{}", request);
        }
    }

    #[test]
    fn refusals_and_goodbyes_say_why() {
        let refuse = |_: &str| b"HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nfull".to_vec();
        assert_eq!(play(&mut WebSocket::new(), &[999], &refuse).unwrap_err().to_string(), "/ws answered 503 full");
        let goodbye = |request: &str| {
            let mut out = super::super::script::upgrade(request);
            encode_close(&mut out, CloseCode::GoingAway, "bye", None);
            out
        };
        let cut = play(&mut WebSocket::new(), &[5], &goodbye).unwrap_err();
        assert_eq!(cut.to_string(), "the server closed the WebSocket with 1001 bye");
        let nonsense = script(&["hello"]);
        assert!(matches!(play(&mut WebSocket::new(), &[5], &nonsense), Err(Cut::Native(_))));
    }
}
