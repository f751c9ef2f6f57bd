//! The broker: a NATS server, installed as subjects are, and run as a child.

use crate::names::Rights;
use pushlab_os::folder::TemporaryFolder;
use pushlab_subjects::install::{Cache, InstallError, Installed, Recipe};
use pushlab_subjects::process::{Process, describe, end_of_log};
use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The version in `broker/go.mod`.
const VERSION: &str = "2.15.2";
const PROGRAM: &str = "nats-server";
const MODULE: &str = "github.com/nats-io/nats-server/v2";
/// Time until it listens.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Time for it to end after it was asked to.
const STOP_WITHIN: Duration = Duration::from_secs(3);
/// How often its port is tried.
const WATCH: Duration = Duration::from_millis(10);

/// A broker that does not run.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// Its program or a file of it.
    #[error("the broker cannot start: {0}")]
    Start(#[from] io::Error),
    /// It was started and does not listen.
    #[error("the broker does not listen at {address}: {why}{log}")]
    NotReady {
        /// Where it should.
        address: SocketAddr,
        /// What happened instead.
        why: String,
        /// What it said.
        log: String,
    },
}

/// A running broker; it is killed when dropped, and by the kernel when the thread that started it ends.
pub struct Broker {
    process: Process,
    /// Where it listens.
    pub address: SocketAddr,
    folder: TemporaryFolder,
}

/// A user that the broker lets in.
#[derive(Debug, Clone)]
pub struct User {
    /// Letters, digits, `-` and `_`.
    pub name: String,
    /// Anything but quotes.
    pub password: String,
    /// What the user may do.
    pub rights: Rights,
}

impl Broker {
    /// Installs the program, unless it is there.
    ///
    /// # Errors
    /// See [`InstallError`].
    pub fn install(cache: &Cache, is_interrupted: &mut dyn FnMut() -> bool) -> Result<Installed, InstallError> {
        let file = |name: &str, text: &'static str| (name.to_owned(), Cow::Borrowed(text.as_bytes()));
        let recipe = Recipe {
            name: PROGRAM,
            version: VERSION,
            tools: &["go".to_owned()],
            files: &[],
            probes: &[],
            hint: "install Go 1.26 or newer",
            content: &[
                file("go.mod", include_str!("../broker/go.mod")),
                file("go.sum", include_str!("../broker/go.sum")),
            ],
            install: &[["go", "build", "-o", PROGRAM, MODULE].map(str::to_owned).to_vec()],
        };
        cache.install(recipe, is_interrupted)
    }

    /// Starts it; port 0 takes a free one. It lets in only these users. Its log and its configuration are in a folder
    /// that is removed with it.
    ///
    /// # Errors
    /// See [`BrokerError`].
    pub fn start(installed: &Installed, listen: SocketAddr, users: &[User]) -> Result<Self, BrokerError> {
        // Somebody else might take a free port before the broker does, which then says so.
        let address = if listen.port() == 0 { TcpListener::bind(listen)?.local_addr()? } else { listen };
        let folder = TemporaryFolder::make("pushlab-broker")?;
        let (file, log) = (folder.path().join("broker.conf"), folder.path().join("broker.log"));
        fs::write(&file, configuration(address, users))?;
        let mut command = Command::new(installed.folder.join(PROGRAM));
        command.arg("--config").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        let process = Process::start(&mut command, &[])?;
        let mut this = Self { process, address, folder };
        match this.await_port() {
            Ok(()) => Ok(this),
            Err(why) => Err(BrokerError::NotReady { address, why, log: end_of_log(&log) }),
        }
    }

    fn await_port(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + READY_WITHIN;
        while Instant::now() < deadline {
            if let Some(status) = self.process.ended() {
                return Err(format!("it ended with {}", describe(status)));
            }
            if TcpStream::connect(self.address).is_ok() {
                // One that found its port taken ends about now, and somebody else has answered.
                std::thread::sleep(WATCH);
                if self.process.ended().is_none() {
                    return Ok(());
                }
            }
            std::thread::sleep(WATCH);
        }
        Err(format!("it accepted no connection within {READY_WITHIN:?}"))
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Why it is not there any more, if it is not.
    pub fn death(&mut self) -> Option<String> {
        let status = self.process.ended()?;
        let log = end_of_log(&self.folder.path().join("broker.log"));
        Some(format!("the broker ended with {}{log}", describe(status)))
    }

    /// Ends it.
    pub fn stop(self) {
        self.process.stop(STOP_WITHIN);
    }
}

fn configuration(address: SocketAddr, users: &[User]) -> String {
    let user = |User { name, password, rights: Rights { publish, subscribe } }: &User| {
        format!(
            "    {{ user: \"{name}\", password: \"{password}\", permissions: {{ publish: {publish:?}, subscribe: {subscribe:?} }} }}\n"
        )
    };
    let users: String = users.iter().map(user).collect();
    format!("listen: \"{address}\"\nauthorization {{\n  users: [\n{users}  ]\n}}\n")
}
