//! `pushlab access`, and the access file of a server.

use crate::exposed;
use crate::failure::usage;
use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Subcommand};
use pushlab_os::{clock, files};
use pushlab_server::Guests;
use pushlab_server::access::{Access, LiveAccess, Right, Untold};
use pushlab_wire::channel::Channel;
use pushlab_wire::codes::ExitCode;
use rustls::crypto::ring;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Time for a key set to come.
const KEY_SET_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest key set, bytes.
const MAX_KEY_SET_BYTES: u64 = 1 << 20;
/// How often a key set is fetched, or half its maximum age if that is less.
const KEY_SET_PERIOD: Duration = Duration::from_secs(600);
/// Shortest time between two fetches, whatever keys tokens name, or the same half.
const KEY_SET_PAUSE: Duration = Duration::from_secs(10);
/// How often it is looked whether a key set is due.
const WATCH: Duration = Duration::from_millis(500);
/// Shortest time between two lines about refused tokens.
const REFUSALS_PAUSE: Duration = Duration::from_secs(1);

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
    let file = AccessFile::open(&args.file, &Guests::default())?;
    let now_s = clock::since_1970_ns() / 1_000_000_000;
    let access = file.read_with_keys()?;
    if let Some(count) = access.key_count() {
        println!("tokens are checked by {}", if count == 1 { "1 key".to_owned() } else { format!("{count} keys") });
    }
    let live = LiveAccess::new(access);
    println!("{} is in order", args.file.display());
    let person = match &args.token {
        None => live.rules().anonymous(),
        Some(token) => {
            // Standard input may be a socket, which has no path to be opened by.
            let is_input = token == Path::new("-");
            let bytes = if is_input { files::settings_from(io::stdin()) } else { files::read_settings(token) };
            let text = bytes.and_then(files::settings_text);
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
        Channel::parse(name).map_err(|error| usage(format!("{name:?}: {error}")))?;
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
    /// Pages of every site may use the transports.
    is_for_all_pages: bool,
}

impl AccessFile {
    /// This file, whatever the working directory becomes, for a server with these guests.
    pub fn open(path: &Path, guests: &Guests) -> anyhow::Result<Self> {
        let path = path.canonicalize().with_context(|| format!("cannot read the access file {}", path.display()))?;
        Ok(Self { path, is_for_all_pages: *guests == Guests::Everybody })
    }

    /// Reads it, and warns about what is dangerous.
    fn read(&self) -> anyhow::Result<Access> {
        let origin = self.path.display().to_string();
        let text =
            files::read_settings_text(&self.path).with_context(|| format!("cannot read the access file {origin}"))?;
        // What it names stands beside it.
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let access = Access::read(&text, &origin, &mut |file| files::read_settings(&folder.join(file)))?;
        if self.is_for_all_pages && access.cookie().is_some() {
            bail!(
                "{origin}: token.cookie cannot be used with --allow-origin '*', since any page could then act as its \
                 visitor; name the origins whose pages may use the transports, or remove token.cookie"
            );
        }
        let named = access.files().iter().map(|file| (folder.join(&file.path), file.is_secret));
        for (path, is_secret) in named.chain([(self.path.clone(), false)]) {
            exposed::warning(&path, is_secret).inspect(|warning| tell(warning));
        }
        if access.key_set().is_none() && access.key_count() == Some(0) {
            tell(&format!("{origin}: the key set has no key that can check a token; every token is refused"));
        }
        Ok(access)
    }

    /// The same with the keys of its key set, if that is behind an address.
    fn read_with_keys(&self) -> anyhow::Result<Access> {
        let mut access = self.read()?;
        if let Some(url) = access.key_set().map(|set| set.url.clone()) {
            let now_ns = clock::monotonic_ns();
            let count = access.take_key_set(&fetch_key_set(&url)?, now_ns).with_context(|| url.clone())?;
            tell_if_none(count, &url);
        }
        Ok(access)
    }

    /// The rules, for a server. Where the key set is behind an address, a thread keeps it up to date; until it has come,
    /// no token is taken whose key is not in a file.
    pub fn serve(&self) -> anyhow::Result<Arc<LiveAccess>> {
        let live = Arc::new(LiveAccess::new(self.read()?));
        let watched = Arc::downgrade(&live);
        let keep = move || {
            let mut asked_at_ns = None;
            while let Some(live) = watched.upgrade() {
                Self::refresh_keys(&live, &mut asked_at_ns);
                drop(live);
                std::thread::sleep(WATCH);
            }
        };
        std::thread::Builder::new().name("pushlab-keys".to_owned()).spawn(keep)?;
        Ok(live)
    }

    /// Forgets the key set if it is too old, and asks for it if that is due.
    fn refresh_keys(live: &LiveAccess, asked_at_ns: &mut Option<u64>) {
        let now_ns = clock::monotonic_ns();
        if live.forget_old_keys(now_ns) {
            tell("the keys of the key set are too old; tokens that need one are refused until new keys can be fetched");
        }
        let rules = live.rules();
        let Some(set) = rules.key_set() else { return };
        let since = asked_at_ns.map_or(Duration::MAX, |at_ns| Duration::from_nanos(now_ns.saturating_sub(at_ns)));
        let period = KEY_SET_PERIOD.min(set.max_age / 2);
        let is_wanted = || set.age(now_ns).is_none() || live.takes_wish_for_keys();
        if since < period && (since < KEY_SET_PAUSE.min(period) || !is_wanted()) {
            return;
        }
        *asked_at_ns = Some(now_ns);
        let url = &set.url;
        let taken = fetch_key_set(url).and_then(|set| live.take_key_set(&rules, &set, now_ns).context(url.clone()));
        match taken {
            Ok(Some(count)) => tell_if_none(count, url),
            Ok(None) => tell(&format!("{url} answered after the access file had changed; its keys are discarded")),
            Err(error) => {
                let age = set.age(now_ns).map_or("there are none yet".to_owned(), |age| {
                    format!("those fetched {} s ago count for {} s", age.as_secs(), set.max_age.as_secs())
                });
                tell(&format!("no new keys for tokens, {age}: {error:#}; the server will try again"));
            }
        }
    }

    /// Reads the file again, for what comes from now on. If it cannot be used, the old rules stay.
    pub fn reload(&self, live: &LiveAccess) {
        match self.read_with_keys() {
            Ok(access) => {
                live.replace(access);
                tell(&format!("{} was read again; new requests and tokens follow it", self.path.display()));
            }
            Err(error) => tell(&format!("the old rules stay: {error:#}; correct it, then send SIGHUP again")),
        }
    }
}

/// Reports the tokens refused since its last line, at most one line a second. It names no token.
pub fn tell_refusals(live: &LiveAccess, told_at: &mut Option<Instant>) {
    if told_at.is_some_and(|at| at.elapsed() < REFUSALS_PAUSE) {
        return;
    }
    let Some(Untold { count, address, cause }) = live.refusals.take_untold() else { return };
    *told_at = Some(Instant::now());
    let from = address.map_or(String::new(), |address| format!(" from {address}"));
    let more = if count > 1 { format!(" ({} more since the last line)", count - 1) } else { String::new() };
    tell(&format!("refused{from}: {cause}{more}"));
}

fn tell_if_none(count: usize, url: &str) {
    if count == 0 {
        tell(&format!("{url} has no key that can check a token; tokens that need one are refused"));
    }
}

/// Tells whoever runs the server.
pub fn tell(text: &str) {
    eprintln!("{text}");
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
