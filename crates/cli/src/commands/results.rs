//! What is stored: `pushlab runs`, `show`, `report`, `compare`, `merge`, `rm`.

use crate::failure::usage;
use crate::format::{FileArgs, FormatArgs};
use crate::gate::GateArgs;
use anyhow::Context as _;
use clap::Args;
use pushlab_analysis::report::{Asked, ResultRuns};
use pushlab_console::REPORT_PAGE;
use pushlab_experiment::margins;
use pushlab_experiment::metric::Metric;
use pushlab_lab::{WorkplaceError, archive, stored};
use pushlab_os::new_file;
use pushlab_render::{html, json, terminal};
use pushlab_report::{Agreement, Change, Report};
use pushlab_store::{CampaignRow, Kind, Store};
use pushlab_wire::codes::ExitCode;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where results are.
#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// The results database; by default pushlab/results.db in the user's data folder.
    #[arg(long, value_name = "FILE", env = "PUSHLAB_STORE")]
    pub store: Option<PathBuf>,
    /// Folder of reports; each gets a folder of its own in it.
    #[arg(long, default_value = "results", value_name = "FOLDER")]
    pub out: PathBuf,
}

impl StoreArgs {
    /// Opens the store.
    pub fn open(&self) -> anyhow::Result<Store> {
        Ok(archive::open(self.store.as_deref())?)
    }

    fn open_to_read(&self) -> anyhow::Result<Store> {
        open_to_read(self.store.as_deref())
    }
}

/// Opens a store that is only to be read: one that may not be written, too, which is said.
pub fn open_to_read(path: Option<&Path>) -> anyhow::Result<Store> {
    let store = archive::open_to_read(path)?;
    if store.is_read_only() {
        eprintln!("note: {} cannot be opened for writing, so it is opened read-only", store.path().display());
    }
    Ok(store)
}

/// List what is stored.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// The results database; by default pushlab/results.db in the user's data folder.
    #[arg(long, value_name = "FILE", env = "PUSHLAB_STORE")]
    store: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Show one result: its figures, its environment, how to repeat it.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Number or name (see `pushlab runs`); NAME~1 is the one before the latest of that name.
    result: String,
    /// The results database; by default pushlab/results.db in the user's data folder.
    #[arg(long, value_name = "FILE", env = "PUSHLAB_STORE")]
    store: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
}

/// Make the report of a result again.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Number or name (see `pushlab runs`); the latest by default.
    result: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    files: FileArgs,
}

/// Compare results: what changed from the first to each of the others, and whether chance explains it.
#[derive(Debug, Args)]
#[command(after_help = "One result that measured several subjects is compared within itself, the first subject being \
the baseline; its runs were interleaved, so this is the fairer way: see `pushlab run --against`. With --fail-if-worse, exit \
code 9 says that something got worse, and 10 that it is undecided whether something did.")]
pub struct CompareArgs {
    /// Numbers or names (see `pushlab runs`), the baseline first; or one result with several subjects.
    #[arg(required = true)]
    results: Vec<String>,
    /// Metric to compare; may be repeated. By default CPU time per delivery, latency, deliveries and memory.
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,
    /// Margin within which figures count as equivalent, in per cent, in place of the experiment's: METRIC=PERCENT, or
    /// bytes, cpu, memory, latency or count=PERCENT; may be repeated.
    #[arg(long, value_name = "METRIC=PERCENT", value_parser = margin)]
    margin: Vec<(String, f64)>,
    /// Exit with code 9 when something got worse, and with code 10 when that is undecided.
    #[arg(long)]
    fail_if_worse: bool,
    #[command(flatten)]
    gate: GateArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    files: FileArgs,
}

/// Lay results over each other in one report; or pool repeats of the same experiment.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Numbers or names (see `pushlab runs`), at least two.
    #[arg(required = true, num_args = 2..)]
    results: Vec<String>,
    /// Treat the runs of equal cells as repeats of one another instead of drawing a line for each result; with several
    /// machines, draw a line for each of them, and make one scorecard.
    #[arg(long)]
    pool: bool,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    files: FileArgs,
}

