//! `pushlab run`: experiments carried out.

use super::fleet::{self, FleetArgs};
use super::pages::{self, SiteArgs};
use super::results::{Shown, StoreArgs};
use crate::failure::usage;
use crate::format::{FileArgs, FormatArgs};
use crate::gate::GateArgs;
use crate::progress::Progress;
use crate::shape::ShapeOption;
use crate::signals;
use crate::units;
use anyhow::Context as _;
use clap::Args;
use pushlab_analysis::report::Tally;
use pushlab_analysis::report::{self, Asked, RunValues};
use pushlab_bus::without_secrets;
use pushlab_experiment::assertion::Assertion;
use pushlab_experiment::{Experiment, NO_NETWORK};
use pushlab_lab::experiments::LoadError;
use pushlab_lab::planner::Planner;
use pushlab_lab::{Campaign, Ended, Live, Observer, Start, Workers, experiments, leave_out_missing};
use pushlab_link::rights;
use pushlab_report::{Agreement, LeftOut, Report};
use pushlab_server::Server;
use pushlab_store::Store;
use pushlab_subjects::external;
use pushlab_subjects::install::Cache;
use pushlab_subjects::named::Named;
use pushlab_watch::agent::Agents;
use pushlab_wire::codes::ExitCode;
use pushlab_wire::transport::Transport;
use pushlab_workload::turns::TURNS_MIN;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options that every measurement has.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Seed of the order of runs and of everything random; a new one by default.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Runs of each cell, in place of the experiment's own number; where servers stay up over a block, each is a block.
    #[arg(long, value_name = "N")]
    pub repeats: Option<u32>,
    /// Length of the load phase, in place of the experiment's own, e.g. 30s; turns become shorter where it has no room
    /// for five.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub load: Option<Duration>,
    /// How the load changes: steady, ramp:FROM..TO, spike:FACTOR@WHEN+LENGTH, step:FACTOR,FACTOR or soak:LENGTH.
    #[arg(long, value_name = "SHAPE")]
    pub shape: Option<ShapeOption>,
    /// Networks between clients and server in place of the experiment's own, e.g. lan-100,4g; none for plain loopback.
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',')]
    pub network: Vec<String>,
    /// Limit the experiment to these transports, e.g. websocket,sse.
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',')]
    pub transport: Vec<Transport>,
    /// Event loops of the load; default: one for each of its cores, and more if the clients need them.
    #[arg(long, value_name = "N")]
    pub loops: Option<u32>,
    /// Processes over which the load's event loops are spread; with --fleet, how many of its workers to use.
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Serve live figures to Prometheus at http://ADDRESS/metrics while the campaign lasts; port 0 takes a free one.
    #[arg(long, value_parser = units::address, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Serve the console at http://ADDRESS/ while the campaign lasts, to watch it; port 0 takes a free one.
    #[arg(long, value_parser = units::address, value_name = "ADDRESS")]
    pub console: Option<SocketAddr>,
    #[command(flatten)]
    pub site: SiteArgs,
    /// Keep every packet that crosses a network, as pcapng files in the campaign's folder.
    #[arg(long)]
    pub capture: bool,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub files: FileArgs,
    /// Show no progress.
    #[arg(long)]
    pub quiet: bool,
}

