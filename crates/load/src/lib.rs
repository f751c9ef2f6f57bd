//! Virtual clients, pacing, recording: the load generator.
//!
//! From the outside in: [`threads`] starts what runs, [`clients`] is the event loop of them all, [`transport`] says what
//! each transport's heads, bodies and frames mean, [`connection`] what the bytes of a socket do and whose they are,
//! [`record`] accounts for every stamp, [`broadcasts`] for what a closed loop of them has under way. [`prober`] is the
//! ping client. Who starts all that, and when, is a crate above.

pub mod broadcasts;
pub mod clients;
pub mod connection;
pub mod cut;
pub mod dial;
pub mod prober;
pub mod reach;
mod receipts;
pub mod record;
pub mod run_state;
pub mod seconds;
pub mod socket;
pub mod threads;
pub mod tls;
pub mod transport;
