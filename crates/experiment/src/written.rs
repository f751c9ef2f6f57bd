//! Experiments as files say them, with a profile applied.

use crate::card::CardRow;
use crate::cell::{SlowPolicy, Sweep};
use crate::expect::Expect;
use crate::findings::Finding;
use crate::polling::Polling;
use crate::prober_choice::{self, default_prober};
use crate::proxy::Proxy;
use crate::renamed::modernise;
use crate::studies;
use crate::variant::Variant;
use pushlab_link::profile::Profile;
use pushlab_stats::GeneratorLimits;
use pushlab_wire::transport::Transport;
use pushlab_workload::payload::Content;
use pushlab_workload::plan::{ClientsIn, Phases, Prober, RequestHeaders, Sockets};
use pushlab_workload::scenario::{Scenario, Shape};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Most runs of one experiment: more is a typing error, not a plan.
pub const MAX_RUNS: usize = 100_000;
/// What stands for plain loopback where a network is asked for.
pub const NO_NETWORK: &str = "none";
/// Most clients of one cell.
pub const MAX_CLIENTS: u32 = 1_000_000;
/// Longest phase, ms: 31 days.
pub const MAX_PHASE_MS: u64 = 31 * 24 * 3_600_000;
/// Longest name of an experiment, variant or network, bytes: it is part of names of files, and of every cell.
pub const MAX_NAME_BYTES: usize = 64;
/// Shortest warm-up at whose end it is tested whether the subject is steady, ms: ten windows of a second, what is cut
/// off at both ends, and what a busy machine tells late.
pub const WARM_UP_TESTED_MIN_MS: u64 = 15_000;

/// Which cells of a repeat run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtOnce {
    /// Those that differ only in transport.
    Transports,
    /// Those that differ only in transport or variant.
    Variants,
}

/// Reads `true` of stored experiments too, which stood for transports.
fn at_once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AtOnce>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Flag(bool),
        Which(AtOnce),
    }
    Ok(match Option::deserialize(deserializer)? {
        None | Some(Stored::Flag(false)) => None,
        Some(Stored::Flag(true)) => Some(AtOnce::Transports),
        Some(Stored::Which(which)) => Some(which),
    })
}

