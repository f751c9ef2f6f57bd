//! `pushlab compare`, `pushlab run` and `pushlab report`: experiments and what came of them.

use crate::progress::Progress;
use crate::{page, signals, table};
use anyhow::{Context as _, bail};
use clap::Args;
use pushlab_lab::experiment::Experiment;
use pushlab_lab::presets::{self, LoadError};
use pushlab_lab::{Campaign, Ended, Live, REPORT_FILE, Results, Tally, report};
use pushlab_wire::codes::ExitCode;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Options that every measurement has.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// Folder of results; each campaign gets a folder of its own in it.
    #[arg(long, default_value = "results", value_name = "FOLDER")]
    out: PathBuf,
    /// Seed of the order of runs and of everything random; a new one by default.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Start anew, even if the same campaign was interrupted before.
    #[arg(long)]
    fresh: bool,
    /// Runs of each cell, in place of the experiment's own number.
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
    /// Serve live figures to Prometheus at http://ADDRESS/metrics while the campaign lasts; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

/// Compare all six transports under broadcast and chat: the quick way to see everything.
#[derive(Debug, Args)]
#[command(after_help = EXIT_HELP)]
pub struct CompareArgs {
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Run an experiment: a preset's name or a TOML file.
#[derive(Debug, Args)]
#[command(after_help = EXIT_HELP)]
pub struct RunArgs {
    /// Preset (see `pushlab list`) or path of a TOML file.
    experiment: String,
    /// The short form: the same as --profile quick.
    #[arg(long, conflicts_with = "profile")]
    quick: bool,
    /// Variant of the experiment: a [profile.NAME] table of its file.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Make the report of a campaign again, from its records.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Folder of the campaign; the latest in `results` by default.
    folder: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

const EXIT_HELP: &str = "Exit codes: 0 done; 1 unexpected error; 2 wrong usage; 3 wrong experiment; 4 no run succeeded; \
5 interrupted (the same command goes on); 6 results cannot be written; 8 every run is void.";

pub fn compare(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let experiments = presets::COMPARED.iter().map(|name| presets::load(name, Some("compare")));
    measure("compare", experiments.collect(), &args.measure)
}

pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let profile = if args.quick { Some("quick") } else { args.profile.as_deref() };
    let experiment = presets::load(&args.experiment, profile);
    let name = experiment.as_ref().map_or_else(|_| args.experiment.clone(), |e| e.name.clone());
    let name = profile.map_or(name.clone(), |profile| format!("{name}-{profile}"));
    measure(&name, experiment.map(|e| vec![e]), &args.measure)
}

fn measure(
    name: &str,
    experiments: Result<Vec<Experiment>, LoadError>,
    args: &MeasureArgs,
) -> anyhow::Result<ExitCode> {
    let mut experiments = experiments?;
    if let Some(repeats) = args.repeats {
        if repeats == 0 {
            bail!("--repeats is at least 1");
        }
        experiments.iter_mut().for_each(|e| e.repeats = repeats);
    }
    signals::block();
    let live = args.metrics.map(Live::listen).transpose()?;
    let mut progress = Progress::new(&experiments, args.quiet);
    let command = std::iter::once("pushlab".to_owned()).chain(std::env::args().skip(1)).collect();
    let campaign = Campaign::open(name, experiments, args.seed, &args.out, args.fresh, command)?;
    let ended = match &live {
        Some(live) => {
            if !args.quiet {
                eprintln!("metrics at http://{}/metrics", live.address());
            }
            campaign.carry_out(&mut live.watch(&mut progress))?
        }
        None => campaign.carry_out(&mut progress)?,
    };
    drop((progress, live));
    let code = show(campaign.folder(), args.json)?;
    if ended == Ended::Interrupted {
        eprintln!("interrupted; the same command goes on with the runs that are missing");
        return Ok(ExitCode::Interrupted);
    }
    Ok(code)
}

pub fn report(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => Results::list(Path::new("results"))
            .pop()
            .context("no results in ./results; run `pushlab compare` first, or name a campaign's folder")?,
    };
    show(&folder, args.json)
}

/// Computes a campaign's report, writes it and prints it.
fn show(folder: &Path, is_json: bool) -> anyhow::Result<ExitCode> {
    let (results, header) = Results::open(folder)?;
    let records = results.records()?;
    let report = report::build(&header, &records);
    let page = results.write_file("report.html", page::html(&report)?.as_bytes())?;
    results.write_file(REPORT_FILE, &serde_json::to_vec(&report)?)?;
    if is_json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print!("{}", table::text(&report));
        println!("\nReport: {}", page.display());
    }
    Ok(match Tally::of(&records) {
        Tally { valid: 1.., .. } => ExitCode::Ok,
        Tally { void: 1.., .. } => ExitCode::AllVoid,
        Tally { failed: 1.., .. } => ExitCode::SubjectFailed,
        _ => ExitCode::Ok,
    })
}
