//! Recorded conversations: what happened to one client and what it answered, a JSON text a line. Recorded from
//! real servers, they are the test vectors of the dialects.

use crate::{Dialect, Heard, Incoming, Over, ProtocolClient, Refused, Reply, Sending, Step, Topic, Turn};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};

/// Most exchanges that are kept: the beginning is what tells dialects apart.
pub const MAX_EXCHANGES: usize = 40;
/// Most publications and replies to posts among them: a publisher says the same again and again.
const MAX_ROUTINE: usize = 8;

/// What happened to a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Happening {
    /// [`ProtocolClient::open`].
    Open(Topic),
    /// [`ProtocolClient::opened`].
    Opened,
    /// [`ProtocolClient::reply`].
    Reply {
        /// Over which connection.
        over: Over,
        /// HTTP status.
        status: u16,
        /// Headers that the dialect wants.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
    /// [`ProtocolClient::text`].
    Text {
        /// The message.
        text: String,
        /// The event's name.
        event: String,
        /// The event's id.
        id: String,
    },
    /// [`ProtocolClient::ended`].
    Ended,
    /// [`ProtocolClient::poll`].
    Poll,
    /// [`ProtocolClient::publish`].
    Publish {
        /// What.
        sending: Sending,
        /// The data.
        data: String,
        /// To which channel.
        to: String,
    },
}

impl Happening {
    fn is_routine(&self) -> bool {
        matches!(self, Self::Publish { .. } | Self::Reply { over: Over::Up, .. })
    }
}

/// A happening and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The dialect.
    pub dialect: Dialect,
    /// What happened.
    pub happened: Happening,
    /// What is sent therefore.
    pub steps: Vec<Step>,
    /// What was heard, in short: `message …`, `subscribed`; a refusal is `refused: …`.
    pub heard: Vec<String>,
}

/// A recording that a client writes and somebody else keeps.
pub type Tape = Arc<Mutex<Vec<Exchange>>>;

/// A protocol client whose conversation with the server is recorded.
#[derive(Debug)]
pub struct Recorded {
    dialect: Dialect,
    inner: Box<dyn ProtocolClient>,
    tape: Tape,
}

impl Recorded {
    /// A new protocol client of a dialect; what happens to it is written to `tape`.
    pub fn new(dialect: Dialect, tape: Tape) -> Self {
        Self { dialect, inner: dialect.protocol_client(), tape }
    }

    fn note<T>(
        &mut self,
        happened: Happening,
        turn: &mut Turn<'_>,
        act: impl FnOnce(&mut dyn ProtocolClient, &mut Turn<'_>) -> T,
        refusal: impl FnOnce(&T) -> Option<String>,
    ) -> T {
        let (mut steps, mut heard) = (Vec::new(), Vec::new());
        let sink = &mut *turn.sink;
        let mut noting = |what: Heard<'_>| {
            heard.push(short(&what));
            sink(what);
        };
        let result = act(&mut *self.inner, &mut Turn::new(turn.topic, &mut steps, &mut noting));
        heard.extend(refusal(&result));
        turn.steps.extend(steps.iter().cloned());
        self.keep(Exchange { dialect: self.dialect, happened, steps, heard });
        result
    }

    fn keep(&self, exchange: Exchange) {
        // A thread that died while it wrote leaves a tape that is still whole.
        let mut tape = self.tape.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let routine = tape.iter().filter(|kept| kept.happened.is_routine()).count();
        let is_told = exchange.happened.is_routine() && routine >= MAX_ROUTINE;
        if tape.len() < MAX_EXCHANGES && !is_told {
            tape.push(exchange);
        }
    }
}

fn refusal(result: &Result<(), Refused>) -> Option<String> {
    result.as_ref().err().map(|why| format!("refused: {why}"))
}

fn short(heard: &Heard<'_>) -> String {
    match heard {
        Heard::Subscribed => "subscribed".to_owned(),
        Heard::Message(text) => format!("message {text}"),
        Heard::Echo(text) => format!("echo {text}"),
        Heard::Gap => "gap".to_owned(),
        Heard::Complaint(text) => format!("complaint {text}"),
    }
}

impl ProtocolClient for Recorded {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        self.note(Happening::Open(turn.topic.clone()), turn, |inner, turn| inner.open(turn), refusal)
    }

    fn opened(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        self.note(Happening::Opened, turn, |inner, turn| inner.opened(turn), refusal)
    }

    fn reply(&mut self, over: Over, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let headers = reply.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let happened = Happening::Reply { over, status: reply.status, headers, body: reply.body.to_owned() };
        self.note(happened, turn, |inner, turn| inner.reply(over, reply, turn), refusal)
    }

    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let [text, event, id] = [incoming.text, incoming.event, incoming.id].map(str::to_owned);
        self.note(Happening::Text { text, event, id }, turn, |inner, turn| inner.text(incoming, turn), refusal)
    }

    fn ended(&mut self, turn: &mut Turn<'_>) -> bool {
        self.note(Happening::Ended, turn, |inner, turn| inner.ended(turn), |_| None)
    }

    fn poll(&mut self, turn: &mut Turn<'_>) {
        self.note(Happening::Poll, turn, |inner, turn| inner.poll(turn), |()| None);
    }

    fn publish(&mut self, sending: Sending, data: &str, topic: &Topic) -> Step {
        let step = self.inner.publish(sending, data, topic);
        let happened = Happening::Publish { sending, data: data.to_owned(), to: topic.publish_to.clone() };
        self.keep(Exchange { dialect: self.dialect, happened, steps: vec![step.clone()], heard: Vec::new() });
        step
    }
}

/// Plays a recording to a new protocol client and returns what is different now: the happening's number, from 1, and the
/// exchange as it is.
pub fn replay(recording: &[Exchange]) -> Option<(usize, Exchange)> {
    let tape = Tape::default();
    let mut player = Recorded::new(recording.first()?.dialect, Arc::clone(&tape));
    let mut topic = Topic::default();
    for (i, exchange) in recording.iter().enumerate() {
        play(&mut player, &mut topic, exchange);
        let now = tape.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
        if let Some(now) = now.filter(|now| now != exchange) {
            return Some((i + 1, now));
        }
    }
    None
}

fn play(player: &mut Recorded, topic: &mut Topic, exchange: &Exchange) {
    if let Happening::Open(known) = &exchange.happened {
        *topic = known.clone();
    }
    let (mut steps, mut sink) = (Vec::new(), |_: Heard<'_>| ());
    let turn = &mut Turn::new(topic, &mut steps, &mut sink);
    let wanted = exchange.dialect.wanted_headers();
    // What is refused is on the tape.
    let _ = match &exchange.happened {
        Happening::Open(_) => player.open(turn),
        Happening::Opened => player.opened(turn),
        Happening::Reply { over, status, headers, body } => {
            let known = |name: &str| wanted.iter().find(|wanted| **wanted == name).copied();
            let headers: Vec<_> =
                headers.iter().filter_map(|(name, value)| Some((known(name)?, value.clone()))).collect();
            player.reply(*over, &Reply { status: *status, headers: &headers, body }, turn)
        }
        Happening::Text { text, event, id } => player.text(&Incoming { text, event, id }, turn),
        Happening::Ended => {
            player.ended(turn);
            Ok(())
        }
        Happening::Poll => {
            player.poll(turn);
            Ok(())
        }
        Happening::Publish { sending, data, to } => {
            let topic = Topic { publish_to: to.clone(), ..topic.clone() };
            player.publish(*sending, data, &topic);
            Ok(())
        }
    };
}
