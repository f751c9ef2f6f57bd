//! The fleet of a run: workers, what each hosts, and who leads them.
//!
//! A worker reads a [`Plan`](pushlab_workload::plan::Plan), runs its part of it and says what it measured:
//!
//! ```no_run
//! // What `pushlab worker` does: orders on standard input, messages on standard output.
//! use pushlab_fleet::worker::{Allowed, serve};
//!
//! let is_done = serve(std::io::stdin(), std::io::stdout(), None, Allowed::default())?;
//! # let _ = is_done;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! From the outside in: a [`Load`] leads a [`Fleet`] through a run, a [`worker`] hosts its segment of the clients and of
//! the instruments, [`backend`] is the source of a feed, and [`browser`] has clients live in a real browser.

pub mod backend;
pub mod browser;
pub mod clock;
pub mod lines;
mod load;
mod threads;
pub mod worker;

pub use load::{Division, Fleet, Load};
pub use threads::{RunError, Threads};