/// An experiment: subjects × transports × variants × networks × policies × clients × rates × sizes, repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Experiment")]
pub struct Written {
    /// Lower-case letters, digits and hyphens.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What the traffic is and why, in a few sentences.
    #[serde(default)]
    pub description: String,
    /// The published study that it repeats, e.g. `tangen-2015`: its numbers are drawn beside those measured.
    #[serde(default)]
    pub study: Option<String>,
    /// The experiment under whose name the study's numbers are stored, if not this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_as: Option<String>,
    /// Servers to measure: `pushlab` is ours, `NAME=PATH` another build of it; `socketio` or `sockjs:htmlfile` is one of
    /// `pushlab subjects list`, `NAME=[DIALECT+]https://HOST[:PORT][/PATH]` a running one.
    #[serde(default = "our_server")]
    pub subjects: Vec<String>,
    /// Transports to compare.
    pub transports: Vec<Transport>,
    /// Numbers of virtual clients.
    pub clients: Vec<u32>,
    /// Planned deliveries per second of all clients together, in place of the scenario's own interval.
    #[serde(default)]
    pub deliveries_per_s: Vec<u32>,
    /// Sizes of a publication's data, bytes, in place of the scenario's own.
    #[serde(default)]
    pub payload_bytes: Vec<u32>,
    /// What our server does with slow subscribers; several are compared.
    #[serde(default = "close_policy")]
    pub policies: Vec<SlowPolicy>,
    /// Variants of the traffic that are compared with each other, e.g. echo and broadcast.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// Profiles of the link between clients and subject, e.g. `4g`; none for plain loopback.
    #[serde(default)]
    pub networks: Vec<String>,
    /// Runs of each cell.
    pub repeats: u32,
    /// Blocks into which the repeats are divided evenly. Within a block each server is started once and stays up, and
    /// all cells take turns, in random order. By default the server is started anew for each run, and each repeat is a
    /// block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
    /// Length of a turn, in ms. The cells of a repeat that differ only in subject, transport, policy or variant run side by
    /// side, each with a server and clients of its own, and take turns at the load. What slows the machine for a second
    /// then slows all of them. The last tenth of a turn is silent. Warm-up and load last as long for each as `phases` says,
    /// which is the sum of its turns, and rates are those of its turns. Clients that poll at an interval poll only in
    /// their own turns, so their latency is left out. By default all runs follow one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_ms: Option<u64>,
    /// Cells of a repeat that run at the same time, each with a server and clients of its own, all under their whole load.
    /// They share the cores, so this is for loads that leave most of them free.
    #[serde(default, deserialize_with = "at_once", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AtOnce>")]
    pub at_once: Option<AtOnce>,
    /// The traffic.
    pub scenario: Scenario,
    /// What publications contain: one sentence, repeated, or JSON records, no two alike.
    #[serde(default, skip_serializing_if = "Content::is_default")]
    pub content: Content,
    /// How the load's intensity changes over the load phase.
    #[serde(default)]
    pub shape: Shape,
    /// How long each phase lasts, in ms.
    pub phases: Phases,
    /// Longest warm-up, in ms, where it is to last until the subject is steady: `phases.warm_up_ms` is then the shortest,
    /// and at least 15 s. A subject that is not steady by its end is started again and warmed up twice as long, so the same
    /// rule holds for all. Default, and where it equals the shortest: no such test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_max_ms: Option<u64>,
    /// How long the subject runs alone before the first client, in ms.
    #[serde(default)]
    pub baseline_ms: u64,
    /// Minutes of load in place of `phases.load_ms`: a soak, in which growth of memory is watched.
    #[serde(default)]
    pub soak_minutes: Option<u32>,
    /// The ping client; `false` for none.
    #[serde(default = "default_prober", with = "prober_choice")]
    #[schemars(with = "prober_choice::Choice")]
    pub prober: Option<Prober>,
    /// How polling transports ask.
    #[serde(default)]
    pub polling: Polling,
    /// What heads of HTTP requests carry.
    #[serde(default)]
    pub headers: RequestHeaders,
    /// Compress messages of at least this many bytes: clients ask for it (permessage-deflate for WebSockets, gzip for all
    /// else), and both sides do it. A foreign server is told the number if it can compress on the transport; if it cannot,
    /// its cells are left out. Default: no compression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression_from: Option<u32>,
    /// Whether the server marks the instant of receipt, so that latency is split into the ways up and down.
    #[serde(default)]
    pub receipts: bool,
    /// How connections are set: Nagle's algorithm, TLS, buffers, a browser's limits.
    #[serde(default)]
    pub sockets: Sockets,
    /// Where clients live: in the worker, or in pages of Chromium or Firefox.
    #[serde(default, skip_serializing_if = "ClientsIn::is_default")]
    pub clients_in: ClientsIn,
    /// A proxy between clients and server; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Proxy>,
    /// Networks of the experiment's own, by name; one that is named like a known one takes its place.
    #[serde(default)]
    pub network: BTreeMap<String, Profile>,
    /// Physical cores of the subject; siblings are one core. The load keeps one at least, and the prober has its own where
    /// the load keeps two.
    #[serde(default = "one_core", skip_serializing_if = "is_one_core")]
    pub subject_cores: u32,
    /// Connections opened per second.
    #[serde(default = "default_connect_rate")]
    pub connect_rate: u32,
    /// Event loops of the load, each a thread with descriptors of its own; one for each of the load's cores by default,
    /// and more where the clients need more descriptors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loops: Option<u32>,
    /// Processes over which the loops are spread; one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Further options of `pushlab serve`, e.g. `["--history-messages", "1000"]`.
    #[serde(default)]
    pub server_options: Vec<String>,
    /// Further variables in the environment of foreign subjects, e.g. `{ GC = "each" }`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Foreign subjects that can do so log their garbage collections, which become figures and stand on the timeline. The
    /// log costs them a line for each collection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub collections: bool,
    /// A share of what each subject was measured to deliver over the same transport in another experiment of the same
    /// campaign, in the same repeat: the planned rate, in place of the scenario's own.
    #[serde(default)]
    pub capacity_share: Option<CapacityShare>,
    /// What is on the horizontal axis; by default the first of clients, rates and sizes that has several values.
    #[serde(default)]
    pub axis: Option<Sweep>,
    /// Metrics to chart, the most telling first; by default what suits the scenario.
    #[serde(default)]
    pub charts: Vec<String>,
    /// Metrics to list in the table of results; by default what suits the scenario.
    #[serde(default)]
    pub columns: Vec<String>,
    /// Tables to derive.
    #[serde(default)]
    pub tables: Vec<Derived>,
    /// Rows of the scorecard that this experiment fills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub card: Vec<CardRow>,
    /// What is expected, as assertions that are judged from intervals. The findings of a study that this experiment can
    /// judge are added: they stand in the study's inventory.
    #[serde(default)]
    pub expect: Vec<Expect>,
    /// How far apart two servers may be and still be as good as each other, per cent, fixed before anything is measured:
    /// by metric, e.g. `latency_p99`, or by kind of metric: `bytes` (2), `cpu` (10), `memory` (10), `latency` (20), `count` (5).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub margins: BTreeMap<String, f64>,
    /// What the generator may do before a run is void.
    #[serde(default)]
    pub generator_limits: GeneratorLimits,
    /// Busy-wait added to every turn of the generator, in µs: makes a run void on purpose.
    #[serde(default, alias = "handicap_us")]
    pub injected_delay_us: u64,
}

