//! A fleet on many machines: its workers join at a NATS broker, and a lab finds them there.
//!
//! ```no_run
//! use pushlab_bus::{Access, Address, Crew};
//!
//! let address = Address::parse("nats://broker.example.org")?;
//! for worker in Crew::open(&address, &Access::default())?.list()? {
//!     println!("{}: {:?}", worker.name, worker.role);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! From the bottom up: a [`Connection`] is a broker for threads that wait; [`pieces`](pushlab_wire::pieces) let messages
//! of any length through, and show when one is lost; [`words`] is what labs and workers say, [`names`] where. On top, [`join`] is a worker
//! or an agent, and [`Crew`] the lab's end, of which [`Joined`] is one run. [`clock_of`] asks the lab's clock, mostly directly. [`Broker`]
//! starts a broker.

mod address;
mod broker;
mod child;
mod clock;
mod connection;
mod crew;
mod heard;
mod joined;
mod joiner;
pub mod names;
mod roster;
pub mod words;

pub use address::{Access, Address, BadAddress, unique, without_secrets};
pub use broker::{Broker, BrokerError, User};
pub use clock::{clock_of, told_clock};
pub use connection::{BusError, Connection};
pub use crew::{Crew, CrewError, Seats, Watcher};
pub use joined::{Joined, Lines, read};
pub use joiner::{Host, JoinConfig, JoinsAs, host_name, join};
pub use roster::Said;
