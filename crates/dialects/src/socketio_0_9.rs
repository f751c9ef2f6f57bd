//! `socketio-0.9`: the protocol of Socket.IO 0.9 (<https://github.com/socketio/socket.io-spec>, protocol 1), over a
//! WebSocket, by XHR polling or by JSONP polling. Its polls are held. The events are those of [`crate::socketio`].
//!
//! A GET is answered with `SESSION:HEARTBEAT:CLOSE:TRANSPORTS`; everything else goes to
//! `PATH/1/TRANSPORT/SESSION`. A packet is `KIND:ID:NAMESPACE:DATA`; in a body several of them stand behind each other,
//! each behind its length between two replacement characters, as a JavaScript string has it: in UTF-16 units.

use crate::joining::Joining;
use crate::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Request, Sending, Step, Topic, Turn};
use percent_encoding::utf8_percent_encode;
use pushlab_wire::http::RESERVED;
use pushlab_wire::native::json_string;
use pushlab_wire::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Stands before and behind the length of a packet.
const MARK: char = '\u{fffd}';
const HEARTBEAT: &str = "2::";
/// What a reply to a script begins with: the first of the functions that a page has for it.
const CALL: &str = "io.j[0](";

/// How packets travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Way {
    #[default]
    WebSocket,
    Xhr,
    Jsonp,
}

impl Way {
    fn of(topic: &Topic) -> Result<Self, Refused> {
        match (topic.transport, topic.how.as_str()) {
            (Some(Transport::WebSocket), "") => Ok(Self::WebSocket),
            (Some(Transport::LongPolling), "") => Ok(Self::Xhr),
            (Some(Transport::LongPolling), "jsonp") => Ok(Self::Jsonp),
            (Some(transport), how) => {
                Err(Refused::NoSuchWay { dialect: "socketio-0.9", how: how.to_owned(), transport })
            }
            (None, _) => Err(Refused::unexpected("a client without a transport", "")),
        }
    }

    /// Where a session's requests go.
    fn target(self, path: &str, session: &str) -> String {
        match self {
            Self::WebSocket => format!("{path}/1/websocket/{session}"),
            Self::Xhr => format!("{path}/1/xhr-polling/{session}"),
            Self::Jsonp => format!("{path}/1/jsonp-polling/{session}?i=0"),
        }
    }

    /// The packets in the body of a poll's answer.
    fn packets(self, body: &str) -> Result<Cow<'_, str>, Refused> {
        if self != Self::Jsonp {
            return Ok(body.into());
        }
        let string = body.strip_prefix(CALL).and_then(|rest| rest.strip_suffix(");"));
        let packets = string.and_then(|string| serde_json::from_str::<String>(string).ok());
        packets.map(Cow::from).ok_or_else(|| Refused::unexpected("a script that calls no function with packets", body))
    }

    /// The POST of a body of packets.
    fn post(self, target: &str, packets: &str) -> Request {
        if self != Self::Jsonp {
            return Request::post(target, "text/plain;charset=UTF-8", packets);
        }
        let string = json_string(packets);
        let form = format!("d={}", utf8_percent_encode(&string, RESERVED));
        Request::post(target, "application/x-www-form-urlencoded", form)
    }
}

/// A body of these packets.
fn packed(packets: &[String]) -> String {
    match packets {
        [one] => one.clone(),
        several => {
            let framed = |packet: &String| format!("{MARK}{}{MARK}{packet}", packet.encode_utf16().count());
            several.iter().map(framed).collect()
        }
    }
}

/// Passes on each packet of a body.
fn unpacked(body: &str, mut sink: impl FnMut(&str) -> Result<(), Refused>) -> Result<(), Refused> {
    let bad = || Refused::unexpected("packets without a usable length", body);
    if !body.starts_with(MARK) {
        return sink(body);
    }
    let mut rest = body;
    while !rest.is_empty() {
        let (length, behind) = rest.strip_prefix(MARK).and_then(|rest| rest.split_once(MARK)).ok_or_else(bad)?;
        let units = length.parse::<usize>().map_err(|_| bad())?;
        let (packet, next) = behind.split_at_checked(bytes_of(behind, units).ok_or_else(bad)?).ok_or_else(bad)?;
        sink(packet)?;
        rest = next;
    }
    Ok(())
}

