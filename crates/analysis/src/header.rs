//! What a campaign is: stored before its first run, and enough to go on and to repeat it.

use pushlab_experiment::cell::Sweep;
use pushlab_experiment::{Experiment, Find, Written, presets};
use pushlab_probe::machine::MachineFacts;
use pushlab_report::LeftOut;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const GIB: f64 = (1u64 << 30) as f64;

/// A campaign's header. What is read from a store has experiments as they are written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header<E = Experiment> {
    /// `transports`, or the experiment's name with its profile.
    pub name: String,
    /// The experiments with their profile applied.
    pub experiments: Vec<E>,
    /// What is searched for, where the experiments are those of a search, which grow while it goes on.
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchHeader<E>>,
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
    /// The core of the prober, where it has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prober_core: Option<usize>,
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
    /// The workers on whose machines the load was when the campaign began: their names, and what these machines are.
    /// Empty where the load was on the lab's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fleet: Vec<(String, MachineFacts)>,
    /// The agents beside servers that the lab did not start: their names, and what their machines are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<(String, MachineFacts)>,
}

/// What a search for a capacity looks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchHeader<E = Experiment> {
    /// The load, of which one axis is searched.
    pub experiment: E,
    /// What must hold.
    pub goal: String,
    /// The axis.
    pub over: Sweep,
    /// The first load tried.
    pub from: u32,
    /// The largest load tried.
    pub max: u32,
    /// Multiples of what is found, at which the load is then measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<f64>,
}

fn nothing<E>() -> Option<SearchHeader<E>> {
    None
}

impl SearchHeader<Written> {
    fn believe(self, find: Find<'_>) -> SearchHeader {
        let Self { experiment, goal, over, from, max, shares } = self;
        SearchHeader { experiment: Experiment::believe(experiment, find), goal, over, from, max, shares }
    }
}

impl Header<Written> {
    /// The header of a campaign of which there are results.
    pub fn believe(self, find: Find<'_>) -> Header {
        Header {
            name: self.name,
            experiments: self.experiments.into_iter().map(|written| Experiment::believe(written, find)).collect(),
            search: self.search.map(|search| search.believe(find)),
            seed: self.seed,
            command: self.command,
            version: self.version,
            created_at: self.created_at,
            subject_cores: self.subject_cores,
            load_cores: self.load_cores,
            prober_core: self.prober_core,
            build: self.build,
            versions: self.versions,
            runtimes: self.runtimes,
            left_out: self.left_out,
            machine: self.machine,
            fleet: self.fleet,
            agents: self.agents,
        }
    }
}

impl Header {
    /// Runs of all experiments together.
    pub fn planned(&self) -> usize {
        self.experiments.iter().map(Experiment::runs).fold(0, usize::saturating_add)
    }

    /// Whether a campaign was carried out on the machine of another, as far as its hardware and kernel tell. Of bare figures
    /// nothing is known, and nothing differs.
    pub fn is_same_machine(&self, other: &Self) -> bool {
        // A kernel keeps a little more or less for itself from start to start.
        let gib = |facts: &MachineFacts| facts.memory_bytes.map(|bytes| (bytes as f64 / GIB).round() as u64);
        let machine = |facts: &MachineFacts| {
            let parts = (facts.cpu_model.clone(), facts.cores, facts.threads_per_core, facts.product.clone());
            (parts, facts.kernel.clone(), gib(facts))
        };
        self.machine.as_ref().zip(other.machine.as_ref()).is_none_or(|(own, its)| machine(own) == machine(its))
    }

    /// The machine in a few words: CPU and kernel.
    pub fn machine_words(&self) -> String {
        let facts = self.machine.as_ref();
        let known = facts.map(|facts| [facts.cpu_model.clone(), facts.kernel.clone()]).unwrap_or_default();
        let known: Vec<String> = known.into_iter().flatten().collect();
        if known.is_empty() { "not known".to_owned() } else { known.join(", ") }
    }

    /// In what a campaign was carried out otherwise than another, so that its runs are no repeats of the other's: build, what
    /// subjects ran on and, on the same machine, cores and limits. Of bare figures nothing is known, and nothing differs.
    pub fn circumstances_unlike(&self, other: &Self) -> Vec<String> {
        let (Some(own), Some(its)) = (&self.machine, &other.machine) else { return Vec::new() };
        let is_same_machine = self.is_same_machine(other);
        let limits = |facts: &MachineFacts| {
            let sockets = (facts.somaxconn, facts.syn_backlog, facts.port_range, facts.tcp_tw_reuse);
            let memory = (facts.tcp_rmem_bytes, facts.tcp_wmem_bytes, facts.congestion_control.clone());
            (facts.nofile_soft, facts.cores_usable, sockets, memory)
        };
        let cores = |header: &Self| (header.subject_cores.clone(), header.load_cores.clone(), header.prober_core);
        let build = |header: &Self| (header.version.clone(), header.build);
        let subjects = |header: &Self| (header.versions.clone(), header.runtimes.clone());
        let differs = [
            ("build", build(self) != build(other)),
            ("number of workers on other machines", self.fleet.len() != other.fleet.len()),
            ("cores", is_same_machine && cores(self) != cores(other)),
            ("limits", is_same_machine && limits(own) != limits(its)),
            ("versions of the subjects", subjects(self) != subjects(other)),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what.to_owned()).collect()
    }

    /// Title for people.
    pub fn title(&self) -> String {
        match self.experiments.as_slice() {
            [one] => one.title.clone(),
            _ => presets::suite_title(&self.name),
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
        let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / GIB);
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
                (
                    "load's cores",
                    if self.fleet.is_empty() { cores(&self.load_cores) } else { "its workers'".to_owned() },
                ),
                (
                    "prober's core",
                    self.prober_core.map_or_else(|| "one of the load's".to_owned(), |core| core.to_string()),
                ),
                ("memory", machine.memory_bytes.map_or_else(unknown, gib)),
                ("descriptors of a process", machine.nofile_soft.map_or_else(unknown, |n| n.to_string())),
                ("somaxconn", machine.somaxconn.map_or_else(unknown, |n| n.to_string())),
            ]);
        }
        let runtimes = self.runtimes.iter().map(|(tool, said)| (tool.clone(), said.clone()));
        let workers = self.fleet.iter().map(|other| ("worker", other));
        let others = workers.chain(self.agents.iter().map(|other| ("agent", other)));
        let others = others.map(|(what, (name, machine))| {
            let cores = machine.cores_usable.map_or_else(unknown, |cores| cores.to_string());
            let known = [machine.cpu_model.clone(), Some(format!("{cores} CPUs")), machine.kernel.clone()];
            (format!("{what} {name}"), known.into_iter().flatten().collect::<Vec<_>>().join(", "))
        });
        let runtimes = runtimes.chain(others);
        facts.into_iter().map(|(label, value)| (label.to_owned(), value)).chain(runtimes).collect()
    }
}
