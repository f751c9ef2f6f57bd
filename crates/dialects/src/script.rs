//! A server played by a test.

use crate::{Dialect, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Sending, Step, Topic, Turn};
use pushlab_wire::transport::Transport;

/// A client that is told what happens; what it answers is written down as text.
pub struct Player {
    client: Box<dyn ProtocolClient>,
    pub topic: Topic,
}

impl Player {
    /// A client of two channels, over a transport in some way.
    pub fn new(dialect: Dialect, transport: Transport, how: &str) -> Self {
        let topic = Topic {
            transport: Some(transport),
            path: "/base".to_owned(),
            how: how.to_owned(),
            channels: vec!["a".to_owned(), "b".to_owned()],
            publish_to: "a".to_owned(),
            random: 7,
            ..Topic::default()
        };
        Self { client: dialect.protocol_client(), topic }
    }

    /// Lets something happen.
    pub fn play(
        &mut self,
        act: impl FnOnce(&mut dyn ProtocolClient, &mut Turn<'_>) -> Result<(), Refused>,
    ) -> Vec<String> {
        let (mut steps, mut log) = (Vec::new(), Vec::new());
        let mut sink = |notice: Notice<'_>| {
            log.push(match notice {
                Notice::Subscribed => "subscribed".to_owned(),
                Notice::Message(data) => format!("message {data}"),
                Notice::Relayed(data) => format!("relayed {data}"),
                Notice::Echo(data) => format!("echo {data}"),
                Notice::Gap => "gap".to_owned(),
                Notice::Complaint(text) => format!("complaint {text}"),
            });
        };
        let result = act(&mut *self.client, &mut Turn::new(&self.topic, &mut steps, &mut sink));
        log.extend(steps.iter().map(shown));
        log.extend(result.err().map(|why| format!("refused {why}")));
        log
    }

    /// The first connection.
    pub fn open(&mut self) -> Vec<String> {
        self.play(|client, turn| client.open(turn))
    }

    /// A WebSocket stands, or a stream begins.
    pub fn opened(&mut self) -> Vec<String> {
        self.play(|client, turn| client.opened(turn))
    }

    /// A message, an event or a line.
    pub fn text(&mut self, text: &str) -> Vec<String> {
        self.play(|client, turn| client.text(&Incoming { text, event: "", id: "" }, turn))
    }

    /// An answer on the receiving connection.
    pub fn reply(&mut self, body: &str) -> Vec<String> {
        self.play(|client, turn| client.reply(Over::Down, &Reply { status: 200, headers: &[], body }, turn))
    }

    /// What is sent.
    pub fn publish(&mut self, sending: Sending, data: &str) -> String {
        shown(&self.client.publish(sending, data, &self.topic))
    }
}

fn shown(step: &Step) -> String {
    match step {
        Step::Frame(text) => format!("frame {text}"),
        Step::Ask(over, request) => {
            let text = format!("{over:?} {} {} {}", request.method, request.target, request.body);
            text.trim_end().to_owned()
        }
    }
}
