//! The workers of one run, on whatever machines they are.

use crate::roster::{Said, Shared};
use crate::words::ToWorker;
use pushlab_fleet::Fleet;
use pushlab_workload::messages::{Message, Order};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Workers that have joined, each with a process for the run. These have ended when this is dropped.
pub struct Joined {
    pub(crate) shared: Arc<Shared>,
    pub(crate) run: u64,
    pub(crate) workers: Vec<String>,
    pub(crate) messages: Receiver<Said>,
}

impl Joined {
    /// What people call a worker; nothing once it is gone.
    pub fn name(&self, worker: usize) -> Option<String> {
        let known = &self.shared.state().known;
        Some(known.get(&self.workers[worker])?.presence.name.clone())
    }
}

impl Fleet for Joined {
    fn tell(&mut self, worker: usize, order: &Order) {
        let line = serde_json::to_string(order).and_then(RawValue::from_string);
        // An order is a text: there is none that cannot be written.
        if let Ok(line) = line {
            self.shared.tell(&self.workers[worker], &ToWorker::Line { run: self.run, line });
        }
    }

    fn hear(&mut self, timeout: Duration) -> Option<(usize, Result<Message, String>)> {
        let (worker, said) = self.messages.recv_timeout(timeout).ok()?;
        let read = |line: Box<RawValue>| {
            serde_json::from_str(line.get()).map_err(|error| format!("it said {:?}: {error}", line.get()))
        };
        Some((worker, said.and_then(read)))
    }

    fn is_far_away(&self) -> bool {
        true
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.shared.end(self.run);
    }
}
