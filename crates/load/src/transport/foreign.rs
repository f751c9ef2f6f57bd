//! Clients of other people's servers: one driver for all dialects, which carries the requests and frames of a
//! [`ProtocolClient`] over the loop's connections.

use super::frames::{Frames, encode_text};
use super::headers::HeaderLines;
use super::posts::Posts;
use super::replies::ReplyReader;
use super::{Asking, Event, Hearing, MAX_MESSAGE_BYTES, Receiver, ReceiverVisitor, Requests, Sending, Uplink};
use crate::connection::{self, Head, Outgoing};
use crate::cut::Cut;
use fastrand::Rng;
use pushlab_dialects::recording::{RecordingClient, SharedRecording};
use pushlab_dialects::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Request, Step, Topic, Turn};
use pushlab_wire::event_stream::EventStreamDecoder;
use pushlab_wire::lines::LineDecoder;
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::Speaks;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::io::Write as _;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

/// What makes requests those of another dialect: the same for all clients of a loop.
#[derive(Debug)]
pub(super) struct ForeignSetup {
    pub authority: String,
    pub lines: HeaderLines,
    pub transport: Transport,
    pub speaks: Speaks,
    pub sending: Option<Sending>,
}

impl ForeignSetup {
    fn encode(&self, out: &mut Outgoing, request: &Request) {
        let lines = match (request.method.as_str(), request.answer) {
            ("GET", Answer::Events) => &self.lines.event_source,
            ("GET", _) => &self.lines.fetch,
            _ => &self.lines.post,
        };
        out.request(&connection::Request {
            method: &request.method,
            target: &[&request.target],
            authority: &self.authority,
            lines: &[lines, &request.headers],
            body: (request.method != "GET").then_some(request.body.as_bytes()),
        });
    }
}

/// When clients ask and how they send: what the loop must know when it is compiled.
pub trait Kind: Debug + Send + 'static {
    /// When they ask.
    const ASKING: Asking;
    /// How they send.
    const UPLINK: Uplink;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $asking:ident $uplink:ident;)*) => {
        $($(#[$doc])*
        #[derive(Debug)]
        pub struct $name;
        impl Kind for $name {
            const ASKING: Asking = Asking::$asking;
            const UPLINK: Uplink = Uplink::$uplink;
        })*
    };
}

kinds! {
    /// A WebSocket, both ways.
    TwoWay Never Frames;
    /// The server pushes, and clients post.
    Pushed Never Posts;
    /// Long polling.
    Held AtOnce Posts;
    /// Polling.
    Asked AtInterval Posts;
}

/// The row of the table of transports for a dialect.
pub(super) fn with_receiver<V: ReceiverVisitor>(transport: Transport, speaks: &Speaks, visitor: V) -> V::Output {
    match transport {
        Transport::LongPolling => visitor.visit::<Foreign<Held>>(),
        Transport::Polling | Transport::WebSocketPolling => visitor.visit::<Foreign<Asked>>(),
        _ if speaks.dialect.publishes_in_frames(transport, &speaks.how) => visitor.visit::<Foreign<TwoWay>>(),
        _ => visitor.visit::<Foreign<Pushed>>(),
    }
}

/// One client's end.
#[derive(Debug)]
pub struct Foreign<K> {
    /// Nothing before the first connection.
    state: Option<Box<State>>,
    kind: PhantomData<K>,
}

