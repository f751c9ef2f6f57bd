//! `centrifugo`: commands, replies and pushes as JSON texts, one a line. See
//! <https://centrifugal.dev/docs/transports/client_protocol>.
//!
//! A client asks over the connection that receives or, where that is one-way, over `/emulation`, which hands it to its
//! session. With how = `unidirectional` it names its channels when it connects and says nothing more; what it
//! publishes goes by the server's HTTP API.
//!
//! Where a channel has history, its subscription has a position, from which a client that was cut off is recovered
//! (<https://centrifugal.dev/docs/server/history_and_recovery>).

use crate::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Request, Sending, Step, Topic, Turn};
use percent_encoding::utf8_percent_encode;
use pushlab_wire::http::RESERVED;
use pushlab_wire::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The `how` of the one-way transports.
pub const UNIDIRECTIONAL: &str = "unidirectional";

const CONNECT: &str = "{\"id\":1,\"connect\":{}}";
const EMULATION: &str = "/emulation";
const API_PUBLISH: &str = "/api/publish";
/// A ping, and its answer.
const PING: &str = "{}";
/// Number of the command that subscribes to the first channel; that before it connects.
const FIRST_SUBSCRIPTION: u64 = 2;

/// One client's end.
#[derive(Debug, Default)]
pub struct Centrifugo {
    /// Where `/emulation` finds the connection.
    session: String,
    node: String,
    /// Number of the last command.
    last_command: u64,
    /// Channels whose subscription is not confirmed.
    subscribing: usize,
    /// Where the client is in each channel, in the order of the topic's; `None` where the server keeps no history.
    places: Vec<Option<Place>>,
}

/// A position in a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    epoch: String,
    offset: u64,
}

/// A line: a reply to a command or a push, which a unidirectional connection gets without `push` around it.
#[derive(Debug, Deserialize)]
struct Line<'a> {
    id: Option<u64>,
    channel: Option<Cow<'a, str>>,
    #[serde(borrow)]
    push: Option<Box<Line<'a>>>,
    #[serde(rename = "pub", borrow)]
    publication: Option<Publication<'a>>,
    #[serde(borrow)]
    connect: Option<Connected<'a>>,
    #[serde(borrow)]
    subscribe: Option<Subscription<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    disconnect: Option<&'a RawValue>,
    #[serde(borrow)]
    unsubscribe: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Publication<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(default)]
    offset: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Connected<'a> {
    session: String,
    node: String,
    #[serde(borrow)]
    subs: BTreeMap<Cow<'a, str>, Subscription<'a>>,
}

/// What the server says of a subscription.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Subscription<'a> {
    /// Empty where it keeps no history.
    epoch: String,
    offset: u64,
    /// Whether it was asked to go on from a position, and could.
    was_recovering: bool,
    recovered: bool,
    /// What was missed.
    #[serde(borrow)]
    publications: Vec<Publication<'a>>,
}

/// The answer of the HTTP API, whose status is 200 even when it refuses.
#[derive(Debug, Deserialize)]
struct Answered<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Centrifugo {
    /// Sends commands the way that the transport has for it.
    fn send(&self, commands: &str, turn: &mut Turn<'_>) {
        match turn.topic.transport {
            Some(Transport::WebSocket) => turn.send(commands),
            _ => turn.ask(Over::Up, self.emulated(commands)),
        }
    }

    fn emulated(&self, commands: &str) -> Request {
        let Self { session, node, .. } = self;
        let body = serde_json::json!({ "session": session, "node": node, "data": commands });
        Request::post(EMULATION, "application/json", body.to_string())
    }