/// Run an experiment or a suite: a preset's name or a TOML file.
#[derive(Debug, Args)]
#[command(after_help = EXIT_HELP)]
pub struct RunArgs {
    /// Preset or suite (see `pushlab list`), path of a TOML file, or the URL of a running server.
    ///
    /// A URL is [DIALECT+]http[s]://HOST[:PORT][/PATH], for instance https://push.example.org or
    /// socketio+http://10.0.0.5:3000/socket.io/; without a dialect our own protocol is spoken. It is measured by the preset
    /// any-server, from outside.
    experiment: String,
    /// Measure these subjects in place of the experiment's own: socketio, NAME=PATH (another build of pushlab), or
    /// [NAME=]URL (a running server); may be repeated.
    #[arg(long, value_name = "SUBJECT")]
    subject: Vec<String>,
    /// The short form: the same as --profile quick.
    #[arg(long, conflicts_with = "profile")]
    quick: bool,
    /// The full form, where the short one is the default (transports).
    #[arg(long, conflicts_with_all = ["profile", "quick"])]
    full: bool,
    /// Profile of the experiment: a [profile.NAME] table of its file.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Exit with code 9 if this holds at some point, e.g. 'p99(websocket) > 50ms', and with code 10 if that is undecided;
    /// may be repeated.
    #[arg(long, value_name = "ASSERTION", value_parser = Assertion::parse)]
    fail_if: Vec<Assertion>,
    #[command(flatten)]
    gate: GateArgs,
    /// Start over, even if the same campaign was interrupted before.
    #[arg(long)]
    fresh: bool,
    /// Another build of pushlab to measure this one against: subject `other`, the baseline of `pushlab compare`. The
    /// runs of both take turns.
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
    /// Tell live figures as lines of JSON on standard output, and nothing else there; be interrupted when standard input
    /// ends. The console starts experiments so.
    #[arg(long, hide = true, conflicts_with_all = ["json", "format"])]
    live_lines: bool,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// The preset that a URL alone is measured by.
const ANY_SERVER: &str = "any-server";

/// Says which keys of an experiment's file have another name now.
pub fn note_deprecations(file: &str) {
    experiments::deprecations(file).iter().for_each(|note| eprintln!("note: {file}: {note}"));
}

/// Subjects as experiments have them: one of which only a URL is given is called as its host.
pub fn subjects_of(texts: &[String]) -> Vec<String> {
    let named = |text: &String| match text.split_once("://") {
        Some((before, _)) if !before.contains('=') => format!("{}={text}", external::name_for(text)),
        _ => text.clone(),
    };
    texts.iter().map(named).collect()
}

const EXIT_HELP: &str = "Exit codes: 0 done; 1 unexpected error; 2 wrong usage; 3 wrong experiment; 4 a cell has no run that succeeded; \
5 interrupted (the same command continues); 6 results cannot be written; 7 this machine cannot run any of it, or has no room for the clients; 8 every run is void; 9 --fail-if holds; 10 whether it holds is undecided.";

pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let profile = match (args.quick, args.full) {
        (true, _) => Some("quick"),
        (_, true) => Some(experiments::FULL),
        _ => args.profile.as_deref(),
    };
    let (what, subjects) = match args.experiment.contains("://") {
        true => (ANY_SERVER, std::slice::from_ref(&args.experiment)),
        false => (args.experiment.as_str(), args.subject.as_slice()),
    };
    note_deprecations(what);
    let (name, mut experiments) = experiments::load_all_of(what, profile, &subjects_of(subjects))?;
    if let Some(program) = &args.against {
        add_baseline(&mut experiments, program)?;
    }
    args.measure.apply(&mut experiments)?;
    for assertion in &args.fail_if {
        let all: Vec<&Experiment> = experiments.iter().collect();
        let reasons: Vec<String> = all.iter().filter_map(|e| report::unanswerable(assertion, e, &all)).collect();
        if reasons.len() == experiments.len() {
            eprintln!("error: --fail-if '{assertion}' could never hold: {}", reasons.join("; "));
            return Ok(ExitCode::Usage);
        }
    }
    let left_out = leave_out_missing(&mut experiments, &Cache::of_user())?;
    for LeftOut { subject, reason } in &left_out {
        eprintln!("left out: {subject}: {reason}");
    }
    let Some(measured) = carry_out(name, experiments, left_out, args)? else { return Ok(ExitCode::Interrupted) };
    let asked = Asked { fail_if: &args.fail_if, ..Asked::default() };
    let stored = || stored(measured.id);
    let shown = Shown::of(&measured.store, &[measured.id], &args.measure.store.out, asked).with_context(stored)?;
    if !args.live_lines {
        shown.give(args.measure.format, &args.measure.files).with_context(stored)?;
    }
    if let Some(code) = code_of_end(measured.ended) {
        return Ok(code);
    }
    let gate = args.gate.code(tell_alarms(&shown.report));
    if gate == ExitCode::ConditionMet {
        return Ok(gate);
    }
    // Where it is asked what works, what does not is an answer.
    let asks = |experiment: &Experiment| experiment.card.iter().any(|row| row.works);
    let answers: Vec<&str> = (shown.results.iter().flat_map(|result| &result.header.experiments))
        .filter(|experiment| asks(experiment))
        .map(|experiment| experiment.name.as_str())
        .collect();
    let runs = shown.results.iter().flat_map(|result| &result.runs);
    let runs: Vec<&RunValues> = runs.filter(|run| !answers.contains(&run.cell.experiment.as_str())).collect();
    Ok(match code_of(&runs) {
        // That runs are missing explains why something is undecided, not the other way round.
        ExitCode::Ok => gate,
        code => code,
    })
}

