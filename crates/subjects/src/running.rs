//! The server under test while it runs.

use crate::install::Installed;
use crate::manifest::{Manifest, Ready};
use crate::output::Output;
use crate::process::{Process, describe, end_of_log};
use pushlab_experiment::Experiment;
use pushlab_experiment::cell::Cell;
use pushlab_link::namespace::Namespace;
use pushlab_probe::runtime_log::RuntimeLog;
use pushlab_workload::plan::HttpVersion;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Time for our server to say that it listens.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a foreign server to be ready: a virtual machine may have to start, and a failure is told within 30 s.
const FOREIGN_READY_TIMEOUT: Duration = Duration::from_secs(25);
/// Time for a foreign server to end after it was asked to.
const FOREIGN_STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// Time in which whoever says that it listens must take a connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a port is tried.
const WATCH: Duration = Duration::from_millis(10);
/// Time to end after it was asked to; more than our server's drain timeout.
const STOP_TIMEOUT: Duration = Duration::from_secs(12);

/// Environment variable by which our server serves its transports alone, without pages that would take memory: a build
/// from before there were any can be measured too, which an option would end.
pub const NO_PAGES: &str = "PUSHLAB_NO_PAGES";
/// Environment variable by which pages of other sites may use our server's transports.
pub const ALLOW_ORIGIN: &str = "PUSHLAB_ALLOW_ORIGIN";
/// Environment variable by which our server serves whoever reaches it.
pub const OPEN: &str = "PUSHLAB_OPEN";
/// The environment in which our server is measured: in a namespace, loopback is not its only address, and where a
/// browser is the load, its pages come from another site.
const OUR_ENVIRONMENT: [(&str, &str); 3] = [(NO_PAGES, "true"), (ALLOW_ORIGIN, "*"), (OPEN, "true")];

/// Environment variable by which a foreign server lets pages of other origins ask it (Fetch Standard, CORS protocol).
/// Without it, it answers as if there were no such thing.
pub const CROSS_ORIGIN: &str = "CROSS_ORIGIN";

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
    #[error("the subject did not get ready: {why}{log}")]
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
    output: Output,
    stop_timeout: Duration,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its command line, with the variables set for it before it.
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
    /// Where it is to listen.
    pub host: Ipv4Addr,
    /// The port; any if none is named.
    pub port: Option<u16>,
    /// Where it takes over from the one that runs, and gives its own place away.
    pub handover: Option<&'a Path>,
    /// The network namespace in which it is to live, if it is not this process's own.
    pub namespace: Option<&'a Namespace>,
    /// Its certificate chain and the key of it, if it is to speak TLS.
    pub certificate: Option<(&'a Path, &'a Path)>,
    /// Where its back end will listen, and the channel to publish to.
    pub feed: Option<(SocketAddr, &'a str)>,
    /// Its cores.
    pub cores: &'a [usize],
    /// Its event loops, where its options do not say how many.
    pub loops: u32,
    /// Where its standard error goes.
    pub log: PathBuf,
}

impl Start<'_> {
    fn arguments(&self) -> Vec<String> {
        let listen = SocketAddr::from((self.host, self.port.unwrap_or(0))).to_string();
        let mut arguments: Vec<String> = ["serve", "--listen", &listen, "--json"].map(String::from).to_vec();
        arguments.extend(self.handover.map(|socket| format!("--handover={}", socket.display())));
        if let Some((address, channel)) = self.feed {
            arguments.extend([format!("--feed=ws://{address}/"), format!("--feed-channel={channel}")]);
        }
        if let Some((chain, key)) = self.certificate {
            arguments
                .extend([format!("--tls-certificate={}", chain.display()), format!("--tls-key={}", key.display())]);
        }
        arguments.extend(options(self.experiment, self.cell, self.loops));
        arguments
    }
}

/// The options of our server that follow from the experiment as it is for a cell: all but addresses and files, which
/// are those of one start.
pub fn options(experiment: &Experiment, cell: &Cell, loops: u32) -> Vec<String> {
    let sockets = &experiment.sockets;
    let mut options = vec![format!("--policy={}", cell.policy.name())];
    let mut set = |is_set: bool, option: &str| options.extend(is_set.then(|| option.to_owned()));
    set(experiment.receipts, "--mark-receipts");
    set(sockets.nagle, "--nagle");
    // A browser takes HTTP/2 where it is offered.
    let is_http1_browser = experiment.clients_in.is_browser() && sockets.http_version == HttpVersion::Http11;
    set(sockets.tls && is_http1_browser, "--no-http2");
    let has_loops = experiment.server_options.iter().any(|option| option.starts_with("--cores"));
    for (name, number) in [
        ("--compression-from", experiment.compression_from),
        ("--writes-per-event", Some(u32::from(sockets.writes_per_event)).filter(|writes| *writes > 1)),
        ("--send-buffer", sockets.send_buffer_bytes),
        ("--receive-buffer", sockets.receive_buffer_bytes),
        ("--cores", Some(loops).filter(|loops| *loops > 1 && !has_loops)),
    ] {
        options.extend(number.map(|number| format!("{name}={number}")));
    }
    options.extend(experiment.server_options.iter().cloned());
    options
}

