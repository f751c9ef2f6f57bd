//! What an attacker's process is told, and what it reports.
//!
//! It yields to the client whose echoes are measured on the same core: what counts is how long the server makes that
//! client wait.

use anyhow::Context as _;
use clap::Args;
use pushlab_attacks::Flood;
use pushlab_os::process::set_niceness;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// It stands back for everybody.
const NICENESS: i32 = 19;

/// What an attacker does.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Plan {
    /// Where it runs.
    #[arg(long)]
    pub core: usize,
    /// Whom it attacks.
    #[arg(long)]
    pub address: SocketAddr,
    /// How.
    #[arg(long)]
    pub flood: Flood,
    /// How long, ms.
    #[arg(long)]
    pub duration_ms: u64,
    /// Connections of one who hoards; streams of HTTP/2 count.
    #[arg(long)]
    pub connections: usize,
    /// The folder of the server's certificate, with TLS.
    #[arg(long)]
    pub tls: Option<PathBuf>,
}

/// What it has done.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Report {
    /// Connections that it has begun.
    pub connections: u64,
    /// Bytes that the server's kernel has taken.
    pub bytes: u64,
}

impl Plan {
    /// Its command line.
    pub fn arguments(&self) -> Vec<String> {
        let options = [
            ("core", self.core.to_string()),
            ("address", self.address.to_string()),
            ("flood", self.flood.to_string()),
            ("duration-ms", self.duration_ms.to_string()),
            ("connections", self.connections.to_string()),
        ];
        let tls = self.tls.as_ref().map(|folder| ("tls", folder.display().to_string()));
        let options = options.into_iter().chain(tls).map(|(name, value)| format!("--{name}={value}"));
        std::iter::once("attacker".to_owned()).chain(options).collect()
    }
}

/// Says that everything is ready, waits for a line on standard input, and stands back from then on.
pub fn await_start(plan: &Plan) -> anyhow::Result<()> {
    println!("{}", plan.address);
    std::io::stdin().read_line(&mut String::new())?;
    set_niceness(std::process::id(), NICENESS).context("cannot stand back")
}