/// Tells which alarms are raised and which could be, and whether any is: confirmed where one is, refuted where none can be.
fn tell_alarms(report: &Report) -> Agreement {
    let mut outcome = Agreement::Refuted;
    for (experiment, alarm) in report.experiments.iter().flat_map(|e| e.alarms.iter().map(move |alarm| (e, alarm))) {
        let hint = match alarm.outcome {
            Agreement::Confirmed => "",
            Agreement::Undecided => "; use more repeats",
            Agreement::Refuted => continue,
        };
        if outcome != Agreement::Confirmed {
            outcome = alarm.outcome;
        }
        eprintln!("--fail-if: {}: {}: {}{hint}", experiment.name, alarm.assertion, alarm.detail);
    }
    outcome
}

/// The exit code of a campaign that came to its end: a cell of which every run failed is told, whatever the others did.
fn code_of(runs: &[&RunValues]) -> ExitCode {
    let mut cells: BTreeMap<String, Vec<&RunValues>> = BTreeMap::new();
    runs.iter().for_each(|run| cells.entry(run.cell.label()).or_default().push(run));
    let tallies: Vec<Tally> = cells.values().map(|runs| Tally::of(runs)).collect();
    if tallies.iter().any(|tally| tally.failed > 0 && tally.valid == 0) {
        return ExitCode::SubjectFailed;
    }
    let is_all_void = tallies.iter().all(|tally| tally.valid == 0) && tallies.iter().any(|tally| tally.void > 0);
    if is_all_void { ExitCode::AllVoid } else { ExitCode::Ok }
}

impl MeasureArgs {
    /// Takes the rights that the experiments need. Before any thread is started: a process with several cannot.
    pub fn prepare(&self, experiments: &[Experiment]) -> anyhow::Result<()> {
        if experiments.iter().all(|experiment| experiment.networks.is_empty()) {
            return match self.capture {
                true => Err(usage("--capture: these experiments run over no network; name some with --network")),
                false => Ok(()),
            };
        }
        rights::become_able().context("cannot make networks")?;
        Ok(())
    }

    /// Where the load is to be, and who watches servers that run elsewhere. Call with signals blocked.
    pub fn meet(&self, experiments: &[Experiment]) -> anyhow::Result<(Workers, Agents)> {
        fleet::meet(&self.fleet, self.workers, self.quiet, experiments)
    }

    /// Changes experiments as asked.
    pub fn apply(&self, experiments: &mut [Experiment]) -> anyhow::Result<()> {
        for experiment in experiments {
            if let Some(repeats) = self.repeats {
                experiment.repeats = repeats;
                experiment.blocks = experiment.blocks.map(|_| repeats);
            }
            if let Some(load) = self.load {
                experiment.phases.load_ms = load.as_millis() as u64;
                let turn_max_ms = experiment.phases.load_ms / TURNS_MIN;
                experiment.turns_ms = experiment.turns_ms.map(|turn_ms| turn_ms.min(turn_max_ms));
                experiment.soak_minutes = None;
            }
            if !self.transport.is_empty() {
                let all = experiment.transports.iter().map(|own| own.name()).collect::<Vec<_>>().join(", ");
                experiment.transports.retain(|own| self.transport.contains(own));
                if experiment.transports.is_empty() {
                    return Err(usage(format!("--transport: {} has none of these, only {all}", experiment.name)));
                }
            }
            experiment.loops = self.loops.or(experiment.loops);
            experiment.workers = self.workers.or(experiment.workers);
            match self.network.as_slice() {
                [] => {}
                [none] if none == NO_NETWORK => experiment.networks.clear(),
                names => experiment.networks = names.to_vec(),
            }
            if let Some(shape) = &self.shape {
                shape.apply(experiment);
            }
            let origin = format!("{} with these options", experiment.name);
            experiment.check(&origin).map_err(LoadError::from)?;
        }
        Ok(())
    }
}

/// Adds another build, before this one: it is what this one is compared with. Other people's servers are not.
fn add_baseline(experiments: &mut [Experiment], program: &Path) -> anyhow::Result<()> {
    let path = std::fs::canonicalize(program).with_context(|| format!("--against {}", program.display()))?;
    for experiment in experiments {
        experiment.subjects.retain(|text| Named::parse(text).is_ok_and(|subject| subject.is_ours()));
        experiment.subjects.insert(0, format!("other={}", path.display()));
    }
    Ok(())
}

/// Whoever watches a campaign while it lasts.
pub struct Watchers {
    live: Option<Live>,
    console: Option<Server>,
}