/// What it takes to start somebody else's server.
pub struct ForeignStart<'a> {
    /// What is known of it.
    pub manifest: &'a Manifest,
    /// Where it is installed.
    pub installed: &'a Installed,
    /// Where it is to listen.
    pub host: Ipv4Addr,
    /// The port; one that is free if none is named.
    pub port: Option<u16>,
    /// The network namespace in which it is to live, if it is not this process's own.
    pub namespace: Option<&'a Namespace>,
    /// Where its back end will listen, and the channel to publish to.
    pub feed: Option<(SocketAddr, &'a str)>,
    /// From how many bytes on it is to compress messages, if at all.
    pub compression_from: Option<u32>,
    /// Whether it is to log its garbage collections, if it can.
    pub logs_collections: bool,
    /// Further variables of its environment.
    pub environment: &'a [(String, String)],
    /// Its cores; any if none is named.
    pub cores: &'a [usize],
    /// Where its standard error goes.
    pub log: PathBuf,
}

impl ForeignStart<'_> {
    /// Its command, and whether that makes it log its garbage collections.
    fn words(&self) -> (&[String], bool) {
        let logged = self.manifest.start_logged.as_deref().filter(|_| self.logs_collections);
        (logged.unwrap_or(&self.manifest.start), logged.is_some())
    }

    fn in_namespace<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        match self.namespace {
            None => Ok(work()),
            Some(namespace) => namespace.in_it(work).map_err(io::Error::other),
        }
    }

    /// A port that nobody has now. Somebody else might take it before the subject does; then the subject says so.
    fn free_port(&self) -> io::Result<u16> {
        let host = self.host;
        Ok(self.in_namespace(|| TcpListener::bind((host, 0)))??.local_addr()?.port())
    }

    fn command(&self, port: u16) -> (Vec<String>, Command) {
        let fill = |text: &String| text.replace("{host}", &self.host.to_string()).replace("{port}", &port.to_string());
        let words: Vec<String> = self.words().0.iter().map(fill).collect();
        // A program of the installation itself is found there, not where the lab runs.
        let own = self.installed.folder.join(&words[0]);
        let program = if words[0].contains('/') && own.exists() { own } else { PathBuf::from(&words[0]) };
        let mut builder = Command::new(program);
        builder.args(&words[1..]).current_dir(&self.installed.folder).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut variables = vec![("HOST", self.host.to_string()), ("PORT", port.to_string())];
        if let Some((address, channel)) = self.feed {
            variables.extend([("FEED", format!("ws://{address}/")), ("FEED_CHANNEL", channel.to_owned())]);
        }
        variables.extend(self.compression_from.map(|bytes| ("COMPRESSION_FROM", bytes.to_string())));
        variables.extend(self.environment.iter().map(|(name, value)| (name.as_str(), value.clone())));
        builder.envs(variables.iter().map(|(name, value)| (name, value)));
        if let Some(namespace) = self.namespace {
            namespace.give_to(&mut builder);
        }
        (variables.iter().map(|(name, value)| format!("{name}={value}")).chain(words).collect(), builder)
    }

    fn takes_connections(&self, address: SocketAddr) -> bool {
        self.in_namespace(|| TcpStream::connect_timeout(&address, ANSWER_TIMEOUT)).is_ok_and(|stream| stream.is_ok())
    }

    /// Whether a port has listeners, all of them started by labs and none by this start.
    fn is_anothers(&self, process: &Process, port: u16) -> bool {
        let listeners = self.in_namespace(|| pushlab_probe::listeners(port).unwrap_or_default()).unwrap_or_default();
        !listeners.is_empty() && listeners.iter().all(|&listener| process.is_anothers(listener))
    }

    fn await_port(&self, process: &mut Process, address: SocketAddr) -> Result<SocketAddr, String> {
        let deadline = Instant::now() + FOREIGN_READY_TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = process.ended() {
                return Err(format!("it ended with {}", describe(status)));
            }
            if self.takes_connections(address) {
                // A server that found its port taken ends about now or tries again; what answered was another one.
                std::thread::sleep(WATCH);
                if process.ended().is_none() && !self.is_anothers(process, address.port()) {
                    return Ok(address);
                }
            }
            std::thread::sleep(WATCH);
        }
        Err(format!("nobody took a connection at {address} within {FOREIGN_READY_TIMEOUT:?}"))
    }
}

/// Our server, which says on its standard output where it listens.
fn ours(program: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut builder = Command::new(program);
    builder.args(arguments).envs(OUR_ENVIRONMENT).stdin(Stdio::null()).stdout(Stdio::piped());
    builder
}

/// The command line of [`ours`], as a shell takes it.
fn our_command(arguments: &[impl ToString]) -> Vec<String> {
    let variables = OUR_ENVIRONMENT.iter().map(|(name, value)| format!("{name}={value}"));
    variables.chain(["pushlab".to_owned()]).chain(arguments.iter().map(ToString::to_string)).collect()
}

