//! Virtual clients, pacing, recording: the load generator.
//!
//! A worker reads a [`Plan`](pushlab_workload::plan::Plan), runs it and says what it measured:
//!
//! ```no_run
//! // What `pushlab worker` does: a plan on standard input, events and the result on standard output.
//! let is_done = pushlab_load::worker::serve(std::io::stdin(), std::io::stdout())?;
//! # let _ = is_done;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! From the outside in: [`fleet`] starts workers, a [`worker`] hosts its part of the clients, [`clients`] is the event
//! loop of them all, [`transport`] says what each transport's heads, bodies and frames mean, [`connection`] what the bytes
//! of a socket do and whose they are, [`record`] accounts for every stamp, [`broadcasts`] for what a closed loop of them
//! has under way. [`browser`] has clients live in a real browser instead. [`prober`] and [`backend`] are the ping client
//! and the source of a feed.

pub mod backend;
pub mod broadcasts;
pub mod browser;
pub mod clients;
pub mod connection;
pub mod cut;
pub mod dial;
pub mod fleet;
pub mod prober;
pub mod record;
pub mod run_state;
pub mod seconds;
pub mod socket;
pub mod tally;
pub mod tls;
pub mod transport;
pub mod worker;
