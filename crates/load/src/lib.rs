//! Virtual clients, pacing, recording: the load generator.
//!
//! A worker reads a [`plan::Plan`], runs it and answers with a [`plan::WorkerResult`]:
//!
//! ```no_run
//! // What `pushlab worker` does: a plan on standard input, events and the result on standard output.
//! let is_done = pushlab_load::worker::serve(std::io::stdin(), std::io::stdout())?;
//! # let _ = is_done;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! From the outside in: [`worker`] goes through the phases, [`clients`] is the event loop of all virtual clients,
//! [`transport`] says what the bytes of each transport mean, [`record`] and [`check`] account for every stamp,
//! [`pacing`] says when what is due, [`shape`] how that changes, [`rooms`] who is where, [`broadcasts`] what a closed loop
//! of them has under way. [`browser`] has clients live in a real browser instead. [`prober`] and [`backend`] are the ping client and the source of a feed.

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
