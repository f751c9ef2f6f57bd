//! What a campaign is: stored before its first run, and enough to go on and to repeat it.

use crate::experiment::Experiment;
use crate::pinning::Pinning;
use crate::presets;
use pushlab_probe::machine::MachineFacts;
use serde::{Deserialize, Serialize};
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
    /// The machine; `None` for what was not measured but printed.
    pub machine: Option<MachineFacts>,
}

/// Hash of the program that runs.
pub fn this_build() -> Option<u64> {
    let bytes = std::fs::read(std::env::current_exe().ok()?).ok()?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    Some(hasher.finish())
}

impl Header {
    /// The header of a campaign that begins now.
    pub fn new(name: &str, experiments: Vec<Experiment>, seed: u64, command: Vec<String>, pinning: &Pinning) -> Self {
        Self {
            name: name.to_owned(),
            experiments,
            seed,
            command,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            subject_cores: pinning.subject.clone(),
            load_cores: pinning.load.clone(),
            build: this_build(),
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
            // Bare figures: nobody here knows when and where they were measured.
            return vec![("imported".to_owned(), self.created_at.clone())];
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
        facts.into_iter().map(|(label, value)| (label.to_owned(), value)).collect()
    }
}