    fn connected(&mut self, connected: Connected<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let channels = &turn.topic.channels;
        if is_unidirectional(turn.topic) {
            let Connected { mut subs, .. } = connected;
            for (index, channel) in channels.iter().enumerate() {
                let Some(subscription) = subs.remove(channel.as_str()) else {
                    return Err(Refused::unexpected("connected without a subscription to", channel));
                };
                self.subscribed(index, subscription, turn);
            }
            turn.report(Notice::Subscribed);
            return Ok(());
        }
        (self.session, self.node) = (connected.session, connected.node);
        self.subscribing = channels.len();
        let mut commands = Vec::with_capacity(channels.len());
        for (index, channel) in channels.iter().enumerate() {
            self.last_command += 1;
            let (id, position) = (self.last_command, self.position(index));
            let more = if position.is_empty() { String::new() } else { format!(",{position}") };
            commands.push(format!("{{\"id\":{id},\"subscribe\":{{\"channel\":\"{channel}\"{more}}}}}"));
        }
        if commands.is_empty() {
            turn.report(Notice::Subscribed);
        } else {
            self.send(&commands.join("\n"), turn);
        }
        Ok(())
    }

    /// The request of a unidirectional connection.
    fn named(&self, topic: &Topic) -> String {
        let subscription = |(index, channel)| format!("\"{channel}\":{{{}}}", self.position(index));
        let subs: Vec<String> = topic.channels.iter().enumerate().map(subscription).collect();
        format!("{{\"subs\":{{{}}}}}", subs.join(","))
    }

    /// What a subscription to a channel goes on from; empty for one that begins anew.
    fn position(&self, index: usize) -> String {
        match self.places.get(index).and_then(Option::as_ref) {
            None => String::new(),
            Some(Place { epoch, offset }) => format!("\"recover\":true,\"epoch\":\"{epoch}\",\"offset\":{offset}"),
        }
    }

    /// A channel's subscription stands, with what was missed.
    fn subscribed(&mut self, index: usize, subscription: Subscription<'_>, turn: &mut Turn<'_>) {
        let Subscription { epoch, offset, was_recovering, recovered, publications } = subscription;
        if was_recovering && !recovered {
            turn.report(Notice::Gap);
        }
        publications.iter().for_each(|publication| turn.report(Notice::Message(publication.data.get())));
        // It becomes part of a command.
        let is_plain = !epoch.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_alphanumeric());
        self.places.resize(turn.topic.channels.len(), None);
        if let Some(place) = self.places.get_mut(index) {
            *place = is_plain.then_some(Place { epoch, offset });
        }
    }

    fn handle(&mut self, text: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if text == PING {
            if !is_unidirectional(turn.topic) {
                self.send(PING, turn);
            }
            return Ok(());
        }
        let mut line: Line<'_> =
            serde_json::from_str(text).map_err(|_| Refused::unexpected("not a line of Centrifugo", text))?;
        let is_push = line.push.is_some();
        if let Some(push) = line.push.take() {
            line = *push;
        }
        if let Some(publication) = line.publication {
            let index = line.channel.and_then(|name| turn.topic.channels.iter().position(|channel| *channel == name));
            if let Some(place) = index.and_then(|index| self.places.get_mut(index)?.as_mut()) {
                place.offset = publication.offset;
            }
            turn.report(Notice::Message(publication.data.get()));
        } else if let Some(error) = line.error {
            return Err(Refused::unexpected("a command was refused", error.get()));
        } else if let Some(why) = line.disconnect.or(line.unsubscribe) {
            return Err(Refused::unexpected("the server ended it", why.get()));
        } else if let Some(connected) = line.connect {
            return self.connected(connected, turn);
        } else if let Some(subscription) = line.subscribe.filter(|_| !is_push) {
            let index = line.id.and_then(|id| usize::try_from(id.checked_sub(FIRST_SUBSCRIPTION)?).ok());
            self.subscribed(index.unwrap_or(usize::MAX), subscription, turn);
            self.subscribing = self.subscribing.saturating_sub(1);
            if self.subscribing == 0 {
                turn.report(Notice::Subscribed);
            }
        }
        Ok(())
    }
}

fn is_unidirectional(topic: &Topic) -> bool {
    topic.how == UNIDIRECTIONAL
}

