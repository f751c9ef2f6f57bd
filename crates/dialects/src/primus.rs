//! `primus`: Primus 8, whose messages are JSON values in the frames of whichever transformer carries them. Source:
//! what `primus.js` sends, and the transformers' own protocols.
//!
//! A message is one of [`verbs`](crate::verbs), or a string that begins with `primus::`.

use crate::verbs::Verbs;
use crate::{Answer, Incoming, Over, ProtocolClient, Refused, Request, Sending, Step, Topic, Turn, sockjs};
use pushlab_wire::transport::Transport;

/// What carries messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Transformer {
    /// A WebSocket message each: `websockets`, `faye`.
    #[default]
    WebSockets,
    SockJs,
    /// Engine.IO 4: a digit before each, which says what it is.
    EngineIo,
}

impl Transformer {
    fn of(topic: &Topic) -> Result<Self, Refused> {
        let how = topic.how.as_str();
        match (topic.transport, how) {
            (Some(Transport::WebSocket), "" | "websockets" | "faye") => Ok(Self::WebSockets),
            (Some(Transport::WebSocket), "sockjs") => Ok(Self::SockJs),
            (Some(Transport::WebSocket), "engine.io") => Ok(Self::EngineIo),
            (Some(transport), _) => Err(Refused::NoSuchWay { dialect: "primus", how: how.to_owned(), transport }),
            (None, _) => Err(Refused::unexpected("a client without a transport", "")),
        }
    }

    fn target(self, topic: &Topic) -> String {
        match self {
            Self::WebSockets => topic.path.clone(),
            Self::SockJs => format!("{}/websocket", sockjs::session(topic)),
            Self::EngineIo => format!("{}?EIO=4&transport=websocket", topic.path),
        }
    }

    /// The frame of a message.
    fn frame(self, message: String) -> String {
        match self {
            Self::WebSockets => message,
            Self::SockJs => sockjs::packed(&[message]),
            Self::EngineIo => format!("4{message}"),
        }
    }
}

/// One client's end.
#[derive(Debug, Default)]
pub struct Primus {
    transformer: Transformer,
    verbs: Verbs,
}

impl Primus {
    fn begin(&mut self, turn: &mut Turn<'_>) {
        for message in self.verbs.begin(turn) {
            turn.send(self.transformer.frame(message));
        }
    }

    fn handle_packet(&mut self, packet: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
        match packet.as_bytes().first() {
            Some(b'4') => return handle(&mut self.verbs, self.transformer, &packet[1..], turn),
            Some(b'0') => self.begin(turn),
            Some(b'1') => return Err(Refused::unexpected("the server has closed the session", packet)),
            Some(b'2') => turn.send(format!("3{}", &packet[1..])),
            // An answer to no ping of ours, or nothing at all: harmless.
            Some(b'3' | b'6') => {}
            _ => return Err(Refused::unexpected("no packet of Engine.IO (0 to 6)", packet)),
        }
        Ok(())
    }
}

#[inline]
fn handle(verbs: &mut Verbs, transformer: Transformer, message: &str, turn: &mut Turn<'_>) -> Result<(), Refused> {
    let Some(control) = message.strip_prefix("\"primus::") else {
        verbs.handle(message, turn);
        return Ok(());
    };
    if let Some(instant) = control.strip_prefix("ping::") {
        turn.send(transformer.frame(format!("\"primus::pong::{instant}")));
    } else if control.starts_with("server::close") {
        return Err(Refused::unexpected("the server has closed the connection", message));
    }
    Ok(())
}

impl ProtocolClient for Primus {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        *self = Self { transformer: Transformer::of(turn.topic)?, ..Self::default() };
        let request = Request::get(self.transformer.target(turn.topic)).read_as(Answer::WebSocket);
        turn.ask(Over::Down, request);
        Ok(())
    }

    fn opened(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        if self.transformer == Transformer::WebSockets {
            self.begin(turn);
        }
        Ok(())
    }

    #[inline]
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let Self { transformer, verbs } = self;
        match transformer {
            Transformer::WebSockets => handle(verbs, *transformer, incoming.text, turn),
            Transformer::EngineIo => self.handle_packet(incoming.text, turn),
            Transformer::SockJs => {
                let mut handled = Ok(());
                let frame = sockjs::Frame::read(incoming.text, |message| {
                    let now = handle(verbs, *transformer, message, turn);
                    handled = std::mem::replace(&mut handled, Ok(())).and(now);
                })?;
                if frame == sockjs::Frame::Open {
                    self.begin(turn);
                }
                handled
            }
        }
    }

    fn publish(&mut self, sending: Sending, data: &str, topic: &Topic) -> Step {
        Step::Frame(self.transformer.frame(Verbs::publication(sending, data, topic)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Player;
    use crate::{Dialect, Sending};

    fn player(how: &str) -> Player {
        Player::new(Dialect::Primus, Transport::WebSocket, how)
    }

    #[test]
    fn messages_are_json_as_they_are() {
        for how in ["", "websockets", "faye"] {
            let mut player = player(how);
            assert_eq!(player.open(), ["Down GET /base"]);
            assert_eq!(player.opened(), [r#"frame ["sub","a"]"#, r#"frame ["sub","b"]"#]);
            assert!(player.text(r#"["sub","a"]"#).is_empty());
            assert_eq!(player.text(r#"["sub","b"]"#), ["subscribed"]);
            assert_eq!(player.text("\"primus::ping::17\""), ["frame \"primus::pong::17\""]);
            assert_eq!(player.text("\"~\""), ["message \"~\""]);
            assert_eq!(player.publish(Sending::Echo, "1"), r#"frame ["echo",1]"#);
            assert!(player.text("\"primus::server::close\"")[0].starts_with("refused"));
        }
    }

    #[test]
    fn sockjs_carries_them_as_strings() {
        let mut player = player("sockjs");
        assert_eq!(player.open(), ["Down GET /base/007/0000000000000007/websocket"]);
        assert!(player.opened().is_empty());
        assert_eq!(player.text("o"), [r#"frame ["[\"sub\",\"a\"]"]"#, r#"frame ["[\"sub\",\"b\"]"]"#]);
        assert_eq!(player.text(r#"a["[\"sub\",\"a\"]","[\"sub\",\"b\"]"]"#), ["subscribed"]);
        assert_eq!(player.text(r#"a["\"primus::ping::17\"","1"]"#), ["message 1", r#"frame ["\"primus::pong::17\""]"#]);
        assert!(player.text(r#"a["\"primus::server::close\"","1"]"#)[1].starts_with("refused"));
    }

    #[test]
    fn engine_io_marks_them() {
        let mut player = player("engine.io");
        assert_eq!(player.open(), ["Down GET /base?EIO=4&transport=websocket"]);
        assert!(player.opened().is_empty());
        assert_eq!(player.text("0{\"sid\":\"x\"}"), [r#"frame 4["sub","a"]"#, r#"frame 4["sub","b"]"#]);
        assert!(player.text(r#"4["sub","a"]"#).is_empty());
        assert_eq!(player.text(r#"4["sub","b"]"#), ["subscribed"]);
        assert_eq!(player.text("2"), ["frame 3"]);
        assert_eq!(player.text("4{}"), ["message {}"]);
        assert_eq!(player.publish(Sending::Publish, "{}"), r#"frame 4["pub","a",{}]"#);
        for bad in ["", "é", "1"] {
            assert!(player.text(bad)[0].starts_with("refused"), "{bad}");
        }
    }

    #[test]
    fn unknown_transformers_are_refused() {
        assert!(player("uws").open()[0].starts_with("refused primus has no way"));
    }
}
