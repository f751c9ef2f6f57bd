//! Bayeux, the protocol of CometD and Faye: arrays of JSON messages, each with a channel. A client shakes hands once,
//! then keeps one `/meta/connect` under way; what the server has may come in any of its answers.
//! Source: <https://docs.cometd.org/current9/reference/#_bayeux>.
//!
//! The transport says the connection type. `how` says where echoes go: `service` to a service channel, which answers
//! its sender; otherwise to a channel that the client alone knows and subscribes to, as there are no services in Faye.
//!
//! Every client offers CometD's acknowledgement extension (<https://docs.cometd.org/current9/reference/#_acknowledge>),
//! and acknowledges where the server takes it up. Servers of a cluster may mark what one has from another by
//! `"ext":{"relayed":true}`; that is ours, and no part of Bayeux.

use crate::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Request, Sending, Step, Topic, Turn};
use pushlab_wire::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

const SERVICE: &str = "/service/echo";
const OWN: &str = "/echo/";
/// What is acknowledged before there is anything.
const NO_BATCH: i64 = -1;

/// One client's end.
#[derive(Debug, Default)]
pub struct Bayeux {
    /// The session, which outlives connections.
    client_id: Option<String>,
    /// A browser's cookie, by which CometD tells that posts and polls are one client's.
    cookie: Option<String>,
    messages_sent: u64,
    /// The last batch that came, for which the next connect thanks; `None` where the server asks for no acknowledgements.
    acknowledged: Option<i64>,
    is_subscribed: bool,
    /// Whether the server has answered a connect since the connection was opened.
    is_connected: bool,
    /// Whether both have been reported.
    is_announced: bool,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    channel: Cow<'a, str>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    /// Only answers have it.
    successful: Option<bool>,
    #[serde(rename = "clientId")]
    client_id: Option<Cow<'a, str>>,
    error: Option<Cow<'a, str>>,
    advice: Option<Advice<'a>>,
    #[serde(borrow)]
    ext: Option<Extensions<'a>>,
}

/// Members of extensions, of which others may have any.
#[derive(Deserialize)]
struct Extensions<'a> {
    /// `true` to a handshake, where the extension is there; the number of the batch to a connect.
    #[serde(borrow)]
    ack: Option<&'a RawValue>,
    #[serde(default)]
    relayed: bool,
}

#[derive(Deserialize)]
struct Advice<'a> {
    reconnect: Option<Cow<'a, str>>,
}

impl Message<'_> {
    fn reason(&self) -> &str {
        self.error.as_deref().unwrap_or("for no reason given")
    }

    fn ack(&self) -> Option<&str> {
        Some(self.ext.as_ref()?.ack?.get())
    }
}

/// Bayeux has fewer characters for channels than we: those that it lacks become ones that we lack.
fn channel(name: &str) -> String {
    format!("/c/{}", name.replace('.', "!").replace(':', "@"))
}

fn connection_type(topic: &Topic) -> Result<&'static str, Refused> {
    match topic.transport {
        Some(Transport::WebSocket) => Ok("websocket"),
        Some(Transport::LongPolling) => Ok("long-polling"),
        Some(Transport::Sse) => Ok("eventsource"),
        Some(transport) => Err(Refused::NoSuchWay { dialect: "bayeux", how: topic.how.clone(), transport }),
        None => Err(Refused::unexpected("a client without a transport", "")),
    }
}

