//! `signalr`: hubs, in the JSON protocol of ASP.NET Core's SignalR. Every record ends in U+001E. See
//! <https://github.com/dotnet/aspnetcore/tree/main/src/SignalR/docs/specs>.
//!
//! The hub's methods are `Join(channel)`, `Publish(channel, data)` and `Echo(data)`; it calls `msg(data)` and
//! `echo(data)` of its clients.

use crate::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Request, Sending, Step, Topic, Turn};
use percent_encoding::utf8_percent_encode;
use pushlab_wire::http::RESERVED;
use pushlab_wire::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

const END: char = '\u{1e}';
const CONTENT_TYPE: &str = "text/plain;charset=UTF-8";
const PING: &str = "{\"type\":6}\u{1e}";

/// A client pings every 15 s, our subject's server every 5 s while it has nothing to say: one ping for so many. A
/// dialect has no clock.
const SERVER_PINGS_A_PING: u32 = 3;

/// One client's end.
#[derive(Debug, Default)]
pub struct Signalr {
    /// What the negotiation gave, escaped for a query.
    token: String,
    is_handshaken: bool,
    /// Channels whose joining is not confirmed.
    joining: usize,
    pings: u32,
}

#[derive(Debug, Deserialize)]
struct Negotiated<'a> {
    #[serde(rename = "connectionToken", borrow)]
    token: Option<Cow<'a, str>>,
}

/// A record of any type: what a client needs of it.
#[derive(Debug, Deserialize)]
struct Record<'a> {
    /// Nothing in the answer to the handshake.
    #[serde(rename = "type")]
    kind: Option<u32>,
    #[serde(borrow)]
    target: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    error: Option<Cow<'a, str>>,
}

impl Signalr {
    /// Sends records the way that the transport has for it.
    fn send(&self, records: String, turn: &mut Turn<'_>) {
        if turn.topic.transport == Some(Transport::WebSocket) {
            turn.send(records);
        } else {
            turn.ask(Over::Up, self.post(records, turn.topic));
        }
    }

    fn post(&self, records: String, topic: &Topic) -> Request {
        Request::post(format!("{}?id={}", topic.path, self.token), CONTENT_TYPE, records)
    }

    fn handle_handshake(&mut self, record: &Record<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if let Some(error) = &record.error {
            return Err(Refused::unexpected("the handshake was refused", error));
        }
        self.is_handshaken = true;
        self.joining = turn.topic.channels.len();
        let join = |(id, channel): (usize, &String)| {
            format!("{{\"type\":1,\"invocationId\":\"{id}\",\"target\":\"Join\",\"arguments\":[\"{channel}\"]}}{END}")
        };
        let joins: String = turn.topic.channels.iter().enumerate().map(join).collect();
        if joins.is_empty() {
            turn.report(Notice::Subscribed);
        } else {
            self.send(joins, turn);
        }
        Ok(())
    }

    fn handle(&mut self, text: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let record: Record<'_> =
            serde_json::from_str(text).map_err(|_| Refused::unexpected("not a record of SignalR", text))?;
        if !self.is_handshaken {
            return self.handle_handshake(&record, turn);
        }
        match (record.kind, &record.error) {
            (Some(1), _) => {
                let data = record.arguments.as_deref().and_then(<[_]>::first).map(|data| data.get());
                match (record.target.as_deref(), data) {
                    (Some("msg"), Some(data)) => turn.report(Notice::Message(data)),
                    (Some("echo"), Some(data)) => turn.report(Notice::Echo(data)),
                    _ => return Err(Refused::unexpected("not a call of msg(data) or echo(data)", text)),
                }
            }
            (Some(3), Some(error)) => return Err(Refused::unexpected("Join was refused", error)),
            (Some(3), None) => {
                self.joining = self.joining.saturating_sub(1);
                if self.joining == 0 {
                    turn.report(Notice::Subscribed);
                }
            }
            (Some(6), _) => {
                self.pings = (self.pings + 1) % SERVER_PINGS_A_PING;
                if self.pings == 0 {
                    self.send(PING.to_owned(), turn);
                }
            }
            (Some(7), _) => return Err(Refused::unexpected("the server closed the connection", text)),
            _ => turn.report(Notice::Complaint(text)),
        }
        Ok(())
    }
}

