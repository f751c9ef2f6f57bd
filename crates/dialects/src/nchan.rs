//! `nchan`: channels of nginx. A location for subscribers chooses the transport from the request's headers; messages
//! are published by POST to `/pub`. See <https://nchan.io>.
//!
//! A stream of chunks or a poll is answered by nothing before the first message, so a client learns first from `/pub`
//! where its channels stand, and asks for what comes after that. A channel that does not exist has no place yet: it
//! gets an empty message.

use crate::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Request, Sending, Step, Topic, Turn};
use pushlab_wire::transport::Transport;

const PUBLISH: &str = "/pub";
/// What stands before the place in what `/pub` says of a channel.
const PLACE: &str = "last message id: ";
/// A channel that has no channel's name, for a client that subscribes to nothing: nchan refuses a request for none.
const NO_CHANNEL: &str = "-";

/// One client's end.
#[derive(Debug, Default)]
pub struct Nchan {
    /// Whether it knows where to begin.
    is_placed: bool,
    /// The places of the first channels, second and number in it; `None` for one that does not exist.
    known: Vec<Option<(u64, u32)>>,
    position: Position,
}

/// What a client has seen last.
#[derive(Debug, Default, PartialEq, Eq)]
enum Position {
    /// Nothing: what is new comes.
    #[default]
    Newest,
    /// A message's id.
    Id(String),
    /// `Last-Modified` and `Etag` of the last answer.
    Validators(String, String),
}

impl Nchan {
    /// Asks for what comes after the position.
    fn ask_on(&self, topic: &Topic) -> Request {
        let request = Request::get(format!("{}?channel={}", topic.path, joined(topic)));
        let request = match topic.transport {
            Some(Transport::WebSocket) => request.read_as(Answer::WebSocket),
            Some(Transport::Sse) => request.with_header("Accept", "text/event-stream").read_as(Answer::Events),
            Some(Transport::HttpStreaming) => request.with_header("TE", "chunked").read_as(Answer::Lines),
            _ => request,
        };
        match &self.position {
            Position::Newest => request,
            Position::Id(id) => request.with_header("Last-Event-ID", id),
            Position::Validators(modified, etag) => {
                request.with_header("If-Modified-Since", modified).with_header("If-None-Match", etag)
            }
        }
    }

    /// Asks where the next channel stands, makes the first if there is none, or begins to receive.
    fn find_place(&mut self, turn: &mut Turn<'_>) {
        let channels = &turn.topic.channels;
        let ask_of = |channel: &String| format!("{PUBLISH}?channel={channel}");
        if self.position != Position::Newest {
            self.receive(turn);
        } else if let Some(unknown) = channels.get(self.known.len()) {
            turn.ask(Over::Down, Request::get(ask_of(unknown)));
        } else if let (Some(first), None) = (channels.first(), self.known.iter().flatten().max()) {
            turn.ask(Over::Down, Request::post(ask_of(first), "text/plain", "\n"));
        } else {
            if let Some(id) = id_of(&self.known) {
                self.position = Position::Id(id);
            }
            self.receive(turn);
        }
    }

    /// Where the answer says that a channel stands.
    fn place(&mut self, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if turn.topic.channels.is_empty() {
            self.receive(turn);
            return Ok(());
        }
        let place = if reply.status == 404 {
            None
        } else {
            reply.expect_success("a request to /pub")?;
            let bad = || Refused::unexpected("/pub said no `last message id: SECOND:NUMBER`", reply.body);
            let (_, id) = reply.body.split_once(PLACE).ok_or_else(bad)?;
            let (second, number) = id.trim().split_once(':').ok_or_else(bad)?;
            Some((second.parse().map_err(|_| bad())?, number.parse().map_err(|_| bad())?))
        };
        let is_made = self.known.len() == turn.topic.channels.len();
        match self.known.first_mut() {
            Some(first) if is_made => {
                // The answer to the message that has made it.
                *first = Some(place.ok_or_else(|| Refused::unexpected("POST /pub was answered with 404", reply.body))?);
            }
            _ => self.known.push(place),
        }
        self.find_place(turn);
        Ok(())
    }

    /// From here on nothing is missed.
    fn receive(&mut self, turn: &mut Turn<'_>) {
        self.is_placed = true;
        turn.report(Notice::Subscribed);
        turn.ask(Over::Down, self.ask_on(turn.topic));
    }
}

fn joined(topic: &Topic) -> String {
    if topic.channels.is_empty() { NO_CHANNEL.to_owned() } else { topic.channels.join(",") }
}

/// The id that all channels together have: the last second of any, and the number of each in it, `-` for one that has
/// nothing of that second. The brackets mark one that has.
fn id_of(places: &[Option<(u64, u32)>]) -> Option<String> {
    let (second, _) = places.iter().flatten().max()?;
    let mut has_mark = places.len() == 1;
    let number = |place: &Option<(u64, u32)>| match place {
        Some((own, number)) if own == second => match std::mem::replace(&mut has_mark, true) {
            true => number.to_string(),
            false => format!("[{number}]"),
        },
        _ => "-".to_owned(),
    };
    let numbers: Vec<String> = places.iter().map(number).collect();
    Some(format!("{second}:{}", numbers.join(",")))
}

fn handle(text: &str, turn: &mut Turn<'_>) {
    // The message that makes a channel is empty.
    if !text.trim_end().is_empty() {
        turn.report(Notice::Message(text));
    }
}

