//! `pushlab capacity`: the largest load that meets a goal.

use super::results::Shown;
use super::run::{MeasureArgs, Watchers, closed, code_of_end, note_deprecations, stored, subjects_of, typed};
use crate::progress::Progress;
use crate::signals;
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use pushlab_analysis::report::Asked;
use pushlab_experiment::assertion::Assertion;
use pushlab_experiment::cell::Sweep;
use pushlab_experiment::{Experiment, ExperimentError};
use pushlab_lab::experiments::{self, LoadError};
use pushlab_lab::planner::search::{Capacity, Limit, Search, Share};
use pushlab_lab::{Campaign, Start, leave_out_missing};
use pushlab_subjects::install::Cache;
use pushlab_wire::codes::ExitCode;

/// Search for the largest load that meets a goal.
#[derive(Debug, Args)]
#[command(after_help = "The load is doubled until the goal is missed, deliveries are lost or the generator reaches \
its limit; then the bracket is narrowed to 5 %. Other axes take their largest value. Every run is stored, in a result \
of its own called capacity-NAME.")]
pub struct CapacityArgs {
    /// Preset (see `pushlab list`) or path of a TOML file: the traffic.
    experiment: String,
    /// Search this subject in place of the experiment's own: socketio, NAME=PATH (another build of pushlab), or
    /// [NAME=]URL (a running server). May be repeated.
    #[arg(long, value_name = "SUBJECT")]
    subject: Vec<String>,
    /// What must hold, e.g. 'p99(websocket) < 50 ms'; without a transport in the parentheses, each is searched.
    #[arg(long, value_name = "ASSERTION", value_parser = Assertion::parse)]
    goal: Assertion,
    /// What is increased.
    #[arg(long, value_enum, default_value = "clients")]
    over: Over,
    /// The first load tried.
    #[arg(long, value_name = "N", default_value = "50")]
    from: u32,
    /// The largest load tried in the search.
    #[arg(long, value_name = "N", default_value = "10000")]
    max: u32,
    /// After the search, measure each subject and transport at these multiples of its capacity, e.g. 0.5,0.9,1.2,2; 10 at most.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    shares: Vec<f64>,
    /// Profile of the experiment; by default `quick`, where it has one.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Start over, even if the same search was interrupted before.
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// An axis to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Over {
    /// Virtual clients.
    Clients,
    /// Planned deliveries per second of all clients together.
    DeliveriesPerS,
    /// Size of a publication, bytes.
    PayloadBytes,
}

pub fn run(args: &CapacityArgs) -> anyhow::Result<ExitCode> {
    note_deprecations(&args.experiment);
    let mut experiments = vec![load(args)?];
    args.measure.apply(&mut experiments)?;
    let left_out = leave_out_missing(&mut experiments, &Cache::of_user())?;
    let experiment = experiments.remove(0);
    let over = match args.over {
        Over::Clients => Sweep::Clients,
        Over::DeliveriesPerS => Sweep::DeliveriesPerS,
        Over::PayloadBytes => Sweep::PayloadBytes,
    };
    args.measure.prepare(std::slice::from_ref(&experiment))?;
    signals::block();
    let (workers, agents) = args.measure.meet(std::slice::from_ref(&experiment))?;
    let start = Start {
        name: format!("capacity-{}", experiment.name),
        seed: args.measure.seed,
        is_fresh: args.fresh,
        command: typed(),
        out: args.measure.store.out.clone(),
        captures: args.measure.capture,
        left_out,
        workers,
        agents,
    };
    let watchers = Watchers::of(&args.measure, &start.name, false)?;
    let mut progress = Progress::new(std::slice::from_ref(&experiment), args.measure.quiet);
    let (goal, shares) = (args.goal.clone(), args.shares.clone());
    let search = Search { experiment, goal, over, from: args.from, max: args.max, shares };
    let mut campaign = Campaign::search(&search, args.measure.store.open()?, start)?;
    let ended = watchers.watch(&mut progress, |observer| campaign.carry_out(observer))?;
    drop(progress);
    watchers.end()?;
    let mut found = campaign.found();
    found.sort_by_key(|capacity| std::cmp::Reverse(capacity.met.map(|(load, _)| load)));
    let Some(id) = closed(campaign, ended)? else { return Ok(ExitCode::Interrupted) };
    let store = args.measure.store.open()?;
    let unit = args.goal.left.metric.unit;
    let found = found.iter().map(|capacity| format!("{}: {}", args.goal, sentence(capacity, over, unit))).collect();
    let asked = Asked { found, ..Asked::default() };
    let shown = Shown::of(&store, &[id], &args.measure.store.out, asked).with_context(|| stored(id))?;
    shown.give(args.measure.format, &args.measure.files).with_context(|| stored(id))?;
    Ok(code_of_end(ended).unwrap_or(ExitCode::Ok))
}

fn load(args: &CapacityArgs) -> Result<Experiment, LoadError> {
    let subjects = subjects_of(&args.subject);
    let load = |profile: Option<&str>| experiments::load_of(&args.experiment, profile, &subjects);
    match load(args.profile.as_deref().or(Some("quick"))) {
        Err(LoadError::Experiment(ExperimentError::UnknownProfile { .. })) if args.profile.is_none() => load(None),
        loaded => loaded,
    }
}

fn sentence(capacity: &Capacity, over: Sweep, unit: &str) -> String {
    let met = match (capacity.met, &capacity.limit) {
        (Some((load, value)), _) => format!("holds at {} ({value:.3} {unit})", over.place(load)),
        (None, Some(_)) => "holds at no load that was tried".to_owned(),
        (None, None) => "was not tried yet".to_owned(),
    };
    let stopped = |load: u32| format!("the search stopped before {}", over.place(load));
    let limit = match &capacity.limit {
        None => capacity.next.map_or_else(|| "the largest load that was asked for".to_owned(), stopped),
        Some((load, Limit::Goal(value))) => format!("no more at {} ({value:.3} {unit})", over.place(*load)),
        Some((load, Limit::Loss(lost))) => format!("at {} {lost} deliveries were lost", over.place(*load)),
        Some((load, Limit::Generator)) => {
            format!("at {} the generator is the limit, not the server", over.place(*load))
        }
        Some((load, Limit::NotMeasured(metric))) => {
            format!("at {} there is no {metric}: nothing measures it, or too little was delivered", over.place(*load))
        }
        Some((load, Limit::Failed(reason))) => format!("at {} runs fail: {reason}", over.place(*load)),
    };
    let stopped =
        capacity.limit.as_ref().and(capacity.next).map_or(String::new(), |load| format!("; {}", stopped(load)));
    let shares: String = capacity.shares.iter().map(|share| share_sentence(share, over)).collect();
    format!("{} {met}; {limit}{stopped}.{shares}", capacity.of)
}

fn share_sentence(share: &Share, over: Sweep) -> String {
    let what = format!("{} × capacity ({})", share.times, over.place(share.load));
    match &share.is_measured {
        Ok(true) => format!(" {what} was also measured."),
        Ok(false) => format!(" The search stopped before {what} was measured."),
        Err(reason) => format!(" {what} fails: {reason}."),
    }
}