impl Bayeux {
    /// What names the client, as a further member.
    fn name(&self) -> String {
        self.client_id.as_ref().map(|id| format!(r#","clientId":"{id}""#)).unwrap_or_default()
    }

    /// A message of the protocol itself to a channel, with members of its own.
    fn message(&mut self, channel: &str, members: &str) -> String {
        self.messages_sent += 1;
        format!(r#"{{"id":"{}","channel":"{channel}"{}{members}}}"#, self.messages_sent, self.name())
    }

    fn post(&self, topic: &Topic, body: String) -> Request {
        let request = Request::post(topic.path.clone(), "application/json", body);
        match &self.cookie {
            Some(cookie) => request.with_header("Cookie", cookie),
            None => request,
        }
    }

    /// Sends what the protocol itself demands.
    fn send(&self, messages: &[String], turn: &mut Turn<'_>) {
        let text = format!("[{}]", messages.join(","));
        match turn.topic.transport {
            Some(Transport::WebSocket) => turn.send(text),
            _ => turn.ask(Over::Down, self.post(turn.topic, text)),
        }
    }

    /// A connect that is held until there is something, but for `wait_ms`.
    fn connect(&mut self, wait_ms: Option<u64>, topic: &Topic) -> Result<String, Refused> {
        let held = wait_ms.map(|ms| format!(r#","advice":{{"timeout":{ms}}}"#)).unwrap_or_default();
        let connection_type = connection_type(topic)?;
        let ack = self.acknowledged.map(|batch| format!(r#","ext":{{"ack":{batch}}}"#)).unwrap_or_default();
        Ok(self.message("/meta/connect", &format!(r#","connectionType":"{connection_type}"{held}{ack}"#)))
    }

    /// Asks for a session, or goes on with the session of an earlier connection.
    fn begin_session(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let message = match &self.client_id {
            Some(_) => self.connect(Some(0), turn.topic)?,
            None => {
                let types = connection_type(turn.topic)?;
                let members =
                    format!(r#","version":"1.0","supportedConnectionTypes":["{types}"],"ext":{{"ack":true}}"#);
                self.message("/meta/handshake", &members)
            }
        };
        self.send(&[message], turn);
        Ok(())
    }

    /// The server has given the client its name.
    fn handle_client_id(&mut self, client_id: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_!~()$@".contains(c);
        if client_id.is_empty() || !client_id.chars().all(is_plain) {
            return Err(Refused::unexpected("a handshake without a client id", client_id));
        }
        self.client_id = Some(client_id.to_owned());
        let topic = turn.topic;
        let mut channels: Vec<String> = topic.channels.iter().map(|name| channel(name)).collect();
        if topic.sending == Some(Sending::Echo) && topic.how != "service" {
            channels.push(format!("{OWN}{client_id}"));
        }
        self.is_subscribed = channels.is_empty();
        let mut messages = Vec::new();
        if !channels.is_empty() {
            let members = format!(r#","subscription":["{}"]"#, channels.join("\",\""));
            messages.push(self.message("/meta/subscribe", &members));
        }
        messages.push(self.connect(Some(0), topic)?);
        self.send(&messages, turn);
        Ok(())
    }

    fn handle(&mut self, text: &str, over: Over, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let messages: Vec<Message<'_>> =
            serde_json::from_str(text).map_err(|_| Refused::unexpected("no array of Bayeux messages", text))?;
        for message in &messages {
            self.handle_message(message, over, turn)?;
        }
        if self.is_subscribed && self.is_connected && !std::mem::replace(&mut self.is_announced, true) {
            match turn.topic.transport {
                Some(Transport::Sse) => {
                    let target = format!("{}/{}", turn.topic.path, self.client_id.as_deref().unwrap_or_default());
                    // Faye takes a GET without it for a message.
                    let stream = Request::get(target).with_header("Accept", "text/event-stream");
                    turn.ask(Over::Down, stream.read_as(Answer::Events));
                }
                _ => turn.report(Notice::Subscribed),
            }
        }
        Ok(())
    }

    #[inline]
    fn handle_message(&mut self, message: &Message<'_>, over: Over, turn: &mut Turn<'_>) -> Result<(), Refused> {
        match (message.successful, &*message.channel, message.data) {
            (None, SERVICE, Some(data)) => turn.report(Notice::Echo(data.get())),
            (None, own, Some(data)) if own.starts_with(OWN) => turn.report(Notice::Echo(data.get())),
            (None, _, Some(data)) if message.ext.as_ref().is_some_and(|ext| ext.relayed) => {
                turn.report(Notice::Relayed(data.get()));
            }
            (None, _, Some(data)) => turn.report(Notice::Message(data.get())),
            (Some(true), "/meta/handshake", _) if over == Over::Down => {
                self.acknowledged = (message.ack() == Some("true")).then_some(NO_BATCH);
                self.handle_client_id(message.client_id.as_deref().unwrap_or_default(), turn)?;
            }
            (Some(true), "/meta/subscribe", _) => self.is_subscribed = true,
            (Some(true), "/meta/connect", _) if over == Over::Down => {
                self.is_connected = true;
                self.acknowledge(message.ack());
                if turn.topic.transport == Some(Transport::WebSocket) {
                    let connect = self.connect(None, turn.topic)?;
                    self.send(&[connect], turn);
                }
            }
            (Some(false), "/meta/connect", _) if over == Over::Down => self.lose_session(message, turn)?,
            (Some(false), "/meta/handshake" | "/meta/subscribe", _) => {
                return Err(Refused::unexpected("the server refused a handshake or a subscription", message.reason()));
            }
            (Some(false), ..) => turn.report(Notice::Complaint(message.reason())),
            _ => {}
        }
        Ok(())
    }

    /// Whoever answers a connect says which batch of messages came with it, or before.
    fn acknowledge(&mut self, batch: Option<&str>) {
        if let (Some(acknowledged), Some(batch)) = (&mut self.acknowledged, batch.and_then(|text| text.parse().ok())) {
            *acknowledged = batch;
        }
    }

    /// The server does not know the session any more: whatever it had for it is gone.
    fn lose_session(&mut self, message: &Message<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let advised = message.advice.as_ref().and_then(|advice| advice.reconnect.as_deref());
        if advised != Some("handshake") || self.client_id.take().is_none() {
            return Err(Refused::unexpected("the server refused a connect", message.reason()));
        }
        (self.is_subscribed, self.is_connected, self.is_announced) = (false, false, false);
        turn.report(Notice::Gap);
        self.begin_session(turn)
    }
}

impl ProtocolClient for Bayeux {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        connection_type(turn.topic)?;
        (self.is_connected, self.is_announced) = (false, false);
        // Who was cut off before it was subscribed begins anew.
        self.client_id = self.client_id.take().filter(|_| self.is_subscribed);
        if turn.topic.transport != Some(Transport::WebSocket) {
            return self.begin_session(turn);
        }
        turn.ask(Over::Down, Request::get(turn.topic.path.clone()).read_as(Answer::WebSocket));
        Ok(())
    }

    fn opened(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        match turn.topic.transport {
            Some(Transport::WebSocket) => return self.begin_session(turn),
            _ => turn.report(Notice::Subscribed),
        }
        Ok(())
    }

    fn reply(&mut self, over: Over, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        reply.expect_success("a Bayeux message")?;
        if let Some((pair, _)) = reply.header("set-cookie").and_then(|cookie| cookie.split_once(';')) {
            self.cookie = Some(pair.to_owned());
        }
        self.handle(reply.body, over, turn)
    }

    #[inline]
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        self.handle(incoming.text, Over::Down, turn)
    }

    fn poll(&mut self, turn: &mut Turn<'_>) {
        let wait_ms = turn.topic.wait_s * 1000;
        // A way that does not exist was refused by `open`.
        if let Ok(connect) = self.connect(Some(wait_ms), turn.topic) {
            self.send(&[connect], turn);
        }
    }

    fn publish(&mut self, sending: Sending, data: &str, topic: &Topic) -> Step {
        let to = match sending {
            Sending::Publish => channel(&topic.publish_to),
            Sending::Echo if topic.how == "service" => SERVICE.to_owned(),
            Sending::Echo => format!("{OWN}{}", self.client_id.as_deref().unwrap_or_default()),
        };
        // Without an id, as nobody asks which of them was answered.
        let text = format!(r#"[{{"channel":"{to}"{},"data":{data}}}]"#, self.name());
        match topic.transport {
            Some(Transport::WebSocket) => Step::Frame(text),
            _ => Step::Ask(Over::Up, self.post(topic, text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Dialect;
    use crate::script::Player;
    use pushlab_wire::transport::Transport;

    /// A client that a server has taken in, and the connect that it sent then.
    fn taken_in(ext: &str) -> (Player, String) {
        let mut player = Player::new(Dialect::Bayeux, Transport::WebSocket, "service");
        player.open();
        let handshake = player.opened().remove(0);
        assert!(handshake.contains(r#""ext":{"ack":true}"#), "every client offers it: {handshake}");
        let answer = format!(r#"[{{"channel":"/meta/handshake","successful":true,"clientId":"c"{ext}}}]"#);
        let sent = player.text(&answer).remove(0);
        (player, sent)
    }

    fn connect_answered(player: &mut Player, ext: &str) -> String {
        let sent = player.text(&format!(r#"[{{"channel":"/meta/connect","successful":true{ext}}}]"#));
        sent.last().unwrap().clone()
    }

    #[test]
    fn a_batch_is_acknowledged_by_the_next_connect() {
        let (mut player, first) = taken_in(r#","ext":{"ack":true}"#);
        assert!(first.contains(r#""ext":{"ack":-1}"#), "nothing has come: {first}");
        assert!(connect_answered(&mut player, r#","ext":{"ack":7}"#).contains(r#""ext":{"ack":7}"#));
        assert!(connect_answered(&mut player, "").contains(r#""ext":{"ack":7}"#), "no batch came with it");
        assert!(connect_answered(&mut player, r#","ext":{"ack":9}"#).contains(r#""ext":{"ack":9}"#));
    }

    #[test]
    fn who_does_not_ask_for_acknowledgements_gets_none() {
        for ext in ["", r#","ext":{}"#, r#","ext":{"ack":false}"#] {
            let (mut player, first) = taken_in(ext);
            let later = connect_answered(&mut player, r#","ext":{"ack":7}"#);
            assert!(!first.contains("ext") && !later.contains("ext"), "{first} {later}");
        }
    }

    #[test]
    fn what_a_server_has_from_another_is_told_apart() {
        let (mut player, _) = taken_in("");
        let told = player.text(
            r#"[{"channel":"/c/a","data":1},{"channel":"/c/a","data":2,"ext":{"relayed":true}},{"channel":"/c/a","data":3,"ext":{"other":{}}}]"#,
        );
        assert_eq!(told, ["message 1", "relayed 2", "message 3"]);
    }
}
