//! `bare`: raw frames and plain HTTP, as the servers of the studies spoke them. A frame, an event or a line is a
//! message's data and nothing else.

use crate::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Request, Sending, Step, Topic, Turn};
use percent_encoding::utf8_percent_encode;
use pushlab_wire::http::RESERVED;
use pushlab_wire::transport::Transport;
use serde_json::value::RawValue;

/// One client's end.
#[derive(Debug, Default)]
pub struct Bare {
    /// Where the last poll has ended, as the server counts.
    after: Option<u64>,
    is_subscribed: bool,
    /// Whether the question under way is the one for the list of users.
    is_listing: bool,
}

impl Bare {
    /// The next question; one that `holds` is answered when there is something, if the transport is long polling.
    fn ask_for_messages(&self, topic: &Topic, holds: bool) -> Request {
        let mut target = format!("{}/poll?{}", topic.path, query(topic));
        if let Some(count) = topic.newest {
            target.push_str(&format!("&newest={count}"));
        } else if let Some(after) = self.after {
            target.push_str(&format!("&after={after}"));
            if holds && topic.transport == Some(Transport::LongPolling) {
                target.push_str(&format!("&wait={}", topic.wait_s));
            }
        }
        Request::get(target)
    }

    fn report_subscribed(&mut self, turn: &mut Turn<'_>) {
        if !std::mem::replace(&mut self.is_subscribed, true) {
            turn.report(Notice::Subscribed);
        }
    }
}

fn query(topic: &Topic) -> String {
    topic.channels.iter().map(|channel| format!("channel={channel}")).collect::<Vec<_>>().join("&")
}

