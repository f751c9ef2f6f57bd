//! `socketio`: the protocols of Engine.IO 4 and Socket.IO 5 (<https://socket.io/docs/v4/engine-io-protocol/>,
//! <https://socket.io/docs/v4/socket-io-protocol/>), over a WebSocket or by long polling, without an upgrade from one to
//! the other. Clients emit `join` CHANNEL, answered by `joined` CHANNEL, `pub` CHANNEL DATA, which everybody in that
//! room hears as `msg` DATA, and `echo` DATA, which comes back. Sails has requests in place of those: [`crate::sails`].
//!
//! A server that recovers connections says so by a private session id; then each event ends with an offset, a text, from
//! which a client that was cut off goes on (<https://socket.io/docs/v4/connection-state-recovery>).
//!
//! Servers differ in what they send before they confirm the connection: a ping (socketioxide), events
//! (netty-socketio). So a packet is taken for what it is, whenever it comes.

use crate::joining::Joining;
use crate::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Request, Sending, Step, Topic, Turn};
use pushlab_wire::transport::Transport;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Stands between the packets of a body.
const SEPARATOR: char = '\x1e';
const CONNECT: &str = "40";
const PONG: &str = "3";
/// The way of servers that close a connection after each answer, though they say that they keep it (netty-socketio).
const CLOSING: &str = "closing";

/// In what an application wraps what it says: a packet each, channels given as JSON.
pub trait Wrapping: fmt::Debug + Default + Send {
    /// The dialect's name.
    const NAME: &str;
    /// What the query of each request has besides.
    const QUERY: &str;

    /// Joins a channel.
    fn join(&mut self, channel: &Value) -> String;

    /// Publishes to a channel.
    fn send(&mut self, channel: &Value, data: &str) -> String;

    /// Wants its data back.
    fn echo(&mut self, data: &str) -> String;

    /// Takes an acknowledgement, from its number on; `true` if a channel was joined.
    ///
    /// # Errors
    /// When it is none that can come.
    fn handle_answer(&mut self, text: &str, turn: &mut Turn<'_>) -> Result<bool, Refused>;
}

/// Events of three names.
#[derive(Debug, Default)]
pub struct Events;

impl Wrapping for Events {
    const NAME: &str = "socketio";
    const QUERY: &str = "";

    fn join(&mut self, channel: &Value) -> String {
        format!("42[\"join\",{channel}]")
    }

    fn send(&mut self, channel: &Value, data: &str) -> String {
        format!("42[\"pub\",{channel},{data}]")
    }

    fn echo(&mut self, data: &str) -> String {
        format!("42[\"echo\",{data}]")
    }

    fn handle_answer(&mut self, text: &str, _: &mut Turn<'_>) -> Result<bool, Refused> {
        Err(Refused::unexpected("an acknowledgement of what wants none", text))
    }
}

/// One client's end.
#[derive(Debug, Default)]
pub struct SocketIo<W> {
    wrapping: W,
    /// Path and query of requests, with the session once there is one.
    target: String,
    is_polling: bool,
    /// Whether every request is the last of its connection.
    is_closing: bool,
    /// Whether the last request of the receiving connection carries packets and does not fetch any.
    has_posted: bool,
    joining: Joining,
    /// What is to be sent at the end of the turn.
    packets: Vec<String>,
    place: Place,
}

/// Where a client was when it was cut off.
#[derive(Debug, Default)]
struct Place {
    /// The session that the server keeps for it; empty where it keeps none.
    pid: String,
    /// Of the last event that it got; empty before the first.
    offset: String,
}

impl Place {
    /// Parts the data of an event from its offset, where it has one.
    #[inline]
    fn take<'d>(&mut self, data: &'d str) -> &'d str {
        let parted = || data.strip_suffix('"')?.rsplit_once(",\"");
        let Some((data, offset)) = (if self.pid.is_empty() { None } else { parted() }) else { return data };
        self.offset.clear();
        self.offset.push_str(offset);
        data
    }

    /// What the client says to have its connection recovered; nothing the first time.
    fn connect(&self) -> String {
        match (self.pid.as_str(), self.offset.as_str()) {
            ("", _) | (_, "") => CONNECT.to_owned(),
            (pid, offset) => format!("{CONNECT}{}", serde_json::json!({ "pid": pid, "offset": offset })),
        }
    }
}

/// What a server says of a connection to a namespace, as far as it matters here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Connected<'a> {
    #[serde(borrow)]
    pid: Cow<'a, str>,
}

/// What an open packet says, as far as it matters here.
#[derive(Deserialize)]
struct Opened<'a> {
    #[serde(borrow)]
    sid: Cow<'a, str>,
}

