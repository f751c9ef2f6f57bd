//! `mercure`: topics over one event stream; a publication is a form that is posted with a token. See
//! <https://mercure.rocks/spec>.

use crate::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Request, Sending, Step, Topic, Turn};
use percent_encoding::utf8_percent_encode;
use pushlab_wire::http::RESERVED;
use pushlab_wire::transport::Transport;

/// What lets its holder publish to every topic: `{"mercure":{"publish":["*"]}}`, signed (HS256) with the key of our
/// subject, `!ChangeThisMercureHubJWTSecretKey!`. A hub that takes no token takes no publications either.
const TOKEN: &str = "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjdXJlIjp7InB1Ymxpc2giOlsiKiJdfX0.\
     a8cjcSRUAcHdnGNMKifA4BK5epRXxQI0UBp2XpNrBdw";

/// A topic that is no channel's name, for a client that subscribes to nothing: a hub refuses a stream of no topic.
const NO_TOPIC: &str = "-";

/// One client's end.
#[derive(Debug, Default)]
pub struct Mercure {
    /// Of the last event.
    last_id: String,
}

impl ProtocolClient for Mercure {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let Topic { transport, path, how, channels, .. } = turn.topic;
        match transport {
            Some(Transport::Sse) => {}
            Some(transport) => {
                return Err(Refused::NoSuchWay { dialect: "mercure", how: how.clone(), transport: *transport });
            }
            None => return Err(Refused::unexpected("a client without a transport", "")),
        }
        let mut topics: Vec<String> = channels.iter().map(|channel| format!("topic={channel}")).collect();
        if topics.is_empty() {
            topics.push(format!("topic={NO_TOPIC}"));
        }
        let request = Request::get(format!("{path}?{}", topics.join("&"))).read_as(Answer::Events);
        let request = request.with_header("Accept", "text/event-stream");
        turn.ask(
            Over::Down,
            match self.last_id.as_str() {
                "" => request,
                last_id => request.with_header("Last-Event-ID", last_id),
            },
        );
        Ok(())
    }

    fn opened(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        // The hub adds the subscriber before it writes the head.
        turn.report(Notice::Subscribed);
        Ok(())
    }

    #[inline]
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        self.last_id.clear();
        self.last_id.push_str(incoming.id);
        turn.report(Notice::Message(incoming.text));
        Ok(())
    }

    fn publish(&mut self, _: Sending, data: &str, topic: &Topic) -> Step {
        let escaped = |text| utf8_percent_encode(text, RESERVED);
        let body = format!("topic={}&data={}", escaped(&topic.publish_to), escaped(data));
        let request = Request::post(topic.path.as_str(), "application/x-www-form-urlencoded", body);
        Step::Ask(Over::Up, request.with_header("Authorization", TOKEN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::script::Player;

    #[test]
    fn a_publication_is_a_form_and_an_event_a_delivery() {
        let mut player = Player::new(Dialect::Mercure, Transport::Sse, "");
        assert_eq!(player.open(), ["Down GET /base?topic=a&topic=b"]);
        assert_eq!(player.opened(), ["subscribed"]);
        assert_eq!(player.text("{\"x\":1}"), ["message {\"x\":1}"]);
        let sent = player.publish(Sending::Publish, "{\"x\":\"é&\"}");
        assert_eq!(sent, "Up POST /base topic=a&data=%7B%22x%22%3A%22%C3%A9%26%22%7D");
        assert!(Player::new(Dialect::Mercure, Transport::WebSocket, "").open()[0].starts_with("refused"));
    }

    #[test]
    fn a_cut_stream_goes_on_after_the_last_event() {
        let topic = Topic { transport: Some(Transport::Sse), ..Topic::default() };
        let (mut steps, mut sink) = (Vec::new(), |_: Notice<'_>| ());
        let mut turn = Turn::new(&topic, &mut steps, &mut sink);
        let mut client = Mercure::default();
        client.open(&mut turn).unwrap();
        client.text(&Incoming { text: "1", event: "message", id: "urn:uuid:7" }, &mut turn).unwrap();
        client.open(&mut turn).unwrap();
        let headers = |step: &Step| match step {
            Step::Ask(_, request) => request.headers.contains("Last-Event-ID: urn:uuid:7\r\n"),
            Step::Frame(_) => false,
        };
        assert_eq!(steps.iter().map(headers).collect::<Vec<_>>(), [false, true]);
    }
}
