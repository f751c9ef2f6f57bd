//! What is seen of a server while a run goes on: its processes' CPU time, memory and sockets ([`sample`]), its own counters
//! ([`CounterWatch`]), and its machine ([`MachineWatch`]).
//!
//! A lab reads all that itself of a server on its own machine. Beside one on another machine, an agent does, for whose
//! process of a run this is everything:
//!
//! ```no_run
//! use pushlab_watch::agent::{Beside, serve};
//!
//! // Orders on standard input, reports on standard output.
//! let is_done = serve(std::io::stdin(), std::io::stdout(), None, Beside::default())?;
//! # let _ = is_done;
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod agent;
mod counters;
mod machine;
mod sampling;

pub use counters::{CounterReader, CounterWatch};
pub use machine::MachineWatch;
pub use sampling::{LatestUsage, Phases, SAMPLE_INTERVAL, Usage, Watched, sample};
