//! Experiments: TOML files, and what they mean once a profile has been applied.

use pushlab_load::plan::{Phases, Prober, ProberPath, Scenario};
use pushlab_stats::GeneratorLimits;
use pushlab_wire::transport::Transport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most runs of one experiment: more is a typing error, not a plan.
pub const MAX_RUNS: usize = 100_000;
/// Most clients of one cell.
pub const MAX_CLIENTS: u32 = 1_000_000;

/// An experiment: subjects × transports × clients × policies, repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Lower-case letters, digits and hyphens.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What the traffic is and why, in a few sentences.
    #[serde(default)]
    pub description: String,
    /// The published study that it repeats, e.g. `tangen-2015`.
    #[serde(default)]
    pub study: Option<String>,
    /// Servers to measure. `pushlab` is ours.
    #[serde(default = "our_server")]
    pub subjects: Vec<String>,
    /// Transports to compare.
    pub transports: Vec<Transport>,
    /// Numbers of virtual clients.
    pub clients: Vec<u32>,
    /// What our server does with slow subscribers; several are compared.
    #[serde(default = "close_policy")]
    pub policies: Vec<SlowPolicy>,
    /// Runs of each cell.
    pub repeats: u32,
    /// The traffic.
    pub scenario: Scenario,
    /// How long each phase lasts, in ms.
    pub phases: Phases,
    /// The ping client.
    #[serde(default = "default_prober")]
    pub prober: Option<Prober>,
    /// How polling transports ask.
    #[serde(default)]
    pub polling: Polling,
    /// Connections opened per second.
    #[serde(default = "default_connect_rate")]
    pub connect_rate: u32,
    /// Further options of `pushlab serve`, e.g. `["--history-messages", "1000"]`.
    #[serde(default)]
    pub server_options: Vec<String>,
    /// What the generator may do before a run is void.
    #[serde(default)]
    pub generator_limits: GeneratorLimits,
    /// Busy-wait added to every turn of the generator, in µs: makes a run void on purpose.
    #[serde(default)]
    pub handicap_us: u64,
}

/// How polling transports ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Polling {
    /// Time between two polls of a client (polling, websocket-polling), in ms.
    pub interval_ms: u64,
    /// How long a long poll may be held, in seconds.
    pub wait_s: u64,
}

impl Default for Polling {
    fn default() -> Self {
        Self { interval_ms: 500, wait_s: 25 }
    }
}

/// What our server does with a slow subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowPolicy {
    /// The connection is closed.
    Close,
    /// The oldest messages go, and a gap is told.
    DropOldest,
    /// Only the latest message of each channel stays.
    Conflate,
}

impl SlowPolicy {
    /// The name, as the server's option takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::DropOldest => "drop-oldest",
            Self::Conflate => "conflate",
        }
    }
}

fn our_server() -> Vec<String> {
    vec!["pushlab".to_owned()]
}

fn close_policy() -> Vec<SlowPolicy> {
    vec![SlowPolicy::Close]
}

fn default_connect_rate() -> u32 {
    2000
}

fn default_prober() -> Option<Prober> {
    Some(Prober { interval_ms: 50, over: ProberPath::SameTransport })
}

/// What is wrong with an experiment.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// Not TOML, or not of the experiment's shape.
    #[error("{origin}: {source}\nThe format is in schema/experiment.schema.json; `pushlab list` shows examples.")]
    Format {
        /// File or preset.
        origin: String,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// There is no such profile.
    #[error("{origin} has no profile {profile:?}; it has {known}")]
    UnknownProfile {
        /// File or preset.
        origin: String,
        /// What was asked for.
        profile: String,
        /// What there is.
        known: String,
    },
    /// A value that makes no sense.
    #[error("{origin}: {what}")]
    Value {
        /// File or preset.
        origin: String,
        /// Which, and what would.
        what: String,
    },
}

