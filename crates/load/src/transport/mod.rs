//! How a virtual client receives: one file for each transport, none of which knows a socket or a clock.
//!
//! A [`Receiver`] turns heads, bodies and frames into [`Event`]s and says what to send; what carries them is below, in
//! [`crate::connection`], and the loop that owns the connections is the same for all. A new transport is one file here
//! and one row in [`with_receiver`].

mod events;
pub mod foreign;
pub mod frames;
mod headers;
pub mod http_streaming;
pub mod long_polling;
pub mod planned;
pub mod polling;
pub mod posts;
mod receiver;
pub mod replies;
pub mod requests;
pub mod sse;
mod table;
pub mod websocket;
pub mod websocket_polling;

pub use events::{Event, Hearing, MAX_MESSAGE_BYTES};
pub use pushlab_dialects::Sending;
pub use receiver::{Asking, Receiver, ReceiverVisitor, Uplink};
pub use requests::Requests;
pub use table::with_receiver;

#[cfg(test)]
mod examples;
#[cfg(test)]
pub(crate) mod script;