/// A rate that follows from what was measured before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapacityShare {
    /// The experiment that measures it: its runs come first.
    pub of: String,
    /// Share of its deliveries per second, above 0 and up to 1.
    pub share: f64,
    /// Most deliveries per second, whatever the share: what the generator can take.
    #[serde(default)]
    pub at_most: Option<u32>,
}

/// A table that is derived from the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Derived {
    /// What a transport costs whatever the hardware: connections, requests, overhead of a message, push or pull.
    PerformanceFactors,
    /// Memory per idle client, from the slope over the numbers of clients: user and kernel memory apart.
    MemoryPerClient,
    /// What a delivered message costs on the wire: payload, dialect, framing, heads, and below them TLS, TCP and IP.
    BytesPerMessage,
    /// Where polling costs the server less than WebSocket, event streams and long polling with the same traffic: CPU time
    /// and bytes of a client in a second.
    PollingBreakEven,
    /// Every subject over every transport, ranked. Its figures come from all experiments of a report that ask for it:
    /// CPU from a schedule that is the same for all, capacity and bytes from closed loops, latency from a schedule that is
    /// a share of capacity, memory from silent clients.
    Leaderboard,
}

fn our_server() -> Vec<String> {
    vec!["pushlab".to_owned()]
}

fn close_policy() -> Vec<SlowPolicy> {
    vec![SlowPolicy::Close]
}

fn one_core() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_one_core(cores: &u32) -> bool {
    *cores == one_core()
}

