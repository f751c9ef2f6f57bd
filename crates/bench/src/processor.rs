//! Cores of the subject and of the load.

use anyhow::{Context as _, bail};
use pushlab_os::affinity::{allowed_cores, pin_to};
use std::io;

/// The core of the subject and the core of everything that loads it.
#[derive(Debug, Clone, Copy)]
pub struct Cores {
    /// Where the limit or the server runs.
    pub subject: usize,
    /// Where subscribers, pollers and the publisher run.
    pub load: usize,
}

impl Cores {
    /// The first two cores on which this process may run.
    pub fn of_this_process() -> anyhow::Result<Self> {
        let mut allowed = allowed_cores().context("cannot read the affinity")?.into_iter();
        match (allowed.next(), allowed.next()) {
            (Some(subject), Some(load)) => Ok(Self { subject, load }),
            _ => bail!("two cores are needed, one for the subject and one for the load"),
        }
    }

    /// Moves the calling thread to the load's core.
    pub fn pin_to_load(self) -> io::Result<()> {
        pin_to(&[self.load])
    }
}