/// How many bytes the first so many UTF-16 units of a text take; `None` where it has fewer, or a character is cut.
fn bytes_of(text: &str, units: usize) -> Option<usize> {
    if text.as_bytes().get(..units)?.is_ascii() {
        return Some(units);
    }
    let mut left = units;
    for (at, character) in text.char_indices() {
        if left == 0 {
            return Some(at);
        }
        left = left.checked_sub(character.len_utf16())?;
    }
    (left == 0).then_some(text.len())
}

/// What an event says.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    args: Vec<&'a RawValue>,
}

/// One client's end.
#[derive(Debug, Default)]
pub struct SocketIo09 {
    way: Way,
    /// Where requests go: to the handshake, then to the session.
    target: String,
    has_session: bool,
    /// Whether the last request of the receiving connection carries packets and does not fetch any.
    has_posted: bool,
    has_joined: bool,
    joining: Joining,
    /// What is to be sent at the end of the turn.
    packets: Vec<String>,
}

impl SocketIo09 {
    fn begin_session(&mut self, body: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let session = body.split(':').next().unwrap_or_default();
        // It becomes part of a request's head.
        if session.is_empty() || !session.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
            return Err(Refused::unexpected("a handshake without a usable session", body));
        }
        self.target = self.way.target(&turn.topic.path, session);
        self.has_session = true;
        let answer = if self.way == Way::WebSocket { Answer::WebSocket } else { Answer::Whole };
        turn.ask(Over::Down, self.fetch().read_as(answer));
        Ok(())
    }

    #[inline]
    fn handle_packet(&mut self, packet: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
        // Nearly everything that comes, as the server writes it: found without reading the data.
        let message = packet.strip_prefix(r#"5:::{"name":"msg","args":["#).and_then(|rest| rest.strip_suffix("]}"));
        if let Some(data) = message {
            turn.report(Notice::Message(data));
            return Ok(());
        }
        let unknown = || Refused::unexpected("a packet that Socket.IO 0.9 does not have", packet);
        let mut parts = packet.splitn(4, ':');
        let kind = parts.next().ok_or_else(unknown)?;
        let (Some(_), Some(namespace)) = (parts.next(), parts.next()) else { return Err(unknown()) };
        match kind {
            "0" => Err(Refused::unexpected("the server ended the session", packet)),
            "1" if namespace.is_empty() && !self.has_joined => {
                self.join(turn);
                Ok(())
            }
            "2" => {
                self.packets.push(HEARTBEAT.to_owned());
                Ok(())
            }
            "5" => self.handle_event(parts.next().unwrap_or_default(), turn),
            "7" => Err(Refused::unexpected("the server reports an error", packet)),
            // Confirmed again, another namespace, what applications may send besides, and what only ends a poll.
            "1" | "3" | "4" | "6" | "8" => Ok(()),
            _ => Err(unknown()),
        }
    }

    fn handle_event(&mut self, text: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let bad = |_| Refused::unexpected("an event that is not {name, args}", text);
        let event: Event<'_> = serde_json::from_str(text).map_err(bad)?;
        match (&*event.name, event.args.first()) {
            ("msg", Some(data)) => turn.report(Notice::Message(data.get())),
            ("echo", Some(data)) => turn.report(Notice::Echo(data.get())),
            ("joined", _) => self.joining.confirm(turn),
            // Applications may have events of their own.
            _ => {}
        }
        Ok(())
    }

    fn join(&mut self, turn: &mut Turn<'_>) {
        self.has_joined = true;
        let channels = &turn.topic.channels;
        self.packets.extend(channels.iter().map(|channel| event("join", &json_string(channel))));
        self.joining.begin(turn);
    }

    /// Posts the packets of a turn: until the client is subscribed on the connection that receives, as it has no use
    /// for another one yet.
    fn post_packets(&mut self, turn: &mut Turn<'_>) {
        self.has_posted = false;
        if self.packets.is_empty() {
            if !self.joining.is_over {
                turn.ask(Over::Down, self.fetch());
            }
            return;
        }
        let request = self.way.post(&self.target, &packed(&self.packets));
        self.packets.clear();
        self.has_posted = !self.joining.is_over;
        turn.ask(if self.joining.is_over { Over::Up } else { Over::Down }, request);
    }

    fn fetch(&self) -> Request {
        Request::get(self.target.as_str())
    }
}

/// The packet of an event; its arguments are JSON.
fn event(name: &str, args: &str) -> String {
    format!("5:::{{\"name\":\"{name}\",\"args\":[{args}]}}")
}

