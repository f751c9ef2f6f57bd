//! `sails`: requests over Socket.IO, as `sails.io.js` makes them (<https://sailsjs.com/documentation/reference/web-sockets>).
//! A request is an event with a method's name and a number, its answer an acknowledgement with the same number. `/join`
//! and `/send` are answered with success, `/echo` with the data; publications come as events, `msg` DATA.

use crate::socketio::Wrapping;
use crate::{Notice, Refused, Turn};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What a request is for: the remainder of its number, so that nothing need be remembered until the answer.
const JOIN: u64 = 0;
const SEND: u64 = 1;
const ECHO: u64 = 2;
const PURPOSES: u64 = 3;

/// Numbers the requests of a connection.
#[derive(Debug, Default)]
pub struct Requests {
    /// How many were made.
    count: u64,
}

#[derive(Deserialize)]
struct Answered<'a> {
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(rename = "statusCode")]
    status: u16,
}

impl Requests {
    fn post(&mut self, purpose: u64, url: &str, data: std::fmt::Arguments<'_>) -> String {
        let number = self.count * PURPOSES + purpose;
        self.count += 1;
        format!(r#"42{number}["post",{{"method":"post","headers":{{}},"data":{data},"url":"{url}"}}]"#)
    }
}

impl Wrapping for Requests {
    const NAME: &str = "sails";
    // Sails wants to know of every client which version of its library it is.
    const QUERY: &str = "&__sails_io_sdk_version=1.2.1";

    fn join(&mut self, channel: &Value) -> String {
        self.post(JOIN, "/join", format_args!(r#"{{"channel":{channel}}}"#))
    }

    fn send(&mut self, channel: &Value, data: &str) -> String {
        self.post(SEND, "/send", format_args!(r#"{{"channel":{channel},"data":{data}}}"#))
    }

    fn echo(&mut self, data: &str) -> String {
        self.post(ECHO, "/echo", format_args!(r#"{{"data":{data}}}"#))
    }

    fn handle_answer(&mut self, text: &str, turn: &mut Turn<'_>) -> Result<bool, Refused> {
        let bad = || Refused::unexpected("an acknowledgement that is not NUMBER[{\"body\":…,\"statusCode\":…}]", text);
        let array = text.find('[').ok_or_else(bad)?;
        let number: u64 = text[..array].parse().map_err(|_| bad())?;
        let [Answered { body, status }] = serde_json::from_str(&text[array..]).map_err(|_| bad())?;
        let body = body.map_or("", RawValue::get);
        match (number % PURPOSES, status) {
            (JOIN, 200..=299) => return Ok(true),
            (JOIN, _) => return Err(Refused::unexpected("a request to join was refused", text)),
            (ECHO, 200..=299) => turn.report(Notice::Echo(body)),
            (_, 200..=299) => {}
            _ => turn.report(Notice::Complaint(text)),
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use crate::script::Player;
    use crate::{Dialect, Sending};
    use pushlab_wire::transport::Transport;

    #[test]
    fn requests_are_told_apart_by_their_numbers() {
        let mut player = Player::new(Dialect::Sails, Transport::WebSocket, "");
        assert_eq!(player.open(), ["Down GET /base?EIO=4&transport=websocket&__sails_io_sdk_version=1.2.1"]);
        let joins = player.text("40{}");
        let join = r#"frame 420["post",{"method":"post","headers":{},"data":{"channel":"a"},"url":"/join"}]"#;
        assert_eq!((joins.len(), joins[0].as_str()), (2, join));
        assert!(player.text(r#"430[{"body":"OK","headers":{},"statusCode":200}]"#).is_empty());
        assert_eq!(player.text(r#"433[{"body":"OK","headers":{},"statusCode":200}]"#), ["subscribed"]);
        assert!(player.publish(Sending::Publish, "\"~\"").starts_with("frame 427["));
        assert!(player.text(r#"437[{"body":"OK","statusCode":200}]"#).is_empty());
        assert!(player.text(r#"437[{"body":"no","statusCode":403}]"#)[0].starts_with("complaint 7["));
        assert!(player.publish(Sending::Echo, "\"~\"").starts_with("frame 4211["));
        assert_eq!(player.text(r#"4311[{"body":{"x":"~"},"statusCode":200}]"#), [r#"echo {"x":"~"}"#]);
        assert_eq!(player.text(r#"42["msg",1]"#), ["message 1"]);
    }

    #[test]
    fn a_refused_join_and_nonsense_are_refused() {
        let mut player = Player::new(Dialect::Sails, Transport::WebSocket, "");
        for text in
            [r#"430[{"body":"no","statusCode":404}]"#, "43", "43x[]", "430[]", "430[1]", "4399999999999999999999[]"]
        {
            assert!(player.text(text)[0].starts_with("refused"), "{text:?}");
        }
    }
}
