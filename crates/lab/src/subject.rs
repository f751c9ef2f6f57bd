//! The server under test.

use crate::cell::Cell;
use crate::experiment::Experiment;
use crate::process::{Process, describe};
use crate::record::CounterSample;
use pushlab_wire::http::{BodyKind, Headers, parse_response};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Time to say that it listens.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to end after it was asked to; more than our server's drain timeout.
const STOP_TIMEOUT: Duration = Duration::from_secs(12);
/// Time to answer for its counters.
const COUNTERS_TIMEOUT: Duration = Duration::from_millis(500);

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

impl Subject {
    /// Starts our server for a cell. `feed` is where its back end will listen.
    pub fn start(
        program: &Path,
        experiment: &Experiment,
        cell: &Cell,
        feed: Option<(SocketAddr, &str)>,
        cores: &[usize],
        log: PathBuf,
    ) -> Result<Self, SubjectError> {
        let mut arguments: Vec<String> =
            ["serve", "--listen", "127.0.0.1:0", "--json", "--policy", cell.policy.name()].map(String::from).to_vec();
        if let Some((address, channel)) = feed {
            arguments.extend([format!("--feed=ws://{address}/"), format!("--feed-channel={channel}")]);
        }
        if experiment.receipts {
            arguments.push("--mark-receipts".to_owned());
        }
        arguments.extend(experiment.server_options.iter().cloned());
        let command: Vec<String> = std::iter::once("pushlab".to_owned()).chain(arguments.iter().cloned()).collect();
        let start_error = |source| SubjectError::Start { program: program.display().to_string(), source };
        let errors = File::create(&log).map_err(start_error)?;
        let mut builder = Command::new(program);
        builder.args(&arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let mut process = Process::start(&mut builder, cores).map_err(start_error)?;
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

/// Asks our server for its counters, over one connection that stays open.
pub struct CounterReader {
    address: SocketAddr,
    stream: Option<TcpStream>,
}

impl CounterReader {
    /// A reader; connects when first used.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    /// The counters now; `None` when the server did not answer in time.
    pub fn read(&mut self) -> Option<CounterSample> {
        let sample = self.try_read().ok();
        if sample.is_none() {
            self.stream = None;
        }
        sample
    }

    fn try_read(&mut self) -> io::Result<CounterSample> {
        if self.stream.is_none() {
            let stream = TcpStream::connect_timeout(&self.address, COUNTERS_TIMEOUT)?;
            stream.set_read_timeout(Some(COUNTERS_TIMEOUT))?;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut().expect("connected above");
        stream.write_all(b"GET /stats HTTP/1.1\r\nHost: lab\r\n\r\n")?;
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let n = stream.read(&mut buffer)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes.extend_from_slice(&buffer[..n]);
            let mut headers = Headers::default();
            let head = parse_response(&bytes, &mut headers).map_err(io::Error::other)?;
            let Some((head, size)) = head else { continue };
            let BodyKind::Length(length) = head.body else { return Err(io::ErrorKind::InvalidData.into()) };
            if let Some(body) = bytes.get(size..size + length as usize) {
                return Ok(serde_json::from_slice(body)?);
            }
        }
    }
}
