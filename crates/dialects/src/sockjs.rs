//! `sockjs`: SockJS 0.3, whose sessions carry strings over whatever a browser has. Source: the SockJS protocol 0.3.3,
//! and sockjs-client for what browsers send.
//!
//! Frames are `o` (the session stands), `h` (it lives), `a["message",…]` and `c[code,"why"]`. A message is one of
//! [`verbs`](crate::verbs).

use crate::verbs::Verbs;
use crate::{Answer, Incoming, Over, ProtocolClient, Refused, Reply, Request, Sending, Step, Topic, Turn};
use percent_encoding::{AsciiSet, utf8_percent_encode};
use pushlab_wire::http::RESERVED;
use pushlab_wire::transport::Transport;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The function that frames for scripts are handed to.
const CALLBACK: &str = "_jp.a";
/// What `encodeURIComponent` escapes.
const COMPONENT_RESERVED: &AsciiSet = &RESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');
/// What a reply begins with that calls it.
const CALL: &str = "/**/_jp.a(";

/// How frames travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Way {
    #[default]
    WebSocket,
    /// Messages without frames.
    RawWebSocket,
    EventSource,
    XhrStreaming,
    HtmlFile,
    Xhr,
    Jsonp,
}

impl Way {
    fn of(topic: &Topic) -> Result<Self, Refused> {
        let how = topic.how.as_str();
        match (topic.transport, how) {
            (Some(Transport::WebSocket), "" | "websocket") => Ok(Self::WebSocket),
            (Some(Transport::WebSocket), "raw") => Ok(Self::RawWebSocket),
            (Some(Transport::Sse), "" | "eventsource") => Ok(Self::EventSource),
            (Some(Transport::HttpStreaming), "" | "xhr_streaming") => Ok(Self::XhrStreaming),
            (Some(Transport::HttpStreaming), "htmlfile") => Ok(Self::HtmlFile),
            (Some(Transport::LongPolling), "" | "xhr") => Ok(Self::Xhr),
            (Some(Transport::LongPolling), "jsonp") => Ok(Self::Jsonp),
            (Some(transport), _) => Err(Refused::NoSuchWay { dialect: "sockjs", how: how.to_owned(), transport }),
            (None, _) => Err(Refused::unexpected("a client without a transport", "")),
        }
    }

    /// The request for frames, of a session's address.
    fn request(self, session: &str, path: &str) -> Request {
        let post = |route: &str| Request::post(format!("{session}/{route}"), "text/plain", "");
        match self {
            Self::WebSocket => Request::get(format!("{session}/websocket")).read_as(Answer::WebSocket),
            Self::RawWebSocket => Request::get(format!("{path}/websocket")).read_as(Answer::WebSocket),
            Self::EventSource => Request::get(format!("{session}/eventsource")).read_as(Answer::Events),
            Self::XhrStreaming => post("xhr_streaming").read_as(Answer::Lines),
            Self::HtmlFile => Request::get(format!("{session}/htmlfile?c={CALLBACK}")).read_as(Answer::Lines),
            Self::Xhr => post("xhr"),
            Self::Jsonp => Request::get(format!("{session}/jsonp?c={CALLBACK}")),
        }
    }

    /// How messages go to the server.
    fn send(self, session: &str, messages: &[String]) -> Step {
        match self {
            Self::RawWebSocket => Step::Frame(messages.concat()),
            Self::WebSocket => Step::Frame(packed(messages)),
            Self::Jsonp => {
                let body = format!("d={}", utf8_percent_encode(&packed(messages), COMPONENT_RESERVED));
                let target = format!("{session}/jsonp_send");
                Step::Ask(Over::Up, Request::post(target, "application/x-www-form-urlencoded", body))
            }
            Self::EventSource | Self::XhrStreaming | Self::HtmlFile | Self::Xhr => {
                Step::Ask(Over::Up, Request::post(format!("{session}/xhr_send"), "text/plain", packed(messages)))
            }
        }
    }

    /// The frame in a message, an event, a line or a reply; `None` where there is only what surrounds frames.
    fn frame(self, text: &str) -> Result<Option<Cow<'_, str>>, Refused> {
        let (before, after) = match self {
            // The server writes a percent sign so; the other characters that it treats so are escaped in JSON.
            Self::EventSource if text.contains('%') => return Ok(Some(text.replace("%25", "%").into())),
            Self::HtmlFile => ("p(", ");"),
            Self::Jsonp => (CALL, ");"),
            _ => return Ok(Some(text.into())),
        };
        match text.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)) {
            Some(string) => match serde_json::from_str::<String>(string) {
                Ok(frame) => Ok(Some(frame.into())),
                Err(_) => Err(Refused::unexpected("a frame that is no string", text)),
            },
            None if self == Self::HtmlFile => Ok(None),
            None => Err(Refused::unexpected("a script that calls no function", text)),
        }
    }
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// The session stands.
    Open,
    /// Messages.
    Messages,
    /// A sign of life.
    Heartbeat,
}

