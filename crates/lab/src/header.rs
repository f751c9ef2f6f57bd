//! What a campaign is: stored before its first run, and enough to go on and to repeat it.

use crate::experiment::Experiment;
use crate::pinning::Pinning;
use crate::presets;
use crate::report::model::LeftOut;
use crate::subjects::manifest::Manifest;
use crate::subjects::named::{Named, Server};
use crate::subjects::runtimes;
use pushlab_probe::machine::MachineFacts;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::time::{Duration, SystemTime};

/// A campaign's header.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// `transports`, or the experiment's name with its profile.
    pub name: String,
    /// The experiments with their profile applied.
    pub experiments: Vec<Experiment>,
    /// Seed of the order and of every run.
    pub seed: u64,
    /// What was typed; nothing for bare figures.
    pub command: Vec<String>,
    /// Version of the program; empty for bare figures.
    pub version: String,
    /// When it began, RFC 3339, UTC.
    pub created_at: String,
    /// Cores of the subject and of the load.
    pub subject_cores: Vec<usize>,
    /// See `subject_cores`.
    pub load_cores: Vec<usize>,
    /// Hash of the program: another build does not go on with this campaign. `None` where it cannot be read.
    #[serde(default)]
    pub build: Option<u64>,
    /// Versions of the foreign subjects, by name.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// What the programs said that the foreign subjects need, asked for their version when the campaign began: by their
    /// name, those that answered. Of bare figures, the facts that came with them.
    #[serde(default)]
    pub runtimes: BTreeMap<String, String>,
    /// Subjects that were asked for and could not be measured.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// The machine; `None` for what was not measured but printed.
    pub machine: Option<MachineFacts>,
}

/// What the catalogue says of the subjects that are in it: their name in results, and their part of it.
fn catalogued(experiments: &[Experiment]) -> BTreeMap<String, (&'static Manifest, Option<String>)> {
    let known = |text: &String| {
        let named = Named::parse(text).ok()?;
        match named.server {
            Server::Catalogued(entry, way) => Some((named.name, (&entry.manifest, way))),
            Server::Ours(_) | Server::Elsewhere(_) => None,
        }
    };
    experiments.iter().flat_map(|experiment| &experiment.subjects).filter_map(known).collect()
}

fn versions(experiments: &[Experiment]) -> BTreeMap<String, String> {
    let version = |(name, (manifest, way)): (String, (&Manifest, Option<String>))| {
        (name, manifest.version_of(way.as_deref()).to_owned())
    };
    catalogued(experiments).into_iter().map(version).collect()
}

fn tools(experiments: &[Experiment]) -> BTreeSet<&'static str> {
    catalogued(experiments).into_values().flat_map(|(manifest, _)| &manifest.tools).map(String::as_str).collect()
}

/// Hash of the program that runs.
pub fn this_build() -> Option<u64> {
    let bytes = std::fs::read(std::env::current_exe().ok()?).ok()?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    Some(hasher.finish())
}

impl Header {
    /// The header of a campaign that begins now. Asks the programs that its subjects need for their versions, which
    /// takes a second or two.
    pub fn new(name: &str, experiments: Vec<Experiment>, seed: u64, command: Vec<String>, pinning: &Pinning) -> Self {
        Self {
            name: name.to_owned(),
            versions: versions(&experiments),
            runtimes: runtimes::versions(tools(&experiments)),
            experiments,
            seed,
            command,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            subject_cores: pinning.subject.clone(),
            load_cores: pinning.load.clone(),
            build: this_build(),
            left_out: Vec::new(),
            machine: Some(MachineFacts::read(Duration::ZERO)),
        }
    }

    /// Runs of all experiments together.
    pub fn planned(&self) -> usize {
        self.experiments.iter().map(Experiment::runs).fold(0, usize::saturating_add)
    }

    /// Title for people.
    pub fn title(&self) -> String {
        match self.experiments.as_slice() {
            [one] => one.title.clone(),
            _ => presets::suite_title(&self.name).to_owned(),
        }
    }

    /// Name of a folder for its report: name, time and number in the store. An imported name may be any text, so what could lead out of
    /// the folder of reports is replaced.
    pub fn folder_name(&self, id: i64) -> String {
        let stamp: String = self.created_at.chars().filter(char::is_ascii_digit).take(14).collect();
        let is_safe = |c: char| c.is_alphanumeric() || "-_".contains(c);
        let name: String = self.name.chars().map(|c| if is_safe(c) { c } else { '-' }).collect();
        format!("{name}-{stamp}-{id}")
    }

    /// The environment, as label and value.
    pub fn facts(&self) -> Vec<(String, String)> {
        let cores = |cores: &[usize]| cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let unknown = || "unknown".to_owned();
        let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64);
        if self.version.is_empty() {
            // Bare figures: nobody here knows more of where they were measured than what came with them.
            let came = self.runtimes.iter().map(|(name, value)| (name.clone(), value.clone()));
            return std::iter::once(("imported".to_owned(), self.created_at.clone())).chain(came).collect();
        }
        let mut facts = vec![("pushlab", self.version.clone()), ("began", self.created_at.clone())];
        if let Some(machine) = &self.machine {
            facts.extend([
                ("kernel", machine.kernel.clone().unwrap_or_else(unknown)),
                ("distribution", machine.distribution.clone().unwrap_or_else(unknown)),
                ("CPU", machine.cpu_model.clone().unwrap_or_else(unknown)),
                ("subject's cores", cores(&self.subject_cores)),
                ("load's cores", cores(&self.load_cores)),
                ("memory", machine.memory_bytes.map_or_else(unknown, gib)),
                ("descriptors of a process", machine.nofile_soft.map_or_else(unknown, |n| n.to_string())),
                ("somaxconn", machine.somaxconn.map_or_else(unknown, |n| n.to_string())),
                ("network", "loopback".to_owned()),
            ]);
        }
        let runtimes = self.runtimes.iter().map(|(tool, said)| (tool.clone(), said.clone()));
        facts.into_iter().map(|(label, value)| (label.to_owned(), value)).chain(runtimes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_catalogue_by_the_name_in_results() {
        let mut experiment = presets::load("tangen-chat", None).unwrap();
        experiment.subjects = ["pushlab", "old=/old/pushlab", "node-bare:websocket"].map(str::to_owned).to_vec();
        let experiments = [experiment];
        let own = versions(&experiments);
        assert_eq!(own.keys().collect::<Vec<_>>(), ["node-bare:websocket"]);
        assert!(own.values().all(|version| version.starts_with(|c: char| c.is_ascii_digit())), "{own:?}");
        assert_eq!(tools(&experiments), BTreeSet::from(["node", "npm"]));
        let [mut experiment] = experiments;
        experiment.subjects = ["go-bare", "go-bare:gws"].map(str::to_owned).to_vec();
        let own = versions(&[experiment]);
        assert_eq!(own.values().collect::<Vec<_>>(), ["1.5.3", "1.8.9"], "gorilla's, and that of gws");
    }

    #[test]
    fn what_the_programs_said_is_among_the_facts() {
        let mut header = Header::new("some", Vec::new(), 1, Vec::new(), &Pinning::of_this_machine());
        assert!(header.runtimes.is_empty(), "nobody needs any");
        header.runtimes.insert("go".to_owned(), "go version go1.26.1 linux/amd64".to_owned());
        let fact = ("go".to_owned(), "go version go1.26.1 linux/amd64".to_owned());
        assert_eq!(header.facts().last(), Some(&fact));
    }
}
