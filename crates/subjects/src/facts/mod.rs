//! How friendly a server is to those who use it, in facts that are counted and measured: lines to write, bytes to load,
//! what there is to install, how fast it starts, and what its clients get after they were away.

pub mod bundle;
pub mod count;
pub mod cuts;
mod gate;

use crate::catalogue::Entry;
use crate::install::{Cache, Installed};
use crate::running::{ForeignStart, Subject, SubjectError};
use bundle::ClientSize;
use cuts::{AfterCut, BetweenPolls, Spoken};
use pushlab_os::new_file;
use pushlab_wire::transport::Transport;
use pushlab_workload::plan::Speaks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The name under which our own server's facts are told.
pub const OWN: &str = "pushlab";
/// The smallest page of our own client.
const OWN_CLIENT: &str = include_str!("client.js");
/// Where they lie, beside the installation.
const FILE: &str = "pushlab-facts.json";
/// Starts of which the median is told.
const STARTS: usize = 5;

/// A fact, or why it cannot be had: never zero in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fact<T> {
    /// What was found.
    Known(T),
    /// Why nothing was.
    Unknown(String),
}

impl<T> From<Result<T, String>> for Fact<T> {
    fn from(result: Result<T, String>) -> Self {
        result.map_or_else(Self::Unknown, Self::Known)
    }
}

impl<T> Fact<T> {
    /// What is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// Why it is not.
    pub fn why_not(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(why) => Some(why),
        }
    }
}

/// Everything that is counted and measured of one server. What each figure means is in `docs/facts.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// The subject.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Lines of the server that has to be written, comments and empty lines left out.
    pub server_lines: Fact<u32>,
    /// Lines of the smallest page that subscribes and prints what comes, counted in the same way.
    pub client_lines: Fact<u32>,
    /// What that page loads; nothing where the browser's own interfaces are enough.
    pub client_size: Fact<ClientSize>,
    /// Packages that are installed for the server.
    pub packages: Fact<u32>,
    /// What it takes on the disk, bytes.
    pub installed_bytes: Fact<u64>,
    /// From the start of the process until it takes connections: several starts in order of time, ms.
    pub starts_ms: Fact<Vec<f64>>,
    /// Every endpoint, in the order of the manifest.
    #[serde(alias = "ways")]
    pub endpoints: Vec<EndpointFacts>,
}

/// What clients get over one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointFacts {
    /// Its name in the manifest.
    pub name: String,
    /// How bytes travel.
    pub transport: Transport,
    /// After they were cut off for 5 s.
    pub after_cut: Fact<AfterCut>,
    /// Between two polls; `None` for an endpoint that does not poll.
    pub between_polls: Option<Fact<BetweenPolls>>,
}

impl Facts {
    /// Median of its starts, ms.
    pub fn cold_start_ms(&self) -> Option<f64> {
        let mut starts = self.starts_ms.known()?.clone();
        starts.sort_by(f64::total_cmp);
        let middle = starts.len().checked_sub(1)? / 2;
        Some(starts[middle].midpoint(starts[starts.len() / 2]))
    }

    /// Every fact that cannot be had: which, and why.
    pub fn unknown(&self) -> Vec<(String, &str)> {
        let named = [
            ("server lines", self.server_lines.why_not()),
            ("client lines", self.client_lines.why_not()),
            ("client size", self.client_size.why_not()),
            ("packages", self.packages.why_not()),
            ("installed", self.installed_bytes.why_not()),
            ("cold start", self.starts_ms.why_not()),
        ];
        let mut all: Vec<(String, &str)> =
            named.into_iter().filter_map(|(what, why)| Some((what.to_owned(), why?))).collect();
        for endpoint in &self.endpoints {
            let after_cut = endpoint.after_cut.why_not().map(|why| (format!("{} after a cut", endpoint.name), why));
            let polls = endpoint.between_polls.as_ref().and_then(Fact::why_not);
            all.extend(after_cut);
            all.extend(polls.map(|why| (format!("{} between polls", endpoint.name), why)));
        }
        all
    }
}

/// A server whose facts are wanted.
#[derive(Debug, Clone, Copy)]
pub enum Whose<'a> {
    /// Our own.
    Ours,
    /// Somebody else's, as it is installed.
    Foreign(&'a Entry, &'a Installed),
}

/// How facts are measured.
#[derive(Debug, Clone)]
pub struct FactsOptions {
    /// The `pushlab` program, which is the worker, and our own server.
    pub program: PathBuf,
    /// Where subjects write their standard error.
    pub logs: PathBuf,
}