#[derive(Debug)]
struct State {
    protocol_client: Box<dyn ProtocolClient>,
    recording: Option<(SharedRecording, PathBuf)>,
    setup: Arc<ForeignSetup>,
    topic: Topic,
    mode: Mode,
    /// What is asked on the next connection, where the server has closed the last one between two requests.
    pending: Option<Request>,
    /// What the protocol client itself has to post, until it is answered.
    own_posts: VecDeque<Request>,
    /// Whether the POST under way is the first of those.
    is_own_post_out: bool,
    /// Whether the request under way on the receiving connection, and the POST under way, are the last of theirs.
    is_last: bool,
    is_last_post: bool,
    is_subscribed: bool,
    /// Whether what the protocol client itself had to post was refused.
    is_broken: bool,
    /// Whether a connection was opened for a protocol client that goes on: it is subscribed though it does not say so.
    has_resumed: bool,
    headers: Vec<(&'static str, String)>,
    up_headers: Vec<(&'static str, String)>,
    steps: Vec<Step>,
}

/// What the receiving connection carries.
#[derive(Debug)]
enum Mode {
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

fn wanted(wanted: &'static [&'static str], head: &Head<'_>) -> Vec<(&'static str, String)> {
    let all = wanted.iter().flat_map(|&name| head.headers(name).map(move |value| (name, value.to_owned())));
    all.collect()
}

fn text_of(bytes: &[u8]) -> Result<&str, Cut> {
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
        Notice::Echo(text) => sink(Event::Echo(text.as_bytes())),
        Notice::Gap => sink(Event::Gap),
        Notice::Complaint(text) => sink(Event::Error { code: "complaint", text }),
    }
}

impl State {
    fn new(setup: &Arc<ForeignSetup>, client: u32) -> Self {
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

    fn set_topic(&mut self, requests: &Requests) {
        let ForeignSetup { transport, speaks, sending, .. } = &*self.setup;
        self.topic = Topic {
            transport: Some(*transport),
            path: speaks.path.clone(),
            how: speaks.how.clone(),
            channels: requests.channels(),
            publish_to: requests.publish_to.clone(),
            sending: *sending,
            wait_s: requests.poll_wait_s,
            // Not of the run's seed: a server may still know the sessions of the run before.
            random: fastrand::u64(..),
        };
    }

    fn publication(&mut self, requests: &Requests, sending: Sending, data: &str) -> Step {
        if self.topic.publish_to != requests.publish_to {
            self.topic.publish_to.clone_from(&requests.publish_to);
        }
        self.protocol_client.publish(sending, data, &self.topic)
    }

    /// Calls the protocol client; what it wants to send waits in `steps`.
    fn turn<T>(
        &mut self,
        sink: &mut impl FnMut(Event<'_>),
        act: impl FnOnce(&mut dyn ProtocolClient, &mut Turn<'_>) -> T,
    ) -> T {
        let Self { protocol_client, topic, steps, is_subscribed, .. } = self;
        act(&mut **protocol_client, &mut Turn::new(topic, steps, &mut notice_sink(is_subscribed, sink)))
    }

    /// Sends a request on the receiving connection.
    fn ask(&mut self, request: &Request, rng: &mut Rng, out: &mut Outgoing) {
        self.is_last = request.is_last();
        let ForeignSetup { authority, lines, .. } = &*self.setup;
        if request.answer == Answer::WebSocket {
            let mut frames = Frames::default();
            let lines = [&lines.websocket, request.headers.as_str()].concat();
            frames.open_with(authority, &request.target, &lines, rng, out);
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
    fn perform(&mut self, rng: &mut Rng, out: &mut Outgoing) -> Result<Option<Request>, Cut> {
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

    fn hear_answer<S: FnMut(Event<'_>)>(
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

    #[inline]
    fn hear_frames<S: FnMut(Event<'_>)>(
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

    fn hear_head<S: FnMut(Event<'_>)>(&mut self, head: &Head<'_>, hearing: &mut Hearing<'_, S>) -> Result<(), Cut> {
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

    fn hear_stream<S: FnMut(Event<'_>)>(
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

impl<K: Kind> Receiver for Foreign<K> {
    const ASKING: Asking = K::ASKING;
    const UPLINK: Uplink = K::UPLINK;
    const POSTS_UNSUBSCRIBED: bool = false;

    fn new() -> Self {
        Self { state: None, kind: PhantomData }
    }

    fn open(&mut self, requests: &Requests, rng: &mut Rng, out: &mut Outgoing) {
        let Some(setup) = &requests.foreign else { return };
        let state = self.state.get_or_insert_with(|| Box::new(State::new(setup, requests.client)));
        state.mode = Mode::Free;
        if let Some(request) = state.pending.take() {
            state.has_resumed = true;
            return state.ask(&request, rng, out);
        }
        state.set_topic(requests);
        state.own_posts.clear();
        (state.is_subscribed, state.is_broken, state.has_resumed, state.is_own_post_out) = (false, false, false, false);
        // A way that the dialect does not have is refused before a run begins: see `roles`.
        let _ = state.turn(&mut |_| (), |client, turn| client.open(turn));
        if let Ok(Some(request)) = state.perform(rng, out) {
            state.ask(&request, rng, out);
        }
    }

    fn poll(&mut self, _: &Requests, rng: &mut Rng, out: &mut Outgoing) -> bool {
        let Some(state) = &mut self.state else { return false };
        if !state.is_subscribed || state.pending.is_some() || !matches!(state.mode, Mode::Free) {
            return false;
        }
        state.turn(&mut |_| (), |client, turn| client.poll(turn));
        match state.perform(rng, out) {
            Ok(Some(request)) => {
                state.ask(&request, rng, out);
                true
            }
            _ => false,
        }
    }

    fn stays_subscribed(&self) -> bool {
        self.state.as_deref().is_some_and(|state| state.pending.is_some())
    }

    fn is_waiting(&self) -> bool {
        let is_asked = |state: &State| matches!(state.mode, Mode::Asked(_));
        K::ASKING == Asking::AtInterval && self.state.as_deref().is_some_and(is_asked)
    }

    fn encode_frame(&mut self, requests: &Requests, sending: Sending, data: &[u8], text: &mut Vec<u8>) {
        if let (Some(state), Ok(data)) = (&mut self.state, std::str::from_utf8(data))
            && let Step::Frame(frame) = state.publication(requests, sending, data)
        {
            text.extend_from_slice(frame.as_bytes());
        }
    }

    fn encode_post(&mut self, requests: &Requests, sending: Sending, data: &[u8], out: &mut Outgoing) {
        let (Some(state), Ok(data)) = (&mut self.state, std::str::from_utf8(data)) else { return };
        let Step::Ask(_, request) = state.publication(requests, sending, data) else { return };
        state.setup.encode(out, &request);
        (state.is_own_post_out, state.is_last_post) = (false, request.is_last());
    }

    fn begins_anew(&self) -> bool {
        self.state.as_deref().is_some_and(|state| state.pending.is_none())
    }

    fn cannot_go_on(&self) -> bool {
        self.state.as_deref().is_some_and(|state| state.is_broken)
    }

    fn has_own_post(&self) -> bool {
        self.state.as_deref().is_some_and(|state| !state.own_posts.is_empty())
    }

    fn encode_own_post(&mut self, out: &mut Outgoing) {
        let Some(State { own_posts, setup, is_own_post_out, is_last_post, .. }) = self.state.as_deref_mut() else {
            return;
        };
        let Some(request) = own_posts.front() else { return };
        (*is_own_post_out, *is_last_post) = (true, request.is_last());
        setup.encode(out, request);
    }

    fn post_head(&mut self, posts: &mut Posts, head: &Head<'_>) -> Result<(), Cut> {
        let Some(state) = &mut self.state else { return Err(Cut::Unasked) };
        posts.head(head);
        state.up_headers = wanted(state.setup.speaks.dialect.wanted_headers(), head);
        Ok(())
    }

    fn post_body<S: FnMut(Event<'_>)>(
        &mut self,
        posts: &mut Posts,
        data: &[u8],
        is_last: bool,
        hearing: &mut Hearing<'_, S>,
    ) -> Result<(), Cut> {
        let Some(state) = &mut self.state else { return Err(Cut::Unasked) };
        if !posts.is_waiting() {
            return Err(Cut::Unasked);
        }
        let Some(reply) = posts.reader.body(data, is_last)? else { return Ok(()) };
        posts.has_come();
        let was_own = std::mem::take(&mut state.is_own_post_out);
        if was_own {
            state.own_posts.pop_front();
        }
        *hearing.texts += reply.body.len() as u64;
        let body = text_of(&reply.body)?;
        let headers = std::mem::take(&mut state.up_headers);
        let reply_of = Reply { status: reply.status, headers: &headers, body };
        let handled = state.turn(hearing.sink, |client, turn| client.reply(Over::Up, &reply_of, turn));
        state.is_broken |= was_own && handled.is_err();
        handled?;
        let mut others = Outgoing::default();
        let asked = state.perform(&mut Rng::with_seed(0), &mut others)?;
        if asked.is_some() || !others.is_empty() {
            return Err(Refused::unexpected("something on the receiving connection after a POST", "").into());
        }
        (hearing.sink)(Event::Answered { keeps_alive: reply.keeps_alive && !state.is_last_post });
        Ok(())
    }

    fn head<S: FnMut(Event<'_>)>(&mut self, head: &Head<'_>, hearing: &mut Hearing<'_, S>) -> Result<(), Cut> {
        self.state.as_deref_mut().ok_or(Cut::Unasked)?.hear_head(head, hearing)
    }

    fn body<S: FnMut(Event<'_>)>(
        &mut self,
        data: &[u8],
        is_last: bool,
        hearing: &mut Hearing<'_, S>,
    ) -> Result<(), Cut> {
        let state = self.state.as_deref_mut().ok_or(Cut::Unasked)?;
        match state.mode {
            Mode::Asked(_) => state.hear_answer(data, is_last, hearing),
            _ => state.hear_stream(data, is_last, hearing),
        }
    }

    #[inline]
    fn frames<S: FnMut(Event<'_>)>(&mut self, bytes: &mut [u8], hearing: &mut Hearing<'_, S>) -> Result<usize, Cut> {
        self.state.as_deref_mut().ok_or(Cut::Unasked)?.hear_frames(bytes, hearing)
    }
}