impl Frame {
    /// Reads a frame; each of its messages goes to `sink`.
    pub(super) fn read(frame: &str, sink: impl FnMut(&str)) -> Result<Self, Refused> {
        let bad = || Refused::unexpected("no frame of SockJS (o, h, a[…], c[…])", frame);
        match frame.as_bytes().first() {
            Some(b'a') => {
                let mut json = serde_json::Deserializer::from_str(&frame[1..]);
                json.deserialize_seq(Strings(sink)).and_then(|()| json.end()).map_err(|_| bad())?;
                Ok(Self::Messages)
            }
            Some(b'o') => Ok(Self::Open),
            // A stream begins with two thousand of them, so that browsers begin to read.
            Some(b'h') => Ok(Self::Heartbeat),
            Some(b'c') => Err(Refused::unexpected("the server has closed the session", frame)),
            _ => Err(bad()),
        }
    }
}

/// Messages as a client sends them.
pub(super) fn packed(messages: &[String]) -> String {
    serde_json::to_string(messages).expect("strings always serialise")
}

/// A session's address: any name that is not taken, behind three digits for a balancer's use.
pub(super) fn session(topic: &Topic) -> String {
    format!("{}/{:03}/{:016x}", topic.path, topic.random % 1000, topic.random)
}

/// Passes on each string of an array, which stands in the parser's scratch space if it had to be unescaped.
struct Strings<F>(F);

impl<'de, F: FnMut(&str)> Visitor<'de> for Strings<F> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of strings")
    }
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Each(&mut self.0))?.is_some() {}
        Ok(())
    }
}

struct Each<'f, F>(&'f mut F);

impl<'de, F: FnMut(&str)> DeserializeSeed<'de> for Each<'_, F> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<F: FnMut(&str)> Visitor<'_> for Each<'_, F> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        (self.0)(text);
        Ok(())
    }
}

/// One client's end.
#[derive(Debug, Default)]
pub struct SockJs {
    way: Way,
    session: String,
    has_begun: bool,
    verbs: Verbs,
}

impl SockJs {
    fn begin(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Err(Refused::unexpected("the server has forgotten the session", &self.session));
        }
        let messages = self.verbs.begin(turn);
        // The raw WebSocket knows no arrays of messages.
        let at_once = if self.way == Way::RawWebSocket { 1 } else { messages.len().max(1) };
        for messages in messages.chunks(at_once) {
            match self.way.send(&self.session, messages) {
                Step::Frame(text) => turn.send(text),
                Step::Ask(over, request) => turn.ask(over, request),
            }
        }
        Ok(())
    }

    fn ask_for_frames(&self, turn: &mut Turn<'_>) {
        turn.ask(Over::Down, self.way.request(&self.session, &turn.topic.path));
    }

    #[inline]
    fn handle(&mut self, text: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if self.way == Way::RawWebSocket {
            self.verbs.handle(text, turn);
            return Ok(());
        }
        let Some(frame) = self.way.frame(text)? else { return Ok(()) };
        let verbs = &mut self.verbs;
        match Frame::read(&frame, |message| verbs.handle(message, turn))? {
            Frame::Open => self.begin(turn),
            Frame::Messages if !self.has_begun => Err(Refused::unexpected("the session is taken already", text)),
            Frame::Messages | Frame::Heartbeat => Ok(()),
        }
    }
}

