//! Workers that are processes of this machine.

use crate::process::Process;
use pushlab_fleet::worker::Allowed;
use pushlab_fleet::{Division, Fleet, Load};
use pushlab_link::namespace::Namespace;
use pushlab_os::child::Prepare as _;
use pushlab_workload::messages::{Message, Order};
use pushlab_workload::plan::Plan;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// A listener that is given to another process.
pub struct Listener {
    /// Where it listens.
    pub address: SocketAddr,
    /// The socket.
    pub socket: TcpListener,
}

/// What somebody says, or that he has closed his output, and his last lines of errors.
type Heard = (usize, Result<Message, String>);

/// `pushlab worker`, as often as there are workers.
pub struct Processes {
    workers: Vec<Worker>,
    messages: Receiver<Heard>,
}

struct Worker {
    process: Process,
    orders: Option<ChildStdin>,
}

impl Processes {
    /// Starts so many workers on these cores, in a network namespace if one is given. The first is given the listener of
    /// the back end, of which the plan speaks.
    fn start(
        program: &Path,
        arguments: &[OsString],
        workers: usize,
        cores: &[usize],
        namespace: Option<&Namespace>,
        mut listener: Option<Listener>,
    ) -> io::Result<Self> {
        let (sender, messages) = mpsc::channel();
        let mut this = Self { workers: Vec::new(), messages };
        for worker in 0..workers {
            let mut command = Command::new(program);
            command.arg("worker").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            if let Some(namespace) = namespace {
                namespace.give_to(&mut command);
            }
            if let Some(listener) = listener.take() {
                command.keep_open(listener.socket.into());
            }
            let mut process = Process::start(&mut command, cores)?;
            let child = process.child();
            let (orders, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            this.workers.push(Worker { process, orders });
            let sender = sender.clone();
            std::thread::Builder::new()
                .name(format!("hears-worker-{worker}"))
                .spawn(move || hear(worker, output, errors, &sender))?;
        }
        Ok(this)
    }

    /// Process ids.
    pub fn ids(&self) -> Vec<u32> {
        self.workers.iter().map(|worker| worker.process.id()).collect()
    }
}

/// Passes on what a worker says, to its end, and then what it wrote to its standard error.
fn hear(worker: usize, output: Option<ChildStdout>, errors: Option<ChildStderr>, sender: &Sender<Heard>) {
    for line in output.into_iter().flat_map(|output| BufReader::new(output).lines().map_while(Result::ok)) {
        let message = serde_json::from_str(&line).map_err(|error| format!("it said {line:?}: {error}"));
        if sender.send((worker, message)).is_err() {
            return;
        }
    }
    let errors: Vec<String> =
        errors.into_iter().flat_map(|errors| BufReader::new(errors).lines().map_while(Result::ok)).collect();
    // Nobody listens when the run is over already.
    let _ = sender.send((worker, Err(errors.join(" / "))));
}

impl Fleet for Processes {
    fn tell(&mut self, worker: usize, order: &Order) {
        let Some(orders) = &mut self.workers[worker].orders else { return };
        let told = serde_json::to_vec(order).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            orders.write_all(&line)
        });
        if told.is_err() {
            // It is gone, which its output says too.
            self.workers[worker].orders = None;
        }
    }

    fn hear(&mut self, timeout: Duration) -> Option<(usize, Result<Message, String>)> {
        let (worker, heard) = self.messages.recv_timeout(timeout).ok()?;
        let heard =
            heard.map_err(|errors| format!("the worker {}", self.workers[worker].process.end_too_early(&errors)));
        Some((worker, heard))
    }
}

/// Begins a run of a plan on workers of their own processes.
///
/// # Errors
/// As a sentence: a plan that cannot be run, or a worker that cannot be started.
pub fn begin(
    program: &Path,
    plan: &Plan,
    cores: &[usize],
    namespace: Option<&Namespace>,
    listener: Option<Listener>,
) -> Result<(Load<Processes>, Plan), String> {
    let division = Division::of(plan).map_err(|error| format!("the plan cannot be run: {error}"))?;
    let plan = division.plan.clone();
    let fleet = Processes::start(program, &Allowed::arguments(&plan), division.workers(), cores, namespace, listener)
        .map_err(|error| format!("cannot start the worker {}: {error}", program.display()))?;
    Ok((Load::begin(fleet, division), plan))
}
