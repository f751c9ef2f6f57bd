//! The server's side of the protocol, without sockets or clock.
//!
//! A connection carries bytes; this crate knows what they mean. An [`Exchange`](exchange::Exchange) is one request and
//! its answer: bytes, time and answers go in, an [`Effect`](effect::Effect) comes out. A
//! [`Subscriber`](subscriber::Subscriber) receives publications; the owner of its connection writes what it is offered.
//! The [`Gate`](gate::Gate) decides who may do what.
//!
//! ```
//! use pushlab_session::framing::Framing;
//! use pushlab_session::batch::Batch;
//! use pushlab_session::subscriber::Subscriber;
//! # use pushlab_log::{Limits, MemoryLog};
//! # use pushlab_wire::cursor::Epoch;
//!
//! let mut log = MemoryLog::new(Epoch::from_number(1), Limits::default());
//! let turn = [log.append("news", "\"hello\"", None, 0)?];
//! let mut batch = Batch::default();
//! batch.fill(&turn, Framing::WebSocket { is_compressed: false });
//! let mut subscriber = Subscriber::default();
//! let first = subscriber.offer(&turn).expect("it has seen nothing yet");
//! let written = batch.bytes.len(); // The socket took all of it.
//! assert_eq!(batch.progress(first, written).deliveries, 1);
//! # Ok::<(), pushlab_wire::channel::BadChannel>(())
//! ```

pub mod answer;
pub mod batch;
pub mod channels;
pub mod effect;
pub mod exchange;
#[cfg(test)]
mod fixtures;
pub mod framing;
pub mod gate;
pub mod groups;
mod incoming;
pub mod missed;
pub mod pass;
pub mod queue;
pub mod reply;
pub mod request;
pub mod rules;
pub mod site;
pub mod spread;
mod standing;
pub mod subscriber;
pub mod unsent;
pub mod wheel;
