//! `pushlab list`: experiments that come with the program.

use clap::Args;
use pushlab_experiment::Experiment;
use pushlab_experiment::presets::{PRESETS, SUITES};
use pushlab_lab::experiments;
use pushlab_wire::codes::ExitCode;

/// List the experiments that come with the program.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let experiments = PRESETS.iter().map(|(name, _)| experiments::load(name, None)).collect::<Result<Vec<_>, _>>()?;
    if args.json {
        let value = |e: &Experiment| serde_json::json!({ "name": e.name, "title": e.title, "runs": e.runs() });
        let suites: Vec<_> = SUITES
            .iter()
            .map(|s| serde_json::json!({ "name": s.name, "title": s.title, "experiments": s.presets }))
            .collect();
        let experiments: Vec<_> = experiments.iter().map(value).collect();
        println!("{}", serde_json::json!({ "suites": suites, "experiments": experiments }));
        return Ok(ExitCode::Ok);
    }
    println!("Suites (pushlab run NAME):");
    for suite in SUITES {
        println!("  {:<24} {} ({})", suite.name, suite.title, suite.presets.join(", "));
    }
    println!("\nExperiments (pushlab run NAME), and with --quick:");
    for experiment in &experiments {
        let quick = experiments::load(&experiment.name, Some("quick"))?;
        println!("  {:<24} {:<22} {:<17} {}", experiment.name, experiment.size(), quick.size(), experiment.title);
    }
    println!("\n`pushlab runs` lists what is stored.");
    Ok(ExitCode::Ok)
}