impl Experiment {
    /// Reads an experiment and applies a profile: a table `[profile.NAME]` whose values replace those of the file.
    /// `origin` names the file in errors.
    pub fn parse(text: &str, profile: Option<&str>, origin: &str) -> Result<Self, ExperimentError> {
        let format = |source| ExperimentError::Format { origin: origin.to_owned(), source: Box::new(source) };
        let mut table: toml::Table = text.parse().map_err(format)?;
        let profiles = match table.remove("profile") {
            Some(toml::Value::Table(profiles)) => profiles,
            _ => toml::Table::new(),
        };
        if let Some(profile) = profile {
            let Some(toml::Value::Table(changes)) = profiles.get(profile) else {
                let known: Vec<&str> = profiles.keys().map(String::as_str).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(ExperimentError::UnknownProfile {
                    origin: origin.to_owned(),
                    profile: profile.to_owned(),
                    known,
                });
            };
            merge(&mut table, changes);
        }
        let experiment: Self = table.try_into().map_err(format)?;
        experiment.check().map_err(|what| ExperimentError::Value { origin: origin.to_owned(), what })?;
        Ok(experiment)
    }

    fn check(&self) -> Result<(), String> {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(is_name) {
            return Err(format!("name {:?}: use lower-case letters, digits and hyphens", self.name));
        }
        for (what, is_empty) in [
            ("subjects", self.subjects.is_empty()),
            ("transports", self.transports.is_empty()),
            ("clients", self.clients.is_empty()),
            ("policies", self.policies.is_empty()),
        ] {
            if is_empty {
                return Err(format!("{what} is empty; name at least one"));
            }
        }
        if let Some(unknown) = self.subjects.iter().find(|s| *s != "pushlab") {
            return Err(format!("subject {unknown:?} is not known; known is pushlab"));
        }
        if let Some(clients) = self.clients.iter().find(|&&n| n == 0 || n > MAX_CLIENTS) {
            return Err(format!("clients {clients}: from 1 to {MAX_CLIENTS}"));
        }
        if self.repeats == 0 || self.runs() > MAX_RUNS {
            return Err(format!(
                "{} runs: repeats is at least 1, and all runs together at most {MAX_RUNS}",
                self.runs()
            ));
        }
        if self.phases.load_ms == 0 && self.scenario != Scenario::Idle {
            return Err("phases.load_ms is 0, so nothing would be measured".to_owned());
        }
        if self.polling.interval_ms == 0 || self.connect_rate == 0 {
            return Err("polling.interval_ms and connect_rate are at least 1".to_owned());
        }
        Ok(())
    }

    /// How many runs it plans.
    pub fn runs(&self) -> usize {
        self.subjects.len() * self.transports.len() * self.policies.len() * self.clients.len() * self.repeats as usize
    }

    /// Planned length of one run, in ms, starting and stopping not counted.
    pub fn run_ms(&self) -> u64 {
        let p = &self.phases;
        p.idle_ms + p.warm_up_ms + p.load_ms + p.after_ms
    }
}

fn merge(base: &mut toml::Table, changes: &toml::Table) {
    for (key, value) in changes {
        match (base.get_mut(key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(changes)) => merge(base, changes),
            _ => drop(base.insert(key.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        name = "small"
        title = "Small"
        transports = ["websocket", "sse"]
        clients = [1, 2]
        repeats = 3
        scenario = { kind = "chat", interval_ms = 3000, payload_bytes = 71 }
        phases = { connect_ms = 1000, warm_up_ms = 0, idle_ms = 0, load_ms = 100, drain_ms = 100, after_ms = 0 }
        [profile.quick]
        repeats = 1
        phases = { load_ms = 50 }
    "#;

    #[test]
    fn a_profile_replaces_only_what_it_names() {
        let full = Experiment::parse(SMALL, None, "small").unwrap();
        assert_eq!((full.runs(), full.phases.load_ms, full.phases.drain_ms), (12, 100, 100));
        let quick = Experiment::parse(SMALL, Some("quick"), "small").unwrap();
        assert_eq!((quick.runs(), quick.phases.load_ms, quick.phases.drain_ms), (4, 50, 100));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str, profile| Experiment::parse(text, profile, "file.toml").unwrap_err().to_string();
        assert!(error(SMALL, Some("slow")).contains("no profile \"slow\"; it has quick"));
        assert!(error(&SMALL.replace("repeats = 3", "repeets = 3"), None).contains("repeets"));
        assert!(error(&SMALL.replace("\"sse\"", "\"carrier-pigeon\""), None).contains("carrier-pigeon"));
        assert!(error(&SMALL.replace("[1, 2]", "[0]"), None).contains("clients 0"));
        assert!(error(&SMALL.replace("\"small\"", "\"../small\""), None).contains("hyphens"));
        assert!(error("name = ", None).contains("file.toml"));
    }
}
