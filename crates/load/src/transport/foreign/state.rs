//! What a protocol client and its server have under way.

use super::setup::ForeignSetup;
use crate::connection::{Head, Outgoing};
use crate::cut::Cut;
use crate::transport::frames::{Frames, encode_text};
use crate::transport::replies::ReplyReader;
use crate::transport::{Event, Hearing, MAX_MESSAGE_BYTES, Requests, Sending};
use fastrand::Rng;
use pushlab_dialects::recording::{RecordingClient, SharedRecording};
use pushlab_dialects::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Request, Step, Topic, Turn};
use pushlab_wire::event_stream::EventStreamDecoder;
use pushlab_wire::lines::LineDecoder;
use std::collections::VecDeque;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

/// One client's end, with what it has under way on both of its streams.
#[derive(Debug)]
pub(super) struct State {
    protocol_client: Box<dyn ProtocolClient>,
    recording: Option<(SharedRecording, PathBuf)>,
    pub setup: Arc<ForeignSetup>,
    topic: Topic,
    pub mode: Mode,
    /// What is asked on the next connection, where the server has closed the last one between two requests.
    pub pending: Option<Request>,
    /// What the protocol client itself has to post, until it is answered.
    pub own_posts: VecDeque<Request>,
    /// Whether the POST under way is the first of those.
    pub is_own_post_out: bool,
    /// Whether the request under way on the receiving connection, and the POST under way, are the last of theirs.
    is_last: bool,
    pub is_last_post: bool,
    pub is_subscribed: bool,
    /// Whether what the protocol client itself had to post was refused.
    pub is_broken: bool,
    /// Whether a connection was opened for a protocol client that goes on: it is subscribed though it does not say so.
    pub has_resumed: bool,
    headers: Vec<(&'static str, String)>,
    pub up_headers: Vec<(&'static str, String)>,
    steps: Vec<Step>,
}

/// What the receiving connection carries.
#[derive(Debug)]
pub(super) enum Mode {
    /// Nothing under way.
    Free,
    /// An answer is to come.
    Asked(ReplyReader),
    /// An endless answer.
    Events(Box<EventStreamDecoder>),
    /// An endless answer.
    Lines(LineDecoder),
    /// A WebSocket, and whether the protocol client knows that it stands.
    Socket(Frames, bool),
}

/// Those header fields of an answer that a dialect looks at.
pub(super) fn wanted(wanted: &'static [&'static str], head: &Head<'_>) -> Vec<(&'static str, String)> {
    let all = wanted.iter().flat_map(|&name| head.headers(name).map(move |value| (name, value.to_owned())));
    all.collect()
}

/// Bytes as text.
pub(super) fn text_of(bytes: &[u8]) -> Result<&str, Cut> {
    std::str::from_utf8(bytes).map_err(|_| Cut::NotUtf8)
}

/// Passes on what a protocol client reports.
fn notice_sink<'s>(is_subscribed: &'s mut bool, sink: &'s mut impl FnMut(Event<'_>)) -> impl FnMut(Notice<'_>) {
    move |notice| match notice {
        Notice::Subscribed => {
            *is_subscribed = true;
            sink(Event::Subscribed);
        }
        Notice::Message(text) => sink(Event::Message(text.as_bytes())),
        Notice::Relayed(text) => sink(Event::Relayed(text.as_bytes())),
        Notice::Echo(text) => sink(Event::Echo(text.as_bytes())),
        Notice::Gap => sink(Event::Gap),
        Notice::Complaint(text) => sink(Event::Error { code: "complaint", text }),
    }
}

