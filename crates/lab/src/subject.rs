//! The server under test.

use crate::cell::Cell;
use crate::experiment::Experiment;
use crate::process::{Process, describe};
use crate::site::Site;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Time to say that it listens.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to end after it was asked to; more than our server's drain timeout.
const STOP_TIMEOUT: Duration = Duration::from_secs(12);

/// Why there is no server to measure.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The program cannot be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Its path.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It did not get to listen.
    #[error("the subject is not ready: {why}{log}")]
    NotReady {
        /// What happened instead.
        why: String,
        /// What it wrote to its standard error.
        log: String,
    },
}

/// A running subject.
pub struct Subject {
    process: Process,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its command line.
    pub command: Vec<String>,
    log: PathBuf,
}

/// What it takes to start our server for a run.
pub struct Start<'a> {
    /// The program.
    pub program: &'a Path,
    /// The experiment as it is for the cell.
    pub experiment: &'a Experiment,
    /// The cell.
    pub cell: &'a Cell,
    /// Where it is to live.
    pub site: &'a Site,
    /// Where its back end will listen, and the channel to publish to.
    pub feed: Option<(SocketAddr, &'a str)>,
    /// Its cores.
    pub cores: &'a [usize],
    /// Where its standard error goes.
    pub log: PathBuf,
}

impl Start<'_> {
    fn arguments(&self) -> Vec<String> {
        let listen = SocketAddr::from((self.site.subject_address(), 0)).to_string();
        let policy = self.cell.policy.name();
        let mut arguments: Vec<String> =
            ["serve", "--listen", &listen, "--json", "--policy", policy].map(String::from).to_vec();
        if let Some((address, channel)) = self.feed {
            arguments.extend([format!("--feed=ws://{address}/"), format!("--feed-channel={channel}")]);
        }
        if self.experiment.receipts {
            arguments.push("--mark-receipts".to_owned());
        }
        arguments.extend(self.socket_options());
        arguments.extend(self.experiment.server_options.iter().cloned());
        arguments
    }

    fn socket_options(&self) -> Vec<String> {
        let sockets = &self.experiment.sockets;
        let mut options = Vec::new();
        if sockets.nagle {
            options.push("--nagle".to_owned());
        }
        if sockets.writes_per_event > 1 {
            options.push(format!("--writes-per-event={}", sockets.writes_per_event));
        }
        options.extend(sockets.send_buffer_bytes.map(|bytes| format!("--send-buffer={bytes}")));
        options.extend(sockets.receive_buffer_bytes.map(|bytes| format!("--receive-buffer={bytes}")));
        if let Some(certificate) = self.site.certificate() {
            let chain = format!("--tls-certificate={}", certificate.chain.display());
            options.extend([chain, format!("--tls-key={}", certificate.key.display())]);
        }
        options
    }
}

impl Subject {
    /// Starts our server for a run.
    pub fn start(start: Start<'_>) -> Result<Self, SubjectError> {
        let arguments = start.arguments();
        let command: Vec<String> = std::iter::once("pushlab".to_owned()).chain(arguments.iter().cloned()).collect();
        let start_error = |source| SubjectError::Start { program: start.program.display().to_string(), source };
        let errors = File::create(&start.log).map_err(start_error)?;
        let mut builder = Command::new(start.program);
        builder.args(&arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        if let Some(namespace) = start.site.subject_namespace() {
            namespace.give_to(&mut builder);
        }
        let mut process = Process::start(&mut builder, start.cores).map_err(start_error)?;
        let log = start.log;
        match await_address(&mut process) {
            Ok(address) => Ok(Self { process, address, command, log }),
            Err(why) => {
                drop(process);
                Err(SubjectError::NotReady { why, log: read_log(&log) })
            }
        }
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Why it is not there any more, if it is not.
    pub fn death(&mut self) -> Option<String> {
        let status = self.process.ended()?;
        Some(format!("the subject ended with {}{}", describe(status), read_log(&self.log)))
    }

    /// Ends it; an empty log is not kept.
    pub fn stop(self) {
        self.process.stop(STOP_TIMEOUT);
        if std::fs::metadata(&self.log).is_ok_and(|m| m.len() == 0) {
            // A log that stays costs nothing but a look.
            let _ = std::fs::remove_file(&self.log);
        }
    }
}

fn await_address(process: &mut Process) -> Result<SocketAddr, String> {
    let Some(stdout) = process.child().stdout.take() else { return Err("its output is not connected".to_owned()) };
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let mut reader = BufReader::new(stdout);
        if reader.read_line(&mut line).is_ok() {
            // Nobody listens any more after the timeout.
            let _ = sender.send(line);
        }
        // The pipe stays open and is emptied, or a subject that says more would block.
        let _ = io::copy(&mut reader, &mut io::sink());
    });
    let line = match receiver.recv_timeout(READY_TIMEOUT) {
        Ok(line) => line,
        Err(_) => {
            return Err(match process.ended() {
                Some(status) => format!("it ended with {}", describe(status)),
                None => format!("it said nothing within {READY_TIMEOUT:?}"),
            });
        }
    };
    let value: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
    value["listening"]
        .as_str()
        .and_then(|address| address.parse().ok())
        .ok_or_else(|| format!("it said {:?} instead of its address", line.trim()))
}

/// The end of a log, as a sentence.
fn read_log(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let tail: Vec<&str> = text.lines().rev().take(5).collect();
    if tail.is_empty() {
        return String::new();
    }
    let lines: Vec<&str> = tail.into_iter().rev().collect();
    format!("; its last words: {}", lines.join(" / "))
}