impl Watchers {
    /// Those that are asked for. Call before the campaign begins, with signals blocked.
    pub fn of(args: &MeasureArgs, name: &str, has_lines: bool) -> anyhow::Result<Self> {
        if args.metrics.is_none() && args.console.is_none() && !has_lines {
            return Ok(Self { live: None, console: None });
        }
        let say = |line: String| {
            if !args.quiet {
                eprintln!("{line}");
            }
        };
        let mut live = Live::new(name);
        if let Some(address) = args.metrics {
            let address = live.serve_metrics(address, args.site.site(address.ip().is_loopback()))?;
            say(format!("metrics at http://{address}/metrics"));
        }
        if has_lines {
            signals::interrupt_at_end_of_input();
            live.tell(|state| {
                let text = serde_json::to_string(&state).unwrap_or_default();
                // Whoever does not listen any more has closed standard input, too.
                let _ = writeln!(std::io::stdout(), "{text}");
            })?;
        }
        let console =
            args.console.map(|address| pages::watch(address, &args.site, &args.store, &mut live)).transpose()?;
        if let Some(console) = &console {
            say(format!("console at http://{}/live", console.address()));
        }
        Ok(Self { live: Some(live), console })
    }

    /// Does something that tells an observer, who tells them.
    pub fn watch<T>(&self, next: &mut dyn Observer, work: impl FnOnce(&mut dyn Observer) -> T) -> T {
        match &self.live {
            Some(live) => work(&mut live.watch(next)),
            None => work(next),
        }
    }

    /// Tells them that it has ended.
    pub fn end(self) -> anyhow::Result<()> {
        drop(self.live);
        if let Some(console) = self.console {
            console.stop();
            console.join()?;
        }
        Ok(())
    }
}

/// What was measured, and where it is stored.
struct Carried {
    store: Store,
    id: i64,
    ended: Ended,
}

/// Carries out a campaign with progress on the terminal; `None` if it was interrupted before it measured anything.
fn carry_out(
    name: String,
    experiments: Vec<Experiment>,
    left_out: Vec<LeftOut>,
    args: &RunArgs,
) -> anyhow::Result<Option<Carried>> {
    let measure = &args.measure;
    measure.prepare(&experiments)?;
    signals::block();
    let watchers = Watchers::of(measure, &name, args.live_lines)?;
    let (workers, agents) = measure.meet(&experiments)?;
    let mut progress = Progress::new(&experiments, measure.quiet);
    let start = Start {
        name,
        seed: measure.seed,
        is_fresh: args.fresh,
        command: typed(),
        out: measure.store.out.clone(),
        captures: measure.capture,
        left_out,
        workers,
        agents,
    };
    let mut campaign = Campaign::open(experiments, measure.store.open()?, start)?;
    let ended = watchers.watch(&mut progress, |observer| campaign.carry_out(observer))?;
    drop(progress);
    watchers.end()?;
    let Some(id) = closed(campaign, ended)? else { return Ok(None) };
    Ok(Some(Carried { store: measure.store.open()?, id, ended }))
}

/// Lets others measure with the store, and gives the campaign's number; `None` if it was interrupted before it measured
/// anything, of which nothing is kept.
pub fn closed<P: Planner>(campaign: Campaign<P>, ended: Ended) -> anyhow::Result<Option<i64>> {
    if ended == Ended::Interrupted && campaign.is_empty() {
        campaign.discard()?;
        eprintln!("interrupted before anything was measured, so nothing was kept; the same command starts it again");
        return Ok(None);
    }
    Ok(Some(campaign.id()))
}

/// What remains to be done about a report that was not made.
pub fn stored(id: i64) -> String {
    format!("the runs are stored as result {id}, but the report could not be finished (`pushlab report {id}` makes it)")
}

/// The exit code of a campaign that did not come to its end, of which the user is told.
pub fn code_of_end(ended: Ended) -> Option<ExitCode> {
    (ended == Ended::Interrupted).then(|| {
        eprintln!("interrupted; the same command continues with the missing runs");
        ExitCode::Interrupted
    })
}

/// What was typed, so that it can be typed again: it is kept with the result, so what lets us in at a broker is left out.
pub fn typed() -> Vec<String> {
    let mut words = vec!["pushlab".to_owned()];
    let mut typed = std::env::args().skip(1).filter(|word| word != "--live-lines");
    while let Some(word) = typed.next() {
        match word.split_once('=') {
            _ if word == "--token" => drop(typed.next()),
            Some(("--token", _)) => {}
            Some(("--fleet", address)) => words.push(format!("--fleet={}", without_secrets(address))),
            _ if word == "--fleet" => {
                words.push(word);
                words.extend(typed.next().map(|address| without_secrets(&address)));
            }
            _ => words.push(word),
        }
    }
    words
}
