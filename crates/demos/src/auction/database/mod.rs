//! What the auction house asks of a database, and the three that can do it.
//!
//! The house's SQL is written once, in what all three understand: `?` for values, `BIGINT`, `VARCHAR` and `TEXT`, and
//! no numbers that the database gives out. What differs is how to connect, and here.

mod connection;
mod location;
mod mysql;
mod pool;
mod postgres;
mod sqlite;

pub use connection::{Connection, Failure, Row, Value};
pub use location::{BadLocation, Location};
pub use pool::{Lease, MAX_BACKOFF, Pool};
