//! The event loop of virtual clients: one for all transports and scenarios.
//!
//! A client is a small state machine in one slab, what carries its streams in another: see [`crate::connection`]. All
//! clients of a loop share one read buffer; a connection holds bytes of its own only while a frame is incomplete or the
//! socket is full. Sockets are registered once, edge-triggered; a readable one costs one `read` and one clock reading,
//! however many deliveries it holds.

mod client;
mod compression;
mod config;
mod connecting;
mod cutting;
mod event_loop;
mod feeding;
mod hosts;
mod publishing;
mod receipt_sample;
mod receiving;
mod sending;

pub use config::{LoopConfig, polls};
pub(crate) use event_loop::run;
