//! A worker's process, led through a run as the lab does it.

use pushlab_fleet::worker::Allowed;
use pushlab_fleet::{Division, Fleet, Load};
use pushlab_workload::messages::{LoadError, Message, Order, RunEvent};
use pushlab_workload::plan::{Phase, Plan};
use pushlab_workload::result::LoadResult;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// A fleet of one.
pub struct OneProcess {
    pub child: Child,
    orders: ChildStdin,
    messages: Receiver<Result<Message, String>>,
}

/// A run that goes on.
pub type Run = Load<OneProcess>;

impl Fleet for OneProcess {
    fn tell(&mut self, _: usize, order: &Order) {
        // One that has ended says so by its output.
        let _ = writeln!(self.orders, "{}", serde_json::to_string(order).unwrap());
    }

    fn hear(&mut self, timeout: Duration) -> Option<(usize, Result<Message, String>)> {
        self.messages.recv_timeout(timeout).ok().map(|heard| (0, heard))
    }
}

/// Begins a run of a plan; `change` makes its worker another process.
pub fn begin(plan: &Plan, change: impl FnOnce(&mut Command)) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pushlab"));
    change(command.arg("worker").args(Allowed::arguments(plan)).stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut child = command.spawn().unwrap();
    let (orders, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (sender, messages) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            // The test may have ended.
            let _ = sender.send(Ok(serde_json::from_str(&line.unwrap()).unwrap()));
        }
        let _ = sender.send(Err("it closed its output".to_owned()));
    });
    Load::begin(OneProcess { child, orders, messages }, Division::of(plan).unwrap())
}

/// Waits until a phase begins.
pub fn until(run: &mut Run, wanted: Phase) {
    loop {
        match run.listen(Duration::from_secs(60)).expect("something happens within a minute") {
            RunEvent::Phase { phase, .. } if phase == wanted => return,
            RunEvent::Failed(error) => panic!("{error}"),
            _ => {}
        }
    }
}

/// What came of it.
pub fn outcome(run: &mut Run) -> Result<LoadResult, LoadError> {
    loop {
        match run.listen(Duration::from_secs(60)).expect("something happens within a minute") {
            RunEvent::Done { result } => return Ok(*result),
            RunEvent::Failed(error) => return Err(error),
            RunEvent::Ready | RunEvent::Phase { .. } | RunEvent::Progress(_) => {}
        }
    }
}