impl ProtocolClient for Signalr {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        *self = Self::default();
        let Topic { transport, path, how, .. } = turn.topic;
        match transport {
            Some(Transport::WebSocket | Transport::Sse) => {}
            Some(transport) => {
                return Err(Refused::NoSuchWay { dialect: "signalr", how: how.clone(), transport: *transport });
            }
            None => return Err(Refused::unexpected("a client without a transport", "")),
        }
        turn.ask(Over::Down, Request::post(format!("{path}/negotiate?negotiateVersion=1"), CONTENT_TYPE, ""));
        Ok(())
    }

    fn reply(&mut self, over: Over, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if over == Over::Up {
            return reply.expect_success("a POST to the hub");
        }
        reply.expect_success("POST negotiate")?;
        let bad = || Refused::unexpected("POST negotiate was not answered with a connectionToken", reply.body);
        let negotiated: Negotiated<'_> = serde_json::from_str(reply.body).map_err(|_| bad())?;
        let token = negotiated.token.filter(|token| !token.is_empty()).ok_or_else(bad)?;
        self.token = utf8_percent_encode(&token, RESERVED).to_string();
        let request = Request::get(format!("{}?id={}", turn.topic.path, self.token));
        let request = match turn.topic.transport {
            Some(Transport::WebSocket) => request.read_as(Answer::WebSocket),
            _ => request.with_header("Accept", "text/event-stream").read_as(Answer::Events),
        };
        turn.ask(Over::Down, request);
        Ok(())
    }

    fn opened(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        self.send(format!("{{\"protocol\":\"json\",\"version\":1}}{END}"), turn);
        Ok(())
    }

    #[inline]
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        incoming.text.split_terminator(END).try_for_each(|record| self.handle(record, turn))
    }

    fn publish(&mut self, sending: Sending, data: &str, topic: &Topic) -> Step {
        let record = match sending {
            Sending::Publish => {
                let channel = &topic.publish_to;
                format!("{{\"type\":1,\"target\":\"Publish\",\"arguments\":[\"{channel}\",{data}]}}{END}")
            }
            Sending::Echo => format!("{{\"type\":1,\"target\":\"Echo\",\"arguments\":[{data}]}}{END}"),
        };
        if topic.transport == Some(Transport::WebSocket) {
            return Step::Frame(record);
        }
        Step::Ask(Over::Up, self.post(record, topic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::script::Player;

    #[test]
    fn a_client_is_subscribed_when_it_has_joined_every_channel() {
        let mut player = Player::new(Dialect::Signalr, Transport::WebSocket, "");
        assert_eq!(player.open(), ["Down POST /base/negotiate?negotiateVersion=1"]);
        assert_eq!(player.reply("{\"connectionToken\":\"x==\"}"), ["Down GET /base?id=x%3D%3D"]);
        assert_eq!(player.opened(), ["frame {\"protocol\":\"json\",\"version\":1}\u{1e}"]);
        let joins = player.text("{}\u{1e}");
        assert!(
            joins[0].starts_with("frame {\"type\":1,\"invocationId\":\"0\",\"target\":\"Join\",\"arguments\":[\"a\"]}")
        );
        assert!(player.text("{\"type\":3,\"invocationId\":\"0\"}\u{1e}").is_empty());
        let rest =
            "{\"type\":3,\"invocationId\":\"1\"}\u{1e}{\"type\":1,\"target\":\"msg\",\"arguments\":[\"~\"]}\u{1e}";
        assert_eq!(player.text(rest), ["subscribed", "message \"~\""]);
        assert_eq!(player.text("{\"type\":1,\"target\":\"echo\",\"arguments\":[1]}\u{1e}"), ["echo 1"]);
    }

    #[test]
    fn every_third_ping_is_answered_and_refusals_end_it() {
        let mut player = Player::new(Dialect::Signalr, Transport::Sse, "");
        player.reply("{\"connectionToken\":\"x\"}");
        player.text("{}\u{1e}");
        let ping = "{\"type\":6}\u{1e}";
        assert!(player.text(ping).is_empty() && player.text(ping).is_empty());
        assert_eq!(player.text(ping), ["Up POST /base?id=x {\"type\":6}\u{1e}"]);
        for bad in ["{\"type\":3,\"error\":\"no\"}", "{\"type\":7}", "{\"type\":1,\"target\":\"msg\"}", "nonsense"] {
            assert!(player.text(bad)[0].starts_with("refused"), "{bad}");
        }
        assert!(player.reply("{}")[0].starts_with("refused"));
        let sent = player.publish(Sending::Publish, "{\"x\":1}");
        assert_eq!(
            sent,
            "Up POST /base?id=x {\"type\":1,\"target\":\"Publish\",\"arguments\":[\"a\",{\"x\":1}]}\u{1e}"
        );
    }
}