fn default_connect_rate() -> u32 {
    2000
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

impl Written {
    /// Reads an experiment and applies a profile: a table `[profile.NAME]` whose values replace those of the file.
    /// `origin` names the file in errors. Whatever values it has: what it costs to check them grows with
    /// [`Self::cells_max`], which may be looked at first.
    ///
    /// # Errors
    /// [`ExperimentError::Format`], [`ExperimentError::UnknownProfile`].
    pub fn read(text: &str, profile: Option<&str>, origin: &str) -> Result<Self, ExperimentError> {
        let format = |source| ExperimentError::Format { origin: origin.to_owned(), source: Box::new(source) };
        let mut table: toml::Table = text.parse().map_err(format)?;
        let profiles = match table.remove("profile") {
            Some(toml::Value::Table(profiles)) => profiles,
            _ => toml::Table::new(),
        };
        modernise(&mut table);
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
            let mut changes = changes.clone();
            modernise(&mut changes);
            merge(&mut table, &changes);
        }
        let mut written: Self = table.try_into().map_err(format)?;
        written.expect_findings();
        Ok(written)
    }

    /// Adds what its study found, if this is the experiment that judges it. What was read from a stored result has it
    /// already.
    fn expect_findings(&mut self) {
        let Some(study) = self.study.as_deref().and_then(studies::find) else { return };
        let inventory = study.inventory();
        let own = inventory.findings.iter().filter(|finding| finding.experiment.as_deref() == Some(&self.name));
        for expect in own.filter_map(Finding::expect) {
            if self.expect.iter().all(|known| known.that != expect.that) {
                self.expect.push(expect);
            }
        }
    }

    /// What to say of keys that have another name now.
    pub fn deprecations(text: &str) -> Vec<String> {
        let mut table: toml::Table = text.parse().unwrap_or_default();
        let mut notes = modernise(&mut table);
        let profiles = table.get_mut("profile").and_then(toml::Value::as_table_mut);
        for (name, profile) in profiles.into_iter().flatten() {
            let notes_of = profile.as_table_mut().map(modernise).unwrap_or_default();
            notes.extend(notes_of.into_iter().map(|note| format!("profile.{name}: {note}")));
        }
        notes
    }

    /// The names of the profiles in an experiment's file; none of a text that is no such file.
    pub fn profiles(text: &str) -> Vec<String> {
        let table: toml::Table = text.parse().unwrap_or_default();
        let profiles = table.get("profile").and_then(toml::Value::as_table);
        profiles.map_or_else(Vec::new, |profiles| profiles.keys().cloned().collect())
    }

    /// What the network of this name is like.
    pub fn network(&self, name: &str) -> Option<Profile> {
        self.network.get(name).cloned().or_else(|| Profile::find(name).cloned())
    }

    /// Which keys make its runs other runs than those of `other` at the same cell: runs that are no repeats of one
    /// another. What a cell tells does not count, nor how the figures are shown and judged.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let differs = [
            ("variants", self.variants != other.variants),
            ("scenario", self.scenario != other.scenario),
            ("content", self.content != other.content),
            ("shape", self.shape != other.shape),
            ("phases", self.phases != other.phases),
            ("warm_up_max_ms", self.warm_up_max_ms != other.warm_up_max_ms),
            ("baseline_ms", self.baseline_ms != other.baseline_ms),
            ("blocks", self.repeats_of_a_block() != other.repeats_of_a_block()),
            ("turns_ms", self.turns_ms != other.turns_ms),
            ("at_once", self.at_once != other.at_once),
            ("soak_minutes", self.soak_minutes != other.soak_minutes),
            ("prober", self.prober != other.prober),
            ("polling", self.polling != other.polling),
            ("headers", self.headers != other.headers),
            ("compression_from", self.compression_from != other.compression_from),
            ("receipts", self.receipts != other.receipts),
            ("sockets", self.sockets != other.sockets),
            ("clients_in", self.clients_in != other.clients_in),
            ("through", self.through != other.through),
            ("network", self.network != other.network),
            ("subject_cores", self.subject_cores != other.subject_cores),
            ("connect_rate", self.connect_rate != other.connect_rate),
            ("loops", self.loops != other.loops),
            ("workers", self.workers != other.workers),
            ("server_options", self.server_options != other.server_options),
            ("environment", self.environment != other.environment),
            ("collections", self.collections != other.collections),
            ("capacity_share", self.capacity_share != other.capacity_share),
            ("injected_delay_us", self.injected_delay_us != other.injected_delay_us),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
    }

    /// Repeats that share one start of each server.
    pub fn repeats_of_a_block(&self) -> u32 {
        self.blocks.map_or(1, |blocks| self.repeats / blocks.max(1)).max(1)
    }

    /// The block, from 1, to which a repeat belongs.
    pub fn block_of(&self, repeat: u32) -> u32 {
        repeat.saturating_sub(1) / self.repeats_of_a_block() + 1
    }

    /// Points of the whole matrix, whether all subjects offer them or not, but for those that variants leave out.
    pub fn cells_max(&self) -> usize {
        let [rates, sizes] = [&self.deliveries_per_s, &self.payload_bytes].map(|swept| swept.len().max(1));
        let all = [self.subjects.len(), self.transports.len(), self.clients.len(), rates, sizes];
        let of_variants = self.variants.iter().map(|variant| variant.cells_of(all)).reduce(usize::saturating_add);
        let once = of_variants.unwrap_or_else(|| all.into_iter().fold(1, usize::saturating_mul));
        once.saturating_mul(self.networks.len().max(1)).saturating_mul(self.policies.len())
    }

    /// What is on the horizontal axis.
    pub fn sweep(&self) -> Sweep {
        let values = |sweep: Sweep| match sweep {
            Sweep::Clients => self.clients.len(),
            Sweep::DeliveriesPerS => self.deliveries_per_s.len(),
            Sweep::PayloadBytes => self.payload_bytes.len(),
        };
        let swept = Sweep::ALL.into_iter().find(|&sweep| values(sweep) > 1);
        self.axis.filter(|&sweep| values(sweep) > 0).or(swept).unwrap_or(Sweep::Clients)
    }

    /// Metrics to chart: those named, or what suits the scenario.
    pub fn charts(&self) -> Vec<String> {
        let names: &[&str] = match self.scenario {
            _ if !self.charts.is_empty() => return self.charts.clone(),
            Scenario::Feed { .. } => {
                &["response_median", "latency_median", "latency_p99", "cpu", "memory", "delivered"]
            }
            Scenario::FanOut { .. } => {
                &["delivered", "latency_median", "latency_p99", "cpu", "cpu_per_delivery", "memory"]
            }
            Scenario::Storm { .. } => {
                &["caught_up_median", "caught_up_p99", "caught_up_p999", "caught_up", "memory", "cpu_per_delivery"]
            }
            Scenario::Idle => &["memory_idle", "memory_kernel", "cpu_idle", "connect"],
            Scenario::Echo { .. } | Scenario::Request { .. } => {
                &["latency_own_median", "latency_p99", "cpu", "memory", "delivered"]
            }
            Scenario::Chat { .. } | Scenario::Rooms { .. } | Scenario::Upstream { .. } => {
                &["latency_median", "latency_p99", "response_median", "cpu", "memory", "delivered"]
            }
        };
        names.iter().map(|name| (*name).to_owned()).collect()
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
