//! The servers that are measured, ours and everybody's: what a name in an experiment stands for, where a server is
//! installed, how it is started, stopped, checked and examined.
//!
//! ```
//! use pushlab_subjects::named::Named;
//!
//! let subject = Named::parse("sockjs:htmlfile")?;
//! assert!(subject.offer().is_some_and(|offer| offer.transports.len() == 1));
//! # Ok::<(), String>(())
//! ```

pub mod builds;
pub mod catalogue;
pub mod certificate;
pub mod check;
pub mod external;
pub mod facts;
pub mod fleet;
pub mod install;
pub mod leftovers;
pub mod manifest;
pub mod named;
mod output;
pub mod process;
pub mod proxy;
pub mod running;
pub mod runtimes;
