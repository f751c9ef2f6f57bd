//! Who takes part in one run, on whatever machines they are.

use crate::roster::{Said, Shared};
use crate::words::FromLab;
use pushlab_fleet::Fleet;
use pushlab_workload::messages::{Message, Order};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Lines to the processes of a run, on the machines of those who take part. These processes have ended when this is dropped.
pub struct Lines {
    pub(crate) shared: Arc<Shared>,
    pub(crate) run: u64,
    pub(crate) parts: Vec<String>,
}

impl Lines {
    /// Tells one of them something.
    pub fn tell(&self, part: usize, what: &impl Serialize) {
        // What is told are texts and numbers: there are none that cannot be written.
        if let Ok(line) = serde_json::to_string(what).and_then(RawValue::from_string) {
            self.shared.tell(&self.parts[part], &FromLab::Line { run: self.run, line });
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.shared.end(self.run);
    }
}

/// What somebody has said, read; or why it is gone, or cannot be understood.
pub fn read<T: DeserializeOwned>(said: Result<Box<RawValue>, String>) -> Result<T, String> {
    let line = said?;
    serde_json::from_str(line.get()).map_err(|error| format!("it said {:?}: {error}", line.get()))
}

/// Workers that have joined, each with a process for the run.
pub struct Joined {
    pub(crate) lines: Lines,
    pub(crate) messages: Receiver<Said>,
}

impl Joined {
    /// What people call a worker; nothing once it is gone.
    pub fn name(&self, worker: usize) -> Option<String> {
        let known = &self.lines.shared.state().known;
        Some(known.get(&self.lines.parts[worker])?.presence.name.clone())
    }
}

impl Fleet for Joined {
    fn tell(&mut self, worker: usize, order: &Order) {
        self.lines.tell(worker, order);
    }

    fn hear(&mut self, timeout: Duration) -> Option<(usize, Result<Message, String>)> {
        let (worker, said) = self.messages.recv_timeout(timeout).ok()?;
        Some((worker, read(said)))
    }

    fn is_far_away(&self) -> bool {
        true
    }
}
