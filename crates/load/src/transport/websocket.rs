//! `websocket`: the server pushes frames; publications travel the other way on the same connection.

use super::events::forward;
use super::frames::Frames;
use super::{Asking, Event, Hearing, Receiver, Requests, Uplink};
use crate::connection::Outgoing;
use crate::cut::Cut;
use fastrand::Rng;
use pushlab_wire::cursor::CursorText;
use pushlab_wire::native::ServerFrame;
use pushlab_wire::websocket::permessage_deflate::Agreement;

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

    fn open(&mut self, requests: &Requests, rng: &mut Rng, out: &mut Outgoing) {
        let mut target = format!("/ws?channel={}{}", requests.channel, requests.version);
        if let Some(after) = self.cursor.get() {
            target.push_str("&after=");
            target.push_str(after);
        }
        self.frames.open(requests, &target, rng, out);
        self.is_subscribed = false;
    }

    fn agree(&mut self, agreement: Agreement) {
        self.frames.agree(agreement);
    }

    fn compressed_bytes_max(&self) -> usize {
        self.frames.compressed_bytes_max()
    }

    #[inline]
    fn frames<S: FnMut(Event<'_>)>(&mut self, bytes: &mut [u8], hearing: &mut Hearing<'_, S>) -> Result<usize, Cut> {
        let Self { frames, cursor, is_subscribed } = self;
        frames.receive(bytes, hearing, |text, sink| {
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
    use super::super::script::{Outcome, Told, head_bytes, play, requests, upgrade, uses};
    use super::*;
    use crate::connection::{Http1, Protocol as _};
    use flate2::{Compress, Compression, FlushCompress};
    use proptest::prelude::*;
    use pushlab_wire::codes::CloseCode;
    use pushlab_wire::deflate::Deflater;
    use pushlab_wire::websocket::{Opcode, encode, encode_close, encode_compressed};

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
            let answer = script(&[r#"["server",{"heartbeat_ms":25000,"max_message_bytes":65536,"max_channels":64}]"#, r#"["cursor","e.0"]"#, r#"["msg","a","e.1",{"n":1}]"#, r#"["gap","e.1","e.5"]"#, r#"["echo","x"]"#, r#"["error","bad","no"]"#, r#"["msg","a","e.6",2]"#]);
            let mut client = WebSocket::new();
            let outcome = play(&mut client, &cuts, &answer).unwrap();
            prop_assert_eq!(outcome.events, ["subscribed", "message {\"n\":1}", "gap", "echo \"x\"", "error bad no", "message 2"]);
            prop_assert_eq!(outcome.written.len(), 2 + 4 + "are you there".len());
            let head = head_bytes(&upgrade(&outcome.request));
            // Frame heads of 2, and the ping; the texts but {"n":1}, "x" and 2.
            prop_assert_eq!(outcome.down, uses([head, 8 * 2 + 13, 77 + 16 + 18 + 19 + 9 + 20 + 18, 7 + 3 + 1]));
            prop_assert_eq!(outcome.up, uses([outcome.request.len(), 2 + 4 + 13, 0, 0]), "a pong has a head and a mask");
            let Outcome { request, .. } = play(&mut client, &cuts, &answer).unwrap();
            prop_assert!(request.starts_with("GET /ws?channel=a&after=e.6 "), "{}", request);
        }
    }

    #[test]
    fn long_and_fragmented_messages_have_more_frame_heads() {
        let data = "7".repeat(70_000);
        let text = format!("[\"msg\",\"a\",\"e.1\",{data}]");
        let (first, rest) = text.as_bytes().split_at(40_000);
        let answer = |request: &str| {
            let mut out = upgrade(request);
            encode(&mut out, Opcode::Text, text.as_bytes(), None);
            let start = out.len();
            encode(&mut out, Opcode::Text, first, None);
            out[start] &= 0x7f;
            encode(&mut out, Opcode::Continuation, rest, None);
            encode(&mut out, Opcode::Binary, b"for others", None);
            encode(&mut out, Opcode::Text, br#"["pong",7]"#, None);
            out
        };
        let outcome = play(&mut WebSocket::new(), &[30_000, 7], &answer).unwrap();
        let framing = 10 + 4 + 4 + (2 + 10) + 2;
        assert_eq!(outcome.down, uses([head_bytes(&answer(&outcome.request)), framing, 2 * 18 + 10, 2 * 70_000]));
    }

    /// The answer to a handshake that agrees to what was offered, and messages behind it: compressed with context or
    /// without, or as they are where that is not smaller.
    fn compressed(request: &str, extension: &str, keeps_context: bool, texts: &[String]) -> Vec<u8> {
        let mut out = upgrade(request);
        out.truncate(out.len() - 2);
        out.extend_from_slice(format!("Sec-WebSocket-Extensions: {extension}\r\n\r\n").as_bytes());
        let (mut alone, mut together) = (Deflater::default(), Compress::new(Compression::fast(), false));
        for text in texts {
            let small = if keeps_context {
                let mut small = Vec::with_capacity(text.len() + 100);
                together.compress_vec(text.as_bytes(), &mut small, FlushCompress::Sync).unwrap();
                small.truncate(small.len() - 4);
                Some(small.into_boxed_slice())
            } else {
                alone.deflate(text.as_bytes())
            };
            match small {
                Some(small) => encode_compressed(&mut out, Opcode::Text, &small, None),
                None => encode(&mut out, Opcode::Text, text.as_bytes(), None),
            }
        }
        out
    }

    proptest! {
        #[test]
        fn compressed_messages_are_inflated_whatever_the_split(cuts in prop::collection::vec(1usize..60, 1..9), keeps_context: bool) {
            let data = r#"{"id":17,"name":"sensor","unit":"degrees","values":[1,1,1,1,1,1,1,1,1,1,1,1,1,1]}"#;
            let message = |n: u32| format!("[\"msg\",\"a\",\"e.{n}\",{data}]");
            let texts = ["[\"cursor\",\"e.0\"]".to_owned(), message(1), message(2), message(3)];
            let takeover = if keeps_context { "" } else { "; server_no_context_takeover" };
            let extension = format!("permessage-deflate{takeover}; client_max_window_bits=10");
            let answer = |request: &str| compressed(request, &extension, keeps_context, &texts);
            let mut client = WebSocket::new();
            for _ in 0..2 {
                let outcome = play(&mut client, &cuts, &answer).unwrap();
                let heard = outcome.events.iter().filter(|event| event.starts_with("message")).cloned().collect::<Vec<_>>();
                prop_assert_eq!(heard, vec![format!("message {data}"); 3]);
                prop_assert_eq!(outcome.events.iter().filter(|event| *event == "compressed").count(), 3 + usize::from(keeps_context));
                prop_assert_eq!(client.compressed_bytes_max(), 1 << 10);
            }
            prop_assert_eq!(client.cursor.get(), Some("e.3"));
        }
    }

    #[test]
    fn what_was_not_agreed_on_is_a_cut() {
        let texts = ["[\"echo\",\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"]".to_owned()];
        let play =
            |answer: &dyn Fn(&str) -> Vec<u8>| play(&mut WebSocket::new(), &[7], answer).unwrap_err().to_string();
        let twice = "permessage-deflate; server_no_context_takeover; server_no_context_takeover";
        assert_eq!(
            play(&|request: &str| compressed(request, twice, false, &texts)),
            format!("the WebSocket's handshake: Sec-WebSocket-Extensions {twice:?}: a parameter is repeated")
        );
        let unasked = |request: &str| {
            let whole = compressed(request, "permessage-deflate", false, &texts);
            [upgrade(request), whole[head_bytes(&whole)..].to_vec()].concat()
        };
        assert_eq!(play(&unasked), "WebSocket: reserved bits are set");
        let broken = |request: &str| {
            let mut out = compressed(request, "permessage-deflate; server_no_context_takeover", false, &[]);
            encode_compressed(&mut out, Opcode::Text, &[0xff, 0xff], None);
            out
        };
        assert_eq!(play(&broken), "WebSocket: invalid compressed message");
    }

    #[test]
    fn refusals_and_goodbyes_say_why() {
        let refuse = |_: &str| b"HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nfull".to_vec();
        assert_eq!(
            play(&mut WebSocket::new(), &[999], &refuse).unwrap_err().to_string(),
            "the WebSocket's handshake answered 503 full"
        );
        let (mut client, mut http1) = (WebSocket::new(), Http1::default());
        let mut told = Told::new(&mut client, |_: Event<'_>| ());
        told.client.open(&requests(), &mut told.rng, &mut told.out);
        http1.has_sent(0, &mut told.out);
        http1.receive(&mut refuse(""), &mut told).unwrap_err();
        assert_eq!((told.tally.heads, told.tally.texts), (head_bytes(&refuse("")) as u64, 0), "its body is no text");
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