impl ProtocolClient for Centrifugo {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let places = std::mem::take(&mut self.places);
        *self = Self { last_command: 1, places, ..Self::default() };
        let Topic { transport, path, how, .. } = turn.topic;
        let refused = |transport| Refused::NoSuchWay { dialect: "centrifugo", how: how.clone(), transport };
        let connect = match how.as_str() {
            "" => CONNECT.to_owned(),
            UNIDIRECTIONAL => self.named(turn.topic),
            _ => return Err(refused(transport.unwrap_or(Transport::WebSocket))),
        };
        let request = match transport {
            Some(Transport::WebSocket) => Request::get(path.as_str()).read_as(Answer::WebSocket),
            Some(Transport::Sse) => {
                Request::get(format!("{path}?cf_connect={}", utf8_percent_encode(&connect, RESERVED)))
                    .with_header("Accept", "text/event-stream")
                    .read_as(Answer::Events)
            }
            Some(Transport::HttpStreaming) => {
                Request::post(path.as_str(), "application/json", connect).read_as(Answer::Lines)
            }
            Some(transport) => return Err(refused(*transport)),
            None => return Err(Refused::unexpected("a client without a transport", "")),
        };
        turn.ask(Over::Down, request);
        Ok(())
    }

    fn opened(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        // A stream's request has it already.
        if turn.topic.transport == Some(Transport::WebSocket) {
            turn.send(if is_unidirectional(turn.topic) { self.named(turn.topic) } else { CONNECT.to_owned() });
        }
        Ok(())
    }

    fn reply(&mut self, _: Over, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if !is_unidirectional(turn.topic) {
            return reply.expect_success("POST /emulation");
        }
        reply.expect_success("POST /api/publish")?;
        match serde_json::from_str(reply.body) {
            Ok(Answered { error: None }) => Ok(()),
            _ => Err(Refused::unexpected("POST /api/publish was refused", reply.body)),
        }
    }

    #[inline]
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        incoming.text.lines().filter(|line| !line.is_empty()).try_for_each(|line| self.handle(line, turn))
    }

    fn publish(&mut self, _: Sending, data: &str, topic: &Topic) -> Step {
        let publication = format!("{{\"channel\":\"{}\",\"data\":{data}}}", topic.publish_to);
        if is_unidirectional(topic) {
            return Step::Ask(Over::Up, Request::post(API_PUBLISH, "application/json", publication));
        }
        self.last_command += 1;
        let command = format!("{{\"id\":{},\"publish\":{publication}}}", self.last_command);
        match topic.transport {
            Some(Transport::WebSocket) => Step::Frame(command),
            _ => Step::Ask(Over::Up, self.emulated(&command)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::script::Player;

    #[test]
    fn commands_go_by_emulation_where_the_stream_is_one_way() {
        let mut player = Player::new(Dialect::Centrifugo, Transport::HttpStreaming, "");
        assert_eq!(player.open(), ["Down POST /base {\"id\":1,\"connect\":{}}"]);
        assert!(player.opened().is_empty());
        let sent = player.text(r#"{"id":1,"connect":{"client":"c","session":"s","node":"n","ping":25,"pong":true}}"#);
        assert!(sent[0].starts_with("Up POST /emulation {"), "{sent:?}");
        for part in [r#""session":"s""#, r#""node":"n""#, r#"{\"id\":3,\"subscribe\":{\"channel\":\"b\"}}"#] {
            assert!(sent[0].contains(part), "{part}: {sent:?}");
        }
        assert!(player.text(r#"{"id":2,"subscribe":{}}"#).is_empty());
        assert_eq!(player.text(r#"{"id":3,"subscribe":{}}"#), ["subscribed"]);
        assert!(player.text("{}")[0].starts_with("Up POST /emulation"));
    }

    #[test]
    fn a_frame_may_have_several_lines() {
        let mut player = Player::new(Dialect::Centrifugo, Transport::WebSocket, "");
        player.open();
        assert_eq!(player.opened(), ["frame {\"id\":1,\"connect\":{}}"]);
        player.text(r#"{"id":1,"connect":{"client":"c"}}"#);
        let notices = player.text(
            "{\"id\":2,\"subscribe\":{}}\n{\"push\":{\"channel\":\"a\",\"pub\":{\"data\":{\"x\":1}}}}\n{\"id\":3,\"subscribe\":{}}",
        );
        assert_eq!(notices, ["message {\"x\":1}", "subscribed"]);
        let sent = player.publish(Sending::Publish, "1");
        assert_eq!(sent, "frame {\"id\":4,\"publish\":{\"channel\":\"a\",\"data\":1}}");
        assert!(player.text(r#"{"id":4,"publish":{}}"#).is_empty());
        assert_eq!(player.text("{}"), ["frame {}"]);
        for bad in [r#"{"id":2,"error":{"code":103}}"#, r#"{"push":{"disconnect":{"code":3000}}}"#, "[1"] {
            assert!(player.text(bad)[0].starts_with("refused"), "{bad}");
        }
    }

    #[test]
    fn a_cut_subscription_is_recovered_from_its_position_or_its_gap_is_told() {
        let mut player = Player::new(Dialect::Centrifugo, Transport::WebSocket, "");
        let connect = |player: &mut Player| {
            player.open();
            player.opened();
            player.text(r#"{"id":1,"connect":{"client":"c"}}"#).remove(0)
        };
        connect(&mut player);
        assert!(player.text(r#"{"id":3,"subscribe":{"recoverable":true,"epoch":"e","positioned":true}}"#).is_empty());
        assert_eq!(player.text(r#"{"id":2,"subscribe":{"recoverable":true,"epoch":"d","offset":4}}"#), ["subscribed"]);
        player.text(r#"{"push":{"channel":"b","pub":{"data":1,"offset":1}}}"#);
        let asks = |a: (&str, u64), b: (&str, u64)| {
            let command = |id, channel, (epoch, offset): (&str, u64)| {
                let place = format!(r#""recover":true,"epoch":"{epoch}","offset":{offset}"#);
                format!(r#"{{"id":{id},"subscribe":{{"channel":"{channel}",{place}}}}}"#)
            };
            format!("frame {}\n{}", command(2, "a", a), command(3, "b", b))
        };
        assert_eq!(connect(&mut player), asks(("d", 4), ("e", 1)));
        let missed = r#""publications":[{"data":2,"offset":2},{"data":3,"offset":3}]"#;
        let missed = format!(r#"{{"epoch":"e","offset":3,"recovered":true,"was_recovering":true,{missed}}}"#);
        assert_eq!(player.text(&format!(r#"{{"id":3,"subscribe":{missed}}}"#)), ["message 2", "message 3"]);
        let gone = r#"{"id":2,"subscribe":{"epoch":"f","offset":1,"was_recovering":true}}"#;
        assert_eq!(player.text(gone), ["gap", "subscribed"]);
        assert_eq!(connect(&mut player), asks(("f", 1), ("e", 3)));
    }

    #[test]
    fn a_unidirectional_client_is_told_what_it_is_subscribed_to() {
        let mut player = Player::new(Dialect::Centrifugo, Transport::WebSocket, UNIDIRECTIONAL);
        player.open();
        assert_eq!(player.opened(), ["frame {\"subs\":{\"a\":{},\"b\":{}}}"]);
        assert!(
            player.text(r#"{"connect":{"client":"c","subs":{"a":{}}}}"#)[0].contains("without a subscription to: b")
        );
        assert_eq!(player.text(r#"{"connect":{"subs":{"b":{},"a":{}}}}"#), ["subscribed"]);
        assert_eq!(player.text(r#"{"channel":"a","pub":{"data":"~"}}"#), ["message \"~\""]);
        assert!(player.text("{}").is_empty());
        assert_eq!(player.publish(Sending::Publish, "1"), "Up POST /api/publish {\"channel\":\"a\",\"data\":1}");
        assert!(player.reply("{\"result\":{}}").is_empty());
        assert!(player.reply("{\"error\":{\"code\":102}}")[0].starts_with("refused"));
        assert!(Player::new(Dialect::Centrifugo, Transport::Sse, "sideways").open()[0].starts_with("refused"));
    }
}
