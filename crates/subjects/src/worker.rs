//! The process that hosts the virtual clients.

use crate::process::{Process, describe};
use pushlab_link::namespace::Namespace;
use pushlab_os::child::Prepare as _;
use pushlab_workload::messages::WorkerEvent;
use pushlab_workload::plan::Plan;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// A listener that is given to another process.
pub struct Listener {
    /// Where it listens.
    pub address: SocketAddr,
    /// The socket.
    pub socket: TcpListener,
}

/// A running worker and what it says.
pub struct Worker {
    process: Process,
    events: Receiver<Result<WorkerEvent, String>>,
}

/// What came from a worker.
pub enum Said {
    /// An event.
    Event(WorkerEvent),
    /// Nothing in time.
    Nothing,
    /// It is gone, or talks nonsense.
    Gone(String),
}

impl Worker {
    /// Starts `pushlab worker` on these cores, in a network namespace if one is given, and gives it its plan and the
    /// listener that the plan speaks of.
    pub fn start(
        program: &Path,
        plan: &Plan,
        cores: &[usize],
        namespace: Option<&Namespace>,
        listener: Option<Listener>,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(namespace) = namespace {
            namespace.give_to(&mut command);
        }
        if let Some(listener) = listener {
            command.keep_open(listener.socket.into());
        }
        let mut process = Process::start(&mut command, cores)?;
        let child = process.child();
        let stdin = child.stdin.take();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        if let Some(mut stdin) = stdin {
            serde_json::to_writer(&mut stdin, plan)?;
            stdin.flush()?;
        }
        let (sender, events) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok)) {
                let event = serde_json::from_str(&line).map_err(|e| format!("the worker said {line:?}: {e}"));
                if sender.send(event).is_err() {
                    return;
                }
            }
            let last_words: Vec<String> =
                stderr.into_iter().flat_map(|err| BufReader::new(err).lines().map_while(Result::ok)).collect();
            if !last_words.is_empty() {
                // Nobody listens when the run is over already.
                let _ = sender.send(Err(format!("the worker's last words: {}", last_words.join(" / "))));
            }
        });
        Ok(Self { process, events })
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next thing it says.
    pub fn listen(&mut self, timeout: Duration) -> Said {
        match self.events.recv_timeout(timeout) {
            Ok(Ok(event)) => Said::Event(event),
            Ok(Err(nonsense)) => Said::Gone(nonsense),
            Err(RecvTimeoutError::Timeout) => Said::Nothing,
            Err(RecvTimeoutError::Disconnected) => {
                let how = self
                    .process
                    .ended()
                    .map_or("closed its output".to_owned(), |s| format!("ended with {}", describe(s)));
                Said::Gone(format!("the worker {how} before it was done"))
            }
        }
    }
}
