//! `pushlab list`: experiments and results.

use clap::Args;
use pushlab_lab::{Results, presets};
use pushlab_wire::codes::ExitCode;
use std::path::PathBuf;

/// List the experiments that come with the program, and the results that are there.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Folder of results.
    #[arg(long, default_value = "results", value_name = "FOLDER")]
    out: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let experiments = presets::PRESETS.map(|(name, _)| presets::load(name, None));
    let experiments = experiments.into_iter().collect::<Result<Vec<_>, _>>()?;
    let results: Vec<_> = Results::list(&args.out)
        .into_iter()
        .filter_map(|folder| Results::open(&folder).ok())
        .map(|(results, header)| {
            let planned: usize = header.experiments.iter().map(|e| e.runs()).sum();
            (results.folder().to_owned(), results.done().map_or(0, |done| done.len()), planned)
        })
        .collect();
    if args.json {
        let experiments: Vec<_> = experiments
            .iter()
            .map(|e| serde_json::json!({ "name": e.name, "title": e.title, "runs": e.runs() }))
            .collect();
        let results: Vec<_> = results
            .iter()
            .map(|(folder, done, planned)| serde_json::json!({ "folder": folder, "runs_done": done, "runs_planned": planned }))
            .collect();
        println!("{}", serde_json::json!({ "experiments": experiments, "results": results }));
        return Ok(ExitCode::Ok);
    }
    println!("Experiments (pushlab run NAME, or with --quick):");
    for experiment in &experiments {
        println!("  {:<18} {:>4} runs  {}", experiment.name, experiment.runs(), experiment.title);
    }
    if results.is_empty() {
        println!("\nNo results in {} yet.", args.out.display());
        return Ok(ExitCode::Ok);
    }
    println!("\nResults (pushlab report FOLDER):");
    for (folder, done, planned) in results {
        let state =
            if done < planned { format!("{done} of {planned} runs, to be resumed") } else { format!("{done} runs") };
        println!("  {}  {state}", folder.display());
    }
    Ok(ExitCode::Ok)
}
