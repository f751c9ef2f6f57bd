//! What Pushlab asks of Linux beyond the standard library, each call once and safe.
//!
//! ```
//! use pushlab_os::{affinity, clock};
//!
//! affinity::pin_to(&affinity::allowed_cores()?[..1])?;
//! let begun_ns = clock::monotonic_ns();
//! clock::sleep_until(begun_ns + 1_000_000);
//! assert!(clock::monotonic_ns() >= begun_ns + 1_000_000);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Most of it is [`rustix`]; docs/decisions/0023-os.md says which calls it lacks, and where else `unsafe` is.

// What rustix lacks is called here, so that other crates need not.
#![allow(unsafe_code)]

pub mod affinity;
pub mod bell;
pub mod child;
pub mod clock;
pub mod control_group;
pub mod counter;
pub mod descriptors;
pub mod files;
pub mod folder;
pub mod limits;
pub mod namespace;
pub mod netlink;
pub mod new_file;
pub mod poll;
pub mod process;
pub mod random;
pub mod signals;
pub mod socket;
mod steered;
pub mod system;
pub mod timer;
pub mod unix;

/// The kernel's error numbers, to compare an [`std::io::Error`] with where [`std::io::ErrorKind`] does not tell.
pub use rustix::io::Errno;
