//! Clients of other people's servers: one driver for all dialects, which carries the requests and frames of a
//! [`ProtocolClient`](pushlab_dialects::ProtocolClient) over the loop's connections.

mod kinds;
pub(super) mod setup;
mod state;

use super::posts::Posts;
use super::{Asking, Event, Hearing, Receiver, ReceiverVisitor, Requests, Sending, Uplink};
use crate::connection::{Head, Outgoing};
use crate::cut::Cut;
use fastrand::Rng;
pub use kinds::{Asked, Held, Kind, Pushed, TwoWay};
use pushlab_dialects::{Over, Refused, Reply, Step};
use pushlab_wire::transport::Transport;
use pushlab_wire::websocket::permessage_deflate::Agreement;
use pushlab_workload::plan::Speaks;
use state::{Mode, State, text_of, wanted};
use std::marker::PhantomData;

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
        if !state.is_subscribed || !matches!(state.mode, Mode::Free) {
            return false;
        }
        // Thought of when the connection of the last answer ended.
        if let Some(request) = state.pending.take() {
            state.ask(&request, rng, out);
            return true;
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
        let Some(reply) = posts.answer(data, is_last)? else { return Ok(()) };
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

    fn agree(&mut self, agreement: Agreement) {
        if let Some(Mode::Socket(frames, _)) = self.state.as_deref_mut().map(|state| &mut state.mode) {
            frames.agree(agreement);
        }
    }

    fn compressed_bytes_max(&self) -> usize {
        match self.state.as_deref().map(|state| &state.mode) {
            Some(Mode::Socket(frames, _)) => frames.compressed_bytes_max(),
            _ => 0,
        }
    }

    #[inline]
    fn frames<S: FnMut(Event<'_>)>(&mut self, bytes: &mut [u8], hearing: &mut Hearing<'_, S>) -> Result<usize, Cut> {
        self.state.as_deref_mut().ok_or(Cut::Unasked)?.hear_frames(bytes, hearing)
    }
}
