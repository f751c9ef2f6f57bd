//! What carries bytes to one peer, below every transport.
//!
//! A [`Connection`] carries streams, each of which is one side of a client's. The loop's tokens name connections, a
//! connection knows whose its streams are, and clients hold streams: so one of either may end without the other.

mod connections;
mod owner;

pub use connections::{Connection, Connections};
pub use owner::{Owner, Side, Stream};