/// Facts cannot be had at all.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// Somebody pressed Ctrl-C.
    #[error("interrupted while the facts of {0} were measured; nothing of them is kept")]
    Interrupted(String),
    /// They cannot be written down.
    #[error("cannot keep facts in {path} (set PUSHLAB_CACHE to another cache): {source}")]
    Keep {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The facts of a foreign server, if they were measured since it was installed.
pub fn stored(cache: &Cache, entry: &Entry) -> Option<Facts> {
    read(&cache.folder(entry).join(FILE))
}

/// The facts of our own server, if this very program has measured them.
pub fn stored_ours(cache: &Cache, program: &Path) -> Option<Facts> {
    read(&own_file(cache, program))
}

fn read(path: &Path) -> Option<Facts> {
    // What an earlier build has written in another shape is measured anew.
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Another build of the program has another file.
fn own_file(cache: &Cache, program: &Path) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    if let Ok(meta) = fs::metadata(program) {
        (meta.len(), meta.modified().ok()).hash(&mut hasher);
    }
    cache.path().join(OWN).join(format!("{:016x}-{FILE}", hasher.finish()))
}

/// Counts and measures everything, and writes it down. It takes half a minute for each endpoint;
/// `progress` is told what is being looked at.
///
/// # Errors
/// See [`FactsError`]; a single fact that cannot be had is no error.
pub fn measure(
    cache: &Cache,
    whose: Whose<'_>,
    options: &FactsOptions,
    progress: &mut dyn FnMut(&str),
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<Facts, FactsError> {
    // Asked once more than it is true: what has been broken off must not be kept.
    let mut has_been = false;
    let mut interrupted = || {
        has_been = has_been || is_interrupted();
        has_been
    };
    let mut facts = whose.counted(cache, options, &mut interrupted);
    progress("starts");
    facts.starts_ms = starts(&whose, options, &mut interrupted).into();
    for (name, spoken) in whose.endpoints(options) {
        progress(&name);
        let (after_cut, between_polls) = way_facts(&whose, &name, &spoken, options, &mut interrupted);
        facts.endpoints.push(EndpointFacts { name, transport: spoken.transport, after_cut, between_polls });
    }
    if interrupted() {
        return Err(FactsError::Interrupted(facts.name));
    }
    let path = match whose {
        Whose::Ours => own_file(cache, &options.program),
        Whose::Foreign(_, installed) => installed.folder.join(FILE),
    };
    keep(&path, &facts).map_err(|source| FactsError::Keep { path, source })?;
    Ok(facts)
}

fn keep(path: &Path, facts: &Facts) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let text = serde_json::to_vec_pretty(facts)?;
    new_file::write(path, &text)
}

impl Whose<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Ours => OWN,
            Self::Foreign(entry, _) => &entry.manifest.name,
        }
    }

    fn start(&self, what: &str, options: &FactsOptions) -> Result<Subject, SubjectError> {
        let log = options.logs.join(format!("{}-{what}.log", self.name()));
        match *self {
            Self::Ours => Subject::start_ours(&options.program, log),
            Self::Foreign(entry, installed) => Subject::start_foreign(ForeignStart {
                manifest: &entry.manifest,
                installed,
                host: Ipv4Addr::LOCALHOST,
                port: None,
                namespace: None,
                feed: None,
                compression_from: None,
                logs_collections: false,
                environment: &[],
                cores: &[],
                log,
            }),
        }
    }

    /// What can be counted while nothing runs.
    fn counted(&self, cache: &Cache, options: &FactsOptions, is_interrupted: &mut dyn FnMut() -> bool) -> Facts {
        let none_yet = Fact::Known(Vec::new());
        match *self {
            Self::Ours => Facts {
                name: OWN.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                // It is a command: there is nothing to write.
                server_lines: Fact::Known(0),
                client_lines: Fact::Known(count::code_lines(count::CLIENT_FILE, OWN_CLIENT)),
                client_size: bundle::own_client_size(cache, is_interrupted).into(),
                // One program, the lab included, and nothing beside it.
                packages: Fact::Known(0),
                installed_bytes: fs::metadata(&options.program)
                    .map(|meta| meta.len())
                    .map_err(|error| format!("cannot look at {}: {error}", options.program.display()))
                    .into(),
                starts_ms: none_yet,
                endpoints: Vec::new(),
            },
            Self::Foreign(entry, installed) => Facts {
                name: entry.manifest.name.clone(),
                version: entry.manifest.version.clone(),
                server_lines: count::server_lines(entry).into(),
                client_lines: count::client_lines(entry).into(),
                client_size: bundle::client_size(cache, entry, is_interrupted).into(),
                packages: count::packages(&entry.manifest, &installed.folder).into(),
                installed_bytes: count::installed_bytes(&entry.manifest, installed).into(),
                starts_ms: none_yet,
                endpoints: Vec::new(),
            },
        }
    }

    fn endpoints<'o>(&self, options: &'o FactsOptions) -> Vec<(String, Spoken<'o>)> {
        let spoken = |transport, speaks: Option<Speaks>| Spoken { transport, speaks, program: &options.program };
        match *self {
            Self::Ours => {
                Transport::ALL.iter().map(|&endpoint| (endpoint.name().to_owned(), spoken(endpoint, None))).collect()
            }
            Self::Foreign(entry, _) => {
                let endpoints = entry.manifest.endpoints.iter();
                endpoints
                    .map(|endpoint| (endpoint.name.clone(), spoken(endpoint.transport, Some(endpoint.speaks()))))
                    .collect()
            }
        }
    }
}

