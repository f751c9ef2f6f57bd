//! How a prober asks: in frames, by POSTs one behind the other, or by POSTs side by side.

use crate::connection::{Head, Outgoing};
use crate::cut::Cut;
use crate::transport::frames::encode_text;
use crate::transport::posts::Posts;
use crate::transport::{Event, Hearing, Receiver, Requests, Sending};
use fastrand::Rng;
use pushlab_wire::stamp::{MAX_SOURCE, Stamp};

/// How a prober asks.
pub trait EchoPath: Send + 'static {
    /// Whether each ping has a stream of its own.
    const HAS_STREAMS: bool = false;

    /// A path that was never connected.
    fn new() -> Self;
    /// Appends what is sent first on a new connection.
    fn open(&mut self, requests: &Requests, rng: &mut Rng, out: &mut Outgoing);
    /// Whether another ping may be sent now, on a connection that stands.
    fn is_free(&self) -> bool;
    /// The place that the next ping takes among those under way, where each has a stream of its own.
    fn place(&self) -> usize {
        0
    }
    /// Notes that the stream of this number was opened for it.
    fn has_opened(&mut self, _: u32) {}
    /// A stream whose ping was answered, to be closed.
    fn take_answered(&mut self) -> Option<u32> {
        None
    }
    /// Whether the connection has carried all that it is to carry.
    fn is_done(&self) -> bool {
        false
    }
    /// What follows is on the stream of this place.
    fn turn_to(&mut self, _: usize) {}
    /// Appends a ping.
    fn encode(&mut self, requests: &Requests, rng: &mut Rng, data: &[u8], out: &mut Outgoing);
    /// Hears the head of an answer.
    ///
    /// # Errors
    /// When the connection cannot go on.
    fn head<S: FnMut(&[u8])>(&mut self, _: &Head<'_>, _: Hearing<'_, S>) -> Result<(), Cut> {
        Err(Cut::Unasked)
    }
    /// Hears a piece of its body; who is told is given the data of echoes.
    ///
    /// # Errors
    /// As [`Self::head`].
    fn body<S: FnMut(&[u8])>(&mut self, _: &[u8], _: bool, _: Hearing<'_, S>) -> Result<(), Cut> {
        Err(Cut::Unasked)
    }
    /// Hears frames; returns the bytes that are done with.
    ///
    /// # Errors
    /// As [`Self::head`].
    fn frames<S: FnMut(&[u8])>(&mut self, _: &mut [u8], _: Hearing<'_, S>) -> Result<usize, Cut> {
        Err(Cut::Unasked)
    }
}

/// Echo frames on a WebSocket: many may be outstanding. Some dialects ask for a session first, on the same connection.
#[derive(Debug)]
pub struct OverFrames<R> {
    receiver: R,
    is_subscribed: bool,
    text: Vec<u8>,
}

impl<R: Receiver> EchoPath for OverFrames<R> {
    fn new() -> Self {
        Self { receiver: R::new(), is_subscribed: false, text: Vec::new() }
    }

    fn open(&mut self, requests: &Requests, rng: &mut Rng, out: &mut Outgoing) {
        *self = Self::new();
        self.receiver.open(requests, rng, out);
    }

    fn is_free(&self) -> bool {
        self.is_subscribed
    }

    fn encode(&mut self, requests: &Requests, rng: &mut Rng, data: &[u8], out: &mut Outgoing) {
        self.text.clear();
        self.receiver.encode_frame(requests, Sending::Echo, data, &mut self.text);
        encode_text(out, &self.text, rng);
    }

    fn head<S: FnMut(&[u8])>(&mut self, head: &Head<'_>, hearing: Hearing<'_, S>) -> Result<(), Cut> {
        let Self { receiver, is_subscribed, .. } = self;
        let Hearing { rng, inflater, out, texts, sink } = hearing;
        let sink = &mut echoes(is_subscribed, sink);
        receiver.head(head, &mut Hearing { rng, inflater, out, texts, sink })
    }

    fn body<S: FnMut(&[u8])>(&mut self, data: &[u8], is_last: bool, hearing: Hearing<'_, S>) -> Result<(), Cut> {
        let Self { receiver, is_subscribed, .. } = self;
        let Hearing { rng, inflater, out, texts, sink } = hearing;
        let sink = &mut echoes(is_subscribed, sink);
        receiver.body(data, is_last, &mut Hearing { rng, inflater, out, texts, sink })
    }

    fn frames<S: FnMut(&[u8])>(&mut self, bytes: &mut [u8], hearing: Hearing<'_, S>) -> Result<usize, Cut> {
        let Self { receiver, is_subscribed, .. } = self;
        let Hearing { rng, inflater, out, texts, sink } = hearing;
        let sink = &mut echoes(is_subscribed, sink);
        receiver.frames(bytes, &mut Hearing { rng, inflater, out, texts, sink })
    }
}

