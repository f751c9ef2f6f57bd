//! What attackers send to a server: the bytes of each attack's connections. No socket, no clock.
//!
//! ```
//! use pushlab_attacks::{Flood, attack::Script};
//!
//! let Ok(Flood::Attack(ping)) = "ping".parse() else { panic!() };
//! let (mut script, mut bytes) = (Script::new(ping, 0), Vec::new());
//! script.begin(&mut bytes);
//! script.go_on(&mut bytes);
//! assert!(bytes.starts_with(b"PRI * HTTP/2.0"));
//! ```

mod asking;
pub mod attack;
pub mod hoard;
mod streams;
pub mod tokens;

use attack::Attack;
use clap::ValueEnum as _;
use hoard::Hoard;
use std::fmt;
use std::str::FromStr;

/// An attack by what is sent, or by what the server has to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flood {
    /// As much as a few connections take.
    Attack(Attack),
    /// As many connections as fit.
    Hoard(Hoard),
}

impl FromStr for Flood {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Attack::from_str(name, false).map(Self::Attack).or_else(|_| name.parse().map(Self::Hoard))
    }
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attack(attack) => f.write_str(attack.to_possible_value().expect("none is hidden").get_name()),
            Self::Hoard(hoard) => hoard.fmt(f),
        }
    }
}
