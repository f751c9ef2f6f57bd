//! One client's end of a transport.

use super::posts::Posts;
use super::{Event, Hearing, Requests, Sending};
use crate::connection::{Head, Outgoing};
use crate::cut::Cut;
use fastrand::Rng;
use pushlab_wire::websocket::permessage_deflate::Agreement;

/// When a client asks for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// Never: the server pushes.
    Never,
    /// As soon as the last answer has come.
    AtOnce,
    /// At an interval.
    AtInterval,
}

/// How a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uplink {
    /// WebSocket frames on the connection that receives.
    Frames,
    /// POST requests on a second connection, one at a time.
    Posts,
}

/// One client's end of a transport, without its socket.
pub trait Receiver: Sized + Send + 'static {
    /// When it asks.
    const ASKING: Asking;
    /// How it sends.
    const UPLINK: Uplink;
    /// Whether publications may be posted by a client that is not subscribed, as it has yet to be or was cut off: some
    /// dialects have nowhere to send them then.
    const POSTS_UNSUBSCRIBED: bool = true;

    /// A client that has never been connected.
    fn new() -> Self;

    /// Appends what is sent first on a new stream, a request; after an earlier one, resumes from the last cursor.
    fn open(&mut self, requests: &Requests, rng: &mut Rng, out: &mut Outgoing);

    /// Appends the next poll; `false`, and nothing, while one is unanswered or the transport never asks.
    fn poll(&mut self, _: &Requests, _: &mut Rng, _: &mut Outgoing) -> bool {
        false
    }

    /// Whether an answer leaves another question to be asked at once, though the client asks at an interval.
    fn has_further_question(&self, _: &Requests) -> bool {
        false
    }

    /// Whether a client that is subscribed stays so while the server has it open another connection: its place is kept
    /// by a session, and the next answer may be long in coming.
    fn stays_subscribed(&self) -> bool {
        false
    }

    /// Whether a question is unanswered that will be answered at once.
    fn is_waiting(&self) -> bool {
        false
    }

    /// Appends the text of a frame that carries `data`, a JSON text.
    fn encode_frame(&mut self, requests: &Requests, sending: Sending, data: &[u8], text: &mut Vec<u8>) {
        requests.encode_frame(text, sending, data);
    }

    /// Appends a POST that carries `data`, a JSON text.
    fn encode_post(&mut self, requests: &Requests, sending: Sending, data: &[u8], out: &mut Outgoing) {
        requests.encode_post(out, sending, data);
    }

    /// Whether the protocol client begins anew on a new receiving connection, so that nothing that was posted before
    /// belongs to it.
    fn begins_anew(&self) -> bool {
        false
    }

    /// Whether something that had to be posted was refused, so that the receiving connection is of no use.
    fn cannot_go_on(&self) -> bool {
        false
    }

    /// Whether the protocol client itself has something to post, which comes before anything else.
    fn has_own_post(&self) -> bool {
        false
    }

    /// Appends what it has to post.
    fn encode_own_post(&mut self, _: &mut Outgoing) {}

    /// Hears the head of an answer to a POST.
    ///
    /// # Errors
    /// When the stream cannot go on: see [`Cut`].
    fn post_head(&mut self, posts: &mut Posts, head: &Head<'_>) -> Result<(), Cut> {
        posts.head(head);
        Ok(())
    }

    /// Hears a piece of its body.
    ///
    /// # Errors
    /// As [`Self::post_head`].
    fn post_body<S: FnMut(Event<'_>)>(
        &mut self,
        posts: &mut Posts,
        data: &[u8],
        is_last: bool,
        hearing: &mut Hearing<'_, S>,
    ) -> Result<(), Cut> {
        posts.body(data, is_last, hearing)
    }

    /// Hears the head of an answer on the stream that receives.
    ///
    /// # Errors
    /// As [`Self::post_head`].
    fn head<S: FnMut(Event<'_>)>(&mut self, _: &Head<'_>, _: &mut Hearing<'_, S>) -> Result<(), Cut> {
        Err(Cut::Unasked)
    }

    /// Hears a piece of its body; it may be empty where it is the last.
    ///
    /// # Errors
    /// As [`Self::post_head`].
    fn body<S: FnMut(Event<'_>)>(&mut self, _: &[u8], _: bool, _: &mut Hearing<'_, S>) -> Result<(), Cut> {
        Err(Cut::Unasked)
    }

    /// Learns what the server agreed to when the stream was upgraded.
    fn agree(&mut self, _: Agreement) {}

    /// Longest text that may be compressed, as its frame goes out now, bytes; 0 where none may.
    fn compressed_bytes_max(&self) -> usize {
        0
    }

    /// Hears what an upgraded stream brings; the first time, perhaps nothing. Returns how many bytes it needs no more:
    /// the others come again, with more, so that any split gives the same events.
    ///
    /// # Errors
    /// As [`Self::post_head`].
    fn frames<S: FnMut(Event<'_>)>(&mut self, _: &mut [u8], _: &mut Hearing<'_, S>) -> Result<usize, Cut> {
        Err(Cut::Unasked)
    }
}

/// Something to do with a receiver's type, once it is known which.
pub trait ReceiverVisitor {
    /// What comes of it.
    type Output;
    /// Does it.
    fn visit<R: Receiver>(self) -> Self::Output;
}
