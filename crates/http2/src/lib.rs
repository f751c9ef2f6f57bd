//! HTTP/2 (RFC 9113) without sockets or clock, for both sides of a connection: bytes and time in, events and bytes out.
//!
//! [`connection::Connection`] is the whole protocol. What has come is given to its `receive`, which returns one
//! [`event::Event`] at a time; what is to be sent stands in its `output` until the caller has sent it. What goes out on
//! a stream is bounded by the windows of flow control and by the room in the output; what the peer may make us hold or
//! do is bounded by [`limits::Limits`].

pub mod connection;
pub mod event;
pub mod frame;
mod head;
pub mod hpack;
pub mod limits;
mod settings;
mod streams;
