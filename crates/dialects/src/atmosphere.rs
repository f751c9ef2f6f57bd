//! Atmosphere: a path is a broadcaster, where a GET waits and a POST broadcasts; a WebSocket's frames are posts to the
//! path that they begin with. Source: <https://github.com/Atmosphere/atmosphere/wiki/Understanding-the-Atmosphere-Protocol>.
//!
//! Streams have no frames of their own, so our server ends each message with a newline, and greets new clients with
//! the line `subscribed`, as Atmosphere confirms nothing.

use crate::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Request, Sending, Step, Topic, Turn};
use pushlab_wire::transport::Transport;

/// The header by which the server names a client.
pub const TRACKING_ID: &str = "x-atmosphere-tracking-id";
const FRAMEWORK: &str = "3.1.0-javascript";
const GREETING: &str = "subscribed";

/// One client's end.
#[derive(Debug, Default)]
pub struct Atmosphere {
    /// By which the server knows a client's polls; `None` for a client that is new to it.
    tracking_id: Option<String>,
    is_subscribed: bool,
}

fn channels_path(topic: &Topic, channels: &str) -> String {
    format!("{}/chat/{channels}", topic.path.trim_end_matches('/'))
}

fn sending_path(sending: Sending, topic: &Topic) -> String {
    match sending {
        Sending::Publish => channels_path(topic, &topic.publish_to),
        Sending::Echo => format!("{}/echo", topic.path.trim_end_matches('/')),
    }
}

impl Atmosphere {
    fn target(&self, path: &str, transport: &str) -> String {
        let id = self.tracking_id.as_deref().unwrap_or("0");
        format!(
            "{path}?X-Atmosphere-Transport={transport}&X-Atmosphere-Framework={FRAMEWORK}&X-Atmosphere-tracking-id={id}"
        )
    }

    fn ask_for_messages(&self, transport: &str, topic: &Topic) -> Request {
        // A client that only publishes waits where nobody publishes.
        let channels = if topic.channels.is_empty() { "-".to_owned() } else { topic.channels.join(",") };
        Request::get(self.target(&channels_path(topic, &channels), transport))
    }

    fn handle(&mut self, text: &str, is_echo: bool, turn: &mut Turn<'_>) {
        // A heartbeat is an X with no line's end, so in a stream it stands before the next message, a JSON text.
        for line in text.lines().map(|line| line.trim_start_matches('X')).filter(|line| !line.is_empty()) {
            match line {
                GREETING => {
                    // It may come twice, as anything may.
                    if !std::mem::replace(&mut self.is_subscribed, true) {
                        turn.report(Notice::Subscribed);
                    }
                }
                line if is_echo => turn.report(Notice::Echo(line)),
                line => turn.report(Notice::Message(line)),
            }
        }
    }
}

impl ProtocolClient for Atmosphere {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        // A poll of a client that is known is not greeted, so one that was cut off begins anew.
        (self.tracking_id, self.is_subscribed) = (None, false);
        let topic = turn.topic;
        let (transport, answer) = match topic.transport {
            Some(Transport::WebSocket) => ("websocket", Answer::WebSocket),
            Some(Transport::Sse) => ("sse", Answer::Events),
            Some(Transport::HttpStreaming) => ("streaming", Answer::Lines),
            Some(Transport::LongPolling) => ("long-polling", Answer::Whole),
            Some(transport) => {
                return Err(Refused::NoSuchWay { dialect: "atmosphere", how: topic.how.clone(), transport });
            }
            None => return Err(Refused::unexpected("a client without a transport", "")),
        };
        turn.ask(Over::Down, self.ask_for_messages(transport, topic).read_as(answer));
        Ok(())
    }

    fn reply(&mut self, over: Over, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        reply.expect_success("a request")?;
        if over == Over::Down
            && let Some(id) = reply.header(TRACKING_ID)
        {
            let is_plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            self.tracking_id = is_plain.then(|| id.to_owned());
        }
        self.handle(reply.body, over == Over::Up, turn);
        Ok(())
    }

    #[inline]
    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        // On a WebSocket nothing but the sender's own intention tells echoes from messages.
        let is_two_way = turn.topic.transport == Some(Transport::WebSocket);
        self.handle(incoming.text, is_two_way && turn.topic.sending == Some(Sending::Echo), turn);
        Ok(())
    }

    fn poll(&mut self, turn: &mut Turn<'_>) {
        turn.ask(Over::Down, self.ask_for_messages("long-polling", turn.topic));
    }

    fn publish(&mut self, sending: Sending, data: &str, topic: &Topic) -> Step {
        let path = sending_path(sending, topic);
        match topic.transport {
            Some(Transport::WebSocket) => Step::Frame(format!("@@{path}@@{data}")),
            _ => Step::Ask(Over::Up, Request::post(self.target(&path, "polling"), "text/plain", data)),
        }
    }
}
