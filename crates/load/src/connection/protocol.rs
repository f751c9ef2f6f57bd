//! What runs on a socket.

use super::{Incoming, Outgoing, Owner};
use crate::cut::Cut;
use std::fmt::Debug;

/// What runs on a socket: how many streams there are, and what the bytes mean. Without the socket.
pub trait Protocol: Debug + Default + Send + 'static {
    /// Whether a connection carries several streams together.
    const IS_SHARED: bool;
    /// The owners of a connection's streams, however many.
    type Owners: IntoIterator<Item = Owner>;

    /// What its streams' owners put together, in the form that it sends.
    fn outgoing() -> Outgoing {
        Outgoing::default()
    }

    /// Opens a stream; `None` if there is room for no other. A new connection has room for one.
    fn open(&mut self, owner: Owner) -> Option<u32>;

    /// Whether there is room for another stream.
    fn has_room(&self) -> bool;

    /// Whose its streams are.
    fn owners(&self) -> Self::Owners;

    /// Ends a stream, whose last answer has come whole or not, and appends what the peer is to be told. Returns whether
    /// the connection is of further use.
    fn close(&mut self, number: u32, is_whole: bool, out: &mut Outgoing) -> bool;

    /// Makes what a stream's owner says what the socket is to carry, and notes what will be answered.
    fn has_sent(&mut self, number: u32, out: &mut Outgoing);

    /// Whether a stream could not send all that its owner said: the rest waits, as more would.
    fn is_blocked(&self, _: u32) -> bool {
        false
    }

    /// Whether the peer takes no further streams: those that are open go on.
    fn is_leaving(&self) -> bool {
        false
    }

    /// Appends what the connection itself has to tell the peer, or what had waited and now can be sent.
    fn speak(&mut self, _: &mut Outgoing) {}

    /// Reads from the front of `input` what belongs to one stream, and says whose it is and what it means. The caller
    /// brings what is not done with again, with what comes next.
    ///
    /// # Errors
    /// When the connection cannot go on, with all of its streams.
    fn receive(&mut self, input: &mut [u8], incoming: &mut impl Incoming) -> Result<Received, Cut>;
}

/// What one call of [`Protocol::receive`] came to.
#[derive(Debug)]
pub struct Received {
    /// Bytes that are done with.
    pub consumed: usize,
    /// Whose stream it was; nobody's, where that has ended, or what came was the connection's own.
    pub owner: Option<Owner>,
    /// Why that stream cannot go on, if it cannot.
    pub ended: Option<Cut>,
    /// Whether that stream was blocked, and no longer is.
    pub is_freed: bool,
    /// Whether the rest may mean something already.
    pub has_more: bool,
}