impl ProtocolClient for Nchan {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        match turn.topic.transport {
            Some(Transport::WebSocket | Transport::Sse) => turn.ask(Over::Down, self.ask_on(turn.topic)),
            Some(transport @ (Transport::HttpStreaming | Transport::LongPolling | Transport::Polling)) => {
                (self.is_placed, self.known) = (false, Vec::new());
                if transport == Transport::HttpStreaming {
                    // Chunks bear no ids.
                    self.position = Position::Newest;
                }
                let first = turn.topic.channels.first().map_or(NO_CHANNEL, String::as_str);
                turn.ask(Over::Down, Request::get(format!("{PUBLISH}?channel={first}")));
            }
            Some(transport @ Transport::WebSocketPolling) => {
                return Err(Refused::NoSuchWay { dialect: "nchan", how: turn.topic.how.clone(), transport });
            }
            None => return Err(Refused::unexpected("a client without a transport", "")),
        }
        Ok(())
    }

    fn opened(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if matches!(turn.topic.transport, Some(Transport::WebSocket | Transport::Sse)) {
            // The head is written when the subscriber is in the channel.
            turn.report(Notice::Subscribed);
        }
        Ok(())
    }

    fn reply(&mut self, over: Over, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if over == Over::Up {
            return reply.expect_success("POST /pub");
        }
        if !self.is_placed {
            return self.place(reply, turn);
        }
        const NOT_MODIFIED: u16 = 304;
        if reply.status != NOT_MODIFIED {
            reply.expect_success("a poll")?;
            if let (Some(modified), Some(etag)) = (reply.header("last-modified"), reply.header("etag")) {
                self.position = Position::Validators(modified.to_owned(), etag.to_owned());
            }
            handle(reply.body, turn);
            if turn.topic.transport == Some(Transport::Polling) {
                // An answer has one message. There may be another.
                turn.ask(Over::Down, self.ask_on(turn.topic));
            }
        }
        Ok(())
    }

    #[inline]
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if turn.topic.transport == Some(Transport::Sse) {
            self.position = Position::Id(incoming.id.to_owned());
        }
        handle(incoming.text, turn);
        Ok(())
    }

    fn poll(&mut self, turn: &mut Turn<'_>) {
        turn.ask(Over::Down, self.ask_on(turn.topic));
    }

    fn publish(&mut self, _: Sending, data: &str, topic: &Topic) -> Step {
        // What is streamed in chunks needs an end of its own.
        let end = if topic.transport == Some(Transport::HttpStreaming) { "\n" } else { "" };
        let target = format!("{PUBLISH}?channel={}", topic.publish_to);
        Step::Ask(Over::Up, Request::post(target, "application/json", format!("{data}{end}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::script::Player;

    #[test]
    fn places_of_several_channels_make_one_id() {
        assert_eq!(id_of(&[None, None]), None);
        assert_eq!(id_of(&[Some((9, 4))]).unwrap(), "9:4");
        assert_eq!(id_of(&[Some((8, 4)), Some((9, 1)), None, Some((9, 0))]).unwrap(), "9:-,[1],-,0");
    }

    #[test]
    fn a_poll_begins_where_the_channels_stand() {
        let mut player = Player::new(Dialect::Nchan, Transport::Polling, "");
        assert_eq!(player.open(), ["Down GET /pub?channel=a"]);
        let place = "queued messages: 1\nlast requested: -1 sec. ago\nactive subscribers: 0\nlast message id: 9:0";
        assert_eq!(player.reply(place), ["Down GET /pub?channel=b"]);
        assert_eq!(player.reply(place), ["subscribed", "Down GET /base?channel=a,b"]);
        assert_eq!(player.reply("~"), ["message ~", "Down GET /base?channel=a,b"]);
        assert_eq!(player.reply("\n"), ["Down GET /base?channel=a,b"]);
        assert_eq!(player.publish(Sending::Publish, "1"), "Up POST /pub?channel=a 1");
        // A new connection goes on from there.
        assert_eq!(player.open(), ["Down GET /pub?channel=a"]);
        assert_eq!(player.reply(place), ["subscribed", "Down GET /base?channel=a,b"]);
    }

    #[test]
    fn a_channel_without_a_place_is_made() {
        let mut player = Player::new(Dialect::Nchan, Transport::HttpStreaming, "");
        let missing = Reply { status: 404, headers: &[], body: "" };
        player.open();
        let ask = player.play(|client, turn| client.reply(Over::Down, &missing, turn));
        assert_eq!(ask, ["Down GET /pub?channel=b"]);
        let made = player.play(|client, turn| client.reply(Over::Down, &missing, turn));
        assert_eq!(made, ["Down POST /pub?channel=a"]);
        assert_eq!(player.reply("last message id: 9:0"), ["subscribed", "Down GET /base?channel=a,b"]);
        assert!(player.opened().is_empty() && player.text("").is_empty());
        assert_eq!(player.text("~"), ["message ~"]);
        for bad in ["", "last message id: 9", "last message id: x:1"] {
            player.open();
            assert!(player.reply(bad)[0].starts_with("refused"), "{bad}");
        }
    }

    #[test]
    fn a_socket_and_an_event_stream_are_subscribed_when_they_stand() {
        for transport in [Transport::WebSocket, Transport::Sse] {
            let mut player = Player::new(Dialect::Nchan, transport, "");
            assert_eq!(player.open(), ["Down GET /base?channel=a,b"]);
            assert_eq!(player.opened(), ["subscribed"]);
            assert_eq!(player.text("~"), ["message ~"]);
        }
    }
}