/// Remove results.
#[derive(Debug, Args)]
pub struct RmArgs {
    /// Numbers or names (see `pushlab runs`).
    #[arg(required = true)]
    results: Vec<String>,
    /// The results database; by default pushlab/results.db in the user's data folder.
    #[arg(long, value_name = "FILE", env = "PUSHLAB_STORE")]
    store: Option<PathBuf>,
}

pub fn runs(args: &RunsArgs) -> anyhow::Result<ExitCode> {
    let rows = open_to_read(args.store.as_deref())?.campaigns()?;
    if args.json {
        let value = |row: &CampaignRow| {
            serde_json::json!({
                "id": row.id, "name": row.name, "kind": row.kind.name(), "created_at": row.created_at,
                "runs_planned": row.planned, "runs_done": row.done, "valid": row.valid, "void": row.void,
                "failed": row.failed, "note": row.note,
            })
        };
        println!("{}", serde_json::Value::Array(rows.iter().map(value).collect()));
        return Ok(ExitCode::Ok);
    }
    if rows.is_empty() {
        println!("Nothing is stored yet: `pushlab run transports` measures something.");
    }
    for row in &rows {
        let mut state = format!("{} of {} runs", row.done, row.planned);
        for (count, what) in [(row.void, "void"), (row.failed, "failed")] {
            if count > 0 {
                state.push_str(&format!(", {count} {what}"));
            }
        }
        let kind = if row.kind.name() == "measured" { String::new() } else { format!("  {}", row.kind) };
        let note = row.note.as_ref().map_or(String::new(), |note| format!("  {note}"));
        println!("{:>4}  {:<28} {}  {state}{kind}{note}", row.id, row.name, row.created_at);
    }
    Ok(ExitCode::Ok)
}

pub fn show(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let store = open_to_read(args.store.as_deref())?;
    let row = store.find(&args.result)?;
    let report = stored::report_of(&[archive::read(&store, row.id, "")?], Asked::default())?;
    match args.format.render(&report) {
        Some(text) => print!("{text}"),
        None => {
            println!("{} · {} · {} of {} runs", row.id, row.name, row.done, row.planned);
            print!("{}{}{}", terminal::text(&report), terminal::environment(&report), terminal::advice(&report));
        }
    }
    Ok(ExitCode::Ok)
}

pub fn report(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let store = args.store.open_to_read()?;
    let id = match &args.result {
        Some(reference) => store.find(reference)?.id,
        None => {
            let latest = store.campaigns()?.pop();
            latest.context("nothing is stored yet; `pushlab run transports` measures something")?.id
        }
    };
    Shown::of(&store, &[id], &args.store.out, Asked::default())?.give(args.format, &args.files)?;
    Ok(ExitCode::Ok)
}

