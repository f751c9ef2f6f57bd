//! What the operating system says about a process tree: CPU, memory, descriptors, sockets, loopback traffic. And what
//! the runtime of a server says of itself ([`runtime_log`], [`paused`]).
//!
//! Linux only; reads `/proc`, `/sys` and the kernel's socket diagnostics directly and starts no program. What every
//! sample reads costs 50 to 70 µs for a single process; at 50 ms that is 0.15 % of a core. Readers that cost more run
//! less often: each is held to a share of wall time ([`ProbeConfig::budget`]) and says what it cost
//! ([`Probe::costs`]).
//!
//! ```
//! use pushlab_os::clock::monotonic_ns;
//! use pushlab_probe::{Probe, ProbeConfig};
//!
//! let mut probe = Probe::new(std::process::id(), ProbeConfig::default())?;
//! let sample = probe.sample(monotonic_ns())?;
//! assert!(sample.processes >= 1 && sample.rss_bytes > 0);
//! # Ok::<(), pushlab_probe::ProbeError>(())
//! ```
//!
//! [`machine`] reads the facts of the machine itself, and says which of them would spoil a measurement.

#![cfg(target_os = "linux")]

mod budget;
mod cpu;
mod descriptors;
mod error;
mod listeners;
pub mod machine;
mod machine_load;
pub mod paused;
mod probe;
mod process;
mod procfs;
pub mod runtime_log;
mod sample;
mod sampler;
mod sock_diag;
mod switches;
mod tree;

#[cfg(test)]
mod own_table;

/// A thread's copy of the descriptor table keeps open what another test closes, so the tests that copy the table take turns
/// with each other and with the one that looks for a listener that it has closed.
#[cfg(test)]
static DESCRIPTOR_TABLE: std::sync::Mutex<()> = std::sync::Mutex::new(());

pub use budget::{Reader, ReaderCost};
pub use error::ProbeError;
pub use listeners::{ListenersError, listeners};
pub use machine_load::{MachineLoad, TcpActivity, Throttling, kernel_memory_bytes};
pub use probe::{Probe, ProbeConfig};
pub use sample::{Loopback, Sample, TcpStates, TcpTotals};
pub use sampler::{Recording, Sampler, SamplerConfig};
pub use sock_diag::SockDiagError;