impl ProtocolClient for Bare {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let topic = turn.topic;
        (self.is_subscribed, self.is_listing) = (false, false);
        let path = &topic.path;
        let request = match topic.transport {
            Some(Transport::WebSocket) => {
                // A server echoes on a route of its own, so that frames need no marks.
                let target = match topic.sending {
                    Some(Sending::Echo) => format!("{path}/ws{}/echo", topic.how),
                    _ => format!("{path}/ws{}?{}&publish={}", topic.how, query(topic), topic.publish_to),
                };
                Request::get(target).read_as(Answer::WebSocket)
            }
            Some(Transport::Sse) => Request::get(format!("{path}/sse?{}", query(topic))).read_as(Answer::Events),
            Some(Transport::HttpStreaming) => {
                Request::get(format!("{path}/stream?{}", query(topic))).read_as(Answer::Lines)
            }
            Some(Transport::LongPolling | Transport::Polling) => self.ask_for_messages(topic, false),
            Some(transport @ Transport::WebSocketPolling) => {
                return Err(Refused::NoSuchWay { dialect: "bare", how: topic.how.clone(), transport });
            }
            None => return Err(Refused::unexpected("a client without a transport", "")),
        };
        turn.ask(Over::Down, request);
        Ok(())
    }

    fn opened(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        self.report_subscribed(turn);
        Ok(())
    }

    fn reply(&mut self, over: Over, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if over == Over::Up {
            reply.expect_success("a request that sends")?;
            if turn.topic.sending == Some(Sending::Echo) {
                turn.report(Notice::Echo(reply.body));
            }
            return Ok(());
        }
        if std::mem::take(&mut self.is_listing) {
            return reply.expect_success("GET /users");
        }
        reply.expect_success("GET /poll")?;
        let bad = || Refused::unexpected("GET /poll was not answered with [N,DATA,…]", reply.body);
        let parts: Vec<&RawValue> = serde_json::from_str(reply.body).map_err(|_| bad())?;
        let (after, messages) = parts.split_first().ok_or_else(bad)?;
        let after = after.get().parse().map_err(|_| bad())?;
        if self.after.is_some_and(|known| known > after) {
            // Started again, it counts anew; it says nothing of gaps itself.
            turn.report(Notice::Gap);
        }
        self.after = Some(after);
        messages.iter().for_each(|message| turn.report(Notice::Message(message.get())));
        if turn.topic.user_list && self.is_subscribed {
            self.is_listing = true;
            turn.ask(Over::Down, Request::get(format!("{}/users", turn.topic.path)));
        }
        self.report_subscribed(turn);
        Ok(())
    }

    #[inline]
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        match turn.topic.sending {
            _ if incoming.text.is_empty() => {}
            Some(Sending::Echo) if turn.topic.transport == Some(Transport::WebSocket) => {
                turn.report(Notice::Echo(incoming.text));
            }
            _ => turn.report(Notice::Message(incoming.text)),
        }
        Ok(())
    }

    fn poll(&mut self, turn: &mut Turn<'_>) {
        turn.ask(Over::Down, self.ask_for_messages(turn.topic, true));
    }

    fn publish(&mut self, sending: Sending, data: &str, topic: &Topic) -> Step {
        if topic.transport == Some(Transport::WebSocket) {
            return Step::Frame(data.to_owned());
        }
        if topic.echoes_in_streams && sending == Sending::Echo {
            let target = format!("{}/sse/echo?data={}", topic.path, utf8_percent_encode(data, RESERVED));
            return Step::Ask(Over::Up, Request::get(target).read_as(Answer::Events));
        }
        let target = match sending {
            Sending::Publish => format!("{}/publish?channel={}", topic.path, topic.publish_to),
            Sending::Echo => format!("{}/echo", topic.path),
        };
        Step::Ask(Over::Up, Request::post(target, "application/json", data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::script::Player;

    fn polled(player: &mut Player) -> Vec<String> {
        player.play(|client, turn| {
            client.poll(turn);
            Ok(())
        })
    }

    #[test]
    fn a_poll_is_followed_by_the_question_for_the_users_where_they_are_wanted() {
        let mut player = Player::new(Dialect::Bare, Transport::Polling, "");
        player.topic.user_list = true;
        assert_eq!(player.open(), ["Down GET /base/poll?channel=a&channel=b"]);
        assert_eq!(player.reply("[7]"), ["subscribed"]);
        let poll = ["Down GET /base/poll?channel=a&channel=b&after=7"];
        assert_eq!(polled(&mut player), poll);
        assert_eq!(player.reply("[8,{\"x\":1}]"), ["message {\"x\":1}", "Down GET /base/users"]);
        assert_eq!(player.reply("[\"sender\"]"), Vec::<String>::new());
        assert_eq!(polled(&mut player), ["Down GET /base/poll?channel=a&channel=b&after=8"]);
        player.topic.user_list = false;
        assert_eq!(player.reply("[8]"), Vec::<String>::new());
    }

    #[test]
    fn an_echo_in_a_stream_of_its_own_says_its_data_in_the_query() {
        let mut player = Player::new(Dialect::Bare, Transport::Sse, "");
        player.topic.echoes_in_streams = true;
        let step = Bare::default().publish(Sending::Echo, "{\"a\": 1}", &player.topic);
        let Step::Ask(Over::Up, request) = step else { panic!("{step:?}") };
        assert_eq!(
            (request.target.as_str(), request.answer),
            ("/base/sse/echo?data=%7B%22a%22%3A%201%7D", Answer::Events)
        );
        let step = Bare::default().publish(Sending::Publish, "1", &player.topic);
        assert!(matches!(&step, Step::Ask(Over::Up, request) if request.method == "POST"), "{step:?}");
    }

    #[test]
    fn a_poll_for_the_newest_messages_says_no_position() {
        for (newest, expected) in [(None, "after=7"), (Some(10), "newest=10")] {
            let mut player = Player::new(Dialect::Bare, Transport::Polling, "");
            player.topic.newest = newest;
            assert_eq!(player.reply("[7,{\"n\":1}]"), ["message {\"n\":1}", "subscribed"]);
            assert_eq!(polled(&mut player), [format!("Down GET /base/poll?channel=a&channel=b&{expected}")]);
        }
    }
}