impl ProtocolClient for SocketIo09 {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        // A session ends with its connection: every one begins anew.
        let target = format!("{}/1/", turn.topic.path);
        *self = Self { way: Way::of(turn.topic)?, target, ..Self::default() };
        turn.ask(Over::Down, self.fetch());
        Ok(())
    }

    fn reply(&mut self, over: Over, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if over == Over::Up {
            return reply.expect_success("a POST of packets");
        }
        if !self.has_session {
            reply.expect_success("the handshake")?;
            return self.begin_session(reply.body, turn);
        }
        if self.has_posted {
            reply.expect_success("a POST of packets")?;
        } else {
            reply.expect_success("a poll")?;
            let packets = self.way.packets(reply.body)?;
            unpacked(&packets, |packet| self.handle_packet(packet, turn))?;
        }
        self.post_packets(turn);
        Ok(())
    }

    #[inline]
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        self.handle_packet(incoming.text, turn)?;
        self.packets.drain(..).for_each(|packet| turn.send(packet));
        Ok(())
    }

    fn poll(&mut self, turn: &mut Turn<'_>) {
        turn.ask(Over::Down, self.fetch());
    }

    fn publish(&mut self, sending: Sending, data: &str, topic: &Topic) -> Step {
        let packet = match sending {
            Sending::Publish => event("pub", &format!("{},{data}", json_string(&topic.publish_to))),
            Sending::Echo => event("echo", data),
        };
        match self.way {
            Way::WebSocket => Step::Frame(packet),
            Way::Xhr | Way::Jsonp => Step::Ask(Over::Up, self.way.post(&self.target, &packet)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::script::Player;
    use proptest::prelude::*;

    const HANDSHAKE: &str = "s-1_A:60:60:websocket,htmlfile,xhr-polling,jsonp-polling";

    fn player(transport: Transport, how: &str) -> Player {
        let mut player = Player::new(Dialect::SocketIo09, transport, how);
        assert_eq!(player.open(), ["Down GET /base/1/"]);
        player
    }

    #[test]
    fn whatever_is_asked_before_there_is_a_session_goes_to_the_handshake() {
        let mut player = player(Transport::LongPolling, "");
        let polled = player.play(|client, turn| {
            client.poll(turn);
            Ok(())
        });
        assert_eq!(polled, ["Down GET /base/1/"]);
        assert_eq!(player.reply(HANDSHAKE), ["Down GET /base/1/xhr-polling/s-1_A"]);
    }

    proptest! {
        #[test]
        fn a_body_has_the_packets_that_were_packed(packets in prop::collection::vec("5:::\\PC{0,9}", 1..5)) {
            let mut heard = Vec::new();
            let hear = |packet: &str| {
                heard.push(packet.to_owned());
                Ok(())
            };
            prop_assert_eq!(unpacked(&packed(&packets), hear), Ok(()));
            prop_assert_eq!(heard, packets);
        }

        #[test]
        fn any_body_is_read_or_refused(body in "[\u{fffd}0-9:é😀]{0,20}") {
            let _ = unpacked(&body, |_| Ok(()));
            let _ = Way::Jsonp.packets(&body);
        }
    }

    #[test]
    fn lengths_count_utf16_units() {
        let packets = ["3:::é😀", "2::"].map(str::to_owned);
        assert_eq!(packed(&packets), "\u{fffd}7\u{fffd}3:::é😀\u{fffd}3\u{fffd}2::");
        let cut = "\u{fffd}6\u{fffd}3:::é😀\u{fffd}3\u{fffd}2::";
        for bad in [cut, "\u{fffd}9\u{fffd}3:::", "\u{fffd}x\u{fffd}3:::", "\u{fffd}1", "\u{fffd}3\u{fffd}2::2::"] {
            assert!(unpacked(bad, |_| Ok(())).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn one_is_subscribed_when_every_channel_is_joined() {
        let mut player = player(Transport::WebSocket, "");
        assert_eq!(player.reply(HANDSHAKE), ["Down GET /base/1/websocket/s-1_A"]);
        assert!(player.opened().is_empty());
        let join = |channel| format!(r#"frame 5:::{{"name":"join","args":["{channel}"]}}"#);
        assert_eq!(player.text("1::"), [join("a"), join("b")]);
        assert!(player.text("1::").is_empty() && player.text("1::/other").is_empty());
        assert!(player.text(r#"5:::{"name":"joined","args":["a"]}"#).is_empty());
        assert_eq!(player.text(r#"5:::{"name":"joined","args":["b"]}"#), ["subscribed"]);
        assert_eq!(player.text(r#"5:::{"name":"msg","args":[{"x":"]}"}]}"#), [r#"message {"x":"]}"}"#]);
        assert_eq!(player.text(r#"5:1+::{"args":["~"],"name":"m\u0073g"}"#), [r#"message "~""#]);
        assert_eq!(player.text(r#"5:::{"name":"echo","args":[[1]]}"#), ["echo [1]"]);
        assert_eq!(player.text("2::"), ["frame 2::"]);
        assert_eq!(player.publish(Sending::Publish, "1"), r#"frame 5:::{"name":"pub","args":["a",1]}"#);
        assert_eq!(player.publish(Sending::Echo, "[1]"), r#"frame 5:::{"name":"echo","args":[[1]]}"#);
    }

    #[test]
    fn packets_are_taken_or_refused() {
        let mut player = player(Transport::WebSocket, "");
        player.reply(HANDSHAKE);
        for passed in ["3:::text", "4:::{}", "6:::1", "8::", r#"5:::{"name":"news"}"#, r#"5:::{"name":"msg"}"#] {
            assert!(player.text(passed).is_empty(), "{passed:?}");
        }
        for refused in ["", "é", "5", "5:", "0::", "7:::1+0", "9::", "5::", "5:::[]", "5:::{}", "10::"] {
            assert!(player.text(refused)[0].starts_with("refused"), "{refused:?}");
        }
    }

    #[test]
    fn polls_carry_several_packets() {
        const POLLS: &str = "/base/1/xhr-polling/s-1_A";
        let mut player = player(Transport::LongPolling, "");
        assert_eq!(player.reply(HANDSHAKE), [format!("Down GET {POLLS}")]);
        let join = |channel| format!("\u{fffd}32\u{fffd}5:::{{\"name\":\"join\",\"args\":[\"{channel}\"]}}");
        assert_eq!(player.reply("1::"), [format!("Down POST {POLLS} {}{}", join('a'), join('b'))]);
        assert_eq!(player.reply("1"), [format!("Down GET {POLLS}")]);
        assert_eq!(player.reply(r#"5:::{"name":"joined","args":["a"]}"#), [format!("Down GET {POLLS}")]);
        let (joined, message) = (r#"5:::{"name":"joined","args":["b"]}"#, r#"5:::{"name":"msg","args":["é"]}"#);
        let both = format!("\u{fffd}34\u{fffd}{joined}\u{fffd}31\u{fffd}{message}");
        assert_eq!(player.reply(&both), ["subscribed", r#"message "é""#]);
        // A poll that brought nothing but its end.
        assert!(player.reply("8::").is_empty());
        let published = r#"5:::{"name":"pub","args":["a",1]}"#;
        assert_eq!(player.publish(Sending::Publish, "1"), format!("Up POST {POLLS} {published}"));
    }

    #[test]
    fn jsonp_packs_packets_into_scripts_and_forms() {
        const POLLS: &str = "/base/1/jsonp-polling/s-1_A?i=0";
        let mut player = player(Transport::LongPolling, "jsonp");
        assert_eq!(player.reply(HANDSHAKE), [format!("Down GET {POLLS}")]);
        let posted = player.reply(r#"io.j[0]("1::");"#);
        assert!(posted[0].starts_with(&format!("Down POST {POLLS} d=%22%EF%BF%BD")), "{posted:?}");
        let published = player.publish(Sending::Publish, "1");
        let form =
            "d=%225%3A%3A%3A%7B%5C%22name%5C%22%3A%5C%22pub%5C%22%2C%5C%22args%5C%22%3A%5B%5C%22a%5C%22%2C1%5D%7D%22";
        assert_eq!(published, format!("Up POST {POLLS} {form}"));
        player.reply("1");
        assert!(player.reply("1::")[0].starts_with("refused"));
    }

    #[test]
    fn a_session_that_would_change_the_request_is_refused() {
        for session in ["", "a b", "a\r\nX: y", "ä", "a/b"] {
            let mut player = player(Transport::LongPolling, "");
            assert!(player.reply(&format!("{session}:60:60:"))[0].starts_with("refused"), "{session:?}");
        }
        let mut player = Player::new(Dialect::SocketIo09, Transport::Sse, "");
        assert!(player.open()[0].starts_with("refused"));
    }
}
