//! How one server process takes the place of another, while clients are connected and publish: listeners, log and history
//! go over a Unix socket, and over the same socket the old process then publishes and reads at the new one until its last
//! client has left.
//!
//! [`frame`] is what the two say, [`taking`] and [`giving`] are the two sides of the handover itself. Behind it the old
//! process has a [`RemoteLog`], whose frames an [`Outgoing`] carries.

pub mod frame;
pub mod giving;
mod outgoing;
mod remote;
pub mod taking;
mod talk;

pub use outgoing::Outgoing;
pub use remote::{Link, News, RemoteLog};
pub use talk::{HandoverError, Talk};