/// Passes on the data of echoes, and of pings that come back as messages; notes that the client is subscribed.
fn echoes<'s>(is_subscribed: &'s mut bool, sink: &'s mut impl FnMut(&[u8])) -> impl FnMut(Event<'_>) {
    move |event| match event {
        Event::Subscribed => *is_subscribed = true,
        Event::Echo(data) => sink(data),
        // A subscribed prober receives what clients publish, too.
        Event::Message(data) if Stamp::find(data).is_some_and(|stamp| stamp.source == MAX_SOURCE) => sink(data),
        _ => {}
    }
}

/// Most POST requests under way at once; further ones wait, and their waiting counts.
pub(super) const MAX_POSTS: u32 = 64;

/// POST requests on a kept connection, answered in their order; or a single one, where connections are not kept alive.
#[derive(Debug)]
pub struct OverPosts {
    posts: Posts,
    pub(super) under_way: u32,
    keeps_alive: bool,
    is_done: bool,
}

impl EchoPath for OverPosts {
    fn new() -> Self {
        Self { posts: Posts::default(), under_way: 0, keeps_alive: true, is_done: false }
    }

    fn open(&mut self, requests: &Requests, _: &mut Rng, _: &mut Outgoing) {
        *self = Self { keeps_alive: requests.keep_alive(), ..Self::new() };
    }

    fn is_free(&self) -> bool {
        self.under_way < if self.keeps_alive { MAX_POSTS } else { 1 }
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn encode(&mut self, requests: &Requests, _: &mut Rng, data: &[u8], out: &mut Outgoing) {
        requests.encode_post(out, Sending::Echo, data);
        if self.under_way == 0 {
            self.posts.has_sent(Sending::Echo);
        }
        self.under_way += 1;
    }

    fn head<S: FnMut(&[u8])>(&mut self, head: &Head<'_>, _: Hearing<'_, S>) -> Result<(), Cut> {
        self.posts.head(head);
        Ok(())
    }

    fn body<S: FnMut(&[u8])>(&mut self, data: &[u8], is_last: bool, hearing: Hearing<'_, S>) -> Result<(), Cut> {
        let (mut is_answered, mut is_closing) = (false, false);
        let Hearing { rng, inflater, out, texts, sink } = hearing;
        let sink = &mut |event: Event<'_>| match event {
            Event::Echo(data) => sink(data),
            Event::Answered { keeps_alive } => (is_answered, is_closing) = (true, !keeps_alive),
            _ => {}
        };
        self.posts.body(data, is_last, &mut Hearing { rng, inflater, out, texts, sink })?;
        if is_closing && self.keeps_alive {
            return Err(Cut::Closed);
        }
        self.is_done |= is_answered && !self.keeps_alive;
        if is_answered {
            self.under_way -= 1;
            if self.under_way > 0 {
                self.posts.has_sent(Sending::Echo);
            }
        }
        Ok(())
    }
}

/// POST requests, each on a stream of its own: answers come in any order.
#[derive(Debug)]
pub struct OverStreams {
    /// The streams that are open, and what is asked there.
    asked: [Option<(u32, Posts)>; MAX_POSTS as usize],
    turn: usize,
    answered: Option<u32>,
}

impl EchoPath for OverStreams {
    const HAS_STREAMS: bool = true;

    fn new() -> Self {
        Self { asked: [const { None }; MAX_POSTS as usize], turn: 0, answered: None }
    }

    fn open(&mut self, _: &Requests, _: &mut Rng, _: &mut Outgoing) {
        *self = Self::new();
    }

    fn is_free(&self) -> bool {
        self.place() < self.asked.len()
    }

    fn place(&self) -> usize {
        self.asked.iter().position(Option::is_none).unwrap_or(self.asked.len())
    }

    fn has_opened(&mut self, number: u32) {
        let place = self.place();
        let mut posts = Posts::default();
        posts.has_sent(Sending::Echo);
        self.asked[place] = Some((number, posts));
    }

    fn take_answered(&mut self) -> Option<u32> {
        self.answered.take()
    }

    fn turn_to(&mut self, place: usize) {
        self.turn = place;
    }

    fn encode(&mut self, requests: &Requests, _: &mut Rng, data: &[u8], out: &mut Outgoing) {
        requests.encode_post(out, Sending::Echo, data);
    }

    fn head<S: FnMut(&[u8])>(&mut self, head: &Head<'_>, _: Hearing<'_, S>) -> Result<(), Cut> {
        let Some((_, posts)) = &mut self.asked[self.turn] else { return Err(Cut::Unasked) };
        posts.head(head);
        Ok(())
    }

    fn body<S: FnMut(&[u8])>(&mut self, data: &[u8], is_last: bool, hearing: Hearing<'_, S>) -> Result<(), Cut> {
        let Some((number, posts)) = &mut self.asked[self.turn] else { return Err(Cut::Unasked) };
        let Hearing { rng, inflater, out, texts, sink } = hearing;
        let mut is_answered = false;
        let sink = &mut |event: Event<'_>| match event {
            Event::Echo(data) => sink(data),
            Event::Answered { .. } => is_answered = true,
            _ => {}
        };
        posts.body(data, is_last, &mut Hearing { rng, inflater, out, texts, sink })?;
        if is_answered {
            self.answered = Some(*number);
            self.asked[self.turn] = None;
        }
        Ok(())
    }
}