impl State {
    /// One of a client that has never been connected, and its number in the run.
    pub fn new(setup: &Arc<ForeignSetup>, client: u32) -> Self {
        let speaks = &setup.speaks;
        let recording = speaks.recording.clone().filter(|_| client == 0).map(|path| (SharedRecording::default(), path));
        let protocol_client: Box<dyn ProtocolClient> = match &recording {
            Some((recording, _)) => Box::new(RecordingClient::new(speaks.dialect, Arc::clone(recording))),
            None => speaks.dialect.protocol_client(),
        };
        Self {
            protocol_client,
            recording,
            setup: Arc::clone(setup),
            topic: Topic::default(),
            mode: Mode::Free,
            pending: None,
            own_posts: VecDeque::new(),
            is_own_post_out: false,
            is_last: false,
            is_last_post: false,
            is_subscribed: false,
            is_broken: false,
            has_resumed: false,
            headers: Vec::new(),
            up_headers: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Says anew what the protocol client is to talk about.
    pub fn set_topic(&mut self, requests: &Requests) {
        let ForeignSetup { transport, speaks, sending, .. } = &*self.setup;
        self.topic = Topic {
            transport: Some(*transport),
            path: speaks.path.clone(),
            how: speaks.how.clone(),
            channels: requests.channels(),
            publish_to: requests.publish_to.clone(),
            sending: *sending,
            wait_s: requests.poll_wait_s,
            user_list: requests.users.is_some(),
            newest: requests.newest,
            echoes_in_streams: requests.echoes_in_streams,
            // Not of the run's seed: a server may still know the sessions of the run before.
            random: fastrand::u64(..),
        };
    }

    /// What carries a publication or an echo.
    pub fn publication(&mut self, requests: &Requests, sending: Sending, data: &str) -> Step {
        if self.topic.publish_to != requests.publish_to {
            self.topic.publish_to.clone_from(&requests.publish_to);
        }
        self.protocol_client.publish(sending, data, &self.topic)
    }

    /// Calls the protocol client; what it wants to send waits in `steps`.
    pub fn turn<T>(
        &mut self,
        sink: &mut impl FnMut(Event<'_>),
        act: impl FnOnce(&mut dyn ProtocolClient, &mut Turn<'_>) -> T,
    ) -> T {
        let Self { protocol_client, topic, steps, is_subscribed, .. } = self;
        act(&mut **protocol_client, &mut Turn::new(topic, steps, &mut notice_sink(is_subscribed, sink)))
    }

    /// Sends a request on the receiving connection.
    pub fn ask(&mut self, request: &Request, rng: &mut Rng, out: &mut Outgoing) {
        self.is_last = request.is_last();
        if request.answer == Answer::WebSocket {
            let mut frames = Frames::default();
            frames.open_with(&self.setup.request(request, &[&request.target]), rng, out);
            self.mode = Mode::Socket(frames, false);
        } else {
            self.setup.encode(out, request);
            self.mode = match request.answer {
                Answer::Events => Mode::Events(Box::new(EventStreamDecoder::new(MAX_MESSAGE_BYTES))),
                Answer::Lines => Mode::Lines(LineDecoder::new(MAX_MESSAGE_BYTES)),
                Answer::Whole | Answer::WebSocket => Mode::Asked(ReplyReader::default()),
            };
        }
    }

    /// Sends what the protocol client wants to; a request on the receiving connection is returned, as that one may have
    /// to be opened first.
    pub fn perform(&mut self, rng: &mut Rng, out: &mut Outgoing) -> Result<Option<Request>, Cut> {
        let mut down = None;
        for step in self.steps.drain(..) {
            match step {
                Step::Frame(text) => {
                    if !matches!(self.mode, Mode::Socket(..)) {
                        return Err(Refused::unexpected("a frame without a WebSocket", &text).into());
                    }
                    encode_text(out, text.as_bytes(), rng);
                }
                Step::Ask(Over::Up, request) => self.own_posts.push_back(request),
                Step::Ask(Over::Down, request) => {
                    if let Some(other) = down.replace(request) {
                        return Err(Refused::unexpected("two requests at once", &other.target).into());
                    }
                }
            }
        }
        Ok(down)
    }

    /// After an answer: asks what comes next, or says that the connection is free.
    fn go_on<S: FnMut(Event<'_>)>(&mut self, keeps_alive: bool, hearing: &mut Hearing<'_, S>) -> Result<(), Cut> {
        let Hearing { rng, out, sink, .. } = hearing;
        if std::mem::take(&mut self.has_resumed) && self.is_subscribed {
            sink(Event::Subscribed);
        }
        self.mode = Mode::Free;
        let mut next = self.perform(rng, out)?;
        if let (true, Some(request)) = (keeps_alive, &next) {
            self.ask(request, rng, out);
            sink(Event::Asked);
            return Ok(());
        }
        if !keeps_alive && next.is_none() {
            self.turn(*sink, |client, turn| client.poll(turn));
            next = self.perform(rng, out)?;
        }
        self.pending = next;
        sink(Event::Answered { keeps_alive });
        Ok(())
    }

    /// Hears a piece of an answer that is read whole.
    pub fn hear_answer<S: FnMut(Event<'_>)>(
        &mut self,
        data: &[u8],
        is_last: bool,
        hearing: &mut Hearing<'_, S>,
    ) -> Result<(), Cut> {
        let Mode::Asked(reader) = &mut self.mode else { return Err(Cut::Unasked) };
        let Some(reply) = reader.body(data, is_last)? else { return Ok(()) };
        self.mode = Mode::Free;
        *hearing.texts += reply.body.len() as u64;
        let body = text_of(&reply.body)?;
        let headers = std::mem::take(&mut self.headers);
        let reply_of = Reply { status: reply.status, headers: &headers, body };
        self.turn(hearing.sink, |client, turn| client.reply(Over::Down, &reply_of, turn))?;
        self.go_on(reply.keeps_alive && !self.is_last, hearing)
    }

    /// Hears the frames of a WebSocket.
    #[inline]
    pub fn hear_frames<S: FnMut(Event<'_>)>(
        &mut self,
        bytes: &mut [u8],
        hearing: &mut Hearing<'_, S>,
    ) -> Result<usize, Cut> {
        let Self { protocol_client, topic, steps, is_subscribed, mode, .. } = self;
        let Mode::Socket(frames, is_known) = mode else { return Err(Cut::Unasked) };
        if !std::mem::replace(is_known, true) {
            protocol_client.opened(&mut Turn::new(topic, steps, &mut notice_sink(is_subscribed, hearing.sink)))?;
        }
        let consumed = frames.receive(bytes, hearing, |text, sink| {
            let mut notices = notice_sink(is_subscribed, sink);
            let mut turn = Turn::new(topic, steps, &mut notices);
            Ok(protocol_client.text(&Incoming { text, event: "", id: "" }, &mut turn)?)
        })?;
        if !self.steps.is_empty() && self.perform(hearing.rng, hearing.out)?.is_some() {
            return Err(Refused::unexpected("a request on a connection that is a WebSocket", "").into());
        }
        Ok(consumed)
    }

    /// Hears the head of an answer.
    pub fn hear_head<S: FnMut(Event<'_>)>(&mut self, head: &Head<'_>, hearing: &mut Hearing<'_, S>) -> Result<(), Cut> {
        match &mut self.mode {
            Mode::Asked(reader) => {
                reader.head(head);
                self.headers = wanted(self.setup.speaks.dialect.wanted_headers(), head);
                Ok(())
            }
            Mode::Events(_) | Mode::Lines(_) => {
                head.accept(&self.setup.speaks.path)?;
                self.turn(hearing.sink, |client, turn| client.opened(turn))?;
                if std::mem::take(&mut self.has_resumed) && self.is_subscribed {
                    (hearing.sink)(Event::Subscribed);
                }
                self.perform_on_stream(hearing)
            }
            Mode::Free | Mode::Socket(..) => Err(Cut::Unasked),
        }
    }

    fn read_stream<S: FnMut(Event<'_>)>(&mut self, data: &[u8], hearing: &mut Hearing<'_, S>) -> Result<(), Cut> {
        let Self { protocol_client, topic, steps, is_subscribed, mode, .. } = self;
        let Hearing { texts, sink, .. } = hearing;
        let mut notices = notice_sink(is_subscribed, *sink);
        let mut turn = Turn::new(topic, steps, &mut notices);
        let mut broken = None;
        match mode {
            Mode::Events(events) => events.decode(data, |event| {
                **texts += event.data.len() as u64;
                let incoming = Incoming { text: event.data, event: event.name, id: event.id };
                broken = broken.take().or_else(|| protocol_client.text(&incoming, &mut turn).err().map(Cut::from));
            })?,
            Mode::Lines(lines) => lines.decode(data, |line| {
                **texts += line.len() as u64;
                let mut handle =
                    |text| Ok::<_, Cut>(protocol_client.text(&Incoming { text, event: "", id: "" }, &mut turn)?);
                broken = broken.take().or(text_of(line).and_then(&mut handle).err());
            })?,
            _ => return Err(Cut::Unasked),
        }
        broken.map_or(Ok(()), Err)
    }

    /// Hears a piece of an endless answer.
    pub fn hear_stream<S: FnMut(Event<'_>)>(
        &mut self,
        data: &[u8],
        is_last: bool,
        hearing: &mut Hearing<'_, S>,
    ) -> Result<(), Cut> {
        self.read_stream(data, hearing)?;
        if !is_last {
            return self.perform_on_stream(hearing);
        }
        if self.turn(hearing.sink, |client, turn| client.ended(turn)) {
            // Whether the connection could carry another request is not worth knowing: streams end rarely.
            return self.go_on(false, hearing);
        }
        Err(Cut::StreamEnded)
    }

    /// Sends what the protocol client wants to while a stream goes on.
    fn perform_on_stream<S>(&mut self, hearing: &mut Hearing<'_, S>) -> Result<(), Cut> {
        if !self.steps.is_empty() && self.perform(hearing.rng, hearing.out)?.is_some() {
            return Err(Refused::unexpected("a request on a connection that is a stream", "").into());
        }
        Ok(())
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let Some((recording, path)) = &self.recording else { return };
        let exchanges = recording.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = Vec::new();
        for exchange in exchanges.iter() {
            let written = serde_json::to_writer(&mut text, exchange).map_err(std::io::Error::from);
            // Into memory, so it cannot fail.
            let _ = written.and_then(|()| text.write_all(b"\n"));
        }
        // Whoever asked for the recording looks for the file.
        let _ = std::fs::write(path, text);
    }
}
