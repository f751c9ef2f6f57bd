//! The header of a campaign that begins, and what is known of its subjects.

use crate::pinning::Pinning;
use crate::wall_clock;
use pushlab_analysis::header::Header;
use pushlab_analysis::report::KnownSubject;
use pushlab_experiment::Experiment;
use pushlab_experiment::subject::name_of;
use pushlab_probe::machine::MachineFacts;
use pushlab_subjects::manifest::{Manifest, Platform};
use pushlab_subjects::named::{Named, Server};
use pushlab_subjects::runtimes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::time::Duration;

/// What the catalogue says of the subjects that are in it: their name in results, and their part of it.
fn catalogued(experiments: &[Experiment]) -> BTreeMap<String, (&'static Manifest, Option<String>)> {
    let known = |text: &String| {
        let named = Named::parse(text).ok()?;
        match named.server {
            Server::Catalogued(entry, endpoint) => Some((named.name, (&entry.manifest, endpoint))),
            Server::Ours(_) | Server::External(_) => None,
        }
    };
    experiments.iter().flat_map(|experiment| &experiment.subjects).filter_map(known).collect()
}

fn versions(experiments: &[Experiment]) -> BTreeMap<String, String> {
    let version = |(name, (manifest, endpoint)): (String, (&Manifest, Option<String>))| {
        (name, manifest.version_of(endpoint.as_deref()).to_owned())
    };
    catalogued(experiments).into_iter().map(version).collect()
}

fn tools(experiments: &[Experiment]) -> BTreeSet<&'static str> {
    catalogued(experiments).into_values().flat_map(|(manifest, _)| &manifest.tools).map(String::as_str).collect()
}

/// Hash of the program that runs.
pub fn this_build() -> Option<u64> {
    static HASH: OnceLock<Option<u64>> = OnceLock::new();
    *HASH.get_or_init(|| {
        let bytes = std::fs::read(std::env::current_exe().ok()?).ok()?;
        // In assembly, so that it is as fast in a build for tests, whose program is the largest.
        let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
        digest.as_ref().first_chunk().copied().map(u64::from_be_bytes)
    })
}

/// What is known of the subjects of these experiments, by their names in results. A name may be that of a build or a
/// URL, whatever the catalogue calls so: what the first text of it stands for counts.
pub fn known_subjects(experiments: &[Experiment]) -> BTreeMap<String, KnownSubject> {
    let mut known: BTreeMap<String, Option<KnownSubject>> = BTreeMap::new();
    for text in experiments.iter().flat_map(|experiment| &experiment.subjects) {
        known.entry(name_of(text).to_owned()).or_insert_with(|| known_subject(text));
    }
    known.into_iter().filter_map(|(name, subject)| Some((name, subject?))).collect()
}

fn known_subject(text: &str) -> Option<KnownSubject> {
    let (title, platform) = match Named::parse(text).ok()?.server {
        Server::Ours(_) => ("Pushlab", Platform::Rust),
        Server::Catalogued(entry, _) => (entry.manifest.title.as_str(), entry.manifest.platform),
        Server::External(_) => return None,
    };
    let (title, platform_title) = (title.to_owned(), platform.title().to_owned());
    Some(KnownSubject { title, platform: platform_title, warms_up: platform == Platform::Java })
}

/// The header of a campaign that begins now and plans nothing yet.
pub fn empty(name: &str, seed: u64, command: Vec<String>, pinning: &Pinning) -> Header {
    Header {
        name: name.to_owned(),
        versions: BTreeMap::new(),
        runtimes: BTreeMap::new(),
        experiments: Vec::new(),
        search: None,
        seed,
        command,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: wall_clock::now(),
        subject_cores: pinning.subject.clone(),
        load_cores: pinning.load.clone(),
        prober_core: pinning.prober,
        build: this_build(),
        left_out: Vec::new(),
        machine: Some(MachineFacts::read(Duration::ZERO)),
        fleet: Vec::new(),
        agents: Vec::new(),
    }
}

/// The same with the versions of the subjects, and of the programs that they need: these are asked, which takes a second
/// or two.
pub fn with_versions(header: Header) -> Header {
    let searched = header.search.iter().map(|search| &search.experiment);
    let experiments: Vec<Experiment> = header.experiments.iter().chain(searched).cloned().collect();
    Header { versions: versions(&experiments), runtimes: runtimes::versions(tools(&experiments)), ..header }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;

    #[test]
    fn versions_are_those_of_the_catalogue_by_the_name_in_results() {
        let mut experiment = experiments::load("tangen-chat", None).unwrap();
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
        let mut header = empty("some", 1, Vec::new(), &Pinning::of_this_machine());
        assert!(header.runtimes.is_empty(), "nobody needs any");
        header.runtimes.insert("go".to_owned(), "go version go1.26.1 linux/amd64".to_owned());
        let fact = ("go".to_owned(), "go version go1.26.1 linux/amd64".to_owned());
        assert_eq!(header.facts().last(), Some(&fact));
    }

    #[test]
    fn subjects_are_known_as_the_catalogue_has_them() {
        let known = |name: &str| {
            let mut experiment = experiments::load("tangen-chat", None).unwrap();
            experiment.subjects = vec![name.to_owned()];
            known_subjects(&[experiment]).into_values().next().map(|known| (known.title, known.platform))
        };
        let told = |title: &str, platform: &str| Some((title.to_owned(), platform.to_owned()));
        assert_eq!(known("go-bare:gws"), told("Go, bare", "Go"));
        assert_eq!(known("signalr"), told("SignalR in Go", "Go"));
        assert_eq!(known("signalr=/another/pushlab"), told("Pushlab", "Rust"), "another build, whatever it is called");
        assert_eq!(known("fast"), None);
    }
}
