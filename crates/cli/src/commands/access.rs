//! `pushlab access`, and the access file of a server.

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use pushlab_server::access::{Access, LiveAccess, Right};
use pushlab_wire::channel::Channel;
use pushlab_wire::codes::ExitCode;
use rustls::crypto::ring;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Time for a key set to come.
const KEY_SET_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest key set, bytes.
const MAX_KEY_SET_BYTES: u64 = 1 << 20;
/// How long a key set is used before it is asked for again.
const KEY_SET_AGE: Duration = Duration::from_secs(600);
/// Shortest time between two times of asking, whatever keys tokens name.
const KEY_SET_PAUSE: Duration = Duration::from_secs(10);
/// How often it is looked whether a key set is due.
const WATCH: Duration = Duration::from_millis(500);

/// Check an access file.
#[derive(Debug, Args)]
pub struct AccessArgs {
    #[command(subcommand)]
    command: AccessCommand,
}

#[derive(Debug, Subcommand)]
enum AccessCommand {
    /// Read an access file and the files and the key set that it names; say what is wrong, or what somebody may do.
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// The access file.
    file: PathBuf,
    /// A file with a token, or - for standard input: check it, and say what its owner may do with the channels that
    /// --channel names. Without it, what somebody without a token may do.
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// A channel; several may be named.
    #[arg(long = "channel", value_name = "CHANNEL")]
    channels: Vec<String>,
}

pub fn run(args: &AccessArgs) -> anyhow::Result<ExitCode> {
    let AccessCommand::Check(args) = &args.command;
    let file = AccessFile::open(&args.file)?;
    let now_s = pushlab_os::clock::since_1970_ns() / 1_000_000_000;
    let mut access = file.read()?;
    if let Some(url) = access.key_set_url().map(str::to_owned) {
        let set = fetch_key_set(&url)?;
        access.take_key_set(&set).with_context(|| url.clone())?;
        println!("{url} has usable keys");
    }
    let live = LiveAccess::new(access);
    println!("{} is in order", args.file.display());
    let person = match &args.token {
        None => live.rules().anonymous(),
        Some(token) => {
            let text =
                if token == Path::new("-") { io::read_to_string(io::stdin()) } else { fs::read_to_string(token) };
            let text = text.with_context(|| format!("cannot read the token from {}", token.display()))?;
            live.person(text.trim(), now_s).map_err(|error| anyhow!("{}: {error}", token.display()))?
        }
    };
    let who =
        person.identity().unwrap_or(if person.is_back_end() { "the back end" } else { "somebody without a token" });
    if let Some(at) = person.expires_at {
        println!("the token of {who} is good for {} s", at.saturating_sub(now_s));
    }
    for name in &args.channels {
        Channel::parse(name).with_context(|| format!("{name:?}"))?;
        let all = [Right::Subscribe, Right::Publish, Right::Presence, Right::History];
        let words = ["subscribe", "publish", "presence", "history"];
        let may: Vec<&str> =
            all.iter().zip(words).filter(|(right, _)| person.may(**right, name)).map(|(_, word)| word).collect();
        println!("{name}: {who} may {}", if may.is_empty() { "do nothing".to_owned() } else { may.join(", ") });
    }
    Ok(ExitCode::Ok)
}

/// The access file of a server, which may be read again while it runs.
#[derive(Debug, Clone)]
pub struct AccessFile {
    path: PathBuf,
}

impl AccessFile {
    /// This file, wherever the process changes to later.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let path = path.canonicalize().with_context(|| format!("cannot read the access file {}", path.display()))?;
        Ok(Self { path })
    }

    fn read(&self) -> anyhow::Result<Access> {
        let origin = self.path.display().to_string();
        let text = fs::read_to_string(&self.path).with_context(|| format!("cannot read the access file {origin}"))?;
        // What it names stands beside it.
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        Ok(Access::read(&text, &origin, &mut |file| fs::read(folder.join(file)))?)
    }

    /// The rules, for a server. Where the key set is behind an address, a thread keeps it up to date; until it has come,
    /// no token is taken whose key is not in a file.
    pub fn serve(&self) -> anyhow::Result<Arc<LiveAccess>> {
        let live = Arc::new(LiveAccess::new(self.read()?));
        let watched = Arc::downgrade(&live);
        let keep = move || {
            let mut asked_at = None;
            while let Some(live) = watched.upgrade() {
                Self::refresh_keys(&live, &mut asked_at);
                drop(live);
                std::thread::sleep(WATCH);
            }
        };
        std::thread::Builder::new().name("pushlab-keys".to_owned()).spawn(keep)?;
        Ok(live)
    }

    /// Asks for the key set if that is due.
    fn refresh_keys(live: &LiveAccess, asked_at: &mut Option<Instant>) {
        let Some(url) = live.rules().key_set_url().map(str::to_owned) else { return };
        let age = asked_at.map_or(Duration::MAX, |at| at.elapsed());
        let has_keys = live.rules().has_key_set();
        let is_due = age >= KEY_SET_AGE || age >= KEY_SET_PAUSE && (!has_keys || live.takes_wish_for_keys());
        if !is_due {
            return;
        }
        *asked_at = Some(Instant::now());
        let taken = fetch_key_set(&url).and_then(|set| live.take_key_set(&set).context(url));
        if let Err(error) = taken {
            tell(&format!("the keys for tokens stay as they are: {error:#}; the server will ask again in a while"));
        }
    }

    /// Reads the file again, for what comes from now on. If it cannot be used, the old rules stay.
    pub fn reload(&self, live: &LiveAccess) {
        let access = self.read().and_then(|mut access| {
            if let Some(url) = access.key_set_url().map(str::to_owned) {
                access.take_key_set(&fetch_key_set(&url)?).with_context(|| url)?;
            }
            Ok(access)
        });
        match access {
            Ok(access) => {
                live.replace(access);
                tell(&format!("{} was read again; new requests and tokens follow it", self.path.display()));
            }
            Err(error) => tell(&format!("the old rules stay: {error:#}; correct it, then send SIGHUP again")),
        }
    }
}

/// Tells whoever runs the server. The terminal may have gone, and eprintln! would panic.
fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Asks for a key set.
fn fetch_key_set(url: &str) -> anyhow::Result<Vec<u8>> {
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<_> = found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .build();
    let agent = ureq::Agent::config_builder()
        .tls_config(tls)
        .https_only(true)
        .timeout_global(Some(KEY_SET_TIMEOUT))
        .build()
        .new_agent();
    let fetched = agent
        .get(url)
        .call()
        .and_then(|mut answer| answer.body_mut().with_config().limit(MAX_KEY_SET_BYTES).read_to_vec());
    fetched.with_context(|| format!("cannot get the key set {url}"))
}
