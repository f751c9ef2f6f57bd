//! What carries bytes to one peer, below every transport.
//!
//! A [`Connection`] carries streams, each of which is one side of a client's. The loop's tokens name connections, a
//! connection knows whose its streams are, and clients hold streams: so one of either may end without the other.
//!
//! What a stream carries is HTTP, whatever the bytes are: clients put requests into [`Outgoing`] and hear heads, bodies
//! and upgrades as [`Incoming`]. A [`Protocol`] says how that is written and how many streams a connection has: one with
//! [`Http1`], as many as the peer allows with [`Http2`].

mod connections;
mod fields;
pub mod http1;
pub mod http2;
mod incoming;
mod outgoing;
mod owner;
mod protocol;
mod request;

pub use connections::{Connection, Connections};
pub use fields::Fields;
pub use http1::Http1;
pub use http2::Http2;
pub use incoming::{Head, Incoming};
pub use outgoing::Outgoing;
pub use owner::{Owner, Side, Stream};
pub use protocol::{Protocol, Received};
pub use request::Request;