impl ProtocolClient for SockJs {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        // A session does not outlive a connection that broke.
        *self = Self { way: Way::of(turn.topic)?, session: session(turn.topic), ..Self::default() };
        self.ask_for_frames(turn);
        Ok(())
    }

    fn opened(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if self.way == Way::RawWebSocket { self.begin(turn) } else { Ok(()) }
    }

    fn reply(&mut self, over: Over, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if over == Over::Up {
            return reply.expect_success("a message by POST");
        }
        reply.expect_success("a poll")?;
        self.handle(reply.body.trim_end(), turn)?;
        if !(self.has_begun && self.verbs.is_confirmed()) {
            self.ask_for_frames(turn);
        }
        Ok(())
    }

    #[inline]
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        self.handle(incoming.text, turn)
    }

    /// A server ends a stream after so many bytes, lest a browser's memory fill; the session goes on in the next.
    fn ended(&mut self, turn: &mut Turn<'_>) -> bool {
        self.ask_for_frames(turn);
        true
    }

    fn poll(&mut self, turn: &mut Turn<'_>) {
        self.ask_for_frames(turn);
    }

    fn publish(&mut self, sending: Sending, data: &str, topic: &Topic) -> Step {
        self.way.send(&self.session, &[Verbs::publication(sending, data, topic)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Player;
    use crate::{Dialect, Sending};
    use proptest::prelude::*;

    fn player(transport: Transport, how: &str) -> Player {
        Player::new(Dialect::SockJs, transport, how)
    }

    proptest! {
        #[test]
        fn a_frame_has_the_messages_that_were_packed(messages: Vec<String>) {
            let mut heard = Vec::new();
            let frame = format!("a{}", packed(&messages));
            prop_assert_eq!(Frame::read(&frame, |message| heard.push(message.to_owned())), Ok(Frame::Messages));
            prop_assert_eq!(heard, messages);
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = Frame::read(&text, |_| ());
            for way in [Way::EventSource, Way::HtmlFile, Way::Jsonp] {
                let _ = way.frame(&text);
            }
        }
    }

    #[test]
    fn a_websocket_is_subscribed_when_every_channel_is_confirmed() {
        let mut player = player(Transport::WebSocket, "");
        assert_eq!(player.open(), ["Down GET /base/007/0000000000000007/websocket"]);
        assert!(player.opened().is_empty());
        assert_eq!(player.text("o"), [r#"frame ["[\"sub\",\"a\"]","[\"sub\",\"b\"]"]"#]);
        assert!(player.text(r#"a["[\"sub\",\"a\"]"]"#).is_empty());
        assert_eq!(player.text(r#"a["[\"sub\",\"b\"]","{\"x\":\"é\"}"]"#), ["subscribed", r#"message {"x":"é"}"#]);
        assert!(player.text("h").is_empty());
        assert_eq!(player.publish(Sending::Publish, "1"), r#"frame ["[\"pub\",\"a\",1]"]"#);
        assert_eq!(player.text(r#"a["[\"echo\",[1]]"]"#), ["echo [1]"]);
        assert!(player.text(r#"c[3000,"Go away!"]"#)[0].contains("Go away!"));
        assert!(player.text("a[1]")[0].starts_with("refused"));
    }

    #[test]
    fn a_raw_websocket_has_no_frames() {
        let mut player = player(Transport::WebSocket, "raw");
        assert_eq!(player.open(), ["Down GET /base/websocket"]);
        assert_eq!(player.opened(), [r#"frame ["sub","a"]"#, r#"frame ["sub","b"]"#]);
        assert!(player.text(r#"["sub","a"]"#).is_empty());
        assert_eq!(player.text(r#"["sub","b"]"#), ["subscribed"]);
        assert_eq!(player.text("\"~\""), ["message \"~\""]);
        assert_eq!(player.publish(Sending::Echo, "1"), r#"frame ["echo",1]"#);
    }

    #[test]
    fn a_stream_goes_on_in_the_next_with_its_session() {
        let mut player = player(Transport::HttpStreaming, "");
        let asked = player.open();
        assert_eq!(asked, ["Down POST /base/007/0000000000000007/xhr_streaming"]);
        assert!(player.text(&"h".repeat(2048)).is_empty());
        assert!(player.text("o")[0].starts_with("Up POST /base/007/0000000000000007/xhr_send [\"[\\\"sub"));
        let again = player.play(|client, turn| {
            assert!(client.ended(turn));
            Ok(())
        });
        assert_eq!(again, asked);
        assert!(player.text(&"h".repeat(2048)).is_empty());
        assert!(player.text("o")[0].contains("forgotten the session"));
    }

    #[test]
    fn polls_follow_each_other_until_the_loop_asks() {
        let mut player = player(Transport::LongPolling, "");
        let ask = "Down POST /base/007/0000000000000007/xhr";
        assert_eq!(player.open(), [ask]);
        let begun = player.reply("o\n");
        assert!(begun[0].starts_with("Up POST /base/007/0000000000000007/xhr_send"));
        assert_eq!(begun[1], ask);
        assert_eq!(player.reply("a[\"[\\\"sub\\\",\\\"a\\\"]\"]\n"), [ask]);
        assert_eq!(player.reply("h\n"), [ask]);
        assert_eq!(player.reply("a[\"[\\\"sub\\\",\\\"b\\\"]\",\"\\\"~\\\"\"]\n"), ["subscribed", "message \"~\""]);
    }

    #[test]
    fn a_session_of_somebody_else_is_refused() {
        let mut player = player(Transport::LongPolling, "");
        assert_eq!(player.open().len(), 1);
        assert!(player.reply("a[\"1\"]\n")[1].contains("the session is taken"));
    }

    #[test]
    fn frames_stand_in_scripts_and_events() {
        let mut player = player(Transport::LongPolling, "jsonp");
        assert_eq!(player.open(), ["Down GET /base/007/0000000000000007/jsonp?c=_jp.a"]);
        let begun = player.reply("/**/_jp.a(\"o\");\r\n");
        assert!(begun[0].contains("/jsonp_send d=%5B%22%5B%5C%22sub%5C%22%2C"), "{begun:?}");
        assert_eq!(begun.len(), 2);
        assert!(player.reply("<html>")[0].starts_with("refused"));

        let frame = |way: Way, text| way.frame(text).unwrap().map(Cow::into_owned);
        assert_eq!(frame(Way::HtmlFile, r#"p("a[\"\\\"~\\\"\"]");"#).as_deref(), Some(r#"a["\"~\""]"#));
        assert_eq!(frame(Way::HtmlFile, "    function p(d) {c.message(d);};"), None);
        assert_eq!(frame(Way::EventSource, r#"a["100%25"]"#).as_deref(), Some(r#"a["100%"]"#));
    }

    #[test]
    fn unknown_ways_are_refused() {
        for (transport, how) in [(Transport::Polling, ""), (Transport::WebSocket, "jsonp"), (Transport::Sse, "x")] {
            assert!(player(transport, how).open()[0].starts_with("refused sockjs has no way"));
        }
    }
}