impl Subject {
    /// Starts our server for a run.
    ///
    /// # Errors
    /// See [`SubjectError`].
    pub fn start(start: Start<'_>) -> Result<Self, SubjectError> {
        let arguments = start.arguments();
        let command = our_command(&arguments);
        let mut builder = ours(start.program, &arguments);
        if let Some(namespace) = start.namespace {
            namespace.give_to(&mut builder);
        }
        let program = start.program.display().to_string();
        let await_ready =
            |process: &mut Process, ready: Receiver<String>| await_address(process, &ready, READY_TIMEOUT);
        let (process, output, address) = launch(&mut builder, &program, start.cores, &start.log, false, await_ready)?;
        Ok(Self { process, output, stop_timeout: STOP_TIMEOUT, address, command, log: start.log })
    }

    /// Starts our server as it is by default, on any port.
    ///
    /// # Errors
    /// See [`SubjectError`].
    pub fn start_ours(program: &Path, log: PathBuf) -> Result<Self, SubjectError> {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--json"];
        let command = our_command(&arguments);
        let mut builder = ours(program, &arguments);
        let await_ready =
            |process: &mut Process, ready: Receiver<String>| await_address(process, &ready, READY_TIMEOUT);
        let program = program.display().to_string();
        let (process, output, address) = launch(&mut builder, &program, &[], &log, false, await_ready)?;
        Ok(Self { process, output, stop_timeout: STOP_TIMEOUT, address, command, log })
    }

    /// Starts somebody else's server.
    ///
    /// # Errors
    /// See [`SubjectError`]; within 30 s.
    pub fn start_foreign(start: ForeignStart<'_>) -> Result<Self, SubjectError> {
        let (words, logs_collections) = start.words();
        let program = words.join(" ");
        let cannot = |source| SubjectError::Start { program: program.clone(), source };
        let port = start.port.map_or_else(|| start.free_port(), Ok).map_err(cannot)?;
        let (command, mut builder) = start.command(port);
        let await_ready = |process: &mut Process, ready: Receiver<String>| match start.manifest.ready {
            Ready::Port => start.await_port(process, SocketAddr::from((start.host, port))),
            Ready::Line => {
                let address = await_address(process, &ready, FOREIGN_READY_TIMEOUT)?;
                if start.takes_connections(address) {
                    return Ok(address);
                }
                Err(format!("it said that it listens at {address}, but nobody took a connection there"))
            }
        };
        let (process, output, address) =
            launch(&mut builder, &program, start.cores, &start.log, logs_collections, await_ready)?;
        Ok(Self { process, output, stop_timeout: FOREIGN_STOP_TIMEOUT, address, command, log: start.log })
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// What its runtime has told of itself since this was asked last.
    pub fn runtime_log(&self) -> RuntimeLog {
        self.output.runtime_log()
    }

    /// Why it is not there any more, if it is not.
    pub fn death(&mut self) -> Option<String> {
        let status = self.process.ended()?;
        Some(format!("the subject ended with {}{}", describe(status), end_of_log(&self.log)))
    }

    /// Ends it and all that it has started; an empty log is not kept.
    pub fn stop(self) {
        self.process.stop(self.stop_timeout);
        if std::fs::metadata(&self.log).is_ok_and(|m| m.len() == 0) {
            // A log that stays costs nothing but a look.
            let _ = std::fs::remove_file(&self.log);
        }
    }
}

/// Starts a program whose standard error goes to a log, reads its standard output, and waits until it is ready.
fn launch(
    builder: &mut Command,
    program: &str,
    cores: &[usize],
    log: &Path,
    logs_collections: bool,
    await_ready: impl FnOnce(&mut Process, Receiver<String>) -> Result<SocketAddr, String>,
) -> Result<(Process, Output, SocketAddr), SubjectError> {
    let cannot = |source| SubjectError::Start { program: program.to_owned(), source };
    builder.stderr(File::create(log).map_err(cannot)?);
    let mut process = Process::start(builder, cores).map_err(cannot)?;
    let stdout = process.child().stdout.take();
    let stdout = stdout.ok_or_else(|| cannot(io::Error::other("its output is not connected")))?;
    let (output, ready) = Output::read(stdout, logs_collections);
    match await_ready(&mut process, ready) {
        Ok(address) => Ok((process, output, address)),
        Err(why) => {
            drop(process);
            Err(SubjectError::NotReady { why, log: end_of_log(log) })
        }
    }
}

fn await_address(process: &mut Process, ready: &Receiver<String>, timeout: Duration) -> Result<SocketAddr, String> {
    let line = match ready.recv_timeout(timeout) {
        Ok(line) => line,
        Err(_) => {
            // One that has closed its output is about to end.
            std::thread::sleep(WATCH);
            return Err(match process.ended() {
                Some(status) => format!("it ended with {}", describe(status)),
                None => format!("it did not say that it listens within {timeout:?}"),
            });
        }
    };
    let value: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
    value["listening"]
        .as_str()
        .and_then(|address| address.parse().ok())
        .ok_or_else(|| format!("it said {:?} instead of its address", line.trim()))
}