pub fn compare(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let store = args.store.open_to_read()?;
    let rows = store.find_all(&args.results)?;
    let metrics = args.metric.iter().map(|name| metric(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let margins: BTreeMap<String, f64> = args.margin.iter().cloned().collect();
    let (results, comparison) = stored::compare(&store, &rows, &metrics, &margins)?;
    if let Some(what) = stored::differences(&results) {
        eprintln!("note: {what}; a change may come from that alone");
    }
    let is_any = |changes: &[Change]| comparison.rows.iter().any(|row| changes.contains(&row.change));
    let outcome = match (!comparison.missing.is_empty() || is_any(&[Change::Worse]), args.fail_if_worse) {
        (_, false) => Agreement::Refuted,
        (true, true) => Agreement::Confirmed,
        (false, true) if is_any(&[Change::Undecided, Change::Unknown]) => Agreement::Undecided,
        (false, true) => Agreement::Refuted,
    };
    if outcome == Agreement::Undecided {
        let why = match comparison.rows.iter().all(|row| row.change == Change::Unknown) {
            true => "too few runs to tell; three a side are the least, seven tell more",
            false => "nothing was shown to be worse, and not everything to be as good; more repeats decide",
        };
        eprintln!("--fail-if-worse: undecided: {why}");
    }
    let asked = Asked { comparison: Some(comparison), ..Asked::default() };
    Shown::with(&ids(&rows), results, asked, &args.store.out)?.give(args.format, &args.files)?;
    Ok(args.gate.code(outcome))
}

/// A metric or kind of metrics with its margin.
fn margin(text: &str) -> Result<(String, f64), String> {
    let (name, percent) = text.split_once('=').ok_or("METRIC=PERCENT is wanted, e.g. cpu=5")?;
    let percent = percent.trim_end_matches('%').trim().parse().map_err(|_| format!("{percent:?} is no number"))?;
    let entry = (name.trim().to_owned(), percent);
    margins::check(&BTreeMap::from([entry.clone()]))?;
    Ok(entry)
}

fn metric(name: &str) -> anyhow::Result<&'static Metric> {
    let known = || Metric::names().collect::<Vec<_>>().join(", ");
    Metric::find(name).ok_or_else(|| usage(format!("metric {name:?} is not known; known are {}", known())))
}

pub fn merge(args: &MergeArgs) -> anyhow::Result<ExitCode> {
    let store = args.store.open_to_read()?;
    let rows = store.find_all(&args.results)?;
    let mut results = stored::read_all(&store, &rows)?;
    if args.pool {
        if let Some(what) = stored::unlike(&results) {
            anyhow::bail!("{what}; their runs are no repeats of one another: merge without --pool");
        }
        stored::pool(&mut results);
    }
    Shown::with(&ids(&rows), results, Asked::default(), &args.store.out)?.give(args.format, &args.files)?;
    Ok(ExitCode::Ok)
}

pub fn rm(args: &RmArgs) -> anyhow::Result<ExitCode> {
    let mut store = archive::open(args.store.as_deref())?;
    let rows = store.find_all(&args.results)?;
    // What is unfinished may be what a lab works on right now.
    let is_unfinished = rows.iter().any(|row| row.kind == Kind::Measured && row.done < row.planned);
    let _no_lab = if is_unfinished { Some(store.lock_for_measuring()?) } else { None };
    for row in rows {
        store.remove(row.id)?;
        println!("removed {} · {} · {} runs", row.id, row.name, row.done);
    }
    Ok(ExitCode::Ok)
}

fn ids(rows: &[CampaignRow]) -> Vec<i64> {
    rows.iter().map(|row| row.id).collect()
}

/// A report that was computed and written.
pub struct Shown {
    pub results: Vec<ResultRuns>,
    pub report: Report,
    page: PathBuf,
}

impl Shown {
    /// The report of stored results.
    pub fn of(store: &Store, ids: &[i64], out: &Path, asked: Asked<'_>) -> anyhow::Result<Self> {
        let results = ids.iter().map(|&id| archive::read(store, id, "")).collect::<Result<Vec<_>, _>>()?;
        Self::with(ids, results, asked, out)
    }

    fn with(ids: &[i64], results: Vec<ResultRuns>, asked: Asked<'_>, out: &Path) -> anyhow::Result<Self> {
        let report = stored::report_of(&results, asked)?;
        let name = match (ids, results.as_slice(), &report.comparison) {
            (&[id], [one], None) => one.header.folder_name(id),
            (_, _, comparison) => {
                let what = if comparison.is_some() { "comparison" } else { "merge" };
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                format!("{what}-{}", ids.join("-"))
            }
        };
        let folder = out.join(name);
        let unwritable = |source| WorkplaceError::Folder { path: folder.clone(), source };
        std::fs::create_dir_all(&folder).map_err(unwritable)?;
        let page = folder.join("report.html");
        new_file::write(&page, html::text(&report, REPORT_PAGE)?.as_bytes()).map_err(unwritable)?;
        new_file::write(&folder.join("report.json"), json::text(&report).as_bytes()).map_err(unwritable)?;
        Ok(Self { results, report, page })
    }

    /// Prints it, and writes it in the other forms that are asked for.
    pub fn give(&self, format: FormatArgs, files: &FileArgs) -> anyhow::Result<()> {
        let folder = self.page.parent().unwrap_or(Path::new("."));
        for (name, text) in files.files(&self.report) {
            let unwritable = |source| WorkplaceError::Folder { path: folder.to_owned(), source };
            new_file::write(&folder.join(name), text.as_bytes()).map_err(unwritable)?;
        }
        files.summarize(&self.report)?;
        match format.render(&self.report) {
            Some(text) => print!("{text}"),
            None => {
                print!("{}{}", terminal::text(&self.report), terminal::advice(&self.report));
                println!("\nReport: {}", self.page.display());
            }
        }
        Ok(())
    }
}
