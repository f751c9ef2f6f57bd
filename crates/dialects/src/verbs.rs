//! The messages of our own servers on frameworks that carry whatever an application says, and know no channels:
//! `["sub",CHANNEL]`, answered by the same; `["pub",CHANNEL,DATA]`, which brings its data alone to every subscriber;
//! `["echo",DATA]`, answered by the same.

use crate::{Notice, Sending, Topic, Turn};
use pushlab_wire::native::json_string;

/// Which answers a client still waits for.
#[derive(Debug, Default)]
pub struct Verbs {
    unconfirmed: usize,
}

impl Verbs {
    /// The server listens: the messages that subscribe to every channel.
    pub fn begin(&mut self, turn: &mut Turn<'_>) -> Vec<String> {
        let channels = &turn.topic.channels;
        self.unconfirmed = channels.len();
        if channels.is_empty() {
            turn.report(Notice::Subscribed);
        }
        channels.iter().map(|channel| format!("[\"sub\",{}]", json_string(channel))).collect()
    }

    /// A message came.
    #[inline]
    pub fn handle(&mut self, message: &str, turn: &mut Turn<'_>) {
        if !message.starts_with('[') {
            return turn.report(Notice::Message(message));
        }
        if let Some(data) = message.strip_prefix("[\"echo\",").and_then(|rest| rest.strip_suffix(']')) {
            turn.report(Notice::Echo(data));
        } else if !message.starts_with("[\"sub\",") {
            turn.report(Notice::Message(message));
        } else if self.unconfirmed > 0 {
            self.unconfirmed -= 1;
            if self.unconfirmed == 0 {
                turn.report(Notice::Subscribed);
            }
        }
    }

    /// Whether every subscription has been confirmed, or none was asked for.
    pub fn is_confirmed(&self) -> bool {
        self.unconfirmed == 0
    }

    /// The message that publishes, or asks for an echo.
    pub fn publication(sending: Sending, data: &str, topic: &Topic) -> String {
        match sending {
            Sending::Publish => format!("[\"pub\",{},{data}]", json_string(&topic.publish_to)),
            Sending::Echo => format!("[\"echo\",{data}]"),
        }
    }
}