impl<W: Wrapping> SocketIo<W> {
    fn handle_packet(&mut self, packet: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let unknown = || Refused::unexpected("a packet that Engine.IO does not have", packet);
        let (kind, rest) = packet.split_at_checked(1).ok_or_else(unknown)?;
        match kind {
            "4" => self.handle_message(rest, turn),
            "0" => self.open_session(rest),
            "1" => Err(Refused::unexpected("the server closed the session", rest)),
            "2" => {
                self.packets.push(format!("{PONG}{rest}"));
                Ok(())
            }
            // A pong, and a packet that only ends a poll.
            "3" | "6" => Ok(()),
            _ => Err(unknown()),
        }
    }

    fn open_session(&mut self, text: &str) -> Result<(), Refused> {
        let bad = || Refused::unexpected("a session was opened without a usable id", text);
        let opened: Opened<'_> = serde_json::from_str(text).map_err(|_| bad())?;
        if self.is_polling {
            // It becomes part of a request's head.
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
            if opened.sid.is_empty() || !opened.sid.bytes().all(is_plain) {
                return Err(bad());
            }
            self.target.push_str(&format!("&sid={}", opened.sid));
        }
        self.packets.push(self.place.connect());
        Ok(())
    }

    #[inline]
    fn handle_message(&mut self, message: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
        // Nearly everything that comes, as every server writes it: found without reading the data.
        let event = |name| message.strip_prefix(name).and_then(|rest: &str| rest.strip_suffix(']'));
        if let Some(data) = event("2[\"msg\",") {
            turn.report(Notice::Message(self.place.take(data)));
            return Ok(());
        }
        if let Some(data) = event("2[\"echo\",") {
            turn.report(Notice::Echo(self.place.take(data)));
            return Ok(());
        }
        self.handle_other(message, turn)
    }

    fn handle_other(&mut self, message: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let unknown = || Refused::unexpected("a packet that Socket.IO does not have here", message);
        let (kind, rest) = message.split_at_checked(1).ok_or_else(unknown)?;
        match kind {
            "0" => {
                self.connected(rest, turn);
                Ok(())
            }
            "1" => Err(Refused::unexpected("the server ended the connection to its namespace", rest)),
            "2" => self.handle_event(rest, turn),
            "3" => {
                if self.wrapping.handle_answer(rest, turn)? {
                    self.joining.confirm(turn);
                }
                Ok(())
            }
            "4" => Err(Refused::unexpected("the server refused the connection to its namespace", rest)),
            _ => Err(unknown()),
        }
    }

    /// Joins the channels, unless the server has recovered the connection that was cut, with all that it missed.
    fn connected(&mut self, text: &str, turn: &mut Turn<'_>) {
        let Connected { pid } = serde_json::from_str(text).unwrap_or_default();
        let before = std::mem::replace(&mut self.place.pid, pid.into_owned());
        if !before.is_empty() {
            if before == self.place.pid {
                return self.joining.stands(turn);
            }
            self.place.offset.clear();
            turn.report(Notice::Gap);
        }
        self.join(turn);
    }

    fn join(&mut self, turn: &mut Turn<'_>) {
        let channels = &turn.topic.channels;
        for channel in channels {
            self.packets.push(self.wrapping.join(&Value::from(channel.as_str())));
        }
        self.joining.begin(turn);
    }

    fn handle_event(&mut self, text: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let bad = || Refused::unexpected("an event that is not [NAME,DATA…]", text);
        // Where a server wants to know that it has come, a number stands before it.
        let array = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let parts: Vec<&RawValue> = serde_json::from_str(array).map_err(|_| bad())?;
        let name: Cow<'_, str> =
            parts.first().and_then(|name| serde_json::from_str(name.get()).ok()).ok_or_else(bad)?;
        if let (false, [_, .., last]) = (self.place.pid.is_empty(), &parts[..])
            && let Ok(offset) = serde_json::from_str(last.get())
        {
            self.place.offset = offset;
        }
        match (&*name, parts.get(1)) {
            ("msg", Some(data)) => turn.report(Notice::Message(data.get())),
            ("echo", Some(data)) => turn.report(Notice::Echo(data.get())),
            ("joined", _) => self.joining.confirm(turn),
            // Applications may have events of their own.
            _ => {}
        }
        Ok(())
    }

    /// Sends the packets of a turn on a WebSocket.
    fn send_packets(&mut self, turn: &mut Turn<'_>) {
        self.packets.drain(..).for_each(|packet| turn.send(packet));
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
        let body = self.packets.join(SEPARATOR.encode_utf8(&mut [0; 4]));
        self.packets.clear();
        let request = self.post(body);
        if self.joining.is_over {
            turn.ask(Over::Up, request);
        } else {
            self.has_posted = true;
            turn.ask(Over::Down, request);
        }
    }