fn starts(
    whose: &Whose<'_>,
    options: &FactsOptions,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<Vec<f64>, String> {
    let start = || {
        if is_interrupted() {
            return Err("interrupted".to_owned());
        }
        let begin = Instant::now();
        let subject = whose.start("start", options).map_err(|error| error.to_string())?;
        let took_ms = begin.elapsed().as_secs_f64() * 1e3;
        subject.stop();
        Ok(took_ms)
    };
    std::iter::repeat_with(start).take(STARTS).collect()
}

/// Each run has a subject of its own, which nobody has published to.
fn way_facts(
    whose: &Whose<'_>,
    name: &str,
    spoken: &Spoken<'_>,
    options: &FactsOptions,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> (Fact<AfterCut>, Option<Fact<BetweenPolls>>) {
    let start = || whose.start(name, options).map_err(|error| error.to_string());
    let after_cut = spoken.after_cut(start, is_interrupted).into();
    (after_cut, spoken.between_polls(start, is_interrupted).map(Fact::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::catalogue;
    use cuts::Outcome;

    fn facts() -> Facts {
        let found = AfterCut { outcome: Outcome::Lost, lost: 3, expected: 9, duplicated: 0, gaps: 0 };
        let endpoint = |name: &str, transport, after_cut| EndpointFacts {
            name: name.to_owned(),
            transport,
            after_cut,
            between_polls: None,
        };
        Facts {
            name: "node-bare".to_owned(),
            version: "1".to_owned(),
            server_lines: Fact::Known(7),
            client_lines: Fact::Unknown("nobody wrote one".to_owned()),
            client_size: Fact::Known(ClientSize { minified_bytes: 0, gzipped_bytes: 0 }),
            packages: Fact::Known(1),
            installed_bytes: Fact::Known(2),
            starts_ms: Fact::Known(vec![900.0, 100.0, 300.0, 200.0, 400.0]),
            endpoints: vec![
                endpoint("a", Transport::Polling, Fact::Known(found)),
                endpoint("b", Transport::Sse, Fact::Unknown("it died".to_owned())),
                endpoint("c", Transport::Sse, Fact::Known(found)),
            ],
        }
    }

    #[test]
    fn facts_tell_their_median_and_what_is_missing() {
        let facts = facts();
        assert_eq!(facts.cold_start_ms(), Some(300.0), "not the first");
        let missing = [("client lines".to_owned(), "nobody wrote one"), ("b after a cut".to_owned(), "it died")];
        assert_eq!(facts.unknown(), missing);
        let even = Facts { starts_ms: Fact::Known(vec![1.0, 4.0]), ..facts.clone() };
        assert_eq!(even.cold_start_ms(), Some(2.5));
        let none = Facts { starts_ms: Fact::Known(Vec::new()), ..facts };
        assert_eq!(none.cold_start_ms(), None);
    }

    #[test]
    fn facts_are_kept_beside_the_installation_of_these_very_files() {
        let root = std::env::temp_dir().join(format!("pushlab-facts-{}", std::process::id()));
        let cache = Cache::at(root.clone());
        let entry = catalogue().unwrap().find("node-bare").unwrap();
        assert_eq!(stored(&cache, entry), None);
        keep(&cache.folder(entry).join(FILE), &facts()).unwrap();
        assert_eq!(stored(&cache, entry), Some(facts()));
        let mut changed = entry.clone();
        changed.files.pop();
        assert_eq!(stored(&cache, &changed), None, "another version has none yet");
        fs::write(cache.folder(entry).join(FILE), "{}").unwrap();
        assert_eq!(stored(&cache, entry), None, "another shape is none");
        fs::remove_dir_all(root).unwrap();
    }
}
