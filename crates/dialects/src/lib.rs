//! What foreign servers speak: one file for each dialect, none of which knows a socket, a clock or HTTP's framing.
//!
//! A [`ProtocolClient`] is one client's end of a dialect. It is told what happened ([`ProtocolClient::open`], `opened`,
//! `reply`, `text`, `ended`, `poll`) and answers through a [`Turn`]: requests and frames to send, and [`Notice`]s. The
//! load carries requests and frames over two connections, one that receives and one that posts.
//!
//! A new dialect is one file here and one row in [`Dialect`].
//!
//! ```
//! use pushlab_dialects::{Dialect, Over, Request, Step, Topic, Turn};
//! use pushlab_wire::transport::Transport;
//!
//! let topic = Topic { transport: Some(Transport::Sse), channels: vec!["news".to_owned()], ..Topic::default() };
//! let mut steps = Vec::new();
//! let mut client = Dialect::Bare.protocol_client();
//! client.open(&mut Turn::new(&topic, &mut steps, &mut |notice| println!("{notice:?}")))?;
//! let [Step::Ask(Over::Down, Request { method, target, .. })] = &*steps else { panic!() };
//! assert_eq!((method.as_str(), target.as_str()), ("GET", "/sse?channel=news"));
//! # Ok::<_, pushlab_dialects::Refused>(())
//! ```

pub mod atmosphere;
pub mod bare;
pub mod bayeux;
pub mod centrifugo;
mod client;
pub mod ddp;
mod dialect;
mod joining;
pub mod mercure;
pub mod nchan;
pub mod primus;
pub mod recording;
pub mod sails;
#[cfg(test)]
mod script;
pub mod signalr;
pub mod socketio;
pub mod socketio_0_9;
pub mod sockjs;
pub mod verbs;

pub use client::{Answer, Incoming, Notice, Over, ProtocolClient, Refused, Reply, Request, Sending, Step, Topic, Turn};
pub use dialect::Dialect;
