//! Recorded conversations: what happened to one client and what it answered, a JSON text a line. Recorded from
//! real servers, they are the test vectors of the dialects.

use crate::{Dialect, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Sending, Step, Topic, Turn};
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
    /// What the client reported, in short: `message …`, `subscribed`; a refusal is `refused: …`.
    pub notices: Vec<String>,
}

/// A recording that a client writes and its owner saves.
pub type SharedRecording = Arc<Mutex<Vec<Exchange>>>;

/// A protocol client whose conversation with the server is recorded.
#[derive(Debug)]
pub struct RecordingClient {
    dialect: Dialect,
    inner: Box<dyn ProtocolClient>,
    recording: SharedRecording,
}

impl RecordingClient {
    /// A new protocol client of a dialect; what happens to it is written to `recording`.
    pub fn new(dialect: Dialect, recording: SharedRecording) -> Self {
        Self { dialect, inner: dialect.protocol_client(), recording }
    }

    fn record<T>(
        &mut self,
        happened: Happening,
        turn: &mut Turn<'_>,
        act: impl FnOnce(&mut dyn ProtocolClient, &mut Turn<'_>) -> T,
        refusal: impl FnOnce(&T) -> Option<String>,
    ) -> T {
        let (mut steps, mut notices) = (Vec::new(), Vec::new());
        let sink = &mut *turn.sink;
        let mut noting = |what: Notice<'_>| {
            notices.push(short(&what));
            sink(what);
        };
        let result = act(&mut *self.inner, &mut Turn::new(turn.topic, &mut steps, &mut noting));
        notices.extend(refusal(&result));
        turn.steps.extend(steps.iter().cloned());
        self.push(Exchange { dialect: self.dialect, happened, steps, notices });
        result
    }

    fn push(&self, exchange: Exchange) {
        // A thread that died while it wrote leaves a recording that is still whole.
        let mut recording = self.recording.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let routine = recording.iter().filter(|kept| kept.happened.is_routine()).count();
        let is_surplus = exchange.happened.is_routine() && routine >= MAX_ROUTINE;
        if recording.len() < MAX_EXCHANGES && !is_surplus {
            recording.push(exchange);
        }
    }
}

fn refusal(result: &Result<(), Refused>) -> Option<String> {
    result.as_ref().err().map(|why| format!("refused: {why}"))
}

fn short(notice: &Notice<'_>) -> String {
    match notice {
        Notice::Subscribed => "subscribed".to_owned(),
        Notice::Message(text) => format!("message {text}"),
        Notice::Relayed(text) => format!("relayed {text}"),
        Notice::Echo(text) => format!("echo {text}"),
        Notice::Gap => "gap".to_owned(),
        Notice::Complaint(text) => format!("complaint {text}"),
    }
}

impl ProtocolClient for RecordingClient {
    fn open(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        self.record(Happening::Open(turn.topic.clone()), turn, |inner, turn| inner.open(turn), refusal)
    }

    fn opened(&mut self, turn: &mut Turn<'_>) -> Result<(), Refused> {
        self.record(Happening::Opened, turn, |inner, turn| inner.opened(turn), refusal)
    }

    fn reply(&mut self, over: Over, reply: &Reply<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let headers = reply.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let happened = Happening::Reply { over, status: reply.status, headers, body: reply.body.to_owned() };
        self.record(happened, turn, |inner, turn| inner.reply(over, reply, turn), refusal)
    }

    fn text(&mut self, incoming: &Incoming<'_>, turn: &mut Turn<'_>) -> Result<(), Refused> {
        let [text, event, id] = [incoming.text, incoming.event, incoming.id].map(str::to_owned);
        self.record(Happening::Text { text, event, id }, turn, |inner, turn| inner.text(incoming, turn), refusal)
    }

    fn ended(&mut self, turn: &mut Turn<'_>) -> bool {
        self.record(Happening::Ended, turn, |inner, turn| inner.ended(turn), |_| None)
    }

    fn poll(&mut self, turn: &mut Turn<'_>) {
        self.record(Happening::Poll, turn, |inner, turn| inner.poll(turn), |()| None);
    }

    fn publish(&mut self, sending: Sending, data: &str, topic: &Topic) -> Step {
        let step = self.inner.publish(sending, data, topic);
        let happened = Happening::Publish { sending, data: data.to_owned(), to: topic.publish_to.clone() };
        self.push(Exchange { dialect: self.dialect, happened, steps: vec![step.clone()], notices: Vec::new() });
        step
    }
}

/// Plays a recording to a new protocol client and returns what is different now: the happening's number, from 1, and
/// the exchange as it is.
pub fn replay(recording: &[Exchange]) -> Option<(usize, Exchange)> {
    let played = SharedRecording::default();
    let mut player = RecordingClient::new(recording.first()?.dialect, Arc::clone(&played));
    let mut topic = Topic::default();
    for (i, exchange) in recording.iter().enumerate() {
        play(&mut player, &mut topic, exchange);
        let now = played.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
        if let Some(now) = now.filter(|now| now != exchange) {
            return Some((i + 1, now));
        }
    }
    None
}

fn play(player: &mut RecordingClient, topic: &mut Topic, exchange: &Exchange) {
    if let Happening::Open(known) = &exchange.happened {
        *topic = known.clone();
    }
    let (mut steps, mut sink) = (Vec::new(), |_: Notice<'_>| ());
    let turn = &mut Turn::new(topic, &mut steps, &mut sink);
    let wanted = exchange.dialect.wanted_headers();
    // What is refused is in the recording.
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
