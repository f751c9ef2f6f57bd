//! The process of one run, on the machine of a worker that has joined.

use crate::heard::Heard;
use pushlab_os::child::Prepare as _;
use pushlab_subjects::process::Process;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// Time to end by itself once it gets no more orders.
const END_WITHIN: Duration = Duration::from_secs(2);

/// A process that hosts a run, and what it needs of its parent.
pub struct Child {
    process: Process,
    orders: Option<ChildStdin>,
    /// When it has to have ended.
    end_by: Option<Instant>,
}

impl Child {
    /// Starts it on these cores. What it says comes as [`Heard::Line`], and its end as [`Heard::Ended`].
    pub fn start(
        mut command: Command,
        cores: &[usize],
        listener: Option<TcpListener>,
        run: u64,
        events: &SyncSender<Heard>,
    ) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(listener) = listener {
            command.keep_open(listener.into());
        }
        let mut process = Process::start(&mut command, cores)?;
        let child = process.child();
        let (orders, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let events = events.clone();
        let name = format!("hears-run-{run:x}");
        std::thread::Builder::new().name(name).spawn(move || hear(run, output, errors, &events))?;
        Ok(Self { process, orders, end_by: None })
    }

    /// Gives it an order; one that is gone has no use for it, which its end says.
    pub fn tell(&mut self, order: &str) {
        let Some(orders) = &mut self.orders else { return };
        if orders.write_all(order.as_bytes()).and_then(|()| orders.write_all(b"\n")).is_err() {
            self.orders = None;
        }
    }

    /// Has it end: one that gets no more orders does. It is killed if it takes too long.
    pub fn end(&mut self) {
        self.orders = None;
        self.end_by.get_or_insert_with(|| Instant::now() + END_WITHIN);
    }

    /// Whether it is to end.
    pub fn is_ending(&self) -> bool {
        self.end_by.is_some()
    }

    /// Whether it was to end, and has not.
    pub fn is_overdue(&self) -> bool {
        self.end_by.is_some_and(|end_by| Instant::now() >= end_by)
    }

    /// How it ended, once it has closed its output.
    pub fn how(&mut self, errors: &str) -> String {
        format!("its process {}", self.process.end_too_early(errors))
    }
}

/// Passes on what it says, to its end, and then what it wrote to its standard error.
fn hear(run: u64, output: Option<ChildStdout>, errors: Option<ChildStderr>, events: &SyncSender<Heard>) {
    for line in output.into_iter().flat_map(|output| BufReader::new(output).lines().map_while(Result::ok)) {
        if events.send(Heard::Line { run, line }).is_err() {
            return;
        }
    }
    let errors: Vec<String> =
        errors.into_iter().flat_map(|errors| BufReader::new(errors).lines().map_while(Result::ok)).collect();
    // Nobody listens when the worker leaves.
    let _ = events.send(Heard::Ended { run, errors: errors.join(" / ") });
}
