//! The order of publications, and history.
//!
//! A log gives each publication its offset and keeps the latest ones of each channel, so that a client that was away
//! gets what it missed. [`Log`] is what any log can do; [`MemoryLog`] keeps everything in memory, within [`Limits`]. It owns
//! no clock: whoever appends says when, in nanoseconds of its own clock.
//!
//! ```
//! use pushlab_log::{Limits, MemoryLog};
//! use pushlab_wire::channel::Channel;
//! use pushlab_wire::cursor::Epoch;
//!
//! let mut log = MemoryLog::new(Epoch::from_number(1), Limits::default());
//! let before = log.head();
//! log.append("news", "\"hello\"", None, 0)?;
//! let replay = log.read(&[Channel::parse("news")?], Some(before), 1024);
//! assert_eq!((replay.messages.len(), replay.gap), (1, None));
//! # Ok::<(), pushlab_wire::channel::BadChannel>(())
//! ```

mod account;
mod engine;
mod history;
mod memory;
mod publication;

pub use account::{Account, Charge};
pub use engine::{Entry, Log, Notify, Part, Replay, Settled, Ticket, Turn};
pub use history::Limits;
pub use memory::MemoryLog;
pub use publication::{Form, Publication, fitting};
