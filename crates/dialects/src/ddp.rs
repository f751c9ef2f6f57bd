//! `ddp`: the Distributed Data Protocol, version 1, that Meteor speaks. Source: its specification.
//!
//! A channel is a collection with one document, whose field `data` each publication sets, so a delivery is an `added`
//! or a `changed`. Publications and echoes are calls of the methods `publish` and `echo`.

use crate::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Request, Sending, Step, Topic, Turn};
use pushlab_wire::native::json_string;
use pushlab_wire::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;

/// What a server says, as far as it concerns us.
#[derive(Debug, Deserialize)]
struct ServerMessage<'a> {
    /// Missing in the errors of some servers, and in the greeting of old ones.
    #[serde(default)]
    msg: &'a str,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    fields: Option<Fields<'a>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    subs: Vec<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// One client's end.
#[derive(Debug, Default)]
pub struct Ddp {
    /// Subscriptions that are not ready yet.
    awaited: usize,
    /// Methods called.
    calls: u64,
}

impl Ddp {
    fn subscribe(&mut self, turn: &mut Turn<'_>) {
        let channels = &turn.topic.channels;
        self.awaited = channels.len();
        if channels.is_empty() {
            turn.report(Notice::Subscribed);
        }
        for (number, channel) in channels.iter().enumerate() {
            let name = json_string(channel);
            turn.send(format!("{{\"msg\":\"sub\",\"id\":\"s{number}\",\"name\":{name},\"params\":[]}}"));
        }
    }

    fn handle_ready(&mut self, count: usize, turn: &mut Turn<'_>) {
        if self.awaited > 0 {
            self.awaited = self.awaited.saturating_sub(count);
            if self.awaited == 0 {
                turn.report(Notice::Subscribed);
            }
        }
    }
}

impl ProtocolClient for Ddp {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let Topic { transport, how, path, .. } = turn.topic;
        match transport {
            Some(Transport::WebSocket) if how.is_empty() => {}
            Some(transport) => {
                return Err(Refused::NoSuchWay { dialect: "ddp", how: how.clone(), transport: *transport });
            }
            None => return Err(Refused::unexpected("a client without a transport", "")),
        }
        *self = Self::default();
        turn.ask(Over::Down, Request::get(path.as_str()).read_as(Answer::WebSocket));
        Ok(())
    }

    fn opened(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        turn.send("{\"msg\":\"connect\",\"version\":\"1\",\"support\":[\"1\"]}");
        Ok(())
    }

    #[inline]
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let message: ServerMessage<'_> =
            serde_json::from_str(incoming.text).map_err(|_| Refused::unexpected("no message of DDP", incoming.text))?;
        let data = message.fields.and_then(|fields| fields.data);
        match (message.msg, data, message.error) {
            // What a collection already holds comes before `ready`, and is no delivery.
            ("added" | "changed", Some(data), _) if self.awaited == 0 => turn.report(Notice::Message(data.get())),
            ("connected", ..) => self.subscribe(turn),
            ("ready", ..) => self.handle_ready(message.subs.len(), turn),
            ("ping", ..) => {
                let id = message.id.map_or(String::new(), |id| format!(",\"id\":{}", id.get()));
                turn.send(format!("{{\"msg\":\"pong\"{id}}}"));
            }
            ("failed" | "nosub", ..) => return Err(Refused::unexpected("the server refuses", incoming.text)),
            (_, _, Some(error)) => turn.report(Notice::Complaint(error.get())),
            ("result", ..) if message.id.is_some_and(|id| id.get().starts_with("\"echo")) => {
                turn.report(Notice::Echo(message.result.map_or("null", RawValue::get)));
            }
            // What the rest says (`updated`, `pong`, a field of another document) asks for nothing.
            _ => {}
        }
        Ok(())
    }

    fn publish(&mut self, sending: Sending, data: &str, topic: &Topic) -> Step {
        self.calls += 1;
        let (method, params) = match sending {
            Sending::Publish => ("publish", format!("{},{data}", json_string(&topic.publish_to))),
            Sending::Echo => ("echo", data.to_owned()),
        };
        let calls = self.calls;
        Step::Frame(format!(
            "{{\"msg\":\"method\",\"method\":\"{method}\",\"params\":[{params}],\"id\":\"{method}{calls}\"}}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::script::Player;

    #[test]
    fn documents_of_the_beginning_are_no_deliveries() {
        let mut player = Player::new(Dialect::Ddp, Transport::WebSocket, "");
        assert_eq!(player.open(), ["Down GET /base"]);
        assert_eq!(player.opened(), [r#"frame {"msg":"connect","version":"1","support":["1"]}"#]);
        assert!(player.text(r#"{"server_id":"0"}"#).is_empty());
        let subs = player.text(r#"{"msg":"connected","session":"17"}"#);
        assert_eq!(subs[0], r#"frame {"msg":"sub","id":"s0","name":"a","params":[]}"#);
        let added = r#"{"msg":"added","collection":"a","id":"latest","fields":{"data":{"x":1}}}"#;
        assert!(player.text(added).is_empty());
        assert!(player.text(r#"{"msg":"ready","subs":["s0"]}"#).is_empty());
        assert_eq!(player.text(r#"{"msg":"ready","subs":["s1"]}"#), ["subscribed"]);
        assert_eq!(player.text(added), [r#"message {"x":1}"#]);
        let changed = r#"{"msg":"changed","collection":"a","id":"latest","fields":{"data":"~"},"cleared":[]}"#;
        assert_eq!(player.text(changed), [r#"message "~""#]);
    }

    #[test]
    fn methods_are_called_and_answered() {
        let mut player = Player::new(Dialect::Ddp, Transport::WebSocket, "");
        let call = r#"frame {"msg":"method","method":"publish","params":["a","~"],"id":"publish1"}"#;
        assert_eq!(player.publish(Sending::Publish, "\"~\""), call);
        let call = r#"frame {"msg":"method","method":"echo","params":["~"],"id":"echo2"}"#;
        assert_eq!(player.publish(Sending::Echo, "\"~\""), call);
        assert!(player.text(r#"{"msg":"result","id":"publish1"}"#).is_empty());
        assert!(player.text(r#"{"msg":"updated","id":"publish1"}"#).is_empty());
        assert_eq!(player.text(r#"{"msg":"result","id":"echo2","result":"~"}"#), [r#"echo "~""#]);
        assert_eq!(player.text(r#"{"id":"echo2","error":{"error":404}}"#), [r#"complaint {"error":404}"#]);
        assert_eq!(player.text(r#"{"msg":"ping","id":"x"}"#), [r#"frame {"msg":"pong","id":"x"}"#]);
        assert_eq!(player.text(r#"{"msg":"ping"}"#), [r#"frame {"msg":"pong"}"#]);
        assert!(player.text(r#"{"msg":"nosub","id":"s0"}"#)[0].starts_with("refused"));
        assert!(player.text("[]")[0].starts_with("refused"));
    }
}