    fn fetch(&self) -> Request {
        self.on_its_connection(Request::get(self.target.as_str()))
    }

    fn post(&self, body: String) -> Request {
        self.on_its_connection(Request::post(self.target.as_str(), "text/plain;charset=UTF-8", body))
    }

    fn on_its_connection(&self, request: Request) -> Request {
        if self.is_closing { request.as_last() } else { request }
    }
}

impl<W: Wrapping> ProtocolClient for SocketIo<W> {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let Topic { transport, path, how, .. } = turn.topic;
        let is_closing = how == CLOSING;
        let (name, is_polling) = match *transport {
            Some(Transport::WebSocket) if how.is_empty() => ("websocket", false),
            Some(Transport::LongPolling) if how.is_empty() || is_closing => ("polling", true),
            Some(transport) => return Err(Refused::NoSuchWay { dialect: W::NAME, how: how.clone(), transport }),
            None => return Err(Refused::unexpected("a client without a transport", "")),
        };
        let target = format!("{path}?EIO=4&transport={name}{}", W::QUERY);
        // A session ends with its connection: every one begins anew, but for what the server keeps of the last.
        let place = std::mem::take(&mut self.place);
        *self = Self { target, is_polling, is_closing, place, ..Self::default() };
        let answer = if is_polling { Answer::Whole } else { Answer::WebSocket };
        turn.ask(Over::Down, self.fetch().read_as(answer));
        Ok(())
    }

    fn reply(&mut self, over: Over, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if over == Over::Up || self.has_posted {
            reply.expect_success("a POST of packets")?;
        }
        if over == Over::Up {
            return Ok(());
        }
        if !self.has_posted {
            reply.expect_success("a poll")?;
            reply.body.split(SEPARATOR).try_for_each(|packet| self.handle_packet(packet, turn))?;
        }
        self.post_packets(turn);
        Ok(())
    }

    #[inline]
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        self.handle_packet(incoming.text, turn)?;
        if !self.packets.is_empty() {
            self.send_packets(turn);
        }
        Ok(())
    }

    fn poll(&mut self, turn: &mut Turn<'_>) {
        turn.ask(Over::Down, self.fetch());
    }

    fn publish(&mut self, sending: Sending, data: &str, topic: &Topic) -> Step {
        let packet = match sending {
            Sending::Publish => self.wrapping.send(&Value::from(topic.publish_to.as_str()), data),
            Sending::Echo => self.wrapping.echo(data),
        };
        if self.is_polling { Step::Ask(Over::Up, self.post(packet)) } else { Step::Frame(packet) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::script::Player;

    const POLLS: &str = "/base?EIO=4&transport=polling&sid=s-1";

    fn polling(how: &str) -> Player {
        let mut player = Player::new(Dialect::SocketIo, Transport::LongPolling, how);
        assert_eq!(player.open(), ["Down GET /base?EIO=4&transport=polling"]);
        assert_eq!(player.reply(r#"0{"sid":"s-1"}"#), [format!("Down POST {POLLS} 40")]);
        player
    }

    #[test]
    fn one_is_subscribed_when_every_channel_is_joined() {
        let mut player = Player::new(Dialect::SocketIo, Transport::WebSocket, "");
        assert_eq!(player.open(), ["Down GET /base?EIO=4&transport=websocket"]);
        assert_eq!(player.text(r#"0{"sid":"s","upgrades":[]}"#), ["frame 40"]);
        // socketioxide pings before it confirms, netty-socketio delivers.
        assert_eq!(player.text("2"), ["frame 3"]);
        assert_eq!(player.text(r#"42["msg",{"x":1}]"#), [r#"message {"x":1}"#]);
        assert_eq!(player.text(r#"40{"sid":"t"}"#), [r#"frame 42["join","a"]"#, r#"frame 42["join","b"]"#]);
        assert!(player.text(r#"42["joined","a"]"#).is_empty());
        assert_eq!(player.text(r#"42["joined","b"]"#), ["subscribed"]);
        assert_eq!(player.publish(Sending::Publish, "\"~\""), r#"frame 42["pub","a","~"]"#);
        assert_eq!(player.publish(Sending::Echo, "[1]"), r#"frame 42["echo",[1]]"#);
        assert_eq!(player.text(r#"42["echo",[1]]"#), ["echo [1]"]);
    }

    #[test]
    fn a_cut_connection_is_recovered_or_its_gap_is_told() {
        let mut player = Player::new(Dialect::SocketIo, Transport::WebSocket, "");
        let connect = |player: &mut Player, says: &str| {
            player.open();
            assert_eq!(player.text(r#"0{"sid":"e"}"#), [format!("frame {says}")]);
        };
        connect(&mut player, "40");
        player.text(r#"40{"sid":"s","pid":"p"}"#);
        assert!(player.text(r#"42["joined","a","o-1"]"#).is_empty());
        assert_eq!(player.text(r#"42["joined","b","o-2"]"#), ["subscribed"]);
        assert_eq!(player.text(r#"42["msg",{"x":"1,"},"o-3"]"#), [r#"message {"x":"1,"}"#]);
        // What it missed comes before it is told that it is back.
        connect(&mut player, r#"40{"offset":"o-3","pid":"p"}"#);
        assert_eq!(player.text(r#"42["msg","~","o-4"]"#), [r#"message "~""#]);
        assert_eq!(player.text(r#"40{"sid":"s","pid":"p"}"#), ["subscribed"]);
        connect(&mut player, r#"40{"offset":"o-4","pid":"p"}"#);
        let joins = [r#"frame 42["join","a"]"#, r#"frame 42["join","b"]"#];
        assert_eq!(player.text(r#"40{"sid":"t","pid":"q"}"#), [&["gap"][..], &joins].concat());
        connect(&mut player, "40");
        assert_eq!(player.text(r#"40{"sid":"t"}"#), [&["gap"][..], &joins].concat(), "it keeps sessions no more");
        assert_eq!(player.text(r#"42["msg","~","o"]"#), [r#"message "~","o""#], "whose events have no offsets");
    }

    #[test]
    fn events_are_found_however_they_are_written() {
        let mut player = Player::new(Dialect::SocketIo, Transport::WebSocket, "");
        assert_eq!(player.text(r#"4217[ "msg" , {"x": "]"} ]"#), [r#"message {"x": "]"}"#]);
        assert_eq!(player.text(r#"42["m\u0073g","~"]"#), [r#"message "~""#]);
        assert!(
            player.text(r#"42["news",1]"#).is_empty() && player.text("3").is_empty() && player.text("6").is_empty()
        );
        for nonsense in ["", "é", "9", "4", "4é", "41", r#"44{"message":"no"}"#, "42{}", "42[]", "42[1]", "43", "1"] {
            assert!(player.text(nonsense)[0].starts_with("refused"), "{nonsense:?}");
        }
    }

    #[test]
    fn polls_carry_several_packets_and_posts_wait_for_no_second_connection() {
        let mut player = polling("");
        assert_eq!(player.reply("ok"), [format!("Down GET {POLLS}")]);
        let joins = "42[\"join\",\"a\"]\x1e42[\"join\",\"b\"]";
        assert_eq!(player.reply("2\x1e40{}"), [format!("Down POST {POLLS} 3\x1e{joins}")]);
        assert_eq!(player.reply("ok"), [format!("Down GET {POLLS}")]);
        assert_eq!(player.reply("42[\"joined\",\"a\"]"), [format!("Down GET {POLLS}")]);
        assert_eq!(player.reply("42[\"joined\",\"b\"]\x1e42[\"msg\",1]"), ["subscribed", "message 1"]);
        assert_eq!(player.reply("2"), [format!("Up POST {POLLS} 3")]);
        assert_eq!(player.publish(Sending::Publish, "1"), format!("Up POST {POLLS} 42[\"pub\",\"a\",1]"));
    }

    #[test]
    fn a_session_that_would_change_the_request_is_refused() {
        for sid in ["", "a b", "a\\r\\nX: y", "ä"] {
            let mut player = Player::new(Dialect::SocketIo, Transport::LongPolling, "");
            player.open();
            assert!(player.reply(&format!("0{{\"sid\":\"{sid}\"}}"))[0].starts_with("refused"), "{sid:?}");
        }
    }

    #[test]
    fn requests_are_the_last_of_their_connections_where_a_server_closes_them() {
        for (how, is_last) in [("", false), (CLOSING, true)] {
            let topic = Topic { transport: Some(Transport::LongPolling), how: how.to_owned(), ..Topic::default() };
            let (mut steps, mut sink) = (Vec::new(), |_: Notice<'_>| ());
            let mut client = SocketIo::<Events>::default();
            client.open(&mut Turn::new(&topic, &mut steps, &mut sink)).unwrap();
            steps.push(client.publish(Sending::Echo, "1", &topic));
            let asked = |step: &Step| matches!(step, Step::Ask(_, request) if request.is_last() == is_last);
            assert!(steps.len() == 2 && steps.iter().all(asked), "{how:?}: {steps:?}");
        }
        let mut player = Player::new(Dialect::SocketIo, Transport::WebSocket, CLOSING);
        assert!(player.open()[0].starts_with("refused"));
    }
}
