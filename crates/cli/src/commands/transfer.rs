//! `pushlab export` and `pushlab import`.

use super::results::open_to_read;
use crate::failure::usage;
use crate::output::{self, Output};
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use pushlab_experiment::metric::{self, Metric};
use pushlab_lab::archive;
use pushlab_store::export::{self, ExportError, Selection};
use pushlab_store::{Store, import};
use pushlab_wire::codes::ExitCode;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Formats of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Figures, one value a row.
    Csv,
    /// Whole results with histograms and series; `pushlab import` reads it again.
    Json,
    /// The same table as CSV, with types.
    Parquet,
    /// InfluxDB line protocol: a point for each run, and one for each second of it.
    LineProtocol,
}

impl Format {
    /// What it holds one by one.
    fn unit(self) -> &'static str {
        match self {
            Self::Csv | Self::Parquet => "figures",
            Self::Json => "runs",
            Self::LineProtocol => "points",
        }
    }
}

/// Export results for other programs.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Numbers or names (see `pushlab runs`).
    #[arg(required = true)]
    results: Vec<String>,
    /// Format; by default what the file's ending says.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// File to write: .csv, .json, .parquet or .lp; by default, or with -, standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only this metric; may be repeated.
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// Leave out void and failed runs.
    #[arg(long)]
    only_counting: bool,
    /// The results database; by default pushlab/results.db in the user's data folder.
    #[arg(long, value_name = "FILE", env = "PUSHLAB_STORE")]
    store: Option<PathBuf>,
}

/// Import results: a JSON export of another store, or a CSV of figures such as a study's.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Files ending in .json or .csv.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The results database; by default pushlab/results.db in the user's data folder.
    #[arg(long, value_name = "FILE", env = "PUSHLAB_STORE")]
    store: Option<PathBuf>,
}

pub fn export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let store = open_to_read(args.store.as_deref())?;
    let ids: Vec<i64> = store.find_all(&args.results)?.iter().map(|row| row.id).collect();
    let format = args.format.or(match args.output.as_deref().and_then(ending).as_deref() {
        Some("csv") => Some(Format::Csv),
        Some("json") => Some(Format::Json),
        Some("parquet") => Some(Format::Parquet),
        Some("lp") => Some(Format::LineProtocol),
        _ => None,
    });
    let unclear = || {
        usage("give --format csv, json, parquet or line-protocol, or a file that ends in .csv, .json, .parquet or .lp")
    };
    let format = format.ok_or_else(unclear)?;
    let selection = Selection {
        metrics: (!args.metric.is_empty()).then(|| args.metric.iter().map(|name| full_name(name)).collect()),
        only_counting: args.only_counting,
        ..Selection::default()
    };
    match args.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let rows = export::to_file(path, |out| write(format, &store, &ids, &selection, out))?;
            eprintln!("wrote {rows} {} to {}", format.unit(), path.display());
        }
        None => match write(format, &store, &ids, &selection, &mut Output) {
            // It is told, or nobody reads it any more.
            Err(_) if output::has_failed() => {}
            done => drop(done?),
        },
    }
    Ok(ExitCode::Ok)
}

/// The ending of a file's name, which other systems write in capitals too.
fn ending(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// The name of a metric that may be given by its short name. A study's own metrics are in no table of ours.
fn full_name(name: &str) -> String {
    Metric::find(name).map_or(name, |metric| metric.name).to_owned()
}

fn write(
    format: Format,
    store: &Store,
    ids: &[i64],
    selection: &Selection,
    out: &mut (impl Write + Send),
) -> Result<u64, ExportError> {
    match format {
        Format::Csv => export::csv(store, ids, selection, &metric::unit, out),
        Format::Json => export::json(store, ids, out),
        Format::Parquet => export::parquet(store, ids, selection, &metric::unit, out),
        Format::LineProtocol => export::line_protocol(store, ids, selection, out),
    }
}

pub fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let mut store = archive::open(args.store.as_deref())?;
    for path in &args.files {
        let at = || path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let ids = match ending(path).as_deref() {
            Some("json") => import::json(&mut store, file).with_context(at)?,
            Some("csv") => {
                let name = path.file_stem().map_or_else(|| "import".into(), |stem| stem.to_string_lossy());
                let new = archive::values_header(&name);
                vec![import::csv(&mut store, &new, &metric::unit, file).with_context(at)?]
            }
            _ => {
                let what = "a file to import must end in .json (a whole export) or .csv (figures)";
                return Err(usage(format!("{}: {what}", path.display())));
            }
        };
        for id in ids {
            println!("{}: result {id}, {}", path.display(), store.campaign(id)?.row.name);
        }
    }
    Ok(ExitCode::Ok)
}
